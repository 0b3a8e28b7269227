/* protocol_fmi2.c: the table of legal calls of FMI 2.0.5.
 *
 * Model Exchange: the table of section 3.2.3; Co-Simulation: that of section 4.2.4; columns "instantiated" to "error".
 * Conditions on variables (1 to 6 there) are in values.c. More is allowed in two places:
 *   - after a step that was discarded, inputs can be set and another step tried: the unit is then as before the step,
 *     so nothing has to be restored first;
 *   - time can be set in Event Mode, not only of units without states (condition 8): casadi evaluates units there.
 * fmi2CancelStep is never legal: no step is ever pending.
 */
#include "protocol.h"

#define MB2FMU_ME_RUNNING (MB2FMU_EVENT | MB2FMU_CONTINUOUS)
#define MB2FMU_CS_RUNNING (MB2FMU_STEP | MB2FMU_STEP_FAILED)
#define MB2FMU_ENDED (MB2FMU_TERMINATED | MB2FMU_FAILED)
#define MB2FMU_ME_ALL (MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION | MB2FMU_ME_RUNNING | MB2FMU_ENDED)
#define MB2FMU_CS_ALL (MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION | MB2FMU_CS_RUNNING | MB2FMU_ENDED)
#define MB2FMU_ME_READ (MB2FMU_INITIALIZATION | MB2FMU_ME_RUNNING | MB2FMU_ENDED)
#define MB2FMU_CS_READ (MB2FMU_INITIALIZATION | MB2FMU_CS_RUNNING | MB2FMU_ENDED)
#define MB2FMU_START (MB2FMU_INSTANTIATED | MB2FMU_INITIALIZATION)
#define MB2FMU_CS_STATUS (MB2FMU_CS_RUNNING | MB2FMU_TERMINATED)

#define MB2FMU_RULE(function, model_exchange, co_simulation) \
    static const mb2fmu_rule mb2fmu_may_##function = {"fmi2" #function, (model_exchange), (co_simulation)}

MB2FMU_RULE(SetDebugLogging, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(FreeInstance, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(SetupExperiment, MB2FMU_INSTANTIATED, MB2FMU_INSTANTIATED);
MB2FMU_RULE(EnterInitializationMode, MB2FMU_INSTANTIATED, MB2FMU_INSTANTIATED);
MB2FMU_RULE(ExitInitializationMode, MB2FMU_INITIALIZATION, MB2FMU_INITIALIZATION);
MB2FMU_RULE(Terminate, MB2FMU_ME_RUNNING, MB2FMU_CS_RUNNING);
MB2FMU_RULE(Reset, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(GetReal, MB2FMU_ME_READ, MB2FMU_CS_READ);
MB2FMU_RULE(GetInteger, MB2FMU_ME_READ, MB2FMU_CS_READ);
MB2FMU_RULE(GetBoolean, MB2FMU_ME_READ, MB2FMU_CS_READ);
MB2FMU_RULE(GetString, MB2FMU_ME_READ, MB2FMU_CS_READ);
MB2FMU_RULE(SetReal, MB2FMU_START | MB2FMU_ME_RUNNING, MB2FMU_START | MB2FMU_CS_RUNNING);
MB2FMU_RULE(SetInteger, MB2FMU_START | MB2FMU_EVENT, MB2FMU_START | MB2FMU_CS_RUNNING);
MB2FMU_RULE(SetBoolean, MB2FMU_START | MB2FMU_EVENT, MB2FMU_START | MB2FMU_CS_RUNNING);
MB2FMU_RULE(SetString, MB2FMU_START | MB2FMU_EVENT, MB2FMU_START | MB2FMU_CS_RUNNING);
MB2FMU_RULE(GetFMUstate, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(SetFMUstate, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(FreeFMUstate, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(SerializedFMUstateSize, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(SerializeFMUstate, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(DeSerializeFMUstate, MB2FMU_ME_ALL, MB2FMU_CS_ALL);
MB2FMU_RULE(GetDirectionalDerivative, MB2FMU_ME_READ, MB2FMU_CS_READ);

/* Model Exchange only. */
MB2FMU_RULE(EnterEventMode, MB2FMU_ME_RUNNING, 0);
MB2FMU_RULE(NewDiscreteStates, MB2FMU_EVENT, 0);
MB2FMU_RULE(EnterContinuousTimeMode, MB2FMU_EVENT, 0);
MB2FMU_RULE(CompletedIntegratorStep, MB2FMU_CONTINUOUS, 0);
MB2FMU_RULE(SetTime, MB2FMU_ME_RUNNING, 0);
MB2FMU_RULE(SetContinuousStates, MB2FMU_CONTINUOUS, 0);
MB2FMU_RULE(GetDerivatives, MB2FMU_ME_READ, 0);
MB2FMU_RULE(GetEventIndicators, MB2FMU_ME_READ, 0);
MB2FMU_RULE(GetContinuousStates, MB2FMU_ME_READ, 0);
MB2FMU_RULE(GetNominalsOfContinuousStates, MB2FMU_ME_ALL, 0);

/* Co-Simulation only. */
MB2FMU_RULE(SetRealInputDerivatives, 0, MB2FMU_START | MB2FMU_CS_RUNNING);
MB2FMU_RULE(GetRealOutputDerivatives, 0, MB2FMU_CS_RUNNING | MB2FMU_ENDED);
MB2FMU_RULE(DoStep, 0, MB2FMU_CS_RUNNING);
MB2FMU_RULE(CancelStep, 0, 0);
MB2FMU_RULE(GetStatus, 0, MB2FMU_CS_STATUS);
MB2FMU_RULE(GetRealStatus, 0, MB2FMU_CS_STATUS);
MB2FMU_RULE(GetIntegerStatus, 0, MB2FMU_CS_STATUS);
MB2FMU_RULE(GetBooleanStatus, 0, MB2FMU_CS_STATUS);
MB2FMU_RULE(GetStringStatus, 0, MB2FMU_CS_STATUS);
