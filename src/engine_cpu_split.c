/* SPDX-License-Identifier: MIT */
/* Long transforms of the cpu engine in three passes over memory, from short FFTW plans. */
#include "engine_cpu_split.h"

#include "clock.h"
#include "engine.h"
#include "engine_cpu_ops.h"
#include "error.h"
#include "transform.h"

#include <math.h>
#include <string.h>

enum {
    COLUMNS = PNR_CPU_COLUMNS,
    LINE = 8,  /* values of a cache line */
    ROWS = 16, /* of a task of pass B */
    SHORTEST = 16384
};

/* Whole lines, an odd number of them. */
static size_t row_of(size_t n)
{
    return ((n + LINE - 1) / LINE | 1) * LINE;
}

bool pnr_cpu_split_factors(size_t length, size_t *n1, size_t *n2)
{
    const size_t root_of_length = (size_t)sqrt((double)length);
    size_t small = (root_of_length + 1) / 2;

    if (length < SHORTEST)
        return false;
    /* Columns the shorter, half of sqrt(L) if it can be: they pass through a tile, COLUMNS of them,
     * rows do not. */
    while (small <= root_of_length && length % small != 0)
        small++;
    while (length % small != 0)
        small--;
    *n1 = small;
    *n2 = length / small;
    return *n2 <= 8 * *n1;
}

void pnr_cpu_split_shape(size_t length, pnr_cpu_split *split)
{
    memset(split, 0, sizeof *split);
    split->length = length;
    (void)pnr_cpu_split_factors(length, &split->n1, &split->n2);
    split->row1 = row_of(split->n1);
    split->row2 = row_of(split->n2);
    split->n_blocks = (split->n2 + COLUMNS - 1) / COLUMNS;
    split->n_row_blocks = (split->n1 + ROWS - 1) / ROWS;
}

size_t pnr_cpu_split_table_bytes(const pnr_cpu_split *split)
{
    return split->n1 * (split->n_blocks + COLUMNS) * sizeof *split->coarse;
}

size_t pnr_cpu_split_spectrum_values(const pnr_cpu_split *split)
{
    return split->n1 * split->row2;
}

size_t pnr_cpu_split_profile_values(const pnr_cpu_split *split)
{
    return split->n2 * split->row1;
}

/* COLUMNS rows of N1 and one more, or a row of N2. */
size_t pnr_cpu_split_tile_values(const pnr_cpu_split *split)
{
    const size_t columns = (COLUMNS + 1) * split->row1;

    return columns > 2 * split->row2 ? columns : 2 * split->row2;
}

static void root(size_t j, size_t n, pnr_cpu_value out)
{
    double w[2];

    pnr_transform_root(j % n, n, w);
    out[0] = (float)w[0];
    out[1] = (float)-w[1];
}

int pnr_cpu_split_create(pnr_cpu_split *split)
{
    const int n1 = (int)split->n1, n2 = (int)split->n2;
    pnr_cpu_value *tile = fftwf_malloc(pnr_cpu_split_tile_values(split) * sizeof *tile);
    pnr_cpu_value *row = fftwf_malloc(split->row2 * sizeof *row);

    split->coarse = fftwf_malloc(split->n1 * split->n_blocks * sizeof *split->coarse);
    split->fine = fftwf_malloc(split->n1 * COLUMNS * sizeof *split->fine);
    for (int way = 0; way < 2 && tile != NULL && row != NULL; way++) {
        const int sign = way == 0 ? FFTW_FORWARD : FFTW_BACKWARD;

        /* Estimated plans are the same in every process, so the results are the same bits. */
        split->column[way] = fftwf_plan_dft_1d(n1, tile + split->row1, tile, sign,
                                               FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
        split->row[way] =
            fftwf_plan_dft_1d(n2, row, tile, sign, FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    }
    fftwf_free(tile);
    fftwf_free(row);
    if (split->coarse == NULL || split->fine == NULL || split->column[0] == NULL ||
        split->column[1] == NULL || split->row[0] == NULL || split->row[1] == NULL)
        return PNR_ENOMEMORY;
    for (size_t k1 = 0; k1 < split->n1; k1++) {
        for (size_t b = 0; b < split->n_blocks; b++)
            root(COLUMNS * b * k1, split->length, split->coarse[k1 * split->n_blocks + b]);
        for (size_t j = 0; j < COLUMNS; j++)
            root(j * k1, split->length, split->fine[k1 * COLUMNS + j]);
    }
    return PNR_OK;
}

void pnr_cpu_split_destroy(pnr_cpu_split *split)
{
    for (int way = 0; way < 2; way++) {
        if (split->column[way] != NULL)
            fftwf_destroy_plan(split->column[way]);
        if (split->row[way] != NULL)
            fftwf_destroy_plan(split->row[way]);
    }
    fftwf_free(split->coarse);
    fftwf_free(split->fine);
}

void pnr_cpu_split_order(const pnr_cpu_split *split, const double (*natural)[2], pnr_cpu_value *h)
{
    for (size_t k1 = 0; k1 < split->n1; k1++)
        for (size_t k2 = 0; k2 < split->n2; k2++) {
            const double *from = natural[k1 + split->n1 * k2];

            h[k1 * split->row2 + k2][0] = (float)from[0];
            h[k1 * split->row2 + k2][1] = (float)from[1];
        }
}

static size_t width_of(const pnr_cpu_split *split, size_t block)
{
    const size_t first = COLUMNS * block;

    return split->n2 - first < COLUMNS ? split->n2 - first : COLUMNS;
}

/* Transforms columns 1 .. width of the tile, each to the place before it. */
static void transform_columns(const pnr_cpu_split *split, int way, size_t width,
                              pnr_cpu_value *tile)
{
    for (size_t j = 0; j < width; j++)
        fftwf_execute_dft(split->column[way], tile + (j + 1) * split->row1, tile + j * split->row1);
}

/* Column values n1 of [first, end), where the period's edge or the zeros lie in between. */
static void fill_columns(const pnr_cpu_split *split, size_t block, size_t first, size_t end,
                         const pnr_cpu_value *x, size_t n_samples, pnr_cpu_value *columns)
{
    const size_t width = width_of(split, block);

    for (size_t n1 = first; n1 < end; n1++)
        for (size_t j = 0; j < width; j++) {
            const size_t n = split->n2 * n1 + COLUMNS * block + j;
            float *to = columns[j * split->row1 + n1];
            const bool is_lit = n < 2 * n_samples - 1;

            to[0] = is_lit ? x[n < n_samples ? n : n - n_samples][0] : 0;
            to[1] = is_lit ? x[n < n_samples ? n : n - n_samples][1] : 0;
        }
}

void pnr_cpu_split_forward(const pnr_cpu_split *split, size_t block, const pnr_cpu_value *x,
                           size_t n_samples, pnr_cpu_value *z, pnr_cpu_value *tile)
{
    const size_t width = width_of(split, block), n2 = split->n2, first = COLUMNS * block;
    pnr_cpu_value *columns = tile + split->row1;

    if (split->length == n_samples) {
        pnr_cpu_transpose(split->n1, width, x + first, n2, columns, split->row1);
    } else {
        /* whole rows of the first period, of the second, then zeros; the edges value by value */
        const size_t end = n_samples < first + width ? 0 : (n_samples - first - width) / n2 + 1;
        const size_t again = n_samples < first ? 0 : (n_samples - first + n2 - 1) / n2;
        const size_t lit = 2 * n_samples - 1;
        size_t end_again = lit < first + width ? 0 : (lit - first - width) / n2 + 1;

        end_again = end_again > again ? end_again : again;
        pnr_cpu_transpose(end, width, x + first, n2, columns, split->row1);
        fill_columns(split, block, end, again, x, n_samples, columns);
        pnr_cpu_transpose(end_again - again, width, x + (again * n2 + first - n_samples), n2,
                          columns + again, split->row1);
        fill_columns(split, block, end_again, split->n1, x, n_samples, columns);
    }
    transform_columns(split, 0, width, tile);
    pnr_cpu_transpose(width, split->n1, (const pnr_cpu_value *)tile, split->row1, z + first,
                      split->row2);
}

static void lap(uint64_t *stage_ns, int stage, uint64_t *since)
{
    if (stage_ns != NULL) {
        const uint64_t now = pnr_clock_ns();

        stage_ns[stage] += now - *since;
        *since = now;
    }
}

void pnr_cpu_split_rows(const pnr_cpu_split *split, size_t block, size_t n,
                        pnr_cpu_value *const z[2], pnr_cpu_value *const h[2], pnr_cpu_value *tile,
                        uint64_t *stage_ns)
{
    const size_t end = ROWS * (block + 1) < split->n1 ? ROWS * (block + 1) : split->n1;
    const size_t n2 = split->n2;
    uint64_t since = stage_ns != NULL ? pnr_clock_ns() : 0;

    for (size_t k1 = ROWS * block; k1 < end; k1++) {
        const pnr_cpu_value *coarse = split->coarse + k1 * split->n_blocks;
        const pnr_cpu_value *fine = split->fine + k1 * COLUMNS;
        const size_t at = k1 * split->row2;
        pnr_cpu_value *last = tile + split->row2;

        pnr_cpu_twiddle(n2, coarse, fine, false, z[0] + at);
        fftwf_execute_dft(split->row[0], z[0] + at, tile);
        lap(stage_ns, PNR_STAGE_FORWARD, &since);
        for (size_t i = 0; i < n; i++) {
            pnr_cpu_value *product = i + 1 == n ? tile : last;

            pnr_cpu_product(n2, (const pnr_cpu_value *)tile, (const pnr_cpu_value *)h[i] + at,
                            product);
            lap(stage_ns, PNR_STAGE_PRODUCT, &since);
            fftwf_execute_dft(split->row[1], product, z[i] + at);
            pnr_cpu_twiddle(n2, coarse, fine, true, z[i] + at);
            lap(stage_ns, PNR_STAGE_INVERSE, &since);
        }
    }
}

void pnr_cpu_split_inverse(const pnr_cpu_split *split, size_t block, const pnr_cpu_value *z,
                           pnr_cpu_value *c, size_t n_samples, bool add, float *power,
                           pnr_cpu_value *tile, uint64_t *stage_ns)
{
    const size_t width = width_of(split, block), first = COLUMNS * block, n2 = split->n2;
    uint64_t since = stage_ns != NULL ? pnr_clock_ns() : 0;
    pnr_cpu_value *out = c + first * split->row1;

    pnr_cpu_transpose(split->n1, width, z + first, split->row2, tile, split->row1);
    for (size_t j = 0; j < width; j++)
        fftwf_execute_dft(split->column[1], tile + j * split->row1, out + j * split->row1);
    lap(stage_ns, PNR_STAGE_INVERSE, &since);

    /* m1 from which a row of COLUMNS lags is no longer all below n_samples */
    const size_t whole = n_samples < first + width ? 0 : (n_samples - first - width) / n2 + 1;

    pnr_cpu_power_columns(whole, width, (const pnr_cpu_value *)out, split->row1, n2, add,
                          power + first);
    for (size_t j = 0; j < width && n2 * whole + first + j < n_samples; j++)
        pnr_cpu_power(1, (const pnr_cpu_value *)out + j * split->row1 + whole, add,
                      power + n2 * whole + first + j);
    lap(stage_ns, PNR_STAGE_PEAK, &since);
}
