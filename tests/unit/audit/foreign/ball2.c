/* ball2.c: the ball as a unit of FMI 2.0, Model Exchange and Co-Simulation. */
#include "fmi2Functions.h"
#include "ball.h"

#define TOKEN "{8c4e810f-3df3-4a00-8276-176fa3c9f013}"

static fmi2CallbackFunctions callbacks_of(const Ball *b) { return *(const fmi2CallbackFunctions *)b->logger; }

static fmi2Status fail(Ball *b, const char *text)
{
    fmi2CallbackFunctions f = callbacks_of(b);
    if (b->logging && f.logger) f.logger(b->environment, b->name, fmi2Error, "logStatusError", text);
    return fmi2Error;
}
#define NEED(condition, text) if (!(condition)) return fail(b, text)

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    Ball *b;
    fmi2CallbackFunctions *copy;
    (void)resources, (void)visible;
    if (!guid || strcmp(guid, TOKEN)) {
        if (functions && functions->logger) functions->logger(functions->componentEnvironment, name, fmi2Error, "logStatusError", "wrong guid");
        return NULL;
    }
    b = (Ball *)functions->allocateMemory(1, sizeof *b);
    copy = (fmi2CallbackFunctions *)functions->allocateMemory(1, sizeof *copy);
    memcpy(copy, functions, sizeof *copy);
    b->logger = copy;
    b->environment = functions->componentEnvironment;
    b->exchange = type == fmi2ModelExchange;
    b->logging = logging;
    snprintf(b->name, sizeof b->name, "%s", name);
    ball_start(&b->s);
    return b;
}

void fmi2FreeInstance(fmi2Component c)
{
    Ball *b = (Ball *)c;
    fmi2CallbackFunctions f;
    if (!b) return;
    f = callbacks_of(b);
    f.freeMemory(b->logger);
    f.freeMemory(b);
}

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String names[])
{
    (void)n, (void)names;
    ((Ball *)c)->logging = on;
    return fmi2OK;
}

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean td, fmi2Real tol, fmi2Real start, fmi2Boolean sd, fmi2Real stop)
{
    Ball *b = (Ball *)c;
    (void)td, (void)tol;
    b->s.time = b->s.start = start;
    b->s.next_tick = start + PERIOD;
    b->s.has_stop = sd;
    b->s.stop = stop;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    Ball *b = (Ball *)c;
    NEED(b->s.mode == INSTANTIATED, "wrong mode");
    b->s.mode = INITIALIZING;
    return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component c)
{
    Ball *b = (Ball *)c;
    NEED(b->s.mode == INITIALIZING, "wrong mode");
    b->s.mode = b->exchange ? EVENT : STEPPING;
    return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component c) { ((Ball *)c)->s.mode = TERMINATED; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { ball_start(&((Ball *)c)->s); return fmi2OK; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) NEED(!ball_get(&b->s, vr[i], &value[i]), "no such Real, or it is not finite");
    return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) NEED(!ball_set(&b->s, vr[i], value[i]), "cannot be set to that now");
    return fmi2OK;
}

fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == BOUNCES || vr[i] == TICKS || vr[i] == SHAPE, "no such Integer");
        value[i] = vr[i] == BOUNCES ? b->s.bounces : vr[i] == TICKS ? b->s.ticks : b->s.shape;
    }
    return fmi2OK;
}

fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == SHAPE && value[i] >= 1 && value[i] <= 2, "cannot be set to that");
        b->s.shape = value[i];
    }
    return fmi2OK;
}

fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == RESTING, "no such Boolean");
        value[i] = b->s.resting;
    }
    return fmi2OK;
}

fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean value[])
{
    (void)vr, (void)value;
    return n ? fail((Ball *)c, "no Boolean can be set") : fmi2OK;
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == LABEL, "no such String");
        value[i] = b->s.label;
    }
    return fmi2OK;
}

fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == LABEL, "no such String");
        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);
    }
    return fmi2OK;
}

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state)
{
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, &((Ball *)c)->s, sizeof(State));
    return fmi2OK;
}

fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state)
{
    memcpy(&((Ball *)c)->s, state, sizeof(State));
    return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state)
{
    (void)c;
    free(*state);
    *state = NULL;
    return fmi2OK;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size)
{
    (void)c, (void)state;
    *size = sizeof(State);
    return fmi2OK;
}

fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte data[], size_t size)
{
    Ball *b = (Ball *)c;
    NEED(size == sizeof(State), "wrong size");
    memcpy(data, state, size);
    return fmi2OK;
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte data[], size_t size, fmi2FMUstate *state)
{
    Ball *b = (Ball *)c;
    NEED(size == sizeof(State), "wrong size");
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, data, size);
    return fmi2OK;
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference u[], size_t nu,
                                        const fmi2ValueReference k[], size_t nk, const fmi2Real seed[], fmi2Real out[])
{
    Ball *b = (Ball *)c;
    size_t i, j;
    for (i = 0; i < nu; ++i) {
        out[i] = 0.0;
        for (j = 0; j < nk; ++j) {
            double d;
            NEED(!ball_partial(&b->s, u[i], k[j], &d), "no such derivative");
            out[i] += d * seed[j];
        }
    }
    return fmi2OK;
}

fmi2Status fmi2EnterEventMode(fmi2Component c) { ((Ball *)c)->s.mode = EVENT; return fmi2OK; }

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info)
{
    Ball *b = (Ball *)c;
    info->newDiscreteStatesNeeded = fmi2False;
    info->terminateSimulation = fmi2False;
    info->nominalsOfContinuousStatesChanged = fmi2False;
    info->valuesOfContinuousStatesChanged = ball_event(&b->s);
    info->nextEventTimeDefined = fmi2True;
    info->nextEventTime = b->s.next_tick;
    return fmi2OK;
}

fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { ((Ball *)c)->s.mode = CONTINUOUS; return fmi2OK; }

fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no, fmi2Boolean *event, fmi2Boolean *end)
{
    (void)c, (void)no;
    *event = *end = fmi2False;
    return fmi2OK;
}

fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { ((Ball *)c)->s.time = time; return fmi2OK; }

fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n)
{
    Ball *b = (Ball *)c;
    NEED(n == 2 && isfinite(x[0]) && isfinite(x[1]), "two finite states are wanted");
    b->s.h = x[0];
    b->s.v = x[1];
    return fmi2OK;
}

fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real dx[], size_t n)
{
    Ball *b = (Ball *)c;
    NEED(n == 2, "there are two states");
    ball_slopes(&b->s, b->s.h, b->s.v, &dx[0], &dx[1]);
    return fmi2OK;
}

fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n)
{
    Ball *b = (Ball *)c;
    NEED(n == 1, "there is one event indicator");
    z[0] = ball_indicator(&b->s);
    return fmi2OK;
}

fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n)
{
    Ball *b = (Ball *)c;
    NEED(n == 2, "there are two states");
    x[0] = b->s.h;
    x[1] = b->s.v;
    return fmi2OK;
}

fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n)
{
    (void)c;
    while (n--) x[n] = 1.0;
    return fmi2OK;
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[], const fmi2Real value[])
{
    (void)vr, (void)n, (void)order, (void)value;
    return fail((Ball *)c, "not supported");
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[], fmi2Real value[])
{
    Ball *b = (Ball *)c;
    size_t i;
    for (i = 0; i < n; ++i) {
        double dh, dv;
        ball_slopes(&b->s, b->s.h, b->s.v, &dh, &dv);
        NEED(order[i] == 1, "first derivatives only");
        NEED(vr[i] == H || vr[i] == ENERGY || vr[i] == HEIGHT_TWICE, "no such output");
        value[i] = vr[i] == H ? dh : vr[i] == HEIGHT_TWICE ? 2.0 * dh : b->s.m * (b->s.g * dh + b->s.v * dv);
    }
    return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real point, fmi2Real size, fmi2Boolean no)
{
    Ball *b = (Ball *)c;
    State before = b->s;
    (void)no;
    NEED(b->s.mode == STEPPING, "wrong mode");
    NEED(size > 0.0, "the step size must be positive");
    NEED(fabs(point - b->s.time) <= 1e-9 * (1.0 + fabs(point)), "the step does not begin where the unit stands");
    NEED(!b->s.has_stop || point + size <= b->s.stop + 1e-9 * (1.0 + fabs(b->s.stop)), "the step ends behind the stop time");
    if (ball_advance(&b->s, point + size)) {
        b->s = before;
        fail(b, "the step gives no finite numbers");
        return fmi2Discard;
    }
    return fmi2OK;
}

fmi2Status fmi2CancelStep(fmi2Component c) { return fail((Ball *)c, "not supported"); }
fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind k, fmi2Status *v) { (void)k, (void)v; return fail((Ball *)c, "not supported"); }
fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind k, fmi2Real *v) { (void)k, (void)v; return fail((Ball *)c, "not supported"); }
fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind k, fmi2Integer *v) { (void)k, (void)v; return fail((Ball *)c, "not supported"); }
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind k, fmi2Boolean *v) { (void)k, (void)v; return fail((Ball *)c, "not supported"); }
fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind k, fmi2String *v) { (void)k, (void)v; return fail((Ball *)c, "not supported"); }
