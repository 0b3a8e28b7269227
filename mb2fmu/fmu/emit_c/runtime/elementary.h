/* elementary.h: elementary functions with the same bits on every platform and processor.
 *
 * Why own ones: the motion of an FMU shall not depend on whose mathematics library it runs with (different libraries
 * move a double pendulum 1e-10 apart after 20 s). Only +, -, *, / and the square root are used, which IEEE 754 defines
 * to the last bit, and integer arithmetic; compile with -ffp-contract=off and without anything like -ffast-math.
 * Measured errors stand in elementary.c. Special values are those of C99, Annex F; the flags of the floating-point
 * environment and errno are no part of the promise. The rounding mode is to nearest.
 */
#ifndef MB2FMU_ELEMENTARY_H
#define MB2FMU_ELEMENTARY_H

#include "portability.h"

MB2FMU_UNUSED static double mb2fmu_sin(double x);
MB2FMU_UNUSED static double mb2fmu_cos(double x);
MB2FMU_UNUSED static double mb2fmu_tan(double x);
MB2FMU_UNUSED static double mb2fmu_asin(double x);
MB2FMU_UNUSED static double mb2fmu_acos(double x);
MB2FMU_UNUSED static double mb2fmu_atan(double x);
MB2FMU_UNUSED static double mb2fmu_atan2(double y, double x);
MB2FMU_UNUSED static double mb2fmu_exp(double x);
MB2FMU_UNUSED static double mb2fmu_log(double x);
MB2FMU_UNUSED static double mb2fmu_pow(double x, double y);
MB2FMU_UNUSED static double mb2fmu_sinh(double x);
MB2FMU_UNUSED static double mb2fmu_cosh(double x);
MB2FMU_UNUSED static double mb2fmu_tanh(double x);
MB2FMU_UNUSED static double mb2fmu_asinh(double x);
MB2FMU_UNUSED static double mb2fmu_acosh(double x);
MB2FMU_UNUSED static double mb2fmu_atanh(double x);
MB2FMU_UNUSED static double mb2fmu_erf(double x);
MB2FMU_UNUSED static double mb2fmu_floor(double x);
MB2FMU_UNUSED static double mb2fmu_ceil(double x);

/* The smaller and the larger of two; NaN if the first is NaN; the second if neither is smaller. */
MB2FMU_UNUSED static double mb2fmu_min(double a, double b);
MB2FMU_UNUSED static double mb2fmu_max(double a, double b);

/* -1, 1, or what it was given if that is zero or NaN. */
MB2FMU_UNUSED static double mb2fmu_sign(double x);

/* Both functions of one angle, and of n angles, with the bits of mb2fmu_sin and mb2fmu_cos. */
MB2FMU_UNUSED static void mb2fmu_sincos(double x, double *sine, double *cosine);
MB2FMU_UNUSED static void mb2fmu_sincos_each(int n, const double x[], double sine[], double cosine[]);

#endif
