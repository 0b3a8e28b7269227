/* bench_native.c: calls one function of a native FMU n times and says how long a call took, in ns.
 *
 * Why it exists: an importer in Python would be measured instead of the FMU. The FMU's sources are included, so that
 * the generated right-hand side can be called alone. HAND adds the double pendulum's right-hand side as a person writes
 * it: mass matrix and forcing by hand, solved by Cramer's rule, with the sine and cosine of the system's library ("hand") or the unit's ("own").
 *
 * Arguments: model | hand | own | exchange | step | get | set, and n. Run it with callgrind to count instructions.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>

#include "unit.c"

static double sum;

#ifdef HAND
static void hand_rhs(const double x[], const double r[], const double p[], double dx[], int own)
{
    const double m1 = p[0], l1 = p[1], m2 = p[2], l2 = p[3], g = p[4], u1 = x[2], u2 = x[3];
    double s1, c1, s2, c2;
    if (own) {
        double sines[2], cosines[2];
        mb2fmu_sincos_each(2, x, sines, cosines);
        s1 = sines[0], c1 = cosines[0], s2 = sines[1], c2 = cosines[1];
    } else {
        s1 = sin(x[0]), c1 = cos(x[0]), s2 = sin(x[1]), c2 = cos(x[1]);
    }
    const double inner = 0.5 * m2 * l1 * l2;
    const double end = m2 * l2 * l2 / 3.0;
    const double cross = end + inner * c2;
    const double whole = (m1 / 3.0 + m2) * l1 * l1 + end + 2.0 * inner * c2;
    const double weight = 0.5 * g * m2 * l2 * (c1 * s2 + c2 * s1);
    const double f1 = r[0] - g * l1 * (m2 + 0.5 * m1) * s1 - weight + inner * s2 * u2 * (2.0 * u1 + u2);
    const double f2 = -weight - inner * s2 * u1 * u1;
    const double determinant = whole * end - cross * cross;
    dx[0] = u1;
    dx[1] = u2;
    dx[2] = (end * f1 - cross * f2) / determinant;
    dx[3] = (whole * f2 - cross * f1) / determinant;
}
#endif

static void silent(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                   fmi2String message, ...)
{
    (void)environment;
    (void)status;
    (void)category;
    fprintf(stderr, "%s: %s\n", name, message);
}

static void call(const char *what, mb2fmu_instance *instance, fmi2Component unit, long k, double x[], double dx[])
{
    const unsigned state = FIRST_STATE, input = FIRST_INPUT;
    const double force = 1e-3 * (double)(k % 7);
    double value = 0.0;
    x[0] += 1e-9;
    if (strcmp(what, "model") == 0) {
        (void)model_rhs(0.0, x, instance->now.r, instance->now.p, instance->w, dx);
#ifdef HAND
    } else if (strcmp(what, "hand") == 0 || strcmp(what, "own") == 0) {
        hand_rhs(x, instance->now.r, instance->now.p, dx, what[0] == 'o');
#endif
    } else if (strcmp(what, "exchange") == 0) {
        (void)fmi2SetTime(unit, 1e-6 * (double)k);
        (void)fmi2SetContinuousStates(unit, x, MB2FMU_N_STATES);
        (void)fmi2GetDerivatives(unit, dx, MB2FMU_N_STATES);
    } else if (strcmp(what, "step") == 0) {
        (void)fmi2DoStep(unit, STEP * (double)k, STEP, fmi2True);
    } else if (strcmp(what, "get") == 0) {
        (void)fmi2GetReal(unit, &state, 1, &value);
    } else {
        (void)fmi2SetReal(unit, &input, 1, &force);
    }
    sum += dx[MB2FMU_N_STATES - 1] + value;
}

int main(int count, char *arguments[])
{
    const char *const what = count > 2 ? arguments[1] : "model";
    const long n = count > 2 ? atol(arguments[2]) : 1;
    const int exchange = strcmp(what, "exchange") == 0;
    const fmi2CallbackFunctions functions = {silent, NULL, NULL, NULL, NULL};
    const fmi2Component unit = fmi2Instantiate("bench", exchange ? fmi2ModelExchange : fmi2CoSimulation, MB2FMU_TOKEN,
                                               NULL, &functions, fmi2False, fmi2True);
    mb2fmu_instance *const instance = mb2fmu_handle_find(unit);
    double x[MB2FMU_N_STATES], dx[MB2FMU_N_STATES] = {0.0};
    struct timespec begin, end;
    (void)fmi2SetupExperiment(unit, fmi2False, 0.0, 0.0, fmi2False, 0.0);
    (void)fmi2EnterInitializationMode(unit);
    (void)fmi2ExitInitializationMode(unit);
    if (exchange) {
        fmi2EventInfo event;
        (void)fmi2NewDiscreteStates(unit, &event);
        (void)fmi2EnterContinuousTimeMode(unit);
    }
    memcpy(x, instance->now.x, sizeof x);
    (void)model_prepare(instance->now.p, instance->w);
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long k = 0; k < n; k++) {
        call(what, instance, unit, k, x, dx);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.3f %.17g\n",
           ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / (double)n, sum);
    fmi2FreeInstance(unit);
    return 0;
}
