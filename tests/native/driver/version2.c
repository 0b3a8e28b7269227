/* version2.c: the script's commands, called as FMI 2.0 has them. */
#include "system.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2FunctionTypes.h"

/* Every function that the driver calls. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(Instantiate) X(FreeInstance) X(SetupExperiment) X(EnterInitializationMode) X(ExitInitializationMode)             \
    X(Terminate) X(Reset) X(GetReal) X(SetReal) X(SetInteger) X(GetFMUstate) X(SetFMUstate) X(FreeFMUstate)            \
    X(SerializedFMUstateSize) X(SerializeFMUstate) X(DeSerializeFMUstate) X(GetDirectionalDerivative)                  \
    X(NewDiscreteStates) X(EnterContinuousTimeMode) X(CompletedIntegratorStep) X(SetTime) X(SetContinuousStates)       \
    X(GetDerivatives) X(GetContinuousStates) X(DoStep)

typedef struct {
#define DRIVER_FIELD(name) fmi2##name##TYPE *name;
    DRIVER_FUNCTIONS(DRIVER_FIELD)
#undef DRIVER_FIELD
} functions2;

static const functions2 *of(const unit *u)
{
    return (const functions2 *)u->functions;
}

/* Every instance of the driver remembers its saved state, so it is wrapped. */
typedef struct {
    fmi2Component component;
    fmi2FMUstate saved;
    fmi2CallbackFunctions callbacks;
    int verbose;
} instance2;

static fmi2Component component(void *instance)
{
    return ((instance2 *)instance)->component;
}

static void logger(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                   fmi2String message, ...)
{
    const instance2 *self = (const instance2 *)environment;
    if (self->verbose) {
        fprintf(stderr, "%s: %d %s: %s\n", name, (int)status, category, message);
    }
}

static void *instantiate(const unit *u, const char *name)
{
    instance2 *self = (instance2 *)calloc(1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->verbose = u->verbose;
    self->callbacks.logger = logger;
    self->callbacks.allocateMemory = calloc;
    self->callbacks.freeMemory = free;
    self->callbacks.componentEnvironment = self;
    self->component = of(u)->Instantiate(name, u->model_exchange ? fmi2ModelExchange : fmi2CoSimulation, u->token,
                                         u->resources, &self->callbacks, fmi2False, fmi2True);
    if (self->component == NULL) {
        free(self);
        return NULL;
    }
    return self;
}

static void free_instance(const unit *u, void *instance)
{
    instance2 *self = (instance2 *)instance;
    if (self->saved != NULL) {
        (void)of(u)->FreeFMUstate(self->component, &self->saved);
    }
    of(u)->FreeInstance(self->component);
    free(self);
}

static int enter(const unit *u, void *instance, double start, const double *stop, const double *tolerance)
{
    fmi2Status status = of(u)->SetupExperiment(component(instance), tolerance != NULL, tolerance ? *tolerance : 0.0,
                                               start, stop != NULL, stop ? *stop : 0.0);
    return status > fmi2Warning ? (int)status : (int)of(u)->EnterInitializationMode(component(instance));
}

static int leave(const unit *u, void *instance)
{
    return (int)of(u)->ExitInitializationMode(component(instance));
}

static int continuous(const unit *u, void *instance)
{
    fmi2EventInfo info;
    do {
        fmi2Status status = of(u)->NewDiscreteStates(component(instance), &info);
        if (status > fmi2Warning) {
            return (int)status;
        }
    } while (info.newDiscreteStatesNeeded && !info.terminateSimulation);
    return (int)of(u)->EnterContinuousTimeMode(component(instance));
}

static int terminate(const unit *u, void *instance)
{
    return (int)of(u)->Terminate(component(instance));
}

static int reset(const unit *u, void *instance)
{
    return (int)of(u)->Reset(component(instance));
}

static int save(const unit *u, void *instance)
{
    return (int)of(u)->GetFMUstate(component(instance), &((instance2 *)instance)->saved);
}

static int restore(const unit *u, void *instance)
{
    return (int)of(u)->SetFMUstate(component(instance), ((instance2 *)instance)->saved);
}

static int set_reals(const unit *u, void *instance, const unsigned int *references, size_t n, const double *values)
{
    return (int)of(u)->SetReal(component(instance), references, n, values);
}

static int get_reals(const unit *u, void *instance, const unsigned int *references, size_t n, double *values)
{
    return (int)of(u)->GetReal(component(instance), references, n, values);
}

static int set_choice(const unit *u, void *instance, unsigned int reference, int value)
{
    return (int)of(u)->SetInteger(component(instance), &reference, 1, &value);
}

static int step(const unit *u, void *instance, double t, double h)
{
    return (int)of(u)->DoStep(component(instance), t, h, fmi2True);
}

static int set_time(const unit *u, void *instance, double t)
{
    return (int)of(u)->SetTime(component(instance), t);
}

static int completed(const unit *u, void *instance)
{
    fmi2Boolean event = fmi2False;
    fmi2Boolean stop = fmi2False;
    return (int)of(u)->CompletedIntegratorStep(component(instance), fmi2True, &event, &stop);
}

static int get_states(const unit *u, void *instance, double *x, size_t n)
{
    return (int)of(u)->GetContinuousStates(component(instance), x, n);
}

static int set_states(const unit *u, void *instance, double *x, size_t n)
{
    return (int)of(u)->SetContinuousStates(component(instance), x, n);
}

static int get_derivatives(const unit *u, void *instance, double *dx, size_t n)
{
    return (int)of(u)->GetDerivatives(component(instance), dx, n);
}

static int directional(const unit *u, void *instance, unsigned int unknown, unsigned int known, double *value)
{
    const double seed = 1.0;
    return (int)of(u)->GetDirectionalDerivative(component(instance), &unknown, 1, &known, 1, &seed, value);
}

static int serialize(const unit *u, void *instance, unsigned char **bytes, size_t *size)
{
    fmi2FMUstate state = NULL;
    fmi2Status status = of(u)->GetFMUstate(component(instance), &state);
    if (status <= fmi2Warning) {
        status = of(u)->SerializedFMUstateSize(component(instance), state, size);
    }
    if (status <= fmi2Warning) {
        *bytes = (unsigned char *)malloc(*size);
        status = *bytes == NULL ? fmi2Fatal
                                : of(u)->SerializeFMUstate(component(instance), state, (fmi2Byte *)*bytes, *size);
    }
    (void)of(u)->FreeFMUstate(component(instance), &state);
    return (int)status;
}

static int deserialize(const unit *u, void *instance, const unsigned char *bytes, size_t size)
{
    fmi2FMUstate state = NULL;
    fmi2Status status = of(u)->DeSerializeFMUstate(component(instance), (const fmi2Byte *)bytes, size, &state);
    if (status <= fmi2Warning) {
        status = of(u)->SetFMUstate(component(instance), state);
        (void)of(u)->FreeFMUstate(component(instance), &state);
    }
    return (int)status;
}

static const driver_calls calls2 = {
    instantiate, enter,     leave,      continuous,  terminate,   reset,     save,        restore,       set_reals, get_reals,
    set_choice,  step,      set_time,   completed,   get_states,  set_states, get_derivatives, directional, serialize,
    deserialize, free_instance,
};

int driver_load2(unit *u)
{
    static functions2 functions;
    int complete = 1;
    driver_function *found;
#define DRIVER_LOAD(name)                                                                                              \
    found = driver_symbol(u->library, "fmi2" #name);                                                                   \
    if (found == NULL) {                                                                                               \
        fprintf(stderr, "fmi2" #name " is missing\n");                                                                 \
        complete = 0;                                                                                                  \
    }                                                                                                                  \
    functions.name = (fmi2##name##TYPE *)found;
    DRIVER_FUNCTIONS(DRIVER_LOAD)
#undef DRIVER_LOAD
    u->functions = &functions;
    u->calls = &calls2;
    return complete;
}
