/* SPDX-License-Identifier: MIT */
/* Resources that methods use: tables, spectra, transforms, matrix products, a second stream. */
#include "cuda/base/resources.h"

#include <cassert>
#include <cstdlib>
#include <cstring>

/* --- tables --- */

int pnr_cuda_upload(void *to, const void *from, size_t bytes, pnr_error *error)
{
    return bytes == 0 ? PNR_OK
                      : pnr_cuda_check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice),
                                       "upload of a table", error);
}

/* Writes scale / length * conj(DFT of a reference) to `out`, bin k at place(length, k). Zeros
 * extend the reference to `length` samples. spectrum: scratch memory for `length` values. */
static int fill_spectrum(const double (*reference)[2], size_t n_samples, size_t length,
                         pnr_cuda_place place, double scale, double (*spectrum)[2], float2 *out)
{
    int code;

    memset(spectrum, 0, length * sizeof *spectrum);
    memcpy(spectrum, reference, n_samples * sizeof *spectrum);
    if ((code = pnr_transform_forward(spectrum, length)) != PNR_OK)
        return code;
    for (size_t k = 0; k < length; k++)
        out[place != NULL ? place(length, k) : k] =
            make_float2((float)(spectrum[k][0] * scale / (double)length),
                        (float)(-spectrum[k][1] * scale / (double)length));
    return PNR_OK;
}

int pnr_cuda_upload_spectra(const pnr_plan *plan, size_t n_transform, pnr_cuda_place place,
                            double scale, float2 *spectra, pnr_error *error)
{
    const size_t n_spectra = plan->n_codes * plan->oversample, n = plan->n_samples;
    double(*spectrum)[2] = (double(*)[2])calloc(n_transform, sizeof *spectrum);
    float2 *rounded = (float2 *)calloc(n_transform, sizeof *rounded);
    int code = spectrum != NULL && rounded != NULL ? PNR_OK : PNR_ENOMEMORY;

    for (size_t i = 0; code == PNR_OK && i < n_spectra; i++) {
        code = fill_spectrum(plan->references + i * n, n, n_transform, place, scale, spectrum,
                             rounded);
        if (code == PNR_OK)
            code = pnr_cuda_upload(spectra + i * n_transform, rounded,
                                   n_transform * sizeof *rounded, error);
    }
    if (code == PNR_ENOMEMORY)
        pnr_error_set(error, code, "engine cuda: no memory for %zu spectra of %zu values",
                      n_spectra, n_transform);
    free(spectrum);
    free(rounded);
    return code;
}

/* --- cuFFT --- */

static int plan_rows(pnr_cuda_transforms *t, size_t n_points, cudaStream_t stream,
                     size_t *work_bytes, pnr_error *error)
{
    const int i = t->n_handles, stride = (int)t->stride;
    int length = (int)n_points;
    size_t bytes = 0;
    int code = pnr_cuda_check_fft(cufftCreate(&t->handles[i]), "creating a transform", error);

    if (code != PNR_OK)
        return code;
    t->n_handles++;
    if ((code = pnr_cuda_check_fft(cufftSetAutoAllocation(t->handles[i], 0), "transform's memory",
                                   error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftMakePlanMany(t->handles[i], 1, &length, &length, 1, stride,
                                                     &length, 1, stride, CUFFT_C2C,
                                                     (int)t->n_rows[i], &bytes),
                                   "planning the transforms", error)) != PNR_OK)
        return code;
    *work_bytes = bytes > *work_bytes ? bytes : *work_bytes;
    return pnr_cuda_check_fft(cufftSetStream(t->handles[i], stream), "transform's stream", error);
}

int pnr_cuda_transforms_create(pnr_cuda_transforms *t, size_t n_points, size_t stride,
                               size_t n_forward, size_t n_inverse, cudaStream_t stream,
                               pnr_error *error)
{
    const int n_handles = n_forward == n_inverse ? 1 : 2;
    size_t bytes = 256; /* so that the work area is never empty */
    int code = PNR_OK;

    t->n_rows[0] = n_forward;
    t->n_rows[1] = n_inverse;
    t->stride = stride;
    while (code == PNR_OK && t->n_handles < n_handles)
        code = plan_rows(t, n_points, stream, &bytes, error);
    if (code == PNR_OK)
        code = pnr_cuda_check(cudaMalloc(&t->memory, bytes),
                              "GPU memory for the transforms' work area", error);
    for (int i = 0; code == PNR_OK && i < n_handles; i++)
        code = pnr_cuda_check_fft(cufftSetWorkArea(t->handles[i], t->memory),
                                  "transform's work area", error);
    return code;
}

void pnr_cuda_transforms_destroy(pnr_cuda_transforms *t)
{
    /* A failed free is ignored: nothing depends on it. */
    for (int i = 0; i < t->n_handles; i++)
        (void)cufftDestroy(t->handles[i]);
    if (t->memory != NULL)
        (void)cudaFree(t->memory);
}

int pnr_cuda_transforms_run(const pnr_cuda_transforms *t, float2 *rows, size_t n, int direction,
                            pnr_error *error)
{
    const bool is_forward = direction == CUFFT_FORWARD;
    const cufftHandle handle = t->handles[is_forward ? 0 : t->n_handles - 1];
    const size_t n_rows = t->n_rows[is_forward ? 0 : 1];
    int code = PNR_OK;

    for (size_t first = 0; code == PNR_OK && first < n; first += n_rows) {
        cufftComplex *group = rows + first * t->stride;

        code = pnr_cuda_check_fft(cufftExecC2C(handle, group, group, direction),
                                  is_forward ? "transform" : "inverse transform", error);
    }
    return code;
}

/* --- a second stream --- */

int pnr_cuda_side_create(pnr_cuda_side *side, pnr_error *error)
{
    int code;

    if ((code = pnr_cuda_check(cudaStreamCreateWithFlags(&side->stream, cudaStreamNonBlocking),
                               "creating a second stream", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaEventCreateWithFlags(&side->fork, cudaEventDisableTiming),
                               "creating an event", error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaEventCreateWithFlags(&side->join, cudaEventDisableTiming),
                          "creating an event", error);
}

void pnr_cuda_side_destroy(pnr_cuda_side *side)
{
    /* A failed free is ignored: nothing depends on it. */
    if (side->stream != NULL) {
        (void)cudaStreamSynchronize(side->stream);
        (void)cudaStreamDestroy(side->stream);
    }
    if (side->fork != NULL)
        (void)cudaEventDestroy(side->fork);
    if (side->join != NULL)
        (void)cudaEventDestroy(side->join);
}

int pnr_cuda_side_fork(const pnr_cuda_side *side, cudaStream_t main, pnr_error *error)
{
    const int code = pnr_cuda_check(cudaEventRecord(side->fork, main), "fork", error);

    return code == PNR_OK
               ? pnr_cuda_check(cudaStreamWaitEvent(side->stream, side->fork, 0), "fork", error)
               : code;
}

int pnr_cuda_side_join(const pnr_cuda_side *side, cudaStream_t main, int code, pnr_error *error)
{
    pnr_error *const own_error = code == PNR_OK ? error : NULL; /* only the first failure is
                                                                 * reported */
    int join = pnr_cuda_check(cudaEventRecord(side->join, side->stream), "join", own_error);

    if (join == PNR_OK)
        join = pnr_cuda_check(cudaStreamWaitEvent(main, side->join, 0), "join", own_error);
    if (join != PNR_OK)
        (void)cudaStreamSynchronize(side->stream); /* `main` does not wait, so this thread waits */
    return code != PNR_OK ? code : join;
}

/* --- kernels and the device --- */

int pnr_cuda_allow_shared(const void *kernel, size_t shared_bytes, pnr_error *error)
{
    return pnr_cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)shared_bytes),
                          "shared memory", error);
}

int pnr_cuda_fit_blocks(const void *kernel, size_t n_threads, size_t shared_bytes,
                        uint32_t *n_blocks, pnr_error *error)
{
    int device = 0, n_processors = 0, n = 0, code;

    if ((code = pnr_cuda_allow_shared(kernel, shared_bytes, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                   &n, kernel, (int)n_threads, shared_bytes),
                               "blocks a multiprocessor", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaGetDevice(&device), "the GPU in use", error)) != PNR_OK ||
        (code = pnr_cuda_check(
             cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, device),
             "multiprocessors", error)) != PNR_OK)
        return code;
    *n_blocks = (uint32_t)(n * n_processors);
    return PNR_OK;
}

/* Returns a limit of the device. If the limit is unknown, returns `large`, the limit of an H200. */
static size_t device_limit(cudaDeviceAttr attribute, size_t device, size_t large)
{
    int value;

    if (cudaDeviceGetAttribute(&value, attribute, (int)device) == cudaSuccess)
        return (size_t)value;
    (void)cudaGetLastError();
    return large;
}

size_t pnr_cuda_block_bytes(size_t device)
{
    return device_limit(cudaDevAttrMaxSharedMemoryPerBlockOptin, device, 227 << 10);
}

size_t pnr_cuda_processors(size_t device)
{
    return device_limit(cudaDevAttrMultiProcessorCount, device, 132);
}
