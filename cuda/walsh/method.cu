/* SPDX-License-Identifier: MIT */
/* Method walsh: m-sequences at one sample a chip, degrees 5 to 22, exact length, additions only. */
#include "cuda/base/memory.h"
#include "cuda/base/method.h"
#include "cuda/walsh/walsh.h"

#include <cstdio>
#include <cstdlib>

/* Values and windows of a group, at least: what the long kernels take at one time. */
static const size_t group_points = (size_t)1 << 23, group_least = 4;

/* What all slots share. */
typedef struct shared {
    const pnr_cuda_walsh_short *size; /* NULL: above degree 13 */
    pnr_cuda_walsh_tables tables;
    unsigned n_blocks; /* that the device runs at one time */
} shared;

/* Scratch of a group, device; see walsh.h. */
typedef struct scratch {
    void *sorted;
    pnr_cuda_energy *parts, *sums;
    float *limit;
    float2 *rows;
    double *noise;
    float *top, *above;
    uint32_t *n_listed, *listed;
    uint64_t *keys;
    float2 *cells;
} scratch;

enum { N_SIDES = 2, N_BLOCKS = 12, STATIC_BYTES = 4096 /* of a short kernel, at most */ };

/* A slot's own, above degree 13: two streams take the groups by turns, so that the rows of one run
 * beside the columns of another, and what a group leaves for its next kernel is still in the L2
 * cache. */
typedef struct work {
    scratch sides[N_SIDES];
    cudaStream_t side; /* the second stream: idle before and after, in the slot's order */
    cudaEvent_t fork, join;
} work;

static bool is_long(const pnr_plan *plan)
{
    return plan->m_degree > PNR_WALSH_SHORT_DEGREE;
}

static size_t group_windows(const pnr_plan *plan)
{
    const size_t fitting = group_points >> plan->m_degree;
    const size_t group = fitting < group_least ? group_least : fitting;

    return plan->batch < group ? plan->batch : group;
}

/* Groups of a full submit take both sides, if there are two. */
static int count_sides(const pnr_plan *plan)
{
    return plan->batch > group_windows(plan) ? 2 : 1;
}

static void list_blocks(const pnr_plan *plan, scratch *s, pnr_cuda_block list[N_BLOCKS])
{
    const size_t n = group_windows(plan), cells = n << plan->m_degree;
    const size_t rows = n * pnr_cuda_walsh_rows(plan->m_degree);
    const size_t chunks = n * pnr_cuda_walsh_chunks(plan->m_degree);
    const size_t sorted = n * pnr_cuda_walsh_max_quads(plan->m_degree) * PNR_WALSH_QUAD;
    const bool has_profile = plan->want_profile != PNR_WANT_NONE;

    list[0] = {&s->sorted, sorted * pnr_plan_sample_bytes(plan), false};
    list[1] = {(void **)&s->parts, chunks * sizeof *s->parts, false};
    list[2] = {(void **)&s->sums, n * sizeof *s->sums, false};
    list[3] = {(void **)&s->limit, n * sizeof *s->limit, false};
    list[4] = {(void **)&s->rows, cells * sizeof *s->rows, false};
    list[5] = {(void **)&s->noise, rows * sizeof *s->noise, false};
    list[6] = {(void **)&s->top, rows * sizeof *s->top, false};
    list[7] = {(void **)&s->above, cells * sizeof *s->above, false};
    list[8] = {(void **)&s->n_listed, n * sizeof *s->n_listed, false};
    list[9] = {(void **)&s->listed, cells * sizeof *s->listed, false};
    list[10] = {(void **)&s->keys, cells / 2 * sizeof *s->keys, false};
    list[11] = {(void **)&s->cells, has_profile ? cells * sizeof *s->cells : 0, false};
}

/* NULL: none. */
static const pnr_cuda_walsh_short *find_size(const pnr_plan *plan)
{
    return pnr_plan_windows(plan) == 1
               ? pnr_cuda_walsh_find(plan->format, plan->m_degree)
               : pnr_cuda_walsh_find_dwell(plan->n_looks > 1, plan->format, plan->m_degree);
}

/* What the method lacks for a plan; NULL: nothing. */
static const char *missing(const pnr_plan *plan)
{
    if (plan->m_degree == 0)
        return "code but an m-sequence of whole samples a chip";
    if (plan->m_degree < PNR_WALSH_MIN_DEGREE || plan->m_degree > PNR_WALSH_MAX_DEGREE)
        return "degrees but 5 to 22";
    if (plan->n_channels != 1)
        return "more channels than one in the samples";
    if (is_long(plan) && pnr_plan_windows(plan) != 1)
        return "dwells of several periods above degree 13";
    if (plan->n_looks > 1 && plan->want_profile == PNR_WANT_COMPLEX)
        return "complex profiles of incoherent dwells";
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
    int bytes;

    if (lack != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method walsh knows no %s",
                             lack);

    const pnr_cuda_walsh_short *size = find_size(plan);
    const size_t needed =
        size != NULL ? size->shared_bytes + STATIC_BYTES : pnr_cuda_walsh_long_bytes(plan->format);

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
             size != NULL ? "one kernel a submit" : "sorted, rows, columns and search");
    choice->n_transform = plan->n_samples + 1;
    if (is_long(plan)) {
        pnr_cuda_block list[N_BLOCKS];
        scratch none = {};

        list_blocks(plan, &none, list);
        for (int side = 0; side < count_sides(plan); side++)
            pnr_cuda_blocks_count(list, N_BLOCKS, &choice->device_bytes, &choice->host_bytes);
    }
    *shared_bytes = pnr_cuda_walsh_tables_bytes(plan->m_degree);
    return PNR_OK;
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
    own->size = find_size(plan);
    if ((code = pnr_cuda_walsh_tables_open(plan, &own->tables, error)) != PNR_OK)
        return code;
    if (own->size != NULL)
        return fit_blocks(plan, own, error);
    code = pnr_cuda_walsh_rows_open(plan->format, error);
    return code == PNR_OK ? pnr_cuda_walsh_columns_open(plan->m_degree, error) : code;
}

static void close_shared(pnr_cuda_common *common)
{
    shared *own = (shared *)common->shared;

    if (own == NULL)
        return;
    pnr_cuda_walsh_tables_close(&own->tables);
    free(own);
    common->shared = NULL;
}

static int create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const pnr_plan *plan = &common->plan;
    pnr_cuda_block list[N_BLOCKS];
    int code = PNR_OK;

    if (!is_long(plan))
        return PNR_OK;

    work *w = (work *)calloc(1, sizeof *w);

    slot->work = w;
    if (w == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    for (int side = 0; code == PNR_OK && side < count_sides(plan); side++) {
        list_blocks(plan, &w->sides[side], list);
        code = pnr_cuda_blocks_allocate(list, N_BLOCKS, slot->stream, error);
    }
    if (code != PNR_OK || count_sides(plan) == 1 ||
        (code = pnr_cuda_check(cudaStreamCreateWithFlags(&w->side, cudaStreamNonBlocking),
                               "creating a stream", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaEventCreateWithFlags(&w->fork, cudaEventDisableTiming),
                               "creating an event", error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaEventCreateWithFlags(&w->join, cudaEventDisableTiming),
                          "creating an event", error);
}

static void destroy(pnr_cuda_slot *slot)
{
    pnr_plan plan = {};
    work *w = (work *)slot->work;
    pnr_cuda_block list[N_BLOCKS];

    if (w == NULL)
        return;
    /* On the way out a status changes nothing. */
    if (w->side != NULL)
        (void)cudaStreamDestroy(w->side);
    if (w->fork != NULL)
        (void)cudaEventDestroy(w->fork);
    if (w->join != NULL)
        (void)cudaEventDestroy(w->join);
    plan.m_degree = PNR_WALSH_MAX_DEGREE; /* any: only the places count */
    for (int side = 0; side < N_SIDES; side++) {
        list_blocks(&plan, &w->sides[side], list);
        pnr_cuda_blocks_free(list, N_BLOCKS);
    }
    free(w);
    slot->work = NULL;
}

/* --- one job --- */

/* Dwells [first, first + count); s: NULL up to degree 13. */
static pnr_cuda_walsh part_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                              size_t first, size_t count, const scratch *s)
{
    const pnr_plan *plan = &common->plan;
    const shared *own = (const shared *)common->shared;
    const size_t n = plan->n_samples;
    pnr_cuda_walsh p = {};

    p.raw = slot->raw;
    p.job = slot->job;
    p.windows = slot->windows + first * pnr_plan_windows(plan);
    p.place = own->tables.place;
    p.lag_of = own->tables.lag_of;
    p.cell_of = own->tables.cell_of;
    p.dwells = slot->results.dwells + first;
    p.candidates = slot->results.candidates + first * plan->max_candidates;
    p.nonfinite = slot->results.nonfinite + first * pnr_plan_windows(plan);
    if (plan->want_profile == PNR_WANT_COMPLEX)
        p.profile = (float2 *)slot->results.profile + first * n;
    else if (plan->want_profile == PNR_WANT_POWER)
        p.power = slot->results.profile + first * n;
    p.thresholds = common->threshold;
    p.scale = (float)pnr_format_get(plan->format)->scale;
    p.conjugate = plan->conjugate ? -1.0f : 1.0f;
    p.first_dwell = (uint32_t)first;
    p.n_dwells = (uint32_t)count;
    p.n_periods = (uint32_t)pnr_plan_windows(plan);
    p.degree = plan->m_degree;
    p.max_candidates = (uint32_t)plan->max_candidates;
    p.gate_first = (uint32_t)plan->gate_first;
    p.gate_count = (uint32_t)plan->gate_count;
    p.source = own->tables.source;
    p.target = own->tables.target;
    p.first_quad = own->tables.first_quad;
    p.n_quads = own->tables.n_quads;
    if (s == NULL)
        return p;
    p.sorted = s->sorted;
    p.parts = s->parts;
    p.sums = s->sums;
    p.limit = s->limit;
    p.rows = s->rows;
    p.noise = s->noise;
    p.top = s->top;
    p.above = s->above;
    p.n_listed = s->n_listed;
    p.listed = s->listed;
    p.keys = s->keys;
    p.cells = s->cells;
    return p;
}

static int launch_short(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                        pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_cuda_walsh p = part_of(common, slot, 0, n_dwells, NULL);
    const size_t n_needed = (n_dwells + own->size->n_dwells - 1) / own->size->n_dwells;
    const unsigned n_blocks = n_needed < own->n_blocks ? (unsigned)n_needed : own->n_blocks;

    own->size->kernel<<<n_blocks, own->size->n_threads, own->size->shared_bytes, slot->stream>>>(p);
    return pnr_cuda_check_launch("walsh_windows", error);
}

static int launch_groups(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                         pnr_error *error)
{
    const work *w = (const work *)slot->work;
    const size_t group = group_windows(&common->plan);
    int side = 0, code = PNR_OK;

    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += group) {
        const size_t count = n_dwells - first < group ? n_dwells - first : group;
        const pnr_cuda_walsh p = part_of(common, slot, first, count, &w->sides[side]);
        const cudaStream_t stream = side == 0 ? slot->stream : w->side;

        if ((code = pnr_cuda_walsh_launch_rows(&p, common->plan.format, stream, error)) == PNR_OK)
            code = pnr_cuda_walsh_launch_columns(&p, stream, error);
        side = 1 - side;
    }
    return code;
}

/* The side stream begins after all that is in the slot's, which then waits for it. */
static int launch_long(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                       pnr_error *error)
{
    const work *w = (const work *)slot->work;
    int code;

    if (n_dwells <= group_windows(&common->plan))
        return launch_groups(common, slot, n_dwells, error);
    if ((code = pnr_cuda_check(cudaEventRecord(w->fork, slot->stream), "fork", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaStreamWaitEvent(w->side, w->fork, 0), "fork", error)) != PNR_OK)
        return code;
    code = launch_groups(common, slot, n_dwells, error);

    /* In any case: nothing may outlive this call. */
    pnr_error *const own_error = code == PNR_OK ? error : NULL;
    int join;

    if ((join = pnr_cuda_check(cudaEventRecord(w->join, w->side), "join", own_error)) == PNR_OK)
        join = pnr_cuda_check(cudaStreamWaitEvent(slot->stream, w->join, 0), "join", own_error);
    return code != PNR_OK ? code : join;
}

/* The kernels do all stages: the mark calls it the last of them. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const int code = is_long(&common->plan) ? launch_long(common, slot, n_dwells, error)
                                            : launch_short(common, slot, n_dwells, error);

    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error) : code;
}

const pnr_cuda_method pnr_cuda_method_walsh = {
    "walsh", suits, open_shared, close_shared, create, destroy, compute,
};
