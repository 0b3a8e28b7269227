/* model.h: what the generated model (model_config.h, model.c) offers to the fixed part of a unit.
 *
 * Why it exists: this is the only meeting point of generated and fixed code. The runtime is written against these
 * declarations; the printer (fmu/emit_c/equations_c_source.py) writes definitions for them. Functions have internal linkage; the tables
 * (model.c) are a translation unit of their own, with hidden names of this unit, so that several FMUs can live in one
 * process or one executable. The equations behind it are translation units, too (equations*.c, derived*.c), those of x'
 * compiled once more for processors with AVX2: what links them is equations.h. Nothing here depends on how they are
 * printed: unit.c can be compiled while they are, and what it is compiled to suits every unit of the same sizes.
 *
 * Sizes come from model_config.h; any but MB2FMU_N_VARIABLES may be 0, so arrays are declared with MB2FMU_SIZE(n):
 *   MB2FMU_N_STATES           x = (q, independent u, z)
 *   MB2FMU_N_COORDINATES      the first of them: q
 *   MB2FMU_N_INPUTS           r
 *   MB2FMU_N_PARAMETERS       p, free parameters only
 *   MB2FMU_N_CALCULATED       calculated parameters
 *   MB2FMU_N_POSITION         outputs that need q and t
 *   MB2FMU_N_VELOCITY         outputs that need u too
 *   MB2FMU_N_ACCELERATION     outputs that need u' or constraint forces
 *   MB2FMU_N_DEPENDENT_SPEEDS speeds that follow from velocity constraints
 *   MB2FMU_N_ACCELERATIONS    u' of all speeds
 *   MB2FMU_N_PROJECTED        the first states, which constraints attract; may be left out if there are none
 *   MB2FMU_N_MEMORY           what is remembered from one accepted step to the next; may be left out if there is none
 *   MB2FMU_N_MODES            of them the modes of switches, then of conditions; may be left out if there are none
 *   MB2FMU_N_INDICATORS       switches, each with a margin
 *   MB2FMU_N_TIMED            of them those that look at time alone; may be left out if there are none
 *   MB2FMU_N_VARIABLES        rows of the table of variables; a value reference is a place in it, 0 may be none
 * and besides
 *   MB2FMU_FMI                2 or 3
 *   MB2FMU_WITHOUT_ADJOINT    defined where there are no adjoint derivatives: FMI 2.0 cannot ask for them
 *   MB2FMU_UNIT(name)         `name` as it can be seen outside of a translation unit
 *   MB2FMU_TOKEN, MB2FMU_DEFAULT_SOLVER, MB2FMU_DEFAULT_TOLERANCE, MB2FMU_DEFAULT_INTERNAL_STEP, MB2FMU_DEFAULT_START
 *                             what mb2fmu_settings says
 */
#ifndef MB2FMU_MODEL_H
#define MB2FMU_MODEL_H

#include <stddef.h>

#include "model_tables.h"
#include "portability.h"

/* C has no arrays of no elements. */
#define MB2FMU_SIZE(n) ((n) > 0 ? (n) : 1)

/* --- sizes that follow ------------------------------------------------------------------------------------------- */

/* The vector of seeds: [t, x.., r.., p..] (p: free parameters). */
#define MB2FMU_SEED_TIME 0
#define MB2FMU_SEED_STATES 1
#define MB2FMU_SEED_INPUTS (MB2FMU_SEED_STATES + MB2FMU_N_STATES)
#define MB2FMU_SEED_PARAMETERS (MB2FMU_SEED_INPUTS + MB2FMU_N_INPUTS)
#define MB2FMU_N_SEEDS (MB2FMU_SEED_PARAMETERS + MB2FMU_N_PARAMETERS)

/* The vector of results: [dx.., position.., velocity.., acceleration.., dependent_speeds.., accelerations..,
 * calculated..]. */
#define MB2FMU_OUT_DERIVATIVES 0
#define MB2FMU_OUT_POSITION (MB2FMU_OUT_DERIVATIVES + MB2FMU_N_STATES)
#define MB2FMU_OUT_VELOCITY (MB2FMU_OUT_POSITION + MB2FMU_N_POSITION)
#define MB2FMU_OUT_ACCELERATION (MB2FMU_OUT_VELOCITY + MB2FMU_N_VELOCITY)
#define MB2FMU_OUT_DEPENDENT_SPEEDS (MB2FMU_OUT_ACCELERATION + MB2FMU_N_ACCELERATION)
#define MB2FMU_OUT_ACCELERATIONS (MB2FMU_OUT_DEPENDENT_SPEEDS + MB2FMU_N_DEPENDENT_SPEEDS)
#define MB2FMU_OUT_CALCULATED (MB2FMU_OUT_ACCELERATIONS + MB2FMU_N_ACCELERATIONS)
#define MB2FMU_N_OUT (MB2FMU_OUT_CALCULATED + MB2FMU_N_CALCULATED)

/* --- memory ------------------------------------------------------------------------------------------------------- */

struct mb2fmu_equations;
struct mb2fmu_derivatives;

/* What the functions of one instance need besides their arguments, from model_start on. Intermediate values of large
 * models are here and not on the stack, which hosts may keep small. */
typedef struct {
    const struct mb2fmu_equations *equations;     /* the variants for this processor */
    const struct mb2fmu_derivatives *derivatives;
    double *values; /* calculated parameters, then memory, then what else model_prepare made of p */
    double *work;   /* scratch: nothing in it outlasts a call */
} mb2fmu_prepared;

/* Doubles that an instance has room for, on behalf of the functions. */
MB2FMU_UNUSED static size_t model_room(void);

/* Chooses the variant of the equations for this processor; before anything else. */
MB2FMU_UNUSED static void model_start(mb2fmu_prepared *w, double room[]);

/* --- functions ---------------------------------------------------------------------------------------------------
 *
 * Every function returns 0, or k > 0: solve number k failed (a matrix is singular or not finite, or an iteration finds
 * no solution), as model_failure(k) says; what was written is then of no use. No function keeps anything between
 * calls, and one w serves one call at a time. No array that is read may overlap one that is written. Values that
 * arithmetic does not define come out as inf or NaN.
 *   t  time in s                 x  states          r  inputs
 *   p  free parameters           w  what model_prepare made of this p
 */

/* Everything that depends on parameters only. */
MB2FMU_UNUSED static int model_prepare(const double p[], mb2fmu_prepared *w);

/* dx = x' */
MB2FMU_UNUSED static int model_rhs(double t, const double x[], const double r[], const double p[],
                                   mb2fmu_prepared *w, double dx[]);

/* Outputs by the level they need, dependent speeds and u' of all speeds; each evaluates no more than it must. */
MB2FMU_UNUSED static int model_position(double t, const double x[], const double r[], const double p[],
                                        mb2fmu_prepared *w, double y[]);
MB2FMU_UNUSED static int model_velocity(double t, const double x[], const double r[], const double p[],
                                        mb2fmu_prepared *w, double y[]);
MB2FMU_UNUSED static int model_acceleration(double t, const double x[], const double r[], const double p[],
                                            mb2fmu_prepared *w, double y[]);
MB2FMU_UNUSED static int model_dependent_speeds(double t, const double x[], const double r[],
                                                const double p[], mb2fmu_prepared *w, double y[]);
MB2FMU_UNUSED static int model_accelerations(double t, const double x[], const double r[], const double p[],
                                             mb2fmu_prepared *w, double y[]);

/* Where constraints attract the states: the first MB2FMU_N_PROJECTED of them, on the constraints. */
#ifndef MB2FMU_N_PROJECTED
#define MB2FMU_N_PROJECTED 0
#endif
#if MB2FMU_N_PROJECTED > 0
MB2FMU_UNUSED static int model_project(double t, const double x[], const double r[], const double p[],
                                       mb2fmu_prepared *w, double y[]);
#endif

/* Where something is remembered: the memory after a step that was accepted, and that to begin with. Between accepted
 * steps it does not change, and it is part of the state. */
#if MB2FMU_N_MEMORY > 0
MB2FMU_UNUSED static int model_remember(double t, const double x[], const double r[], const double p[],
                                        mb2fmu_prepared *w, double y[]);
#endif

/* Where something switches (events.h): margins, which are positive as long as the modes are right; what switches look
 * at, then the factor by which each that is held is held; all states after an event, then whether conditions hold. */
#if MB2FMU_N_MODES > 0
MB2FMU_UNUSED static int model_indicators(double t, const double x[], const double r[], const double p[],
                                          mb2fmu_prepared *w, double y[]);
MB2FMU_UNUSED static int model_surfaces(double t, const double x[], const double r[], const double p[],
                                        mb2fmu_prepared *w, double y[]);
MB2FMU_UNUSED static int model_event(double t, const double x[], const double r[], const double p[],
                                     mb2fmu_prepared *w, double y[]);
#endif

/* When each switch of time alone changes next, in its present mode; infinity where it does not. */
#if MB2FMU_N_TIMED > 0
MB2FMU_UNUSED static int model_next_time_event(double t, const double x[], const double r[], const double p[],
                                               mb2fmu_prepared *w, double y[]);
#endif

/* Where start values are solved for: all states as the simulation begins with them, x those that were set; and the
 * derivatives of that. MB2FMU_N_INITIALIZED is then the number of states. */
#ifndef MB2FMU_N_INITIALIZED
#define MB2FMU_N_INITIALIZED 0
#endif
#if MB2FMU_N_INITIALIZED > 0
MB2FMU_UNUSED static int model_initialize(double t, const double x[], const double r[], const double p[],
                                          mb2fmu_prepared *w, double y[]);
MB2FMU_UNUSED static int model_initialize_tangent(double t, const double x[], const double r[], const double p[],
                                                  mb2fmu_prepared *w, const double s[], double out[]);
#ifndef MB2FMU_WITHOUT_ADJOINT
MB2FMU_UNUSED static int model_initialize_adjoint(double t, const double x[], const double r[], const double p[],
                                                  mb2fmu_prepared *w, const double bar[], double sbar[]);
#endif
#endif

/* Derivative of all results in the direction s, both in the orders above; that p also acts through w is included. */
MB2FMU_UNUSED static int model_tangent(double t, const double x[], const double r[], const double p[],
                                       mb2fmu_prepared *w, const double s[], double out[]);

/* The transposed: bar are weights of all results; sbar is the gradient of sum(bar[i] out[i]) in the order of seeds. */
#ifndef MB2FMU_WITHOUT_ADJOINT
MB2FMU_UNUSED static int model_adjoint(double t, const double x[], const double r[], const double p[],
                                       mb2fmu_prepared *w, const double bar[], double sbar[]);
#endif

/* values[i * MB2FMU_N_STATES + j] = d dx[i] / d x[j], where that can be other than 0: elsewhere nothing is written;
 * dfdt[i] = partial d dx[i]/d t, size MB2FMU_N_STATES. */
MB2FMU_UNUSED static int model_jacobian(double t, const double x[], const double r[], const double p[],
                                        mb2fmu_prepared *w, double values[], double dfdt[]);

/* What is wrong when solve number `failed` fails, a clause in UTF-8, for messages; a general one for other numbers. */
MB2FMU_UNUSED static const char *model_failure(int failed);

#endif
