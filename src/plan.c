/* SPDX-License-Identifier: MIT */
/* What all engines do with a plan before their own work. */
#include "plan.h"

#include "transform.h"

#include <stdlib.h>
#include <string.h>

int pnr_plan_check(const pnr_plan *plan, const char *engine, pnr_error *error)
{
    if (plan->n_samples < 1 || plan->n_samples > (size_t)1 << 24)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine %s: a period of %zu samples; 1 to 2^24 are possible", engine,
                             plan->n_samples);
    if (plan->reference != PNR_REFERENCE_STORED)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine %s: a reference taken from a channel is not there yet",
                             engine);
    if (plan->n_codes != 1)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine %s: %zu codes at once are not there yet; use one", engine,
                             plan->n_codes);
    if (plan->n_dopplers != 1 || (plan->doppler_hz != NULL && plan->doppler_hz[0] != 0))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine %s: a search over %zu Doppler hypotheses is not there yet",
                             engine, plan->n_dopplers);
    if (plan->n_used_channels != 1)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine %s: %zu channels at once are not there yet; use one", engine,
                             plan->n_used_channels);
    if (plan->first_channel >= plan->n_channels || pnr_format_get(plan->format)->bytes == 0 ||
        plan->n_periods < 1 || (plan->dwell == PNR_DWELL_SINGLE && plan->n_periods != 1) ||
        plan->oversample < 1 || plan->oversample > 2 || plan->gate_count < 1 ||
        plan->gate_count > plan->n_samples || plan->gate_first >= plan->n_samples ||
        plan->max_candidates < 1 || plan->max_candidates > PNR_MAX_CANDIDATES || plan->batch < 1 ||
        plan->depth < 1 || plan->depth > PNR_MAX_DEPTH || plan->references == NULL ||
        plan->threshold == NULL || plan->method == NULL)
        return pnr_error_set(error, PNR_EINTERNAL, "engine %s: the plan is not complete", engine);
    return PNR_OK;
}

pnr_plan *pnr_plan_copy(const pnr_plan *plan)
{
    const size_t references = plan->oversample * plan->n_samples * sizeof *plan->references;
    const size_t threshold = plan->n_periods * sizeof *plan->threshold;
    const size_t method = strlen(plan->method) + 1;
    char *memory = malloc(sizeof *plan + references + threshold + method);

    if (memory == NULL)
        return NULL;

    pnr_plan *copy = (pnr_plan *)memory;
    char *next = memory + sizeof *plan;

    *copy = *plan;
    copy->doppler_hz = NULL;
    copy->references = memcpy(next, plan->references, references);
    copy->threshold = memcpy(next + references, plan->threshold, threshold);
    copy->method = memcpy(next + references + threshold, plan->method, method);
    return copy;
}

size_t pnr_plan_sample_bytes(const pnr_plan *plan)
{
    return plan->n_channels * pnr_format_get(plan->format)->bytes;
}

double pnr_plan_code_energy(const pnr_plan *plan)
{
    double energy = 0;

    for (size_t n = 0; n < plan->n_samples; n++)
        energy += plan->references[n][0] * plan->references[n][0] +
                  plan->references[n][1] * plan->references[n][1];
    return energy;
}

const void *pnr_plan_locate(const pnr_plan *plan, const pnr_windows *windows, size_t first,
                            size_t *count)
{
    const pnr_span *span = windows->spans;

    if (first >= span->n_samples) {
        first -= span->n_samples;
        span++;
    }
    if (*count > span->n_samples - first)
        *count = span->n_samples - first;
    return (const char *)span->data + first * pnr_plan_sample_bytes(plan);
}

bool pnr_plan_is_direct(size_t n_samples)
{
    return pnr_transform_fast_length(n_samples) == n_samples;
}

size_t pnr_plan_transform_length(size_t n_samples)
{
    return pnr_plan_is_direct(n_samples) ? n_samples : pnr_transform_fast_length(2 * n_samples - 1);
}
