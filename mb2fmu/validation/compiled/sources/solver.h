/* One integration: what the method and the search for events share. */
#ifndef MB2FMU_REFERENCE_SOLVER_H
#define MB2FMU_REFERENCE_SOLVER_H

#include "dop853.h"

struct solver {
    struct equations *e;
    struct journey *j;
    const double *r;
    int64_t n;
    double *K; /* slopes, shape (STAGES + 1, n) */
    double slope_time; /* time of the slope in the first row of K, which is that at y */
    double *y;
    double *trial;
    double *scale;
    double *work;
    int64_t looks;
    double *begin; /* y where the step begins, then its slope, and what dense output needs */
    double *start; /* y and its slope where the step begins in which an event is */
    double *noise; /* what a unit of round-off in y makes of the estimated error over the step size */
};

/* y' at t, s; the last is the power of loads. */
int solver_slope(struct solver *s, double t, const double y[], double f[]);

/* One step that is good enough from t; changes t, y, the first row of K, and the next step's size. */
int solver_advance(struct solver *s, double *t, double end, double longest, double *size);

#endif
