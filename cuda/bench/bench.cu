/* SPDX-License-Identifier: MIT */
/* Whole correlations timed in four manners, and the link's rate: for pnradar-bench and
 * pnradar-plan. */
#include "cuda/base/check.h"
#include "cuda/bench/resident.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <cstring>

enum { THREADS = 256, MAX_BLOCKS = 1024, LINK_RUNS = 20 };

/* --- kernels --- */

/* data[i] *= by[i] */
__global__ void __launch_bounds__(THREADS)
    multiply_double(cufftDoubleComplex *data, const cufftDoubleComplex *by, size_t n)
{
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (size_t)gridDim.x * THREADS)
        data[i] = cuCmul(data[i], by[i]);
}

__global__ void __launch_bounds__(THREADS)
    multiply_single(const cufftComplex *in, const cufftComplex *by, cufftComplex *out, size_t n)
{
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (size_t)gridDim.x * THREADS)
        out[i] = cuCmulf(in[i], by[i]);
}

/* *best = the greatest |c|^2 in the upper half, the lowest index that has it, inverted, in the
 * lower one. A maximum of integers does not depend on the order of the blocks. */
__global__ void __launch_bounds__(THREADS)
    peak_single(const cufftComplex *c, size_t n, unsigned long long *best)
{
    __shared__ unsigned long long best_of_block;
    unsigned long long mine = 0;

    if (threadIdx.x == 0)
        best_of_block = 0;
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (size_t)gridDim.x * THREADS) {
        const float power = fmaf(c[i].x, c[i].x, c[i].y * c[i].y);
        const unsigned long long key =
            (unsigned long long)__float_as_uint(power) << 32 | (UINT32_MAX - (uint32_t)i);

        mine = key > mine ? key : mine;
    }
    atomicMax(&best_of_block, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicMax(best, best_of_block);
}

/* --- the work of a manner --- */

/* What lives as long as the manner says; unused pointers are NULL. */
typedef struct work {
    size_t n;
    double (*samples)[2];     /* [n] pageable */
    double (*spectrum)[2];    /* [n] pageable: conj(DFT of the code) / n */
    double (*profile)[2];     /* [n] pageable */
    float (*pinned)[2];       /* [n] pinned: the samples in single precision */
    unsigned long long *best; /* pinned */
    void *device_data;        /* [n] complex, double or single */
    void *device_out;         /* [n] complex single */
    void *device_spectrum;    /* [n] complex, double or single */
    unsigned long long *device_best;
    cufftHandle plan;
    bool has_plan;
} work;

static unsigned blocks_for(size_t n)
{
    return (unsigned)std::min<size_t>((n + THREADS - 1) / THREADS, MAX_BLOCKS);
}

/* Host memory of a manner: the samples are the code delayed by `delay`, a random phase of +-1, +-i
 * a chip. */
static int create_signal(work *w, size_t n, size_t delay, pnr_error *error)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    int code;

    w->n = n;
    w->samples = (double(*)[2])calloc(n, sizeof *w->samples);
    w->spectrum = (double(*)[2])calloc(n, sizeof *w->spectrum);
    w->profile = (double(*)[2])calloc(n, sizeof *w->profile);
    if (w->samples == NULL || w->spectrum == NULL || w->profile == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "cuda: no memory for %zu samples", n);
    for (size_t i = 0; i < n; i++) {
        /* 64-bit linear congruence (D. Knuth's MMIX); its top bits are the chip. */
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        w->spectrum[i][state >> 63] = (state >> 62 & 1) != 0 ? 1.0 : -1.0;
        w->samples[(i + delay) % n][0] = w->spectrum[i][0];
        w->samples[(i + delay) % n][1] = w->spectrum[i][1];
    }
    if ((code = pnr_transform_forward(w->spectrum, n)) != PNR_OK)
        return pnr_error_set(error, code, "cuda: no memory for a spectrum of %zu samples", n);
    for (size_t i = 0; i < n; i++) {
        w->spectrum[i][0] /= (double)n;
        w->spectrum[i][1] /= -(double)n;
    }
    return PNR_OK;
}

static int create_plan(work *w, cufftType type, pnr_error *error)
{
    const int code =
        pnr_cuda_check_fft(cufftPlan1d(&w->plan, (int)w->n, type, 1), "planning", error);

    w->has_plan = code == PNR_OK;
    return code;
}

static int allocate(void **memory, size_t bytes, pnr_error *error)
{
    return pnr_cuda_check(cudaMalloc(memory, bytes), "GPU memory", error);
}

/* Device memory, plan and spectrum in double precision. */
static int open_double(work *w, pnr_error *error)
{
    const size_t bytes = w->n * sizeof(cufftDoubleComplex);
    int code;

    if ((code = allocate(&w->device_data, bytes, error)) != PNR_OK ||
        (code = allocate(&w->device_spectrum, bytes, error)) != PNR_OK ||
        (code = create_plan(w, CUFFT_Z2Z, error)) != PNR_OK)
        return code;
    return pnr_cuda_check(
        cudaMemcpy(w->device_spectrum, w->spectrum, bytes, cudaMemcpyHostToDevice), "upload",
        error);
}

static void close_device(work *w)
{
    /* On the way out a status changes nothing. */
    if (w->has_plan)
        (void)cufftDestroy(w->plan);
    w->has_plan = false;
    for (void **memory :
         {&w->device_data, &w->device_out, &w->device_spectrum, (void **)&w->device_best}) {
        if (*memory != NULL)
            (void)cudaFree(*memory);
        *memory = NULL;
    }
}

/* Samples up, profile down, maximum on the host. */
static int call_double(work *w, size_t *lag, pnr_error *error)
{
    const size_t bytes = w->n * sizeof(cufftDoubleComplex);
    cufftDoubleComplex *data = (cufftDoubleComplex *)w->device_data;
    double greatest = -1;
    int code;

    if ((code = pnr_cuda_check(cudaMemcpy(data, w->samples, bytes, cudaMemcpyHostToDevice),
                               "upload", error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftExecZ2Z(w->plan, data, data, CUFFT_FORWARD), "transform",
                                   error)) != PNR_OK)
        return code;
    multiply_double<<<blocks_for(w->n), THREADS>>>(
        data, (const cufftDoubleComplex *)w->device_spectrum, w->n);
    if ((code = pnr_cuda_check_launch("multiply_double", error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftExecZ2Z(w->plan, data, data, CUFFT_INVERSE),
                                   "inverse transform", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaMemcpy(w->profile, data, bytes, cudaMemcpyDeviceToHost),
                               "return", error)) != PNR_OK)
        return code;
    for (size_t k = 0; k < w->n; k++) {
        const double power =
            w->profile[k][0] * w->profile[k][0] + w->profile[k][1] * w->profile[k][1];

        if (power > greatest) {
            greatest = power;
            *lag = k;
        }
    }
    return PNR_OK;
}

/* As a program that keeps nothing: memory, plan and the stored spectrum come and go with every
 * call. */
static int call_anew(work *w, size_t *lag, pnr_error *error)
{
    int code = open_double(w, error);

    if (code == PNR_OK)
        code = call_double(w, lag, error);
    close_device(w);
    return code;
}

/* Everything in single precision, the samples pinned and already on the device too. */
static int open_single(work *w, pnr_error *error)
{
    const size_t bytes = w->n * sizeof(cufftComplex);
    int code;

    if ((code = allocate(&w->device_data, bytes, error)) != PNR_OK ||
        (code = allocate(&w->device_out, bytes, error)) != PNR_OK ||
        (code = allocate(&w->device_spectrum, bytes, error)) != PNR_OK ||
        (code = allocate((void **)&w->device_best, sizeof *w->device_best, error)) != PNR_OK ||
        (code = create_plan(w, CUFFT_C2C, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaHostAlloc((void **)&w->best, sizeof *w->best, 0),
                               "pinned memory", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaHostAlloc((void **)&w->pinned, bytes, 0), "pinned memory",
                               error)) != PNR_OK)
        return code;
    for (size_t i = 0; i < w->n; i++) {
        w->pinned[i][0] = (float)w->spectrum[i][0];
        w->pinned[i][1] = (float)w->spectrum[i][1];
    }
    if ((code = pnr_cuda_check(
             cudaMemcpy(w->device_spectrum, w->pinned, bytes, cudaMemcpyHostToDevice), "upload",
             error)) != PNR_OK)
        return code;
    for (size_t i = 0; i < w->n; i++) {
        w->pinned[i][0] = (float)w->samples[i][0];
        w->pinned[i][1] = (float)w->samples[i][1];
    }
    return pnr_cuda_check(cudaMemcpy(w->device_data, w->pinned, bytes, cudaMemcpyHostToDevice),
                          "upload", error);
}

/* The samples stay as they are; only the maximum comes back. */
static int call_resident(work *w, size_t *lag, pnr_error *error)
{
    const cufftComplex *data = (const cufftComplex *)w->device_data;
    cufftComplex *out = (cufftComplex *)w->device_out;
    int code;

    if ((code = pnr_cuda_check_fft(
             cufftExecC2C(w->plan, (cufftComplex *)w->device_data, out, CUFFT_FORWARD), "transform",
             error)) != PNR_OK)
        return code;
    assert(data != out);
    multiply_single<<<blocks_for(w->n), THREADS>>>(out, (const cufftComplex *)w->device_spectrum,
                                                   out, w->n);
    if ((code = pnr_cuda_check_launch("multiply_single", error)) != PNR_OK ||
        (code = pnr_cuda_check_fft(cufftExecC2C(w->plan, out, out, CUFFT_INVERSE),
                                   "inverse transform", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaMemsetAsync(w->device_best, 0, sizeof *w->device_best, 0),
                               "clearing", error)) != PNR_OK)
        return code;
    peak_single<<<blocks_for(w->n), THREADS>>>(out, w->n, w->device_best);
    if ((code = pnr_cuda_check_launch("peak_single", error)) != PNR_OK ||
        (code = pnr_cuda_check(
             cudaMemcpyAsync(w->best, w->device_best, sizeof *w->best, cudaMemcpyDeviceToHost, 0),
             "return", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaStreamSynchronize(0), "correlation", error)) != PNR_OK)
        return code;
    *lag = UINT32_MAX - (uint32_t)*w->best;
    return PNR_OK;
}

static int call_pinned(work *w, size_t *lag, pnr_error *error)
{
    const int code =
        pnr_cuda_check(cudaMemcpyAsync(w->device_data, w->pinned, w->n * sizeof(cufftComplex),
                                       cudaMemcpyHostToDevice, 0),
                       "upload", error);

    return code != PNR_OK ? code : call_resident(w, lag, error);
}

static void destroy_work(work *w)
{
    close_device(w);
    if (w->best != NULL)
        (void)cudaFreeHost(w->best);
    if (w->pinned != NULL)
        (void)cudaFreeHost(w->pinned);
    free(w->samples);
    free(w->spectrum);
    free(w->profile);
}

/* --- the table --- */

typedef struct manner {
    int (*open)(work *, pnr_error *); /* before the calls; may be NULL */
    int (*call)(work *, size_t *lag, pnr_error *);
} manner;

/* In the order of pnr_manner. */
static const manner manners[PNR_MANNER_COUNT] = {
    {NULL, call_anew},
    {open_double, call_double},
    {open_single, call_pinned},
    {open_single, call_resident},
};

/* times: [runs] ns; the first call is discarded. */
static int time_calls(work *w, const manner *m, size_t delay, int runs, double *times,
                      pnr_error *error)
{
    for (int run = -1; run < runs; run++) {
        const uint64_t start_ns = pnr_clock_ns();
        size_t lag = w->n;
        const int code = m->call(w, &lag, error);

        if (code != PNR_OK)
            return code;
        if (run >= 0)
            times[run] = (double)(pnr_clock_ns() - start_ns);
        if (lag != delay)
            return pnr_error_set(error, PNR_EENGINE, "cuda: %zu samples: lag %zu came out, not %zu",
                                 w->n, lag, delay);
    }
    return PNR_OK;
}

/* q of 0..1 of sorted times, the nearest from above. */
static double quantile(const double *sorted, int n, double q)
{
    const int at = (int)ceil(q * n) - 1;

    return sorted[at < 0 ? 0 : at];
}

static int seed(size_t device, size_t n, pnr_manner which, int runs, double *median_ns,
                double *p99_ns, pnr_error *error)
{
    const size_t delay = n / 2 + n / 7; /* beyond the middle */
    work w = {};
    double *times = NULL;
    int code;

    if (n < 2 || n > (size_t)1 << 26 || runs < 1 || (int)which < 0 || which >= PNR_MANNER_COUNT)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "cuda: %zu samples, %d runs, manner %d", n,
                             runs, (int)which);
    if ((code = pnr_cuda_check(cudaSetDevice((int)device), "selecting the GPU", error)) != PNR_OK)
        return code;
    times = (double *)calloc((size_t)runs, sizeof *times);
    code = times != NULL
               ? create_signal(&w, n, delay, error)
               : pnr_error_set(error, PNR_ENOMEMORY, "cuda: no memory for %d times", runs);
    if (code == PNR_OK && manners[which].open != NULL)
        code = manners[which].open(&w, error);
    if (code == PNR_OK)
        code = time_calls(&w, &manners[which], delay, runs, times, error);
    if (code == PNR_OK) {
        std::sort(times, times + runs);
        *median_ns = quantile(times, runs, 0.5);
        *p99_ns = quantile(times, runs, 0.99);
    }
    destroy_work(&w);
    free(times);
    return code;
}

/* Median of LINK_RUNS copies after one that is discarded, each timed by events around it. */
static int time_link(void *to, const void *from, size_t bytes, cudaEvent_t marks[2], double *rate)
{
    double rates[LINK_RUNS];

    for (int run = -1; run < LINK_RUNS; run++) {
        float ms = 0;

        if (cudaEventRecord(marks[0], 0) != cudaSuccess ||
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, 0) != cudaSuccess ||
            cudaEventRecord(marks[1], 0) != cudaSuccess ||
            cudaEventSynchronize(marks[1]) != cudaSuccess ||
            cudaEventElapsedTime(&ms, marks[0], marks[1]) != cudaSuccess || !(ms > 0))
            return PNR_EENGINE;
        if (run >= 0)
            rates[run] = (double)bytes / (ms * 1e-3);
    }
    std::sort(rates, rates + LINK_RUNS);
    *rate = quantile(rates, LINK_RUNS, 0.5);
    return PNR_OK;
}

static double link_rate(size_t device, size_t bytes)
{
    cudaEvent_t marks[2] = {NULL, NULL};
    void *to = NULL, *from = NULL;
    double rate = 0;

    if (bytes > 0 && cudaSetDevice((int)device) == cudaSuccess &&
        cudaEventCreate(&marks[0]) == cudaSuccess && cudaEventCreate(&marks[1]) == cudaSuccess &&
        cudaMalloc(&to, bytes) == cudaSuccess &&
        cudaHostAlloc(&from, bytes, cudaHostAllocDefault) == cudaSuccess) {
        memset(from, 0x5a, bytes);
        if (time_link(to, from, bytes, marks, &rate) != PNR_OK)
            rate = 0;
    }
    if (from != NULL)
        (void)cudaFreeHost(from);
    if (to != NULL)
        (void)cudaFree(to);
    for (cudaEvent_t mark : marks)
        if (mark != NULL)
            (void)cudaEventDestroy(mark);
    (void)cudaGetLastError();
    return rate;
}

/* The type has the symbol's name already, so the object gets it by its label. */
extern const struct pnr_engine_bench pnr_cuda_bench __asm__(PNR_ENGINE_BENCH_SYMBOL)
    __attribute__((visibility("default")));
const struct pnr_engine_bench pnr_cuda_bench = {PNR_ENGINE_ABI, link_rate, seed,
                                                &pnr_cuda_resident};
