/* solver_rk4.c: one step of the classical Runge-Kutta method of order 4, for real time: four evaluations of x', always.
 *
 * Between the ends a polynomial of order 3 is available from the same four stages.
 *
 * Sources: Hairer, Norsett, Wanner: Solving Ordinary Differential Equations I, 2nd ed. 1993, table II.1.2 and
 * section II.6 (continuous Runge-Kutta methods; Zennaro: Natural continuous extensions of Runge-Kutta methods, Math.
 * Comp. 46 (1986) 119-133).
 */
#include "solver.h"

static enum mb2fmu_outcome mb2fmu_rk4_step(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, double h)
{
    static const double nodes[4] = {0.0, 0.5, 0.5, 1.0};
    mb2fmu_work *const work = &integrator->work;
    const double *point = work->x;
    for (int stage = 0; stage < 4; stage++) {
        const enum mb2fmu_outcome outcome =
            mb2fmu_solver_evaluate(integrator, problem, t + nodes[stage] * h, point, work->k[stage]);
        if (outcome != MB2FMU_STEP_OK) {
            return outcome;
        }
        if (stage < 3) {
            for (int i = 0; i < MB2FMU_N_STATES; i++) {
                work->point[i] = work->x[i] + nodes[stage + 1] * h * work->k[stage][i];
            }
            point = work->point;
        }
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        const double inner = work->k[1][i] + work->k[2][i];
        work->next[i] = work->x[i] + h / 6.0 * (work->k[0][i] + 2.0 * inner + work->k[3][i]);
    }
    return mb2fmu_solver_check(work, t + h, work->next);
}

static void mb2fmu_rk4_dense(const mb2fmu_work *work, double s, double x[])
{
    const double first = s * (1.0 + s * (-1.5 + s * (2.0 / 3.0)));
    const double inner = s * s * (1.0 - s * (2.0 / 3.0));
    const double last = s * s * (-0.5 + s * (2.0 / 3.0));
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        x[i] = work->before_step[i] +
               work->step * (first * work->k[0][i] + inner * (work->k[1][i] + work->k[2][i]) + last * work->k[3][i]);
    }
}
