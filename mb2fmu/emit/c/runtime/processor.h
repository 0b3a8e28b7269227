/* processor.h: what the processor that runs this can do. */
#ifndef MB2FMU_PROCESSOR_H
#define MB2FMU_PROCESSOR_H

#include "portability.h"

#if defined(__GNUC__) && defined(__x86_64__)
#define MB2FMU_CAN_ASK 1

MB2FMU_UNUSED static void mb2fmu_cpuid(unsigned leaf, unsigned registers[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
                     : "a"(leaf), "c"(0u));
}

/* The processor has the instructions, and the system keeps the registers when it changes between threads. Intel 64 and
 * IA-32 Architectures Software Developer's Manual, volume 1, section 14.3. */
MB2FMU_UNUSED static int mb2fmu_has_avx2(void)
{
    const unsigned fma = 1u << 12, saved = 1u << 27, avx = 1u << 28, avx2 = 1u << 5, registers_kept = 6u;
    unsigned first[4], seventh[4], low, high, wanted = saved | avx;
#ifdef MB2FMU_WITH_FMA
    wanted |= fma;
#else
    (void)fma;
#endif
    mb2fmu_cpuid(0u, first);
    if (first[0] < 7u) {
        return 0;
    }
    mb2fmu_cpuid(1u, first);
    if ((first[2] & wanted) != wanted) {
        return 0;
    }
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0u));
    (void)high;
    mb2fmu_cpuid(7u, seventh);
    return (low & registers_kept) == registers_kept && (seventh[1] & avx2) != 0u;
}

#endif

#endif
