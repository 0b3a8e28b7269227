/* What an event does in equations without latches: modes change, friction holds or slips, events of the model and impacts
   set states. */
#ifndef MB2FMU_REFERENCE_SETTLING_H
#define MB2FMU_REFERENCE_SETTLING_H

#include "contacts.h"
#include "solver.h"

/* What an event is: bits. Deferred ones follow the model's own of the same instant. */
enum event_role { OF_CONTACT = 1, DEFERRED = 2, IMPACT = 4, FRICTION = 8 };

struct settling {
    int64_t events;         /* of the model */
    int64_t conditions;     /* output: the first of their conditions; the values that they set follow these */
    int64_t knows_impacts;  /* 1: conditions depend on what impacts at their instant bring about */
    const struct contacts *contacts; /* NULL: there are none */
    const int64_t *roles;   /* shape (events,) */
    const int64_t *begin;   /* where the values of each event begin, shape (events + 1,) */
    const int64_t *sets;    /* how many states each event sets, shape (events,) */
    const int64_t *targets; /* state that each value sets, shape (begin[events],) */
    double longest;         /* longest step, s */
    double instant;         /* time within which events count as simultaneous, s */
    int64_t left;           /* how many more events there may be. Changes, as all below */
    double *values;         /* modes, shape (switches,): those of ``struct modes`` */
    double *inputs;         /* of the journey, shape (n_r,): the modes are among them */
    double *past;           /* conditions before, shape (events,) */
    double last;            /* time of the last event, s */
    double since;           /* time of the first of simultaneous events, s, and their number */
    int64_t simultaneous;
    int64_t capacity;       /* how many records there is room for; 0: none are kept */
    int64_t count;          /* of records */
    double *records;        /* of each: time, switch, event of the model or -1, whether round-off made it; then, before
                               and after, modes, conditions and y */
    double *spare;          /* shape (3 switches + events + 3 n,), with n numbers of y */
};

/* Settles the event at t, s, whose margins are in ``seen``. UNSOLVED: nothing has changed, others must settle it. */
int settle_event(struct solver *s, struct settling *g, double t);

/* What settles the switch ``first`` at t, s, for one who has found that it is due: y, modes and conditions become those
   after it. UNSOLVED: others must; they may have changed then. */
EXPORTED int reference_settle(struct equations *e, struct journey *j, double t, int64_t first, double y[]);

#endif
