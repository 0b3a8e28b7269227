/* component.c: an FMU as a WebAssembly component, after FMI-LS-WASM.
 *
 * The draft maps FMI 3.0's functions to methods of two resources (unit.wit). Each function below is such a method: it
 * takes what the component model's canonical ABI hands over, calls the C function of the FMU, and lays its results out
 * as that ABI reads them: structures of C have that layout on wasm32.
 *
 * Sources: FMI-LS-WASM 0.1.0, working draft of 2026-07-08; component model, CanonicalABI: flattening (at most sixteen
 * parameters and one result, else a pointer), `cabi_realloc` for what the host hands over, `cabi_post_…` when it has
 * read what it was given.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3Functions.h"

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define VERSION "@3.0.0"
#define CALLBACKS "fmi:fmi3/callbacks" VERSION
#define UPDATES "fmi:fmi3/intermediate-update-callbacks" VERSION

/* --- memory: one call's arguments and results, given back together ------------------------------------------------ */

typedef struct block {
    struct block *before;
    size_t size, used;
} block;

#define SMALLEST_BLOCK ((size_t)4096)
#define UNIT ((size_t)16) /* All that is handed out begins at a multiple of it: malloc does, too. */

static block *newest;

static size_t rounded(size_t size)
{
    return (size + UNIT - 1) / UNIT * UNIT;
}

/* Memory until the end of the call; there is none: the component traps, as the ABI has no other answer. */
static void *take(size_t size)
{
    const size_t head = rounded(sizeof(block)), needed = rounded(size == 0 ? 1 : size);
    void *place;
    if (needed < size || needed > SIZE_MAX / 2) {
        __builtin_trap();
    }
    if (newest == NULL || newest->size - newest->used < needed) {
        const size_t room = needed > SMALLEST_BLOCK ? needed : SMALLEST_BLOCK;
        block *const made = malloc(head + room);
        if (made == NULL) {
            __builtin_trap();
        }
        made->before = newest;
        made->size = room;
        made->used = 0;
        newest = made;
    }
    place = (char *)newest + head + newest->used;
    newest->used += needed;
    return place;
}

/* For `count` values of `size` bytes. */
static void *take_list(size_t count, size_t size)
{
    if (count > SIZE_MAX / 4 / size) {
        __builtin_trap();
    }
    return take(count * size);
}

/* Ends a call. One block stays, so that short calls do not ask for memory. */
static void give_back(void)
{
    while (newest != NULL && (newest->before != NULL || newest->size > SMALLEST_BLOCK)) {
        block *const before = newest->before;
        free(newest);
        newest = before;
    }
    if (newest != NULL) {
        newest->used = 0;
    }
}

/* The host calls it when it has read what a function gave. */
#define AFTER_CALL(function, name)                       \
    EXPORT("cabi_post_" name) void function(void *result) \
    {                                                    \
        (void)result;                                    \
        give_back();                                     \
    }

EXPORT("cabi_realloc") void *component_realloc(void *old, size_t old_size, size_t alignment, size_t size)
{
    void *const place = take(size);
    (void)alignment; /* The largest alignment of the interface is 8. */
    if (old != NULL) {
        memcpy(place, old, old_size < size ? old_size : size);
    }
    return place;
}

/* --- values of the interface -------------------------------------------------------------------------------------- */

typedef struct {
    const char *data;
    size_t size;
} text;

typedef struct {
    const uint8_t *data;
    size_t size;
} bytes;

typedef struct {
    uint32_t reference, order;
} request;

typedef struct {
    uint64_t counter, resolution;
} fraction;

typedef struct {
    double interval;
    uint8_t qualifier;
} decimal_interval;

typedef struct {
    fraction interval;
    uint8_t qualifier;
} fraction_interval;

typedef struct {
    uint32_t dependent, dependent_element, independent, independent_element;
    uint8_t kind;
} dependency;

typedef struct {
    uint8_t failed;
    union {
        uint8_t status;
        struct {
            const void *data;
            size_t count;
        } list;
    } as;
} list_result;

typedef struct {
    uint8_t failed;
    union {
        uint8_t status;
        uint64_t value;
    } as;
} number_result;

typedef struct {
    uint8_t failed;
    union {
        uint8_t status;
        struct {
            double last_time;
            uint8_t event_needed, terminate, early;
        } step;
        struct {
            uint8_t needed, terminate, nominals, values, next_defined;
            double next;
        } discrete;
    } as;
} record_result;

typedef struct {
    uint8_t failed, first, second; /* Failed: `first` is the status. */
} completed_result;

typedef struct {
    uint8_t some;
    int32_t handle;
} instance_option;

/* The host owns a handle that stands for one of these. */
typedef struct {
    fmi3Instance unit;
    text name;
} holder;

static bool is_failure(fmi3Status status)
{
    return status != fmi3OK && status != fmi3Warning;
}

/* Texts of the component model have no zero at their end; one inside would cut the text, as it does in C. */
static char *terminated(text given)
{
    char *const copy = take(given.size + 1);
    memcpy(copy, given.data, given.size);
    copy[given.size] = '\0';
    return copy;
}

static list_result *list_or_status(fmi3Status status, const void *data, size_t count)
{
    list_result *const result = take(sizeof *result);
    result->failed = is_failure(status);
    if (result->failed) {
        result->as.status = (uint8_t)status;
    } else {
        result->as.list.data = data;
        result->as.list.count = count;
    }
    return result;
}

static number_result *number_or_status(fmi3Status status, size_t value)
{
    number_result *const result = take(sizeof *result);
    result->failed = is_failure(status);
    if (result->failed) {
        result->as.status = (uint8_t)status;
    } else {
        result->as.value = value;
    }
    return result;
}

/* Ends a call that gives a status alone. */
static uint32_t ended(fmi3Status status)
{
    give_back();
    return (uint32_t)status;
}

/* --- callbacks ---------------------------------------------------------------------------------------------------- */

IMPORT(CALLBACKS, "log-message")
void host_log(const char *name, size_t name_size, uint32_t status, const char *category, size_t category_size,
              const char *message, size_t message_size);

typedef struct {
    uint8_t requested;
    double time;
} early_return;

IMPORT(UPDATES, "intermediate-update")
void host_update(double time, uint32_t set_requested, uint32_t get_allowed, uint32_t finished, uint32_t can_return,
                 early_return *result);

static void tell(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String message)
{
    const holder *const self = environment;
    host_log(self->name.data, self->name.size, (uint32_t)status, category, strlen(category), message, strlen(message));
}

static void update(fmi3InstanceEnvironment environment, fmi3Float64 time, fmi3Boolean set_requested,
                   fmi3Boolean get_allowed, fmi3Boolean finished, fmi3Boolean can_return,
                   fmi3Boolean *early_return_requested, fmi3Float64 *early_return_time)
{
    early_return answer = {0, 0.0};
    (void)environment;
    host_update(time, set_requested, get_allowed, finished, can_return, &answer);
    *early_return_requested = answer.requested != 0;
    *early_return_time = answer.time;
}

/* --- instances ---------------------------------------------------------------------------------------------------- */

static holder *new_holder(text name)
{
    holder *const self = malloc(sizeof *self);
    char *const copy = malloc(name.size + 1);
    if (self == NULL || copy == NULL) {
        __builtin_trap();
    }
    memcpy(copy, name.data, name.size);
    copy[name.size] = '\0';
    self->name.data = copy;
    self->name.size = name.size;
    return self;
}

static void free_holder(holder *self)
{
    if (self->unit != NULL) {
        fmi3FreeInstance(self->unit);
    }
    free((void *)self->name.data);
    free(self);
}

static instance_option *owned(holder *self, int32_t (*made)(holder *))
{
    instance_option *const result = take(sizeof *result);
    result->some = self->unit != NULL;
    result->handle = 0;
    if (result->some) {
        result->handle = made(self);
    } else {
        free_holder(self);
    }
    return result;
}

#define CO_SIMULATION "fmi:fmi3/co-simulation" VERSION
#define MODEL_EXCHANGE "fmi:fmi3/model-exchange" VERSION

IMPORT("[export]" CO_SIMULATION, "[resource-new]co-simulation-instance") int32_t new_co_simulation(holder *self);
IMPORT("[export]" MODEL_EXCHANGE, "[resource-new]model-exchange-instance") int32_t new_model_exchange(holder *self);

EXPORT(CO_SIMULATION "#[dtor]co-simulation-instance") void drop_co_simulation(holder *self)
{
    free_holder(self);
}

EXPORT(MODEL_EXCHANGE "#[dtor]model-exchange-instance") void drop_model_exchange(holder *self)
{
    free_holder(self);
}

#define INSTANTIATE_CS CO_SIMULATION "#[static]co-simulation-instance.instantiate-co-simulation"

EXPORT(INSTANTIATE_CS)
instance_option *instantiate_co_simulation(const char *name, size_t name_size, const char *token, size_t token_size,
                                           const char *path, size_t path_size, uint32_t visible, uint32_t logging,
                                           uint32_t event_mode, uint32_t early, const uint32_t *required,
                                           size_t required_count)
{
    holder *const self = new_holder((text){name, name_size});
    self->unit = fmi3InstantiateCoSimulation(self->name.data, terminated((text){token, token_size}),
                                             terminated((text){path, path_size}), visible != 0, logging != 0,
                                             event_mode != 0, early != 0, required, required_count, self, tell,
                                             early != 0 || required_count > 0 ? update : NULL);
    return owned(self, new_co_simulation);
}

#define INSTANTIATE_ME MODEL_EXCHANGE "#[static]model-exchange-instance.instantiate-model-exchange"

EXPORT(INSTANTIATE_ME)
instance_option *instantiate_model_exchange(const char *name, size_t name_size, const char *token, size_t token_size,
                                            const char *path, size_t path_size, uint32_t visible, uint32_t logging)
{
    holder *const self = new_holder((text){name, name_size});
    self->unit = fmi3InstantiateModelExchange(self->name.data, terminated((text){token, token_size}),
                                              terminated((text){path, path_size}), visible != 0, logging != 0, self,
                                              tell);
    return owned(self, new_model_exchange);
}

AFTER_CALL(after_instantiate_cs, INSTANTIATE_CS)

AFTER_CALL(after_instantiate_me, INSTANTIATE_ME)

#define GET_VERSION "fmi:fmi3/common" VERSION "#get-version"

EXPORT(GET_VERSION) text *get_version(void)
{
    text *const result = take(sizeof *result);
    result->data = fmi3GetVersion();
    result->size = strlen(result->data);
    return result;
}

AFTER_CALL(after_get_version, GET_VERSION)

/* --- methods of both resources ------------------------------------------------------------------------------------ */

#include "component_methods.h"

#define PREFIX(name) cs_##name
#define METHOD CO_SIMULATION "#[method]co-simulation-instance."
#include "component_exports.h"
#undef PREFIX
#undef METHOD

#define PREFIX(name) me_##name
#define METHOD MODEL_EXCHANGE "#[method]model-exchange-instance."
#include "component_exports.h"

/* --- Co-Simulation ------------------------------------------------------------------------------------------------ */

#define CS_METHOD CO_SIMULATION "#[method]co-simulation-instance."

EXPORT(CS_METHOD "do-step")
record_result *do_step(holder *self, double from, double size, uint32_t no_rollback)
{
    record_result *const result = take(sizeof *result);
    fmi3Boolean event_needed = false, terminate = false, early = false;
    fmi3Float64 last_time = from;
    const fmi3Status status =
        fmi3DoStep(self->unit, from, size, no_rollback != 0, &event_needed, &terminate, &early, &last_time);
    result->failed = is_failure(status);
    if (result->failed) {
        result->as.status = (uint8_t)status;
    } else {
        result->as.step.last_time = last_time;
        result->as.step.event_needed = event_needed;
        result->as.step.terminate = terminate;
        result->as.step.early = early;
    }
    return result;
}

AFTER_CALL(after_do_step, CS_METHOD "do-step")

/* The draft kept a function of FMI 2 here that FMI 3.0 does not have (inputs move within intermediate updates). */
EXPORT(CS_METHOD "set-input-derivatives")
uint32_t set_input_derivatives(holder *self, const request *requests, size_t count, const double *values,
                               size_t value_count)
{
    (void)self;
    (void)requests;
    (void)values;
    return ended(count == 0 && value_count == 0 ? fmi3OK : fmi3Error);
}

/* --- Model Exchange ----------------------------------------------------------------------------------------------- */

#define ME_METHOD MODEL_EXCHANGE "#[method]model-exchange-instance."

EXPORT(ME_METHOD "enter-continuous-time-mode") uint32_t enter_continuous_time_mode(holder *self)
{
    return ended(fmi3EnterContinuousTimeMode(self->unit));
}

EXPORT(ME_METHOD "set-time") uint32_t set_time(holder *self, double time)
{
    return ended(fmi3SetTime(self->unit, time));
}

EXPORT(ME_METHOD "set-continuous-states")
uint32_t set_continuous_states(holder *self, const double *states, size_t count)
{
    return ended(fmi3SetContinuousStates(self->unit, states, count));
}

/* A method that gives as many numbers as there are states or indicators. */
#define VECTOR_METHOD(c_name, wit_name, function, size_function)                              \
    EXPORT(ME_METHOD wit_name) list_result *c_name(holder *self)                              \
    {                                                                                         \
        size_t count = 0;                                                                     \
        double *values = NULL;                                                                \
        fmi3Status status = size_function(self->unit, &count);                                \
        if (!is_failure(status)) {                                                            \
            values = take_list(count, sizeof *values);                                        \
            status = function(self->unit, values, count);                                     \
        }                                                                                     \
        return list_or_status(status, values, count);                                         \
    }                                                                                         \
    AFTER_CALL(after_##c_name, ME_METHOD wit_name)

#define COUNT_METHOD(c_name, wit_name, function)                                              \
    EXPORT(ME_METHOD wit_name) number_result *c_name(holder *self)                            \
    {                                                                                         \
        size_t count = 0;                                                                     \
        const fmi3Status status = function(self->unit, &count);                               \
        return number_or_status(status, count);                                               \
    }                                                                                         \
    AFTER_CALL(after_##c_name, ME_METHOD wit_name)

/* clang-format off */
VECTOR_METHOD(get_derivatives, "get-continuous-state-derivatives", fmi3GetContinuousStateDerivatives,
              fmi3GetNumberOfContinuousStates)
VECTOR_METHOD(get_indicators, "get-event-indicators", fmi3GetEventIndicators, fmi3GetNumberOfEventIndicators)
VECTOR_METHOD(get_states, "get-continuous-states", fmi3GetContinuousStates, fmi3GetNumberOfContinuousStates)
VECTOR_METHOD(get_nominals, "get-nominals-of-continuous-states", fmi3GetNominalsOfContinuousStates,
              fmi3GetNumberOfContinuousStates)
COUNT_METHOD(count_indicators, "get-number-of-event-indicators", fmi3GetNumberOfEventIndicators)
COUNT_METHOD(count_states, "get-number-of-continuous-states", fmi3GetNumberOfContinuousStates)
/* clang-format on */

EXPORT(ME_METHOD "completed-integrator-step")
completed_result *completed_integrator_step(holder *self, uint32_t no_rollback)
{
    completed_result *const result = take(sizeof *result);
    fmi3Boolean enter = false, terminate = false;
    const fmi3Status status = fmi3CompletedIntegratorStep(self->unit, no_rollback != 0, &enter, &terminate);
    result->failed = is_failure(status);
    result->first = result->failed ? (uint8_t)status : enter;
    result->second = terminate;
    return result;
}

AFTER_CALL(after_completed_integrator_step, ME_METHOD "completed-integrator-step")
