/* SPDX-License-Identifier: MIT */
/* Method fused up to 16384 points: one kernel computes the results of a dwell from its samples. */
#include "cuda/base/method.h"
#include "cuda/base/resources.h"
#include "cuda/fused/fused.h"

#include <cstdio>

/* Below MIN_SAMPLES cuFFT at length N is as fast as this method, which would need 1024 points. */
enum { MIN_SAMPLES = 128, MIN_TRANSFORM = 1024, MAX_TRANSFORM = 16384 };

/* Data that all slots share. */
typedef struct shared {
    const pnr_cuda_fused_size *size;
    float2 *spectrum; /* [oversample][L], device */
    double first_threshold;
    uint32_t window_bytes; /* shared memory of each window */
    uint32_t n_together;   /* windows that a block works on at one time */
    uint32_t n_blocks;     /* blocks that the device runs at one time */
} shared;

/* Returns the number of points of the transform for a period of N samples. This is N if the kernels
 * have that size, else the smallest power of two in which the extended period fits. */
static size_t transform_of(size_t n_samples)
{
    const bool is_exact = (n_samples & (n_samples - 1)) == 0 && n_samples >= MIN_TRANSFORM;
    const size_t least = is_exact ? n_samples : 2 * n_samples - 1;
    size_t length = MIN_TRANSFORM;

    while (length < least)
        length *= 2;
    return length;
}

/* Finds the plain kernel. NULL: the plan needs the general kernel. */
static const pnr_cuda_fused_size *find_plain(const pnr_plan *plan)
{
    if (plan->n_channels != 1 || pnr_plan_windows(plan) != 1 || plan->oversample != 1 ||
        plan->tune.num != 0 || plan->conjugate || transform_of(plan->n_samples) != plan->n_samples)
        return NULL;
    return pnr_cuda_fused_find_plain(plan->format, plan->n_samples);
}

static size_t shared_bytes_of(const shared *own)
{
    return own->size->table_bytes + (size_t)own->n_together * own->window_bytes;
}

/* Chooses the kernel, and how many windows a block works on. */
static int suits(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error)
{
    const size_t block_bytes = pnr_cuda_block_bytes(plan->device);
    shared *own = (shared *)common->shared;
    size_t fitting = 0;

    if (!pnr_plan_is_plain(plan) || transform_of(plan->n_samples) > MAX_TRANSFORM)
        return PNR_EUNSUPPORTED;
    if (plan->n_samples < MIN_SAMPLES)
        return pnr_error_set(
            error, PNR_EUNSUPPORTED,
            "engine cuda: method fused knows no %zu samples a period, only %d to %d "
            "and %d",
            plan->n_samples, MIN_SAMPLES, MAX_TRANSFORM / 2, MAX_TRANSFORM);
    own->first_threshold = plan->threshold[0];
    own->size = find_plain(plan);
    if (own->size != NULL) {
        own->window_bytes = own->size->window_bytes;
    } else {
        own->size = pnr_cuda_fused_find_dwells(transform_of(plan->n_samples));
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
    own->n_together = fitting < own->size->max_windows ? (uint32_t)fitting : own->size->max_windows;
    snprintf(choice->why, sizeof choice->why, "one kernel a submit, %s of %u in a %s",
             own->size->n_transform == plan->n_samples ? "a window"
                                                       : "windows extended to transforms",
             own->size->n_transform, own->size->max_windows > 1 ? "warp" : "block");
    choice->n_transform = own->size->n_transform;
    return PNR_OK;
}

static size_t list_shared(const pnr_cuda_common *common, pnr_cuda_buffer *list)
{
    shared *own = (shared *)common->shared;

    list[0] = {(void **)&own->spectrum,
               common->plan.oversample * own->size->n_transform * sizeof *own->spectrum, false};
    return 1;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)common->shared;
    /* The plain kernel transforms values before the scaling. So the spectrum of the code is
     * multiplied by the scale of the format. */
    const double scale = find_plain(plan) != NULL ? pnr_format_get(plan->format)->scale : 1;
    int code;

    if ((code = pnr_cuda_upload_spectra(plan, own->size->n_transform, pnr_cuda_fused_place, scale,
                                        own->spectrum, error)) != PNR_OK ||
        (code = pnr_cuda_fit_blocks((const void *)own->size->kernel,
                                    own->size->n_threads * own->n_together, shared_bytes_of(own),
                                    &own->n_blocks, error)) != PNR_OK)
        return code;
    return own->n_blocks > 0
               ? PNR_OK
               : pnr_error_set(error, PNR_EUNSUPPORTED,
                               "engine cuda: method fused does not fit this GPU at %zu samples",
                               plan->n_samples);
}

/* --- one submit --- */

static int launch_kernel(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
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
    p.has_outside = plan->has_outside;
    p.gate_first = (uint32_t)plan->gate_first;
    p.gate_count = (uint32_t)plan->gate_count;
    p.window_bytes = own->window_bytes;
    own->size->kernel<<<n_blocks, own->size->n_threads * own->n_together, shared_bytes_of(own),
                        slot->stream>>>(p);
    return pnr_cuda_check_launch(
        find_plain(plan) != NULL ? "correlate_windows" : "correlate_dwells", error);
}

/* One kernel does all stages, so its time counts as the time of PNR_STAGE_PEAK. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const int code = launch_kernel(common, slot, n_dwells, error);

    return code == PNR_OK ? pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error) : code;
}

const pnr_cuda_method pnr_cuda_method_fused = {
    "fused", sizeof(shared), 0, suits, list_shared, NULL, open_shared, NULL, NULL, NULL, compute,
};
