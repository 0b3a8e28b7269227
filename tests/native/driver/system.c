/* system.c: shared libraries and threads, on POSIX and Windows. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    driver_work *work;
    void *item;
} task;

#if defined(_WIN32)

#include <windows.h>

void *driver_open(const char *path, int global)
{
    wchar_t wide[4096];
    HMODULE library = NULL;
    (void)global;
    if (MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096) > 0) {
        library = LoadLibraryW(wide);
    }
    if (library == NULL) {
        fprintf(stderr, "%s cannot be loaded: error %lu\n", path, GetLastError());
    }
    return (void *)library;
}

void driver_close(void *library)
{
    (void)FreeLibrary((HMODULE)library);
}

driver_function *driver_symbol(void *library, const char *name)
{
    FARPROC found = GetProcAddress((HMODULE)library, name);
    driver_function *result = NULL;
    memcpy(&result, &found, sizeof result);
    return result;
}

static DWORD WINAPI thread_begin(LPVOID argument)
{
    const task *mine = (const task *)argument;
    mine->work(mine->item);
    return 0;
}

int driver_threads(driver_work *work, void *items, size_t size, size_t count, size_t stack)
{
    HANDLE *threads = (HANDLE *)calloc(count, sizeof *threads);
    task *tasks = (task *)calloc(count, sizeof *tasks);
    int failed = threads == NULL || tasks == NULL;
    size_t begun = 0;
    while (!failed && begun < count) {
        tasks[begun].work = work;
        tasks[begun].item = (char *)items + begun * size;
        threads[begun] = CreateThread(NULL, stack, thread_begin, &tasks[begun], STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
        failed = threads[begun] == NULL;
        begun += failed ? 0u : 1u;
    }
    for (size_t i = 0; i < begun; ++i) {
        (void)WaitForSingleObject(threads[i], INFINITE);
        (void)CloseHandle(threads[i]);
    }
    free(tasks);
    free(threads);
    return failed;
}

#else

#include <dlfcn.h>
#include <pthread.h>

void *driver_open(const char *path, int global)
{
    void *library = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library == NULL) {
        fprintf(stderr, "%s cannot be loaded: %s\n", path, dlerror());
    }
    return library;
}

void driver_close(void *library)
{
    (void)dlclose(library);
}

driver_function *driver_symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    driver_function *result = NULL;
    memcpy(&result, &found, sizeof result); /* ISO C has no conversion; POSIX says that they are alike */
    return result;
}

static void *thread_begin(void *argument)
{
    const task *mine = (const task *)argument;
    mine->work(mine->item);
    return NULL;
}

int driver_threads(driver_work *work, void *items, size_t size, size_t count, size_t stack)
{
    pthread_t *threads = (pthread_t *)calloc(count, sizeof *threads);
    task *tasks = (task *)calloc(count, sizeof *tasks);
    pthread_attr_t attributes;
    int failed = threads == NULL || tasks == NULL || pthread_attr_init(&attributes) != 0;
    size_t begun = 0;
    if (!failed && stack > 0) {
        failed = pthread_attr_setstacksize(&attributes, stack) != 0;
    }
    while (!failed && begun < count) {
        tasks[begun].work = work;
        tasks[begun].item = (char *)items + begun * size;
        failed = pthread_create(&threads[begun], &attributes, thread_begin, &tasks[begun]) != 0;
        begun += failed ? 0u : 1u;
    }
    for (size_t i = 0; i < begun; ++i) {
        (void)pthread_join(threads[i], NULL);
    }
    free(tasks);
    free(threads);
    return failed;
}

#endif
