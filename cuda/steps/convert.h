/* SPDX-License-Identifier: MIT */
/* The convert step: raw samples to the rows that are transformed. */
#ifndef PNR_CUDA_CONVERT_H
#define PNR_CUDA_CONVERT_H

#include "cuda/base/sample.h"
#include "cuda/base/shape.h"
#include "cuda/base/state.h"

typedef struct pnr_cuda_conversion {
    pnr_cuda_samples samples;
    const pnr_cuda_window *windows; /* [n_windows], device */
    const pnr_cuda_energy *sums;    /* [n_windows], device */
    uint64_t step;                  /* tune: turns a sample, in 2^-64 */
    bool is_tuned;
    bool is_conjugated; /* before the tune */
} pnr_cuda_conversion;

/*
 * rows, [n_dwells * dwell_rows][row_stride]: y[n] = x[n mod N] for n < 2N-1, 0 after (L = N: y =
 * x), x in full scale, conjugated, tuned, 0 where not finite and in windows not used. A coherent
 * dwell's row is the sum over its windows, in order. first_dwell: of the round in the submit.
 */
int pnr_cuda_convert(const pnr_cuda_shape *shape, const pnr_cuda_conversion *conversion,
                     size_t first_dwell, size_t n_dwells, float2 *rows, cudaStream_t stream,
                     pnr_error *error);

/* The same samples in polyphase parts, [rows][n_parts][N / n_parts]: sample n of a row at place
 * floor(n / n_parts) of part n mod n_parts, at most 16. */
int pnr_cuda_convert_parts(const pnr_cuda_shape *shape, const pnr_cuda_conversion *conversion,
                           size_t n_parts, size_t first_dwell, size_t n_dwells, float2 *parts,
                           cudaStream_t stream, pnr_error *error);

/* From chip to chip in shared memory, values: odd, so that threads side by side meet all banks. */
static inline __host__ __device__ size_t pnr_cuda_parts_stride(size_t n_parts)
{
    return n_parts | 1;
}

#endif
