/* SPDX-License-Identifier: MIT */
/* The cuda engine, a module of its own: probe, pinned memory, and submits on streams. */
#include "cuda/engine/engine.h"

#include "cuda/base/check.h"
#include "cuda/base/method.h"
#include "cuda/engine/repeat.h"
#include "cuda/steps/peak.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct pnr_engine {
    pnr_cuda_common common;
    pnr_cuda_slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight; /* slots[first] is the oldest submit */
    pnr_plan *plan;          /* its own, for a second engine that search_without needs */
    pnr_cuda_repeat repeat;
    bool is_lost;
};

/* --- the device --- */

/* Refuses a device whose machine code this module lacks; the words are without a prefix. */
static int check_device(size_t device, cudaDeviceProp *properties, pnr_error *error)
{
    int n_devices = 0;
    cudaFuncAttributes attributes;
    cudaError_t status = cudaGetDeviceCount(&n_devices);

    if (status != cudaSuccess)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "no GPU here: %s",
                             cudaGetErrorString(status));
    if (device >= (size_t)n_devices)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "device %zu of %d: counted from 0", device,
                             n_devices);
    if ((status = cudaGetDeviceProperties(properties, (int)device)) != cudaSuccess ||
        (status = cudaSetDevice((int)device)) != cudaSuccess)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "device %zu does not start: %s", device,
                             cudaGetErrorString(status));
    if (cudaFuncGetAttributes(&attributes, pnr_cuda_a_kernel()) != cudaSuccess) {
        (void)cudaGetLastError();
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "%s has compute capability %d.%d: this build has no code for it",
                             properties->name, properties->major, properties->minor);
    }
    return PNR_OK;
}

static int probe(size_t device, char *text, size_t text_size)
{
    cudaDeviceProp properties;
    pnr_error error;
    int driver = 0;

    if (check_device(device, &properties, &error) != PNR_OK ||
        pnr_cuda_check(cudaDriverGetVersion(&driver), "driver's version", &error) != PNR_OK) {
        snprintf(text, text_size, "%s", error.text);
        return PNR_EUNAVAILABLE;
    }
    snprintf(text, text_size, "%s, %zu MiB, driver %d.%d", properties.name,
             properties.totalGlobalMem >> 20, driver / 1000, driver % 1000 / 10);
    return PNR_OK;
}

/* Portable: any device may read it, whichever the calling thread has selected. */
static void *alloc_pinned(size_t bytes)
{
    void *memory = NULL;

    if (pnr_cuda_check(cudaHostAlloc(&memory, bytes > 0 ? bytes : 1, cudaHostAllocPortable),
                       "pinned memory", NULL) != PNR_OK)
        return NULL;
    if ((uintptr_t)memory % 64 != 0) {
        (void)cudaFreeHost(memory);
        return NULL;
    }
    return memset(memory, 0, bytes > 0 ? bytes : 1);
}

static void free_pinned(void *memory)
{
    if (memory != NULL)
        (void)cudaFreeHost(memory); /* on the way out a status changes nothing */
}

/* --- life --- */

static int choose(const pnr_plan *plan, const pnr_cuda_method **method, pnr_engine_choice *choice,
                  pnr_error *error)
{
    const int code = pnr_plan_check(plan, "cuda", error);

    if (code != PNR_OK)
        return code;
    if (pnr_plan_windows(plan) > UINT32_MAX / plan->batch)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: %zu dwells of %zu periods at once", plan->batch,
                             pnr_plan_windows(plan));
    return pnr_cuda_method_choose(plan, method, choice, error);
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    const pnr_cuda_method *method;

    return choose(plan, &method, choice, error);
}

static int create_common(const pnr_plan *plan, pnr_cuda_common *common, pnr_error *error)
{
    int code;

    common->plan = *plan;
    common->plan.references = NULL;
    common->plan.threshold = NULL;
    common->plan.hypotheses = NULL;
    common->plan.taper = NULL;
    common->plan.filter = NULL;
    common->plan.cfar.factor = NULL;
    common->plan.method = NULL;
    common->shape = pnr_cuda_shape_of(plan);
    common->code_energy = pnr_plan_code_energy(plan);
    common->tune_step = plan->tune.num != 0 ? pnr_rational_phase(plan->tune, 1) : 0;
    if ((code = common->method->open(plan, common, error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaMalloc((void **)&common->threshold,
                                          pnr_plan_windows(plan) * sizeof *common->threshold),
                               "GPU memory for the thresholds", error)) != PNR_OK ||
        (code = pnr_cuda_check(cudaMemcpy(common->threshold, plan->threshold,
                                          pnr_plan_windows(plan) * sizeof *common->threshold,
                                          cudaMemcpyHostToDevice),
                               "upload of the thresholds", error)) != PNR_OK)
        return code;
    /* The slots' streams do not wait for the copies above. */
    return pnr_cuda_check(cudaDeviceSynchronize(), "upload of the code", error);
}

/* Says beforehand what a failing allocation would only hint at. */
static int check_memory(const pnr_engine_choice *choice, const pnr_plan *plan, pnr_error *error)
{
    size_t free_bytes = 0, total_bytes = 0;
    const int code =
        pnr_cuda_check(cudaMemGetInfo(&free_bytes, &total_bytes), "GPU's free memory", error);

    if (code != PNR_OK || choice->device_bytes <= free_bytes)
        return code;
    return pnr_error_set(
        error, PNR_ENOMEMORY,
        "engine cuda: %.0f MiB of GPU memory needed for %zu submits of %zu dwells, "
        "%.0f MiB free: lower engine.depth or the dwells a submit",
        (double)choice->device_bytes / 0x1p20, plan->depth, plan->batch,
        (double)free_bytes / 0x1p20);
}

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    /* On the way out a status changes nothing. */
    (void)cudaSetDevice((int)engine->common.plan.device);
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++)
        pnr_cuda_slot_destroy(&engine->common, &engine->slots[i]);
    destroy(engine->repeat.engine);
    pnr_cuda_repeat_destroy(&engine->repeat);
    free(engine->plan);
    engine->common.method->close(&engine->common);
    if (engine->common.threshold != NULL)
        (void)cudaFree(engine->common.threshold);
    (void)cudaGetLastError();
    free(engine);
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error);

/* What again needs; only of dwells of one look. */
static int create_repeat(pnr_engine *engine, pnr_error *error)
{
    const pnr_plan plan = pnr_cuda_repeat_plan(engine->plan);
    pnr_engine *second;
    const int code = create(&plan, &second, error);

    return code == PNR_OK ? pnr_cuda_repeat_create(engine->plan, second, &engine->repeat, error)
                          : code;
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    cudaDeviceProp properties;
    const pnr_cuda_method *method;
    pnr_engine *engine;
    pnr_error reason = {};
    int code;

    *out = NULL;
    if ((code = choose(plan, &method, &choice, error)) != PNR_OK)
        return code;
    if ((code = check_device(plan->device, &properties, &reason)) != PNR_OK)
        return pnr_error_set(error, code, "engine cuda: %s", reason.text);
    if ((code = check_memory(&choice, plan, error)) != PNR_OK)
        return code;
    engine = (pnr_engine *)calloc(1, sizeof *engine);
    if (engine == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    engine->common.method = method;
    if ((engine->plan = pnr_plan_copy(plan)) == NULL)
        code = pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    else
        code = create_common(plan, &engine->common, error);
    for (size_t i = 0; code == PNR_OK && i < plan->depth; i++)
        code = pnr_cuda_slot_create(&engine->common, &engine->slots[i], error);
    if (code == PNR_OK && plan->will_subtract && plan->n_looks == 1)
        code = create_repeat(engine, error);
    if (code != PNR_OK) {
        destroy(engine);
        return code;
    }
    *out = engine;
    return PNR_OK;
}

/* --- submits --- */

/* A job's failure as the contract names it; the device's end is remembered and told once. */
static int failed(pnr_engine *engine, const pnr_error *error)
{
    if (error->code != PNR_ELOST) {
        pnr_log(PNR_LOG_DEBUG, "%s", error->text);
        return PNR_EENGINE;
    }
    if (!engine->is_lost)
        pnr_log(PNR_LOG_ERROR, "%s", error->text);
    engine->is_lost = true;
    return PNR_ELOST;
}

static bool is_possible(const pnr_cuda_shape *shape, const pnr_windows *windows)
{
    const size_t n_dwells = windows->n_dwells;

    return n_dwells >= 1 && n_dwells <= shape->batch && windows->n_periods == shape->n_periods &&
           windows->spans[0].n_samples + windows->spans[1].n_samples >=
               n_dwells * shape->n_periods * shape->n_samples + shape->n_tail;
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    const pnr_cuda_common *common = &engine->common;
    pnr_cuda_slot *slot = &engine->slots[(engine->first + engine->in_flight) % common->plan.depth];
    pnr_error error = {};

    if (engine->is_lost)
        return PNR_ELOST;
    if (engine->in_flight == common->plan.depth)
        return PNR_EAGAIN;
    if (!is_possible(&common->shape, job->windows)) {
        pnr_error_set(&error, PNR_EENGINE, "cuda: a submit of %zu dwells of %zu periods",
                      job->windows->n_dwells, job->windows->n_periods);
        return failed(engine, &error);
    }
    if (pnr_cuda_check(cudaSetDevice((int)common->plan.device), "selecting the GPU", &error) !=
            PNR_OK ||
        pnr_cuda_slot_start(common, slot, job, &error) != PNR_OK)
        return failed(engine, &error);
    engine->in_flight++;
    return PNR_OK;
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    pnr_cuda_slot *slot = &engine->slots[engine->first];
    pnr_error error = {};
    int code;

    if (engine->in_flight == 0)
        return engine->is_lost ? PNR_ELOST : PNR_EAGAIN;
    code = pnr_cuda_slot_await(&engine->common, slot, wait, &error);
    if (code == PNR_EAGAIN)
        return code;
    engine->first = (engine->first + 1) % engine->common.plan.depth;
    engine->in_flight--;
    memset(result, 0, sizeof *result);
    result->tag = slot->tag;
    if (code != PNR_OK || pnr_cuda_slot_result(&engine->common, slot, result, &error) != PNR_OK)
        return failed(engine, &error);
    return PNR_OK;
}

static int upload_ahead(pnr_engine *engine, const pnr_windows *windows)
{
    const pnr_cuda_common *common = &engine->common;
    pnr_cuda_slot *slot = &engine->slots[(engine->first + engine->in_flight) % common->plan.depth];
    pnr_error error = {};

    if (engine->is_lost)
        return PNR_ELOST;
    if (engine->in_flight == common->plan.depth)
        return PNR_EAGAIN;
    /* What could not be uploaded ahead comes with its submit. */
    return pnr_cuda_slot_advance(common, slot, windows, &error) == PNR_OK ||
                   failed(engine, &error) != PNR_ELOST
               ? PNR_OK
               : PNR_ELOST;
}

static int search_without(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    const pnr_cuda_common *common = &engine->common;
    pnr_cuda_repeat *repeat = &engine->repeat;
    pnr_windows view;
    pnr_error error = {};
    int code;

    if (engine->is_lost)
        return PNR_ELOST;
    if (common->plan.n_looks != 1 || dwell >= windows->n_dwells ||
        !is_possible(&common->shape, windows)) {
        pnr_error_set(&error, PNR_EENGINE, "cuda: dwell %zu of %zu once more", dwell,
                      windows->n_dwells);
        return failed(engine, &error);
    }
    if (pnr_cuda_check(cudaSetDevice((int)common->plan.device), "selecting the GPU", &error) !=
            PNR_OK ||
        (repeat->slot == NULL && create_repeat(engine, &error) != PNR_OK) ||
        pnr_cuda_repeat_prepare(common, repeat, windows, dwell, removals, n_removals, &view,
                                &error) != PNR_OK)
        return failed(engine, &error);

    const pnr_job job = {&view, 0};

    if ((code = submit(repeat->engine, &job)) == PNR_OK &&
        (code = collect(repeat->engine, true, result)) == PNR_OK)
        repeat->slot->host.dwells[0].n_clipped = *repeat->host_count;
    engine->is_lost |= code == PNR_ELOST;
    return code;
}

pnr_cuda_slot *pnr_cuda_engine_slot(pnr_engine *engine, const pnr_cuda_common **common)
{
    *common = &engine->common;
    return &engine->slots[engine->first];
}

/* --- the module --- */

extern "C" __attribute__((visibility("default"))) const pnr_engine_ops *pnr_engine_module(void)
{
    static const pnr_engine_ops ops = {
        PNR_ENGINE_ABI, "cuda",       "NVIDIA GPUs through CUDA, single precision",
        probe,          alloc_pinned, free_pinned,
        describe,       create,       destroy,
        submit,         collect,      upload_ahead,
        search_without,
    };

    return &ops;
}
