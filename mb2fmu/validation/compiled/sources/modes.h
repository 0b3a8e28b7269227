/* Equations with switches in given modes: what holds surfaces, and how far each mode is from being wrong.

   What ModeEquations and HybridEquations do in NumPy, where things of one kind hold, and no two of them the same motion:
   signs, contacts, or rows of latches; the two last in equations without signs. */
#ifndef MB2FMU_REFERENCE_MODES_H
#define MB2FMU_REFERENCE_MODES_H

#include "equations.h"

#define PROBE_TRIALS 3

enum switch_kind { SIGN = 0, TRUTH = 1, TRUTH_AT_EVENTS = 2, COUNTER = 3, CLOCK = 4 };

struct modes {
    int64_t switches;
    int64_t inputs;       /* of the model: modes follow them among all inputs */
    int64_t first;        /* output: surfaces, limits and rates of all switches follow */
    int64_t held_count;   /* of surfaces that are held */
    int64_t *held;        /* inputs behind the model's that hold them. Changes */
    const int64_t *rates; /* output that each of all that may hold makes zero, in the order of these inputs */
    double *probes;       /* of each input behind the model's, the force that is tried; of signs 1. Changes */
    double *effects;      /* shape (held_count + 2, held_count). Changes */
    int64_t behind;       /* 1: the first step begins at an event. Changes */
    const int64_t *kinds; /* shape (switches,) */
    const double *sizes;  /* of surfaces */
    const double *values; /* modes */
    double late;          /* all margins are larger by it */
    double *r;            /* all inputs, shape (n_r,). Changes, as all below */
    double *x_dot;        /* shape (n_x,) */
    double *outputs;      /* shape (n_y,) */
    double *margins;      /* shape (switches,), as the next */
    double *limits;
    double *seen;         /* shape (4, switches): margins around an event */
};

/* Whether a force changes its rate by about as much as there is (``wanted``): so little is lost to round-off. Else the
   next one to be tried is set. */
int is_comparable(double *probe, double change, double wanted);

/* right := the forces f of effects f = -right, with n numbers to work with; ``effects`` changes. UNSOLVED: several say
   nearly the same. */
int solve_for_forces(int64_t n, double effects[], double right[], double scales[]);

/* x' and all outputs, these in m->outputs, with the inputs in m->r. */
int observe_in_modes(
    struct equations *e, struct modes *m, double t, const double x[], const double p[], double x_dot[]);

/* Sets m->r to the inputs r with the holding values. UNSOLVED: it is for others to find it. */
EXPORTED int reference_hold(
    struct equations *e, struct modes *m, double t, const double x[], const double r[], const double p[]);

/* How far each mode is from being wrong, positive where it is right, shape (switches,). */
EXPORTED int reference_margins(struct equations *e, struct modes *m, double t, const double x[], const double r[],
    const double p[], double margins[]);

#endif
