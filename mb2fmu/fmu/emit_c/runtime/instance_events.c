/* instance_events.c: modes and events of an instance; a part of values.c where the model has modes. */
#include "events.h"

/* Before the first value is set in Event Mode: what has come through zero by itself is not set to its other side. */
static void mb2fmu_watch_sides(mb2fmu_instance *instance)
{
    mb2fmu_snapshot *const now = &instance->now;
    mb2fmu_settling *const s = &instance->integrator.work.settling;
    const int wanted = now->mode == MB2FMU_EVENT && !s->set;
    if (!wanted || mb2fmu_provide(instance, MB2FMU_LEVEL_PREPARED) != 0 ||
        model_surfaces(now->clock.time, now->x, now->r, now->p, instance->w, s->surface) != 0) {
        return;
    }
    s->set = 1;
    for (int k = 0; k < MB2FMU_N_INDICATORS; k++) {
        s->through[k] = s->surface[k] * instance->w->values[MB2FMU_N_CALCULATED + model_switches[k].memory] < 0.0;
    }
}

static enum mb2fmu_status mb2fmu_unsettled(mb2fmu_instance *instance, enum mb2fmu_status status, int answer)
{
    const mb2fmu_settling *const s = &instance->integrator.work.settling;
    const int one = s->last[0], other = s->last[1];
    if (answer > 0 && status == MB2FMU_DISCARD) { /* nothing was stepped: the host may set other values */
        char clause[MB2FMU_CLAUSE_SIZE];
        return mb2fmu_fail(instance, status, "at time %g: %s", instance->now.clock.time,
                           mb2fmu_clause(instance->w, answer, clause));
    }
    if (answer > 0) {
        return mb2fmu_singular(instance, answer);
    }
    return mb2fmu_fail(instance, status, "at time %g: %s; changed last: %s%s%s", instance->now.clock.time,
                       answer == MB2FMU_CHATTERS ? "no modes are right: they switch to and fro"
                                                 : "events set a state to two values at once, or to what is no finite number",
                       one < 0 ? "none" : model_switches[one].name, other < 0 ? "" : ", ",
                       other < 0 ? "" : model_switches[other].name);
}

static int mb2fmu_find_modes(mb2fmu_instance *instance)
{
    mb2fmu_snapshot *const now = &instance->now;
    const int failed = mb2fmu_begin_modes(&instance->integrator.work.settling, now->clock.time, now->x, now->r, now->p,
                                          instance->w);
    memcpy(now->memory, instance->w->values + MB2FMU_N_CALCULATED, sizeof now->memory);
    return failed;
}

static enum mb2fmu_status mb2fmu_update(mb2fmu_instance *instance, int *changed)
{
    mb2fmu_snapshot *const now = &instance->now;
    mb2fmu_settling *const s = &instance->integrator.work.settling;
    int failed = mb2fmu_provide(instance, MB2FMU_LEVEL_PREPARED);
    *changed = 0;
    memcpy(instance->x_next, now->x, sizeof now->x);
    s->before = now->settled && instance->kind == MB2FMU_CO_SIMULATION ? now->settled_r : NULL;
    if (failed == 0) {
        failed = mb2fmu_settle(s, now->clock.time, instance->x_next, now->r, now->p, instance->w,
                               instance->kind == MB2FMU_MODEL_EXCHANGE ? 0.5 * MB2FMU_OFFSET : 0.5 * MB2FMU_SLACK,
                               s->set, 1);
    }
    s->set = 0;
    if (failed != 0) {
        mb2fmu_recall(instance);
        return mb2fmu_unsettled(instance, MB2FMU_ERROR, failed);
    }
    if (s->changed) {
        *changed = memcmp(instance->x_next, now->x, sizeof now->x) != 0;
        memcpy(now->x, instance->x_next, sizeof now->x);
        memcpy(now->memory, instance->w->values + MB2FMU_N_CALCULATED, sizeof now->memory);
        instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
        mb2fmu_integrator_invalidate(&instance->integrator);
    }
    return MB2FMU_OK;
}

static double mb2fmu_next_event(mb2fmu_instance *instance)
{
#if MB2FMU_N_TIMED > 0
    const mb2fmu_snapshot *const now = &instance->now;
    if (mb2fmu_provide(instance, MB2FMU_LEVEL_PREPARED) == 0) {
        return mb2fmu_next_instant(now->clock.time, now->x, now->r, now->p, instance->w);
    }
#else
    (void)instance;
#endif
    return MB2FMU_INFINITY;
}
