/* zoo.c: hand-written models in the place of a generated one, with the solvers around them and a few exported functions
 * for tests. One library holds all problems: parameter `kind` chooses; states that a problem does not use stand still.
 *
 * States (q1, q2, u1, u2), one input r, parameters (kind, a, b), outputs q1^2 (position) and q1 u1 + t r (velocity).
 */
#define MB2FMU_N_STATES 4
#define MB2FMU_N_COORDINATES 2
#define MB2FMU_N_INPUTS 1
#define MB2FMU_N_PARAMETERS 3
#define MB2FMU_N_CALCULATED 0
#define MB2FMU_N_POSITION 1
#define MB2FMU_N_VELOCITY 1
#define MB2FMU_N_ACCELERATION 0
#define MB2FMU_N_DEPENDENT_SPEEDS 0
#define MB2FMU_N_ACCELERATIONS 0
#define MB2FMU_N_VARIABLES 5
#define MB2FMU_DEFAULT_SOLVER 1
#define MB2FMU_DEFAULT_TOLERANCE 1e-6

#include "solver.h"

/* The problems; the numbers are those of zoo.py. */
enum kind {
    OSCILLATOR = 0, /* q1'' = -a^2 q1, q2'' = -b^2 q2 */
    PENDULUM,       /* q1'' = -sin q1 */
    KEPLER,         /* q'' = -q/|q|^3 */
    FORCED,         /* q1' = u1 + 2 cos 2t - cos 3t, u1' = -a q1 - b u1 + g(t); solved by q1 = sin 2t, u1 = cos 3t */
    DRIVEN,         /* u1' = r u1 */
    PROTHERO,       /* u1' = -a (u1 - phi) + phi', phi = sin(t + 1) */
    VAN_DER_POL,    /* q1' = u1, u1' = a ((1 - q1^2) u1 - q1) */
    UNDEFINED,      /* u1' = sqrt(a - t): not a number after a */
    SINGULAR,       /* u1' = 1, the linear solve fails after a */
    EXPLODING,      /* u1' = u1^2 */
    KINEMATIC,      /* q1' = (1 + q1^2) u1, u1' = -u1 */
    SWITCHED,       /* u1' = 0 before a, 1 after */
    STIFF_DRIVEN,   /* u1' = -a (u1 - r) */
    BAD_JACOBIAN,   /* u1' = 1, but its derivative is not a number */
    RESTING         /* nothing moves */
};

const mb2fmu_variable model_variables[MB2FMU_N_VARIABLES] = {
    {MB2FMU_SOURCE_TIME, 0, 0, 0, 0, 0.0, 0.0, 0.0, 1.0, "time"},
    {MB2FMU_SOURCE_STATE, 0, 0, 0, 0, 0.0, 0.0, 0.0, 1.0, "q1"},
    {MB2FMU_SOURCE_STATE, 0, 0, 0, 1, 0.0, 0.0, 0.0, 1.0, "q2"},
    {MB2FMU_SOURCE_STATE, 0, 0, 0, 2, 0.0, 0.0, 0.0, 1.0, "u1"},
    {MB2FMU_SOURCE_STATE, 0, 0, 0, 3, 0.0, 0.0, 0.0, 1.0, "u2"}};
static const char *model_failure(int failed)
{
    return failed == 1 ? "the mass matrix is singular" : "a matrix is singular";
}

/* What pushes u1 of FORCED. */
static double forcing(double t, const double p[])
{
    return -3.0 * sin(3.0 * t) + p[1] * sin(2.0 * t) + p[2] * cos(3.0 * t);
}

static double forcing_rate(double t, const double p[])
{
    return -9.0 * cos(3.0 * t) + 2.0 * p[1] * cos(2.0 * t) - 3.0 * p[2] * sin(3.0 * t);
}

/* u1' of the problems that move nothing else. */
static double lone_speed(double t, double u, double r, const double p[])
{
    switch ((int)p[0]) {
    case DRIVEN:
        return r * u;
    case PROTHERO:
        return -p[1] * (u - sin(t + 1.0)) + cos(t + 1.0);
    case UNDEFINED:
        return t > p[1] ? MB2FMU_NAN : sqrt(p[1] - t);
    case EXPLODING:
        return u * u;
    case SWITCHED:
        return t < p[1] ? 0.0 : 1.0;
    case STIFF_DRIVEN:
        return -p[1] * (u - r);
    case RESTING:
        return 0.0;
    default:
        return 1.0;
    }
}

static int model_rhs(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w, double dx[])
{
    const double radius = sqrt(x[0] * x[0] + x[1] * x[1]);
    (void)w;
    dx[0] = dx[1] = dx[2] = dx[3] = 0.0;
    switch ((int)p[0]) {
    case OSCILLATOR:
        dx[0] = x[2];
        dx[1] = x[3];
        dx[2] = -p[1] * p[1] * x[0];
        dx[3] = -p[2] * p[2] * x[1];
        return 0;
    case PENDULUM:
        dx[0] = x[2];
        dx[2] = -sin(x[0]);
        return 0;
    case KEPLER:
        dx[0] = x[2];
        dx[1] = x[3];
        dx[2] = -x[0] / (radius * radius * radius);
        dx[3] = -x[1] / (radius * radius * radius);
        return 0;
    case FORCED:
        dx[0] = x[2] + 2.0 * cos(2.0 * t) - cos(3.0 * t);
        dx[2] = -p[1] * x[0] - p[2] * x[2] + forcing(t, p);
        return 0;
    case VAN_DER_POL:
        dx[0] = x[2];
        dx[2] = p[1] * ((1.0 - x[0] * x[0]) * x[2] - x[0]);
        return 0;
    case KINEMATIC:
        dx[0] = (1.0 + x[0] * x[0]) * x[2];
        dx[2] = -x[2];
        return 0;
    default:
        dx[2] = lone_speed(t, x[2], r[0], p);
        return (int)p[0] == SINGULAR && t > p[1] ? 1 : 0;
    }
}

/* d f/d x of Kepler's problem: the lower left block. */
static void gravity_gradient(const double x[], double values[])
{
    const double square = x[0] * x[0] + x[1] * x[1];
    const double fifth = square * square * sqrt(square);
    values[8] = (3.0 * x[0] * x[0] - square) / fifth;
    values[9] = values[12] = 3.0 * x[0] * x[1] / fifth;
    values[13] = (3.0 * x[1] * x[1] - square) / fifth;
}

/* d u1'/d u1 of the problems that move nothing else. */
static double lone_gradient(double u, double r, const double p[])
{
    switch ((int)p[0]) {
    case DRIVEN:
        return r;
    case PROTHERO:
    case STIFF_DRIVEN:
        return -p[1];
    case EXPLODING:
        return 2.0 * u;
    case BAD_JACOBIAN:
        return MB2FMU_NAN;
    default:
        return 0.0;
    }
}

static int model_jacobian(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                          double values[], double dfdt[])
{
    (void)w;
    for (int i = 0; i < 16; i++) {
        values[i] = 0.0;
    }
    dfdt[0] = dfdt[1] = dfdt[2] = dfdt[3] = 0.0;
    switch ((int)p[0]) {
    case OSCILLATOR:
        values[2] = values[7] = 1.0;
        values[8] = -p[1] * p[1];
        values[13] = -p[2] * p[2];
        return 0;
    case PENDULUM:
        values[2] = 1.0;
        values[8] = -cos(x[0]);
        return 0;
    case KEPLER:
        values[2] = values[7] = 1.0;
        gravity_gradient(x, values);
        return 0;
    case FORCED:
        values[2] = 1.0;
        values[8] = -p[1];
        values[10] = -p[2];
        dfdt[0] = -4.0 * sin(2.0 * t) + 3.0 * sin(3.0 * t);
        dfdt[2] = forcing_rate(t, p);
        return 0;
    case VAN_DER_POL:
        values[2] = 1.0;
        values[8] = p[1] * (-2.0 * x[0] * x[2] - 1.0);
        values[10] = p[1] * (1.0 - x[0] * x[0]);
        return 0;
    case KINEMATIC:
        values[0] = 2.0 * x[0] * x[2];
        values[2] = 1.0 + x[0] * x[0];
        values[10] = -1.0;
        return 0;
    default:
        values[10] = lone_gradient(x[2], r[0], p);
        dfdt[2] = (int)p[0] == PROTHERO ? p[1] * cos(t + 1.0) - sin(t + 1.0) : 0.0;
        return 0;
    }
}

static int model_tangent(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double s[], double out[])
{
    double values[16], dfdt[4];
    const double du1_dr = (int)p[0] == DRIVEN ? x[2] : (int)p[0] == STIFF_DRIVEN ? p[1] : 0.0;
    (void)model_jacobian(t, x, r, p, w, values, dfdt);
    for (int i = 0; i < 4; i++) {
        out[i] = dfdt[i] * s[0];
        for (int j = 0; j < 4; j++) {
            out[i] += values[4 * i + j] * s[1 + j];
        }
    }
    out[2] += du1_dr * s[5];
    out[4] = 2.0 * x[0] * s[1];
    out[5] = s[1] * x[2] + x[0] * s[3] + s[0] * r[0] + t * s[5];
    return 0;
}

static int model_adjoint(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                         const double bar[], double sbar[])
{
    double seeds[MB2FMU_N_SEEDS] = {0.0}, out[MB2FMU_N_OUT];
    for (int i = 0; i < MB2FMU_N_SEEDS; i++) {
        seeds[i] = 1.0;
        (void)model_tangent(t, x, r, p, w, seeds, out);
        seeds[i] = sbar[i] = 0.0;
        for (int j = 0; j < MB2FMU_N_OUT; j++) {
            sbar[i] += bar[j] * out[j];
        }
    }
    return 0;
}

/* What the solvers never call. */
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

static int nothing(const double y[])
{
    return y == NULL;
}

static int model_position(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w, double y[])
{
    (void)t, (void)r, (void)p, (void)w;
    y[0] = x[0] * x[0];
    return 0;
}

static int model_velocity(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w, double y[])
{
    (void)p, (void)w;
    y[0] = x[0] * x[2] + t * r[0];
    return 0;
}

static int model_acceleration(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                              double y[])
{
    (void)t, (void)x, (void)r, (void)p, (void)w;
    return nothing(y);
}

static int model_dependent_speeds(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                                  double y[])
{
    (void)t, (void)x, (void)r, (void)p, (void)w;
    return nothing(y);
}

static int model_accelerations(double t, const double x[], const double r[], const double p[], mb2fmu_prepared *w,
                               double y[])
{
    (void)t, (void)x, (void)r, (void)p, (void)w;
    return nothing(y);
}

#include "linear_algebra.c"

#if defined(ZOO_SEPARATOR)
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* snprintf in a locale whose decimal separator is another one. */
static int foreign_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, size, format, arguments);
    va_end(arguments);
    char *const point = strcmp(format, "%.15g") == 0 ? strchr(text, '.') : NULL;
    if (point != NULL) {
        const size_t width = strlen(ZOO_SEPARATOR);
        memmove(point + width, point + 1, strlen(point));
        memcpy(point, ZOO_SEPARATOR, width);
    }
    return length;
}
#define snprintf foreign_snprintf
#endif

#include "cosimulation.c"
#include "solver_methods.c"
#include "solver_step_loop.c"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

EXPORT unsigned long zoo_size(void);
EXPORT unsigned long zoo_memory_size(void);
EXPORT void zoo_reset(mb2fmu_integrator *integrator, int solver, double tolerance, double fixed_step);
EXPORT void zoo_invalidate(mb2fmu_integrator *integrator);
EXPORT int zoo_integrate(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, double h, double x[],
                         char *message, size_t size);
EXPORT int zoo_march(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, double h, long n, double x[],
                     char *message, size_t size);
EXPORT int zoo_dense(const mb2fmu_integrator *integrator, double t, double x[]);
EXPORT void zoo_save(const mb2fmu_integrator *integrator, double reals[], int64_t integers[]);
EXPORT int zoo_load(mb2fmu_integrator *integrator, const double reals[], const int64_t integers[]);
EXPORT int zoo_output_slope(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, const double x[],
                            double out[]);
EXPORT void zoo_clock(double start, double h, long n, double result[]);
EXPORT int zoo_clock_agrees(double start, double h, long n, double point);
EXPORT int zoo_clock_passes(double start, double h, long n, double stop);
EXPORT int zoo_rhs(double t, const double x[], const double r[], const double p[], double dx[]);
EXPORT int zoo_jacobian(double t, const double x[], const double r[], const double p[], double values[],
                        double dfdt[]);
EXPORT int zoo_tangent(double t, const double x[], const double r[], const double p[], const double s[], double out[]);
EXPORT const char *zoo_method(int solver, int orders[]);

unsigned long zoo_size(void)
{
    return (unsigned long)sizeof(mb2fmu_integrator);
}

unsigned long zoo_memory_size(void)
{
    return (unsigned long)sizeof(mb2fmu_integrator_memory);
}

void zoo_reset(mb2fmu_integrator *integrator, int solver, double tolerance, double fixed_step)
{
    mb2fmu_integrator_reset(integrator, solver, tolerance, fixed_step);
}

void zoo_invalidate(mb2fmu_integrator *integrator)
{
    mb2fmu_integrator_invalidate(integrator);
}

int zoo_integrate(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, double h, double x[],
                  char *message, size_t size)
{
    return (int)mb2fmu_integrate(integrator, problem, t, h, x, message, size);
}

/* n communication steps of h, with the unit's clock. */
int zoo_march(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, double h, long n, double x[],
              char *message, size_t size)
{
    mb2fmu_clock clock;
    mb2fmu_clock_start(&clock, t);
    for (long i = 0; i < n; i++) {
        const enum mb2fmu_outcome outcome = mb2fmu_integrate(integrator, problem, clock.time, h, x, message, size);
        if (outcome != MB2FMU_STEP_OK) {
            return (int)outcome;
        }
        mb2fmu_clock_advance(&clock, h);
    }
    return 0;
}

int zoo_dense(const mb2fmu_integrator *integrator, double t, double x[])
{
    return mb2fmu_integrator_dense(integrator, t, x);
}

void zoo_save(const mb2fmu_integrator *integrator, double reals[], int64_t integers[])
{
    mb2fmu_integrator_save(integrator, reals, integers);
}

int zoo_load(mb2fmu_integrator *integrator, const double reals[], const int64_t integers[])
{
    return mb2fmu_integrator_load(integrator, reals, integers);
}

int zoo_output_slope(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, const double x[], double out[])
{
    return (int)mb2fmu_output_slope(integrator, problem, t, x, out);
}

static mb2fmu_clock clock_after(double start, double h, long n)
{
    mb2fmu_clock clock;
    mb2fmu_clock_start(&clock, start);
    for (long i = 0; i < n; i++) {
        mb2fmu_clock_advance(&clock, h);
    }
    return clock;
}

void zoo_clock(double start, double h, long n, double result[])
{
    const mb2fmu_clock clock = clock_after(start, h, n);
    result[0] = clock.time;
    result[1] = clock.rest;
    result[2] = (double)clock.steps;
}

int zoo_clock_agrees(double start, double h, long n, double point)
{
    const mb2fmu_clock clock = clock_after(start, h, n);
    return mb2fmu_clock_agrees(&clock, point, h);
}

int zoo_clock_passes(double start, double h, long n, double stop)
{
    const mb2fmu_clock clock = clock_after(start, h, n);
    return mb2fmu_clock_passes(&clock, h, stop);
}

int zoo_rhs(double t, const double x[], const double r[], const double p[], double dx[])
{
    return model_rhs(t, x, r, p, 0, dx);
}

int zoo_jacobian(double t, const double x[], const double r[], const double p[], double values[], double dfdt[])
{
    return model_jacobian(t, x, r, p, 0, values, dfdt);
}

int zoo_tangent(double t, const double x[], const double r[], const double p[], const double s[], double out[])
{
    return model_tangent(t, x, r, p, 0, s, out);
}

/* The row of a method: its name; order and dense order into orders; NULL behind the last one. */
const char *zoo_method(int solver, int orders[])
{
    const mb2fmu_method *const method = mb2fmu_solver_known(solver) ? &mb2fmu_methods[solver - 1] : NULL;
    if (method == NULL) {
        return NULL;
    }
    orders[0] = method->order;
    orders[1] = method->dense_order;
    return method->name;
}
