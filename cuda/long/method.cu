/* SPDX-License-Identifier: MIT */
/* Method fused above 16384 points: three kernels and a search; to 2^22 points. */
#include "cuda/base/memory.h"
#include "cuda/base/method.h"
#include "cuda/long/long.h"
#include "cuda/steps/convert.h"
#include "cuda/steps/energy.h"

#include <cassert>
#include <cstdio>
#include <cstdlib>

/* What all slots share. */
typedef struct shared {
    pnr_fused_long_set set;
    float2 *spectrum; /* [L], device */
    float2 *powers;   /* of twiddles: of rows, threads and columns; device */
} shared;

/* A slot's own, device; the shapes are those of pnr_fused_long. */
typedef struct work {
    pnr_fused_long memory; /* its pointers to what the slot owns */
    /* is_prepared: */
    pnr_cuda_energy *segments; /* [n_windows][n_segments] */
    pnr_cuda_energy *sums;     /* [n_windows] */
    pnr_fused_long_streams streams;
} work;

enum { N_BLOCKS = 9 };

/* What the first kernel does not read itself: another step measures and converts it, sums its
 * periods and extends it, at the price of a pass more over memory. */
static bool is_prepared(const pnr_plan *plan)
{
    return pnr_plan_windows(plan) != 1 || plan->n_channels != 1 || plan->tune.num != 0 ||
           (plan->format != PNR_FORMAT_CI8 && plan->format != PNR_FORMAT_CI16 &&
            plan->format != PNR_FORMAT_CF32);
}

static pnr_format input_format(const pnr_plan *plan)
{
    return is_prepared(plan) ? PNR_FORMAT_CF32 : plan->format;
}

static void list_blocks(const pnr_plan *plan, work *w, pnr_cuda_block list[N_BLOCKS])
{
    pnr_fused_long *m = &w->memory;
    const size_t n = plan->n_samples, batch = plan->batch,
                 n_windows = batch * pnr_plan_windows(plan);
    const size_t n_segments = (n + PNR_CUDA_SEGMENT - 1) / PNR_CUDA_SEGMENT;
    const uint32_t bits = pnr_fused_long_bits(n);
    const size_t n_points = (size_t)1 << bits, n_tiles = batch * (n_points / PNR_FUSED_LONG_TILE);

    list[0] = {(void **)&m->rows, batch * plan->n_looks * n_points * sizeof *m->rows, false};
    list[1] = {(void **)&m->parts, is_prepared(plan) ? 0 : n_tiles * sizeof *m->parts, false};
    list[2] = {(void **)&m->states, batch * sizeof *m->states, false};
    list[3] = {(void **)&m->tiles, n_tiles * sizeof *m->tiles, false};
    list[4] = {(void **)&m->listed, n_tiles * PNR_FUSED_LONG_TILE * sizeof *m->listed, false};
    list[5] = {(void **)&m->above, batch * n * sizeof *m->above, false};
    list[6] = {(void **)&m->keys, batch * (n / 2 + 1) * sizeof *m->keys, false};
    list[7] = {(void **)&w->segments,
               is_prepared(plan) ? n_windows * n_segments * sizeof *w->segments : 0, false};
    list[8] = {(void **)&w->sums, is_prepared(plan) ? n_windows * sizeof *w->sums : 0, false};
}

/* Values of the twiddles' table. */
static size_t n_powers(uint32_t bits)
{
    const uint32_t row_bits = pnr_fused_long_row_bits(bits), column_bits = bits - row_bits;

    return ((size_t)PNR_FUSED_LONG_POWERS << column_bits) + ((size_t)(2 * 5) << row_bits) / 32 +
           ((size_t)column_bits << row_bits);
}

bool pnr_cuda_fused_is_long(size_t n_samples)
{
    return pnr_fused_long_bits(n_samples) >= PNR_FUSED_LONG_FIRST;
}

/* What the method lacks for a plan; NULL: nothing. */
static const char *missing(const pnr_plan *plan)
{
    if (plan->oversample != 1)
        return "half lags above 16384 points";
    if (pnr_fused_long_bits(plan->n_samples) > PNR_FUSED_LONG_LAST)
        return "transforms above 2^22 points, which would take a pass more: library does them";
    if (plan->n_looks > PNR_FUSED_LONG_SUMS)
        return "dwells of more than 65535 incoherent periods";
    if ((plan->n_samples - 1) / PNR_CUDA_SEGMENT + 1 >
        (size_t)INT32_MAX / (plan->batch * pnr_plan_windows(plan)))
        return "submits of so many windows";
    return NULL;
}

static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    const char *lack = missing(plan);
    pnr_cuda_block list[N_BLOCKS];
    work none = {};

    if (lack != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method fused knows no %s",
                             lack);

    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    const uint32_t row_bits = pnr_fused_long_row_bits(bits);
    int bytes;

    /* Without a device the answer is about any that is large enough. */
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                               (int)plan->device) != cudaSuccess)
        (void)cudaGetLastError();
    else if ((size_t)bytes < pnr_fused_long_bytes(bits, plan->n_looks > 1))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused takes %zu bytes of shared memory a block "
                             "for %zu points, this GPU has %d",
                             pnr_fused_long_bytes(bits, plan->n_looks > 1), (size_t)1 << bits,
                             bytes);
    choice->n_transform = (size_t)1 << bits;
    snprintf(choice->why, sizeof choice->why,
             "three kernels, %u x %u points%s, and a search, %u dwells at a time",
             1u << (bits - row_bits), 1u << row_bits,
             plan->n_samples < choice->n_transform ? " (extended periodically)" : "",
             pnr_fused_long_group(bits, plan->n_looks, plan->batch));
    list_blocks(plan, &none, list);
    pnr_cuda_blocks_count(list, N_BLOCKS, &choice->device_bytes, &choice->host_bytes);
    *shared_bytes = (choice->n_transform + n_powers(bits)) * sizeof(float2);
    return PNR_OK;
}

/* --- life --- */

static int upload(const void *from, size_t bytes, const char *what, void **to, pnr_error *error)
{
    const int code = pnr_cuda_check(cudaMalloc(to, bytes), what, error);

    return code == PNR_OK
               ? pnr_cuda_check(cudaMemcpy(*to, from, bytes, cudaMemcpyHostToDevice), what, error)
               : code;
}

/* conj(DFT of the code, zero beyond N) * scale / L in the kernels' order, in double,
 * rounded once. */
static int create_spectrum(const pnr_plan *plan, float2 **out, pnr_error *error)
{
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    const size_t length = (size_t)1 << bits;
    const double scale =
        (is_prepared(plan) ? 1 : pnr_format_get(plan->format)->scale) / (double)length;
    double(*spectrum)[2] = (double(*)[2])calloc(length, sizeof *spectrum);
    float2 *rounded = (float2 *)calloc(length, sizeof *rounded);
    int code = PNR_ENOMEMORY;

    if (spectrum != NULL && rounded != NULL) {
        for (size_t i = 0; i < plan->n_samples; i++) {
            spectrum[i][0] = plan->references[i][0];
            spectrum[i][1] = plan->references[i][1];
        }
        code = pnr_transform_forward(spectrum, length);
    }
    if (code != PNR_OK) {
        pnr_error_set(error, code, "engine cuda: no memory for a spectrum of %zu values", length);
    } else {
        for (size_t k = 0; k < length; k++)
            rounded[pnr_fused_long_place(bits, k)] =
                make_float2((float)(spectrum[k][0] * scale), (float)(-spectrum[k][1] * scale));
        code = upload(rounded, length * sizeof *rounded, "the code's spectrum on the GPU",
                      (void **)out, error);
    }
    free(spectrum);
    free(rounded);
    return code;
}

/* out[i] = W_n^(index 2^i), i < n_powers, stride apart. */
static void fill_powers(float2 *out, size_t stride, uint32_t n_powers, size_t index, size_t n)
{
    for (uint32_t i = 0; i < n_powers; i++) {
        const double angle = -2 * M_PI * (double)((index << i) % n) / (double)n;

        out[i * stride] = make_float2((float)cos(angle), (float)sin(angle));
    }
}

/* The twiddles' powers, for rows, threads and columns, one after the other. */
static int create_powers(uint32_t bits, float2 **out, pnr_error *error)
{
    const uint32_t row_bits = pnr_fused_long_row_bits(bits), column_bits = bits - row_bits;
    const size_t length = (size_t)1 << bits, row_length = (size_t)1 << row_bits;
    const size_t n_rows = (size_t)1 << column_bits, n_threads = row_length / 32;
    float2 *powers = (float2 *)calloc(n_powers(bits), sizeof *powers);
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
    code = upload(powers, n_powers(bits) * sizeof *powers, "the twiddles on the GPU", (void **)out,
                  error);
    free(powers);
    return code;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    shared *own = (shared *)calloc(1, sizeof *own);
    int code;

    common->shared = own;
    if (own == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    if ((code = create_spectrum(plan, &own->spectrum, error)) != PNR_OK ||
        (code = create_powers(bits, &own->powers, error)) != PNR_OK)
        return code;
    return pnr_fused_long_open(bits, input_format(plan), plan->n_looks > 1, &own->set, error);
}

static void close_shared(pnr_cuda_common *common)
{
    shared *own = (shared *)common->shared;

    if (own == NULL)
        return;
    /* On the way out a status changes nothing. */
    if (own->spectrum != NULL)
        (void)cudaFree(own->spectrum);
    if (own->powers != NULL)
        (void)cudaFree(own->powers);
    free(own);
    common->shared = NULL;
}

static int create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    work *w = (work *)calloc(1, sizeof *w);
    pnr_cuda_block list[N_BLOCKS];
    int code;

    slot->work = w;
    if (w == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    list_blocks(&common->plan, w, list);
    w->streams.main = slot->stream;
    if ((code = pnr_cuda_blocks_allocate(list, N_BLOCKS, slot->stream, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaStreamCreateWithFlags(&w->streams.side, cudaStreamNonBlocking),
                               "creating a second stream", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaEventCreateWithFlags(&w->streams.fork, cudaEventDisableTiming),
                               "creating an event", error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaEventCreateWithFlags(&w->streams.join, cudaEventDisableTiming),
                          "creating an event", error);
}

static void destroy(pnr_cuda_slot *slot)
{
    const pnr_plan plan = {};
    work *w = (work *)slot->work;
    pnr_cuda_block list[N_BLOCKS];

    if (w == NULL)
        return;
    /* On the way out a status changes nothing. */
    if (w->streams.side != NULL) {
        (void)cudaStreamSynchronize(w->streams.side);
        (void)cudaStreamDestroy(w->streams.side);
    }
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

/* The kernels' argument for this slot. */
static pnr_fused_long argument_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot)
{
    const shared *own = (const shared *)common->shared;
    const pnr_plan *plan = &common->plan;
    const uint32_t bits = pnr_fused_long_bits(plan->n_samples);
    pnr_fused_long p = ((const work *)slot->work)->memory;

    p.n_points = 1u << bits;
    p.row_bits = pnr_fused_long_row_bits(bits);
    p.raw = is_prepared(plan) ? p.rows : slot->raw;
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
    p.conjugate = plan->conjugate && !is_prepared(plan) ? -1.0f : 1.0f;
    p.per_point = 2.0f / (float)p.n_points;
    p.n_samples = (uint32_t)plan->n_samples;
    p.n_sums = (uint32_t)plan->n_looks;
    p.n_input = is_prepared(plan) ? p.n_points : p.n_samples;
    p.n_tiles = p.n_points / PNR_FUSED_LONG_TILE;
    p.max_candidates = (uint32_t)plan->max_candidates;
    p.gate_first = (uint32_t)plan->gate_first;
    p.gate_count = (uint32_t)plan->gate_count;
    return p;
}

/* The dwells' sums and states, and their samples, extended, where the rows will be. */
static int prepare(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
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
    shape.n_rows = shape.batch * shape.dwell_rows;
    if ((code = pnr_cuda_measure(&shape, &samples, &measured, n_dwells, slot->stream, error)) !=
            PNR_OK ||
        (code = pnr_cuda_convert(&shape, &conversion, 0, n_dwells, w->memory.rows, slot->stream,
                                 error)) != PNR_OK)
        return code;
    return pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error);
}

/* The kernels do all other stages: the mark calls it the last of them. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_fused_long p = argument_of(common, slot);
    const uint32_t bits = pnr_fused_long_bits(common->plan.n_samples);
    int code = PNR_OK;

    if (is_prepared(&common->plan))
        code = prepare(common, slot, n_dwells, error);
    if (code == PNR_OK)
        code = pnr_fused_long_enqueue(
            &p, &own->set, pnr_fused_long_group(bits, p.n_sums, common->plan.batch),
            (uint32_t)n_dwells, &((const work *)slot->work)->streams, error);
    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error) : code;
}

const pnr_cuda_method pnr_cuda_method_fused_long = {
    "fused", suits, open_shared, close_shared, create, destroy, compute,
};
