/* SPDX-License-Identifier: MIT */
/* Method fused, long: chooses the kernels for a transform length, and enqueues groups of dwells on
 * two streams. */
#include "cuda/long/long.h"

#include "cuda/base/check.h"
#include "cuda/fused/fused.h"

#include <cassert>

/* Points of a group: two groups and the spectrum of the code stay in the L2 cache. */
enum { GROUP_POINTS = 1 << 21, STATIC_BYTES = 24 << 10 };

uint32_t pnr_fused_long_bits(size_t n_samples)
{
    const size_t n_least = (n_samples & (n_samples - 1)) == 0 ? n_samples : 2 * n_samples - 1;
    uint32_t bits = 0;

    while ((size_t)1 << bits < n_least)
        bits++;
    return bits;
}

uint32_t pnr_fused_long_row_bits(uint32_t bits)
{
    /* Columns of 32 to 512 points and rows of 1024 to 8192 points were the fastest. */
    static const uint32_t row_bits[] = {10, 10, 10, 10, 11, 12, 13, 13};

    assert(bits >= PNR_FUSED_LONG_FIRST && bits <= PNR_FUSED_LONG_LAST);
    return row_bits[bits - PNR_FUSED_LONG_FIRST];
}

size_t pnr_fused_long_place(uint32_t bits, size_t k)
{
    const uint32_t row_bits = pnr_fused_long_row_bits(bits), column_bits = bits - row_bits;
    const size_t row = k & (((size_t)1 << column_bits) - 1);

    return (row << row_bits) + pnr_cuda_fused_place((size_t)1 << row_bits, k >> column_bits);
}

static int allow_kernel(const pnr_fused_long_launch *launch, pnr_error *error)
{
    return pnr_cuda_allow_shared((const void *)launch->kernel, launch->shared_bytes, error);
}

size_t pnr_fused_long_bytes(uint32_t bits, bool is_sum)
{
    const uint32_t row_bits = pnr_fused_long_row_bits(bits);
    const pnr_fused_long_launch search = pnr_fused_long_search(bits - row_bits, is_sum);
    const pnr_fused_long_launch rows = pnr_fused_long_rows(row_bits);
    const size_t bytes = search.shared_bytes + STATIC_BYTES;

    return bytes > rows.shared_bytes ? bytes : rows.shared_bytes;
}

int pnr_fused_long_open(uint32_t bits, pnr_format format, bool is_sum, pnr_fused_long_set *set,
                        pnr_error *error)
{
    const uint32_t row_bits = pnr_fused_long_row_bits(bits);
    const void *const rows = (const void *)pnr_fused_long_rows(row_bits).kernel;
    int device = 0, capability = 0, code;
    cudaFuncAttributes attributes = {};

    set->samples = pnr_fused_long_samples(format, bits - row_bits);
    set->rows = pnr_fused_long_rows(row_bits);
    set->lags = pnr_fused_long_lags(bits - row_bits, is_sum);
    set->search = pnr_fused_long_search(bits - row_bits, is_sum);
    if ((code = allow_kernel(&set->samples, error)) != PNR_OK ||
        (code = allow_kernel(&set->lags, error)) != PNR_OK ||
        (code = allow_kernel(&set->search, error)) != PNR_OK ||
        (code = pnr_cuda_fit_blocks(rows, set->rows.n_threads, set->rows.shared_bytes,
                                    &set->row_blocks, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaGetDevice(&device), "the GPU in use", error)) != PNR_OK ||
        (code = pnr_cuda_check(
             cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device),
             "the GPU's compute capability", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaFuncGetAttributes(&attributes, rows), "a kernel's attributes",
                               error)) != PNR_OK)
        return code;
    /* Kernels compiled for an older device must not be chained: their pnr_chain_wait is empty. */
    set->is_chained = capability >= 9 && attributes.ptxVersion >= 90;
    set->row_each = set->rows.n_threads * 32 >> row_bits;
    return set->row_blocks > 0 ? PNR_OK
                               : pnr_error_set(error, PNR_EUNSUPPORTED,
                                               "engine cuda: method fused does not fit this GPU at "
                                               "%u points",
                                               1u << bits);
}

uint32_t pnr_fused_long_group(uint32_t bits, size_t n_sums, size_t batch)
{
    /* a group of one transform was slower */
    const size_t n_transforms = bits < 20 ? GROUP_POINTS >> bits : 2;
    const size_t n = n_sums < n_transforms ? n_transforms / n_sums : 1;

    return (uint32_t)(n < batch ? n : batch);
}

uint32_t pnr_fused_long_turn(uint32_t row_bits, uint32_t u)
{
    const uint32_t m = 1u << (row_bits - 10);

    return u / m + 32 * (u % m);
}

/* --- one submit --- */

static int launch_kernel(const pnr_fused_long_launch *l, const char *name, dim3 grid,
                         bool is_chained, const pnr_fused_long *p, uint32_t first, uint32_t count,
                         cudaStream_t stream, pnr_error *error)
{
    cudaLaunchAttribute chained = {};
    cudaLaunchConfig_t config = {};

    chained.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    chained.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = dim3(l->n_threads);
    config.dynamicSmemBytes = l->shared_bytes;
    config.stream = stream;
    config.attrs = &chained;
    config.numAttrs = is_chained ? 1 : 0;
    return pnr_cuda_check(cudaLaunchKernelEx(&config, l->kernel, *p, first, count), name, error);
}

/* A chained kernel reads the job and the raw samples without waiting for earlier work. So both must
 * be complete before the chain begins. For this reason the first kernel of a stream is not
 * chained. */
static int enqueue_group(const pnr_fused_long *p, const pnr_fused_long_set *set, bool is_first,
                         uint32_t first, uint32_t count, cudaStream_t stream, pnr_error *error)
{
    const bool is_chained = set->is_chained;
    const uint32_t n_transforms = count * p->n_sums, first_transform = first * p->n_sums;
    const uint32_t n_rows = n_transforms * (p->n_points >> p->row_bits);
    const uint32_t n_needed = (n_rows + set->row_each - 1) / set->row_each;
    const uint32_t n_blocks = n_needed < set->row_blocks ? n_needed : set->row_blocks;
    const uint32_t n_warps = set->rows.n_threads / 32;
    /* blocks that transform rows, and blocks that call begin_window */
    const dim3 rows(n_blocks + (n_transforms + n_warps - 1) / n_warps);
    int code;

    assert(n_transforms <= PNR_FUSED_LONG_SUMS);
    if ((code = launch_kernel(&set->samples, "fused_samples", dim3(p->n_tiles, n_transforms),
                              is_chained && !is_first, p, first_transform, n_transforms, stream,
                              error)) != PNR_OK ||
        (code = launch_kernel(&set->rows, "fused_rows", rows, is_chained, p, first_transform,
                              n_transforms, stream, error)) != PNR_OK)
        return code;
    return launch_kernel(&set->lags, "fused_lags", dim3(p->n_tiles, count), is_chained, p, first,
                         count, stream, error);
}

/* Enqueues the groups on the two streams alternately. Then each stream searches the dwells of its
 * own groups, if the kernels list cells. */
static int enqueue_groups(const pnr_fused_long *p, const pnr_fused_long_set *set, uint32_t n_group,
                          uint32_t n_dwells, const cudaStream_t streams[2], pnr_error *error)
{
    uint32_t n_of[2] = {0, 0};
    int code = PNR_OK, i = 0;

    for (uint32_t first = 0; code == PNR_OK && first < n_dwells; first += n_group, i = 1 - i) {
        const uint32_t left = n_dwells - first, count = left < n_group ? left : n_group;

        code = enqueue_group(p, set, n_of[i] == 0, first, count, streams[i], error);
        n_of[i] += count;
    }
    for (i = 0; code == PNR_OK && i < 2; i++)
        if (n_of[i] > 0 && p->listed != NULL)
            code = launch_kernel(&set->search, "fused_search", dim3(n_of[i]), set->is_chained, p,
                                 (uint32_t)i * n_group, n_group, streams[i], error);
    return code;
}

int pnr_fused_long_enqueue(const pnr_fused_long *p, const pnr_fused_long_set *set, uint32_t n_group,
                           uint32_t n_dwells, cudaStream_t stream, const pnr_cuda_side *side,
                           pnr_error *error)
{
    const cudaStream_t streams[2] = {stream, side->stream};
    int code;

    assert(n_group >= 1 && n_dwells >= 1);
    if (n_dwells <= n_group)
        return enqueue_groups(p, set, n_group, n_dwells, streams, error);
    if ((code = pnr_cuda_side_fork(side, stream, error)) != PNR_OK)
        return code;
    code = enqueue_groups(p, set, n_group, n_dwells, streams, error);
    return pnr_cuda_side_join(side, stream, code, error);
}
