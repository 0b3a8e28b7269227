/* arrays_fmi3.c: FMI 3 arrays. An array is a value reference with several values; its elements are rows of the table of
 * variables of their own, so that nothing but this file, and the functions of FMI 3 that use it, knows of arrays. */
#include "protocol.h"

/* Rows of the table of variables, one per value. */
typedef struct {
    const unsigned *all;
    size_t n;
    unsigned *own; /* to be given back; NULL where the importer's list has all */
} mb2fmu_rows;

#if MB2FMU_N_ARRAYS > 0
/* The array of that value reference, or NULL. */
static const mb2fmu_array *mb2fmu_array_of(unsigned reference)
{
    int low = 0, high = MB2FMU_N_ARRAYS;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (model_arrays[middle].reference < reference) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < MB2FMU_N_ARRAYS && model_arrays[low].reference == reference ? &model_arrays[low] : NULL;
}
#endif

/* How many values a value reference has; 1 where there is no such variable, which is told later. */
static size_t mb2fmu_values_of(unsigned reference)
{
#if MB2FMU_N_ARRAYS > 0
    const mb2fmu_array *const array = mb2fmu_array_of(reference);
    return array == NULL ? 1 : array->size;
#else
    (void)reference;
    return 1;
#endif
}

/* Whether a variable has this value reference: elements of arrays have none but the first, which is the array's. */
static int mb2fmu_is_variable(unsigned reference)
{
#if MB2FMU_N_ARRAYS > 0
    if (reference >= model_arrays[0].reference && mb2fmu_array_of(reference) == NULL) {
        return 0;
    }
#endif
    return reference < (unsigned)MB2FMU_N_VARIABLES;
}

#if MB2FMU_N_ARRAYS > 0
/* Arrays element by element. */
static int mb2fmu_spread(mb2fmu_instance *instance, const unsigned references[], size_t n, mb2fmu_rows *rows)
{
    size_t i, k = 0;
    rows->own = (unsigned *)MB2FMU_CALLOC(rows->n, sizeof *rows->own);
    if (rows->own == NULL) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "there is no memory for %zu value references", rows->n);
        return 0;
    }
    for (i = 0; i < n; ++i) {
        const size_t size = mb2fmu_values_of(references[i]);
        size_t j;
        for (j = 0; j < size; ++j) {
            rows->own[k++] = references[i] + (unsigned)j;
        }
    }
    rows->all = rows->own;
    return 1;
}
#endif

/* The rows that the importer names; they need as many values as it has. 0 and a message if it has not. After 1 they are
 * to be given back. */
static int mb2fmu_rows_of(mb2fmu_instance *instance, const unsigned references[], size_t n, size_t n_values,
                          mb2fmu_rows *rows)
{
    size_t i;
    rows->all = references;
    rows->n = n;
    rows->own = NULL;
    for (i = 0; references != NULL && i < n; ++i) {
        if (!mb2fmu_is_variable(references[i])) {
            (void)mb2fmu_fail(instance, MB2FMU_ERROR, "no real variable has the value reference %u", references[i]);
            return 0;
        }
        rows->n += mb2fmu_values_of(references[i]) - 1;
    }
    if (rows->n != n_values) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR,
                          "%zu value references have %zu values together, but %zu values are given", n, rows->n,
                          n_values);
        return 0;
    }
#if MB2FMU_N_ARRAYS > 0
    return rows->n == n || mb2fmu_spread(instance, references, n, rows); /* an array of one element is its row */
#else
    return 1;
#endif
}

static void mb2fmu_rows_free(mb2fmu_rows *rows)
{
    MB2FMU_FREE(rows->own);
}
