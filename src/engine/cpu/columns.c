/* SPDX-License-Identifier: MIT */
/* Fourier transforms along 16 columns at once, one column in each vector lane. The lengths are
 * powers of two. */
#include "engine/cpu/columns.h"

#include "base/error.h"
#include "base/multiversion.h"

#include <stdlib.h>

enum { LANES = PNR_CPU_LANES };

#define INLINE static inline __attribute__((always_inline))
/* The lanes are independent. The body of a loop over the lanes loads all values of one lane,
 * transforms them, and then stores them. After unrolling, all indices of its arrays are constant,
 * so the arrays become registers. Then gcc compiles the loop to vectors of any width. */
#ifdef __clang__
#define IVDEP /* clang does not know this pragma */
#else
#define IVDEP _Pragma("GCC ivdep")
#endif
#define EACH_LANE IVDEP for (size_t l = 0; l < LANES; l++)
#define UNROLLED _Pragma("GCC unroll 16")

/* --- radices and tables --- */

static size_t split(size_t n, size_t radix[PNR_CPU_COLUMN_STAGES])
{
    size_t n_stages = 0;

    if (n < 64 || n > PNR_CPU_COLUMN_MAX || (n & (n - 1)) != 0)
        return 0;
    /* the radix is 8 if the remaining length is 8, 64 or 512, else 16; so no radix is less than
     * 8 */
    for (size_t left = n; left > 1; left /= radix[n_stages++]) {
        const bool is_eights = left == 8 || left == 64 || left == 512;

        radix[n_stages] = is_eights ? 8 : 16;
    }
    return n_stages;
}

bool pnr_cpu_columns_can(size_t n)
{
    size_t radix[PNR_CPU_COLUMN_STAGES];

    return split(n, radix) > 0;
}

/* Returns the greatest number of roots in the table. The table has the roots of all stages except
 * the last: n roots of the first stage, and n / R0 <= n / 8 roots of the second. R0 is the radix of
 * the first stage. */
static size_t roots_of(size_t n)
{
    return n + n / 8;
}

size_t pnr_cpu_columns_table_bytes(size_t n)
{
    return roots_of(n) * 2 * sizeof(float) + n / 8 * sizeof(uint16_t);
}

int pnr_cpu_columns_create(pnr_cpu_columns *columns, size_t n)
{
    size_t *radix = columns->radix, at = 0, length = n;

    columns->n = n;
    columns->n_stages = split(n, radix);
    columns->roots = malloc(roots_of(n) * sizeof *columns->roots);
    columns->order = malloc(n / 8 * sizeof *columns->order);
    if (columns->roots == NULL || columns->order == NULL)
        return PNR_ENOMEMORY;
    for (size_t stage = 0; stage + 1 < columns->n_stages; length /= radix[stage++])
        for (size_t j = 0; j < length / radix[stage]; j++)
            for (size_t p = 0; p < radix[stage]; p++, at++)
                pnr_cpu_round(conj(pnr_root((int64_t)(j * p), length)), columns->roots[at]);
    for (size_t b = 0; b < n / radix[columns->n_stages - 1]; b++)
        columns->order[b] =
            (uint16_t)(columns->n_stages == 2 ? b : b / radix[1] + radix[0] * (b % radix[1]));
    return PNR_OK;
}

void pnr_cpu_columns_destroy(pnr_cpu_columns *columns)
{
    free(columns->roots);
    free(columns->order);
}

/* --- butterflies of scalars, which the compiler vectorises --- */

/* Transforms the values at the indices a, b, c, d. Stores outputs 0 .. 3 at the same indices. */
INLINE void four(float *re, float *im, int a, int b, int c, int d)
{
    const float r0 = re[a] + re[c], i0 = im[a] + im[c];
    const float r1 = re[a] - re[c], i1 = im[a] - im[c];
    const float r2 = re[b] + re[d], i2 = im[b] + im[d];
    const float r3 = re[b] - re[d], i3 = im[b] - im[d];

    re[a] = r0 + r2;
    im[a] = i0 + i2;
    re[b] = r1 + i3;
    im[b] = i1 - r3;
    re[c] = r0 - r2;
    im[c] = i0 - i2;
    re[d] = r1 - i3;
    im[d] = i1 + r3;
}

INLINE void two(float *re, float *im, int a, int b)
{
    const float r = re[a] - re[b], i = im[a] - im[b];

    re[a] += re[b];
    im[a] += im[b];
    re[b] = r;
    im[b] = i;
}

/* Multiplies the value at index a by wr + i wi. */
INLINE void turn(float *re, float *im, int a, float wr, float wi)
{
    const float r = re[a] * wr - im[a] * wi;

    im[a] = re[a] * wi + im[a] * wr;
    re[a] = r;
}

static const float ROOT_HALF = 0.70710678118654752440f;
static const float COS_16 = 0.92387953251128675613f, SIN_16 = 0.38268343236508977173f;

/* Multiplies the value at index a by W_8. turn_38 multiplies by W_8^3 = -i W_8, and turn_4 by
 * W_4 = -i. */
INLINE void turn_8(float *re, float *im, int a)
{
    const float r = (re[a] + im[a]) * ROOT_HALF;

    im[a] = (im[a] - re[a]) * ROOT_HALF;
    re[a] = r;
}

INLINE void turn_38(float *re, float *im, int a)
{
    const float r = (im[a] - re[a]) * ROOT_HALF;

    im[a] = (re[a] + im[a]) * -ROOT_HALF;
    re[a] = r;
}

INLINE void turn_4(float *re, float *im, int a)
{
    const float r = im[a];

    im[a] = -re[a];
    re[a] = r;
}

/* Transforms 8 values. Stores output p at index 2 (p % 4) + p / 4. */
INLINE void eight(float *re, float *im)
{
    four(re, im, 0, 2, 4, 6);
    four(re, im, 1, 3, 5, 7);
    turn_8(re, im, 3);
    turn_4(re, im, 5);
    turn_38(re, im, 7);
    two(re, im, 0, 1);
    two(re, im, 2, 3);
    two(re, im, 4, 5);
    two(re, im, 6, 7);
}

/* Transforms 16 values. Stores output p at index 4 (p % 4) + p / 4. */
INLINE void sixteen(float *re, float *im)
{
    four(re, im, 0, 4, 8, 12);
    four(re, im, 1, 5, 9, 13);
    four(re, im, 2, 6, 10, 14);
    four(re, im, 3, 7, 11, 15);
    turn(re, im, 5, COS_16, -SIN_16);
    turn_8(re, im, 6);
    turn(re, im, 7, SIN_16, -COS_16);
    turn_8(re, im, 9);
    turn_4(re, im, 10);
    turn_38(re, im, 11);
    turn(re, im, 13, SIN_16, -COS_16);
    turn_38(re, im, 14);
    turn(re, im, 15, -COS_16, SIN_16);
    four(re, im, 0, 1, 2, 3);
    four(re, im, 4, 5, 6, 7);
    four(re, im, 8, 9, 10, 11);
    four(re, im, 12, 13, 14, 15);
}

INLINE void butterfly(size_t radix, float *re, float *im)
{
    if (radix == 16)
        sixteen(re, im);
    else
        eight(re, im);
}

/* Returns the index to which a transform of `radix` values writes output p. */
INLINE size_t place(size_t radix, size_t p)
{
    return radix == 16 ? p % 4 * 4 + p / 4 : p % 4 * 2 + p / 4;
}

/* Writes each output p, times W^(jp), to line p M + j. `tile` points to line j. */
INLINE void put_tile(size_t radix, const float *re, const float *im, const float (*w)[2],
                     pnr_cpu_line *tile, size_t m, size_t l)
{
    UNROLLED for (size_t p = 0; p < radix; p++)
    {
        const size_t a = place(radix, p);

        if (p == 0) {
            tile[0][0][l] = re[a];
            tile[0][1][l] = im[a];
        } else {
            tile[p * m][0][l] = re[a] * w[p][0] - im[a] * w[p][1];
            tile[p * m][1][l] = re[a] * w[p][1] + im[a] * w[p][0];
        }
    }
}

/* --- stages --- */

INLINE void first_forward(size_t radix, size_t m, const float (*const *from)[2],
                          const float (*roots)[2], pnr_cpu_line *tile)
{
    for (size_t j = 0; j < m; j++) {
        const float(*w)[2] = roots + j * radix;
        pnr_cpu_line *to = tile + j;
        const float(*in[16])[2];

        UNROLLED for (size_t q = 0; q < radix; q++) in[q] = from[q * m + j];
        EACH_LANE
        {
            float re[16], im[16];

            UNROLLED for (size_t q = 0; q < radix; q++)
            {
                re[q] = in[q][l][0];
                im[q] = in[q][l][1];
            }
            butterfly(radix, re, im);
            put_tile(radix, re, im, w, to, m, l);
        }
    }
}

INLINE void first_inverse(size_t radix, size_t m, const float (*z)[2], size_t row,
                          const pnr_cpu_column_twiddle *twiddle, const float (*roots)[2],
                          pnr_cpu_line *tile)
{
    for (size_t j = 0; j < m; j++) {
        const float(*w)[2] = roots + j * radix, (*in)[2] = z + j * row;
        const float(*coarse)[2] = twiddle->coarse + j;
        const pnr_cpu_line *fine = twiddle->fine + j;
        pnr_cpu_line *to = tile + j;

        EACH_LANE
        {
            float re[16], im[16];

            UNROLLED for (size_t q = 0; q < radix; q++)
            {
                const float c = coarse[q * m][0], s = coarse[q * m][1];
                const float wr = c * fine[q * m][0][l] - s * fine[q * m][1][l];
                const float wi = c * fine[q * m][1][l] + s * fine[q * m][0][l];
                const float x = in[q * m * row + l][0], y = in[q * m * row + l][1];

                im[q] = x * wr + y * wi;
                re[q] = y * wr - x * wi;
            }
            butterfly(radix, re, im);
            put_tile(radix, re, im, w, to, m, l);
        }
    }
}

/* Runs the middle stage in place on radix * m lines of the tile. */
INLINE void middle(size_t radix, size_t m, const float (*roots)[2], pnr_cpu_line *tile)
{
    for (size_t j = 0; j < m; j++) {
        const float(*w)[2] = roots + j * radix;
        pnr_cpu_line *to = tile + j;

        EACH_LANE
        {
            float re[16], im[16];

            UNROLLED for (size_t q = 0; q < radix; q++)
            {
                re[q] = to[q * m][0][l];
                im[q] = to[q * m][1][l];
            }
            butterfly(radix, re, im);
            put_tile(radix, re, im, w, to, m, l);
        }
    }
}

/* Transforms tile[0 .. radix - 1]. Stores the outputs, times the twiddle, in lines k, k + step, ...
 * of z. */
INLINE void last_forward(size_t radix, const pnr_cpu_line *tile,
                         const pnr_cpu_column_twiddle *twiddle, size_t k, size_t step,
                         float (*z)[2], size_t row)
{
    const float(*coarse)[2] = twiddle->coarse + k;
    const pnr_cpu_line *fine = twiddle->fine + k;
    float(*out)[2] = z + k * row;

    EACH_LANE
    {
        float re[16], im[16];

        UNROLLED for (size_t q = 0; q < radix; q++)
        {
            re[q] = tile[q][0][l];
            im[q] = tile[q][1][l];
        }
        butterfly(radix, re, im);
        UNROLLED for (size_t p = 0; p < radix; p++)
        {
            const size_t a = place(radix, p);
            const float c = coarse[p * step][0], s = coarse[p * step][1];
            const float wr = c * fine[p * step][0][l] - s * fine[p * step][1][l];
            const float wi = c * fine[p * step][1][l] + s * fine[p * step][0][l];

            out[p * step * row + l][0] = re[a] * wr - im[a] * wi;
            out[p * step * row + l][1] = re[a] * wi + im[a] * wr;
        }
    }
}

/* Transforms tile[0 .. radix - 1]. Stores the outputs in lines 0, step, ... of out. Writes |c|^2 of
 * output p to power[p], or adds |c|^2 to power[p]. */
INLINE void last_inverse(size_t radix, const pnr_cpu_line *tile, size_t step, float (*out)[2],
                         size_t row, float *const *power, bool add)
{
    float *to[16];

    UNROLLED for (size_t p = 0; p < radix; p++) to[p] = power[p];
    EACH_LANE
    {
        float re[16], im[16];

        UNROLLED for (size_t q = 0; q < radix; q++)
        {
            re[q] = tile[q][0][l];
            im[q] = tile[q][1][l];
        }
        butterfly(radix, re, im);
        UNROLLED for (size_t p = 0; p < radix; p++)
        {
            const size_t a = place(radix, p);
            const float square = im[a] * im[a] + re[a] * re[a];

            out[p * step * row + l][0] = im[a];
            out[p * step * row + l][1] = re[a];
            to[p][l] = add ? to[p][l] + square : square;
        }
    }
}

/* Runs the middle stage if there are three stages. Returns the radix of the last stage. */
INLINE size_t middle_of(const pnr_cpu_columns *columns, pnr_cpu_line *tile)
{
    const size_t last = columns->radix[columns->n_stages - 1];
    const size_t length = columns->n / columns->radix[0];

    if (columns->n_stages == 3)
        for (size_t b = 0; b < columns->radix[0]; b++) {
            const float(*roots)[2] = (const float(*)[2])columns->roots + columns->n;

            if (columns->radix[1] == 16)
                middle(16, last, roots, tile + b * length);
            else
                middle(8, last, roots, tile + b * length);
        }
    return last;
}

PNR_MULTIVERSION void pnr_cpu_columns_forward(const pnr_cpu_columns *columns,
                                              const float (*const *from)[2],
                                              const pnr_cpu_column_twiddle *twiddle,
                                              pnr_cpu_line *tile, float (*z)[2], size_t row)
{
    const float(*roots)[2] = (const float(*)[2])columns->roots;
    const size_t m = columns->n / columns->radix[0];

    if (columns->radix[0] == 16)
        first_forward(16, m, from, roots, tile);
    else
        first_forward(8, m, from, roots, tile);

    const size_t last = middle_of(columns, tile), step = columns->n / last;

    for (size_t b = 0; b < step; b++)
        if (last == 16)
            last_forward(16, (const pnr_cpu_line *)tile + b * 16, twiddle, columns->order[b], step,
                         z, row);
        else
            last_forward(8, (const pnr_cpu_line *)tile + b * 8, twiddle, columns->order[b], step, z,
                         row);
}

PNR_MULTIVERSION void pnr_cpu_columns_inverse(const pnr_cpu_columns *columns, const float (*z)[2],
                                              size_t row, const pnr_cpu_column_twiddle *twiddle,
                                              pnr_cpu_line *tile, float (*c)[2], float *power,
                                              size_t power_row, size_t n_power, bool add)
{
    const float(*roots)[2] = (const float(*)[2])columns->roots;
    const size_t m = columns->n / columns->radix[0];

    if (columns->radix[0] == 16)
        first_inverse(16, m, z, row, twiddle, roots, tile);
    else
        first_inverse(8, m, z, row, twiddle, roots, tile);

    const size_t last = middle_of(columns, tile), step = columns->n / last;

    float nowhere[LANES] = {0};

    for (size_t b = 0; b < step; b++) {
        const size_t k = columns->order[b];
        const pnr_cpu_line *at = (const pnr_cpu_line *)tile + b * last;
        float *to[16];

        for (size_t p = 0; p < last; p++)
            to[p] = k + p * step < n_power ? power + (k + p * step) * power_row : nowhere;
        if (last == 16 && add)
            last_inverse(16, at, step, c + k * row, row, to, true);
        else if (last == 16)
            last_inverse(16, at, step, c + k * row, row, to, false);
        else if (add)
            last_inverse(8, at, step, c + k * row, row, to, true);
        else
            last_inverse(8, at, step, c + k * row, row, to, false);
    }
}
