/* fmi3.c: the functions of FMI 3.0.2 that both kinds share: a thin shell around the instance core (instance.h).
 *
 * Every exported function is one MB2FMU_CALL of static ones, so that none calls another exported one: the dynamic
 * linker could have put that of another unit in its place. What may be called when: protocol_fmi3.c.
 */
#include "protocol.h"

#include "fmi3Functions.h"

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

static void mb2fmu_tell(mb2fmu_instance *instance, enum mb2fmu_status status, const char *category,
                        const char *message)
{
    const fmi3LogMessageCallback logger = (fmi3LogMessageCallback)instance->logger;
    mb2fmu_environment_leave(&instance->host);
    logger(instance->environment, (fmi3Status)status, category, message);
    mb2fmu_environment_enter(&instance->host);
}

/* Section 2.3.8: for accepted steps only, so times never decrease and what is read is final. */
static int mb2fmu_ask(mb2fmu_instance *instance, double t, double *until)
{
    const fmi3IntermediateUpdateCallback update = (fmi3IntermediateUpdateCallback)instance->intermediate_update;
    const fmi3Boolean may_return = instance->early_return_allowed != 0;
    fmi3Boolean return_requested = fmi3False;
    fmi3Float64 return_time = t;
    mb2fmu_environment_leave(&instance->host);
    update(instance->environment, t, fmi3True, fmi3True, fmi3True, may_return, &return_requested, &return_time);
    mb2fmu_environment_enter(&instance->host);
    if (!may_return || !return_requested) {
        return MB2FMU_GO_ON;
    }
    if (!(return_time > t)) {
        return MB2FMU_STOP;
    }
    *until = return_time < *until ? return_time : *until;
    return MB2FMU_GO_ON;
}

/* --- creation (section 2.3.1) ------------------------------------------------------------------------------------- */

const char *fmi3GetVersion(void)
{
    return fmi3Version;
}

/* What every kind is asked for with. */
typedef struct {
    const char *function;
    enum mb2fmu_kind kind;
    fmi3String name;
    fmi3String token;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback logger;
    int logging; /* there shall be messages from the first call on */
} mb2fmu_request;

static void *mb2fmu_refuse(const mb2fmu_request *request, const char *reason)
{
    if (request->logging && request->logger != NULL) {
        request->logger(request->environment, fmi3Error, "logStatusError", reason);
    }
    return NULL;
}

static MB2FMU_NOINLINE mb2fmu_instance *mb2fmu_build(const mb2fmu_request *request)
{
    mb2fmu_instance *const instance = mb2fmu_instance_create(request->kind, request->name);
    if (instance != NULL) {
        instance->function = request->function;
        instance->environment = request->environment;
        instance->logger = (void (*)(void))request->logger;
        (void)mb2fmu_set_logging(instance, request->logging, 0, NULL);
        instance->function = "";
    }
    return instance;
}

/* The instance, not yet known to the importer; or NULL, and it was told why. */
static mb2fmu_instance *mb2fmu_instantiate(const mb2fmu_request *request)
{
    const fmi3String name = request->name;
    mb2fmu_environment host;
    mb2fmu_instance *instance;
    if (name == NULL || name[strspn(name, " \t\r\n\f\v")] == '\0') {
        return (mb2fmu_instance *)mb2fmu_refuse(request, "the instance name is missing or blank");
    }
    if (request->token == NULL || strcmp(request->token, MB2FMU_TOKEN) != 0) {
        char text[MB2FMU_REFUSAL_SIZE];
        (void)snprintf(text, sizeof text, "the instantiation token is not that of this unit, which is %s",
                       MB2FMU_TOKEN);
        return (mb2fmu_instance *)mb2fmu_refuse(request, text);
    }
    mb2fmu_environment_enter(&host);
    instance = mb2fmu_build(request);
    mb2fmu_environment_leave(&host);
    if (instance == NULL) {
        (void)mb2fmu_refuse(request, "there is no memory for an instance");
    }
    return instance;
}

static fmi3Instance mb2fmu_publish(const mb2fmu_request *request, mb2fmu_instance *instance)
{
    void *const handle = instance == NULL ? NULL : mb2fmu_handle_take(instance);
    if (instance != NULL && handle == NULL) {
        MB2FMU_FREE(instance);
        return mb2fmu_refuse(request, "there are too many instances");
    }
    return handle;
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String instanceName, fmi3String instantiationToken,
                                          fmi3String resourcePath, fmi3Boolean visible, fmi3Boolean loggingOn,
                                          fmi3InstanceEnvironment instanceEnvironment,
                                          fmi3LogMessageCallback logMessage)
{
    mb2fmu_request request;
    (void)resourcePath; /* the FMU has no resources */
    (void)visible;
    request.function = "fmi3InstantiateModelExchange";
    request.kind = MB2FMU_MODEL_EXCHANGE;
    request.name = instanceName;
    request.token = instantiationToken;
    request.environment = instanceEnvironment;
    request.logger = logMessage;
    request.logging = loggingOn;
    return mb2fmu_publish(&request, mb2fmu_instantiate(&request));
}

/* Variables of intermediate updates: continuous inputs and outputs. */
static int mb2fmu_require(mb2fmu_instance *instance, const fmi3ValueReference references[], size_t n)
{
    size_t i;
    if (n > 0 && references == NULL) {
        return 0;
    }
    for (i = 0; i < n; ++i) {
        const fmi3ValueReference reference = references[i];
        const int causality = mb2fmu_is_variable(reference) ? model_variables[reference].causality : -1;
        if (causality != MB2FMU_CAUSALITY_INPUT && causality != MB2FMU_CAUSALITY_OUTPUT) {
            return 0;
        }
        memset(&instance->required[reference], 1, mb2fmu_values_of(reference));
    }
    return 1;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String instanceName, fmi3String instantiationToken,
                                         fmi3String resourcePath, fmi3Boolean visible, fmi3Boolean loggingOn,
                                         fmi3Boolean eventModeUsed, fmi3Boolean earlyReturnAllowed,
                                         const fmi3ValueReference requiredIntermediateVariables[],
                                         size_t nRequiredIntermediateVariables,
                                         fmi3InstanceEnvironment instanceEnvironment,
                                         fmi3LogMessageCallback logMessage,
                                         fmi3IntermediateUpdateCallback intermediateUpdate)
{
    mb2fmu_request request;
    mb2fmu_instance *instance;
    (void)resourcePath; /* the FMU has no resources */
    (void)visible;
    request.function = "fmi3InstantiateCoSimulation";
    request.kind = MB2FMU_CO_SIMULATION;
    request.name = instanceName;
    request.token = instantiationToken;
    request.environment = instanceEnvironment;
    request.logger = logMessage;
    request.logging = loggingOn;
    if (eventModeUsed && !(MB2FMU_N_MODES > 0)) {
        return mb2fmu_refuse(&request, "event mode cannot be used: hasEventMode is false");
    }
    instance = mb2fmu_instantiate(&request);
    if (instance == NULL) {
        return NULL;
    }
    if (!mb2fmu_require(instance, requiredIntermediateVariables, nRequiredIntermediateVariables)) {
        MB2FMU_FREE(instance);
        return mb2fmu_refuse(&request, "a required intermediate variable is neither an input nor an output");
    }
    instance->early_return_allowed = earlyReturnAllowed;
    instance->event_mode = eventModeUsed;
    instance->intermediate_update = (void (*)(void))intermediateUpdate;
    return mb2fmu_publish(&request, instance);
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_free_instance(mb2fmu_instance *instance, void *handle)
{
    if (instance->calls > 1) {
        return mb2fmu_fail(instance, MB2FMU_ERROR, "the instance cannot be freed in a callback of its own");
    }
    MB2FMU_FREE(mb2fmu_handle_release(handle));
    return MB2FMU_OK;
}

void fmi3FreeInstance(fmi3Instance instance_)
{
    mb2fmu_call call;
    mb2fmu_instance *const instance = mb2fmu_enter(&call, instance_, &mb2fmu_may_FreeInstance);
    enum mb2fmu_status status = MB2FMU_ERROR;
    if (instance != NULL && mb2fmu_free_instance(instance, instance_) == MB2FMU_OK) {
        call.instance = NULL; /* it is gone */
        status = MB2FMU_OK;
    }
    (void)mb2fmu_leave(&call, status);
}

/* --- life (sections 2.3.1 to 2.3.4) ------------------------------------------------------------------------------- */

fmi3Status fmi3SetDebugLogging(fmi3Instance handle, fmi3Boolean loggingOn, size_t nCategories,
                               const fmi3String categories[])
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetDebugLogging,
                mb2fmu_set_logging(instance, loggingOn, nCategories, categories));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_enter_initialization(mb2fmu_instance *instance,
                                                                      int tolerance_defined, double tolerance,
                                                                      double start, int stop_defined, double stop)
{
    const enum mb2fmu_status status =
        mb2fmu_set_experiment(instance, tolerance_defined, tolerance, start, stop_defined, stop);
    return status == MB2FMU_OK ? mb2fmu_go_to(instance, MB2FMU_INITIALIZATION) : status;
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance handle, fmi3Boolean toleranceDefined, fmi3Float64 tolerance,
                                       fmi3Float64 startTime, fmi3Boolean stopTimeDefined, fmi3Float64 stopTime)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_EnterInitializationMode,
                mb2fmu_enter_initialization(instance, toleranceDefined, tolerance, startTime, stopTimeDefined,
                                            stopTime));
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_ExitInitializationMode, mb2fmu_finish_initialization(instance));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_enter_events(mb2fmu_instance *instance)
{
    return instance->kind == MB2FMU_MODEL_EXCHANGE || instance->event_mode
               ? mb2fmu_go_to(instance, MB2FMU_EVENT)
               : mb2fmu_fail(instance, MB2FMU_ERROR, "the FMU was instantiated without event mode");
}

fmi3Status fmi3EnterEventMode(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_EnterEventMode, mb2fmu_enter_events(instance));
}

fmi3Status fmi3Terminate(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_Terminate, mb2fmu_go_to(instance, MB2FMU_TERMINATED));
}

fmi3Status fmi3Reset(fmi3Instance handle)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_Reset, mb2fmu_reset(instance));
}

/* --- variables (section 2.2.6.2) ---------------------------------------------------------------------------------- */

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_get_float64(mb2fmu_instance *instance, const unsigned references[],
                                                             size_t n, double values[], size_t n_values)
{
    enum mb2fmu_status status;
    mb2fmu_rows rows;
    if (!mb2fmu_rows_of(instance, references, n, n_values, &rows)) {
        return MB2FMU_ERROR;
    }
    status = mb2fmu_get_reals(instance, rows.all, rows.n, values);
    mb2fmu_rows_free(&rows);
    return status;
}

fmi3Status fmi3GetFloat64(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                          fmi3Float64 values[], size_t nValues)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetFloat64,
                mb2fmu_get_float64(instance, valueReferences, nValueReferences, values, nValues));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_set_float64(mb2fmu_instance *instance, const unsigned references[],
                                                             size_t n, const double values[], size_t n_values)
{
    enum mb2fmu_status status;
    mb2fmu_rows rows;
    if (!mb2fmu_rows_of(instance, references, n, n_values, &rows)) {
        return MB2FMU_ERROR;
    }
    status = mb2fmu_set_reals(instance, rows.all, rows.n, values);
    mb2fmu_rows_free(&rows);
    return status;
}

fmi3Status fmi3SetFloat64(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                          const fmi3Float64 values[], size_t nValues)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetFloat64,
                mb2fmu_set_float64(instance, valueReferences, nValueReferences, values, nValues));
}

/* Enumerations are scalars: as many values as references. */
static int mb2fmu_mismatch(mb2fmu_instance *instance, size_t references, size_t values)
{
    if (references != values) {
        (void)mb2fmu_fail(instance, MB2FMU_ERROR, "%zu value references, but %zu values", references, values);
    }
    return references != values;
}

/* Enumerations are read and set as Int64. */
static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_get_int64(mb2fmu_instance *instance, const unsigned references[],
                                                           size_t n, fmi3Int64 values[], size_t n_values)
{
    size_t i;
    if (mb2fmu_mismatch(instance, n, n_values) || mb2fmu_missing(instance, references, n, "value references") ||
        mb2fmu_missing(instance, values, n, "values")) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < n; ++i) {
        int value;
        if (mb2fmu_get_choice(instance, references[i], &value) != MB2FMU_OK) {
            return MB2FMU_ERROR;
        }
        values[i] = value;
    }
    return MB2FMU_OK;
}

fmi3Status fmi3GetInt64(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        fmi3Int64 values[], size_t nValues)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetInt64,
                mb2fmu_get_int64(instance, valueReferences, nValueReferences, values, nValues));
}

static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_set_int64(mb2fmu_instance *instance, const unsigned references[],
                                                           size_t n, const fmi3Int64 values[], size_t n_values)
{
    size_t i;
    if (mb2fmu_mismatch(instance, n, n_values) || mb2fmu_missing(instance, references, n, "value references") ||
        mb2fmu_missing(instance, values, n, "values")) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < n; ++i) {
        if (mb2fmu_set_choice(instance, references[i], values[i]) != MB2FMU_OK) {
            return MB2FMU_ERROR;
        }
    }
    return MB2FMU_OK;
}

fmi3Status fmi3SetInt64(fmi3Instance handle, const fmi3ValueReference valueReferences[], size_t nValueReferences,
                        const fmi3Int64 values[], size_t nValues)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetInt64,
                mb2fmu_set_int64(instance, valueReferences, nValueReferences, values, nValues));
}

/* --- state and derivatives (sections 2.2.6.4 and 2.2.11) ---------------------------------------------------------- */

fmi3Status fmi3GetFMUState(fmi3Instance handle, fmi3FMUState *FMUState)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetFMUState, mb2fmu_get_state(instance, FMUState));
}

fmi3Status fmi3SetFMUState(fmi3Instance handle, fmi3FMUState FMUState)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SetFMUState, mb2fmu_set_state(instance, FMUState));
}

fmi3Status fmi3FreeFMUState(fmi3Instance handle, fmi3FMUState *FMUState)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_FreeFMUState, mb2fmu_free_state(instance, FMUState));
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance handle, fmi3FMUState FMUState, size_t *size)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SerializedFMUStateSize, mb2fmu_state_size(instance, FMUState, size));
}

fmi3Status fmi3SerializeFMUState(fmi3Instance handle, fmi3FMUState FMUState, fmi3Byte serializedState[], size_t size)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_SerializeFMUState,
                mb2fmu_serialize(instance, FMUState, serializedState, size));
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance handle, const fmi3Byte serializedState[], size_t size,
                                   fmi3FMUState *FMUState)
{
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_DeserializeFMUState,
                mb2fmu_deserialize(instance, serializedState, size, FMUState));
}

/* What a derivative is asked of and by. */
typedef struct {
    const unsigned *unknowns;
    size_t n_unknowns;
    const unsigned *knowns;
    size_t n_knowns;
} mb2fmu_asked;

typedef enum mb2fmu_status (*mb2fmu_differentiate)(mb2fmu_instance *instance, const unsigned unknowns[],
                                                   size_t n_unknowns, const unsigned knowns[], size_t n_knowns,
                                                   const double seed[], double sensitivity[]);

/* Arrays have one number of a seed or a sensitivity for each element. */
static MB2FMU_NOINLINE enum mb2fmu_status mb2fmu_differentiated(mb2fmu_instance *instance, const mb2fmu_asked *asked,
                                                                mb2fmu_differentiate way, const double seed[],
                                                                size_t n_unknown, size_t n_known, double sensitivity[])
{
    enum mb2fmu_status status = MB2FMU_ERROR;
    mb2fmu_rows unknown, known;
    if (!mb2fmu_rows_of(instance, asked->unknowns, asked->n_unknowns, n_unknown, &unknown)) {
        return MB2FMU_ERROR;
    }
    if (mb2fmu_rows_of(instance, asked->knowns, asked->n_knowns, n_known, &known)) {
        status = way(instance, unknown.all, unknown.n, known.all, known.n, seed, sensitivity);
        mb2fmu_rows_free(&known);
    }
    mb2fmu_rows_free(&unknown);
    return status;
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance handle, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                        const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[],
                                        size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity)
{
    const mb2fmu_asked asked = {unknowns, nUnknowns, knowns, nKnowns};
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetDirectionalDerivative,
                mb2fmu_differentiated(instance, &asked, &mb2fmu_directional, seed, nSensitivity, nSeed, sensitivity));
}

fmi3Status fmi3GetAdjointDerivative(fmi3Instance handle, const fmi3ValueReference unknowns[], size_t nUnknowns,
                                    const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[],
                                    size_t nSeed, fmi3Float64 sensitivity[], size_t nSensitivity)
{
    const mb2fmu_asked asked = {unknowns, nUnknowns, knowns, nKnowns};
    MB2FMU_CALL(fmi3Status, handle, mb2fmu_may_GetAdjointDerivative,
                mb2fmu_differentiated(instance, &asked, &mb2fmu_transposed, seed, nSeed, nSensitivity, sensitivity));
}
