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
    uint64_t step;                  /* phase step of the mix to frequency 0, in 2^-64 turns per
                                     * sample */
    bool is_tuned;
    bool is_conjugated; /* x is conjugated before the mix */
} pnr_cuda_conversion;

/* Fills rows, [n_dwells * n_looks][row_stride], one row for each look. x is the sum of the used
 * windows of the look, added in their order. The samples of a window have full scale = 1. They are
 * conjugated and mixed to frequency 0 if required; a sample that is not finite counts as 0. The
 * transform has L points. If L = N, a row is x. Otherwise a row has L samples: y[n] = x[n mod N]
 * for n < 2N - 1, then zeros. */
int pnr_cuda_convert(const pnr_cuda_shape *shape, const pnr_cuda_conversion *conversion,
                     size_t n_dwells, float2 *rows, cudaStream_t stream, pnr_error *error);

#endif
