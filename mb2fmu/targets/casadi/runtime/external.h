/* external.h: what all external functions of CasADi do around the equations.
 *
 * An argument that is not there is zero; a result that is not asked for is not stored. Derivatives by parameters cost
 * much and are often not asked for: where none is, the function without them is called.
 */
#ifndef MB2FMU_EXTERNAL_H
#define MB2FMU_EXTERNAL_H

#include <string.h>

#if defined(_WIN32)
#define MB2FMU_SEEN __declspec(dllexport)
#elif defined(__GNUC__)
#define MB2FMU_SEEN __attribute__((visibility("default")))
#else
#define MB2FMU_SEEN
#endif

typedef int (*external_equations)(double t, const double x[], const double r[], const double p[], const double s[],
                                  double work[], double y[]);

/* A run of seeds: which argument it is read from (-1: nothing reads it), and its length. */
typedef struct {
    int argument;
    int length;
} external_run;

/* A result: where its numbers begin among those that the equations store, how many there are, and whether it is a
 * derivative by parameters. */
typedef struct {
    int first;
    int count;
    int by_parameters;
} external_result;

typedef struct {
    external_equations whole;
    external_equations part; /* without derivatives by parameters */
    const external_run *runs;
    int n_runs;
    int n_seeds;
    const external_result *results;
    int n_out;
    int n_results;
} external_function;

static int external_call(const external_function *function, const double *zeros, const double **arg, double **res,
                         double *w)
{
    double *const seeds = w, *const results = seeds + function->n_seeds, *const work = results + function->n_results;
    double *seed = seeds;
    int whole = 0, failed;
    for (int i = 0; i < function->n_runs; i++) {
        const external_run run = function->runs[i];
        const double *const from = run.argument < 0 ? zeros : arg[run.argument];
        memcpy(seed, from ? from : zeros, (size_t)run.length * sizeof seed[0]);
        seed += run.length;
    }
    for (int k = 0; k < function->n_out; k++) {
        whole |= res[k] != NULL && function->results[k].by_parameters;
    }
    failed = (whole ? function->whole : function->part)(arg[0] ? arg[0][0] : 0.0, arg[1] ? arg[1] : zeros,
                                                        arg[2] ? arg[2] : zeros, arg[3] ? arg[3] : zeros, seeds,
                                                        work, results);
    for (int k = 0; failed == 0 && k < function->n_out; k++) {
        if (res[k] != NULL) {
            const external_result one = function->results[k];
            memcpy(res[k], results + one.first, (size_t)one.count * sizeof results[0]);
        }
    }
    return failed;
}

#endif
