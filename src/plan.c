/* SPDX-License-Identifier: MIT */
/* What all engines do with a plan before their own work. */
#include "plan.h"

#include "transform.h"

#include <stdlib.h>
#include <string.h>

/* Is references[0] the sequence that m_degree, m_taps and m_samples say? The register's step can be
 * undone (the largest tap is the degree), so that its states are a cycle; when the first one comes
 * back after all the chips and not before, all of them are different. */
static bool is_m_sequence(const pnr_plan *plan)
{
    const unsigned degree = plan->m_degree;
    const size_t q = plan->m_samples;

    if (degree < 2 || degree > 24 || plan->m_taps >> (degree - 1) != 1)
        return false;

    const size_t n = ((size_t)1 << degree) - 1;

    if (plan->n_samples % n != 0 || plan->n_samples / n != q)
        return false;

    const uint64_t mask = n;
    uint64_t state = 0, first; /* bit t-1: the bit t steps ago */

    for (size_t i = 0; i < degree; i++)
        state = state << 1 | (plan->references[i * q][0] < 0);
    first = state;
    for (size_t i = 0; i < n; i++) {
        const double(*a)[2] = plan->references + (i + degree) % n * q;
        const uint64_t bit = (uint64_t)__builtin_parityll(state & plan->m_taps);

        for (size_t r = 0; r < q; r++)
            if (a[r][0] != (bit ? -1.0 : 1.0) || a[r][1] != 0)
                return false;
        state = (state << 1 | bit) & mask;
        if ((state == first) != (i + 1 == n))
            return false;
    }
    return true;
}

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
    if (plan->m_degree != 0 && !is_m_sequence(plan))
        return pnr_error_set(error, PNR_EINTERNAL,
                             "engine %s: the reference is not the m-sequence of degree %u, taps "
                             "0x%llx, %zu samples a chip, that the plan says",
                             engine, plan->m_degree, (unsigned long long)plan->m_taps,
                             plan->m_samples);
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
