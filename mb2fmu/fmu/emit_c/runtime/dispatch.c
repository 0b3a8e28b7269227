/* dispatch.c: the functions of model.h, through the tables of equations for this processor (equations.h).
 *
 * MB2FMU_WITH_AVX2: there is a variant for AVX2; MB2FMU_WITH_FMA: it has fused multiply-adds as well (--fast).
 * MB2FMU_WITHOUT_VARIANTS, of test builds: instances do without it, to try the promise that bits are the same.
 */
#include <stddef.h>

#include "equations.h"
#include "model.h"
#include "processor.h"

#if defined(MB2FMU_WITH_AVX2) && defined(MB2FMU_CAN_ASK)

static void mb2fmu_choose(mb2fmu_prepared *w)
{
#ifdef MB2FMU_WITHOUT_VARIANTS
    const int avx2 = 0;
#else
    const int avx2 = mb2fmu_has_avx2();
#endif
    w->equations = avx2 ? &MB2FMU_UNIT(avx2_equations) : &MB2FMU_UNIT(any_equations);
}

#else

static void mb2fmu_choose(mb2fmu_prepared *w)
{
    w->equations = &MB2FMU_UNIT(any_equations);
}

#endif

static size_t model_room(void)
{
    return (size_t)MB2FMU_UNIT(any_derivatives).values + (size_t)MB2FMU_UNIT(any_derivatives).work;
}

static void model_start(mb2fmu_prepared *w, double room[])
{
    mb2fmu_choose(w);
    w->derivatives = &MB2FMU_UNIT(any_derivatives);
    w->values = room;
    w->work = room + w->derivatives->values;
}

static const char *model_failure(int failed)
{
    const mb2fmu_derivatives *const known = &MB2FMU_UNIT(any_derivatives);
    return failed > 0 && failed <= known->n_failures ? known->failures[failed - 1] : "a matrix is singular";
}

static int model_prepare(const double p[], mb2fmu_prepared *w)
{
    const int failed = w->equations->prepare(p, w->values, w->work);
    return failed != 0 ? failed : w->derivatives->prepare(p, w->values, w->work);
}

#define MB2FMU_EVALUATION(name)                                                                                        \
    static int model_##name(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,        \
                            double y[])                                                                                \
    {                                                                                                                  \
        return w->equations->name(t, x, r, p, w->values, w->work, y);                                                  \
    }

MB2FMU_EVALUATION(rhs)
MB2FMU_EVALUATION(position)
MB2FMU_EVALUATION(velocity)
MB2FMU_EVALUATION(acceleration)
MB2FMU_EVALUATION(dependent_speeds)
MB2FMU_EVALUATION(accelerations)
#if MB2FMU_N_PROJECTED > 0
MB2FMU_EVALUATION(project)
#endif
#if MB2FMU_N_MEMORY > 0
MB2FMU_EVALUATION(remember)
#endif
#if MB2FMU_N_MODES > 0
MB2FMU_EVALUATION(indicators)
MB2FMU_EVALUATION(surfaces)
MB2FMU_EVALUATION(event)
#endif
#if MB2FMU_N_TIMED > 0
MB2FMU_EVALUATION(next_time_event)
#endif

#if MB2FMU_N_INITIALIZED > 0
static int model_initialize(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                            double y[])
{
    return w->derivatives->initialize(t, x, r, p, w->values, w->work, y);
}

static int model_initialize_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                                    const double s[], double out[])
{
    return w->derivatives->initialize_tangent(t, x, r, p, w->values, w->work, s, out);
}

#ifndef MB2FMU_WITHOUT_ADJOINT
static int model_initialize_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                                    const double bar[], double sbar[])
{
    return w->derivatives->initialize_adjoint(t, x, r, p, w->values, w->work, bar, sbar);
}
#endif
#endif

static int model_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double s[], double out[])
{
    return w->derivatives->tangent(t, x, r, p, w->values, w->work, s, out);
}

#ifndef MB2FMU_WITHOUT_ADJOINT
static int model_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double bar[], double sbar[])
{
    return w->derivatives->adjoint(t, x, r, p, w->values, w->work, bar, sbar);
}
#endif

static int model_jacobian(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                          double values[], double dfdt[])
{
    return w->derivatives->jacobian(t, x, r, p, w->values, w->work, values, dfdt);
}
