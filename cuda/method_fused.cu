/* SPDX-License-Identifier: MIT */
/* Method fused: a window's whole way in one kernel of our own; powers of two, 1024 to 16384. */
#include "fused.h"
#include "method.h"

#include <cstdio>
#include <cstdlib>

/* What all slots share. */
typedef struct shared {
    const pnr_cuda_fused_size *size;
    float2 *spectrum; /* [N], device */
    double threshold;
    unsigned n_blocks; /* that the device runs at one time */
} shared;

/* What the method lacks for a plan; NULL: nothing. */
static const char *missing(const pnr_plan *plan)
{
    if (plan->n_channels != 1)
        return "more channels than one in the samples";
    if (plan->n_periods != 1 || plan->dwell == PNR_DWELL_INCOHERENT)
        return "dwells of several periods";
    if (plan->oversample != 1)
        return "half lags";
    if (plan->tune.num != 0)
        return "a tune";
    if (plan->conjugate)
        return "inverted recordings";
    if (plan->format != PNR_FORMAT_CI8 && plan->format != PNR_FORMAT_CI16 &&
        plan->format != PNR_FORMAT_CF32)
        return "formats but ci8, ci16 and cf32";
    if (pnr_cuda_fused_find(plan->format, plan->n_samples) == NULL)
        return "lengths but 1024, 2048, 4096, 8192 and 16384";
    return NULL;
}

static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    const char *lack = missing(plan);
    int bytes;

    if (lack != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: method fused knows no %s",
                             lack);

    const pnr_cuda_fused_size *size = pnr_cuda_fused_find(plan->format, plan->n_samples);

    /* Without a device the answer is about any that is large enough. */
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                               (int)plan->device) != cudaSuccess)
        (void)cudaGetLastError();
    else if ((size_t)bytes < size->shared_bytes + size->static_bytes)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: method fused takes %zu bytes of shared memory a block "
                             "for %zu samples, this GPU has %d",
                             size->shared_bytes + size->static_bytes, plan->n_samples, bytes);
    snprintf(choice->why, sizeof choice->why, "one kernel a submit, a window of %zu in a %s",
             plan->n_samples, size->n_windows > 1 ? "warp" : "block");
    choice->n_transform = plan->n_samples;
    *shared_bytes = plan->n_samples * sizeof(float2);
    return PNR_OK;
}

/* --- life --- */

/* conj(DFT of the code) * scale / N in the kernel's order, in double, rounded once. */
static int create_spectrum(const pnr_plan *plan, float2 **out, pnr_error *error)
{
    const size_t n = plan->n_samples;
    const double scale = pnr_format_get(plan->format)->scale / (double)n;
    double(*spectrum)[2] = (double(*)[2])calloc(n, sizeof *spectrum);
    float2 *rounded = (float2 *)calloc(n, sizeof *rounded);
    int code = PNR_ENOMEMORY;

    if (spectrum != NULL && rounded != NULL) {
        for (size_t i = 0; i < n; i++) {
            spectrum[i][0] = plan->references[i][0];
            spectrum[i][1] = plan->references[i][1];
        }
        code = pnr_transform_forward(spectrum, n);
    }
    if (code != PNR_OK) {
        pnr_error_set(error, code, "engine cuda: no memory for a spectrum of %zu values", n);
    } else {
        for (size_t k = 0; k < n; k++)
            rounded[pnr_cuda_fused_place(n, k)] =
                make_float2((float)(spectrum[k][0] * scale), (float)(-spectrum[k][1] * scale));
        if ((code = pnr_cuda_check(cudaMalloc((void **)out, n * sizeof *rounded),
                                   "GPU memory for the code's spectrum", error)) == PNR_OK)
            code = pnr_cuda_check(
                cudaMemcpy(*out, rounded, n * sizeof *rounded, cudaMemcpyHostToDevice),
                "upload of the code's spectrum", error);
    }
    free(spectrum);
    free(rounded);
    return code;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)calloc(1, sizeof *own);
    int n_processors = 0, n_blocks = 0, code;

    common->shared = own;
    if (own == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    own->size = pnr_cuda_fused_find(plan->format, plan->n_samples);
    own->threshold = plan->threshold[0];
    if ((code = create_spectrum(plan, &own->spectrum, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaFuncSetAttribute((const void *)own->size->kernel,
                                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                    (int)own->size->shared_bytes),
                               "shared memory", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                   &n_blocks, (const void *)own->size->kernel,
                                   (int)own->size->n_threads, own->size->shared_bytes),
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
    const size_t n_needed = (n_dwells + own->size->n_windows - 1) / own->size->n_windows;
    const unsigned n_blocks = n_needed < own->n_blocks ? (unsigned)n_needed : own->n_blocks;
    pnr_cuda_fused p = {};

    p.raw = slot->raw;
    p.job = slot->job;
    p.windows = slot->windows;
    p.spectrum = (const float4 *)own->spectrum;
    p.dwells = slot->results.dwells;
    p.candidates = slot->results.candidates;
    p.nonfinite = slot->results.nonfinite;
    if (common->plan.want_profile == PNR_WANT_COMPLEX)
        p.profile = (float2 *)slot->results.profile;
    else
        p.power = slot->results.profile;
    p.scale = pnr_format_get(common->plan.format)->scale;
    p.code_energy = common->code_energy;
    p.threshold = own->threshold;
    p.n_windows = (uint32_t)n_dwells;
    p.max_candidates = (uint32_t)common->plan.max_candidates;
    p.gate_first = (uint32_t)common->plan.gate_first;
    p.gate_count = (uint32_t)common->plan.gate_count;
    own->size->kernel<<<n_blocks, own->size->n_threads, own->size->shared_bytes, slot->stream>>>(p);
    return pnr_cuda_check_launch("correlate_windows", error);
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
