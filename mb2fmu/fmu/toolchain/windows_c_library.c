/* windows_c_library.c: the functions of C that libraries for Windows need and Windows itself does not have.
 *
 * Windows has the Universal C Runtime, and zig has lists of its functions. The rest of C is in mingw-w64's library,
 * which zig compiles from some 450 files when it links for Windows the first time: minutes, for the few functions
 * below. A library that is linked with this file needs neither that library nor its start-up code: there is nothing to
 * construct.
 * It includes no header, because zig finds none where it links without that library.
 */
#include <stdarg.h>
#include <stddef.h>

/* What Microsoft's headers and mingw-w64's call for all functions that print into a string. */
extern int __stdio_common_vsprintf(unsigned long long options, char *text, size_t size, const char *format,
                                   void *locale, va_list arguments);
/* _CRT_INTERNAL_PRINTF_STANDARD_SNPRINTF_BEHAVIOR: ends the text, returns its whole length. */
enum { STANDARD_SNPRINTF = 2 };

int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    const int length = __stdio_common_vsprintf(STANDARD_SNPRINTF, text, size, format, NULL, arguments);
    return length < 0 ? -1 : length;
}

int snprintf(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return length;
}

/* What isnan, signbit and, by the classes of numbers, isfinite and isinf are in mingw-w64's math.h. */
enum { CLASS_NAN = 0x0100, CLASS_NORMAL = 0x0400, CLASS_ZERO = 0x4000 };

int __isnan(double x) { return __builtin_isnan(x) != 0; }
int __signbit(double x) { return __builtin_signbit(x) != 0; }
int __fpclassify(double x)
{
    enum { CLASS_INFINITE = CLASS_NAN | CLASS_NORMAL, CLASS_SUBNORMAL = CLASS_NORMAL | CLASS_ZERO };
    return __builtin_fpclassify(CLASS_NAN, CLASS_INFINITE, CLASS_NORMAL, CLASS_SUBNORMAL, CLASS_ZERO, x);
}
