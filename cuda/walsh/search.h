/* SPDX-License-Identifier: MIT */
/* The search of method walsh, by one warp: the strongest maxima, the next floor, the result. */
#ifndef PNR_CUDA_WALSH_SEARCH_H
#define PNR_CUDA_WALSH_SEARCH_H

#include "cuda/steps/candidates.h"
#include "cuda/walsh/walsh.h"

enum {
    PNR_WALSH_LISTED = PNR_MAX_CANDIDATES + PNR_CUDA_WARP, /* keys of a list at one time */
    PNR_WALSH_HELD = PNR_WALSH_LISTED / PNR_CUDA_WARP,     /* of them a lane orders */
    PNR_WALSH_WRITES = PNR_NEIGHBOURS + 1                  /* a candidate's: values, and a head */
};

/* One dwell's search, the same in every lane. All in raw units until the end. */
typedef struct pnr_walsh_dwell {
    pnr_dwell sums;
    double rounding;
    float threshold; /* infinite when no window is used */
} pnr_walsh_dwell;

/* The maxima that may still be kept, of one warp. The list is in shared memory. */
typedef struct pnr_walsh_list {
    uint64_t *keys;   /* [PNR_WALSH_LISTED] */
    uint64_t weakest; /* a key not above it cannot be kept any more */
    uint32_t n;
} pnr_walsh_list;

static __device__ __forceinline__ bool pnr_walsh_is_in_gate(const pnr_cuda_walsh &p, uint32_t n,
                                                            uint32_t lag)
{
    return (lag >= p.gate_first ? lag - p.gate_first : lag + n - p.gate_first) < p.gate_count;
}

/* A window is used when lost + non-finite <= N/2. */
static __device__ __forceinline__ bool pnr_walsh_is_used(uint32_t n, uint32_t n_lost,
                                                         uint32_t n_nonfinite)
{
    return (uint64_t)n_lost + n_nonfinite <= n / 2;
}

/* The first search's threshold; energy: of the windows used. floor = sum|x|^2 E_a / N, E_a = N. */
static __device__ __forceinline__ float pnr_walsh_threshold(const pnr_cuda_walsh &p,
                                                            uint32_t n_used, double energy)
{
    return n_used > 0 ? (float)(__ldg(p.thresholds + n_used - 1) * energy) : INFINITY;
}

/* energy, noise, n_valid: of the windows used. */
static __device__ __forceinline__ pnr_walsh_dwell
pnr_walsh_begin(const pnr_cuda_walsh &p, uint32_t n, uint32_t n_used, double energy, double noise,
                uint64_t n_valid, uint64_t n_clipped, uint64_t n_nonfinite)
{
    pnr_walsh_dwell d = {};

    d.sums.energy = d.sums.floor = energy;
    d.sums.noise_sum = noise;
    d.sums.n_valid = n_valid;
    d.sums.n_clipped = n_clipped;
    d.sums.n_nonfinite = n_nonfinite;
    d.sums.n_periods = n_used;
    d.rounding = 1e-12 * energy * n * n_used;
    d.threshold = pnr_walsh_threshold(p, n_used, energy);
    return d;
}

/* --- lists --- */

/* The strongest n_best, strongest first. */
static __device__ void pnr_walsh_cut(pnr_walsh_list &list, uint32_t n_best)
{
    __syncwarp();
    pnr_candidates_order<PNR_WALSH_HELD>(list.keys, list.n, n_best,
                                         [](uint64_t a, uint64_t b) { return a > b; });
    if (list.n >= n_best) {
        list.n = n_best;
        list.weakest = list.keys[n_best - 1];
    }
}

/* The keys of the lanes that have one join the list, if they may be kept. */
static __device__ __forceinline__ void pnr_walsh_add(pnr_walsh_list &list, bool has_key,
                                                     uint64_t key, uint32_t n_best)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    const bool is_chosen = has_key && key > list.weakest;
    const uint32_t chosen = __ballot_sync(0xffffffffu, is_chosen);

    if (is_chosen)
        list.keys[list.n + (uint32_t)__popc(chosen & ((1u << lane) - 1))] = key;
    list.n += (uint32_t)__popc(chosen);
    if (list.n > PNR_MAX_CANDIDATES)
        pnr_walsh_cut(list, n_best);
}

/* At the end: what is kept, in lag order. */
static __device__ __forceinline__ void pnr_walsh_keep(pnr_walsh_list &list, uint32_t n_best)
{
    if (list.n > n_best)
        pnr_walsh_cut(list, n_best);
    if (list.n > 1) {
        __syncwarp();
        pnr_candidates_order<PNR_WALSH_HELD>(list.keys, list.n, list.n, pnr_candidate_is_lower);
    }
    __syncwarp();
}

/* --- the floor, the result --- */

/* The floor without the echoes kept: the mean P of the lags that none of them reaches; -INFINITY
 * when fewer than half the lags are left. power(i, j): of neighbour j of kept i. */
template <typename POWER>
static __device__ double pnr_walsh_rest(const pnr_walsh_list &list, uint32_t n, double noise_sum,
                                        POWER power)
{
    double taken = 0;
    uint32_t n_taken = 0;

    for (uint32_t first = 0; first < list.n * PNR_NEIGHBOURS; first += PNR_CUDA_WARP) {
        const uint32_t e = first + threadIdx.x % PNR_CUDA_WARP;
        const uint32_t i = e / PNR_NEIGHBOURS, j = e % PNR_NEIGHBOURS;

        if (i >= list.n)
            continue;

        const uint32_t lag = pnr_candidate_neighbour(n, pnr_candidate_lag(list.keys[i]), j);
        bool is_counted = false;

        for (uint32_t o = 0; o < i && !is_counted; o++) {
            const uint32_t centre = pnr_candidate_lag(list.keys[o]);
            const uint32_t apart = lag > centre ? lag - centre : centre - lag;

            is_counted = apart <= PNR_CANDIDATE_REACH || n - apart <= PNR_CANDIDATE_REACH;
        }
        if (!is_counted) {
            /* the echo itself to the bit as it was searched */
            taken += (double)(j == PNR_CANDIDATE_REACH ? pnr_candidate_power(list.keys[i])
                                                       : power(i, j));
            n_taken++;
        }
    }
    taken = pnr_cuda_warp_sum(taken);
    n_taken = pnr_cuda_warp_sum(n_taken);
    if (2 * (n - n_taken) < n)
        return -INFINITY;
    return (noise_sum - taken) / (double)(n - n_taken);
}

/* After search number `search`, list holding what it keeps: is there another one, at the lower
 * threshold that is now d's? */
template <typename POWER>
static __device__ __forceinline__ bool
pnr_walsh_is_again(pnr_walsh_dwell &d, const pnr_cuda_walsh &p, uint32_t n,
                   const pnr_walsh_list &list, int search, POWER power)
{
    d.sums.n_candidates = list.n;
    if (search + 1 == PNR_MAX_SEARCHES || list.n == 0 || n <= PNR_NEIGHBOURS)
        return false;

    const double rest = pnr_walsh_rest(list, n, d.sums.noise_sum, power);
    const double floor = fmax(rest, d.rounding);

    /* the same in all lanes */
    if (!__any_sync(0xffffffffu, !isinf(rest) && floor < 0.95 * d.sums.floor))
        return false;
    d.sums.floor = floor;
    d.threshold = (float)(__ldg(p.thresholds + d.sums.n_periods - 1) * floor);
    /* Beside max_candidates kept ones a lower threshold adds only weaker ones. */
    return list.n < p.max_candidates;
}

/* The kept ones, full scale. value(i, j): neighbour j of kept i, raw. */
template <typename VALUE>
static __device__ __forceinline__ void
pnr_walsh_write_candidates(const pnr_cuda_walsh &p, size_t dwell, const pnr_walsh_list &list,
                           VALUE value)
{
    pnr_candidate *out = p.candidates + dwell * p.max_candidates;

    for (uint32_t first = 0; first < list.n * PNR_WALSH_WRITES; first += PNR_CUDA_WARP) {
        const uint32_t e = first + threadIdx.x % PNR_CUDA_WARP;
        const uint32_t i = e / PNR_WALSH_WRITES, j = e % PNR_WALSH_WRITES;

        if (i >= list.n)
            continue;
        if (j == PNR_NEIGHBOURS) {
            const uint64_t key = list.keys[i];
            const float power = pnr_candidate_power(key) * p.scale * p.scale;

            /* code, channel and Doppler are 0 */
            ((uint2 *)(out + i))[0] = make_uint2(pnr_candidate_lag(key), 0);
            ((uint2 *)(out + i))[1] = make_uint2(0, __float_as_uint(power));
        } else {
            const float2 c = value(i, j);

            ((float2 *)out[i].value)[j] = make_float2(p.scale * c.x, p.conjugate * p.scale * c.y);
        }
    }
}

/* One lane: the sums, full scale. */
static __device__ __forceinline__ void pnr_walsh_write_dwell(const pnr_cuda_walsh &p, size_t dwell,
                                                             pnr_walsh_dwell &d)
{
    const double power = (double)p.scale * p.scale;

    d.sums.energy *= power;
    d.sums.noise_sum *= power;
    d.sums.floor *= power;
    p.dwells[dwell] = d.sums;
}

#endif
