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

/* What the system keeps of the registers when it changes between threads; 0 if the processor lacks any of `wanted`.
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, sections 14.3 and 15.2. */
MB2FMU_UNUSED static unsigned mb2fmu_registers_kept(unsigned wanted)
{
    unsigned first[4], low, high;
    mb2fmu_cpuid(0u, first);
    if (first[0] < 7u) {
        return 0u;
    }
    mb2fmu_cpuid(1u, first);
    if ((first[2] & wanted) != wanted) {
        return 0u;
    }
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0u));
    (void)high;
    return low;
}

/* The processor has the instructions, and the system keeps the registers. */
MB2FMU_UNUSED static int mb2fmu_has_avx2(void)
{
    const unsigned fma = 1u << 12, saved = 1u << 27, avx = 1u << 28, avx2 = 1u << 5, registers = 6u;
    unsigned seventh[4], wanted = saved | avx;
#ifdef MB2FMU_WITH_FMA
    wanted |= fma;
#else
    (void)fma;
#endif
    if ((mb2fmu_registers_kept(wanted) & registers) != registers) {
        return 0;
    }
    mb2fmu_cpuid(7u, seventh);
    return (seventh[1] & avx2) != 0u;
}

/* The parts F, DQ and VL of AVX-512. */
MB2FMU_UNUSED static int mb2fmu_has_avx512(void)
{
    const unsigned parts = 1u << 16 | 1u << 17 | 1u << 31, registers = 0xe6u;
    unsigned seventh[4];
    if (!mb2fmu_has_avx2() || (mb2fmu_registers_kept(1u << 27) & registers) != registers) {
        return 0;
    }
    mb2fmu_cpuid(7u, seventh);
    return (seventh[1] & parts) == parts;
}

#endif

#endif
