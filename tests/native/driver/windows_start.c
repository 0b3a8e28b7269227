/* windows_start.c: a start for programs of Windows that are linked without mingw-w64's C library, which zig builds in
 * minutes; what else they lack is in the package's windows_c_library.c. Empty on other platforms. */
#if defined(_WIN32)
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char *argv[]);
int _configure_narrow_argv(int mode);
void __main(void);
void start_program(void);

void __main(void) {}

void start_program(void)
{
    (void)_configure_narrow_argv(1);
    exit(main(*__p___argc(), *__p___argv()));
}

int fprintf(FILE *stream, const char *format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = __stdio_common_vfprintf(0, stream, format, NULL, arguments);
    va_end(arguments);
    return length;
}
#else
typedef int nothing_to_start;
#endif
