/* SPDX-License-Identifier: MIT */
/* The search of method walsh. One warp selects the strongest maxima, computes the next floor, and
 * writes the result. */
#ifndef PNR_CUDA_WALSH_SEARCH_H
#define PNR_CUDA_WALSH_SEARCH_H

#include "cuda/steps/candidates.h"
#include "cuda/walsh/walsh.h"

enum {
    PNR_WALSH_LISTED = PNR_MAX_CANDIDATES + PNR_CUDA_WARP, /* greatest number of keys of a list */
    PNR_WALSH_HELD = PNR_WALSH_LISTED / PNR_CUDA_WARP,     /* greatest number of keys that one lane
                                                            * has when its warp sorts a list */
    PNR_WALSH_WRITES = PNR_NEIGHBOURS + 1 /* lanes that write one candidate: one for each value, one
                                           * for the head */
};

/* State of the search of one dwell, the same in every lane. Powers and energies are those of the
 * raw samples, before the scaling to full scale 1. */
typedef struct pnr_walsh_dwell {
    pnr_dwell sums;
    double rounding;
    float threshold; /* infinite if no window is used */
} pnr_walsh_dwell;

/* Maxima that may be kept, in shared memory. One warp owns the list. */
typedef struct pnr_walsh_list {
    uint64_t *keys;   /* [PNR_WALSH_LISTED] */
    uint64_t weakest; /* weaker keys are not kept */
    uint32_t n;
} pnr_walsh_list;

/* A window is used if at most half of its samples are lost or non-finite. */
static __device__ __forceinline__ bool pnr_walsh_is_used(uint32_t n, uint32_t n_lost,
                                                         uint32_t n_nonfinite)
{
    return (uint64_t)n_lost + n_nonfinite <= n / 2;
}

/* Returns the threshold of the first search. energy: sum|x|^2 of the used windows. The energy is
 * also the floor, sum|x|^2 E_a / N, because the energy E_a of the code is N. */
static __device__ __forceinline__ float pnr_walsh_threshold(const pnr_cuda_walsh &p,
                                                            uint32_t n_used, double energy)
{
    return n_used > 0 ? (float)(__ldg(p.thresholds + n_used - 1) * energy) : INFINITY;
}

/* Returns the state before the first search. energy, noise, n_valid: sums over the used windows. */
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

/* Cuts the list to the strongest n_best keys, the strongest first. */
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

/* Each lane with has_key adds its key to the list if the key is above list.weakest. */
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

/* Cuts the list at the end of a search, adds the key `outside`, unless it is 0, and sorts the list
 * by lag. */
static __device__ __forceinline__ void pnr_walsh_keep(pnr_walsh_list &list, uint32_t n_best,
                                                      uint64_t outside)
{
    if (list.n > n_best)
        pnr_walsh_cut(list, n_best);
    if (__any_sync(0xffffffffu, outside != 0)) { /* the result is the same in all lanes */
        if (threadIdx.x % PNR_CUDA_WARP == 0)
            list.keys[list.n] = outside;
        list.n++;
    }
    if (list.n > 1) {
        __syncwarp();
        pnr_candidates_order<PNR_WALSH_HELD>(list.keys, list.n, list.n, pnr_candidate_is_lower);
    }
    __syncwarp();
}

/* --- the floor, the result --- */

/* Returns true if another search follows search number `search`. list: the candidates that this
 * search keeps. If another search is possible and the mean power without their echoes is below
 * PNR_LOWER_FLOOR of the floor, lowers the floor and the threshold in d. d has the number of the
 * search's maxima. */
template <typename POWER>
static __device__ __forceinline__ bool
pnr_walsh_has_next(pnr_walsh_dwell &d, const pnr_cuda_walsh &p, uint32_t n,
                   const pnr_walsh_list &list, int search, POWER power)
{
    d.sums.n_candidates = list.n;
    if (search + 1 == PNR_MAX_SEARCHES || n <= PNR_NEIGHBOURS)
        return false;

    const double rest = pnr_candidates_rest(list.keys, list.n, n, d.sums.noise_sum, power);
    const double floor = fmax(rest, d.rounding);

    /* The condition is the same in all lanes; the vote tells this to the compiler. */
    if (!__any_sync(0xffffffffu, !isinf(rest) && floor < PNR_LOWER_FLOOR(list.n) * d.sums.floor))
        return false;
    d.sums.floor = floor;
    d.threshold = (float)(__ldg(p.thresholds + d.sums.n_periods - 1) * floor);
    /* If no more candidates in the gate may be kept, a lower threshold adds only weaker ones. */
    return d.sums.n_maxima < pnr_candidate_most(p);
}

/* Writes the kept candidates, scaled so that full scale is 1. value(i, j): c of neighbour j of
 * candidate i before this scaling. */
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

            /* code, channel and row are 0 */
            ((uint2 *)(out + i))[0] = make_uint2(pnr_candidate_lag(key), 0);
            ((uint2 *)(out + i))[1] = make_uint2(0, __float_as_uint(power));
        } else {
            const float2 c = value(i, j);

            ((float2 *)out[i].value)[j] = make_float2(p.scale * c.x, p.conjugate * p.scale * c.y);
        }
    }
}

/* Scales the sums so that full scale is 1, and writes them. One lane calls this. */
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
