/* SPDX-License-Identifier: MIT */
/* The correlator: one engine, and the headers of the windows that are in flight. */
#include "correlator/correlator.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct pnr_correlator {
    const pnr_engine_ops *ops;
    pnr_engine *engine;
    char name[48];
    size_t depth;
    pnr_windows in_flight[PNR_MAX_DEPTH]; /* queue; the oldest is in_flight[first] */
    size_t first, n_in_flight;
    uint64_t next_tag;
};

int pnr_correlator_create(const pnr_engine_ops *ops, const pnr_plan *plan,
                          const pnr_engine_choice *choice, pnr_correlator **out, pnr_error *error)
{
    pnr_correlator *correlator = calloc(1, sizeof *correlator);
    int code;

    *out = NULL;
    if (correlator == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "correlator: out of memory");
    correlator->ops = ops;
    correlator->depth = plan->depth;
    snprintf(correlator->name, sizeof correlator->name, "%.15s/%.31s", ops->name, choice->method);
    if ((code = ops->create(plan, &correlator->engine, error)) != PNR_OK) {
        pnr_correlator_destroy(correlator);
        return code;
    }
    *out = correlator;
    return PNR_OK;
}

void pnr_correlator_destroy(pnr_correlator *correlator)
{
    if (correlator == NULL)
        return;
    correlator->ops->destroy(correlator->engine);
    free(correlator);
}

int pnr_correlator_submit(pnr_correlator *correlator, const pnr_windows *windows)
{
    if (correlator->n_in_flight == correlator->depth)
        return PNR_EAGAIN;

    const pnr_job job = {.windows = windows, .tag = correlator->next_tag};
    const uint64_t now_ns = pnr_clock_ns();
    const int code = correlator->ops->submit(correlator->engine, &job);

    if (code == PNR_OK) {
        const size_t last = (correlator->first + correlator->n_in_flight) % correlator->depth;

        correlator->in_flight[last] = *windows;
        correlator->in_flight[last].submitted_ns = now_ns;
        correlator->n_in_flight++;
        correlator->next_tag++;
    }
    return code;
}

int pnr_correlator_upload_ahead(pnr_correlator *correlator, const pnr_windows *windows)
{
    if (correlator->ops->upload_ahead == NULL || correlator->n_in_flight == correlator->depth)
        return PNR_EAGAIN;
    return correlator->ops->upload_ahead(correlator->engine, windows);
}

int pnr_correlator_collect(pnr_correlator *correlator, bool wait, pnr_windows *windows,
                           pnr_result *result)
{
    if (correlator->n_in_flight == 0)
        return PNR_EAGAIN;

    const int code = correlator->ops->collect(correlator->engine, wait, result);

    if (code != PNR_EAGAIN) {
        *windows = correlator->in_flight[correlator->first];
        windows->collected_ns = pnr_clock_ns();
        correlator->first = (correlator->first + 1) % correlator->depth;
        correlator->n_in_flight--;
    }
    return code;
}

int pnr_correlator_search_without(pnr_correlator *correlator, const pnr_windows *windows,
                                  size_t dwell, const pnr_removal *removals, size_t n_removals,
                                  pnr_result *result)
{
    if (correlator->ops->search_without == NULL)
        return PNR_EUNSUPPORTED;
    return correlator->ops->search_without(correlator->engine, windows, dwell, removals, n_removals,
                                           result);
}

const char *pnr_correlator_name(const pnr_correlator *correlator)
{
    return correlator->name;
}
