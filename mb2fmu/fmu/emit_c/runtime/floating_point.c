/* floating_point.c: the FMU's own floating-point environment, and the host's given back.
 *
 * Why it exists: a host may unmask floating-point traps, flush subnormal numbers to zero or round in another way. The
 * first kills the process at a harmless NaN of a rejected step, the others change the motion. So every call saves the
 * host's settings, computes with traps masked, subnormal numbers and rounding to nearest, and puts back what it found,
 * flags included; callbacks run in the host's settings (FMI 2.0.5 section 2.1, FMI 3.0.2 section 2.2.1: settings of the
 * thread are restored before a function returns or calls back).
 *
 * The compiler does not know that arithmetic depends on these registers: what computes must be a function that is not
 * inlined into the one that switches (MB2FMU_NOINLINE).
 */
#include "floating_point.h"

#if defined(__x86_64__) || defined(_M_X64)

#include <xmmintrin.h>

/* MXCSR: all six exceptions masked, no flags, to nearest, neither flush-to-zero nor denormals-are-zero. */
#define MB2FMU_MXCSR 0x1F80u

static void mb2fmu_environment_enter(mb2fmu_environment *host)
{
    *host = _mm_getcsr();
    _mm_setcsr(MB2FMU_MXCSR);
}

static void mb2fmu_environment_leave(const mb2fmu_environment *host)
{
    _mm_setcsr(*host);
}

#elif defined(__aarch64__) && defined(__GNUC__)

/* FPCR = 0: traps off, to nearest, no flush-to-zero; FPSR holds the flags. */
static void mb2fmu_environment_enter(mb2fmu_environment *host)
{
    const unsigned long long ours = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(host->control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(host->status));
    __asm__ volatile("msr fpcr, %0" : : "r"(ours) : "memory");
}

static void mb2fmu_environment_leave(const mb2fmu_environment *host)
{
    __asm__ volatile("msr fpsr, %0" : : "r"(host->status) : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(host->control) : "memory");
}

#else

static void mb2fmu_environment_enter(mb2fmu_environment *host)
{
    (void)feholdexcept(host);
    (void)fesetround(FE_TONEAREST);
}

static void mb2fmu_environment_leave(const mb2fmu_environment *host)
{
    (void)fesetenv(host);
}

#endif
