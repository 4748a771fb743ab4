/* SPDX-License-Identifier: MIT */
#include "source/alsa/values.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Converts x, whose full scale is 1, to the nearest integer of `bits` bits. Limits the integer to
 * its range. */
static int32_t quantize(double x, int bits)
{
    const double scale = ldexp(1, bits - 1);

    return (int32_t)fmin(fmax(rint(x * scale), -scale), scale - 1);
}

static void read_float(const unsigned char *from, size_t n_values, float *to)
{
    memcpy(to, from, n_values * sizeof *to);
}

static void write_float(const double *from, size_t n_values, unsigned char *to)
{
    for (size_t i = 0; i < n_values; i++) {
        const float x = (float)from[i];

        memcpy(to + 4 * i, &x, sizeof x);
    }
}

static void read_s32(const unsigned char *from, size_t n_values, float *to)
{
    for (size_t i = 0; i < n_values; i++) {
        int32_t x;

        memcpy(&x, from + 4 * i, sizeof x);
        to[i] = (float)x * 0x1p-31f;
    }
}

static void write_s32(const double *from, size_t n_values, unsigned char *to)
{
    for (size_t i = 0; i < n_values; i++) {
        const int32_t x = quantize(from[i], 32);

        memcpy(to + 4 * i, &x, sizeof x);
    }
}

/* Converts a 24-bit sample to a float. Bit 23 is its sign. */
static float value_of_24(uint32_t bits)
{
    return (float)(int32_t)(bits << 8) * 0x1p-31f;
}

static void read_s24(const unsigned char *from, size_t n_values, float *to)
{
    for (size_t i = 0; i < n_values; i++) {
        uint32_t bits;

        memcpy(&bits, from + 4 * i, sizeof bits);
        to[i] = value_of_24(bits);
    }
}

static void write_s24(const double *from, size_t n_values, unsigned char *to)
{
    for (size_t i = 0; i < n_values; i++) {
        const int32_t x = quantize(from[i], 24);

        memcpy(to + 4 * i, &x, sizeof x);
    }
}

static void read_s24_3le(const unsigned char *from, size_t n_values, float *to)
{
    for (size_t i = 0; i < n_values; i++, from += 3)
        to[i] = value_of_24((uint32_t)from[2] << 16 | (uint32_t)from[1] << 8 | from[0]);
}

static void write_s24_3le(const double *from, size_t n_values, unsigned char *to)
{
    for (size_t i = 0; i < n_values; i++) {
        const uint32_t x = (uint32_t)quantize(from[i], 24);

        for (int byte = 0; byte < 3; byte++)
            *to++ = (unsigned char)(x >> 8 * byte);
    }
}

static void read_s16(const unsigned char *from, size_t n_values, float *to)
{
    for (size_t i = 0; i < n_values; i++) {
        int16_t x;

        memcpy(&x, from + 2 * i, sizeof x);
        to[i] = (float)x * 0x1p-15f;
    }
}

static void write_s16(const double *from, size_t n_values, unsigned char *to)
{
    for (size_t i = 0; i < n_values; i++) {
        const int16_t x = (int16_t)quantize(from[i], 16);

        memcpy(to + 2 * i, &x, sizeof x);
    }
}

const pnr_alsa_values pnr_alsa_formats[PNR_ALSA_FORMATS] = {
    {SND_PCM_FORMAT_FLOAT, "FLOAT_LE", 4, read_float, write_float},
    {SND_PCM_FORMAT_S32, "S32_LE", 4, read_s32, write_s32},
    {SND_PCM_FORMAT_S24, "S24_LE", 4, read_s24, write_s24},
    {SND_PCM_FORMAT_S24_3LE, "S24_3LE", 3, read_s24_3le, write_s24_3le},
    {SND_PCM_FORMAT_S16, "S16_LE", 2, read_s16, write_s16},
};
