/* SPDX-License-Identifier: MIT */
/* Method walsh to degree 13: the windows of a block, and the search of a profile in shared
 * memory. */
#ifndef PNR_CUDA_WALSH_WINDOW_H
#define PNR_CUDA_WALSH_WINDOW_H

#include "cuda/walsh/search.h"
#include "cuda/walsh/transform.h"
#include "cuda/walsh/walsh.h"

/* Sizes of a block. At degree 10 and above, a block computes one window. Below degree 10 a block is
 * one warp, and its 1024 values hold several windows. */
template <typename T, int DEGREE> struct pnr_walsh_size {
    static constexpr uint32_t N = (1u << DEGREE) - 1;
    static constexpr uint32_t TEAM = (1u << DEGREE) / PNR_WALSH_EACH; /* threads of a window */
    static constexpr uint32_t THREADS = TEAM < 32 ? 32 : TEAM;
    static constexpr uint32_t WARPS = THREADS / 32;
    static constexpr uint32_t WINDOWS = THREADS / TEAM;
    static constexpr uint32_t POINTS = THREADS * PNR_WALSH_EACH;
    static constexpr uint32_t VALUES = (POINTS + POINTS / 32) * sizeof(float2);
    static constexpr uint32_t SAMPLES = POINTS * sizeof(pnr_cuda_pair<T>) + 32;
    static constexpr uint32_t BYTES = VALUES + SAMPLES;
};

/* Shared memory of a block: values, then the samples of WINDOWS windows as in raw memory. */
template <typename T, int DEGREE> struct pnr_walsh_stage {
    typedef pnr_walsh_size<T, DEGREE> size;
    char *samples;

    static __device__ __forceinline__ size_t begin(size_t window)
    {
        return window * size::N * sizeof(pnr_cuda_pair<T>);
    }
    /* Begins to copy windows [first, first + count) to shared memory. */
    __device__ __forceinline__ void fetch(const pnr_cuda_walsh &p, size_t first, uint32_t count)
    {
        const uint32_t before = (uint32_t)(begin(first) % 16);
        const uint32_t bytes = before + count * size::N * (uint32_t)sizeof(pnr_cuda_pair<T>);

        pnr_walsh_fetch<size::THREADS>(samples, (const char *)p.raw + begin(first) - before,
                                       (bytes + 15) / 16 * 16);
    }
    /* Returns the samples of window first + own. */
    __device__ __forceinline__ const pnr_cuda_pair<T> *at(size_t first, uint32_t own) const
    {
        return (const pnr_cuda_pair<T> *)(samples + begin(first) % 16) + own * size::N;
    }
};

/* Reads the samples of states 32 t .. 32 t + 31 of the thread and measures them. */
template <typename T, uint32_t TEAM>
static __device__ __forceinline__ void
pnr_walsh_read(const pnr_cuda_pair<T> *x, const uint16_t *table, uint32_t t,
               pnr_walsh_measure<T> &measure, float2 (&v)[PNR_WALSH_EACH])
{
    const auto places = [&](uint32_t q) { return __ldg((const uint4 *)table + q * TEAM + t); };

    pnr_walsh_gather<T>(x, places, [&](uint32_t r, pnr_cuda_pair<T> sample) {
        if (r == 0 && t == 0)
            sample = {}; /* state 0 has no sample */
        sample = measure.take(sample);
        v[r] = make_float2((float)sample.i, (float)sample.q);
    });
}

/* Counts clipped and non-finite samples of the thread. This function is called seldom, so its code
 * is small but slow. */
template <typename T, uint32_t TEAM>
static __device__ __noinline__ uint32_t pnr_walsh_count_odd(const pnr_cuda_pair<T> *x,
                                                            const uint16_t *place, uint32_t t)
{
    const uint16_t *table = place + 8 * t;
    uint32_t odd = 0;

#pragma unroll 1
    for (uint32_t r = t == 0 ? 1 : 0; r < PNR_WALSH_EACH; r++)
        odd += pnr_walsh_measure<T>::odd(x[table[r / 8 * 8 * TEAM + r % 8]]);
    return odd;
}

/* Runs all searches of a dwell whose powers are in shared memory. One warp calls this. power(u)
 * returns the power at index u of W. Thread t of the TEAM threads of a window passes the greatest
 * power of all u with u mod TEAM = t. If TEAM <= 32, it passes this power in `top`. If TEAM > 32,
 * the power is in tops[t], in shared memory. own: number of the window in the warp. Afterwards
 * `list` has the candidates of the window, and `d` has the sums of the dwell. */
template <typename T, int DEGREE, typename POWER>
static __device__ __forceinline__ void
pnr_walsh_search(pnr_walsh_list &list, pnr_walsh_dwell &d, const pnr_cuda_walsh &p, float top,
                 const float *tops, uint32_t own, POWER power)
{
    typedef pnr_walsh_size<T, DEGREE> size;
    const uint16_t *lag_of = (const uint16_t *)p.lag_of, *cell_of = (const uint16_t *)p.cell_of;
    const uint32_t lane = threadIdx.x % 32;
    constexpr uint32_t LANES = size::TEAM < 32 ? size::TEAM : 32;
    const uint32_t mask = (LANES < 32 ? (1u << LANES) - 1 : UINT32_MAX);

    for (int search = 0;; search++) {
        uint32_t n_above = 0, n_maxima = 0;
        uint64_t outside = 0; /* the greatest key of the lane's maxima outside of the gate */

        __syncwarp(); /* all lanes have read the list of the previous search */
        list.n = 0;
        list.weakest = 0;
        for (uint32_t warp = 0; warp < (size::TEAM + 31) / 32; warp++) {
            const float mine = size::TEAM > 32 ? tops[warp * 32 + lane] : top;
            uint32_t hot = __ballot_sync(0xffffffffu, mine > d.threshold);

            if (size::TEAM < 32)
                hot = hot >> own * LANES & mask;
            for (; hot != 0; hot &= hot - 1) {
                const uint32_t u = lane * size::TEAM + warp * 32 + (uint32_t)__ffs((int)hot) - 1;
                const float here = power(u);
                uint32_t lag = 0;
                bool is_above = u != 0 && here > d.threshold;
                bool is_inside = false, is_maximum = false;

                if (is_above) {
                    lag = __ldg(lag_of + u);
                    is_inside = pnr_candidate_in_gate(p, size::N, lag);
                    is_above = is_inside || p.has_outside;
                }
                if (is_above) {
                    const uint32_t before = lag == 0 ? size::N - 1 : lag - 1;
                    const uint32_t after = lag + 1 == size::N ? 0 : lag + 1;

                    is_maximum = here > power(__ldg(cell_of + before)) &&
                                 here >= power(__ldg(cell_of + after));
                }
                const uint64_t key = pnr_candidate_key(here, lag);

                if (is_maximum && !is_inside) {
                    outside = max(outside, key);
                    is_maximum = false;
                }
                n_above += (uint32_t)__popc(__ballot_sync(0xffffffffu, is_inside));
                n_maxima += (uint32_t)__popc(__ballot_sync(0xffffffffu, is_maximum));
                pnr_walsh_add(list, is_maximum, key, pnr_candidate_most(p));
            }
        }
        if (p.has_outside)
            outside = pnr_candidates_greatest(outside);
        pnr_walsh_keep(list, pnr_candidate_most(p), outside);
        if (search == 0)
            d.sums.n_above = n_above;
        d.sums.n_maxima = n_maxima;
        if (!pnr_walsh_has_next(d, p, size::N, list, search, [&](uint32_t i, uint32_t j) {
                return power(__ldg(cell_of + pnr_candidate_neighbour(
                                                 size::N, pnr_candidate_lag(list.keys[i]), j)));
            }))
            return;
    }
}

/* --- tables of kernels --- */

/* All short kernels. KERNEL(type, degree): the kernel, and the number of dwells in a block. */
#define PNR_WALSH_SHORT_ROW(KERNEL, format, type, degree)                                          \
    {format, degree, KERNEL(type, degree), pnr_walsh_size<type, degree>::THREADS,                  \
     pnr_walsh_size<type, degree>::BYTES},
#define PNR_WALSH_SHORT_ROWS(KERNEL, degree)                                                       \
    PNR_WALSH_SHORT_ROW(KERNEL, PNR_FORMAT_CI8, int8_t, degree)                                    \
    PNR_WALSH_SHORT_ROW(KERNEL, PNR_FORMAT_CI16, int16_t, degree)                                  \
    PNR_WALSH_SHORT_ROW(KERNEL, PNR_FORMAT_CF32, float, degree)
#define PNR_WALSH_SHORT(KERNEL)                                                                    \
    PNR_WALSH_SHORT_ROWS(KERNEL, 5)                                                                \
    PNR_WALSH_SHORT_ROWS(KERNEL, 6)                                                                \
    PNR_WALSH_SHORT_ROWS(KERNEL, 7)                                                                \
    PNR_WALSH_SHORT_ROWS(KERNEL, 8)                                                                \
    PNR_WALSH_SHORT_ROWS(KERNEL, 9)                                                                \
    PNR_WALSH_SHORT_ROWS(KERNEL, 10)                                                               \
    PNR_WALSH_SHORT_ROWS(KERNEL, 11)                                                               \
    PNR_WALSH_SHORT_ROWS(KERNEL, 12)                                                               \
    PNR_WALSH_SHORT_ROWS(KERNEL, 13)

/* Finds a kernel in a table; NULL: there is none. */
template <size_t N>
static const pnr_cuda_walsh_short *pnr_walsh_find_short(const pnr_cuda_walsh_short (&table)[N],
                                                        pnr_format format, uint32_t degree)
{
    for (const pnr_cuda_walsh_short &row : table)
        if (row.format == format && row.degree == degree)
            return &row;
    return NULL;
}

#endif
