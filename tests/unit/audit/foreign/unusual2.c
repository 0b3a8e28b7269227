/* unusual2.c: right units of FMI 2.0 that are not as most are; which one, -DKIND says. Written by hand, as other makers would. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fmi2Functions.h"

enum { EMPTY = 1, TEXTS, COUNTER, ADAPTIVE, STIFF, ENDING, LOGGING, TOOL, ONCE, CHAOS, NEGATIVE, TIMED, DOMAIN };
enum { VR_T, VR_X, VR_DX, VR_U, VR_P, VR_Y, VR_Z, VR_DZ, VR_W, VR_DW };
#define STATES (KIND == CHAOS ? 3 : KIND == ADAPTIVE || KIND == STIFF || KIND == ENDING || KIND == NEGATIVE || KIND == DOMAIN ? 1 : 0)

typedef struct {
    double t, x[3], u, p, attempt, next;
    int count, text_set;
    char text[256];
} State;

typedef struct {
    State s;
    int exchange, ended, freed;
    fmi2CallbackLogger logger;
    void *environment;
    char name[64], path[512];
    FILE *tool;
} Unit;
#define S (&((Unit *)c)->s)

#if KIND == ONCE
static Unit single; /* all there is */
static int taken;
#endif

static fmi2Status fail(fmi2Component c, const char *text)
{
    Unit *b = (Unit *)c;
    b->logger(b->environment, b->name, fmi2Error, "error", "%s", text);
    return fmi2Error;
}
#define NEED(condition, text) if (!(condition)) return fail(c, text)

static void begin(State *s)
{
    memset(s, 0, sizeof *s);
    s->x[0] = s->x[1] = s->x[2] = 1.0;
    s->p = 2.0;
    s->attempt = 1e-3;
    s->next = 0.25;
    strcpy(s->text, "gr\xc3\xbc\xc3\x9f");
}

static void slopes(const State *s, const double *x, double t, double *dx)
{
    if (KIND == CHAOS) {
        dx[0] = 10.0 * (x[1] - x[0]);
        dx[1] = x[0] * (28.0 - x[2]) - x[1];
        dx[2] = x[0] * x[1] - 8.0 / 3.0 * x[2];
    } else if (KIND == STIFF) {
        dx[0] = -1e6 * (x[0] - cos(t) - s->u);
    } else if (KIND == DOMAIN) {
        dx[0] = -50.0 * sqrt(x[0] * x[0] * x[0]) / sqrt(x[0]); /* -50 x, where x is positive */
    } else {
        dx[0] = -s->p * x[0] + s->u;
    }
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return fmi2Version; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *f, fmi2Boolean visible, fmi2Boolean logging)
{
    Unit *b;
    (void)resources, (void)visible, (void)logging;
    if (!guid || strcmp(guid, "unusual")) {
        f->logger(f->componentEnvironment, name, fmi2Error, "error", "the guid is %s, not unusual", guid ? guid : "null");
        return NULL;
    }
#if KIND == ONCE
    if (taken) return NULL;
    taken = 1;
    b = &single;
    memset(b, 0, sizeof *b);
#else
    b = calloc(1, sizeof *b);
#endif
    b->exchange = type == fmi2ModelExchange;
    b->logger = f->logger;
    b->environment = f->componentEnvironment;
    snprintf(b->name, sizeof b->name, "%s", name);
    if (KIND == LOGGING) {
        FILE *file;
        snprintf(b->path, sizeof b->path, "%s/unusual-%d-%p.log", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), (void *)b);
        if ((file = fopen(b->path, "w"))) { fputs("begun\n", file); fclose(file); }
    }
    if (KIND == TOOL) b->tool = popen("cat > /dev/null", "w");
    begin(&b->s);
    return b;
}

void fmi2FreeInstance(fmi2Component c)
{
    Unit *b = (Unit *)c;
    if (!b) return;
    if (KIND == LOGGING) remove(b->path);
    if (b->tool) pclose(b->tool);
#if KIND == ONCE
    taken = 0;
#else
    free(b);
#endif
}

fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String names[]) { (void)c, (void)on, (void)n, (void)names; return fmi2OK; }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean td, fmi2Real tol, fmi2Real start, fmi2Boolean sd, fmi2Real stop)
{
    (void)td, (void)tol, (void)sd, (void)stop;
    S->t = start;
    S->next = start + 0.25;
    return fmi2OK;
}
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { begin(S); ((Unit *)c)->ended = 0; return fmi2OK; }

fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Real value[])
{
    double dx[3] = {0.0, 0.0, 0.0};
    size_t i;
    if (STATES) slopes(S, S->x, S->t, dx);
    for (i = 0; i < n; ++i) {
        switch (vr[i]) {
        case VR_T: value[i] = S->t; break;
        case VR_X: NEED(STATES, "no such Real"); value[i] = S->x[0]; break;
        case VR_DX: NEED(STATES, "no such Real"); value[i] = dx[0]; break;
        case VR_U: value[i] = S->u; break;
        case VR_P: value[i] = S->p; break;
        case VR_Y: value[i] = KIND == TIMED ? floor(S->t * 4.0 + 1e-9) + sin(S->t) : S->p * S->x[0]; break;
        case VR_Z: value[i] = S->x[1]; break;
        case VR_DZ: value[i] = dx[1]; break;
        case VR_W: value[i] = S->x[2]; break;
        case VR_DW: value[i] = dx[2]; break;
        default: return fail(c, "no such Real");
        }
        NEED(isfinite(value[i]), "not finite");
    }
    return fmi2OK;
}
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Real value[])
{
    size_t i;
    for (i = 0; i < n; ++i) {
        NEED(isfinite(value[i]), "not finite");
        switch (vr[i]) {
        case VR_X: S->x[0] = value[i]; break;
        case VR_Z: S->x[1] = value[i]; break;
        case VR_W: S->x[2] = value[i]; break;
        case VR_U: S->u = value[i]; break;
        case VR_P: S->p = value[i]; break;
        default: return fail(c, "cannot be set");
        }
    }
    return fmi2OK;
}
fmi2Status fmi2GetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Integer value[])
{
    size_t i;
    for (i = 0; i < n; ++i) { NEED(KIND == COUNTER && vr[i] == 0, "no such Integer"); value[i] = S->count; }
    return fmi2OK;
}
fmi2Status fmi2SetInteger(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer value[]) { (void)vr, (void)value; return n ? fail(c, "none can be set") : fmi2OK; }
fmi2Status fmi2GetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2Boolean value[])
{
    size_t i;
    for (i = 0; i < n; ++i) { NEED(KIND == COUNTER && vr[i] == 0, "no such Boolean"); value[i] = S->count % 2; }
    return fmi2OK;
}
fmi2Status fmi2SetBoolean(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Boolean value[]) { (void)vr, (void)value; return n ? fail(c, "none can be set") : fmi2OK; }
fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String value[])
{
    size_t i;
    for (i = 0; i < n; ++i) { NEED(KIND == TEXTS && vr[i] <= 1, "no such String"); value[i] = vr[i] ? strchr(S->text, 0) : S->text; if (vr[i]) value[i] = S->text; }
    return fmi2OK;
}
fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String value[])
{
    size_t i;
    for (i = 0; i < n; ++i) { NEED(KIND == TEXTS && vr[i] == 0 && strlen(value[i]) < 256, "no such String, or too long"); strcpy(S->text, value[i]); }
    return fmi2OK;
}

#define KEEPS (KIND == ADAPTIVE || KIND == CHAOS || KIND == TEXTS)
fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state)
{
    NEED(KEEPS, "not supported");
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, S, sizeof(State));
    return fmi2OK;
}
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state)
{
    double attempt = S->attempt;
    NEED(KEEPS, "not supported");
    memcpy(S, state, sizeof(State));
    if (KIND == ADAPTIVE) S->attempt = attempt; /* a solver that begins anew: the same motion, but not the same bits */
    return fmi2OK;
}
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) { NEED(KEEPS, "not supported"); free(*state); *state = NULL; return fmi2OK; }
fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) { (void)state, (void)size; return fail(c, "not supported"); }
fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte data[], size_t size) { (void)state, (void)data, (void)size; return fail(c, "not supported"); }
fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte data[], size_t size, fmi2FMUstate *state) { (void)state, (void)data, (void)size; return fail(c, "not supported"); }
fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference u[], size_t nu, const fmi2ValueReference k[], size_t nk,
                                        const fmi2Real seed[], fmi2Real out[])
{ (void)u, (void)nu, (void)k, (void)nk, (void)seed, (void)out; return fail(c, "not supported"); }

fmi2Status fmi2EnterEventMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info)
{
    memset(info, 0, sizeof *info);
    if (KIND == TIMED) {
        if (S->t >= S->next - 1e-12) S->next += 0.25;
        info->nextEventTimeDefined = fmi2True;
        info->nextEventTime = S->next;
    }
    info->terminateSimulation = KIND == ENDING && S->t >= 0.5;
    return fmi2OK;
}
fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean no, fmi2Boolean *event, fmi2Boolean *end)
{
    (void)no;
    *event = fmi2False;
    *end = KIND == ENDING && S->t >= 0.5;
    return fmi2OK;
}
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real time) { S->t = time; return fmi2OK; }
fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n)
{
    size_t i;
    NEED(n == STATES, "another number of states");
    for (i = 0; i < n; ++i) { NEED(isfinite(x[i]), "not finite"); S->x[i] = x[i]; }
    return fmi2OK;
}
fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real dx[], size_t n)
{
    size_t i;
    NEED(n == STATES, "another number of states");
    if (KIND == DOMAIN && S->x[0] <= 0.0) return fmi2Discard; /* only a smaller step helps */
    if (n) slopes(S, S->x, S->t, dx);
    for (i = 0; i < n; ++i) NEED(isfinite(dx[i]), "not finite");
    return fmi2OK;
}
fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n) { (void)z; return n ? fail(c, "there are none") : fmi2OK; }
fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n) { NEED(n == STATES, "another number of states"); memcpy(x, S->x, n * sizeof *x); return fmi2OK; }
fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n) { (void)c; while (n--) x[n] = 1.0; return fmi2OK; }

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer o[], const fmi2Real v[]) { (void)vr, (void)n, (void)o, (void)v; return fail(c, "not supported"); }
fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer o[], fmi2Real v[]) { (void)vr, (void)n, (void)o, (void)v; return fail(c, "not supported"); }

/* Heun in Euler, with error control; the step size is kept from call to call. */
static int advance(State *s, double end)
{
    int left = 2000000, k;
    while (s->t < end - 1e-13 * (1.0 + fabs(end)) && --left) {
        double h = fmin(s->attempt, end - s->t), a[3], b[3], y[3], worst = 1e-12;
        slopes(s, s->x, s->t, a);
        for (k = 0; k < STATES; ++k) y[k] = s->x[k] + h * a[k];
        slopes(s, y, s->t + h, b);
        for (k = 0; k < STATES; ++k) worst = fmax(worst, fabs(0.5 * h * (b[k] - a[k])) / (1e-7 * (1.0 + fabs(s->x[k]))));
        if (!isfinite(worst)) return 1;
        if (worst <= 1.0) {
            for (k = 0; k < STATES; ++k) s->x[k] += 0.5 * h * (a[k] + b[k]);
            s->t += h;
        }
        if (worst > 1.0 || h == s->attempt) s->attempt = h * fmin(4.0, fmax(0.1, 0.9 / sqrt(worst)));
    }
    s->t = end;
    return left == 0;
}
static void stiff(State *s, double end)
{
    int k, many = 40; /* backward Euler, refined: the solution follows cos(t) + u within 1e-6 */
    double h = (end - s->t) / many;
    for (k = 0; k < many; ++k) {
        s->t += h;
        s->x[0] = (s->x[0] + 1e6 * h * (cos(s->t) + s->u)) / (1.0 + 1e6 * h);
    }
    s->t = end;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real point, fmi2Real size, fmi2Boolean no)
{
    Unit *b = (Unit *)c;
    (void)no;
    NEED(size > 0.0 && isfinite(size) && fabs(point - S->t) < 1e-6, "an impossible step");
    if (KIND == COUNTER) {
        NEED(fabs(size - 0.1) < 1e-9, "steps are of 0.1 s");
        S->count++;
        S->t = point + size;
    } else if (KIND == STIFF) {
        stiff(S, point + size);
    } else if (STATES && KIND != ENDING) {
        if (advance(S, point + size)) { fail(c, "does not converge"); return fmi2Discard; }
    } else if (KIND == ENDING) {
        if (advance(S, fmin(point + size, 0.5))) return fmi2Discard;
        if (point + size > 0.5) { b->ended = 1; return fmi2Discard; }
    } else {
        S->t = point + size;
    }
    if (KIND == TOOL) { fputs("step\n", b->tool); fflush(b->tool); }
    if (KIND == LOGGING) { FILE *file = fopen(b->path, "a"); if (file) { fputs("step\n", file); fclose(file); } }
    return fmi2OK;
}
fmi2Status fmi2CancelStep(fmi2Component c) { return fail(c, "not supported"); }
fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind k, fmi2Status *v) { (void)k, (void)v; return fail(c, "not supported"); }
fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind k, fmi2Real *v) { NEED(k == fmi2LastSuccessfulTime, "not supported"); *v = S->t; return fmi2OK; }
fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind k, fmi2Integer *v) { (void)k, (void)v; return fail(c, "not supported"); }
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind k, fmi2Boolean *v) { NEED(k == fmi2Terminated, "not supported"); *v = ((Unit *)c)->ended; return fmi2OK; }
fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind k, fmi2String *v) { (void)k, (void)v; return fail(c, "not supported"); }
