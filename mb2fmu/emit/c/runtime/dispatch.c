/* dispatch.c: the functions of model.h, through the table of equations for this processor (equations.h).
 *
 * MB2FMU_WITH_AVX2: there is a variant for AVX2; MB2FMU_WITH_FMA: it has fused multiply-adds as well (--fast). The
 * environment variable MB2FMU_AVX2=0 makes instances do without it: for tests of the promise that bits are the same.
 */
#include <stdlib.h>
#include <string.h>

#include "equations.h"
#include "model.h"
#include "processor.h"

#if defined(MB2FMU_WITH_AVX2) && defined(MB2FMU_CAN_ASK)

static const mb2fmu_equations *mb2fmu_equations_here(void)
{
    const char *const asked = getenv("MB2FMU_AVX2");
    if ((asked == NULL || strcmp(asked, "0") != 0) && mb2fmu_has_avx2()) {
        return &MB2FMU_UNIT(avx2_equations);
    }
    return &MB2FMU_UNIT(any_equations);
}

#else

static const mb2fmu_equations *mb2fmu_equations_here(void)
{
    return &MB2FMU_UNIT(any_equations);
}

#endif

static void model_start(mb2fmu_prepared *w)
{
    w->equations = mb2fmu_equations_here();
}

static int model_prepare(const double p[], mb2fmu_prepared *w)
{
    return w->equations->prepare(p, w->values, w->work);
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

#if MB2FMU_N_INITIALIZED > 0
MB2FMU_EVALUATION(initialize)

static int model_initialize_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                                    const double s[], double out[])
{
    return w->equations->initialize_tangent(t, x, r, p, w->values, w->work, s, out);
}

#ifndef MB2FMU_WITHOUT_ADJOINT
static int model_initialize_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                                    const double bar[], double sbar[])
{
    return w->equations->initialize_adjoint(t, x, r, p, w->values, w->work, bar, sbar);
}
#endif
#endif

static int model_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double s[], double out[])
{
    return w->equations->tangent(t, x, r, p, w->values, w->work, s, out);
}

#ifndef MB2FMU_WITHOUT_ADJOINT
static int model_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double bar[], double sbar[])
{
    return w->equations->adjoint(t, x, r, p, w->values, w->work, bar, sbar);
}
#endif

static int model_jacobian(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                          double values[], double dfdt[])
{
    return w->equations->jacobian(t, x, r, p, w->values, w->work, values, dfdt);
}
