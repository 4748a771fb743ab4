/* SPDX-License-Identifier: MIT */
/* Measures the times of methods with samples and results on the device. Contains the table of
 * functions that pnradar-bench loads. */
#include "cuda/bench/resident.h"

#include "cuda/base/method.h"
#include "cuda/base/resources.h"
#include "cuda/engine/engine.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>

extern "C" const pnr_engine_ops *pnr_engine_module(void);

enum { MAX_SETS = 16, POISON = 0xa5 };
/* The device waits for head_start_ns + n_sets * launch_ns while the host enqueues all launches. */
static const unsigned long long head_start_ns = 50 * 1000, launch_ns = 20 * 1000;

/* The slot and method of an engine, and several sets of samples. Each set has its own graph,
 * because a graph contains the address of the samples. */
struct pnr_resident {
    pnr_engine *engine;
    const pnr_cuda_common *common;
    pnr_cuda_slot *slot; /* `run` copies the results to slot->host */
    void *slots_raw;     /* the slot's own raw memory, while slot->raw points to a set */

    size_t n_sets, n_rows;
    void *sets[MAX_SETS]; /* device, [n_windows * N] samples each */
    cudaGraph_t graphs[MAX_SETS];
    cudaGraphExec_t replays[MAX_SETS];
    cudaEvent_t marks[MAX_SETS + 1];
    float2 *codes;  /* [n_codes][N], device */
    double *bins;   /* [n_rows], device */
    uint32_t *lags; /* [batch], device */
};

/* --- kernels --- */

/* Keeps the stream busy, so that later timed work does not wait for the host. */
__global__ void hold(unsigned long long for_ns)
{
    unsigned long long start_ns, now_ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start_ns));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now_ns));
    while (now_ns - start_ns < for_ns);
}

/* --- create and destroy --- */

/* Lists the buffers in device memory; returns their number. */
static size_t list_buffers(pnr_resident *r, const pnr_plan *plan, size_t raw_bytes,
                           pnr_cuda_buffer *list)
{
    size_t n = 0;

    list[n++] = {(void **)&r->codes, plan->n_codes * plan->n_samples * sizeof *r->codes, false};
    list[n++] = {(void **)&r->bins, r->n_rows * sizeof *r->bins, false};
    list[n++] = {(void **)&r->lags, plan->batch * sizeof *r->lags, false};
    for (size_t i = 0; i < r->n_sets; i++)
        list[n++] = {&r->sets[i], raw_bytes, false};
    return n;
}

/* Uploads the codes a[n] and the frequencies of the rows. The references a[n - 1/2] are not
 * uploaded. */
static int upload_tables(const pnr_plan *plan, pnr_resident *r, pnr_error *error)
{
    const size_t n = plan->n_samples, n_chips = plan->n_codes * n;
    float2 *codes = (float2 *)malloc(n_chips * sizeof *codes);
    double *bins = (double *)malloc(r->n_rows * sizeof *bins);
    int code = PNR_ENOMEMORY;

    if (codes == NULL || bins == NULL) {
        pnr_error_set(error, code, "cuda: no memory for the codes and rows");
    } else {
        for (size_t i = 0; i < n_chips; i++) {
            const double *a = plan->references[i / n * plan->oversample * n + i % n];

            codes[i] = make_float2((float)a[0], (float)a[1]);
        }
        for (size_t row = 0; row < r->n_rows; row++)
            bins[row] = pnr_plan_bins(plan, row);
        if ((code = pnr_cuda_upload(r->codes, codes, n_chips * sizeof *codes, error)) == PNR_OK)
            code = pnr_cuda_upload(r->bins, bins, r->n_rows * sizeof *bins, error);
    }
    free(codes);
    free(bins);
    return code;
}

/* Records a submit of one set of samples as a graph. */
static int capture(pnr_resident *r, size_t set, pnr_error *error)
{
    cudaStream_t stream = r->slot->stream;
    int code, end;

    r->slot->raw = r->sets[set];
    if ((code = pnr_cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                               "capture", error)) != PNR_OK)
        return code;
    code = r->common->method->compute(r->common, r->slot, r->common->shape.batch, error);
    end = pnr_cuda_check(cudaStreamEndCapture(stream, &r->graphs[set]), "capture",
                         code == PNR_OK ? error : NULL);
    r->slot->raw = r->slots_raw;
    if (code != PNR_OK || end != PNR_OK)
        return code != PNR_OK ? code : end;
    if ((code = pnr_cuda_check(cudaGraphInstantiate(&r->replays[set], r->graphs[set], 0), "graph",
                               error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaGraphUpload(r->replays[set], stream), "graph", error);
}

static void destroy(pnr_resident *r)
{
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];
    const pnr_plan plan = {};

    if (r == NULL)
        return;
    /* A failed call is ignored: nothing depends on it. */
    if (r->slot != NULL) {
        (void)cudaSetDevice((int)r->common->plan.device);
        (void)cudaStreamSynchronize(r->slot->stream);
    }
    for (size_t i = 0; i < r->n_sets; i++) {
        if (r->replays[i] != NULL)
            (void)cudaGraphExecDestroy(r->replays[i]);
        if (r->graphs[i] != NULL)
            (void)cudaGraphDestroy(r->graphs[i]);
    }
    for (cudaEvent_t mark : r->marks)
        if (mark != NULL)
            (void)cudaEventDestroy(mark);
    pnr_cuda_buffers_free(list, list_buffers(r, &plan, 0, list));
    pnr_engine_module()->destroy(r->engine);
    free(r);
}

/* Writes the header of a full submit without lost samples. */
static int write_job(pnr_resident *r, pnr_error *error)
{
    const pnr_cuda_shape *shape = &r->common->shape;
    pnr_cuda_job job = {};
    int code;

    job.n_dwells = (uint32_t)shape->batch;
    if ((code = pnr_cuda_upload(r->slot->job, &job, sizeof job, error)) != PNR_OK)
        return code;
    return pnr_cuda_check(
        cudaMemset(r->slot->windows, 0,
                   (shape->n_windows + shape->n_tail_windows) * sizeof *r->slot->windows),
        "clearing the windows' headers", error);
}

static int open_resident(const pnr_plan *plan, pnr_resident *r, pnr_error *error)
{
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];
    int code;

    if ((code = pnr_engine_module()->create(plan, &r->engine, error)) != PNR_OK)
        return code;
    r->slot = pnr_cuda_engine_slot(r->engine, &r->common);
    r->slots_raw = r->slot->raw;
    if ((code = pnr_cuda_buffers_allocate(list,
                                          list_buffers(r, plan, r->common->shape.raw_bytes, list),
                                          r->slot->stream, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaStreamSynchronize(r->slot->stream), "clearing memory", error)) !=
            PNR_OK ||
        (code = upload_tables(plan, r, error)) != PNR_OK || (code = write_job(r, error)) != PNR_OK)
        return code;
    for (cudaEvent_t &mark : r->marks)
        if ((code = pnr_cuda_check(cudaEventCreate(&mark), "time mark", error)) != PNR_OK)
            return code;
    for (size_t i = 0; i < r->n_sets && code == PNR_OK; i++)
        code = capture(r, i, error);
    return code;
}

static int create(const pnr_plan *plan, size_t n_sets, pnr_resident **out, pnr_error *error)
{
    pnr_resident *r = (pnr_resident *)calloc(1, sizeof *r);
    pnr_plan alone = *plan;
    int code;

    *out = NULL;
    if (r == NULL || n_sets < 1 || n_sets > MAX_SETS) {
        free(r);
        return pnr_error_set(error, PNR_ENOMEMORY, "cuda: %zu sets of samples", n_sets);
    }
    alone.depth = 1;
    alone.want_profile = PNR_WANT_NONE;
    alone.measure = alone.will_subtract = false;
    r->n_sets = n_sets;
    r->n_rows = pnr_plan_rows(plan);
    if ((code = open_resident(&alone, r, error)) != PNR_OK) {
        destroy(r);
        return code;
    }
    *out = r;
    return PNR_OK;
}

/* --- samples in, results out --- */

static int fill(pnr_resident *r, size_t set, uint64_t seed, const uint32_t *lags, pnr_error *error)
{
    const pnr_plan *plan = &r->common->plan;
    int code = pnr_cuda_check(cudaSetDevice((int)plan->device), "selecting the GPU", error);

    if (code != PNR_OK ||
        (code = pnr_cuda_check(cudaMemcpyAsync(r->lags, lags, plan->batch * sizeof *lags,
                                               cudaMemcpyHostToDevice, r->slot->stream),
                               "upload of the delays", error)) != PNR_OK ||
        (code = pnr_cuda_bench_fill(plan, r->sets[set], r->codes, r->lags, r->bins, r->n_rows, seed,
                                    r->slot->stream, error)) != PNR_OK)
        return code;
    /* Waits, because the next fill overwrites the lags that this fill reads. */
    return pnr_cuda_check(cudaStreamSynchronize(r->slot->stream), "samples", error);
}

static int run(pnr_resident *r, size_t set, pnr_result *result, pnr_error *error)
{
    const pnr_plan *plan = &r->common->plan;
    const pnr_cuda_results *from = &r->slot->results, *to = &r->slot->host;
    const struct {
        void *host, *device;
        size_t bytes;
    } parts[] = {
        {to->dwells, from->dwells, plan->batch * sizeof *to->dwells},
        {to->candidates, from->candidates,
         plan->batch * plan->max_candidates * sizeof *to->candidates},
        {to->nonfinite, from->nonfinite, r->common->shape.n_windows * sizeof *to->nonfinite},
    };
    cudaStream_t stream = r->slot->stream;
    int code = pnr_cuda_check(cudaSetDevice((int)plan->device), "selecting the GPU", error);

    for (const auto &part : parts)
        if (code == PNR_OK)
            code = pnr_cuda_check(cudaMemsetAsync(part.device, POISON, part.bytes, stream),
                                  "poison", error);
    if (code == PNR_OK)
        code = pnr_cuda_check(cudaGraphLaunch(r->replays[set], stream), "graph", error);
    for (const auto &part : parts)
        if (code == PNR_OK)
            code = pnr_cuda_check(
                cudaMemcpyAsync(part.host, part.device, part.bytes, cudaMemcpyDeviceToHost, stream),
                "return of the results", error);
    if (code == PNR_OK)
        code = pnr_cuda_check(cudaStreamSynchronize(stream), "a submit", error);
    memset(result, 0, sizeof *result);
    result->n_dwells = plan->batch;
    result->dwells = to->dwells;
    result->candidates = to->candidates;
    result->nonfinite = to->nonfinite;
    return code;
}

static int time_sets(pnr_resident *r, double *ns, pnr_error *error)
{
    cudaStream_t stream = r->slot->stream;
    int code =
        pnr_cuda_check(cudaSetDevice((int)r->common->plan.device), "selecting the GPU", error);

    if (code != PNR_OK)
        return code;
    hold<<<1, 1, 0, stream>>>(head_start_ns + r->n_sets * launch_ns);
    if ((code = pnr_cuda_check_launch("hold", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaEventRecord(r->marks[0], stream), "time mark", error)) != PNR_OK)
        return code;
    for (size_t i = 0; i < r->n_sets; i++)
        if ((code = pnr_cuda_check(cudaGraphLaunch(r->replays[i], stream), "graph", error)) !=
                PNR_OK ||
            (code = pnr_cuda_check(cudaEventRecord(r->marks[i + 1], stream), "time mark", error)) !=
                PNR_OK)
            return code;
    if ((code = pnr_cuda_check(cudaStreamSynchronize(stream), "a submit", error)) != PNR_OK)
        return code;
    for (size_t i = 0; i < r->n_sets; i++) {
        float ms = 0;

        if ((code = pnr_cuda_check(cudaEventElapsedTime(&ms, r->marks[i], r->marks[i + 1]),
                                   "time mark", error)) != PNR_OK)
            return code;
        ns[i] = (double)ms * 1e6;
    }
    return PNR_OK;
}

/* --- the kernels of a submit --- */

/* Shortens "void correlate_windows<10>(pnr_cuda_fused)" to "correlate_windows<10>". */
static void write_name(const void *function, char *out, size_t size)
{
    const char *mangled = NULL;
    char *name = NULL, *at, *end;
    int status = 0;

#if CUDART_VERSION >= 12030
    if (cudaFuncGetName(&mangled, function) != cudaSuccess)
        mangled = NULL;
#else
    (void)function;
#endif
    if (mangled != NULL)
        name = abi::__cxa_demangle(mangled, NULL, NULL, &status);
    at = name != NULL ? name : (char *)(mangled != NULL ? mangled : "?");
    if (strncmp(at, "void ", 5) == 0)
        at += 5;
    if (name != NULL && (end = strrchr(at, '(')) != NULL && end > at)
        *end = '\0';
    snprintf(out, size, "%s", at);
    free(name);
}

/* Kernels of cuFFT and cuBLAS belong to another CUDA runtime, so their attributes are unknown. */
static void describe_kernel(const pnr_resident *r, const cudaKernelNodeParams *launch,
                            pnr_kernel_note *note)
{
    cudaFuncAttributes attributes;
    int n_blocks = 0, n_threads = 0;

    memset(note, 0, sizeof *note);
    note->n_blocks = (size_t)launch->gridDim.x * launch->gridDim.y * launch->gridDim.z;
    note->n_threads = (size_t)launch->blockDim.x * launch->blockDim.y * launch->blockDim.z;
    if (cudaFuncGetAttributes(&attributes, launch->func) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, launch->func, (int)note->n_threads,
                                                      launch->sharedMemBytes) != cudaSuccess ||
        cudaDeviceGetAttribute(&n_threads, cudaDevAttrMaxThreadsPerMultiProcessor,
                               (int)r->common->plan.device) != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(note->name, sizeof note->name, "(a library's)");
        return;
    }
    write_name(launch->func, note->name, sizeof note->name);
    note->n_registers = (size_t)attributes.numRegs;
    note->local_bytes = attributes.localSizeBytes;
    note->shared_bytes = attributes.sharedSizeBytes + launch->sharedMemBytes;
    note->blocks_a_processor = (size_t)n_blocks;
    note->occupancy = (double)n_blocks * (double)note->n_threads / n_threads;
}

static size_t list_kernels(const pnr_resident *r, pnr_kernel_note *notes, size_t capacity)
{
    size_t n_nodes = 0, n = 0;
    cudaGraphNode_t *nodes = NULL;

    if (cudaGraphGetNodes(r->graphs[0], NULL, &n_nodes) == cudaSuccess)
        nodes = (cudaGraphNode_t *)calloc(n_nodes + 1, sizeof *nodes);
    if (nodes == NULL || cudaGraphGetNodes(r->graphs[0], nodes, &n_nodes) != cudaSuccess)
        n_nodes = 0;
    for (size_t i = 0; i < n_nodes; i++) {
        cudaGraphNodeType type;
        cudaKernelNodeParams launch = {};

        if (cudaGraphNodeGetType(nodes[i], &type) != cudaSuccess || type != cudaGraphNodeTypeKernel)
            continue;
        if (n < capacity) {
            /* This call fails for some kernels of another CUDA runtime. */
            if (cudaGraphKernelNodeGetParams(nodes[i], &launch) != cudaSuccess)
                (void)cudaGetLastError();
            describe_kernel(r, &launch, &notes[n]);
        }
        n++;
    }
    free(nodes);
    return n;
}

static const pnr_resident_ops resident_ops = {
    pnr_cuda_bench_copy_rate,
    pnr_cuda_bench_describe,
    create,
    destroy,
    fill,
    run,
    time_sets,
    list_kernels,
    pnr_cuda_bench_memory_used,
};

/* In C++ the object cannot have the name of its type. So the assembler label sets the name of the
 * symbol. */
extern const struct pnr_engine_bench pnr_cuda_bench __asm__(PNR_ENGINE_BENCH_SYMBOL)
    __attribute__((visibility("default")));
const struct pnr_engine_bench pnr_cuda_bench = {PNR_ENGINE_ABI, pnr_cuda_bench_link_rate,
                                                &resident_ops};
