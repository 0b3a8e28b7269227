/* fmi2.c: the functions of FMI 2.0.5, both kinds: a thin shell around the instance core (instance.h).
 *
 * Every exported function is one MB2FMU_CALL of static ones, so that none calls another exported one: the dynamic
 * linker could have put that of another unit in its place. What may be called when: protocol_fmi2.c.
 *
 * Callbacks are copied at instantiation. Memory is the FMU's own (canNotUseMemoryManagementFunctions="true").
 */
#include "protocol.h"

#include "fmi2Functions.h"

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

static void mb2fmu_tell(mb2fmu_instance *instance, enum mb2fmu_status status, const char *category,
                        const char *message)
{
    const fmi2CallbackLogger logger = (fmi2CallbackLogger)instance->logger;
    mb2fmu_environment_leave(&instance->host);
    logger(instance->environment, instance->name, (fmi2Status)status, category, message);
    mb2fmu_environment_enter(&instance->host);
}

/* FMI 2 has no intermediate updates. */
static int mb2fmu_ask(mb2fmu_instance *instance, double t, double *until)
{
    (void)instance;
    (void)t;
    (void)until;
    return MB2FMU_GO_ON;
}

/* --- common functions (section 2.1) ------------------------------------------------------------------------------- */

const char *fmi2GetTypesPlatform(void)
{
    return fmi2TypesPlatform;
}

const char *fmi2GetVersion(void)
{
    return fmi2Version;
}

/* NULL where all is well. */
static const char *mb2fmu_refusal(fmi2String name, fmi2Type type, fmi2String token,
                                  char text[MB2FMU_REFUSAL_SIZE])
{
    if (name == NULL || name[strspn(name, " \t\r\n\f\v")] == '\0') {
        return "fmi2Instantiate: the instance name is missing or blank";
    }
    if (type != fmi2ModelExchange && type != fmi2CoSimulation) {
        return "fmi2Instantiate: the type is neither fmi2ModelExchange nor fmi2CoSimulation";
    }
    if (token == NULL || strcmp(token, MB2FMU_TOKEN) != 0) {
        (void)snprintf(text, MB2FMU_REFUSAL_SIZE,
                       "fmi2Instantiate: the GUID is not that of this unit, which is %s", MB2FMU_TOKEN);
        return text;
    }
    return NULL;
}

static MB2FMU_NOINLINE mb2fmu_instance *mb2fmu_instantiate(fmi2String name, fmi2Type type,
                                                           const fmi2CallbackFunctions *functions, int logging)
{
    mb2fmu_instance *const instance =
        mb2fmu_instance_create(type == fmi2ModelExchange ? MB2FMU_MODEL_EXCHANGE : MB2FMU_CO_SIMULATION, name);
    if (instance != NULL) {
        instance->environment = functions->componentEnvironment;
        instance->logger = (void (*)(void))functions->logger;
        (void)mb2fmu_set_logging(instance, logging, 0, NULL);
    }
    return instance;
}

fmi2Component fmi2Instantiate(fmi2String instanceName, fmi2Type fmuType, fmi2String fmuGUID,
                              fmi2String fmuResourceLocation, const fmi2CallbackFunctions *functions,
                              fmi2Boolean visible, fmi2Boolean loggingOn)
{
    char text[MB2FMU_REFUSAL_SIZE];
    const char *refusal = mb2fmu_refusal(instanceName, fmuType, fmuGUID, text);
    void *handle = NULL;
    (void)fmuResourceLocation; /* the FMU has no resources */
    (void)visible;
    if (functions == NULL) {
        return NULL; /* and there is nobody to be told */
    }
    if (refusal == NULL) {
        mb2fmu_environment host;
        mb2fmu_instance *instance;
        mb2fmu_environment_enter(&host);
        instance = mb2fmu_instantiate(instanceName, fmuType, functions, loggingOn != fmi2False);
        handle = instance == NULL ? NULL : mb2fmu_handle_take(instance);
        if (handle == NULL) {
            MB2FMU_FREE(instance);
            refusal = "fmi2Instantiate: there is no memory for an instance";
        }
        mb2fmu_environment_leave(&host);
    }
    if (refusal != NULL && loggingOn != fmi2False && functions->logger != NULL) {
        functions->logger(functions->componentEnvironment, instanceName == NULL ? "" : instanceName, fmi2Error,
                          "logStatusError", refusal);
    }
    return handle;
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_free_instance(mb2fmu_instance *instance, void *handle)
{
    if (instance->calls > 1) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the instance cannot be freed in a callback of its own");
    }
    MB2FMU_FREE(mb2fmu_handle_release(handle));
    return MB2FMU_OK;
}

void fmi2FreeInstance(fmi2Component c)
{
    mb2fmu_call call;
    mb2fmu_instance *const instance = mb2fmu_enter(&call, c, &mb2fmu_may_FreeInstance);
    enum mb2fmu_status status = MB2FMU_ERROR;
    if (instance != NULL && mb2fmu_free_instance(instance, c) == MB2FMU_OK) {
        call.instance = NULL; /* it is gone */
        status = MB2FMU_OK;
    }
    (void)mb2fmu_leave(&call, status);
}

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean loggingOn, size_t nCategories,
                               const fmi2String categories[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetDebugLogging,
                mb2fmu_set_logging(instance, loggingOn != fmi2False, nCategories, categories));
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, fmi2Real tolerance,
                               fmi2Real startTime, fmi2Boolean stopTimeDefined, fmi2Real stopTime)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetupExperiment,
                mb2fmu_set_experiment(instance, toleranceDefined != fmi2False, tolerance, startTime,
                                      stopTimeDefined != fmi2False, stopTime));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_enter_initialization(mb2fmu_instance *instance)
{
    if (!instance->now.experiment_defined) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "fmi2SetupExperiment must be called first");
    }
    instance->now.mode = MB2FMU_INITIALIZATION;
    return MB2FMU_OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_EnterInitializationMode, mb2fmu_enter_initialization(instance));
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_ExitInitializationMode, mb2fmu_finish_initialization(instance));
}

fmi2Status fmi2Terminate(fmi2Component c)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_Terminate, mb2fmu_go_to(instance, MB2FMU_TERMINATED));
}

fmi2Status fmi2Reset(fmi2Component c)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_Reset, mb2fmu_reset(instance));
}

/* --- variables (section 2.1.7) ------------------------------------------------------------------------------------ */

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Real value[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetReal, mb2fmu_get_reals(instance, vr, nvr, value));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_get_integers(mb2fmu_instance *instance, const unsigned vr[],
                                                              size_t nvr, int value[])
{
    size_t i;
    if (mb2fmu_missing(instance, vr, nvr, "value references") || mb2fmu_missing(instance, value, nvr, "values")) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < nvr; ++i) {
        if (mb2fmu_get_choice(instance, vr[i], &value[i]) != MB2FMU_OK) {
            return MB2FMU_ERROR;
        }
    }
    return MB2FMU_OK;
}

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Integer value[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetInteger, mb2fmu_get_integers(instance, vr, nvr, value));
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2Boolean value[])
{
    (void)vr;
    (void)value;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetBoolean, mb2fmu_absent(instance, nvr, "Boolean"));
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, fmi2String value[])
{
    (void)vr;
    (void)value;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetString, mb2fmu_absent(instance, nvr, "String"));
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Real value[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetReal, mb2fmu_set_reals(instance, vr, nvr, value));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_set_integers(mb2fmu_instance *instance, const unsigned vr[],
                                                              size_t nvr, const int value[])
{
    size_t i;
    if (mb2fmu_missing(instance, vr, nvr, "value references") || mb2fmu_missing(instance, value, nvr, "values")) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < nvr; ++i) {
        if (mb2fmu_set_choice(instance, vr[i], value[i]) != MB2FMU_OK) {
            return MB2FMU_ERROR;
        }
    }
    return MB2FMU_OK;
}

fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Integer value[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetInteger, mb2fmu_set_integers(instance, vr, nvr, value));
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2Boolean value[])
{
    (void)vr;
    (void)value;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetBoolean, mb2fmu_absent(instance, nvr, "Boolean"));
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t nvr, const fmi2String value[])
{
    (void)vr;
    (void)value;
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetString, mb2fmu_absent(instance, nvr, "String"));
}

/* --- state and derivatives (sections 2.1.8 and 2.1.9) ------------------------------------------------------------- */

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *FMUstate)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetFMUstate, mb2fmu_get_state(instance, FMUstate));
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate FMUstate)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SetFMUstate, mb2fmu_set_state(instance, FMUstate));
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *FMUstate)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_FreeFMUstate, mb2fmu_free_state(instance, FMUstate));
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate FMUstate, size_t *size)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SerializedFMUstateSize, mb2fmu_state_size(instance, FMUstate, size));
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate FMUstate, fmi2Byte serializedState[], size_t size)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_SerializeFMUstate,
                mb2fmu_serialize(instance, FMUstate, (unsigned char *)serializedState, size));
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte serializedState[], size_t size,
                                   fmi2FMUstate *FMUstate)
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_DeSerializeFMUstate,
                mb2fmu_deserialize(instance, (const unsigned char *)serializedState, size, FMUstate));
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference vUnknown_ref[], size_t nUnknown,
                                        const fmi2ValueReference vKnown_ref[], size_t nKnown,
                                        const fmi2Real dvKnown[], fmi2Real dvUnknown[])
{
    MB2FMU_CALL(fmi2Status, c, mb2fmu_may_GetDirectionalDerivative,
                mb2fmu_directional(instance, vUnknown_ref, nUnknown, vKnown_ref, nKnown, dvKnown, dvUnknown));
}
