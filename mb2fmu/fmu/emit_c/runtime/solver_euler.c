/* solver_euler.c: one step of the semi-implicit Euler method (order 1), for real time and long, not exact simulations.
 *
 * x is (q, v): the coordinates q, and all the rest, v = (u, z). With f = (f_q, f_v):
 *
 *     v_1 = v_0 + h f_v(t,     q_0, v_0)
 *     q_1 = q_0 + h f_q(t + h, q_0, v_1)
 *
 * that is, the new speeds move the coordinates. For q' = u this is the symplectic Euler method, which keeps the energy
 * of an undamped mechanism within a band of width O(h). Where q' = K(q, t) u + k0(t), K is evaluated at the old
 * coordinates and the new time, so nothing implicit has to be solved; the method is of order 1 then, too, and not
 * symplectic. Two evaluations of x' per step, because f_q is known with f_v only.
 *
 * Between the ends x is interpolated linearly (order 1).
 *
 * Source: Hairer, Lubich, Wanner: Geometric Numerical Integration, 2nd ed. 2006, I.1.2 and VI.3.
 */
#include "solver.h"

static enum mb2fmu_outcome mb2fmu_euler_step(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                             double h)
{
    mb2fmu_work *const work = &integrator->work;
    enum mb2fmu_outcome outcome = mb2fmu_solver_evaluate(integrator, problem, t, work->x, work->k[0]);
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->point[i] = i < MB2FMU_N_COORDINATES ? work->x[i] : work->x[i] + h * work->k[0][i];
    }
    outcome = mb2fmu_solver_evaluate(integrator, problem, t + h, work->point, work->k[1]);
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->next[i] = i < MB2FMU_N_COORDINATES ? work->x[i] + h * work->k[1][i] : work->point[i];
    }
    return mb2fmu_solver_check(work, t + h, work->next);
}

static void mb2fmu_euler_dense(const mb2fmu_work *work, double s, double x[])
{
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        x[i] = work->before_step[i] + s * (work->next[i] - work->before_step[i]);
    }
}
