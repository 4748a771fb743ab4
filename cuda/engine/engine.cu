/* SPDX-License-Identifier: MIT */
/* The cuda engine, a loadable module: probe, pinned memory, and submits on streams. */
#include "cuda/engine/engine.h"

#include "cuda/base/check.h"
#include "cuda/base/job.h"
#include "cuda/base/method.h"
#include "cuda/engine/without.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct pnr_engine {
    pnr_cuda_common common;
    pnr_cuda_slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight; /* slots[first] is the oldest submit */
    pnr_plan *plan;          /* a copy, for the second engine of search_without */
    pnr_cuda_without without;
    bool is_lost;
};

/* --- the device --- */

/* Refuses a device that does not exist, or for which this module has no machine code. The error
 * text does not name the engine. */
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

static size_t count_devices(void)
{
    int n_devices = 0;

    if (cudaGetDeviceCount(&n_devices) != cudaSuccess)
        (void)cudaGetLastError();
    return n_devices > 0 ? (size_t)n_devices : 0;
}

/* Selects the device of later CUDA calls in this thread. One thread can use engines of several
 * devices. */
static int select_device(size_t device, pnr_error *error)
{
    return pnr_cuda_check(cudaSetDevice((int)device), "selecting the GPU", error);
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

/* Allocates portable memory: all devices can read it, not only the selected device. */
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
        (void)cudaFreeHost(memory); /* a failed free is ignored */
}

/* Pins memory that another process shares. The memory stays pinned until this process ends. */
static int pin_memory(void *memory, size_t bytes, pnr_error *error)
{
    return pnr_cuda_check(cudaHostRegister(memory, bytes, cudaHostRegisterPortable),
                          "pinning the memory of the ring", error);
}

/* --- create and destroy --- */

static int choose_method(const pnr_plan *plan, pnr_cuda_common *common, pnr_engine_choice *choice,
                         pnr_error *error)
{
    int code = pnr_plan_check(plan, "cuda", error);

    if (code != PNR_OK)
        return code;
    if (pnr_plan_windows(plan) > UINT32_MAX / plan->batch)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: %zu dwells of %zu periods at once", plan->batch,
                             pnr_plan_windows(plan));
    if ((code = select_device(plan->device, error)) != PNR_OK)
        return code;
    return pnr_cuda_method_choose(plan, common, choice, error);
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    pnr_cuda_common common;
    const int code = choose_method(plan, &common, choice, error);

    if (code == PNR_OK)
        pnr_cuda_method_close(&common);
    return code;
}

/* Refuses a plan that needs too much memory, before any allocation. So the error text can state how
 * many bytes are needed. */
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
    /* A failed free is ignored: nothing depends on it. */
    (void)cudaSetDevice((int)engine->common.plan.device);
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++)
        pnr_cuda_slot_destroy(&engine->common, &engine->slots[i]);
    destroy(engine->without.engine);
    pnr_cuda_without_destroy(&engine->without);
    free(engine->plan);
    pnr_cuda_method_close(&engine->common);
    (void)cudaGetLastError();
    free(engine);
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error);

/* Creates the second engine, for search_without. A plan of several looks has no second engine. */
static int create_without(pnr_engine *engine, pnr_error *error)
{
    const pnr_plan plan = pnr_cuda_without_plan(engine->plan);
    pnr_engine *second;
    const int code = create(&plan, &second, error);

    return code == PNR_OK ? pnr_cuda_without_create(engine->plan, second, &engine->without, error)
                          : code;
}

/* Opens an engine after the choice of its method. */
static int open_engine(const pnr_plan *plan, const pnr_engine_choice *choice, pnr_engine *engine,
                       pnr_error *error)
{
    cudaDeviceProp properties;
    pnr_error reason = {};
    int code = check_device(plan->device, &properties, &reason);

    if (code != PNR_OK)
        return pnr_error_set(error, code, "engine cuda: %s", reason.text);
    if ((code = check_memory(choice, plan, error)) != PNR_OK ||
        (code = pnr_cuda_method_open(plan, &engine->common, error)) != PNR_OK)
        return code;
    for (size_t i = 0; code == PNR_OK && i < plan->depth; i++)
        code = pnr_cuda_slot_create(&engine->common, &engine->slots[i], error);
    return code == PNR_OK && plan->will_subtract && plan->n_looks == 1
               ? create_without(engine, error)
               : code;
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    pnr_cuda_common common;
    pnr_engine *engine;
    int code;

    *out = NULL;
    if ((code = choose_method(plan, &common, &choice, error)) != PNR_OK)
        return code;
    engine = (pnr_engine *)calloc(1, sizeof *engine);
    if (engine == NULL) {
        pnr_cuda_method_close(&common);
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    }
    engine->common = common;
    if ((engine->plan = pnr_plan_copy(plan)) == NULL)
        code = pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    else
        code = open_engine(plan, &choice, engine, error);
    if (code != PNR_OK) {
        destroy(engine);
        return code;
    }
    *out = engine;
    return PNR_OK;
}

/* --- submits --- */

/* Returns the error code to report to the caller. A lost device is remembered and logged once. */
static int report_failure(pnr_engine *engine, const pnr_error *error)
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

static bool fits_shape(const pnr_cuda_shape *shape, const pnr_windows *windows)
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
    if (!fits_shape(&common->shape, job->windows)) {
        pnr_error_set(&error, PNR_EENGINE, "cuda: a submit of %zu dwells of %zu periods",
                      job->windows->n_dwells, job->windows->n_periods);
        return report_failure(engine, &error);
    }
    if (select_device(common->plan.device, &error) != PNR_OK ||
        pnr_cuda_slot_start(common, slot, job, &error) != PNR_OK)
        return report_failure(engine, &error);
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
    if ((code = select_device(engine->common.plan.device, &error)) == PNR_OK)
        code = pnr_cuda_slot_await(&engine->common, slot, wait, &error);
    if (code == PNR_EAGAIN)
        return code;
    engine->first = (engine->first + 1) % engine->common.plan.depth;
    engine->in_flight--;
    memset(result, 0, sizeof *result);
    result->tag = slot->tag;
    if (code != PNR_OK || pnr_cuda_slot_result(&engine->common, slot, result, &error) != PNR_OK)
        return report_failure(engine, &error);
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
    /* Returns PNR_OK unless the device is lost. After any other failure, the submit uploads these
     * samples. */
    return (select_device(common->plan.device, &error) == PNR_OK &&
            pnr_cuda_slot_advance(common, slot, windows, &error) == PNR_OK) ||
                   report_failure(engine, &error) != PNR_ELOST
               ? PNR_OK
               : PNR_ELOST;
}

static int search_without(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    const pnr_cuda_common *common = &engine->common;
    pnr_cuda_without *without = &engine->without;
    pnr_windows view;
    pnr_error error = {};
    int code;

    if (engine->is_lost)
        return PNR_ELOST;
    if (common->plan.n_looks != 1 || dwell >= windows->n_dwells ||
        !fits_shape(&common->shape, windows)) {
        pnr_error_set(&error, PNR_EENGINE, "cuda: dwell %zu of %zu again", dwell,
                      windows->n_dwells);
        return report_failure(engine, &error);
    }
    if (select_device(common->plan.device, &error) != PNR_OK ||
        (without->slot == NULL && create_without(engine, &error) != PNR_OK) ||
        pnr_cuda_without_prepare(common, without, windows, dwell, removals, n_removals, &view,
                                 &error) != PNR_OK)
        return report_failure(engine, &error);

    const pnr_job job = {&view, 0};

    if ((code = submit(without->engine, &job)) == PNR_OK &&
        (code = collect(without->engine, true, result)) == PNR_OK)
        without->slot->host.dwells[0].n_clipped = *without->host_count;
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
        count_devices,  probe,        alloc_pinned,
        free_pinned,    pin_memory,   describe,
        create,         destroy,      submit,
        collect,        upload_ahead, search_without,
    };

    return &ops;
}
