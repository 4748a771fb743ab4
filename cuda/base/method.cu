/* SPDX-License-Identifier: MIT */
/* The common part of all methods: sizes, memory that all slots share, and the raw samples of a
 * slot. */
#include "cuda/base/method.h"

#include "cuda/base/resources.h"

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static size_t list_shared(pnr_cuda_common *common, pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS])
{
    size_t n = 0;

    list[n++] = {(void **)&common->threshold, common->shape.n_periods * sizeof *common->threshold,
                 false};
    if (common->method->list_shared != NULL)
        n += common->method->list_shared(common, list + n);
    assert(n <= PNR_CUDA_MAX_BUFFERS);
    return n;
}

/* Computes the bytes of all slots together, including the data that the slots share. */
static int count_bytes(pnr_cuda_common *common, pnr_engine_choice *choice, pnr_error *error)
{
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];
    const size_t n_slots = common->plan.depth;
    const int code = pnr_cuda_slot_count(common, &choice->device_bytes, &choice->host_bytes, error);

    if (code != PNR_OK)
        return code;
    choice->device_bytes *= n_slots;
    choice->host_bytes *= n_slots;
    pnr_cuda_buffers_count(list, list_shared(common, list), &choice->device_bytes,
                           &choice->host_bytes);
    return PNR_OK;
}

int pnr_cuda_method_describe(const pnr_cuda_method *method, const pnr_plan *plan,
                             pnr_cuda_common *common, pnr_engine_choice *choice, pnr_error *error)
{
    int code;

    memset(common, 0, sizeof *common);
    memset(choice, 0, sizeof *choice);
    snprintf(choice->method, sizeof choice->method, "%s", method->name);
    common->method = method;
    common->plan = *plan;
    common->plan.references = NULL;
    common->plan.threshold = NULL;
    common->plan.hypotheses = NULL;
    common->plan.taper = NULL;
    common->plan.filter = NULL;
    common->plan.cfar.factor = NULL;
    common->plan.method = NULL;
    common->shape = pnr_cuda_shape_of(plan);
    common->shared = calloc(1, method->shared_bytes);
    if (common->shared == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    if ((code = method->suits(plan, common, choice, error)) != PNR_OK) {
        free(common->shared);
        common->shared = NULL;
        return code;
    }
    if ((code = count_bytes(common, choice, error)) != PNR_OK)
        pnr_cuda_method_close(common);
    return code;
}

int pnr_cuda_method_open(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];
    const size_t n = list_shared(common, list);
    int code;

    common->code_energy = pnr_plan_code_energy(plan);
    common->tune_step = plan->tune.num != 0 ? pnr_rational_phase(plan->tune, 1) : 0;
    if ((code = pnr_cuda_buffers_allocate(list, n, NULL, error)) != PNR_OK ||
        (code = pnr_cuda_upload(common->threshold, plan->threshold,
                                common->shape.n_periods * sizeof *common->threshold, error)) !=
            PNR_OK ||
        (code = common->method->open(plan, common, error)) != PNR_OK)
        return code;
    /* The streams of the slots do not wait for these copies, so this function waits for them. */
    return pnr_cuda_check(cudaDeviceSynchronize(), "upload of the code", error);
}

void pnr_cuda_method_close(pnr_cuda_common *common)
{
    pnr_cuda_buffer list[PNR_CUDA_MAX_BUFFERS];

    if (common->shared == NULL)
        return;
    pnr_cuda_buffers_free(list, list_shared(common, list));
    if (common->method->close != NULL)
        common->method->close(common->shared);
    free(common->shared);
    common->shared = NULL;
}

pnr_cuda_samples pnr_cuda_samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot)
{
    const pnr_format_info *format = pnr_format_get(common->plan.format);
    pnr_cuda_samples samples = {};

    samples.raw = slot->raw;
    samples.format = common->plan.format;
    samples.n_samples = (uint32_t)common->shape.n_samples;
    samples.n_channels = (uint32_t)common->plan.n_channels;
    samples.channel = (uint32_t)common->plan.first_channel;
    samples.scale = (float)format->scale;
    samples.offset = (float)format->offset;
    return samples;
}
