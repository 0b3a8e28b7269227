/* hardship.c: the oscillator under hardship, as one program with it: a hostile floating-point environment, a small
 * stack, memory that fails, many instances, many threads, calls without rhyme or reason. Meant to run under sanitizers
 * and valgrind, too.
 *
 *     hardship plain | traps | stack | many | threads | memory | locale | steps N | random SEED N
 *
 * plain, traps and stack print the bits of the same motion. The exit code is 0 where all is well.
 */
#define _GNU_SOURCE
#include "hardship.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "model_config.h"

#if MB2FMU_FMI == 2
#include "fmi2Functions.h"
#define FMI(name) fmi2##name
typedef fmi2Status status;
typedef fmi2Component handle;
typedef fmi2FMUstate saved;
typedef fmi2Byte octet;
#else
#include "fmi3Functions.h"
#define FMI(name) fmi3##name
typedef fmi3Status status;
typedef fmi3Instance handle;
typedef fmi3FMUState saved;
typedef fmi3Byte octet;
#endif

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);      \
            abort();                                                             \
        }                                                                        \
    } while (0)

/* --- memory -------------------------------------------------------------------------------------------------------- */

static long allocations; /* so far; only looked at without threads */
static long fail_at;     /* 0: never */
static int counting;

void *hardship_calloc(size_t n, size_t size)
{
    if (counting && ++allocations == fail_at) {
        return NULL;
    }
    return calloc(n, size);
}

void hardship_free(void *block)
{
    free(block);
}

/* --- the host's floating-point environment ------------------------------------------------------------------------- */

static unsigned wanted_environment; /* 0: not watched */

static unsigned environment(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#else
    return 0;
#endif
}

static void check_environment(void)
{
    CHECK(wanted_environment == 0 || environment() == wanted_environment);
}

/* --- one call each, for both versions ------------------------------------------------------------------------------ */

static int messages;
static char last_message[256];

#if MB2FMU_FMI == 2
static void logger(void *e, fmi2String n, fmi2Status s, fmi2String category, fmi2String message, ...)
{
    (void)e, (void)n, (void)s;
    CHECK(category != NULL && message != NULL && strlen(message) > 10);
    check_environment();
    if (counting) {
        ++messages;
        (void)strncpy(last_message, message, sizeof last_message - 1);
    }
}

static handle instantiate(int exchange)
{
    const fmi2CallbackFunctions callbacks = {logger, NULL, NULL, NULL, NULL};
    return fmi2Instantiate("one", exchange ? fmi2ModelExchange : fmi2CoSimulation, MB2FMU_TOKEN, "", &callbacks, 0, 1);
}

static status enter(handle unit, double tolerance)
{
    const status answer = fmi2SetupExperiment(unit, 1, tolerance, 0.0, 0, 0.0);
    return answer == fmi2OK ? fmi2EnterInitializationMode(unit) : answer;
}

static status get(handle unit, unsigned reference, double *value)
{
    return fmi2GetReal(unit, &reference, 1, value);
}

static status set(handle unit, unsigned reference, double value)
{
    return fmi2SetReal(unit, &reference, 1, &value);
}

static status step(handle unit, double point, double size)
{
    return fmi2DoStep(unit, point, size, 1);
}

static status directional(handle unit, unsigned unknown, unsigned known, double *value)
{
    const double one = 1.0;
    return fmi2GetDirectionalDerivative(unit, &unknown, 1, &known, 1, &one, value);
}
#else
static void logger(void *e, fmi3Status s, fmi3String category, fmi3String message)
{
    (void)e, (void)s;
    CHECK(category != NULL && message != NULL && strlen(message) > 10);
    check_environment();
    if (counting) {
        ++messages;
        (void)strncpy(last_message, message, sizeof last_message - 1);
    }
}

static void update(void *e, double t, bool may_set, bool may_get, bool done, bool early, bool *wanted, double *when)
{
    (void)e, (void)t, (void)may_set, (void)may_get, (void)done, (void)early, (void)wanted, (void)when;
    check_environment();
}

static handle instantiate(int exchange)
{
    return exchange ? fmi3InstantiateModelExchange("one", MB2FMU_TOKEN, "", false, true, NULL, logger)
                    : fmi3InstantiateCoSimulation("one", MB2FMU_TOKEN, "", false, true, false, true, NULL, 0, NULL,
                                                  logger, update);
}

static status enter(handle unit, double tolerance)
{
    return fmi3EnterInitializationMode(unit, true, tolerance, 0.0, false, 0.0);
}

static status get(handle unit, unsigned reference, double *value)
{
    return fmi3GetFloat64(unit, &reference, 1, value, 1);
}

static status set(handle unit, unsigned reference, double value)
{
    return fmi3SetFloat64(unit, &reference, 1, &value, 1);
}

static status step(handle unit, double point, double size)
{
    bool event, end, early;
    double last;
    return fmi3DoStep(unit, point, size, true, &event, &end, &early, &last);
}

static status directional(handle unit, unsigned unknown, unsigned known, double *value)
{
    const double one = 1.0;
    return fmi3GetDirectionalDerivative(unit, &unknown, 1, &known, 1, &one, 1, value, 1);
}
#endif

#if MB2FMU_FMI == 2
#define GET_STATE fmi2GetFMUstate
#define SET_STATE fmi2SetFMUstate
#define FREE_STATE fmi2FreeFMUstate
#define STATE_SIZE fmi2SerializedFMUstateSize
#define SERIALIZE fmi2SerializeFMUstate
#define DESERIALIZE fmi2DeSerializeFMUstate
#else
#define GET_STATE fmi3GetFMUState
#define SET_STATE fmi3SetFMUState
#define FREE_STATE fmi3FreeFMUState
#define STATE_SIZE fmi3SerializedFMUStateSize
#define SERIALIZE fmi3SerializeFMUState
#define DESERIALIZE fmi3DeserializeFMUState
#endif

#define OK 0
#define DISCARD 2
#define ERROR 3
#define CALL(call)           \
    do {                     \
        CHECK((call) == OK); \
        check_environment(); \
    } while (0)

/* --- the same motion every time ------------------------------------------------------------------------------------ */

enum { TIME, X, V, DER_X, DER_V, FORCE, MASS, STIFFNESS, DAMPING, WALL, OMEGA, TIP, LOSS, LOAD, TWICE, SPEEDUP };

static uint64_t mix(uint64_t sum, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (sum ^ bits) * 0x100000001B3u;
}

static uint64_t look(handle unit, uint64_t sum)
{
    unsigned reference;
    for (reference = TIME; reference <= SPEEDUP; ++reference) {
        double value;
        CALL(get(unit, reference, &value));
        sum = mix(sum, value);
    }
    return sum;
}

/* Steps of all kinds, a failed one, a state saved and set, derivatives. */
static uint64_t motion(void)
{
    uint64_t sum = 1;
    saved state = NULL;
    int i;
    double value;
    handle unit = instantiate(0);
    CHECK(unit != NULL);
    CALL(enter(unit, 1e-7));
    CALL(set(unit, DAMPING, 1e-310)); /* subnormal: must not be flushed */
    CALL(FMI(ExitInitializationMode)(unit));
    sum = look(unit, sum);
    for (i = 0; i < 20; ++i) {
        CALL(set(unit, FORCE, 0.125 * i)); /* exact in every rounding mode */
        CALL(step(unit, 0.0625 * i, 0.0625));
        sum = look(unit, sum);
        if (i == 10) {
            CALL(GET_STATE(unit, &state));
        }
    }
    CALL(directional(unit, LOAD, MASS, &value));
    sum = mix(sum, value);
    CALL(set(unit, FORCE, 1e3));
    CHECK(step(unit, 1.25, 50.0) == DISCARD);
    check_environment();
    sum = look(unit, sum);
    CALL(SET_STATE(unit, state));
    sum = look(unit, sum);
    CHECK(set(unit, FORCE, (double)NAN) == ERROR);
    check_environment();
    CALL(FMI(Reset)(unit));
    CALL(FREE_STATE(unit, &state));
    FMI(FreeInstance)(unit);
    FMI(FreeInstance)(unit);
    check_environment();
    return sum;
}

static void print_equation_functions(void)
{
    printf("%016llx\n", (unsigned long long)motion());
}

/* Traps on, towards zero, subnormal numbers flushed, flags set: as bad as it gets. */
static void with_traps(void)
{
#if defined(__x86_64__)
    uint64_t sum;
    const unsigned host = _mm_getcsr();
    wanted_environment = (_MM_ROUND_TOWARD_ZERO | _MM_FLUSH_ZERO_ON | 0x40u /* denormals are zero */) |
                         _MM_MASK_INEXACT | _MM_EXCEPT_INEXACT;
    _mm_setcsr(wanted_environment);
    sum = motion();
    check_environment();
    _mm_setcsr(host);
    printf("%016llx\n", (unsigned long long)sum);
#else
    print_equation_functions();
#endif
}

static void *in_thread(void *sum)
{
    *(uint64_t *)sum = motion();
    return NULL;
}

static void with_small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    uint64_t sum = 0;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, 65536) == 0);
    CHECK(pthread_create(&thread, &attributes, in_thread, &sum) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
    printf("%016llx\n", (unsigned long long)sum);
}

static void with_threads(void)
{
    enum { THREADS = 8, ROUNDS = 20 };
    pthread_t threads[THREADS];
    uint64_t sums[THREADS];
    const uint64_t alone = motion();
    int i, round;
    for (round = 0; round < ROUNDS; ++round) {
        for (i = 0; i < THREADS; ++i) {
            CHECK(pthread_create(&threads[i], NULL, in_thread, &sums[i]) == 0);
        }
        for (i = 0; i < THREADS; ++i) {
            CHECK(pthread_join(threads[i], NULL) == 0);
            CHECK(sums[i] == alone);
        }
    }
}

static void with_many(void)
{
    enum { MANY = 1000 };
    static handle units[MANY];
    int i, k;
    double value;
    for (i = 0; i < MANY; ++i) {
        units[i] = instantiate(i % 2);
        CHECK(units[i] != NULL);
        CHECK(i == 0 || units[i] != units[i - 1]);
        CALL(enter(units[i], 1e-6));
        CALL(set(units[i], X, i));
        CALL(set(units[i], WALL, 2.0 * MANY));
        CALL(FMI(ExitInitializationMode)(units[i]));
    }
    for (k = 0; k < 3; ++k) {
        for (i = 0; i < MANY; i += 2) {
            CALL(step(units[i], 0.25 * k, 0.25));
        }
    }
    for (i = 1; i < MANY; i += 2) {
        CALL(get(units[i], X, &value));
        CHECK(value == i);
    }
    for (i = 0; i < MANY; ++i) {
        FMI(FreeInstance)(units[i]);
    }
    for (i = 0; i < MANY; ++i) {
        CHECK(get(units[i], X, &value) == ERROR);
        FMI(FreeInstance)(units[i]);
    }
}

/* --- memory that fails --------------------------------------------------------------------------------------------- */

/* Everything that takes memory. Answers whether one allocation failed. */
static int needing_memory(void)
{
    saved first = NULL, second = NULL;
    size_t size = 0;
    octet *bytes;
    handle unit = instantiate(0);
    if (unit == NULL) {
        return 1;
    }
    if (GET_STATE(unit, &first) != OK) {
        CHECK(first == NULL);
        FMI(FreeInstance)(unit);
        return 1;
    }
    CALL(STATE_SIZE(unit, first, &size));
    bytes = (octet *)malloc(size);
    CHECK(bytes != NULL);
    CALL(SERIALIZE(unit, first, bytes, size));
    if (DESERIALIZE(unit, bytes, size, &second) != OK) {
        CHECK(second == NULL);
        CALL(SET_STATE(unit, first)); /* all is as it was */
        CALL(enter(unit, 1e-6));
        CALL(FREE_STATE(unit, &first));
        FMI(FreeInstance)(unit);
        free(bytes);
        return 1;
    }
    CALL(FREE_STATE(unit, &first));
    CALL(FREE_STATE(unit, &second));
    FMI(FreeInstance)(unit);
    free(bytes);
    return 0;
}

static void without_memory(void)
{
    int failed = 1;
    counting = 1;
    for (fail_at = 1; failed; ++fail_at) {
        const int before = messages;
        allocations = 0;
        failed = needing_memory();
        CHECK(!failed || messages > before);
    }
    CHECK(fail_at == 5); /* three allocations: an instance and two states */
}

/* --- another country ----------------------------------------------------------------------------------------------- */

#ifdef HARDSHIP_PRINTF
/* What the unit has for snprintf: as in a locale whose decimal sign takes two bytes. */
int hardship_snprintf(char *out, size_t size, const char *format, ...)
{
    char plain[64];
    size_t from, to = 0;
    va_list values;
    va_start(values, format);
    (void)vsnprintf(plain, sizeof plain, format, values);
    va_end(values);
    for (from = 0; plain[from] != '\0' && to + 3 < size; ++from) {
        if (plain[from] == '.') {
            out[to++] = (char)0xD9;
            out[to++] = (char)0xAB;
        } else {
            out[to++] = plain[from];
        }
    }
    out[to] = '\0';
    return (int)to;
}
#endif

static void with_locale(void)
{
    handle unit = instantiate(0);
    (void)setlocale(LC_ALL, "de_DE.UTF-8");
    CALL(enter(unit, 1e-3));
    CALL(FMI(ExitInitializationMode)(unit));
    counting = 1;
    CHECK(step(unit, -12345.625e-9, 0.5) == ERROR);
    CHECK(strstr(last_message, "begins at -1.2345625e-05 s, but the FMU is at 0 s") != NULL);
    FMI(FreeInstance)(unit);
}

/* --- time ---------------------------------------------------------------------------------------------------------- */

static void with_steps(long n)
{
    const double size = 0.1;
    double value, sum = 0.0;
    long i;
    handle unit = instantiate(0);
    CALL(enter(unit, 1e-3));
    CALL(FMI(ExitInitializationMode)(unit));
    for (i = 0; i < n; ++i) {
        CALL(step(unit, sum, size));
        sum += size; /* as importers do */
    }
    CALL(get(unit, TIME, &value));
    CHECK(value == (double)n * size);
    printf("%.17g %.17g\n", value, sum);
    FMI(FreeInstance)(unit);
}

/* --- calls without rhyme or reason --------------------------------------------------------------------------------- */

static uint64_t dice = 1;

static unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice % sides);
}

static double number(void)
{
    static const double numbers[] = {0.0, 0.1, 0.25, -1.0, 1e300, -1e-310, 1e-9, 3.0, 0.5, 2.0};
    const unsigned which = roll(14);
    return which == 13 ? (double)NAN : which == 12 ? (double)INFINITY : which >= 10 ? 0.05 : numbers[which];
}

static const char *const junk[] = {"logStatusError", NULL, "", "logAll"};

static void any_variable_call(handle unit)
{
    unsigned references[3] = {roll(17), roll(20), roll(17)};
    double values[3] = {number(), number(), number()};
    const size_t n = roll(4);
    const unsigned *const r = roll(10) ? references : NULL;
    double *const v = roll(10) ? values : NULL;
    const int orders[3] = {(int)roll(3), 1, 1};
#if MB2FMU_FMI == 2
    int integers[3] = {(int)roll(6), 1, 2};
    switch (roll(8)) {
    case 0: (void)fmi2GetReal(unit, r, n, v); break;
    case 1: (void)fmi2SetReal(unit, r, n, v); break;
    case 2: (void)fmi2GetInteger(unit, r, n, integers); break;
    case 3: (void)fmi2SetInteger(unit, r, n, integers); break;
    case 4: (void)fmi2SetRealInputDerivatives(unit, r, n, orders, v); break;
    case 5: (void)fmi2GetRealOutputDerivatives(unit, r, n, orders, v); break;
    case 6: (void)fmi2GetDirectionalDerivative(unit, r, n, references, roll(4), values, v); break;
    default: (void)fmi2GetBoolean(unit, r, n, integers); break;
    }
#else
    int64_t integers[3] = {(int64_t)roll(6), 1, 2};
    const size_t m = roll(10) ? n : roll(4);
    switch (roll(8)) {
    case 0: (void)fmi3GetFloat64(unit, r, n, v, m); break;
    case 1: (void)fmi3SetFloat64(unit, r, n, v, m); break;
    case 2: (void)fmi3GetInt64(unit, r, n, integers, m); break;
    case 3: (void)fmi3SetInt64(unit, r, n, integers, m); break;
    case 4: (void)fmi3GetAdjointDerivative(unit, r, n, references, n, values, n, v, m); break;
    case 5: (void)fmi3GetOutputDerivatives(unit, r, n, orders, v, m); break;
    case 6: (void)fmi3GetDirectionalDerivative(unit, r, n, references, n, values, n, v, m); break;
    default: (void)fmi3GetBinary(unit, r, n, NULL, NULL, m); break;
    }
#endif
}

static void any_mode_call(handle unit)
{
    double values[3] = {number(), number(), number()};
    double time = 0.0;
    double *const v = roll(10) ? values : NULL;
    const size_t n = roll(10) ? 2 : roll(4);
    (void)get(unit, TIME, &time);
    switch (roll(16)) {
    case 0: (void)enter(unit, roll(4) ? 1e-5 : number()); break;
    case 1: (void)FMI(ExitInitializationMode)(unit); break;
    case 2: (void)FMI(EnterEventMode)(unit); break;
    case 3: (void)FMI(EnterContinuousTimeMode)(unit); break;
    case 4: (void)FMI(SetTime)(unit, number()); break;
    case 5: (void)FMI(SetContinuousStates)(unit, v, n); break;
    case 6: (void)FMI(GetContinuousStates)(unit, v, n); break;
    case 7: (void)FMI(GetNominalsOfContinuousStates)(unit, v, n); break;
    case 8: (void)FMI(GetEventIndicators)(unit, NULL, roll(2)); break;
    case 9: (void)step(unit, roll(5) ? time : number(), roll(5) ? 0.05 : number()); break;
    case 10: (void)FMI(Terminate)(unit); break;
    case 11: (void)FMI(SetDebugLogging)(unit, roll(2) != 0, roll(3), roll(3) ? junk : NULL); break;
    default: (void)FMI(Reset)(unit); break;
    }
}

static void any_state_call(handle unit, saved *state, octet *bytes, size_t room)
{
    size_t size = 0;
    switch (roll(6)) {
    case 0: (void)GET_STATE(unit, state); break;
    case 1: (void)SET_STATE(unit, *state); break;
    case 2: (void)FREE_STATE(unit, state); break;
    case 3: (void)STATE_SIZE(unit, *state, roll(5) ? &size : NULL); break;
    case 4: (void)SERIALIZE(unit, *state, bytes, roll(3) ? room : roll((unsigned)room)); break;
    default:
        if (roll(3) == 0) {
            bytes[roll((unsigned)room)] ^= (octet)(1 << roll(8));
        }
        (void)DESERIALIZE(unit, bytes, roll(3) ? room : roll((unsigned)room), state);
        break;
    }
}

static void any_calls(uint64_t seed, long n)
{
    enum { UNITS = 4, ROOM = 4096 };
    handle units[UNITS] = {NULL};
    saved state[UNITS] = {NULL};
    static octet bytes[UNITS][ROOM];
    size_t size[UNITS] = {0};
    long i;
    dice = seed * 2654435761u + 1u;
    for (i = 0; i < n; ++i) {
        const unsigned which = roll(UNITS);
        if (units[which] == NULL || roll(60) == 0) {
            handle keeper;
            FMI(FreeInstance)(units[which]); /* and stale ones are called, too */
            if (roll(5) == 0) {
                any_mode_call(units[which]);
                FMI(FreeInstance)(units[which]);
            }
            keeper = instantiate((int)roll(2));
            CHECK(keeper != NULL);
            if (size[which] == 0 || roll(2)) {
                saved first = NULL;
                CALL(GET_STATE(keeper, &first));
                CALL(STATE_SIZE(keeper, first, &size[which]));
                CHECK(size[which] <= ROOM);
                CALL(SERIALIZE(keeper, first, bytes[which], size[which]));
                CALL(FREE_STATE(keeper, &first));
            }
            units[which] = keeper;
        }
        switch (roll(4)) {
        case 0: any_variable_call(units[which]); break;
        case 1: any_state_call(units[which], &state[roll(UNITS)], bytes[which], size[which]); break;
        default: any_mode_call(units[which]); break;
        }
    }
    for (i = 0; i < UNITS; ++i) {
        handle last = instantiate(0);
        CALL(FREE_STATE(last, &state[i]));
        FMI(FreeInstance)(last);
        FMI(FreeInstance)(units[i]);
    }
}

int main(int argc, char *argv[])
{
    const char *const what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "plain") == 0) {
        print_equation_functions();
    } else if (strcmp(what, "traps") == 0) {
        with_traps();
    } else if (strcmp(what, "stack") == 0) {
        with_small_stack();
    } else if (strcmp(what, "many") == 0) {
        with_many();
    } else if (strcmp(what, "threads") == 0) {
        with_threads();
    } else if (strcmp(what, "locale") == 0) {
        with_locale();
    } else if (strcmp(what, "memory") == 0) {
        without_memory();
    } else if (strcmp(what, "steps") == 0 && argc > 2) {
        with_steps(atol(argv[2]));
    } else if (strcmp(what, "random") == 0 && argc > 3) {
        any_calls((uint64_t)atol(argv[2]), atol(argv[3]));
    } else {
        return 2;
    }
    return 0;
}
