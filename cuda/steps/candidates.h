/* SPDX-License-Identifier: MIT */
/* Local maxima as 64-bit keys. One warp selects the strongest keys, computes the floor without
 * their echoes, and writes the candidates. */
#ifndef PNR_CUDA_CANDIDATES_H
#define PNR_CUDA_CANDIDATES_H

#include "cuda/base/reduce.h"

enum {
    PNR_CANDIDATE_REACH = PNR_NEIGHBOURS / 2,
    PNR_CANDIDATE_CHUNK = 32, /* keys that a warp reads together */
    PNR_CANDIDATE_HELD = 2 * PNR_MAX_CANDIDATES / PNR_CUDA_WARP, /* greatest number of keys that a
                                                                  * lane sorts */
    PNR_CANDIDATE_WORDS = sizeof(pnr_candidate) / sizeof(uint32_t)
};
static_assert(sizeof(pnr_candidate) == (4 + 2 * PNR_NEIGHBOURS) * sizeof(uint32_t),
              "a candidate is a head of four words and its values");

/* Returns the key of a candidate. A stronger candidate has a greater key. At equal power the
 * lower lag has the greater key. This works because positive floats and their bits have the same
 * order. */
static inline __device__ uint64_t pnr_candidate_key(float power, uint32_t lag)
{
    return (uint64_t)__float_as_uint(power) << 32 | (UINT32_MAX - lag);
}
static inline __device__ uint32_t pnr_candidate_lag(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}
static inline __device__ float pnr_candidate_power(uint64_t key)
{
    return __uint_as_float((uint32_t)(key >> 32));
}

/* Returns (k + j - 8) mod n, the lag of neighbour j of lag k, for n > 17. */
static inline __device__ uint32_t pnr_candidate_neighbour(uint32_t n, uint32_t k, uint32_t j)
{
    const uint32_t lag = k + n - PNR_CANDIDATE_REACH + j; /* at most 2 n + 7 */

    return lag >= 2 * n ? lag - 2 * n : lag >= n ? lag - n : lag;
}

/* Returns true if the candidate at lag `centre` has a neighbour at lag `lag`. */
static __device__ __forceinline__ bool pnr_candidate_reaches(uint32_t n, uint32_t centre,
                                                             uint32_t lag)
{
    const uint32_t apart = lag > centre ? lag - centre : centre - lag;

    return apart <= PNR_CANDIDATE_REACH || n - apart <= PNR_CANDIDATE_REACH;
}

/* Returns true if a lag is in the gate. p: a kernel argument that has gate_first and gate_count. */
template <class P>
static __device__ __forceinline__ bool pnr_candidate_in_gate(const P &p, uint32_t n, uint32_t lag)
{
    return (lag >= p.gate_first ? lag - p.gate_first : lag + n - p.gate_first) < p.gate_count;
}

/* Returns the greatest number of candidates in the gate. p: a kernel argument that has
 * max_candidates, and has_outside of plan.h as 0 or 1. */
template <class P>
static __host__ __device__ __forceinline__ uint32_t pnr_candidate_most(const P &p)
{
    return p.max_candidates - p.has_outside;
}

/* Sets *greatest, in shared or global memory, to the key if the key is greater. Any threads may
 * call this at the same time. */
static __device__ __forceinline__ void pnr_candidate_raise(uint64_t *greatest, uint64_t key)
{
    static_assert(sizeof(uint64_t) == sizeof(unsigned long long), "one atomic operation");
    if (key != 0)
        atomicMax((unsigned long long *)greatest, (unsigned long long)key);
}

/* Returns the greatest key of the warp to every lane. All 32 lanes must call this. */
static __device__ __forceinline__ uint64_t pnr_candidates_greatest(uint64_t key)
{
    for (int lane = PNR_CUDA_WARP / 2; lane > 0; lane /= 2)
        key = max(key, __shfl_xor_sync(0xffffffffu, key, lane));
    return key;
}

static inline __device__ bool pnr_candidate_is_lower(uint64_t a, uint64_t b)
{
    return pnr_candidate_lag(a) < pnr_candidate_lag(b);
}

/* Sorts keys[0 .. n) by `is_before`, and writes only the first n_best of the sorted keys to the
 * front. One warp calls this. n <= 32 * HELD. */
template <uint32_t HELD, typename ORDER>
static __device__ void pnr_candidates_order(uint64_t *keys, uint32_t n, uint32_t n_best,
                                            ORDER is_before)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    uint64_t mine[HELD];
    uint32_t rank[HELD] = {};

#pragma unroll
    for (uint32_t h = 0; h < HELD; h++)
        mine[h] = h * PNR_CUDA_WARP + lane < n ? keys[h * PNR_CUDA_WARP + lane] : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t other = keys[i];

#pragma unroll
        for (uint32_t h = 0; h < HELD; h++)
            rank[h] += is_before(other, mine[h]);
    }
    __syncwarp();
#pragma unroll
    for (uint32_t h = 0; h < HELD; h++)
        if (h * PNR_CUDA_WARP + lane < n && rank[h] < n_best)
            keys[rank[h]] = mine[h];
    __syncwarp();
}

/* Selects the strongest n_best of n keys and the key `outside`, unless it is 0. Moves the selected
 * keys to the front, in lag order, and returns their number. A key is never written beyond the
 * place where it was read, so `outside` alone may need a place after the n keys. One warp calls
 * this. */
static inline __device__ uint32_t pnr_candidates_select(uint64_t *keys, uint32_t n, uint32_t n_best,
                                                        uint64_t outside)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    const auto is_stronger = [](uint64_t a, uint64_t b) { return a > b; };
    uint32_t n_held = 0;
    uint64_t weakest = 0; /* weaker keys are not kept */

    if (n > n_best) {
        for (uint32_t first = 0; first < n; first += PNR_CANDIDATE_CHUNK) {
            const uint64_t key = first + lane < n ? keys[first + lane] : 0;
            const uint32_t chosen = __ballot_sync(0xffffffffu, key > weakest);

            if (key > weakest)
                keys[n_held + __popc(chosen & ((1u << lane) - 1))] = key;
            n_held += (uint32_t)__popc(chosen);
            __syncwarp();
            if (n_held > n_best + PNR_CANDIDATE_CHUNK || first + PNR_CANDIDATE_CHUNK >= n) {
                pnr_candidates_order<PNR_CANDIDATE_HELD>(keys, n_held, n_best, is_stronger);
                n_held = min(n_held, n_best);
                if (n_held == n_best)
                    weakest = keys[n_best - 1];
            }
        }
        n = n_held;
    }
    /* The condition is the same in all lanes; the vote tells this to the compiler. */
    if (__any_sync(0xffffffffu, outside != 0)) {
        if (lane == 0)
            keys[n] = outside;
        n++;
        __syncwarp();
    }
    if (n > 1)
        pnr_candidates_order<PNR_CANDIDATE_HELD>(keys, n, n, pnr_candidate_is_lower);
    return n;
}

/* Returns the floor without the kept echoes: the mean power of all lags except the neighbours of
 * the kept keys. Returns -INFINITY if fewer than half of all lags remain. power(i, j): the power at
 * neighbour j of kept key i. One warp calls this. */
template <typename POWER>
static __device__ double pnr_candidates_rest(const uint64_t *kept, uint32_t n_kept, uint32_t n,
                                             double noise_sum, POWER power)
{
    double taken = 0;
    uint32_t n_taken = 0;

    for (uint32_t first = 0; first < n_kept * PNR_NEIGHBOURS; first += PNR_CUDA_WARP) {
        const uint32_t e = first + threadIdx.x % PNR_CUDA_WARP;
        const uint32_t i = e / PNR_NEIGHBOURS, j = e % PNR_NEIGHBOURS;

        if (i >= n_kept)
            continue;

        const uint32_t lag = pnr_candidate_neighbour(n, pnr_candidate_lag(kept[i]), j);
        bool is_counted = false;

        for (uint32_t o = 0; o < i && !is_counted; o++)
            is_counted = pnr_candidate_reaches(n, pnr_candidate_lag(kept[o]), lag);
        if (!is_counted) {
            /* noise_sum contains the power of the key; power(i, j) can differ from it by
             * rounding */
            taken +=
                (double)(j == PNR_CANDIDATE_REACH ? pnr_candidate_power(kept[i]) : power(i, j));
            n_taken++;
        }
    }
    taken = pnr_cuda_warp_sum(taken);
    n_taken = pnr_cuda_warp_sum(n_taken);
    if (2 * (n - n_taken) < n)
        return -INFINITY;
    return (noise_sum - taken) / (double)(n - n_taken);
}

/* Writes the kept keys and their neighbours as candidates. value(i, j): c at neighbour j of kept
 * key i. One warp calls this. Adjacent lanes write adjacent words. */
template <typename VALUE>
static __device__ void pnr_candidates_return(const uint64_t *kept, uint32_t n_kept,
                                             pnr_candidate *candidates, VALUE value)
{
    uint32_t *out = (uint32_t *)candidates;

    for (uint32_t e = threadIdx.x % PNR_CUDA_WARP; e < n_kept * PNR_CANDIDATE_WORDS;
         e += PNR_CUDA_WARP) {
        const uint32_t i = e / PNR_CANDIDATE_WORDS, word = e % PNR_CANDIDATE_WORDS;
        uint32_t bits = 0; /* the words of code, channel and row stay 0 */

        if (word == 0) {
            bits = pnr_candidate_lag(kept[i]);
        } else if (word == 3) {
            bits = (uint32_t)(kept[i] >> 32);
        } else if (word > 3) {
            const float2 c = value(i, (word - 4) / 2);

            bits = __float_as_uint(word % 2 == 0 ? c.x : c.y);
        }
        out[e] = bits;
    }
}

#endif
