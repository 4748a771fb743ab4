/* SPDX-License-Identifier: MIT */
/* One method of an engine with several sets of samples where it computes: on the device, or in the
 * engine's own host memory. */
#include "tools/bench/resident.h"

#include "base/clock.h"
#include "base/format.h"
#include "cli.h"
#include "correlator/engines.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { COPY_BYTES = 1 << 28 };
static const uint64_t warm_ns = 100 * 1000 * 1000;

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
    if (r->engine != NULL)
        r->ops->destroy(r->engine);
    for (size_t i = 0; i < RESIDENT_SETS; i++)
        if (r->sets[i] != NULL)
            r->ops->free(r->sets[i]);
    free(r->lost);
    free(r->ready_ns);
    free(r);
}

static int create_host(resident *r, size_t n_sets, pnr_error *error)
{
    const pnr_plan *plan = &r->plan;
    const size_t bytes = r->n_samples * pnr_format_get(plan->format)->bytes * plan->n_channels;

    r->lost = calloc(plan->batch * pnr_plan_windows(plan), sizeof *r->lost);
    r->ready_ns = calloc(plan->batch, sizeof *r->ready_ns);
    if (r->lost == NULL || r->ready_ns == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu dwells", plan->batch);
    for (size_t i = 0; i < n_sets; i++)
        if ((r->sets[i] = r->ops->alloc(bytes)) == NULL)
            return pnr_error_set(error, PNR_ENOMEMORY, "engine %s: no memory for %zu bytes",
                                 r->ops->name, bytes);
    return r->ops->create(plan, &r->engine, error);
}

int resident_create(const pnr_engine_ops *ops, const pnr_plan *plan, size_t n_sets, resident **out,
                    pnr_error *error)
{
    resident *r = calloc(1, sizeof *r);
    int rc;

    *out = NULL;
    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a method");
    r->ops = ops;
    r->plan = *plan;
    r->n_samples = pnr_plan_view_samples(plan, plan->batch);
    r->device_ops = resident_device(ops);
    rc = r->device_ops != NULL ? r->device_ops->create(plan, n_sets, &r->device, error)
                               : create_host(r, n_sets, error);
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

/* ns: of one round, each set once. */
static int time_round(resident *r, double ns[RESIDENT_SETS], pnr_error *error)
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

size_t resident_times(int n_runs)
{
    return ((size_t)n_runs + RESIDENT_SETS - 1) / RESIDENT_SETS * RESIDENT_SETS;
}

int resident_time(resident *const *list, double *const *ns, size_t n, size_t n_times,
                  pnr_error *error)
{
    const uint64_t start_ns = pnr_clock_ns();
    size_t done = 0;

    for (bool is_warm = false; done < n_times && !pnr_stop;) {
        for (size_t i = 0; i < n; i++) {
            const int rc = time_round(list[i], ns[i] + done, error);

            if (rc != PNR_OK)
                return rc;
        }
        if (is_warm)
            done += RESIDENT_SETS;
        else
            is_warm = pnr_clock_ns() - start_ns >= warm_ns;
    }
    return PNR_OK;
}

size_t resident_kernels(const resident *r, pnr_kernel_note *notes, size_t capacity)
{
    return r->device != NULL ? r->device_ops->kernels(r->device, notes, capacity) : 0;
}
