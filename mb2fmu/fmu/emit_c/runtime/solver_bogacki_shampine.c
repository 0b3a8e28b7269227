/* solver_bogacki_shampine.c: one step of Bogacki and Shampine's Runge-Kutta pair of order 3(2), for models that are not
 * stiff and loose tolerances, or whose right-hand side has kinks.
 *
 * The result is of order 3; the last stage is x' at the end of the step and becomes the first of the next one: three
 * evaluations a step. Between the ends the cubic polynomial of the values and slopes at both ends is available.
 *
 *     0   |
 *    1/2  |  1/2
 *    3/4  |   0    3/4
 *     1   |  2/9   1/3   4/9
 *
 * Sources: Bogacki, Shampine: A 3(2) pair of Runge-Kutta formulas, Appl. Math. Lett. 2 (1989) 321-325; Hairer, Norsett,
 * Wanner: Solving Ordinary Differential Equations I, 2nd ed. 1993, (II.6.7) for the interpolant.
 */
#include "solver.h"

static enum mb2fmu_outcome mb2fmu_bogacki_shampine_step(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                        double t, double h)
{
    mb2fmu_work *const work = &integrator->work;
    const double *const k1 = work->k[0], *const k2 = work->k[1], *const k3 = work->k[2], *const k4 = work->k[3];
    enum mb2fmu_outcome outcome;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->k[0][i] = integrator->memory.slope[i];
        work->point[i] = work->x[i] + h * (k1[i] * 0.5);
    }
    outcome = mb2fmu_solver_evaluate(integrator, problem, t + 0.5 * h, work->point, work->k[1]);
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->point[i] = work->x[i] + h * (k2[i] * 0.75);
    }
    outcome = mb2fmu_solver_evaluate(integrator, problem, t + 0.75 * h, work->point, work->k[2]);
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->next[i] = work->x[i] + h * (k1[i] * (2.0 / 9.0) + k2[i] * (1.0 / 3.0) + k3[i] * (4.0 / 9.0));
    }
    outcome = mb2fmu_solver_evaluate(integrator, problem, t + h, work->next, work->k[3]);
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->error[i] = h * (k2[i] * (1.0 / 12.0) + k3[i] * (1.0 / 9.0) - k1[i] * (5.0 / 72.0) - k4[i] * (1.0 / 8.0));
    }
    return mb2fmu_solver_check(work, t + h, work->next);
}

static void mb2fmu_bogacki_shampine_dense(const mb2fmu_work *work, double s, double x[])
{
    const double h = work->step;
    const double left = 1.0 - s;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        const double change = work->next[i] - work->before_step[i];
        const double first = h * work->k[0][i] - change;
        const double last = change - h * work->k[3][i];
        x[i] = work->before_step[i] + s * (change + left * (left * first + s * last));
    }
}
