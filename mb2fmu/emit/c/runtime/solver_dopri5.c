/* solver_dopri5.c: one step of Dormand and Prince's Runge-Kutta pair of order 5(4), for models that are not stiff.
 *
 * The result is of order 5; the last stage is x' at the end of the step and becomes the first of the next one. Between
 * the ends a polynomial of order 4 is available without further evaluations.
 *
 *     0   |
 *    1/5  |    1/5
 *    3/10 |    3/40        9/40
 *    4/5  |   44/45      -56/15       32/9
 *    8/9  | 19372/6561 -25360/2187 64448/6561 -212/729
 *     1   |  9017/3168   -355/33   46732/5247   49/176  -5103/18656
 *     1   |   35/384        0        500/1113  125/192  -2187/6784   11/84
 *
 * Sources: Dormand, Prince: A family of embedded Runge-Kutta formulae, J. Comp. Appl. Math. 6 (1980) 19-26; Hairer,
 * Norsett, Wanner: Solving Ordinary Differential Equations I, 2nd ed. 1993, table II.5.2, and (II.6) for the
 * interpolant.
 */
#include "solver.h"

/* The argument of stages 2 to 7, counted from 0: the last one is the result. */
static void mb2fmu_dopri5_point(mb2fmu_work *work, int stage, double h)
{
    const double *const x = work->x;
    const double *const k1 = work->k[0], *const k2 = work->k[1], *const k3 = work->k[2];
    const double *const k4 = work->k[3], *const k5 = work->k[4], *const k6 = work->k[5];
    switch (stage) {
    case 1:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * (k1[i] * (1.0 / 5.0));
        }
        break;
    case 2:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * (k1[i] * (3.0 / 40.0) + k2[i] * (9.0 / 40.0));
        }
        break;
    case 3:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * (k1[i] * (44.0 / 45.0) - k2[i] * (56.0 / 15.0) + k3[i] * (32.0 / 9.0));
        }
        break;
    case 4:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * (k1[i] * (19372.0 / 6561.0) - k2[i] * (25360.0 / 2187.0) +
                                         k3[i] * (64448.0 / 6561.0) - k4[i] * (212.0 / 729.0));
        }
        break;
    case 5:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->point[i] = x[i] + h * (k1[i] * (9017.0 / 3168.0) - k2[i] * (355.0 / 33.0) +
                                         k3[i] * (46732.0 / 5247.0) + k4[i] * (49.0 / 176.0) -
                                         k5[i] * (5103.0 / 18656.0));
        }
        break;
    default:
        for (int i = 0; i < MB2FMU_N_STATES; i++) {
            work->next[i] = x[i] + h * (k1[i] * (35.0 / 384.0) + k3[i] * (500.0 / 1113.0) + k4[i] * (125.0 / 192.0) -
                                        k5[i] * (2187.0 / 6784.0) + k6[i] * (11.0 / 84.0));
        }
    }
}

/* The result of order 5 minus that of order 4, one component, per h. */
static double mb2fmu_dopri5_error(const mb2fmu_work *work, int i)
{
    return work->k[0][i] * (71.0 / 57600.0) - work->k[2][i] * (71.0 / 16695.0) + work->k[3][i] * (71.0 / 1920.0) -
           work->k[4][i] * (17253.0 / 339200.0) + work->k[5][i] * (22.0 / 525.0) - work->k[6][i] * (1.0 / 40.0);
}

static enum mb2fmu_outcome mb2fmu_dopri5_step(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                              double h)
{
    static const double nodes[MB2FMU_MAX_STAGES] = {0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0};
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
        work->error[i] = h * mb2fmu_dopri5_error(work, i);
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
