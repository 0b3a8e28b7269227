#include "sliding.h"

#include "dense.h"
#include "holding_forces.h"

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

/* What a unit of each held sign changes the rates of all of them by, shape (n, n), and x', a row for each. */
static int measure_effects(struct equations *e, struct modes *m, double t, const double x[], const double p[],
    double effects[], double x_dots[])
{
    const int64_t n = m->held_count;
    const int64_t n_x = states_of(e);
    int status = OK;
    for (int64_t j = 0; j < n && status == OK; j++) {
        double *x_dot = x_dots + j * n_x;
        m->r[m->inputs + m->held[j]] = 1.0;
        status = observe_in_modes(e, m, t, x, p, x_dot);
        m->r[m->inputs + m->held[j]] = 0.0;
        for (int64_t i = 0; i < n; i++) {
            effects[i * n + j] = rate_of(m, m->held[i]) - effects[n * n + i];
        }
        for (int64_t i = 0; i < n_x; i++) {
            x_dot[i] -= m->x_dot[i];
        }
    }
    return status;
}

int stop_held_slips(
    struct equations *e, struct modes *m, double t, double x[], const double inputs[], const double p[])
{
    const int64_t n = m->held_count;
    const int64_t n_x = states_of(e);
    double *effects = (double *)calloc((size_t)(n * (n + 2 + n_x) + HOLDING_NUMBERS(n)), sizeof(double));
    const struct held_surfaces held = {n, n, effects, NULL};
    if (!effects) {
        return NO_MEMORY;
    }
    double *rates = effects + n * n;
    double *impulses = rates + n;
    double *x_dots = impulses + n;
    memcpy(m->r, inputs, (size_t)e->n_r * sizeof(double));
    int status = observe_in_modes(e, m, t, x, p, m->x_dot);
    for (int64_t i = 0; i < n; i++) {
        rates[i] = rate_of(m, m->held[i]);
        impulses[i] = surface_of(m, m->held[i]);
    }
    status = status == OK ? measure_effects(e, m, t, x, p, effects, x_dots) : status;
    if (status == OK) {
        status = all_finite(n * (n + 2), effects) ? solve_for_forces(&held, impulses, x_dots + n * n_x) : UNSOLVED;
    }
    for (int64_t j = 0; j < n && status == OK; j++) {
        for (int64_t i = e->n_q; i < n_x - e->n_z; i++) {
            x[i] += x_dots[j * n_x + i] * impulses[j];
        }
    }
    free(effects);
    return status;
}
