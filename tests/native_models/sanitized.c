/* sanitized.c: all solvers over all problems of the zoo, good steps and bad ones, as a program for sanitizers and
 * checkers of memory. Ends with 0 when it has seen every outcome. */
#define MB2FMU_MAX_INTERNAL_STEPS 2000

#include <stdio.h>

#include "zoo.c"

static int answer_in_turn(void *host, double t, const double x[], double *until)
{
    int *const count = host;
    (void)x;
    *count += 1;
    if (*count % 7 == 0) {
        *until = t + 1e-3;
    }
    return *count % 5 == 0 ? MB2FMU_INPUTS_CHANGED : *count % 11 == 0 ? MB2FMU_STOP : MB2FMU_GO_ON;
}

static unsigned loop(mb2fmu_integrator *integrator, int solver, int kind, int hook)
{
    const double p[3] = {(double)kind, 0.7, 2.0};
    const double r0[1] = {0.5}, r1[1] = {-0.2};
    double x[4] = {1.0, 0.0, 0.8, 1.0}, dense[4], reals[MB2FMU_INTEGRATOR_REALS], out[MB2FMU_N_OUT];
    int64_t integers[MB2FMU_INTEGRATOR_INTEGERS];
    static mb2fmu_prepared prepared;
    char message[160];
    unsigned seen = 0;
    int count = 0;
    double t = 0.0;
    mb2fmu_problem problem = {.p = p, .w = &prepared, .r0 = r0, .r1 = hook ? r1 : NULL, .host = &count};
    problem.accepted = hook ? answer_in_turn : NULL;
    mb2fmu_integrator_reset(integrator, solver, hook ? 1e-4 : 1e-9, 0.01);
    for (int i = 0; i < 30; i++) {
        const enum mb2fmu_outcome outcome =
            mb2fmu_integrate(integrator, &problem, t, i == 9 ? 1e9 : 0.05, x, message, sizeof message);
        seen |= 1u << (int)outcome;
        t = problem.reached;
        seen |= mb2fmu_integrator_dense(integrator, t, dense) == 0 ? 32u : 0u;
        seen |= mb2fmu_output_slope(integrator, &problem, t, x, out) == MB2FMU_STEP_OK ? 64u : 0u;
        mb2fmu_integrator_save(integrator, reals, integers);
        seen |= mb2fmu_integrator_load(integrator, reals, integers) == 0 ? 128u : 0u;
    }
    return seen;
}

int main(void)
{
    static mb2fmu_integrator integrator;
    unsigned seen = 0;
    for (int solver = MB2FMU_SOLVER_DOPRI5; solver <= MB2FMU_N_SOLVERS; solver++) {
        for (int kind = OSCILLATOR; kind <= RESTING; kind++) {
            seen |= loop(&integrator, solver, kind, 0) | loop(&integrator, solver, kind, 1);
        }
    }
    (void)printf("%u\n", seen);
    return seen == 255u ? 0 : 1;
}
