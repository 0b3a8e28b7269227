/* hostile.c: the ball of FMI 2 that harms its host in the way that a number says, which is patched into the binary. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "fmi2Functions.h"
#undef fmi2Instantiate
#define fmi2Instantiate calm_Instantiate
#undef fmi2DoStep
#define fmi2DoStep calm_DoStep
#undef fmi2FreeInstance
#define fmi2FreeInstance calm_FreeInstance
#undef fmi2GetString
#define fmi2GetString calm_GetString
#undef fmi2SerializedFMUstateSize
#define fmi2SerializedFMUstateSize calm_SerializedFMUstateSize
#include "ball2.c"
#undef fmi2Instantiate
#undef fmi2DoStep
#undef fmi2FreeInstance
#undef fmi2GetString
#undef fmi2SerializedFMUstateSize

volatile const char harm_slot[16] = "HARM=000";
static int harm(void) { return atoi((const char *)harm_slot + 5); }
static char folder[2048];

static void spin(void) { for (volatile long k = 0;; ++k) {} }
static void wait_long(void) { for (;;) sleep(1000); }
static void *spinner(void *p) { (void)p; spin(); return NULL; }
static int deep(int n) { volatile char room[65536]; room[0] = (char)n; return deep(n + 1) + room[0]; }
static void put(const char *path, long size)
{
    FILE *file = fopen(path, "w");
    while (file && size-- > 0) fputc('x', file);
    if (file) fclose(file);
}
static void wipe(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        char name[4096];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_type == DT_DIR) { wipe(name); rmdir(name); } else unlink(name);
    }
    if (d) closedir(d);
}
static void connect_to(int listening)
{
    struct sockaddr_in a;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = listening ? 0 : htons(9);
    if (s >= 0 && listening) { bind(s, (struct sockaddr *)&a, sizeof a); listen(s, 1); }
    else if (s >= 0) connect(s, (struct sockaddr *)&a, sizeof a);
}
static void daemon_like(void)
{
    if (fork() == 0) { setsid(); if (fork() == 0) wait_long(); _exit(0); }
}

static void goes_on(int number) { (void)number; }
static void locked_folders(void)
{
    int k;
    if (symlink("/usr", "link")) {}
    for (k = 0; k < 200; ++k) { if (mkdir("deep", 0700) || chdir("deep")) break; put("x", 1); }
    for (k = 0; k < 200; ++k) { if (chdir("..")) break; chmod("deep", 0); }
}
static void write_into(pid_t other)
{
    char text[8] = "hostile";
    struct iovec from = {text, 8}, to = {(void *)&write_into, 8};
    syscall(SYS_process_vm_writev, other, &from, 1ul, &to, 1ul, 0ul);
}
static void *spinner_apart(void *p) { for (;;) sleep(1000); return p; }

__attribute__((constructor)) static void at_loading(void)
{
    switch (harm()) {
    case 1: exit(0);
    case 2: abort();
    case 3: spin();
    case 4: *(volatile int *)8 = 1;
    case 5: kill(getppid(), SIGKILL); break;
    case 6: printf("loaded\n"); fflush(stdout); break;
    }
}
__attribute__((destructor)) static void at_unloading(void) { if (harm() == 7) abort(); }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    if (resources && !strncmp(resources, "file://", 7)) {
        const char *from = resources + 7;
        char *to = folder;
        for (; *from && to < folder + sizeof folder - 1; ++from) {
            unsigned code;
            if (*from == '%' && sscanf(from + 1, "%2x", &code) == 1) { *to++ = (char)code; from += 2; } else *to++ = *from;
        }
        *to = 0;
    }
    switch (harm()) {
    case 11: spin();
    case 12: wait_long();
    case 13: exit(0);
    case 14: _exit(77);
    case 15: return NULL;
    case 16: { char *p; while ((p = malloc(1 << 22))) memset(p, 1, 1 << 22); break; }
    case 17: raise(SIGSTOP); break;
    case 18: chdir("/"); break;
    case 19: wipe(folder); { char up[2100]; snprintf(up, sizeof up, "%s/..", folder); wipe(up); } break;
    case 20: alarm(1); break;
    case 21: while (1) functions->logger(functions->componentEnvironment, name, fmi2OK, "logAll", "again");
    case 22: functions->logger(NULL, NULL, fmi2OK, NULL, NULL); break;
    case 23: { sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, NULL); signal(SIGTERM, SIG_IGN); spin(); }
    }
    return calm_Instantiate(name, type, guid, resources, functions, visible, logging);
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real point, fmi2Real size, fmi2Boolean no)
{
    char path[4096];
    int k;
    switch (harm()) {
    case 31: spin();
    case 32: wait_long();
    case 33: *(volatile int *)8 = 1;
    case 34: raise(SIGFPE); break;
    case 35: __builtin_trap();
    case 36: deep(0);
    case 37: { char *volatile p = malloc(5000); char *volatile q = malloc(5000); free(p); free(p); (void)q; break; }
    case 38: kill(getppid(), SIGKILL); break;
    case 39: kill(-1, SIGKILL); break;
    case 40: raise(SIGKILL); break;
    case 41: if (fork() == 0) spin(); break;
    case 42: daemon_like(); break;
    case 43: for (;;) if (fork() < 0) break; break;
    case 44: if (system("sleep 1000 &")) {} break;
    case 45: { FILE *p = popen("sleep 1000", "r"); (void)p; break; }
    case 46: execl("/bin/sleep", "sleep", "1000", (char *)NULL); break;
    case 47: connect_to(0); break;
    case 48: connect_to(1); break;
    case 49: snprintf(path, sizeof path, "%s/written", folder); put(path, 3); break;
    case 50: snprintf(path, sizeof path, "%s/.ball", getenv("HOME") ? getenv("HOME") : "."); put(path, 3); break;
    case 51: put("here.txt", 3); break;
    case 52: put("/var/tmp/mb2fmu-hostile-left", 3); break;
    case 53: for (k = 0; k < 256; ++k) if (write(k, "{\"done\": true}\n", 15)) {} break;
    case 54: for (k = 0; k < 256; ++k) close(k); break;
    case 55: { pthread_t t; pthread_create(&t, NULL, spinner, NULL); break; }
    case 56: for (k = 0; k < 200000; ++k) printf("step %d\n", k); fflush(stdout); break;
    case 57: ptrace(PTRACE_ATTACH, getppid(), 0, 0); break;
    case 58: for (k = 0; k < 3; ++k) open("/dev/null", O_RDONLY); break;
    case 59: put("large.bin", 300L << 20); break;
    case 60: pthread_exit(NULL);
    case 61: sethostname("hostile", 7); break;
    case 62: return (fmi2Status)42;
    case 63: snprintf(path, sizeof path, "%s/../modelDescription.xml", folder); put(path, 3); break;
    case 64: snprintf(path, sizeof path, "%s/ball.tmp", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"); put(path, 3); break;
    case 65: setrlimit(RLIMIT_STACK, &(struct rlimit){65536, 65536}); break;
    case 66: unlink("/etc/mb2fmu-there-is-none"); break;
    case 67: umask(0); break;
    case 68: setenv("LC_ALL", "C", 1); setenv("HOME", "/", 1); break;
    case 82: for (k = 1; k < 32; ++k) signal(k, goes_on); *(volatile int *)8 = 1; break;
    case 83: prctl(PR_SET_PDEATHSIG, 0); setpgid(0, 0); setsid(); spin();
    case 84: shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); break;
    case 85: { char room[256] = {0}; syscall(SYS_io_uring_setup, 4, room); break; }
    case 86: { int fd = (int)syscall(SYS_pidfd_open, getppid(), 0); syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0); break; }
    case 87: write_into(getppid()); break;
    case 88: locked_folders(); break;
    case 89: for (;;) { pthread_t t; if (pthread_create(&t, NULL, spinner_apart, NULL)) break; } break;
    case 90: syslog(LOG_INFO, "a step"); break;
    case 91: unshare(CLONE_NEWUSER | CLONE_NEWNS); break;
    case 92: mkfifo("pipe", 0600); k = open("pipe", O_WRONLY); break;
    case 93: { cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one); sched_setaffinity(0, sizeof one, &one); break; }
    case 95: { pthread_t t; pthread_create(&t, NULL, spinner_apart, NULL); break; }
    case 94: close(0); open("/dev/zero", O_RDONLY); break;
    }
    return calm_DoStep(c, point, size, no);
}

void fmi2FreeInstance(fmi2Component c)
{
    if (harm() == 71 && c) spin();
    if (harm() == 72 && c) { calm_FreeInstance(c); *(volatile int *)8 = 1; }
    calm_FreeInstance(c);
}

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String value[])
{
    fmi2Status s = calm_GetString(c, vr, n, value);
    size_t k;
    for (k = 0; k < n && harm() == 73; ++k) value[k] = (fmi2String)8;
    return s;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size)
{
    fmi2Status s = calm_SerializedFMUstateSize(c, state, size);
    if (harm() == 74) *size = (size_t)1 << 60;
    return s;
}
