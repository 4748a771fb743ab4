/* SPDX-License-Identifier: MIT */
/* The cpu engine's loops over samples. Each loop sums in a fixed order, so that all vector widths
 * give the same bits. */
#ifndef PNR_ENGINE_CPU_OPS_H
#define PNR_ENGINE_CPU_OPS_H

#include "base/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sums over converted samples. */
typedef struct pnr_converted {
    double energy; /* sum |x|^2, full scale = 1 */
    uint64_t n_clipped;
    uint64_t n_nonfinite;
} pnr_converted;

/* Converts n samples, `stride` bytes apart, to out[n][2] with full scale = 1. Non-finite samples
 * become 0. conjugate: the samples are I - jQ. Each value equals the value of pnr_format_read in
 * single precision. Adds the numbers of clipped and of non-finite samples to *total, whose energy
 * does not change. */
void pnr_cpu_convert(pnr_format format, const void *raw, size_t stride, size_t n, bool conjugate,
                     float (*out)[2], pnr_converted *total);
/* Returns sum |x|^2. The order of the additions depends only on n. */
double pnr_cpu_energy(size_t n, const float (*x)[2]);

/* pnr_cpu_rotate: x[k] *= exp(-2 pi i (phase + k step) 2^-64), computed from the tables of
 * pnr_rotation. */
enum { PNR_ROTATION_BITS = 10 };
typedef struct pnr_rotation {
    float coarse[1 << PNR_ROTATION_BITS][2];
    float fine[1 << PNR_ROTATION_BITS][2];
} pnr_rotation;
void pnr_cpu_rotation_tables(pnr_rotation *rotation);
void pnr_cpu_rotate(const pnr_rotation *rotation, uint64_t phase, uint64_t step, size_t n,
                    float (*x)[2]);

void pnr_cpu_add(size_t n, const float (*x)[2], float (*sum)[2]);
/* out[i] = x[i] h[i] */
void pnr_cpu_product(size_t n, const float (*x)[2], const float (*h)[2], float (*out)[2]);
/* power[i] = |c[i]|^2; add: power[i] += |c[i]|^2. */
void pnr_cpu_power(size_t n, const float (*c)[2], bool add, float *power);

/* to[c][r] = from[r][c]. from_row: pitch of the rows of `from`, in values. to_row: pitch of the
 * rows of `to`. */
void pnr_cpu_transpose(size_t rows, size_t columns, const float (*from)[2], size_t from_row,
                       float (*to)[2], size_t to_row);
/* power[r][j] = |c[j][r]|^2 for r < rows and j < columns; add: adds |c[j][r]|^2 to power[r][j].
 * c_row, power_row: pitches of the rows of c and of power, in values. */
void pnr_cpu_power_columns(size_t rows, size_t columns, const float (*c)[2], size_t c_row,
                           size_t power_row, bool add, float *power);
/* x[16 b + j] *= w with w = coarse[b] fine[j]; conjugate: x[16 b + j] *= conj(w). fine: [16]. */
void pnr_cpu_twiddle(size_t n, const float (*coarse)[2], const float (*fine)[2], bool conjugate,
                     float (*x)[2]);

#endif
