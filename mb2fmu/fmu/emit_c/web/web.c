/* web.c: an FMU for a page. Compiled for WebAssembly with nothing imported; see fmu/emit_c/wasm_page_module_sources.py.
 *
 * web_named.h names the file of the FMU. Numbers are handed over in arrays of this module, whose addresses
 * web_states … web_outputs give; functions return 0, or a number other than 0 after a failure, which web_message explains.
 * The arithmetic is the native FMU's, without fused multiply-adds: every number has the same bits.
 */
#define WEB_EXPORT(name) __attribute__((export_name(#name))) name

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What of the C library the runtime calls. One model is made, once: memory is never given back. */
extern unsigned char __heap_base;
static size_t web_used;

void *calloc(size_t count, size_t size)
{
    const size_t page = 65536;
    const size_t begin = ((size_t)&__heap_base + web_used + 15) & ~(size_t)15;
    const size_t end = begin + count * size;
    const size_t there = __builtin_wasm_memory_size(0) * page;
    if (end > there && __builtin_wasm_memory_grow(0, (end - there + page - 1) / page) == (size_t)-1) {
        return NULL;
    }
    web_used = end - (size_t)&__heap_base;
    return (void *)begin; /* fresh memory is zero */
}

void free(void *memory)
{
    (void)memory;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    unsigned char *const target = to;
    const unsigned char *const source = from;
    for (size_t i = 0; i < n; i++) {
        target[i] = source[i];
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *const target = to;
    const unsigned char *const source = from;
    if ((size_t)target <= (size_t)source) {
        return memcpy(to, from, n);
    }
    for (size_t i = n; i > 0; i--) {
        target[i - 1] = source[i - 1];
    }
    return to;
}

void *memset(void *to, int value, size_t n)
{
    unsigned char *const target = to;
    for (size_t i = 0; i < n; i++) {
        target[i] = (unsigned char)value;
    }
    return to;
}

int memcmp(const void *one, const void *other, size_t n)
{
    const unsigned char *const a = one;
    const unsigned char *const b = other;
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

size_t strlen(const char text[])
{
    size_t n = 0;
    while (text[n] != '\0') {
        n++;
    }
    return n;
}

char *strchr(const char text[], int letter)
{
    for (; *text != (char)letter; text++) {
        if (*text == '\0') {
            return NULL;
        }
    }
    return (char *)(size_t)text;
}

/* Where a message is written; what has no room is left out. */
struct web_text {
    char *to;
    size_t room;
    size_t used;
};

static void web_put(struct web_text *text, const char from[], size_t n)
{
    for (size_t i = 0; i < n && text->used + 1 < text->room; i++) {
        text->to[text->used++] = from[i];
    }
}

static void web_put_whole(struct web_text *text, unsigned long value)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + (int)(value % 10u));
        value /= 10u;
    } while (value != 0u);
    web_put(text, digits + at, sizeof digits - at);
}

/* Six digits, for readers: nothing is computed from it. */
static void web_put_number(struct web_text *text, double value)
{
    int exponent = 0;
    if (value < 0.0) {
        web_put(text, "-", 1);
        value = -value;
    }
    if (!isfinite(value)) {
        web_put(text, isnan(value) ? "nan" : "inf", 3);
        return;
    }
    for (; value >= 1e6; exponent++) {
        value /= 10.0;
    }
    for (; value != 0.0 && value < 1e-2; exponent--) {
        value *= 10.0;
    }
    const unsigned long whole = (unsigned long)value;
    unsigned long part = (unsigned long)((value - (double)whole) * 1e6 + 0.5);
    web_put_whole(text, whole + part / 1000000u);
    part %= 1000000u;
    if (part != 0u) {
        web_put(text, ".", 1);
        for (unsigned long place = 100000u; part != 0u; place /= 10u) {
            web_put_whole(text, part / place);
            part %= place;
        }
    }
    if (exponent != 0) {
        web_put(text, exponent < 0 ? "e-" : "e", exponent < 0 ? 2 : 1);
        web_put_whole(text, (unsigned long)(exponent < 0 ? -exponent : exponent));
    }
}

/* The conversions that the runtime uses: %s, %.*s, %d, %ld, %lu, %.15g. */
int snprintf(char *restrict to, size_t room, const char *restrict format, ...)
{
    struct web_text text = {to, room, 0};
    va_list rest;
    va_start(rest, format);
    while (*format != '\0') {
        if (*format != '%') {
            web_put(&text, format++, 1);
            continue;
        }
        size_t most = (size_t)-1;
        int is_long = 0;
        for (format++; *format != '\0' && strchr("sdug%", *format) == NULL; format++) {
            is_long |= *format == 'l';
            most = *format == '*' ? (size_t)va_arg(rest, int) : most;
        }
        if (*format == 's') {
            const char *const from = va_arg(rest, const char *);
            const size_t n = most == (size_t)-1 ? strlen(from) : most;
            web_put(&text, from, n);
        } else if (*format == 'g') {
            web_put_number(&text, va_arg(rest, double));
        } else if (*format == 'd' || *format == 'u') {
            const long value = is_long ? va_arg(rest, long) : va_arg(rest, int);
            web_put(&text, "-", value < 0 && *format == 'd');
            web_put_whole(&text, value < 0 && *format == 'd' ? 0ul - (unsigned long)value : (unsigned long)value);
        }
        format += *format != '\0';
    }
    va_end(rest);
    if (room > 0) {
        to[text.used] = '\0';
    }
    return (int)text.used;
}

#include "web_named.h"

static MB2FMU_UNIT(model) * web_model;
static double web_x[MB2FMU_SIZE(MB2FMU_N_STATES)];
static double web_r[MB2FMU_SIZE(MB2FMU_UNIT(n_inputs))];
static double web_p[MB2FMU_SIZE(MB2FMU_N_PARAMETERS)];
static double web_y[MB2FMU_SIZE(MB2FMU_UNIT(n_outputs))];

double *WEB_EXPORT(web_states)(void)
{
    return web_x;
}

double *WEB_EXPORT(web_inputs)(void)
{
    return web_r;
}

double *WEB_EXPORT(web_parameters)(void)
{
    return web_p;
}

double *WEB_EXPORT(web_outputs)(void)
{
    return web_y;
}

const char *WEB_EXPORT(web_message)(void)
{
    return web_model == NULL ? "there is no memory" : MB2FMU_UNIT(message)(web_model);
}

/* Begins at time t from web_states, with web_inputs and web_parameters; guesses are solved for. */
int WEB_EXPORT(web_start)(double t)
{
    if (web_model == NULL) {
        web_model = MB2FMU_UNIT(create)();
    }
    if (web_model == NULL) {
        return -1;
    }
    const int failed = MB2FMU_UNIT(set_parameters)(web_model, web_p);
    return failed != 0 ? failed : standalone_begin(web_model, t, web_r, web_x);
}

/* One communication step of length h with web_inputs held. */
int WEB_EXPORT(web_step)(double h)
{
    return MB2FMU_UNIT(step)(web_model, h, web_r, web_x);
}

/* Before a step with other inputs than the last one. */
void WEB_EXPORT(web_inputs_changed)(void)
{
    MB2FMU_UNIT(inputs_changed)(web_model);
}

/* web_outputs at the time and states reached. */
int WEB_EXPORT(web_evaluate)(void)
{
    return MB2FMU_UNIT(outputs)(web_model, MB2FMU_UNIT(time)(web_model), web_x, web_r, web_y);
}
