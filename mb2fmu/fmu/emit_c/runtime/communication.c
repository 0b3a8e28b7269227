/* communication.c: communication steps of Co-Simulation.
 *
 * Why it exists: the solvers advance x from t to t + h; this file decides whether a step may be made, keeps the time,
 * and lets the host take part in internal steps. A step is made wholly or not at all: after Discard everything is as
 * before, and a smaller step can follow. Never is a step answered with OK that was not made.
 *
 * Rules: FMI 2.0.5 section 4.2.2, FMI 3.0.2 section 4.2.1: the step is positive; it begins where the last one ended;
 * computing past a defined stop time is an error. Times are compared with the slack that round-off needs, because the
 * importer adds up its own.
 */
#include "instance.h"

/* Inputs as they are at t, and from there on along their lines. */
static void mb2fmu_pose_inputs(const mb2fmu_snapshot *now, mb2fmu_problem *problem, double t)
{
    int i;
    problem->t0 = t;
    problem->r0 = now->r;
    problem->r1 = NULL;
    for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
        if (now->slope[i] != 0.0) {
            problem->r1 = now->slope;
        }
    }
}

static int mb2fmu_pose(mb2fmu_instance *instance, mb2fmu_problem *problem)
{
    const mb2fmu_snapshot *const now = &instance->now;
    const int failed = mb2fmu_provide(instance, MB2FMU_LEVEL_PREPARED);
    memset(problem, 0, sizeof *problem);
    problem->p = now->p;
    problem->w = instance->w;
    mb2fmu_pose_inputs(now, problem, now->clock.time);
    return failed;
}

static enum mb2fmu_status mb2fmu_may_step(mb2fmu_instance *instance, double point, double size)
{
    const mb2fmu_snapshot *const now = &instance->now;
    if (!isfinite(point) || !isfinite(size)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "a step of %g s from %g s is not finite", size, point);
    }
    if (!(size > 0.0)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the step size is %g s; it must be positive", size);
    }
    if (!mb2fmu_clock_agrees(&now->clock, point, size)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the step begins at %g s, but the FMU is at %g s", point,
                           now->clock.time);
    }
    if (now->stop_defined && mb2fmu_clock_passes(&now->clock, size, now->stop)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "a step of %g s from %g s goes past the stop time %g s", size,
                           now->clock.time, now->stop);
    }
    return MB2FMU_OK;
}

/* An internal step begins. */
static void mb2fmu_begin_lines(mb2fmu_instance *instance)
{
    memcpy(instance->line_start, instance->now.r, sizeof instance->line_start);
    memcpy(instance->line_given, instance->now.given, sizeof instance->line_given);
}

/* The importer cannot give derivatives of inputs in FMI 3. Two values that it gave for the two ends of an internal step
 * are a line, and the input goes on along it through the next one. A value that was given for one of them only is held,
 * and where none is given the last value set remains (FMI 3.0.2 section 2.3.8). 1 if the input's course from here on
 * is another one than before. */
static int mb2fmu_new_line(mb2fmu_instance *instance, int i, double length)
{
    mb2fmu_snapshot *const now = &instance->now;
    const double before = now->slope[i];
    const double slope = (now->r[i] - instance->line_start[i]) / length;
    if (!now->given[i]) {
        now->r[i] = instance->line_start[i];
    }
    now->slope[i] = now->given[i] && instance->line_given[i] && isfinite(slope) ? slope : 0.0;
    return now->r[i] != instance->line_end[i] || now->slope[i] != before;
}

/* The next internal step begins at t. 1 if any input takes another course than before. */
static int mb2fmu_new_lines(mb2fmu_instance *instance, double t)
{
    mb2fmu_snapshot *const now = &instance->now;
    mb2fmu_problem *const problem = instance->problem;
    int changed = 0;
    int i;
    for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
        changed |= mb2fmu_new_line(instance, i, t - problem->t0);
    }
    mb2fmu_pose_inputs(now, problem, t);
    mb2fmu_begin_lines(instance);
    return changed;
}

/* After an accepted internal step: the host sees and changes the FMU as it is there; inputs on a line have come to
 * its end. */
static int mb2fmu_at_internal_step(void *host, double t, const double x[], double *until)
{
    mb2fmu_instance *const instance = (mb2fmu_instance *)host;
    mb2fmu_snapshot *const now = &instance->now;
    int answer;
    int i;
    for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
        now->r[i] += now->slope[i] * (t - instance->problem->t0);
        now->given[i] = 0;
    }
    memcpy(instance->line_end, now->r, sizeof now->r);
    memcpy(now->x, x, sizeof now->x);
    now->clock.time = t;
    now->mode = MB2FMU_INTERMEDIATE;
    instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
    instance->intermediate_set = 0;
    answer = mb2fmu_ask(instance, t, until);
    if (instance->refused) {
        return MB2FMU_STOP; /* the step has failed */
    }
    now->mode = MB2FMU_STEP;
    return answer | (mb2fmu_new_lines(instance, t) ? MB2FMU_INPUTS_CHANGED : MB2FMU_GO_ON);
}

/* Time, states and inputs at the end of a step that was made. */
static void mb2fmu_arrive(mb2fmu_instance *instance, const mb2fmu_problem *problem, double size, int early)
{
    mb2fmu_snapshot *const now = &instance->now;
    const double passed = early ? problem->reached - instance->before.clock.time : size;
    const int updated = problem->t0 != instance->before.clock.time; /* inputs are those of the end already */
    int i;
    now->clock = instance->before.clock;
    mb2fmu_clock_advance(&now->clock, passed);
    if (early) {
        now->clock.time = problem->reached;
        now->clock.rest = 0.0;
    }
    memcpy(now->x, instance->x_next, sizeof now->x);
#if MB2FMU_N_MEMORY > 0
    memcpy(now->memory, instance->w->values + MB2FMU_N_CALCULATED, sizeof now->memory);
#endif
    for (i = 0; !updated && i < MB2FMU_N_INPUTS; ++i) {
        now->r[i] += problem->r1 != NULL ? now->slope[i] * passed : 0.0;
        now->given[i] = 0;
    }
#if MB2FMU_N_MODES > 0
    now->settled = 1;
    memcpy(now->settled_r, now->r, sizeof now->r);
#endif
    instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
}

#if MB2FMU_N_MODES > 0
/* Modes as a step begins: inputs and parameters may have been set since the last one. Instants of time have come, too,
 * but for hosts that want to see events. What the integration itself erred by opens no contact. 0, or why there are
 * none. */
static int mb2fmu_settle_before(mb2fmu_instance *instance)
{
    mb2fmu_snapshot *const now = &instance->now;
    mb2fmu_settling *const settling = &instance->integrator.work.settling;
    settling->before = now->settled ? now->settled_r : NULL;
    int answer = mb2fmu_settle(settling, now->clock.time, instance->x_next, now->r, now->p, instance->w,
                               0.5 * MB2FMU_SLACK, 1, !(instance->event_mode && instance->early_return_allowed));
    if (answer == 0 && !settling->changed) {
        answer = mb2fmu_keep_at_rest(settling, now->clock.time, instance->x_next, now->r, now->p, instance->w);
    }
    if (answer == 0 && settling->changed) {
        mb2fmu_integrator_invalidate(&instance->integrator);
    }
    return answer;
}
#endif

#if MB2FMU_N_TIMED > 0
/* An instant at the very end of a step waits for the inputs that are set there: the importer is told to handle it. */
static int mb2fmu_is_due(mb2fmu_instance *instance, double size)
{
    const double time = instance->now.clock.time;
    return mb2fmu_next_event(instance) - time <= 2.0 * MB2FMU_APART * (fabs(time) + size);
}
#endif

static enum mb2fmu_status mb2fmu_step(mb2fmu_instance *instance, double point, double size, int *early)
{
    mb2fmu_snapshot *const now = &instance->now;
    char reason[2 * MB2FMU_CLAUSE_SIZE];
    char clause[MB2FMU_CLAUSE_SIZE];
    mb2fmu_problem problem;
    enum mb2fmu_outcome outcome;
    const enum mb2fmu_status status = mb2fmu_may_step(instance, point, size);
    int failed;
    *early = 0;
    instance->at_event = 0;
    if (status != MB2FMU_OK) {
        return status;
    }
    failed = mb2fmu_pose(instance, &problem);
    if (failed != 0) {
        return mb2fmu_fail(instance, MB2FMU_DISCARD, "with these parameters %s",
                           mb2fmu_clause(instance->w, failed, clause));
    }
    memcpy(&instance->before, now, sizeof *now);
    memcpy(instance->x_next, now->x, sizeof now->x);
    instance->refused = 0;
#if MB2FMU_N_MODES > 0
    failed = mb2fmu_settle_before(instance);
    if (failed != 0) {
        mb2fmu_recall(instance);
        return mb2fmu_unsettled(instance, MB2FMU_DISCARD, failed);
    }
#endif
    if (instance->intermediate_update != NULL) {
        problem.accepted = mb2fmu_at_internal_step;
        problem.host = instance;
        instance->problem = &problem;
        mb2fmu_begin_lines(instance);
    }
#if MB2FMU_N_MODES > 0
    problem.event_mode = instance->event_mode && instance->early_return_allowed;
#endif
    outcome = mb2fmu_integrate(&instance->integrator, &problem, problem.t0, size, instance->x_next, reason,
                               sizeof reason);
    instance->problem = NULL;
    if (instance->refused || outcome != MB2FMU_STEP_OK) {
        const int refused = instance->refused; /* and the host was told why */
        memcpy(now, &instance->before, sizeof *now);
        mb2fmu_recall(instance);
        instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
        return refused ? mb2fmu_fail(instance, MB2FMU_ERROR, "a call was refused in an intermediate update")
                       : mb2fmu_fail(instance, MB2FMU_DISCARD, "%s", reason);
    }
#if MB2FMU_N_MODES > 0
    instance->at_event = problem.at_event;
#endif
    *early = problem.reached < instance->before.clock.time + size;
    mb2fmu_arrive(instance, &problem, size, *early);
#if MB2FMU_N_TIMED > 0
    instance->at_event |= instance->event_mode && !*early && mb2fmu_is_due(instance, size);
#endif
    return MB2FMU_OK;
}
