/* fmi3_co_simulation.c: the functions of FMI 3.0.2 for Co-Simulation (section 4.2). After Discard everything is as
 * before the step, and the importer may go on with a smaller one. The FMU returns early when it is asked to, and at
 * events where the importer handles them (eventModeUsed) and allows it; else it works them off within the step. */
#include "protocol.h"

#include "fmi3Functions.h"

fmi3Status fmi3EnterStepMode(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_EnterStepMode, mb2fmu_go_to(instance, MB2FMU_STEP));
}

#if MB2FMU_N_ARRAYS > 0
/* Elements of an array have the order that is asked of the array. NULL and a message if there is no memory. */
static int *mb2fmu_spread_orders(mb2fmu_instance *instance, const unsigned references[], size_t n,
                                 const fmi3Int32 orders[], size_t n_values)
{
    int *const all = (int *)MB2FMU_CALLOC(n_values, sizeof *all);
    size_t i, j, k = 0;
    if (all == NULL) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "there is no memory for %zu orders", n_values);
        return NULL;
    }
    for (i = 0; i < n; ++i) {
        for (j = mb2fmu_values_of(references[i]); j > 0; --j) {
            all[k++] = orders[i];
        }
    }
    return all;
}
#endif

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_get_output_slopes(mb2fmu_instance *instance,
                                                                   const unsigned references[], size_t n,
                                                                   const fmi3Int32 orders[], double values[],
                                                                   size_t n_values)
{
    enum mb2fmu_status status = MB2FMU_ERROR;
    mb2fmu_rows rows;
    if (mb2fmu_missing(instance, orders, n, "orders") ||
        !mb2fmu_rows_of(instance, references, n, n_values, &rows)) {
        return MB2FMU_ERROR;
    }
#if MB2FMU_N_ARRAYS > 0
    if (rows.own != NULL) {
        int *const all = mb2fmu_spread_orders(instance, references, n, orders, rows.n);
        status = all == NULL ? MB2FMU_ERROR : mb2fmu_get_slopes(instance, rows.all, rows.n, all, values);
        MB2FMU_FREE(all);
        mb2fmu_rows_free(&rows);
        return status;
    }
#endif
    status = mb2fmu_get_slopes(instance, rows.all, rows.n, orders, values);
    mb2fmu_rows_free(&rows);
    return status;
}

fmi3Status fmi3GetOutputDerivatives(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                                    size_t nValueReferences, const fmi3Int32 orders[], fmi3Float64 values[],
                                    size_t nValues)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetOutputDerivatives,
                mb2fmu_get_output_slopes(instance, valueReferences, nValueReferences, orders, values, nValues));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_do_step(mb2fmu_instance *instance, double point, double size,
                                                         fmi3Boolean *event, fmi3Boolean *early_return,
                                                         fmi3Float64 *last_time)
{
    int early;
    const enum mb2fmu_status status = mb2fmu_step(instance, point, size, &early);
    instance->now.last_status = (int)status;
    *event = instance->at_event != 0;
    *early_return = early != 0;
    *last_time = instance->now.clock.time;
    return status;
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_try_step(mb2fmu_instance *instance, double point, double size,
                                                          fmi3Boolean *const answers[], fmi3Float64 *last_time)
{
    int i;
    for (i = 0; i < 3; ++i) {
        if (mb2fmu_missing(instance, answers[i], 1, "for an answer")) {
            return MB2FMU_ERROR;
        }
        *answers[i] = fmi3False; /* never terminated; events and early return see above */
    }
    if (mb2fmu_missing(instance, last_time, 1, "lastSuccessfulTime")) {
        return MB2FMU_ERROR;
    }
    return mb2fmu_do_step(instance, point, size, answers[0], answers[2], last_time);
}

fmi3Status fmi3DoStep(fmi3Instance handle, fmi3Float64 currentCommunicationPoint, fmi3Float64 communicationStepSize,
                      fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *eventHandlingNeeded,
                      fmi3Boolean *terminateSimulation, fmi3Boolean *earlyReturn, fmi3Float64 *lastSuccessfulTime)
{
    fmi3Boolean *const answers[] = {eventHandlingNeeded, terminateSimulation, earlyReturn};
    (void)noSetFMUStatePriorToCurrentPoint;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_DoStep,
                mb2fmu_try_step(instance, currentCommunicationPoint, communicationStepSize, answers,
                                lastSuccessfulTime));
}
