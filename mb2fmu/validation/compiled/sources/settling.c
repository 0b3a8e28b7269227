#include "settling.h"

#include "sliding.h"

#include <float.h>
#include <math.h>
#include <string.h>

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

/* Lists what holds, the signs first. */
static void list_held(const struct solver *s, const struct settling *g)
{
    struct modes *m = s->j->modes;
    m->held_count = 0;
    for (int64_t i = 0; i < m->switches; i++) {
        if (m->kinds[i] == SIGN && g->values[i] == 0.0) {
            m->held[m->held_count++] = i;
        }
    }
    if (g->contacts) {
        hold_contacts(m, g->contacts, s->y);
    }
}

static int find_margins(const struct solver *s, const struct settling *g, double t)
{
    list_held(s, g);
    return reference_margins(s->e, s->j->modes, t, s->y, g->inputs, s->j->parameters, s->j->modes->margins);
}

/* Slip up to which a sign may be held. */
static double slip_limit(const struct modes *m, int64_t i) { return fmax(REST_SLIP_TOLERANCE, m->rest_limits[i]); }

/* Whether a sign is held by more than it can, and no other one by more still. */
static int is_released_first(const struct modes *m, int64_t i)
{
    const double excess = excess_of(m, i);
    int first = excess > 0.0;
    for (int64_t j = 0; j < m->held_count; j++) {
        first &= m->held[j] >= m->switches || excess_of(m, m->held[j]) <= excess;
    }
    return first;
}

/* A sign comes to rest, and what rests with it, by an impulse; if that is too much for it, it slips on. */
static int try_at_rest(struct solver *s, struct settling *g, double t, int64_t i, double slipping[])
{
    struct modes *m = s->j->modes;
    const double slip = surface_of(m, i);
    for (int64_t j = 0; j < m->switches; j++) {
        if (m->kinds[j] == SIGN && fabs(surface_of(m, j)) <= slip_limit(m, j)) {
            set_mode(m, g, j, 0.0);
        }
    }
    set_mode(m, g, i, 0.0);
    memcpy(slipping, s->y, (size_t)s->n * sizeof(double));
    list_held(s, g);
    int status = stop_held_slips(s->e, m, g->contacts, t, s->y, g->inputs, s->j->parameters);
    status = status == OK ? find_margins(s, g, t) : status;
    if (status == OK && is_released_first(m, i)) {
        const double surface = surface_of(m, i);
        set_mode(m, g, i, fabs(surface) <= slip_limit(m, i) ? released_side(m, i) : copysign(1.0, surface));
        if (is_dead(m, i)) {
            memcpy(s->y, slipping, (size_t)s->n * sizeof(double));
            if (fabs(slip) > REST_SLIP_TOLERANCE) { /* a rough integration has stopped before it is at rest */
                set_mode(m, g, i, copysign(1.0, slip));
            }
        }
    }
    return status;
}

/* Changes a mode; the outputs are those of this instant. */
static int change_mode(struct solver *s, struct settling *g, double t, int64_t i, double spare[])
{
    struct modes *m = s->j->modes;
    const double mode = g->values[i];
    if (m->kinds[i] == SIGN && mode != 0.0) {
        return try_at_rest(s, g, t, i, spare);
    }
    if (m->kinds[i] == SIGN) {
        set_mode(m, g, i, released_side(m, i));
    } else if (m->kinds[i] == COUNTER || m->kinds[i] == CLOCK) {
        set_mode(m, g, i, surface_of(m, i) > mode + 0.5 ? mode + 1.0 : mode - 1.0);
    } else {
        set_mode(m, g, i, 1.0 - mode);
    }
    return OK;
}

/* A sign that was changed and not held again, and is driven back; -1: there is none. */
static int64_t find_reversed_slip(const struct modes *m, const double at_surface[], const double held_again[])
{
    for (int64_t i = 0; i < m->switches; i++) {
        if (m->kinds[i] == SIGN && at_surface[i] != 0.0 && held_again[i] == 0.0 && m->values[i] != 0.0 &&
            slips_backwards(m, i)) {
            return i;
        }
    }
    return -1;
}

/* Makes signs slip to the side on which an event has set their surface. */
static int release_moved_signs(const struct solver *s, struct settling *g, double t)
{
    struct modes *m = s->j->modes;
    int64_t signs = 0;
    for (int64_t i = 0; i < m->switches; i++) {
        signs += m->kinds[i] == SIGN;
    }
    if (signs == 0) {
        return OK;
    }
    list_held(s, g);
    int status = find_rest_limits(s->e, m, t, s->y, g->inputs, s->j->parameters);
    memcpy(m->r, g->inputs, (size_t)s->e->n_r * sizeof(double));
    status = status == OK ? observe_in_modes(s->e, m, t, s->y, s->j->parameters, m->x_dot) : status;
    for (int64_t i = 0; i < m->switches && status == OK; i++) {
        if (m->kinds[i] == SIGN && fabs(surface_of(m, i)) > slip_limit(m, i)) {
            set_mode(m, g, i, copysign(1.0, surface_of(m, i)));
        }
    }
    return status;
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

/* The model's events and impacts that happen now, and what signs do then. Returns whether any happened; -1: others must
   find what they do. ``spare``: 2 n numbers. */
static int let_events_happen(struct solver *s, struct settling *g, double t, int64_t *fired, double spare[])
{
    struct modes *m = s->j->modes;
    double *set = spare;
    double *before = spare + s->n;
    memset(set, 0, (size_t)s->n * sizeof(double));
    memcpy(before, s->y, (size_t)s->n * sizeof(double));
    if (drifts(m) && (remove_drift_slip(s->e, m, g->contacts, t, s->y, g->inputs, s->j->parameters) != OK ||
                         find_margins(s, g, t) != OK)) {
        return -1;
    }
    if (observe_impacts(s, g, t) != OK) {
        return -1;
    }
    const int fires = fire_events(m, g, s->y, set, fired);
    if (fires == 0) {
        memcpy(s->y, before, (size_t)s->n * sizeof(double));
    }
    return fires > 0 && release_moved_signs(s, g, t) != OK ? -1 : fires;
}

/* As settle_modes of hybrid_equations.py, without latches. */
static int settle(struct solver *s, struct settling *g, double t, int64_t first, int64_t *fired, double spare[])
{
    struct modes *m = s->j->modes;
    double *at_surface = spare;
    double *held_again = at_surface + m->switches;
    double *work = held_again + m->switches;
    memset(at_surface, 0, 2 * (size_t)m->switches * sizeof(double));
    int status = find_margins(s, g, t);
    int64_t changed = first;
    for (int round = 0; round <= MAX_MODE_CHANGES && status == OK; round++) {
        const int64_t reversed = changed < 0 ? find_reversed_slip(m, at_surface, held_again) : -1;
        if (changed >= 0) {
            status = change_mode(s, g, t, changed, work);
            at_surface[changed] = 1.0;
        } else if (reversed >= 0) {
            set_mode(m, g, reversed, 0.0);
            held_again[reversed] = 1.0;
        } else {
            const int fires = let_events_happen(s, g, t, fired, work);
            if (fires <= 0) {
                return fires ? UNSOLVED : OK;
            }
        }
        status = status == OK ? find_margins(s, g, t) : status;
        changed = find_contradicted(m, at_surface);
    }
    return UNSOLVED;
}

int reference_settle(struct equations *e, struct journey *j, double t, int64_t first, double y[])
{
    struct solver s = {.e = e, .j = j, .r = j->inputs, .n = states_of(e) + 1, .y = y};
    int64_t fired = -1;
    return settle(&s, j->settling, t, first, &fired, j->settling->spare);
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
        (void)list_held(s, g);
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
