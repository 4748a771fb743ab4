/* SPDX-License-Identifier: MIT */
/* One method of an engine with several sets of samples where it computes: on the device, or in the
 * engine's own host memory. */
#include "tools/bench/resident.h"

#include "base/clock.h"
#include "base/format.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <stdlib.h>
#include <string.h>

struct resident {
    const pnr_engine_ops *ops;
    pnr_plan plan;
    size_t n_samples; /* of a set */

    const pnr_resident_ops *device_ops; /* NULL: all below is on the host */
    pnr_resident *device;

    pnr_engine *engine;
    void *sets[RESIDENT_SETS]; /* [n_samples][n_channels] */
    uint32_t *lost;            /* [n_windows] */
    uint64_t *ready_ns;        /* [batch] */
    uint64_t tag;
};

void resident_destroy(resident *r)
{
    if (r == NULL)
        return;
    if (r->device != NULL)
        r->device_ops->destroy(r->device);
    if (r->engine != NULL)
        r->ops->destroy(r->engine);
    for (size_t i = 0; i < RESIDENT_SETS; i++)
        if (r->sets[i] != NULL)
            r->ops->free(r->sets[i]);
    free(r->lost);
    free(r->ready_ns);
    free(r);
}

static int create_host(resident *r, pnr_error *error)
{
    const pnr_plan *plan = &r->plan;
    const size_t bytes = r->n_samples * pnr_format_get(plan->format)->bytes * plan->n_channels;

    r->lost = calloc(plan->batch * pnr_plan_windows(plan), sizeof *r->lost);
    r->ready_ns = calloc(plan->batch, sizeof *r->ready_ns);
    if (r->lost == NULL || r->ready_ns == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu dwells", plan->batch);
    for (size_t i = 0; i < RESIDENT_SETS; i++)
        if ((r->sets[i] = r->ops->alloc(bytes)) == NULL)
            return pnr_error_set(error, PNR_ENOMEMORY, "engine %s: no memory for %zu bytes",
                                 r->ops->name, bytes);
    return r->ops->create(plan, &r->engine, error);
}

int resident_create(const pnr_engine_ops *ops, const pnr_resident_ops *device, const pnr_plan *plan,
                    resident **out, pnr_error *error)
{
    resident *r = calloc(1, sizeof *r);
    int rc;

    *out = NULL;
    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a method");
    r->ops = ops;
    r->plan = *plan;
    r->n_samples = pnr_plan_view_samples(plan, plan->batch);
    r->device_ops = device;
    rc = device != NULL ? device->create(plan, RESIDENT_SETS, &r->device, error)
                        : create_host(r, error);
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
    const pnr_windows windows = {
        .spans = {{r->sets[set], r->n_samples}},
        .n_dwells = r->plan.batch,
        .n_periods = pnr_plan_windows(&r->plan),
        .lost = r->lost,
        .ready_ns = r->ready_ns,
    };
    const pnr_job job = {.windows = &windows, .tag = ++r->tag};
    int rc;

    if (r->device != NULL)
        return r->device_ops->run(r->device, set, result, error);
    rc = r->ops->submit(r->engine, &job);
    if (rc == PNR_OK)
        rc = r->ops->collect(r->engine, true, result);
    return rc == PNR_OK
               ? rc
               : pnr_error_set(error, rc, "engine %s: %s", r->ops->name, pnr_error_text(rc));
}

int resident_time(resident *r, double ns[RESIDENT_SETS], pnr_error *error)
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
