/* string.h of a module for a page; defined in web.c. */
#ifndef MB2FMU_WEB_STRING_H
#define MB2FMU_WEB_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *one, const void *other, size_t n);
size_t strlen(const char text[]);
char *strchr(const char text[], int letter);

#endif
