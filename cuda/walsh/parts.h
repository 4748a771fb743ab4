/* SPDX-License-Identifier: MIT */
/* An m-sequence at several samples a chip: the profile from those of the polyphase parts. */
#ifndef PNR_CUDA_WALSH_PARTS_H
#define PNR_CUDA_WALSH_PARTS_H

#include "cuda/base/pnr.h"

#include <cuda_runtime.h>

enum { PNR_WALSH_MAX_PARTS = 16 };

/*
 * a[j] = chip[floor(j / q)], N = q L. With W_r[k] = sum_i x[q (i + k) + r] chip[i] (i + k mod L),
 * the profile of part r,
 *     c[q k + s] = sum_(r = s .. q-1) W_r[k] + sum_(r = 0 .. s-1) W_r[k + 1]   (k mod L),
 * each chip's lags from sums of their own, so that rounding does not grow along the profile.
 * parts: W, [n_rows][q][L]; rows: c, [n_rows][row_stride]. PNR_OK, or as pnr_cuda_check.
 */
int pnr_cuda_walsh_sum_parts(const float2 *parts, size_t n_chips, size_t n_parts, size_t n_rows,
                             float2 *rows, size_t row_stride, cudaStream_t stream,
                             pnr_error *error);

#endif
