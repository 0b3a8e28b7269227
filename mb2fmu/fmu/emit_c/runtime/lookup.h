/* lookup.h: lookup tables, piecewise polynomials of one variable.
 *
 * On [breaks[i], breaks[i + 1]) the value is sum_k coefficient(i, k) (x - breaks[i])^k, evaluated by Horner's scheme;
 * outside of the breaks the first and last pieces go on.
 */
#ifndef MB2FMU_LOOKUP_H
#define MB2FMU_LOOKUP_H

#include "portability.h"

typedef struct {
    int pieces;
    int terms;                  /* of each piece's polynomial */
    const double *breaks;       /* pieces + 1, growing */
    const double *coefficients; /* piece by piece, from the highest power down */
} mb2fmu_table;

MB2FMU_UNUSED static double mb2fmu_lookup(const mb2fmu_table *table, double x);

#endif
