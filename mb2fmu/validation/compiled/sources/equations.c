#include "equations.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"

#define RANK 1e-9        /* pivots of a Jacobian below this part of the largest one are redundant constraints */
#define SLANT 10.0       /* how far rows turn against each other, at most, per distance from the constraints */
#define PROJECTIONS 30   /* Gauss-Newton steps */
#define CLOSE 1e-9       /* of each coordinate: the error that such a step leaves is its square */
#define NEAR 1e-6        /* of each, or what is typical: so near, steps that do not become smaller are round-off */
#define SLOWER 4.0

enum names { DEPENDENT_SPEEDS = 0, ACCELERATIONS = 1 };

static void copy(double to[], const double from[], int64_t n)
{
    if (n > 0) {
        memcpy(to, from, (size_t)n * sizeof(double));
    }
}

static void zero(double to[], int64_t n)
{
    if (n > 0) {
        memset(to, 0, (size_t)n * sizeof(double));
    }
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Takes n doubles from the memory, or counts them if there is none yet. */
static double *take(double *memory, int64_t *used, int64_t n)
{
    double *place = memory ? memory + *used : NULL;
    *used += n;
    return place;
}

static void take_orthogonal(struct orthogonal *d, int64_t rows, int64_t columns, double *memory, int64_t *used)
{
    d->rows = rows;
    d->columns = columns;
    d->rank = 0;
    d->a = take(memory, used, rows * columns);
    d->left = take(memory, used, larger(rows, columns));
    d->right = take(memory, used, larger(rows, columns));
    d->spare = take(memory, used, larger(rows, columns));
    d->pivot = (int64_t *)(void *)take(memory, used, columns);
}

static int64_t distribute(struct equations *e, double *memory)
{
    int64_t used = 0;
    const int64_t n = e->n_u;
    const int64_t widest = larger(larger(n, e->n_q), e->m + e->rows);
    e->v = take(memory, &used, e->size + 1);
    e->results = take(memory, &used, e->largest + 1);
    e->rates = take(memory, &used, e->m * n + e->m + 1);
    e->numbers = take(memory, &used, e->n_q + e->rows * n + e->rows + e->m + e->n_z + 1);
    e->a = take(memory, &used, widest * widest + 1);
    e->b = take(memory, &used, 2 * widest + 1);
    e->vector = take(memory, &used, 4 * (widest + 1));
    take_orthogonal(&e->constraints_turned, n, e->m, memory, &used);
    take_orthogonal(&e->least_norm, e->n_q, e->n_phi, memory, &used);
    return used;
}

int reference_begin(struct equations *e)
{
    e->memory = (double *)calloc((size_t)distribute(e, NULL), sizeof(double));
    if (!e->memory) {
        return NO_MEMORY;
    }
    distribute(e, e->memory);
    return e->mechanism && mechanism_begin(e->mechanism) ? NO_MEMORY : OK;
}

void reference_end(struct equations *e)
{
    if (e->mechanism) {
        mechanism_end(e->mechanism);
    }
    free(e->memory);
    e->memory = NULL;
}

/* Runs a plan on the slots v; the targets are in e->results afterwards. */
static int run(struct equations *e, const struct plan *plan, double v[])
{
    for (int64_t i = 0; i < plan->count; i++) {
        const struct step *step = plan->steps + i;
        step->function(v, e->results);
        if (step->n > 0) {
            double *right = e->results + step->n * step->n;
            if (solve_square(step->n, step->k, e->results, right)) {
                e->singular = step->name;
                return SINGULAR;
            }
            copy(v + step->first, right, step->n * step->k);
        }
    }
    return OK;
}

int reference_plan(struct equations *e, const struct plan *plan, double v[], double results[])
{
    const int status = run(e, plan, v);
    if (status == OK && plan->count > 0) {
        copy(results, e->results, e->largest);
    }
    return status;
}

/* Slots at a state; speeds that are no states are 0, and so are all where ``still``. */
static void set_slots(struct equations *e, double t, const double x[], const double r[], const double p[], int still)
{
    double *v = e->v;
    v[0] = t;
    v++;
    copy(v, x, e->n_q);
    v += e->n_q;
    zero(v, e->n_u);
    for (int64_t i = 0; i < e->n_independent && !still; i++) {
        v[e->independent[i]] = x[e->n_q + i];
    }
    v += e->n_u;
    copy(v, x + e->n_q + e->n_independent, e->n_z);
    v += e->n_z;
    if (r) {
        copy(v, r, e->n_r);
    } else {
        zero(v, e->n_r);
    }
    v += e->n_r;
    copy(v, p, e->n_p);
    v += e->n_p;
    zero(v, e->size - (v - e->v));
}

/* A u + b into ``out``, shape (m,). */
static void rate(const struct equations *e, const double u[], double out[])
{
    for (int64_t i = 0; i < e->m; i++) {
        double sum = e->rates[e->m * e->n_u + i];
        for (int64_t j = 0; j < e->n_u; j++) {
            sum += e->rates[i * e->n_u + j] * u[j];
        }
        out[i] = sum;
    }
}

/* A and b at the slots. */
static int find_rates(struct equations *e)
{
    if (!e->m) {
        return OK;
    }
    const int status = run(e, &e->constraints, e->v);
    copy(e->rates, e->results, e->m * e->n_u + e->m);
    return status;
}

/* Dependent speeds into their slots. */
static int find_speeds_outside_fmu_states(struct equations *e)
{
    const int64_t count = e->n_u - e->n_independent;
    double *u = e->v + 1 + e->n_q;
    for (int64_t i = 0; i < count; i++) {
        u[e->dependent[i]] = 0.0;
    }
    rate(e, u, e->b);
    for (int64_t i = 0; i < count; i++) {
        e->b[i] = -e->b[i];
        for (int64_t j = 0; j < count; j++) {
            e->a[i * count + j] = e->rates[i * e->n_u + e->dependent[j]];
        }
    }
    if (solve_square(count, 1, e->a, e->b)) {
        e->singular = DEPENDENT_SPEEDS;
        return SINGULAR;
    }
    for (int64_t i = 0; i < count; i++) {
        u[e->dependent[i]] = e->b[i];
    }
    return OK;
}

/* The row of coordinate (or speed) i of a matrix with `count` columns, times its unit, for all i. */
static void in_units(const double units[], int64_t n, int64_t count, double a[])
{
    for (int64_t k = 0; k < count; k++) {
        for (int64_t i = 0; i < n; i++) {
            a[k * n + i] *= units[i];
        }
    }
}

/* The shortest dq, each measured in its unit, with (d phi / dq) dq = phi at the slots; NaN where numbers are. */
static int shift_to_constraints(struct equations *e, double dq[])
{
    struct orthogonal *d = &e->least_norm;
    double *phi = e->vector;
    int status = run(e, &e->holonomic, e->v);
    if (status != OK) {
        return status;
    }
    copy(phi, e->results, e->n_phi);
    status = run(e, &e->slopes, e->v);
    if (status != OK) {
        return status;
    }
    copy(d->a, e->results, e->n_phi * e->n_q);
    if (!all_finite(e->n_phi * e->n_q, d->a) || !all_finite(e->n_phi, phi)) {
        for (int64_t i = 0; i < e->n_q; i++) {
            dq[i] = NAN;
        }
        return OK;
    }
    in_units(e->typical, e->n_q, e->n_phi, d->a);
    decompose(d, RANK);
    solve_transposed(d, phi, dq);
    in_units(e->typical, e->n_q, 1, dq);
    return OK;
}

/* Pivots of A smaller than this part of the largest count as none: see numeric.py, _resolution. */
static int resolution(struct equations *e, double *found)
{
    *found = RANK;
    if (!e->n_phi) {
        return OK;
    }
    double *dq = e->vector + larger(e->n_phi, e->n_q);
    const int status = shift_to_constraints(e, dq);
    double square = 0.0;
    for (int64_t i = 0; i < e->n_q; i++) {
        square += dq[i] / e->typical[i] * (dq[i] / e->typical[i]);
    }
    const double far = SLANT * sqrt(square);
    *found = far > RANK ? far : RANK;
    return status;
}

/* u' = M^-1 f, or of [M; A] u' = [f; -gamma]. */
static int by_square(struct equations *e, const double M[], const double f[], const double gamma[], double u_dot[])
{
    const int64_t n = e->n_u;
    copy(e->a, M, e->rows * n);
    copy(e->b, f, e->rows);
    if (e->mechanism && !e->m) {
        if (!solve_symmetric(n, e->a, e->b)) {
            copy(u_dot, e->b, n);
            return OK;
        }
        copy(e->a, M, e->rows * n);
        copy(e->b, f, e->rows);
    }
    if (e->m) {
        copy(e->a + e->rows * n, e->rates, e->m * n);
        for (int64_t i = 0; i < e->m; i++) {
            e->b[e->rows + i] = -gamma[i];
        }
    }
    if (solve_square(n, 1, e->a, e->b)) {
        e->singular = ACCELERATIONS;
        return SINGULAR;
    }
    copy(u_dot, e->b, n);
    return OK;
}

/* Q' D M D Q into a, column by column of M, by the reflections of D A'; D: the units of the speeds. Only the columns
   behind the rank are complete. */
static void turn_mass_matrix(struct equations *e, const double M[])
{
    const int64_t n = e->n_u;
    const double *units = e->typical + e->n_q;
    double *a = e->a;
    copy(a, M, n * n);
    in_units(units, n, n, a);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            a[i * n + j] *= units[i];
        }
    }
    turn_each(&e->constraints_turned, n, a); /* rows: M Q */
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            const double kept = a[i * n + j];
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = kept;
        }
    }
    const int64_t rank = e->constraints_turned.rank;
    turn_each(&e->constraints_turned, n - rank, a + rank * n); /* of the others nobody reads anything */
}

/* In the null space of A: u' = D (particular + N w), A D N = 0, N' D (M u' - f) = 0; N are the last columns of Q, D the
   units of the speeds. */
static int in_null_space(struct equations *e, const double M[], const double f[], const double gamma[], double u_dot[])
{
    const int64_t n = e->n_u;
    struct orthogonal *d = &e->constraints_turned;
    double least = RANK;
    const int status = resolution(e, &least);
    if (status != OK) {
        return status;
    }
    copy(d->a, e->rates, e->m * n);
    if (!all_finite(e->m * n, d->a) || !isfinite(least)) {
        for (int64_t i = 0; i < n; i++) {
            u_dot[i] = NAN;
        }
        return OK;
    }
    const double *units = e->typical + e->n_q;
    in_units(units, n, e->m, d->a);
    decompose(d, least);
    double *particular = e->vector;
    double *rest = e->vector + n;
    for (int64_t i = 0; i < e->m; i++) {
        rest[i] = -gamma[i];
    }
    solve_transposed(d, rest, particular);
    for (int64_t i = 0; i < n; i++) {
        rest[i] = f[i];
        for (int64_t j = 0; j < n; j++) {
            rest[i] -= M[i * n + j] * units[j] * particular[j];
        }
    }
    in_units(units, n, 1, rest);
    turn(d, 1, rest);
    turn_mass_matrix(e, M);
    const int64_t free = n - d->rank;
    for (int64_t i = 0; i < free; i++) {
        e->b[i] = rest[d->rank + i];
        memmove(e->a + i * free, e->a + (d->rank + i) * n + d->rank, (size_t)free * sizeof(double));
    }
    if (solve_square(free, 1, e->a, e->b)) {
        e->singular = ACCELERATIONS;
        return SINGULAR;
    }
    zero(u_dot, d->rank);
    copy(u_dot + d->rank, e->b, free);
    turn(d, 0, u_dot);
    for (int64_t i = 0; i < n; i++) {
        u_dot[i] = units[i] * (u_dot[i] + particular[i]);
    }
    return OK;
}

/* lambda of least norm in A' lambda = f - M u', by the decomposition of A' that u' came from. */
static void find_multipliers(struct equations *e, const double M[], const double f[], const double u_dot[])
{
    double *rest = e->vector;
    for (int64_t i = 0; i < e->n_u; i++) {
        rest[i] = f[i];
        for (int64_t j = 0; j < e->n_u; j++) {
            rest[i] -= M[i * e->n_u + j] * u_dot[j];
        }
    }
    in_units(e->typical + e->n_q, e->n_u, 1, rest);
    solve_least_squares(&e->constraints_turned, rest, e->v + e->multipliers);
}

/* Slots filled up to u' and lambda, e->rates, x' and power. */
static int advance(struct equations *e, double t, const double x[], const double r[], const double p[],
    double x_dot[], double *power)
{
    const int64_t n_q = e->n_q;
    const int64_t n_u = e->n_u;
    double *q_dot = e->numbers;
    const double *M = e->numbers + n_q;
    const double *f = M + e->rows * n_u;
    const double *gamma = f + e->rows;
    double *u_dot = e->v + e->u_dot;
    set_slots(e, t, x, r, p, 0);
    int status = OK;
    if (e->unrolled) {
        e->unrolled(e->v, e->numbers);
    } else if (e->mechanism) {
        mechanism_rates(e->mechanism, e->v, e->rates);
    } else {
        status = find_rates(e);
    }
    if (status == OK && e->n_independent < n_u) {
        status = find_speeds_outside_fmu_states(e);
    }
    const int again = e->n_independent < n_u;
    const int tabulated = status == OK && e->mechanism && !e->unrolled;
    const int found = tabulated && !mechanism_accelerations(e->mechanism, e->v, again, q_dot, u_dot);
    if (found || e->unrolled) {
        /* nothing is left to evaluate */
    } else if (status == OK && e->mechanism) {
        mechanism_dynamics(e->mechanism, e->v, again, e->numbers);
    } else if (status == OK) {
        status = run(e, &e->dynamics, e->v);
        copy(e->numbers, e->results, n_q + e->rows * n_u + e->rows + e->m);
    }
    if (status != OK) {
        return status;
    }
    if (found) {
        status = OK;
    } else if (e->m && e->rows == n_u) {
        status = in_null_space(e, M, f, gamma, u_dot);
    } else {
        status = by_square(e, M, f, gamma, u_dot);
    }
    if (status != OK) {
        return status;
    }
    if (!found && e->multipliers >= 0) {
        find_multipliers(e, M, f, u_dot);
    }
    copy(x_dot, q_dot, n_q);
    for (int64_t i = 0; i < e->n_independent; i++) {
        x_dot[n_q + i] = u_dot[e->independent[i]];
    }
    double *z_dot = x_dot + n_q + e->n_independent;
    if (e->unrolled) {
        copy(z_dot, gamma, e->n_z);
        *power = gamma[e->n_z];
        return OK;
    }
    if (e->mechanism) {
        mechanism_late(e->mechanism, z_dot, power);
        return OK;
    }
    status = run(e, &e->late, e->v);
    copy(z_dot, e->results, e->n_z);
    *power = e->results[e->n_z];
    return status;
}

/* phi, then A u + b, at the slots. */
static int find_residual(struct equations *e, const double u[], double residual[])
{
    const int status = e->n_phi ? run(e, &e->holonomic, e->v) : OK;
    copy(residual, e->results, e->n_phi);
    rate(e, u, residual + e->n_phi);
    return status;
}

int reference_motion(
    struct equations *e, double t, const double x[], const double r[], const double p[], struct motion *motion)
{
    int status = advance(e, t, x, r, p, motion->x_dot, motion->power);
    const double *u = e->v + 1 + e->n_q;
    if (motion->u) {
        copy(motion->u, u, e->n_u);
    }
    if (status == OK && e->mechanism && (motion->kinetic || motion->outputs)) {
        if (e->unrolled) {
            mechanism_move(e->mechanism, e->v);
        }
        mechanism_observe(e->mechanism, e->v + e->u_dot, e->v);
    }
    if (status == OK && motion->kinetic) {
        status = run(e, &e->kinetic, e->v);
        *motion->kinetic = e->results[0];
    }
    if (status == OK && motion->outputs) {
        status = run(e, &e->outputs, e->v);
        copy(motion->outputs, e->results, e->n_y);
    }
    if (status == OK && motion->residual) {
        status = find_residual(e, u, motion->residual);
    }
    return status;
}

static double *next_row(double *row, int64_t size) { return row ? row + size : NULL; }

int reference_motions(struct equations *e, int64_t count, const double t[], const double x[], const double r[],
    const double p[], const struct motion *first, int64_t *done)
{
    const int64_t states = states_of(e);
    struct motion at = *first;
    int status = OK;
    for (*done = 0; *done < count; ++*done) {
        status = reference_motion(e, t[*done], x + *done * states, r + *done * e->n_r, p, &at);
        if (status != OK) {
            break;
        }
        at.u = next_row(at.u, e->n_u);
        at.x_dot = next_row(at.x_dot, states);
        at.power = next_row(at.power, 1);
        at.kinetic = next_row(at.kinetic, 1);
        at.outputs = next_row(at.outputs, e->n_y);
        at.residual = next_row(at.residual, e->n_phi + e->m);
    }
    return status;
}

int reference_responses(struct equations *e, double t, const double x[], double r[], const double p[], int64_t count,
    const int64_t inputs[], const double values[], double x_dots[], double outputs[])
{
    const int64_t states = states_of(e);
    int status = OK;
    for (int64_t k = 0; k < count && status == OK; k++) {
        double *const input = r + inputs[k];
        const double before = *input;
        double power = 0.0;
        struct motion motion = {NULL, x_dots + k * states, &power, NULL, outputs + k * e->n_y, NULL};
        *input = values[k];
        status = reference_motion(e, t, x, r, p, &motion);
        *input = before;
    }
    return status;
}

int reference_slopes(struct equations *e, int64_t count, const double t[], const double y[], const double r[],
    const double p[], double slopes[], int64_t *done)
{
    const int64_t states = states_of(e);
    int status = OK;
    for (*done = 0; *done < count; ++*done) {
        double *row = slopes + *done * (states + 1);
        status = advance(e, t[*done], y + *done * (states + 1), r, p, row, row + states);
        if (status != OK) {
            break;
        }
    }
    return status;
}

int reference_residuals(
    struct equations *e, int64_t count, const double points[], const double p[], double residuals[])
{
    const int64_t given = 1 + e->n_q + e->n_u + e->n_z + e->n_r;
    double *v = e->v;
    for (int64_t k = 0; k < count; k++) {
        const double *point = points + k * given;
        copy(v, point, given);
        copy(v + given, p, e->n_p);
        zero(v + given + e->n_p, e->size - given - e->n_p);
        int status = find_rates(e);
        if (status == OK) {
            status = find_residual(e, point + 1 + e->n_q, residuals + k * (e->n_phi + e->m));
        }
        if (status != OK) {
            return status;
        }
    }
    return OK;
}

/* Gauss-Newton steps of least norm for phi(q) = 0. */
static int project_coordinates(
    struct equations *e, double t, double x[], const double r[], const double p[], int still)
{
    double *dq = e->vector + larger(e->n_phi, e->n_q);
    double last = INFINITY;
    for (int k = 0; k < PROJECTIONS; k++) {
        set_slots(e, t, x, r, p, still);
        const int status = shift_to_constraints(e, dq);
        if (status != OK) {
            return status;
        }
        int close = 1;
        double size = 0.0;
        for (int64_t i = 0; i < e->n_q; i++) {
            if (isnan(dq[i])) {
                return ASTRAY;
            }
            x[i] -= dq[i];
            const double q = fabs(x[i]);
            close = close && fabs(dq[i]) <= fmax(CLOSE * q, DBL_EPSILON * e->typical[i]);
            size = fmax(size, fabs(dq[i]) / fmax(q, e->typical[i]));
        }
        if (close || (size >= last / SLOWER && size <= NEAR)) {
            return OK;
        }
        last = size;
    }
    return ASTRAY;
}

int reference_project(struct equations *e, double t, double x[], const double r[], const double p[])
{
    const int constrained = e->m > 0 && e->n_independent == e->n_u;
    int status = OK;
    if (e->n_phi) {
        status = project_coordinates(e, t, x, r, p, !constrained);
    }
    if (status != OK || !constrained) {
        return status;
    }
    set_slots(e, t, x, r, p, 0);
    status = find_rates(e);
    if (status != OK) {
        return status;
    }
    struct orthogonal *d = &e->constraints_turned;
    double *u = x + e->n_q;
    rate(e, u, e->vector);
    copy(d->a, e->rates, e->m * e->n_u);
    const double *units = e->typical + e->n_q;
    in_units(units, e->n_u, e->m, d->a);
    decompose(d, RANK);
    solve_transposed(d, e->vector, e->b);
    for (int64_t i = 0; i < e->n_u; i++) {
        u[i] -= units[i] * e->b[i];
    }
    return OK;
}
