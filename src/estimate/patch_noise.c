/* SPDX-License-Identifier: MIT */
/* The noise covariance of a patch: products of the code with itself, in blocks of time. */
#include "estimate/patch_noise.h"

#include "code/waveform.h"
#include "engine/plan.h"
#include "estimate/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    BLOCKS = 64 /* of a window: 4 bins rotate by 1/16 turn in one block */
};

typedef double value[2]; /* re, im */

struct pnr_patch_noise {
    const pnr_plan *plan;
    size_t n_blocks;
    pnr_patch *blocks; /* [n_codes][n_blocks]: 1/R(0) sum conj(a(m - l)) a(m - l') */
};

static size_t block_first(const pnr_patch_noise *noise, size_t b)
{
    return b * noise->plan->n_samples / noise->n_blocks;
}

/* sums[m + MIDDLE] = sum_{m' = -MIDDLE .. m - 1} conj(a(m')) a(m' - d) / energy */
static void sum_up(const pnr_plan *plan, size_t code, int d, double energy, value *sums)
{
    const long n = (long)plan->n_samples;
    const double(*a)[2] = plan->references + code * plan->oversample * plan->n_samples;
    value sum = {0, 0};

    for (long m = -MIDDLE; m <= n + MIDDLE; m++) {
        const bool is_inside = m >= 0 && m < n && m - d >= 0;

        sums[m + MIDDLE][0] = sum[0];
        sums[m + MIDDLE][1] = sum[1];
        if (plan->linear && !is_inside)
            continue;

        const double *x = a[(m + J * n) % n], *y = a[(m - d + 2 * J * n) % n];

        sum[0] += (x[0] * y[0] + x[1] * y[1]) / energy;
        sum[1] += (x[0] * y[1] - x[1] * y[0]) / energy;
    }
}

/* In a linear correlation the samples before and after the window of the middle lag belong to the
 * first and the last block. */
static void fill_blocks(const pnr_patch_noise *noise, size_t code, double energy, value *sums)
{
    const long n = (long)noise->plan->n_samples, beyond = noise->plan->linear ? n : 0;
    pnr_patch *blocks = noise->blocks + code * noise->n_blocks;

    for (int d = 0; d < J; d++) {
        sum_up(noise->plan, code, d, energy, sums);
        for (size_t b = 0; b < noise->n_blocks; b++) {
            const long first = (long)block_first(noise, b) - (b == 0 ? beyond : 0);
            const long end =
                (long)block_first(noise, b + 1) + (b + 1 == noise->n_blocks ? beyond : 0);

            for (int j = 0; j + d < J; j++) { /* conj(a(m - l)) a(m - l - d), l = j - MIDDLE */
                const long from = first - (j - MIDDLE), to = end - (j - MIDDLE);
                const double *before = sums[(from < -MIDDLE ? -MIDDLE : from) + MIDDLE];
                const double *after = sums[(to > n + MIDDLE ? n + MIDDLE : to) + MIDDLE];

                for (int c = 0; c < 2; c++)
                    blocks[b][j][j + d][c] = after[c] - before[c];
                blocks[b][j + d][j][0] = blocks[b][j][j + d][0];
                blocks[b][j + d][j][1] = -blocks[b][j][j + d][1];
            }
        }
    }
}

int pnr_patch_noise_create(const pnr_setup *setup, pnr_patch_noise **out)
{
    const pnr_plan *plan = &setup->plan;
    pnr_patch_noise *noise = calloc(1, sizeof *noise);
    value *sums = malloc((plan->n_samples + J) * sizeof *sums);

    *out = NULL;
    if (noise == NULL || sums == NULL)
        goto fail;
    noise->plan = plan;
    noise->n_blocks = plan->n_samples < BLOCKS ? plan->n_samples : BLOCKS;
    noise->blocks = malloc(setup->n_codes * noise->n_blocks * sizeof *noise->blocks);
    if (noise->blocks == NULL)
        goto fail;
    for (size_t c = 0; c < setup->n_codes; c++)
        fill_blocks(noise, c, pnr_waveform_energy(setup->codes[c].waveform), sums);
    free(sums);
    *out = noise;
    return PNR_OK;
fail:
    free(sums);
    pnr_patch_noise_destroy(noise);
    return PNR_ENOMEMORY;
}

void pnr_patch_noise_destroy(pnr_patch_noise *noise)
{
    if (noise == NULL)
        return;
    free(noise->blocks);
    free(noise);
}

/* Factors g = l l^H of slow time column by column; returns the rank, which is one for a single
 * period. */
static int factor(const pnr_slow_time *slow, const pnr_echo_rows *rows, pnr_vector *l)
{
    const double least = 1e-6;
    value rest[J][J];
    int rank = 0;

    memset(l, 0, sizeof(pnr_patch));
    for (int i = rows->first; i < rows->end; i++)
        for (int j = rows->first; j < rows->end; j++)
            pnr_slow_time_noise(slow, rows->row[i].bins, rows->row[j].bins, rest[i][j]);
    for (; rank < rows->end - rows->first; rank++) {
        int k = rows->first;

        for (int i = rows->first; i < rows->end; i++)
            k = rest[i][i][0] > rest[k][k][0] ? i : k;
        if (rest[k][k][0] < least)
            break;
        for (int i = rows->first; i < rows->end; i++)
            for (int c = 0; c < 2; c++)
                l[rank][i][c] = rest[i][k][c] / sqrt(rest[k][k][0]);
        for (int i = rows->first; i < rows->end; i++)
            for (int j = rows->first; j < rows->end; j++) { /* - l_i conj(l_j) */
                const double *x = l[rank][i], *y = l[rank][j];

                rest[i][j][0] -= x[0] * y[0] + x[1] * y[1];
                rest[i][j][1] -= x[1] * y[0] - x[0] * y[1];
            }
    }
    return rank;
}

/* The time of the middle of a block relative to the middle of the window, divided by N; lag is that
 * of the middle cell. */
static double time_of(const pnr_patch_noise *noise, size_t b, long lag)
{
    const double n = (double)noise->plan->n_samples;
    const double middle =
        (double)(block_first(noise, b) + block_first(noise, b + 1) - 1) / 2 + (double)lag;
    const double in_window = noise->plan->linear ? middle : middle - n * floor(middle / n);

    return (in_window - (n - 1) / 2) / n;
}

void pnr_patch_noise_covariance(const pnr_patch_noise *noise, const pnr_slow_time *slow,
                                const pnr_echo_rows *rows, const pnr_patch_place *place,
                                const pnr_patch *h, int n, double (*out)[PNR_PATCH_SUMS][2])
{
    const pnr_patch *blocks = noise->blocks + place->code * noise->n_blocks;
    pnr_patch l;
    const int rank = factor(slow, rows, l);

    memset(out, 0, (size_t)n * sizeof *out);
    for (size_t b = 0; b < noise->n_blocks; b++)
        for (int q = 0; q < rank; q++) {
            const double time = time_of(noise, b, place->lag);
            value sum[PNR_PATCH_SUMS][J] = {{{0}}};

            for (int r = rows->first; r < rows->end; r++) {
                const double angle = 2 * M_PI * rows->row[r].rotation * time;
                value turn;

                pnr_echo_multiply((const value){cos(angle), sin(angle)},
                                  (const value){l[q][r][0], -l[q][r][1]}, turn);
                for (int i = 0; i < n; i++)
                    for (int j = 0; j < J; j++) {
                        value z;

                        pnr_echo_multiply(turn, h[i][r][j], z);
                        sum[i][j][0] += z[0];
                        sum[i][j][1] += z[1];
                    }
            }
            for (int j = 0; j < n; j++) {
                value seen[J];

                pnr_matrix_apply((const value(*)[J])blocks[b], (const value *)sum[j], seen);
                for (int i = 0; i < n; i++) {
                    value z;

                    pnr_echo_product((const value *)sum[i], (const value *)seen, z);
                    out[i][j][0] += z[0];
                    out[i][j][1] += z[1];
                }
            }
        }
}
