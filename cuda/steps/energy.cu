/* SPDX-License-Identifier: MIT */
/* The measure step: sums the energy of every window, counts its clipped and non-finite samples, and
 * finds the windows that a dwell uses. */
#include "cuda/steps/energy.h"

#include "cuda/base/check.h"
#include "cuda/base/reduce.h"

#include <cassert>

/* One block measures one segment of a window. The sums are in double, in a fixed order. */
template <typename FORMAT>
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    measure_windows(pnr_cuda_samples samples, uint32_t n_segments, pnr_cuda_energy *parts)
{
    __shared__ double energy_of_warp[PNR_CUDA_WARPS];
    __shared__ uint32_t clipped_of_warp[PNR_CUDA_WARPS], nonfinite_of_warp[PNR_CUDA_WARPS];
    const size_t window = blockIdx.x / n_segments;
    const uint32_t first = blockIdx.x % n_segments * PNR_CUDA_BLOCK_SAMPLES;
    const uint32_t end = min(first + PNR_CUDA_BLOCK_SAMPLES, samples.n_samples);
    double energy = 0;
    uint32_t n_clipped = 0, n_nonfinite = 0;

#pragma unroll 4
    for (uint32_t n = first + threadIdx.x; n < end; n += PNR_CUDA_THREADS) {
        const pnr_cuda_sample x = FORMAT::read(samples, window * samples.n_samples + n);
        const double i = x.value.x, q = x.value.y;

        energy = fma(i, i, fma(q, q, energy));
        n_clipped += x.is_clipped;
        n_nonfinite += !x.is_finite;
    }
    energy = pnr_cuda_block_sum(energy, energy_of_warp);
    n_clipped = pnr_cuda_block_sum(n_clipped, clipped_of_warp);
    n_nonfinite = pnr_cuda_block_sum(n_nonfinite, nonfinite_of_warp);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = {energy, n_clipped, n_nonfinite};
}

/* One warp adds the sums of all segments of one window. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    sum_windows(pnr_cuda_measured m, uint32_t n_windows, uint32_t n_segments)
{
    const size_t window = (size_t)blockIdx.x * PNR_CUDA_WARPS + threadIdx.x / PNR_CUDA_WARP;

    if (window >= n_windows)
        return; /* the whole warp returns */

    const pnr_cuda_energy sum = pnr_cuda_sum_energies(m.parts + window * n_segments, n_segments);

    if (threadIdx.x % PNR_CUDA_WARP == 0) {
        m.sums[window] = sum;
        m.nonfinite[window] = sum.n_nonfinite;
    }
}

/* One warp computes the sums, the floor and the first threshold of one dwell. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    start_dwells(pnr_cuda_measured m, uint32_t n_dwells, uint32_t n_periods, uint32_t n_samples)
{
    const size_t dwell = (size_t)blockIdx.x * PNR_CUDA_WARPS + threadIdx.x / PNR_CUDA_WARP;
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    double energy = 0;
    unsigned long long n_valid = 0, n_clipped = 0, n_nonfinite = 0;
    uint32_t n_used = 0, last_used = 0; /* last_used: index of the last used window + 1 */

    if (dwell >= n_dwells)
        return; /* the whole warp returns */
    for (uint32_t p = lane; p < n_periods; p += PNR_CUDA_WARP) {
        const pnr_cuda_window window = m.windows[dwell * n_periods + p];
        const pnr_cuda_energy sum = m.sums[dwell * n_periods + p];

        n_clipped += sum.n_clipped;
        n_nonfinite += sum.n_nonfinite;
        if (pnr_cuda_is_used(window, sum, n_samples)) {
            energy += sum.energy;
            n_valid += n_samples - window.n_lost - sum.n_nonfinite;
            n_used++;
            last_used = p + 1;
        }
    }
    energy = pnr_cuda_warp_sum(energy);
    n_valid = pnr_cuda_warp_sum(n_valid);
    n_clipped = pnr_cuda_warp_sum(n_clipped);
    n_nonfinite = pnr_cuda_warp_sum(n_nonfinite);
    n_used = pnr_cuda_warp_sum(n_used);
    for (int other = PNR_CUDA_WARP / 2; other > 0; other /= 2)
        last_used = max(last_used, __shfl_xor_sync(0xffffffffu, last_used, other));
    if (lane != 0)
        return;

    /* The mean power of all cells if the samples are noise alone. */
    const double floor = n_used > 0 ? energy * m.code_energy / n_samples : 0;
    pnr_cuda_dwell state = {};

    state.sums.energy = energy;
    state.sums.floor = floor;
    state.rounding = 1e-12 * energy * m.code_energy * n_used;
    state.sums.n_valid = n_valid;
    state.sums.n_clipped = n_clipped;
    state.sums.n_nonfinite = n_nonfinite;
    state.sums.n_periods = n_used;
    state.threshold = n_used > 0 ? (float)(m.threshold[n_used - 1] * floor) : 0.0f;
    state.last_used = n_used > 0 ? last_used - 1 : n_periods;
    m.dwells[dwell] = state;
}

/* --- the launcher --- */

int pnr_cuda_measure(const pnr_cuda_shape *shape, const pnr_cuda_samples *samples,
                     const pnr_cuda_measured *measured, size_t n_dwells, cudaStream_t stream,
                     pnr_error *error)
{
    const size_t n_windows = n_dwells * shape->n_periods;
    const size_t n_blocks = n_windows * shape->n_segments;
    int code;

    assert(n_dwells >= 1 && n_dwells <= shape->batch && n_blocks <= INT32_MAX);
    pnr_cuda_launch_for(samples->format, [&](auto of_format) {
        measure_windows<decltype(of_format)><<<(unsigned)n_blocks, PNR_CUDA_THREADS, 0, stream>>>(
            *samples, (uint32_t)shape->n_segments, measured->parts);
    });
    if ((code = pnr_cuda_check_launch("measure_windows", error)) != PNR_OK)
        return code;
    sum_windows<<<(unsigned)((n_windows + PNR_CUDA_WARPS - 1) / PNR_CUDA_WARPS), PNR_CUDA_THREADS,
                  0, stream>>>(*measured, (uint32_t)n_windows, (uint32_t)shape->n_segments);
    if ((code = pnr_cuda_check_launch("sum_windows", error)) != PNR_OK)
        return code;
    start_dwells<<<(unsigned)((n_dwells + PNR_CUDA_WARPS - 1) / PNR_CUDA_WARPS), PNR_CUDA_THREADS,
                   0, stream>>>(*measured, (uint32_t)n_dwells, (uint32_t)shape->n_periods,
                                (uint32_t)shape->n_samples);
    return pnr_cuda_check_launch("start_dwells", error);
}
