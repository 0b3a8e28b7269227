/* Signs of sliding friction at events: which hold, which are released, and speeds at which what holds stands still.

   What HybridEquations does in NumPy where no latch holds anything beside them. */
#ifndef MB2FMU_REFERENCE_SLIDING_H
#define MB2FMU_REFERENCE_SLIDING_H

#include "contacts.h"

/* A surface closer to zero than this, over its size, may be held there. */
#define REST_SLIP_TOLERANCE 1e-9

/* A switching function over its size, by the outputs of this instant. */
double surface_of(const struct modes *m, int64_t i);

/* What a sign is held by at this instant, over what it can: more than 0 if that is too much. */
double excess_of(const struct modes *m, int64_t i);

/* The side to which a sign slips that is released now. */
double released_side(const struct modes *m, int64_t i);

/* Whether nothing could have brought a sign to rest: at a dead centre round-off of slip would be an impulse on all that
   moves. */
int is_dead(const struct modes *m, int64_t i);

/* Whether a sign that may be held is at rest, but begins to slip against its own rate, since others slip, too. */
int slips_backwards(const struct modes *m, int64_t i);

/* Changes speeds in x by impulses of what holds alone, so that it stands still; ``inputs`` have the modes. UNSOLVED:
   others must. */
int stop_held_slips(struct equations *e, struct modes *m, const struct contacts *c, double t, double x[],
    const double inputs[], const double p[]);

/* Whether a held sign rubs on a motion that contacts hold: drift makes it slip. */
int drifts(const struct modes *m);

/* Changes speeds in x by what that drift makes of slip: the contacts may open now. As above. */
int remove_drift_slip(struct equations *e, struct modes *m, const struct contacts *c, double t, double x[],
    const double inputs[], const double p[]);

#endif
