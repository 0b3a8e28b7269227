/* main.c: a host in plain C that puts a unit through a script of calls, under conditions that hosts may have.
 *
 *   driver LIBRARY 2|3 me|cs TOKEN RESOURCES SCRIPT [--also LIBRARY]... [--global] [--traps] [--flush]
 *          [--rounding 0..3] [--locale NAME] [--threads N] [--stack BYTES] [--instances N] [--verbose]
 *
 * Why it exists: Python hosts set none of these, and need not be rebuilt with sanitizers. Prints what script.c says of the
 * first instance in the first thread; exit code 0 if all others said the same and no setting was changed, 1 if not,
 * 2 if the unit cannot be loaded, 77 if this machine has no such locale.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"
#include "system.h"

enum { THREADS = 64, OTHERS = 64 };

typedef struct {
    driver_conditions conditions;
    const char *others[OTHERS];
    size_t other_count, threads, stack, instances;
    const char *locale;
    int global, verbose;
} options;

/* Options with a value; 0 if there is no such. */
static int valued(options *o, const char *name, const char *value)
{
    const size_t size = strtoul(value, NULL, 10);
    if (strcmp(name, "--also") == 0 && o->other_count < OTHERS) {
        o->others[o->other_count++] = value;
    } else if (strcmp(name, "--rounding") == 0) {
        o->conditions.rounding = (int)size;
    } else if (strcmp(name, "--locale") == 0) {
        o->locale = value;
    } else if (strcmp(name, "--threads") == 0 && size <= THREADS) {
        o->threads = size;
    } else if (strcmp(name, "--stack") == 0) {
        o->stack = size;
    } else if (strcmp(name, "--instances") == 0 && size > 0) {
        o->instances = size;
    } else {
        return 0;
    }
    return 1;
}

static int read_options(options *o, int count, char **words)
{
    for (int i = 0; i < count; ++i) {
        if (strcmp(words[i], "--global") == 0) {
            o->global = 1;
        } else if (strcmp(words[i], "--traps") == 0) {
            o->conditions.traps = 1;
        } else if (strcmp(words[i], "--flush") == 0) {
            o->conditions.flush = 1;
        } else if (strcmp(words[i], "--verbose") == 0) {
            o->verbose = 1;
        } else if (i + 1 < count && valued(o, words[i], words[i + 1])) {
            ++i;
        } else {
            fprintf(stderr, "what is %s?\n", words[i]);
            return 0;
        }
    }
    return 1;
}

static char *content(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = (char *)calloc(1, 1u << 16);
    if (file != NULL && text != NULL) {
        (void)fread(text, 1, (1u << 16) - 1, file);
        (void)fclose(file);
        return text;
    }
    fprintf(stderr, "%s cannot be read\n", path);
    free(text);
    return NULL;
}

/* The script in all threads; how many disagreed with the first or failed. */
static int run_all(const unit *u, const char *script, const options *o)
{
    static driver_run runs[THREADS];
    const size_t count = o->threads > 0 ? o->threads : 1;
    int failed = 0;
    for (size_t i = 0; i < count; ++i) {
        runs[i].unit = u;
        runs[i].script = script;
        runs[i].instances = o->instances;
        runs[i].conditions = o->conditions;
    }
    if (o->threads == 0) {
        driver_run_script(&runs[0]);
    } else {
        failed += driver_threads(driver_run_script, runs, sizeof runs[0], count, o->stack);
    }
    for (size_t i = 0; i < count; ++i) {
        const char *text = runs[i].output.text ? runs[i].output.text : "";
        const int differs = i > 0 && strcmp(text, runs[0].output.text ? runs[0].output.text : "") != 0;
        if (i == 0 || differs) {
            (void)fputs(differs ? "a thread answers otherwise:\n" : "", stdout);
            (void)fputs(text, stdout);
        }
        failed += runs[i].failed + differs;
    }
    for (size_t i = 0; i < count; ++i) {
        free(runs[i].output.text);
    }
    return failed;
}

static int run_unit(char **words, const options *o)
{
    void *others[OTHERS];
    unit u = {NULL, NULL, NULL, words[3], words[4], strcmp(words[2], "me") == 0, o->verbose};
    char *script = content(words[5]);
    size_t loaded = 0;
    int result = 2;
    while (loaded < o->other_count && (others[loaded] = driver_open(o->others[loaded], o->global)) != NULL) {
        ++loaded;
    }
    u.library = loaded == o->other_count ? driver_open(words[0], o->global) : NULL;
    if (u.library != NULL && script != NULL && (strcmp(words[1], "2") == 0 ? driver_load2(&u) : driver_load3(&u))) {
        result = run_all(&u, script, o) != 0;
    }
    if (u.library != NULL) {
        driver_close(u.library);
    }
    while (loaded > 0) {
        driver_close(others[--loaded]);
    }
    free(script);
    return result;
}

int main(int count, char **words)
{
    options o;
    memset(&o, 0, sizeof o);
    o.instances = 1;
    if (count < 7 || !read_options(&o, count - 7, words + 7)) {
        fprintf(stderr, "driver LIBRARY 2|3 me|cs TOKEN RESOURCES SCRIPT [OPTION]...\n");
        return 2;
    }
    if (o.locale != NULL && setlocale(LC_ALL, o.locale) == NULL) {
        fprintf(stderr, "there is no locale %s\n", o.locale);
        return 77;
    }
    return run_unit(words + 1, &o);
}
