/* The mass matrix over all speeds, column by column. */
#ifndef MB2FMU_MASS_MATRIX_H
#define MB2FMU_MASS_MATRIX_H

#include "bodies.h"

/* Writes M row by row, shape (n_u, n_u); where everything is and how frames turn is found before. */
void mass_matrix(struct mechanism *s, double M[]);

#endif
