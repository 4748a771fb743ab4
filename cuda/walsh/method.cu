/* SPDX-License-Identifier: MIT */
/* Method walsh: correlates m-sequences of degrees 5 to 22 at one sample per chip, at their exact
 * length, by additions alone. */
#include "cuda/base/method.h"
#include "cuda/base/resources.h"
#include "cuda/walsh/walsh.h"

#include <cstdio>

/* Above degree 13 the windows of a submit are computed in groups. Each group except the last has at
 * least group_points values and at least group_least windows. */
static const size_t group_points = (size_t)1 << 23, group_least = 4;

/* Data that all slots share. */
typedef struct shared {
    const pnr_cuda_walsh_short *size; /* the short kernel; NULL above degree 13 */
    pnr_cuda_walsh tables;            /* only the tables are set */
    uint32_t n_blocks;                /* blocks that the device runs at one time */
} shared;

enum { N_SIDES = 2, STATIC_BYTES = 4096 /* greatest static shared memory of a short kernel */ };

/* Data of one slot above degree 13. The groups alternate between two streams. So the device
 * transforms the rows of one group while it transforms the columns of another. Each kernel finds
 * the output of the previous kernel of its group in the L2 cache. */
typedef struct work {
    pnr_cuda_walsh sides[N_SIDES]; /* one for each stream; only the scratch pointers are set */
    pnr_cuda_side side;
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

/* Returns the number of streams: two if a full submit has several groups. */
static int count_sides(const pnr_plan *plan)
{
    return plan->batch > group_windows(plan) ? 2 : 1;
}

static size_t list_scratch(const pnr_plan *plan, pnr_cuda_walsh *s, pnr_cuda_buffer *list)
{
    const size_t n = group_windows(plan), cells = n << plan->m_degree;
    const size_t rows = n * pnr_cuda_walsh_rows(plan->m_degree);
    const size_t chunks = n * pnr_cuda_walsh_chunks(plan->m_degree);
    const size_t sorted = n * pnr_cuda_walsh_max_quads(plan->m_degree) * PNR_WALSH_QUAD;
    const bool has_profile = plan->want_profile != PNR_WANT_NONE;
    size_t i = 0;

    list[i++] = {&s->sorted, sorted * pnr_plan_sample_bytes(plan), false};
    list[i++] = {(void **)&s->parts, chunks * sizeof *s->parts, false};
    list[i++] = {(void **)&s->sums, n * sizeof *s->sums, false};
    list[i++] = {(void **)&s->limit, n * sizeof *s->limit, false};
    list[i++] = {(void **)&s->rows, cells * sizeof *s->rows, false};
    list[i++] = {(void **)&s->noise, rows * sizeof *s->noise, false};
    list[i++] = {(void **)&s->top, rows * sizeof *s->top, false};
    list[i++] = {(void **)&s->above, cells * sizeof *s->above, false};
    list[i++] = {(void **)&s->n_listed, n * sizeof *s->n_listed, false};
    list[i++] = {(void **)&s->listed, cells * sizeof *s->listed, false};
    list[i++] = {(void **)&s->keys, cells / 2 * sizeof *s->keys, false};
    list[i++] = {(void **)&s->cells, has_profile ? cells * sizeof *s->cells : 0, false};
    return i;
}

static size_t list_work(const pnr_cuda_common *common, void *memory, pnr_cuda_buffer *list)
{
    const pnr_plan *plan = &common->plan;
    work *w = (work *)memory;
    size_t n = 0;

    for (int side = 0; is_long(plan) && side < count_sides(plan); side++)
        n += list_scratch(plan, &w->sides[side], list + n);
    return n;
}

static size_t list_shared(const pnr_cuda_common *common, pnr_cuda_buffer *list)
{
    return pnr_cuda_walsh_tables_list(common->plan.m_degree, &((shared *)common->shared)->tables,
                                      list);
}

/* Finds the short kernel for a plan; NULL: none. */
static const pnr_cuda_walsh_short *find_size(const pnr_plan *plan)
{
    return pnr_plan_windows(plan) == 1
               ? pnr_cuda_walsh_find(plan->format, plan->m_degree)
               : pnr_cuda_walsh_find_dwell(plan->n_looks > 1, plan->format, plan->m_degree);
}

/* Returns the reason why the method does not support a plan. NULL: the plan is supported. */
static const char *find_missing(const pnr_plan *plan)
{
    if (plan->m_degree == 0)
        return "code but an m-sequence of whole samples a chip";
    if (plan->m_samples > 1)
        return "m-sequence at several samples a chip";
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

static int suits(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error)
{
    const size_t block_bytes = pnr_cuda_block_bytes(plan->device);
    shared *own = (shared *)common->shared;

    if (!pnr_plan_is_plain(plan))
        return PNR_EUNSUPPORTED;

    const char *lack = find_missing(plan);

    if (lack != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method walsh knows no %s",
                             lack);
    own->size = find_size(plan);

    const size_t needed = own->size != NULL ? own->size->shared_bytes + STATIC_BYTES
                                            : pnr_cuda_walsh_long_bytes(plan->format);

    if (block_bytes < needed)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method walsh takes %zu bytes of shared memory a block "
                             "for degree %u, this GPU has %zu",
                             needed, plan->m_degree, block_bytes);
    snprintf(choice->why, sizeof choice->why,
             "a Walsh-Hadamard transform of 2^%u values, additions only, %s", plan->m_degree,
             own->size != NULL ? "one kernel a submit" : "sorted, rows, columns and search");
    choice->n_transform = plan->n_samples + 1;
    return PNR_OK;
}

/* --- create and destroy --- */

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)common->shared;
    int code = pnr_cuda_walsh_tables_fill(plan, &own->tables, error);

    if (code != PNR_OK)
        return code;
    if (own->size == NULL) {
        code = pnr_cuda_walsh_rows_open(plan->format, error);
        return code == PNR_OK ? pnr_cuda_walsh_columns_open(plan->m_degree, error) : code;
    }
    code = pnr_cuda_fit_blocks((const void *)own->size->kernel, own->size->n_threads,
                               own->size->shared_bytes, &own->n_blocks, error);
    if (code == PNR_OK && own->n_blocks == 0)
        code = pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method walsh does not fit this GPU at degree %u",
                             plan->m_degree);
    return code;
}

static int create_work(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const pnr_plan *plan = &common->plan;

    return is_long(plan) && count_sides(plan) > 1
               ? pnr_cuda_side_create(&((work *)slot->work)->side, error)
               : PNR_OK;
}

static void destroy_work(void *memory)
{
    pnr_cuda_side_destroy(&((work *)memory)->side);
}

/* --- one submit --- */

/* Returns the argument of the kernels for dwells [first, first + count) on a stream. */
static pnr_cuda_walsh argument_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                                  size_t first, size_t count, int side)
{
    const pnr_plan *plan = &common->plan;
    const shared *own = (const shared *)common->shared;
    const size_t n = plan->n_samples;
    pnr_cuda_walsh p = ((const work *)slot->work)->sides[side];

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
    p.has_outside = plan->has_outside;
    p.gate_first = (uint32_t)plan->gate_first;
    p.gate_count = (uint32_t)plan->gate_count;
    p.source = own->tables.source;
    p.target = own->tables.target;
    p.first_quad = own->tables.first_quad;
    p.n_quads = own->tables.n_quads;
    return p;
}

static int launch_short(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                        pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_cuda_walsh p = argument_of(common, slot, 0, n_dwells, 0);
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
        const pnr_cuda_walsh p = argument_of(common, slot, first, count, side);
        const cudaStream_t stream = side == 0 ? slot->stream : w->side.stream;

        if ((code = pnr_cuda_walsh_launch_rows(&p, common->plan.format, stream, error)) == PNR_OK)
            code = pnr_cuda_walsh_launch_columns(&p, stream, error);
        side = 1 - side;
    }
    return code;
}

static int launch_long(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                       pnr_error *error)
{
    const pnr_cuda_side *side = &((const work *)slot->work)->side;
    int code;

    if (n_dwells <= group_windows(&common->plan))
        return launch_groups(common, slot, n_dwells, error);
    if ((code = pnr_cuda_side_fork(side, slot->stream, error)) != PNR_OK)
        return code;
    code = launch_groups(common, slot, n_dwells, error);
    return pnr_cuda_side_join(side, slot->stream, code, error);
}

/* The kernels do all stages, so their time counts as the time of PNR_STAGE_PEAK. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const int code = is_long(&common->plan) ? launch_long(common, slot, n_dwells, error)
                                            : launch_short(common, slot, n_dwells, error);

    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error) : code;
}

const pnr_cuda_method pnr_cuda_method_walsh = {
    "walsh",     sizeof(shared), sizeof(work), suits,        list_shared, list_work,
    open_shared, NULL,           create_work,  destroy_work, compute,
};
