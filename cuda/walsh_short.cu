/* SPDX-License-Identifier: MIT */
/* Method walsh to degree 13: one kernel, a window stays in a block from samples to results. */
#include "walsh.h"
#include "walsh_search.h"
#include "walsh_transform.h"

/* A block's work: one window of degree 10 and more, else as many as a warp's 1024 values hold. */
template <typename T, int DEGREE> struct short_size {
    static constexpr uint32_t N = (1u << DEGREE) - 1;
    static constexpr uint32_t TEAM = (1u << DEGREE) / PNR_WALSH_EACH; /* threads a window */
    static constexpr uint32_t THREADS = TEAM < 32 ? 32 : TEAM;
    static constexpr uint32_t WINDOWS = THREADS / TEAM;
    static constexpr uint32_t POINTS = THREADS * PNR_WALSH_EACH;
    /* Blocks that share a multiprocessor, at least: 16 warps, 8 where samples take as much as
     * values. */
    static constexpr int BLOCKS = (sizeof(T) == 4 ? 256 : 512) / THREADS;
    static constexpr size_t VALUES = (POINTS + POINTS / 32) * sizeof(float2);
    /* The samples and then, in the same place, at most half as many maxima. */
    static constexpr size_t SAMPLES = POINTS * sizeof(pnr_cuda_pair<T>) + 32;
    static constexpr size_t KEYS = POINTS / 2 * sizeof(uint64_t);
    static constexpr size_t BYTES = VALUES + (SAMPLES > KEYS ? SAMPLES : KEYS);
};

/* Copies `bytes` bytes, both ends at multiples of 16. */
template <uint32_t THREADS>
static __device__ __forceinline__ void copy_samples(char *to, const char *from, uint32_t bytes)
{
#pragma unroll 8
    for (uint32_t i = threadIdx.x * 16; i < bytes; i += THREADS * 16)
        *(uint4 *)(to + i) = __ldg((const uint4 *)(from + i));
}

/* Asks for what the block copies next. */
template <uint32_t THREADS>
static __device__ __forceinline__ void prefetch_samples(const char *from, uint32_t bytes)
{
    for (uint32_t i = threadIdx.x * 128; i < bytes; i += THREADS * 128)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i));
}

/* The thread's 32 samples, those of states 32 t .. 32 t + 31, as they lie in shared memory. */
template <typename T, uint32_t TEAM, typename TAKE>
static __device__ __forceinline__ void gather(const pnr_cuda_pair<T> *x, const void *place,
                                              uint32_t t, TAKE take)
{
    const uint4 *table = (const uint4 *)place + t;

#pragma unroll
    for (uint32_t q = 0; q < PNR_WALSH_EACH / 8; q++) {
        const uint4 eight = __ldg(table + q * TEAM);
        const uint32_t two[4] = {eight.x, eight.y, eight.z, eight.w};

#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            take(8 * q + 2 * i, x[two[i] & 0xffff]);
            take(8 * q + 2 * i + 1, x[two[i] >> 16]);
        }
    }
}

/* Clipped and non-finite among them; seldom asked, so that it may be slow and small. */
template <typename T, uint32_t TEAM>
static __device__ uint32_t count_odd(const pnr_cuda_pair<T> *x, const void *place, uint32_t t)
{
    const uint16_t *table = (const uint16_t *)place + 8 * t;
    uint32_t odd = 0;

#pragma unroll 1
    for (uint32_t r = t == 0 ? 1 : 0; r < PNR_WALSH_EACH; r++)
        odd += pnr_walsh_measure<T>::odd(x[table[r / 8 * 8 * TEAM + r % 8]]);
    return odd;
}

/* The whole block: the maxima of every window not done, one hot thread's 32 cells at a time. */
template <typename T, int DEGREE>
static __device__ void scan_windows(pnr_walsh_window *windows, const pnr_cuda_walsh &p,
                                    const float2 *values, uint64_t *keys, float top)
{
    typedef short_size<T, DEGREE> size;
    const uint32_t lane = threadIdx.x % 32, own = threadIdx.x / size::TEAM;
    uint32_t hot =
        __ballot_sync(0xffffffffu, !windows[own].is_done && top > windows[own].threshold);

    for (; hot != 0; hot &= hot - 1) {
        const uint32_t thread = threadIdx.x - lane + (uint32_t)__ffs((int)hot) - 1;
        const uint32_t g = thread / size::TEAM, u = lane * size::TEAM + thread % size::TEAM;
        const float2 *w = values + pnr_walsh_at(g << DEGREE);
        const float here = pnr_walsh_power(w[pnr_walsh_at(u)]);

        if (u == 0 || !(here > windows[g].threshold))
            continue;

        const uint16_t *cell_of = (const uint16_t *)p.cell_of;
        const uint32_t lag = __ldg((const uint16_t *)p.lag_of + u);

        if (!pnr_walsh_is_in_gate(p, size::N, lag))
            continue;
        atomicAdd(&windows[g].n_above, 1u);
        if (here > pnr_walsh_power(
                       w[pnr_walsh_at(__ldg(cell_of + (lag == 0 ? size::N - 1 : lag - 1)))]) &&
            here >= pnr_walsh_power(
                        w[pnr_walsh_at(__ldg(cell_of + (lag + 1 == size::N ? 0 : lag + 1)))]))
            keys[(g << (DEGREE - 1)) + atomicAdd(&windows[g].n_keys, 1u)] =
                pnr_walsh_key(here, lag);
    }
}

/* Searches until every window is done. All threads call. */
template <typename T, int DEGREE>
static __device__ void search_windows(pnr_walsh_window *windows, const pnr_cuda_walsh &p,
                                      const float2 *values, uint64_t *keys, float top,
                                      uint32_t first, uint32_t count)
{
    typedef short_size<T, DEGREE> size;

    for (int search = 0; search < PNR_MAX_SEARCHES; search++) {
        scan_windows<T, DEGREE>(windows, p, values, keys, top);
        __syncthreads();
        for (uint32_t g = 0; threadIdx.x < 32 && g < count; g++) {
            pnr_walsh_window &w = windows[g];
            uint64_t *list = keys + (g << (DEGREE - 1));
            const float2 *profile = values + pnr_walsh_at(g << DEGREE);

            if (w.is_done)
                continue;

            const uint32_t n_kept = pnr_walsh_select(list, w.n_keys, p.max_candidates);

            if (threadIdx.x == 0)
                w.n_kept = n_kept;
            __syncwarp();
            pnr_walsh_decide(w, p, size::N, list, first + g, search, [&](uint32_t i, uint32_t j) {
                const uint32_t lag = pnr_walsh_neighbour(size::N, pnr_walsh_lag(list[i]), j);

                return profile[pnr_walsh_at(__ldg((const uint16_t *)p.cell_of + lag))];
            });
        }
        __syncthreads(); /* is_done is the first warp's until here */
        if (!__syncthreads_or(!windows[threadIdx.x / size::TEAM].is_done))
            return;
    }
}

/* The profile in lag order, device memory. */
template <typename T, int DEGREE>
static __device__ void write_profiles(const pnr_walsh_window *windows, const pnr_cuda_walsh &p,
                                      const float2 *values, uint32_t first, uint32_t count)
{
    typedef short_size<T, DEGREE> size;

    for (uint32_t g = 0; g < count; g++) {
        for (uint32_t k = threadIdx.x; k < size::N; k += size::THREADS) {
            const size_t at = (size_t)(first + g) * size::N + k;
            float2 c = {0, 0};

            if (windows[g].sums.n_periods > 0)
                c = values[pnr_walsh_at(g << DEGREE) +
                           pnr_walsh_at(__ldg((const uint16_t *)p.cell_of + k))];
            if (p.profile != NULL)
                p.profile[at] = make_float2(p.scale * c.x, p.conjugate * p.scale * c.y);
            if (p.power != NULL)
                p.power[at] = p.scale * p.scale * pnr_walsh_power(c);
        }
    }
}

/* Blocks stay and take windows in turn; the next samples come while this transform runs. */
template <typename T, int DEGREE>
__global__ void __launch_bounds__(short_size<T, DEGREE>::THREADS, short_size<T, DEGREE>::BLOCKS)
    walsh_windows(pnr_cuda_walsh p)
{
    typedef short_size<T, DEGREE> size;
    extern __shared__ uint4 shared[];
    __shared__ pnr_walsh_window windows[size::WINDOWS];
    __shared__ double energy_of_warp[size::THREADS / 32], noise_of_warp[size::THREADS / 32];
    __shared__ uint32_t odd_of_warp[size::THREADS / 32];
    float2 *values = (float2 *)shared;
    char *stage = (char *)shared + size::VALUES;
    uint64_t *keys = (uint64_t *)stage;
    const uint32_t own = threadIdx.x / size::TEAM, t = threadIdx.x % size::TEAM;
    const uint32_t stride = gridDim.x * size::WINDOWS;
    const uint32_t n_windows = pnr_cuda_dwells_of(p.job, p.first_window, p.n_windows);

    for (uint32_t first = blockIdx.x * size::WINDOWS; first < n_windows; first += stride) {
        const uint32_t count = min(size::WINDOWS, n_windows - first);
        const size_t begin = (size_t)first * size::N * sizeof(pnr_cuda_pair<T>);
        const uint32_t before = (uint32_t)(begin % 16);
        const uint32_t bytes = before + count * size::N * (uint32_t)sizeof(pnr_cuda_pair<T>);
        const pnr_cuda_pair<T> *x = (const pnr_cuda_pair<T> *)(stage + before) + own * size::N;
        pnr_walsh_measure<T> measure;
        uint32_t odd = 0;
        float2 v[PNR_WALSH_EACH];

        copy_samples<size::THREADS>(stage, (const char *)p.raw + begin - before, bytes);
        if (first + stride + size::WINDOWS <= n_windows)
            prefetch_samples<size::THREADS>(
                (const char *)p.raw + begin + (size_t)stride * size::N * sizeof(pnr_cuda_pair<T>),
                size::WINDOWS * size::N * (uint32_t)sizeof(pnr_cuda_pair<T>));
        __syncthreads();

        const bool is_there = own < count;

        gather<T, size::TEAM>(x, p.place, t, [&](uint32_t r, pnr_cuda_pair<T> sample) {
            if (!is_there || (r == 0 && t == 0))
                sample = {}; /* state 0 has none */
            v[r] = measure.take(sample);
        });
        if (measure.is_odd())
            odd = count_odd<T, size::TEAM>(x, p.place, t);
        pnr_walsh_transform<DEGREE>(values, v);
        pnr_walsh_store<DEGREE - 5>(values, v);

        /* The greatest power is added last and in double: it may be a strong echo's. */
        float top = 0, sum = 0;

#pragma unroll
        for (uint32_t r = 0; r < PNR_WALSH_EACH; r++) {
            const float power = r == 0 && t == 0 ? 0.0f : pnr_walsh_power(v[r]);

            sum += fminf(power, top);
            top = fmaxf(power, top);
        }

        const double energy = pnr_walsh_sum<size::TEAM>((double)measure.energy, energy_of_warp);
        const double noise = pnr_walsh_sum<size::TEAM>((double)sum + (double)top, noise_of_warp);

        odd = pnr_walsh_sum<size::TEAM>(odd, odd_of_warp);
        if (t == 0) {
            pnr_walsh_begin(windows[own], p, size::N,
                            is_there ? p.windows[first + own].n_lost : size::N, energy, noise,
                            odd & 0xffff, odd >> 16);
            if (is_there)
                p.nonfinite[first + own] = odd >> 16;
        }
        __syncthreads(); /* the values too are in their places */
        if (__syncthreads_or(top > windows[own].threshold))
            search_windows<T, DEGREE>(windows, p, values, keys, top, first, count);
        if (p.profile != NULL || p.power != NULL)
            write_profiles<T, DEGREE>(windows, p, values, first, count);
        if (t == 0)
            pnr_walsh_scale(windows[own], p);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count * PNR_WALSH_DWELL_WORDS; i += size::THREADS)
            ((uint32_t *)(p.dwells + first))[i] =
                ((const uint32_t *)&windows[i / PNR_WALSH_DWELL_WORDS]
                     .sums)[i % PNR_WALSH_DWELL_WORDS];
        __syncthreads();
    }
}

/* --- the instances --- */

#define ROW(format, type, degree)                                                                  \
    {format,                                                                                       \
     degree,                                                                                       \
     walsh_windows<type, degree>,                                                                  \
     short_size<type, degree>::THREADS,                                                            \
     short_size<type, degree>::WINDOWS,                                                            \
     short_size<type, degree>::BYTES},
#define ROWS(format, type)                                                                         \
    ROW(format, type, 5)                                                                           \
    ROW(format, type, 6)                                                                           \
    ROW(format, type, 7)                                                                           \
    ROW(format, type, 8)                                                                           \
    ROW(format, type, 9)                                                                           \
    ROW(format, type, 10)                                                                          \
    ROW(format, type, 11)                                                                          \
    ROW(format, type, 12)                                                                          \
    ROW(format, type, 13)

const pnr_cuda_walsh_short *pnr_cuda_walsh_find(pnr_format format, uint32_t degree)
{
    static const pnr_cuda_walsh_short table[] = {
        ROWS(PNR_FORMAT_CI8, int8_t) ROWS(PNR_FORMAT_CI16, int16_t) ROWS(PNR_FORMAT_CF32, float)};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].format == format && table[i].degree == degree)
            return &table[i];
    return NULL;
}
