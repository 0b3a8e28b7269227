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

static enum mb2fmu_status mb2fmu_pose(mb2fmu_instance *instance, mb2fmu_problem *problem)
{
    const mb2fmu_snapshot *const now = &instance->now;
    const enum mb2fmu_status status = mb2fmu_need(instance, MB2FMU_SOURCE_CALCULATED);
    int i;
    memset(problem, 0, sizeof *problem);
    problem->p = now->p;
    problem->w = instance->w;
    problem->r0 = now->r;
    for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
        if (now->slope[i] != 0.0) {
            problem->r1 = now->slope;
        }
    }
    problem->t0 = now->clock.time;
    return status;
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
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the step begins at %g s, but the unit is at %g s", point,
                           now->clock.time);
    }
    if (now->stop_defined && mb2fmu_clock_passes(&now->clock, size, now->stop)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "a step of %g s from %g s goes past the stop time %g s", size,
                           now->clock.time, now->stop);
    }
    return MB2FMU_OK;
}

/* After an accepted internal step: the host sees and changes the unit as it is there. */
static int mb2fmu_at_internal_step(void *host, double t, const double x[], double *until)
{
    mb2fmu_instance *const instance = (mb2fmu_instance *)host;
    mb2fmu_snapshot *const now = &instance->now;
    int answer;
    memcpy(now->x, x, sizeof now->x);
    now->clock.time = t;
    now->mode = MB2FMU_INTERMEDIATE;
    instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
    instance->intermediate_set = 0;
    instance->inputs_changed = 0;
    answer = mb2fmu_ask(instance, t, until);
    if (now->mode != MB2FMU_INTERMEDIATE) {
        return MB2FMU_STOP; /* a call was refused: the step has failed */
    }
    now->mode = MB2FMU_STEP;
    return answer | (instance->inputs_changed ? MB2FMU_INPUTS_CHANGED : MB2FMU_GO_ON);
}

/* Time, states and inputs at the end of a step that was made. */
static void mb2fmu_arrive(mb2fmu_instance *instance, const mb2fmu_problem *problem, double size, int early)
{
    mb2fmu_snapshot *const now = &instance->now;
    const double passed = early ? problem->reached - problem->t0 : size;
    int i;
    now->clock = instance->before.clock;
    mb2fmu_clock_advance(&now->clock, passed);
    if (early) {
        now->clock.time = problem->reached;
        now->clock.rest = 0.0;
    }
    memcpy(now->x, instance->x_next, sizeof now->x);
    for (i = 0; problem->r1 != NULL && i < MB2FMU_N_INPUTS; ++i) {
        now->r[i] += now->slope[i] * passed;
    }
    instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
}

static enum mb2fmu_status mb2fmu_step(mb2fmu_instance *instance, double point, double size, int *early)
{
    mb2fmu_snapshot *const now = &instance->now;
    char reason[512];
    mb2fmu_problem problem;
    enum mb2fmu_outcome outcome;
    enum mb2fmu_status status = mb2fmu_may_step(instance, point, size);
    status = status == MB2FMU_OK ? mb2fmu_pose(instance, &problem) : status;
    *early = 0;
    if (status != MB2FMU_OK) {
        return status;
    }
    memcpy(&instance->before, now, sizeof *now);
    memcpy(instance->x_next, now->x, sizeof now->x);
    if (instance->intermediate_update != NULL) {
        problem.accepted = mb2fmu_at_internal_step;
        problem.host = instance;
    }
    outcome = mb2fmu_integrate(&instance->integrator, &problem, problem.t0, size, instance->x_next, reason,
                               sizeof reason);
    if (now->mode == MB2FMU_FAILED || outcome != MB2FMU_STEP_OK) {
        const int refused = now->mode == MB2FMU_FAILED; /* and the host was told why */
        memcpy(now, &instance->before, sizeof *now);
        instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
        return refused ? mb2fmu_fail(instance, MB2FMU_ERROR, "a call was refused in an intermediate update")
                       : mb2fmu_fail(instance, MB2FMU_DISCARD, "%s", reason);
    }
    *early = problem.reached < problem.t0 + size;
    mb2fmu_arrive(instance, &problem, size, *early);
    return MB2FMU_OK;
}
