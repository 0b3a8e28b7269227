/* What impacts and changes of modes do to contacts at one instant, by the reference's own laws.

   What HybridEquations, impact_impulses.py and contact_friction_modes.py do in NumPy, where no latch holds
   anything: an impulse changes rates by what a force changes second rates by, which is found by trying each force. */
#ifndef MB2FMU_REFERENCE_CONTACTS_H
#define MB2FMU_REFERENCE_CONTACTS_H

#include "modes.h"

struct contacts {
    int64_t count;            /* k */
    int64_t frictions;        /* f; n = k + f lines: normals, then tangents */
    int64_t sequential;       /* 1: impacts follow one another; 0: all at once */
    int64_t first;            /* output: the first of seven quantities of contacts; five of friction follow */
    const int64_t *rough;     /* contact of each friction, shape (f,) */
    const int64_t *poisson;   /* 1: Poisson's law of restitution, 0: Newton's, shape (k,) */
    const int64_t *resting;   /* states, shape (k,) */
    const int64_t *sliding;   /* states, shape (f,) */
    const int64_t *impacts;   /* states that count impacts, shape (k,); NULL without friction */
    int64_t changes;          /* state that counts changes of modes, with friction */
};

/* Adds what holds at the states x to the held inputs: contacts that rest, and of these what sticks. */
void hold_contacts(struct modes *m, const struct contacts *c, const double x[]);

/* The rate of a gap or slip by the outputs of this instant; normals come first, then tangents. */
double speed_of_line(const struct modes *m, const struct contacts *c, int64_t line);

/* Sets the inputs behind the forces in m->r to the results of contacts at this instant; the inputs are without forces,
   and those in m->r hold what rests, and signs. ``hit``: there is an impact; ``change``: modes of friction change. UNSOLVED: others
   must find them; m->r has changed then. */
EXPORTED int reference_contact_results(struct equations *e, struct modes *m, const struct contacts *c, double t, const double x[],
    const double inputs[], const double p[], int hit, int change);

#endif
