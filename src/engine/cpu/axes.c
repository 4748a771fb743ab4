/* SPDX-License-Identifier: MIT */
/* The axes of a dwell in the cpu engine: which transforms belong to which rows. */
#include "engine/cpu/axes.h"

#include "base/transform.h"
#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NOWHERE = UINT32_MAX;

/* A linear correlation reads samples n + k < N + n_lags - 1. A transform of at least N + n_lags - 1
 * values does not wrap them. */
static size_t transform_length(const pnr_plan *plan)
{
    return plan->linear ? pnr_transform_fast_length(pnr_plan_window_samples(plan))
                        : pnr_plan_transform_length(plan->n_samples);
}

static int32_t residue_of(int32_t quarters)
{
    return ((quarters % 4) + 4) % 4;
}

static int32_t whole_of(int32_t quarters)
{
    return (quarters - residue_of(quarters)) / 4;
}

static uint32_t modulo(int64_t a, size_t n)
{
    const int64_t m = (int64_t)n;

    return (uint32_t)((a % m + m) % m);
}

/* Returns the index of `value` in list[0 .. *count-1]; appends it if the list does not have it. */
static uint32_t find_or_add(int32_t value, int32_t *list, size_t *count)
{
    size_t i = 0;

    while (i < *count && list[i] != value)
        i++;
    if (i == *count)
        list[(*count)++] = value;
    return (uint32_t)i;
}

static uint32_t find_or_add_set(pnr_cpu_axes *axes, double stretch, unsigned quarters)
{
    size_t i = 0;

    while (i < axes->n_sets &&
           (axes->sets[i].stretch != stretch || axes->sets[i].quarters != quarters))
        i++;
    if (i == axes->n_sets)
        axes->sets[axes->n_sets++] = (pnr_cpu_set){.stretch = stretch, .quarters = quarters};
    return (uint32_t)i;
}

/* The ways to compute a shift by whole bins. */
typedef enum { ROTATED_INDEX, ROTATED_CODE, ROTATED_SAMPLES } shift_kind;

enum { MOST_ROTATED_CODES = 3 };

static shift_kind choose_shift(const pnr_plan *plan, size_t n_transform)
{
    if (n_transform == plan->n_samples && !plan->linear)
        return ROTATED_INDEX;
    return plan->n_codes <= MOST_ROTATED_CODES ? ROTATED_CODE : ROTATED_SAMPLES;
}

/* One slow-time transform computes all bins of a set, but the columns must be transposed to rows
 * and back. In measurements with 64 and 512 periods the transform is faster than sums from about
 * FEWEST_TRANSFORMED bins on. With fewer than FEWEST_PERIODS periods all bins are sums. */
enum { FEWEST_TRANSFORMED = 13, FEWEST_PERIODS = 8 };

static bool is_summed(size_t n_bins, size_t n_periods)
{
    return n_bins < FEWEST_TRANSFORMED || n_periods < FEWEST_PERIODS;
}

/* Numbers each spectrum of a set once, and stores this number in the rows of the spectrum. at,
 * [n_rotations][K]: the number of the spectrum of each rotation and bin, or NOWHERE. */
static void number_spectra(const pnr_plan *plan, pnr_cpu_axes *axes, size_t set,
                           const uint32_t *set_of_hypothesis, uint32_t *at)
{
    const size_t k = plan->n_periods;
    pnr_cpu_set *s = &axes->sets[set];
    size_t row = 0;

    memset(at, 0xff, axes->n_rotations * k * sizeof *at);
    s->first = axes->n_spectra;
    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);
        const int64_t quarter = k % 4 == 0 ? residue_of(hypothesis.quarters) * (int64_t)(k / 4) : 0;

        if (set_of_hypothesis[h] != set) {
            row += hypothesis.n_rows;
            continue;
        }
        for (uint32_t i = 0; i < hypothesis.n_rows; i++, row++) {
            const uint32_t bin = modulo(hypothesis.first_bin + (int64_t)i + quarter, k);
            const uint32_t rotation = axes->rows[row].spectrum; /* stored by fill_rows */
            uint32_t *spectrum = &at[rotation * k + bin];

            if (*spectrum == NOWHERE) {
                axes->spectra[axes->n_spectra] = (pnr_cpu_spectrum){bin, rotation};
                *spectrum = (uint32_t)axes->n_spectra++;
            }
            axes->rows[row].spectrum = *spectrum;
        }
    }
    s->count = axes->n_spectra - s->first;
    s->is_summed = is_summed(s->count, k);
}

/* Puts the rows of one spectrum next to each other, so that the spectrum stays in the cache.
 * first: [n_spectra + 1], zeroed by the caller. */
static void order_rows(pnr_cpu_axes *axes, uint32_t *first)
{
    for (size_t row = 0; row < axes->n_rows; row++)
        first[axes->rows[row].spectrum + 1]++;
    for (size_t u = 0; u < axes->n_spectra; u++)
        first[u + 1] += first[u];
    for (size_t row = 0; row < axes->n_rows; row++)
        axes->order[first[axes->rows[row].spectrum]++] = (uint32_t)row;
}

static bool allocate_axes(const pnr_plan *plan, pnr_cpu_axes *axes)
{
    const size_t n_hypotheses = plan->n_hypotheses, n_rows = axes->n_rows;

    axes->rows = calloc(n_rows, sizeof *axes->rows);
    axes->order = calloc(n_rows, sizeof *axes->order);
    axes->sets = calloc(n_hypotheses, sizeof *axes->sets);
    axes->spectra = calloc(n_rows, sizeof *axes->spectra);
    axes->rotations = calloc(n_hypotheses, sizeof *axes->rotations);
    axes->variants = calloc(n_hypotheses, sizeof *axes->variants);
    return axes->rows != NULL && axes->order != NULL && axes->sets != NULL &&
           axes->spectra != NULL && axes->rotations != NULL && axes->variants != NULL;
}

/* Fills the rows and finds the set of each hypothesis. row.spectrum is the index of the rotation
 * until number_spectra replaces it. */
static void fill_rows(const pnr_plan *plan, pnr_cpu_axes *axes, uint32_t *set_of_hypothesis)
{
    const shift_kind how = choose_shift(plan, axes->n_transform);
    size_t row = 0;

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);
        const int32_t residue = residue_of(hypothesis.quarters);
        const int32_t whole = whole_of(hypothesis.quarters);
        const uint32_t m = modulo(whole, plan->n_samples);
        const pnr_cpu_row each = {
            .spectrum = find_or_add(how == ROTATED_SAMPLES ? hypothesis.quarters : residue,
                                    axes->rotations, &axes->n_rotations),
            .shift = how == ROTATED_INDEX ? m : 0,
            .variant =
                how == ROTATED_CODE ? find_or_add(whole, axes->variants, &axes->n_variants) : 0,
            .phase = how == ROTATED_CODE ? m : 0,
        };

        set_of_hypothesis[h] = find_or_add_set(axes, hypothesis.stretch,
                                               plan->n_periods % 4 == 0 ? 0 : (unsigned)residue);
        for (uint32_t i = 0; i < hypothesis.n_rows; i++)
            axes->rows[row++] = each;
    }
    if (how != ROTATED_CODE) { /* the codes are not rotated */
        axes->n_variants = 1;
        axes->variants[0] = 0;
    }
}

int pnr_cpu_axes_create(const pnr_plan *plan, pnr_cpu_axes *axes)
{
    uint32_t *set_of_hypothesis = calloc(plan->n_hypotheses, sizeof *set_of_hypothesis);
    uint32_t *at = NULL, *first = NULL;
    bool is_complete;

    *axes = (pnr_cpu_axes){.n_transform = transform_length(plan), .n_rows = pnr_plan_rows(plan)};
    is_complete = allocate_axes(plan, axes) && set_of_hypothesis != NULL;
    if (is_complete) {
        fill_rows(plan, axes, set_of_hypothesis);
        at = calloc(axes->n_rotations * plan->n_periods, sizeof *at);
        is_complete = at != NULL;
    }
    for (size_t s = 0; is_complete && s < axes->n_sets; s++)
        number_spectra(plan, axes, s, set_of_hypothesis, at);
    if (is_complete) {
        first = calloc(axes->n_spectra + 1, sizeof *first);
        is_complete = first != NULL;
    }
    if (is_complete)
        order_rows(axes, first);
    free(first);
    free(set_of_hypothesis);
    free(at);
    return is_complete ? PNR_OK : PNR_ENOMEMORY;
}

void pnr_cpu_axes_destroy(pnr_cpu_axes *axes)
{
    free(axes->rows);
    free(axes->order);
    free(axes->sets);
    free(axes->spectra);
    free(axes->rotations);
    free(axes->variants);
    *axes = (pnr_cpu_axes){0};
}
