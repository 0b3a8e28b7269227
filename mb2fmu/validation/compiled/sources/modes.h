/* Equations with switches in given modes: what holds surfaces, and how far each mode is from being wrong.

   What ModeEquations and HybridEquations do in NumPy, where no two of the things that hold hold the same motion: signs,
   contacts, rows of latches, or signs beside contacts. */
#ifndef MB2FMU_REFERENCE_MODES_H
#define MB2FMU_REFERENCE_MODES_H

#include "holding_forces.h"

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
    double *effects;      /* shape (3 n + 8, n); n: of all that may hold. Changes, as the next */
    int64_t *may_hold;    /* all signs, then the contacts that rest */
    double *rest_limits;  /* slip over its size up to which a sign rests, whatever it could hold, shape (switches,) */
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

/* What may hold, the signs first, and what it does at one instant. */
struct holding {
    int64_t n;
    int64_t signs;
    const int64_t *inputs; /* behind the model's */
    double *effects;       /* shape (n, n) */
    double *base;          /* rates without holding values */
    double *limits;        /* of the signs */
    double *numbers;       /* to work with, shape (HOLDING_NUMBERS(n),) */
    double *x_dots;        /* x' by a unit of each holding value, then x' without any, (n + 1, n_x); may be NULL */
};

/* With memory of m->effects. */
struct holding holding_of(const struct modes *m, const int64_t inputs[], int64_t n);

struct held_surfaces surfaces_of(const struct holding *h);

/* Rates without holding values, as m->r becomes, the limits of signs there, and all effects. UNSOLVED: some are no
   numbers. */
int measure_holding_effects(struct equations *e, struct modes *m, double t, const double x[], const double r[],
    const double p[], const struct holding *h);

/* Whether a force changes its rate by about as much as there is (``wanted``): so little is lost to round-off. Else the
   next one to be tried is set. */
int is_comparable(double *probe, double change, double wanted);

/* Largest value at which a sign holds: no less than when it slips. */
double limit_of(const struct modes *m, int64_t i);

/* The value that holds a sign; of one that is driven and holds nothing, a value beyond its limit in that direction.
   Where contacts hold its motion it is driven by slip alone, which they give it. */
double driven_value(const struct modes *m, int64_t i);

/* Sets m->rest_limits: more than 0 where contacts that rest hold a sign's motion. UNSOLVED: others must find them. */
int find_rest_limits(
    struct equations *e, struct modes *m, double t, const double x[], const double r[], const double p[]);

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
