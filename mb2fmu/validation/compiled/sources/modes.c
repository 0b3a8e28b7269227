#include "modes.h"

#include "dense.h"
#include "sliding.h"

#include <math.h>
#include <string.h>

#define CLOCK_ROUND_OFF 0x1p-49
#define LEAST_PIVOT 1e-6

int observe_in_modes(
    struct equations *e, struct modes *m, double t, const double x[], const double p[], double x_dot[])
{
    double power = 0.0;
    struct motion motion = {NULL, x_dot, &power, NULL, m->outputs, NULL};
    return reference_motion(e, t, x, m->r, p, &motion);
}

int is_comparable(double *probe, double change, double wanted)
{
    if ((0.1 * wanted <= change && change <= 100.0 * wanted) || (change == 0.0 && *probe >= 1.0)) {
        return 1;
    }
    *probe = change > 0.0 ? *probe * wanted / change : 1.0;
    return 0;
}

/* The rates that are held, over their sizes, with the inputs in m->r. */
static int observe_held_rates(
    struct equations *e, struct modes *m, double t, const double x[], const double p[], double rates[])
{
    const int status = observe_in_modes(e, m, t, x, p, m->x_dot);
    for (int64_t i = 0; i < m->held_count; i++) {
        const double size = m->held[i] < m->switches ? m->sizes[m->held[i]] : 1.0;
        rates[i] = m->outputs[m->rates[m->held[i]]] / size;
    }
    return status;
}

/* Column j of the effects: what a unit of the holding value j changes each held rate by. */
static int measure_effect(struct equations *e, struct modes *m, double t, const double x[], const double p[], int64_t j,
    double wanted)
{
    const int64_t n = m->held_count;
    const double *base = m->effects + n * n;
    double *rates = m->effects + n * n + n;
    double *value = m->r + m->inputs + m->held[j];
    double *probe = m->probes + m->held[j];
    int status = OK;
    for (int trial = 0; trial < PROBE_TRIALS && status == OK; trial++) {
        *value = *probe;
        status = observe_held_rates(e, m, t, x, p, rates);
        if (m->held[j] < m->switches || is_comparable(probe, fabs(rates[j] - base[j]), wanted)) {
            break;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        m->effects[i * n + j] = (rates[i] - base[i]) / *value;
    }
    *value = 0.0;
    return status;
}

int solve_for_forces(int64_t n, double effects[], double right[], double scales[])
{
    if (n == 1) {
        right[0] = effects[0] == 0.0 ? 0.0 : -right[0] / effects[0];
        return OK;
    }
    for (int64_t i = 0; i < n; i++) {
        scales[i] = sqrt(fabs(effects[i * n + i]));
        if (scales[i] == 0.0) {
            return UNSOLVED;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        right[i] /= -scales[i];
        for (int64_t j = 0; j < n; j++) {
            effects[i * n + j] /= scales[i] * scales[j];
        }
    }
    if (solve_square(n, 1, effects, right) != 0) {
        return UNSOLVED;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(effects[i * n + i]) > LEAST_PIVOT)) { /* scaled rows are about 1 */
            return UNSOLVED;
        }
        right[i] /= scales[i];
    }
    return OK;
}

int reference_hold(struct equations *e, struct modes *m, double t, const double x[], const double r[], const double p[])
{
    memcpy(m->r, r, (size_t)e->n_r * sizeof(double));
    const int64_t n = m->held_count;
    if (n == 0) {
        return OK;
    }
    for (int64_t i = 0; i < n; i++) {
        m->r[m->inputs + m->held[i]] = 0.0;
    }
    double *base = m->effects + n * n;
    int status = observe_held_rates(e, m, t, x, p, base);
    int finite = 1;
    double wanted = 1.0;
    for (int64_t i = 0; i < n; i++) {
        finite &= m->held[i] >= m->switches || isfinite(m->outputs[m->first + m->switches + m->held[i]]);
        wanted = fmax(wanted, fabs(base[i]));
    }
    for (int64_t j = 0; j < n && status == OK; j++) {
        status = measure_effect(e, m, t, x, p, j, wanted);
    }
    if (status != OK) {
        return status;
    }
    if (!finite || !all_finite(n * n + n, m->effects) || solve_for_forces(n, m->effects, base, base + n) != OK) {
        return UNSOLVED;
    }
    for (int64_t i = 0; i < n; i++) {
        m->r[m->inputs + m->held[i]] = base[i];
    }
    return OK;
}

/* As compute_distance_to_next_count of equations_between_events.py. */
static double counter_margin(double at, double mode, int clock)
{
    const double ahead = mode + 1.0 - at;
    if (clock && fabs(ahead) <= CLOCK_ROUND_OFF * fabs(at)) {
        return 0.0;
    }
    return ahead < at - mode ? ahead : at - mode;
}

int reference_margins(struct equations *e, struct modes *m, double t, const double x[], const double r[],
    const double p[], double margins[])
{
    int status = reference_hold(e, m, t, x, r, p);
    status = status == OK ? observe_in_modes(e, m, t, x, p, m->x_dot) : status;
    for (int64_t i = 0; i < m->switches && status == OK; i++) {
        const double at = m->outputs[m->first + i] / m->sizes[i];
        const double mode = m->values[i];
        if (m->kinds[i] == COUNTER || m->kinds[i] == CLOCK) {
            margins[i] = counter_margin(at, mode, m->kinds[i] == CLOCK);
        } else if (m->kinds[i] != SIGN) {
            margins[i] = mode > 0.5 ? (at == 0.0 && m->kinds[i] == TRUTH_AT_EVENTS ? -1.0 : at) : -at;
        } else if (mode != 0.0) {
            margins[i] = mode * at;
        } else {
            const double limit = fmax(m->outputs[m->first + m->switches + i], 1.0); /* no less than when it slips */
            const double rate = fabs(m->outputs[m->first + 2 * m->switches + i] / m->sizes[i]);
            const double value = fabs(m->r[m->inputs + i]);
            margins[i] = value == 0.0 && rate > REST_SLIP_TOLERANCE ? limit - fabs(limit + rate) : limit - value;
        }
        margins[i] += m->late;
    }
    return status;
}
