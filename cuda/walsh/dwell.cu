/* SPDX-License-Identifier: MIT */
/* Method walsh to degree 13 for dwells of several periods: one block computes all windows of a
 * dwell. */
#include "cuda/walsh/window.h"

/* Data that the warps of a block exchange. */
template <uint32_t WARPS> struct exchange {
    double energy[WARPS], noise[WARPS];
    uint64_t n_valid[WARPS], n_clipped[WARPS], n_nonfinite[WARPS];
    uint32_t n_used[WARPS], odd[WARPS];
    float tops[WARPS * 32];
    uint64_t keys[PNR_WALSH_LISTED];
    uint32_t n_kept;
};

/* Sums of one thread over its windows of a dwell. */
struct counts {
    double energy = 0, noise = 0;
    uint64_t n_valid = 0, n_clipped = 0, n_nonfinite = 0;
    uint32_t n_used = 0;
};

/* Adds x over the teams of a warp. A team is the group of threads that computes one window. Threads
 * that have the same number in their teams get the same sum. */
template <uint32_t TEAM> static __device__ __forceinline__ float sum_teams(float x)
{
#pragma unroll
    for (uint32_t other = TEAM; other < 32; other *= 2)
        x += __shfl_xor_sync(0xffffffffu, x, (int)other);
    return x;
}

/* Reads windows [first, first + count) of a dwell, one window for each team, and adds their counts
 * to `sums`. Returns true if the window of the thread is used. All threads call this. */
template <typename T, int DEGREE>
static __device__ __forceinline__ bool
read_windows(const pnr_cuda_walsh &p, pnr_walsh_stage<T, DEGREE> &stage, size_t first,
             uint32_t count, uint32_t *scratch, counts &sums, float2 (&v)[PNR_WALSH_EACH])
{
    typedef pnr_walsh_size<T, DEGREE> size;
    const uint32_t own = threadIdx.x / size::TEAM, t = threadIdx.x % size::TEAM;
    const bool is_there = own < count;
    const uint32_t n_lost = is_there ? p.windows[first + own].n_lost : 0;
    const pnr_cuda_pair<T> *x = stage.at(first, own);
    pnr_walsh_measure<T> measure;
    uint32_t odd = 0;

    pnr_walsh_barrier<DEGREE>(); /* all threads have read the previous samples and values */
    stage.fetch(p, first, count);
    __pipeline_wait_prior(0);
    pnr_walsh_barrier<DEGREE>();
    pnr_walsh_read<T, size::TEAM>(x, p.place, t, measure, v);
    if (measure.is_odd())
        odd = pnr_walsh_count_odd<T, size::TEAM>(x, p.place, t);
    odd = pnr_walsh_sum<size::TEAM>(odd, scratch);

    const uint32_t n_nonfinite = odd >> 16;
    const bool is_used = is_there && pnr_walsh_is_used(size::N, n_lost, n_nonfinite);

    if (is_used)
        sums.energy += (double)measure.energy();
    if (is_there && t == 0) {
        p.nonfinite[first + own] = n_nonfinite;
        sums.n_clipped += odd & 0xffff;
        sums.n_nonfinite += n_nonfinite;
        sums.n_used += is_used;
        sums.n_valid += is_used ? size::N - n_lost - n_nonfinite : 0;
    }
    return is_used;
}

/* Writes the profile in lag order. value(u, at) writes the value at index u of W to index `at` of
 * the profile. */
template <typename T, int DEGREE, typename VALUE>
static __device__ void write_profile(const pnr_cuda_walsh &p, size_t dwell, VALUE value)
{
    typedef pnr_walsh_size<T, DEGREE> size;

    for (uint32_t k = threadIdx.x; k < size::N; k += size::THREADS)
        value(__ldg((const uint16_t *)p.cell_of + k), dwell * size::N + k);
}

/* Sums the counts over the block, and returns the state of the dwell before the search. */
template <typename T, int DEGREE>
static __device__ pnr_walsh_dwell begin_dwell(const pnr_cuda_walsh &p, const counts &own,
                                              exchange<pnr_walsh_size<T, DEGREE>::WARPS> &scratch)
{
    typedef pnr_walsh_size<T, DEGREE> size;
    const double energy = pnr_walsh_sum<size::THREADS>(own.energy, scratch.energy);
    const double noise = pnr_walsh_sum<size::THREADS>(own.noise, scratch.noise);
    const uint64_t n_valid = pnr_walsh_sum<size::THREADS>(own.n_valid, scratch.n_valid);
    const uint64_t n_clipped = pnr_walsh_sum<size::THREADS>(own.n_clipped, scratch.n_clipped);
    const uint64_t n_nonfinite = pnr_walsh_sum<size::THREADS>(own.n_nonfinite, scratch.n_nonfinite);
    const uint32_t n_used = pnr_walsh_sum<size::THREADS>(own.n_used, scratch.n_used);

    return pnr_walsh_begin(p, size::N, n_used, energy, fmax(noise, 0.0), n_valid, n_clipped,
                           n_nonfinite);
}

/* --- coherent: the samples of all windows are added --- */

template <typename T, int DEGREE>
__global__ void __launch_bounds__(pnr_walsh_size<T, DEGREE>::THREADS,
                                  256 / pnr_walsh_size<T, DEGREE>::THREADS)
    walsh_coherent(pnr_cuda_walsh p)
{
    typedef pnr_walsh_size<T, DEGREE> size;
    extern __shared__ uint4 shared[];
    __shared__ exchange<size::WARPS> scratch;
    float2 *values = (float2 *)shared;
    pnr_walsh_stage<T, DEGREE> stage = {(char *)shared + size::VALUES};
    const uint32_t t = threadIdx.x % size::TEAM;
    const uint32_t n_dwells = pnr_cuda_dwells_of(p.job, p.first_dwell, p.n_dwells);

    for (uint32_t dwell = blockIdx.x; dwell < n_dwells; dwell += gridDim.x) {
        counts sums;
        float2 sum[PNR_WALSH_EACH] = {};

        for (uint32_t k = 0; k < p.n_periods; k += size::WINDOWS) {
            float2 v[PNR_WALSH_EACH];
            const bool is_used =
                read_windows<T, DEGREE>(p, stage, (size_t)dwell * p.n_periods + k,
                                        min(size::WINDOWS, p.n_periods - k), scratch.odd, sums, v);

#pragma unroll
            for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
                sum[r].x += is_used ? v[r].x : 0.0f;
                sum[r].y += is_used ? v[r].y : 0.0f;
            }
        }

        double energy = 0; /* energy of the sum of the windows */

#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
            sum[r].x = sum_teams<size::TEAM>(sum[r].x);
            sum[r].y = sum_teams<size::TEAM>(sum[r].y);
            energy = fma((double)sum[r].x, (double)sum[r].x,
                         fma((double)sum[r].y, (double)sum[r].y, energy));
        }
        pnr_walsh_transform<DEGREE>(values, sum, [] {});

        float top = 0;

#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
            top = fmaxf(top, r == 0 && t == 0 ? 0.0f : pnr_walsh_power(sum[r]));
        if (threadIdx.x < size::TEAM) {
            pnr_walsh_store<DEGREE - 5>(values, sum);
            /* sum |W[u]|^2 = 2^n times the energy; W[0] belongs to no lag */
            sums.noise = energy * (size::N + 1);
            if (t == 0)
                sums.noise -= (double)sum[0].x * sum[0].x + (double)sum[0].y * sum[0].y;
        }
        scratch.tops[threadIdx.x] = top;

        pnr_walsh_dwell d = begin_dwell<T, DEGREE>(p, sums, scratch);

        pnr_walsh_barrier<DEGREE>();
        if (threadIdx.x < 32) {
            pnr_walsh_list list = {scratch.keys, 0, 0};

            pnr_walsh_search<T, DEGREE>(list, d, p, top, scratch.tops, 0, [&](uint32_t u) {
                return pnr_walsh_power(values[pnr_walsh_at(u)]);
            });
            pnr_walsh_write_candidates(p, dwell, list, [&](uint32_t i, uint32_t j) {
                const uint32_t lag =
                    pnr_candidate_neighbour(size::N, pnr_candidate_lag(list.keys[i]), j);

                return values[pnr_walsh_at(__ldg((const uint16_t *)p.cell_of + lag))];
            });
            if (threadIdx.x == 0)
                pnr_walsh_write_dwell(p, dwell, d);
        }
        if (p.profile != NULL || p.power != NULL)
            write_profile<T, DEGREE>(p, dwell, [&](uint32_t u, size_t at) {
                const float2 c = values[pnr_walsh_at(u)];

                if (p.profile != NULL)
                    p.profile[at] = make_float2(p.scale * c.x, p.conjugate * p.scale * c.y);
                if (p.power != NULL)
                    p.power[at] = p.scale * p.scale * pnr_walsh_power(c);
            });
    }
}

/* --- incoherent: the powers of all windows are added --- */

/* Transforms the windows of a dwell again. Computes the sum of c conj(c0) over the used windows,
 * where c is the value at a neighbour and c0 the value at its candidate. Stores these sums as the
 * values of the candidates in the results. */
template <typename T, int DEGREE>
static __device__ void add_neighbours(const pnr_cuda_walsh &p, size_t dwell,
                                      pnr_walsh_stage<T, DEGREE> &stage, float2 *values,
                                      const exchange<pnr_walsh_size<T, DEGREE>::WARPS> &scratch)
{
    typedef pnr_walsh_size<T, DEGREE> size;
    const uint16_t *cell_of = (const uint16_t *)p.cell_of;
    const uint32_t own = threadIdx.x / size::TEAM, t = threadIdx.x % size::TEAM;
    pnr_candidate *out = p.candidates + dwell * p.max_candidates;

    for (uint32_t k = 0; k < p.n_periods; k += size::WINDOWS) {
        const size_t first = dwell * p.n_periods + k;
        const uint32_t count = min(size::WINDOWS, p.n_periods - k);
        pnr_walsh_measure<T> measure; /* its results are not used */
        float2 v[PNR_WALSH_EACH];

        pnr_walsh_barrier<DEGREE>();
        stage.fetch(p, first, count);
        __pipeline_wait_prior(0);
        pnr_walsh_barrier<DEGREE>();
        pnr_walsh_read<T, size::TEAM>(stage.at(first, own), p.place, t, measure, v);
        pnr_walsh_transform<DEGREE>(values, v, [] {});
        pnr_walsh_store<DEGREE - 5>(values, v);
        pnr_walsh_barrier<DEGREE>();
        for (uint32_t e = threadIdx.x; e < scratch.n_kept * PNR_NEIGHBOURS; e += size::THREADS) {
            const uint32_t i = e / PNR_NEIGHBOURS, j = e % PNR_NEIGHBOURS;
            const uint32_t lag = pnr_candidate_lag(scratch.keys[i]);
            const uint32_t centre = pnr_walsh_at(__ldg(cell_of + lag));
            const uint32_t other =
                pnr_walsh_at(__ldg(cell_of + pnr_candidate_neighbour(size::N, lag, j)));
            float2 *place = (float2 *)out[i].value + j;
            float2 sum = k == 0 ? make_float2(0.0f, 0.0f) : *place;

            for (uint32_t g = 0; g < count; g++) {
                const float2 *w = values + pnr_walsh_at(g << DEGREE);
                const float2 a = w[other], b = w[centre];

                if (!pnr_walsh_is_used(size::N, p.windows[first + g].n_lost,
                                       p.nonfinite[first + g]))
                    continue;
                sum.x = fmaf(a.x, b.x, fmaf(a.y, b.y, sum.x));
                sum.y = fmaf(a.y, b.x, fmaf(-a.x, b.y, sum.y));
            }
            *place = sum;
        }
    }
    pnr_walsh_barrier<DEGREE>();
}

template <typename T, int DEGREE>
__global__ void __launch_bounds__(pnr_walsh_size<T, DEGREE>::THREADS,
                                  256 / pnr_walsh_size<T, DEGREE>::THREADS)
    walsh_incoherent(pnr_cuda_walsh p)
{
    typedef pnr_walsh_size<T, DEGREE> size;
    extern __shared__ uint4 shared[];
    __shared__ exchange<size::WARPS> scratch;
    float2 *values = (float2 *)shared;
    float *powers = (float *)shared; /* used after the transforms */
    pnr_walsh_stage<T, DEGREE> stage = {(char *)shared + size::VALUES};
    const uint32_t t = threadIdx.x % size::TEAM;
    const uint32_t n_dwells = pnr_cuda_dwells_of(p.job, p.first_dwell, p.n_dwells);

    for (uint32_t dwell = blockIdx.x; dwell < n_dwells; dwell += gridDim.x) {
        counts sums;
        float power[PNR_WALSH_EACH] = {};

        for (uint32_t k = 0; k < p.n_periods; k += size::WINDOWS) {
            float2 v[PNR_WALSH_EACH];
            const double before = sums.energy;
            const bool is_used =
                read_windows<T, DEGREE>(p, stage, (size_t)dwell * p.n_periods + k,
                                        min(size::WINDOWS, p.n_periods - k), scratch.odd, sums, v);

            pnr_walsh_transform<DEGREE>(values, v, [] {});
#pragma unroll
            for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
                power[r] += is_used ? pnr_walsh_power(v[r]) : 0.0f;
            /* sum |W[u]|^2 = 2^n times the energy; W[0] belongs to no lag */
            sums.noise += (sums.energy - before) * (size::N + 1);
            if (is_used && t == 0)
                sums.noise -= (double)v[0].x * v[0].x + (double)v[0].y * v[0].y;
        }

        float top = 0;

#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
            power[r] = sum_teams<size::TEAM>(power[r]);
            top = fmaxf(top, r == 0 && t == 0 ? 0.0f : power[r]);
        }
        scratch.tops[threadIdx.x] = top;

        /* After the barriers in begin_dwell all threads have read their values. Then `powers` may
         * overwrite the values. */
        pnr_walsh_dwell d = begin_dwell<T, DEGREE>(p, sums, scratch);

        pnr_walsh_barrier<DEGREE>();
        if (threadIdx.x < size::TEAM) {
            float *at = powers + pnr_walsh_at(pnr_walsh_first<DEGREE - 5>());

#pragma unroll
            for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
                at[pnr_walsh_step<DEGREE - 5>(r)] = power[r];
        }
        pnr_walsh_barrier<DEGREE>();

        pnr_walsh_list list = {scratch.keys, 0, 0};

        if (threadIdx.x < 32) {
            pnr_walsh_search<T, DEGREE>(list, d, p, top, scratch.tops, 0,
                                        [&](uint32_t u) { return powers[pnr_walsh_at(u)]; });
            if (threadIdx.x == 0) {
                pnr_walsh_write_dwell(p, dwell, d);
                scratch.n_kept = list.n;
            }
        }
        if (p.power != NULL)
            write_profile<T, DEGREE>(p, dwell, [&](uint32_t u, size_t at) {
                p.power[at] = p.scale * p.scale * powers[pnr_walsh_at(u)];
            });
        pnr_walsh_barrier<DEGREE>();
        if (scratch.n_kept == 0)
            continue; /* the whole block continues */
        add_neighbours<T, DEGREE>(p, dwell, stage, values, scratch);
        if (threadIdx.x < 32)
            pnr_walsh_write_candidates(p, dwell, list, [&](uint32_t i, uint32_t j) {
                const float *sum = p.candidates[dwell * p.max_candidates + i].value[j];
                const float by = rsqrtf(pnr_candidate_power(list.keys[i]));

                return make_float2(sum[0] * by, sum[1] * by);
            });
    }
}

/* --- the instances --- */

#define COHERENT(type, degree) walsh_coherent<type, degree>, 1
#define INCOHERENT(type, degree) walsh_incoherent<type, degree>, 1

const pnr_cuda_walsh_short *pnr_cuda_walsh_find_dwell(bool is_incoherent, pnr_format format,
                                                      uint32_t degree)
{
    static const pnr_cuda_walsh_short coherent[] = {PNR_WALSH_SHORT(COHERENT)};
    static const pnr_cuda_walsh_short incoherent[] = {PNR_WALSH_SHORT(INCOHERENT)};

    return is_incoherent ? pnr_walsh_find_short(incoherent, format, degree)
                         : pnr_walsh_find_short(coherent, format, degree);
}
