/* cosimulation.c: the entrance to the solvers, their memory, messages, slopes of outputs, and time (solver.h).
 *
 * A step works on copies and hands them over when all of it has succeeded; on failure memory goes back to what it was.
 *
 * Source for the clock's sum: Knuth: The Art of Computer Programming 2, 4.2.2, theorem B (error of a sum).
 */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "solver.h"

/* --- evaluation --------------------------------------------------------------------------------------------------- */

static void mb2fmu_solver_inputs(mb2fmu_work *work, const mb2fmu_problem *problem, double t)
{
    for (int i = 0; i < MB2FMU_N_INPUTS; i++) {
        work->r[i] = problem->r1 != NULL ? problem->r0[i] + problem->r1[i] * (t - problem->t0) : problem->r0[i];
    }
}

static enum mb2fmu_outcome mb2fmu_solver_check(mb2fmu_work *work, double t, const double values[])
{
    double sum = 0.0;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        sum += values[i] * 0.0;
    }
    if (sum == 0.0) {
        return MB2FMU_STEP_OK;
    }
    work->fault_time = t;
    for (work->fault_state = 0; isfinite(values[work->fault_state]);) {
        work->fault_state++;
    }
    return MB2FMU_STEP_NOT_FINITE;
}

static enum mb2fmu_outcome mb2fmu_solver_evaluate(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                                  const double x[], double dx[])
{
    mb2fmu_work *const work = &integrator->work;
    mb2fmu_solver_inputs(work, problem, t);
    problem->calls++;
    const int number = model_rhs(t, x, work->r, problem->p, problem->w, dx);
    if (number != 0) {
        problem->failed = number;
        work->fault_time = t;
        work->fault_state = -1;
        return MB2FMU_STEP_SINGULAR;
    }
    return mb2fmu_solver_check(work, t, dx);
}

static enum mb2fmu_outcome mb2fmu_output_slope(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t,
                                               const double x[], double out[])
{
    mb2fmu_work *const work = &integrator->work;
    const enum mb2fmu_outcome outcome = mb2fmu_solver_evaluate(integrator, problem, t, x, work->error);
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    for (int i = 0; i < MB2FMU_N_SEEDS; i++) {
        work->seeds[i] = 0.0;
    }
    work->seeds[MB2FMU_SEED_TIME] = 1.0;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        work->seeds[MB2FMU_SEED_STATES + i] = work->error[i];
    }
    for (int i = 0; problem->r1 != NULL && i < MB2FMU_N_INPUTS; i++) {
        work->seeds[MB2FMU_SEED_INPUTS + i] = problem->r1[i];
    }
    problem->failed = model_tangent(t, x, work->r, problem->p, problem->w, work->seeds, out);
    return problem->failed == 0 ? MB2FMU_STEP_OK : MB2FMU_STEP_SINGULAR;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void mb2fmu_integrator_reset(mb2fmu_integrator *integrator, int solver, double tolerance, double fixed_step)
{
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    const double relative = tolerance > 0.0 ? tolerance : MB2FMU_DEFAULT_TOLERANCE;
    memset(integrator, 0, sizeof *integrator);
    memory->solver = mb2fmu_solver_known(solver) ? solver : MB2FMU_DEFAULT_SOLVER;
    memory->tolerance = relative;
    if (!(relative > MB2FMU_MIN_TOLERANCE)) {
        memory->tolerance = MB2FMU_MIN_TOLERANCE;
    } else if (relative > MB2FMU_MAX_TOLERANCE) {
        memory->tolerance = MB2FMU_MAX_TOLERANCE;
    }
    memory->fixed_step = fixed_step > 0.0 && fixed_step < MB2FMU_INFINITY ? fixed_step : 0.0;
    for (int i = 0; i < MB2FMU_N_VARIABLES; i++) {
        const mb2fmu_variable *const variable = &model_variables[i];
        if (variable->source == MB2FMU_SOURCE_STATE) {
            integrator->work.scale[variable->index] = 0.01 * variable->nominal;
        }
    }
}

static void mb2fmu_integrator_invalidate(mb2fmu_integrator *integrator)
{
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    memory->last_step = 0.0;
    memory->last_error = 0.0;
    memory->slope_known = 0;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        memory->slope[i] = 0.0;
    }
    integrator->work.dense = 0;
    integrator->work.linearized = 0;
}

static void mb2fmu_integrator_save(const mb2fmu_integrator *integrator, double reals[], int64_t integers[])
{
    const mb2fmu_integrator_memory *const memory = &integrator->memory;
    reals[0] = memory->tolerance;
    reals[1] = memory->fixed_step;
    reals[2] = memory->step;
    reals[3] = memory->last_step;
    reals[4] = memory->last_error;
    for (int i = 0; i < MB2FMU_SIZE(MB2FMU_N_STATES); i++) {
        reals[5 + i] = memory->slope[i];
    }
    integers[0] = memory->solver;
    integers[1] = memory->slope_known;
}

static int mb2fmu_integrator_load(mb2fmu_integrator *integrator, const double reals[], const int64_t integers[])
{
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    int wrong = !(reals[0] >= MB2FMU_MIN_TOLERANCE && reals[0] <= MB2FMU_MAX_TOLERANCE) ||
                !mb2fmu_solver_known(integers[0]) || integers[1] < 0 || integers[1] > 1;
    for (int i = 0; i < MB2FMU_INTEGRATOR_REALS; i++) {
        wrong = wrong || !isfinite(reals[i]) || (i < 5 && reals[i] < 0.0);
    }
    if (wrong) {
        return 1;
    }
    memory->tolerance = reals[0];
    memory->fixed_step = reals[1];
    memory->step = reals[2];
    memory->last_step = reals[3];
    memory->last_error = reals[4];
    for (int i = 0; i < MB2FMU_SIZE(MB2FMU_N_STATES); i++) {
        memory->slope[i] = reals[5 + i];
    }
    memory->solver = integers[0];
    memory->slope_known = integers[1];
    integrator->work.dense = 0;
    integrator->work.linearized = 0;
    return 0;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

#define MB2FMU_NUMBER_SIZE 40

/* A number as text with a decimal point, whatever the host's locale writes there. Returns `text`. */
static const char *mb2fmu_solver_number(char text[MB2FMU_NUMBER_SIZE], double value)
{
    (void)snprintf(text, MB2FMU_NUMBER_SIZE, "%.15g", value);
    size_t kept = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        const int usual = strchr("0123456789+-einfa.", text[i]) != NULL;
        if (usual) {
            text[kept++] = text[i];
        } else if (kept == 0 || text[kept - 1] != '.') {
            text[kept++] = '.';
        }
    }
    text[kept] = '\0';
    return text;
}

/* Name of a state as the FMU's interface has it. */
static const char *mb2fmu_solver_state(int state)
{
    for (int i = 0; i < MB2FMU_N_VARIABLES; i++) {
        if (model_variables[i].source == MB2FMU_SOURCE_STATE && model_variables[i].index == state) {
            return model_variables[i].name;
        }
    }
    return "a state";
}

/* Adds ", <name> by <gap>" where text is long enough for all of it. */
static void mb2fmu_clause_add(char text[MB2FMU_CLAUSE_SIZE], const char *name, size_t length, double gap)
{
    char number[MB2FMU_NUMBER_SIZE];
    const size_t used = strlen(text);
    (void)mb2fmu_solver_number(number, gap);
    if (used + length + strlen(number) + sizeof ",  by " <= MB2FMU_CLAUSE_SIZE) {
        (void)snprintf(text + used, MB2FMU_CLAUSE_SIZE - used, ", %.*s by %s", (int)length, name, number);
    }
}

static const char *mb2fmu_clause(const mb2fmu_prepared *w, int failed, char text[MB2FMU_CLAUSE_SIZE])
{
    const char *const clause = model_failure(failed);
    const char *row = strchr(clause, '\n');
    if (row == NULL) {
        return clause;
    }
    (void)snprintf(text, MB2FMU_CLAUSE_SIZE, "%.*s", (int)(row - clause), clause);
    for (int i = 0; row != NULL; i++) {
        const char *const name = row + 1;
        row = strchr(name, '\n');
        if (w->work[i] != 0.0) {
            mb2fmu_clause_add(text, name, row == NULL ? strlen(name) : (size_t)(row - name), w->work[i]);
        }
    }
    return text;
}

/* The solve that failed, and how. */
static const char *mb2fmu_solver_solve(const mb2fmu_problem *problem, char text[MB2FMU_CLAUSE_SIZE])
{
    if (problem->failed == 0) {
        return "the matrix of the implicit method is singular";
    }
    return mb2fmu_clause(problem->w, problem->failed, text);
}

/* Why the loop ended before its end. */
static void mb2fmu_solver_explain(const mb2fmu_integrator *integrator, const mb2fmu_problem *problem,
                                  const mb2fmu_step_loop *loop, enum mb2fmu_outcome outcome, char *message, size_t size)
{
    const mb2fmu_work *const work = &integrator->work;
    char start[MB2FMU_NUMBER_SIZE], span[MB2FMU_NUMBER_SIZE], step[MB2FMU_NUMBER_SIZE];
    char here[MB2FMU_NUMBER_SIZE], fault[MB2FMU_NUMBER_SIZE], clause[MB2FMU_CLAUSE_SIZE];
    const char *const state = work->fault_state < 0 ? "" : mb2fmu_solver_state(work->fault_state);
    (void)mb2fmu_solver_number(start, loop->start);
    (void)mb2fmu_solver_number(span, loop->span);
    (void)mb2fmu_solver_number(step, loop->step);
    (void)mb2fmu_solver_number(here, loop->start + loop->passed);
    (void)mb2fmu_solver_number(fault, work->fault_time);
    if (outcome == MB2FMU_STEP_TOO_SMALL) {
        (void)snprintf(message, size,
                       "step from %s s by %s s: at %s s the internal step has shrunk to %s s and the error of %s is "
                       "still above the tolerance",
                       start, span, here, step, state);
    } else if (outcome == MB2FMU_STEP_NOT_FINITE) {
        (void)snprintf(message, size,
                       "step from %s s by %s s: at %s s %s or its derivative is not finite (internal step %s s)", start,
                       span, fault, state, step);
    } else if (outcome == MB2FMU_STEP_SINGULAR) {
        (void)snprintf(message, size, "step from %s s by %s s: at %s s %s (internal step %s s)", start,
                       span, fault, mb2fmu_solver_solve(problem, clause), step);
#if MB2FMU_N_MODES > 0
    } else if (outcome == MB2FMU_STEP_UNSETTLED) {
        const int one = work->settling.last[0], other = work->settling.last[1];
        (void)snprintf(message, size,
                       "step from %s s by %s s: at %s s, event %lu, %s; changed last: %s%s%s", start, span, fault,
                       problem->events,
                       problem->unsettled == MB2FMU_NOT_FINITE
                           ? "events set a state to two values at once, or to what is no finite number"
                       : problem->unsettled == MB2FMU_CHATTERS ? "no modes are right: they switch to and fro"
                                                               : "events follow each other without end",
                       one < 0 ? "none" : model_switches[one].name, other < 0 ? "" : ", ",
                       other < 0 ? "" : model_switches[other].name);
#endif
    } else {
        (void)snprintf(message, size,
                       "step from %s s by %s s: %smore than %ld internal steps; given up after %lu of them and %lu "
                       "evaluations of the derivatives; reached %s s with steps of %s s%s",
                       start, span, loop->hopeless ? "would take " : "",
                       mb2fmu_loop_is_adaptive(integrator) ? (long)MB2FMU_MAX_INTERNAL_STEPS
                                                           : (long)MB2FMU_MAX_FIXED_STEPS,
                       problem->steps + problem->rejected, problem->calls, here, step,
                       mb2fmu_method_of(&integrator->memory)->control == MB2FMU_PROPORTIONAL_INTEGRAL
                           ? "; a stiff model needs solver 4, unless this is a singular position"
                           : "");
    }
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* What cannot even begin. */
static enum mb2fmu_outcome mb2fmu_solver_refuse(mb2fmu_work *work, double t, double h, const double x[], char *message,
                                                size_t size)
{
    char from[MB2FMU_NUMBER_SIZE], by[MB2FMU_NUMBER_SIZE];
    const int possible = h > 0.0 && h < MB2FMU_INFINITY && isfinite(t) && isfinite(t + h);
    if (possible && mb2fmu_solver_check(work, t, x) == MB2FMU_STEP_OK) {
        return MB2FMU_STEP_OK;
    }
    (void)snprintf(message, size, "step from %s s by %s s: %s", mb2fmu_solver_number(from, t),
                   mb2fmu_solver_number(by, h), possible ? mb2fmu_solver_state(work->fault_state) : "not a step");
    if (!possible) {
        return MB2FMU_STEP_TOO_SMALL;
    }
    const size_t used = strlen(message);
    (void)snprintf(message + used, size - used, " is not finite before it");
    return MB2FMU_STEP_NOT_FINITE;
}

#if MB2FMU_N_PROJECTED > 0
/* Puts the state reached on the constraints, from which integration may have taken it by its tolerance. */
static void mb2fmu_solver_project(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, double x[])
{
    mb2fmu_work *const work = &integrator->work;
    mb2fmu_integrator_memory *const memory = &integrator->memory;
    mb2fmu_solver_inputs(work, problem, t);
    int possible = model_project(t, x, work->r, problem->p, problem->w, work->point) == 0;
    for (int i = 0; i < MB2FMU_N_PROJECTED; i++) {
        possible = possible && isfinite(work->point[i]);
    }
    if (!possible) {
        return; /* what was reached is within the tolerance */
    }
    for (int i = 0; i < MB2FMU_N_PROJECTED; i++) {
        x[i] = work->point[i];
    }
    memory->slope_known = 0;
    for (int i = 0; i < MB2FMU_N_STATES; i++) {
        memory->slope[i] = 0.0;
    }
}
#endif

static enum mb2fmu_outcome mb2fmu_integrate(mb2fmu_integrator *integrator, mb2fmu_problem *problem, double t, double h,
                                            double x[], char *message, size_t size)
{
    mb2fmu_work *const work = &integrator->work;
    mb2fmu_step_loop loop = {.start = t, .end = t + h, .span = h};
    message[0] = '\0';
    problem->reached = t;
    problem->failed = 0;
    enum mb2fmu_outcome outcome = mb2fmu_solver_refuse(work, t, h, x, message, size);
    if (outcome != MB2FMU_STEP_OK) {
        return outcome;
    }
    if (MB2FMU_N_STATES == 0) { /* one internal step */
        double until = loop.end;
        if (problem->accepted != NULL) {
            (void)problem->accepted(problem->host, loop.end, x, &until);
        }
        problem->reached = loop.end;
        return MB2FMU_STEP_OK;
    }
    work->before = integrator->memory;
    work->dense = 0;
    work->linearized = 0;
    memcpy(work->x, x, sizeof work->x);
    outcome = mb2fmu_loop_is_adaptive(integrator) ? mb2fmu_loop_adaptive(integrator, problem, &loop)
                                                  : mb2fmu_loop_fixed(integrator, problem, &loop);
    if (outcome != MB2FMU_STEP_OK) {
        mb2fmu_solver_explain(integrator, problem, &loop, outcome, message, size);
        integrator->memory = work->before;
        work->dense = 0;
        return outcome;
    }
    memcpy(x, work->x, sizeof work->x);
    problem->failed = 0;
    problem->reached = loop.passed < loop.span ? t + loop.passed : loop.end;
#if MB2FMU_N_PROJECTED > 0
    mb2fmu_solver_project(integrator, problem, problem->reached, x);
#endif
    return MB2FMU_STEP_OK;
}

static int mb2fmu_integrator_dense(const mb2fmu_integrator *integrator, double t, double x[])
{
    const mb2fmu_work *const work = &integrator->work;
    const double s = work->dense ? (t - work->start) / work->step : MB2FMU_NAN;
    /* Times near the ends may lie outside by round-off. */
    const double slack = work->dense ? 4.0 * DBL_EPSILON * (1.0 + fabs(work->start) / work->step) : 0.0;
    if (!(s >= -slack && s <= 1.0 + slack)) {
        return 1;
    }
    const double inside = s < 0.0 ? 0.0 : s;
    const double place = inside > 1.0 ? 1.0 : inside;
    mb2fmu_method_of(&integrator->memory)->dense(work, place, x);
    return 0;
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void mb2fmu_clock_start(mb2fmu_clock *clock, double start)
{
    clock->time = start;
    clock->rest = 0.0;
    clock->steps = 0;
}

static void mb2fmu_clock_advance(mb2fmu_clock *clock, double h)
{
    const double sum = clock->time + h;
    const double added = sum - clock->time;
    const double rest = clock->rest + ((clock->time - (sum - added)) + (h - added));
    clock->time = sum + rest;
    clock->rest = rest - (clock->time - sum);
    clock->steps++;
}

static int mb2fmu_clock_possible(const mb2fmu_clock *clock)
{
    const double digit = DBL_EPSILON * fabs(clock->time); /* at least that of the time's last digit */
    return isfinite(clock->time) && fabs(clock->rest) <= digit && clock->steps >= 0 &&
           clock->steps <= MB2FMU_MOST_STEPS;
}

static double mb2fmu_clock_slack(const mb2fmu_clock *clock, double h)
{
    return ((double)clock->steps + 16.0) * DBL_EPSILON * fabs(clock->time) + 1e-6 * fabs(h);
}

static int mb2fmu_clock_agrees(const mb2fmu_clock *clock, double point, double h)
{
    return fabs(point - clock->time) <= mb2fmu_clock_slack(clock, h);
}

static int mb2fmu_clock_passes(const mb2fmu_clock *clock, double h, double stop)
{
    return clock->time + h > stop + mb2fmu_clock_slack(clock, h);
}
