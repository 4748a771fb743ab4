/* SPDX-License-Identifier: MIT */
/* Method library: cuFFT forward, cuBLAS product, cuFFT inverse, peak search. It takes any length,
 * and its simple code checks the other methods. */
#include "cuda/base/resources.h"
#include "cuda/steps/profiles.h"

#include <cstdio>

/* Data that all slots share. */
typedef struct shared {
    float2 *spectra; /* [oversample][L]: conj(DFT of the code) / L, device */
} shared;

/* Data of one slot. */
typedef struct work {
    pnr_cuda_transforms transforms;
    cublasHandle_t blas;

    /* device; the last array of rows holds the samples before the products */
    pnr_cuda_profiles profiles;
    void *blas_memory;
} work;

static size_t list_shared(const pnr_cuda_common *common, pnr_cuda_buffer *list)
{
    const pnr_cuda_shape *s = &common->shape;
    shared *own = (shared *)common->shared;

    list[0] = {(void **)&own->spectra, s->oversample * s->n_transform * sizeof *own->spectra,
               false};
    return 1;
}

static size_t list_work(const pnr_cuda_common *common, void *memory, pnr_cuda_buffer *list)
{
    work *w = (work *)memory;
    const size_t n = pnr_cuda_profiles_list(common, &w->profiles, list);

    list[n] = {&w->blas_memory, PNR_CUDA_PRODUCT_BYTES, false};
    return n + 1;
}

static int suits(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                 pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;

    if (!pnr_plan_is_plain(plan))
        return PNR_EUNSUPPORTED;
    if (s->n_segments > (size_t)INT32_MAX / s->n_windows)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: %zu dwells of %zu periods of %zu samples at once",
                             plan->batch, pnr_plan_windows(plan), plan->n_samples);
    if (s->n_transform == s->n_samples)
        snprintf(choice->why, sizeof choice->why, "cuFFT at %zu samples, %zu transforms a call",
                 s->n_samples, s->group);
    else
        snprintf(choice->why, sizeof choice->why,
                 "cuFFT at %zu points (%zu samples extended periodically), %zu transforms a call",
                 s->n_transform, s->n_samples, s->group);
    choice->n_transform = s->n_transform;
    /* The work area of the transforms is estimated as one group. */
    choice->device_bytes = s->group * s->row_stride * sizeof(float2);
    return PNR_OK;
}

/* --- life --- */

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    return pnr_cuda_upload_spectra(plan, common->shape.n_transform, NULL, 1,
                                   ((shared *)common->shared)->spectra, error);
}

static int create_work(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    work *w = (work *)slot->work;
    const int code = pnr_cuda_transforms_create(&w->transforms, s->n_transform, s->row_stride,
                                                s->group, s->group, slot->stream, error);

    return code == PNR_OK ? pnr_cuda_product_create(&w->blas, w->blas_memory, slot->stream, error)
                          : code;
}

static void destroy_work(void *memory)
{
    work *w = (work *)memory;

    pnr_cuda_transforms_destroy(&w->transforms);
    if (w->blas != NULL)
        (void)cublasDestroy(w->blas); /* a failed free is ignored */
}

/* --- one job --- */

/* out = spectrum of the code times each of n rows of in, in whole groups. out may be in. */
static int multiply_rows(const pnr_cuda_shape *s, const work *w, const float2 *in,
                         const float2 *spectrum, float2 *out, size_t n, pnr_error *error)
{
    const int length = (int)s->n_transform, stride = (int)s->row_stride;
    int code = PNR_OK;

    for (size_t row = 0; code == PNR_OK && row < n; row += s->group) {
        const size_t first = row * s->row_stride;

        code =
            pnr_cuda_check_blas(cublasCdgmm(w->blas, CUBLAS_SIDE_LEFT, length, (int)s->group,
                                            in + first, stride, spectrum, 1, out + first, stride),
                                "product with the code", error);
    }
    return code;
}

/* Computes dwells [first, first + n_dwells) of the submit, from raw samples to results. */
static int compute_round(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_cuda_conversion *conversion, size_t first, size_t n_dwells,
                         pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const shared *own = (const shared *)common->shared;
    const work *w = (const work *)slot->work;
    const size_t n = n_dwells * s->dwell_rows;
    float2 *samples = w->profiles.rows[s->oversample - 1];
    int code;

    if ((code = pnr_cuda_convert(s, conversion, first, n_dwells, samples, slot->stream, error)) !=
            PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error)) != PNR_OK ||
        (code = pnr_cuda_transforms_run(&w->transforms, samples, n, CUFFT_FORWARD, error)) !=
            PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_FORWARD, error)) != PNR_OK)
        return code;
    /* The last product replaces the spectrum of the samples. */
    for (size_t half = 0; half < s->oversample; half++)
        if ((code = multiply_rows(s, w, samples, own->spectra + half * s->n_transform,
                                  w->profiles.rows[half], n, error)) != PNR_OK)
            return code;
    if ((code = pnr_cuda_mark(common, slot, PNR_STAGE_PRODUCT, error)) != PNR_OK)
        return code;
    for (size_t half = 0; half < s->oversample; half++)
        if ((code = pnr_cuda_transforms_run(&w->transforms, w->profiles.rows[half], n,
                                            CUFFT_INVERSE, error)) != PNR_OK)
            return code;
    if ((code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK)
        return code;
    return pnr_cuda_profiles_search(common, slot, &w->profiles, first, n_dwells, error);
}

static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const work *w = (const work *)slot->work;
    const pnr_cuda_conversion conversion = pnr_cuda_profiles_conversion(common, slot, &w->profiles);
    int code = pnr_cuda_profiles_measure(common, slot, &w->profiles, n_dwells, error);

    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += s->round_dwells) {
        const size_t left = n_dwells - first;

        code = compute_round(common, slot, &conversion, first,
                             left < s->round_dwells ? left : s->round_dwells, error);
    }
    return code;
}

const pnr_cuda_method pnr_cuda_method_library = {
    "library",   sizeof(shared), sizeof(work), suits,        list_shared, list_work,
    open_shared, NULL,           create_work,  destroy_work, compute,
};
