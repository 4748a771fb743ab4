/* SPDX-License-Identifier: MIT */
/* The first steps of a map: they convert and measure samples, and compute the means over the
 * windows of a look. */
#include "cuda/map/samples.h"

#include "cuda/base/check.h"
#include "cuda/base/mix.h"
#include "cuda/base/reduce.h"

#include <cassert>

/* --- kernels --- */

/* Sets the first state of a dwell: the floor and the threshold. weighted: the sum of the energies
 * of the windows, each multiplied by the square of its taper. last_look: the last used look,
 * counted from 1; 0: no look is used. One thread calls this. */
static __device__ __forceinline__ void start_dwell(const pnr_map &m, const pnr_map_samples &s,
                                                   size_t dwell, const pnr_dwell &sums,
                                                   double weighted, uint32_t n_looks,
                                                   uint32_t last_look)
{
    const uint32_t n_used = sums.n_periods;
    /* The mean power of all cells if the samples are noise alone. */
    const double floor = n_used > 0 ? weighted * m.code_energy / m.n_samples : 0;
    pnr_map_dwell state = {};

    state.sums = sums;
    state.sums.floor = floor;
    state.rounding = 1e-12 * sums.energy * m.code_energy * n_used;
    state.threshold =
        n_used == 0
            ? INFINITY
            : (float)((m.cfar_kind != PNR_CFAR_OFF ? PNR_CFAR_LEAST : m.threshold[n_used - 1]) *
                      floor);
    state.n_looks = n_looks;
    state.last_look = last_look > 0 ? last_look - 1 : m.n_looks;
    s.dwells[dwell] = state;
}

/* Returns true if a dwell is one window. Then finish_window also starts the dwell. */
static __host__ __device__ __forceinline__ bool is_one_window(const pnr_map &m)
{
    return m.n_looks * m.n_periods == 1 && !m.has_mean;
}

static __device__ __forceinline__ void finish_window(const pnr_map &m, const pnr_map_samples &s,
                                                     size_t window, const pnr_cuda_energy &sum)
{
    const uint32_t n_lost = s.headers[window].n_lost;
    const uint64_t n_missing = (uint64_t)n_lost + sum.n_nonfinite;
    const uint32_t is_used = n_missing <= m.n_samples / 2;

    s.windows[window] = {sum.energy, sum.n_clipped, sum.n_nonfinite, is_used, 0};
    s.nonfinite[window] = sum.n_nonfinite;
    if (is_one_window(m)) {
        pnr_dwell sums = {};

        sums.energy = is_used ? sum.energy : 0;
        sums.n_valid = is_used ? m.n_samples - n_missing : 0;
        sums.n_clipped = sum.n_clipped;
        sums.n_nonfinite = sum.n_nonfinite;
        sums.n_periods = is_used;
        start_dwell(m, s, window, sums, m.taper_energy[0] * sums.energy, is_used, is_used);
    }
}

/* Finishes a window of one segment. For longer windows sum_map_windows adds the segments. */
static __device__ __forceinline__ void finish_segment(const pnr_map &m, const pnr_map_samples &s,
                                                      size_t segment, const pnr_cuda_energy &sum)
{
    if (s.n_segments == 1)
        finish_window(m, s, segment, sum);
    else
        s.parts[segment] = sum;
}

/* One block converts and measures one segment of a window, or of the tail after the last window.
 * The sums have a fixed order. */
template <typename FORMAT>
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    convert_stream(pnr_map m, pnr_map_samples s, uint32_t n_windows)
{
    const uint32_t n_samples = m.n_samples;
    __shared__ double energy_of_warp[PNR_CUDA_WARPS];
    __shared__ uint32_t clipped_of_warp[PNR_CUDA_WARPS], nonfinite_of_warp[PNR_CUDA_WARPS];
    const size_t window = blockIdx.x / s.n_segments;
    const uint32_t first = blockIdx.x % s.n_segments * PNR_CUDA_BLOCK_SAMPLES;
    const size_t total = (size_t)n_windows * n_samples + s.n_tail;
    const uint32_t most = (uint32_t)min((size_t)n_samples, total - window * n_samples);
    const uint32_t end = min(first + PNR_CUDA_BLOCK_SAMPLES, most);
    const uint64_t phase = s.headers[window].phase;
    const bool has_lost = s.skips_lost && s.job->has_lost;
    double energy = 0;
    uint32_t n_clipped = 0, n_nonfinite = 0;

#pragma unroll 4
    for (uint32_t n = first + threadIdx.x; n < end; n += PNR_CUDA_THREADS) {
        const size_t at = window * n_samples + n;
        const pnr_cuda_sample read = FORMAT::read(s.raw, at);
        const bool is_lost = has_lost && (s.lost[at / 32] >> at % 32 & 1) != 0;
        const double i = read.value.x, q = read.value.y;
        float2 x = read.value;

        energy = fma(i, i, fma(q, q, energy));
        n_clipped += read.is_clipped;
        n_nonfinite += !read.is_finite;
        if (s.stream == NULL)
            continue;
        if (s.is_conjugated)
            x.y = -x.y;
        if (s.is_tuned)
            x = pnr_cuda_rotate_back(x, phase + n * s.step);
        if (is_lost || !read.is_finite)
            x.x = NAN;
        s.stream[at] = x;
    }
    if (window >= n_windows)
        return; /* the whole block returns */
    energy = pnr_cuda_block_sum(energy, energy_of_warp);
    n_clipped = pnr_cuda_block_sum(n_clipped, clipped_of_warp);
    n_nonfinite = pnr_cuda_block_sum(n_nonfinite, nonfinite_of_warp);
    if (threadIdx.x == 0)
        finish_segment(m, s, blockIdx.x, {energy, n_clipped, n_nonfinite});
}

/* Returns the sum of x over the threads of a crew to its first thread. A crew is a warp or a block.
 * scratch: [PNR_CUDA_WARPS] for a block; a warp does not use it. */
template <int THREADS, typename T> static __device__ __forceinline__ T crew_sum(T x, T *scratch)
{
    if constexpr (THREADS == PNR_CUDA_WARP)
        return pnr_cuda_warp_sum(x);
    else
        return pnr_cuda_block_sum(x, scratch);
}

/* Measures ci16 samples of one channel for plans that convert no samples. A warp or a block
 * measures one segment. A thread reads four samples at a time and computes in integers. */
template <int THREADS>
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    measure_ci16(pnr_map m, pnr_map_samples s, uint32_t n_segments)
{
    const uint32_t n_samples = m.n_samples;
    __shared__ double energy_of_warp[PNR_CUDA_WARPS];
    __shared__ uint32_t clipped_of_warp[PNR_CUDA_WARPS];
    const uint32_t segment = (blockIdx.x * PNR_CUDA_THREADS + threadIdx.x) / THREADS;
    const uint32_t thread = threadIdx.x % THREADS;
    const size_t window = segment / s.n_segments;
    const uint32_t first = segment % s.n_segments * PNR_CUDA_BLOCK_SAMPLES;
    const uint32_t n_quads = (min(first + PNR_CUDA_BLOCK_SAMPLES, n_samples) - first) / 4;
    const uint4 *in = (const uint4 *)s.raw.raw + (window * n_samples + first) / 4;
    unsigned long long energy = 0;
    uint32_t n_clipped = 0;

    if (segment >= n_segments)
        return; /* the whole warp returns */
#pragma unroll 8
    for (uint32_t n = thread; n < n_quads; n += THREADS) {
        const uint4 x = in[n];
        const uint32_t words[4] = {x.x, x.y, x.z, x.w};

#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int i = (int16_t)(words[k] & 0xffff), q = (int32_t)words[k] >> 16;

            energy += (uint32_t)(i * i) + (uint32_t)(q * q); /* the sum is at most 2^31 */
            n_clipped += pnr_cuda_is_end((int16_t)i) || pnr_cuda_is_end((int16_t)q);
        }
    }

    const double scale = (double)s.raw.scale;
    const double sum = crew_sum<THREADS>((double)energy * scale * scale, energy_of_warp);

    n_clipped = crew_sum<THREADS>(n_clipped, clipped_of_warp);
    if (thread == 0)
        finish_segment(m, s, segment, {sum, n_clipped, 0});
}

/* One warp adds up the segments of one window. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    sum_map_windows(pnr_map m, pnr_map_samples s, uint32_t n_windows)
{
    const size_t window = (size_t)blockIdx.x * PNR_CUDA_WARPS + threadIdx.x / PNR_CUDA_WARP;

    if (window >= n_windows)
        return; /* the whole warp returns */

    const pnr_cuda_energy sum =
        pnr_cuda_sum_energies(s.parts + window * s.n_segments, s.n_segments);

    if (threadIdx.x % PNR_CUDA_WARP == 0)
        finish_window(m, s, window, sum);
}

/* One warp counts the used windows of one look. If a look has one used window and the mean is
 * removed, all samples of this window would be 0. So this window counts as unused. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    count_looks(pnr_map_samples s, uint32_t n_periods, uint32_t n_looks, bool has_mean)
{
    const size_t look = (size_t)blockIdx.x * PNR_CUDA_WARPS + threadIdx.x / PNR_CUDA_WARP;
    uint32_t n_used = 0;

    if (look >= n_looks)
        return; /* the whole warp returns */
    for (uint32_t p = threadIdx.x % PNR_CUDA_WARP; p < n_periods; p += PNR_CUDA_WARP)
        n_used += s.windows[look * n_periods + p].is_used;
    n_used = pnr_cuda_warp_sum(n_used);
    if (has_mean && n_used == 1) {
        for (uint32_t p = threadIdx.x % PNR_CUDA_WARP; p < n_periods; p += PNR_CUDA_WARP)
            s.windows[look * n_periods + p].is_used = 0;
        n_used = 0;
    }
    if (threadIdx.x % PNR_CUDA_WARP == 0)
        s.n_used[look] = n_used;
}

/* One thread computes the mean of the valid samples i of all used windows of a look. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) find_means(pnr_map m, pnr_map_samples s)
{
    const uint32_t i = blockIdx.x * PNR_CUDA_THREADS + threadIdx.x;
    const size_t look = blockIdx.y;
    double re = 0, im = 0;
    uint32_t n = 0;

    if (i >= m.n_window)
        return;
    for (uint32_t p = 0; p < m.n_periods; p++) {
        const size_t window = look * m.n_periods + p;

        if (!s.windows[window].is_used)
            continue;

        const float2 x = s.stream[window * m.n_samples + i];

        if (isnan(x.x))
            continue;
        re += (double)x.x;
        im += (double)x.y;
        n++;
    }
    s.mean[look * m.n_window + i] =
        n > 0 ? make_float2((float)(re / n), (float)(im / n)) : make_float2(0, 0);
}

/* One block measures the energy of one segment of a window, after the subtraction of the mean. */
__global__ void __launch_bounds__(PNR_CUDA_THREADS) measure_rest(pnr_map m, pnr_map_samples s)
{
    __shared__ double scratch[PNR_CUDA_WARPS];
    const size_t window = blockIdx.x / s.n_segments, look = window / m.n_periods;
    const uint32_t first = blockIdx.x % s.n_segments * PNR_CUDA_BLOCK_SAMPLES;
    const uint32_t end = min(first + PNR_CUDA_BLOCK_SAMPLES, m.n_samples);
    double energy = 0;

    for (uint32_t n = first + threadIdx.x; n < end; n += PNR_CUDA_THREADS) {
        const float2 x = s.stream[window * m.n_samples + n], mean = s.mean[look * m.n_window + n];
        const double re = (double)(x.x - mean.x), im = (double)(x.y - mean.y);

        if (!isnan(x.x))
            energy = fma(re, re, fma(im, im, energy));
    }
    energy = pnr_cuda_block_sum(energy, scratch);
    if (threadIdx.x == 0)
        s.parts[blockIdx.x].energy = energy;
}

/* One warp sums the energy of one window, after the subtraction of the mean. The subtraction of the
 * mean of U windows removes 1/U of the noise, so the energy is multiplied by U / (U - 1). */
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    sum_rest(pnr_map m, pnr_map_samples s, uint32_t n_windows)
{
    const size_t window = (size_t)blockIdx.x * PNR_CUDA_WARPS + threadIdx.x / PNR_CUDA_WARP;
    double energy = 0;

    if (window >= n_windows || s.n_used[window / m.n_periods] < 2)
        return; /* the whole warp returns */
    for (uint32_t i = threadIdx.x % PNR_CUDA_WARP; i < s.n_segments; i += PNR_CUDA_WARP)
        energy += s.parts[window * s.n_segments + i].energy;
    energy = pnr_cuda_warp_sum(energy);
    if (threadIdx.x % PNR_CUDA_WARP == 0) {
        const double n_used = s.n_used[window / m.n_periods];

        s.windows[window].energy = energy * (n_used / (n_used - 1));
    }
}

/* A warp or a block starts one dwell: it computes the sums over the windows, the floor and the
 * threshold of the first search. */
template <int THREADS>
__global__ void __launch_bounds__(PNR_CUDA_THREADS)
    start_maps(pnr_map m, pnr_map_samples s, uint32_t n_dwells)
{
    __shared__ double energies[2][PNR_CUDA_WARPS];
    __shared__ unsigned long long counts[3][PNR_CUDA_WARPS];
    __shared__ uint32_t used[2][PNR_CUDA_WARPS], last_of[PNR_CUDA_THREADS / THREADS];
    const size_t dwell = (blockIdx.x * PNR_CUDA_THREADS + threadIdx.x) / THREADS;
    const uint32_t n = m.n_looks * m.n_periods, thread = threadIdx.x % THREADS;
    uint32_t *last = &last_of[threadIdx.x / THREADS];
    double energy = 0, weighted = 0;
    unsigned long long n_valid = 0, n_clipped = 0, n_nonfinite = 0;
    uint32_t n_used = 0, n_looks = 0, last_look = 0; /* last_look counts from 1 */

    if (dwell >= n_dwells)
        return; /* the whole warp returns */
    if (thread == 0)
        *last = 0;
    if constexpr (THREADS == PNR_CUDA_WARP)
        __syncwarp();
    else
        __syncthreads();
    for (uint32_t i = thread; i < n; i += THREADS) {
        const pnr_map_window window = s.windows[dwell * n + i];

        n_clipped += window.n_clipped;
        n_nonfinite += window.n_nonfinite;
        if (!window.is_used)
            continue;
        energy += window.energy;
        weighted += m.taper_energy[i % m.n_periods] * window.energy;
        n_valid += m.n_samples - s.headers[dwell * n + i].n_lost - window.n_nonfinite;
        n_used++;
    }
    for (uint32_t look = thread; look < m.n_looks; look += THREADS)
        if (s.n_used[dwell * m.n_looks + look] > 0) {
            n_looks++;
            last_look = look + 1;
        }
    atomicMax(last, last_look);
    energy = crew_sum<THREADS>(energy, energies[0]);
    weighted = crew_sum<THREADS>(weighted, energies[1]);
    n_valid = crew_sum<THREADS>(n_valid, counts[0]);
    n_clipped = crew_sum<THREADS>(n_clipped, counts[1]);
    n_nonfinite = crew_sum<THREADS>(n_nonfinite, counts[2]);
    n_used = crew_sum<THREADS>(n_used, used[0]);
    n_looks = crew_sum<THREADS>(n_looks, used[1]);
    if (thread != 0)
        return;

    pnr_dwell sums = {};

    sums.energy = energy;
    sums.n_valid = n_valid;
    sums.n_clipped = n_clipped;
    sums.n_nonfinite = n_nonfinite;
    sums.n_periods = n_used;
    start_dwell(m, s, dwell, sums, weighted, n_looks, *last);
}

/* --- the launcher --- */

typedef void (*convert_kernel)(pnr_map, pnr_map_samples, uint32_t);

static convert_kernel kernel_for(pnr_format format)
{
    static const struct {
        pnr_format format;
        convert_kernel kernel;
    } table[] = {
#define ROW(format, type, is_complex) {format, convert_stream<pnr_cuda_format<type, is_complex>>},
        PNR_CUDA_FORMATS(ROW)
#undef ROW
    };

    for (const auto &row : table)
        if (row.format == format)
            return row.kernel;
    return NULL;
}

static unsigned warps(size_t n)
{
    return (unsigned)((n + PNR_CUDA_WARPS - 1) / PNR_CUDA_WARPS);
}

static int remove_means(const pnr_map *m, const pnr_map_samples *s, size_t n_dwells,
                        cudaStream_t stream, pnr_error *error)
{
    const uint32_t n_windows = (uint32_t)(n_dwells * m->n_looks * m->n_periods);
    const dim3 places((m->n_window + PNR_CUDA_THREADS - 1) / PNR_CUDA_THREADS,
                      (unsigned)(n_dwells * m->n_looks));
    int code;

    assert(places.y <= 65535);
    find_means<<<places, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    if ((code = pnr_cuda_check_launch("find_means", error)) != PNR_OK)
        return code;
    measure_rest<<<n_windows * s->n_segments, PNR_CUDA_THREADS, 0, stream>>>(*m, *s);
    if ((code = pnr_cuda_check_launch("measure_rest", error)) != PNR_OK)
        return code;
    sum_rest<<<warps(n_windows), PNR_CUDA_THREADS, 0, stream>>>(*m, *s, n_windows);
    return pnr_cuda_check_launch("sum_rest", error);
}

/* One warp is enough for a window of at most WARP_SAMPLES samples, and for a dwell of at most
 * WARP_WINDOWS windows. */
enum { WARP_SAMPLES = 2048, WARP_WINDOWS = PNR_CUDA_WARP };

static int measure_segments(const pnr_map *m, const pnr_map_samples *s, uint32_t n_windows,
                            cudaStream_t stream, pnr_error *error)
{
    const convert_kernel kernel = kernel_for(s->raw.format);
    const uint32_t n_segments = n_windows * s->n_segments;
    const uint32_t n_tails = s->stream != NULL ? (s->n_tail + m->n_samples - 1) / m->n_samples : 0;

    assert(kernel != NULL);
    if (s->stream != NULL || s->raw.format != PNR_FORMAT_CI16 || s->raw.n_channels != 1 ||
        m->n_samples % 4 != 0)
        kernel<<<n_segments + n_tails * s->n_segments, PNR_CUDA_THREADS, 0, stream>>>(*m, *s,
                                                                                      n_windows);
    else if (m->n_samples > WARP_SAMPLES)
        measure_ci16<PNR_CUDA_THREADS>
            <<<n_segments, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, n_segments);
    else
        measure_ci16<PNR_CUDA_WARP>
            <<<warps(n_segments), PNR_CUDA_THREADS, 0, stream>>>(*m, *s, n_segments);
    return pnr_cuda_check_launch("measure of the samples", error);
}

int pnr_map_measure(const pnr_map *m, const pnr_map_samples *s, size_t n_dwells,
                    cudaStream_t stream, pnr_error *error)
{
    const uint32_t n_looks = (uint32_t)(n_dwells * m->n_looks);
    const uint32_t n_windows = n_looks * m->n_periods;
    int code;

    assert(n_dwells >= 1);
    if ((code = measure_segments(m, s, n_windows, stream, error)) != PNR_OK)
        return code;
    if (s->n_segments > 1)
        sum_map_windows<<<warps(n_windows), PNR_CUDA_THREADS, 0, stream>>>(*m, *s, n_windows);
    if ((code = pnr_cuda_check_launch("sum_map_windows", error)) != PNR_OK || is_one_window(*m))
        return code;
    count_looks<<<warps(n_looks), PNR_CUDA_THREADS, 0, stream>>>(*s, m->n_periods, n_looks,
                                                                 m->has_mean);
    if ((code = pnr_cuda_check_launch("count_looks", error)) != PNR_OK)
        return code;
    if (m->has_mean && (code = remove_means(m, s, n_dwells, stream, error)) != PNR_OK)
        return code;
    if (m->n_looks * m->n_periods > WARP_WINDOWS)
        start_maps<PNR_CUDA_THREADS>
            <<<(unsigned)n_dwells, PNR_CUDA_THREADS, 0, stream>>>(*m, *s, (uint32_t)n_dwells);
    else
        start_maps<PNR_CUDA_WARP>
            <<<warps(n_dwells), PNR_CUDA_THREADS, 0, stream>>>(*m, *s, (uint32_t)n_dwells);
    return pnr_cuda_check_launch("start_maps", error);
}

/* --- how a plan's samples are read --- */

bool pnr_map_is_single(const pnr_plan *plan, const pnr_map_plan *tables)
{
    return plan->n_periods == 1 && !plan->remove_mean && tables->n_stretches == 1 &&
           tables->stretches[0].stretch == 0;
}

bool pnr_map_is_raw(const pnr_plan *plan)
{
    return plan->format == PNR_FORMAT_CI16 && plan->n_channels == 1 && plan->tune.num == 0 &&
           !plan->conjugate && !plan->remove_mean;
}
