/* SPDX-License-Identifier: MIT */
/* Computes the bases of all slow-time bins from the K windows of a look, by a transform over the
 * slow time. K is a power of two. */
#include "cuda/fused/transform.h"
#include "cuda/map/fused.h"

#include "cuda/base/mix.h"
#include "cuda/base/resources.h"

#include <cassert>
#include <cstdlib>
#include <cstring>

/* A block computes PLACES adjacent samples of all bases. Shared memory holds K values for each of
 * these samples. */
enum { PLACES = 16, THREADS = 256, TURNS = THREADS / PLACES };

/* --- the sources of samples --- */

struct from_stream {
    static __device__ __forceinline__ float2 read(const pnr_map &m, const pnr_map_samples &s,
                                                  size_t look, uint32_t p, uint32_t i)
    {
        return pnr_map_clean(m, s, look, p, i);
    }
};
struct from_ci16 {
    static __device__ __forceinline__ float2 read(const pnr_map &m, const pnr_map_samples &s,
                                                  size_t look, uint32_t p, uint32_t i)
    {
        return pnr_map_raw(m, s, look, p, i);
    }
};

/* --- the kernel --- */

template <int R>
static __device__ __forceinline__ void transform_from(float2 (&v)[R], uint32_t k1, float per_index)
{
    float2 powers[pnr_fused_bits(R)];

#pragma unroll
    for (int i = 0; i < pnr_fused_bits(R); i++)
        powers[i] = pnr_fused_twiddle(k1 << i, per_index);
    pnr_fused_transform_with<R>(v, powers);
}

/* Transforms the K = A B windows x_p of a look. The transform is over p, in two passes. With
 * W_n = exp(-2 pi i / n), p = p1 B + p2 and bin = k1 + A k2 the result is
 *   X[bin] = sum_p2 (sum_p1 x_p W_A^(p1 k1)) (W_K^k1)^p2 W_B^(p2 k2).
 * The first pass computes the inner sums. The second pass computes the outer sums. */
template <int A, int B, class SOURCE>
__global__ void __launch_bounds__(THREADS)
    transform_slow(pnr_map m, pnr_map_samples s, pnr_map_bins bins, size_t first_look,
                   float2 *bases)
{
    constexpr int K = A * B;
    extern __shared__ float2 middle[]; /* [A][B][PLACES] */
    __shared__ float weights[K];
    __shared__ uint4 bases_of[K];
    const size_t look = first_look + blockIdx.y;
    const uint32_t place = threadIdx.x % PLACES, turn = threadIdx.x / PLACES;
    const uint32_t at = blockIdx.x * PLACES + place, i = min(at, m.n_window - 1);
    float2 *out = bases + (size_t)blockIdx.y * m.n_bases * m.row_stride;

    for (uint32_t p = threadIdx.x; p < K; p += THREADS) {
        weights[p] = s.windows[look * K + p].is_used ? bins.taper[p] : 0.0f;
        bases_of[p] = bins.bases[p];
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t p2 = turn; p2 < B; p2 += TURNS) {
        float2 v[A];

#pragma unroll
        for (int p1 = 0; p1 < A; p1++)
            v[p1] = SOURCE::read(m, s, look, p1 * B + p2, i);
#pragma unroll
        for (int p1 = 0; p1 < A; p1++) {
            const float w = weights[p1 * B + p2];

            v[p1] = make_float2(v[p1].x * w, v[p1].y * w);
        }
        pnr_fused_transform<A>(v);
#pragma unroll
        for (int k1 = 0; k1 < A; k1++)
            middle[(k1 * B + p2) * PLACES + place] = v[k1];
    }
    __syncthreads();

    /* turned[q - 1] = exp(-2 pi i q at / (4 N)) */
    float2 turned[3];

#pragma unroll
    for (int q = 1; q < 4; q++)
        turned[q - 1] = pnr_cuda_rotate_back(make_float2(1, 0), q * at * bins.quarter_turns);
#pragma unroll 1
    for (uint32_t k1 = turn; k1 < A; k1 += TURNS) {
        float2 v[B];

#pragma unroll
        for (int p2 = 0; p2 < B; p2++)
            v[p2] = middle[(k1 * B + p2) * PLACES + place];
        transform_from<B>(v, k1, 2.0f / K);
        if (at >= m.n_window)
            continue;
#pragma unroll
        for (int k2 = 0; k2 < B; k2++) {
            const uint4 base = bases_of[k1 + A * k2];

            if (base.x != UINT32_MAX)
                out[(size_t)base.x * m.row_stride + at] = v[k2];
            if (base.y != UINT32_MAX)
                out[(size_t)base.y * m.row_stride + at] = pnr_fused_product(v[k2], turned[0]);
            if (base.z != UINT32_MAX)
                out[(size_t)base.z * m.row_stride + at] = pnr_fused_product(v[k2], turned[1]);
            if (base.w != UINT32_MAX)
                out[(size_t)base.w * m.row_stride + at] = pnr_fused_product(v[k2], turned[2]);
        }
    }
}

typedef void (*slow_kernel)(pnr_map, pnr_map_samples, pnr_map_bins, size_t, float2 *);

static const struct {
    uint32_t n_periods;
    slow_kernel of_stream, of_ci16;
} kernels[] = {
#define ROW(a, b)                                                                                  \
    {                                                                                              \
        (a) * (b), transform_slow<a, b, from_stream>, transform_slow<a, b, from_ci16>              \
    }
    ROW(4, 8), ROW(8, 8), ROW(8, 16), ROW(16, 16), ROW(16, 32), ROW(32, 32),
#undef ROW
};

/* --- tables and the launcher --- */

bool pnr_map_has_slow(const pnr_plan *plan, const pnr_map_plan *tables, size_t block_bytes)
{
    const size_t k = plan->n_periods;

    return k >= PNR_MAP_SLOW_MIN && k <= PNR_MAP_SLOW_MAX && (k & (k - 1)) == 0 &&
           k * (PLACES * sizeof(float2) + sizeof(float) + sizeof(uint4)) <= block_bytes &&
           tables->n_bases > 8 && tables->n_stretches == 1 && tables->stretches[0].stretch == 0;
}

/* Returns the slow-time bin of a base: (K F) mod K with F = quarters / 4 + s / K, see map.h. K F is
 * an integer, because 4 divides K. */
static uint32_t bin_of(const pnr_plan *plan, const pnr_map_plan *tables, uint32_t base)
{
    const int64_t k = (int64_t)plan->n_periods;
    const int64_t bin = (int64_t)tables->quarters[base] * (k / 4) + tables->bins[base];

    return (uint32_t)((bin % k + k) % k);
}

int pnr_map_upload_bins(const pnr_plan *plan, const pnr_map_plan *tables, pnr_map_bins *bins,
                        pnr_error *error)
{
    const size_t k = plan->n_periods;
    uint32_t(*bases)[4] = (uint32_t(*)[4])malloc(k * sizeof *bases);
    float *taper = (float *)malloc(k * sizeof *taper);
    int code = PNR_ENOMEMORY;

    bins->quarter_turns = pnr_rational_phase({1, 4 * (int64_t)plan->n_samples}, 1);
    if (bases == NULL || taper == NULL) {
        pnr_error_set(error, code, "engine cuda: no memory for %zu periods", k);
    } else {
        memset(bases, 0xff, k * sizeof *bases);
        for (uint32_t b = 0; b < tables->n_bases; b++) {
            assert(tables->quarters[b] >= 0 && tables->quarters[b] < 4);
            bases[bin_of(plan, tables, b)][tables->quarters[b]] = b;
        }
        for (size_t p = 0; p < k; p++)
            taper[p] = plan->taper != NULL ? (float)plan->taper[p] : 1.0f;
        if ((code = pnr_cuda_upload(bins->bases, bases, k * sizeof *bases, error)) == PNR_OK)
            code = pnr_cuda_upload(bins->taper, taper, k * sizeof *taper, error);
    }
    free(bases);
    free(taper);
    return code;
}

int pnr_map_fold_slow(const pnr_map *m, const pnr_map_samples *s, const pnr_map_bins *bins,
                      size_t first_look, size_t n_looks, float2 *bases, cudaStream_t stream,
                      pnr_error *error)
{
    const dim3 grid((m->n_window + PLACES - 1) / PLACES, (unsigned)n_looks);
    const size_t bytes = (size_t)m->n_periods * PLACES * sizeof(float2);
    slow_kernel kernel = NULL;
    int code;

    for (const auto &row : kernels)
        if (row.n_periods == m->n_periods)
            kernel = s->stream != NULL ? row.of_stream : row.of_ci16;
    assert(kernel != NULL && n_looks <= 65535);
    if ((code = pnr_cuda_allow_shared((const void *)kernel, bytes, error)) != PNR_OK)
        return code;
    kernel<<<grid, THREADS, bytes, stream>>>(*m, *s, *bins, first_look, bases);
    return pnr_cuda_check_launch("transform_slow", error);
}
