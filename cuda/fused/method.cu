/* SPDX-License-Identifier: MIT */
/* Method fused up to 16384 points: a dwell's whole way in one kernel of our own. */
#include "cuda/base/method.h"
#include "cuda/fused/fused.h"

#include <cstdio>
#include <cstdlib>

/* Below MIN_SAMPLES cuFFT at the length itself is as fast as 1024 points. */
enum { MIN_SAMPLES = 128, MIN_TRANSFORM = 1024, MAX_TRANSFORM = 16384 };

/* What all slots share. */
typedef struct shared {
    const pnr_cuda_fused_size *size;
    float2 *spectrum; /* [oversample][L], device */
    double first_threshold;
    uint32_t window_bytes; /* of shared memory for each window */
    unsigned n_together;   /* windows that a block works on at one time */
    unsigned n_blocks;     /* that the device runs at one time */
} shared;

/* N where it is a size of the kernels, else the least that holds it extended; 0: none. */
static size_t transform_of(const pnr_plan *plan)
{
    const size_t n = plan->n_samples;
    const size_t least = (n & (n - 1)) == 0 && n >= MIN_TRANSFORM ? n : 2 * n - 1;
    size_t length = MIN_TRANSFORM;

    while (length < least)
        length *= 2;
    return n >= MIN_SAMPLES && length <= MAX_TRANSFORM ? length : 0;
}

/* One window a dwell, of the transform's length, and nothing to be mixed: the fast kernel's. */
static const pnr_cuda_fused_size *find_plain(const pnr_plan *plan)
{
    if (plan->n_channels != 1 || pnr_plan_windows(plan) != 1 || plan->oversample != 1 ||
        plan->tune.num != 0 || plan->conjugate || transform_of(plan) != plan->n_samples)
        return NULL;
    return pnr_cuda_fused_find_plain(plan->format, plan->n_samples);
}

/* *own: kernel, bytes, and how many windows go together with so many bytes of shared memory a
 * block. PNR_OK; or PNR_EUNSUPPORTED. */
static int choose_size(const pnr_plan *plan, size_t block_bytes, shared *own, pnr_error *error)
{
    size_t fitting = 0;

    if (transform_of(plan) == 0)
        return pnr_error_set(
            error, PNR_EUNSUPPORTED,
            "engine cuda: method fused knows no %zu samples a period, only %d to %d "
            "and %d",
            plan->n_samples, MIN_SAMPLES, MAX_TRANSFORM / 2, MAX_TRANSFORM);
    own->size = find_plain(plan);
    if (own->size != NULL) {
        own->window_bytes = own->size->window_bytes;
    } else {
        own->size = pnr_cuda_fused_find_dwells(transform_of(plan));
        own->window_bytes = own->size->window_bytes + (uint32_t)pnr_cuda_fused_cells_bytes(plan);
    }
    if (block_bytes > own->size->table_bytes)
        fitting = (block_bytes - own->size->table_bytes) / own->window_bytes;
    if (fitting == 0)
        return pnr_error_set(
            error, PNR_EUNSUPPORTED,
            "engine cuda: method fused takes %u bytes of shared memory a block for "
            "%zu samples, this GPU has %zu",
            own->size->table_bytes + own->window_bytes, plan->n_samples, block_bytes);
    own->n_together = fitting < own->size->max_windows ? (unsigned)fitting : own->size->max_windows;
    return PNR_OK;
}

static size_t shared_bytes_of(const shared *own)
{
    return own->size->table_bytes + (size_t)own->n_together * own->window_bytes;
}

static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    shared own = {};
    const int code = choose_size(plan, pnr_cuda_block_bytes(plan->device), &own, error);

    if (code != PNR_OK)
        return code;
    snprintf(choice->why, sizeof choice->why, "one kernel a submit, %s of %u in a %s",
             own.size->n_transform == plan->n_samples ? "a window"
                                                      : "windows extended to transforms",
             own.size->n_transform, own.size->max_windows > 1 ? "warp" : "block");
    choice->n_transform = own.size->n_transform;
    *shared_bytes = plan->oversample * own.size->n_transform * sizeof(float2);
    return PNR_OK;
}

/* --- life --- */

/* conj(DFT of a reference and zeros) * scale / L in the kernel's order, in double, rounded once. */
static int fill_spectrum(const double (*reference)[2], size_t n, size_t length, double scale,
                         float2 *out)
{
    double(*spectrum)[2] = (double(*)[2])calloc(length, sizeof *spectrum);
    int code = PNR_ENOMEMORY;

    if (spectrum != NULL) {
        for (size_t i = 0; i < n; i++) {
            spectrum[i][0] = reference[i][0];
            spectrum[i][1] = reference[i][1];
        }
        code = pnr_transform_forward(spectrum, length);
    }
    for (size_t k = 0; code == PNR_OK && k < length; k++)
        out[pnr_cuda_fused_place(length, k)] =
            make_float2((float)(spectrum[k][0] * scale), (float)(-spectrum[k][1] * scale));
    free(spectrum);
    return code;
}

/* The plain kernel transforms raw values. */
static int create_spectra(const pnr_plan *plan, shared *own, pnr_error *error)
{
    const size_t n = plan->n_samples, length = own->size->n_transform;
    const size_t bytes = plan->oversample * length * sizeof(float2);
    const double unit = find_plain(plan) != NULL ? pnr_format_get(plan->format)->scale : 1.0;
    float2 *spectra = (float2 *)malloc(bytes);
    int code = spectra != NULL ? PNR_OK : PNR_ENOMEMORY;

    for (size_t h = 0; code == PNR_OK && h < plan->oversample; h++)
        code = fill_spectrum(plan->references + h * n, n, length, unit / (double)length,
                             spectra + h * length);
    if (code != PNR_OK)
        pnr_error_set(error, code, "engine cuda: no memory for a spectrum of %zu values", length);
    else if ((code = pnr_cuda_check(cudaMalloc((void **)&own->spectrum, bytes),
                                    "GPU memory for the code's spectrum", error)) == PNR_OK)
        code = pnr_cuda_check(cudaMemcpy(own->spectrum, spectra, bytes, cudaMemcpyHostToDevice),
                              "upload of the code's spectrum", error);
    free(spectra);
    return code;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)calloc(1, sizeof *own);
    int n_processors = 0, n_blocks = 0, code;

    common->shared = own;
    if (own == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    own->first_threshold = plan->threshold[0];
    if ((code = choose_size(plan, pnr_cuda_block_bytes(plan->device), own, error)) != PNR_OK ||
        (code = create_spectra(plan, own, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaFuncSetAttribute((const void *)own->size->kernel,
                                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                    (int)shared_bytes_of(own)),
                               "shared memory", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                   &n_blocks, (const void *)own->size->kernel,
                                   (int)(own->size->n_threads * own->n_together),
                                   shared_bytes_of(own)),
                               "blocks a multiprocessor", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount,
                                                      (int)plan->device),
                               "multiprocessors", error)) != PNR_OK)
        return code;
    if (n_blocks < 1)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused does not fit this GPU at %zu samples",
                             plan->n_samples);
    own->n_blocks = (unsigned)(n_blocks * n_processors);
    return PNR_OK;
}

static void close_shared(pnr_cuda_common *common)
{
    shared *own = (shared *)common->shared;

    if (own == NULL)
        return;
    if (own->spectrum != NULL)
        (void)cudaFree(own->spectrum); /* on the way out a status changes nothing */
    free(own);
    common->shared = NULL;
}

/* --- one job --- */

static int launch(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                  pnr_error *error)
{
    const shared *own = (const shared *)common->shared;
    const pnr_plan *plan = &common->plan;
    const size_t n_needed = (n_dwells + own->n_together - 1) / own->n_together;
    const unsigned n_blocks = n_needed < own->n_blocks ? (unsigned)n_needed : own->n_blocks;
    pnr_cuda_fused p = {};

    p.conversion.samples = pnr_cuda_samples_of(common, slot);
    p.conversion.windows = slot->windows;
    p.conversion.step = common->tune_step;
    p.conversion.is_tuned = plan->tune.num != 0;
    p.conversion.is_conjugated = plan->conjugate;
    p.job = slot->job;
    p.spectrum = (const float4 *)own->spectrum;
    p.threshold = common->threshold;
    p.first_threshold = own->first_threshold;
    p.dwells = slot->results.dwells;
    p.candidates = slot->results.candidates;
    p.nonfinite = slot->results.nonfinite;
    if (plan->want_profile == PNR_WANT_COMPLEX)
        p.profile = (float2 *)slot->results.profile;
    else
        p.power = slot->results.profile;
    p.code_energy = common->code_energy;
    p.n_dwells = (uint32_t)n_dwells;
    p.n_periods = (uint32_t)pnr_plan_windows(plan);
    p.is_incoherent = plan->n_looks > 1;
    p.oversample = (uint32_t)plan->oversample;
    p.max_candidates = (uint32_t)plan->max_candidates;
    p.gate_first = (uint32_t)plan->gate_first;
    p.gate_count = (uint32_t)plan->gate_count;
    p.window_bytes = own->window_bytes;
    own->size->kernel<<<n_blocks, own->size->n_threads * own->n_together, shared_bytes_of(own),
                        slot->stream>>>(p);
    return pnr_cuda_check_launch(
        find_plain(plan) != NULL ? "correlate_windows" : "correlate_dwells", error);
}

/* One kernel does all stages: the mark calls it the last of them. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const int code = launch(common, slot, n_dwells, error);

    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error) : code;
}

const pnr_cuda_method pnr_cuda_method_fused = {
    "fused", suits, open_shared, close_shared, NULL, NULL, compute,
};
