/* vectors.c: the vectors of Model Exchange: derivatives, states, nominal values, event indicators. */
#include "instance.h"

/* The importer says how many there are; it must be right. */
static int mb2fmu_wrong_size(mb2fmu_instance *instance, const void *values, size_t n, int expected)
{
    if (n != (size_t)expected) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "%zu values were given, the FMU has %d", n, expected);
        return 1;
    }
    return mb2fmu_missing(instance, values, n, "values");
}

static enum mb2fmu_status mb2fmu_get_derivatives(mb2fmu_instance *instance, double values[], size_t n)
{
    enum mb2fmu_status status;
    int i;
    if (mb2fmu_wrong_size(instance, values, n, MB2FMU_N_STATES)) {
        return MB2FMU_ERROR;
    }
    status = mb2fmu_need(instance, MB2FMU_SOURCE_DERIVATIVE);
    if (status != MB2FMU_OK) {
        return status;
    }
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        if (!isfinite(instance->dx[i])) {
            return mb2fmu_fail(instance, mb2fmu_no_result(instance), "at time %g: %s is %g, not a finite number",
                               instance->now.clock.time, mb2fmu_name_of(MB2FMU_SOURCE_DERIVATIVE, i), instance->dx[i]);
        }
    }
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        values[i] = instance->dx[i];
    }
    return MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_get_states(mb2fmu_instance *instance, double values[], size_t n)
{
    enum mb2fmu_status status;
    int i;
    if (mb2fmu_wrong_size(instance, values, n, MB2FMU_N_STATES)) {
        return MB2FMU_ERROR;
    }
    status = mb2fmu_need(instance, MB2FMU_SOURCE_STATE);
    if (status != MB2FMU_OK) {
        return status;
    }
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        values[i] = instance->now.x[i];
    }
    return MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_set_states(mb2fmu_instance *instance, const double values[], size_t n)
{
    int i;
    if (mb2fmu_wrong_size(instance, values, n, MB2FMU_N_STATES)) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        if (!isfinite(values[i])) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "%s would be %g, not a finite number",
                               mb2fmu_name_of(MB2FMU_SOURCE_STATE, i), values[i]);
        }
    }
    if (n > 0 && memcmp(instance->now.x, values, n * sizeof values[0]) != 0) {
        memcpy(instance->now.x, values, n * sizeof values[0]);
        mb2fmu_changed(instance, MB2FMU_SOURCE_STATE);
    }
    return MB2FMU_OK;
}

/* Where several variables are one state, the first that says something. */
static enum mb2fmu_status mb2fmu_get_nominals(mb2fmu_instance *instance, double values[], size_t n)
{
    int i;
    if (mb2fmu_wrong_size(instance, values, n, MB2FMU_N_STATES)) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < MB2FMU_N_STATES; ++i) {
        values[i] = 1.0;
    }
    for (i = MB2FMU_N_VARIABLES - 1; i >= 0; --i) {
        if (model_variables[i].source == MB2FMU_SOURCE_STATE && model_variables[i].nominal > 0.0) {
            values[model_variables[i].index] = model_variables[i].nominal;
        }
    }
    return MB2FMU_OK;
}

#if MB2FMU_N_MODES > 0

static enum mb2fmu_status mb2fmu_get_indicators(mb2fmu_instance *instance, double values[], size_t n)
{
    enum mb2fmu_status status;
    if (mb2fmu_wrong_size(instance, values, n, MB2FMU_N_INDICATORS)) {
        return MB2FMU_ERROR;
    }
    status = mb2fmu_need(instance, MB2FMU_SOURCE_INDICATOR);
    if (status != MB2FMU_OK) {
        return status;
    }
    for (int i = 0; i < MB2FMU_N_INDICATORS; ++i) {
        if (!isfinite(instance->indicators[i])) {
            return mb2fmu_fail(instance, mb2fmu_no_result(instance),
                               "at time %g: the indicator of %s is %g, not a finite number", instance->now.clock.time,
                               model_switches[i].name, instance->indicators[i]);
        }
        values[i] = instance->indicators[i];
    }
    return MB2FMU_OK;
}

#else

/* Nothing switches, so there are no indicators, and nothing happens in events. */
static enum mb2fmu_status mb2fmu_get_indicators(mb2fmu_instance *instance, double values[], size_t n)
{
    (void)values;
    return mb2fmu_wrong_size(instance, values, n, 0) ? MB2FMU_ERROR : MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_update(mb2fmu_instance *instance, int *changed)
{
    (void)instance;
    *changed = 0;
    return MB2FMU_OK;
}

static double mb2fmu_next_event(mb2fmu_instance *instance)
{
    (void)instance;
    return MB2FMU_INFINITY;
}

#endif
