/* bench_chain.c: one x' of a chain of N joints again and again, for scripts/bench_chain.
 *
 * -DCASADI: CasADi's function fd(q, u, torque, p). Otherwise the equations of an FMU, in the variant of the flags.
 * Arguments: how many calls, and (anything): say the first and the last acceleration instead of the time.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double q[N], u[N], torque[N], result[2 * N];

#ifdef CASADI
extern int fd(const double **arguments, double **results, long long *integers, double *work, int memory);
static double p[] = {PARAMETERS}, work[WORK];
static long long integers[16];

static void prepare(void)
{
}

static void evaluate(void)
{
    const double *arguments[8] = {q, u, torque, p};
    double *results[8] = {result + N};
    (void)fd(arguments, results, integers, work, 0);
}
#else
#include "equations.h"

/* All is compiled for one kind of processor here, derivatives too, which a unit has once. */
extern MB2FMU_HIDDEN const mb2fmu_derivatives MB2FMU_VARIANT(derivatives);
static double p[] = {PARAMETERS}, x[2 * N];
static double *w, *work;

static void prepare(void)
{
    w = calloc((size_t)MB2FMU_VARIANT(derivatives).values + 1, sizeof *w);
    work = calloc((size_t)MB2FMU_VARIANT(derivatives).work + 1, sizeof *work);
    (void)MB2FMU_VARIANT(equations).prepare(p, w, work);
}

static void evaluate(void)
{
    x[0] = q[0];
    (void)MB2FMU_VARIANT(equations).rhs(0.0, x, torque, p, w, work, result);
}
#endif

int main(int count, char **arguments)
{
    const int calls = count > 1 ? atoi(arguments[1]) : 1;
    struct timespec begin, end;
    for (int i = 0; i < N; i++) {
        q[i] = 0.05 + 0.1 * (i % 7);
        u[i] = 0.2 * (i % 5) - 0.3;
        torque[i] = 0.1 * (i % 3);
#ifndef CASADI
        x[i] = q[i];
        x[N + i] = u[i];
#endif
    }
    prepare();
    if (count > 2) {
        evaluate();
        (void)printf("%.15g %.15g\n", result[N], result[2 * N - 1]);
        return 0;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < calls; i++) {
        q[0] += 1e-9;
        evaluate();
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    (void)printf("%.3f\n", ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / calls);
    return 0;
}
