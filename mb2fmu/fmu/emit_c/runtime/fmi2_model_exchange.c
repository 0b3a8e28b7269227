/* fmi2_model_exchange.c: the functions of FMI 2.0.5 for Model Exchange (section 3.2). An event is worked off whole
 * by the first call of fmi2NewDiscreteStates: nothing asks for another iteration. In Model Exchange the importer
 * computes; that it looks beyond the stop time (as multistep integrators do) is no error of the FMU. */
#include "protocol.h"

#include "fmi2Functions.h"

fmi2Status fmi2EnterEventMode(fmi2Component c)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_EnterEventMode, mb2fmu_go_to(instance, MB2FMU_EVENT));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_new_states(mb2fmu_instance *instance, fmi2EventInfo *info)
{
    enum mb2fmu_status status;
    double next;
    int changed;
    if (mb2fmu_missing(instance, info, 1, "event info")) {
        return MB2FMU_ERROR;
    }
    status = mb2fmu_update(instance, &changed);
    info->newDiscreteStatesNeeded = fmi2False;
    info->terminateSimulation = fmi2False;
    info->nominalsOfContinuousStatesChanged = fmi2False;
    info->valuesOfContinuousStatesChanged = changed ? fmi2True : fmi2False;
    next = status == MB2FMU_OK ? mb2fmu_next_event(instance) : MB2FMU_INFINITY;
    info->nextEventTimeDefined = next < MB2FMU_INFINITY ? fmi2True : fmi2False;
    info->nextEventTime = next < MB2FMU_INFINITY ? next : 0.0;
    return status;
}

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *fmi2eventInfo)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_NewDiscreteStates, mb2fmu_new_states(instance, fmi2eventInfo));
}

fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_EnterContinuousTimeMode, mb2fmu_go_to(instance, MB2FMU_CONTINUOUS));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_completed(mb2fmu_instance *instance, fmi2Boolean *event,
                                                           fmi2Boolean *terminate)
{
    if (mb2fmu_missing(instance, event, 1, "enterEventMode") ||
        mb2fmu_missing(instance, terminate, 1, "terminateSimulation")) {
        return MB2FMU_ERROR;
    }
    *event = fmi2False;
    *terminate = fmi2False;
    {
        const int failed = mb2fmu_remember(instance);
        return failed == 0 ? MB2FMU_OK : mb2fmu_singular(instance, failed);
    }
}

fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean noSetFMUStatePriorToCurrentPoint,
                                       fmi2Boolean *enterEventMode, fmi2Boolean *terminateSimulation)
{
    (void)noSetFMUStatePriorToCurrentPoint;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_CompletedIntegratorStep,
                mb2fmu_completed(instance, enterEventMode, terminateSimulation));
}

fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetTime, mb2fmu_import_time(instance, time));
}

fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t nx)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetContinuousStates, mb2fmu_set_states(instance, x, nx));
}

fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real derivatives[], size_t nx)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetDerivatives, mb2fmu_get_derivatives(instance, derivatives, nx));
}

fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real eventIndicators[], size_t ni)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetEventIndicators, mb2fmu_get_indicators(instance, eventIndicators, ni));
}

fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t nx)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetContinuousStates, mb2fmu_get_states(instance, x, nx));
}

fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x_nominal[], size_t nx)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetNominalsOfContinuousStates,
                mb2fmu_get_nominals(instance, x_nominal, nx));
}
