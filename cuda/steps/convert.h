/* SPDX-License-Identifier: MIT */
/* The convert step: converts raw samples to the rows that are transformed. */
#ifndef PNR_CUDA_CONVERT_H
#define PNR_CUDA_CONVERT_H

#include "cuda/base/sample.h"
#include "cuda/base/shape.h"
#include "cuda/base/state.h"

typedef struct pnr_cuda_conversion {
    pnr_cuda_samples samples;
    const pnr_cuda_window *windows; /* [n_windows], device */
    const pnr_cuda_energy *sums;    /* [n_windows], device */
    uint64_t step;                  /* phase step of the tune, in 2^-64 turns per sample */
    bool is_tuned;
    bool is_conjugated; /* x is conjugated before it is tuned */
} pnr_cuda_conversion;

/*
 * Fills rows, [n_dwells * n_looks][row_stride]. A row has the L samples y[n] = x[n mod N] for
 * n < 2N - 1, then 0. If L = N, the row is x. Here x is a window in full scale, conjugated and
 * tuned. x is 0 where a sample is not finite or the window is not used. The row of a coherent dwell
 * is the sum over its windows, in order.
 */
int pnr_cuda_convert(const pnr_cuda_shape *shape, const pnr_cuda_conversion *conversion,
                     size_t n_dwells, float2 *rows, cudaStream_t stream, pnr_error *error);

#endif
