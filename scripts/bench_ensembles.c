/* bench_ensembles.c: a native FMU, FMI 2, run n times over its experiment in a warm loop, as an importer in C does.
 *
 * Why it exists: what many instances at once gain is measured against the FMU itself, without any host of its own.
 *
 * Arguments: library, token, n, steps, step in s, tolerance, references of a start value and of an output, the first
 * and the last start value. Prints seconds of the processor and the sum of the outputs at the end.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fmi2FunctionTypes.h"

#define ENTRY(name) name##TYPE *const name = (name##TYPE *)dlsym(library, #name)

static void said(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                 fmi2String message, ...)
{
    (void)environment;
    (void)status;
    (void)category;
    (void)fprintf(stderr, "%s: %s\n", name, message);
}

int main(int count, char *arguments[])
{
    if (count < 11) {
        return 2;
    }
    void *const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const long n = atol(arguments[3]), steps = atol(arguments[4]);
    const double step = atof(arguments[5]), tolerance = atof(arguments[6]);
    const double first = atof(arguments[9]), last = atof(arguments[10]);
    const fmi2ValueReference start = (fmi2ValueReference)atol(arguments[7]);
    const fmi2ValueReference output = (fmi2ValueReference)atol(arguments[8]);
    const fmi2CallbackFunctions functions = {said, calloc, free, NULL, NULL};
    ENTRY(fmi2Instantiate);
    ENTRY(fmi2SetupExperiment);
    ENTRY(fmi2EnterInitializationMode);
    ENTRY(fmi2ExitInitializationMode);
    ENTRY(fmi2SetReal);
    ENTRY(fmi2GetReal);
    ENTRY(fmi2DoStep);
    ENTRY(fmi2Reset);
    const fmi2Component unit =
        fmi2Instantiate("bench", fmi2CoSimulation, arguments[2], NULL, &functions, fmi2False, fmi2True);
    double sum = 0.0;
    const clock_t begin = clock();
    for (long k = 0; k < n; k++) {
        const double value = first + (last - first) * (double)k / (double)(n - 1);
        double y = 0.0;
        (void)fmi2SetupExperiment(unit, fmi2True, tolerance, 0.0, fmi2False, 0.0);
        (void)fmi2SetReal(unit, &start, 1, &value);
        (void)fmi2EnterInitializationMode(unit);
        (void)fmi2ExitInitializationMode(unit);
        for (long i = 0; i < steps; i++) {
            const fmi2Status status = fmi2DoStep(unit, step * (double)i, step, fmi2True);
            if (status != fmi2OK) {
                (void)fprintf(stderr, "instance %ld, step %ld: status %d\n", k, i, (int)status);
                return 1;
            }
        }
        (void)fmi2GetReal(unit, &output, 1, &y);
        sum += y;
        (void)fmi2Reset(unit);
    }
    printf("%.9g %.17g\n", (double)(clock() - begin) / CLOCKS_PER_SEC, sum);
    return 0;
}
