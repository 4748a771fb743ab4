/* SPDX-License-Identifier: MIT */
/* Method walsh of the cpu engine: the correlation with an m-sequence at its exact length, by
 * additions. */
#include "engine/cpu/walsh.h"

#include "base/memory.h"
#include "base/multiversion.h"
#include "engine/cpu/ops.h"

#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    LANES = 8,            /* values of a vector, which is a cache line */
    ROW_BITS = 15,        /* a row of 256 KiB fits the second-level cache of a core */
    CHUNK = 4096 / LANES, /* vectors of a chunk: 32 KiB, which fit the first-level cache */
    STRIP = 2,            /* vectors of each row in a tile of columns: a pair of cache lines */
    TASK = 1024,          /* columns of a task */
    WORDS = 512,          /* samples that are gathered together, and then converted */
    MAX_PARTS = 16,
    CHIPS = 64,             /* greatest number of chips in one call of sum_chips */
    SUM_CHIPS = 64 * CHIPS, /* chips of a task */
    MAX_ROWS = 1 << (24 - ROW_BITS)
};

/*
 * All values are single-precision floats. Integer samples converted to full scale = 1 are integers
 * times a power of two, so that their sums are exact up to 24 bits. With full-scale samples of 16
 * bits the first nine stages are exact. Each later stage rounds once. The total error is
 * sqrt(stages) eps, within the tolerance of every engine. 32-bit integers would not be faster,
 * because a vector holds as many of them as floats. They would also need a second conversion.
 */
typedef float vector __attribute__((vector_size(64), may_alias));

const char *pnr_cpu_walsh_refusal(const pnr_plan *plan)
{
    if (plan->m_degree == 0)
        return "the code is no m-sequence of whole samples a chip";
    if (plan->m_degree < 3)
        return "an m-sequence of 3 chips is too short for it";
    if (plan->m_samples > MAX_PARTS)
        return "more than 16 samples a chip";
    if (plan->linear)
        return "its correlation is circular";
    if (plan->oversample != 1)
        return "at half lags (detector.oversample = 2) the code is no sequence of +1 and -1";
    return NULL;
}

void pnr_cpu_walsh_shape(const pnr_plan *plan, pnr_cpu_walsh *walsh)
{
    const unsigned degree = plan->m_degree, bits = degree < ROW_BITS ? degree : ROW_BITS;

    memset(walsh, 0, sizeof *walsh);
    walsh->degree = degree;
    walsh->n_parts = plan->m_samples;
    walsh->columns = (size_t)1 << bits;
    walsh->rows = (size_t)1 << (degree - bits);
    walsh->row = walsh->columns + (walsh->rows > 1 ? STRIP * LANES : 0);
    walsh->n_column_tasks = walsh->columns > TASK ? walsh->columns / TASK : 1;
}

size_t pnr_cpu_walsh_table_bytes(const pnr_cpu_walsh *walsh)
{
    return sizeof(uint32_t) * (((size_t)2 << walsh->degree) + pnr_cpu_walsh_values(walsh));
}

size_t pnr_cpu_walsh_values(const pnr_cpu_walsh *walsh)
{
    return walsh->rows * walsh->row;
}

int pnr_cpu_walsh_create(pnr_cpu_walsh *walsh, const pnr_plan *plan)
{
    const unsigned degree = walsh->degree;
    const size_t n = ((size_t)1 << degree) - 1, q = walsh->n_parts;
    uint32_t state = 0;

    walsh->sample = pnr_memory_zeroed((n + 1) * sizeof *walsh->sample);
    walsh->place = pnr_memory_zeroed((n + 1) * sizeof *walsh->place);
    walsh->lag_at = pnr_memory_zeroed(pnr_cpu_walsh_values(walsh) * sizeof *walsh->lag_at);
    if (walsh->sample == NULL || walsh->place == NULL || walsh->lag_at == NULL)
        return PNR_ENOMEMORY;
    for (unsigned j = 0; j < degree; j++)
        state |= (uint32_t)(plan->references[j * q][0] < 0) << j;
    for (size_t i = 0; i < n; i++) {
        walsh->sample[state] = (uint32_t)i;
        state = state >> 1 | (uint32_t)(plan->references[(i + degree) % n * q][0] < 0)
                                 << (degree - 1);
    }
    for (unsigned j = 0; j < degree; j++) {
        size_t i = walsh->sample[(size_t)1 << j]; /* i is t_j - k */

        for (size_t k = 0; k < n; k++, i = i == 0 ? n - 1 : i - 1)
            walsh->place[k] |= (uint32_t)(plan->references[i * q][0] < 0) << j;
    }
    for (size_t k = 0; k < n; k++) {
        const size_t u = walsh->place[k];

        walsh->place[k] = (uint32_t)(u / walsh->columns * walsh->row + u % walsh->columns);
        walsh->lag_at[walsh->place[k]] = (uint32_t)k;
    }
    return PNR_OK;
}

void pnr_cpu_walsh_destroy(pnr_cpu_walsh *walsh)
{
    free(walsh->sample);
    free(walsh->place);
    free(walsh->lag_at);
}

/* --- the transform --- */

INLINE void butterfly(vector *a, vector *b)
{
    const vector sum = *a + *b;

    *b = *a - *b;
    *a = sum;
}

INLINE void three_stages(vector v[8])
{
    for (int h = 1; h < 8; h *= 2)
        for (int i = 0; i < 8; i++)
            if ((i & h) == 0)
                butterfly(&v[i], &v[i + h]);
}

/* Transforms a vector over the three lowest bits of the place. These bits number the values of a
 * vector. */
INLINE void lane_stages(vector *v)
{
    static const vector sign[3] = {{1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1},
                                   {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1},
                                   {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1}};
    vector x = *v;

    x = x * sign[0] +
        __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    x = x * sign[1] +
        __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    x = x * sign[2] +
        __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    *v = x;
}

/* Transforms n vectors over the six lowest bits of the place. If n < 8, transforms them over the
 * three lowest bits only. */
INLINE void lowest_stages(vector *x, size_t n)
{
    if (n < 8) {
        for (size_t i = 0; i < n; i++)
            lane_stages(x + i);
        return;
    }
    for (size_t first = 0; first < n; first += 8) {
        vector v[8];

        memcpy(v, x + first, sizeof v);
        three_stages(v);
        for (int i = 0; i < 8; i++)
            lane_stages(v + i);
        memcpy(x + first, v, sizeof v);
    }
}

/* Transforms n vectors over the bits h, 2 h, .. n / 2 of their index: three bits at a time, then
 * one at a time. */
INLINE void stages(vector *x, size_t h, size_t n)
{
    for (; 8 * h <= n; h *= 8)
        for (size_t first = 0; first < n; first += 8 * h)
            for (size_t i = first; i < first + h; i++) {
                vector v[8];

                for (size_t j = 0; j < 8; j++)
                    v[j] = x[i + j * h];
                three_stages(v);
                for (size_t j = 0; j < 8; j++)
                    x[i + j * h] = v[j];
            }
    for (; h < n; h *= 2)
        for (size_t first = 0; first < n; first += 2 * h)
            for (size_t i = first; i < first + h; i++)
                butterfly(&x[i], &x[i + h]);
}

/* Each of these functions gathers n values. The functions for integers fetch I and Q of a sample as
 * one word, and then convert the gathered words like pnr_cpu_convert. */
INLINE void gather_floats(const pnr_cpu_walsh_input *input, const uint32_t *sample, size_t n,
                          float (*to)[2])
{
    const char *data = input->data;
    const size_t stride = input->stride;

    for (size_t i = 0; i < n; i++)
        memcpy(to[i], data + sample[i] * stride, sizeof *to);
}

#define DEFINE_GATHER(name, type, scale)                                                           \
    INLINE void name(const pnr_cpu_walsh_input *input, const uint32_t *sample, size_t n,           \
                     float(*to)[2])                                                                \
    {                                                                                              \
        const char *data = input->data;                                                            \
        const size_t stride = input->stride;                                                       \
        const float re = (scale), im = input->conjugate ? -(scale) : (scale);                      \
        type word[WORDS][2];                                                                       \
                                                                                                   \
        for (size_t first = 0; first < n; first += WORDS) {                                        \
            const size_t count = n - first < WORDS ? n - first : WORDS;                            \
                                                                                                   \
            for (size_t i = 0; i < count; i++)                                                     \
                memcpy(word[i], data + sample[first + i] * stride, sizeof *word);                  \
            for (size_t i = 0; i < count; i++) {                                                   \
                to[first + i][0] = (float)word[i][0] * re;                                         \
                to[first + i][1] = (float)word[i][1] * im;                                         \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_GATHER(gather_ci16, int16_t, 1.0f / 32768)
DEFINE_GATHER(gather_ci8, int8_t, 1.0f / 128)

bool pnr_cpu_walsh_reads(const pnr_plan *plan)
{
    return (plan->format == PNR_FORMAT_CI16 || plan->format == PNR_FORMAT_CI8) &&
           plan->tune.num == 0 && plan->n_periods == 1;
}

PNR_MULTIVERSION void pnr_cpu_walsh_row(const pnr_cpu_walsh *walsh, size_t row,
                                        const pnr_cpu_walsh_input *input, float (*X)[2])
{
    const size_t n = walsh->columns / LANES, chunk = n < CHUNK ? n : CHUNK;
    const uint32_t *sample = walsh->sample + row * walsh->columns;
    vector *to = (vector *)(X + row * walsh->row);

    for (size_t first = 0; first < n; first += chunk) {
        float(*value)[2] = (float(*)[2])(to + first);

        if (input->format == PNR_FORMAT_CI16)
            gather_ci16(input, sample + first * LANES, chunk * LANES, value);
        else if (input->format == PNR_FORMAT_CI8)
            gather_ci8(input, sample + first * LANES, chunk * LANES, value);
        else
            gather_floats(input, sample + first * LANES, chunk * LANES, value);
        if (row == 0 && first == 0)
            memset(value, 0, sizeof *value);
        lowest_stages(to + first, chunk);
        stages(to + first, chunk < 8 ? 1 : 8, chunk);
    }
    stages(to, chunk, n);
}

/* Copies STRIP vectors of each row of X to the tile. Transforms them over the bits of the row
 * number. */
INLINE void load_columns(const pnr_cpu_walsh *walsh, const float (*X)[2], vector *tile)
{
    for (size_t r = 0; r < walsh->rows; r++)
        memcpy(tile + r * STRIP, X + r * walsh->row, STRIP * sizeof *tile);
    stages(tile, STRIP, walsh->rows * STRIP);
}

PNR_MULTIVERSION void pnr_cpu_walsh_columns(const pnr_cpu_walsh *walsh, size_t task,
                                            const float (*X)[2], bool add, float *power)
{
    const size_t width = walsh->columns < TASK ? walsh->columns : TASK, rows = walsh->rows;
    const size_t row = walsh->row;
    vector tile[MAX_ROWS * STRIP];

    if (rows == 1) {
        pnr_cpu_power(width, X + task * width, add, power + task * width);
        if (task == 0)
            power[0] = 0;
        return;
    }
    for (size_t c = task * width; c < (task + 1) * width; c += STRIP * LANES) {
        load_columns(walsh, X + c, tile);
        for (size_t r = 0; r < rows; r++) {
            const float(*w)[2] = (const float(*)[2])(tile + r * STRIP);
            float *to = power + r * row + c;

            if (add)
                for (size_t i = 0; i < STRIP * LANES; i++)
                    to[i] += w[i][0] * w[i][0] + w[i][1] * w[i][1];
            else
                for (size_t i = 0; i < STRIP * LANES; i++)
                    to[i] = w[i][0] * w[i][0] + w[i][1] * w[i][1];
        }
    }
    if (task == 0)
        power[0] = 0;
}

void pnr_cpu_walsh_value(const pnr_cpu_walsh *walsh, const float (*X)[2], size_t k, float c[2])
{
    const size_t column = walsh->place[k] % walsh->row, place = walsh->place[k] / walsh->row;
    float w[MAX_ROWS][2];
    size_t left = walsh->rows;

    for (size_t r = 0; r < left; r++)
        memcpy(w[r], X[r * walsh->row + column], sizeof *w);
    /* Transforms one bit at a time, the lowest bit first as in the tile. Each stage computes only
     * the half of its outputs on which W at `place` depends. */
    for (size_t bit = 1; left > 1; bit *= 2) {
        left /= 2;
        for (size_t r = 0; r < left; r++)
            for (int q = 0; q < 2; q++)
                w[r][q] = (place & bit) == 0 ? w[2 * r][q] + w[2 * r + 1][q]
                                             : w[2 * r][q] - w[2 * r + 1][q];
    }
    memcpy(c, w[0], sizeof *w);
}

/* --- several samples a chip --- */

PNR_MULTIVERSION void pnr_cpu_walsh_part(const pnr_cpu_walsh *walsh, size_t task, float (*X)[2])
{
    const size_t rows = walsh->rows, row = walsh->row;
    vector tile[MAX_ROWS * STRIP];

    for (size_t c = task * TASK; c < (task + 1) * TASK; c += STRIP * LANES) {
        load_columns(walsh, (const float(*)[2])X + c, tile);
        for (size_t r = 0; r < rows; r++)
            memcpy(X + r * row + c, tile + r * STRIP, STRIP * sizeof *tile);
    }
}

size_t pnr_cpu_walsh_n_sums(const pnr_cpu_walsh *walsh)
{
    return (((size_t)1 << walsh->degree) + SUM_CHIPS - 1) / SUM_CHIPS;
}

/* Computes c at the lags q first .. q (first + count) - 1 from W of all parts. Each chip has
 * separate sums, so that the rounding error does not grow along the profile. */
INLINE void sum_chips(const pnr_cpu_walsh *walsh, size_t first, size_t count, const float (*W)[2],
                      float (*c)[2])
{
    const size_t n = ((size_t)1 << walsh->degree) - 1, q = walsh->n_parts;
    const size_t values = pnr_cpu_walsh_values(walsh);
    float part[MAX_PARTS][CHIPS + 1][2], earlier[CHIPS][2] = {0}, later[CHIPS][2] = {0};
    uint32_t place[CHIPS + 1];

    memcpy(place, walsh->place + first, count * sizeof *place);
    place[count] = walsh->place[first + count == n ? 0 : first + count];
    for (size_t r = 0; r < q; r++)
        for (size_t k = 0; k <= count; k++)
            memcpy(part[r][k], W[r * values + place[k]], sizeof part[r][k]);
    for (size_t s = q; s-- > 0;)
        for (size_t k = 0; k < count; k++)
            for (int i = 0; i < 2; i++)
                c[q * k + s][i] = later[k][i] += part[s][k][i];
    for (size_t s = 0; s < q; s++)
        for (size_t k = 0; k < count; k++)
            for (int i = 0; i < 2; i++) {
                c[q * k + s][i] += earlier[k][i];
                earlier[k][i] += part[s][k + 1][i];
            }
}

PNR_MULTIVERSION void pnr_cpu_walsh_sum(const pnr_cpu_walsh *walsh, size_t task,
                                        const float (*W)[2], bool add, float (*c)[2], float *power)
{
    const size_t n = ((size_t)1 << walsh->degree) - 1, q = walsh->n_parts;
    const size_t left = n - task * SUM_CHIPS;
    const size_t end = task * SUM_CHIPS + (left < SUM_CHIPS ? left : SUM_CHIPS);

    for (size_t first = task * SUM_CHIPS; first < end; first += CHIPS) {
        const size_t count = end - first < CHIPS ? end - first : CHIPS;

        sum_chips(walsh, first, count, W, c + q * first);
        pnr_cpu_power(q * count, (const float(*)[2])c + q * first, add, power + q * first);
    }
}
