/* SPDX-License-Identifier: MIT */
/* The search of the fused kernel: sums of a window, local maxima above, second looks, neighbours.
 */
#ifndef PNR_CUDA_FUSED_SEARCH_H
#define PNR_CUDA_FUSED_SEARCH_H

#include "fused.h"
#include "reduce.h"

/* A window of N = 32 * M * 32 samples and its 32 * M threads, 32 values each. */
template <int M> struct pnr_fused_size {
    static constexpr int THREADS = 32 * M;
    static constexpr int N = 1024 * M;
    /* In shared memory the 32 * M values of one k1 are a row, every 32 of them followed by two
     * empty places: neither rows nor columns meet bank conflicts. */
    static constexpr int PART = 34, ROW = PART * M;
    static constexpr int WINDOWS = M == 1 ? 16 : 1; /* a block */
    static constexpr int BLOCKS = M == 1 ? 1 : M == 2 ? 8 : M == 4 ? 4 : M == 8 ? 2 : 1; /* an SM */
    static constexpr int BUFFER = 32 * ROW; /* float2 a window */
};

/* Waits for the threads of one window. */
template <int M> static __device__ __forceinline__ void pnr_fused_sync()
{
    if (M == 1)
        __syncwarp();
    else
        __syncthreads();
}

enum {
    PNR_FUSED_REACH = PNR_NEIGHBOURS / 2,
    PNR_FUSED_GROUP = 4, /* of a thread's 32 powers */
    PNR_FUSED_GROUPS = 32 / PNR_FUSED_GROUP
};

/* A thread's powers in groups: a search reads only those that hold something above. */
typedef struct pnr_fused_groups {
    float best[PNR_FUSED_GROUPS], sum[PNR_FUSED_GROUPS];
} pnr_fused_groups;

/* Bit g: group g holds something above. */
static __device__ __forceinline__ uint32_t pnr_fused_above(const pnr_fused_groups &groups,
                                                           float threshold)
{
    uint32_t above = 0;

#pragma unroll
    for (int g = 0; g < PNR_FUSED_GROUPS; g++)
        above |= groups.best[g] > threshold ? 1u << g : 0u;
    return above;
}

/* One window's shared memory beside its values. */
template <int M> struct pnr_fused_search {
    pnr_dwell dwell; /* the result so far */
    double energy[M], noise[M];
    uint64_t strongest[M];
    uint64_t keys[PNR_MAX_CANDIDATES]; /* maxima, at last the kept ones in lag order */
    uint64_t kept[PNR_MAX_CANDIDATES];
    uint32_t odd[M];                     /* clipped, and non-finite in the upper half */
    uint32_t n_maxima[PNR_MAX_SEARCHES]; /* of each search */
    uint32_t n_above;
    uint32_t is_done;
    float threshold; /* infinite when the window is not used */
};

/* The stronger first, then the lower lag. Positive floats sort as their bits do. */
static __device__ __forceinline__ uint64_t pnr_fused_key(float power, uint32_t lag)
{
    return (uint64_t)__float_as_uint(power) << 32 | (UINT32_MAX - lag);
}
static __device__ __forceinline__ uint32_t pnr_fused_lag(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}

/* Of c with its parts swapped, as the inverse leaves it. */
static __device__ __forceinline__ float pnr_fused_power(float2 swapped)
{
    return fmaf(swapped.y, swapped.y, swapped.x * swapped.x);
}

/* c at a lag (mod N), parts swapped, once every thread has put its values back. */
template <int M>
static __device__ __forceinline__ float2 pnr_fused_at(const float2 *buffer, uint32_t lag)
{
    typedef pnr_fused_size<M> size;

    lag &= size::N - 1;
    return buffer[lag / size::THREADS * size::ROW + lag % size::THREADS / 32 * size::PART +
                  lag % 32];
}

/* One thread: energy, counts and the first threshold, from what the warps measured. */
template <int M>
static __device__ void pnr_fused_begin(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                       uint32_t n_lost)
{
    constexpr uint32_t n = pnr_fused_size<M>::N;
    double energy = 0;
    uint32_t n_clipped = 0, n_nonfinite = 0;

#pragma unroll
    for (int warp = 0; warp < M; warp++) {
        energy += s.energy[warp];
        n_clipped += s.odd[warp] & 0xffff;
        n_nonfinite += s.odd[warp] >> 16;
    }

    const bool is_used = (uint64_t)n_lost + n_nonfinite <= n / 2;

    /* The mean of P were all of x noise: sum|x|^2 E_a / N. */
    s.dwell.energy = is_used ? energy * p.scale * p.scale : 0;
    s.dwell.floor = s.dwell.energy * p.code_energy / n;
    s.dwell.n_valid = is_used ? n - n_lost - n_nonfinite : 0;
    s.dwell.n_clipped = n_clipped;
    s.dwell.n_nonfinite = n_nonfinite;
    s.dwell.n_periods = is_used;
    s.dwell.n_above = s.dwell.n_maxima = s.dwell.n_candidates = 0;
    s.threshold = is_used ? (float)(p.threshold * s.dwell.floor) : INFINITY;
}

/* The first warp: the window's sums to the host, in words that join on the link. */
template <int M>
static __device__ void pnr_fused_finish(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                        uint32_t window, uint32_t lane)
{
    static_assert(sizeof(pnr_dwell) == 16 * sizeof(uint32_t), "a word each of 16 lanes");
    if (lane == 0) {
        double noise = 0;

#pragma unroll
        for (int warp = 0; warp < M; warp++)
            noise += s.noise[warp];
        s.dwell.noise_sum = s.dwell.n_periods > 0 ? noise : 0;
    }
    __syncwarp();
    if (lane < 16)
        ((uint32_t *)(p.dwells + window))[lane] = ((const uint32_t *)&s.dwell)[lane];
    if (lane == 16)
        p.nonfinite[window] = (uint32_t)s.dwell.n_nonfinite;
}

/* Keys are more than their list holds: the strongest max_candidates, one after the other. maxima:
 * bit j, the thread's value j is one. All threads call; ends with a barrier. */
template <int M>
static __device__ void pnr_fused_select(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                        const float2 *column, uint32_t u, uint32_t maxima)
{
    typedef pnr_fused_size<M> size;
    uint64_t last = UINT64_MAX;

#pragma unroll 1
    for (uint32_t i = 0; i < p.max_candidates; i++) {
        uint64_t best = 0;

#pragma unroll 1
        for (uint32_t left = maxima; left != 0; left &= left - 1) {
            const uint32_t j = (uint32_t)__ffs((int)left) - 1;
            const uint64_t key =
                pnr_fused_key(pnr_fused_power(column[j * size::ROW]), u + size::THREADS * j);

            if (key < last && key > best)
                best = key;
        }
#pragma unroll 1
        for (int lane = 16; lane > 0; lane /= 2) {
            const uint64_t other = __shfl_xor_sync(0xffffffffu, best, lane);

            best = other > best ? other : best;
        }
        if (u % 32 == 0)
            s.strongest[u / 32] = best;
        pnr_fused_sync<M>();
#pragma unroll 1
        for (int warp = 0; warp < M; warp++)
            best = s.strongest[warp] > best ? s.strongest[warp] : best;
        pnr_fused_sync<M>();
        if (u == 0)
            s.keys[i] = best;
        last = best;
    }
    pnr_fused_sync<M>();
}

/* The first warp: of n keys the strongest max_candidates, in lag order. Returns how many. */
template <int M>
static __device__ uint32_t pnr_fused_keep(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                          uint32_t n, uint32_t lane)
{
    const uint32_t n_kept = min(n, p.max_candidates);

    if (n <= 1)
        return n;
#pragma unroll 1
    for (uint32_t i = lane; i < n; i += 32) {
        uint32_t rank = 0;

#pragma unroll 1
        for (uint32_t e = 0; e < n; e++)
            rank += s.keys[e] > s.keys[i];
        if (rank < n_kept)
            s.kept[rank] = s.keys[i];
    }
    __syncwarp();
#pragma unroll 1
    for (uint32_t i = lane; i < n_kept; i += 32) {
        uint32_t place = 0;

#pragma unroll 1
        for (uint32_t e = 0; e < n_kept; e++)
            place += pnr_fused_lag(s.kept[e]) < pnr_fused_lag(s.kept[i]);
        s.keys[place] = s.kept[i];
    }
    __syncwarp();
    return n_kept;
}

/* The first warp: the mean P of the lags that no kept candidate reaches; negative when fewer than
 * half are left. Every lane gets it. */
template <int M>
static __device__ double pnr_fused_rest(const pnr_fused_search<M> &s, const float2 *buffer,
                                        uint32_t n_kept, uint32_t lane)
{
    constexpr uint32_t n = pnr_fused_size<M>::N;
    const uint32_t n_lags = n_kept * PNR_NEIGHBOURS;
    double taken = 0, noise = 0;
    uint32_t n_taken = 0;

    /* The lanes stay together: a sum over lanes that might have parted is a call for each step. */
#pragma unroll 1
    for (uint32_t first = 0; first < n_lags; first += 32) {
        const uint32_t i = first + lane, candidate = i / PNR_NEIGHBOURS;
        bool is_new = i < n_lags;

        if (is_new) {
            const uint32_t lag =
                pnr_fused_lag(s.keys[candidate]) + i % PNR_NEIGHBOURS - PNR_FUSED_REACH;

#pragma unroll 1
            for (uint32_t e = 0; e < candidate && is_new; e++)
                is_new = ((lag - pnr_fused_lag(s.keys[e]) + PNR_FUSED_REACH) & (n - 1)) >
                         2 * PNR_FUSED_REACH;
            if (is_new)
                taken += (double)pnr_fused_power(pnr_fused_at<M>(buffer, lag));
        }
        n_taken += (uint32_t)__popc((int)__ballot_sync(0xffffffffu, is_new));
    }
    __syncwarp();
    taken = pnr_cuda_warp_sum(taken);
#pragma unroll
    for (int warp = 0; warp < M; warp++)
        noise += s.noise[warp];
    if (2 * (n - n_taken) < n)
        return -1.0;

    /* 1 / left by Newton's steps: a division is a hundred instructions. */
    const double left = (double)(n - n_taken);
    double inverse = (double)__frcp_rn((float)left);

    inverse = fma(inverse, fma(-left, inverse, 1.0), inverse);
    inverse = fma(inverse, fma(-left, inverse, 1.0), inverse);
    return fmax(noise - taken, 0.0) * inverse;
}

/* The first warp: the kept candidates and their neighbours to the host. */
template <int M>
static __device__ void pnr_fused_gather(const pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                        const float2 *buffer, uint32_t window, uint32_t n_kept,
                                        uint32_t lane)
{
    constexpr uint32_t words = sizeof(pnr_candidate) / sizeof(uint32_t);
    constexpr uint32_t first = offsetof(pnr_candidate, value) / sizeof(uint32_t);
    uint32_t *out = (uint32_t *)(p.candidates + (size_t)window * p.max_candidates);

    static_assert(words == 38 && first == 4 && offsetof(pnr_candidate, power) == 12,
                  "cell, code and channel, doppler, power, values");
#pragma unroll 1
    for (uint32_t i = lane; i < n_kept * words; i += 32) {
        const uint64_t key = s.keys[i / words];
        const uint32_t word = i % words;
        uint32_t value = 0; /* code, channel, doppler */

        if (word == 0)
            value = pnr_fused_lag(key);
        else if (word == 3)
            value = (uint32_t)(key >> 32);
        else if (word >= first) {
            const float2 c =
                pnr_fused_at<M>(buffer, pnr_fused_lag(key) + (word - first) / 2 - PNR_FUSED_REACH);

            value = __float_as_uint((word - first) % 2 == 0 ? c.y : c.x);
        }
        out[i] = value;
    }
}

/* What a float sum of the thread's powers lacks: beside an echo it cannot hold the noise of the
 * other lags, and the rest is a difference. */
template <int M>
static __device__ double pnr_fused_correction(const float2 *column, const pnr_fused_groups &groups,
                                              float sum, uint32_t above)
{
    double exact = 0;

#pragma unroll
    for (int g = 0; g < PNR_FUSED_GROUPS; g++)
        exact += (above >> g & 1) != 0 ? 0.0 : (double)groups.sum[g];
#pragma unroll 1
    for (; above != 0; above &= above - 1) {
        const float2 *of_group =
            column + (__ffs((int)above) - 1) * PNR_FUSED_GROUP * pnr_fused_size<M>::ROW;

#pragma unroll
        for (int i = 0; i < PNR_FUSED_GROUP; i++)
            exact += (double)pnr_fused_power(of_group[i * pnr_fused_size<M>::ROW]);
    }
    return exact - (double)sum;
}

/* A thread's groups that hold something above: marks and lists the local maxima. */
template <int M>
static __device__ uint32_t pnr_fused_scan(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                          const float2 *buffer, const float2 *column, uint32_t u,
                                          uint32_t above, int search)
{
    typedef pnr_fused_size<M> size;
    const float threshold = s.threshold;
    uint32_t maxima = 0, n_above = 0;

#pragma unroll 1
    for (; above != 0; above &= above - 1) {
        const uint32_t first = ((uint32_t)__ffs((int)above) - 1) * PNR_FUSED_GROUP;
        float power[PNR_FUSED_GROUP];

#pragma unroll
        for (int i = 0; i < PNR_FUSED_GROUP; i++)
            power[i] = pnr_fused_power(column[(first + i) * size::ROW]);
#pragma unroll
        for (int i = 0; i < PNR_FUSED_GROUP; i++) {
            const uint32_t lag = u + size::THREADS * (first + i);

            if (!(power[i] > threshold) || ((lag - p.gate_first) & (size::N - 1)) >= p.gate_count)
                continue;
            n_above++;
            if (power[i] > pnr_fused_power(pnr_fused_at<M>(buffer, lag - 1)) &&
                power[i] >= pnr_fused_power(pnr_fused_at<M>(buffer, lag + 1))) {
                const uint32_t at = atomicAdd(&s.n_maxima[search], 1u);

                if (at < PNR_MAX_CANDIDATES)
                    s.keys[at] = pnr_fused_key(power[i], lag);
                maxima |= 1u << (first + i);
            }
        }
    }
    if (search == 0 && n_above > 0)
        atomicAdd(&s.n_above, n_above);
    return maxima;
}

/*
 * Something is above: the thread's 32 values lie in its column of the buffer; groups and sum are of
 * their powers. All threads of the window call; ends with a barrier after the last use of the
 * buffer.
 */
template <int M>
static __device__ void pnr_fused_look(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                      const float2 *buffer, const float2 *column, uint32_t window,
                                      uint32_t u, const pnr_fused_groups &groups, float sum)
{
    uint32_t above = pnr_fused_above(groups, s.threshold);
    uint32_t n_before = 0; /* kept in the search before */

    if (u < PNR_MAX_SEARCHES)
        s.n_maxima[u] = 0;
    if (u == 0)
        s.n_above = 0;
    if (__any_sync(0xffffffffu, above != 0)) {
        const double correction = pnr_cuda_warp_sum(
            above != 0 ? pnr_fused_correction<M>(column, groups, sum, above) : 0.0);

        if (u % 32 == 0)
            s.noise[u / 32] += correction;
    }
    pnr_fused_sync<M>();
#pragma unroll 1
    for (int search = 0;; search++) {
        uint32_t maxima = 0;

        if (above != 0)
            maxima = pnr_fused_scan<M>(s, p, buffer, column, u, above, search);
        pnr_fused_sync<M>();

        const uint32_t n_maxima = s.n_maxima[search];

        if (n_maxima > PNR_MAX_CANDIDATES)
            pnr_fused_select<M>(s, p, column, u, maxima);
        if (u < 32) {
            const uint32_t n_keys = n_maxima > PNR_MAX_CANDIDATES ? p.max_candidates : n_maxima;
            const uint32_t n_kept = pnr_fused_keep<M>(s, p, n_keys, u);
            /* A lower threshold keeps what was kept: as many are the same, and so is the rest. */
            bool is_done = search + 1 == PNR_MAX_SEARCHES || n_kept == n_before;

            if (!is_done) {
                const double rest = pnr_fused_rest<M>(s, buffer, n_kept, u);
                const double floor = fmax(rest, 1e-12 * s.dwell.energy * p.code_energy);

                is_done = rest < 0 || !(floor < 0.95 * s.dwell.floor);
                __syncwarp();
                if (u == 0 && !is_done) {
                    s.dwell.floor = floor;
                    s.threshold = (float)(p.threshold * floor);
                }
                /* A lower threshold adds only weaker ones. */
                is_done = is_done || n_kept == p.max_candidates;
            }
            n_before = n_kept;
            if (u == 0)
                s.is_done = is_done;
            if (is_done) {
                if (u == 0) {
                    s.dwell.n_above = s.n_above;
                    s.dwell.n_maxima = n_maxima;
                    s.dwell.n_candidates = n_kept;
                }
                pnr_fused_gather<M>(s, p, buffer, window, n_kept, u);
            }
        }
        pnr_fused_sync<M>();
        if (s.is_done)
            return;
        above = pnr_fused_above(groups, s.threshold);
    }
}

#endif
