/* instance.c: an instance's life, and the calls that change what everything depends on; see instance.h. */
#include "instance.h"

static int mb2fmu_missing(mb2fmu_instance *instance, const void *argument, size_t n, const char *name)
{
    if (n == 0 || argument != NULL) {
        return 0;
    }
    (void)mb2fmu_fail(instance, MB2FMU_ERROR, "the argument %s is a null pointer", name);
    return 1;
}

static void mb2fmu_changed(mb2fmu_instance *instance, enum mb2fmu_source source)
{
    instance->levels &= source == MB2FMU_SOURCE_PARAMETER ? 0u : (unsigned)MB2FMU_LEVEL_PREPARED;
    if (instance->now.mode != MB2FMU_INTERMEDIATE) { /* else it is at work, and is told when the host has finished */
        mb2fmu_integrator_invalidate(&instance->integrator);
    }
}

/* The same time again leaves what has been computed valid. */
static void mb2fmu_set_time(mb2fmu_instance *instance, double t)
{
    if (memcmp(&t, &instance->now.clock.time, sizeof t) != 0) {
        mb2fmu_clock_start(&instance->now.clock, t);
        mb2fmu_changed(instance, MB2FMU_SOURCE_TIME);
    }
}

static enum mb2fmu_status mb2fmu_import_time(mb2fmu_instance *instance, double t)
{
    if (!isfinite(t)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "%s would be %g, not a finite number",
                           mb2fmu_name_of(MB2FMU_SOURCE_TIME, 0), t);
    }
    mb2fmu_set_time(instance, t);
    return MB2FMU_OK;
}

static void mb2fmu_set_start_values(mb2fmu_snapshot *now)
{
    int i;
    for (i = 0; i < MB2FMU_N_VARIABLES; ++i) {
        const mb2fmu_variable *const variable = &model_variables[i];
        if (isnan(variable->start)) {
            continue;
        }
        switch (variable->source) {
        case MB2FMU_SOURCE_STATE:
            now->x[variable->index] = variable->start;
            break;
        case MB2FMU_SOURCE_INPUT:
            now->r[variable->index] = variable->start;
            break;
        case MB2FMU_SOURCE_PARAMETER:
            now->p[variable->index] = variable->start;
            break;
        case MB2FMU_SOURCE_SOLVER:
            now->solver = (int)variable->start;
            break;
        case MB2FMU_SOURCE_SOLVER_STEP:
            now->solver_step = variable->start;
            break;
        default:
            break;
        }
    }
#if MB2FMU_N_INITIALIZED > 0
    memcpy(now->declared, now->x, sizeof now->declared);
#endif
}

static void mb2fmu_recall(mb2fmu_instance *instance)
{
#if MB2FMU_N_MEMORY > 0
    memcpy(instance->w->values + MB2FMU_N_CALCULATED, instance->now.memory, sizeof instance->now.memory);
#else
    (void)instance;
#endif
}

/* What has been computed for this point begins with the old memory, and comes out with other last digits. */
static int mb2fmu_remember(mb2fmu_instance *instance)
{
#if MB2FMU_N_MEMORY > 0
    mb2fmu_snapshot *const now = &instance->now;
    double found[MB2FMU_N_MEMORY];
    int failed = mb2fmu_provide(instance, MB2FMU_LEVEL_PREPARED);
    if (failed == 0) {
        failed = model_remember(now->clock.time, now->x, now->r, now->p, instance->w, found);
    }
    if (failed == 0) {
        memcpy(now->memory, found, sizeof found);
        mb2fmu_recall(instance);
        instance->levels &= (unsigned)MB2FMU_LEVEL_PREPARED;
    }
    return failed;
#else
    (void)instance;
    return 0;
#endif
}

/* All bytes first: equal states are equal bytes, those between the members too. */
static void mb2fmu_instance_reset(mb2fmu_instance *instance)
{
    mb2fmu_snapshot *const now = &instance->now;
    memset(now, 0, sizeof *now);
    now->mode = MB2FMU_INSTANTIATED;
    now->solver = MB2FMU_DEFAULT_SOLVER;
    now->start = MB2FMU_DEFAULT_START;
    mb2fmu_clock_start(&now->clock, now->start);
    now->tolerance = MB2FMU_DEFAULT_TOLERANCE;
    now->solver_step = MB2FMU_DEFAULT_INTERNAL_STEP;
    mb2fmu_set_start_values(now);
#if MB2FMU_N_MEMORY > 0
    memcpy(now->memory, model_first_memory, sizeof now->memory);
#endif
    mb2fmu_recall(instance);
    mb2fmu_integrator_reset(&instance->integrator, now->solver, now->tolerance, now->solver_step);
    instance->levels = 0;
    instance->intermediate_set = 0;
}

static mb2fmu_instance *mb2fmu_instance_create(enum mb2fmu_kind kind, const char *name)
{
    const size_t length = strlen(name) + 1, room = model_room();
    mb2fmu_instance *const instance =
        (mb2fmu_instance *)MB2FMU_CALLOC(1, sizeof *instance + room * sizeof(double) + length);
    if (instance == NULL) {
        return NULL;
    }
    instance->kind = kind;
    instance->function = "";
    model_start(instance->w, (double *)(void *)(instance + 1));
    instance->name = (char *)(instance + 1) + room * sizeof(double);
    memcpy(instance->name, name, length);
    mb2fmu_instance_reset(instance);
    return instance;
}

static enum mb2fmu_status mb2fmu_set_experiment(mb2fmu_instance *instance, int tolerance_defined, double tolerance,
                                                double start, int stop_defined, double stop)
{
    mb2fmu_snapshot *const now = &instance->now;
    if (!isfinite(start)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the start time is %g, not a finite number", start);
    }
    if (stop_defined && !(stop >= start)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the stop time %g is not after the start time %g", stop, start);
    }
    if (tolerance_defined && !(isfinite(tolerance) && tolerance > 0.0)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the tolerance is %g, not a positive finite number", tolerance);
    }
    mb2fmu_set_time(instance, start);
    now->start = start;
    now->stop_defined = stop_defined && isfinite(stop);
    now->stop = now->stop_defined ? stop : 0.0;
    now->tolerance = tolerance_defined ? tolerance : MB2FMU_DEFAULT_TOLERANCE;
    now->experiment_defined = 1;
    return MB2FMU_OK;
}

/* x' at the point where the simulation begins, on the constraints if there are any. 0, or the number of the solve that
 * failed, or -1 - i if component i is not finite. What is found is scratch: it stays in `out`. */
static int mb2fmu_try_to_move(mb2fmu_instance *instance, const double r[])
{
    const mb2fmu_snapshot *const now = &instance->now;
    double *const x = instance->x_next;
    int failed = 0;
    int i;
    memcpy(x, now->x, sizeof now->x);
#if MB2FMU_N_PROJECTED > 0
    failed = model_project(now->clock.time, now->x, r, now->p, instance->w, instance->out);
    memcpy(x, failed == 0 ? instance->out : x, MB2FMU_N_PROJECTED * sizeof x[0]);
#endif
    failed = failed == 0 ? model_rhs(now->clock.time, x, r, now->p, instance->w, instance->out) : failed;
    for (i = 0; failed == 0 && i < MB2FMU_N_STATES; ++i) {
        failed = isfinite(instance->out[i]) ? 0 : -1 - i;
    }
    return failed;
}

/* An FMU that has no x' at its start can make no step, whatever the importer tries: it says so here. Where it is the
 * inputs that do not let it move, they can still be set to others. */
static enum mb2fmu_status mb2fmu_check_motion(mb2fmu_instance *instance)
{
    const mb2fmu_snapshot *const now = &instance->now;
    int failed = mb2fmu_try_to_move(instance, now->r);
    int i;
    if (failed != 0 && MB2FMU_N_INPUTS > 0) {
        for (i = 0; i < MB2FMU_N_INPUTS; ++i) {
            instance->line_end[i] = now->r[i] + 1.0 + 0.125 * i;
        }
        failed = mb2fmu_try_to_move(instance, instance->line_end) == 0 ? 0 : mb2fmu_try_to_move(instance, now->r);
    }
    if (failed > 0) {
        (void)mb2fmu_singular(instance, failed);
    } else if (failed < 0) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "the derivative of %s would be %g, not a finite number",
                          mb2fmu_name_of(MB2FMU_SOURCE_STATE, -1 - failed), instance->out[-1 - failed]);
    }
    return failed == 0 ? MB2FMU_OK
                       : mb2fmu_fail(instance, MB2FMU_ERROR, "the FMU cannot move with these parameters and start "
                                                             "values");
}

/* Calculated parameters, positions and x' are found out here: parameters that make no sense, or do not let a loop
 * close, get no further. */
static enum mb2fmu_status mb2fmu_finish_initialization(mb2fmu_instance *instance)
{
    mb2fmu_snapshot *const now = &instance->now;
    int i;
    if (mb2fmu_need(instance, MB2FMU_SOURCE_CALCULATED) != MB2FMU_OK ||
        mb2fmu_need(instance, MB2FMU_SOURCE_STATE) != MB2FMU_OK ||
        mb2fmu_need(instance, MB2FMU_SOURCE_POSITION) != MB2FMU_OK) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the FMU cannot be initialized with these parameters");
    }
    for (i = 0; i < MB2FMU_N_CALCULATED; ++i) {
        if (!isfinite(instance->w->values[i])) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "with these parameters %s is %g, not a finite number",
                               mb2fmu_name_of(MB2FMU_SOURCE_CALCULATED, i), instance->w->values[i]);
        }
    }
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        if (!isfinite(now->x[i])) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "%s would start as %g, not a finite number",
                               mb2fmu_name_of(MB2FMU_SOURCE_STATE, i), now->x[i]);
        }
    }
    mb2fmu_clock_start(&now->clock, now->start);
    {
        const int failed = mb2fmu_remember(instance);
        if (failed != 0) {
            (void)mb2fmu_singular(instance, failed);
            return mb2fmu_fail(instance, MB2FMU_ERROR, "the FMU cannot be initialized with these start values");
        }
    }
#if MB2FMU_N_MODES > 0
    if (instance->kind == MB2FMU_CO_SIMULATION) { /* in Model Exchange this is for Event Mode, which comes next */
        int changed;
        if (mb2fmu_update(instance, &changed) != MB2FMU_OK) {
            return MB2FMU_ERROR;
        }
    }
#endif
    if (mb2fmu_check_motion(instance) != MB2FMU_OK) {
        return MB2FMU_ERROR;
    }
    mb2fmu_integrator_reset(&instance->integrator, now->solver, now->tolerance, now->solver_step);
    now->mode = instance->kind == MB2FMU_MODEL_EXCHANGE || instance->event_mode ? MB2FMU_EVENT : MB2FMU_STEP;
    return MB2FMU_OK;
}
