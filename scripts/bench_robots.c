/* bench_robots.c: one x' of a robot's unit again and again, for scripts/bench_robots.
 *
 * The flags have the variant and the numbers. Arguments: how many calls, and (anything): say x' instead of the time.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "equations.h"

extern MB2FMU_HIDDEN const mb2fmu_derivatives MB2FMU_VARIANT(derivatives);
static double p[] = {PARAMETERS}, x[] = {STATES}, r[] = {INPUTS}, result[sizeof x / sizeof x[0]];

int main(int count, char **arguments)
{
    const int calls = count > 1 ? atoi(arguments[1]) : 1;
    double *w = calloc((size_t)MB2FMU_VARIANT(derivatives).values + 1, sizeof *w);
    double *work = calloc((size_t)MB2FMU_VARIANT(derivatives).work + 1, sizeof *work);
    struct timespec begin, end;
    if (!w || !work) {
        return 1;
    }
    (void)MB2FMU_VARIANT(equations).prepare(p, w, work);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int i = 0; i < calls; i++) {
        x[MOVED] += 1e-9;
        (void)MB2FMU_VARIANT(equations).rhs(0.0, x, r, p, w, work, result);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    if (count > 2) {
        for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) {
            (void)printf("%.15g ", result[i]);
        }
        return 0;
    }
    (void)printf("%.3f\n", ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / calls);
    return 0;
}
