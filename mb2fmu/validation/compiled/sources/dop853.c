#include "dop853.h"
#include "dop853_coefficients.h"
#include "event_steps.h"
#include "settling.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* E. Hairer, S. P. Noersett and G. Wanner, Solving Ordinary Differential Equations I, sections II.4, II.5 and II.10;
   step sizes are chosen as SciPy's DOP853 chooses them, so that both come to the same points. */
#define SAFETY 0.9
#define LEAST_FACTOR 0.2
#define LARGEST_FACTOR 10.0
#define NOISY 1e-10 /* tolerances from here on are not far from round-off */
#define EXPONENT (-1.0 / 8.0) /* of the error estimator, which is of order 7 */

int solver_slope(struct solver *s, double t, const double y[], double f[])
{
    struct motion motion = {NULL, f, f + s->n - 1, NULL, NULL, NULL};
    s->j->spent++;
    if (s->j->modes) {
        const int held = reference_hold(s->e, s->j->modes, t, y, s->r, s->j->parameters);
        return held == OK ? reference_motion(s->e, t, y, s->j->modes->r, s->j->parameters, &motion) : held;
    }
    return reference_motion(s->e, t, y, s->r, s->j->parameters, &motion);
}

static double norm(int64_t n, const double a[], const double scale[])
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += (a[i] / scale[i]) * (a[i] / scale[i]);
    }
    return sqrt(sum / (double)n);
}

/* What round-off of the slopes makes of the estimated error of a step: their largest change so far if every y_i changes
   by some units of round-off, times the magnitudes of all weights of the estimate.

   A state that is nothing but round-off (a rate of a parallelogram's coupler) has no scale of its own that steps could
   be steered by; below h times this no step makes its error smaller. Looked at where a step begins between two points,
   and where one was refused, each time with other units; the first row of K are the slopes at y. */
static int measure_noise(struct solver *s, double t)
{
    if (s->j->tolerance > NOISY) {
        return OK;
    }
    s->looks++;
    for (int64_t i = 0; i < s->n; i++) {
        const double units = (double)((s->looks * (i + 1) + i) % 5 - 2);
        s->trial[i] = s->y[i] * (1.0 + units * DBL_EPSILON);
    }
    const int status = solver_slope(s, t, s->trial, s->work);
    double weights = 0.0;
    for (int k = 0; k <= STAGES; k++) {
        weights += fabs(DOP853.E5[k]);
    }
    for (int64_t i = 0; i < s->n; i++) {
        const double change = weights * fabs(s->work[i] - s->K[i]);
        if (isfinite(change) && change > s->noise[i]) {
            s->noise[i] = change;
        }
    }
    return status;
}

/* What is allowed of the error of a step of size h that goes from a to b. */
static void set_scale(struct solver *s, const double a[], const double b[], double h)
{
    for (int64_t i = 0; i < s->n; i++) {
        const double size = isnan(b[i]) || fabs(b[i]) > fabs(a[i]) ? fabs(b[i]) : fabs(a[i]);
        s->scale[i] = s->j->tolerance * s->j->scales[i] + size * s->j->relative + h * s->noise[i];
    }
}

/* Hairer, Noersett and Wanner, section II.4. */
static int first_step(struct solver *s, double t, double end, double longest, double *step)
{
    const double interval = end - t;
    double *f1 = s->K + s->n;
    set_scale(s, s->y, s->y, 0.0);
    const double d0 = norm(s->n, s->y, s->scale);
    const double d1 = norm(s->n, s->K, s->scale);
    double h0 = d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1;
    h0 = h0 < interval ? h0 : interval;
    for (int64_t i = 0; i < s->n; i++) {
        s->trial[i] = s->y[i] + h0 * s->K[i];
    }
    const int status = solver_slope(s, t + h0, s->trial, f1);
    for (int64_t i = 0; i < s->n; i++) {
        s->work[i] = f1[i] - s->K[i];
    }
    const double d2 = norm(s->n, s->work, s->scale) / h0;
    if (status == SINGULAR) { /* a trial alone: the step itself decides */
        *step = longest < h0 ? longest : h0;
        return OK;
    }
    const double small = 1e-6 > h0 * 1e-3 ? 1e-6 : h0 * 1e-3;
    const double h1 = d1 <= 1e-15 && d2 <= 1e-15 ? small : pow(0.01 / (d1 > d2 ? d1 : d2), 1.0 / 8.0);
    double h = 100.0 * h0;
    h = h1 < h ? h1 : h;
    h = interval < h ? interval : h;
    *step = longest < h ? longest : h;
    return status;
}

/* One trial step of size h into s->trial, its slope into the last row of K. */
static int try_step(struct solver *s, double t, double h)
{
    const struct tableau *c = &DOP853;
    for (int k = 1; k <= STAGES; k++) {
        const double *weights = k < STAGES ? c->A[k] : c->B;
        for (int64_t i = 0; i < s->n; i++) {
            double sum = 0.0;
            for (int l = 0; l < k; l++) {
                sum += weights[l] * s->K[l * s->n + i];
            }
            s->trial[i] = s->y[i] + h * sum;
        }
        const int status = solver_slope(s, k < STAGES ? t + c->C[k] * h : t + h, s->trial, s->K + k * s->n);
        if (status != OK) {
            return status;
        }
    }
    return OK;
}

/* The estimated error over what is allowed: both estimates together. */
static double error_of(const struct solver *s, double h)
{
    double fifth = 0.0;
    double third = 0.0;
    for (int64_t i = 0; i < s->n; i++) {
        double e5 = 0.0;
        double e3 = 0.0;
        for (int k = 0; k <= STAGES; k++) {
            e5 += DOP853.E5[k] * s->K[k * s->n + i];
            e3 += DOP853.E3[k] * s->K[k * s->n + i];
        }
        fifth += (e5 / s->scale[i]) * (e5 / s->scale[i]);
        third += (e3 / s->scale[i]) * (e3 / s->scale[i]);
    }
    if (fifth == 0.0 && third == 0.0) {
        return 0.0;
    }
    return fabs(h) * fifth / sqrt((fifth + 0.01 * third) * (double)s->n);
}

/* Factors of the step size; NaN makes it as small as possible. */
static double larger_factor(double error)
{
    const double factor = SAFETY * pow(error, EXPONENT);
    return error == 0.0 || factor > LARGEST_FACTOR ? LARGEST_FACTOR : factor;
}

static double smaller_factor(double error)
{
    const double factor = SAFETY * pow(error, EXPONENT);
    return factor > LEAST_FACTOR ? factor : LEAST_FACTOR;
}

/* One step that is good enough from t; changes t, y, the first row of K, and the next step's size. */
int solver_advance(struct solver *s, double *t, double end, double longest, double *size)
{
    const double least = 10.0 * fabs(nextafter(*t, INFINITY) - *t);
    double h = *size > longest ? longest : *size < least ? least : *size;
    int refused = 0;
    int status = OK;
    for (;;) {
        if (!(h >= least)) {
            s->j->stuck = *t;
            return status == SINGULAR ? SINGULAR : VANISHING;
        }
        const double next = *t + h > end ? end : *t + h;
        h = next - *t;
        status = try_step(s, *t, h);
        if (status != OK && status != SINGULAR) {
            s->j->stuck = *t;
            return status;
        }
        double error = INFINITY; /* a stage of a long step may lie where no motion comes: a shorter one is tried */
        if (status == OK) {
            set_scale(s, s->y, s->trial, h);
            error = error_of(s, h);
        }
        if (error < 1.0) {
            double factor = larger_factor(error);
            factor = refused && factor > 1.0 ? 1.0 : factor;
            *size = h * factor;
            s->slope_time = *t + h;
            *t = next;
            memcpy(s->y, s->trial, (size_t)s->n * sizeof(double));
            memcpy(s->K, s->K + STAGES * s->n, (size_t)s->n * sizeof(double));
            return OK;
        }
        h *= smaller_factor(error);
        refused = 1;
        const int measured = measure_noise(s, *t);
        if (measured != OK) {
            return measured;
        }
        if (s->j->spent > s->j->budget) {
            s->j->stuck = *t;
            return SPENT;
        }
    }
}

/* From one communication point to the next; sloped: the first row of K is the slope there. */
static int travel(struct solver *s, double t, double end, int sloped)
{
    struct journey *j = s->j;
    const double longest = (end - t) / (double)j->parts;
    int status = sloped ? OK : solver_slope(s, t, s->y, s->K);
    status = status == OK ? measure_noise(s, t) : status;
    if (status == OK && isfinite(j->step)) {
        j->step = j->step < longest ? j->step : longest;
    } else if (status == OK) {
        status = first_step(s, t, end, longest, &j->step);
    }
    while (status == OK && t < end) {
        status = j->modes ? advance_in_modes(s, &t, end, longest) : solver_advance(s, &t, end, longest, &j->step);
        if (status == OK && j->projected) {
            status = reference_project(s->e, t, s->y, s->r, j->parameters);
            status = status == OK ? solver_slope(s, t, s->y, s->K) : status;
            s->slope_time = t;
        }
        if (status == OK && j->spent > j->budget) {
            status = SPENT;
        }
        j->stuck = t;
    }
    return status;
}

/* Memory for n numbers of y; NULL if there is none. The caller frees it. */
static double *begin_solver(struct solver *s, int64_t n)
{
    double *memory = (double *)calloc((size_t)((DENSE_STAGES + 5 + 2 + 3 + DENSE_ROWS + 2) * n), sizeof(double));
    if (memory) {
        s->K = memory;
        s->y = memory + DENSE_STAGES * n;
        s->trial = s->y + n;
        s->scale = s->trial + n;
        s->work = s->scale + n;
        s->noise = s->work + n;
        s->begin = s->noise + n;
        s->start = s->begin + (2 + 3 + DENSE_ROWS) * n;
    }
    return memory;
}

int reference_integrate_in_modes(struct equations *e, struct journey *j, double y[])
{
    const int64_t n = states_of(e) + 1;
    struct solver s = {.e = e, .j = j, .r = j->inputs, .n = n};
    double *memory = begin_solver(&s, n);
    if (!memory) {
        return NO_MEMORY;
    }
    memcpy(s.y, y, (size_t)n * sizeof(double));
    j->stuck = j->time[0];
    int status = travel(&s, j->time[0], j->time[1], 0);
    struct settling *g = j->settling;
    while (status == EVENT && g && settle_event(&s, g, j->stuck) == OK) {
        if (j->stuck >= j->time[1] || (g->capacity && g->count == g->capacity)) {
            status = OK;
        } else {
            const double left = j->time[1] - j->stuck;
            j->parts = (int64_t)fmax(1.0, ceil(left / g->longest * (1.0 - 1e-12)));
            j->step = isfinite(j->step) ? fmin(j->step, left) : j->step;
            j->modes->behind = 1;
            status = travel(&s, j->stuck, j->time[1], 0);
        }
    }
    memcpy(y, s.y, (size_t)n * sizeof(double));
    free(memory);
    return status;
}

int reference_integrate(struct equations *e, struct journey *j, double y[])
{
    const int64_t n = states_of(e) + 1;
    struct solver s = {.e = e, .j = j, .n = n};
    double *memory = begin_solver(&s, n);
    if (!memory) {
        return NO_MEMORY;
    }
    int status = OK;
    memcpy(s.y, y, (size_t)n * sizeof(double));
    for (int64_t k = 0; k + 1 < j->points && status == OK; k++) {
        const size_t row = (size_t)e->n_r * sizeof(double);
        const int held = k > 0 && (row == 0 || memcmp(s.r, s.r + e->n_r, row) == 0);
        s.r = j->inputs + k * e->n_r;
        j->stuck = j->time[k];
        status = travel(&s, j->time[k], j->time[k + 1], held && !j->modes && s.slope_time == j->time[k]);
        memcpy(y + (k + 1) * n, s.y, (size_t)n * sizeof(double));
    }
    free(memory);
    return status;
}

int reference_integrate_steps(struct equations *e, const struct journey *j, double y[], int64_t *done)
{
    const int64_t n = states_of(e) + 1;
    int status = OK;
    for (*done = 0; *done + 1 < j->points; ++*done) {
        struct journey step = *j;
        step.time += *done;
        step.points = 2;
        step.inputs += *done * e->n_r;
        status = reference_integrate(e, &step, y + *done * 2 * n);
        if (status != OK) {
            break;
        }
    }
    return status;
}
