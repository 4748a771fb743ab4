/* SPDX-License-Identifier: MIT */
/* Method fused, the general kernel. It supports several periods, windows that are shorter than the
 * transform, any format, a frequency shift (plan.tune), and half lags. */
#include "cuda/fused/fused.h"

#include "cuda/base/mix.h"
#include "cuda/fused/search.h"
#include "cuda/steps/energy.h"

/* A window of N samples is extended periodically if the transform has L > N points: x[n mod N] for
 * n < 2N - 1 <= L, then 0. The code is padded with zeros, and the lags below N are exact. Shared
 * memory holds the power of each cell for the search. In a dwell of several looks (incoherent) this
 * is the sum of the cell's powers in all used windows. The neighbours of an incoherent dwell need
 * the values of all its windows. So the windows are transformed a second time if the dwell has a
 * candidate. */

/* True when the windows are added before the transform. */
static __device__ __forceinline__ bool is_coherent(const pnr_cuda_fused &p)
{
    return !p.is_incoherent && p.n_periods > 1;
}

static __device__ bool is_used(const pnr_cuda_fused &p, size_t window)
{
    const pnr_cuda_energy sum = {0, 0, p.nonfinite[window]};

    return pnr_cuda_is_used(p.conversion.windows[window], sum, p.conversion.samples.n_samples);
}

/* Reads a thread's samples of one window into the buffer, `EACH` samples at a time. *energy_out:
 * sum |x|^2 of these samples. Returns the number of clipped samples in the lower 16 bits and the
 * number of non-finite samples in the upper 16. */
template <int M, class FORMAT>
static __device__ __forceinline__ uint32_t read_window(const pnr_cuda_conversion &c, float2 *buffer,
                                                       size_t window, uint32_t u, float *energy_out)
{
    enum { EACH = 8, THREADS = pnr_fused_size<M>::THREADS };
    const uint32_t n_samples = c.samples.n_samples;
    float energy = 0;
    uint32_t odd = 0;

#pragma unroll 1
    for (uint32_t first = u; first < n_samples; first += EACH * THREADS) {
        pnr_cuda_sample x[EACH];

#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            const uint32_t n = first + i * THREADS;

            x[i] = n < n_samples ? FORMAT::read(c.samples, window * n_samples + n)
                                 : pnr_cuda_make_sample(0.0f, 0.0f, false);
        }
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            const uint32_t n = first + i * THREADS;

            energy = fmaf(x[i].value.x, x[i].value.x, fmaf(x[i].value.y, x[i].value.y, energy));
            odd += (x[i].is_clipped ? 1u : 0u) + (x[i].is_finite ? 0u : 1u << 16);
            if (n < n_samples)
                buffer[pnr_fused_at<M>(n)] =
                    make_float2(x[i].value.x, c.is_conjugated ? -x[i].value.y : x[i].value.y);
        }
    }
    *energy_out = energy;
    return odd;
}

template <int M>
static __device__ __forceinline__ uint32_t read_any_window(const pnr_cuda_conversion &c,
                                                           float2 *buffer, size_t window,
                                                           uint32_t u, float *energy)
{
    switch (c.samples.format) {
#define CASE(format, type, is_complex)                                                             \
    case format:                                                                                   \
        return read_window<M, pnr_cuda_format<type, is_complex>>(c, buffer, window, u, energy);
        PNR_CUDA_FORMATS(CASE)
#undef CASE
    default:
        *energy = 0;
        return 0;
    }
}

/* The first warp adds the counts of a measured window to its dwell. */
template <int M>
static __device__ __forceinline__ void count_window(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                                    size_t window, uint32_t u)
{
    pnr_dwell dwell = s.dwell;

    pnr_fused_count(s, p, &dwell, window, p.conversion.samples.n_samples,
                    p.conversion.windows[window].n_lost, 1.0, u % 32);
    if (u == 0)
        s.dwell = dwell;
}

/* Adds the energy and the counts of a window to its dwell. All threads call this. */
template <int M>
static __device__ __forceinline__ void note_window(pnr_fused_search<M> &s, const pnr_cuda_fused &p,
                                                   size_t window, float energy, uint32_t odd,
                                                   uint32_t u)
{
    pnr_fused_note_energy(s, energy, u);
    if (odd != 0)
        atomicAdd(&s.odd, odd);
    pnr_fused_sync<M>();
    if (pnr_fused_is_first<M>())
        count_window<M>(s, p, window, u);
    pnr_fused_sync<M>();
}

/* Writes a thread's samples of a coherent dwell to the buffer. Sample n is the sum of sample n of
 * all used windows. Before the sum each window is conjugated and mixed by plan.tune, if the plan
 * says so. */
template <int M>
static __device__ __forceinline__ void read_sum(const pnr_cuda_fused &p, float2 *buffer,
                                                size_t window, uint32_t u)
{
    const pnr_cuda_conversion &c = p.conversion;
    const uint32_t n_samples = c.samples.n_samples;

#pragma unroll 1
    for (uint32_t n = u; n < n_samples; n += pnr_fused_size<M>::THREADS) {
        float2 sum = {0, 0}, lost = {0, 0};

#pragma unroll 1
        for (size_t w = window; w < window + p.n_periods; w++) {
            float2 x = pnr_cuda_read(c.samples, w * n_samples + n).value;

            if (!is_used(p, w))
                continue;
            if (c.is_conjugated)
                x.y = -x.y;
            if (c.is_tuned)
                x = pnr_cuda_rotate_back(x, c.windows[w].phase + n * c.step);
            pnr_cuda_add(x.x, &sum.x, &lost.x);
            pnr_cuda_add(x.y, &sum.y, &lost.y);
        }
        buffer[pnr_fused_at<M>(n)] = sum;
    }
}

/* Mixes a thread's samples in the buffer by plan.tune, and extends the window to L samples. */
template <int M>
static __device__ __forceinline__ void extend_window(const pnr_cuda_conversion &c, float2 *buffer,
                                                     bool is_tuned, uint64_t phase, uint32_t u)
{
    typedef pnr_fused_size<M> size;
    const uint32_t n_samples = c.samples.n_samples;
    const bool is_extended = n_samples < size::L;

    if (is_tuned || is_extended)
#pragma unroll 1
        for (uint32_t n = u; n < n_samples; n += size::THREADS) {
            float2 x = buffer[pnr_fused_at<M>(n)];

            if (is_tuned)
                buffer[pnr_fused_at<M>(n)] = x = pnr_cuda_rotate_back(x, phase + n * c.step);
            if (is_extended && n + 1 < n_samples)
                buffer[pnr_fused_at<M>(n_samples + n)] = x;
        }
    if (is_extended)
#pragma unroll 1
        for (uint32_t n = 2 * n_samples - 1 + u; n < size::L; n += size::THREADS)
            buffer[pnr_fused_at<M>(n)] = make_float2(0.0f, 0.0f);
}

/* Adds the powers of integer or half lags to the cells. v[j] is the correlation at lag u + T j,
 * with real and imaginary part swapped. T is the number of threads of a window. */
template <int M>
static __device__ __forceinline__ void add_powers(const pnr_cuda_fused &p, const float2 (&v)[32],
                                                  float *cells, size_t dwell, uint32_t half,
                                                  uint32_t u)
{
    const uint32_t n_samples = p.conversion.samples.n_samples;

#pragma unroll
    for (int j = 0; j < 32; j++) {
        const uint32_t lag = u + pnr_fused_size<M>::THREADS * j;
        const uint32_t cell = lag * p.oversample + half;

        if (lag < n_samples) {
            cells[cell] += pnr_fused_power(v[j]);
            if (p.profile != NULL)
                p.profile[dwell * n_samples * p.oversample + cell] = make_float2(v[j].y, v[j].x);
        }
    }
}

/* Adds the products of one window to the sums. The product of a neighbour is its value times the
 * conjugate of its candidate's value. A thread updates every T-th sum, where T threads share a
 * window. */
template <int M>
static __device__ void add_neighbours(const pnr_fused_search<M> &s,
                                      const pnr_fused_view<M, false> &view, double2 *sums,
                                      uint32_t u)
{
#pragma unroll 1
    for (uint32_t i = u; i < s.dwell.n_candidates * PNR_NEIGHBOURS;
         i += pnr_fused_size<M>::THREADS) {
        const uint32_t centre = pnr_candidate_lag(s.keys[i / PNR_NEIGHBOURS]) / view.oversample();
        const float2 a = view.value_at(view.neighbour(centre, i % PNR_NEIGHBOURS));
        const float2 b = view.value_at(centre); /* real and imaginary part are swapped in a and b */

        sums[i].x += (double)a.y * b.y + (double)a.x * b.x;
        sums[i].y += (double)a.x * b.y - (double)a.y * b.x;
    }
}

/* Writes the neighbours of the candidates: the sums of add_neighbours, divided by sqrt(P). P is the
 * sum at the candidate itself. The caller has passed a barrier. */
template <int M>
static __device__ void return_neighbours(const double2 *sums, pnr_candidate *out, uint32_t n_kept,
                                         uint32_t u)
{
#pragma unroll 1
    for (uint32_t i = u; i < n_kept * PNR_NEIGHBOURS; i += pnr_fused_size<M>::THREADS) {
        const uint32_t candidate = i / PNR_NEIGHBOURS, j = i % PNR_NEIGHBOURS;
        const double power = sums[candidate * PNR_NEIGHBOURS + PNR_CANDIDATE_REACH].x;
        const double scale = power > 0 ? 1 / sqrt(power) : 0;

        *(float2 *)out[candidate].value[j] =
            make_float2((float)(sums[i].x * scale), (float)(sums[i].y * scale));
    }
}

/* Copies a thread's powers to p.power (unless NULL). Returns the result of pnr_fused_note_found for
 * these powers. */
template <int M>
static __device__ float2 sum_up(pnr_fused_search<M> &s, const pnr_cuda_fused &p, const float *cells,
                                size_t dwell, uint32_t u)
{
    const uint32_t n_samples = p.conversion.samples.n_samples;
    float best = 0, sum = 0;

#pragma unroll 1
    for (uint32_t lag = u; lag < n_samples; lag += pnr_fused_size<M>::THREADS)
#pragma unroll 1
        for (uint32_t half = 0; half < p.oversample; half++) {
            const uint32_t cell = lag * p.oversample + half;
            const float power = cells[cell];
            const size_t at = dwell * n_samples * p.oversample + cell;

            best = fmaxf(best, power);
            if (half == 0)
                sum += power;
            if (p.power != NULL)
                p.power[at] = power;
            if (p.profile != NULL && s.dwell.n_periods == 0)
                p.profile[at] = make_float2(0.0f, 0.0f);
        }
    return pnr_fused_note_found(s, best, sum, s.threshold, u);
}

/* Searches the powers of a dwell. All threads call this after a barrier. The last step is another
 * barrier. */
template <int M>
static __device__ __forceinline__ void
search_cells(pnr_fused_search<M> &s, const pnr_fused_view<M, false> &view, const pnr_cuda_fused &p,
             const float *cells, size_t dwell, uint32_t u)
{
    if (pnr_fused_is_first<M>())
        pnr_fused_begin(s, p, s.dwell, view.n(), p.threshold[max(s.dwell.n_periods, 1u) - 1],
                        u % 32);
    pnr_fused_sync<M>();

    const float2 found = sum_up<M>(s, p, cells, dwell, u);

    pnr_fused_sync<M>();
    if (pnr_fused_is_first<M>())
        pnr_fused_search_dwell(s, view, p, dwell, u % 32, found);
    pnr_fused_sync<M>();
}

template <int M>
__global__ void __launch_bounds__(pnr_fused_size<M>::THREADS *pnr_fused_size<M>::WINDOWS,
                                  pnr_fused_size<M>::BLOCKS) correlate_dwells(pnr_cuda_fused p)
{
    typedef pnr_fused_size<M> size;
    constexpr int T = size::THREADS;
    extern __shared__ __align__(16) unsigned char memory[];
    const int of_block = M > 1 ? 0 : __shfl_sync(0xffffffffu, threadIdx.x / T, 0);
    unsigned char *const own = memory + size::TABLE_BYTES + of_block * p.window_bytes;
    pnr_fused_search<M> &s = *(pnr_fused_search<M> *)own;
    float2 *const buffer = (float2 *)(own + sizeof s), *const table = (float2 *)memory;
    float *const cells = (float *)(own + sizeof s + size::BUFFER_BYTES);
    double2 *const sums = (double2 *)cells; /* uses the memory of the cells after the search */
    const pnr_fused_thread<M> thread(table, buffer, threadIdx.x % T);
    const uint32_t together = M > 1 ? 1 : blockDim.x / T;
    const uint32_t u = thread.u, n_samples = p.conversion.samples.n_samples;
    const pnr_fused_view<M, false> view = {buffer, cells, n_samples, p.oversample,
                                           p.is_incoherent == 0};

    pnr_fused_fill_table<M>(table);
    if (u == 0)
        s.odd = 0;
    __syncthreads();

    /* These loops are not unrolled, and they load values again, since the transform needs the
     * registers. */
#pragma unroll 1
    for (uint32_t dwell = blockIdx.x * together + of_block;
         dwell < pnr_cuda_dwells_of(p.job, 0, p.n_dwells); dwell += gridDim.x * together) {
        if (u == 0)
            s.dwell = {};
#pragma unroll 1
        for (uint32_t cell = u; cell < n_samples * p.oversample; cell += T)
            cells[cell] = 0;
            /* In its first iteration the loop adds all powers, half lags before integer lags, and
             * searches them. In a second iteration it adds the neighbours of the kept candidates.
             * For a coherent dwell, the windows are measured one by one before their sum is
             * transformed. */
#pragma unroll 1
        for (bool has_kept = false;; has_kept = true) {
#pragma unroll 1
            for (uint32_t step = 0; step < p.n_periods + is_coherent(p); step++) {
                const uint32_t window = dwell * p.n_periods + step;
                const bool is_sum = step == p.n_periods;

                if (has_kept && !is_used(p, window))
                    continue;
#pragma unroll 1
                for (uint32_t half = has_kept ? 1 : p.oversample; half-- > 0;) {
                    float2 v[32];

                    pnr_fused_sync<M>();
                    if (is_sum) {
                        read_sum<M>(p, buffer, window - step, u);
                    } else {
                        float energy;
                        const uint32_t odd =
                            read_any_window<M>(p.conversion, buffer, window, u, &energy);

                        if (!has_kept && half + 1 == p.oversample) {
                            note_window<M>(s, p, window, energy, odd, u);
                            if (is_coherent(p) || !is_used(p, window))
                                break;
                        }
                    }
                    extend_window<M>(p.conversion, buffer, p.conversion.is_tuned && !is_sum,
                                     is_sum ? 0 : p.conversion.windows[window].phase, u);
                    pnr_fused_sync<M>();
                    thread.get_column(v);
                    thread.correlate(v, p.spectrum + half * (size::L / 2), [] {});
                    if (!has_kept)
                        add_powers<M>(p, v, cells, dwell, half, u);
                    if (has_kept || half == 0)
                        thread.put_column(v);
                }
                if (has_kept) {
                    pnr_fused_sync<M>();
                    add_neighbours<M>(s, view, sums, u);
                }
            }
            pnr_fused_sync<M>();
            if (has_kept) {
                return_neighbours<M>(sums, p.candidates + (size_t)dwell * p.max_candidates,
                                     s.dwell.n_candidates, u);
                break;
            }
            search_cells<M>(s, view, p, cells, dwell, u);
            if (!p.is_incoherent || s.dwell.n_candidates == 0)
                break;
#pragma unroll 1
            for (uint32_t i = u; i < s.dwell.n_candidates * PNR_NEIGHBOURS; i += T)
                sums[i] = make_double2(0, 0);
        }
        pnr_fused_sync<M>(); /* all threads have read the sums, which the next dwell overwrites */
    }
}

/* --- the instances --- */

template <int M> static pnr_cuda_fused_size instance()
{
    typedef pnr_fused_size<M> size;

    return {
        correlate_dwells<M>,         (uint32_t)size::L,
        (uint32_t)size::THREADS,     (uint32_t)size::WINDOWS,
        (uint32_t)size::TABLE_BYTES, (uint32_t)(sizeof(pnr_fused_search<M>) + size::BUFFER_BYTES)};
}

const pnr_cuda_fused_size *pnr_cuda_fused_find_dwells(size_t n_transform)
{
    static const pnr_cuda_fused_size table[] = {instance<1>(), instance<2>(), instance<4>(),
                                                instance<8>(), instance<16>()};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].n_transform == n_transform)
            return &table[i];
    return NULL;
}

size_t pnr_cuda_fused_cells_bytes(const pnr_plan *plan)
{
    const size_t cells = plan->n_samples * plan->oversample * sizeof(float);
    const size_t sums =
        plan->n_looks > 1 ? plan->max_candidates * PNR_NEIGHBOURS * sizeof(double2) : 0;

    return ((cells > sums ? cells : sums) + 15) / 16 * 16;
}
