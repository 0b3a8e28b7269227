/* fmi3_absent.c: functions of FMI 3.0.2 for what the FMU does not have. All of them must be exported (section 2.6.2);
 * asking for nothing is all right, asking for something is an error with a message.
 *
 * Not there: variables of other types than Float64 and Enumeration (Int64), clocks, structural parameters, dependencies
 * of array elements, Scheduled Execution.
 */
#include "protocol.h"

#include "fmi3Functions.h"

/* The same function for every type. */
#define MB2FMU_NO_VARIABLES(type)                                                                                 \
    fmi3Status fmi3Get##type(fmi3Instance handle, const fmi3ValueReference valueReferences[],                     \
                             size_t nValueReferences, fmi3##type values[], size_t nValues)                        \
    {                                                                                                             \
        (void)valueReferences;                                                                                    \
        (void)values;                                                                                             \
        (void)nValues;                                                                                            \
        MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_Get##type, mb2fmu_absent(instance, nValueReferences, #type));  \
    }                                                                                                             \
    fmi3Status fmi3Set##type(fmi3Instance handle, const fmi3ValueReference valueReferences[],                     \
                             size_t nValueReferences, const fmi3##type values[], size_t nValues)                  \
    {                                                                                                             \
        (void)valueReferences;                                                                                    \
        (void)values;                                                                                             \
        (void)nValues;                                                                                            \
        MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_Set##type, mb2fmu_absent(instance, nValueReferences, #type));  \
    }

/* clang-format off */
MB2FMU_NO_VARIABLES(Float32)
MB2FMU_NO_VARIABLES(Int8)
MB2FMU_NO_VARIABLES(UInt8)
MB2FMU_NO_VARIABLES(Int16)
MB2FMU_NO_VARIABLES(UInt16)
MB2FMU_NO_VARIABLES(Int32)
MB2FMU_NO_VARIABLES(UInt32)
MB2FMU_NO_VARIABLES(UInt64)
MB2FMU_NO_VARIABLES(Boolean)
MB2FMU_NO_VARIABLES(String)
/* clang-format on */

fmi3Status fmi3GetBinary(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         size_t valueSizes[], fmi3Binary values[], size_t nValues)
{
    (void)valueReferences;
    (void)valueSizes;
    (void)values;
    (void)nValues;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetBinary, mb2fmu_absent(instance, nValueReferences, "Binary"));
}

fmi3Status fmi3SetBinary(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                         const size_t valueSizes[], const fmi3Binary values[], size_t nValues)
{
    (void)valueReferences;
    (void)valueSizes;
    (void)values;
    (void)nValues;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetBinary, mb2fmu_absent(instance, nValueReferences, "Binary"));
}

/* --- clocks (section 2.2.8) --------------------------------------------------------------------------------------- */

fmi3Status fmi3GetClock(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        fmi3Clock values[])
{
    (void)valueReferences;
    (void)values;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetClock, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3SetClock(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        const fmi3Clock values[])
{
    (void)valueReferences;
    (void)values;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetClock, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3GetIntervalDecimal(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                                  size_t nValueReferences, fmi3Float64 intervals[],
                                  fmi3IntervalQualifier qualifiers[])
{
    (void)valueReferences;
    (void)intervals;
    (void)qualifiers;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetIntervalDecimal, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3GetIntervalFraction(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                                   size_t nValueReferences, fmi3UInt64 counters[], fmi3UInt64 resolutions[],
                                   fmi3IntervalQualifier qualifiers[])
{
    (void)valueReferences;
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetIntervalFraction, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3GetShiftDecimal(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                               size_t nValueReferences, fmi3Float64 shifts[])
{
    (void)valueReferences;
    (void)shifts;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetShiftDecimal, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3GetShiftFraction(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                                size_t nValueReferences, fmi3UInt64 counters[], fmi3UInt64 resolutions[])
{
    (void)valueReferences;
    (void)counters;
    (void)resolutions;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetShiftFraction, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3SetIntervalDecimal(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                                  size_t nValueReferences, const fmi3Float64 intervals[])
{
    (void)valueReferences;
    (void)intervals;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetIntervalDecimal, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3SetIntervalFraction(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                                   size_t nValueReferences, const fmi3UInt64 counters[],
                                   const fmi3UInt64 resolutions[])
{
    (void)valueReferences;
    (void)counters;
    (void)resolutions;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetIntervalFraction, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3SetShiftDecimal(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                               size_t nValueReferences, const fmi3Float64 shifts[])
{
    (void)valueReferences;
    (void)shifts;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetShiftDecimal, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

fmi3Status fmi3SetShiftFraction(fmi3Instance handle, const fmi3ValueReference valueReferences[],
                                size_t nValueReferences, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
{
    (void)valueReferences;
    (void)counters;
    (void)resolutions;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetShiftFraction, mb2fmu_absent(instance, nValueReferences, "Clock"));
}

/* --- Scheduled Execution (chapter 5) ------------------------------------------------------------------------------ */

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String instanceName, fmi3String instantiationToken,
                                               fmi3String resourcePath, fmi3Boolean visible, fmi3Boolean loggingOn,
                                               fmi3InstanceEnvironment instanceEnvironment,
                                               fmi3LogMessageCallback logMessage, fmi3ClockUpdateCallback clockUpdate,
                                               fmi3LockPreemptionCallback lockPreemption,
                                               fmi3UnlockPreemptionCallback unlockPreemption)
{
    (void)instanceName;
    (void)instantiationToken;
    (void)resourcePath;
    (void)visible;
    (void)clockUpdate;
    (void)lockPreemption;
    (void)unlockPreemption;
    if (loggingOn && logMessage != NULL) {
        logMessage(instanceEnvironment, fmi3Error, "logStatusError", "the FMU does not offer Scheduled Execution");
    }
    return NULL;
}

fmi3Status fmi3ActivateModelPartition(fmi3Instance handle, fmi3ValueReference clockReference,
                                      fmi3Float64 activationTime)
{
    (void)clockReference;
    (void)activationTime;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_ActivateModelPartition, MB2FMU_ERROR);
}

/* --- structural parameters, dependencies of elements (sections 2.3.6, 2.3.7 and 2.2.9) ---------------------------- */

fmi3Status fmi3EnterConfigurationMode(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_EnterConfigurationMode, MB2FMU_ERROR);
}

fmi3Status fmi3ExitConfigurationMode(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_ExitConfigurationMode, MB2FMU_ERROR);
}

fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance handle, fmi3ValueReference valueReference,
                                               size_t *nDependencies)
{
    (void)valueReference;
    (void)nDependencies;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetNumberOfVariableDependencies, MB2FMU_ERROR);
}

fmi3Status fmi3GetVariableDependencies(fmi3Instance handle, fmi3ValueReference dependent,
                                       size_t elementIndicesOfDependent[], fmi3ValueReference independents[],
                                       size_t elementIndicesOfIndependents[], fmi3DependencyKind dependencyKinds[],
                                       size_t nDependencies)
{
    (void)dependent;
    (void)elementIndicesOfDependent;
    (void)independents;
    (void)elementIndicesOfIndependents;
    (void)dependencyKinds;
    (void)nDependencies;
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetVariableDependencies, MB2FMU_ERROR);
}
