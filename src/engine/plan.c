/* SPDX-License-Identifier: MIT */
/* Checks and copies a plan, and computes the sizes that all engines share. */
#include "engine/plan.h"

#include "base/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tests whether references[0] is the sequence that m_degree, m_taps and m_samples define. The
 * largest tap is the degree, so each step of the shift register can be undone. So the states of the
 * register form a cycle. All states are different if the first state returns only after the last
 * chip. */
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
    uint64_t state = 0, first; /* bit t - 1 of a state is the bit of the sequence t steps before */

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

bool pnr_plan_is_one_line(const pnr_plan *plan)
{
    const pnr_hypothesis only = pnr_plan_hypothesis(plan, 0);

    return plan->n_codes == 1 && plan->n_hypotheses == 1 && only.n_rows == 1 &&
           only.quarters == 0 && only.first_bin == 0 && only.stretch == 0 && !plan->remove_mean &&
           plan->taper == NULL && plan->filter == NULL;
}

bool pnr_plan_is_plain(const pnr_plan *plan)
{
    return pnr_plan_is_one_line(plan) && (plan->n_looks == 1 || plan->n_periods == 1) &&
           !plan->linear && plan->cfar.kind == PNR_CFAR_OFF && plan->exclusion_cells == 1 &&
           plan->exclusion_rows == 1;
}

size_t pnr_plan_rows(const pnr_plan *plan)
{
    size_t n = 0;

    for (size_t h = 0; h < plan->n_hypotheses; h++)
        n += pnr_plan_hypothesis(plan, h).n_rows;
    return n;
}

pnr_hypothesis pnr_plan_hypothesis(const pnr_plan *plan, size_t h)
{
    return plan->hypotheses != NULL ? plan->hypotheses[h] : (pnr_hypothesis){.n_rows = 1};
}

pnr_hypothesis pnr_plan_find_row(const pnr_plan *plan, size_t *row)
{
    size_t h = 0;

    for (; *row >= pnr_plan_hypothesis(plan, h).n_rows; h++)
        *row -= pnr_plan_hypothesis(plan, h).n_rows;
    return pnr_plan_hypothesis(plan, h);
}

double pnr_plan_bins(const pnr_plan *plan, size_t row)
{
    const pnr_hypothesis hypothesis = pnr_plan_find_row(plan, &row);

    return hypothesis.quarters / 4.0 +
           ((double)hypothesis.first_bin + (double)row) / (double)plan->n_periods;
}

size_t pnr_plan_windows(const pnr_plan *plan)
{
    return plan->n_looks * plan->n_periods;
}

size_t pnr_plan_window_samples(const pnr_plan *plan)
{
    return plan->linear ? plan->n_samples + plan->n_lags - 1 : plan->n_samples;
}

size_t pnr_plan_dwell_samples(const pnr_plan *plan)
{
    return pnr_plan_windows(plan) * plan->n_samples;
}

size_t pnr_plan_view_samples(const pnr_plan *plan, size_t n_dwells)
{
    return n_dwells * pnr_plan_dwell_samples(plan) + pnr_plan_window_samples(plan) -
           plan->n_samples;
}

size_t pnr_plan_cells(const pnr_plan *plan)
{
    return plan->n_codes * pnr_plan_rows(plan) * plan->n_lags * plan->oversample;
}

size_t pnr_plan_profile_bytes(const pnr_plan *plan)
{
    const size_t each = plan->want_profile == PNR_WANT_COMPLEX ? 2 : 1;

    return plan->want_profile == PNR_WANT_NONE ? 0 : each * sizeof(float) * pnr_plan_cells(plan);
}

size_t pnr_plan_maps(size_t bytes)
{
    enum { LEAST = 2, BYTES = 8 << 20 };
    const size_t fitting = BYTES / bytes;

    return fitting > LEAST ? fitting : LEAST;
}

/* A circular correlation must have N lags. A linear correlation must include the gate and at least
 * 8 more lags on each side of the gate. */
static bool are_lags_valid(const pnr_plan *plan)
{
    if (plan->gate_count < 1 || plan->gate_count > plan->n_lags || plan->gate_first >= plan->n_lags)
        return false;
    if (!plan->linear)
        return plan->n_lags == plan->n_samples;
    return plan->n_lags >= PNR_NEIGHBOURS && plan->gate_first >= PNR_NEIGHBOURS / 2 &&
           plan->gate_first + plan->gate_count + PNR_NEIGHBOURS / 2 <= plan->n_lags;
}

static bool is_cfar_valid(const pnr_cfar *cfar)
{
    return cfar->kind == PNR_CFAR_OFF || (cfar->factor != NULL && cfar->training >= 1 &&
                                          cfar->training <= PNR_MAX_TRAINING && cfar->stride >= 1);
}

static bool is_outside_valid(const pnr_plan *plan)
{
    return !plan->has_outside || (!plan->linear && plan->filter == NULL &&
                                  plan->cfar.kind == PNR_CFAR_OFF && plan->max_candidates > 1);
}

static bool are_axes_valid(const pnr_plan *plan)
{
    return plan->n_codes >= 1 && plan->n_codes <= UINT16_MAX && plan->n_looks >= 1 &&
           plan->n_periods >= 1 && plan->n_hypotheses >= 1 &&
           (plan->hypotheses != NULL || plan->n_hypotheses == 1) && plan->exclusion_cells >= 1 &&
           plan->exclusion_rows >= 1 && (plan->filter == NULL || plan->oversample == 1) &&
           is_outside_valid(plan) && is_cfar_valid(&plan->cfar);
}

static bool is_complete(const pnr_plan *plan)
{
    return plan->first_channel < plan->n_channels && pnr_format_get(plan->format)->bytes > 0 &&
           plan->oversample >= 1 && plan->oversample <= 2 && plan->max_candidates >= 1 &&
           plan->max_candidates <= PNR_MAX_CANDIDATES && plan->batch >= 1 && plan->depth >= 1 &&
           plan->depth <= PNR_MAX_DEPTH && plan->references != NULL && plan->threshold != NULL &&
           plan->method != NULL;
}

/* Checks that rows ascend, that each hypothesis has 1 .. K rows, and that |stretch| < 0.1. */
static bool are_rows_valid(const pnr_plan *plan)
{
    double last = -INFINITY;

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);
        const double first =
            hypothesis.quarters / 4.0 + (double)hypothesis.first_bin / (double)plan->n_periods;

        if (hypothesis.n_rows < 1 || hypothesis.n_rows > plan->n_periods || !(first > last) ||
            !(fabs(hypothesis.stretch) < 0.1))
            return false;
        last = first + (double)(hypothesis.n_rows - 1) / (double)plan->n_periods;
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
    if (plan->n_used_channels != 1)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine %s: %zu channels at once are not there yet; use one", engine,
                             plan->n_used_channels);
    if (!are_axes_valid(plan) || !are_lags_valid(plan) || !are_rows_valid(plan))
        return pnr_error_set(error, PNR_EINTERNAL, "engine %s: the plan's axes do not fit together",
                             engine);
    if (!is_complete(plan))
        return pnr_error_set(error, PNR_EINTERNAL, "engine %s: the plan is not complete", engine);
    if (plan->m_degree != 0 && !is_m_sequence(plan))
        return pnr_error_set(error, PNR_EINTERNAL,
                             "engine %s: the reference is not the m-sequence of degree %u, taps "
                             "0x%llx, %zu samples a chip, that the plan says",
                             engine, plan->m_degree, (unsigned long long)plan->m_taps,
                             plan->m_samples);
    return PNR_OK;
}

/* Copies an array of `bytes` bytes to the next free memory and adds its size to *used. If the array
 * is NULL, does nothing. If `first` is NULL, only adds the size. */
static const void *place_copy(char *first, size_t *used, const void *from, size_t bytes)
{
    const size_t at = (*used + 15) / 16 * 16;

    if (from == NULL)
        return NULL;
    *used = at + bytes;
    return first != NULL ? memcpy(first + at, from, bytes) : NULL;
}

/* Copies a plan and all that it points to into `memory`; returns the number of bytes. If `memory`
 * is NULL, only counts the bytes. */
static size_t lay_out_plan(const pnr_plan *plan, char *memory)
{
    pnr_plan copy = *plan;
    size_t used = sizeof *plan;
    const size_t side = plan->cfar.training + 1;

    copy.hypotheses =
        place_copy(memory, &used, plan->hypotheses, plan->n_hypotheses * sizeof *plan->hypotheses);
    copy.references =
        place_copy(memory, &used, plan->references,
                   plan->n_codes * plan->oversample * plan->n_samples * sizeof *plan->references);
    copy.threshold = place_copy(memory, &used, plan->threshold,
                                pnr_plan_windows(plan) * sizeof *plan->threshold);
    copy.taper = place_copy(memory, &used, plan->taper, plan->n_periods * sizeof *plan->taper);
    copy.filter = place_copy(memory, &used, plan->filter,
                             plan->gate_count * plan->gate_count * sizeof *plan->filter);
    copy.cfar.factor = place_copy(memory, &used, plan->cfar.factor,
                                  plan->n_looks * side * side * sizeof *plan->cfar.factor);
    copy.method = place_copy(memory, &used, plan->method, strlen(plan->method) + 1);
    if (memory != NULL)
        memcpy(memory, &copy, sizeof copy);
    return used;
}

pnr_plan *pnr_plan_copy(const pnr_plan *plan)
{
    char *memory = malloc(lay_out_plan(plan, NULL));

    if (memory != NULL)
        lay_out_plan(plan, memory);
    return (pnr_plan *)memory;
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
