/* SPDX-License-Identifier: MIT */
/* The search of method walsh, by one warp: the strongest maxima, the next floor, the result. */
#ifndef PNR_CUDA_WALSH_SEARCH_H
#define PNR_CUDA_WALSH_SEARCH_H

#include "reduce.h"
#include "walsh.h"

enum {
    PNR_WALSH_REACH = PNR_NEIGHBOURS / 2,
    PNR_WALSH_CHUNK = 32,                                    /* keys read at one time */
    PNR_WALSH_HELD = 2 * PNR_MAX_CANDIDATES / PNR_CUDA_WARP, /* keys a lane orders */
    PNR_WALSH_WORDS = sizeof(pnr_candidate) / sizeof(uint32_t),
    PNR_WALSH_DWELL_WORDS = sizeof(pnr_dwell) / sizeof(uint32_t)
};
static_assert(sizeof(pnr_candidate) == (4 + 2 * PNR_NEIGHBOURS) * sizeof(uint32_t),
              "a candidate is a head of four words and its values");

/* One window's search, in shared memory. All in raw units until the end. */
typedef struct pnr_walsh_window {
    pnr_dwell sums;
    double rounding;
    float threshold; /* infinite when the window is not used */
    uint32_t n_above, n_keys, n_listed;
    uint32_t n_kept;
    uint32_t is_done;
} pnr_walsh_window;

/* The stronger first, then the lower lag. Positive floats sort as their bits do. */
static __device__ __forceinline__ uint64_t pnr_walsh_key(float power, uint32_t lag)
{
    return (uint64_t)__float_as_uint(power) << 32 | (UINT32_MAX - lag);
}
static __device__ __forceinline__ uint32_t pnr_walsh_lag(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}

/* Lag k + j - 8 mod N. */
static __device__ __forceinline__ uint32_t pnr_walsh_neighbour(uint32_t n, uint32_t k, uint32_t j)
{
    const uint32_t lag = k + n - PNR_WALSH_REACH + j; /* below 2 N + 9; N > 17 */

    return lag >= 2 * n ? lag - 2 * n : lag >= n ? lag - n : lag;
}

static __device__ __forceinline__ bool pnr_walsh_is_in_gate(const pnr_cuda_walsh &p, uint32_t n,
                                                            uint32_t lag)
{
    return (lag >= p.gate_first ? lag - p.gate_first : lag + n - p.gate_first) < p.gate_count;
}

/* One thread: from what was measured to the first threshold. odd: clipped, non-finite above. */
static __device__ void pnr_walsh_begin(pnr_walsh_window &w, const pnr_cuda_walsh &p, uint32_t n,
                                       uint32_t n_lost, double energy, double noise,
                                       uint32_t n_clipped, uint32_t n_nonfinite)
{
    const bool is_used = (uint64_t)n_lost + n_nonfinite <= n / 2;

    w.sums.energy = is_used ? energy : 0;
    w.sums.noise_sum = is_used ? noise : 0;
    w.sums.floor = w.sums.energy; /* sum|x|^2 E_a / N, E_a = N */
    w.sums.n_valid = is_used ? n - n_lost - n_nonfinite : 0;
    w.sums.n_clipped = n_clipped;
    w.sums.n_nonfinite = n_nonfinite;
    w.sums.n_periods = is_used;
    w.sums.n_above = w.sums.n_maxima = w.sums.n_candidates = 0;
    w.rounding = 1e-12 * energy * n;
    w.threshold = is_used ? (float)(p.threshold * w.sums.floor) : INFINITY;
    w.n_above = w.n_keys = w.n_listed = w.n_kept = w.is_done = 0;
}

/* keys[0 .. n): the first n_best of the order by `is_before`, in that order, in place. n <= 128.
 * One warp. */
template <typename ORDER>
static __device__ void pnr_walsh_order(uint64_t *keys, uint32_t n, uint32_t n_best, ORDER is_before)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    uint64_t mine[PNR_WALSH_HELD];
    uint32_t rank[PNR_WALSH_HELD] = {};

#pragma unroll
    for (uint32_t h = 0; h < PNR_WALSH_HELD; h++)
        mine[h] = h * PNR_CUDA_WARP + lane < n ? keys[h * PNR_CUDA_WARP + lane] : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t other = keys[i];

#pragma unroll
        for (uint32_t h = 0; h < PNR_WALSH_HELD; h++)
            rank[h] += is_before(other, mine[h]);
    }
    __syncwarp();
#pragma unroll
    for (uint32_t h = 0; h < PNR_WALSH_HELD; h++)
        if (h * PNR_CUDA_WARP + lane < n && rank[h] < n_best)
            keys[rank[h]] = mine[h];
    __syncwarp();
}

/* Of n keys the strongest n_best come to the front, in lag order; returns how many. A key is never
 * written beyond the place where it was read, so that no other memory is needed. One warp. */
static __device__ uint32_t pnr_walsh_select(uint64_t *keys, uint32_t n, uint32_t n_best)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    const auto is_stronger = [](uint64_t a, uint64_t b) { return a > b; };
    uint32_t n_held = 0;
    uint64_t weakest = 0; /* keys not above it cannot be kept any more */

    if (n > n_best) {
        for (uint32_t first = 0; first < n; first += PNR_WALSH_CHUNK) {
            const uint64_t key = first + lane < n ? keys[first + lane] : 0;
            const uint32_t chosen = __ballot_sync(0xffffffffu, key > weakest);

            if (key > weakest)
                keys[n_held + __popc(chosen & ((1u << lane) - 1))] = key;
            n_held += (uint32_t)__popc(chosen);
            __syncwarp();
            if (n_held > n_best + PNR_WALSH_CHUNK || first + PNR_WALSH_CHUNK >= n) {
                pnr_walsh_order(keys, n_held, n_best, is_stronger);
                n_held = min(n_held, n_best);
                if (n_held == n_best)
                    weakest = keys[n_best - 1];
            }
        }
        n = n_held;
    }
    if (n > 1)
        pnr_walsh_order(keys, n, n,
                        [](uint64_t a, uint64_t b) { return pnr_walsh_lag(a) < pnr_walsh_lag(b); });
    return n;
}

/* The floor without the echoes kept: the mean P of the lags that none of them reaches; -INFINITY
 * when fewer than half the lags are left. value(i, j): neighbour j of kept i. One warp. */
template <typename VALUE>
static __device__ double pnr_walsh_rest(const uint64_t *kept, uint32_t n_kept, uint32_t n,
                                        double noise_sum, VALUE value)
{
    double taken = 0;
    uint32_t n_taken = 0;

    for (uint32_t e = threadIdx.x % PNR_CUDA_WARP; e < n_kept * PNR_NEIGHBOURS;
         e += PNR_CUDA_WARP) {
        const uint32_t i = e / PNR_NEIGHBOURS, j = e % PNR_NEIGHBOURS;
        const uint32_t lag = pnr_walsh_neighbour(n, pnr_walsh_lag(kept[i]), j);
        bool is_counted = false;

        for (uint32_t o = 0; o < i && !is_counted; o++) {
            const uint32_t centre = pnr_walsh_lag(kept[o]);
            const uint32_t apart = lag > centre ? lag - centre : centre - lag;

            is_counted = apart <= PNR_WALSH_REACH || n - apart <= PNR_WALSH_REACH;
        }
        if (!is_counted) {
            /* the echo itself to the bit as it was summed */
            taken += (double)(j == PNR_WALSH_REACH ? __uint_as_float((uint32_t)(kept[i] >> 32))
                                                   : pnr_walsh_power(value(i, j)));
            n_taken++;
        }
    }
    taken = pnr_cuda_warp_sum(taken);
    n_taken = pnr_cuda_warp_sum(n_taken);
    if (2 * (n - n_taken) < n)
        return -INFINITY;
    return (noise_sum - taken) / (double)(n - n_taken);
}

/* After the kept keys (w.n_kept, in lag order) are known: a lower floor for the next search, or the
 * window is done and its candidates go to the host. One warp. */
template <typename VALUE>
static __device__ void pnr_walsh_decide(pnr_walsh_window &w, const pnr_cuda_walsh &p, uint32_t n,
                                        const uint64_t *kept, uint32_t window, int search,
                                        VALUE value)
{
    const uint32_t lane = threadIdx.x % PNR_CUDA_WARP;
    const uint32_t n_kept = w.n_kept;
    const double rest = pnr_walsh_rest(kept, n_kept, n, w.sums.noise_sum, value);
    const double floor = fmax(rest, w.rounding);
    const bool is_last = search + 1 == PNR_MAX_SEARCHES || n_kept == 0 || n <= PNR_NEIGHBOURS ||
                         isinf(rest) || !(floor < 0.95 * w.sums.floor);
    /* Beside max_candidates kept ones a lower threshold adds only weaker ones. */
    const bool is_done = is_last || n_kept == p.max_candidates;

    __syncwarp();
    if (lane == 0) {
        if (search == 0)
            w.sums.n_above = w.n_above;
        w.sums.n_maxima = w.n_keys;
        w.sums.n_candidates = n_kept;
        w.is_done = is_done;
        if (!is_last)
            w.sums.floor = floor;
        if (!is_done) {
            w.threshold = (float)(p.threshold * floor);
            w.n_above = w.n_keys = w.n_listed = 0;
        }
    }
    __syncwarp();
    if (!is_done)
        return;

    uint32_t *out = (uint32_t *)(p.candidates + (size_t)window * p.max_candidates);

    for (uint32_t e = lane; e < n_kept * PNR_WALSH_WORDS; e += PNR_CUDA_WARP) {
        const uint32_t i = e / PNR_WALSH_WORDS, word = e % PNR_WALSH_WORDS;
        uint32_t bits = 0; /* code, channel and Doppler */

        if (word == 0) {
            bits = pnr_walsh_lag(kept[i]);
        } else if (word == 3) {
            bits = __float_as_uint(__uint_as_float((uint32_t)(kept[i] >> 32)) * p.scale * p.scale);
        } else if (word > 3) {
            const float2 c = value(i, (word - 4) / 2);

            bits = __float_as_uint(p.scale * (word % 2 == 0 ? c.x : p.conjugate * c.y));
        }
        out[e] = bits;
    }
}

/* One thread: to full scale, before the sums go to the host. */
static __device__ void pnr_walsh_scale(pnr_walsh_window &w, const pnr_cuda_walsh &p)
{
    const double power = (double)p.scale * p.scale;

    w.sums.energy *= power;
    w.sums.noise_sum *= power;
    w.sums.floor *= power;
}

#endif
