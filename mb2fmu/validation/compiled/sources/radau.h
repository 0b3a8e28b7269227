/* Radau IIA collocation for stiff equations, y = (x, W), landing on every communication point. */
#ifndef MB2FMU_RADAU_H
#define MB2FMU_RADAU_H

#include "dop853.h"

/* The numbers of the method, which radau_collocation.py computes. */
struct collocation {
    int64_t stages;
    const double *nodes;        /* c, shape (stages,) */
    const double *coefficients; /* A, shape (stages, stages) */
    const double *halves;       /* from values at a step's stages to those at its halves' stages, (2 stages, stages) */
    int64_t count;              /* of eigenvalues of A, one of each pair */
    const double *eigenvalues;  /* lambda_k, real and imaginary part, shape (count, 2) */
    const double *projections;  /* P_k of A = Re sum lambda_k P_k, shape (stages, stages, count, 2) */
};

/* As reference_integrate. ``budget`` and ``spent`` count steps, ``step`` is tried first (infinite: the first
   communication step), ``relative``, ``parts`` and ``projected`` are not read. */
EXPORTED int reference_integrate_stiff(struct equations *e, struct journey *j, const struct collocation *c, double y[]);

#endif
