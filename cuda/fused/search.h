/* SPDX-License-Identifier: MIT */
/* The search of the one-kernel fused method. The first warp of a window finds local maxima above
 * the threshold, searches again with lower thresholds, and writes the results and neighbours. */
#ifndef PNR_CUDA_FUSED_SEARCH_H
#define PNR_CUDA_FUSED_SEARCH_H

#include "cuda/fused/window.h"
#include "cuda/steps/candidates.h"

enum { PNR_FUSED_LIST = PNR_MAX_CANDIDATES + PNR_CUDA_WARP };

/* The state of the search of one dwell, in shared memory. */
template <int M> struct alignas(16) pnr_fused_search {
    pnr_dwell dwell;    /* the result so far */
    float threshold;    /* threshold of the first search; infinite: no candidate is possible */
    uint32_t n_windows; /* windows of the submit */
    uint32_t odd;       /* number of clipped samples in the lower 16 bits, of non-finite samples in
                         * the upper 16 */
    double energy[M];   /* energy of the samples of each warp */
    float2 found[pnr_fused_size<M>::THREADS]; /* result of pnr_fused_note_found for each thread */
    uint64_t keys[PNR_FUSED_LIST];            /* keys of maxima; at the end only the kept keys, in
                                               * lag order */
    uint64_t kept[PNR_MAX_CANDIDATES];        /* the kept keys, the strongest first */
    uint64_t outside;                         /* with has_outside: the greatest key of a maximum
                                               * outside of the gate; 0: there is none */
};

/* The powers that are searched. In the plain kernel each dwell is one window of L lags, and the
 * powers are computed from the complex values in the buffer. The general kernel has stored the
 * powers in lag order, with half lags between the integer lags. */
template <int M, bool IS_PLAIN> struct pnr_fused_view {
    const float2 *buffer; /* complex values, real and imaginary part swapped */
    const float *power;
    uint32_t n_samples, n_halves;
    bool has_values; /* true: the buffer has the complex values of the dwell */

    __device__ __forceinline__ uint32_t n() const
    {
        return IS_PLAIN ? pnr_fused_size<M>::L : n_samples;
    }
    __device__ __forceinline__ uint32_t oversample() const
    {
        return IS_PLAIN ? 1 : n_halves;
    }
    __device__ __forceinline__ float2 value_at(uint32_t lag) const
    {
        return buffer[pnr_fused_at<M>(lag)];
    }
    __device__ __forceinline__ float power_at(uint32_t cell) const
    {
        return IS_PLAIN ? pnr_fused_power(value_at(cell)) : power[cell];
    }
    /* Returns (k + j - 8) mod n(), the lag of neighbour j of lag k. */
    __device__ __forceinline__ uint32_t neighbour(uint32_t k, uint32_t j) const
    {
        return (k + n() - PNR_CANDIDATE_REACH % n() + j) % n();
    }
    /* Return cell + 1 and cell - 1, modulo the number of cells. */
    __device__ __forceinline__ uint32_t next(uint32_t cell) const
    {
        return cell + 1 == n() * oversample() ? 0 : cell + 1;
    }
    __device__ __forceinline__ uint32_t previous(uint32_t cell) const
    {
        return (cell == 0 ? n() * oversample() : cell) - 1;
    }
};

/* Returns x / n by Newton's method, since a division takes a hundred instructions. */
static __device__ __forceinline__ double pnr_fused_over(double x, uint32_t n)
{
    const double d = (double)n;
    double inverse = (double)__fdividef(1.0f, (float)n);

    inverse = fma(inverse, fma(-d, inverse, 1.0), inverse);
    inverse = fma(inverse, fma(-d, inverse, 1.0), inverse);
    return x * inverse;
}

/* Sums the energies of the threads of a warp into s.energy. All threads call this. */
template <int M>
static __device__ __forceinline__ void pnr_fused_note_energy(pnr_fused_search<M> &s, float energy,
                                                             uint32_t u)
{
    const double sum = pnr_cuda_warp_sum((double)energy);

    if (u % 32 == 0)
        s.energy[u / 32] = sum;
}

/* Returns the greatest power of a thread and the sum of the thread's powers. Returns 0 instead of
 * the sum if the greatest power is above the threshold. With M > 1 also stores both values in
 * s.found. All threads call this. */
template <int M>
static __device__ __forceinline__ float2 pnr_fused_note_found(pnr_fused_search<M> &s, float best,
                                                              float sum, float threshold,
                                                              uint32_t u)
{
    const float2 found = make_float2(best, best > threshold ? 0.0f : sum);

    if (M > 1)
        s.found[u] = found;
    return found;
}

/* Adds the counts of a measured window of n samples to its dwell. One warp calls this. All its
 * lanes compute the same values, so that no lane waits for another. */
template <int M>
static __device__ __forceinline__ void
pnr_fused_count(pnr_fused_search<M> &s, const pnr_cuda_fused &p, pnr_dwell *dwell, size_t window,
                uint32_t n, uint32_t n_lost, double energy_scale, uint32_t lane)
{
    const uint32_t n_clipped = s.odd & 0xffff, n_nonfinite = s.odd >> 16;
    const bool is_used = n_lost + n_nonfinite <= n / 2;
    double energy = 0;

#pragma unroll
    for (int warp = 0; warp < M; warp++)
        energy += s.energy[warp];
    dwell->energy += is_used ? energy * energy_scale : 0.0;
    dwell->n_clipped += n_clipped;
    dwell->n_nonfinite += n_nonfinite;
    dwell->n_valid += is_used ? n - n_lost - n_nonfinite : 0;
    dwell->n_periods += is_used ? 1 : 0;
    __syncwarp();
    if (lane == 0) {
        s.odd = 0;
        p.nonfinite[window] = n_nonfinite;
    }
}

/* Sets the floor and the threshold of the first search. ratio: threshold / floor. Only the warp
 * that has called pnr_fused_count calls this. */
template <int M>
static __device__ __forceinline__ void pnr_fused_begin(pnr_fused_search<M> &s,
                                                       const pnr_cuda_fused &p, pnr_dwell dwell,
                                                       uint32_t n, double ratio, uint32_t lane)
{
    /* The mean power of a cell if the samples are noise alone: sum |x|^2 code_energy / N. */
    dwell.floor = dwell.energy * p.code_energy / n;
    __syncwarp();
    if (lane == 0) {
        s.dwell = dwell;
        s.threshold = dwell.n_periods > 0 ? (float)(ratio * dwell.floor) : INFINITY;
    }
}

/* Counts of one search. */
typedef struct pnr_fused_tally {
    uint32_t n_above, n_maxima;
    uint32_t n_keys;  /* keys in the list */
    uint64_t weakest; /* weaker keys are not kept */
    double noise;     /* this lane's part of the sum of powers over all integer lags */
} pnr_fused_tally;

/* Selects the strongest n_best of n keys and the key `outside`, unless it is 0. Sorts them by lag,
 * and returns their number. The loops are not unrolled, since they run seldom and should need few
 * registers. */
template <int M>
static __device__ __forceinline__ uint32_t pnr_fused_keep(pnr_fused_search<M> &s, uint32_t n,
                                                          uint32_t n_best, uint64_t outside,
                                                          uint32_t lane)
{
    uint32_t n_kept = min(n, n_best);

#pragma unroll 1
    for (uint32_t i = lane; i < n; i += PNR_CUDA_WARP) {
        uint32_t rank = 0;

#pragma unroll 1
        for (uint32_t e = 0; e < n; e++)
            rank += s.keys[e] > s.keys[i];
        if (rank < n_kept)
            s.kept[rank] = s.keys[i];
    }
    if (pnr_fused_agreed(outside != 0)) {
        if (lane == 0)
            s.kept[n_kept] = outside;
        n_kept++;
    }
    __syncwarp();
#pragma unroll 1
    for (uint32_t i = lane; i < n_kept; i += PNR_CUDA_WARP) {
        uint32_t place = 0;

#pragma unroll 1
        for (uint32_t e = 0; e < n_kept; e++)
            place += pnr_candidate_lag(s.kept[e]) < pnr_candidate_lag(s.kept[i]);
        s.keys[place] = s.kept[i];
    }
    __syncwarp();
    return n_kept;
}

/* Scans column u, which has a cell above the threshold: each lane compares its cells with the cells
 * before and after them. The list gets the maxima in the order of the lanes, so its order is always
 * the same. */
template <int M, bool IS_PLAIN>
static __device__ __forceinline__ void
pnr_fused_scan_column(pnr_fused_search<M> &s, const pnr_fused_view<M, IS_PLAIN> &view,
                      const pnr_cuda_fused &p, uint32_t u, uint32_t lane, float threshold,
                      pnr_fused_tally *t)
{
    const uint32_t lag = u + pnr_fused_size<M>::THREADS * lane;
    const bool is_lag = IS_PLAIN || lag < view.n();

#pragma unroll 1
    for (uint32_t half = 0; half < view.oversample(); half++) {
        const uint32_t cell = is_lag ? lag * view.oversample() + half : 0;
        const float power = is_lag ? view.power_at(cell) : 0.0f;
        const bool is_above = power > threshold && pnr_candidate_in_gate(p, view.n(), lag);
        const bool is_greatest = (power > view.power_at(view.previous(cell))) &
                                 (power >= view.power_at(view.next(cell)));
        const bool is_maximum = is_above & is_greatest;
        const uint64_t key = pnr_candidate_key(power, cell);
        const uint32_t listed = __ballot_sync(0xffffffffu, is_maximum & (key > t->weakest));

        if (half == 0)
            t->noise += (double)power;
        t->n_above += (uint32_t)__popc(__ballot_sync(0xffffffffu, is_above));
        t->n_maxima += (uint32_t)__popc(__ballot_sync(0xffffffffu, is_maximum));
        if (listed >> lane & 1)
            s.keys[t->n_keys + (uint32_t)__popc(listed & ((1u << lane) - 1))] = key;
        t->n_keys += (uint32_t)__popc(listed);
        if (p.has_outside && power > threshold && !is_above && is_greatest)
            pnr_candidate_raise(&s.outside, key);
        __syncwarp();
        if (__builtin_expect(t->n_keys > PNR_MAX_CANDIDATES, false)) {
            t->n_keys = pnr_fused_keep(s, t->n_keys, pnr_candidate_most(p), 0, lane);
            t->weakest = s.kept[pnr_candidate_most(p) - 1];
            __syncwarp(); /* all lanes have read s.kept */
        }
    }
}

/* Writes candidate i with its neighbours to the results. Each lane writes one neighbour, and adds
 * the neighbour's power to *taken if no earlier candidate has a neighbour at the same lag. Returns
 * the number of neighbours whose power was added. */
template <int M, bool IS_PLAIN>
static __device__ __forceinline__ uint32_t
pnr_fused_return_candidate(const pnr_fused_search<M> &s, const pnr_fused_view<M, IS_PLAIN> &view,
                           pnr_candidate *out, uint32_t i, uint32_t lane, double *taken)
{
    const uint64_t key = s.keys[i];
    const uint32_t cell = pnr_candidate_lag(key);
    const uint32_t lag = view.neighbour(cell / view.oversample(), lane);
    const float2 c = view.value_at(lag);
    const float power = IS_PLAIN ? pnr_fused_power(c) : view.power_at(lag * view.oversample());
    bool is_new = lane < PNR_NEIGHBOURS;

#pragma unroll 1
    for (uint32_t e = 0; e < i; e++)
        is_new &=
            !pnr_candidate_reaches(view.n(), pnr_candidate_lag(s.keys[e]) / view.oversample(), lag);
    *taken += is_new ? (double)power : 0.0;

    /* Each lane writes one pair of words: two pairs are the head, the others are the values. */
    static_assert(sizeof(pnr_candidate) == (2 + PNR_NEIGHBOURS) * sizeof(uint2) &&
                      offsetof(pnr_candidate, power) == 12 && offsetof(pnr_candidate, value) == 16,
                  "cell, code and channel; Doppler, power; values");
    const bool is_value = lane < PNR_NEIGHBOURS;
    const uint32_t pair = is_value ? 2 + lane : lane - PNR_NEIGHBOURS;
    const uint2 head = pair == 0 ? make_uint2(cell, 0) : make_uint2(0, (uint32_t)(key >> 32));

    if (pair < 2 || (is_value && (IS_PLAIN || view.has_values)))
        ((uint2 *)(out + i))[pair] =
            is_value ? make_uint2(__float_as_uint(c.y), __float_as_uint(c.x)) : head;
    return (uint32_t)__popc(__ballot_sync(0xffffffffu, is_new));
}

/* Sums *x and *y over the warp: one half of the warp sums *x, the other half sums *y. */
static __device__ __forceinline__ void pnr_fused_sum_both(double *x, double *y, uint32_t lane)
{
    double mine = lane < 16 ? *x : *y;

    mine += __shfl_xor_sync(0xffffffffu, lane < 16 ? *y : *x, 16);
#pragma unroll
    for (int other = 8; other > 0; other /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, other);
    *x = __shfl_sync(0xffffffffu, mine, 0);
    *y = __shfl_sync(0xffffffffu, mine, 16);
}

/* Finds the columns with a cell above the threshold. *columns: lane w gets a bit for each such
 * column of warp w. Returns a bit for each warp that has such a column. Adds the powers of all
 * other columns to *noise, which only the first search uses. own: the result of
 * pnr_fused_note_found in this thread. */
template <int M>
static __device__ __forceinline__ uint32_t pnr_fused_columns(const pnr_fused_search<M> &s,
                                                             uint32_t lane, float threshold,
                                                             float2 own, uint32_t *columns,
                                                             double *noise)
{
    uint32_t warps = 0;

    *columns = 0;
#pragma unroll 8
    for (uint32_t warp = 0; warp < M; warp++) {
        const float2 found = M == 1 ? own : s.found[warp * PNR_CUDA_WARP + lane];
        const uint32_t above = __ballot_sync(0xffffffffu, found.x > threshold);

        *noise += (double)found.y;
        *columns = M == 1 || lane == warp ? above : *columns;
        warps |= above != 0 ? 1u << warp : 0;
    }
    return warps;
}

/* Searches a dwell, and writes its sums and candidates to the results. Only the first warp calls
 * this. Before the call, all threads have called pnr_fused_note_found, and the sums of the dwell
 * and the first threshold are set. found: the result of pnr_fused_note_found in this thread. */
template <int M, bool IS_PLAIN>
static __device__ __forceinline__ void
pnr_fused_search_dwell(pnr_fused_search<M> &s, const pnr_fused_view<M, IS_PLAIN> &view,
                       const pnr_cuda_fused &p, size_t dwell, uint32_t lane, float2 found)
{
    const uint32_t n = view.n();
    pnr_candidate *out = p.candidates + dwell * p.max_candidates;
    float threshold = s.threshold;
    double floor = s.dwell.floor, noise_sum = 0;
    uint32_t n_above = 0, n_before = 0, n_kept, n_maxima; /* n_before: n_kept of the previous
                                                           * search */
    bool is_done;

#pragma unroll 1
    for (int search = 0;; search++) {
        pnr_fused_tally tally = {0, 0, 0, 0, 0.0};
        double taken = 0;
        uint32_t n_taken = 0, mine;
        uint32_t warps = pnr_fused_columns(s, lane, threshold, found, &mine, &tally.noise);

        if (p.has_outside) {
            if (lane == 0)
                s.outside = 0;
            __syncwarp();
        }
#pragma unroll 1
        for (; warps != 0; warps &= warps - 1) {
            const uint32_t warp = (uint32_t)__ffs((int)warps) - 1;

#pragma unroll 1
            for (uint32_t columns = M == 1 ? mine : __shfl_sync(0xffffffffu, mine, (int)warp);
                 columns != 0; columns &= columns - 1)
                pnr_fused_scan_column(s, view, p,
                                      warp * PNR_CUDA_WARP + (uint32_t)__ffs((int)columns) - 1,
                                      lane, threshold, &tally);
        }
        n_maxima = tally.n_maxima;
        n_kept = tally.n_keys;
        if (__builtin_expect(n_kept > 1 || p.has_outside, false))
            n_kept = pnr_fused_keep(s, n_kept, pnr_candidate_most(p), p.has_outside ? s.outside : 0,
                                    lane);
#pragma unroll 1
        for (uint32_t i = 0; i < n_kept; i++)
            n_taken += pnr_fused_return_candidate(s, view, out, i, lane, &taken);
        pnr_fused_sum_both(&tally.noise, &taken, lane);
        if (search == 0) {
            noise_sum = tally.noise;
            n_above = tally.n_above;
        }
        /* A lower threshold keeps all candidates of the previous search. If no candidate is new,
         * the floor and the result stay the same. */
        is_done = (n_kept == n_before && search > 0) || search + 1 == PNR_MAX_SEARCHES ||
                  n <= PNR_NEIGHBOURS || 2 * (n - n_taken) < n;
        if (!is_done) {
            const double rest = pnr_fused_over(noise_sum - taken, n - n_taken);
            const double rounding = 1e-12 * s.dwell.floor * n;
            const double lower = fmax(rest, IS_PLAIN ? rounding : rounding * s.dwell.n_periods);

            is_done = !(lower < PNR_LOWER_FLOOR(n_kept) * floor);
            if (!is_done)
                floor = lower;
            /* a lower threshold adds only weaker candidates */
            is_done |= n_maxima >= pnr_candidate_most(p);
        }
        if (is_done)
            break;
        threshold = (float)(p.threshold[s.dwell.n_periods - 1] * floor);
        n_before = n_kept;
        __syncwarp();
    }
    __syncwarp();
    if (lane == 0) {
        s.dwell.noise_sum = s.dwell.n_periods > 0 ? noise_sum : 0;
        s.dwell.floor = floor;
        s.dwell.n_above = n_above;
        s.dwell.n_maxima = n_maxima;
        s.dwell.n_candidates = n_kept;
    }
    __syncwarp();
    static_assert(sizeof(pnr_dwell) == 16 * sizeof(uint32_t), "a word each of 16 lanes");
    if (lane < 16)
        ((uint32_t *)(p.dwells + dwell))[lane] = ((const uint32_t *)&s.dwell)[lane];
}

#endif
