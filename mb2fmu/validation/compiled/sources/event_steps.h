/* Steps of equations with switches: whether one may change on the way, and where. */
#ifndef MB2FMU_REFERENCE_EVENT_STEPS_H
#define MB2FMU_REFERENCE_EVENT_STEPS_H

#include "solver.h"

/* One step. If a switch changes on its way, the step ends there (EVENT), with the margins in ``seen``; CROSSED: it may
   change, and others must find where; then t and y are as before. */
int advance_in_modes(struct solver *s, double *t, double end, double longest);

#endif
