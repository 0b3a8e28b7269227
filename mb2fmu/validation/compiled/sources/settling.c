#include "settling.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define REST_SLIP_TOLERANCE 1e-9
#define NEAR_SURFACE 1e-9
#define HELD_AT_ZERO 1e-12
#define MAX_MODE_CHANGES 50
#define MAX_SIMULTANEOUS 100

static int is_due(double before, double here)
{
    return here < 0.0 || (here < 0.5 * before && fabs(here) <= NEAR_SURFACE * fmax(1.0, fabs(before)));
}

/* As _find_event_switch of event_integration.py: the switch that the event is of. */
static int64_t find_switch(const struct modes *m, int *round_off)
{
    const int64_t n = m->switches;
    const double *before = m->seen;
    const double *here = before + n;
    const double *earlier = here + n;
    int64_t due = 0;
    int64_t lowest = 0;
    double nearest = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        lowest = here[i] < here[lowest] ? i : lowest;
        if (is_due(before[i], here[i])) {
            due++;
            nearest = fmin(nearest, (fabs(here[i]) + HELD_AT_ZERO) / fmax(earlier[i] - here[i], DBL_MIN));
        }
    }
    int64_t found = due ? -1 : lowest;
    for (int64_t i = 0; i < n && due; i++) {
        const double away = (fabs(here[i]) + HELD_AT_ZERO) / fmax(earlier[i] - here[i], DBL_MIN);
        if (is_due(before[i], here[i]) && (due == 1 || away <= 100.0 * nearest) &&
            (found < 0 || here[i] < here[found])) {
            found = i;
        }
    }
    *round_off = 1;
    for (int row = 0; row < 4; row++) {
        *round_off &= fabs(m->seen[row * n + found]) <= HELD_AT_ZERO;
    }
    return found;
}

static void set_mode(const struct modes *m, struct settling *g, int64_t i, double value)
{
    g->values[i] = value;
    g->inputs[m->inputs + i] = value;
}

/* Changes a mode; the outputs are those of this instant. */
static void change_mode(const struct modes *m, struct settling *g, int64_t i)
{
    const double mode = g->values[i];
    if (m->kinds[i] == COUNTER || m->kinds[i] == CLOCK) {
        set_mode(m, g, i, m->outputs[m->first + i] / m->sizes[i] > mode + 0.5 ? mode + 1.0 : mode - 1.0);
    } else {
        set_mode(m, g, i, 1.0 - mode);
    }
}

/* The switch that is farthest from being right; -1: all are. */
static int64_t find_contradicted(const struct modes *m, const double at_surface[])
{
    int64_t worst = -1;
    for (int64_t i = 0; i < m->switches; i++) {
        if (m->margins[i] < -REST_SLIP_TOLERANCE * at_surface[i] && (worst < 0 || m->margins[i] < m->margins[worst])) {
            worst = i;
        }
    }
    return worst;
}

/* Whether an event with these roles happens by the outputs, with a number above its last one. */
static int happens(const struct modes *m, const struct settling *g, int64_t roles, double least)
{
    const double *conditions = m->outputs + g->conditions;
    for (int64_t k = 0; k < g->events; k++) {
        if ((g->roles[k] & roles) == roles && conditions[k] > fmax(g->past[k], least)) {
            return 1;
        }
    }
    return 0;
}

/* Makes the outputs those with the results of contacts at this instant, if any event happens. */
static int observe_impacts(const struct solver *s, const struct settling *g, double t)
{
    struct modes *m = s->j->modes;
    const struct contacts *c = g->contacts;
    double impacts = 0.0;
    if (!c || !(g->knows_impacts || happens(m, g, 0, -INFINITY))) {
        return OK;
    }
    for (int64_t i = 0; i < c->count && c->frictions; i++) {
        impacts += s->y[c->impacts[i]];
    }
    const int hit = happens(m, g, IMPACT, impacts + 0.5);
    const int change = c->frictions && happens(m, g, FRICTION, s->y[c->changes] + 0.5);
    const int status =
        reference_contact_results(s->e, m, c, t, s->y, g->inputs, s->j->parameters, hit, change);
    return status == OK ? observe_in_modes(s->e, m, t, s->y, s->j->parameters, m->x_dot) : status;
}

/* Makes impacts wait for the model's own events at this instant. */
static void defer_impacts(const struct modes *m, const struct settling *g)
{
    double *conditions = m->outputs + g->conditions;
    int own = 0;
    for (int64_t k = 0; k < g->events; k++) {
        own |= !(g->roles[k] & OF_CONTACT) && conditions[k] > g->past[k];
    }
    for (int64_t k = 0; k < g->events && own; k++) {
        conditions[k] = g->roles[k] & DEFERRED ? g->past[k] : conditions[k];
    }
}

/* Sets what the events set that happen now, by the outputs; ``fired``: the first of them if it is still -1. Returns
   whether any happened; -1: two of them set a state to different values. */
static int fire_events(const struct modes *m, struct settling *g, double y[], double set[], int64_t *fired)
{
    const double *conditions = m->outputs + g->conditions;
    const double *values = conditions + g->events;
    int any = 0;
    defer_impacts(m, g);
    for (int64_t k = 0; k < g->events; k++) {
        if (!(conditions[k] > g->past[k])) {
            continue;
        }
        *fired = *fired < 0 ? k : *fired;
        any = 1;
        for (int64_t i = g->begin[k]; i < g->begin[k] + g->sets[k]; i++) {
            const int64_t target = g->targets[i];
            if (set[target] != 0.0 && values[i] != y[target]) {
                return -1;
            }
            y[target] = values[i];
            set[target] = 1.0;
        }
    }
    memcpy(g->past, conditions, (size_t)g->events * sizeof(double));
    return any;
}

/* What the kinetic energy jumps by, J; 0 if that is no number. No mode changes it. */
static int add_work(struct solver *s, struct settling *g, double t, const double before[])
{
    struct modes *m = s->j->modes;
    double kinetic[2];
    double power = 0.0;
    const double *sides[2] = {before, s->y};
    memcpy(m->r, g->inputs, (size_t)s->e->n_r * sizeof(double));
    for (int64_t i = 0; i < m->switches; i++) {
        m->r[m->inputs + i] = 1.0;
    }
    for (int side = 0; side < 2; side++) {
        struct motion motion = {NULL, m->x_dot, &power, &kinetic[side], NULL, NULL};
        const int status = reference_motion(s->e, t, sides[side], m->r, s->j->parameters, &motion);
        if (status != OK) {
            return status;
        }
    }
    const double work = kinetic[1] - kinetic[0];
    s->y[s->n - 1] += isfinite(work) ? work : 0.0;
    return OK;
}

/* As settle_modes of hybrid_equations.py, without signs and latches. */
static int settle(struct solver *s, struct settling *g, double t, int64_t first, int64_t *fired, double spare[])
{
    struct modes *m = s->j->modes;
    double *at_surface = spare;
    double *set = spare + m->switches;
    memset(at_surface, 0, (size_t)m->switches * sizeof(double));
    int status = reference_margins(s->e, m, t, s->y, g->inputs, s->j->parameters, m->margins);
    int64_t changed = first;
    for (int round = 0; round <= MAX_MODE_CHANGES && status == OK; round++) {
        if (changed >= 0) {
            change_mode(m, g, changed);
            at_surface[changed] = 1.0;
        } else {
            memset(set, 0, (size_t)s->n * sizeof(double));
            status = observe_impacts(s, g, t);
            const int fires = status == OK ? fire_events(m, g, s->y, set, fired) : -1;
            if (fires <= 0) {
                return fires ? UNSOLVED : OK;
            }
            if (g->contacts) {
                hold_contacts(m, g->contacts, s->y);
            }
        }
        status = reference_margins(s->e, m, t, s->y, g->inputs, s->j->parameters, m->margins);
        changed = find_contradicted(m, at_surface);
    }
    return UNSOLVED;
}

static void keep_record(const struct solver *s, struct settling *g, double t, int64_t first, int64_t fired,
    int round_off, const double before[])
{
    const size_t modes = (size_t)s->j->modes->switches;
    const size_t events = (size_t)g->events;
    const size_t n = (size_t)s->n;
    double *record = g->records + (size_t)g->count * (4 + 2 * (modes + events + n));
    record[0] = t;
    record[1] = (double)first;
    record[2] = (double)fired;
    record[3] = round_off;
    record += 4;
    memcpy(record, before, (modes + events + n) * sizeof(double));
    record += modes + events + n;
    memcpy(record, g->values, modes * sizeof(double));
    memcpy(record + modes, g->past, events * sizeof(double));
    memcpy(record + modes + events, s->y, n * sizeof(double));
    g->count++;
}

int settle_event(struct solver *s, struct settling *g, double t)
{
    const struct modes *m = s->j->modes;
    const size_t modes = (size_t)m->switches;
    const size_t events = (size_t)g->events;
    double *before = g->spare;
    double *y = before + modes + events;
    if (t < g->since || t - g->since > g->instant) {
        g->since = t;
        g->simultaneous = 0;
    }
    if (g->left <= 0 || g->simultaneous >= MAX_SIMULTANEOUS) {
        return UNSOLVED;
    }
    memcpy(before, g->values, modes * sizeof(double));
    memcpy(before + modes, g->past, events * sizeof(double));
    memcpy(y, s->y, (size_t)s->n * sizeof(double));
    int round_off = 0;
    int64_t fired = -1;
    const int64_t first = find_switch(m, &round_off);
    int status = settle(s, g, t, first, &fired, y + s->n);
    const int jumped = memcmp(y, s->y, (size_t)(s->n - 1) * sizeof(double)) != 0;
    if (status == OK && jumped) {
        status = add_work(s, g, t, y);
    }
    if (status != OK) {
        for (int64_t i = 0; i < m->switches; i++) {
            set_mode(m, g, i, before[i]);
        }
        memcpy(g->past, before + modes, events * sizeof(double));
        memcpy(s->y, y, (size_t)s->n * sizeof(double));
        if (g->contacts) {
            hold_contacts(s->j->modes, g->contacts, s->y);
        }
        return UNSOLVED;
    }
    g->left--;
    g->simultaneous++;
    g->last = t;
    if (g->capacity && (jumped || memcmp(before, g->values, modes * sizeof(double)) != 0)) {
        keep_record(s, g, t, first, fired, round_off, before);
    }
    return OK;
}
