#include "modes.h"

#include "dense.h"
#include "sliding.h"

#include <math.h>
#include <string.h>

#define CLOCK_ROUND_OFF 0x1p-49
#define PUSHED_SLIP_LIMIT 1e-6 /* over its size, above which friction slides though others hold its motion */

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

/* The rates of what may hold, over their sizes, with the inputs in m->r. */
static int observe_held_rates(struct equations *e, struct modes *m, double t, const double x[], const double p[],
    const struct holding *h, double rates[])
{
    const int status = observe_in_modes(e, m, t, x, p, m->x_dot);
    for (int64_t i = 0; i < h->n; i++) {
        const double size = h->inputs[i] < m->switches ? m->sizes[h->inputs[i]] : 1.0;
        rates[i] = m->outputs[m->rates[h->inputs[i]]] / size;
    }
    return status;
}

/* Column j of the effects: what a unit of the holding value j changes each held rate by. */
static int measure_effect(struct equations *e, struct modes *m, double t, const double x[], const double p[],
    const struct holding *h, int64_t j, double wanted)
{
    double *value = m->r + m->inputs + h->inputs[j];
    double *probe = m->probes + h->inputs[j];
    int status = OK;
    for (int trial = 0; trial < PROBE_TRIALS && status == OK; trial++) {
        *value = *probe;
        status = observe_held_rates(e, m, t, x, p, h, h->numbers);
        if (j < h->signs || is_comparable(probe, fabs(h->numbers[j] - h->base[j]), wanted)) {
            break;
        }
    }
    for (int64_t i = 0; i < h->n; i++) {
        h->effects[i * h->n + j] = (h->numbers[i] - h->base[i]) / *value;
    }
    for (int64_t i = 0; h->x_dots && i < states_of(e); i++) {
        h->x_dots[j * states_of(e) + i] = (m->x_dot[i] - h->x_dots[h->n * states_of(e) + i]) / *value;
    }
    *value = 0.0;
    return status;
}

int measure_holding_effects(struct equations *e, struct modes *m, double t, const double x[], const double r[],
    const double p[], const struct holding *h)
{
    memcpy(m->r, r, (size_t)e->n_r * sizeof(double));
    for (int64_t i = 0; i < h->n; i++) {
        m->r[m->inputs + h->inputs[i]] = 0.0;
    }
    int status = observe_held_rates(e, m, t, x, p, h, h->base);
    double wanted = 1.0;
    int finite = 1;
    if (h->x_dots) {
        memcpy(h->x_dots + h->n * states_of(e), m->x_dot, (size_t)states_of(e) * sizeof(double));
    }
    for (int64_t i = 0; i < h->n; i++) {
        if (i < h->signs) {
            finite &= isfinite(m->outputs[m->first + m->switches + h->inputs[i]]);
            h->limits[i] = limit_of(m, h->inputs[i]);
        } else {
            wanted = fmax(wanted, fabs(h->base[i]));
        }
    }
    for (int64_t j = 0; j < h->n && status == OK; j++) {
        status = measure_effect(e, m, t, x, p, h, j, wanted);
    }
    if (status != OK) {
        return status;
    }
    return finite && all_finite(h->n * (h->n + 1), h->effects) ? OK : UNSOLVED;
}

struct holding holding_of(const struct modes *m, const int64_t inputs[], int64_t n)
{
    struct holding h = {.n = n, .inputs = inputs, .effects = m->effects};
    h.base = h.effects + n * n;
    h.limits = h.base + n;
    h.numbers = h.limits + n;
    for (int64_t i = 0; i < n; i++) {
        h.signs += inputs[i] < m->switches;
    }
    return h;
}

struct held_surfaces surfaces_of(const struct holding *h)
{
    return (struct held_surfaces){h->n, h->signs, h->effects, h->limits};
}

int reference_hold(struct equations *e, struct modes *m, double t, const double x[], const double r[], const double p[])
{
    const struct holding h = holding_of(m, m->held, m->held_count);
    const struct held_surfaces surfaces = surfaces_of(&h);
    if (h.n == 0) {
        memcpy(m->r, r, (size_t)e->n_r * sizeof(double));
        return OK;
    }
    const int status = measure_holding_effects(e, m, t, x, r, p, &h);
    if (status != OK) {
        return status;
    }
    if (solve_for_forces(&surfaces, h.base, h.numbers) != OK) {
        return UNSOLVED;
    }
    for (int64_t i = 0; i < h.n; i++) {
        m->r[m->inputs + m->held[i]] = h.base[i];
    }
    return OK;
}

int find_rest_limits(
    struct equations *e, struct modes *m, double t, const double x[], const double r[], const double p[])
{
    int64_t n = 0;
    memset(m->rest_limits, 0, (size_t)m->switches * sizeof(double));
    for (int64_t i = 0; i < m->switches; i++) {
        if (m->kinds[i] == SIGN) {
            m->may_hold[n++] = i;
        }
    }
    const int64_t signs = n;
    for (int64_t i = 0; i < m->held_count && signs > 0; i++) {
        if (m->held[i] >= m->switches) {
            m->may_hold[n++] = m->held[i];
        }
    }
    if (n == signs) {
        return OK;
    }
    const struct holding h = holding_of(m, m->may_hold, n);
    const struct held_surfaces surfaces = surfaces_of(&h);
    int status = measure_holding_effects(e, m, t, x, r, p, &h);
    status = status == OK ? find_ineffective_frictions(&surfaces, h.base, h.numbers) : status;
    for (int64_t i = 0; i < signs && status == OK; i++) {
        m->rest_limits[m->may_hold[i]] = h.base[i] * PUSHED_SLIP_LIMIT;
    }
    return status;
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

double limit_of(const struct modes *m, int64_t i) { return fmax(m->outputs[m->first + m->switches + i], 1.0); }

double driven_value(const struct modes *m, int64_t i)
{
    const double value = m->r[m->inputs + i];
    const double rate = m->outputs[m->rates[i]] / m->sizes[i];
    if (value == 0.0 && m->rest_limits[i] > 0.0) {
        return limit_of(m, i) * (m->outputs[m->first + i] / m->sizes[i]) / m->rest_limits[i];
    }
    return value == 0.0 && fabs(rate) > REST_SLIP_TOLERANCE ? copysign(limit_of(m, i) + fabs(rate), rate) : value;
}

int reference_margins(struct equations *e, struct modes *m, double t, const double x[], const double r[],
    const double p[], double margins[])
{
    int status = find_rest_limits(e, m, t, x, r, p);
    status = status == OK ? reference_hold(e, m, t, x, r, p) : status;
    status = status == OK ? observe_in_modes(e, m, t, x, p, m->x_dot) : status;
    for (int64_t i = 0; i < m->switches && status == OK; i++) {
        const double at = m->outputs[m->first + i] / m->sizes[i];
        const double mode = m->values[i];
        if (m->kinds[i] == COUNTER || m->kinds[i] == CLOCK) {
            margins[i] = counter_margin(at, mode, m->kinds[i] == CLOCK);
        } else if (m->kinds[i] != SIGN) {
            margins[i] = mode > 0.5 ? (at == 0.0 && m->kinds[i] == TRUTH_AT_EVENTS ? -1.0 : at) : -at;
        } else {
            margins[i] = mode != 0.0 ? mode * at - m->rest_limits[i] : limit_of(m, i) - fabs(driven_value(m, i));
        }
        margins[i] += m->late;
    }
    return status;
}
