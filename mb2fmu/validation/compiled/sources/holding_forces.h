/* Forces of what holds: contacts and rows of latches hold rigidly, dry friction what these leave.

   What coupled_holding_forces.py does in NumPy, where the forces are unique. */
#ifndef MB2FMU_REFERENCE_HOLDING_FORCES_H
#define MB2FMU_REFERENCE_HOLDING_FORCES_H

#include "equations.h"

/* Numbers that the functions need to work with. */
#define HOLDING_NUMBERS(n) ((2 * (n) + 3) * (n))

/* What holds: the signs first. */
struct held_surfaces {
    int64_t n;
    int64_t signs;
    const double *effects; /* what a unit of each holding value changes each rate by, shape (n, n) */
    const double *limits;  /* of the signs */
};

/* right := the forces f of effects f = -right, shape (n,). UNSOLVED: several say nearly the same. */
int solve_for_forces(const struct held_surfaces *h, double right[], double numbers[]);

/* ineffective := 1 for each sign that rubs on a motion which the others hold, else 0. UNSOLVED: these say nearly the
   same. */
int find_ineffective_frictions(const struct held_surfaces *h, double ineffective[], double numbers[]);

/* What frictions alone change their slips by, shape (signs, signs), beside what holds rigidly, whose forces are then
   -reactions per unit of each, shape (n - signs, signs). Of ``barred`` ones (more than 0) what they would change
   without it. UNSOLVED: what holds rigidly says nearly the same. */
int find_friction_influence(const struct held_surfaces *h, const double barred[], double effects[],
    double reactions[], double numbers[]);

#endif
