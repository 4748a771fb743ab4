/* SPDX-License-Identifier: MIT */
/* Method fused, of maps: the slow time in one kernel, all lines of the map, there and back, in
 * another; periods of 128 to 8192 samples. */
#include "cuda/fused/fused.h"
#include "cuda/map/fused.h"
#include "cuda/map/memory.h"

#include <cstdio>
#include <cstdlib>

enum { N_BLOCKS = PNR_MAP_BLOCKS };
static const size_t round_bytes = (size_t)1 << 29; /* of maps on the device at one time, about */

/* What all slots share. */
typedef struct shared {
    pnr_map map;
    pnr_map_stretch *stretches; /* [n_stretches] */
    size_t n_stretches;
    size_t n_points;     /* L */
    size_t round_dwells; /* whose maps are on the device at one time */
    bool is_single;      /* the lines read the windows themselves: there are no bases */
    bool has_slow, has_stream;
    pnr_map_bins bins;
    float2 *spectra; /* [n_codes][oversample][L] in the order of the threads */
    uint64_t bin_turns;
    uint32_t part_codes;
} shared;

static pnr_map_extent extent_of(const shared *own)
{
    pnr_map_extent extent = {own->round_dwells, 0, !own->is_single, own->has_stream, false};

    for (size_t i = 0; i < own->n_stretches; i++)
        extent.has_stretch |= own->stretches[i].stretch != 0;
    return extent;
}

static void list_blocks(const pnr_cuda_shape *s, const shared *own, pnr_map_memory *memory,
                        pnr_cuda_block list[N_BLOCKS])
{
    const pnr_map_extent extent = extent_of(own);

    (void)pnr_map_memory_list(s, &own->map, &extent, memory, list);
}

static void choose_round(const pnr_plan *plan, shared *own)
{
    const pnr_map *m = &own->map;
    const size_t cells = pnr_plan_cells(plan);
    const size_t bases =
        own->is_single ? 0 : (size_t)m->n_looks * m->n_bases * m->row_stride * sizeof(float2);
    const size_t dwell = cells * (m->n_looks * sizeof(float2) + sizeof(float)) + bases;
    const size_t n = round_bytes / dwell;

    own->round_dwells = n < 1 ? 1 : n > plan->batch ? plan->batch : n;
}

/* The codes that a block takes of a row: those with the least time of a round, where blocks come in
 * waves of one a processor, and each first transforms its row. Without a device the answer is about
 * a large one. */
static void choose_part(const pnr_plan *plan, shared *own)
{
    const size_t groups = pnr_map_lines_groups(own->n_points);
    const size_t rows = (size_t)own->map.n_rows * own->round_dwells;
    size_t least = SIZE_MAX;
    int n_processors;

    if (cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, (int)plan->device) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        n_processors = 132;
    }
    for (size_t codes = groups; codes < plan->n_codes + groups; codes += groups) {
        const size_t blocks = rows * ((plan->n_codes + codes - 1) / codes);
        const size_t waves = (blocks + (size_t)n_processors - 1) / (size_t)n_processors;
        const size_t time = waves * (1 + codes * plan->oversample / groups);

        if (time < least) {
            least = time;
            own->part_codes = (uint32_t)codes;
        }
    }
}

/* own: sizes alone; its stretches are those of tables. */
static int size(const pnr_plan *plan, const pnr_cuda_shape *shape, pnr_map_plan *tables,
                shared *own, pnr_error *error)
{
    const size_t block_bytes = pnr_cuda_block_bytes(plan->device);
    int code = pnr_map_suits(plan, shape, error);

    if (code != PNR_OK)
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
    if ((code = pnr_map_plan_create(plan, true, tables, error)) != PNR_OK)
        return code;
    own->map = pnr_map_of(plan, shape, tables, UINT32_MAX);
    own->map.n_transform = own->map.n_window; /* of the bases: they are extended when read */
    own->map.row_stride = (own->map.n_window + 31) / 32 * 32;
    own->stretches = tables->stretches;
    own->n_stretches = tables->n_stretches;
    own->has_slow = pnr_map_has_slow(plan, tables, block_bytes);
    own->is_single = pnr_map_is_single(plan, tables);
    own->has_stream = !(own->has_slow || own->is_single) || !pnr_map_is_raw(plan);
    own->bin_turns = pnr_rational_phase({1, (int64_t)plan->n_samples}, 1);
    choose_round(plan, own);
    choose_part(plan, own);
    if (pnr_map_lines_bytes(&own->map, own->n_points) <= block_bytes)
        return PNR_OK;
    pnr_map_plan_free(tables);
    own->stretches = NULL;
    return pnr_error_set(error, PNR_EUNSUPPORTED,
                         "engine cuda: method fused takes %zu bytes of shared memory a block for "
                         "lines of %zu points, this GPU has %zu",
                         pnr_map_lines_bytes(&own->map, own->n_points), own->n_points, block_bytes);
}

static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    const pnr_cuda_shape shape = pnr_cuda_shape_of(plan);
    pnr_map_plan tables;
    shared own = {};
    pnr_map_memory none = {};
    pnr_cuda_block list[N_BLOCKS], of_tables[PNR_MAP_TABLES];
    const int code = size(plan, &shape, &tables, &own, error);
    const pnr_map *m = &own.map;
    uint64_t host_bytes = 0;

    if (code != PNR_OK)
        return code;
    snprintf(choice->why, sizeof choice->why,
             "a map of %u codes, %u rows, %u lags: %s, lines of %zu points each in a block",
             m->n_codes, m->n_rows, m->n_lags,
             own.is_single  ? "windows as they come"
             : own.has_slow ? "a transform over the periods"
                            : "periods added up",
             own.n_points);
    choice->n_transform = own.n_points;
    list_blocks(&shape, &own, &none, list);
    pnr_cuda_blocks_count(list, N_BLOCKS, &choice->device_bytes, &choice->host_bytes);
    pnr_cuda_blocks_count(of_tables, pnr_map_list(&own.map, of_tables), shared_bytes, &host_bytes);
    *shared_bytes += (uint64_t)m->n_codes * m->oversample * own.n_points * sizeof(float2) +
                     (own.has_slow ? m->n_periods * (sizeof(uint4) + sizeof(float)) : 0);
    pnr_map_plan_free(&tables);
    return PNR_OK;
}

/* --- life --- */

static int create_spectra(const pnr_plan *plan, shared *own, pnr_error *error)
{
    uint32_t *place = (uint32_t *)malloc(own->n_points * sizeof *place);
    int code;

    if (place == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    for (size_t k = 0; k < own->n_points; k++)
        place[k] = (uint32_t)pnr_cuda_fused_place(own->n_points, k);
    code = pnr_map_create_spectra(plan, own->n_points, place, &own->spectra, error);
    free(place);
    return code;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)calloc(1, sizeof *own);
    pnr_map_plan tables = {};
    pnr_cuda_block list[PNR_MAP_TABLES];
    int code;

    common->shared = own;
    if (own == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    if ((code = size(plan, &common->shape, &tables, own, error)) != PNR_OK)
        return code;
    if ((code = pnr_cuda_blocks_allocate(list, pnr_map_list(&own->map, list), NULL, error)) ==
            PNR_OK &&
        (code = pnr_map_upload(plan, &tables, &own->map, error)) == PNR_OK &&
        (code = create_spectra(plan, own, error)) == PNR_OK &&
        (code = pnr_map_lines_prepare(&own->map, own->n_points, error)) == PNR_OK && own->has_slow)
        code = pnr_map_create_bins(plan, &tables, &own->bins, error);
    tables.stretches = NULL; /* own's now */
    pnr_map_plan_free(&tables);
    return code;
}

static void close_shared(pnr_cuda_common *common)
{
    shared *own = (shared *)common->shared;
    pnr_cuda_block list[PNR_MAP_TABLES];

    if (own == NULL)
        return;

    void *const others[] = {own->spectra, own->bins.bases, own->bins.taper};

    /* On the way out a status changes nothing. */
    pnr_cuda_blocks_free(list, pnr_map_list(&own->map, list));
    for (void *other : others)
        if (other != NULL)
            (void)cudaFree(other);
    free(own->stretches);
    free(own);
    common->shared = NULL;
}

static int create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    pnr_map_memory *memory = (pnr_map_memory *)calloc(1, sizeof *memory);
    pnr_cuda_block list[N_BLOCKS];

    slot->work = memory;
    if (memory == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    list_blocks(&common->shape, own, memory, list);
    return pnr_cuda_blocks_allocate(list, N_BLOCKS, slot->stream, error);
}

static void destroy(pnr_cuda_slot *slot)
{
    const pnr_cuda_shape shape = {};
    const shared none = {};
    pnr_map_memory *memory = (pnr_map_memory *)slot->work;
    pnr_cuda_block list[N_BLOCKS];

    if (memory == NULL)
        return;
    list_blocks(&shape, &none, memory, list);
    pnr_cuda_blocks_free(list, N_BLOCKS);
    free(memory);
    slot->work = NULL;
}

/* --- one job --- */

static int fold(const shared *own, const pnr_map_memory *memory, const pnr_map_samples *samples,
                size_t first, size_t n_dwells, cudaStream_t stream, pnr_error *error)
{
    const pnr_map *m = &own->map;
    const size_t first_look = first * m->n_looks, n_looks = n_dwells * m->n_looks;
    int code = PNR_OK;

    if (own->is_single)
        return PNR_OK;
    if (own->has_slow)
        return pnr_map_fold_slow(m, samples, &own->bins, first_look, n_looks, memory->bases, stream,
                                 error);
    for (size_t i = 0; code == PNR_OK && i < own->n_stretches; i++)
        code = pnr_map_fold(m, samples, first_look, n_looks, &own->stretches[i], memory->stretched,
                            memory->bases, stream, error);
    return code;
}

static int correlate(const pnr_cuda_slot *slot, const shared *own, const pnr_map_memory *memory,
                     const pnr_map_samples *samples, size_t first, size_t n_dwells,
                     pnr_error *error)
{
    pnr_map_lines lines = {};
    int code = PNR_OK;

    lines.job = slot->job;
    lines.bases = memory->bases;
    lines.samples = *samples;
    lines.spectra = (const float4 *)own->spectra;
    lines.values = memory->values;
    lines.power = memory->power;
    lines.noise = memory->noise;
    lines.greatest = memory->greatest;
    lines.bin_turns = own->bin_turns;
    lines.first_dwell = (uint32_t)first;
    lines.part_codes = own->part_codes;
    for (; code == PNR_OK && lines.look < own->map.n_looks; lines.look++)
        code = pnr_map_correlate(&own->map, &lines, own->n_points, n_dwells, slot->stream, error);
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
        (code = correlate(slot, own, memory, samples, first, n_dwells, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK ||
        /* the lines have done so where their cells are integer lags alone */
        (m->oversample > 1 &&
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
    "fused", suits, open_shared, close_shared, create, destroy, compute,
};
