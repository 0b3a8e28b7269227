/* events.h: modes and events of the model, for Model Exchange and Co-Simulation alike.
 *
 * Why it exists: between events every switch of the equations (sign, Abs, a comparison) has a mode, a number in the
 * FMU's memory. Its margin (model_indicators) is positive as long as the mode is right. An event is the instant at
 * which margins become negative: here modes change until all margins are right again, what sticks is put at rest, and
 * what the model's own events set is set.
 *
 * A margin counts as negative below -slack, never at zero: at an event states lie on the surface but for round-off, and
 * importers that look at an indicator of exactly zero see an event where there is none. Margins and surfaces are over
 * their natural magnitudes, so that all of these numbers are parts of them. What an importer sees is margin
 * + MB2FMU_OFFSET, and modes change from half of that on; in Co-Simulation the FMU finds its own events, closer.
 */
#ifndef MB2FMU_EVENTS_H
#define MB2FMU_EVENTS_H

#include "model.h"

#if MB2FMU_N_MODES > 0

#define MB2FMU_OFFSET 1e-10
#define MB2FMU_SLACK 1e-13

/* What is held, or slips to the other side, goes on with its speed where that is larger than this after something has
 * set it, or what it is measured by. */
#define MB2FMU_HELD 1e-9

/* How far the next time event that is told is away at least, in parts of the time: integrators refuse to go over a few
 * units of round-off (FMPy#882). */
#define MB2FMU_APART 1e-13

/* Changes of modes in one event, for each mode, after which they are said to chatter. */
#define MB2FMU_MOST_CHANGES 16

/* Events in one communication step; events in a row that follow each other at once, each within the last of these
 * numbers times the communication step. */
#define MB2FMU_MOST_EVENTS 1000000
#define MB2FMU_MOST_AT_ONCE 200
#define MB2FMU_AT_ONCE 1e-9

/* More than any number of instants: exact in doubles. */
#define MB2FMU_MOST_TICKS 9007199254740992.0

/* Answers of mb2fmu_settle below 0. */
#define MB2FMU_CHATTERS (-1)
#define MB2FMU_NOT_FINITE (-2)

typedef struct {
    double margin[MB2FMU_SIZE(MB2FMU_N_INDICATORS)];
    double surface[2 * MB2FMU_SIZE(MB2FMU_N_INDICATORS)]; /* of each switch, then the factor of what is held */
    double after[MB2FMU_SIZE(MB2FMU_N_STATES + MB2FMU_N_MODES - MB2FMU_N_INDICATORS)];
    int last[2]; /* switches that changed last, for messages */
    int changed; /* any mode or condition did */
    int set;     /* in Event Mode: something was set since the last event iteration */
    const double *before; /* inputs behind the last step, which alone have changed since; NULL: others may have, too */
    double was[MB2FMU_SIZE(MB2FMU_N_STATES + MB2FMU_N_MODES - MB2FMU_N_INDICATORS)]; /* as after, with those inputs */
    int through[MB2FMU_SIZE(MB2FMU_N_INDICATORS)]; /* what had come through zero before that */
    int held_again[MB2FMU_SIZE(MB2FMU_N_INDICATORS)]; /* what was let go and would have come back at once */
} mb2fmu_settling;

/* Modes as they begin at a point: by the signs of what they look at. Answers as mb2fmu_settle. */
MB2FMU_UNUSED static int mb2fmu_begin_modes(mb2fmu_settling *s, double t, double x[], const double r[],
                                            const double p[], mb2fmu_prepared *w);

/* Modes that are right at a point, and the states after the event, in place. Modes are memory, in w. With `set` inputs or
 * parameters may have jumped: a speed that has changed its side by that has not come through zero, and is not brought to
 * rest. With `punctual` switches of time alone are in the mode of this very instant, whatever the slack. 0; the number of the solve that failed; or a negative answer, above. */
MB2FMU_UNUSED static int mb2fmu_settle(mb2fmu_settling *s, double t, double x[], const double r[], const double p[],
                                       mb2fmu_prepared *w, double slack, int set, int punctual);

/* What is held is put at rest exactly, where round-off has moved it. Answers as mb2fmu_settle. */
MB2FMU_UNUSED static int mb2fmu_keep_at_rest(mb2fmu_settling *s, double t, double x[], const double r[],
                                             const double p[], mb2fmu_prepared *w);

/* Which switch has the most negative margin below -slack; -1: none; other answers below that: -2 - number of the solve
 * that failed. Margins are left in s->margin. */
MB2FMU_UNUSED static int mb2fmu_due(mb2fmu_settling *s, double t, const double x[], const double r[], const double p[],
                                    mb2fmu_prepared *w, double slack);

#if MB2FMU_N_TIMED > 0
/* When a switch of time alone changes next; infinity where none does. Never before the next number after t. */
MB2FMU_UNUSED static double mb2fmu_next_instant(double t, const double x[], const double r[], const double p[],
                                                mb2fmu_prepared *w);
#endif

#endif
#endif
