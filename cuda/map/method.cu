/* SPDX-License-Identifier: MIT */
/* Method library: cuFFT transforms groups of rows forward and back. cuBLAS applies the filter.
 * Dwells are computed in rounds. The method supports every plan. Tests compare the other methods
 * with this one. */
#include "cuda/base/blas.h"
#include "cuda/base/resources.h"
#include "cuda/map/memory.h"
#include "cuda/map/values.h"

#include <cstdio>
#include <cstdlib>

/* Data that all slots share. */
typedef struct shared {
    pnr_map map;
    pnr_map_plan tables;
    size_t round_dwells;     /* dwells whose maps are on the device at one time */
    size_t forward, inverse; /* rows of each call of cuFFT */
    bool has_stream;
    bool is_in_place; /* true for plain dwells without half lags: the memory of the bases also holds
                       * the lines */
    bool has_values;  /* false: the memory of the bases holds the values */
    float2 *spectra;  /* [n_codes][oversample][L]: conj(DFT of the code) / L */
    float2 *filter;   /* [gate_count][gate_count], or NULL */
} shared;

/* Data of one slot. */
typedef struct work {
    pnr_cuda_transforms transforms;
    const pnr_cuda_blas *blas; /* set if the map is filtered */
    cublasHandle_t product;
    pnr_map_memory memory;
    float2 *lines;    /* [inverse][row_stride], unless is_in_place */
    float2 *filtered; /* [inverse][gate_count], with a filter */
    void *blas_memory;
} work;

static size_t bases_of(const pnr_map *m)
{
    return (size_t)m->n_looks * m->n_bases;
}

/* A call of cuFFT transforms at most shape->group rows. A round has at most shape->group lines in
 * all its dwells, unless one dwell has more. The number of rows of a call depends only on the
 * length of the transform and on the map, so the bits of the results do not depend on the batch. */
static void choose_groups(const pnr_cuda_shape *shape, const pnr_map *m, shared *own)
{
    const size_t bases = bases_of(m), lines = shape->dwell_lines; /* bases <= lines */
    const size_t fit = shape->group / lines, n = fit < 1 ? 1 : fit;

    own->forward = n * bases < shape->group ? n * bases : shape->group;
    own->inverse = n * lines < shape->group ? n * lines : shape->group;
    own->round_dwells = n < shape->batch ? n : shape->batch;
}

static size_t list_work(const pnr_cuda_common *common, void *memory, pnr_cuda_buffer *list)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    const size_t n_calls = (own->round_dwells * bases_of(m) + own->forward - 1) / own->forward;
    const pnr_map_extent extent = {own->round_dwells, n_calls * own->forward, own->has_stream,
                                   !own->has_values};
    work *w = (work *)memory;
    size_t n = pnr_map_memory_list(&common->shape, m, &extent, &w->memory, list);

    list[n++] = {(void **)&w->lines,
                 own->is_in_place ? 0 : own->inverse * m->row_stride * sizeof *w->lines, false};
    list[n++] = {(void **)&w->filtered,
                 m->is_filtered ? own->inverse * m->gate_count * sizeof *w->filtered : 0, false};
    list[n++] = {&w->blas_memory, m->is_filtered ? (size_t)PNR_CUDA_PRODUCT_BYTES : 0, false};
    return n;
}

static size_t filter_bytes(const pnr_map *m)
{
    return m->is_filtered ? (size_t)m->gate_count * m->gate_count * sizeof(float2) : 0;
}

static size_t list_shared(const pnr_cuda_common *common, pnr_cuda_buffer *list)
{
    shared *own = (shared *)common->shared;
    const pnr_map *m = &own->map;
    size_t n = pnr_map_list(&own->map, list);

    list[n++] = {(void **)&own->spectra,
                 (size_t)m->n_codes * m->oversample * m->n_transform * sizeof *own->spectra, false};
    list[n++] = {(void **)&own->filter, filter_bytes(m), false};
    return n;
}

static int suits(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error)
{
    const pnr_cuda_shape *shape = &common->shape;
    shared *own = (shared *)common->shared;
    const pnr_map *m = &own->map;
    int code;

    if ((code = pnr_map_suits(plan, shape, error)) != PNR_OK ||
        (code = pnr_map_plan_create(plan, shape->n_transform == shape->n_samples && !plan->linear,
                                    &own->tables, error)) != PNR_OK)
        return code;
    own->map = pnr_map_of(plan, shape, &own->tables, PNR_MAP_TILE);
    own->has_stream = !pnr_map_is_single(plan, &own->tables) || !pnr_map_is_raw(plan);
    own->is_in_place = pnr_plan_is_plain(plan) && m->oversample == 1;
    own->has_values = !own->is_in_place || m->row_stride != m->n_cells;
    choose_groups(shape, m, own);
    snprintf(choice->why, sizeof choice->why,
             "a map of %u codes, %u rows, %u lags: cuFFT at %u points, %zu windows and %zu lines a "
             "call",
             m->n_codes, m->n_rows, m->n_lags, m->n_transform, own->forward, own->inverse);
    if (pnr_plan_is_plain(plan))
        snprintf(choice->why, sizeof choice->why, "cuFFT at %u points%s, %zu transforms a call",
                 m->n_transform, m->n_transform > m->n_samples ? " (extended periodically)" : "",
                 own->inverse);
    choice->n_transform = shape->n_transform;
    /* The work area of the transforms is estimated to have the size of the rows of one call. */
    choice->device_bytes = (own->forward > own->inverse ? own->forward : own->inverse) *
                               shape->row_stride * sizeof(float2) +
                           pnr_map_memory_transforms(m);
    return PNR_OK;
}

/* --- create and destroy --- */

static int upload_filter(const pnr_plan *plan, const shared *own, pnr_error *error)
{
    const size_t n = plan->gate_count * plan->gate_count, bytes = filter_bytes(&own->map);
    float2 *rounded;
    int code;

    if (plan->filter == NULL)
        return PNR_OK;
    if ((rounded = (float2 *)malloc(bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: no memory for a filter of %zu^2",
                             plan->gate_count);
    for (size_t i = 0; i < n; i++)
        rounded[i] = make_float2((float)plan->filter[i][0], (float)plan->filter[i][1]);
    code = pnr_cuda_upload(own->filter, rounded, bytes, error);
    free(rounded);
    return code;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    int code;

    if ((code = pnr_map_upload(plan, &own->tables, &own->map, error)) != PNR_OK ||
        (code = upload_filter(plan, own, error)) != PNR_OK)
        return code;
    return pnr_cuda_upload_spectra(plan, common->shape.n_transform, NULL, 1, own->spectra, error);
}

static void close_shared(void *memory)
{
    pnr_map_plan_free(&((shared *)memory)->tables);
}

static int create_product(work *w, cudaStream_t stream, pnr_error *error)
{
    const int code = pnr_cuda_blas_load(&w->blas, error);

    return code == PNR_OK
               ? pnr_cuda_product_create(w->blas, &w->product, w->blas_memory, stream, error)
               : code;
}

static int create_work(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    work *w = (work *)slot->work;
    int code = pnr_map_memory_create(m, &w->memory, slot->stream, error);

    if (code == PNR_OK)
        code = pnr_cuda_transforms_create(&w->transforms, m->n_transform, m->row_stride,
                                          own->forward, own->inverse, slot->stream, error);
    return code == PNR_OK && m->is_filtered ? create_product(w, slot->stream, error) : code;
}

static void destroy_work(void *memory)
{
    work *w = (work *)memory;

    pnr_map_memory_destroy(&w->memory);
    pnr_cuda_transforms_destroy(&w->transforms);
    if (w->product != NULL)
        (void)w->blas->destroy(w->product); /* a failed free is ignored */
}

/* --- one submit --- */

/* Computes c'[k] = sum_j filter[k][j] c[gate_first + j]. A gate that wraps has two parts. */
static int filter_lines(const shared *own, work *w, pnr_error *error)
{
    const pnr_map *m = &own->map;
    const int n = (int)m->gate_count, n_lines = (int)own->inverse;
    const int above = m->gate_first + m->gate_count > m->n_lags
                          ? (int)(m->gate_first + m->gate_count - m->n_lags)
                          : 0;
    const float2 one = {1, 0}, zero = {0, 0};
    int code = pnr_cuda_check_blas(w->blas,
                                   w->blas->cgemm(w->product, CUBLAS_OP_T, CUBLAS_OP_N, n, n_lines,
                                                  n - above, &one, own->filter, n,
                                                  w->lines + m->gate_first, (int)m->row_stride,
                                                  &zero, w->filtered, n),
                                   "filter", error);

    if (code == PNR_OK && above > 0)
        code =
            pnr_cuda_check_blas(w->blas,
                                w->blas->cgemm(w->product, CUBLAS_OP_T, CUBLAS_OP_N, n, n_lines,
                                               above, &one, own->filter + (n - above), n, w->lines,
                                               (int)m->row_stride, &one, w->filtered, n),
                                "filter", error);
    return code;
}

/* Computes the lines of a part: product, inverse transform, filter, powers. */
static int compute_part(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                        const pnr_map_part *part, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    work *w = (work *)slot->work;
    float2 *lines =
        own->is_in_place ? w->memory.bases + (size_t)part->first * m->row_stride : w->lines;
    int code;

    if ((code = pnr_map_multiply(m, part, w->memory.bases, own->spectra, lines, slot->stream,
                                 error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_PRODUCT, error)) != PNR_OK ||
        (code = pnr_cuda_transforms_run(&w->transforms, lines, part->n_lines, CUFFT_INVERSE,
                                        error)) != PNR_OK ||
        (m->is_filtered && (code = filter_lines(own, w, error)) != PNR_OK) ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK ||
        (code = pnr_map_keep(m, part, m->is_filtered ? w->filtered : lines, w->memory.values,
                             w->memory.power, slot->stream, error)) != PNR_OK)
        return code;
    return pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error);
}

/* Computes and transforms all bases of a round. */
static int compute_bases(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_map_samples *samples, size_t first, size_t n_dwells,
                         pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    work *w = (work *)slot->work;
    int code = pnr_map_fold(m, samples, first * m->n_looks, n_dwells * m->n_looks, &own->tables,
                            &w->memory.stretching, w->memory.bases, slot->stream, error);

    if (code == PNR_OK)
        code = pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error);
    if (code == PNR_OK)
        code = pnr_cuda_transforms_run(&w->transforms, w->memory.bases, n_dwells * bases_of(m),
                                       CUFFT_FORWARD, error);
    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_FORWARD, error) : code;
}

static int compute_round(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_map_samples *samples, size_t first, size_t n_dwells,
                         pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    work *w = (work *)slot->work;
    pnr_map_search search = pnr_map_search_of(common, slot, m, &w->memory, first, n_dwells);
    const size_t n_lines = n_dwells * common->shape.dwell_lines;
    int code = compute_bases(common, slot, samples, first, n_dwells, error);

    if (!own->has_values)
        search.values = w->memory.bases;
    for (size_t line = 0; code == PNR_OK && line < n_lines; line += own->inverse) {
        const size_t left = n_lines - line;
        const pnr_map_part part = {(uint32_t)line,
                                   (uint32_t)(left < own->inverse ? left : own->inverse)};

        code = compute_part(common, slot, &part, error);
    }
    if (code == PNR_OK &&
        (code = pnr_map_measure_tiles(m, &search, slot->stream, error)) == PNR_OK &&
        (code = pnr_map_find(m, &search, slot->stream, error)) == PNR_OK)
        code = pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error);
    return code;
}

static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const work *w = (const work *)slot->work;
    const pnr_map_samples samples = pnr_map_samples_of(common, slot, &w->memory);
    int code = pnr_map_measure(&own->map, &samples, n_dwells, slot->stream, error);

    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += own->round_dwells) {
        const size_t left = n_dwells - first;

        code = compute_round(common, slot, &samples, first,
                             left < own->round_dwells ? left : own->round_dwells, error);
    }
    return code;
}

const pnr_cuda_method pnr_cuda_method_library = {
    "library",   sizeof(shared), sizeof(work), suits,        list_shared, list_work,
    open_shared, close_shared,   create_work,  destroy_work, compute,
};
