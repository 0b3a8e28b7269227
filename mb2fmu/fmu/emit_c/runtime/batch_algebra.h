/* batch_algebra.h: linear_algebra.c for many instances side by side (batch.h), each lane with the bits it has alone.
 *
 * Lanes take other pivots, and other numbers of iterations, than their neighbours: rows are exchanged lane by lane, and
 * Newton's method goes on until the last lane is done, while what the others have stays as it is. A lane in which a
 * pivot fails, or no solution is found, is marked in `lost`; its numbers are of no use.
 *
 * Shapes, and the order of operations, are those of linear_algebra.h. It is written beside linear_algebra.c and not made
 * of one text with it: a lane cannot return early, take a branch or exchange rows by itself, so that more than half of
 * the lines differ. tests/unit/toolchain/test_batch.py compares every bit of both.
 */
#ifndef MB2FMU_BATCH_ALGEBRA_H
#define MB2FMU_BATCH_ALGEBRA_H

#include "linear_algebra.h"

MB2FMU_UNUSED static void mb2fmu_each_ldlt_factor(int n, mb2fmu_reals a[], mb2fmu_words *lost)
{
    mb2fmu_reals *row = a;
    for (int i = 0; i < n; i++) {
        const mb2fmu_reals *above = a; /* row j */
        for (int j = 0; j < i; j++) {
            mb2fmu_reals value = row[j];
            for (int k = 0; k < j; k++) {
                value -= row[k] * above[k];
            }
            row[j] = value; /* l_ij d_j until the row is done */
            above += j + 1;
        }
        mb2fmu_reals pivot = row[i];
        const mb2fmu_reals *diagonal = a;
        for (int j = 0; j < i; j++) {
            const mb2fmu_reals scaled = row[j] / *diagonal;
            pivot -= scaled * row[j];
            row[j] = scaled;
            diagonal += j + 2;
        }
        row[i] = mb2fmu_each_positive(pivot, lost);
        row += i + 1;
    }
}

MB2FMU_UNUSED static void mb2fmu_each_ldlt_solve(int n, const mb2fmu_reals a[], mb2fmu_reals x[])
{
    const mb2fmu_reals *row = a;
    for (int i = 0; i < n; i++) {
        mb2fmu_reals value = x[i];
        for (int j = 0; j < i; j++) {
            value -= row[j] * x[j];
        }
        x[i] = value;
        row += i + 1;
    }
    const mb2fmu_reals *diagonal = a;
    for (int i = 0; i < n; i++) {
        x[i] /= *diagonal;
        diagonal += i + 2;
    }
    for (int i = n - 1; i > 0; i--) {
        row -= i + 1;
        for (int j = 0; j < i; j++) {
            x[j] -= row[j] * x[i];
        }
    }
}

/* Exchanges n values of two arrays in one lane. */
static void mb2fmu_exchange_lane(int n, int lane, mb2fmu_reals first[], mb2fmu_reals second[])
{
    for (int j = 0; j < n; j++) {
        mb2fmu_lanes a, b;
        a.reals = first[j];
        b.reals = second[j];
        const double value = a.lane[lane];
        a.lane[lane] = b.lane[lane];
        b.lane[lane] = value;
        first[j] = a.reals;
        second[j] = b.reals;
    }
}

/* In each lane the row at or below k with the largest entry in column k; the first of equal ones. */
static mb2fmu_reals mb2fmu_pivot_rows(int n, const mb2fmu_reals a[], int k)
{
    mb2fmu_reals best = mb2fmu_all(k), largest = mb2fmu_each_abs(a[k * n + k]);
    for (int i = k + 1; i < n; i++) {
        const mb2fmu_reals size = mb2fmu_each_abs(a[i * n + k]);
        const mb2fmu_words larger = MB2FMU_WHERE(size > largest);
        best = mb2fmu_choose(larger, mb2fmu_all(i), best);
        largest = mb2fmu_choose(larger, size, largest);
    }
    return best;
}

/* Exchanges entry or row k, of n values, with that which `with` names in each lane. */
static void mb2fmu_exchange_lanes(int n, int k, mb2fmu_reals with, mb2fmu_reals a[])
{
    if (!mb2fmu_anywhere(MB2FMU_WHERE(with != mb2fmu_all(k)))) {
        return;
    }
    mb2fmu_lanes other;
    other.reals = with;
    for (int lane = 0; lane < MB2FMU_LANES; lane++) {
        if ((int)other.lane[lane] != k) {
            mb2fmu_exchange_lane(n, lane, a + k * n, a + (int)other.lane[lane] * n);
        }
    }
}

MB2FMU_UNUSED static void mb2fmu_each_lu_factor(int n, mb2fmu_reals a[], mb2fmu_words *lost)
{
    mb2fmu_reals *exchanges = a + n * n;
    for (int k = 0; k < n; k++) {
        exchanges[k] = mb2fmu_pivot_rows(n, a, k);
        mb2fmu_exchange_lanes(n, k, exchanges[k], a);
        const mb2fmu_reals *upper = a + k * n;
        const mb2fmu_reals pivot = mb2fmu_each_divisor(upper[k], lost);
        for (int i = k + 1; i < n; i++) {
            mb2fmu_reals *row = a + i * n;
            const mb2fmu_reals factor = row[k] / pivot;
            row[k] = factor;
            for (int j = k + 1; j < n; j++) {
                row[j] -= factor * upper[j];
            }
        }
    }
}

MB2FMU_UNUSED static void mb2fmu_each_lu_solve(int n, const mb2fmu_reals a[], mb2fmu_reals x[])
{
    const mb2fmu_reals *exchanges = a + n * n;
    for (int k = 0; k < n; k++) {
        mb2fmu_exchange_lanes(1, k, exchanges[k], x);
    }
    for (int i = 1; i < n; i++) {
        mb2fmu_reals value = x[i];
        for (int j = 0; j < i; j++) {
            value -= a[i * n + j] * x[j];
        }
        x[i] = value;
    }
    for (int i = n - 1; i >= 0; i--) {
        mb2fmu_reals value = x[i];
        for (int j = i + 1; j < n; j++) {
            value -= a[i * n + j] * x[j];
        }
        x[i] = value / a[i * n + i];
    }
}

/* Makes entry (p, q) zero in the lanes that are marked. */
static void mb2fmu_each_jacobi_rotate(int n, int p, int q, mb2fmu_words marked, mb2fmu_reals a[], mb2fmu_reals v[])
{
    const mb2fmu_reals one = mb2fmu_all(1.0), zero = mb2fmu_all(0.0), entry = a[p * n + q];
    const mb2fmu_reals theta = (a[q * n + q] - a[p * n + p]) / (mb2fmu_all(2.0) * entry);
    const mb2fmu_reals size = one / (mb2fmu_each_abs(theta) + mb2fmu_each_sqrt(theta * theta + one));
    const mb2fmu_reals t = mb2fmu_choose(MB2FMU_WHERE(theta < zero), -size, size);
    const mb2fmu_reals c = one / mb2fmu_each_sqrt(t * t + one);
    const mb2fmu_reals s = t * c;
    a[p * n + p] = mb2fmu_choose(marked, a[p * n + p] - t * entry, a[p * n + p]);
    a[q * n + q] = mb2fmu_choose(marked, a[q * n + q] + t * entry, a[q * n + q]);
    a[p * n + q] = mb2fmu_choose(marked, zero, entry);
    a[q * n + p] = a[p * n + q];
    for (int k = 0; k < n; k++) {
        mb2fmu_reals x = a[p * n + k], y = a[q * n + k];
        if (k != p && k != q) {
            a[p * n + k] = mb2fmu_choose(marked, c * x - s * y, x);
            a[q * n + k] = mb2fmu_choose(marked, s * x + c * y, y);
            a[k * n + p] = a[p * n + k];
            a[k * n + q] = a[q * n + k];
        }
        x = v[p * n + k];
        y = v[q * n + k];
        v[p * n + k] = mb2fmu_choose(marked, c * x - s * y, x);
        v[q * n + k] = mb2fmu_choose(marked, s * x + c * y, y);
    }
}

static mb2fmu_reals mb2fmu_each_least_norm_share(int n, int rank, const mb2fmu_reals a[], int i)
{
    const mb2fmu_reals value = a[i * n + i], zero = mb2fmu_all(0.0), one = mb2fmu_all(1.0);
    mb2fmu_reals largest = zero, before = zero;
    for (int j = 0; j < n; j++) {
        const mb2fmu_reals other = a[j * n + j];
        const mb2fmu_words ahead = j < i ? MB2FMU_WHERE(other == value) : mb2fmu_nowhere();
        const mb2fmu_words first = MB2FMU_WHERE(other > value) | ahead;
        largest = mb2fmu_choose(MB2FMU_WHERE(other > largest), other, largest);
        before = before + mb2fmu_choose(first, one, zero);
    }
    const mb2fmu_reals shifted = value + mb2fmu_all(MB2FMU_LEAST_NORM_FADING) * largest;
    const mb2fmu_reals part = value / shifted;
    const mb2fmu_words counts = MB2FMU_WHERE(before < mb2fmu_all(rank)) & MB2FMU_WHERE(value > zero);
    return mb2fmu_choose(counts, part / shifted * (mb2fmu_all(2.0) - part * part), zero);
}

/* The matrix in full from its lower triangle, in place, and V = 1 behind it; returns its trace. */
static mb2fmu_reals mb2fmu_each_unfold(int n, mb2fmu_reals a[], mb2fmu_words *lost)
{
    mb2fmu_reals trace = mb2fmu_all(0.0);
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i; j >= 0; j--) {
            const mb2fmu_reals value = a[i * (i + 1) / 2 + j];
            *lost |= ~mb2fmu_finite(value);
            a[i * n + j] = value;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            a[i * n + j] = j > i ? a[j * n + i] : a[i * n + j];
            a[n * n + i * n + j] = mb2fmu_all(i == j ? 1.0 : 0.0);
        }
        trace = trace + a[i * n + i];
    }
    return trace;
}

MB2FMU_UNUSED static void mb2fmu_each_least_norm_factor(int n, int rank, mb2fmu_reals a[], mb2fmu_words *lost)
{
    const mb2fmu_reals nothing = mb2fmu_all(MB2FMU_JACOBI_NOTHING) * mb2fmu_each_unfold(n, a, lost);
    mb2fmu_words rotated = ~mb2fmu_nowhere();
    for (int sweep = 0; mb2fmu_anywhere(rotated) && sweep < MB2FMU_JACOBI_SWEEPS; sweep++) {
        rotated = mb2fmu_nowhere();
        for (int p = 0; p < n; p++) {
            for (int q = p + 1; q < n; q++) {
                const mb2fmu_words marked = MB2FMU_WHERE(mb2fmu_each_abs(a[p * n + q]) > nothing);
                rotated |= marked;
                mb2fmu_each_jacobi_rotate(n, p, q, marked, a, a + n * n);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        a[2 * n * n + i] = mb2fmu_each_least_norm_share(n, rank, a, i);
    }
}

MB2FMU_UNUSED static void mb2fmu_each_least_norm_solve(int n, mb2fmu_reals a[], mb2fmu_reals x[])
{
    mb2fmu_reals *const sum = a;
    for (int j = 0; j < n; j++) {
        sum[j] = mb2fmu_all(0.0);
    }
    for (int i = 0; i < n; i++) {
        const mb2fmu_reals *const vector = a + n * n + i * n;
        mb2fmu_reals along = mb2fmu_all(0.0);
        for (int j = 0; j < n; j++) {
            along = along + vector[j] * x[j];
        }
        along = along * a[2 * n * n + i];
        for (int j = 0; j < n; j++) {
            sum[j] = sum[j] + vector[j] * along;
        }
    }
    for (int j = 0; j < n; j++) {
        x[j] = sum[j];
    }
}

/* In each lane the largest magnitude; infinity if one is not finite. */
static mb2fmu_reals mb2fmu_each_largest(int n, const mb2fmu_reals x[])
{
    mb2fmu_reals largest = mb2fmu_all(0.0);
    mb2fmu_words finite = ~mb2fmu_nowhere();
    for (int i = 0; i < n; i++) {
        const mb2fmu_reals size = mb2fmu_each_abs(x[i]);
        finite &= mb2fmu_finite(size);
        largest = mb2fmu_choose(MB2FMU_WHERE(size > largest), size, largest);
    }
    return mb2fmu_choose(finite, largest, mb2fmu_all(MB2FMU_INFINITY));
}

/* Stores residuals and steps as mb2fmu_newton_body does; marks lanes instead of returning a number. */
typedef int (*mb2fmu_each_newton_body)(const mb2fmu_reals y[], const mb2fmu_reals theta[], mb2fmu_reals values[],
                                       mb2fmu_words lost[], mb2fmu_reals work[]);

/* Largest residual in each lane of y; infinity where it cannot be evaluated. */
static mb2fmu_reals mb2fmu_each_residual(int n, mb2fmu_each_newton_body body, const mb2fmu_reals theta[],
                                         const mb2fmu_reals y[], mb2fmu_reals values[], mb2fmu_reals work[])
{
    mb2fmu_words lost = mb2fmu_nowhere();
    (void)body(y, theta, values, &lost, work);
    return mb2fmu_choose(lost, mb2fmu_all(MB2FMU_INFINITY), mb2fmu_each_largest(n, values));
}

/* What Newton's method has in each lane: the places are those of mb2fmu_newton. */
typedef struct {
    mb2fmu_each_newton_body body;
    const mb2fmu_reals *theta, *closing;
    mb2fmu_reals *y, *values, *found, *tried, *way, *between, *guess, *first, *rest;
    mb2fmu_reals residual, side; /* side: of the guess in each lane, 2: not looked at yet */
} mb2fmu_each_iteration;

static mb2fmu_reals mb2fmu_each_newton_bend(int n, double part, const mb2fmu_reals step[], const mb2fmu_reals after[])
{
    const mb2fmu_reals left = mb2fmu_all(1.0 - part);
    mb2fmu_reals largest = mb2fmu_all(0.0);
    mb2fmu_words finite = ~mb2fmu_nowhere();
    for (int i = 0; i < n; i++) {
        const mb2fmu_reals bend = mb2fmu_each_abs(after[i] - left * step[i]);
        finite &= mb2fmu_finite(bend);
        largest = mb2fmu_choose(MB2FMU_WHERE(bend > largest), bend, largest);
    }
    return mb2fmu_choose(finite, largest, mb2fmu_all(MB2FMU_INFINITY));
}

/* Residuals at y plus a part of the step, stored in `at`; values there go to `found`. */
static mb2fmu_reals mb2fmu_each_newton_try(int n, const mb2fmu_each_iteration *it, double part, mb2fmu_reals at[],
                                           mb2fmu_reals found[])
{
    for (int i = 0; i < n; i++) {
        at[i] = it->y[i] + mb2fmu_all(part) * it->values[n + i];
    }
    return mb2fmu_each_residual(n, it->body, it->theta, at, found, it->rest);
}

/* On which side of singular positions each lane of a point is, as mb2fmu_newton_side has it. */
static mb2fmu_reals mb2fmu_each_newton_side(int n, const mb2fmu_each_iteration *it, const mb2fmu_reals at[],
                                            mb2fmu_reals nudge)
{
    mb2fmu_reals *const point = it->between, *const values = it->between + n, *row = it->first;
    double *const one = (double *)(it->first + n + n * n); /* the matrix of one lane */
    mb2fmu_words lost = mb2fmu_nowhere();
    mb2fmu_lanes side;
    for (int j = -1; j < n; j++) {
        for (int i = 0; i < n; i++) {
            point[i] = i == j ? at[i] + nudge : at[i];
        }
        (void)it->body(point, it->theta, j < 0 ? row : values, &lost, it->rest);
        for (int i = 0; i < n && j >= 0; i++) {
            row[i] = values[i] - it->first[i];
        }
        row += n;
    }
    for (int lane = 0; lane < MB2FMU_LANES; lane++) {
        for (int i = 0; i < n * n; i++) {
            mb2fmu_lanes entry;
            entry.reals = it->first[n + i];
            one[i] = entry.lane[lane];
        }
        side.lane[lane] = mb2fmu_orientation(n, one);
    }
    return mb2fmu_choose(lost, mb2fmu_all(0.0), side.reals);
}

/* Of the marked lanes those in which a singular position lies between the guess and what was tried. */
static mb2fmu_words mb2fmu_each_newton_beyond(int n, mb2fmu_each_iteration *at, mb2fmu_reals size, mb2fmu_words marked)
{
    const mb2fmu_reals nudge = mb2fmu_all(MB2FMU_NEWTON_NUDGE) * size;
    const mb2fmu_words fresh = marked & MB2FMU_WHERE(at->side == mb2fmu_all(2.0));
    if (mb2fmu_anywhere(fresh)) {
        at->side = mb2fmu_choose(fresh, mb2fmu_each_newton_side(n, at, at->guess, nudge), at->side);
    }
    const mb2fmu_reals there = mb2fmu_each_newton_side(n, at, at->tried, nudge);
    return marked & MB2FMU_WHERE(at->side * there < mb2fmu_all(0.0));
}

/* Of the marked lanes those in which a part of the step stays on Newton's path. */
static mb2fmu_words mb2fmu_each_newton_stays(int n, mb2fmu_each_iteration *at, double part, mb2fmu_words marked)
{
    const mb2fmu_reals *const step = at->values + n;
    const mb2fmu_reals size = mb2fmu_each_largest(n, step);
    mb2fmu_reals bend = mb2fmu_each_newton_bend(n, part, step, at->found + n);
    const mb2fmu_words is_far = MB2FMU_WHERE(mb2fmu_all(part) * size > mb2fmu_all(MB2FMU_NEWTON_FAR));
    const mb2fmu_words doubtful = marked & (MB2FMU_WHERE(bend > mb2fmu_all(MB2FMU_NEWTON_LITTLE) * size) | is_far);
    if (mb2fmu_anywhere(doubtful)) {
        mb2fmu_reals *const found = at->between + n;
        const mb2fmu_words known = mb2fmu_finite(mb2fmu_each_newton_try(n, at, 0.5 * part, at->between, found));
        const mb2fmu_reals middle = mb2fmu_each_newton_bend(n, 0.5 * part, step, found + n);
        bend = mb2fmu_choose(doubtful & MB2FMU_WHERE(middle > bend), middle, bend);
        bend = mb2fmu_choose(doubtful & ~known, mb2fmu_all(MB2FMU_INFINITY), bend);
    }
    const mb2fmu_reals allowed =
        mb2fmu_choose(is_far, mb2fmu_all(MB2FMU_NEWTON_LITTLE), mb2fmu_all(MB2FMU_NEWTON_BEND));
    const mb2fmu_words near_path = marked & MB2FMU_WHERE(bend <= allowed * size);
    const mb2fmu_words turning = near_path & (MB2FMU_WHERE(at->residual > mb2fmu_all(MB2FMU_NEWTON_OPEN)) |
                                              MB2FMU_WHERE(bend > mb2fmu_all(MB2FMU_NEWTON_TURNING) * size));
    return mb2fmu_anywhere(turning) ? near_path & ~mb2fmu_each_newton_beyond(n, at, size, turning) : near_path;
}

/* Parts of the step, in the lanes that are marked, until less is left over; returns the lanes in which that is so. */
static mb2fmu_words mb2fmu_each_newton_step(int n, mb2fmu_each_iteration *at, mb2fmu_words moving)
{
    mb2fmu_words trying = moving;
    double part = 1.0;
    for (int k = 0; k < MB2FMU_NEWTON_HALVINGS && mb2fmu_anywhere(trying); k++) {
        const mb2fmu_reals left = mb2fmu_each_newton_try(n, at, part, at->tried, at->found);
        mb2fmu_words less = trying & MB2FMU_WHERE(left <= mb2fmu_all(MB2FMU_NEWTON_LEFT(part)) * at->residual);
        const mb2fmu_words small = less & MB2FMU_WHERE(at->residual <= mb2fmu_all(MB2FMU_NEWTON_RESIDUAL));
        less = small | mb2fmu_each_newton_stays(n, at, part, less & ~small);
        for (int i = 0; i < n; i++) {
            at->way[i] = mb2fmu_choose(less, at->way[i] + (at->tried[i] - at->y[i]), at->way[i]);
            at->y[i] = mb2fmu_choose(less, at->tried[i], at->y[i]);
        }
        for (int i = 0; i < 2 * n; i++) {
            at->values[i] = mb2fmu_choose(less, at->found[i], at->values[i]);
        }
        at->residual = mb2fmu_choose(less, left, at->residual);
        trying &= ~less;
        part *= 0.5;
    }
    return moving & ~trying;
}

/* The lanes in which one more step is the last. */
static mb2fmu_words mb2fmu_each_arrived(int n, const mb2fmu_each_iteration *at)
{
    const mb2fmu_reals size = mb2fmu_each_largest(n, at->values + n);
    const mb2fmu_reals error = size * (mb2fmu_each_largest(n, at->way) + size);
    return MB2FMU_WHERE(size <= mb2fmu_all(MB2FMU_NEWTON_STEP)) |
           MB2FMU_WHERE(error <= mb2fmu_all(MB2FMU_NEWTON_ERROR));
}

/* The lanes in which no equation has more left over than it may, if a last step is of that size. */
static mb2fmu_words mb2fmu_each_closed(int n, const mb2fmu_each_iteration *at, mb2fmu_reals size)
{
    mb2fmu_words closed = ~mb2fmu_nowhere();
    for (int i = 0; i < n; i++) {
        const mb2fmu_reals limit = at->closing[n + i] + mb2fmu_all(MB2FMU_NEWTON_STEPS * n) * size;
        closed &= ~MB2FMU_WHERE(mb2fmu_each_abs(at->values[i]) > limit);
    }
    return closed;
}

MB2FMU_UNUSED static void mb2fmu_each_newton(int n, mb2fmu_each_newton_body body, const mb2fmu_reals theta[],
                                             const mb2fmu_reals closing[], mb2fmu_reals y[], mb2fmu_words *lost,
                                             mb2fmu_reals work[])
{
    mb2fmu_each_iteration at = {body, theta, closing, y, work, work + 2 * n, work + 4 * n, work + 5 * n, work + 6 * n,
                                work + 9 * n, work + 10 * n, work + MB2FMU_NEWTON_WORK(n),
                                mb2fmu_all(0.0), mb2fmu_all(2.0)};
    for (int i = 0; i < n; i++) {
        at.way[i] = mb2fmu_all(0.0);
        at.guess[i] = y[i];
    }
    at.residual = mb2fmu_each_residual(n, body, theta, y, at.values, at.rest);
    mb2fmu_words moving = mb2fmu_finite(at.residual), solved = mb2fmu_nowhere(), tried = mb2fmu_nowhere();
    for (int k = 0; k < MB2FMU_NEWTON_ITERATIONS && mb2fmu_anywhere(moving); k++) {
        const mb2fmu_words arrived = moving & mb2fmu_each_arrived(n, &at);
        for (int i = 0; i < n; i++) {
            y[i] = mb2fmu_choose(arrived, y[i] + at.values[n + i], y[i]);
        }
        const mb2fmu_reals step_size = mb2fmu_each_largest(n, at.values + n);
        solved |= closing == NULL ? arrived : arrived & mb2fmu_each_closed(n, &at, step_size);
        tried |= arrived;
        moving = mb2fmu_each_newton_step(n, &at, moving & ~arrived);
    }
    if (closing == NULL) {
        solved |= MB2FMU_WHERE(at.residual <= mb2fmu_all(MB2FMU_NEWTON_RESIDUAL));
    } else {
        solved |= mb2fmu_finite(at.residual) & ~tried & mb2fmu_each_closed(n, &at, mb2fmu_all(0.0));
    }
    *lost |= ~solved;
}

#endif
