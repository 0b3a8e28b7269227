/* protocol_fmi3.c: the table of legal calls of FMI 3.0.2.
 *
 * Common states: sections 2.3.1 (all states), 2.3.2 (Instantiated), 2.3.3 (Initialization Mode), 2.3.5 (Event Mode),
 * 2.3.8 (Intermediate Update Mode), 2.3.9 (Terminated); Model Exchange 3.2.1 (Continuous-Time Mode); Co-Simulation
 * 4.2.1 (Step Mode). Conditions on variables are in values.c.
 *
 * The unit has no clocks, no structural parameters, no event mode in Co-Simulation (hasEventMode="false") and no
 * dependencies per element: functions that need them are never legal, as far as something is asked of them. With
 * providesEvaluateDiscreteStates="false" that function is ignored.
 */
#include "protocol.h"

#define MB2FMU_START (MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION)
#define MB2FMU_ENDED (MB2FMU_TERMINATED | MB2FMU_FAILED)
#define MB2FMU_ME_RUNNING (MB2FMU_EVENT | MB2FMU_CONTINUOUS)
#define MB2FMU_ME_ALL (MB2FMU_START | MB2FMU_ME_RUNNING | MB2FMU_ENDED)
#define MB2FMU_CS_ALL (MB2FMU_START | MB2FMU_STEP | MB2FMU_ENDED)
#define MB2FMU_ME_READ (MB2FMU_INITIALIZATION | MB2FMU_ME_RUNNING | MB2FMU_ENDED)
#define MB2FMU_CS_READ (MB2FMU_INITIALIZATION | MB2FMU_STEP | MB2FMU_ENDED)

#define MB2FMU_RULE(function, model_exchange, co_simulation) \
    static const mb2fmu_rule mb2fmu_may_##function = {"fmi3" #function, (model_exchange), (co_simulation)}

MB2FMU_RULE(SetDebugLogging, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(FreeInstance, MB2FMU_ME_ALL, MB2FMU_CS_ALL | MB2FMU_INTERMEDIATE);
MB2FMU_RULE(EnterInitializationMode, MB2FMU_INSTANTIATED, MB2FMU_INSTANTIATED);
MB2FMU_RULE(ExitInitializationMode, MB2FMU_INITIALIZATION, MB2FMU_INITIALIZATION);
MB2FMU_RULE(EnterEventMode, MB2FMU_CONTINUOUS, 0);
MB2FMU_RULE(Terminate, MB2FMU_ME_RUNNING, MB2FMU_STEP);
MB2FMU_RULE(Reset, MB2FMU_ME_ALL, MB2FMU_CS_ALL);

/* Variables: all types alike, but that only Float64 inputs are continuous. */
#define MB2FMU_GET_RULE(type)                                              \
    MB2FMU_RULE(Get##type, MB2FMU_INSTANTIATED | MB2FMU_ME_READ,           \
                MB2FMU_INSTANTIATED | MB2FMU_CS_READ | MB2FMU_INTERMEDIATE)
#define MB2FMU_SET_RULE(type) \
    MB2FMU_RULE(Set##type, MB2FMU_START | MB2FMU_EVENT, MB2FMU_START | MB2FMU_STEP)

MB2FMU_GET_RULE(Float32);
MB2FMU_GET_RULE(Float64);
MB2FMU_GET_RULE(Int8);
MB2FMU_GET_RULE(UInt8);
MB2FMU_GET_RULE(Int16);
MB2FMU_GET_RULE(UInt16);
MB2FMU_GET_RULE(Int32);
MB2FMU_GET_RULE(UInt32);
MB2FMU_GET_RULE(Int64);
MB2FMU_GET_RULE(UInt64);
MB2FMU_GET_RULE(Boolean);
MB2FMU_GET_RULE(String);
MB2FMU_GET_RULE(Binary);
MB2FMU_RULE(SetFloat32, MB2FMU_START | MB2FMU_ME_RUNNING, MB2FMU_START | MB2FMU_STEP | MB2FMU_INTERMEDIATE);
MB2FMU_RULE(SetFloat64, MB2FMU_START | MB2FMU_ME_RUNNING, MB2FMU_START | MB2FMU_STEP | MB2FMU_INTERMEDIATE);
MB2FMU_SET_RULE(Int8);
MB2FMU_SET_RULE(UInt8);
MB2FMU_SET_RULE(Int16);
MB2FMU_SET_RULE(UInt16);
MB2FMU_SET_RULE(Int32);
MB2FMU_SET_RULE(UInt32);
MB2FMU_SET_RULE(Int64);
MB2FMU_SET_RULE(UInt64);
MB2FMU_SET_RULE(Boolean);
MB2FMU_SET_RULE(String);
MB2FMU_SET_RULE(Binary);

/* Clocks: in Event Mode, intervals and shifts in Initialization Mode too. */
MB2FMU_RULE(GetClock, MB2FMU_EVENT, 0);
MB2FMU_RULE(SetClock, MB2FMU_EVENT, 0);
MB2FMU_RULE(GetIntervalDecimal, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(GetIntervalFraction, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(GetShiftDecimal, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(GetShiftFraction, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(SetIntervalDecimal, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(SetIntervalFraction, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(SetShiftDecimal, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(SetShiftFraction, MB2FMU_INITIALIZATION | MB2FMU_EVENT, MB2FMU_INITIALIZATION);
MB2FMU_RULE(ActivateModelPartition, 0, 0);

MB2FMU_RULE(GetNumberOfVariableDependencies, 0, 0);
MB2FMU_RULE(GetVariableDependencies, 0, 0);
MB2FMU_RULE(EnterConfigurationMode, 0, 0);
MB2FMU_RULE(ExitConfigurationMode, 0, 0);

MB2FMU_RULE(GetFMUState, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(SetFMUState, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(FreeFMUState, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(SerializedFMUStateSize, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(SerializeFMUState, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(DeserializeFMUState, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(GetDirectionalDerivative, MB2FMU_ME_READ, MB2FMU_CS_READ);
MB2FMU_RULE(GetAdjointDerivative, MB2FMU_ME_READ, MB2FMU_CS_READ);
MB2FMU_RULE(EvaluateDiscreteStates, MB2FMU_EVENT, 0);
MB2FMU_RULE(UpdateDiscreteStates, MB2FMU_EVENT, 0);

/* Model Exchange only. */
MB2FMU_RULE(EnterContinuousTimeMode, MB2FMU_EVENT, 0);
MB2FMU_RULE(CompletedIntegratorStep, MB2FMU_CONTINUOUS, 0);
MB2FMU_RULE(SetTime, MB2FMU_CONTINUOUS, 0);
MB2FMU_RULE(SetContinuousStates, MB2FMU_CONTINUOUS, 0);
MB2FMU_RULE(GetContinuousStateDerivatives, MB2FMU_ME_READ, 0);
MB2FMU_RULE(GetEventIndicators, MB2FMU_ME_READ, 0);
MB2FMU_RULE(GetContinuousStates, MB2FMU_ME_READ, 0);
MB2FMU_RULE(GetNominalsOfContinuousStates, MB2FMU_ME_READ, 0);
MB2FMU_RULE(GetNumberOfEventIndicators, MB2FMU_ME_ALL, 0);
MB2FMU_RULE(GetNumberOfContinuousStates, MB2FMU_ME_ALL, 0);

/* Co-Simulation only. */
MB2FMU_RULE(EnterStepMode, 0, 0);
MB2FMU_RULE(GetOutputDerivatives, 0, MB2FMU_STEP | MB2FMU_INTERMEDIATE | MB2FMU_ENDED);
MB2FMU_RULE(DoStep, 0, MB2FMU_STEP);
