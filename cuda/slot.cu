/* SPDX-License-Identifier: MIT */
/* A slot: everything that one submit in flight needs, with its own stream, plan and memory. */
#include "slot.h"

#include <cassert>
#include <cstdlib>
#include <cstring>

enum { BLAS_WORK = 4 << 20, STAGES_A_ROUND = 6, MAX_BLOCKS = 24 };

/* A block of memory and the pointer to it. */
typedef struct block {
    void **memory;
    size_t bytes; /* 0: not needed */
    bool is_host;
} block;

/* All memory of a slot but the transforms' work area. Returns the number of blocks. */
static size_t list_blocks(const pnr_plan *plan, const pnr_cuda_shape *s, pnr_cuda_slot *slot,
                          block list[MAX_BLOCKS])
{
    const size_t row_bytes = s->n_rows * s->row_stride * sizeof(float2);
    const size_t n_tiles = s->round_dwells * s->n_tiles;
    const size_t n_cells = s->round_dwells * s->n_cells;
    const bool is_complex = plan->want_profile == PNR_WANT_COMPLEX;
    size_t n = 0;

    list[n++] = {&slot->raw, s->raw_bytes, false};
    list[n++] = {(void **)&slot->windows, s->n_windows * sizeof *slot->windows, false};
    list[n++] = {(void **)&slot->parts, s->n_windows * s->n_segments * sizeof *slot->parts, false};
    list[n++] = {(void **)&slot->sums, s->n_windows * sizeof *slot->sums, false};
    list[n++] = {(void **)&slot->dwells, s->batch * sizeof *slot->dwells, false};
    list[n++] = {(void **)&slot->rows[0], row_bytes, false};
    list[n++] = {(void **)&slot->rows[1], s->oversample > 1 ? row_bytes : 0, false};
    list[n++] = {(void **)&slot->power, n_cells * sizeof *slot->power, false};
    list[n++] = {(void **)&slot->noise_parts, n_tiles * sizeof *slot->noise_parts, false};
    list[n++] = {(void **)&slot->tiles, n_tiles * sizeof *slot->tiles, false};
    list[n++] = {(void **)&slot->keys, n_tiles * plan->max_candidates * sizeof *slot->keys, false};
    list[n++] = {(void **)&slot->packed, is_complex ? n_cells * sizeof *slot->packed : 0, false};
    list[n++] = {&slot->blas_work, BLAS_WORK, false};
    list[n++] = {(void **)&slot->host_windows, s->n_windows * sizeof *slot->host_windows, true};
    list[n++] = {(void **)&slot->host_dwells, s->batch * sizeof *slot->host_dwells, true};
    list[n++] = {(void **)&slot->host_candidates,
                 s->batch * plan->max_candidates * sizeof *slot->host_candidates, true};
    list[n++] = {(void **)&slot->host_nonfinite, s->n_windows * sizeof *slot->host_nonfinite, true};
    list[n++] = {(void **)&slot->host_profile, s->batch * s->profile_values * sizeof(float), true};
    assert(n <= MAX_BLOCKS);
    return n;
}

void pnr_cuda_slot_bytes(const pnr_plan *plan, const pnr_cuda_shape *shape, uint64_t *device_bytes,
                         uint64_t *host_bytes)
{
    pnr_cuda_slot slot = {};
    block list[MAX_BLOCKS];
    const size_t n = list_blocks(plan, shape, &slot, list);

    *device_bytes = shape->group * shape->row_stride * sizeof(float2);
    *host_bytes = 0;
    for (size_t i = 0; i < n; i++)
        *(list[i].is_host ? host_bytes : device_bytes) += list[i].bytes;
}

/* --- life --- */

static int allocate(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    block list[MAX_BLOCKS];
    const size_t n = list_blocks(&common->plan, &common->shape, slot, list);
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < n; i++) {
        if (list[i].bytes == 0)
            continue;
        if (list[i].is_host) {
            code = pnr_cuda_check(cudaHostAlloc(list[i].memory, list[i].bytes,
                                                cudaHostAllocPortable | cudaHostAllocMapped),
                                  "pinned memory for results", error);
            if (code == PNR_OK)
                memset(*list[i].memory, 0, list[i].bytes);
        } else {
            code = pnr_cuda_check(cudaMalloc(list[i].memory, list[i].bytes), "GPU memory", error);
            if (code == PNR_OK)
                code =
                    pnr_cuda_check(cudaMemsetAsync(*list[i].memory, 0, list[i].bytes, slot->stream),
                                   "clearing GPU memory", error);
        }
    }
    return code;
}

/* G rows of L, in place, both ways; the work area is ours, so that no call allocates. */
static int create_transform(const pnr_cuda_shape *shape, pnr_cuda_slot *slot, pnr_error *error)
{
    int length = (int)shape->n_transform;
    const int stride = (int)shape->row_stride;
    size_t work_bytes = 0;
    int code = pnr_cuda_check_fft(cufftCreate(&slot->fft), "creating a transform", error);

    if (code != PNR_OK)
        return code;
    slot->has_fft = true;
    if ((code = pnr_cuda_check_fft(cufftSetAutoAllocation(slot->fft, 0), "transform's memory",
                                   error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftMakePlanMany(slot->fft, 1, &length, &length, 1, stride,
                                                     &length, 1, stride, CUFFT_C2C,
                                                     (int)shape->group, &work_bytes),
                                   "planning the transforms", error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftSetStream(slot->fft, slot->stream), "transform's stream",
                                   error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaMalloc(&slot->fft_work, work_bytes > 0 ? work_bytes : 256),
                               "GPU memory for the transforms' work area", error)) != PNR_OK)
        return code;
    return pnr_cuda_check_fft(cufftSetWorkArea(slot->fft, slot->fft_work), "transform's work area",
                              error);
}

static int create_product(pnr_cuda_slot *slot, pnr_error *error)
{
    int code = pnr_cuda_check_blas(cublasCreate(&slot->blas), "creating the product", error);

    if (code != PNR_OK) {
        slot->blas = NULL;
        return code;
    }
    /* The stream first: setting it takes the workspace away. */
    if ((code = pnr_cuda_check_blas(cublasSetStream(slot->blas, slot->stream), "product's stream",
                                    error)) != PNR_OK)
        return code;
    return pnr_cuda_check_blas(cublasSetWorkspace(slot->blas, slot->blas_work, BLAS_WORK),
                               "product's work area", error);
}

static int create_marks(const pnr_cuda_shape *shape, pnr_cuda_slot *slot, pnr_error *error)
{
    const size_t n = 4 + STAGES_A_ROUND * shape->n_rounds;

    slot->marks = (cudaEvent_t *)calloc(n, sizeof *slot->marks);
    slot->mark_stage = (int *)calloc(n, sizeof *slot->mark_stage);
    if (slot->marks == NULL || slot->mark_stage == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "cuda: no memory for %zu time marks", n);
    for (; slot->max_marks < n; slot->max_marks++) {
        const int code =
            pnr_cuda_check(cudaEventCreate(&slot->marks[slot->max_marks]), "time mark", error);

        if (code != PNR_OK)
            return code;
    }
    return PNR_OK;
}

static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error);

int pnr_cuda_slot_create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    int code;

    if ((code = pnr_cuda_check(cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking),
                               "creating a stream", error)) != PNR_OK ||
        (code = pnr_cuda_check(
             /* A sleeping thread wakes up to 0.3 ms late; who measures the stages spins instead. */
             cudaEventCreateWithFlags(&slot->done,
                                      cudaEventDisableTiming |
                                          (common->plan.measure ? 0u : cudaEventBlockingSync)),
             "creating an event", error)) != PNR_OK ||
        (code = allocate(common, slot, error)) != PNR_OK ||
        (code = create_transform(&common->shape, slot, error)) != PNR_OK ||
        (code = create_product(slot, error)) != PNR_OK)
        return code;
    if (common->plan.measure && (code = create_marks(&common->shape, slot, error)) != PNR_OK)
        return code;
    if ((code = compute(common, slot, 1, error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaStreamSynchronize(slot->stream), "first run", error);
}

void pnr_cuda_slot_destroy(pnr_cuda_slot *slot)
{
    const pnr_plan plan = {};
    const pnr_cuda_shape shape = {};
    block list[MAX_BLOCKS];
    const size_t n = list_blocks(&plan, &shape, slot, list);

    /* On the way out a status changes nothing. */
    if (slot->stream != NULL)
        (void)cudaStreamSynchronize(slot->stream);
    if (slot->has_fft)
        (void)cufftDestroy(slot->fft);
    if (slot->blas != NULL)
        (void)cublasDestroy(slot->blas);
    for (size_t i = 0; i < n; i++)
        if (*list[i].memory != NULL)
            (void)(list[i].is_host ? cudaFreeHost(*list[i].memory) : cudaFree(*list[i].memory));
    if (slot->fft_work != NULL)
        (void)cudaFree(slot->fft_work);
    for (size_t i = 0; i < slot->max_marks; i++)
        (void)cudaEventDestroy(slot->marks[i]);
    free(slot->marks);
    free(slot->mark_stage);
    if (slot->done != NULL)
        (void)cudaEventDestroy(slot->done);
    if (slot->stream != NULL)
        (void)cudaStreamDestroy(slot->stream);
    memset(slot, 0, sizeof *slot);
}

/* --- one job --- */

/* plan.measure: `stage` ends here. PNR_STAGE_COUNT: the beginning. */
static int mark(const pnr_cuda_common *common, pnr_cuda_slot *slot, int stage, pnr_error *error)
{
    if (!common->plan.measure)
        return PNR_OK;
    if (stage == PNR_STAGE_COUNT)
        slot->n_marks = 0;
    assert(slot->n_marks < slot->max_marks);
    slot->mark_stage[slot->n_marks] = stage;
    return pnr_cuda_check(cudaEventRecord(slot->marks[slot->n_marks++], slot->stream), "time mark",
                          error);
}

/* The two spans lie one after the other on the device. */
static int upload(const pnr_cuda_common *common, pnr_cuda_slot *slot, const pnr_windows *windows,
                  pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const size_t n_windows = windows->n_dwells * s->n_periods;
    const size_t n_samples = n_windows * s->n_samples;
    size_t done = 0;

    for (size_t w = 0; w < n_windows; w++) {
        const uint64_t first = windows->first_sample + w * s->n_samples;

        slot->host_windows[w].phase =
            common->plan.tune.num != 0 ? pnr_rational_phase(common->plan.tune, first) : 0;
        slot->host_windows[w].n_lost = windows->lost[w];
    }

    int code = pnr_cuda_check(cudaMemcpyAsync(slot->windows, slot->host_windows,
                                              n_windows * sizeof *slot->windows,
                                              cudaMemcpyHostToDevice, slot->stream),
                              "upload of the windows' headers", error);

    for (size_t i = 0; code == PNR_OK && i < 2 && done < n_samples; i++) {
        const pnr_span *span = &windows->spans[i];
        const size_t count =
            span->n_samples < n_samples - done ? span->n_samples : n_samples - done;

        if (count > 0)
            code = pnr_cuda_check(cudaMemcpyAsync((char *)slot->raw + done * s->sample_bytes,
                                                  span->data, count * s->sample_bytes,
                                                  cudaMemcpyHostToDevice, slot->stream),
                                  "upload of the samples", error);
        done += count;
    }
    return code;
}

/* G rows at a time, in place. direction: CUFFT_FORWARD or CUFFT_INVERSE. */
static int transform(const pnr_cuda_shape *s, pnr_cuda_slot *slot, float2 *rows, size_t n_groups,
                     int direction, pnr_error *error)
{
    int code = PNR_OK;

    for (size_t g = 0; code == PNR_OK && g < n_groups; g++) {
        cufftComplex *group = rows + g * s->group * s->row_stride;

        code = pnr_cuda_check_fft(cufftExecC2C(slot->fft, group, group, direction),
                                  direction == CUFFT_FORWARD ? "transform" : "inverse transform",
                                  error);
    }
    return code;
}

/* out = spectrum of the code times each row of in; in place when out is in. */
static int product(const pnr_cuda_shape *s, pnr_cuda_slot *slot, const float2 *in,
                   const float2 *spectrum, float2 *out, size_t n_groups, pnr_error *error)
{
    const int length = (int)s->n_transform, stride = (int)s->row_stride;
    int code = PNR_OK;

    for (size_t g = 0; code == PNR_OK && g < n_groups; g++) {
        const size_t first = g * s->group * s->row_stride;

        code =
            pnr_cuda_check_blas(cublasCdgmm(slot->blas, CUBLAS_SIDE_LEFT, length, (int)s->group,
                                            in + first, stride, spectrum, 1, out + first, stride),
                                "product with the code", error);
    }
    return code;
}

static pnr_cuda_samples samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot)
{
    const pnr_format_info *format = pnr_format_get(common->plan.format);
    pnr_cuda_samples samples = {};

    samples.raw = slot->raw;
    samples.format = common->plan.format;
    samples.n_samples = (uint32_t)common->shape.n_samples;
    samples.n_channels = (uint32_t)common->plan.n_channels;
    samples.channel = (uint32_t)common->plan.first_channel;
    samples.scale = (float)format->scale;
    samples.offset = (float)format->offset;
    return samples;
}

static pnr_cuda_peak peak_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot)
{
    const pnr_cuda_shape *s = &common->shape;
    pnr_cuda_peak peak = {};

    peak.rows[0] = slot->rows[0];
    peak.rows[1] = slot->rows[1];
    peak.power = slot->power;
    peak.noise_parts = slot->noise_parts;
    peak.tiles = slot->tiles;
    peak.keys = slot->keys;
    peak.packed = slot->packed;
    peak.dwells = slot->dwells;
    peak.threshold = common->threshold;
    peak.out_dwells = slot->host_dwells;
    peak.out_candidates = slot->host_candidates;
    peak.n_samples = (uint32_t)s->n_samples;
    peak.row_stride = (uint32_t)s->row_stride;
    peak.oversample = (uint32_t)s->oversample;
    peak.n_cells = (uint32_t)s->n_cells;
    peak.n_tiles = (uint32_t)s->n_tiles;
    peak.dwell_rows = (uint32_t)s->dwell_rows;
    peak.is_incoherent = common->plan.dwell == PNR_DWELL_INCOHERENT;
    peak.max_candidates = (uint32_t)common->plan.max_candidates;
    peak.gate_first = (uint32_t)common->plan.gate_first;
    peak.gate_count = (uint32_t)common->plan.gate_count;
    return peak;
}

/* Dwells [first, first + n_dwells) of the submit, from raw samples to results. */
static int compute_round(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_cuda_conversion *conversion, const pnr_cuda_peak *peak,
                         size_t first, size_t n_dwells, pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const size_t n_groups = (n_dwells * s->dwell_rows + s->group - 1) / s->group;
    float2 *samples = slot->rows[s->oversample - 1];
    int code;

    if ((code = pnr_cuda_convert(s, conversion, first, n_dwells, samples, slot->stream, error)) !=
            PNR_OK ||
        (code = mark(common, slot, PNR_STAGE_CONVERT, error)) != PNR_OK ||
        (code = transform(s, slot, samples, n_groups, CUFFT_FORWARD, error)) != PNR_OK ||
        (code = mark(common, slot, PNR_STAGE_FORWARD, error)) != PNR_OK)
        return code;
    /* The last product replaces the samples' spectrum. */
    for (size_t half = 0; half < s->oversample; half++)
        if ((code = product(s, slot, samples, common->spectra[half], slot->rows[half], n_groups,
                            error)) != PNR_OK)
            return code;
    if ((code = mark(common, slot, PNR_STAGE_PRODUCT, error)) != PNR_OK)
        return code;
    for (size_t half = 0; half < s->oversample; half++)
        if ((code = transform(s, slot, slot->rows[half], n_groups, CUFFT_INVERSE, error)) != PNR_OK)
            return code;
    if ((code = mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK ||
        (code = pnr_cuda_find_peaks(s, peak, first, n_dwells, slot->stream, error)) != PNR_OK ||
        (code = mark(common, slot, PNR_STAGE_PEAK, error)) != PNR_OK)
        return code;
    if (s->profile_values == 0)
        return PNR_OK;
    if ((code = pnr_cuda_check(
             cudaMemcpyAsync(slot->host_profile + first * s->profile_values,
                             slot->packed != NULL ? (const void *)slot->packed : slot->power,
                             n_dwells * s->profile_values * sizeof *slot->host_profile,
                             cudaMemcpyDeviceToHost, slot->stream),
             "return of the profiles", error)) != PNR_OK)
        return code;
    return mark(common, slot, PNR_STAGE_RETURN, error);
}

/* Everything after the upload. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const pnr_cuda_samples samples = samples_of(common, slot);
    const pnr_cuda_peak peak = peak_of(common, slot);
    const pnr_cuda_measured measured = {slot->windows,      slot->parts,          slot->sums,
                                        slot->dwells,       slot->host_nonfinite, common->threshold,
                                        common->code_energy};
    pnr_cuda_conversion conversion = {};
    int code;

    conversion.samples = samples;
    conversion.windows = slot->windows;
    conversion.sums = slot->sums;
    conversion.step = common->tune_step;
    conversion.is_tuned = common->plan.tune.num != 0;
    conversion.is_conjugated = common->plan.conjugate;
    code = pnr_cuda_measure(s, &samples, &measured, n_dwells, slot->stream, error);
    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += s->round_dwells) {
        const size_t left = n_dwells - first;

        code = compute_round(common, slot, &conversion, &peak, first,
                             left < s->round_dwells ? left : s->round_dwells, error);
    }
    return code;
}

int pnr_cuda_slot_start(const pnr_cuda_common *common, pnr_cuda_slot *slot, const pnr_job *job,
                        pnr_error *error)
{
    const pnr_windows *windows = job->windows;
    int code;

    slot->tag = job->tag;
    slot->n_dwells = windows->n_dwells;
    if ((code = mark(common, slot, PNR_STAGE_COUNT, error)) == PNR_OK &&
        (code = upload(common, slot, windows, error)) == PNR_OK &&
        (code = mark(common, slot, PNR_STAGE_UPLOAD, error)) == PNR_OK &&
        (code = compute(common, slot, windows->n_dwells, error)) == PNR_OK &&
        (code = mark(common, slot, PNR_STAGE_RETURN, error)) == PNR_OK)
        code = pnr_cuda_check(cudaEventRecord(slot->done, slot->stream), "end of a submit", error);
    /* A part of the job may run: it must not outlive this call. */
    if (code != PNR_OK && cudaStreamSynchronize(slot->stream) != cudaSuccess)
        (void)cudaGetLastError();
    return code;
}

int pnr_cuda_slot_result(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_result *result,
                         pnr_error *error)
{
    result->tag = slot->tag;
    result->n_dwells = slot->n_dwells;
    result->dwells = slot->host_dwells;
    result->candidates = slot->host_candidates;
    result->nonfinite = slot->host_nonfinite;
    result->profile = slot->host_profile;
    memset(result->stage_ns, 0, sizeof result->stage_ns);
    if (!common->plan.measure)
        return PNR_OK;
    for (size_t i = 1; i < slot->n_marks; i++) {
        float ms = 0;
        const int code = pnr_cuda_check(
            cudaEventElapsedTime(&ms, slot->marks[i - 1], slot->marks[i]), "time mark", error);

        if (code != PNR_OK)
            return code;
        result->stage_ns[slot->mark_stage[i]] += (uint64_t)((double)ms * 1e6 + 0.5);
    }
    return PNR_OK;
}
