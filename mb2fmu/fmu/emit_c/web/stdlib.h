/* stdlib.h of a module for a page; defined in web.c. */
#ifndef MB2FMU_WEB_STDLIB_H
#define MB2FMU_WEB_STDLIB_H

#include <stddef.h>

void *calloc(size_t count, size_t size);
void free(void *memory);

#endif
