/* solver_rosenbrock.c: one step of the Rosenbrock method RODASP of order 4(3), for stiff models.
 *
 * Linearly implicit, L-stable and stiffly accurate; it satisfies further conditions that keep its order where stiff
 * components are driven (order reduction of other Rosenbrock methods, RODAS among them). Each step takes the exact
 * Jacobian J = d f/d x and the total derivative f_t of f along time and inputs r(t) at its beginning, and solves six
 * systems with one matrix:
 *
 *     (1/(gamma h) - J) k_i = f(t + alpha_i h, x + sum_j a_ij k_j) + sum_j c_ij k_j / h + h d_i f_t
 *     x_1 = x + sum_j a_6j k_j + k_6,      error = k_6
 *
 * Between the ends a polynomial of order 3 is available from the stages.
 *
 * Sources: Steinebach: Order-reduction of ROW-methods for DAEs and method of lines applications, preprint 1741, TH
 * Darmstadt 1995 (the method); Hairer, Wanner: Solving Ordinary Differential Equations II, 2nd ed. 1996, IV.7
 * (Rosenbrock methods, this form of the stages). tests/unit/native_solvers checks all conditions of order 4 on the
 * numbers of rodasp.h.
 */
#include "rodasp.h"
#include "solver.h"

/* Interpolant: weights of the quadratic and of the cubic term. */
static const double mb2fmu_rodasp_quadratic[MB2FMU_RODASP_STAGES - 1] = {
    25.09876703708589, 11.62013104361867, 28.49148307714626, -5.664021568594133, 0.0};
static const double mb2fmu_rodasp_cubic[MB2FMU_RODASP_STAGES - 1] = {
    1.638054557396973, -0.7373619806678748, 8.477918219238990, 15.99253148779520, -1.882352941176471};

/* Notes a failed solve of the model (number > 0) or of the method (0). */
static enum mb2fmu_outcome mb2fmu_rosenbrock_singular(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                                      int number)
{
    problem->failed = number;
    integrator->work.fault_time = t;
    integrator->work.fault_state = -1;
    return MB2FMU_STEP_SINGULAR;
}

/* Adds what moving inputs contribute to the derivative of f along time: all of it is a derivative in the direction
 * (1, 0, r1, 0) then. */
static int mb2fmu_rosenbrock_drift(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t)
{
    mb2fmu_work *const work = &integrator->work;
    int moving = 0;
    for (int i = 0; i < MB2FMU_N_SEEDS; i++) {
        work->seeds[i] = 0.0;
    }
    work->seeds[MB2FMU_SEED_TIME] = 1.0;
    for (int i = 0; problem->r1 != NULL && i < MB2FMU_N_INPUTS; i++) {
        work->seeds[MB2FMU_SEED_INPUTS + i] = problem->r1[i];
        moving = moving || problem->r1[i] != 0.0;
    }
    if (!moving) {
        return 0;
    }
    const int number = model_tangent(t, work->x, work->r, problem->p, problem->w, work->seeds, work->out);
    for (int i = 0; number == 0 && i < MB2FMU_N_STATES; i++) {
        work->drift[i] = work->out[MB2FMU_OUT_DERIVATIVES + i];
    }
    return number;
}

/* Jacobian and drift at (t, work.x), once for all attempts from there. */
static enum mb2fmu_outcome mb2fmu_rosenbrock_linearize(mb2fmu_integrator *integrator, mb2fmu_problem *problem,
                                                       double t)
{
    mb2fmu_work *const work = &integrator->work;
    if (work->linearized) {
        return MB2FMU_STEP_OK;
    }
    mb2fmu_solver_inputs(work, problem, t);
    int number = model_jacobian(t, work->x, work->r, problem->p, problem->w, work->jacobian, work->drift);
    if (number == 0) {
        number = mb2fmu_rosenbrock_drift(integrator, problem, t);
    }
    if (number != 0) {
        return mb2fmu_rosenbrock_singular(integrator, problem, t, number);
    }
    for (int k = 0; k < MB2FMU_N_STATES * MB2FMU_N_STATES; k++) {
        if (!isfinite(work->jacobian[k])) {
            work->fault_time = t;
            work->fault_state = k / MB2FMU_SIZE(MB2FMU_N_STATES);
            return MB2FMU_STEP_NOT_FINITE;
        }
    }
    work->linearized = 1;
    return mb2fmu_solver_check(work, t, work->drift);
}

/* Factors 1/(gamma h) - J. */
static enum mb2fmu_outcome mb2fmu_rosenbrock_factor(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                                    double h)
{
    double *const matrix = integrator->work.matrix;
    for (int k = 0; k < MB2FMU_N_STATES * MB2FMU_N_STATES; k++) {
        matrix[k] = 0.0 - integrator->work.jacobian[k]; /* no zero is negative */
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        matrix[i * MB2FMU_N_STATES + i] += 1.0 / (MB2FMU_RODASP_GAMMA * h);
    }
    if (mb2fmu_lu_factor(MB2FMU_N_STATES, matrix) != 0) {
        return mb2fmu_rosenbrock_singular(integrator, problem, t, 0);
    }
    return MB2FMU_STEP_OK;
}

/* Stage i: k_i. Its argument x + sum_j a_ij k_j stays in work.point. */
static enum mb2fmu_outcome mb2fmu_rosenbrock_stage(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                                   double h, int stage)
{
    mb2fmu_work *const work = &integrator->work;
    double *const right = work->k[stage];
    const double *value = integrator->memory.slope;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        double sum = work->x[i];
        for (int j = 0; j < stage; j++) {
            sum += mb2fmu_rodasp_a[stage][j] * work->k[j][i];
        }
        work->point[i] = sum;
    }
    if (stage > 0) {
        const enum mb2fmu_outcome outcome =
            mb2fmu_solver_evaluate(integrator, problem, t + mb2fmu_rodasp_alpha[stage] * h, work->point, right);
        if (outcome != MB2FMU_STEP_OK) {
            return outcome;
        }
        value = right;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        double sum = 0.0;
        for (int j = 0; j < stage; j++) {
            sum += mb2fmu_rodasp_c[stage][j] * work->k[j][i];
        }
        right[i] = value[i] + sum / h + h * mb2fmu_rodasp_d[stage] * work->drift[i];
    }
    mb2fmu_lu_solve(MB2FMU_N_STATES, work->matrix, right);
    return MB2FMU_STEP_OK;
}

static enum mb2fmu_outcome mb2fmu_rosenbrock_step(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                                  double h)
{
    mb2fmu_work *const work = &integrator->work;
    enum mb2fmu_outcome outcome = mb2fmu_rosenbrock_linearize(integrator, problem, t);
    if (outcome == MB2FMU_STEP_OK) {
        outcome = mb2fmu_rosenbrock_factor(integrator, problem, t, h);
    }
    for (int stage = 0; outcome == MB2FMU_STEP_OK && stage < MB2FMU_RODASP_STAGES; stage++) {
        outcome = mb2fmu_rosenbrock_stage(integrator, problem, t, h, stage);
    }
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->error[i] = work->k[MB2FMU_RODASP_STAGES - 1][i];
        work->next[i] = work->point[i] + work->error[i];
    }
    return mb2fmu_solver_check(work, t + h, work->next);
}

static void mb2fmu_rosenbrock_dense(const mb2fmu_work *work, double s, double x[])
{
    const double left = 1.0 - s;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        double quadratic = 0.0;
        double cubic = 0.0;
        for (int j = 0; j < MB2FMU_RODASP_STAGES - 1; j++) {
            quadratic += mb2fmu_rodasp_quadratic[j] * work->k[j][i];
            cubic += mb2fmu_rodasp_cubic[j] * work->k[j][i];
        }
        x[i] = work->before_step[i] * left + s * (work->next[i] + left * (quadratic + s * cubic));
    }
}
