/* stdio.h of a module for a page; defined in web.c. */
#ifndef MB2FMU_WEB_STDIO_H
#define MB2FMU_WEB_STDIO_H

#include <stddef.h>

int snprintf(char *restrict to, size_t room, const char *restrict format, ...);

#endif
