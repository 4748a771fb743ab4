/* SPDX-License-Identifier: MIT */
/* Method library, of maps: cuFFT there and back in groups of rows, cuBLAS for the filter, a round of
 * dwells after the other; any length, any rows: the plain twin of the others. */
#include "cuda/map/memory.h"
#include "cuda/map/values.h"

#include <cstdio>
#include <cstdlib>

enum { TILE = 2048, BLAS_WORK = 4 << 20, N_BLOCKS = PNR_MAP_BLOCKS + 3 };

/* What all slots share. */
typedef struct shared {
    pnr_map map;
    pnr_map_stretch *stretches; /* [n_stretches] */
    size_t n_stretches;
    size_t round_dwells;     /* whose maps are on the device at one time */
    size_t forward, inverse; /* rows of a call of cuFFT, always all of them */
    bool has_stream;
    float2 *spectra; /* [n_codes][oversample][L]: conj(DFT of the code) / L */
    float2 *filter;  /* [gate_count][gate_count], or NULL */
} shared;

/* A slot's own. */
typedef struct work {
    cufftHandle forward, inverse;
    bool has_forward, has_inverse;
    cublasHandle_t blas;
    pnr_map_memory memory;
    float2 *lines;    /* [inverse][row_stride] */
    float2 *filtered; /* [inverse][gate_count], with a filter */
    void *blas_work;
    void *fft_work;
} work;

static size_t bases_of(const pnr_map *m)
{
    return (size_t)m->n_looks * m->n_bases;
}

/* Lines of a look. */
static size_t lines_of(const pnr_map *m)
{
    return (size_t)m->n_codes * m->n_rows * m->oversample;
}

/* A round is as many dwells as fit a group, at least one. Rows of a call: never more than a group,
 * and never of another number in one plan, whatever its batch. */
static void choose_groups(const pnr_cuda_shape *shape, const pnr_map *m, shared *own)
{
    const size_t bases = bases_of(m), lines = lines_of(m), most = bases > lines ? bases : lines;
    const size_t fit = shape->group / most, n = fit < 1 ? 1 : fit;

    own->forward = n * bases < shape->group ? n * bases : shape->group;
    own->inverse = n * lines < shape->group ? n * lines : shape->group;
    own->round_dwells = n < shape->batch ? n : shape->batch;
}

static pnr_map_extent extent_of(const shared *own)
{
    const size_t bases = own->round_dwells * bases_of(&own->map);
    const size_t n_calls = own->forward > 0 ? (bases + own->forward - 1) / own->forward : 0;
    pnr_map_extent extent = {own->round_dwells, n_calls * own->forward - bases, true,
                             own->has_stream, false};

    for (size_t i = 0; i < own->n_stretches; i++)
        extent.has_stretch |= own->stretches[i].stretch != 0;
    return extent;
}

static void list_blocks(const pnr_cuda_shape *s, const shared *own, work *w,
                        pnr_cuda_block list[N_BLOCKS])
{
    const pnr_map *m = &own->map;
    const pnr_map_extent extent = extent_of(own);
    size_t n = pnr_map_memory_list(s, m, &extent, &w->memory, list);

    list[n++] = {(void **)&w->lines, own->inverse * m->row_stride * sizeof *w->lines, false};
    list[n++] = {(void **)&w->filtered,
                 m->is_filtered ? own->inverse * m->gate_count * sizeof *w->filtered : 0, false};
    list[n++] = {&w->blas_work, m->is_filtered ? (size_t)BLAS_WORK : 0, false};
}

static size_t filter_bytes(const pnr_map *m)
{
    return m->is_filtered ? (size_t)m->gate_count * m->gate_count * sizeof(float2) : 0;
}

/* own: sizes alone; its stretches are those of tables. */
static int size(const pnr_plan *plan, const pnr_cuda_shape *shape, pnr_map_plan *tables,
                shared *own, pnr_error *error)
{
    int code = pnr_map_suits(plan, shape, error);

    if (code != PNR_OK ||
        (code = pnr_map_plan_create(plan, shape->n_transform == shape->n_samples && !plan->linear,
                                    tables, error)) != PNR_OK)
        return code;
    own->map = pnr_map_of(plan, shape, tables, TILE);
    own->stretches = tables->stretches;
    own->n_stretches = tables->n_stretches;
    own->has_stream = !pnr_map_is_single(plan, tables) || !pnr_map_is_raw(plan);
    choose_groups(shape, &own->map, own);
    return PNR_OK;
}

static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    const pnr_cuda_shape shape = pnr_cuda_shape_of(plan);
    pnr_map_plan tables;
    shared own = {};
    work none = {};
    pnr_cuda_block list[N_BLOCKS], of_tables[PNR_MAP_TABLES];
    const int code = size(plan, &shape, &tables, &own, error);
    const pnr_map *m = &own.map;
    uint64_t host_bytes = 0;

    if (code != PNR_OK)
        return code;
    snprintf(choice->why, sizeof choice->why,
             "a map of %u codes, %u rows, %u lags: cuFFT at %u points, %zu windows and %zu lines a "
             "call",
             m->n_codes, m->n_rows, m->n_lags, m->n_transform, own.forward, own.inverse);
    choice->n_transform = shape.n_transform;
    list_blocks(&shape, &own, &none, list);
    pnr_cuda_blocks_count(list, N_BLOCKS, &choice->device_bytes, &choice->host_bytes);
    /* the transforms' work area is estimated as one group */
    choice->device_bytes +=
        (own.forward > own.inverse ? own.forward : own.inverse) * shape.row_stride * sizeof(float2);
    pnr_cuda_blocks_count(of_tables, pnr_map_list(&own.map, of_tables), shared_bytes, &host_bytes);
    *shared_bytes +=
        (uint64_t)m->n_codes * m->oversample * m->n_transform * sizeof(float2) + filter_bytes(m);
    pnr_map_plan_free(&tables);
    return PNR_OK;
}

/* --- life --- */

static int create_filter(const pnr_plan *plan, shared *own, pnr_error *error)
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
    if ((code = pnr_cuda_check(cudaMalloc((void **)&own->filter, bytes),
                               "GPU memory for the filter", error)) == PNR_OK)
        code = pnr_cuda_check(cudaMemcpy(own->filter, rounded, bytes, cudaMemcpyHostToDevice),
                              "upload of the filter", error);
    free(rounded);
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
        (code = create_filter(plan, own, error)) == PNR_OK)
        code = pnr_map_create_spectra(plan, common->shape.n_transform, NULL, &own->spectra, error);
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
    /* On the way out a status changes nothing. */
    pnr_cuda_blocks_free(list, pnr_map_list(&own->map, list));
    if (own->spectra != NULL)
        (void)cudaFree(own->spectra);
    if (own->filter != NULL)
        (void)cudaFree(own->filter);
    free(own->stretches);
    free(own);
    common->shared = NULL;
}

/* n_rows rows in place. Its work area is set later. */
static int create_transform(const pnr_map *m, size_t n_rows, cudaStream_t stream,
                            cufftHandle *handle, bool *has_handle, size_t *work_bytes,
                            pnr_error *error)
{
    int length = (int)m->n_transform;
    const int stride = (int)m->row_stride;
    size_t bytes = 0;
    int code = pnr_cuda_check_fft(cufftCreate(handle), "creating a transform", error);

    if (code != PNR_OK)
        return code;
    *has_handle = true;
    if ((code = pnr_cuda_check_fft(cufftSetAutoAllocation(*handle, 0), "transform's memory",
                                   error)) != PNR_OK ||
        (code =
             pnr_cuda_check_fft(cufftMakePlanMany(*handle, 1, &length, &length, 1, stride, &length,
                                                  1, stride, CUFFT_C2C, (int)n_rows, &bytes),
                                "planning the transforms", error)) != PNR_OK)
        return code;
    *work_bytes = bytes > *work_bytes ? bytes : *work_bytes;
    return pnr_cuda_check_fft(cufftSetStream(*handle, stream), "transform's stream", error);
}

static int create_transforms(const shared *own, work *w, cudaStream_t stream, pnr_error *error)
{
    size_t bytes = 256;
    int code;

    if ((code = create_transform(&own->map, own->forward, stream, &w->forward, &w->has_forward,
                                 &bytes, error)) != PNR_OK ||
        (code = create_transform(&own->map, own->inverse, stream, &w->inverse, &w->has_inverse,
                                 &bytes, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaMalloc(&w->fft_work, bytes),
                               "GPU memory for the transforms' work area", error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftSetWorkArea(w->forward, w->fft_work),
                                   "transform's work area", error)) != PNR_OK)
        return code;
    return pnr_cuda_check_fft(cufftSetWorkArea(w->inverse, w->fft_work), "transform's work area",
                              error);
}

static int create_product(work *w, cudaStream_t stream, pnr_error *error)
{
    int code = pnr_cuda_check_blas(cublasCreate(&w->blas), "creating the filter", error);

    if (code != PNR_OK) {
        w->blas = NULL;
        return code;
    }
    /* The stream first: setting it takes the workspace away. */
    if ((code = pnr_cuda_check_blas(cublasSetStream(w->blas, stream), "filter's stream", error)) !=
        PNR_OK)
        return code;
    return pnr_cuda_check_blas(cublasSetWorkspace(w->blas, w->blas_work, BLAS_WORK),
                               "filter's work area", error);
}

static int create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    work *w = (work *)calloc(1, sizeof *w);
    pnr_cuda_block list[N_BLOCKS];
    int code;

    slot->work = w;
    if (w == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    list_blocks(&common->shape, own, w, list);
    if ((code = pnr_cuda_blocks_allocate(list, N_BLOCKS, slot->stream, error)) != PNR_OK ||
        (code = create_transforms(own, w, slot->stream, error)) != PNR_OK)
        return code;
    return own->map.is_filtered ? create_product(w, slot->stream, error) : PNR_OK;
}

static void destroy(pnr_cuda_slot *slot)
{
    const pnr_cuda_shape shape = {};
    const shared none = {};
    work *w = (work *)slot->work;
    pnr_cuda_block list[N_BLOCKS];

    if (w == NULL)
        return;
    /* On the way out a status changes nothing. */
    if (w->has_forward)
        (void)cufftDestroy(w->forward);
    if (w->has_inverse)
        (void)cufftDestroy(w->inverse);
    if (w->blas != NULL)
        (void)cublasDestroy(w->blas);
    list_blocks(&shape, &none, w, list);
    pnr_cuda_blocks_free(list, N_BLOCKS);
    if (w->fft_work != NULL)
        (void)cudaFree(w->fft_work);
    free(w);
    slot->work = NULL;
}

/* --- one job --- */

/* Groups of n_rows rows; the last one goes beyond n, where there is room. */
static int transform(const pnr_map *m, cufftHandle handle, float2 *rows, size_t n, size_t n_rows,
                     int direction, pnr_error *error)
{
    int code = PNR_OK;

    for (size_t first = 0; code == PNR_OK && first < n; first += n_rows) {
        cufftComplex *group = rows + first * m->row_stride;

        code = pnr_cuda_check_fft(cufftExecC2C(handle, group, group, direction),
                                  direction == CUFFT_FORWARD ? "transform" : "inverse transform",
                                  error);
    }
    return code;
}

/* c'[k] = sum_j filter[k][j] c[gate_first + j], the gate in two pieces where it wraps. */
static int filter_lines(const shared *own, work *w, pnr_error *error)
{
    const pnr_map *m = &own->map;
    const int n = (int)m->gate_count, n_lines = (int)own->inverse;
    const int above = m->gate_first + m->gate_count > m->n_lags
                          ? (int)(m->gate_first + m->gate_count - m->n_lags)
                          : 0;
    const float2 one = {1, 0}, zero = {0, 0};
    int code = pnr_cuda_check_blas(
        cublasCgemm(w->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n_lines, n - above, &one, own->filter, n,
                    w->lines + m->gate_first, (int)m->row_stride, &zero, w->filtered, n),
        "filter", error);

    if (code == PNR_OK && above > 0)
        code = pnr_cuda_check_blas(cublasCgemm(w->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n_lines, above,
                                               &one, own->filter + (n - above), n, w->lines,
                                               (int)m->row_stride, &one, w->filtered, n),
                                   "filter", error);
    return code;
}

/* Some lines of one look: product, inverse, filter, powers. */
static int compute_part(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                        const pnr_map_part *part, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    work *w = (work *)slot->work;
    int code;

    if ((code = pnr_map_multiply(m, part, w->memory.bases, own->spectra, w->lines, slot->stream,
                                 error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_PRODUCT, error)) != PNR_OK ||
        (code = transform(m, w->inverse, w->lines, part->n_lines, own->inverse, CUFFT_INVERSE,
                          error)) != PNR_OK ||
        (m->is_filtered && (code = filter_lines(own, w, error)) != PNR_OK) ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK ||
        (code = pnr_map_keep(m, part, m->is_filtered ? w->filtered : w->lines, w->memory.values,
                             w->memory.power, slot->stream, error)) != PNR_OK)
        return code;
    return pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error);
}

/* All bases of a round, transformed. */
static int compute_bases(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_map_samples *samples, size_t first, size_t n_dwells,
                         pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_map *m = &own->map;
    work *w = (work *)slot->work;
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < own->n_stretches; i++)
        code =
            pnr_map_fold(m, samples, first * m->n_looks, n_dwells * m->n_looks, &own->stretches[i],
                         w->memory.stretched, w->memory.bases, slot->stream, error);
    if (code == PNR_OK)
        code = pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error);
    if (code == PNR_OK)
        code = transform(m, w->forward, w->memory.bases, n_dwells * bases_of(m), own->forward,
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
    const pnr_map_search search = pnr_map_search_of(common, slot, m, &w->memory, first, n_dwells);
    const size_t n_lines = n_dwells * lines_of(m);
    int code = compute_bases(common, slot, samples, first, n_dwells, error);

    for (uint32_t look = 0; look < m->n_looks; look++)
        for (size_t line = 0; code == PNR_OK && line < n_lines; line += own->inverse) {
            const size_t left = n_lines - line;
            const pnr_map_part part = {look, (uint32_t)line,
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

const pnr_cuda_method pnr_cuda_method_map = {
    "library", suits, open_shared, close_shared, create, destroy, compute,
};
