/* lookup.c: evaluation of lookup tables (lookup.h). */
#include "lookup.h"

/* The piece that holds x, by bisection; NaN takes the first. */
static int mb2fmu_lookup_piece(const mb2fmu_table *table, double x)
{
    int low = 0;
    int high = table->pieces - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (table->breaks[middle] <= x) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static double mb2fmu_lookup(const mb2fmu_table *table, double x)
{
    const int piece = mb2fmu_lookup_piece(table, x);
    const double *coefficient = table->coefficients + piece * table->terms;
    const double h = x - table->breaks[piece];
    double total = 0.0;
    for (int k = 0; k < table->terms; k++) {
        total = total * h + coefficient[k];
    }
    return total;
}
