/* Contact problems at one instant: which contacts press, stick and slide, by trying all modes.

   What contact_friction_modes.py does in NumPy, done once more in C. Unknown are the normal forces N of all contacts, then
   the tangential ones T of those with friction; all vectors and the rows and columns of W are in this order. */
#ifndef MB2FMU_REFERENCE_CONTACT_MODES_H
#define MB2FMU_REFERENCE_CONTACT_MODES_H

#include <stdint.h>

/* y = q + W (N, T) */
struct contact_problem {
    int64_t contacts;         /* k */
    int64_t frictions;        /* f; n = k + f */
    const int64_t *rough;     /* contact of each friction, shape (f,) */
    const double *W;          /* row by row, shape (n, n) */
    const double *q;          /* shape (n,) */
    const double *mu;         /* shape (f,) */
    const double *minimum;    /* smallest N, shape (k,) */
    const double *known;      /* senses of slip that are known, shape (f,); 0 of others */
    const int64_t *present;   /* which contacts take part, shape (k,) */
};

/* Modes of all contacts: 1 and 0; senses of slip are 1, -1, and 0 of what sticks or is open. */
struct contact_modes {
    int64_t *pressed; /* shape (k,) */
    int64_t *stuck;   /* shape (f,) */
    double *senses;   /* shape (f,) */
};

struct contact_solution {
    struct contact_modes modes;
    double *forces; /* (N, T), shape (n,) */
    double *y;      /* shape (n,) */
};

/* Numbers and integers that the functions below work with, for n rows. */
#define CONTACT_NUMBERS(n) ((n) * (n) + 8 * (n))
#define CONTACT_INTEGERS(n) (3 * (n))

/* Forces and y in given modes, of least norm. */
void solve_in_modes(const struct contact_problem *c, const struct contact_modes *modes, double forces[], double y[],
    double numbers[], int64_t integers[]);

/* The modes that fit Coulomb's law best, except ``excluded`` (pressed, senses), which may be NULL. UNSOLVED: none does,
   another motion does, too, or there are too many. */
int find_contact_modes(const struct contact_problem *c, const struct contact_modes *excluded,
    struct contact_solution *found, double numbers[], int64_t integers[]);

#endif
