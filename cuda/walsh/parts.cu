/* SPDX-License-Identifier: MIT */
/* An m-sequence at several samples a chip: the profile from those of the polyphase parts. */
#include "cuda/walsh/parts.h"

#include "cuda/base/check.h"
#include "cuda/steps/convert.h"

#include <cassert>

static __device__ float2 plus(float2 a, float2 b)
{
    return make_float2(a.x + b.x, a.y + b.y);
}

/* One block: as many chips of a row as it has threads; one thread: the q lags of a chip. They lie
 * in shared memory until the block writes them side by side. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    sum_parts(const float2 *parts, uint32_t n_chips, uint32_t q, uint32_t n_rows, float2 *rows,
              uint32_t row_stride)
{
    extern __shared__ float2 lags[];
    const uint32_t first = blockIdx.x * PNR_CUDA_THREADS, k = first + threadIdx.x;
    const uint32_t count = min((uint32_t)PNR_CUDA_THREADS, n_chips - first);
    const uint32_t next = k + 1 == n_chips ? 0 : k + 1, stride = pnr_cuda_parts_stride(q);
    float2 *own = lags + threadIdx.x * stride;

    for (uint32_t row = blockIdx.y; row < n_rows; row += gridDim.y) {
        const float2 *w = parts + (size_t)row * q * n_chips;
        float2 *out = rows + (size_t)row * row_stride + (size_t)first * q;

        if (k < n_chips) {
            float2 later = {0, 0}, earlier = {0, 0};

            for (uint32_t s = q; s-- > 0;)
                own[s] = later = plus(later, w[(size_t)s * n_chips + k]);
            for (uint32_t s = 1; s < q; s++) {
                earlier = plus(earlier, w[(size_t)(s - 1) * n_chips + next]);
                own[s] = plus(own[s], earlier);
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count * q; i += PNR_CUDA_THREADS)
            out[i] = lags[i / q * stride + i % q];
        __syncthreads();
    }
}

int pnr_cuda_walsh_sum_parts(const float2 *parts, size_t n_chips, size_t n_parts, size_t n_rows,
                             float2 *rows, size_t row_stride, cudaStream_t stream, pnr_error *error)
{
    const dim3 grid((unsigned)((n_chips + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS),
                    (unsigned)(n_rows < 65535 ? n_rows : 65535));

    assert(n_parts >= 1 && n_parts <= PNR_WALSH_MAX_PARTS && n_chips >= 1 && n_rows >= 1);
    assert(row_stride >= n_parts * n_chips && row_stride <= UINT32_MAX && n_rows <= UINT32_MAX);
    sum_parts<<<grid, PNR_CUDA_THREADS,
                PNR_CUDA_THREADS * pnr_cuda_parts_stride(n_parts) * sizeof(float2), stream>>>(
        parts, (uint32_t)n_chips, (uint32_t)n_parts, (uint32_t)n_rows, rows, (uint32_t)row_stride);
    return pnr_cuda_check_launch("sum_parts", error);
}
