/* fmi2_co_simulation.c: the functions of FMI 2.0.5 for Co-Simulation (section 4.2). Steps are made while the importer
 * waits: none is ever pending, so none can be cancelled. */
#include "protocol.h"

#include "fmi2Functions.h"

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                       const fmi2Integer order[], const fmi2Real value[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetRealInputDerivatives,
                mb2fmu_set_slopes(instance, vr, nvr, order, value));
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t nvr,
                                        const fmi2Integer order[], fmi2Real value[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetRealOutputDerivatives,
                mb2fmu_get_slopes(instance, vr, nvr, order, value));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_do_step(mb2fmu_instance *instance, double point, double size)
{
    int early;
    const enum mb2fmu_status status = mb2fmu_step(instance, point, size, &early);
    instance->now.last_status = (int)status;
    instance->now.mode = status == MB2FMU_OK ? MB2FMU_STEP : MB2FMU_STEP_FAILED;
    return status;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real currentCommunicationPoint, fmi2Real communicationStepSize,
                      fmi2Boolean noSetFMUStatePriorToCurrentPoint)
{
    (void)noSetFMUStatePriorToCurrentPoint;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_DoStep,
                mb2fmu_do_step(instance, currentCommunicationPoint, communicationStepSize));
}

fmi2Status fmi2CancelStep(fmi2Component c)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_CancelStep, MB2FMU_ERROR);
}

/* A status that the FMU cannot tell is answered with Discard (section 4.2.3). */
static enum mb2fmu_status mb2fmu_unknown_status(mb2fmu_instance *instance)
{
    return mb2fmu_fail(instance, MB2FMU_DISCARD, "the FMU cannot tell this status");
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_step_status(mb2fmu_instance *instance, fmi2StatusKind kind,
                                                             fmi2Status *value)
{
    if (kind != fmi2DoStepStatus) {
        return mb2fmu_unknown_status(instance);
    }
    if (mb2fmu_missing(instance, value, 1, "value")) {
        return MB2FMU_ERROR;
    }
    *value = (fmi2Status)instance->now.last_status;
    return MB2FMU_OK;
}

fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind s, fmi2Status *value)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetStatus, mb2fmu_step_status(instance, s, value));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_time_status(mb2fmu_instance *instance, fmi2StatusKind kind,
                                                             double *value)
{
    if (kind != fmi2LastSuccessfulTime) {
        return mb2fmu_unknown_status(instance);
    }
    if (mb2fmu_missing(instance, value, 1, "value")) {
        return MB2FMU_ERROR;
    }
    *value = instance->now.clock.time;
    return MB2FMU_OK;
}

fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind s, fmi2Real *value)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetRealStatus, mb2fmu_time_status(instance, s, value));
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind s, fmi2Integer *value)
{
    (void)s;
    (void)value;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetIntegerStatus, mb2fmu_unknown_status(instance));
}

/* The FMU never wants the simulation to end. */
static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_end_status(mb2fmu_instance *instance, fmi2StatusKind kind,
                                                            fmi2Boolean *value)
{
    if (kind != fmi2Terminated) {
        return mb2fmu_unknown_status(instance);
    }
    if (mb2fmu_missing(instance, value, 1, "value")) {
        return MB2FMU_ERROR;
    }
    *value = fmi2False;
    return MB2FMU_OK;
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind s, fmi2Boolean *value)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetBooleanStatus, mb2fmu_end_status(instance, s, value));
}

fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind s, fmi2String *value)
{
    (void)s;
    (void)value;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetStringStatus, mb2fmu_unknown_status(instance));
}
