#include "sliding.h"

#include "dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEAD_SIGN 1e4 /* times what a sign can hold */

double surface_of(const struct modes *m, int64_t i) { return m->outputs[m->first + i] / m->sizes[i]; }

static double rate_of(const struct modes *m, int64_t i) { return m->outputs[m->rates[i]] / m->sizes[i]; }

static double sign_of(double value) { return value > 0.0 ? 1.0 : value < 0.0 ? -1.0 : 0.0; }

double excess_of(const struct modes *m, int64_t i) { return fabs(driven_value(m, i)) - limit_of(m, i); }

double released_side(const struct modes *m, int64_t i) { return sign_of(driven_value(m, i)); }

int is_dead(const struct modes *m, int64_t i) { return fabs(driven_value(m, i)) > DEAD_SIGN * limit_of(m, i); }

int slips_backwards(const struct modes *m, int64_t i)
{
    return fabs(surface_of(m, i)) <= REST_SLIP_TOLERANCE && m->values[i] * rate_of(m, i) < -REST_SLIP_TOLERANCE;
}

/* Memory of what holds, and of as many numbers again of n; the caller frees ``effects``. NULL if there is none. */
static double *begin_holding(struct holding *h, const struct modes *m, int64_t n_x)
{
    const int64_t n = m->held_count;
    *h = holding_of(m, m->held, n);
    h->effects = (double *)calloc((size_t)(n * (n + 2) + HOLDING_NUMBERS(n) + (n + 1) * (n_x + 2 * n)), sizeof(double));
    h->base = h->effects + n * n;
    h->limits = h->base + n;
    h->numbers = h->limits + n;
    h->x_dots = h->numbers + HOLDING_NUMBERS(n);
    return h->effects ? h->x_dots + (n + 1) * n_x : NULL;
}

/* All effects, and speeds of what holds: over their sizes. */
static int measure_speeds(struct equations *e, struct modes *m, const struct contacts *c, double t, const double x[],
    const double inputs[], const double p[], const struct holding *h, double speeds[])
{
    memcpy(m->r, inputs, (size_t)e->n_r * sizeof(double));
    const int status = observe_in_modes(e, m, t, x, p, m->x_dot);
    for (int64_t i = 0; i < h->n; i++) {
        speeds[i] = i < h->signs ? surface_of(m, h->inputs[i]) : speed_of_line(m, c, h->inputs[i] - m->switches);
    }
    return status == OK ? measure_holding_effects(e, m, t, x, inputs, p, h) : status;
}

/* Adds to the speeds in x what an impulse of the holding value j does. */
static void push(const struct equations *e, const struct holding *h, int64_t j, double impulse, double x[])
{
    const int64_t n_x = states_of(e);
    for (int64_t i = e->n_q; i < n_x - e->n_z; i++) {
        x[i] += h->x_dots[j * n_x + i] * impulse;
    }
}

int stop_held_slips(struct equations *e, struct modes *m, const struct contacts *c, double t, double x[],
    const double inputs[], const double p[])
{
    struct holding h;
    double *impulses = begin_holding(&h, m, states_of(e));
    if (!impulses) {
        return NO_MEMORY;
    }
    const struct held_surfaces surfaces = surfaces_of(&h);
    int status = measure_speeds(e, m, c, t, x, inputs, p, &h, impulses);
    status = status == OK && all_finite(h.n, impulses) ? solve_for_forces(&surfaces, impulses, h.numbers) : UNSOLVED;
    for (int64_t j = 0; j < h.n && status == OK; j++) {
        push(e, &h, j, impulses[j], x);
    }
    free(h.effects);
    return status;
}

int drifts(const struct modes *m)
{
    for (int64_t i = 0; i < m->held_count; i++) {
        if (m->held[i] < m->switches && m->rest_limits[m->held[i]] > 0.0) {
            return 1;
        }
    }
    return 0;
}

int remove_drift_slip(struct equations *e, struct modes *m, const struct contacts *c, double t, double x[],
    const double inputs[], const double p[])
{
    struct holding h;
    double *impulses = begin_holding(&h, m, states_of(e));
    if (!impulses) {
        return NO_MEMORY;
    }
    double *barred = impulses + h.n;
    double *effects = barred + h.n;
    double *reactions = effects + h.signs * h.signs;
    const struct held_surfaces surfaces = surfaces_of(&h);
    const struct held_surfaces alone = {h.signs, h.signs, effects, h.limits};
    int status = measure_speeds(e, m, c, t, x, inputs, p, &h, impulses);
    for (int64_t i = 0; i < h.signs; i++) {
        barred[i] = m->rest_limits[h.inputs[i]];
    }
    status = status == OK ? find_friction_influence(&surfaces, barred, effects, reactions, h.numbers) : status;
    status = status == OK && all_finite(h.n, impulses) ? solve_for_forces(&alone, impulses, h.numbers) : UNSOLVED;
    for (int64_t j = 0; j < h.signs && status == OK; j++) {
        push(e, &h, j, impulses[j], x);
        for (int64_t k = h.signs; k < h.n; k++) {
            push(e, &h, k, -reactions[(k - h.signs) * h.signs + j] * impulses[j], x);
        }
    }
    free(h.effects);
    return status;
}
