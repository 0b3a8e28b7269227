/* linear_algebra.c: factorizations and solves (linear_algebra.h). Every sum is formed from the left, one term after the
 * other, so that results depend on nothing but the numbers. */
#include "linear_algebra.h"

static int mb2fmu_ldlt_factor(int n, double a[])
{
    double *row = a;
    for (int i = 0; i < n; i++) {
        const double *above = a; /* row j */
        for (int j = 0; j < i; j++) {
            double value = row[j];
            for (int k = 0; k < j; k++) {
                value -= row[k] * above[k];
            }
            row[j] = value; /* l_ij d_j until the row is done */
            above += j + 1;
        }
        double pivot = row[i];
        const double *diagonal = a;
        for (int j = 0; j < i; j++) {
            const double scaled = row[j] / *diagonal;
            pivot -= scaled * row[j];
            row[j] = scaled;
            diagonal += j + 2;
        }
        if (!(pivot > 0.0 && pivot < MB2FMU_INFINITY)) {
            return i + 1;
        }
        row[i] = pivot;
        row += i + 1;
    }
    return 0;
}

static void mb2fmu_ldlt_solve(int n, const double a[], double x[])
{
    const double *row = a;
    for (int i = 0; i < n; i++) {
        double value = x[i];
        for (int j = 0; j < i; j++) {
            value -= row[j] * x[j];
        }
        x[i] = value;
        row += i + 1;
    }
    const double *diagonal = a;
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

/* Exchanges two rows of a matrix with n columns. */
static void mb2fmu_exchange(int n, double first[], double second[])
{
    for (int j = 0; j < n; j++) {
        const double value = first[j];
        first[j] = second[j];
        second[j] = value;
    }
}

/* The row at or below k with the largest entry in column k; the first of equal ones. */
static int mb2fmu_pivot_row(int n, const double a[], int k)
{
    int best = k;
    for (int i = k + 1; i < n; i++) {
        if (fabs(a[i * n + k]) > fabs(a[best * n + k])) {
            best = i;
        }
    }
    return best;
}

static int mb2fmu_lu_factor(int n, double a[])
{
    double *exchanges = a + n * n;
    for (int k = 0; k < n; k++) {
        const int best = mb2fmu_pivot_row(n, a, k);
        double *upper = a + k * n;
        exchanges[k] = best;
        if (best != k) {
            mb2fmu_exchange(n, upper, a + best * n);
        }
        const double pivot = upper[k];
        if (!(pivot != 0.0 && fabs(pivot) < MB2FMU_INFINITY)) {
            return k + 1;
        }
        for (int i = k + 1; i < n; i++) {
            double *row = a + i * n;
            const double factor = row[k] / pivot;
            row[k] = factor;
            for (int j = k + 1; j < n; j++) {
                row[j] -= factor * upper[j];
            }
        }
    }
    return 0;
}

static void mb2fmu_lu_solve(int n, const double a[], double x[])
{
    const double *exchanges = a + n * n;
    for (int k = 0; k < n; k++) {
        const int other = (int)exchanges[k];
        const double value = x[k];
        x[k] = x[other];
        x[other] = value;
    }
    for (int i = 1; i < n; i++) {
        double value = x[i];
        for (int j = 0; j < i; j++) {
            value -= a[i * n + j] * x[j];
        }
        x[i] = value;
    }
    for (int i = n - 1; i >= 0; i--) {
        double value = x[i];
        for (int j = i + 1; j < n; j++) {
            value -= a[i * n + j] * x[j];
        }
        x[i] = value / a[i * n + i];
    }
}

/* (first, second) = (c first - s second, s first + c second) */
static void mb2fmu_jacobi_turn(double c, double s, double *first, double *second)
{
    const double x = *first;
    const double y = *second;
    *first = c * x - s * y;
    *second = s * x + c * y;
}

/* Makes entry (p, q) of the symmetric matrix `a` zero; `v` has its eigenvectors as rows when all are. */
static void mb2fmu_jacobi_rotate(int n, int p, int q, double a[], double v[])
{
    const double entry = a[p * n + q];
    const double theta = (a[q * n + q] - a[p * n + p]) / (2.0 * entry);
    const double size = 1.0 / (fabs(theta) + sqrt(theta * theta + 1.0));
    const double t = theta < 0.0 ? -size : size;
    const double c = 1.0 / sqrt(t * t + 1.0);
    const double s = t * c;
    a[p * n + p] = a[p * n + p] - t * entry;
    a[q * n + q] = a[q * n + q] + t * entry;
    a[p * n + q] = 0.0;
    a[q * n + p] = 0.0;
    for (int k = 0; k < n; k++) {
        if (k != p && k != q) {
            mb2fmu_jacobi_turn(c, s, &a[p * n + k], &a[q * n + k]);
            a[k * n + p] = a[p * n + k];
            a[k * n + q] = a[q * n + k];
        }
        mb2fmu_jacobi_turn(c, s, &v[p * n + k], &v[q * n + k]);
    }
}

/* The matrix in full from its lower triangle, in place. 0, or the number of a row that is not finite. */
static int mb2fmu_full_from_lower(int n, double a[])
{
    int wrong = 0;
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i; j >= 0; j--) {
            const double value = a[i * (i + 1) / 2 + j];
            if (!(fabs(value) < MB2FMU_INFINITY)) {
                wrong = i + 1;
            }
            a[i * n + j] = value;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            a[i * n + j] = a[j * n + i];
        }
    }
    return wrong;
}

/* What eigenvalue i counts for: nothing if it is none of the `rank` largest. `a` has them on its diagonal. */
static double mb2fmu_least_norm_share(int n, int rank, const double a[], int i)
{
    const double value = a[i * n + i];
    double largest = 0.0;
    int before = 0;
    for (int j = 0; j < n; j++) {
        const double other = a[j * n + j];
        largest = other > largest ? other : largest;
        before += other > value || (other == value && j < i);
    }
    if (before >= rank || !(value > 0.0)) {
        return 0.0;
    }
    const double shifted = value + MB2FMU_LEAST_NORM_FADING * largest;
    const double part = value / shifted;
    return part / shifted * (2.0 - part * part);
}

static int mb2fmu_least_norm_factor(int n, int rank, double a[])
{
    double *const v = a + n * n;
    double *const share = v + n * n;
    const int wrong = mb2fmu_full_from_lower(n, a);
    if (wrong != 0) {
        return wrong;
    }
    double trace = 0.0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            v[i * n + j] = i == j ? 1.0 : 0.0;
        }
        trace += a[i * n + i];
    }
    int rotated = 1;
    for (int sweep = 0; rotated && sweep < MB2FMU_JACOBI_SWEEPS; sweep++) {
        rotated = 0;
        for (int p = 0; p < n; p++) {
            for (int q = p + 1; q < n; q++) {
                if (fabs(a[p * n + q]) > MB2FMU_JACOBI_NOTHING * trace) {
                    rotated = 1;
                    mb2fmu_jacobi_rotate(n, p, q, a, v);
                }
            }
        }
    }
    for (int i = 0; i < n; i++) {
        share[i] = mb2fmu_least_norm_share(n, rank, a, i);
    }
    return 0;
}

static void mb2fmu_least_norm_solve(int n, double a[], double x[])
{
    double *const sum = a; /* the first n values are free once the matrix is factored */
    const double *const share = a + 2 * n * n;
    for (int j = 0; j < n; j++) {
        sum[j] = 0.0;
    }
    for (int i = 0; i < n; i++) {
        const double *const vector = a + n * n + i * n;
        double along = 0.0;
        for (int j = 0; j < n; j++) {
            along += vector[j] * x[j];
        }
        along *= share[i];
        for (int j = 0; j < n; j++) {
            sum[j] += vector[j] * along;
        }
    }
    for (int j = 0; j < n; j++) {
        x[j] = sum[j];
    }
}

/* The largest magnitude; infinity if one is not finite. */
static double mb2fmu_largest(int n, const double x[])
{
    double largest = 0.0;
    for (int i = 0; i < n; i++) {
        const double size = fabs(x[i]);
        if (!(size < MB2FMU_INFINITY)) {
            return MB2FMU_INFINITY;
        }
        if (size > largest) {
            largest = size;
        }
    }
    return largest;
}

/* What Newton's method works with; `rest` is what `body` works with. */
typedef struct {
    int n;
    int on_path; /* steps that jump off Newton's path, or leave more over, are too long */
    mb2fmu_newton_body body;
    const double *theta, *closing;
    double *y, *values, *found, *tried, *way, *between, *guess, *first, *rest;
    double residual;
    int side; /* of the guess, as mb2fmu_newton_side has it; 2: not looked at yet */
} mb2fmu_newton_run;

/* How far the step after a part of one is from what Newton's path leaves of it. */
static double mb2fmu_newton_bend(int n, double part, const double step[], const double after[])
{
    const double left = 1.0 - part;
    double largest = 0.0;
    for (int i = 0; i < n; i++) {
        const double bend = fabs(after[i] - left * step[i]);
        if (!(bend < MB2FMU_INFINITY)) {
            return MB2FMU_INFINITY;
        }
        if (bend > largest) {
            largest = bend;
        }
    }
    return largest;
}

/* The residual at y plus a part of the step, stored in `at`; values there go to `found`. */
static double mb2fmu_newton_try(const mb2fmu_newton_run *run, double part, double at[], double found[])
{
    const double *const step = run->values + run->n;
    for (int i = 0; i < run->n; i++) {
        at[i] = run->y[i] + part * step[i];
    }
    return run->body(at, run->theta, found, run->rest) == 0 ? mb2fmu_largest(run->n, found) : MB2FMU_INFINITY;
}

/* On which side of singular positions a point is: -1 or 1; 0 where that cannot be told. The matrix that is looked at has
 * a row for each unknown; before it are values at the point itself, of which steps are overwritten by the first row. */
static int mb2fmu_newton_side(const mb2fmu_newton_run *run, const double at[], double nudge)
{
    const int n = run->n;
    double *const point = run->between;
    double *const values = run->between + n;
    double *row = run->first;
    for (int j = -1; j < n; j++) {
        for (int i = 0; i < n; i++) {
            point[i] = i == j ? at[i] + nudge : at[i];
        }
        if (run->body(point, run->theta, j < 0 ? row : values, run->rest) != 0) {
            return 0;
        }
        for (int i = 0; i < n && j >= 0; i++) {
            row[i] = values[i] - run->first[i];
        }
        row += n;
    }
    return mb2fmu_orientation(n, run->first + n);
}

/* Whether a singular position lies between the guess and what is stored in `tried`. */
static int mb2fmu_newton_is_beyond(mb2fmu_newton_run *run, double nudge)
{
    if (run->side == 2) {
        run->side = mb2fmu_newton_side(run, run->guess, nudge);
    }
    return run->side * mb2fmu_newton_side(run, run->tried, nudge) < 0;
}

/* Whether a part of the step stays on the path, as the steps after it and half-way tell, and the determinant. */
static int mb2fmu_newton_stays(mb2fmu_newton_run *run, double part)
{
    const int n = run->n;
    const double *const step = run->values + n;
    const double size = mb2fmu_largest(n, step);
    const int is_far = part * size > MB2FMU_NEWTON_FAR;
    double bend = mb2fmu_newton_bend(n, part, step, run->found + n);
    if (bend > MB2FMU_NEWTON_LITTLE * size || is_far) {
        double *const found = run->between + n;
        if (!(mb2fmu_newton_try(run, 0.5 * part, run->between, found) < MB2FMU_INFINITY)) {
            return 0;
        }
        const double middle = mb2fmu_newton_bend(n, 0.5 * part, step, found + n);
        bend = middle > bend ? middle : bend;
    }
    if (!(bend <= (is_far ? MB2FMU_NEWTON_LITTLE : MB2FMU_NEWTON_BEND) * size)) {
        return 0;
    }
    const int doubtful = run->residual > MB2FMU_NEWTON_OPEN || bend > MB2FMU_NEWTON_TURNING * size;
    return !(doubtful && mb2fmu_newton_is_beyond(run, MB2FMU_NEWTON_NUDGE * size));
}

/* A part of the step after which less is left over, as what is stored in `tried` and `found`; 0 if there is none. Off
 * the path steps are taken in full, to find any solution. */
static int mb2fmu_newton_step(mb2fmu_newton_run *run)
{
    double part = 1.0;
    for (int k = 0; k < MB2FMU_NEWTON_HALVINGS; k++) {
        const double left = mb2fmu_newton_try(run, part, run->tried, run->found);
        const int taken = run->on_path ? left <= MB2FMU_NEWTON_LEFT(part) * run->residual &&
                                             (run->residual <= MB2FMU_NEWTON_RESIDUAL || mb2fmu_newton_stays(run, part))
                                       : left < MB2FMU_INFINITY;
        if (taken) {
            run->residual = left;
            return 1;
        }
        part *= 0.5;
    }
    return 0;
}

/* Number of equations of which more is left over than may be, if a last step is of that size; with `gaps` 1 their
 * residuals in units of the equations become y. */
static int mb2fmu_newton_open(const mb2fmu_newton_run *run, double size, int gaps)
{
    const int n = run->n;
    int open = 0;
    for (int i = 0; i < n; i++) {
        const int is_open = fabs(run->values[i]) > run->closing[n + i] + MB2FMU_NEWTON_STEPS * n * size;
        open += is_open;
        if (gaps) {
            run->y[i] = is_open ? run->values[i] / run->closing[i] : 0.0;
        }
    }
    return open;
}

/* 0, 1 or 3 as mb2fmu_newton returns it. */
static int mb2fmu_newton_iterate(mb2fmu_newton_run *run)
{
    const int n = run->n;
    double *const y = run->y;
    for (int i = 0; i < n; i++) {
        run->way[i] = 0.0;
    }
    run->residual = run->body(y, run->theta, run->values, run->rest) == 0 ? mb2fmu_largest(n, run->values)
                                                                        : MB2FMU_INFINITY;
    for (int k = 0; k < MB2FMU_NEWTON_ITERATIONS && run->residual < MB2FMU_INFINITY; k++) {
        const double *const step = run->values + n;
        const double size = mb2fmu_largest(n, step);
        if (size <= MB2FMU_NEWTON_STEP || size * (mb2fmu_largest(n, run->way) + size) <= MB2FMU_NEWTON_ERROR) {
            if (run->closing != NULL && mb2fmu_newton_open(run, size, 0) > 0) {
                (void)mb2fmu_newton_open(run, size, 1);
                return 3;
            }
            for (int i = 0; i < n; i++) {
                y[i] += step[i];
            }
            return 0;
        }
        if (!mb2fmu_newton_step(run)) {
            break;
        }
        for (int i = 0; i < n; i++) {
            run->way[i] += run->tried[i] - y[i];
            y[i] = run->tried[i];
        }
        double *const before = run->values;
        run->values = run->found;
        run->found = before;
    }
    if (run->closing != NULL && run->residual < MB2FMU_INFINITY) {
        return mb2fmu_newton_open(run, 0.0, 0) > 0 ? 1 : 0;
    }
    return run->residual <= MB2FMU_NEWTON_RESIDUAL ? 0 : 1;
}

static int mb2fmu_newton(int n, mb2fmu_newton_body body, const double theta[], const double closing[], double y[],
                         double work[])
{
    double *const guess = work + 9 * n;
    mb2fmu_newton_run run = {n, 1, body, theta, closing, y, work, work + 2 * n, work + 4 * n, work + 5 * n, work + 6 * n,
                             guess, work + 10 * n, work + MB2FMU_NEWTON_WORK(n), 0.0, 2};
    for (int i = 0; i < n; i++) {
        guess[i] = y[i];
    }
    const int ended = mb2fmu_newton_iterate(&run);
    if (ended != 1) {
        return ended;
    }
    for (int i = 0; i < n; i++) {
        y[i] = guess[i];
    }
    run.on_path = 0;
    const int beyond = mb2fmu_newton_iterate(&run);
    return beyond == 0 ? 2 : beyond;
}
