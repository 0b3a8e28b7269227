/* floating_point.h: the host's floating-point environment, saved and given back; see floating_point.c. */
#ifndef MB2FMU_FLOATING_POINT_H
#define MB2FMU_FLOATING_POINT_H

#include "portability.h"

#if defined(__x86_64__) || defined(_M_X64)

typedef unsigned int mb2fmu_environment;

#elif defined(__aarch64__) && defined(__GNUC__)

typedef struct {
    unsigned long long control;
    unsigned long long status;
} mb2fmu_environment;

#else

#include <fenv.h>

typedef fenv_t mb2fmu_environment;

#endif

/* Saves the host's environment and computes in the FMU's own from here on. */
static void mb2fmu_environment_enter(mb2fmu_environment *host);

/* Gives the host's environment back. */
static void mb2fmu_environment_leave(const mb2fmu_environment *host);

#endif
