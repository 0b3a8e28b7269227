/* ball3.c: the ball as a unit of FMI 3.0, Model Exchange and Co-Simulation: an array, a Binary and intermediate updates too. */
#include "fmi3Functions.h"
#include "ball.h"

#define TOKEN "{5d638f1e-ed6a-47f6-b9b8-9ea1c0c21c2e}"

typedef struct {
    Ball ball;
    fmi3IntermediateUpdateCallback update;
    fmi3Boolean early;
} Unit;

static fmi3Status fail(Unit *b, const char *text)
{
    fmi3LogMessageCallback logger = (fmi3LogMessageCallback)b->ball.logger;
    if (b->ball.logging && logger) logger(b->ball.environment, fmi3Error, "logStatusError", text);
    return fmi3Error;
}
#define NEED(condition, text) if (!(condition)) return fail(b, text)

const char *fmi3GetVersion(void) { return fmi3Version; }

static Unit *make(fmi3String name, fmi3String token, fmi3Boolean logging, void *environment, fmi3LogMessageCallback logger)
{
    Unit *b;
    if (!token || strcmp(token, TOKEN)) {
        if (logger) logger(environment, fmi3Error, "logStatusError", "wrong token");
        return NULL;
    }
    b = (Unit *)calloc(1, sizeof *b);
    b->ball.logging = logging;
    b->ball.environment = environment;
    b->ball.logger = (void *)logger;
    snprintf(b->ball.name, sizeof b->ball.name, "%s", name);
    ball_start(&b->ball.s);
    return b;
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger)
{
    Unit *b = make(name, token, logging, environment, logger);
    (void)path, (void)visible;
    if (b) b->ball.exchange = 1;
    return b;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible, fmi3Boolean logging,
                                         fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference required[], size_t n,
                                         fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3IntermediateUpdateCallback update)
{
    Unit *b = events ? NULL : make(name, token, logging, environment, logger);
    (void)path, (void)visible, (void)required, (void)n;
    if (b) b->update = update, b->early = early;
    return b;
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible, fmi3Boolean logging,
                                               fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3ClockUpdateCallback clock,
                                               fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock)
{
    (void)name, (void)token, (void)path, (void)visible, (void)logging, (void)environment, (void)logger, (void)clock, (void)lock, (void)unlock;
    return NULL;
}

void fmi3FreeInstance(fmi3Instance c) { free(c); }

fmi3Status fmi3SetDebugLogging(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String names[])
{
    (void)n, (void)names;
    ((Unit *)c)->ball.logging = on;
    return fmi3OK;
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean td, fmi3Float64 tol, fmi3Float64 start, fmi3Boolean sd, fmi3Float64 stop)
{
    Unit *b = (Unit *)c;
    State *s = &b->ball.s;
    (void)td, (void)tol;
    NEED(s->mode == INSTANTIATED, "wrong mode");
    s->time = s->start = start;
    s->next_tick = start + PERIOD;
    s->has_stop = sd;
    s->stop = stop;
    s->mode = INITIALIZING;
    return fmi3OK;
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance c)
{
    Unit *b = (Unit *)c;
    NEED(b->ball.s.mode == INITIALIZING, "wrong mode");
    b->ball.s.mode = b->ball.exchange ? EVENT : STEPPING;
    return fmi3OK;
}

fmi3Status fmi3EnterEventMode(fmi3Instance c) { ((Unit *)c)->ball.s.mode = EVENT; return fmi3OK; }
fmi3Status fmi3Terminate(fmi3Instance c) { ((Unit *)c)->ball.s.mode = TERMINATED; return fmi3OK; }
fmi3Status fmi3Reset(fmi3Instance c) { ball_start(&((Unit *)c)->ball.s); return fmi3OK; }

fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Float64 value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i, k = 0;
    for (i = 0; i < n; ++i) {
        if (vr[i] == POSITION) {
            NEED(k + 2 <= nv, "too few values");
            value[k++] = b->ball.s.h;
            value[k++] = b->ball.s.v;
        } else {
            NEED(k < nv && !ball_get(&b->ball.s, vr[i], &value[k]), "no such Float64, or it is not finite");
            ++k;
        }
    }
    NEED(k == nv, "another number of values");
    return fmi3OK;
}

fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Float64 value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    NEED(n == nv, "another number of values");
    for (i = 0; i < n; ++i) NEED(!ball_set(&b->ball.s, vr[i], value[i]), "cannot be set to that now");
    return fmi3OK;
}

fmi3Status fmi3GetInt32(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Int32 value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == BOUNCES || vr[i] == TICKS, "no such Int32");
        value[i] = vr[i] == BOUNCES ? b->ball.s.bounces : b->ball.s.ticks;
    }
    return fmi3OK;
}

fmi3Status fmi3GetInt64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Int64 value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == SHAPE, "no such Int64");
        value[i] = b->ball.s.shape;
    }
    return fmi3OK;
}

fmi3Status fmi3SetInt64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Int64 value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == SHAPE && value[i] >= 1 && value[i] <= 2, "cannot be set to that");
        b->ball.s.shape = (int)value[i];
    }
    return fmi3OK;
}

fmi3Status fmi3GetBoolean(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Boolean value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == RESTING, "no such Boolean");
        value[i] = b->ball.s.resting != 0;
    }
    return fmi3OK;
}

fmi3Status fmi3GetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3String value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == LABEL, "no such String");
        value[i] = b->ball.s.label;
    }
    return fmi3OK;
}

fmi3Status fmi3SetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3String value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == LABEL, "no such String");
        snprintf(b->ball.s.label, sizeof b->ball.s.label, "%s", value[i]);
    }
    return fmi3OK;
}

fmi3Status fmi3GetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t n, size_t sizes[], fmi3Binary value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == BLOB, "no such Binary");
        sizes[i] = b->ball.s.blob_size;
        value[i] = b->ball.s.blob;
    }
    return fmi3OK;
}

fmi3Status fmi3SetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const size_t sizes[], const fmi3Binary value[], size_t nv)
{
    Unit *b = (Unit *)c;
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == BLOB && sizes[i] <= sizeof b->ball.s.blob, "no such Binary, or too long");
        memcpy(b->ball.s.blob, value[i], sizes[i]);
        b->ball.s.blob_size = sizes[i];
    }
    return fmi3OK;
}

/* What it has no variables of. */
#define NONE(TYPE) \
    fmi3Status fmi3Get##TYPE(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3##TYPE v[], size_t nv) \
    { (void)vr, (void)v, (void)nv; return n ? fail((Unit *)c, "no variables of this type") : fmi3OK; }
#define FIXED(TYPE) \
    fmi3Status fmi3Set##TYPE(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3##TYPE v[], size_t nv) \
    { (void)vr, (void)v, (void)nv; return n ? fail((Unit *)c, "no variable of this type can be set") : fmi3OK; }
NONE(Float32) NONE(Int8) NONE(UInt8) NONE(Int16) NONE(UInt16) NONE(UInt32) NONE(UInt64)
FIXED(Float32) FIXED(Int8) FIXED(UInt8) FIXED(Int16) FIXED(UInt16) FIXED(Int32) FIXED(UInt32) FIXED(UInt64) FIXED(Boolean)

#define ABSENT(NAME, ...) fmi3Status fmi3##NAME(fmi3Instance c, ##__VA_ARGS__) { return fail((Unit *)c, "not supported"); }
#define R const fmi3ValueReference vr[], size_t n
ABSENT(GetClock, R, fmi3Clock v[])
ABSENT(SetClock, R, const fmi3Clock v[])
ABSENT(GetNumberOfVariableDependencies, fmi3ValueReference vr, size_t *n)
ABSENT(GetVariableDependencies, fmi3ValueReference vr, size_t a[], fmi3ValueReference d[], size_t e[], fmi3DependencyKind k[], size_t n)
ABSENT(EnterConfigurationMode)
ABSENT(ExitConfigurationMode)
ABSENT(GetIntervalDecimal, R, fmi3Float64 v[], fmi3IntervalQualifier q[])
ABSENT(GetIntervalFraction, R, fmi3UInt64 a[], fmi3UInt64 v[], fmi3IntervalQualifier q[])
ABSENT(GetShiftDecimal, R, fmi3Float64 v[])
ABSENT(GetShiftFraction, R, fmi3UInt64 a[], fmi3UInt64 v[])
ABSENT(SetIntervalDecimal, R, const fmi3Float64 v[])
ABSENT(SetIntervalFraction, R, const fmi3UInt64 a[], const fmi3UInt64 v[])
ABSENT(SetShiftDecimal, R, const fmi3Float64 v[])
ABSENT(SetShiftFraction, R, const fmi3UInt64 a[], const fmi3UInt64 v[])
ABSENT(EvaluateDiscreteStates)
ABSENT(EnterStepMode)
ABSENT(GetOutputDerivatives, R, const fmi3Int32 o[], fmi3Float64 v[], size_t nv)
ABSENT(ActivateModelPartition, fmi3ValueReference vr, fmi3Float64 t)

fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *state)
{
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, &((Unit *)c)->ball.s, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state)
{
    memcpy(&((Unit *)c)->ball.s, state, sizeof(State));
    return fmi3OK;
}

fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *state)
{
    (void)c;
    free(*state);
    *state = NULL;
    return fmi3OK;
}

fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState state, size_t *size)
{
    (void)c, (void)state;
    *size = sizeof(State);
    return fmi3OK;
}

fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState state, fmi3Byte data[], size_t size)
{
    Unit *b = (Unit *)c;
    NEED(size == sizeof(State), "wrong size");
    memcpy(data, state, size);
    return fmi3OK;
}

fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte data[], size_t size, fmi3FMUState *state)
{
    Unit *b = (Unit *)c;
    NEED(size == sizeof(State), "wrong size");
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, data, size);
    return fmi3OK;
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference u[], size_t nu, const fmi3ValueReference k[], size_t nk,
                                        const fmi3Float64 seed[], size_t ns, fmi3Float64 out[], size_t no)
{
    Unit *b = (Unit *)c;
    size_t i, j;
    NEED(ns == nk && no == nu, "wrong sizes");
    for (i = 0; i < nu; ++i) {
        out[i] = 0.0;
        for (j = 0; j < nk; ++j) {
            double d;
            NEED(!ball_partial(&b->ball.s, u[i], k[j], &d), "no such derivative");
            out[i] += d * seed[j];
        }
    }
    return fmi3OK;
}

fmi3Status fmi3GetAdjointDerivative(fmi3Instance c, const fmi3ValueReference u[], size_t nu, const fmi3ValueReference k[], size_t nk,
                                    const fmi3Float64 seed[], size_t ns, fmi3Float64 out[], size_t no)
{
    Unit *b = (Unit *)c;
    size_t i, j;
    NEED(ns == nu && no == nk, "wrong sizes");
    for (j = 0; j < nk; ++j) {
        out[j] = 0.0;
        for (i = 0; i < nu; ++i) {
            double d;
            NEED(!ball_partial(&b->ball.s, u[i], k[j], &d), "no such derivative");
            out[j] += seed[i] * d;
        }
    }
    return fmi3OK;
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *needed, fmi3Boolean *end, fmi3Boolean *nominals, fmi3Boolean *values,
                                    fmi3Boolean *defined, fmi3Float64 *time)
{
    Unit *b = (Unit *)c;
    *needed = *end = *nominals = fmi3False;
    *values = ball_event(&b->ball.s) != 0;
    *defined = fmi3True;
    *time = b->ball.s.next_tick;
    return fmi3OK;
}

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance c) { ((Unit *)c)->ball.s.mode = CONTINUOUS; return fmi3OK; }

fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean no, fmi3Boolean *event, fmi3Boolean *end)
{
    (void)c, (void)no;
    *event = *end = fmi3False;
    return fmi3OK;
}

fmi3Status fmi3SetTime(fmi3Instance c, fmi3Float64 time) { ((Unit *)c)->ball.s.time = time; return fmi3OK; }

fmi3Status fmi3SetContinuousStates(fmi3Instance c, const fmi3Float64 x[], size_t n)
{
    Unit *b = (Unit *)c;
    NEED(n == 2 && isfinite(x[0]) && isfinite(x[1]), "two finite states are wanted");
    b->ball.s.h = x[0];
    b->ball.s.v = x[1];
    return fmi3OK;
}

fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, fmi3Float64 dx[], size_t n)
{
    Unit *b = (Unit *)c;
    NEED(n == 2, "there are two states");
    ball_slopes(&b->ball.s, b->ball.s.h, b->ball.s.v, &dx[0], &dx[1]);
    return fmi3OK;
}

fmi3Status fmi3GetEventIndicators(fmi3Instance c, fmi3Float64 z[], size_t n)
{
    Unit *b = (Unit *)c;
    NEED(n == 1, "there is one event indicator");
    z[0] = ball_indicator(&b->ball.s);
    return fmi3OK;
}

fmi3Status fmi3GetContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    Unit *b = (Unit *)c;
    NEED(n == 2, "there are two states");
    x[0] = b->ball.s.h;
    x[1] = b->ball.s.v;
    return fmi3OK;
}

fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    (void)c;
    while (n--) x[n] = 1.0;
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n) { (void)c; *n = 1; return fmi3OK; }
fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n) { (void)c; *n = 2; return fmi3OK; }

fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 point, fmi3Float64 size, fmi3Boolean no, fmi3Boolean *events, fmi3Boolean *end,
                      fmi3Boolean *early, fmi3Float64 *last)
{
    Unit *b = (Unit *)c;
    State before = b->ball.s;
    int part;
    (void)no;
    *events = *end = *early = fmi3False;
    *last = b->ball.s.time;
    NEED(b->ball.s.mode == STEPPING, "wrong mode");
    NEED(size > 0.0, "the step size must be positive");
    NEED(fabs(point - b->ball.s.time) <= 1e-9 * (1.0 + fabs(point)), "the step does not begin where the unit stands");
    NEED(!b->ball.s.has_stop || point + size <= b->ball.s.stop + 1e-9 * (1.0 + fabs(b->ball.s.stop)), "the step ends behind the stop time");
    for (part = 1; part <= 2; ++part) {
        if (ball_advance(&b->ball.s, point + 0.5 * part * size)) {
            b->ball.s = before;
            fail(b, "the step gives no finite numbers");
            return fmi3Discard;
        }
        *last = b->ball.s.time;
        if (b->update) {
            fmi3Boolean asked = fmi3False;
            fmi3Float64 until = b->ball.s.time;
            b->update(b->ball.environment, b->ball.s.time, fmi3True, fmi3True, fmi3True, b->early && part == 1, &asked, &until);
            if (asked && b->early && part == 1) {
                *early = fmi3True;
                return fmi3OK;
            }
        }
    }
    return fmi3OK;
}
