/* solver_dopri5.c: one step of Dormand and Prince's Runge-Kutta pair of order 5(4), for models that are not stiff.
 *
 * The result is of order 5; the last stage is x' at the end of the step and becomes the first of the next one. Between
 * the ends a polynomial of order 4 is available without further evaluations.
 *
 * Its coefficients are in dopri5.h. Source of the interpolant: Hairer, Norsett, Wanner: Solving Ordinary Differential
 * Equations I, 2nd ed. 1993, (II.6).
 */
#include "dopri5.h"
#include "solver.h"

/* The argument of stages 2 to 7, counted from 0: the last one is the result. */
static void mb2fmu_dopri5_point(mb2fmu_work *work, int stage, double h)
{
    const double *const x = work->x;
    switch (stage) {
    case 1:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * MB2FMU_DOPRI5_2(work->k, i);
        }
        break;
    case 2:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * MB2FMU_DOPRI5_3(work->k, i);
        }
        break;
    case 3:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * MB2FMU_DOPRI5_4(work->k, i);
        }
        break;
    case 4:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * MB2FMU_DOPRI5_5(work->k, i);
        }
        break;
    case 5:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * MB2FMU_DOPRI5_6(work->k, i);
        }
        break;
    default:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->next[i] = x[i] + h * MB2FMU_DOPRI5_RESULT(work->k, i);
        }
    }
}

static enum mb2fmu_outcome mb2fmu_dopri5_step(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                              double h)
{
    static const double nodes[MB2FMU_MAX_STAGES] = MB2FMU_DOPRI5_NODES;
    mb2fmu_work *const work = &integrator->work;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->k[0][i] = integrator->memory.slope[i];
    }
    for (int stage = 1; stage < MB2FMU_MAX_STAGES; stage++) {
        const double *const point = stage == MB2FMU_MAX_STAGES - 1 ? work->next : work->point;
        mb2fmu_dopri5_point(work, stage, h);
        const enum mb2fmu_outcome outcome =
            mb2fmu_solver_evaluate(integrator, problem, t + nodes[stage] * h, point, work->k[stage]);
        if (outcome != MB2FMU_STEP_OK) {
            return outcome;
        }
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->error[i] = h * MB2FMU_DOPRI5_ERROR(work->k, i);
    }
    return mb2fmu_solver_check(work, t + h, work->next);
}

static void mb2fmu_dopri5_dense(const mb2fmu_work *work, double s, double x[])
{
    const double h = work->step;
    const double left = 1.0 - s;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        const double change = work->next[i] - work->before_step[i];
        const double first = h * work->k[0][i] - change;
        const double last = change - h * work->k[6][i] - first;
        const double inner = h * (work->k[0][i] * (-12715105075.0 / 11282082432.0) +
                                  work->k[2][i] * (87487479700.0 / 32700410799.0) -
                                  work->k[3][i] * (10690763975.0 / 1880347072.0) +
                                  work->k[4][i] * (701980252875.0 / 199316789632.0) -
                                  work->k[5][i] * (1453857185.0 / 822651844.0) +
                                  work->k[6][i] * (69997945.0 / 29380423.0));
        x[i] = work->before_step[i] + s * (change + left * (first + s * (last + left * inner)));
    }
}
