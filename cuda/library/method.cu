/* SPDX-License-Identifier: MIT */
/* Method library: cuFFT forward, cuBLAS product, cuFFT inverse, peak search: simple, any length,
 * the plain twin of the others. */
#include "cuda/steps/profiles.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { BLAS_WORK = 4 << 20, N_BLOCKS = PNR_CUDA_PROFILES_BLOCKS + 1 };

/* What all slots share. */
typedef struct shared {
    float2 *spectra[2]; /* [oversample] of [L]: conj(DFT of the code) / L, device */
} shared;

/* A slot's own. */
typedef struct work {
    cufftHandle fft;
    bool has_fft;
    cublasHandle_t blas;

    /* device; the last of the rows holds the samples first */
    pnr_cuda_profiles profiles;
    void *fft_work;
    void *blas_work;
} work;

/* All memory of a slot but the transforms' work area. */
static void list_blocks(const pnr_plan *plan, const pnr_cuda_shape *s, work *w,
                        pnr_cuda_block list[N_BLOCKS])
{
    const size_t n = pnr_cuda_profiles_list(plan, s, &w->profiles, list);

    list[n] = {&w->blas_work, BLAS_WORK, false};
}

/* The work area of the transforms is estimated as one group. */
static int suits(const pnr_plan *plan, pnr_engine_choice *choice, uint64_t *shared_bytes,
                 pnr_error *error)
{
    const pnr_cuda_shape shape = pnr_cuda_shape_of(plan);
    pnr_cuda_block list[N_BLOCKS];
    work none = {};
    const int code = pnr_cuda_profiles_suit(plan, &shape, error);

    if (code != PNR_OK)
        return code;
    if (shape.n_transform == shape.n_samples)
        snprintf(choice->why, sizeof choice->why, "cuFFT at %zu samples, %zu transforms a call",
                 shape.n_samples, shape.group);
    else
        snprintf(choice->why, sizeof choice->why,
                 "cuFFT at %zu points (%zu samples extended periodically), %zu transforms a call",
                 shape.n_transform, shape.n_samples, shape.group);
    choice->n_transform = shape.n_transform;
    choice->device_bytes = shape.group * shape.row_stride * sizeof(float2);
    list_blocks(plan, &shape, &none, list);
    pnr_cuda_blocks_count(list, N_BLOCKS, &choice->device_bytes, &choice->host_bytes);
    *shared_bytes = shape.oversample * shape.n_transform * sizeof(float2);
    return PNR_OK;
}

/* --- life --- */

/* conj(DFT of the code, zero beyond N) / L, in double, rounded once. */
static int create_spectrum(const pnr_plan *plan, size_t length, size_t half, float2 **out,
                           pnr_error *error)
{
    const size_t n = plan->n_samples;
    double(*spectrum)[2] = (double(*)[2])calloc(length, sizeof *spectrum);
    float2 *rounded = (float2 *)calloc(length, sizeof *rounded);
    int code = PNR_ENOMEMORY;

    if (spectrum != NULL && rounded != NULL) {
        memcpy(spectrum, plan->references + half * n, n * sizeof *spectrum);
        code = pnr_transform_forward(spectrum, length);
    }
    if (code != PNR_OK) {
        pnr_error_set(error, code, "engine cuda: no memory for a spectrum of %zu values", length);
    } else {
        for (size_t i = 0; i < length; i++)
            rounded[i] = make_float2((float)(spectrum[i][0] / (double)length),
                                     (float)(-spectrum[i][1] / (double)length));
        if ((code = pnr_cuda_check(cudaMalloc((void **)out, length * sizeof *rounded),
                                   "GPU memory for the code's spectrum", error)) == PNR_OK)
            code = pnr_cuda_check(
                cudaMemcpy(*out, rounded, length * sizeof *rounded, cudaMemcpyHostToDevice),
                "upload of the code's spectrum", error);
    }
    free(spectrum);
    free(rounded);
    return code;
}

static int open_shared(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    shared *own = (shared *)calloc(1, sizeof *own);
    int code = PNR_OK;

    common->shared = own;
    if (own == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    for (size_t half = 0; code == PNR_OK && half < plan->oversample; half++)
        code = create_spectrum(plan, common->shape.n_transform, half, &own->spectra[half], error);
    return code;
}

static void close_shared(pnr_cuda_common *common)
{
    shared *own = (shared *)common->shared;

    if (own == NULL)
        return;
    /* On the way out a status changes nothing. */
    for (size_t half = 0; half < 2; half++)
        if (own->spectra[half] != NULL)
            (void)cudaFree(own->spectra[half]);
    free(own);
    common->shared = NULL;
}

/* G rows of L, in place, both ways; the work area is ours, so that no call allocates. */
static int create_transform(const pnr_cuda_shape *shape, work *w, cudaStream_t stream,
                            pnr_error *error)
{
    int length = (int)shape->n_transform;
    const int stride = (int)shape->row_stride;
    size_t work_bytes = 0;
    int code = pnr_cuda_check_fft(cufftCreate(&w->fft), "creating a transform", error);

    if (code != PNR_OK)
        return code;
    w->has_fft = true;
    if ((code = pnr_cuda_check_fft(cufftSetAutoAllocation(w->fft, 0), "transform's memory",
                                   error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftMakePlanMany(w->fft, 1, &length, &length, 1, stride,
                                                     &length, 1, stride, CUFFT_C2C,
                                                     (int)shape->group, &work_bytes),
                                   "planning the transforms", error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftSetStream(w->fft, stream), "transform's stream", error)) !=
            PNR_OK ||
        (code = pnr_cuda_check(cudaMalloc(&w->fft_work, work_bytes > 0 ? work_bytes : 256),
                               "GPU memory for the transforms' work area", error)) != PNR_OK)
        return code;
    return pnr_cuda_check_fft(cufftSetWorkArea(w->fft, w->fft_work), "transform's work area",
                              error);
}

static int create_product(work *w, cudaStream_t stream, pnr_error *error)
{
    int code = pnr_cuda_check_blas(cublasCreate(&w->blas), "creating the product", error);

    if (code != PNR_OK) {
        w->blas = NULL;
        return code;
    }
    /* The stream first: setting it takes the workspace away. */
    if ((code = pnr_cuda_check_blas(cublasSetStream(w->blas, stream), "product's stream", error)) !=
        PNR_OK)
        return code;
    return pnr_cuda_check_blas(cublasSetWorkspace(w->blas, w->blas_work, BLAS_WORK),
                               "product's work area", error);
}

static int create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    work *w = (work *)calloc(1, sizeof *w);
    pnr_cuda_block list[N_BLOCKS];
    int code;

    slot->work = w;
    if (w == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    list_blocks(&common->plan, &common->shape, w, list);
    if ((code = pnr_cuda_blocks_allocate(list, N_BLOCKS, slot->stream, error)) != PNR_OK ||
        (code = create_transform(&common->shape, w, slot->stream, error)) != PNR_OK)
        return code;
    return create_product(w, slot->stream, error);
}

static void destroy(pnr_cuda_slot *slot)
{
    const pnr_plan plan = {};
    const pnr_cuda_shape shape = {};
    work *w = (work *)slot->work;
    pnr_cuda_block list[N_BLOCKS];

    if (w == NULL)
        return;
    /* On the way out a status changes nothing. */
    if (w->has_fft)
        (void)cufftDestroy(w->fft);
    if (w->blas != NULL)
        (void)cublasDestroy(w->blas);
    list_blocks(&plan, &shape, w, list);
    pnr_cuda_blocks_free(list, N_BLOCKS);
    if (w->fft_work != NULL)
        (void)cudaFree(w->fft_work);
    free(w);
    slot->work = NULL;
}

/* --- one job --- */

/* G rows at a time, in place. direction: CUFFT_FORWARD or CUFFT_INVERSE. */
static int transform(const pnr_cuda_shape *s, work *w, float2 *rows, size_t n_groups, int direction,
                     pnr_error *error)
{
    int code = PNR_OK;

    for (size_t g = 0; code == PNR_OK && g < n_groups; g++) {
        cufftComplex *group = rows + g * s->group * s->row_stride;

        code = pnr_cuda_check_fft(cufftExecC2C(w->fft, group, group, direction),
                                  direction == CUFFT_FORWARD ? "transform" : "inverse transform",
                                  error);
    }
    return code;
}

/* out = spectrum of the code times each row of in; in place when out is in. */
static int product(const pnr_cuda_shape *s, work *w, const float2 *in, const float2 *spectrum,
                   float2 *out, size_t n_groups, pnr_error *error)
{
    const int length = (int)s->n_transform, stride = (int)s->row_stride;
    int code = PNR_OK;

    for (size_t g = 0; code == PNR_OK && g < n_groups; g++) {
        const size_t first = g * s->group * s->row_stride;

        code =
            pnr_cuda_check_blas(cublasCdgmm(w->blas, CUBLAS_SIDE_LEFT, length, (int)s->group,
                                            in + first, stride, spectrum, 1, out + first, stride),
                                "product with the code", error);
    }
    return code;
}

/* Dwells [first, first + n_dwells) of the submit, from raw samples to results. */
static int compute_round(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                         const pnr_cuda_conversion *conversion, size_t first, size_t n_dwells,
                         pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const shared *own = (const shared *)common->shared;
    work *w = (work *)slot->work;
    const size_t n_groups = (n_dwells * s->dwell_rows + s->group - 1) / s->group;
    float2 *samples = w->profiles.rows[s->oversample - 1];
    int code;

    if ((code = pnr_cuda_convert(s, conversion, first, n_dwells, samples, slot->stream, error)) !=
            PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_CONVERT, error)) != PNR_OK ||
        (code = transform(s, w, samples, n_groups, CUFFT_FORWARD, error)) != PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_FORWARD, error)) != PNR_OK)
        return code;
    /* The last product replaces the samples' spectrum. */
    for (size_t half = 0; half < s->oversample; half++)
        if ((code = product(s, w, samples, own->spectra[half], w->profiles.rows[half], n_groups,
                            error)) != PNR_OK)
            return code;
    if ((code = pnr_cuda_mark(common, slot, PNR_STAGE_PRODUCT, error)) != PNR_OK)
        return code;
    for (size_t half = 0; half < s->oversample; half++)
        if ((code = transform(s, w, w->profiles.rows[half], n_groups, CUFFT_INVERSE, error)) !=
            PNR_OK)
            return code;
    if ((code = pnr_cuda_mark(common, slot, PNR_STAGE_INVERSE, error)) != PNR_OK)
        return code;
    return pnr_cuda_profiles_search(common, s, slot, &w->profiles, first, n_dwells, error);
}

/* Everything after the upload. */
static int compute(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                   pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const work *w = (const work *)slot->work;
    const pnr_cuda_conversion conversion = pnr_cuda_profiles_conversion(common, slot, &w->profiles);
    int code = pnr_cuda_profiles_measure(common, s, slot, &w->profiles, n_dwells, error);

    for (size_t first = 0; code == PNR_OK && first < n_dwells; first += s->round_dwells) {
        const size_t left = n_dwells - first;

        code = compute_round(common, slot, &conversion, first,
                             left < s->round_dwells ? left : s->round_dwells, error);
    }
    return code;
}

const pnr_cuda_method pnr_cuda_method_library = {
    "library", suits, open_shared, close_shared, create, destroy, compute,
};
