/* fmi3_model_exchange.c: the functions of FMI 3.0.2 for Model Exchange (section 3.2) and events (section 2.3.5).
 * An event is worked off whole by the first update: nothing asks for another iteration. In Model Exchange the
 * importer computes; that it looks beyond the stop time (as multistep integrators do) is no error of the FMU. */
#include "protocol.h"

#include "fmi3Functions.h"

fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_EvaluateDiscreteStates, MB2FMU_OK);
}

static enum mb2fmu_status mb2fmu_say_no(mb2fmu_instance *instance, fmi3Boolean *answer)
{
    if (mb2fmu_missing(instance, answer, 1, "for an answer")) {
        return MB2FMU_ERROR;
    }
    *answer = fmi3False;
    return MB2FMU_OK;
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_all_no(mb2fmu_instance *instance, fmi3Boolean *const answers[],
                                                        size_t n, fmi3Float64 *next)
{
    size_t i;
    for (i = 0; i < n; ++i) {
        if (mb2fmu_say_no(instance, answers[i]) != MB2FMU_OK) {
            return MB2FMU_ERROR;
        }
    }
    if (next != NULL) {
        *next = 0.0;
    }
    return MB2FMU_OK;
}

/* The fourth answer is whether values of states changed, the fifth whether the next event is known by its time. */
static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_new_states(mb2fmu_instance *instance, fmi3Boolean *const answers[],
                                                            size_t n, fmi3Float64 *next)
{
    enum mb2fmu_status status = mb2fmu_all_no(instance, answers, n, next);
    int changed;
    if (status == MB2FMU_OK) {
        status = mb2fmu_update(instance, &changed);
        *answers[3] = changed ? fmi3True : fmi3False;
    }
    if (status == MB2FMU_OK) {
        const double at = mb2fmu_next_event(instance);
        *answers[4] = at < MB2FMU_INFINITY ? fmi3True : fmi3False;
        if (at < MB2FMU_INFINITY && next != NULL) {
            *next = at;
        }
    }
    return status;
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance handle, fmi3Boolean *discreteStatesNeedUpdate,
                                    fmi3Boolean *terminateSimulation, fmi3Boolean *nominalsOfContinuousStatesChanged,
                                    fmi3Boolean *valuesOfContinuousStatesChanged, fmi3Boolean *nextEventTimeDefined,
                                    fmi3Float64 *nextEventTime)
{
    fmi3Boolean *const answers[] = {discreteStatesNeedUpdate, terminateSimulation, nominalsOfContinuousStatesChanged,
                                    valuesOfContinuousStatesChanged, nextEventTimeDefined};
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_UpdateDiscreteStates,
                mb2fmu_new_states(instance, answers, sizeof answers / sizeof answers[0], nextEventTime));
}

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_EnterContinuousTimeMode, mb2fmu_go_to(instance, MB2FMU_CONTINUOUS));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_completed(mb2fmu_instance *instance, fmi3Boolean *const answers[],
                                                           size_t n)
{
    const enum mb2fmu_status status = mb2fmu_all_no(instance, answers, n, NULL);
    const int failed = status == MB2FMU_OK ? mb2fmu_remember(instance) : 0;
    return failed == 0 ? status : mb2fmu_singular(instance, failed);
}

fmi3Status fmi3CompletedIntegratorStep(fmi3Instance handle, fmi3Boolean noSetFMUStatePriorToCurrentPoint,
                                       fmi3Boolean *enterEventMode, fmi3Boolean *terminateSimulation)
{
    fmi3Boolean *const answers[] = {enterEventMode, terminateSimulation};
    (void)noSetFMUStatePriorToCurrentPoint;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_CompletedIntegratorStep,
                mb2fmu_completed(instance, answers, sizeof answers / sizeof answers[0]));
}

fmi3Status fmi3SetTime(fmi3Instance handle, fmi3Float64 time)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetTime, mb2fmu_import_time(instance, time));
}

fmi3Status fmi3SetContinuousStates(fmi3Instance handle, const fmi3Float64 continuousStates[],
                                   size_t nContinuousStates)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetContinuousStates,
                mb2fmu_set_states(instance, continuousStates, nContinuousStates));
}

fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance handle, fmi3Float64 derivatives[],
                                             size_t nContinuousStates)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetContinuousStateDerivatives,
                mb2fmu_get_derivatives(instance, derivatives, nContinuousStates));
}

fmi3Status fmi3GetEventIndicators(fmi3Instance handle, fmi3Float64 eventIndicators[], size_t nEventIndicators)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetEventIndicators,
                mb2fmu_get_indicators(instance, eventIndicators, nEventIndicators));
}

fmi3Status fmi3GetContinuousStates(fmi3Instance handle, fmi3Float64 continuousStates[], size_t nContinuousStates)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetContinuousStates,
                mb2fmu_get_states(instance, continuousStates, nContinuousStates));
}

fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance handle, fmi3Float64 nominals[], size_t nContinuousStates)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetNominalsOfContinuousStates,
                mb2fmu_get_nominals(instance, nominals, nContinuousStates));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_tell_number(mb2fmu_instance *instance, size_t *place, size_t number)
{
    if (mb2fmu_missing(instance, place, 1, "for the number")) {
        return MB2FMU_ERROR;
    }
    *place = number;
    return MB2FMU_OK;
}

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance handle, size_t *nEventIndicators)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetNumberOfEventIndicators,
                mb2fmu_tell_number(instance, nEventIndicators, MB2FMU_N_INDICATORS));
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance handle, size_t *nContinuousStates)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetNumberOfContinuousStates,
                mb2fmu_tell_number(instance, nContinuousStates, MB2FMU_N_STATES));
}
