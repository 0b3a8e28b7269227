/* model.c: a unit of nothing but time, for tests: every size but one is 0. */
#include "model.h"

const mb2fmu_variable model_variables[MB2FMU_N_VARIABLES] = {
    {MB2FMU_SOURCE_TIME, MB2FMU_CAUSALITY_INDEPENDENT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_NONE, 0,
     MB2FMU_NAN, -MB2FMU_INFINITY, MB2FMU_INFINITY, 1.0, "time"},
};

static const char *model_failure(int failed)
{
    (void)failed;
    return "";
}

static size_t model_room(void)
{
    return 0;
}

static void model_start(mb2fmu_prepared *w, double room[])
{
    w->values = room;
    w->equations = 0; /* there is one variant only, and it is here */
}

static int model_prepare(const double p[], mb2fmu_prepared *w)
{
    (void)p, (void)w;
    return 0;
}

#define MB2FMU_NOTHING(function)                                                                         \
    static int function(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w, \
                        double y[])                                                                       \
    {                                                                                                     \
        (void)t, (void)x, (void)r, (void)p, (void)w, (void)y;                                             \
        return 0;                                                                                         \
    }

MB2FMU_NOTHING(model_rhs)
MB2FMU_NOTHING(model_position)
MB2FMU_NOTHING(model_velocity)
MB2FMU_NOTHING(model_acceleration)
MB2FMU_NOTHING(model_dependent_speeds)
MB2FMU_NOTHING(model_accelerations)

static int model_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double s[], double out[])
{
    (void)t, (void)x, (void)r, (void)p, (void)w, (void)s, (void)out;
    return 0;
}

static int model_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double bar[], double sbar[])
{
    (void)t, (void)x, (void)r, (void)p, (void)w, (void)bar;
    sbar[0] = 0.0;
    return 0;
}

static int model_jacobian(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                          double values[], double dfdt[])
{
    (void)t, (void)x, (void)r, (void)p, (void)w, (void)values, (void)dfdt;
    return 0;
}
