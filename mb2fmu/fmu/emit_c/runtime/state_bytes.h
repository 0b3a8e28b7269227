/* state_bytes.h: numbers as bytes that mean the same on every platform.
 *
 * Why it exists: the state of an FMU, serialized on one machine, is continued on another (FMI 2.0.5 section 2.1.8,
 * FMI 3.0.2 section 2.2.6.4). Nothing is copied as it lies in memory; every number has its place, little endian,
 * doubles as their 64 bits of IEEE 754, integers as 64 bits in two's complement.
 *
 * One function describes the layout of a structure for all three directions: counting, writing and reading:
 *     mb2fmu_stream_reals(stream, integrator->x, MB2FMU_N_STATES);
 */
#ifndef MB2FMU_STATE_BYTES_H
#define MB2FMU_STATE_BYTES_H

#include <stddef.h>

enum mb2fmu_direction { MB2FMU_COUNTING = 0, MB2FMU_WRITING, MB2FMU_READING };

/* `out` is written, `in` is read; `at` counts the bytes passed; what lies behind `size` is never touched. */
typedef struct {
    enum mb2fmu_direction direction;
    unsigned char *out;
    const unsigned char *in;
    size_t size;
    size_t at;
} mb2fmu_stream;

/* n bytes as they are. */
static void mb2fmu_stream_bytes(mb2fmu_stream *stream, unsigned char bytes[], size_t n);

/* One number, or n of them. */
static void mb2fmu_stream_real(mb2fmu_stream *stream, double *value);
static void mb2fmu_stream_reals(mb2fmu_stream *stream, double values[], int n);
static void mb2fmu_stream_integer(mb2fmu_stream *stream, long long *value);
static void mb2fmu_stream_int(mb2fmu_stream *stream, int *value);

#endif
