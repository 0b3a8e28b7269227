/* portability.h: the few words in which compilers differ, and what all of a unit's files need. */
#ifndef MB2FMU_PORTABILITY_H
#define MB2FMU_PORTABILITY_H

#include <math.h>

/* Parts of generated functions are named through this macro: where a huge model is cut into several translation units,
 * these names leave theirs and need a prefix of the unit. */
#ifndef MB2FMU_MODEL_FN
#define MB2FMU_MODEL_FN(name) mb2fmu_model_##name
#endif

/* Marks what a unit may leave unused: not every model has every function or table read. */
#if defined(__GNUC__)
#define MB2FMU_UNUSED __attribute__((unused))
#else
#define MB2FMU_UNUSED
#endif

/* Keeps parts of a long function apart: put together again they would cost a compiler more than linear time. */
#if defined(__GNUC__)
#define MB2FMU_NOINLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define MB2FMU_NOINLINE __declspec(noinline)
#else
#define MB2FMU_NOINLINE
#endif

/* No bound: a minimum of -MB2FMU_INFINITY, a maximum of MB2FMU_INFINITY; no start value: MB2FMU_NAN. */
#define MB2FMU_INFINITY ((double)INFINITY)
#define MB2FMU_NAN ((double)NAN)

#endif
