/* derivatives.c: directional and adjoint derivatives, and first derivatives of inputs and outputs in time.
 *
 * Exact: by forward and reverse differentiation of the model (model_tangent, model_adjoint). What counts as known and
 * unknown: FMI 2.0.5 section 2.1.9, FMI 3.0.2 section 2.2.11; known are time, states, inputs and tunable parameters, in
 * Initialization Mode fixed ones too; unknown is what the FMU computes, and an output that is a state. In
 * Initialization Mode states follow from start values and parameters where some of them are guesses: by the chain rule.
 */
#include "instance.h"

/* Place of a known among the seeds, or -1 and a message. */
static int mb2fmu_seed_of(mb2fmu_instance *instance, unsigned reference)
{
    const mb2fmu_variable *const variable = mb2fmu_real(instance, reference);
    if (variable == NULL) {
        return -1;
    }
    switch (variable->source) {
    case MB2FMU_SOURCE_TIME:
        return MB2FMU_SEED_TIME;
    case MB2FMU_SOURCE_STATE:
        if (variable->initial == MB2FMU_INITIAL_CALCULATED) { /* an element of an array that repeats it */
            break;
        }
        return MB2FMU_SEED_STATES + variable->index;
    case MB2FMU_SOURCE_INPUT:
        return MB2FMU_SEED_INPUTS + variable->index;
    case MB2FMU_SOURCE_PARAMETER:
        if (variable->variability == MB2FMU_VARIABILITY_TUNABLE || instance->now.mode == MB2FMU_INITIALIZATION) {
            return MB2FMU_SEED_PARAMETERS + variable->index;
        }
        (void)mb2fmu_fail(instance, MB2FMU_ERROR,
                          "%s is a fixed parameter: derivatives by it are there in Initialization Mode only",
                          variable->name);
        return -1;
    case MB2FMU_SOURCE_SOLVER_STEP:
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "%s is no quantity of the model: there are no derivatives by it",
                          variable->name);
        return -1;
    default:
        break;
    }
    (void)mb2fmu_fail(instance, MB2FMU_ERROR, "%s is computed by the FMU: there are no derivatives by it",
                      variable->name);
    return -1;
}

/* Place of an unknown among the results. Outputs that are states are their own derivative: -1 - place of the seed.
 * MB2FMU_N_OUT and a message where it is no unknown. */
static int mb2fmu_result_of(mb2fmu_instance *instance, unsigned reference)
{
    const mb2fmu_variable *const variable = mb2fmu_real(instance, reference);
    if (variable == NULL) {
        return MB2FMU_N_OUT;
    }
    switch (variable->source) {
    case MB2FMU_SOURCE_DERIVATIVE:
        return MB2FMU_OUT_DERIVATIVES + variable->index;
    case MB2FMU_SOURCE_POSITION:
        return MB2FMU_OUT_POSITION + variable->index;
    case MB2FMU_SOURCE_VELOCITY:
        return MB2FMU_OUT_VELOCITY + variable->index;
    case MB2FMU_SOURCE_ACCELERATION:
        return MB2FMU_OUT_ACCELERATION + variable->index;
    case MB2FMU_SOURCE_DEPENDENT_SPEED:
        return MB2FMU_OUT_DEPENDENT_SPEEDS + variable->index;
    case MB2FMU_SOURCE_SPEED_DERIVATIVE:
        return MB2FMU_OUT_ACCELERATIONS + variable->index;
    case MB2FMU_SOURCE_CALCULATED:
        return MB2FMU_OUT_CALCULATED + variable->index;
    case MB2FMU_SOURCE_STATE:
        if (variable->causality == MB2FMU_CAUSALITY_OUTPUT) {
            return -1 - (MB2FMU_SEED_STATES + variable->index);
        }
        break;
    default:
        break;
    }
    (void)mb2fmu_fail(instance, MB2FMU_ERROR, "%s is not computed by the FMU: it has no derivatives",
                      variable->name);
    return MB2FMU_N_OUT;
}

/* Whether all arguments are in order; a message where they are not. */
static int mb2fmu_derivable(mb2fmu_instance *instance, const unsigned unknowns[], size_t n_unknowns,
                            const unsigned knowns[], size_t n_knowns, const double seed[], size_t n_seed,
                            const double sensitivity[], size_t n_sensitivity)
{
    size_t i;
    if (mb2fmu_missing(instance, unknowns, n_unknowns, "unknowns") ||
        mb2fmu_missing(instance, knowns, n_knowns, "knowns") || mb2fmu_missing(instance, seed, n_seed, "seed") ||
        mb2fmu_missing(instance, sensitivity, n_sensitivity, "sensitivity")) {
        return 0;
    }
    for (i = 0; i < n_unknowns; ++i) {
        if (mb2fmu_result_of(instance, unknowns[i]) == MB2FMU_N_OUT) {
            return 0;
        }
    }
    for (i = 0; i < n_knowns; ++i) {
        if (mb2fmu_seed_of(instance, knowns[i]) < 0) {
            return 0;
        }
    }
    for (i = 0; i < n_seed; ++i) {
        if (!isfinite(seed[i])) {
            (void)mb2fmu_fail(instance, MB2FMU_ERROR, "seed number %zu is %g, not a finite number", i + 1, seed[i]);
            return 0;
        }
    }
    return 1;
}

/* Check the arguments of both kinds of derivatives and evaluate the state where they are taken. */
static enum mb2fmu_status mb2fmu_prepare_derivatives(mb2fmu_instance *instance, const unsigned unknowns[],
                                                     size_t n_unknowns, const unsigned knowns[], size_t n_knowns,
                                                     const double seed[], size_t n_seed, double sensitivity[],
                                                     size_t n_sensitivity)
{
    enum mb2fmu_status status;
    if (!mb2fmu_derivable(instance, unknowns, n_unknowns, knowns, n_knowns, seed, n_seed, sensitivity,
                          n_sensitivity)) {
        return MB2FMU_ERROR;
    }
    status = mb2fmu_need(instance, MB2FMU_SOURCE_CALCULATED);
    status = status == MB2FMU_OK ? mb2fmu_need(instance, MB2FMU_SOURCE_STATE) : status;
    return status == MB2FMU_OK ? status : mb2fmu_undefined(status, sensitivity, n_sensitivity);
}

/* Solve number `failed`; 0 where it is not known. */
static enum mb2fmu_status mb2fmu_singular(mb2fmu_instance *instance, int failed)
{
    char clause[MB2FMU_CLAUSE_SIZE];
    return mb2fmu_fail(instance, mb2fmu_no_result(instance), "at time %g: %s", instance->now.clock.time,
                       mb2fmu_clause(instance->w, failed, clause));
}

/* OK if the derivatives of or by these variables are finite numbers; else all become NaN, and a message says so. */
static enum mb2fmu_status mb2fmu_finite_derivatives(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                                    double derivatives[])
{
    size_t i;
    for (i = 0; i < n; ++i) {
        if (!isfinite(derivatives[i])) {
            const enum mb2fmu_status status =
                mb2fmu_fail(instance, mb2fmu_no_result(instance), "at time %g: the derivative of or by %s is %g",
                            instance->now.clock.time, model_variables[references[i]].name, derivatives[i]);
            return mb2fmu_undefined(status, derivatives, n);
        }
    }
    return MB2FMU_OK;
}

/* Seeds of start values become seeds of states. 0 or the number of the solve that failed. */
static int mb2fmu_start_forward(mb2fmu_instance *instance)
{
#if MB2FMU_N_INITIALIZED > 0
    const mb2fmu_snapshot *const now = &instance->now;
    if (now->mode == MB2FMU_INITIALIZATION) {
        const int failed = model_initialize_tangent(now->clock.time, instance->guess, now->r, now->p, instance->w,
                                                    instance->seeds, instance->out);
        memcpy(&instance->seeds[MB2FMU_SEED_STATES], instance->out, MB2FMU_N_STATES * sizeof instance->out[0]);
        return failed;
    }
#else
    (void)instance;
#endif
    return 0;
}

static enum mb2fmu_status mb2fmu_directional(mb2fmu_instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                             const unsigned knowns[], size_t n_knowns, const double seed[],
                                             double sensitivity[])
{
    const mb2fmu_snapshot *const now = &instance->now;
    const enum mb2fmu_status status = mb2fmu_prepare_derivatives(instance, unknowns, n_unknowns, knowns, n_knowns,
                                                                 seed, n_knowns, sensitivity, n_unknowns);
    int failed;
    size_t i;
    if (status != MB2FMU_OK) {
        return status;
    }
    memset(instance->seeds, 0, sizeof instance->seeds);
    for (i = 0; i < n_knowns; ++i) {
        instance->seeds[mb2fmu_seed_of(instance, knowns[i])] += seed[i];
    }
    failed = mb2fmu_start_forward(instance);
    if (failed == 0) {
        failed = model_tangent(now->clock.time, now->x, now->r, now->p, instance->w, instance->seeds, instance->out);
    }
    if (failed != 0) {
        return mb2fmu_undefined(mb2fmu_singular(instance, failed), sensitivity, n_unknowns);
    }
    for (i = 0; i < n_unknowns; ++i) {
        const int place = mb2fmu_result_of(instance, unknowns[i]);
        sensitivity[i] = place < 0 ? instance->seeds[-1 - place] : instance->out[place];
    }
    return mb2fmu_finite_derivatives(instance, unknowns, n_unknowns, sensitivity);
}

#ifndef MB2FMU_WITHOUT_ADJOINT

/* The gradient by states becomes one by start values. 0 or the number of the solve that failed. */
static int mb2fmu_start_reverse(mb2fmu_instance *instance)
{
#if MB2FMU_N_INITIALIZED > 0
    const mb2fmu_snapshot *const now = &instance->now;
    if (now->mode == MB2FMU_INITIALIZATION) {
        double *const by_state = &instance->seeds[MB2FMU_SEED_STATES];
        const int failed = model_initialize_adjoint(now->clock.time, instance->guess, now->r, now->p, instance->w,
                                                    by_state, instance->start_seeds);
        int i;
        memset(by_state, 0, MB2FMU_N_STATES * sizeof by_state[0]);
        for (i = 0; i < MB2FMU_N_SEEDS; ++i) {
            instance->seeds[i] += instance->start_seeds[i];
        }
        return failed;
    }
#else
    (void)instance;
#endif
    return 0;
}

static enum mb2fmu_status mb2fmu_transposed(mb2fmu_instance *instance, const unsigned unknowns[], size_t n_unknowns,
                                            const unsigned knowns[], size_t n_knowns, const double seed[],
                                            double sensitivity[])
{
    const mb2fmu_snapshot *const now = &instance->now;
    const enum mb2fmu_status status = mb2fmu_prepare_derivatives(instance, unknowns, n_unknowns, knowns, n_knowns,
                                                                 seed, n_unknowns, sensitivity, n_knowns);
    int failed;
    size_t i;
    if (status != MB2FMU_OK) {
        return status;
    }
    memset(instance->out, 0, sizeof instance->out);
    for (i = 0; i < n_unknowns; ++i) {
        const int place = mb2fmu_result_of(instance, unknowns[i]);
        if (place >= 0) {
            instance->out[place] += seed[i];
        }
    }
    failed = model_adjoint(now->clock.time, now->x, now->r, now->p, instance->w, instance->out, instance->seeds);
    if (failed != 0) {
        return mb2fmu_undefined(mb2fmu_singular(instance, failed), sensitivity, n_knowns);
    }
    for (i = 0; i < n_unknowns; ++i) {
        const int place = mb2fmu_result_of(instance, unknowns[i]);
        if (place < 0) {
            instance->seeds[-1 - place] += seed[i];
        }
    }
    failed = mb2fmu_start_reverse(instance);
    if (failed != 0) {
        return mb2fmu_undefined(mb2fmu_singular(instance, failed), sensitivity, n_knowns);
    }
    for (i = 0; i < n_knowns; ++i) {
        sensitivity[i] = instance->seeds[mb2fmu_seed_of(instance, knowns[i])];
    }
    return mb2fmu_finite_derivatives(instance, knowns, n_knowns, sensitivity);
}

#endif

/* Whether no argument of a call about slopes is missing; a message if one is. */
static int mb2fmu_slopes_given(mb2fmu_instance *instance, const unsigned references[], size_t n, const int orders[],
                               const double values[])
{
    return !(mb2fmu_missing(instance, references, n, "value references") ||
             mb2fmu_missing(instance, orders, n, "orders") || mb2fmu_missing(instance, values, n, "values"));
}

/* The variable whose slope is meant, or NULL and a message: order 1 is all there is, a higher one would be a wrong
 * number. */
static const mb2fmu_variable *mb2fmu_slope_of(mb2fmu_instance *instance, unsigned reference, int order)
{
    const mb2fmu_variable *const variable = mb2fmu_real(instance, reference);
    if (variable != NULL && order != 1) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "derivatives of %s are of order 1, not %d", variable->name, order);
        return NULL;
    }
    return variable;
}

/* FMI 2.0.5 section 4.2.1: with respect to the beginning of the communication step. They stay, as values do, until they
 * are set again: an input that is left alone goes on along its line. */
static enum mb2fmu_status mb2fmu_set_slopes(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                            const int orders[], const double values[])
{
    size_t i;
    if (!mb2fmu_slopes_given(instance, references, n, orders, values)) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < n; ++i) {
        const mb2fmu_variable *const variable = mb2fmu_slope_of(instance, references[i], orders[i]);
        if (variable == NULL) {
            return MB2FMU_ERROR;
        }
        if (variable->source != MB2FMU_SOURCE_INPUT) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "%s is not an input", variable->name);
        }
        if (!isfinite(values[i])) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "the derivative of %s would be %g, not a finite number",
                               variable->name, values[i]);
        }
    }
    for (i = 0; i < n; ++i) {
        double *const slope = &instance->now.slope[model_variables[references[i]].index];
        if (memcmp(slope, &values[i], sizeof values[i]) != 0) {
            *slope = values[i];
            mb2fmu_integrator_invalidate(&instance->integrator);
        }
    }
    return MB2FMU_OK;
}

static enum mb2fmu_status mb2fmu_get_slopes(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                            const int orders[], double values[])
{
    mb2fmu_problem problem;
    enum mb2fmu_status status;
    size_t i;
    if (!mb2fmu_slopes_given(instance, references, n, orders, values)) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < n; ++i) {
        const mb2fmu_variable *const variable = mb2fmu_slope_of(instance, references[i], orders[i]);
        if (variable == NULL) {
            return MB2FMU_ERROR;
        }
        if (variable->causality != MB2FMU_CAUSALITY_OUTPUT) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "%s is not an output", variable->name);
        }
        if (!mb2fmu_readable(instance, references[i], variable)) {
            return MB2FMU_ERROR;
        }
    }
    (void)mb2fmu_pose(instance, &problem); /* if it failed, the next line says so */
    status = mb2fmu_need(instance, MB2FMU_SOURCE_DERIVATIVE);
    if (status != MB2FMU_OK) {
        return mb2fmu_undefined(status, values, n);
    }
    if (mb2fmu_output_slope(&instance->integrator, &problem, instance->now.clock.time, instance->now.x,
                            instance->out) != MB2FMU_STEP_OK) {
        return mb2fmu_undefined(mb2fmu_singular(instance, problem.failed), values, n);
    }
    for (i = 0; i < n; ++i) {
        const int place = mb2fmu_result_of(instance, references[i]);
        values[i] = place < 0 ? instance->dx[-1 - place - MB2FMU_SEED_STATES] : instance->out[place];
    }
    return mb2fmu_finite_derivatives(instance, references, n, values);
}
