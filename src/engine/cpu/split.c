/* SPDX-License-Identifier: MIT */
/* Long transforms of the cpu engine in three passes over memory, with short FFTW plans. */
#include "engine/cpu/split.h"

#include "base/error.h"
#include "engine/cpu/ops.h"
#include "engine/cpu/stopwatch.h"
#include "engine/engine.h"

#include <math.h>
#include <string.h>

enum {
    COLUMNS = PNR_CPU_COLUMNS,
    ROWS = 16, /* rows of a task of pass B */
    EDGES = 2, /* at most two rows of a block contain the end of a period */
    SHORTEST = 16384,
    SHORTEST_WIDE = 8192
};

static bool factors(size_t length, size_t *n1, size_t *n2)
{
    const size_t root_of_length = (size_t)sqrt((double)length);
    size_t small = (root_of_length + 1) / 2;

    /* N1, the length of a column, is the least factor of L from sqrt(L) / 2 to sqrt(L). If there is
     * none, N1 is the greatest factor below sqrt(L) / 2. So N1 is at most sqrt(L), and a tile of
     * COLUMNS columns is small. */
    while (small <= root_of_length && length % small != 0)
        small++;
    while (length % small != 0)
        small--;
    *n1 = small;
    *n2 = length / small;
    return *n2 <= 8 * *n1;
}

bool pnr_cpu_split_factors(size_t length, size_t *n1, size_t *n2)
{
    return length >= SHORTEST && factors(length, n1, n2);
}

bool pnr_cpu_split_pays(size_t length)
{
    size_t n1, n2;

    return length >= SHORTEST_WIDE && factors(length, &n1, &n2) &&
           (length >= SHORTEST || pnr_cpu_columns_can(n1));
}

void pnr_cpu_split_shape(size_t length, pnr_cpu_split *split)
{
    memset(split, 0, sizeof *split);
    split->length = length;
    (void)factors(length, &split->n1, &split->n2);
    split->row1 = pnr_cpu_pitch(split->n1);
    split->n_blocks = (split->n2 + COLUMNS - 1) / COLUMNS;
    split->is_wide = pnr_cpu_columns_can(split->n1);
    /* a row has room for all lanes of the last block */
    split->row2 = pnr_cpu_pitch(split->is_wide ? split->n_blocks * COLUMNS : split->n2);
    split->next1 = split->is_wide ? split->row2 : 1;
    split->next2 = split->is_wide ? 1 : split->row1;
    split->n_row_blocks = (split->n1 + ROWS - 1) / ROWS;
}

size_t pnr_cpu_split_table_bytes(const pnr_cpu_split *split)
{
    return split->n1 * (split->n_blocks + COLUMNS) * sizeof *split->coarse +
           (split->is_wide ? pnr_cpu_columns_table_bytes(split->n1) : 0);
}

size_t pnr_cpu_split_spectrum_values(const pnr_cpu_split *split)
{
    return split->n1 * split->row2;
}

size_t pnr_cpu_split_profile_values(const pnr_cpu_split *split)
{
    return split->is_wide ? split->n1 * split->row2 : split->n2 * split->row1;
}

/* Passes A and C need at most COLUMNS + 1 rows of N1 values in the tile. Pass B needs two rows of
 * N2 values. */
size_t pnr_cpu_split_tile_values(const pnr_cpu_split *split)
{
    const size_t columns = (COLUMNS + 1) * split->row1;

    return columns > 2 * split->row2 ? columns : 2 * split->row2;
}

/* Runs unless is_wide. Creates the FFTW plans of the columns, and allocates `fine`. */
static bool create_columns(pnr_cpu_split *split, pnr_cpu_value *tile)
{
    split->fine = fftwf_malloc(split->n1 * COLUMNS * sizeof *split->fine);
    for (int way = 0; way < 2; way++)
        split->column[way] = fftwf_plan_dft_1d((int)split->n1, tile + split->row1, tile,
                                               way == 0 ? FFTW_FORWARD : FFTW_BACKWARD,
                                               FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    return split->fine != NULL && split->column[0] != NULL && split->column[1] != NULL;
}

static bool create_wide(pnr_cpu_split *split)
{
    split->lines = fftwf_malloc(split->n1 * sizeof *split->lines);
    return split->lines != NULL && pnr_cpu_columns_create(&split->columns, split->n1) == PNR_OK;
}

/* Fills the tables of the powers of W_L. */
static void fill_powers(pnr_cpu_split *split)
{
    const size_t n_blocks = split->n_blocks;

    for (size_t k1 = 0; k1 < split->n1; k1++) {
        for (size_t b = 0; b < n_blocks; b++)
            pnr_cpu_round(conj(pnr_root((int64_t)(COLUMNS * b * k1), split->length)),
                          split->coarse[split->is_wide ? b * split->n1 + k1 : k1 * n_blocks + b]);
        for (size_t j = 0; j < COLUMNS; j++) {
            pnr_cpu_value w;

            pnr_cpu_round(conj(pnr_root((int64_t)(j * k1), split->length)), w);
            for (int part = 0; part < 2; part++)
                *(split->is_wide ? &split->lines[k1][part][j]
                                 : &split->fine[k1 * COLUMNS + j][part]) = w[part];
        }
    }
}

int pnr_cpu_split_create(pnr_cpu_split *split)
{
    pnr_cpu_value *tile = fftwf_malloc(pnr_cpu_split_tile_values(split) * sizeof *tile);
    pnr_cpu_value *row = fftwf_malloc(split->row2 * sizeof *row);
    bool is_complete = tile != NULL && row != NULL;

    split->coarse = fftwf_malloc(split->n1 * split->n_blocks * sizeof *split->coarse);
    is_complete = is_complete && split->coarse != NULL;
    /* FFTW_ESTIMATE gives the same plans in every process, so the results have the same bits. */
    for (int way = 0; way < 2 && is_complete; way++) {
        split->row[way] =
            fftwf_plan_dft_1d((int)split->n2, row, tile, way == 0 ? FFTW_FORWARD : FFTW_BACKWARD,
                              FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
        is_complete = split->row[way] != NULL;
    }
    if (is_complete)
        is_complete = split->is_wide ? create_wide(split) : create_columns(split, tile);
    if (is_complete)
        fill_powers(split);
    fftwf_free(tile);
    fftwf_free(row);
    return is_complete ? PNR_OK : PNR_ENOMEMORY;
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
    fftwf_free(split->lines);
    pnr_cpu_columns_destroy(&split->columns);
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

/* Transforms columns 1 .. width of the tile and moves each of them to the previous place. */
static void transform_columns(const pnr_cpu_split *split, int way, size_t width,
                              pnr_cpu_value *tile)
{
    for (size_t j = 0; j < width; j++)
        fftwf_execute_dft(split->column[way], tile + (j + 1) * split->row1, tile + j * split->row1);
}

/* Fills rows first .. end - 1 of the columns of a block value by value. These rows contain the end
 * of a period, or zeros. */
static void fill_columns(const pnr_cpu_split *split, size_t block, size_t first, size_t end,
                         const pnr_cpu_value *x, size_t n_samples, size_t n_lit,
                         pnr_cpu_value *columns)
{
    const size_t width = width_of(split, block);

    for (size_t n1 = first; n1 < end; n1++)
        for (size_t j = 0; j < width; j++) {
            const size_t n = split->n2 * n1 + COLUMNS * block + j;
            float *to = columns[j * split->row1 + n1];
            const bool is_lit = n < n_lit;

            to[0] = is_lit ? x[n < n_samples ? n : n - n_samples][0] : 0;
            to[1] = is_lit ? x[n < n_samples ? n : n - n_samples][1] : 0;
        }
}

/* Pass A with one column in each vector lane. A row of the block is read from x, or is zero. If a
 * period ends in the row, `edge` holds the row. Lanes after the last column hold values that are
 * never read. */
static void forward_wide(const pnr_cpu_split *split, size_t block, const pnr_cpu_value *x,
                         size_t n_samples, size_t n_lit, pnr_cpu_value *z, pnr_cpu_value *tile)
{
    static const pnr_cpu_value zeros[COLUMNS];
    const float(*from[PNR_CPU_COLUMN_MAX])[2];
    pnr_cpu_value edge[EDGES][COLUMNS];
    size_t n_edges = 0, n = COLUMNS * block;

    for (size_t n1 = 0; n1 < split->n1; n1++, n += split->n2) {
        const size_t at = n < n_samples ? n : n - n_samples;

        if (n >= n_lit) {
            from[n1] = (const float(*)[2])zeros;
        } else if (at + COLUMNS <= n_samples && n + COLUMNS <= n_lit) {
            from[n1] = (const float(*)[2])x + at;
        } else {
            for (size_t j = 0; j < COLUMNS; j++) {
                const size_t i = n + j < n_samples ? n + j : n + j - n_samples;

                edge[n_edges][j][0] = n + j < n_lit ? x[i][0] : 0;
                edge[n_edges][j][1] = n + j < n_lit ? x[i][1] : 0;
            }
            from[n1] = (const float(*)[2])edge[n_edges++];
        }
    }

    const pnr_cpu_column_twiddle twiddle = {(const float(*)[2])split->coarse + block * split->n1,
                                            (const pnr_cpu_line *)split->lines};

    pnr_cpu_columns_forward(&split->columns, from, &twiddle, (pnr_cpu_line *)tile,
                            z + COLUMNS * block, split->row2);
}

void pnr_cpu_split_forward(const pnr_cpu_split *split, size_t block, const pnr_cpu_value *x,
                           size_t n_samples, size_t n_lit, pnr_cpu_value *z, pnr_cpu_value *tile)
{
    const size_t width = width_of(split, block), n2 = split->n2, first = COLUMNS * block;
    pnr_cpu_value *columns = tile + split->row1;

    if (split->is_wide) {
        forward_wide(split, block, x, n_samples, n_lit, z, tile);
        return;
    }
    if (split->length == n_samples) {
        pnr_cpu_transpose(split->n1, width, x + first, n2, columns, split->row1);
    } else {
        /* Transposes the rows that lie wholly in one period. Rows that contain the end of a
         * period are filled value by value. */
        const size_t end = n_samples < first + width ? 0 : (n_samples - first - width) / n2 + 1;
        const size_t second = n_samples < first ? 0 : (n_samples - first + n2 - 1) / n2;
        size_t end_second = n_lit < first + width ? 0 : (n_lit - first - width) / n2 + 1;

        end_second = end_second > second ? end_second : second;
        pnr_cpu_transpose(end, width, x + first, n2, columns, split->row1);
        fill_columns(split, block, end, second, x, n_samples, n_lit, columns);
        pnr_cpu_transpose(end_second - second, width, x + (second * n2 + first - n_samples), n2,
                          columns + second, split->row1);
        fill_columns(split, block, end_second, split->n1, x, n_samples, n_lit, columns);
    }
    transform_columns(split, 0, width, tile);
    pnr_cpu_transpose(width, split->n1, (const pnr_cpu_value *)tile, split->row1, z + first,
                      split->row2);
}

/* forward_row and inverse_row are the two halves of pass B for row k1: from z to the spectrum, and
 * from a product to z. */
static void forward_row(const pnr_cpu_split *split, size_t k1, pnr_cpu_value *z, pnr_cpu_value *x)
{
    if (!split->is_wide)
        pnr_cpu_twiddle(split->n2, split->coarse + k1 * split->n_blocks, split->fine + k1 * COLUMNS,
                        false, z);
    fftwf_execute_dft(split->row[0], z, x);
}

static void inverse_row(const pnr_cpu_split *split, size_t k1, pnr_cpu_value *product,
                        pnr_cpu_value *z)
{
    fftwf_execute_dft(split->row[1], product, z);
    if (!split->is_wide)
        pnr_cpu_twiddle(split->n2, split->coarse + k1 * split->n_blocks, split->fine + k1 * COLUMNS,
                        true, z);
}

void pnr_cpu_split_rows(const pnr_cpu_split *split, size_t block, size_t n,
                        pnr_cpu_value *const z[2], pnr_cpu_value *const h[2], pnr_cpu_value *tile,
                        uint64_t *stage_ns)
{
    const size_t end = ROWS * (block + 1) < split->n1 ? ROWS * (block + 1) : split->n1;
    uint64_t since = pnr_cpu_start(stage_ns);

    for (size_t k1 = ROWS * block; k1 < end; k1++) {
        const size_t at = k1 * split->row2;

        forward_row(split, k1, z[0] + at, tile);
        pnr_cpu_lap(stage_ns, PNR_STAGE_FORWARD, &since);
        for (size_t i = 0; i < n; i++) {
            pnr_cpu_value *product = i + 1 == n ? tile : tile + split->row2;

            pnr_cpu_product(split->n2, (const pnr_cpu_value *)tile,
                            (const pnr_cpu_value *)h[i] + at, product);
            pnr_cpu_lap(stage_ns, PNR_STAGE_PRODUCT, &since);
            inverse_row(split, k1, product, z[i] + at);
            pnr_cpu_lap(stage_ns, PNR_STAGE_INVERSE, &since);
        }
    }
}

void pnr_cpu_split_inverse(const pnr_cpu_split *split, size_t block, const pnr_cpu_value *z,
                           pnr_cpu_value *c, size_t n_samples, bool add, float *power,
                           pnr_cpu_value *tile, uint64_t *stage_ns)
{
    const size_t width = width_of(split, block), first = COLUMNS * block, n2 = split->n2;
    uint64_t since = pnr_cpu_start(stage_ns);
    pnr_cpu_value *out = c + first * split->next2;
    /* number of rows m1 whose lags are all below n_samples */
    size_t whole = n_samples < first + width ? 0 : (n_samples - first - width) / n2 + 1;

    if (split->is_wide) {
        const pnr_cpu_column_twiddle twiddle = {(const float(*)[2])split->coarse +
                                                    block * split->n1,
                                                (const pnr_cpu_line *)split->lines};

        whole = width < COLUMNS ? 0 : whole;
        pnr_cpu_columns_inverse(&split->columns, z + first, split->row2, &twiddle,
                                (pnr_cpu_line *)tile, out, power + first, n2, whole, add);
        pnr_cpu_lap(stage_ns, PNR_STAGE_INVERSE, &since); /* includes most of the time for |c|^2 */
    } else {
        pnr_cpu_transpose(split->n1, width, z + first, split->row2, tile, split->row1);
        for (size_t j = 0; j < width; j++)
            fftwf_execute_dft(split->column[1], tile + j * split->row1, out + j * split->row1);
        pnr_cpu_lap(stage_ns, PNR_STAGE_INVERSE, &since);
        pnr_cpu_power_columns(whole, width, (const pnr_cpu_value *)out, split->row1, n2, add,
                              power + first);
    }
    for (size_t m1 = whole; n2 * m1 + first < n_samples; m1++)
        for (size_t j = 0; j < width && n2 * m1 + first + j < n_samples; j++)
            pnr_cpu_power(1, (const pnr_cpu_value *)out + m1 * split->next1 + j * split->next2, add,
                          power + n2 * m1 + first + j);
    pnr_cpu_lap(stage_ns, PNR_STAGE_PEAK, &since);
}

void pnr_cpu_split_spectrum(const pnr_cpu_split *split, pnr_cpu_value *z, pnr_cpu_value *x)
{
    for (size_t k1 = 0; k1 < split->n1; k1++)
        forward_row(split, k1, z + k1 * split->row2, x + k1 * split->row2);
}

/* For j = k1 + N1 k2 and the shift m = m1 + N1 m2, bin j + m is value k2 + m2 of row k1 + m1. If
 * k1 + m1 reaches N1, bin j + m is value k2 + m2 + 1 of row k1 + m1 - N1. */
void pnr_cpu_split_product(const pnr_cpu_split *split, const pnr_cpu_value *x, size_t shift,
                           const pnr_cpu_value *h, pnr_cpu_value *tile, pnr_cpu_value *z)
{
    for (size_t k1 = 0; k1 < split->n1; k1++) {
        const size_t at = k1 * split->row2, to = k1 + shift % split->n1;
        const size_t first = (shift / split->n1 + to / split->n1) % split->n2;
        const size_t wrap = split->n2 - first;
        const pnr_cpu_value *from = x + to % split->n1 * split->row2;

        pnr_cpu_product(wrap, from + first, h + at, tile);
        pnr_cpu_product(first, from, h + at + wrap, tile + wrap);
        inverse_row(split, k1, tile, z + at);
    }
}

void pnr_cpu_split_lags(const pnr_cpu_split *split, const pnr_cpu_value *c, pnr_cpu_value *natural)
{
    const size_t n2 = split->n2;

    if (split->is_wide)
        for (size_t m1 = 0; m1 < split->n1; m1++)
            memcpy(natural + m1 * n2, c + m1 * split->row2, n2 * sizeof *c);
    else
        pnr_cpu_transpose(n2, split->n1, c, split->row1, natural, n2);
}
