/* SPDX-License-Identifier: MIT */
/* Method walsh at 2 to 16 samples a chip: each polyphase part as at one, then summed to profiles */
#include "cuda/steps/profiles.h"
#include "cuda/walsh/parts.h"

#include <climits>
#include <cstdio>
#include <cstdlib>

/*
 * Method walsh takes the parts as windows of its own, single precision, at one sample a chip, with
 * complex profiles out. In what it is given no window loses samples and none is not finite; what it
 * searches for itself it never finds.
 */

/* What all slots share. */
typedef struct shared {
    pnr_cuda_common inner;    /* walsh's */
    pnr_cuda_job *job;        /* device: never fewer windows than a launch has */
    pnr_cuda_window *windows; /* device, [parts of a round]: zeros */
} shared;

/* A slot's own, device but for inner. */
typedef struct work {
    pnr_cuda_profiles profiles;
    float2 *parts;                  /* [n_rows][q][L]: samples */
    pnr_cuda_results parts_results; /* of each part; the profile is W, [n_rows][q][L] */
    pnr_cuda_slot inner;            /* walsh's: its memory, on this slot's stream */
} work;

enum { N_BLOCKS = PNR_CUDA_PROFILES_BLOCKS + 5 };

/* Rows are profiles in lag order, of N values. */
static pnr_cuda_shape shape_of(const pnr_plan *plan)
{
    pnr_cuda_shape s = pnr_cuda_shape_for(plan, plan->n_samples);

    s.n_rows = s.round_dwells * s.dwell_rows; /* no more than there are */
    return s;
}

/* Walsh's plan for the parts of a round; references, threshold and gate are of no matter yet. */
static pnr_plan inner_plan(const pnr_plan *plan, const pnr_cuda_shape *shape)
{
    pnr_plan inner = {};

    inner.n_samples = plan->n_samples / plan->m_samples;
    inner.format = PNR_FORMAT_CF32;
    inner.n_channels = inner.n_used_channels = inner.n_codes = inner.n_hypotheses = 1;
    inner.n_looks = inner.exclusion_cells = inner.exclusion_rows = 1;
    inner.n_lags = inner.n_samples;
    inner.n_periods = inner.oversample = inner.m_samples = 1;
    inner.m_degree = plan->m_degree;
    inner.m_taps = plan->m_taps;
    inner.tune.den = 1;
    inner.gate_count = inner.n_samples;
    inner.max_candidates = 1;
    inner.batch = shape->n_rows * plan->m_samples;
    inner.depth = 1;
    inner.want_profile = PNR_WANT_COMPLEX;
    inner.device = plan->device;
    inner.method = "walsh";
    return inner;
}

static void list_blocks(const pnr_plan *plan, const pnr_cuda_shape *s, work *w,
                        pnr_cuda_block list[N_BLOCKS])
{
    const size_t n_parts = s->n_rows * plan->m_samples, n_values = s->n_rows * s->n_samples;
    pnr_cuda_results *results = &w->parts_results;
    size_t n = pnr_cuda_profiles_list(plan, s, &w->profiles, list);

    /* walsh reads 16 bytes at a time */
    list[n++] = {(void **)&w->parts, (n_values + 1) * sizeof *w->parts, false};
    list[n++] = {(void **)&results->profile, n_values * sizeof(float2), false};
    list[n++] = {(void **)&results->dwells, n_parts * sizeof *results->dwells, false};
    list[n++] = {(void **)&results->candidates, n_parts * sizeof *results->candidates, false};
    list[n++] = {(void **)&results->nonfinite, n_parts * sizeof *results->nonfinite, false};
}

static size_t shared_bytes_of(const pnr_plan *inner)
{
    return inner->batch * sizeof(pnr_cuda_window) + sizeof(pnr_cuda_job) + sizeof(double);
}

static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    const pnr_cuda_shape shape = shape_of(plan);
    pnr_cuda_block list[N_BLOCKS];
    work none = {};
    int code;

    if (plan->oversample != 1)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method walsh knows no half lags: there the code is no "
                             "sequence of +1 and -1");
    if (plan->m_samples > PNR_WALSH_MAX_PARTS)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method walsh knows 1 to %d samples a chip, not %zu",
                             PNR_WALSH_MAX_PARTS, plan->m_samples);

    const pnr_plan inner = inner_plan(plan, &shape);

    if ((code = pnr_cuda_profiles_suit(plan, &shape, error)) != PNR_OK ||
        (code = pnr_cuda_method_walsh.suits(&inner, choice, shared_bytes, error)) != PNR_OK)
        return code;
    snprintf(choice->why, sizeof choice->why,
             "%zu polyphase parts, each a Walsh-Hadamard transform of 2^%u values, summed",
             plan->m_samples, plan->m_degree);
    list_blocks(plan, &shape, &none, list);
    pnr_cuda_blocks_count(list, N_BLOCKS, &choice->device_bytes, &choice->host_bytes);
    *shared_bytes += shared_bytes_of(&inner);
    return PNR_OK;
}

/* --- life --- */

/* To the device, from `from`, or zeros. */
static int upload(void **to, const void *from, size_t bytes, pnr_error *error)
{
    const int code = pnr_cuda_check(cudaMalloc(to, bytes), "GPU memory for parts of a chip", error);

    if (code != PNR_OK)
        return code;
    return pnr_cuda_check(from != NULL ? cudaMemcpy(*to, from, bytes, cudaMemcpyHostToDevice)
                                       : cudaMemset(*to, 0, bytes),
                          "upload for parts of a chip", error);
}

/* Walsh's tables are made from one sample of each chip. */
static int open_inner(const pnr_plan *plan, pnr_cuda_common *inner, pnr_error *error)
{
    const size_t n = inner->plan.n_samples;
    double(*chips)[2] = (double(*)[2])calloc(n, sizeof *chips);
    int code;

    if (chips == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: no memory for %zu chips", n);
    for (size_t i = 0; i < n; i++) {
        chips[i][0] = plan->references[i * plan->m_samples][0];
        chips[i][1] = plan->references[i * plan->m_samples][1];
    }
    inner->plan.references = chips;
    code = pnr_cuda_method_walsh.open(&inner->plan, inner, error);
    inner->plan.references = NULL;
    free(chips);
    return code;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    const pnr_cuda_shape shape = shape_of(plan);
    const pnr_cuda_job all = {0, UINT32_MAX, 0};
    const double never = 2 * (double)plan->n_samples; /* |c|^2 <= N floor (Cauchy, Schwarz) */
    shared *own = (shared *)calloc(1, sizeof *own);
    int code;

    common->shared = own;
    if (own == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    own->inner.plan = inner_plan(plan, &shape);
    own->inner.method = &pnr_cuda_method_walsh;
    if ((code = upload((void **)&own->job, &all, sizeof all, error)) != PNR_OK ||
        (code = upload((void **)&own->windows, NULL, own->inner.plan.batch * sizeof *own->windows,
                       error)) != PNR_OK ||
        (code = upload((void **)&own->inner.threshold, &never, sizeof never, error)) != PNR_OK)
        return code;
    return open_inner(plan, &own->inner, error);
}

static void close_shared(pnr_cuda_common *common)
{
    shared *own = (shared *)common->shared;

    if (own == NULL)
        return;
    pnr_cuda_method_walsh.close(&own->inner);

    void *const all[] = {own->job, own->windows, own->inner.threshold};

    for (void *memory : all)
        if (memory != NULL)
            (void)cudaFree(memory); /* on the way out a status changes nothing */
    free(own);
    common->shared = NULL;
}

static int create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_cuda_shape shape = shape_of(&common->plan);
    work *w = (work *)calloc(1, sizeof *w);
    pnr_cuda_block list[N_BLOCKS];
    int code;

    slot->work = w;
    if (w == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    list_blocks(&common->plan, &shape, w, list);
    if ((code = pnr_cuda_blocks_allocate(list, N_BLOCKS, slot->stream, error)) != PNR_OK)
        return code;
    w->inner.stream = slot->stream;
    w->inner.raw = w->parts;
    w->inner.job = own->job;
    w->inner.windows = own->windows;
    w->inner.results = w->parts_results;
    return pnr_cuda_method_walsh.create(&own->inner, &w->inner, error);
}

static void destroy(pnr_cuda_slot *slot)
{
    const pnr_plan plan = {};
    const pnr_cuda_shape shape = {};
    work *w = (work *)slot->work;
    pnr_cuda_block list[N_BLOCKS];

    if (w == NULL)
        return;
    pnr_cuda_method_walsh.destroy(&w->inner);
    list_blocks(&plan, &shape, w, list);
    pnr_cuda_blocks_free(list, N_BLOCKS);
    free(w);
    slot->work = NULL;
}

/* --- one job --- */

/* Dwells [first, first + n_dwells) of the submit, from raw samples to results. */
static int compute_round(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_cuda_shape *s, const pnr_cuda_conversion *conversion,
                         size_t first, size_t n_dwells, pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const size_t n_parts = common->plan.m_samples, n_rows = n_dwells * s->dwell_rows;
    work *w = (work *)slot->work;
    int code;

    if ((code = pnr_cuda_convert_parts(s, conversion, n_parts, first, n_dwells, w->parts,
                                       slot->stream, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error)) != PNR_OK ||
        (code = pnr_cuda_method_walsh.compute(&own->inner, &w->inner, n_rows * n_parts, error)) !=
            PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_FORWARD, error)) != PNR_OK ||
        (code = pnr_cuda_walsh_sum_parts(
             (const float2 *)w->parts_results.profile, s->n_samples / n_parts, n_parts, n_rows,
             w->profiles.rows[0], s->row_stride, slot->stream, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK)
        return code;
    return pnr_cuda_profiles_search(common, s, slot, &w->profiles, first, n_dwells, error);
}

static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const pnr_cuda_shape shape = shape_of(&common->plan);
    const work *w = (const work *)slot->work;
    const pnr_cuda_conversion conversion = pnr_cuda_profiles_conversion(common, slot, &w->profiles);
    int code = pnr_cuda_profiles_measure(common, &shape, slot, &w->profiles, n_dwells, error);

    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += shape.round_dwells) {
        const size_t left = n_dwells - first;

        code = compute_round(common, slot, &shape, &conversion, first,
                             left < shape.round_dwells ? left : shape.round_dwells, error);
    }
    return code;
}

const pnr_cuda_method pnr_cuda_method_walsh_parts = {
    "walsh", suits, open_shared, close_shared, create, destroy, compute,
};
