/* stateless.c: the solvers around a model without states, inputs and linear solves: y = t. A program. */
#define MB2FMU_N_STATES 0
#define MB2FMU_N_COORDINATES 0
#define MB2FMU_N_INPUTS 0
#define MB2FMU_N_PARAMETERS 0
#define MB2FMU_N_CALCULATED 0
#define MB2FMU_N_POSITION 1
#define MB2FMU_N_VELOCITY 0
#define MB2FMU_N_ACCELERATION 0
#define MB2FMU_N_DEPENDENT_SPEEDS 0
#define MB2FMU_N_ACCELERATIONS 0
#define MB2FMU_N_VARIABLES 1
#define MB2FMU_DEFAULT_SOLVER 1
#define MB2FMU_DEFAULT_TOLERANCE 1e-6

#include "solver.h"

const mb2fmu_variable model_variables[1] = {{MB2FMU_SOURCE_TIME, 0, 0, 0, 0, 0.0, 0.0, 0.0, 1.0, "time"}};
static const char *model_failure(int failed)
{
    (void)failed;
    return "none";
}

#define LEVEL(name, value)                                                                               \
    static int name(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,    \
                    double y[])                                                                          \
    {                                                                                                    \
        (void)t, (void)x, (void)r, (void)p, (void)w;                                                     \
        y[0] = (value);                                                                                  \
        return 0;                                                                                        \
    }

LEVEL(model_rhs, 0.0)
LEVEL(model_position, t)
LEVEL(model_velocity, 0.0)
LEVEL(model_acceleration, 0.0)
LEVEL(model_dependent_speeds, 0.0)
LEVEL(model_accelerations, 0.0)

static size_t model_room(void)
{
    return 1;
}

static void model_start(mb2fmu_prepared *w, double room[])
{
    w->equations = 0;
    w->values = room;
}

static int model_prepare(const double p[], mb2fmu_prepared *w)
{
    w->values[0] = p[0];
    return 0;
}

static int model_jacobian(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                          double values[], double dfdt[])
{
    (void)values;
    return model_rhs(t, x, r, p, w, dfdt);
}

static int model_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double s[], double out[])
{
    (void)t, (void)x, (void)r, (void)p, (void)w;
    out[0] = s[0];
    return 0;
}

static int model_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double bar[], double sbar[])
{
    return model_tangent(t, x, r, p, w, bar, sbar);
}

#include "linear_algebra.c"

#include "cosimulation.c"
#include "solver_methods.c"
#include "solver_step_loop.c"

int main(void)
{
    static mb2fmu_integrator integrator;
    static mb2fmu_prepared prepared;
    const double nothing[1] = {0.0};
    double x[1] = {0.0}, out[1] = {0.0};
    char message[160];
    mb2fmu_problem problem = {.p = nothing, .w = &prepared, .r0 = nothing};
    int faults = 0;
    for (int solver = MB2FMU_SOLVER_DOPRI5; solver <= MB2FMU_N_SOLVERS; solver++) {
        mb2fmu_integrator_reset(&integrator, solver, 1e-6, 0.01);
        faults += mb2fmu_integrate(&integrator, &problem, 1.0, 0.5, x, message, sizeof message) != MB2FMU_STEP_OK;
        faults += !(problem.reached > 1.49 && problem.reached < 1.51);
        faults += mb2fmu_output_slope(&integrator, &problem, 1.0, x, out) != MB2FMU_STEP_OK;
        faults += !(out[0] > 0.0);
    }
    return faults;
}
