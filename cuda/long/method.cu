/* SPDX-License-Identifier: MIT */
/* Method fused above 16384 points, to 2^22: three kernels and a search. */
#include "cuda/long/long.h"
#include "cuda/steps/convert.h"
#include "cuda/steps/energy.h"

#include <cstdio>
#include <cstdlib>

typedef pnr_fused_long_shared shared;

/* Data of one slot. Its arrays are in device memory, with the shapes of pnr_fused_long. */
typedef struct work {
    pnr_fused_long memory; /* only its pointers to memory of the slot are set */
    /* used if pnr_fused_long_is_prepared: */
    pnr_cuda_energy *segments; /* [n_windows][n_segments] */
    pnr_cuda_energy *sums;     /* [n_windows] */
    pnr_cuda_side side;
} work;

bool pnr_fused_long_is_prepared(const pnr_plan *plan)
{
    return pnr_plan_windows(plan) != 1 || plan->n_channels != 1 || plan->tune.num != 0 ||
           (plan->format != PNR_FORMAT_CI8 && plan->format != PNR_FORMAT_CI16 &&
            plan->format != PNR_FORMAT_CF32);
}

static pnr_format input_format(const pnr_plan *plan)
{
    return pnr_fused_long_is_prepared(plan) ? PNR_FORMAT_CF32 : plan->format;
}

static size_t list_work(const pnr_cuda_common *common, void *memory, pnr_cuda_buffer *list)
{
    const pnr_plan *plan = &common->plan;
    const pnr_cuda_shape *s = &common->shape;
    work *w = (work *)memory;
    pnr_fused_long *m = &w->memory;
    const size_t n_points = (size_t)1 << pnr_fused_long_bits(s->n_samples);
    const size_t n_tiles = s->batch * (n_points / PNR_FUSED_LONG_TILE);
    const size_t n_parts = pnr_fused_long_is_prepared(plan) ? 0 : n_tiles;
    const size_t n_sums = pnr_fused_long_is_prepared(plan) ? s->n_windows : 0;
    size_t n = 0;

    list[n++] = {(void **)&m->rows, s->batch * plan->n_looks * n_points * sizeof *m->rows, false};
    list[n++] = {(void **)&m->parts, n_parts * sizeof *m->parts, false};
    list[n++] = {(void **)&m->states, s->batch * sizeof *m->states, false};
    list[n++] = {(void **)&m->tiles, n_tiles * sizeof *m->tiles, false};
    list[n++] = {(void **)&m->listed, n_tiles * PNR_FUSED_LONG_TILE * sizeof *m->listed, false};
    list[n++] = {(void **)&m->above, s->batch * s->n_samples * sizeof *m->above, false};
    list[n++] = {(void **)&m->keys, s->batch * (s->n_samples / 2 + 1) * sizeof *m->keys, false};
    list[n++] = {(void **)&w->segments, n_sums * s->n_segments * sizeof *w->segments, false};
    list[n++] = {(void **)&w->sums, n_sums * sizeof *w->sums, false};
    return n;
}

/* Returns the number of values in the table of twiddles. */
static size_t count_powers(uint32_t bits)
{
    const uint32_t row_bits = pnr_fused_long_row_bits(bits), column_bits = bits - row_bits;

    return ((size_t)PNR_FUSED_LONG_POWERS << column_bits) + ((size_t)(2 * 5) << row_bits) / 32 +
           ((size_t)column_bits << row_bits);
}

size_t pnr_fused_long_list(const pnr_plan *plan, pnr_fused_long_shared *own, pnr_cuda_buffer *list)
{
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);

    list[0] = {(void **)&own->spectrum, sizeof *own->spectrum << bits, false};
    list[1] = {(void **)&own->powers, count_powers(bits) * sizeof *own->powers, false};
    return 2;
}

static size_t list_shared(const pnr_cuda_common *common, pnr_cuda_buffer *list)
{
    return pnr_fused_long_list(&common->plan, (shared *)common->shared, list);
}

/* Returns the reason why the method does not support a plan. NULL: the plan is supported. */
static const char *find_missing(const pnr_plan *plan)
{
    if (plan->oversample != 1)
        return "half lags above 16384 points";
    if (pnr_fused_long_bits(plan->n_samples) > PNR_FUSED_LONG_LAST)
        return "transforms above 2^22 points, which would take a pass more: library does them";
    if (plan->n_looks > PNR_FUSED_LONG_SUMS)
        return "dwells of more than 65535 incoherent periods";
    if ((plan->n_samples - 1) / PNR_CUDA_BLOCK_SAMPLES + 1 >
        (size_t)INT32_MAX / (plan->batch * pnr_plan_windows(plan)))
        return "submits of so many windows";
    return NULL;
}

int pnr_fused_long_suits(const pnr_plan *plan, pnr_error *error)
{
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    const bool is_sum = plan->n_looks > 1;
    const size_t block_bytes = pnr_cuda_block_bytes(plan->device);
    const char *lack = find_missing(plan);

    if (lack != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method fused knows no %s",
                             lack);
    if (block_bytes < pnr_fused_long_bytes(bits, is_sum))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused takes %zu bytes of shared memory a block "
                             "for %zu points, this GPU has %zu",
                             pnr_fused_long_bytes(bits, is_sum), (size_t)1 << bits, block_bytes);
    return PNR_OK;
}

static int suits(const pnr_plan *plan, pnr_cuda_common *, pnr_engine_choice *choice,
                 pnr_error *error)
{
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    int code;

    if (!pnr_plan_is_plain(plan) || bits < PNR_FUSED_LONG_FIRST)
        return PNR_EUNSUPPORTED;
    if ((code = pnr_fused_long_suits(plan, error)) != PNR_OK)
        return code;

    const uint32_t row_bits = pnr_fused_long_row_bits(bits);

    choice->n_transform = (size_t)1 << bits;
    snprintf(choice->why, sizeof choice->why,
             "three kernels, %u x %u points%s, and a search, %u dwells at a time",
             1u << (bits - row_bits), 1u << row_bits,
             plan->n_samples < choice->n_transform ? " (extended periodically)" : "",
             pnr_fused_long_group(bits, plan->n_looks, plan->batch));
    return PNR_OK;
}

/* --- create and destroy --- */

/* Sets out[i * stride] = W_n^(index * 2^i) for i < n_powers. */
static void fill_powers(float2 *out, size_t stride, uint32_t n_powers, size_t index, size_t n)
{
    for (uint32_t i = 0; i < n_powers; i++) {
        const double angle = -2 * M_PI * (double)((index << i) % n) / (double)n;

        out[i * stride] = make_float2((float)cos(angle), (float)sin(angle));
    }
}

/* Uploads the powers of the twiddles: for rows, then for threads, then for columns. */
static int upload_powers(uint32_t bits, float2 *out, pnr_error *error)
{
    const uint32_t row_bits = pnr_fused_long_row_bits(bits), column_bits = bits - row_bits;
    const size_t length = (size_t)1 << bits, row_length = (size_t)1 << row_bits;
    const size_t n_rows = (size_t)1 << column_bits, n_threads = row_length / 32;
    float2 *powers = (float2 *)calloc(count_powers(bits), sizeof *powers);
    float2 *of_thread = powers + n_rows * PNR_FUSED_LONG_POWERS;
    float2 *of_column = of_thread + 2 * 5 * n_threads;
    int code;

    if (powers == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    for (size_t row = 0; row < n_rows; row++)
        fill_powers(powers + row * PNR_FUSED_LONG_POWERS, 1, row_bits, row, length);
    for (uint32_t u = 0; u < n_threads; u++) {
        fill_powers(of_thread + u, n_threads, 5, pnr_fused_long_turn(row_bits, u), row_length);
        fill_powers(of_thread + 5 * n_threads + u, n_threads, 5, u, row_length);
    }
    for (size_t column = 0; column < row_length; column++)
        fill_powers(of_column + column, row_length, column_bits, column, length);
    code = pnr_cuda_upload(out, powers, count_powers(bits) * sizeof *powers, error);
    free(powers);
    return code;
}

static size_t place_of(size_t n_points, size_t k)
{
    return pnr_fused_long_place(pnr_fused_long_bits(n_points), k);
}

int pnr_fused_long_upload(const pnr_plan *plan, pnr_fused_long_shared *own, pnr_error *error)
{
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    const double scale = pnr_fused_long_is_prepared(plan) ? 1 : pnr_format_get(plan->format)->scale;
    int code;

    if ((code = pnr_cuda_upload_spectra(plan, (size_t)1 << bits, place_of, scale, own->spectrum,
                                        error)) != PNR_OK ||
        (code = upload_powers(bits, own->powers, error)) != PNR_OK)
        return code;
    return pnr_fused_long_open(bits, input_format(plan), plan->n_looks > 1, &own->set, error);
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    return pnr_fused_long_upload(plan, (shared *)common->shared, error);
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

pnr_fused_long pnr_fused_long_argument(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                                       const pnr_fused_long_shared *own,
                                       const pnr_fused_long *memory)
{
    const pnr_plan *plan = &common->plan;
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    pnr_fused_long p = *memory;

    p.n_points = 1u << bits;
    p.row_bits = pnr_fused_long_row_bits(bits);
    p.raw = pnr_fused_long_is_prepared(plan) ? p.rows : slot->raw;
    p.windows = slot->windows;
    p.job = slot->job;
    p.spectrum = (const float4 *)own->spectrum;
    p.row_powers = own->powers;
    p.thread_powers = p.row_powers + (p.n_points >> p.row_bits) * PNR_FUSED_LONG_POWERS;
    p.column_powers = p.thread_powers + 2 * 5 * ((size_t)1 << p.row_bits) / 32;
    p.dwells = slot->results.dwells;
    p.candidates = slot->results.candidates;
    p.nonfinite = slot->results.nonfinite;
    if (plan->want_profile == PNR_WANT_COMPLEX)
        p.profile = (float2 *)slot->results.profile;
    else
        p.power = slot->results.profile;
    p.scale = pnr_format_get(plan->format)->scale;
    p.code_energy = common->code_energy;
    p.floor_of_energy = common->code_energy / (double)plan->n_samples;
    p.threshold = common->threshold;
    p.conjugate = plan->conjugate && !pnr_fused_long_is_prepared(plan) ? -1.0f : 1.0f;
    p.per_point = 2.0f / (float)p.n_points;
    p.n_samples = (uint32_t)plan->n_samples;
    p.n_sums = (uint32_t)plan->n_looks;
    p.n_input = pnr_fused_long_is_prepared(plan) ? p.n_points : p.n_samples;
    p.n_tiles = p.n_points / PNR_FUSED_LONG_TILE;
    p.max_candidates = (uint32_t)plan->max_candidates;
    p.has_outside = plan->has_outside;
    p.gate_first = (uint32_t)plan->gate_first;
    p.gate_count = (uint32_t)plan->gate_count;
    return p;
}

/* Measures the dwells, and writes their extended samples into the memory of the rows. */
static int prepare_samples(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                           pnr_error *error)
{
    const work *w = (const work *)slot->work;
    const pnr_cuda_samples samples = pnr_cuda_samples_of(common, slot);
    pnr_cuda_shape shape = common->shape;
    const pnr_cuda_measured measured = {
        slot->windows,     w->segments,        w->sums, w->memory.states, slot->results.nonfinite,
        common->threshold, common->code_energy};
    const pnr_cuda_conversion conversion = {samples,
                                            slot->windows,
                                            w->sums,
                                            common->tune_step,
                                            common->plan.tune.num != 0,
                                            common->plan.conjugate};
    int code;

    shape.n_transform = shape.row_stride = (size_t)1 << pnr_fused_long_bits(common->plan.n_samples);
    if ((code = pnr_cuda_measure(&shape, &samples, &measured, n_dwells, slot->stream, error)) !=
            PNR_OK ||
        (code = pnr_cuda_convert(&shape, &conversion, n_dwells, w->memory.rows, slot->stream,
                                 error)) != PNR_OK)
        return code;
    return pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error);
}

/* The kernels do all other stages, so their time counts as the time of PNR_STAGE_PEAK. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_fused_long p =
        pnr_fused_long_argument(common, slot, own, &((const work *)slot->work)->memory);
    const uint32_t bits = pnr_fused_long_bits(common->plan.n_samples);
    int code = PNR_OK;

    if (pnr_fused_long_is_prepared(&common->plan))
        code = prepare_samples(common, slot, n_dwells, error);
    if (code == PNR_OK)
        code = pnr_fused_long_enqueue(
            &p, &own->set, pnr_fused_long_group(bits, p.n_sums, common->plan.batch),
            (uint32_t)n_dwells, slot->stream, &((const work *)slot->work)->side, error);
    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error) : code;
}

const pnr_cuda_method pnr_cuda_method_fused_long = {
    "fused",     sizeof(shared), sizeof(work), suits,        list_shared, list_work,
    open_shared, NULL,           create_work,  destroy_work, compute,
};
