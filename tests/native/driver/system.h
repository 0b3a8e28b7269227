/* system.h: what differs between POSIX and Windows: shared libraries and threads. */
#ifndef DRIVER_SYSTEM_H
#define DRIVER_SYSTEM_H

#include <stddef.h>

typedef void driver_function(void);
typedef void driver_work(void *);

/* Loads a library; its path is UTF-8. NULL on failure, which is told on stderr. */
void *driver_open(const char *path, int global);
void driver_close(void *library);
driver_function *driver_symbol(void *library, const char *name);

/* Runs work(items + i * size) for each i in a thread of its own, all at once. 0 on success. */
int driver_threads(driver_work *work, void *items, size_t size, size_t count, size_t stack);

#endif
