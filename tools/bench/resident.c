/* SPDX-License-Identifier: MIT */
/* Runs one method of an engine on several sets of samples. The sets are in the memory where the
 * engine computes: on the device, or in host memory of the engine. */
#include "tools/bench/resident.h"

#include "base/clock.h"
#include "correlator/engines.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdlib.h>

enum { COPY_BYTES = 1 << 28 };

struct resident {
    pnr_plan plan;
    const pnr_resident_ops *device_ops; /* NULL: the engine computes on the host */
    pnr_resident *device;
    pnr_trial host;
    void (*free)(void *memory);
    void *sets[RESIDENT_SETS]; /* used only if the engine computes on the host */
};

const pnr_resident_ops *resident_device(const pnr_engine_ops *ops)
{
    const pnr_engine_bench *engine = pnr_engine_get_bench(ops->name);

    return engine != NULL ? engine->resident : NULL;
}

double resident_copy_rate(const pnr_resident_ops *device, size_t index)
{
    const double rate = device != NULL ? device->copy_rate(index, COPY_BYTES) : 0;

    return rate > 0 ? rate : (double)NAN;
}

void resident_destroy(resident *r)
{
    if (r == NULL)
        return;
    if (r->device != NULL)
        r->device_ops->destroy(r->device);
    pnr_trial_close(&r->host);
    for (size_t i = 0; i < RESIDENT_SETS; i++)
        if (r->sets[i] != NULL)
            r->free(r->sets[i]);
    free(r);
}

int resident_create(const pnr_engine_ops *ops, const pnr_plan *plan, size_t n_sets, resident **out,
                    pnr_error *error)
{
    const size_t bytes = pnr_plan_view_samples(plan, plan->batch) * pnr_plan_sample_bytes(plan);
    resident *r = calloc(1, sizeof *r);
    int rc;

    *out = NULL;
    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a method");
    r->plan = *plan;
    r->free = ops->free;
    r->device_ops = resident_device(ops);
    rc = r->device_ops != NULL ? r->device_ops->create(plan, n_sets, &r->device, error)
                               : pnr_trial_open(ops, &r->plan, &r->host, error);
    for (size_t i = 0; i < n_sets && r->device == NULL && rc == PNR_OK; i++)
        if ((r->sets[i] = ops->alloc(bytes)) == NULL)
            rc = pnr_error_set(error, PNR_ENOMEMORY, "engine %s: no memory for %zu bytes",
                               ops->name, bytes);
    if (rc != PNR_OK) {
        resident_destroy(r);
        return rc;
    }
    *out = r;
    return PNR_OK;
}

int resident_fill(resident *r, size_t set, uint64_t seed, const uint32_t *lags, pnr_error *error)
{
    if (r->device != NULL)
        return r->device_ops->fill(r->device, set, seed, lags, error);
    pnr_measure_scatter(&r->plan, seed, lags, r->sets[set]);
    return PNR_OK;
}

int resident_run(resident *r, size_t set, pnr_result *result, pnr_error *error)
{
    return r->device != NULL ? r->device_ops->run(r->device, set, result, error)
                             : pnr_trial_run(&r->host, r->sets[set], r->plan.batch, result, error);
}

int resident_time(resident *r, double *ns, pnr_error *error)
{
    int rc = PNR_OK;

    if (r->device != NULL)
        return r->device_ops->time(r->device, ns, error);
    for (size_t set = 0; set < RESIDENT_SETS && rc == PNR_OK; set++) {
        const uint64_t start_ns = pnr_clock_ns();
        pnr_result result;

        rc = resident_run(r, set, &result, error);
        ns[set] = (double)(pnr_clock_ns() - start_ns);
    }
    return rc;
}

size_t resident_kernels(const resident *r, pnr_kernel_note *notes, size_t capacity)
{
    return r->device != NULL ? r->device_ops->kernels(r->device, notes, capacity) : 0;
}
