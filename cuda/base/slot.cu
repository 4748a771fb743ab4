/* SPDX-License-Identifier: MIT */
/* A slot holds the memory and the stream of one submit in flight. */
#include "cuda/base/slot.h"

#include "base/pause.h"
#include "cuda/base/job.h"
#include "cuda/base/memory.h"
#include "cuda/base/method.h"

#include <cassert>
#include <cstdlib>
#include <cstring>

enum { STAGES_A_ROUND = 6, POLLS_A_QUERY = 256 };

/* Lists all buffers of a slot and of its method. Returns the number of buffers. If the method keeps
 * data in slot->work, slot->work must be allocated. */
static size_t list_buffers(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                           pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS])
{
    const pnr_plan *plan = &common->plan;
    const pnr_cuda_shape *s = &common->shape;
    const size_t header =
        sizeof *slot->job + (s->n_windows + s->n_tail_windows) * sizeof *slot->windows;
    pnr_cuda_results *const places[] = {&slot->results, &slot->host};
    size_t n = 0;

    list[n++] = {&slot->raw, s->raw_bytes, false};
    list[n++] = {(void **)&slot->job, header, false};
    list[n++] = {(void **)&slot->host_job, header, true};
    list[n++] = {(void **)&slot->lost, s->lost_words * sizeof *slot->lost, false};
    list[n++] = {(void **)&slot->host_lost, s->lost_words * sizeof *slot->host_lost, true};
    list[n++] = {(void **)&slot->count, sizeof *slot->count, false};
    list[n++] = {(void **)&slot->sequence, sizeof *slot->sequence, true};
    for (int i = 0; i < 2; i++) {
        pnr_cuda_results *r = places[i];
        const bool is_host = r == &slot->host;

        list[n++] = {(void **)&r->dwells, s->batch * sizeof *r->dwells, is_host};
        list[n++] = {(void **)&r->candidates,
                     s->batch * plan->max_candidates * sizeof *r->candidates, is_host};
        list[n++] = {(void **)&r->nonfinite, s->n_windows * sizeof *r->nonfinite, is_host};
        list[n++] = {(void **)&r->profile, s->batch * s->profile_values * sizeof *r->profile,
                     is_host};
        list[n++] = {(void **)&r->patches,
                     s->batch * plan->max_candidates * s->patch_values * sizeof *r->patches,
                     is_host};
    }
    if (slot->work != NULL && common->method->list_work != NULL)
        n += common->method->list_work(common, slot->work, list + n);
    assert(n <= PNR_CUDA_MAX_BUFFERS);
    return n;
}

static int create_work(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    const size_t bytes = common->method->work_bytes;

    if (bytes > 0 && (slot->work = calloc(1, bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    return PNR_OK;
}

int pnr_cuda_slot_count(const pnr_cuda_common *common, uint64_t *device_bytes, uint64_t *host_bytes,
                        pnr_error *error)
{
    pnr_cuda_slot slot = {};
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];
    const int code = create_work(common, &slot, error);

    if (code == PNR_OK)
        pnr_cuda_buffers_count(list, list_buffers(common, &slot, list), device_bytes, host_bytes);
    free(slot.work);
    return code;
}

/* --- create and destroy --- */

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

/* Enqueues all kernels of a submit of at most n_dwells dwells: fetch, compute, return. */
static int enqueue_kernels(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                           pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    int code = pnr_cuda_fetch_job(slot->host_job, slot->job,
                                  n_dwells * s->n_periods + s->n_tail_windows, slot->stream, error);

    if (code == PNR_OK)
        code = common->method->compute(common, slot, n_dwells, error);
    if (code == PNR_OK)
        code = pnr_cuda_return_results(s, common->plan.max_candidates, slot->job, &slot->results,
                                       &slot->host, slot->count, slot->sequence, n_dwells,
                                       slot->stream, error);
    return code;
}

/* Records the kernels of at most n_dwells dwells into a graph, and uploads the graph. */
static int record_graph(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                        pnr_error *error)
{
    cudaGraphExec_t *exec = &slot->graphs[slot->n_graphs];
    cudaGraph_t graph = NULL;
    int code = pnr_cuda_check(
        cudaStreamBeginCapture(slot->stream, cudaStreamCaptureModeThreadLocal), "recording", error);

    if (code != PNR_OK)
        return code;
    code = enqueue_kernels(common, slot, n_dwells, error);

    const cudaError_t status = cudaStreamEndCapture(slot->stream, &graph);

    if (code == PNR_OK && (code = pnr_cuda_check(status, "end of recording", error)) == PNR_OK &&
        (code = pnr_cuda_check(cudaGraphInstantiate(exec, graph, 0), "a graph of the kernels",
                               error)) == PNR_OK) {
        slot->graph_dwells[slot->n_graphs++] = n_dwells;
        code = pnr_cuda_check(cudaGraphUpload(*exec, slot->stream), "upload of a graph", error);
    }
    if (graph != NULL)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    return code;
}

/* Records graphs for 1, 2, 4, .. dwells, and one graph for a full submit. A submit uses the
 * smallest graph that has enough dwells. */
static int record_graphs(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    int code = PNR_OK;

    for (size_t n = 1; code == PNR_OK && n < common->shape.batch; n *= 2)
        code = record_graph(common, slot, n, error);
    return code == PNR_OK ? record_graph(common, slot, common->shape.batch, error) : code;
}

static int run_kernels(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                       pnr_error *error)
{
    size_t i = 0;

    if (slot->n_graphs == 0)
        return enqueue_kernels(common, slot, n_dwells, error);
    while (slot->graph_dwells[i] < n_dwells)
        i++;
    return pnr_cuda_check(cudaGraphLaunch(slot->graphs[i], slot->stream), "a submit's kernels",
                          error);
}

/* Runs a submit of n_dwells dwells of zeros. */
static int run_zeros(const pnr_cuda_common *common, pnr_cuda_slot *slot, size_t n_dwells,
                     pnr_error *error)
{
    int code;

    slot->host_job->n_dwells = (uint32_t)n_dwells;
    code = run_kernels(common, slot, n_dwells, error);
    return code == PNR_OK ? pnr_cuda_check(cudaStreamSynchronize(slot->stream), "first run", error)
                          : code;
}

/* Runs each graph once, so that no kernel is loaded later. The clock rate of the device also begins
 * to rise. */
static int warm_up(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < slot->n_graphs; i++)
        code = run_zeros(common, slot, slot->graph_dwells[i], error);
    if (code == PNR_OK && slot->n_graphs == 0)
        code = run_zeros(common, slot, common->shape.batch, error);
    return code;
}

int pnr_cuda_slot_create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];
    int code = create_work(common, slot, error);

    if (code != PNR_OK ||
        (code = pnr_cuda_check(cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking),
                               "creating a stream", error)) != PNR_OK ||
        (code = pnr_cuda_check(
             /* A sleeping thread may wake 0.3 ms late, so a measurement of stages spins. */
             cudaEventCreateWithFlags(&slot->done,
                                      cudaEventDisableTiming |
                                          (common->plan.measure ? 0u : cudaEventBlockingSync)),
             "creating an event", error)) != PNR_OK ||
        (code = pnr_cuda_buffers_allocate(list, list_buffers(common, slot, list), slot->stream,
                                          error)) != PNR_OK ||
        (common->method->create != NULL &&
         (code = common->method->create(common, slot, error)) != PNR_OK))
        return code;
    slot->windows = (pnr_cuda_window *)(slot->job + 1);
    slot->host_windows = (pnr_cuda_window *)(slot->host_job + 1);
    if ((code = pnr_cuda_check(cudaStreamSynchronize(slot->stream), "clearing memory", error)) !=
        PNR_OK)
        return code;
    code = common->plan.measure ? create_marks(&common->shape, slot, error)
                                : record_graphs(common, slot, error);
    return code == PNR_OK ? warm_up(common, slot, error) : code;
}

void pnr_cuda_slot_destroy(const pnr_cuda_common *common, pnr_cuda_slot *slot)
{
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];

    /* A failed free is ignored: nothing depends on it. */
    if (slot->stream != NULL)
        (void)cudaStreamSynchronize(slot->stream);
    if (slot->work != NULL && common->method->destroy != NULL)
        common->method->destroy(slot->work);
    pnr_cuda_buffers_free(list, list_buffers(common, slot, list));
    free(slot->work);
    for (size_t i = 0; i < slot->n_graphs; i++)
        (void)cudaGraphExecDestroy(slot->graphs[i]);
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

/* --- one submit --- */

int pnr_cuda_mark(const pnr_cuda_common *common, pnr_cuda_slot *slot, int stage, pnr_error *error)
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

/* Uploads samples [first, end) of a view. On the device the two spans of the view are adjacent. */
static int upload_samples(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                          const pnr_windows *windows, size_t first, size_t end, pnr_error *error)
{
    const size_t bytes = common->shape.sample_bytes;
    size_t begin = 0; /* index of the first sample of the span in the view */
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < 2; i++) {
        const pnr_span *span = &windows->spans[i];
        const size_t from = first > begin ? first : begin;
        const size_t to = end < begin + span->n_samples ? end : begin + span->n_samples;

        if (from < to)
            code = pnr_cuda_check(cudaMemcpyAsync((char *)slot->raw + from * bytes,
                                                  (const char *)span->data + (from - begin) * bytes,
                                                  (to - from) * bytes, cudaMemcpyHostToDevice,
                                                  slot->stream),
                                  "upload of the samples", error);
        begin += span->n_samples;
    }
    return code;
}

int pnr_cuda_slot_advance(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                          const pnr_windows *windows, pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const size_t n_there = windows->spans[0].n_samples + windows->spans[1].n_samples;
    const size_t most = s->n_windows * s->n_samples + s->n_tail;
    const size_t end = n_there < most ? n_there : most;

    if (slot->advanced_first != windows->first_sample)
        slot->n_advanced = 0;
    slot->advanced_first = windows->first_sample;
    if (end <= slot->n_advanced)
        return PNR_OK;

    const int code = upload_samples(common, slot, windows, slot->n_advanced, end, error);

    slot->n_advanced = code == PNR_OK ? end : 0;
    return code;
}

void pnr_cuda_slot_mark_lost(const pnr_windows *windows, uint64_t first, size_t n_samples,
                             uint32_t *marks)
{
    memset(marks, 0, (n_samples + 31) / 32 * sizeof *marks);
    for (size_t i = 0; i < windows->n_lost_runs; i++) {
        const pnr_lost_run *run = &windows->lost_runs[i];
        const uint64_t begin = run->first > first ? run->first - first : 0;
        const uint64_t after = run->first + run->count;
        const uint64_t end = after > first ? after - first : 0;

        for (uint64_t n = begin; n < end && n < n_samples; n++)
            marks[n / 32] |= UINT32_C(1) << n % 32;
    }
}

/* Uploads the marks of lost samples if the plan removes the mean and samples are lost. */
static int upload_lost(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                       const pnr_windows *windows, size_t n_samples, pnr_error *error)
{
    const size_t n_words = (n_samples + 31) / 32;

    slot->host_job->has_lost = common->shape.lost_words > 0 && windows->n_lost_runs > 0;
    if (!slot->host_job->has_lost)
        return PNR_OK;
    pnr_cuda_slot_mark_lost(windows, slot->skipped, n_samples, slot->host_lost);
    return pnr_cuda_check(cudaMemcpyAsync(slot->lost, slot->host_lost, n_words * sizeof *slot->lost,
                                          cudaMemcpyHostToDevice, slot->stream),
                          "upload of the lost samples", error);
}

/* Uploads the samples that are not on the device yet, and writes the headers that a kernel copies
 * to the device. */
static int upload_rest(const pnr_cuda_common *common, pnr_cuda_slot *slot,
                       const pnr_windows *windows, pnr_error *error)
{
    const pnr_cuda_shape *s = &common->shape;
    const size_t n_windows = windows->n_dwells * s->n_periods;
    const size_t n_there = slot->advanced_first == windows->first_sample ? slot->n_advanced : 0;

    slot->n_advanced = 0;
    slot->host_job->sequence++;
    slot->host_job->n_dwells = (uint32_t)windows->n_dwells;
    for (size_t w = 0; w < n_windows + s->n_tail_windows; w++) {
        const uint64_t first = windows->first_sample + w * s->n_samples;

        slot->host_windows[w].phase =
            common->plan.tune.num != 0 ? pnr_rational_phase(common->plan.tune, first) : 0;
        slot->host_windows[w].n_lost = w < n_windows ? windows->lost[w] : 0;
    }

    const size_t n_samples = n_windows * s->n_samples + s->n_tail;
    const int code = upload_lost(common, slot, windows, n_samples, error);

    return code == PNR_OK ? upload_samples(common, slot, windows, n_there, n_samples, error) : code;
}

int pnr_cuda_slot_start(const pnr_cuda_common *common, pnr_cuda_slot *slot, const pnr_job *job,
                        pnr_error *error)
{
    const pnr_windows *windows = job->windows;
    int code;

    slot->tag = job->tag;
    slot->n_dwells = windows->n_dwells;
    if ((code = pnr_cuda_mark(common, slot, PNR_STAGE_COUNT, error)) == PNR_OK &&
        (code = upload_rest(common, slot, windows, error)) == PNR_OK &&
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_UPLOAD, error)) == PNR_OK &&
        (code = run_kernels(common, slot, windows->n_dwells, error)) == PNR_OK &&
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_RETURN, error)) == PNR_OK)
        code = pnr_cuda_check(cudaEventRecord(slot->done, slot->stream), "end of a submit", error);
    /* Waits for the part of the job that may already run. */
    if (code != PNR_OK && cudaStreamSynchronize(slot->stream) != cudaSuccess)
        (void)cudaGetLastError();
    return code;
}

static bool is_complete(const pnr_cuda_slot *slot)
{
    return __atomic_load_n(slot->sequence, __ATOMIC_ACQUIRE) == slot->host_job->sequence;
}

/* Polls the driver from time to time, because a failed device never writes the sequence. */
int pnr_cuda_slot_await(const pnr_cuda_common *common, pnr_cuda_slot *slot, bool wait,
                        pnr_error *error)
{
    while (!is_complete(slot)) {
        cudaError_t status = cudaErrorNotReady;

        if (wait && !common->plan.spin)
            status = cudaEventSynchronize(slot->done);
        else if (++slot->n_polls % POLLS_A_QUERY == 0)
            status = cudaEventQuery(slot->done);
        if (status == cudaErrorNotReady)
            (void)cudaGetLastError(); /* clears the status, which the next launch would report */
        else if (status != cudaSuccess || !is_complete(slot))
            return pnr_cuda_check(status != cudaSuccess ? status : cudaErrorUnknown, "a submit",
                                  error);
        if (!wait)
            return is_complete(slot) ? PNR_OK : PNR_EAGAIN;
        pnr_pause();
    }
    return PNR_OK;
}

int pnr_cuda_slot_result(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_result *result,
                         pnr_error *error)
{
    result->tag = slot->tag;
    result->n_dwells = slot->n_dwells;
    result->dwells = slot->host.dwells;
    result->candidates = slot->host.candidates;
    result->nonfinite = slot->host.nonfinite;
    result->profile = slot->host.profile;
    result->patches = slot->host.patches;
    memset(result->stage_ns, 0, sizeof result->stage_ns);
    if (!common->plan.measure)
        return PNR_OK;

    /* The result arrives before the last mark, so a spinning caller has not waited for the mark. */
    int code = pnr_cuda_check(cudaEventSynchronize(slot->done), "a submit", error);

    for (size_t i = 1; code == PNR_OK && i < slot->n_marks; i++) {
        float ms = 0;

        code = pnr_cuda_check(cudaEventElapsedTime(&ms, slot->marks[i - 1], slot->marks[i]),
                              "time mark", error);

        result->stage_ns[slot->mark_stage[i]] += (uint64_t)((double)ms * 1e6 + 0.5);
    }
    return code;
}
