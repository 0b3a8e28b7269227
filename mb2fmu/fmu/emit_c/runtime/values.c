/* values.c: reading and setting variables, and computing what reading needs.
 *
 * What is computed once stays until time, a state, an input or a parameter changes; each level (FMI calls it caching,
 * 2.0.5 section 3.2.1) is computed only when a variable of it is asked for: a position costs no linear solve.
 *
 * A call that is refused changes nothing: all values are checked before the first is set.
 */
#include <float.h>

#include "instance.h"

static enum mb2fmu_status mb2fmu_no_result(const mb2fmu_instance *instance)
{
    /* FMI 2.0.5 section 2.1.3 lists who may answer Discard: in Co-Simulation no reading function. FMI 3 has no list,
     * but excepts intermediate updates. Where what is read is "for debugging only" (FMI 2.0.5 section 4.2.4: after a
     * step that was discarded, and in the end) Error would take from the importer the way back to a smaller step. */
    const int debugging = MB2FMU_STEP_FAILED | MB2FMU_TERMINATED | MB2FMU_FAILED;
    if (instance->now.mode == MB2FMU_INTERMEDIATE) {
        return MB2FMU_WARNING;
    }
    if (MB2FMU_FMI == 2 && instance->kind == MB2FMU_CO_SIMULATION) {
        return (instance->now.mode & debugging) != 0 ? MB2FMU_WARNING : MB2FMU_ERROR;
    }
    return MB2FMU_DISCARD;
}

static enum mb2fmu_status mb2fmu_undefined(enum mb2fmu_status status, double values[], size_t n)
{
    size_t i;
    for (i = 0; i < n; ++i) {
        values[i] = MB2FMU_NAN;
    }
    return status;
}

static unsigned mb2fmu_level_of(enum mb2fmu_source source)
{
    switch (source) {
    case MB2FMU_SOURCE_CALCULATED:
        return MB2FMU_LEVEL_PREPARED;
    case MB2FMU_SOURCE_DERIVATIVE:
        return MB2FMU_LEVEL_DERIVATIVES;
    case MB2FMU_SOURCE_POSITION:
        return MB2FMU_LEVEL_POSITION;
    case MB2FMU_SOURCE_VELOCITY:
        return MB2FMU_LEVEL_VELOCITY;
    case MB2FMU_SOURCE_ACCELERATION:
        return MB2FMU_LEVEL_ACCELERATION;
    case MB2FMU_SOURCE_DEPENDENT_SPEED:
        return MB2FMU_LEVEL_DEPENDENT_SPEEDS;
    case MB2FMU_SOURCE_SPEED_DERIVATIVE:
        return MB2FMU_LEVEL_ACCELERATIONS;
#if MB2FMU_N_MODES > 0
    case MB2FMU_SOURCE_INDICATOR:
        return MB2FMU_LEVEL_INDICATORS;
    case MB2FMU_SOURCE_MODE:
        return MB2FMU_LEVEL_PREPARED;
#endif
    default:
        return 0;
    }
}

#if MB2FMU_N_MODES > 0
static int mb2fmu_offset_indicators(mb2fmu_instance *instance)
{
    mb2fmu_snapshot *const now = &instance->now;
    const int failed =
        model_indicators(now->clock.time, now->x, now->r, now->p, instance->w, instance->indicators);
    for (int k = 0; k < MB2FMU_N_INDICATORS; k++) {
        instance->indicators[k] += MB2FMU_OFFSET;
    }
    return failed;
}
#endif

/* 0 or the number of the solve that failed. */
static int mb2fmu_compute(mb2fmu_instance *instance, unsigned level)
{
    mb2fmu_snapshot *const now = &instance->now;
    switch (level) {
    case MB2FMU_LEVEL_PREPARED:
        return model_prepare(now->p, instance->w);
    case MB2FMU_LEVEL_DERIVATIVES:
        return model_rhs(now->clock.time, now->x, now->r, now->p, instance->w, instance->dx);
    case MB2FMU_LEVEL_POSITION:
        return model_position(now->clock.time, now->x, now->r, now->p, instance->w, instance->position);
    case MB2FMU_LEVEL_VELOCITY:
        return model_velocity(now->clock.time, now->x, now->r, now->p, instance->w, instance->velocity);
    case MB2FMU_LEVEL_ACCELERATION:
        return model_acceleration(now->clock.time, now->x, now->r, now->p, instance->w, instance->acceleration);
    case MB2FMU_LEVEL_DEPENDENT_SPEEDS:
        return model_dependent_speeds(now->clock.time, now->x, now->r, now->p, instance->w, instance->dependent_speeds);
#if MB2FMU_N_MODES > 0
    case MB2FMU_LEVEL_INDICATORS:
        return mb2fmu_offset_indicators(instance);
#endif
    default:
        return model_accelerations(now->clock.time, now->x, now->r, now->p, instance->w, instance->accelerations);
    }
}

static int mb2fmu_provide(mb2fmu_instance *instance, unsigned wanted)
{
    int failed = 0;
    if ((instance->levels & MB2FMU_LEVEL_PREPARED) == 0) {
        failed = mb2fmu_compute(instance, MB2FMU_LEVEL_PREPARED);
        instance->levels |= failed == 0 ? (unsigned)MB2FMU_LEVEL_PREPARED : 0u;
    }
    if (failed == 0 && (instance->levels & wanted) == 0) {
        failed = mb2fmu_compute(instance, wanted);
        instance->levels |= failed == 0 ? wanted : 0u;
    }
    return failed;
}

static enum mb2fmu_status mb2fmu_need(mb2fmu_instance *instance, enum mb2fmu_source source)
{
    const unsigned wanted = mb2fmu_level_of(source);
    int failed;
#if MB2FMU_STARTS
    if ((MB2FMU_N_INITIALIZED > 0 && source == MB2FMU_SOURCE_STATE) ||
        (wanted & ~(unsigned)MB2FMU_LEVEL_PREPARED) != 0) {
        failed = mb2fmu_find_start(instance);
        if (failed != 0) {
            return mb2fmu_singular(instance, failed);
        }
    }
#endif
    if (wanted == 0 || (instance->levels & wanted) != 0) {
        return MB2FMU_OK;
    }
    failed = mb2fmu_provide(instance, wanted);
    return failed == 0 ? MB2FMU_OK : mb2fmu_singular(instance, failed);
}

/* Of a variable whose level is valid. */
static double mb2fmu_value(const mb2fmu_instance *instance, const mb2fmu_variable *variable)
{
    const int i = variable->index;
    switch (variable->source) {
    case MB2FMU_SOURCE_TIME:
        return instance->now.clock.time;
    case MB2FMU_SOURCE_STATE:
        return instance->now.x[i];
    case MB2FMU_SOURCE_INPUT:
        return instance->now.r[i];
    case MB2FMU_SOURCE_PARAMETER:
        return instance->now.p[i];
    case MB2FMU_SOURCE_SOLVER_STEP:
        return instance->now.solver_step;
    case MB2FMU_SOURCE_CALCULATED:
        return instance->w->values[i];
    case MB2FMU_SOURCE_DEPENDENT_SPEED:
        return instance->dependent_speeds[i];
    case MB2FMU_SOURCE_DERIVATIVE:
        return instance->dx[i];
    case MB2FMU_SOURCE_SPEED_DERIVATIVE:
        return instance->accelerations[i];
    case MB2FMU_SOURCE_POSITION:
        return instance->position[i];
    case MB2FMU_SOURCE_VELOCITY:
        return instance->velocity[i];
#if MB2FMU_N_MODES > 0
    case MB2FMU_SOURCE_INDICATOR:
        return instance->indicators[i];
    case MB2FMU_SOURCE_MODE:
        return instance->w->values[MB2FMU_N_CALCULATED + model_switches[i].memory];
#endif
    default:
        return instance->acceleration[i];
    }
}

static const mb2fmu_variable *mb2fmu_real(mb2fmu_instance *instance, unsigned reference)
{
    if (reference >= (unsigned)MB2FMU_N_VARIABLES || model_variables[reference].source == MB2FMU_SOURCE_SOLVER ||
        model_variables[reference].source == MB2FMU_SOURCE_NONE) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "no real variable has the value reference %u", reference);
        return NULL;
    }
    return &model_variables[reference];
}

/* In intermediate updates only the variables that were announced, and reading comes first (FMI 3.0.2 section 2.3.8).
 * Before initialization only start values can be read (FMI 3.0.2 section 2.3.2; FMI 2 does not come here). */
static int mb2fmu_readable(mb2fmu_instance *instance, unsigned reference, const mb2fmu_variable *variable)
{
    if (instance->now.mode == MB2FMU_INTERMEDIATE && (!instance->required[reference] || instance->intermediate_set)) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "%s cannot be read %s", variable->name,
                          instance->intermediate_set ? "after something was set in this intermediate update"
                                                     : "in intermediate updates: it was not announced");
        return 0;
    }
    if (instance->now.mode == MB2FMU_INSTANTIATED && variable->initial == MB2FMU_INITIAL_CALCULATED) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "%s has no value before Initialization Mode", variable->name);
        return 0;
    }
    return 1;
}

static enum mb2fmu_status mb2fmu_get_real(mb2fmu_instance *instance, const mb2fmu_variable *variable, double *value)
{
    const enum mb2fmu_status status = mb2fmu_need(instance, (enum mb2fmu_source)variable->source);
    if (status != MB2FMU_OK) {
        return mb2fmu_undefined(status, value, 1);
    }
    *value = mb2fmu_value(instance, variable);
    if (!isfinite(*value)) {
        return mb2fmu_fail(instance, mb2fmu_no_result(instance), "at time %g: %s is %g, not a finite number",
                           instance->now.clock.time, variable->name, *value);
    }
    return MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_get_reals(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                           double values[])
{
    enum mb2fmu_status worst = MB2FMU_OK;
    size_t i;
    if (mb2fmu_missing(instance, references, n, "value references") || mb2fmu_missing(instance, values, n, "values")) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < n; ++i) {
        const mb2fmu_variable *const variable = mb2fmu_real(instance, references[i]);
        enum mb2fmu_status status;
        if (variable == NULL || !mb2fmu_readable(instance, references[i], variable)) {
            return MB2FMU_ERROR;
        }
        status = mb2fmu_get_real(instance, variable, &values[i]);
        if (status > MB2FMU_WARNING) {
            return status;
        }
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* Who may be set when: FMI 2.0.5 sections 3.2.3 (conditions 1, 3, 4, 5) and 4.2.4 (1, 3, 6), FMI 3.0.2 sections 2.3.2,
 * 2.3.3, 2.3.5, 3.2.1 and 4.2.1. One liberty beyond them, for importers that evaluate FMUs point by point instead of
 * simulating them: tunable parameters may also be set in Continuous-Time Mode (casadi). */
static int mb2fmu_settable(const mb2fmu_instance *instance, unsigned reference, const mb2fmu_variable *variable)
{
    const int input = variable->source == MB2FMU_SOURCE_INPUT;
    const int state = variable->source == MB2FMU_SOURCE_STATE && variable->initial != MB2FMU_INITIAL_CALCULATED;
    const int tunable = variable->source == MB2FMU_SOURCE_PARAMETER &&
                        variable->variability == MB2FMU_VARIABILITY_TUNABLE;
    const int held = input || state || variable->source == MB2FMU_SOURCE_PARAMETER ||
                     variable->source == MB2FMU_SOURCE_SOLVER || variable->source == MB2FMU_SOURCE_SOLVER_STEP;
    switch (instance->now.mode) {
    case MB2FMU_INSTANTIATED:
        return held && variable->initial != MB2FMU_INITIAL_CALCULATED;
    case MB2FMU_INITIALIZATION:
        return held && (variable->initial == MB2FMU_INITIAL_EXACT || input);
    case MB2FMU_EVENT:
        return input || tunable;
    case MB2FMU_CONTINUOUS:
        return input || tunable || state;
    case MB2FMU_STEP:
    case MB2FMU_STEP_FAILED:
        return input || tunable;
    case MB2FMU_INTERMEDIATE:
        return input && instance->required[reference];
    default:
        return 0;
    }
}

/* Where a settable variable's value lies. */
static double *mb2fmu_place(mb2fmu_snapshot *now, const mb2fmu_variable *variable)
{
    switch (variable->source) {
    case MB2FMU_SOURCE_STATE:
#if MB2FMU_N_INITIALIZED > 0
        if ((now->mode & (MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION)) != 0) {
            return &now->declared[variable->index];
        }
#endif
        return &now->x[variable->index];
    case MB2FMU_SOURCE_INPUT:
        return &now->r[variable->index];
    case MB2FMU_SOURCE_SOLVER_STEP:
        return &now->solver_step;
    default:
        return &now->p[variable->index];
    }
}

static enum mb2fmu_status mb2fmu_check_reals(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                             const double values[])
{
    size_t i;
    if (mb2fmu_missing(instance, references, n, "value references") || mb2fmu_missing(instance, values, n, "values")) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < n; ++i) {
        const mb2fmu_variable *const variable = mb2fmu_real(instance, references[i]);
        if (variable == NULL) {
            return MB2FMU_ERROR;
        }
        if (!mb2fmu_settable(instance, references[i], variable)) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "%s cannot be set %s", variable->name,
                               mb2fmu_mode_name(instance->now.mode));
        }
        if (!isfinite(values[i])) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "%s would be %g, not a finite number", variable->name,
                               values[i]);
        }
        if (variable->source == MB2FMU_SOURCE_SOLVER_STEP && values[i] < 0.0) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "%s would be %g s; it must not be negative", variable->name,
                               values[i]);
        }
    }
    return MB2FMU_OK;
}

/* A value out of bounds is taken, because both standards leave it to the FMU and importers look for optima on both
 * sides of a bound; the log says so. */
static void mb2fmu_watch_bounds(mb2fmu_instance *instance, const mb2fmu_variable *variable, double value)
{
    if (value < variable->minimum) {
        (void)mb2fmu_fail(instance, MB2FMU_WARNING, "%s is %g, less than its minimum %g", variable->name, value,
                          variable->minimum);
    } else if (value > variable->maximum) {
        (void)mb2fmu_fail(instance, MB2FMU_WARNING, "%s is %g, more than its maximum %g", variable->name, value,
                          variable->maximum);
    }
}

/* Whether an input that is set between steps leaves the line that it was on. An importer that computes its signals at
 * the communication point has added up the steps itself: what its time and round-off can make is no jump. */
static int mb2fmu_is_jump(const mb2fmu_snapshot *now, int input, double value)
{
    const double round_off = 16.0 * DBL_EPSILON * (fabs(value) + fabs(now->r[input]));
    const double late = mb2fmu_clock_slack(&now->clock, 0.0) * fabs(now->slope[input]);
    return fabs(value - now->r[input]) > round_off + late;
}

#if MB2FMU_N_MODES > 0
#include "instance_events.c"
#endif

static enum mb2fmu_status mb2fmu_set_reals(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                           const double values[])
{
    const enum mb2fmu_status status = mb2fmu_check_reals(instance, references, n, values);
    size_t i;
#if MB2FMU_N_MODES > 0
    if (status == MB2FMU_OK) {
        mb2fmu_watch_sides(instance);
    }
#endif
    for (i = 0; status == MB2FMU_OK && i < n; ++i) {
        const mb2fmu_variable *const variable = &model_variables[references[i]];
        double *const place = mb2fmu_place(&instance->now, variable);
        const int input = variable->source == MB2FMU_SOURCE_INPUT && instance->kind == MB2FMU_CO_SIMULATION;
        if (memcmp(place, &values[i], sizeof values[i]) != 0) {
            if (input && MB2FMU_FMI == 3 && instance->now.mode != MB2FMU_INTERMEDIATE &&
                mb2fmu_is_jump(&instance->now, variable->index, values[i])) {
                instance->now.slope[variable->index] = 0.0; /* no line leads on from a jump */
            }
            *place = values[i];
            if (variable->source == MB2FMU_SOURCE_STATE) {
                instance->now.x[variable->index] = values[i];
            }
            mb2fmu_watch_bounds(instance, variable, values[i]);
#if MB2FMU_N_MODES > 0
            instance->now.settled = instance->now.settled && variable->source == MB2FMU_SOURCE_INPUT;
#endif
            mb2fmu_changed(instance, (enum mb2fmu_source)variable->source);
        }
        if (input) {
            instance->now.given[variable->index] = 1;
        }
    }
    if (status == MB2FMU_OK && n > 0 && instance->now.mode == MB2FMU_INTERMEDIATE) {
        instance->intermediate_set = 1;
    }
    return status;
}

static const mb2fmu_variable *mb2fmu_choice(mb2fmu_instance *instance, unsigned reference)
{
    if (reference >= (unsigned)MB2FMU_N_VARIABLES || model_variables[reference].source != MB2FMU_SOURCE_SOLVER) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "no enumeration variable has the value reference %u", reference);
        return NULL;
    }
    return &model_variables[reference];
}

static enum mb2fmu_status mb2fmu_get_choice(mb2fmu_instance *instance, unsigned reference, int *value)
{
    if (mb2fmu_choice(instance, reference) == NULL) {
        return MB2FMU_ERROR;
    }
    *value = instance->now.solver;
    return MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_set_choice(mb2fmu_instance *instance, unsigned reference, long long value)
{
    const mb2fmu_variable *const variable = mb2fmu_choice(instance, reference);
    if (variable == NULL) {
        return MB2FMU_ERROR;
    }
    if (!mb2fmu_settable(instance, reference, variable)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "%s cannot be set %s", variable->name,
                           mb2fmu_mode_name(instance->now.mode));
    }
    if (!mb2fmu_solver_known(value)) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "%s must be one of 1 to %d", variable->name, MB2FMU_N_SOLVERS);
    }
    instance->now.solver = (int)value;
    return MB2FMU_OK;
}

/* Name of a variable that lives there, for messages. */
static const char *mb2fmu_name_of(enum mb2fmu_source source, int index)
{
    int i;
    for (i = 0; i < MB2FMU_N_VARIABLES; ++i) {
        if (model_variables[i].source == source && model_variables[i].index == index) {
            return model_variables[i].name;
        }
    }
    return "?";
}
