/* SPDX-License-Identifier: MIT */
/* A slot: what one submit in flight needs whatever the method, with its own stream. */
#include "slot.h"

#include "memory.h"
#include "method.h"

#include <cassert>
#include <cstdlib>
#include <cstring>

enum { STAGES_A_ROUND = 6, MAX_BLOCKS = 8 };

/* All memory of a slot but the method's. Returns the number of blocks. */
static size_t list_blocks(const pnr_plan *plan, const pnr_cuda_shape *s, pnr_cuda_slot *slot,
                          pnr_cuda_block list[MAX_BLOCKS])
{
    size_t n = 0;

    list[n++] = {&slot->raw, s->raw_bytes, false};
    list[n++] = {(void **)&slot->windows, s->n_windows * sizeof *slot->windows, false};
    list[n++] = {(void **)&slot->host_windows, s->n_windows * sizeof *slot->host_windows, true};
    list[n++] = {(void **)&slot->host_dwells, s->batch * sizeof *slot->host_dwells, true};
    list[n++] = {(void **)&slot->host_candidates,
                 s->batch * plan->max_candidates * sizeof *slot->host_candidates, true};
    list[n++] = {(void **)&slot->host_nonfinite, s->n_windows * sizeof *slot->host_nonfinite, true};
    list[n++] = {(void **)&slot->host_profile, s->batch * s->profile_values * sizeof(float), true};
    assert(n <= MAX_BLOCKS);
    return n;
}

void pnr_cuda_slot_count(const pnr_plan *plan, const pnr_cuda_shape *shape, uint64_t *device_bytes,
                         uint64_t *host_bytes)
{
    pnr_cuda_slot slot = {};
    pnr_cuda_block list[MAX_BLOCKS];

    pnr_cuda_blocks_count(list, list_blocks(plan, shape, &slot, list), device_bytes, host_bytes);
}

/* --- life --- */

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

int pnr_cuda_slot_create(const pnr_cuda_common *common, pnr_cuda_slot *slot, pnr_error *error)
{
    pnr_cuda_block list[MAX_BLOCKS];
    const size_t n = list_blocks(&common->plan, &common->shape, slot, list);
    int code;

    if ((code = pnr_cuda_check(cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking),
                               "creating a stream", error)) != PNR_OK ||
        (code = pnr_cuda_check(
             /* A sleeping thread wakes up to 0.3 ms late; who measures the stages spins instead. */
             cudaEventCreateWithFlags(&slot->done,
                                      cudaEventDisableTiming |
                                          (common->plan.measure ? 0u : cudaEventBlockingSync)),
             "creating an event", error)) != PNR_OK ||
        (code = pnr_cuda_blocks_allocate(list, n, slot->stream, error)) != PNR_OK ||
        (code = common->method->create(common, slot, error)) != PNR_OK)
        return code;
    if (common->plan.measure && (code = create_marks(&common->shape, slot, error)) != PNR_OK)
        return code;
    if ((code = common->method->compute(common, slot, 1, error)) != PNR_OK)
        return code;
    return pnr_cuda_check(cudaStreamSynchronize(slot->stream), "first run", error);
}

void pnr_cuda_slot_destroy(const pnr_cuda_common *common, pnr_cuda_slot *slot)
{
    pnr_cuda_block list[MAX_BLOCKS];
    const size_t n = list_blocks(&common->plan, &common->shape, slot, list);

    /* On the way out a status changes nothing. */
    if (slot->stream != NULL)
        (void)cudaStreamSynchronize(slot->stream);
    if (common->method != NULL)
        common->method->destroy(slot);
    pnr_cuda_blocks_free(list, n);
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

int pnr_cuda_slot_start(const pnr_cuda_common *common, pnr_cuda_slot *slot, const pnr_job *job,
                        pnr_error *error)
{
    const pnr_windows *windows = job->windows;
    int code;

    slot->tag = job->tag;
    slot->n_dwells = windows->n_dwells;
    if ((code = pnr_cuda_mark(common, slot, PNR_STAGE_COUNT, error)) == PNR_OK &&
        (code = upload(common, slot, windows, error)) == PNR_OK &&
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_UPLOAD, error)) == PNR_OK &&
        (code = common->method->compute(common, slot, windows->n_dwells, error)) == PNR_OK &&
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_RETURN, error)) == PNR_OK)
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
