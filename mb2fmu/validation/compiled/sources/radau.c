#include "radau.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, sections IV.5 and IV.8; step for step what
   radau_collocation.py does, where each of these numbers is explained. */
#define NEWTON_ITERATIONS 15
#define SLOW_CONVERGENCE 0.5
#define STANDSTILL 100.0
#define CANCELLATION 16.0
#define NOISE 4.0

struct stiff {
    struct equations *e;
    struct journey *j;
    const struct collocation *c;
    const double *r;
    int64_t n;         /* numbers of y */
    int64_t size;      /* of all stages: stages * n */
    double *jacobian;  /* shape (n, n) */
    double *y_dot;     /* where the Jacobian was formed, shape (n,) */
    double *shifted;   /* shape (n + 1, n), and the slopes there */
    double *shifted_slopes;
    double *times;     /* shape (max(stages, n + 1),) */
    double *complex;   /* shape (n, 2, 2 n): of each row real parts, then imaginary ones */
    double *columns;   /* of a complex inverse, real parts, then imaginary ones; shape (2, n, n) */
    double *inverse;   /* of Newton's matrix, column after column: shape (size, size) */
    double *floor;     /* what the stages can be known to, shape (size,) */
    double *stages;    /* y at the stages, their slopes, residuals, units of round-off; shape (size,) each */
    double *slopes;
    double *residual;
    double *unit;
    double *whole;     /* of a whole step and of its halves: y at the stages less y at the beginning, shape (size,) */
    double *half;      /* both halves, shape (2 size,) */
    double *guess;     /* shape (size,) */
    double *middle;    /* shape (n,) */
    double *known;     /* what the end can be known to, shape (n,) */
    double *end;       /* shape (n,) */
};

static int find_slopes(struct stiff *s, int64_t count, const double y[], double slopes[])
{
    int64_t done = 0;
    const int status = reference_slopes(s->e, count, s->times, y, s->r, s->j->parameters, slopes, &done);
    if (status != OK) {
        s->j->stuck = s->times[done];
    }
    return status;
}

/* By forward differences. */
static int find_jacobian(struct stiff *s, double t, const double y[])
{
    const int64_t n = s->n;
    for (int64_t k = 0; k <= n; k++) {
        memcpy(s->shifted + k * n, y, (size_t)n * sizeof(double));
        s->times[k] = t;
    }
    for (int64_t k = 0; k < n; k++) {
        s->shifted[(k + 1) * n + k] += 1e-7 * fmax(s->j->scales[k], fabs(y[k]));
    }
    const int status = find_slopes(s, n + 1, s->shifted, s->shifted_slopes);
    if (status != OK) {
        return status;
    }
    memcpy(s->y_dot, s->shifted_slopes, (size_t)n * sizeof(double));
    for (int64_t k = 0; k < n; k++) {
        const double shift = s->shifted[(k + 1) * n + k] - y[k];
        for (int64_t i = 0; i < n; i++) {
            s->jacobian[i * n + k] = (s->shifted_slopes[(k + 1) * n + i] - s->y_dot[i]) / shift;
        }
    }
    return OK;
}

/* Right half of [M I] := M^-1 by Gauss and Jordan, complex. */
static void invert_left_half(int64_t n, double m[])
{
    const int64_t half = 2 * n, width = 4 * n;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++) {
            if (hypot(m[i * width + k], m[i * width + half + k])
                > hypot(m[best * width + k], m[best * width + half + k])) {
                best = i;
            }
        }
        for (int64_t l = 0; best != k && l < width; l++) {
            const double kept = m[k * width + l];
            m[k * width + l] = m[best * width + l];
            m[best * width + l] = kept;
        }
        double *pivot_row = m + k * width;
        const double a = pivot_row[k], b = pivot_row[half + k], square = a * a + b * b;
        for (int64_t l = 0; l < half; l++) {
            const double re = pivot_row[l], im = pivot_row[half + l];
            pivot_row[l] = (re * a + im * b) / square;
            pivot_row[half + l] = (im * a - re * b) / square;
        }
        for (int64_t i = 0; i < n; i++) {
            double *row = m + i * width;
            const double re = row[k], im = row[half + k];
            for (int64_t l = k; i != k && l < half; l++) {
                row[l] -= re * pivot_row[l] - im * pivot_row[half + l];
                row[half + l] -= re * pivot_row[half + l] + im * pivot_row[l];
            }
        }
    }
}

/* Adds Re P_k x (I - h lambda_k J)^-1 to the columns of a stage. */
static void add_projected_columns(struct stiff *s, int64_t k, int64_t stage)
{
    const struct collocation *c = s->c;
    const int64_t n = s->n;
    for (int64_t l = 0; l < n; l++) {
        const double *re = s->columns + l * n, *im = re + n * n;
        for (int64_t row = 0; row < c->stages; row++) {
            const double *p = c->projections + 2 * ((row * c->stages + stage) * c->count + k);
            const double p_re = p[0], p_im = p[1];
            double *target = s->inverse + (stage * n + l) * s->size + row * n;
            for (int64_t i = 0; i < n; i++) {
                target[i] += p_re * re[i] - p_im * im[i];
            }
        }
    }
}

/* What solutions by the inverse can be known to, from y' and |J| |y|. */
static void find_floor(struct stiff *s, const double y[], double h)
{
    const struct collocation *c = s->c;
    const int64_t n = s->n;
    for (int64_t i = 0; i < s->size; i++) {
        double weight = 0.0, noise = fabs(s->y_dot[i % n]);
        for (int64_t stage = 0; stage < c->stages; stage++) {
            weight += fabs(c->coefficients[i / n * c->stages + stage]);
        }
        for (int64_t l = 0; l < n; l++) {
            noise += fabs(s->jacobian[i % n * n + l]) * fabs(y[l]);
        }
        s->residual[i] = h * weight * DBL_EPSILON * noise;
    }
    memset(s->floor, 0, (size_t)s->size * sizeof(double));
    for (int64_t l = 0; l < s->size; l++) {
        const double *column = s->inverse + l * s->size;
        for (int64_t i = 0; i < s->size; i++) {
            s->floor[i] += fabs(column[i]) * s->residual[l];
        }
    }
}

/* to := (matrix x I) from; matrix has shape (rows, stages), ``from`` a row for each stage. */
static void combine_stages(const struct stiff *s, int64_t rows, const double matrix[], const double from[], double to[])
{
    const int64_t n = s->n, stages = s->c->stages;
    memset(to, 0, (size_t)(rows * n) * sizeof(double));
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t stage = 0; stage < stages; stage++) {
            const double factor = matrix[row * stages + stage];
            for (int64_t i = 0; i < n; i++) {
                to[row * n + i] += factor * from[stage * n + i];
            }
        }
    }
}

/* (I - h A x J)^-1 = Re sum P_k x (I - h lambda_k J)^-1, and the floor of its solutions. */
static void form_newton_matrix(struct stiff *s, const double y[], double h)
{
    const struct collocation *c = s->c;
    const int64_t n = s->n, width = 4 * n;
    memset(s->inverse, 0, (size_t)(s->size * s->size) * sizeof(double));
    for (int64_t k = 0; k < c->count; k++) {
        memset(s->complex, 0, (size_t)(n * width) * sizeof(double));
        for (int64_t i = 0; i < n; i++) {
            double *row = s->complex + i * width;
            for (int64_t l = 0; l < n; l++) {
                row[l] = (double)(i == l) - h * c->eigenvalues[2 * k] * s->jacobian[i * n + l];
                row[2 * n + l] = -h * c->eigenvalues[2 * k + 1] * s->jacobian[i * n + l];
            }
            row[n + i] = 1.0;
        }
        invert_left_half(n, s->complex);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t l = 0; l < n; l++) {
                s->columns[l * n + i] = s->complex[i * width + n + l];
                s->columns[(n + l) * n + i] = s->complex[i * width + 3 * n + l];
            }
        }
        for (int64_t stage = 0; stage < c->stages; stage++) {
            add_projected_columns(s, k, stage);
        }
    }
    find_floor(s, y, h);
}

/* One correction of the stages z; returns its largest part over the units of round-off, NaN if one is not finite. */
static double correct_stages(struct stiff *s, double h, double z[])
{
    double largest = 0.0;
    combine_stages(s, s->c->stages, s->c->coefficients, s->slopes, s->residual);
    memset(s->stages, 0, (size_t)s->size * sizeof(double));
    for (int64_t l = 0; l < s->size; l++) {
        const double *column = s->inverse + l * s->size, residual = h * s->residual[l] - z[l];
        for (int64_t i = 0; i < s->size; i++) {
            s->stages[i] += column[i] * residual;
        }
    }
    for (int64_t i = 0; i < s->size; i++) {
        const double part = fabs(s->stages[i]) / s->unit[i];
        if (!isfinite(part)) {
            return NAN;
        }
        largest = fmax(largest, part);
    }
    return largest;
}

/* Newton's iteration for one step from z, in place; ``*converged`` says whether it came to an end. */
static int take_collocation_step(struct stiff *s, double t, const double y[], double h, double z[], int *converged)
{
    double last = INFINITY;
    *converged = 0;
    for (int64_t i = 0; i < s->size; i++) {
        const int64_t l = i % s->n;
        s->unit[i] = DBL_EPSILON * (s->j->scales[l] + fabs(y[l])) + s->floor[i] / CANCELLATION;
    }
    for (int k = 0; k < NEWTON_ITERATIONS; k++) {
        for (int64_t stage = 0; stage < s->c->stages; stage++) {
            s->times[stage] = t + h * s->c->nodes[stage];
        }
        for (int64_t i = 0; i < s->size; i++) {
            s->stages[i] = y[i % s->n] + z[i];
        }
        const int status = find_slopes(s, s->c->stages, s->stages, s->slopes);
        if (status != OK) {
            return status;
        }
        const double size = correct_stages(s, h, z), rate = size / last;
        if (!isfinite(size) || (rate > SLOW_CONVERGENCE && size > STANDSTILL)) {
            return OK;
        }
        for (int64_t i = 0; i < s->size; i++) {
            z[i] += s->stages[i];
        }
        if (size <= 1.0 || (isfinite(last) && size * rate <= 1.0) || rate > SLOW_CONVERGENCE) {
            *converged = 1;
            return OK;
        }
        last = size;
    }
    return OK;
}

static void add_floor(struct stiff *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        s->known[i] += s->floor[s->size - s->n + i];
    }
}

/* The second half of a step, with a new Jacobian where the slopes have turned. */
static int take_second_half(struct stiff *s, double t, double h, int *converged)
{
    memcpy(s->guess, s->half + s->size, (size_t)s->size * sizeof(double));
    int status = take_collocation_step(s, t, s->middle, h, s->half + s->size, converged);
    if (status == OK && !*converged) {
        status = find_jacobian(s, t, s->middle);
        if (status == OK) {
            form_newton_matrix(s, s->middle, h);
            memcpy(s->half + s->size, s->guess, (size_t)s->size * sizeof(double));
            status = take_collocation_step(s, t, s->middle, h, s->half + s->size, converged);
        }
    }
    return status;
}

/* ``end`` := the state after two steps of h / 2; ``*error``: its scaled difference from one of h, and ``*beyond_noise``:
   that part of it which is not round-off. */
static int step_twice(struct stiff *s, double t, const double y[], double h, double *error, double *beyond_noise)
{
    const int64_t n = s->n, size = s->size, last = size - n;
    int converged = 0;
    *error = INFINITY;
    memset(s->known, 0, (size_t)n * sizeof(double));
    memset(s->whole, 0, (size_t)size * sizeof(double));
    int status = find_jacobian(s, t, y);
    if (status == OK) {
        form_newton_matrix(s, y, h);
        add_floor(s);
        status = take_collocation_step(s, t, y, h, s->whole, &converged);
    }
    if (status != OK || !converged) {
        return status;
    }
    combine_stages(s, 2 * s->c->stages, s->c->halves, s->whole, s->half);
    form_newton_matrix(s, y, h / 2.0);
    add_floor(s);
    status = take_collocation_step(s, t, y, h / 2.0, s->half, &converged);
    if (status != OK || !converged) {
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        s->middle[i] = y[i] + s->half[last + i];
    }
    for (int64_t i = 0; i < size; i++) {
        s->half[size + i] -= s->half[last + i % n];
    }
    status = take_second_half(s, t + h / 2.0, h / 2.0, &converged);
    if (status != OK || !converged) {
        return status;
    }
    add_floor(s);
    *error = 0.0;
    for (int64_t i = 0; i < n; i++) {
        s->end[i] = s->middle[i] + s->half[size + last + i];
        const double allowed = fmax(s->j->tolerance, 1e-13) * (s->j->scales[i] + fabs(s->end[i]));
        const double difference = fabs(s->end[i] - (y[i] + s->whole[last + i]));
        const double part = difference / (allowed + s->known[i]);
        *error = isfinite(part) ? fmax(*error, part) : INFINITY;
        *beyond_noise = fmax(*beyond_noise, (difference - NOISE * s->known[i]) / allowed);
    }
    return OK;
}

/* From one communication point to the next; y changes. */
static int travel(struct stiff *s, double t, double end, double y[])
{
    struct journey *j = s->j;
    while (t < end) {
        const int is_last = end - t <= 1.0001 * j->step; /* a step that would leave a crumb takes it along */
        const double h = is_last ? end - t : j->step;
        double error = 0.0, beyond_noise = 0.0;
        const int status = step_twice(s, t, y, h, &error, &beyond_noise);
        if (status != OK && status != SINGULAR) { /* singular, at a trial: a shorter step */
            return status;
        }
        if (++j->spent > j->budget || h < 1e-14 * end) {
            j->stuck = t;
            return j->spent > j->budget ? SPENT : status == SINGULAR ? SINGULAR : VANISHING;
        }
        const double steered_by = error <= 1.0 ? beyond_noise : error;
        const double factor = steered_by > 0.0 ? 0.8 * pow(steered_by, -1.0 / (double)(2 * s->c->stages)) : 4.0;
        if (error <= 1.0) {
            t = is_last ? end : t + h;
            memcpy(y, s->end, (size_t)s->n * sizeof(double));
            const double next = h * fmin(4.0, factor);
            j->step = is_last ? fmax(j->step, next) : next;
        } else {
            j->step = h * fmax(0.1, fmin(0.9, factor));
        }
    }
    return OK;
}

/* The parts of one block of memory; NULL if there is none. The caller frees it. */
static double *begin_stiff(struct stiff *s)
{
    const int64_t n = s->n, size = s->size, longest = s->c->stages > n + 1 ? s->c->stages : n + 1;
    double **parts[] = {&s->jacobian, &s->y_dot, &s->shifted, &s->shifted_slopes, &s->times, &s->complex, &s->columns,
        &s->inverse, &s->floor, &s->stages, &s->slopes, &s->residual, &s->unit, &s->whole, &s->half, &s->guess,
        &s->middle, &s->known, &s->end};
    const int64_t sizes[] = {n * n, n, (n + 1) * n, (n + 1) * n, longest, 4 * n * n, 2 * n * n, size * size, size, size,
        size, size, size, size, 2 * size, size, n, n, n};
    int64_t total = 0;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        total += sizes[k];
    }
    double *memory = (double *)calloc((size_t)total, sizeof(double)), *next = memory;
    for (size_t k = 0; memory && k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        *parts[k] = next;
        next += sizes[k];
    }
    return memory;
}

int reference_integrate_stiff(struct equations *e, struct journey *j, const struct collocation *c, double y[])
{
    const int64_t n = states_of(e) + 1;
    struct stiff s = {.e = e, .j = j, .c = c, .n = n, .size = n * c->stages};
    double *memory = begin_stiff(&s);
    if (!memory) {
        return NO_MEMORY;
    }
    int status = OK;
    j->step = isfinite(j->step) ? j->step : j->time[1] - j->time[0];
    for (int64_t k = 0; k + 1 < j->points && status == OK; k++) {
        s.r = j->inputs + k * e->n_r;
        memcpy(y + (k + 1) * n, y + k * n, (size_t)n * sizeof(double));
        status = travel(&s, j->time[k], j->time[k + 1], y + (k + 1) * n);
    }
    free(memory);
    return status;
}
