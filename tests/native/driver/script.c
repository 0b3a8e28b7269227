/* script.c: runs the commands of a script.
 *
 * One command a line; values are C99 numbers, references are value references:
 *   instantiate | leave | continuous | terminate | reset | save | restore | free
 *   enter START STOP TOLERANCE      (- for none)
 *   set REFERENCE VALUE             choose REFERENCE INTEGER
 *   get REFERENCE...                prints the bits of each value
 *   step H N                        N steps of H, at points counted, not summed
 *   continue H N                    N steps of H were made before, by whom the state is from
 *   euler STATES H N                Model Exchange by explicit Euler; prints the bits of the states
 *   tangent UNKNOWN KNOWN           prints the bits of the directional derivative
 *   write [FILE] | read [FILE]      serialized state, without a file kept in memory
 * Every answer other than OK is printed as "COMMAND STATUS"; the script goes on. Each command is given to all instances
 * one after the other, and all must answer alike. After each call the floating-point control register must be as before.
 */
#include "script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, LINE = 1024 };

typedef struct {
    driver_run *run;
    void **instances;
    double start; /* of the steps of size h */
    double h;
    unsigned long steps;
    driver_control usual; /* what the driver computes with */
    unsigned char *bytes; /* of the first instance */
    size_t size;
    char *words[WORDS];
    int count;
} state;

static void say(driver_text *output, const char *format, ...)
{
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (output->length + (size_t)length + 1 > output->room) {
        output->room = 2 * output->room + (size_t)length + LINE;
        output->text = (char *)realloc(output->text, output->room);
    }
    if (output->text != NULL) {
        memcpy(output->text + output->length, line, (size_t)length + 1);
        output->length += (size_t)length;
    }
}

/* Bits and not digits: what printf prints depends on the locale. */
static void say_values(driver_text *output, const char *what, const double *values, size_t n)
{
    say(output, "%s", what);
    for (size_t i = 0; i < n; ++i) {
        unsigned long long bits;
        memcpy(&bits, &values[i], sizeof bits);
        say(output, " %016llx", bits);
    }
    say(output, "\n");
}

/* start + i h, as the driver computes: the unit's host has other settings. */
static double point(const state *s, unsigned long i, double h)
{
    const driver_control control = driver_get_control();
    driver_set_control(s->usual);
    volatile double product = (double)(s->steps + i) * h;
    volatile double sum = s->start + product;
    driver_set_control(control);
    return sum;
}

/* x + h dx, likewise; rounded twice, so that no compiler may fuse it. */
static double advanced(const state *s, double x, double h, double dx)
{
    const driver_control control = driver_get_control();
    volatile double factor = h;
    volatile double summand = x;
    driver_set_control(s->usual);
    volatile double increment = factor * dx;
    volatile double sum = summand + increment;
    driver_set_control(control);
    return sum;
}

/* Reads "1.5e-3" whatever the locale's decimal point is. */
static double number(const state *s, const char *text)
{
    const driver_control control = driver_get_control();
    char copy[64];
    char comma[8];
    size_t used = 0;
    driver_set_control(s->usual);
    (void)snprintf(comma, sizeof comma, "%.1f", 0.0);
    for (; *text != '\0' && used + 1 < sizeof copy; ++text) {
        copy[used++] = *text == '.' ? comma[1] : *text;
    }
    copy[used] = '\0';
    volatile double value = strtod(copy, NULL);
    driver_set_control(control);
    return value;
}

static const char *word(const state *s, int i)
{
    return i < s->count ? s->words[i] : "0";
}

static unsigned int reference(const state *s, int i)
{
    return (unsigned int)strtoul(word(s, i), NULL, 10);
}

static int get(const state *s, void *instance, driver_text *output)
{
    unsigned int references[WORDS];
    double values[WORDS] = {0};
    const size_t n = (size_t)s->count - 1;
    for (size_t i = 0; i < n; ++i) {
        references[i] = reference(s, (int)i + 1);
    }
    const int status = s->run->unit->calls->get_reals(s->run->unit, instance, references, n, values);
    say_values(output, "get", values, n);
    return status;
}

static int steps(const state *s, void *instance)
{
    const unit *u = s->run->unit;
    const double h = number(s, word(s, 1));
    const unsigned long n = strtoul(word(s, 2), NULL, 10);
    for (unsigned long i = 0; i < n; ++i) {
        const int status = u->calls->step(u, instance, point(s, i, h), h);
        if (status > 1) {
            return status;
        }
    }
    return 0;
}

static int euler(const state *s, void *instance, driver_text *output)
{
    const unit *u = s->run->unit;
    const size_t size = strtoul(word(s, 1), NULL, 10);
    const double h = number(s, word(s, 2));
    const unsigned long n = strtoul(word(s, 3), NULL, 10);
    double x[DRIVER_MAXIMUM];
    double dx[DRIVER_MAXIMUM];
    int status = size > DRIVER_MAXIMUM ? 3 : u->calls->get_states(u, instance, x, size);
    for (unsigned long i = 0; status <= 1 && i < n; ++i) {
        status = u->calls->set_time(u, instance, point(s, i, h));
        status = status > 1 ? status : u->calls->get_derivatives(u, instance, dx, size);
        for (size_t k = 0; k < size; ++k) {
            x[k] = advanced(s, x[k], h, dx[k]);
        }
        status = status > 1 ? status : u->calls->set_time(u, instance, point(s, i + 1, h));
        status = status > 1 ? status : u->calls->set_states(u, instance, x, size);
        status = status > 1 ? status : u->calls->completed(u, instance);
    }
    say_values(output, "euler", x, size <= DRIVER_MAXIMUM ? size : 0);
    return status;
}

static int write_state(state *s, void *instance, driver_text *output)
{
    const unit *u = s->run->unit;
    unsigned char *bytes = NULL;
    size_t size = 0;
    int status = u->calls->serialize(u, instance, &bytes, &size);
    say(output, "write %lu\n", (unsigned long)size);
    if (status > 1 || instance != s->instances[0]) {
        free(bytes);
        return status;
    }
    free(s->bytes);
    s->bytes = bytes;
    s->size = size;
    if (s->count > 1) {
        FILE *file = fopen(s->words[1], "wb");
        status = file != NULL && fwrite(bytes, 1, size, file) == size ? status : 3;
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    return status;
}

static int read_state(state *s, void *instance)
{
    static const size_t room = 1u << 20;
    FILE *file = s->count > 1 ? fopen(s->words[1], "rb") : NULL;
    if (file != NULL) {
        free(s->bytes);
        s->bytes = (unsigned char *)malloc(room);
        s->size = s->bytes == NULL ? 0 : fread(s->bytes, 1, room, file);
        (void)fclose(file);
    }
    return s->bytes == NULL ? 3 : s->run->unit->calls->deserialize(s->run->unit, instance, s->bytes, s->size);
}

static int enter(state *s, void *instance)
{
    const unit *u = s->run->unit;
    const double stop = number(s, word(s, 2));
    const double tolerance = number(s, word(s, 3));
    s->start = number(s, word(s, 1));
    s->steps = 0;
    return u->calls->enter(u, instance, s->start, strcmp(word(s, 2), "-") != 0 ? &stop : NULL,
                           strcmp(word(s, 3), "-") != 0 ? &tolerance : NULL);
}

static int tangent(const state *s, void *instance, driver_text *output)
{
    double value = 0.0;
    const unit *u = s->run->unit;
    const int status = u->calls->directional(u, instance, reference(s, 1), reference(s, 2), &value);
    say_values(output, "tangent", &value, 1);
    return status;
}

static void *instantiated(const state *s, size_t i)
{
    char name[32];
    (void)snprintf(name, sizeof name, "instance %lu", (unsigned long)i);
    return s->run->unit->calls->instantiate(s->run->unit, name);
}

/* Commands without arguments. */
static int plain(state *s, void *instance)
{
    const unit *u = s->run->unit;
    const struct {
        const char *name;
        driver_plain *call;
    } table[] = {
        {"leave", u->calls->leave},         {"continuous", u->calls->continuous}, {"terminate", u->calls->terminate},
        {"reset", u->calls->reset},         {"save", u->calls->save},             {"restore", u->calls->restore},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i) {
        if (strcmp(s->words[0], table[i].name) == 0) {
            return table[i].call(u, instance);
        }
    }
    s->run->failed = 1;
    return -1;
}

/* One command on one instance; its status. */
static int command(state *s, size_t i, driver_text *output)
{
    const unit *u = s->run->unit;
    const char *name = s->words[0];
    void *instance = s->instances[i];
    if (strcmp(name, "instantiate") == 0) {
        s->instances[i] = instantiated(s, i);
        return s->instances[i] == NULL ? 3 : 0;
    }
    if (instance == NULL) {
        return -2;
    }
    if (strcmp(name, "free") == 0) {
        u->calls->free_instance(u, instance);
        s->instances[i] = NULL;
        return 0;
    }
    if (strcmp(name, "enter") == 0) {
        return enter(s, instance);
    }
    if (strcmp(name, "set") == 0) {
        const unsigned int target = reference(s, 1);
        const double value = number(s, word(s, 2));
        return u->calls->set_reals(u, instance, &target, 1, &value);
    }
    if (strcmp(name, "choose") == 0) {
        return u->calls->set_choice(u, instance, reference(s, 1), atoi(word(s, 2)));
    }
    if (strcmp(name, "get") == 0) {
        return get(s, instance, output);
    }
    if (strcmp(name, "step") == 0) {
        return steps(s, instance);
    }
    if (strcmp(name, "euler") == 0) {
        return euler(s, instance, output);
    }
    if (strcmp(name, "tangent") == 0) {
        return tangent(s, instance, output);
    }
    if (strcmp(name, "write") == 0) {
        return write_state(s, instance, output);
    }
    return strcmp(name, "read") == 0 ? read_state(s, instance) : plain(s, instance);
}

/* Counts from here on in steps of h. */
static void set_step(state *s, double h)
{
    if (s->h < h || s->h > h) {
        s->start = point(s, 0, s->h);
        s->steps = 0;
        s->h = h;
    }
}

/* One command on all instances: the first one's words are kept, the others' must be the same. */
static void on_all(state *s, driver_control control)
{
    driver_run *run = s->run;
    const size_t before = run->output.length;
    const int moving = strcmp(s->words[0], "step") == 0 || strcmp(s->words[0], "euler") == 0;
    if (strcmp(s->words[0], "continue") == 0) {
        s->h = number(s, word(s, 1));
        s->steps = strtoul(word(s, 2), NULL, 10);
        return;
    }
    if (moving) {
        set_step(s, number(s, word(s, s->count - 2)));
    }
    for (size_t i = 0; i < run->instances; ++i) {
        driver_text mine = {NULL, 0, 0};
        driver_text *output = i == 0 ? &run->output : &mine;
        const int status = command(s, i, output);
        if (driver_get_control() != control) {
            say(output, "%s changed the floating-point settings\n", s->words[0]);
            run->failed = 1;
        }
        if (status != 0) {
            say(output, "%s %d\n", s->words[0], status);
        }
        if (i > 0 && (mine.length != run->output.length - before ||
                      (mine.length > 0 && memcmp(mine.text, run->output.text + before, mine.length) != 0))) {
            say(&run->output, "instance %lu answers otherwise: %s\n", (unsigned long)i, mine.text ? mine.text : "");
            run->failed = 1;
        }
        free(mine.text);
    }
    if (moving) {
        s->steps += strtoul(word(s, s->count - 1), NULL, 10);
    }
}

/* Cuts the next line of the script into words; how long it was. */
static size_t next_line(state *s, const char *text, char line[LINE])
{
    const size_t length = strcspn(text, "\n");
    const size_t kept = length < LINE - 1 ? length : LINE - 1;
    memcpy(line, text, kept);
    line[kept] = '\0';
    s->count = 0;
    for (char *at = line; s->count < WORDS;) {
        at += strspn(at, " \r\t");
        if (*at == '\0') {
            break;
        }
        s->words[s->count++] = at;
        at += strcspn(at, " \r\t");
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
    return length + (text[length] == '\n' ? 1u : 0u);
}

void driver_run_script(void *item)
{
    driver_run *run = (driver_run *)item;
    state s;
    memset(&s, 0, sizeof s);
    s.run = run;
    s.usual = driver_get_control();
    char line[LINE];
    s.instances = (void **)calloc(run->instances, sizeof *s.instances);
    const driver_control control = driver_set_conditions(&run->conditions);
    for (const char *at = run->script; s.instances != NULL && *at != '\0';) {
        at += next_line(&s, at, line);
        if (s.count > 0) {
            on_all(&s, control);
        }
    }
    driver_set_control(s.usual);
    for (size_t i = 0; s.instances != NULL && i < run->instances; ++i) {
        if (s.instances[i] != NULL) {
            run->unit->calls->free_instance(run->unit, s.instances[i]);
        }
    }
    free(s.bytes);
    free(s.instances);
}
