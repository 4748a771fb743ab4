/* SPDX-License-Identifier: MIT */
/* Method walsh to degree 13 for dwells of one window: one kernel does all steps. */
#include "cuda/walsh/window.h"

/* Results of the warps of a block, for the warp that searches. */
template <uint32_t WARPS> struct reports {
    double energy[WARPS];
    uint32_t odd[WARPS], n_lost;
    float top[WARPS], tops[WARPS * 32];
    uint64_t keys[PNR_WALSH_LISTED];
};

/* Writes the profiles in lag order. */
template <typename T, int DEGREE>
static __device__ void write_profiles(const pnr_cuda_walsh &p, const float2 *values, uint32_t first,
                                      uint32_t count)
{
    typedef pnr_walsh_size<T, DEGREE> size;

    for (uint32_t g = 0; g < count; g++) {
        const bool is_used = p.dwells[first + g].n_periods > 0;

        for (uint32_t k = threadIdx.x; k < size::N; k += size::THREADS) {
            const size_t at = (size_t)(first + g) * size::N + k;
            float2 c = {0, 0};

            if (is_used)
                c = values[pnr_walsh_at(g << DEGREE) +
                           pnr_walsh_at(__ldg((const uint16_t *)p.cell_of + k))];
            if (p.profile != NULL)
                p.profile[at] = make_float2(p.scale * c.x, p.conjugate * p.scale * c.y);
            if (p.power != NULL)
                p.power[at] = p.scale * p.scale * pnr_walsh_power(c);
        }
    }
}

/* Searches W of a window and writes the results. odd: number of clipped samples + 2^16 times the
 * number of non-finite samples. One warp calls this. */
template <typename T, int DEGREE>
static __device__ __forceinline__ void
finish_window(const pnr_cuda_walsh &p, uint32_t window, uint32_t n_lost, const float2 *w,
              double energy, uint32_t odd, float greatest, float top, const float *tops,
              uint32_t own, uint64_t *keys)
{
    typedef pnr_walsh_size<T, DEGREE> size;
    const uint32_t n_nonfinite = odd >> 16;
    const bool is_used = pnr_walsh_is_used(size::N, n_lost, n_nonfinite);
    const double sum = (double)w[0].x * w[0].x + (double)w[0].y * w[0].y;
    /* sum |W[u]|^2 = 2^n sum |x|^2; W[0] belongs to no lag */
    const double noise = fmax(energy * (size::N + 1) - sum, 0.0);
    pnr_walsh_list list = {keys, 0, 0};
    pnr_walsh_dwell d =
        pnr_walsh_begin(p, size::N, is_used, is_used ? energy : 0, is_used ? noise : 0,
                        is_used ? size::N - n_lost - n_nonfinite : 0, odd & 0xffff, n_nonfinite);

    /* Without a cell above the threshold, the search may still lower the floor: the energy of the
     * window includes a constant, and the powers do not. */
    const bool is_lower = noise < PNR_LOWER_FLOOR(0) * size::N * energy;

    /* the result is the same in all lanes */
    if (__any_sync(0xffffffffu, greatest > d.threshold || is_lower)) {
        pnr_walsh_search<T, DEGREE>(list, d, p, top, tops, own, [&](uint32_t u) {
            return pnr_walsh_power(w[pnr_walsh_at(u)]);
        });
        pnr_walsh_write_candidates(p, window, list, [&](uint32_t i, uint32_t j) {
            const uint32_t lag =
                pnr_candidate_neighbour(size::N, pnr_candidate_lag(list.keys[i]), j);

            return w[pnr_walsh_at(__ldg((const uint16_t *)p.cell_of + lag))];
        });
    }
    __syncwarp(); /* all lanes have read the list and the report */
    if (threadIdx.x % 32 == 0) {
        pnr_walsh_write_dwell(p, window, d);
        p.nonfinite[window] = n_nonfinite;
    }
}

/* Each block computes several windows. During a transform it copies the next samples to shared
 * memory. While the first warp searches, the other warps start to compute the next window. */
template <typename T, int DEGREE>
__global__ void __launch_bounds__(pnr_walsh_size<T, DEGREE>::THREADS,
                                  (sizeof(T) == 4 ? 256 : 512) / pnr_walsh_size<T, DEGREE>::THREADS)
    walsh_windows(pnr_cuda_walsh p)
{
    typedef pnr_walsh_size<T, DEGREE> size;
    extern __shared__ uint4 shared[];
    __shared__ reports<size::WARPS> report;
    float2 *values = (float2 *)shared;
    pnr_walsh_stage<T, DEGREE> stage = {(char *)shared + size::VALUES};
    const uint32_t own = threadIdx.x / size::TEAM, t = threadIdx.x % size::TEAM;
    const uint32_t stride = gridDim.x * size::WINDOWS;
    const uint32_t n_windows = pnr_cuda_dwells_of(p.job, p.first_dwell, p.n_dwells);
    uint32_t first = blockIdx.x * size::WINDOWS;

    if (first >= n_windows)
        return; /* the whole block returns */
    stage.fetch(p, first, min(size::WINDOWS, n_windows - first));
    __pipeline_wait_prior(0);
    pnr_walsh_barrier<DEGREE>();
    for (; first < n_windows; first += stride) {
        const uint32_t count = min(size::WINDOWS, n_windows - first);
        const bool is_there = own < count;
        uint32_t n_lost = 0;
        const pnr_cuda_pair<T> *x = stage.at(first, own);
        pnr_walsh_measure<T> measure;
        uint32_t odd = 0;
        float2 v[PNR_WALSH_EACH];

        /* Loads n_lost early. If a window has several warps, only the first warp needs n_lost. */
        if (size::WARPS == 1)
            n_lost = is_there ? p.windows[first + own].n_lost : 0;
        else if (threadIdx.x == 0)
            report.n_lost = p.windows[first].n_lost;
        pnr_walsh_read<T, size::TEAM>(x, p.place, t, measure, v);
        if (measure.is_odd())
            odd = pnr_walsh_count_odd<T, size::TEAM>(x, p.place, t);
        pnr_walsh_transform<DEGREE>(values, v, [&] {
            if (first + stride < n_windows)
                stage.fetch(p, first + stride, min(size::WINDOWS, n_windows - first - stride));
        });
        pnr_walsh_store<DEGREE - 5>(values, v);

        float top = 0;

#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
            top = fmaxf(top, r == 0 && t == 0 ? 0.0f : pnr_walsh_power(v[r]));

        double energy = pnr_walsh_warp_sum<size::TEAM>((double)measure.energy());
        float greatest = top;

        odd = pnr_walsh_warp_sum<size::TEAM>(odd);
        for (int other = 16; other > 0; other /= 2)
            greatest = fmaxf(greatest, __shfl_xor_sync(0xffffffffu, greatest, other));
        if (size::WARPS > 1) {
            report.tops[threadIdx.x] = top;
            if (threadIdx.x % 32 == 0) {
                report.energy[threadIdx.x / 32] = energy;
                report.odd[threadIdx.x / 32] = odd;
                report.top[threadIdx.x / 32] = greatest;
            }
        }
        __pipeline_wait_prior(0);
        pnr_walsh_barrier<DEGREE>(); /* all threads have stored the values and the next samples */
        if (threadIdx.x < 32) {
            if (size::WARPS > 1) {
                energy = 0;
                odd = 0;
                n_lost = report.n_lost;
#pragma unroll
                for (uint32_t warp = 0; warp < size::WARPS; warp++) {
                    energy += report.energy[warp];
                    odd += report.odd[warp];
                    greatest = fmaxf(greatest, report.top[warp]);
                }
            }
            for (uint32_t g = 0; g < count; g++) {
                const uint32_t lane = g * size::TEAM % 32;

                finish_window<T, DEGREE>(p, first + g, __shfl_sync(0xffffffffu, n_lost, lane),
                                         values + pnr_walsh_at(g << DEGREE),
                                         __shfl_sync(0xffffffffu, energy, lane),
                                         __shfl_sync(0xffffffffu, odd, lane), greatest, top,
                                         report.tops, g, report.keys);
            }
        }
        if (p.profile != NULL || p.power != NULL) {
            pnr_walsh_barrier<DEGREE>();
            write_profiles<T, DEGREE>(p, values, first, count);
        }
    }
}

/* --- the instances --- */

#define SINGLE(type, degree) walsh_windows<type, degree>, pnr_walsh_size<type, degree>::WINDOWS

const pnr_cuda_walsh_short *pnr_cuda_walsh_find(pnr_format format, uint32_t degree)
{
    static const pnr_cuda_walsh_short table[] = {PNR_WALSH_SHORT(SINGLE)};

    return pnr_walsh_find_short(table, format, degree);
}
