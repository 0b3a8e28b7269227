/* model.c: a damped oscillator driven by a force and by a pulse, written by hand to the contract of model.h, for tests.
 *
 *     x' = v,  v' = (force - stiffness x - damping v + 1 / (1 + t^2)) / mass
 *
 * Its one linear solve "fails" beyond the wall, x >= wall, so that tests can run into it. Outputs of every level:
 *     tip = x^2 + t,  loss = damping v^2,  load = v' + force / 2;  twice = 2 v is a dependent speed.
 */
#include "model.h"

enum { MASS, STIFFNESS, DAMPING, WALL };

const mb2fmu_variable model_variables[MB2FMU_N_VARIABLES] = {
#define MB2FMU_NO_BOUNDS -MB2FMU_INFINITY, MB2FMU_INFINITY
    {MB2FMU_SOURCE_TIME, MB2FMU_CAUSALITY_INDEPENDENT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_NONE, 0,
     MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "time"},
    {MB2FMU_SOURCE_STATE, MB2FMU_CAUSALITY_OUTPUT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_EXACT, 0, 1.0,
     MB2FMU_NO_BOUNDS, 2.5, "x"},
    {MB2FMU_SOURCE_STATE, MB2FMU_CAUSALITY_LOCAL, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_EXACT, 1, 0.0,
     MB2FMU_NO_BOUNDS, 1.0, "v"},
    {MB2FMU_SOURCE_DERIVATIVE, MB2FMU_CAUSALITY_LOCAL, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_CALCULATED, 0,
     MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "der(x)"},
    {MB2FMU_SOURCE_DERIVATIVE, MB2FMU_CAUSALITY_LOCAL, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_CALCULATED, 1,
     MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "der(v)"},
    {MB2FMU_SOURCE_INPUT, MB2FMU_CAUSALITY_INPUT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_EXACT, 0, 0.0,
     MB2FMU_NO_BOUNDS, 1.0, "force"},
    {MB2FMU_SOURCE_PARAMETER, MB2FMU_CAUSALITY_PARAMETER, MB2FMU_VARIABILITY_TUNABLE, MB2FMU_INITIAL_EXACT, MASS, 2.0,
     0.0, MB2FMU_INFINITY, 1.0, "mass"},
    {MB2FMU_SOURCE_PARAMETER, MB2FMU_CAUSALITY_PARAMETER, MB2FMU_VARIABILITY_TUNABLE, MB2FMU_INITIAL_EXACT, STIFFNESS,
     8.0, MB2FMU_NO_BOUNDS, 1.0, "stiffness"},
    {MB2FMU_SOURCE_PARAMETER, MB2FMU_CAUSALITY_PARAMETER, MB2FMU_VARIABILITY_FIXED, MB2FMU_INITIAL_EXACT, DAMPING, 0.5,
     MB2FMU_NO_BOUNDS, 1.0, "'D\xC3\xA4mpfung 50% #1'"},
    {MB2FMU_SOURCE_PARAMETER, MB2FMU_CAUSALITY_PARAMETER, MB2FMU_VARIABILITY_FIXED, MB2FMU_INITIAL_EXACT, WALL, 10.0,
     MB2FMU_NO_BOUNDS, 1.0, "wall"},
    {MB2FMU_SOURCE_CALCULATED, MB2FMU_CAUSALITY_CALCULATED_PARAMETER, MB2FMU_VARIABILITY_TUNABLE,
     MB2FMU_INITIAL_CALCULATED, 0, MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "omega"},
    {MB2FMU_SOURCE_POSITION, MB2FMU_CAUSALITY_OUTPUT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_CALCULATED, 0,
     MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "tip"},
    {MB2FMU_SOURCE_VELOCITY, MB2FMU_CAUSALITY_OUTPUT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_CALCULATED, 0,
     MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "loss"},
    {MB2FMU_SOURCE_ACCELERATION, MB2FMU_CAUSALITY_OUTPUT, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_CALCULATED, 0,
     MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "load"},
    {MB2FMU_SOURCE_DEPENDENT_SPEED, MB2FMU_CAUSALITY_LOCAL, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_CALCULATED,
     0, MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "twice"},
    {MB2FMU_SOURCE_SPEED_DERIVATIVE, MB2FMU_CAUSALITY_LOCAL, MB2FMU_VARIABILITY_CONTINUOUS, MB2FMU_INITIAL_CALCULATED,
     0, MB2FMU_NAN, MB2FMU_NO_BOUNDS, 1.0, "speedup"},
    {MB2FMU_SOURCE_SOLVER, MB2FMU_CAUSALITY_PARAMETER, MB2FMU_VARIABILITY_FIXED, MB2FMU_INITIAL_EXACT, 0, 1.0,
     MB2FMU_NO_BOUNDS, 1.0, "solver"},
    {MB2FMU_SOURCE_SOLVER_STEP, MB2FMU_CAUSALITY_PARAMETER, MB2FMU_VARIABILITY_FIXED, MB2FMU_INITIAL_EXACT, 0, 0.0, 0.0,
     MB2FMU_INFINITY, 1.0, "solver_step"},
};

static const char *model_failure(int failed)
{
    return failed == 1 ? "the matrix of the wall is singular" : "a matrix is singular";
}

/* 1 / (1 + t^2) and its derivative: without elementary functions. */
static double pulse(double t)
{
    return 1.0 / (1.0 + t * t);
}

static double pulse_slope(double t)
{
    return -2.0 * t * pulse(t) * pulse(t);
}

static size_t model_room(void)
{
    return 2;
}

static void model_start(mb2fmu_prepared *w, double room[])
{
    w->values = room;
    w->equations = 0; /* there is one variant only, and it is here */
}

static int model_prepare(const double p[], mb2fmu_prepared *w)
{
    w->values[0] = sqrt(p[STIFFNESS] / p[MASS]);
    w->values[1] = 1.0 / p[MASS];
    return 0;
}

static int model_rhs(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w, double dx[])
{
    dx[0] = x[1];
    dx[1] = (r[0] - p[STIFFNESS] * x[0] - p[DAMPING] * x[1] + pulse(t)) * w->values[1];
    return x[0] >= p[WALL] ? 1 : 0;
}

static int model_position(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w, double y[])
{
    (void)r, (void)p, (void)w;
    y[0] = x[0] * x[0] + t;
    return 0;
}

static int model_velocity(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w, double y[])
{
    (void)t, (void)r, (void)w;
    y[0] = p[DAMPING] * x[1] * x[1];
    return 0;
}

static int model_accelerations(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                               double y[])
{
    double dx[MB2FMU_N_STATES];
    const int failed = model_rhs(t, x, r, p, w, dx);
    y[0] = dx[1];
    return failed;
}

static int model_acceleration(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                              double y[])
{
    const int failed = model_accelerations(t, x, r, p, w, y);
    y[0] += 0.5 * r[0];
    return failed;
}

static int model_dependent_speeds(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                                  double y[])
{
    (void)t, (void)r, (void)p, (void)w;
    y[0] = 2.0 * x[1];
    return 0;
}

static int model_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double s[], double out[])
{
    double dx[MB2FMU_N_STATES];
    const double *const sx = s + MB2FMU_SEED_STATES;
    const double *const sr = s + MB2FMU_SEED_INPUTS;
    const double *const sp = s + MB2FMU_SEED_PARAMETERS;
    const int failed = model_rhs(t, x, r, p, w, dx);
    const double force = sr[0] - sp[STIFFNESS] * x[0] - p[STIFFNESS] * sx[0] - sp[DAMPING] * x[1] -
                         p[DAMPING] * sx[1] + pulse_slope(t) * s[MB2FMU_SEED_TIME];
    out[MB2FMU_OUT_DERIVATIVES] = sx[1];
    out[MB2FMU_OUT_DERIVATIVES + 1] = (force - dx[1] * sp[MASS]) * w->values[1];
    out[MB2FMU_OUT_POSITION] = 2.0 * x[0] * sx[0] + s[MB2FMU_SEED_TIME];
    out[MB2FMU_OUT_VELOCITY] = sp[DAMPING] * x[1] * x[1] + 2.0 * p[DAMPING] * x[1] * sx[1];
    out[MB2FMU_OUT_ACCELERATION] = out[MB2FMU_OUT_DERIVATIVES + 1] + 0.5 * sr[0];
    out[MB2FMU_OUT_DEPENDENT_SPEEDS] = 2.0 * sx[1];
    out[MB2FMU_OUT_ACCELERATIONS] = out[MB2FMU_OUT_DERIVATIVES + 1];
    out[MB2FMU_OUT_CALCULATED] = 0.5 * w->values[0] * (sp[STIFFNESS] / p[STIFFNESS] - sp[MASS] * w->values[1]);
    return failed;
}

static int model_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double bar[], double sbar[])
{
    double dx[MB2FMU_N_STATES];
    const double load = bar[MB2FMU_OUT_ACCELERATION];
    const double position = bar[MB2FMU_OUT_POSITION];
    const double velocity = bar[MB2FMU_OUT_VELOCITY];
    const double omega = 0.5 * w->values[0] * bar[MB2FMU_OUT_CALCULATED];
    const int failed = model_rhs(t, x, r, p, w, dx);
    const double force = (bar[MB2FMU_OUT_DERIVATIVES + 1] + load + bar[MB2FMU_OUT_ACCELERATIONS]) * w->values[1];
    sbar[MB2FMU_SEED_TIME] = force * pulse_slope(t) + position;
    sbar[MB2FMU_SEED_STATES] = 2.0 * x[0] * position - p[STIFFNESS] * force;
    sbar[MB2FMU_SEED_STATES + 1] = bar[MB2FMU_OUT_DERIVATIVES] - p[DAMPING] * force +
                                   2.0 * p[DAMPING] * x[1] * velocity + 2.0 * bar[MB2FMU_OUT_DEPENDENT_SPEEDS];
    sbar[MB2FMU_SEED_INPUTS] = force + 0.5 * load;
    sbar[MB2FMU_SEED_PARAMETERS + MASS] = -dx[1] * force - omega * w->values[1];
    sbar[MB2FMU_SEED_PARAMETERS + STIFFNESS] = -x[0] * force + omega / p[STIFFNESS];
    sbar[MB2FMU_SEED_PARAMETERS + DAMPING] = -x[1] * force + x[1] * x[1] * velocity;
    sbar[MB2FMU_SEED_PARAMETERS + WALL] = 0.0;
    return failed;
}

static int model_jacobian(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                          double values[], double dfdt[])
{
    (void)r;
    values[1] = 1.0;
    values[2] = -p[STIFFNESS] * w->values[1];
    values[3] = -p[DAMPING] * w->values[1];
    dfdt[0] = 0.0;
    dfdt[1] = pulse_slope(t) * w->values[1];
    return x[0] >= p[WALL] ? 1 : 0;
}
