/* portability.h: the few words in which compilers differ, and what all of an FMU's files need. */
#ifndef MB2FMU_PORTABILITY_H
#define MB2FMU_PORTABILITY_H

#include <math.h>

/* Names that leave their translation unit, but not the library. */
#if defined(__GNUC__) && !defined(_WIN32)
#define MB2FMU_HIDDEN __attribute__((visibility("hidden")))
#else
#define MB2FMU_HIDDEN
#endif

/* Marks what an FMU may leave unused: not every model has every function or table read. */
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
