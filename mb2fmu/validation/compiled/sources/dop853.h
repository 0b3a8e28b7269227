/* Dormand and Prince's method of order 8(5, 3) for y = (x, W), landing on every communication point. */
#ifndef MB2FMU_DOP853_H
#define MB2FMU_DOP853_H

#include "modes.h"

struct settling;

struct journey {
    const double *time;       /* communication points, shape (points,) */
    int64_t points;
    const double *inputs;     /* held over each step, shape (points - 1, n_r) */
    const double *parameters; /* free and calculated ones */
    const double *scales;     /* magnitude of each y, shape (n_x + 1,) */
    double tolerance;         /* errors below tolerance * scale + relative * |y| + round-off */
    double relative;
    int64_t budget;           /* evaluations */
    int64_t parts;            /* at least so many steps between two points */
    int64_t projected;        /* 1: every step ends on the constraints */
    double step;              /* of the step before; infinite: to be chosen. Changes */
    int64_t spent;            /* evaluations so far. Changes */
    double stuck;             /* time of a failure */
    struct modes *modes;      /* NULL, or in which switches are */
    struct settling *settling; /* NULL, or what settles events; without it an event ends all */
};

/* From the first communication point toward the second: y becomes what it is at time ``stuck``, where the second point
   is, or a switch changes and others must settle the event (EVENT), or the step of size ``step`` begins in which one
   may change (CROSSED). Returns OK, also where there is no more room for records, or what ended it, with y from where
   it goes on. */
EXPORTED int reference_integrate_in_modes(struct equations *e, struct journey *j, double y[]);

/* Fills rows 1, ... of y, shape (points, n_x + 1), from row 0. Returns OK or what ended it. */
EXPORTED int reference_integrate(struct equations *e, struct journey *j, double y[]);

/* Each step between two communication points from a state of its own: y has shape (points - 1, 2, n_x + 1), and the
   second row of each pair is filled from the first. ``done`` steps are; returns OK or what ended the next one. */
EXPORTED int reference_integrate_steps(struct equations *e, const struct journey *j, double y[], int64_t *done);

#endif
