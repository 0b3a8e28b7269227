/* sampler3.c: a filter with arrays, clocks and all types, of FMI 3.0, Model Exchange and Co-Simulation with Event Mode.
 *
 *   x' = -x + sum(u) + c;   y = gain u + x, arrays of n elements;   at each tick of 0.1 s: sampled = x, count + 1;
 *   every fifth tick the output clock ticks too
 *
 * Written by hand, as another maker would: nothing in it comes from this project's code generator.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3Functions.h"

#define TOKEN "{0b2f7f1e-5d57-4d9e-9a53-0f1a3c0c9d11}"
#define MOST 8

enum { TIME, N, GAIN, U, Y, X, DER_X, TICK, SAMPLED, COUNT, COUNT_BEFORE, FIFTH, LEVEL, WORD, SINGLE, NAME, ON, MODE, BLOB, LARGE, C };
enum { INSTANTIATED, CONFIGURING, INITIALIZING, EVENT, CONTINUOUS, STEPPING, TERMINATED };

typedef struct {
    double time, x, gain[MOST], u[MOST], c, sampled;
    fmi3UInt64 n, large;
    fmi3Int32 count, before;
    fmi3Int8 level;
    fmi3UInt16 word;
    float single;
    fmi3Int64 mode;
    int on, state, tick, fifth;
    char name[32];
    unsigned char blob[16];
    size_t blob_size;
} State;

typedef struct {
    State s;
    int exchange, logging, events;
    void *environment;
    fmi3LogMessageCallback logger;
    char told[32];
} Unit;

#define S (&((Unit *)c)->s)

static fmi3Status fail(fmi3Instance c, const char *text)
{
    Unit *b = (Unit *)c;
    if (b->logging && b->logger) b->logger(b->environment, fmi3Error, "logStatusError", text);
    return fmi3Error;
}
#define NEED(condition, text) if (!(condition)) return fail(c, text)

static void begin(State *s)
{
    int i;
    memset(s, 0, sizeof *s);
    s->n = 3;
    for (i = 0; i < MOST; ++i) s->gain[i] = 2.0;
    s->x = 0.5;
    s->level = -3;
    s->word = 40000;
    s->single = 0.25f;
    s->mode = 2;
    s->on = 1;
    s->large = 1ull << 60;
    strcpy(s->name, "sampler");
    memcpy(s->blob, "\x01\x02\x03", 3);
    s->blob_size = 3;
}

static double slope(const State *s)
{
    double sum = s->c - s->x;
    fmi3UInt64 i;
    for (i = 0; i < s->n; ++i) sum += s->u[i];
    return sum;
}

const char *fmi3GetVersion(void) { return fmi3Version; }

static Unit *make(fmi3String token, fmi3Boolean logging, void *environment, fmi3LogMessageCallback logger)
{
    Unit *b;
    if (!token || strcmp(token, TOKEN)) {
        if (logger) logger(environment, fmi3Error, "logStatusError", "wrong token");
        return NULL;
    }
    b = (Unit *)calloc(1, sizeof *b);
    b->logging = logging;
    b->environment = environment;
    b->logger = logger;
    begin(&b->s);
    return b;
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger)
{
    Unit *b = make(token, logging, environment, logger);
    (void)name, (void)path, (void)visible;
    if (b) b->exchange = b->events = 1;
    return b;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible, fmi3Boolean logging,
                                         fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference required[], size_t n,
                                         fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3IntermediateUpdateCallback update)
{
    Unit *b = make(token, logging, environment, logger);
    (void)name, (void)path, (void)visible, (void)early, (void)required, (void)n, (void)update;
    if (b) b->events = events;
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
    ((Unit *)c)->logging = on;
    return fmi3OK;
}

fmi3Status fmi3EnterConfigurationMode(fmi3Instance c)
{
    NEED(S->state == INSTANTIATED, "wrong mode");
    S->state = CONFIGURING;
    return fmi3OK;
}
fmi3Status fmi3ExitConfigurationMode(fmi3Instance c)
{
    NEED(S->state == CONFIGURING, "wrong mode");
    S->state = INSTANTIATED;
    return fmi3OK;
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean td, fmi3Float64 tol, fmi3Float64 start, fmi3Boolean sd, fmi3Float64 stop)
{
    (void)td, (void)tol, (void)sd, (void)stop;
    NEED(S->state == INSTANTIATED, "wrong mode");
    S->time = start;
    S->state = INITIALIZING;
    return fmi3OK;
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance c)
{
    NEED(S->state == INITIALIZING, "wrong mode");
    S->state = ((Unit *)c)->events ? EVENT : STEPPING;
    return fmi3OK;
}

fmi3Status fmi3EnterEventMode(fmi3Instance c) { S->state = EVENT; return fmi3OK; }
fmi3Status fmi3EnterStepMode(fmi3Instance c) { S->state = STEPPING; return fmi3OK; }
fmi3Status fmi3Terminate(fmi3Instance c) { S->state = TERMINATED; return fmi3OK; }
fmi3Status fmi3Reset(fmi3Instance c) { begin(S); return fmi3OK; }

fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Float64 value[], size_t nv)
{
    size_t i, k = 0, j;
    for (i = 0; i < n; ++i) {
        const int array = vr[i] == GAIN || vr[i] == U || vr[i] == Y;
        NEED(k + (array ? S->n : 1) <= nv, "too few values");
        switch (vr[i]) {
        case TIME: value[k++] = S->time; break;
        case GAIN: for (j = 0; j < S->n; ++j) value[k++] = S->gain[j]; break;
        case U: for (j = 0; j < S->n; ++j) value[k++] = S->u[j]; break;
        case Y: for (j = 0; j < S->n; ++j) value[k++] = S->gain[j] * S->u[j] + S->x; break;
        case X: value[k++] = S->x; break;
        case DER_X: value[k++] = slope(S); break;
        case SAMPLED: value[k++] = S->sampled; break;
        case C: value[k++] = S->c; break;
        default: return fail(c, "no such Float64");
        }
        NEED(isfinite(value[k - 1]), "not finite");
    }
    NEED(k == nv, "another number of values");
    return fmi3OK;
}

fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Float64 value[], size_t nv)
{
    size_t i, k = 0, j;
    const int starting = S->state == INSTANTIATED || S->state == INITIALIZING;
    for (i = 0; i < nv; ++i) NEED(isfinite(value[i]), "not finite");
    for (i = 0; i < n; ++i) {
        const int array = vr[i] == GAIN || vr[i] == U;
        NEED(k + (array ? S->n : 1) <= nv, "too few values");
        switch (vr[i]) {
        case GAIN: for (j = 0; j < S->n; ++j) S->gain[j] = value[k++]; break;
        case U: for (j = 0; j < S->n; ++j) S->u[j] = value[k++]; break;
        case X: NEED(starting, "cannot be set now"); S->x = value[k++]; break;
        case C: S->c = value[k++]; break;
        default: return fail(c, "cannot be set");
        }
    }
    NEED(k == nv, "another number of values");
    return fmi3OK;
}

#define SCALARS(TYPE, ...) \
    fmi3Status fmi3Get##TYPE(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3##TYPE value[], size_t nv) \
    { size_t i; NEED(n == nv, "another number of values"); for (i = 0; i < n; ++i) switch (vr[i]) { __VA_ARGS__ default: return fail(c, "no such variable"); } return fmi3OK; }
#define SETTABLE(TYPE, ...) \
    fmi3Status fmi3Set##TYPE(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3##TYPE value[], size_t nv) \
    { size_t i; NEED(n == nv, "another number of values"); for (i = 0; i < n; ++i) switch (vr[i]) { __VA_ARGS__ default: return fail(c, "cannot be set"); } return fmi3OK; }
SCALARS(Int32, case COUNT: value[i] = S->count; break; case COUNT_BEFORE: value[i] = S->before; break;)
SCALARS(Int8, case LEVEL: value[i] = S->level; break;)
SCALARS(UInt16, case WORD: value[i] = S->word; break;)
SCALARS(UInt64, case N: value[i] = S->n; break; case LARGE: value[i] = S->large; break;)
SCALARS(Int64, case MODE: value[i] = S->mode; break;)
SCALARS(Float32, case SINGLE: value[i] = S->single; break;)
SCALARS(Boolean, case ON: value[i] = S->on; break;)
SETTABLE(Int32)
SETTABLE(Int8, case LEVEL: S->level = value[i]; break;)
SETTABLE(UInt16, case WORD: S->word = value[i]; break;)
SETTABLE(UInt64, case N: NEED(S->state == CONFIGURING && value[i] >= 1 && value[i] <= MOST, "not now, or not that size"); S->n = value[i]; break; case LARGE: S->large = value[i]; break;)
SETTABLE(Int64, case MODE: NEED(value[i] >= 1 && value[i] <= 3, "no such item"); S->mode = value[i]; break;)
SETTABLE(Float32, case SINGLE: NEED(isfinite(value[i]), "not finite"); S->single = value[i]; break;)
SETTABLE(Boolean, case ON: S->on = value[i]; break;)
#define NONE(TYPE) SCALARS(TYPE) SETTABLE(TYPE)
NONE(UInt8) NONE(Int16) NONE(UInt32)

fmi3Status fmi3GetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3String value[], size_t nv)
{
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) { NEED(vr[i] == NAME, "no such String"); value[i] = S->name; }
    return fmi3OK;
}
fmi3Status fmi3SetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3String value[], size_t nv)
{
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) { NEED(vr[i] == NAME && strlen(value[i]) < 32, "no such String, or too long"); strcpy(S->name, value[i]); }
    return fmi3OK;
}
fmi3Status fmi3GetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t n, size_t sizes[], fmi3Binary value[], size_t nv)
{
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) { NEED(vr[i] == BLOB, "no such Binary"); sizes[i] = S->blob_size; value[i] = S->blob; }
    return fmi3OK;
}
fmi3Status fmi3SetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const size_t sizes[], const fmi3Binary value[], size_t nv)
{
    size_t i;
    (void)nv;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == BLOB && sizes[i] <= sizeof S->blob, "no such Binary, or too long");
        memcpy(S->blob, value[i], sizes[i]);
        S->blob_size = sizes[i];
    }
    return fmi3OK;
}

fmi3Status fmi3GetClock(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Clock value[])
{
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == TICK || vr[i] == FIFTH, "no such Clock");
        value[i] = vr[i] == TICK ? S->tick : S->fifth;
        if (vr[i] == FIFTH) S->fifth = 0;
    }
    return fmi3OK;
}
fmi3Status fmi3SetClock(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Clock value[])
{
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(vr[i] == TICK && S->state == EVENT, "no such input Clock, or not in Event Mode");
        S->tick = value[i];
        if (value[i] && (S->count + 1) % 5 == 0) S->fifth = 1;
    }
    return fmi3OK;
}
fmi3Status fmi3GetIntervalDecimal(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3Float64 v[], fmi3IntervalQualifier q[])
{
    size_t i;
    for (i = 0; i < n; ++i) { NEED(vr[i] == TICK, "no such Clock"); v[i] = 0.1; q[i] = fmi3IntervalUnchanged; }
    return fmi3OK;
}

fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *state)
{
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, S, sizeof(State));
    return fmi3OK;
}
fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state) { memcpy(S, state, sizeof(State)); return fmi3OK; }
fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *state) { (void)c; free(*state); *state = NULL; return fmi3OK; }
fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState state, size_t *size) { (void)c, (void)state; *size = sizeof(State); return fmi3OK; }
fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState state, fmi3Byte data[], size_t size)
{
    NEED(size == sizeof(State), "wrong size");
    memcpy(data, state, size);
    return fmi3OK;
}
fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte data[], size_t size, fmi3FMUState *state)
{
    NEED(size == sizeof(State), "wrong size");
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, data, size);
    return fmi3OK;
}

#define ABSENT(NAME, ...) fmi3Status fmi3##NAME(fmi3Instance c, ##__VA_ARGS__) { return fail(c, "not supported"); }
#define R const fmi3ValueReference vr[], size_t n
ABSENT(GetNumberOfVariableDependencies, fmi3ValueReference vr, size_t *n)
ABSENT(GetVariableDependencies, fmi3ValueReference vr, size_t a[], fmi3ValueReference d[], size_t e[], fmi3DependencyKind k[], size_t n)
ABSENT(GetDirectionalDerivative, R, const fmi3ValueReference k[], size_t nk, const fmi3Float64 seed[], size_t ns, fmi3Float64 out[], size_t no)
ABSENT(GetAdjointDerivative, R, const fmi3ValueReference k[], size_t nk, const fmi3Float64 seed[], size_t ns, fmi3Float64 out[], size_t no)
ABSENT(GetIntervalFraction, R, fmi3UInt64 a[], fmi3UInt64 v[], fmi3IntervalQualifier q[])
ABSENT(GetShiftDecimal, R, fmi3Float64 v[])
ABSENT(GetShiftFraction, R, fmi3UInt64 a[], fmi3UInt64 v[])
ABSENT(SetIntervalDecimal, R, const fmi3Float64 v[])
ABSENT(SetIntervalFraction, R, const fmi3UInt64 a[], const fmi3UInt64 v[])
ABSENT(SetShiftDecimal, R, const fmi3Float64 v[])
ABSENT(SetShiftFraction, R, const fmi3UInt64 a[], const fmi3UInt64 v[])
ABSENT(GetOutputDerivatives, R, const fmi3Int32 o[], fmi3Float64 v[], size_t nv)
ABSENT(ActivateModelPartition, fmi3ValueReference vr, fmi3Float64 t)

static void update(State *s)
{
    if (s->tick) {
        s->sampled = s->x;
        s->before = s->count;
        s->count++;
        s->tick = 0;
    }
    s->fifth = 0;
}
fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance c) { (void)c; return fmi3OK; }
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *needed, fmi3Boolean *end, fmi3Boolean *nominals, fmi3Boolean *values,
                                    fmi3Boolean *defined, fmi3Float64 *time)
{
    update(S);
    *needed = *end = *nominals = *values = *defined = fmi3False;
    *time = 0.0;
    return fmi3OK;
}

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance c) { S->state = CONTINUOUS; return fmi3OK; }
fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean no, fmi3Boolean *event, fmi3Boolean *end)
{
    (void)c, (void)no;
    *event = *end = fmi3False;
    return fmi3OK;
}
fmi3Status fmi3SetTime(fmi3Instance c, fmi3Float64 time) { S->time = time; return fmi3OK; }
fmi3Status fmi3SetContinuousStates(fmi3Instance c, const fmi3Float64 x[], size_t n)
{
    NEED(n == 1 && isfinite(x[0]), "one finite state is wanted");
    S->x = x[0];
    return fmi3OK;
}
fmi3Status fmi3GetContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n) { NEED(n == 1, "there is one state"); x[0] = S->x; return fmi3OK; }
fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, fmi3Float64 x[], size_t n) { NEED(n == 1, "there is one state"); x[0] = slope(S); return fmi3OK; }
fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n) { (void)c; while (n--) x[n] = 1.0; return fmi3OK; }
fmi3Status fmi3GetEventIndicators(fmi3Instance c, fmi3Float64 z[], size_t n) { (void)z; NEED(n == 0, "there is none"); return fmi3OK; }
fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n) { (void)c; *n = 0; return fmi3OK; }
fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n) { (void)c; *n = 1; return fmi3OK; }

fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 point, fmi3Float64 size, fmi3Boolean no, fmi3Boolean *events, fmi3Boolean *end,
                      fmi3Boolean *early, fmi3Float64 *last)
{
    double rest;
    (void)no;
    *events = *end = *early = fmi3False;
    *last = S->time;
    NEED(S->state == STEPPING, "wrong mode");
    NEED(size > 0.0 && isfinite(size), "the step size must be positive");
    NEED(fabs(point - S->time) <= 1e-9 * (1.0 + fabs(point)), "the step does not begin where the unit stands");
    rest = slope(S) + S->x; /* the value that it tends to */
    S->x = rest + (S->x - rest) * exp(-size);
    if (!isfinite(S->x)) { fail(c, "not finite"); return fmi3Discard; }
    *last = S->time = point + size;
    return fmi3OK;
}
