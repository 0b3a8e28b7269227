#include "modes.h"

#include <math.h>
#include <string.h>

#define REST_SLIP_TOLERANCE 1e-9
#define CLOCK_ROUND_OFF 0x1p-49
#define PROBE_TRIALS 3

static int observe(struct equations *e, struct modes *m, double t, const double x[], const double p[])
{
    double power = 0.0;
    struct motion motion = {NULL, m->x_dot, &power, NULL, m->outputs, NULL};
    return reference_motion(e, t, x, m->r, p, &motion);
}

/* Whether a contact's force changes a rate by about as much as there is: so little is lost to round-off. Else the next
   trial is set. */
static int is_comparable(struct modes *m, double change, double base)
{
    const double wanted = fabs(base) > 1.0 ? fabs(base) : 1.0;
    if (!(change > 0.0) || (0.1 * wanted <= change && change <= 100.0 * wanted)) {
        return 1;
    }
    m->probe *= wanted / change;
    return 0;
}

int reference_hold(struct equations *e, struct modes *m, double t, const double x[], const double r[], const double p[])
{
    memcpy(m->r, r, (size_t)e->n_r * sizeof(double));
    if (m->held < 0) {
        return OK;
    }
    const double *rate = m->outputs + m->held_rate;
    double *value = m->r + m->inputs + m->held;
    *value = 0.0;
    int status = observe(e, m, t, x, p);
    const double base = *rate / m->held_size;
    const double largest = m->held < m->switches ? m->outputs[m->first + m->switches + m->held] : 0.0;
    double effect = 0.0;
    for (int trial = 0; trial < PROBE_TRIALS && status == OK; trial++) {
        *value = m->probe == 0.0 ? 1.0 : m->probe;
        status = observe(e, m, t, x, p);
        const double change = *rate / m->held_size - base;
        effect = change / *value;
        if (m->probe == 0.0 || is_comparable(m, fabs(change), base)) {
            break;
        }
    }
    if (status == OK && !(isfinite(base) && isfinite(effect) && isfinite(largest))) {
        return UNSOLVED;
    }
    *value = effect == 0.0 ? 0.0 : -base / effect;
    return status;
}

/* As compute_counter_margin of equations_between_events.py. */
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
    status = status == OK ? observe(e, m, t, x, p) : status;
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
