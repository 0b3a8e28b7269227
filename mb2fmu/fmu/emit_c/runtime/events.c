/* events.c: modes and events of the model; see events.h. */
#include <math.h>
#include <string.h>

#include "events.h"

#if MB2FMU_N_MODES > 0

#define MB2FMU_N_CONDITIONS (MB2FMU_N_MODES - MB2FMU_N_INDICATORS)

static double *mb2fmu_mode(mb2fmu_prepared *w, int k)
{
    return &w->values[MB2FMU_N_CALCULATED + model_switches[k].memory];
}

static int mb2fmu_due(mb2fmu_settling *s, double t, const double x[], const double r[], const double p[],
                      mb2fmu_prepared *w, double slack)
{
    const int failed = model_indicators(t, x, r, p, w, s->margin);
    int due = -1;
    if (failed != 0) {
        return -2 - failed;
    }
    for (int k = 0; k < MB2FMU_N_INDICATORS; k++) {
        if (s->margin[k] < -slack && (due < 0 || s->margin[k] < s->margin[due])) {
            due = k;
        }
    }
    return due;
}

static void mb2fmu_note(mb2fmu_settling *s, int k)
{
    if (s->last[0] != k) {
        s->last[1] = s->last[0];
        s->last[0] = k;
    }
    s->changed = 1;
}

/* What the event makes of the states and conditions. 0 or the number of the solve that failed; *fired: a condition
 * changed. */
static int mb2fmu_fire(mb2fmu_settling *s, double t, double x[], const double r[], const double p[],
                       mb2fmu_prepared *w, int *fired)
{
    const int failed = model_event(t, x, r, p, w, s->after);
    *fired = 0;
    if (failed != 0) {
        return failed;
    }
    for (int i = 0; i < MB2FMU_N_CONDITIONS; i++) { /* first, so that they are named where what they set is refused */
        double *const was = mb2fmu_mode(w, MB2FMU_N_INDICATORS + i);
        const double now = s->after[MB2FMU_N_STATES + i];
        if (*was != now) {
            *was = now;
            *fired = 1;
            mb2fmu_note(s, MB2FMU_N_INDICATORS + i);
        }
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        if (!isfinite(s->after[i])) {
            return MB2FMU_NOT_FINITE;
        }
        x[i] = s->after[i];
    }
    return 0;
}

/* The next mode of a switch whose margin is negative. What slips and comes to rest is held, if the force is enough. A
 * sign that has no effect here (friction within its smooth band) moves nothing to its surface: it goes to the side that
 * the state is on, however the state is driven. Beyond `least` that is seen at once. */
static int mb2fmu_change(mb2fmu_settling *s, int k, double t, double x[], const double r[], const double p[],
                         mb2fmu_prepared *w, double least)
{
    double *const mode = mb2fmu_mode(w, k);
    double before;
    int fired;
    int failed = model_surfaces(t, x, r, p, w, s->surface);
    if (failed != 0) {
        return failed;
    }
    mb2fmu_note(s, k);
    if (model_switches[k].kind == MB2FMU_SWITCH_RELATION) {
        *mode = 1.0 - *mode;
    } else if (model_switches[k].kind == MB2FMU_SWITCH_STEPS) {
        *mode = floor(s->surface[k]);
    } else if (*mode != 0.0) {
        for (int j = 0; j < MB2FMU_N_INDICATORS; j++) { /* what rests with it is held by all that could */
            if (model_switches[j].kind == MB2FMU_SWITCH_STICKING && fabs(s->surface[j]) <= MB2FMU_HELD) {
                *mb2fmu_mode(w, j) = 0.0;
            }
        }
        *mode = 0.0;
        before = s->surface[k];
        failed = mb2fmu_fire(s, t, x, r, p, w, &fired);
        if (failed == 0 && fabs(before) > least) {
            failed = model_surfaces(t, x, r, p, w, s->surface);
            if (failed == 0 && *mode == 0.0 && s->surface[k] == before) {
                *mode = before > 0.0 ? 1.0 : -1.0;
            }
        }
    } else {
        *mode = s->surface[MB2FMU_N_INDICATORS + k] > 0.0 ? 1.0 : -1.0;
    }
    return failed;
}

/* What was held and has been set in motion slips; with `set` also what has been set to the other side. */
static int mb2fmu_let_go(mb2fmu_settling *s, double t, const double x[], const double r[], const double p[],
                         mb2fmu_prepared *w, int set)
{
    const int failed = model_surfaces(t, x, r, p, w, s->surface);
    for (int k = 0; failed == 0 && k < MB2FMU_N_INDICATORS; k++) {
        double *const mode = mb2fmu_mode(w, k);
        const double side = s->surface[k] > 0.0 ? 1.0 : -1.0;
        if (model_switches[k].kind == MB2FMU_SWITCH_STICKING &&
            (*mode == 0.0 || (set && !s->through[k] && *mode != side)) &&
            fabs(s->surface[k]) > MB2FMU_HELD) {
            *mode = side;
            mb2fmu_note(s, k);
        }
    }
    return failed;
}

#if MB2FMU_N_TIMED > 0
/* Switches of time alone follow it to the last digit: what an importer that steps to their instants comes to, and what
 * else falls on the same one. A ramp that begins is one, and what its first value decides is another: so they are asked
 * until none changes, or each has had its turn. *followed: whether any has changed. */
static int mb2fmu_follow_time(mb2fmu_settling *s, double t, const double x[], const double r[], const double p[],
                              mb2fmu_prepared *w, int *followed)
{
    int failed = 0, going = 1;
    *followed = 0;
    for (int pass = 0; failed == 0 && going && pass <= MB2FMU_N_TIMED; pass++) {
        failed = model_surfaces(t, x, r, p, w, s->surface);
        going = 0;
        for (int k = 0; failed == 0 && k < MB2FMU_N_INDICATORS; k++) {
            const double at = s->surface[k];
            const double now = model_switches[k].kind == MB2FMU_SWITCH_STEPS ? floor(at) : (double)(at > 0.0);
            if (model_switches[k].timed && *mb2fmu_mode(w, k) != now) {
                *mb2fmu_mode(w, k) = now;
                mb2fmu_note(s, k);
                going = *followed = 1;
            }
        }
    }
    return failed;
}
#endif

/* What was let go while others were still held, and is driven back since they slip, too, is held again: of two
 * frictions that cannot both hold, often one can. By itself it would come back at once, and everything begin anew. It
 * slips on if more than its sliding friction would be needed to hold it. *held: one is held again; each at most once in
 * an event. */
static int mb2fmu_hold_again(mb2fmu_settling *s, double t, const double x[], const double r[], const double p[],
                             mb2fmu_prepared *w, int *held)
{
    int signs = 0, failed = 0;
    *held = 0;
    for (int k = 0; k < MB2FMU_N_INDICATORS; k++) {
        signs += model_switches[k].kind == MB2FMU_SWITCH_STICKING;
    }
    if (signs < 2) {
        return 0;
    }
    failed = model_surfaces(t, x, r, p, w, s->surface);
    for (int k = 0; failed == 0 && !*held && k < MB2FMU_N_INDICATORS; k++) {
        double *const mode = mb2fmu_mode(w, k);
        const double slips = *mode;
        if (model_switches[k].kind != MB2FMU_SWITCH_STICKING || slips == 0.0 || s->held_again[k] ||
            fabs(s->surface[k]) > MB2FMU_HELD) {
            continue;
        }
        *mode = 0.0;
        failed = model_surfaces(t, x, r, p, w, s->surface);
        if (failed == 0 && slips * s->surface[MB2FMU_N_INDICATORS + k] < 1.0 - MB2FMU_HELD) {
            s->held_again[k] = *held = 1;
            mb2fmu_note(s, k);
        } else {
            *mode = slips;
        }
    }
    return failed;
}

/* Modes change one by one until no margin is negative. */
static int mb2fmu_agree(mb2fmu_settling *s, double t, double x[], const double r[], const double p[],
                        mb2fmu_prepared *w, double slack, int *changes)
{
    for (;;) {
        const int due = mb2fmu_due(s, t, x, r, p, w, slack);
        int failed = 0;
        if (due < -1) {
            return -2 - due;
        }
        if (due == -1) {
            int held;
            failed = mb2fmu_hold_again(s, t, x, r, p, w, &held);
            if (failed != 0 || !held) {
                return failed;
            }
            ++*changes;
            continue;
        }
        if (++*changes > MB2FMU_MOST_CHANGES * MB2FMU_N_MODES) {
            mb2fmu_note(s, due);
            return MB2FMU_CHATTERS;
        }
        failed = mb2fmu_change(s, due, t, x, r, p, w, *changes > 2 * MB2FMU_N_MODES ? 0.0 : MB2FMU_HELD);
        if (failed != 0) {
            return failed;
        }
    }
}

/* Whether the inputs that were set give conditions another value; or the solve that failed. Gaps that rest are the same
 * with the inputs of before: what the FMU's own integration has erred by is nothing that was set. */
static int mb2fmu_inputs_tell(mb2fmu_settling *s, double t, const double x[], const double r[], const double p[],
                              mb2fmu_prepared *w, int *told)
{
    int failed = 0;
    *told = 0;
#if MB2FMU_N_INPUTS > 0
    if (memcmp(s->before, r, MB2FMU_N_INPUTS * sizeof r[0]) != 0) {
        failed = model_event(t, x, s->before, p, w, s->was);
        failed = failed == 0 ? model_event(t, x, r, p, w, s->after) : failed;
        *told = failed == 0 && memcmp(s->was + MB2FMU_N_STATES, s->after + MB2FMU_N_STATES,
                                      MB2FMU_SIZE(MB2FMU_N_CONDITIONS) * sizeof s->was[0]) != 0;
    }
#else
    (void)s, (void)t, (void)x, (void)r, (void)p, (void)w;
#endif
    return failed;
}

/* Whether something may have to happen though no mode has changed: at the start of the simulation, and where something
 * was set. Contacts that rest are looked at by no switch, but at events alone. */
static int mb2fmu_is_pending(mb2fmu_prepared *w, int set)
{
    int pending = 0;
    for (int i = MB2FMU_N_INDICATORS; i < MB2FMU_N_MODES; i++) {
        pending = pending || (model_switches[i].kind == MB2FMU_SWITCH_TICKS && (set || *mb2fmu_mode(w, i) == 0.0));
    }
    return pending;
}

static int mb2fmu_settle(mb2fmu_settling *s, double t, double x[], const double r[], const double p[],
                         mb2fmu_prepared *w, double slack, int set, int punctual)
{
    int changes = 0, fired = 1;
    int failed;
    s->changed = 0;
    s->last[0] = s->last[1] = -1;
    failed = mb2fmu_let_go(s, t, x, r, p, w, set);
#if MB2FMU_N_TIMED > 0
    int followed;
    if (failed == 0 && punctual) {
        failed = mb2fmu_follow_time(s, t, x, r, p, w, &followed);
    }
#else
    (void)punctual;
#endif
    memset(s->through, 0, sizeof s->through);
    memset(s->held_again, 0, sizeof s->held_again);
    while (failed == 0 && fired) {
        failed = mb2fmu_agree(s, t, x, r, p, w, slack, &changes);
        fired = 0;
#if MB2FMU_N_TIMED > 0
        if (failed == 0 && punctual && s->changed) { /* other modes may let time decide something else */
            failed = mb2fmu_follow_time(s, t, x, r, p, w, &followed);
            if (failed == 0 && followed) {
                fired = 1;
                failed = ++changes > MB2FMU_MOST_CHANGES * MB2FMU_N_MODES ? MB2FMU_CHATTERS : 0;
                continue;
            }
        }
#endif
        int pending = s->changed || mb2fmu_is_pending(w, set);
        if (failed == 0 && pending && !s->changed && s->before != NULL) {
            failed = mb2fmu_inputs_tell(s, t, x, r, p, w, &pending);
        }
        if (failed == 0 && pending) {
            failed = mb2fmu_fire(s, t, x, r, p, w, &fired);
        }
        if (fired && failed == 0) {
            failed = mb2fmu_let_go(s, t, x, r, p, w, 1);
            if (failed == 0 && ++changes > MB2FMU_MOST_CHANGES * MB2FMU_N_MODES) {
                failed = MB2FMU_CHATTERS; /* events may call each other without any mode that changes */
            }
        }
    }
    return failed;
}

static int mb2fmu_keep_at_rest(mb2fmu_settling *s, double t, double x[], const double r[], const double p[],
                               mb2fmu_prepared *w)
{
    int held = 0, fired;
    for (int k = 0; k < MB2FMU_N_INDICATORS; k++) {
        held = held || (model_switches[k].kind == MB2FMU_SWITCH_STICKING && *mb2fmu_mode(w, k) == 0.0);
    }
    return held ? mb2fmu_fire(s, t, x, r, p, w, &fired) : 0;
}

static int mb2fmu_begin_modes(mb2fmu_settling *s, double t, double x[], const double r[], const double p[],
                              mb2fmu_prepared *w)
{
    int failed = 0;
    /* What a switch looks at may depend on the modes of others. */
    for (int pass = 0; failed == 0 && pass <= MB2FMU_N_INDICATORS; pass++) {
        failed = model_surfaces(t, x, r, p, w, s->surface);
        for (int k = 0; failed == 0 && k < MB2FMU_N_INDICATORS; k++) {
            const double at = s->surface[k];
            const int kind = model_switches[k].kind;
            *mb2fmu_mode(w, k) = kind == MB2FMU_SWITCH_STEPS      ? floor(at)
                                 : kind == MB2FMU_SWITCH_RELATION ? (double)(at > 0.0)
                                                                  : (double)((at > 0.0) - (at < 0.0));
        }
    }
    for (int i = MB2FMU_N_INDICATORS; i < MB2FMU_N_MODES; i++) {
        *mb2fmu_mode(w, i) = MB2FMU_MOST_TICKS; /* nothing becomes true at the start */
    }
    if (failed == 0 && MB2FMU_N_CONDITIONS > 0) {
        int fired;
        failed = mb2fmu_fire(s, t, x, r, p, w, &fired);
    }
    for (int i = MB2FMU_N_INDICATORS; i < MB2FMU_N_MODES; i++) {
        if (model_switches[i].kind == MB2FMU_SWITCH_TICKS) {
            *mb2fmu_mode(w, i) = 0.0; /* the first may be now */
        }
    }
    if (failed == 0) {
        int changes = 0;
        memset(s->held_again, 0, sizeof s->held_again);
        failed = mb2fmu_agree(s, t, x, r, p, w, MB2FMU_SLACK, &changes);
    }
    return failed;
}

#if MB2FMU_N_TIMED > 0
static double mb2fmu_next_instant(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w)
{
    double instants[MB2FMU_N_TIMED];
    const double least = t != 0.0 ? t + MB2FMU_APART * fabs(t) : MB2FMU_APART * MB2FMU_APART;
    double next = MB2FMU_INFINITY;
    if (model_next_time_event(t, x, r, p, w, instants) == 0) {
        for (int i = 0; i < MB2FMU_N_TIMED; i++) {
            next = instants[i] < next ? instants[i] : next; /* what is NaN is no instant */
        }
    }
    return next < least ? least : next;
}
#endif

#endif
