/* SPDX-License-Identifier: MIT */
/* The cpu engine's loops over samples, in plain C that the compiler vectorises. */
#include "engine/cpu/ops.h"

#include "base/multiversion.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256, SUM_BLOCK = 2048, LANES = 64 };

/* Converts packed integers: one value in each sample, or two in a complex format. Clipped samples
 * are counted only in a block that has a clipped value; nearly no block has one. A sample whose I
 * and Q are both clipped counts once. */
#define DEFINE_CONVERT_PACKED(name, type, low, high, offset, scale)                                \
    static uint64_t name##_clipped(const type *in, size_t count, size_t values)                    \
    {                                                                                              \
        uint64_t clipped = 0;                                                                      \
                                                                                                   \
        for (size_t i = 0; i < count; i += values)                                                 \
            clipped += in[i] == (low) || in[i] == (high) || in[i + values - 1] == (low) ||         \
                       in[i + values - 1] == (high);                                               \
        return clipped;                                                                            \
    }                                                                                              \
                                                                                                   \
    PNR_MULTIVERSION static void name(const type *raw, size_t n_values, size_t values, float *out, \
                                      pnr_converted *total)                                        \
    {                                                                                              \
        for (size_t first = 0; first < n_values; first += (size_t)2 * BLOCK) {                     \
            const size_t count =                                                                   \
                n_values - first < (size_t)2 * BLOCK ? n_values - first : (size_t)2 * BLOCK;       \
            const type *in = raw + first;                                                          \
            float *to = out + first;                                                               \
            type any = 0;                                                                          \
                                                                                                   \
            for (size_t i = 0; i < count; i++) {                                                   \
                to[i] = ((float)in[i] + (offset)) * (scale);                                       \
                any |= (type)((in[i] == (low)) | (in[i] == (high)));                               \
            }                                                                                      \
            if (any)                                                                               \
                total->n_clipped += name##_clipped(in, count, values);                             \
        }                                                                                          \
    }

DEFINE_CONVERT_PACKED(convert_i8, int8_t, -128, 127, 0.0f, 1.0f / 128)
DEFINE_CONVERT_PACKED(convert_u8, uint8_t, 0, 255, -127.5f, 1.0f / 128)
DEFINE_CONVERT_PACKED(convert_i16, int16_t, -32768, 32767, 0.0f, 1.0f / 32768)

/* Converts one sample at a time. Serves the formats that convert_packed refuses, and samples that
 * are not adjacent in memory. */
static void convert_plain(pnr_format format, const char *raw, size_t stride, size_t n,
                          float (*out)[2], pnr_converted *total)
{
    for (size_t i = 0; i < n; i++) {
        double x[2];
        const unsigned flags = pnr_format_read(format, raw + i * stride, x);

        total->n_clipped += (flags & PNR_SAMPLE_CLIPPED) != 0;
        total->n_nonfinite += (flags & PNR_SAMPLE_NONFINITE) != 0;
        out[i][0] = (float)x[0];
        out[i][1] = (float)x[1];
    }
}

PNR_MULTIVERSION static void convert_cf32(const float (*raw)[2], size_t n, float (*out)[2],
                                          pnr_converted *total)
{
    size_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        /* x - x is 0 for a finite x, NaN for NaN and Inf */
        const int finite = raw[i][0] - raw[i][0] == 0 && raw[i][1] - raw[i][1] == 0;

        out[i][0] = finite ? raw[i][0] : 0;
        out[i][1] = finite ? raw[i][1] : 0;
        bad += !finite;
    }
    total->n_nonfinite += bad;
}

/* Expands n real values to complex values in place. The loop runs from the last value to the first,
 * so that it reads each value before it overwrites it. */
static void spread_real(size_t n, float (*out)[2])
{
    const float *real = &out[0][0];

    for (size_t i = n; i-- > 0;) {
        const float x = real[i];

        out[i][0] = x;
        out[i][1] = 0;
    }
}

/* Converts n packed samples of 1 or 2 values each. Returns false if the switch has no case for the
 * format; then nothing is converted. */
static bool convert_packed(pnr_format format, const void *raw, size_t n, size_t values,
                           float (*out)[2], pnr_converted *total)
{
    switch (format) {
    case PNR_FORMAT_CI16:
    case PNR_FORMAT_I16:
        convert_i16(raw, values * n, values, &out[0][0], total);
        return true;
    case PNR_FORMAT_CI8:
    case PNR_FORMAT_I8:
        convert_i8(raw, values * n, values, &out[0][0], total);
        return true;
    case PNR_FORMAT_CU8:
    case PNR_FORMAT_U8:
        convert_u8(raw, values * n, values, &out[0][0], total);
        return true;
    case PNR_FORMAT_CF32:
        convert_cf32(raw, n, out, total);
        return true;
    default:
        return false;
    }
}

void pnr_cpu_convert(pnr_format format, const void *raw, size_t stride, size_t n, bool conjugate,
                     float (*out)[2], pnr_converted *total)
{
    const pnr_format_info *info = pnr_format_get(format);
    const size_t values = info->is_complex ? 2 : 1;

    if (stride != info->bytes || !convert_packed(format, raw, n, values, out, total))
        convert_plain(format, raw, stride, n, out, total);
    else if (values == 1)
        spread_real(n, out);
    if (conjugate)
        for (size_t i = 0; i < n; i++)
            out[i][1] = -out[i][1];
}

/* Adds the squares of each block of 2 * SUM_BLOCK floats to LANES separate sums, so that no
 * addition waits for the previous one. Then adds one half of the sums to the other half, until one
 * sum is left. Adds the sums of the blocks in double. */
PNR_MULTIVERSION double pnr_cpu_energy(size_t n, const float (*samples)[2])
{
    const float *x = &samples[0][0];
    double sum = 0;

    for (size_t first = 0; first < 2 * n; first += (size_t)2 * SUM_BLOCK) {
        const size_t end =
            2 * n - first < (size_t)2 * SUM_BLOCK ? 2 * n : first + (size_t)2 * SUM_BLOCK;
        float lane[LANES] = {0};
        size_t i = first;

        for (; i + LANES <= end; i += LANES)
            for (size_t l = 0; l < LANES; l++)
                lane[l] += x[i + l] * x[i + l];
        for (; i < end; i++)
            lane[i % LANES] += x[i] * x[i];
        for (size_t half = LANES / 2; half > 0; half /= 2)
            for (size_t l = 0; l < half; l++)
                lane[l] += lane[l + half];
        sum += (double)lane[0];
    }
    return sum;
}

void pnr_cpu_rotation_tables(pnr_rotation *rotation)
{
    const int n = 1 << PNR_ROTATION_BITS;

    for (int i = 0; i < n; i++) {
        const double coarse = 2 * M_PI * i / n;
        const double fine = coarse / n;

        rotation->coarse[i][0] = (float)cos(coarse);
        rotation->coarse[i][1] = (float)-sin(coarse);
        rotation->fine[i][0] = (float)cos(fine);
        rotation->fine[i][1] = (float)-sin(fine);
    }
}

/* exp(-j phi) = coarse * fine * (1 - j rest), rest < 2 pi 2^-20. Terms of rest^2 < 4e-11 are
 * neglected. */
void pnr_cpu_rotate(const pnr_rotation *rotation, uint64_t phase, uint64_t step, size_t n,
                    float (*x)[2])
{
    const unsigned bits = PNR_ROTATION_BITS;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;

    for (size_t i = 0; i < n; i++, phase += step) {
        const float *c = rotation->coarse[phase >> (64 - bits)];
        const float *f = rotation->fine[(phase >> (64 - 2 * bits)) & mask];
        const float rest = (float)(phase << (2 * bits) >> 40) * (float)(2 * M_PI / (1 << 24)) *
                           (1.0f / (1 << (2 * bits)));
        float re = c[0] * f[0] - c[1] * f[1];
        float im = c[0] * f[1] + c[1] * f[0];
        const float re_rest = re + im * rest;

        im -= re * rest;
        re = re_rest;

        const float xr = x[i][0] * re - x[i][1] * im;

        x[i][1] = x[i][0] * im + x[i][1] * re;
        x[i][0] = xr;
    }
}

PNR_MULTIVERSION void pnr_cpu_add(size_t n, const float (*x)[2], float (*sum)[2])
{
    for (size_t i = 0; i < n; i++) {
        sum[i][0] += x[i][0];
        sum[i][1] += x[i][1];
    }
}

PNR_MULTIVERSION void pnr_cpu_product(size_t n, const float (*x)[2], const float (*h)[2],
                                      float (*out)[2])
{
    for (size_t i = 0; i < n; i++) {
        const float re = x[i][0] * h[i][0] - x[i][1] * h[i][1];
        const float im = x[i][0] * h[i][1] + x[i][1] * h[i][0];

        out[i][0] = re;
        out[i][1] = im;
    }
}

PNR_MULTIVERSION void pnr_cpu_power(size_t n, const float (*c)[2], bool add, float *power)
{
    if (add)
        for (size_t i = 0; i < n; i++)
            power[i] += c[i][0] * c[i][0] + c[i][1] * c[i][1];
    else
        for (size_t i = 0; i < n; i++)
            power[i] = c[i][0] * c[i][0] + c[i][1] * c[i][1];
}

/* Four complex values as 64-bit words, so that a tile of 4 x 4 is transposed in registers. */
typedef uint64_t quad __attribute__((vector_size(32), aligned(8), may_alias));

static inline void transpose_tile(const float (*from)[2], size_t from_row, float (*to)[2],
                                  size_t to_row)
{
    const quad a = *(const quad *)from, b = *(const quad *)(from + from_row);
    const quad c = *(const quad *)(from + 2 * from_row), d = *(const quad *)(from + 3 * from_row);
    const quad ab_even = __builtin_shufflevector(a, b, 0, 4, 2, 6);
    const quad ab_odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const quad cd_even = __builtin_shufflevector(c, d, 0, 4, 2, 6);
    const quad cd_odd = __builtin_shufflevector(c, d, 1, 5, 3, 7);

    *(quad *)to = __builtin_shufflevector(ab_even, cd_even, 0, 1, 4, 5);
    *(quad *)(to + to_row) = __builtin_shufflevector(ab_odd, cd_odd, 0, 1, 4, 5);
    *(quad *)(to + 2 * to_row) = __builtin_shufflevector(ab_even, cd_even, 2, 3, 6, 7);
    *(quad *)(to + 3 * to_row) = __builtin_shufflevector(ab_odd, cd_odd, 2, 3, 6, 7);
}

/* The inner loop runs along the shorter side. So the next iteration of the outer loop finds its
 * cache lines still in the cache. */
PNR_MULTIVERSION void pnr_cpu_transpose(size_t rows, size_t columns, const float (*from)[2],
                                        size_t from_row, float (*to)[2], size_t to_row)
{
    const size_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;

    if (rows > columns)
        for (size_t r = 0; r < whole_rows; r += 4)
            for (size_t c = 0; c < whole_columns; c += 4)
                transpose_tile(from + r * from_row + c, from_row, to + c * to_row + r, to_row);
    else
        for (size_t c = 0; c < whole_columns; c += 4)
            for (size_t r = 0; r < whole_rows; r += 4)
                transpose_tile(from + r * from_row + c, from_row, to + c * to_row + r, to_row);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = r < whole_rows ? whole_columns : 0; c < columns; c++) {
            to[c * to_row + r][0] = from[r * from_row + c][0];
            to[c * to_row + r][1] = from[r * from_row + c][1];
        }
}

/* Reads 4 columns of c, each of 4 adjacent values. Writes their |c|^2 as 4 rows of 4 powers.
 * Squares the real and imaginary parts, adds the two squares of each value, and then transposes the
 * 4 x 4 powers. */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static inline void power_tile(const float (*c)[2], size_t c_row, size_t power_row, bool add,
                              float *power)
{
    const eight c0 = *(const eight *)c, c1 = *(const eight *)(c + c_row);
    const eight c2 = *(const eight *)(c + 2 * c_row), c3 = *(const eight *)(c + 3 * c_row);
    const eight s0 = c0 * c0, s1 = c1 * c1, s2 = c2 * c2, s3 = c3 * c3;
    /* low: the powers |c[j][r]|^2 of columns j = 0 and 1, with jr in the order
     * 00 01 10 11 02 03 12 13; high: the powers of columns 2 and 3 in the same order */
    const eight low = __builtin_shufflevector(s0, s1, 0, 2, 8, 10, 4, 6, 12, 14) +
                      __builtin_shufflevector(s0, s1, 1, 3, 9, 11, 5, 7, 13, 15);
    const eight high = __builtin_shufflevector(s2, s3, 0, 2, 8, 10, 4, 6, 12, 14) +
                       __builtin_shufflevector(s2, s3, 1, 3, 9, 11, 5, 7, 13, 15);
    const eight even = __builtin_shufflevector(low, high, 0, 2, 8, 10, 4, 6, 12, 14);
    const eight odd = __builtin_shufflevector(low, high, 1, 3, 9, 11, 5, 7, 13, 15);
    const four row[4] = {__builtin_shufflevector(even, even, 0, 1, 2, 3),
                         __builtin_shufflevector(odd, odd, 0, 1, 2, 3),
                         __builtin_shufflevector(even, even, 4, 5, 6, 7),
                         __builtin_shufflevector(odd, odd, 4, 5, 6, 7)};

    for (size_t i = 0; i < 4; i++) {
        four *to = (four *)(power + i * power_row);

        if (add)
            *to += row[i];
        else
            *to = row[i];
    }
}

PNR_MULTIVERSION void pnr_cpu_power_columns(size_t rows, size_t columns, const float (*c)[2],
                                            size_t c_row, size_t power_row, bool add, float *power)
{
    const size_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;

    for (size_t r = 0; r < whole_rows; r += 4)
        for (size_t j = 0; j < whole_columns; j += 4)
            power_tile(c + j * c_row + r, c_row, power_row, add, power + r * power_row + j);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = r < whole_rows ? whole_columns : 0; j < columns; j++) {
            const float *at = c[j * c_row + r];
            float *to = &power[r * power_row + j];

            *to = (add ? *to : 0) + (at[0] * at[0] + at[1] * at[1]);
        }
}

enum { TILE = 16 };

/* Eight complex values. The factor w is stored as (re, re) and (-im, im); x' is x with its real and
 * imaginary parts exchanged. Then x w = x (re, re) + x' (-im, im). */
typedef float wide __attribute__((vector_size(64), aligned(4), may_alias));

PNR_MULTIVERSION void pnr_cpu_twiddle(size_t n, const float (*coarse)[2], const float (*fine)[2],
                                      bool conjugate, float (*x)[2])
{
    const float sign = conjugate ? -1 : 1;
    const wide turn = {-sign, sign, -sign, sign, -sign, sign, -sign, sign,
                       -sign, sign, -sign, sign, -sign, sign, -sign, sign};
    wide re[2], im[2], re_turned[2], im_turned[2];
    size_t first = 0;

    for (int half = 0; half < 2; half++) {
        const wide f = *(const wide *)(fine + (size_t)half * TILE / 2);

        re[half] =
            __builtin_shufflevector(f, f, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14);
        im[half] =
            __builtin_shufflevector(f, f, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15);
        re_turned[half] = turn * re[half];
        im_turned[half] = turn * im[half];
    }
    for (; first + TILE <= n; first += TILE) {
        const float *c = coarse[first / TILE];

        for (int half = 0; half < 2; half++) {
            wide *to = (wide *)(x + first + (size_t)half * TILE / 2);
            const wide v = *to;
            const wide swapped =
                __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);

            *to = v * (c[0] * re[half] - c[1] * im[half]) +
                  swapped * (c[0] * im_turned[half] + c[1] * re_turned[half]);
        }
    }
    for (; first < n; first++) {
        const float *c = coarse[first / TILE], *f = fine[first % TILE];
        const float wr = c[0] * f[0] - c[1] * f[1];
        const float wi = sign * (c[0] * f[1] + c[1] * f[0]);
        const float xr = x[first][0] * wr - x[first][1] * wi;

        x[first][1] = x[first][0] * wi + x[first][1] * wr;
        x[first][0] = xr;
    }
}
