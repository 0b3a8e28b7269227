/* log.c: messages to the host.
 *
 * Why it exists: FMI 2's logger takes a printf format and arguments, but many importers print the format as it is; and
 * printf writes numbers as the host's locale wants them. So messages are complete before they reach the logger, and are
 * made here, with points in numbers.
 *
 * What the standards want: no call without debug logging, and only of categories that are switched on (FMI 2.0.5
 * section 2.1.5, FMI 3.0.2 section 2.3.1); a status other than OK comes with a message of that status; `#` is doubled,
 * because it begins a reference to a variable; in FMI 2 `%` is doubled too, because the message is a format.
 */
#include "instance.h"

#include <stdio.h>

static const char *const mb2fmu_categories[MB2FMU_N_CATEGORIES] = {"logStatusWarning", "logStatusDiscard",
                                                                   "logStatusError"};

typedef struct {
    char *out;
    size_t size;
    size_t length;
} mb2fmu_text;

static void mb2fmu_text_add(mb2fmu_text *text, const char *string)
{
    while (*string != '\0' && text->length + 1 < text->size) {
        text->out[text->length++] = *string++;
    }
    text->out[text->length] = '\0';
}

/* %.15g with a point, whatever the locale's decimal sign is, and the same words for no numbers everywhere. */
static void mb2fmu_text_real(mb2fmu_text *text, double value)
{
    char digits[64];
    char plain[64];
    size_t from;
    size_t to = 0;
    int inside = 0; /* the decimal sign may take several bytes */
    if (isnan(value)) {
        mb2fmu_text_add(text, "NaN");
        return;
    }
    if (isinf(value)) {
        mb2fmu_text_add(text, value > 0.0 ? "infinity" : "-infinity");
        return;
    }
    (void)snprintf(digits, sizeof digits, "%.15g", value);
    for (from = 0; digits[from] != '\0'; ++from) {
        const char c = digits[from];
        if ((c >= '0' && c <= '9') || c == 'e' || c == '+' || c == '-') {
            plain[to++] = c;
            inside = 0;
        } else if (!inside) {
            plain[to++] = '.';
            inside = 1;
        }
    }
    plain[to] = '\0';
    mb2fmu_text_add(text, plain);
}

static void mb2fmu_text_whole(mb2fmu_text *text, unsigned long long value, int negative)
{
    char digits[32];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + (int)(value % 10u));
        value /= 10u;
    } while (value != 0u);
    if (negative) {
        digits[--at] = '-';
    }
    mb2fmu_text_add(text, digits + at);
}

/* One conversion; hands back how many characters it took. */
static size_t mb2fmu_text_convert(mb2fmu_text *text, const char *format, va_list *arguments)
{
    if (strncmp(format, "%s", 2) == 0) {
        const char *const string = va_arg(*arguments, const char *);
        mb2fmu_text_add(text, string == NULL ? "?" : string);
    } else if (strncmp(format, "%g", 2) == 0) {
        mb2fmu_text_real(text, va_arg(*arguments, double));
    } else if (strncmp(format, "%u", 2) == 0) {
        mb2fmu_text_whole(text, va_arg(*arguments, unsigned), 0);
    } else if (strncmp(format, "%d", 2) == 0) {
        const long long value = va_arg(*arguments, int);
        mb2fmu_text_whole(text, (unsigned long long)(value < 0 ? -value : value), value < 0);
    } else if (strncmp(format, "%zu", 3) == 0) {
        mb2fmu_text_whole(text, va_arg(*arguments, size_t), 0);
        return 3;
    } else {
        const char one[2] = {format[0], '\0'};
        mb2fmu_text_add(text, one);
        return 1;
    }
    return 2;
}

static void mb2fmu_print(char out[], size_t size, const char *format, va_list arguments)
{
    mb2fmu_text text;
    va_list rest;
    text.out = out;
    text.size = size;
    text.length = 0;
    out[0] = '\0';
    va_copy(rest, arguments);
    while (*format != '\0') {
        format += mb2fmu_text_convert(&text, format, &rest);
    }
    va_end(rest);
}

/* Characters that mean something to loggers, twice. A character of several bytes that was cut off is left out. */
static void mb2fmu_escape(char out[], size_t size, const char *message)
{
    size_t to = 0;
    size_t last = 0; /* where the last character began */
    for (; *message != '\0' && to + 3 < size; ++message) {
        const int special = *message == '#' || (MB2FMU_FMI == 2 && *message == '%');
        if (((unsigned char)*message & 0xC0u) != 0x80u) {
            last = to;
        }
        out[to++] = *message;
        if (special) {
            out[to++] = *message;
        }
    }
    if (to > 0 && ((unsigned char)out[last] & 0x80u) != 0) {
        const unsigned char lead = (unsigned char)out[last];
        const size_t needed = lead >= 0xF0u ? 4 : (lead >= 0xE0u ? 3 : 2);
        to = to - last < needed ? last : to;
    }
    out[to] = '\0';
}

static enum mb2fmu_status mb2fmu_fail(mb2fmu_instance *instance, enum mb2fmu_status status, const char *format, ...)
{
    const int category = status == MB2FMU_WARNING  ? MB2FMU_CATEGORY_WARNING
                         : status == MB2FMU_DISCARD ? MB2FMU_CATEGORY_DISCARD
                                                    : MB2FMU_CATEGORY_ERROR;
    mb2fmu_text text;
    va_list arguments;
    if (!instance->logging[category] || instance->logger == NULL) {
        return status;
    }
    text.out = instance->message;
    text.size = sizeof instance->message;
    text.length = 0;
    mb2fmu_text_add(&text, instance->function);
    mb2fmu_text_add(&text, ": ");
    va_start(arguments, format);
    mb2fmu_print(text.out + text.length, text.size - text.length, format, arguments);
    va_end(arguments);
    mb2fmu_escape(instance->escaped, sizeof instance->escaped, instance->message);
    mb2fmu_tell(instance, status, mb2fmu_categories[category], instance->escaped);
    return status;
}

static enum mb2fmu_status mb2fmu_set_logging(mb2fmu_instance *instance, int on, size_t n,
                                             const char *const categories[])
{
    const unsigned char value = on ? 1 : 0;
    size_t i;
    int category;
    if (mb2fmu_missing(instance, categories, n, "categories")) {
        return MB2FMU_ERROR;
    }
    for (i = 0; i < n; ++i) {
        for (category = 0; category < MB2FMU_N_CATEGORIES; ++category) {
            if (categories[i] != NULL && strcmp(categories[i], mb2fmu_categories[category]) == 0) {
                break;
            }
        }
        if (category == MB2FMU_N_CATEGORIES) {
            return mb2fmu_fail(instance, MB2FMU_ERROR, "there is no log category '%s'", categories[i]);
        }
    }
    for (category = 0; category < MB2FMU_N_CATEGORIES; ++category) {
        int named = n == 0;
        for (i = 0; i < n; ++i) {
            named = named || strcmp(categories[i], mb2fmu_categories[category]) == 0;
        }
        instance->logging[category] = named ? value : instance->logging[category];
    }
    return MB2FMU_OK;
}
