/* bench_events.c: a ball that bounces for ever (restitution 1) in one Co-Simulation FMU of FMI 2, ours or another's.
 *
 * Why it exists: both units must be driven by the same loop, and an importer in Python would be measured instead. Of our
 * own unit the sources are included (OURS), so that evaluations can be counted: each then takes a call more, and times
 * say nothing. Another's unit is linked.
 *
 * Arguments: height of the start in m, communication step in s, number of steps, and "counted" or nothing.
 * Prints: ns per step, impacts, then of the last step height in m and speed in m/s; then the evaluations of x', of the
 * indicators and of events, 0 if they are not counted.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long evaluations[3];

#ifdef OURS
#include "unit.c"
#define TOKEN MB2FMU_TOKEN

static const mb2fmu_equations *counting;
#define COUNT(number, name)                                                                                            \
    static int counted_##name(double t, const double x[], const double r[], const double p[], const double w[],        \
                              double work[], double y[])                                                               \
    {                                                                                                                  \
        evaluations[number]++;                                                                                         \
        return counting->name(t, x, r, p, w, work, y);                                                                 \
    }
COUNT(0, rhs)
#if MB2FMU_N_MODES > 0
COUNT(1, indicators)
COUNT(2, event)
#endif

static void count(fmi2Component unit)
{
    static mb2fmu_equations wrapped;
    mb2fmu_instance *const instance = mb2fmu_handle_find(unit);
    counting = instance->w->equations;
    wrapped = *counting;
    wrapped.rhs = counted_rhs;
#if MB2FMU_N_MODES > 0
    wrapped.indicators = counted_indicators;
    wrapped.event = counted_event;
#endif
    instance->w->equations = &wrapped;
}
#else
#include "fmi2Functions.h"

static void count(fmi2Component unit)
{
    (void)unit;
    fprintf(stderr, "only our own unit's evaluations can be counted\n");
    exit(2);
}
#endif

static void silent(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                   fmi2String message, ...)
{
    (void)environment, (void)status, (void)category;
    fprintf(stderr, "%s: %s\n", name, message);
}

static fmi2Component begun(double height)
{
    static const fmi2CallbackFunctions functions = {silent, calloc, free, NULL, NULL};
    const fmi2ValueReference start[] = {HEIGHT, RESTITUTION};
    const double values[] = {height, 1.0};
    const fmi2Component unit = fmi2Instantiate("ball", fmi2CoSimulation, TOKEN, NULL, &functions, fmi2False, fmi2False);
    if (unit == NULL || fmi2SetupExperiment(unit, fmi2False, 0.0, 0.0, fmi2False, 0.0) != fmi2OK ||
        fmi2EnterInitializationMode(unit) != fmi2OK || fmi2SetReal(unit, start, VALUES, values) != fmi2OK ||
        fmi2ExitInitializationMode(unit) != fmi2OK) {
        fprintf(stderr, "the FMU does not start\n");
        exit(1);
    }
    return unit;
}

int main(int given, char *arguments[])
{
    const fmi2ValueReference read[] = {HEIGHT, SPEED};
    double now[2] = {0.0, 0.0}, before = 0.0, step;
    struct timespec begin, end;
    fmi2Component unit;
    long steps, impacts = 0;
    if (given < 4) {
        fprintf(stderr, "height, step, number of steps [counted]\n");
        return 2;
    }
    unit = begun(atof(arguments[1]));
    step = atof(arguments[2]);
    steps = atol(arguments[3]);
    if (given > 4) {
        count(unit);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long k = 0; k < steps; k++) {
        if (fmi2DoStep(unit, step * (double)k, step, fmi2True) != fmi2OK ||
            fmi2GetReal(unit, read, 2, now) != fmi2OK) {
            fprintf(stderr, "step %ld failed\n", k);
            return 1;
        }
        impacts += now[1] > before; /* it only becomes faster upwards where it strikes */
        before = now[1];
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.3f %ld %.17g %.17g %ld %ld %ld\n",
           ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / (double)steps, impacts,
           now[0], now[1], evaluations[0], evaluations[1], evaluations[2]);
    fmi2FreeInstance(unit);
    return 0;
}
