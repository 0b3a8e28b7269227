/* remote_host.c: loads an FMU's library in a process of its own and calls it as it is told over pipes.
 *
 * Why it exists: the auditor's probes are written in Python and call libraries of this process. A library of Windows (run
 * by wine) or one that is watched by valgrind cannot be in that process; it is here, and the probes' calls come by wire.
 * Numbers go as they are in memory: both sides are on one machine, with little-endian 64-bit processors.
 *
 *   'O' path         → 'R' address of the library, or 0 and an error code
 *   'F' name         → 'R' address of a function, or 0
 *   'C' function, kind of its answer, arguments → 'R' answer, then what was written into each buffer
 *   'A' early, time  → nothing: the answer to an 'U'
 * and in between, from here: 'M' a message of the FMU, 'U' an intermediate update, 'X' a crash with its code.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <windows.h>
#define open_pipe(number, mode) _fdopen(_dup(number), mode)

/* What Windows' own C library lacks, so that zig need not compile mingw-w64's, which takes minutes. */
int main(void);
void start_program(void);
void __main(void);

void __main(void) {} /* runs constructors, of which there are none */
void start_program(void) { exit(main()); }
int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    return __stdio_common_vsprintf(_CRT_INTERNAL_PRINTF_STANDARD_SNPRINTF_BEHAVIOR, text, size, format, NULL, arguments);
}
#else
#include <dlfcn.h>
#include <unistd.h>
#define open_pipe(number, mode) fdopen(dup(number), mode)
#endif

enum { MOST = 32, TEXT = 1 << 16 };

typedef struct {
    uint8_t kind;
    uint64_t word;
    uint32_t count;
    char *bytes;    /* a buffer, or an array of pointers */
    char **strings; /* what the pointers of 'n' point to */
} argument;

typedef struct {
    void *logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void *finished;
    void *environment;
} callbacks2;

static FILE *from, *to;

static void take(void *place, size_t size)
{
    if (size > 0 && fread(place, 1, size, from) != size) {
        _Exit(0); /* the auditor is gone */
    }
}

static void give(const void *place, size_t size) { (void)fwrite(place, 1, size, to); }

static uint32_t take_count(void)
{
    uint32_t count = 0;
    take(&count, sizeof count);
    return count;
}

static char *take_bytes(uint32_t *size)
{
    char *bytes;
    *size = take_count();
    bytes = (char *)calloc((size_t)*size + 1, 1);
    if (bytes == NULL) {
        _Exit(3);
    }
    take(bytes, *size);
    return bytes;
}

static void give_text(const char *text)
{
    const uint32_t none = UINT32_MAX, size = text ? (uint32_t)strlen(text) : 0;
    give(text ? &size : &none, sizeof size);
    give(text ? text : "", size);
}

static void answer(uint64_t word)
{
    give("R", 1);
    give(&word, sizeof word);
}

/* --- what units call */

static void say(uint64_t environment, int32_t status, const char *name, const char *category, const char *text)
{
    give("M", 1);
    give(&environment, sizeof environment);
    give(&status, sizeof status);
    give_text(name);
    give_text(category);
    give_text(text);
}

static void logger2(void *environment, const char *name, int status, const char *category, const char *text, ...)
{
    static char formatted[TEXT];
    va_list rest;
    va_start(rest, text);
    if (text != NULL) {
        (void)vsnprintf(formatted, sizeof formatted, text, rest);
    }
    va_end(rest);
    say((uint64_t)(uintptr_t)environment, status, name, category, text ? formatted : NULL);
}

static void logger3(void *environment, int status, const char *category, const char *text)
{
    say((uint64_t)(uintptr_t)environment, status, NULL, category, text);
}

static int serve(int nested);

static uint8_t early;
static double early_time;

static void update3(void *environment, double time, uint8_t set, uint8_t get, uint8_t finished, uint8_t can, uint8_t *asked,
                    double *at)
{
    const uint8_t flags[4] = {set, get, finished, can};
    (void)environment;
    give("U", 1);
    give(&time, sizeof time);
    give(flags, sizeof flags);
    (void)fflush(to);
    while (serve(1)) {
    }
    *asked = early;
    *at = early_time;
}

/* --- calls */

static void take_argument(argument *a)
{
    callbacks2 *table;
    uint8_t null_memory = 0;
    uint32_t size = 0;
    memset(a, 0, sizeof *a);
    take(&a->kind, 1);
    switch (a->kind) {
    case 'i': case 'd': /* a word; the bits of a floating point number */
        take(&a->word, sizeof a->word);
        break;
    case 'b': case 'q': /* a buffer that goes both ways; one that is only read */
        a->bytes = take_bytes(&a->count);
        break;
    case 'n': /* pointers to bytes */
        a->count = take_count();
        a->bytes = (char *)calloc((size_t)a->count + 1, sizeof(char *));
        a->strings = (char **)a->bytes;
        for (uint32_t k = 0; k < a->count; ++k) {
            a->strings[k] = take_bytes(&size);
        }
        break;
    case 'g': case 'G': /* pointers for the FMU to write: to texts; to bytes, whose sizes are in the argument before */
        a->count = take_count();
        a->bytes = (char *)calloc((size_t)a->count + 1, sizeof(char *));
        break;
    case 'l':
        a->word = (uint64_t)(uintptr_t)logger3;
        break;
    case 'u':
        a->word = (uint64_t)(uintptr_t)update3;
        break;
    case 'k': /* FMI 2's callbacks, which live as long as their instance */
        table = (callbacks2 *)calloc(1, sizeof *table);
        take(&a->word, sizeof a->word);
        take(&null_memory, 1);
        table->logger = (void *)(uintptr_t)logger2;
        table->allocate = null_memory ? NULL : calloc;
        table->release = null_memory ? NULL : free;
        table->environment = (void *)(uintptr_t)a->word;
        a->word = (uint64_t)(uintptr_t)table;
        break;
    default:
        _Exit(4);
    }
    if (a->bytes != NULL) {
        a->word = (uint64_t)(uintptr_t)a->bytes;
    }
}

static void give_argument(argument *arguments, int k)
{
    argument *a = &arguments[k];
    char **pointers = (char **)a->bytes;
    if (a->kind == 'b') {
        give(a->bytes, a->count);
    } else if (a->kind == 'g') {
        for (uint32_t i = 0; i < a->count; ++i) {
            give_text(pointers[i]);
        }
    } else if (a->kind == 'G') {
        for (uint32_t i = 0; i < a->count; ++i) {
            size_t size = 0;
            if (pointers[i] != NULL) {
                memcpy(&size, arguments[k - 1].bytes + i * sizeof size, sizeof size);
            }
            const uint32_t told = (uint32_t)size;
            give(&told, sizeof told);
            give(pointers[i], told);
        }
    }
}

/* The importer's memory is its own again after a call: an FMU that has kept a pointer finds other contents there. */
static void drop_argument(argument *a)
{
    for (uint32_t k = 0; a->kind == 'n' && k < a->count; ++k) {
        memset(a->strings[k], '#', strlen(a->strings[k]));
        free(a->strings[k]);
    }
    if (a->bytes != NULL && (a->kind == 'b' || a->kind == 'q')) {
        memset(a->bytes, '#', a->count);
    }
    free(a->bytes);
}

#ifdef _WIN32
/* The first four arguments go by place: of a function without prototype both kinds of registers hold each of them. */
static uint64_t apply(void *function, const argument *a, int count)
{
    double w[MOST] = {0};
    for (int k = 0; k < count; ++k) {
        memcpy(&w[k], &a[k].word, sizeof w[k]);
    }
    return ((uint64_t(*)(uint64_t, ...))function)(
        a[0].word, w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], w[14], w[15]);
}
#else
#ifdef __aarch64__
enum { WORDS = 8 };
#define FIRST(w) w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
#else
enum { WORDS = 6 };
#define FIRST(w) w[0], w[1], w[2], w[3], w[4], w[5]
#endif

typedef uint64_t (*any_function)(
#ifdef __aarch64__
    uint64_t, uint64_t,
#endif
    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double, double, double, double, double, double,
    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* Words and floating point numbers are counted apart; what finds no register goes onto the stack in order. */
static uint64_t apply(void *function, const argument *a, int count)
{
    uint64_t w[WORDS] = {0}, s[10] = {0};
    double d[8] = {0};
    int words = 0, numbers = 0, stacked = 0;
    for (int k = 0; k < count; ++k) {
        if (a[k].kind == 'd' && numbers < 8) {
            memcpy(&d[numbers++], &a[k].word, sizeof d[0]);
        } else if (a[k].kind != 'd' && words < WORDS) {
            w[words++] = a[k].word;
        } else if (stacked < 10) {
            s[stacked++] = a[k].word;
        }
    }
    return ((any_function)function)(FIRST(w), d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], s[0], s[1], s[2], s[3], s[4],
                                    s[5], s[6], s[7], s[8], s[9]);
}
#endif

static void call(void)
{
    argument arguments[MOST];
    uint64_t function = 0, found;
    uint8_t count = 0, kind = 0;
    take(&function, sizeof function);
    take(&kind, 1);
    take(&count, 1);
    if (count > 16) {
        _Exit(5);
    }
    for (int k = 0; k < count; ++k) {
        take_argument(&arguments[k]);
    }
    for (int k = count; k < MOST; ++k) {
        memset(&arguments[k], 0, sizeof arguments[k]);
    }
    found = apply((void *)(uintptr_t)function, arguments, count);
    answer(kind == 'i' ? (uint64_t)(int64_t)(int32_t)(uint32_t)found : found);
    if (kind == 's') {
        give_text((const char *)(uintptr_t)found);
    }
    for (int k = 0; k < count; ++k) {
        give_argument(arguments, k);
    }
    for (int k = 0; k < count; ++k) {
        drop_argument(&arguments[k]);
    }
}

/* --- libraries */

#ifdef _WIN32
static void *library;

static void open_library(const char *path)
{
    wchar_t wide[4096];
    MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096);
    library = (void *)LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
    const uint32_t code = library ? 0 : (uint32_t)GetLastError();
    answer((uint64_t)(uintptr_t)library);
    give(&code, sizeof code);
    give_text("");
}

static void *find(const char *name) { return (void *)(uintptr_t)GetProcAddress((HMODULE)library, name); }

static LONG WINAPI crashed(EXCEPTION_POINTERS *found)
{
    const uint32_t code = (uint32_t)found->ExceptionRecord->ExceptionCode;
    give("X", 1);
    give(&code, sizeof code);
    (void)fflush(to);
    _Exit(1);
}

/* What the FMU prints must not get among the answers. */
static void prepare(void)
{
    SetUnhandledExceptionFilter(crashed);
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    _setmode(_fileno(from), _O_BINARY);
    _setmode(_fileno(to), _O_BINARY);
    SetStdHandle(STD_OUTPUT_HANDLE, GetStdHandle(STD_ERROR_HANDLE));
    _dup2(2, 1);
}
#else
static void *library;

static void open_library(const char *path)
{
    const uint32_t code = 0;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? "" : dlerror();
    answer((uint64_t)(uintptr_t)library);
    give(&code, sizeof code);
    give_text(why);
}

static void *find(const char *name) { return dlsym(library, name); }

static void prepare(void) { (void)dup2(2, 1); }
#endif

/* One command; whether to go on. */
static int serve(int nested)
{
    char command = 0;
    uint32_t size = 0;
    char *text;
    take(&command, 1);
    switch (command) {
    case 'O':
        text = take_bytes(&size);
        open_library(text);
        free(text);
        break;
    case 'F':
        text = take_bytes(&size);
        answer((uint64_t)(uintptr_t)find(text));
        free(text);
        break;
    case 'C':
        call();
        break;
    case 'A':
        take(&early, 1);
        take(&early_time, sizeof early_time);
        return !nested;
    default:
        _Exit(6);
    }
    (void)fflush(to);
    return 1;
}

int main(void)
{
    from = open_pipe(0, "rb");
    to = open_pipe(1, "wb");
    if (from == NULL || to == NULL) {
        return 2;
    }
    prepare();
    while (serve(0)) {
    }
    return 0;
}
