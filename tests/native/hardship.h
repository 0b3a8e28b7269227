/* hardship.h: what a unit that is built for hardship.c sees before everything else (-include): memory that may fail,
 * and a printf of another country. */
#ifndef MB2FMU_HARDSHIP_H
#define MB2FMU_HARDSHIP_H

#include <stddef.h>

void *hardship_calloc(size_t n, size_t size);
void hardship_free(void *block);

#define MB2FMU_CALLOC(n, size) hardship_calloc((n), (size))
#define MB2FMU_FREE(block) hardship_free(block)

#endif
