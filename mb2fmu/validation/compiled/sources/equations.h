/* The reference's equations as functions of numbers; the state is x = (q, independent u, z).

   What NumericEquations does in NumPy (numeric.py), done once more in C. */
#ifndef MB2FMU_REFERENCE_EQUATIONS_H
#define MB2FMU_REFERENCE_EQUATIONS_H

#include "dense.h"

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

enum status {
    OK = 0,
    SINGULAR = 1,
    ASTRAY = 2,
    VANISHING = 3,
    SPENT = 4,
    NO_MEMORY = 5,
    CROSSED = 6,
    UNSOLVED = 7,
    EVENT = 8
};

/* Reads and fills slots v; other results go to ``results``. */
typedef void (*function_of_slots)(double v[], double results[]);

/* n > 0: the results are an n × n matrix and n × k right-hand sides; the solution goes to v[first], v[first + 1], ... */
struct step {
    function_of_slots function;
    int64_t n;
    int64_t k;
    int64_t first;
    int64_t name; /* what ``singular`` becomes if the matrix is singular */
};

struct plan {
    const struct step *steps;
    int64_t count;
};

struct mechanism;

struct equations {
    int64_t n_q;
    int64_t n_u;
    int64_t n_z;
    int64_t n_r;
    int64_t n_p;
    int64_t n_y;
    int64_t n_phi;
    int64_t m;             /* velocity constraints */
    int64_t rows;          /* of the mass matrix */
    int64_t n_independent; /* speeds that are states */
    int64_t size;          /* slots */
    int64_t u_dot;         /* the first slot of u' */
    int64_t multipliers;   /* the first slot of lambda; -1 if nobody asks */
    int64_t largest;       /* number of results of any step */
    const int64_t *independent;
    const int64_t *dependent;
    const double *typical;  /* magnitude of each coordinate, then of each speed, > 0 */
    struct plan holonomic;  /* phi */
    struct plan slopes;     /* d phi / dq, row by row */
    struct plan constraints; /* A row by row, b */
    struct plan dynamics;   /* q', M row by row, f, gamma */
    struct plan late;       /* z', power */
    struct plan kinetic;
    struct plan outputs;
    struct mechanism *mechanism; /* NULL, or what the dynamics are evaluated from instead of the plan */
    function_of_slots unrolled; /* NULL, or the mechanism's q', M, f, z', power at once, where m = 0 */
    int64_t singular;       /* which matrix was, after SINGULAR: 0 dependent speeds, 1 accelerations, or a step's */
    /* From here on private. */
    double *memory;
    double *v;
    double *results;
    double *rates; /* A, b */
    double *numbers; /* q', M, f, gamma */
    double *a;
    double *b;
    double *vector;
    struct orthogonal constraints_turned;
    struct orthogonal least_norm;
};

/* Everything at one instant; arrays of the caller, NULL where it is not wanted. */
struct motion {
    double *u;        /* shape (n_u,) */
    double *x_dot;    /* shape (n_x,) */
    double *power;    /* W */
    double *kinetic;  /* J */
    double *outputs;  /* shape (n_y,) */
    double *residual; /* phi, A u + b, shape (n_phi + m,) */
};

static inline int64_t states_of(const struct equations *e) { return e->n_q + e->n_independent + e->n_z; }

/* Memory, once, before all that follows; returns NO_MEMORY or OK. */
EXPORTED int reference_begin(struct equations *e);
EXPORTED void reference_end(struct equations *e);

/* Everything at one instant; p: free and calculated parameters. */
EXPORTED int reference_motion(
    struct equations *e, double t, const double x[], const double r[], const double p[], struct motion *motion);

/* Everything at `count` instants: t, and rows of x, r and of all that `first` points to. Returns at the first instant that
   fails, which is then `*done`. */
EXPORTED int reference_motions(struct equations *e, int64_t count, const double t[], const double x[], const double r[],
    const double p[], const struct motion *first, int64_t *done);

/* x' and outputs with one input after the other at another value, all else as in r, which is as before in the end. */
EXPORTED int reference_responses(struct equations *e, double t, const double x[], double r[], const double p[],
    int64_t count, const int64_t inputs[], const double values[], double x_dots[], double outputs[]);

/* x' and the power of all loads at `count` instants t; y and slopes hold a row (x, W) for each. Returns at the first
   instant that fails, which is then `*done`. */
EXPORTED int reference_slopes(struct equations *e, int64_t count, const double t[], const double y[], const double r[],
    const double p[], double slopes[], int64_t *done);

/* phi, A u + b for given speeds, dependent ones included, at `count` points: each a row (t, q, u, z, r). */
EXPORTED int reference_residuals(
    struct equations *e, int64_t count, const double points[], const double p[], double residuals[]);

/* Moves x onto the constraints: unit quaternions, then coordinates and speeds. */
EXPORTED int reference_project(
    struct equations *e, double t, double x[], const double r[], const double p[]);

/* Evaluates a plan at the slots that it is given; for parameters and tests. */
EXPORTED int reference_plan(struct equations *e, const struct plan *plan, double v[], double results[]);

#endif
