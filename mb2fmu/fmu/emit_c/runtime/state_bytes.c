/* state_bytes.c: numbers as bytes that mean the same on every platform; see state_bytes.h. */
#include "state_bytes.h"

#include <string.h>

static void mb2fmu_stream_bytes(mb2fmu_stream *stream, unsigned char bytes[], size_t n)
{
    if (stream->direction != MB2FMU_COUNTING && n <= stream->size && stream->at <= stream->size - n) {
        if (stream->direction == MB2FMU_WRITING) {
            memcpy(stream->out + stream->at, bytes, n);
        } else {
            memcpy(bytes, stream->in + stream->at, n);
        }
    }
    stream->at += n;
}

/* 64 bits, the lowest byte first. */
static void mb2fmu_stream_bits(mb2fmu_stream *stream, unsigned long long *bits)
{
    unsigned char bytes[8];
    unsigned long long value = *bits;
    int i;
    for (i = 0; i < 8; ++i) {
        bytes[i] = (unsigned char)((value >> (8 * i)) & 0xFFu);
    }
    mb2fmu_stream_bytes(stream, bytes, sizeof bytes);
    value = 0;
    for (i = 0; i < 8; ++i) {
        value |= (unsigned long long)bytes[i] << (8 * i);
    }
    *bits = value;
}

static void mb2fmu_stream_real(mb2fmu_stream *stream, double *value)
{
    unsigned long long bits;
    memcpy(&bits, value, sizeof bits);
    mb2fmu_stream_bits(stream, &bits);
    memcpy(value, &bits, sizeof bits);
}

static void mb2fmu_stream_reals(mb2fmu_stream *stream, double values[], int n)
{
    int i;
    for (i = 0; i < n; ++i) {
        mb2fmu_stream_real(stream, &values[i]);
    }
}

static void mb2fmu_stream_integer(mb2fmu_stream *stream, long long *value)
{
    unsigned long long bits;
    memcpy(&bits, value, sizeof bits);
    mb2fmu_stream_bits(stream, &bits);
    memcpy(value, &bits, sizeof bits);
}

static void mb2fmu_stream_int(mb2fmu_stream *stream, int *value)
{
    long long wide = *value;
    mb2fmu_stream_integer(stream, &wide);
    *value = (int)wide;
}
