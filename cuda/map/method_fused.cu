/* SPDX-License-Identifier: MIT */
/* Method fused for maps, for periods of at least 128 samples and transforms of at most 8192 points.
 * One kernel sums over the slow time. Another kernel transforms all lines of the map forward and
 * back. */
#include "cuda/base/resources.h"
#include "cuda/fused/fused.h"
#include "cuda/map/fused.h"
#include "cuda/map/memory.h"

#include <cstdio>

static const size_t round_bytes = (size_t)1
                                  << 29; /* greatest size of the maps and bases of a round, in
                                          * bytes, unless one dwell needs more */

/* Data that all slots share. */
typedef struct shared {
    pnr_map map;
    pnr_map_plan tables;
    size_t n_points;     /* L, points of the transform */
    size_t round_dwells; /* dwells whose maps are on the device at one time */
    bool is_single;      /* the kernel of the lines reads windows instead of bases */
    bool is_whole;       /* the kernel of the lines searches too, and no map is kept */
    bool has_slow, has_stream;
    pnr_map_bins bins;
    float2 *spectra; /* [n_codes][oversample][L], see pnr_cuda_fused_place */
    uint64_t bin_turns;
    uint32_t part_codes;
} shared;

static size_t list_work(const pnr_cuda_common *common, void *work, pnr_cuda_buffer *list)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    const size_t n_bases = own->round_dwells * m->n_looks * m->n_bases;
    const pnr_map_extent extent = {own->is_whole ? 0 : own->round_dwells,
                                   own->is_single ? 0 : n_bases, own->has_stream, false};

    return pnr_map_memory_list(&common->shape, m, &extent, (pnr_map_memory *)work, list);
}

static size_t list_shared(const pnr_cuda_common *common, pnr_cuda_buffer *list)
{
    shared *own = (shared *)common->shared;
    const pnr_map *m = &own->map;
    const size_t n_bins = own->has_slow ? m->n_periods : 0;
    size_t n = pnr_map_list(&own->map, list);

    list[n++] = {(void **)&own->spectra,
                 (size_t)m->n_codes * m->oversample * own->n_points * sizeof *own->spectra, false};
    list[n++] = {(void **)&own->bins.bases, n_bins * sizeof *own->bins.bases, false};
    list[n++] = {(void **)&own->bins.taper, n_bins * sizeof *own->bins.taper, false};
    return n;
}

static void choose_round(const pnr_plan *plan, shared *own)
{
    const pnr_map *m = &own->map;
    const size_t cells = own->is_whole ? 0 : pnr_plan_cells(plan);
    const size_t bases =
        own->is_single ? 0 : (size_t)m->n_looks * m->n_bases * m->row_stride * sizeof(float2);
    const size_t dwell = cells * (m->n_looks * sizeof(float2) + sizeof(float)) + bases;
    const size_t n = round_bytes / (dwell > 0 ? dwell : 1);

    own->round_dwells = n < 1 ? 1 : n > plan->batch ? plan->batch : n;
}

/* Chooses with how many codes a block correlates its row, so that a round takes the least time.
 * Blocks run in waves, one block on each multiprocessor, and each block first transforms its
 * row. */
static void choose_part(const pnr_plan *plan, shared *own)
{
    const size_t groups = pnr_map_lines_groups(own->n_points);
    const size_t rows = (size_t)own->map.n_rows * own->round_dwells;
    const size_t n_processors = pnr_cuda_processors(plan->device);
    size_t least = SIZE_MAX;

    for (size_t codes = groups; codes < plan->n_codes + groups; codes += groups) {
        const size_t blocks = rows * ((plan->n_codes + codes - 1) / codes);
        const size_t waves = (blocks + n_processors - 1) / n_processors;
        const size_t time = waves * (1 + codes * plan->oversample / groups);

        if (time < least) {
            least = time;
            own->part_codes = (uint32_t)codes;
        }
    }
}

static int suits(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error)
{
    const pnr_cuda_shape *shape = &common->shape;
    const size_t block_bytes = pnr_cuda_block_bytes(plan->device);
    shared *own = (shared *)common->shared;
    pnr_map *m = &own->map;
    int code;

    if (pnr_plan_is_plain(plan))
        return PNR_EUNSUPPORTED;
    if ((code = pnr_map_suits(plan, shape, error)) != PNR_OK)
        return code;
    if (plan->filter != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused knows no maps with a filter");
    own->n_points = pnr_map_lines_points(plan);
    if (own->n_points == 0)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused knows no maps of %zu samples a period and "
                             "%zu lags",
                             plan->n_samples, plan->n_lags);
    if ((code = pnr_map_plan_create(plan, true, &own->tables, error)) != PNR_OK)
        return code;
    *m = pnr_map_of(plan, shape, &own->tables, UINT32_MAX);
    m->n_transform = m->n_window; /* samples of a base; lines.cu extends a base to L */
    m->row_stride = (m->n_window + 31) / 32 * 32;
    own->has_slow = pnr_map_has_slow(plan, &own->tables, block_bytes);
    own->is_whole = plan->want_profile == PNR_WANT_NONE &&
                    pnr_map_lines_is_whole(m, own->n_points, block_bytes);
    own->is_single =
        pnr_map_is_single(plan, &own->tables) && pnr_map_lines_takes_windows(m, own->n_points);
    own->has_stream = !(own->has_slow || own->is_single) || !pnr_map_is_raw(plan);
    own->bin_turns = pnr_rational_phase({1, (int64_t)plan->n_samples}, 1);
    choose_round(plan, own);
    choose_part(plan, own);
    if (pnr_map_lines_bytes(m, own->n_points, false) > block_bytes) {
        pnr_map_plan_free(&own->tables);
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused takes %zu bytes of shared memory a block "
                             "for lines of %zu points, this GPU has %zu",
                             pnr_map_lines_bytes(m, own->n_points, false), own->n_points,
                             block_bytes);
    }
    snprintf(choice->why, sizeof choice->why,
             "a map of %u codes, %u rows, %u lags: %s, lines of %zu points each in a block",
             m->n_codes, m->n_rows, m->n_lags,
             own->is_single  ? "windows as they come"
             : own->has_slow ? "a transform over the periods"
                             : "periods added up",
             own->n_points);
    choice->n_transform = own->n_points;
    choice->device_bytes = pnr_map_memory_transforms(m);
    return PNR_OK;
}

/* --- create and destroy --- */

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)common->shared;
    int code;

    if ((code = pnr_map_upload(plan, &own->tables, &own->map, error)) != PNR_OK ||
        (code = pnr_cuda_upload_spectra(plan, own->n_points, pnr_cuda_fused_place, 1, own->spectra,
                                        error)) != PNR_OK ||
        (code = pnr_map_lines_prepare(&own->map, own->n_points, own->is_whole, error)) != PNR_OK)
        return code;
    return own->has_slow ? pnr_map_upload_bins(plan, &own->tables, &own->bins, error) : PNR_OK;
}

static void close_shared(void *memory)
{
    pnr_map_plan_free(&((shared *)memory)->tables);
}

static int create_work(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;

    return pnr_map_memory_create(&own->map, (pnr_map_memory *)slot->work, slot->stream, error);
}

static void destroy_work(void *memory)
{
    pnr_map_memory_destroy((pnr_map_memory *)memory);
}

/* --- one submit --- */

static int fold(const shared *own, const pnr_map_memory *memory, const pnr_map_samples *samples,
                size_t first, size_t n_dwells, cudaStream_t stream, pnr_error *error)
{
    const pnr_map *m = &own->map;
    const size_t first_look = first * m->n_looks, n_looks = n_dwells * m->n_looks;

    if (own->is_single)
        return PNR_OK;
    if (own->has_slow)
        return pnr_map_fold_slow(m, samples, &own->bins, first_look, n_looks, memory->bases, stream,
                                 error);
    return pnr_map_fold(m, samples, first_look, n_looks, &own->tables, &memory->stretching,
                        memory->bases, stream, error);
}

static int correlate(const shared *own, const pnr_map_memory *memory,
                     const pnr_map_samples *samples, const pnr_map_search *search,
                     cudaStream_t stream, pnr_error *error)
{
    pnr_map_lines lines = {};
    int code = PNR_OK;

    lines.search = *search;
    lines.bases = memory->bases;
    lines.samples = *samples;
    lines.spectra = (const float4 *)own->spectra;
    lines.bin_turns = own->bin_turns;
    lines.part_codes = own->part_codes;
    lines.is_whole = own->is_whole;
    for (; code == PNR_OK && lines.look < own->map.n_looks; lines.look++)
        code = pnr_map_correlate(&own->map, &lines, own->n_points, stream, error);
    return code;
}

static int compute_round(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_map_samples *samples, size_t first, size_t n_dwells,
                         pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map_memory *memory = (const pnr_map_memory *)slot->work;
    const pnr_map *m = &own->map;
    const pnr_map_search search = pnr_map_search_of(common, slot, m, memory, first, n_dwells);
    int code;

    if ((code = fold(own, memory, samples, first, n_dwells, slot->stream, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error)) != PNR_OK ||
        (code = correlate(own, memory, samples, &search, slot->stream, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK)
        return code;
    if (own->is_whole)
        return PNR_OK;
    /* Without half lags the kernel of the lines has computed the sums of the tiles. */
    if ((m->oversample > 1 &&
         (code = pnr_map_measure_tiles(m, &search, slot->stream, error)) != PNR_OK) ||
        (code = pnr_map_find(m, &search, slot->stream, error)) != PNR_OK)
        return code;
    return pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error);
}

static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map_memory *memory = (const pnr_map_memory *)slot->work;
    const pnr_map_samples samples = pnr_map_samples_of(common, slot, memory);
    int code = pnr_map_measure(&own->map, &samples, n_dwells, slot->stream, error);

    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += own->round_dwells) {
        const size_t left = n_dwells - first;

        code = compute_round(common, slot, &samples, first,
                             left < own->round_dwells ? left : own->round_dwells, error);
    }
    return code;
}

const pnr_cuda_method pnr_cuda_method_map_fused = {
    "fused",   sizeof(shared), sizeof(pnr_map_memory), suits,       list_shared,
    list_work, open_shared,    close_shared,           create_work, destroy_work,
    compute,
};
