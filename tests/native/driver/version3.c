/* version3.c: the script's commands, called as FMI 3.0 has them. */
#include "system.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3FunctionTypes.h"

/* Every function that the driver calls. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(InstantiateModelExchange) X(InstantiateCoSimulation) X(FreeInstance) X(EnterInitializationMode)                  \
    X(ExitInitializationMode) X(Terminate) X(Reset) X(GetFloat64) X(SetFloat64) X(SetInt64) X(GetFMUState)             \
    X(SetFMUState) X(FreeFMUState) X(SerializedFMUStateSize) X(SerializeFMUState) X(DeserializeFMUState)               \
    X(GetDirectionalDerivative) X(UpdateDiscreteStates) X(EnterContinuousTimeMode) X(CompletedIntegratorStep)          \
    X(SetTime) X(SetContinuousStates) X(GetContinuousStateDerivatives) X(GetContinuousStates) X(DoStep)

typedef struct {
#define DRIVER_FIELD(name) fmi3##name##TYPE *name;
    DRIVER_FUNCTIONS(DRIVER_FIELD)
#undef DRIVER_FIELD
} functions3;

static const functions3 *of(const unit *u)
{
    return (const functions3 *)u->functions;
}

/* Every instance of the driver remembers its saved state, so it is wrapped. */
typedef struct {
    fmi3Instance component;
    fmi3FMUState saved;
        int verbose;
} instance3;

static fmi3Instance component(void *instance)
{
    return ((instance3 *)instance)->component;
}

static void logger(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String message)
{
    const instance3 *self = (const instance3 *)environment;
    if (self->verbose) {
        fprintf(stderr, "%d %s: %s\n", (int)status, category, message);
    }
}

static void *instantiate(const unit *u, const char *name)
{
    instance3 *self = (instance3 *)calloc(1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->verbose = u->verbose;
    if (u->model_exchange) {
        self->component =
            of(u)->InstantiateModelExchange(name, u->token, u->resources, fmi3False, fmi3True, self, logger);
    } else {
        self->component = of(u)->InstantiateCoSimulation(name, u->token, u->resources, fmi3False, fmi3True, fmi3False,
                                                         fmi3False, NULL, 0, self, logger, NULL);
    }
    if (self->component == NULL) {
        free(self);
        return NULL;
    }
    return self;
}

static void free_instance(const unit *u, void *instance)
{
    instance3 *self = (instance3 *)instance;
    if (self->saved != NULL) {
        (void)of(u)->FreeFMUState(self->component, &self->saved);
    }
    of(u)->FreeInstance(self->component);
    free(self);
}

static int enter(const unit *u, void *instance, double start, const double *stop, const double *tolerance)
{
    return (int)of(u)->EnterInitializationMode(component(instance), tolerance != NULL, tolerance ? *tolerance : 0.0,
                                               start, stop != NULL, stop ? *stop : 0.0);
}

static int leave(const unit *u, void *instance)
{
    return (int)of(u)->ExitInitializationMode(component(instance));
}

static int continuous(const unit *u, void *instance)
{
    fmi3Boolean again, stop, nominals, values, defined;
    fmi3Float64 next;
    do {
        fmi3Status status =
            of(u)->UpdateDiscreteStates(component(instance), &again, &stop, &nominals, &values, &defined, &next);
        if (status > fmi3Warning) {
            return (int)status;
        }
    } while (again && !stop);
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
    return (int)of(u)->GetFMUState(component(instance), &((instance3 *)instance)->saved);
}

static int restore(const unit *u, void *instance)
{
    return (int)of(u)->SetFMUState(component(instance), ((instance3 *)instance)->saved);
}

static int set_reals(const unit *u, void *instance, const unsigned int *references, size_t n, const double *values)
{
    return (int)of(u)->SetFloat64(component(instance), references, n, values, n);
}

static int get_reals(const unit *u, void *instance, const unsigned int *references, size_t n, double *values)
{
    return (int)of(u)->GetFloat64(component(instance), references, n, values, n);
}

static int set_choice(const unit *u, void *instance, unsigned int reference, int value)
{
    const fmi3Int64 wide = value;
    return (int)of(u)->SetInt64(component(instance), &reference, 1, &wide, 1);
}

static int step(const unit *u, void *instance, double t, double h)
{
    fmi3Boolean event = fmi3False;
    fmi3Boolean stop = fmi3False;
    fmi3Boolean early = fmi3False;
    fmi3Float64 last = t;
    return (int)of(u)->DoStep(component(instance), t, h, fmi3True, &event, &stop, &early, &last);
}

static int set_time(const unit *u, void *instance, double t)
{
    return (int)of(u)->SetTime(component(instance), t);
}

static int completed(const unit *u, void *instance)
{
    fmi3Boolean event = fmi3False;
    fmi3Boolean stop = fmi3False;
    return (int)of(u)->CompletedIntegratorStep(component(instance), fmi3True, &event, &stop);
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
    return (int)of(u)->GetContinuousStateDerivatives(component(instance), dx, n);
}

static int directional(const unit *u, void *instance, unsigned int unknown, unsigned int known, double *value)
{
    const double seed = 1.0;
    return (int)of(u)->GetDirectionalDerivative(component(instance), &unknown, 1, &known, 1, &seed, 1, value, 1);
}

static int serialize(const unit *u, void *instance, unsigned char **bytes, size_t *size)
{
    fmi3FMUState state = NULL;
    fmi3Status status = of(u)->GetFMUState(component(instance), &state);
    if (status <= fmi3Warning) {
        status = of(u)->SerializedFMUStateSize(component(instance), state, size);
    }
    if (status <= fmi3Warning) {
        *bytes = (unsigned char *)malloc(*size);
        status = *bytes == NULL ? fmi3Fatal
                                : of(u)->SerializeFMUState(component(instance), state, (fmi3Byte *)*bytes, *size);
    }
    (void)of(u)->FreeFMUState(component(instance), &state);
    return (int)status;
}

static int deserialize(const unit *u, void *instance, const unsigned char *bytes, size_t size)
{
    fmi3FMUState state = NULL;
    fmi3Status status = of(u)->DeserializeFMUState(component(instance), (const fmi3Byte *)bytes, size, &state);
    if (status <= fmi3Warning) {
        status = of(u)->SetFMUState(component(instance), state);
        (void)of(u)->FreeFMUState(component(instance), &state);
    }
    return (int)status;
}

static const driver_calls calls3 = {
    instantiate, enter,     leave,      continuous,  terminate,   reset,     save,        restore,       set_reals, get_reals,
    set_choice,  step,      set_time,   completed,   get_states,  set_states, get_derivatives, directional, serialize,
    deserialize, free_instance,
};

int driver_load3(unit *u)
{
    static functions3 functions;
    int complete = 1;
    driver_function *found;
#define DRIVER_LOAD(name)                                                                                              \
    found = driver_symbol(u->library, "fmi3" #name);                                                                   \
    if (found == NULL) {                                                                                               \
        fprintf(stderr, "fmi3" #name " is missing\n");                                                                 \
        complete = 0;                                                                                                  \
    }                                                                                                                  \
    functions.name = (fmi3##name##TYPE *)found;
    DRIVER_FUNCTIONS(DRIVER_LOAD)
#undef DRIVER_LOAD
    u->functions = &functions;
    u->calls = &calls3;
    return complete;
}
