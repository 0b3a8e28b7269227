/* conditions.c: floating-point traps, flush-to-zero and rounding, by the control register itself: C's fenv.h knows
 * neither traps nor flush-to-zero.
 *
 * x86-64: MXCSR, bits 13-14 rounding, 7-12 masks (1: no trap), 15 flush-to-zero, 6 denormals-are-zero.
 * AArch64: FPCR, bits 22-23 rounding (1 up, 2 down, 3 to zero), 24 flush-to-zero, 8-10 traps (few processors have them).
 */
#include "conditions.h"

#if defined(__x86_64__) || defined(_M_X64)

#include <xmmintrin.h>

driver_control driver_get_control(void)
{
    return _mm_getcsr() & ~0x3Fu;
}

void driver_set_control(driver_control control)
{
    _mm_setcsr((unsigned int)control);
}

driver_control driver_set_conditions(const driver_conditions *wanted)
{
    unsigned int control = 0x1F80u;
    if (wanted->traps) {
        control &= ~(0x80u | 0x200u | 0x400u);
    }
    if (wanted->flush) {
        control |= 0x8040u;
    }
    control |= (unsigned int)wanted->rounding << 13;
    driver_set_control(control);
    return driver_get_control();
}

#elif defined(__aarch64__)

driver_control driver_get_control(void)
{
    unsigned long long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}

void driver_set_control(driver_control control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}

driver_control driver_set_conditions(const driver_conditions *wanted)
{
    static const unsigned long long modes[4] = {0, 2, 1, 3};
    unsigned long long control = modes[wanted->rounding & 3] << 22;
    if (wanted->traps) {
        control |= 7ull << 8;
    }
    if (wanted->flush) {
        control |= 1ull << 24;
    }
    driver_set_control(control);
    return driver_get_control(); /* bits that the processor does not have stay 0 */
}

#else
#error "this processor's control register is not known here"
#endif
