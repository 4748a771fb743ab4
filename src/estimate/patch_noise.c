/* SPDX-License-Identifier: MIT */
/* The noise covariance of a patch: products of the code with itself, in blocks of time. */
#include "estimate/patch_noise.h"

#include "base/complex.h"
#include "code/waveform.h"
#include "engine/plan.h"
#include "estimate/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    BLOCKS = 64 /* blocks of a window; at 4 bins the phase turns by 1/16 cycle in a block */
};

struct pnr_patch_noise {
    const pnr_plan *plan;
    size_t n_blocks;
    pnr_patch *blocks; /* [n_codes][n_blocks]: 1/R(0) sum conj(a(m - l)) a(m - l') over the samples
                        * m of a block */
};

static size_t block_first(const pnr_patch_noise *noise, size_t b)
{
    return b * noise->plan->n_samples / noise->n_blocks;
}

/* Fills sums[m + MIDDLE] with the sum of conj(a(m')) a(m' - d) / energy for m' from -MIDDLE to
 * m - 1. */
static void sum_up(const pnr_plan *plan, size_t code, int d, double energy, double complex *sums)
{
    const long n = (long)plan->n_samples;
    const double complex *a =
        (const double complex *)plan->references + code * plan->oversample * plan->n_samples;
    double complex sum = 0;
    long i = (J * n - MIDDLE) % n, j = (2 * J * n - MIDDLE - d) % n; /* m and m - d, modulo n */

    for (long m = -MIDDLE; m <= n + MIDDLE; m++) {
        const bool is_inside = m >= 0 && m < n && m - d >= 0;

        sums[m + MIDDLE] = sum;
        if (!plan->linear || is_inside)
            sum += conj(a[i]) * a[j] / energy;
        i = i + 1 < n ? i + 1 : 0;
        j = j + 1 < n ? j + 1 : 0;
    }
}

/* Fills the blocks of one code. In a linear correlation the samples before and after the window of
 * the middle lag belong to the first and the last block. */
static void fill_blocks(const pnr_patch_noise *noise, size_t code, double energy,
                        double complex *sums)
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
                const double complex before = sums[(from < -MIDDLE ? -MIDDLE : from) + MIDDLE];
                const double complex after = sums[(to > n + MIDDLE ? n + MIDDLE : to) + MIDDLE];

                blocks[b][j][j + d] = after - before;
                blocks[b][j + d][j] = conj(after - before);
            }
        }
    }
}

int pnr_patch_noise_create(const pnr_setup *setup, pnr_patch_noise **out)
{
    const pnr_plan *plan = &setup->plan;
    pnr_patch_noise *noise = calloc(1, sizeof *noise);
    double complex *sums = malloc((plan->n_samples + J) * sizeof *sums);

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

/* Factors the covariance g of slow time into l l^H, column by column. Returns the rank, which is
 * one for a single period. */
static int factor(const pnr_slow_time *slow, const pnr_echo_rows *rows, pnr_vector *l)
{
    const double least = 1e-6;
    pnr_patch rest;
    int rank = 0;

    memset(l, 0, sizeof(pnr_patch));
    for (int i = rows->first; i < rows->end; i++)
        for (int j = rows->first; j < rows->end; j++)
            rest[i][j] = pnr_slow_time_noise(slow, rows->row[i].bins, rows->row[j].bins);
    for (; rank < rows->end - rows->first; rank++) {
        int k = rows->first;

        for (int i = rows->first; i < rows->end; i++)
            k = creal(rest[i][i]) > creal(rest[k][k]) ? i : k;
        if (creal(rest[k][k]) < least)
            break;
        for (int i = rows->first; i < rows->end; i++)
            l[rank][i] = rest[i][k] / sqrt(creal(rest[k][k]));
        for (int i = rows->first; i < rows->end; i++)
            for (int j = rows->first; j < rows->end; j++)
                rest[i][j] -= l[rank][i] * conj(l[rank][j]);
    }
    return rank;
}

/* Returns the time from the middle of the window to the middle of block b, divided by N. lag: the
 * lag of the middle cell. */
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
                                const pnr_patch *h, int n, double complex (*out)[PNR_PATCH_SUMS])
{
    const pnr_patch *blocks = noise->blocks + place->code * noise->n_blocks;
    pnr_patch l;
    const int rank = factor(slow, rows, l);

    memset(out, 0, (size_t)n * sizeof *out);
    for (size_t b = 0; b < noise->n_blocks; b++)
        for (int q = 0; q < rank; q++) {
            const double time = time_of(noise, b, place->lag);
            pnr_vector sum[PNR_PATCH_SUMS] = {{0}};

            for (int r = rows->first; r < rows->end; r++) {
                const double complex turn =
                    pnr_cis(2 * M_PI * rows->row[r].rotation * time) * conj(l[q][r]);

                for (int i = 0; i < n; i++)
                    for (int j = 0; j < J; j++)
                        sum[i][j] += turn * h[i][r][j];
            }
            for (int j = 0; j < n; j++) {
                pnr_vector seen;

                pnr_matrix_apply(blocks[b], sum[j], seen);
                for (int i = 0; i < n; i++)
                    out[i][j] += pnr_inner(sum[i], seen);
            }
        }
}
