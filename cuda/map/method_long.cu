/* SPDX-License-Identifier: MIT */
/* Method fused for maps of one row of one code, for transforms of more than 16384 points. The
 * kernels for plain windows write all values and powers. Then the search of maps runs. */
#include "cuda/long/long.h"
#include "cuda/map/memory.h"

#include <cstdio>

/* Data that all slots share. */
typedef struct shared {
    pnr_fused_long_shared lines;
    pnr_map map;
    pnr_map_plan tables;
} shared;

/* Data of one slot. */
typedef struct work {
    pnr_fused_long lines; /* only its pointers to memory of the slot are set */
    pnr_map_memory memory;
    pnr_cuda_side side;
} work;

static size_t list_work(const pnr_cuda_common *common, void *memory, pnr_cuda_buffer *list)
{
    const shared *own = (const shared *)common->shared;
    const size_t batch = common->shape.batch;
    const size_t n_points = (size_t)1 << pnr_fused_long_bits(common->plan.n_samples);
    const size_t n_tiles = batch * (n_points / PNR_FUSED_LONG_TILE);
    const pnr_map_extent extent = {batch, 0, false, false};
    work *w = (work *)memory;
    pnr_fused_long *l = &w->lines;
    size_t n = pnr_map_memory_list(&common->shape, &own->map, &extent, &w->memory, list);

    list[n++] = {(void **)&l->rows, batch * n_points * sizeof *l->rows, false};
    list[n++] = {(void **)&l->parts, n_tiles * sizeof *l->parts, false};
    list[n++] = {(void **)&l->states, batch * sizeof *l->states, false};
    list[n++] = {(void **)&l->tiles, n_tiles * sizeof *l->tiles, false};
    return n;
}

static size_t list_shared(const pnr_cuda_common *common, pnr_cuda_buffer *list)
{
    shared *own = (shared *)common->shared;
    const size_t n = pnr_map_list(&own->map, list);

    return n + pnr_fused_long_list(&common->plan, &own->lines, list + n);
}

/* Returns true if the map differs from a plain window only in its search, and the first kernel can
 * read the raw samples. */
static bool has_plain_line(const pnr_plan *plan)
{
    pnr_plan plain = *plan;

    plain.cfar.kind = PNR_CFAR_OFF;
    plain.exclusion_cells = plain.exclusion_rows = 1;
    return pnr_plan_is_plain(&plain) && !pnr_fused_long_is_prepared(plan);
}

static int suits(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error)
{
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    shared *own = (shared *)common->shared;
    int code;

    if (pnr_plan_is_plain(plan) || bits < PNR_FUSED_LONG_FIRST)
        return PNR_EUNSUPPORTED;
    if (!has_plain_line(plan))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused knows maps of %zu samples a period only "
                             "with one code, row, look and period, of ci8, ci16 or cf32 samples of "
                             "one channel that nothing changes",
                             plan->n_samples);
    if ((code = pnr_map_suits(plan, &common->shape, error)) != PNR_OK ||
        (code = pnr_fused_long_suits(plan, error)) != PNR_OK ||
        (code = pnr_map_plan_create(plan, true, &own->tables, error)) != PNR_OK)
        return code;
    own->map = pnr_map_of(plan, &common->shape, &own->tables, PNR_MAP_TILE);
    choice->n_transform = (size_t)1 << bits;
    snprintf(choice->why, sizeof choice->why,
             "a map of one line, %u lags: three kernels, %u x %u points, and the search of maps",
             own->map.n_lags, 1u << (bits - pnr_fused_long_row_bits(bits)),
             1u << pnr_fused_long_row_bits(bits));
    return PNR_OK;
}

/* --- create and destroy --- */

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)common->shared;
    const int code = pnr_map_upload(plan, &own->tables, &own->map, error);

    return code == PNR_OK ? pnr_fused_long_upload(plan, &own->lines, error) : code;
}

static void close_shared(void *memory)
{
    pnr_map_plan_free(&((shared *)memory)->tables);
}

static int create_work(const pnr_cuda_common *, pnr_cuda_slot *slot, pnr_error *error)
{
    return pnr_cuda_side_create(&((work *)slot->work)->side, error);
}

static void destroy_work(void *memory)
{
    pnr_cuda_side_destroy(&((work *)memory)->side);
}

/* --- one submit --- */

static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const work *w = (const work *)slot->work;
    const pnr_map *m = &own->map;
    const pnr_map_samples samples = pnr_map_samples_of(common, slot, &w->memory);
    const pnr_map_search search = pnr_map_search_of(common, slot, m, &w->memory, 0, n_dwells);
    const uint32_t bits = pnr_fused_long_bits(m->n_samples);
    pnr_fused_long lines = pnr_fused_long_argument(common, slot, &own->lines, &w->lines);
    int code;

    lines.profile = w->memory.values;
    lines.power = w->memory.power;
    if ((code = pnr_map_measure(m, &samples, n_dwells, slot->stream, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error)) != PNR_OK ||
        (code = pnr_fused_long_enqueue(
             &lines, &own->lines.set, pnr_fused_long_group(bits, 1, common->plan.batch),
             (uint32_t)n_dwells, slot->stream, &w->side, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK ||
        (code = pnr_map_measure_tiles(m, &search, slot->stream, error)) != PNR_OK ||
        (code = pnr_map_find(m, &search, slot->stream, error)) != PNR_OK)
        return code;
    return pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error);
}

const pnr_cuda_method pnr_cuda_method_map_long = {
    "fused",     sizeof(shared), sizeof(work), suits,        list_shared, list_work,
    open_shared, close_shared,   create_work,  destroy_work, compute,
};
