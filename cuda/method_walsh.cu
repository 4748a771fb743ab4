/* SPDX-License-Identifier: MIT */
/* Method walsh: m-sequences at one sample a chip, degrees 5 to 22, exact length, additions only. */
#include "memory.h"
#include "method.h"
#include "walsh.h"

#include <cstdio>
#include <cstdlib>

/* Values that the kernels of the long sizes take at one time, and of all windows of a round. */
static const size_t group_points = (size_t)1 << 23, round_points = (size_t)1 << 24;

/* What all slots share. */
typedef struct shared {
    const pnr_cuda_walsh_short *size; /* NULL: above degree 13 */
    void *place, *lag_of, *cell_of;   /* device */
    double threshold;
    unsigned n_blocks; /* that the device runs at one time */
} shared;

/* A slot's own, device; above degree 13 only. See walsh.h. */
typedef struct work {
    float2 *rows;
    pnr_cuda_energy *parts;
    double *noise;
    float *top;
    float *above;
    uint32_t *listed;
    uint64_t *keys;
    float2 *cells;
    pnr_cuda_walsh_streams streams;
} work;

enum { N_BLOCKS = 8 };

static bool is_long(const pnr_plan *plan)
{
    return plan->m_degree > PNR_WALSH_SHORT_DEGREE;
}

static size_t entry_bytes(const pnr_plan *plan)
{
    return is_long(plan) ? sizeof(uint32_t) : sizeof(uint16_t);
}

/* Windows that are on the device at one time. */
static size_t round_windows(const pnr_plan *plan)
{
    const size_t fitting = round_points >> plan->m_degree;

    return plan->batch < fitting ? plan->batch : fitting;
}

static void list_blocks(const pnr_plan *plan, work *w, pnr_cuda_block list[N_BLOCKS])
{
    const size_t n = is_long(plan) ? round_windows(plan) : 0, cells = n << plan->m_degree;
    const size_t rows = n << (plan->m_degree - pnr_cuda_walsh_row_bits(plan->m_degree));
    const size_t tiles = n * pnr_cuda_walsh_tiles(plan->m_degree);
    const bool has_profile = plan->want_profile != PNR_WANT_NONE;

    list[0] = {(void **)&w->rows, cells * sizeof *w->rows, false};
    list[1] = {(void **)&w->parts, rows * sizeof *w->parts, false};
    list[2] = {(void **)&w->noise, tiles * sizeof *w->noise, false};
    list[3] = {(void **)&w->top, tiles * sizeof *w->top, false};
    list[4] = {(void **)&w->above, cells * sizeof *w->above, false};
    list[5] = {(void **)&w->listed, cells * sizeof *w->listed, false};
    list[6] = {(void **)&w->keys, cells / 2 * sizeof *w->keys, false};
    list[7] = {(void **)&w->cells, has_profile ? cells * sizeof *w->cells : 0, false};
}

/* What the method lacks for a plan; NULL: nothing. */
static const char *missing(const pnr_plan *plan)
{
    if (plan->m_degree == 0)
        return "code but an m-sequence at one sample a chip";
    if (plan->m_degree < PNR_WALSH_MIN_DEGREE || plan->m_degree > PNR_WALSH_MAX_DEGREE)
        return "degrees but 5 to 22";
    if (plan->n_channels != 1)
        return "more channels than one in the samples";
    if (plan->n_periods != 1 || plan->dwell == PNR_DWELL_INCOHERENT)
        return "dwells of several periods";
    if (plan->oversample != 1)
        return "half lags";
    if (plan->tune.num != 0)
        return "a tune";
    if (plan->format != PNR_FORMAT_CI8 && plan->format != PNR_FORMAT_CI16 &&
        plan->format != PNR_FORMAT_CF32)
        return "formats but ci8, ci16 and cf32";
    return NULL;
}

static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    const char *lack = missing(plan);
    pnr_cuda_block list[N_BLOCKS];
    work none = {};
    int bytes;

    if (lack != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method walsh knows no %s",
                             lack);

    const pnr_cuda_walsh_short *size = pnr_cuda_walsh_find(plan->format, plan->m_degree);
    const size_t needed = size != NULL ? size->shared_bytes : pnr_cuda_walsh_long_bytes();

    /* Without a device the answer is about any that is large enough. */
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                               (int)plan->device) != cudaSuccess)
        (void)cudaGetLastError();
    else if ((size_t)bytes < needed)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method walsh takes %zu bytes of shared memory a block "
                             "for degree %u, this GPU has %d",
                             needed, plan->m_degree, bytes);
    snprintf(choice->why, sizeof choice->why,
             "a Walsh-Hadamard transform of 2^%u values, additions only, %s", plan->m_degree,
             size != NULL ? "one kernel a submit" : "rows, columns and search");
    choice->n_transform = plan->n_samples + 1;
    list_blocks(plan, &none, list);
    pnr_cuda_blocks_count(list, N_BLOCKS, &choice->device_bytes, &choice->host_bytes);
    *shared_bytes = 3 * (plan->n_samples + 1) * entry_bytes(plan);
    return PNR_OK;
}

/* --- tables --- */

uint32_t pnr_cuda_walsh_row_bits(uint32_t degree)
{
    return degree <= PNR_WALSH_SHORT_DEGREE ? degree : degree == PNR_WALSH_MAX_DEGREE ? 12 : 11;
}

uint32_t pnr_cuda_walsh_tiles(uint32_t degree)
{
    return degree <= PNR_WALSH_SHORT_DEGREE ? 1 : 1u << (degree - PNR_WALSH_TILE_BITS);
}

size_t pnr_cuda_walsh_place(uint32_t degree, uint32_t row_bits, uint32_t m)
{
    const uint32_t piece = degree <= PNR_WALSH_SHORT_DEGREE ? 8 : 4; /* entries in 16 bytes */
    const uint32_t team = (1u << row_bits) / PNR_WALSH_EACH;
    const uint32_t in_row = m & ((1u << row_bits) - 1);
    const uint32_t t = in_row / PNR_WALSH_EACH, r = in_row % PNR_WALSH_EACH;

    return (m - in_row) + ((size_t)(r / piece) * team + t) * piece + r % piece;
}

/* As walsh.h says; each [N + 1]. */
static void fill_tables(const pnr_plan *plan, uint32_t *place, uint32_t *lag_of, uint32_t *cell_of)
{
    const size_t n = plan->n_samples;
    const unsigned degree = plan->m_degree;
    const uint32_t row_bits = pnr_cuda_walsh_row_bits(degree);
    size_t at[PNR_WALSH_MAX_DEGREE];
    uint32_t state = 0;

    for (unsigned j = 0; j < degree; j++)
        state |= (uint32_t)(plan->references[j][0] < 0) << j;
    for (size_t i = 0; i < n; i++) {
        place[pnr_cuda_walsh_place(degree, row_bits, state)] = (uint32_t)i;
        if ((state & (state - 1)) == 0)
            at[__builtin_ctz(state)] = i;
        state = state >> 1 | (uint32_t)(plan->references[(i + degree) % n][0] < 0) << (degree - 1);
    }
    for (size_t k = 0; k < n; k++) {
        uint32_t u = 0;

        for (unsigned j = 0; j < degree; j++) {
            u |= (uint32_t)(plan->references[at[j]][0] < 0) << j;
            at[j] = at[j] == 0 ? n - 1 : at[j] - 1;
        }
        cell_of[k] = u;
        lag_of[u] = (uint32_t)k;
    }
}

static int upload_table(const pnr_plan *plan, uint32_t *table, void **out, pnr_error *error)
{
    const size_t n = plan->n_samples + 1, bytes = n * entry_bytes(plan);
    int code = pnr_cuda_check(cudaMalloc(out, bytes), "GPU memory for a table", error);

    if (code != PNR_OK)
        return code;
    if (!is_long(plan)) /* in place: entry i is read before it is written */
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)table)[i] = (uint16_t)table[i];
    return pnr_cuda_check(cudaMemcpy(*out, table, bytes, cudaMemcpyHostToDevice),
                          "upload of a table", error);
}

static int create_tables(const pnr_plan *plan, shared *own, pnr_error *error)
{
    const size_t n = plan->n_samples + 1;
    uint32_t *tables = (uint32_t *)calloc(3 * n, sizeof *tables);
    int code;

    if (tables == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: no memory for tables of %zu", n);
    fill_tables(plan, tables, tables + n, tables + 2 * n);
    if ((code = upload_table(plan, tables, &own->place, error)) == PNR_OK &&
        (code = upload_table(plan, tables + n, &own->lag_of, error)) == PNR_OK)
        code = upload_table(plan, tables + 2 * n, &own->cell_of, error);
    free(tables);
    return code;
}

/* --- life --- */

static int fit_blocks(const pnr_plan *plan, shared *own, pnr_error *error)
{
    const void *kernel = (const void *)own->size->kernel;
    int n_processors = 0, n_blocks = 0, code;

    if ((code = pnr_cuda_check(cudaFuncSetAttribute(kernel,
                                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                    (int)own->size->shared_bytes),
                               "shared memory", error)) != PNR_OK ||
        (code = pnr_cuda_check(
             cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                 &n_blocks, kernel, (int)own->size->n_threads, own->size->shared_bytes),
             "blocks a multiprocessor", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount,
                                                      (int)plan->device),
                               "multiprocessors", error)) != PNR_OK)
        return code;
    if (n_blocks < 1)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method walsh does not fit this GPU at degree %u",
                             plan->m_degree);
    own->n_blocks = (unsigned)(n_blocks * n_processors);
    return PNR_OK;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)calloc(1, sizeof *own);
    int code;

    common->shared = own;
    if (own == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    own->size = pnr_cuda_walsh_find(plan->format, plan->m_degree);
    own->threshold = plan->threshold[0];
    if ((code = create_tables(plan, own, error)) != PNR_OK)
        return code;
    return own->size != NULL ? fit_blocks(plan, own, error) : pnr_cuda_walsh_long_open(error);
}

static void close_shared(pnr_cuda_common *common)
{
    shared *own = (shared *)common->shared;

    if (own == NULL)
        return;
    /* On the way out a status changes nothing. */
    if (own->place != NULL)
        (void)cudaFree(own->place);
    if (own->lag_of != NULL)
        (void)cudaFree(own->lag_of);
    if (own->cell_of != NULL)
        (void)cudaFree(own->cell_of);
    free(own);
    common->shared = NULL;
}

static int create_streams(work *w, pnr_error *error)
{
    pnr_cuda_walsh_streams *s = &w->streams;
    int code;

    if ((code = pnr_cuda_check(cudaStreamCreateWithFlags(&s->side, cudaStreamNonBlocking),
                               "creating a stream", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaEventCreateWithFlags(&s->fork, cudaEventDisableTiming),
                               "creating an event", error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaEventCreateWithFlags(&s->join, cudaEventDisableTiming),
                          "creating an event", error);
}

static int create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    work *w = (work *)calloc(1, sizeof *w);
    pnr_cuda_block list[N_BLOCKS];

    slot->work = w;
    if (w == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    list_blocks(&common->plan, w, list);
    w->streams.main = slot->stream;

    const int code = pnr_cuda_blocks_allocate(list, N_BLOCKS, slot->stream, error);

    return code == PNR_OK && is_long(&common->plan) ? create_streams(w, error) : code;
}

static void destroy(pnr_cuda_slot *slot)
{
    const pnr_plan plan = {};
    work *w = (work *)slot->work;
    pnr_cuda_block list[N_BLOCKS];

    if (w == NULL)
        return;
    /* On the way out a status changes nothing. */
    if (w->streams.side != NULL)
        (void)cudaStreamDestroy(w->streams.side);
    if (w->streams.fork != NULL)
        (void)cudaEventDestroy(w->streams.fork);
    if (w->streams.join != NULL)
        (void)cudaEventDestroy(w->streams.join);
    list_blocks(&plan, w, list);
    pnr_cuda_blocks_free(list, N_BLOCKS);
    free(w);
    slot->work = NULL;
}

/* --- one job --- */

/* Dwells [first, first + count). */
static pnr_cuda_walsh round_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                               size_t first, size_t count)
{
    const pnr_plan *plan = &common->plan;
    const shared *own = (const shared *)common->shared;
    const work *w = (const work *)slot->work;
    const size_t n = plan->n_samples;
    pnr_cuda_walsh p = {};

    p.raw = (const char *)slot->raw + first * n * common->shape.sample_bytes;
    p.job = slot->job;
    p.windows = slot->windows + first;
    p.place = own->place;
    p.lag_of = own->lag_of;
    p.cell_of = own->cell_of;
    p.dwells = slot->results.dwells + first;
    p.candidates = slot->results.candidates + first * plan->max_candidates;
    p.nonfinite = slot->results.nonfinite + first;
    if (plan->want_profile == PNR_WANT_COMPLEX)
        p.profile = (float2 *)slot->results.profile + first * n;
    else if (plan->want_profile == PNR_WANT_POWER)
        p.power = slot->results.profile + first * n;
    p.threshold = own->threshold;
    p.scale = (float)pnr_format_get(plan->format)->scale;
    p.conjugate = plan->conjugate ? -1.0f : 1.0f;
    p.first_window = (uint32_t)first;
    p.n_windows = (uint32_t)count;
    p.degree = plan->m_degree;
    p.max_candidates = (uint32_t)plan->max_candidates;
    p.gate_first = (uint32_t)plan->gate_first;
    p.gate_count = (uint32_t)plan->gate_count;
    p.row_bits = pnr_cuda_walsh_row_bits(plan->m_degree);
    p.rows = w->rows;
    p.parts = w->parts;
    p.noise = w->noise;
    p.top = w->top;
    p.above = w->above;
    p.listed = w->listed;
    p.keys = w->keys;
    p.cells = w->cells;
    return p;
}

static int launch(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                  pnr_error *error)
{
    const pnr_plan *plan = &common->plan;
    const shared *own = (const shared *)common->shared;
    const work *w = (const work *)slot->work;
    int code = PNR_OK;

    if (own->size != NULL) {
        const pnr_cuda_walsh p = round_of(common, slot, 0, n_dwells);
        const size_t n_needed = (n_dwells + own->size->n_windows - 1) / own->size->n_windows;
        const unsigned n_blocks = n_needed < own->n_blocks ? (unsigned)n_needed : own->n_blocks;

        own->size
            ->kernel<<<n_blocks, own->size->n_threads, own->size->shared_bytes, slot->stream>>>(p);
        return pnr_cuda_check_launch("walsh_windows", error);
    }

    const size_t fitting = group_points >> plan->m_degree, round = round_windows(plan);

    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += round) {
        const size_t left = n_dwells - first;
        const pnr_cuda_walsh p = round_of(common, slot, first, left < round ? left : round);

        code = pnr_cuda_walsh_long(&p, plan->format, fitting > 0 ? (uint32_t)fitting : 1,
                                   &w->streams, error);
    }
    return code;
}

/* The kernels do all stages: the mark calls it the last of them. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const int code = launch(common, slot, n_dwells, error);

    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error) : code;
}

const pnr_cuda_method pnr_cuda_method_walsh = {
    "walsh", suits, open_shared, close_shared, create, destroy, compute,
};
