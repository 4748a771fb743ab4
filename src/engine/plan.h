/* SPDX-License-Identifier: MIT */
/* What all engines do with a plan before their own work: checks of its axes, and its samples'
 * places. */
#ifndef PNR_PLAN_H
#define PNR_PLAN_H

#include "base/error.h"
#include "engine/block.h"
#include "engine/engine.h"

/* PNR_OK; PNR_EUNSUPPORTED: an axis that `engine` lacks, in words; PNR_EINTERNAL: a plan that no
 * configuration makes. */
int pnr_plan_check(const pnr_plan *plan, const char *engine, pnr_error *error);

/* A copy that outlives create: pointers into one allocation, freed with free(copy). NULL: out of
 * memory. references are copied too. */
pnr_plan *pnr_plan_copy(const pnr_plan *plan);

/* Is a dwell a map, see engine.h? */
bool pnr_plan_is_map(const pnr_plan *plan);
/* Doppler rows, of all hypotheses. */
size_t pnr_plan_rows(const pnr_plan *plan);
/* Hypothesis h; where the plan has no list the one that it stands for. */
pnr_hypothesis pnr_plan_hypothesis(const pnr_plan *plan, size_t h);
/* The frequency of a row, bins: F = quarters / 4 + s / K. */
double pnr_plan_bins(const pnr_plan *plan, size_t row);
/* Windows of a dwell: looks times periods. */
size_t pnr_plan_windows(const pnr_plan *plan);
/* Samples of one window: N, or with those behind it that a linear correlation reads too. */
size_t pnr_plan_window_samples(const pnr_plan *plan);
/* Samples from dwell to dwell; and of a view of n_dwells, with those behind the last one. */
size_t pnr_plan_dwell_samples(const pnr_plan *plan);
size_t pnr_plan_view_samples(const pnr_plan *plan, size_t n_dwells);
/* Values of one dwell's profile or map: codes, rows, lags times oversample. */
size_t pnr_plan_cells(const pnr_plan *plan);

/* Bytes of one sample of all channels. */
size_t pnr_plan_sample_bytes(const pnr_plan *plan);
/* sum |a|^2 of references[0]; all codes have it. */
double pnr_plan_code_energy(const pnr_plan *plan);

/* Where samples [first, first + *count) of a view begin; *count is shortened to what lies in one
 * piece. first counts from the view's first sample. */
const void *pnr_plan_locate(const pnr_plan *plan, const pnr_windows *windows, size_t first,
                            size_t *count);

/* true when the length has no prime factor above 7: the circular transform at N itself is fast.
 * Other lengths are done by periodic extension to pnr_transform_fast_length(2 N - 1). Both engines
 * that transform use this rule. */
bool pnr_plan_is_direct(size_t n_samples);
size_t pnr_plan_transform_length(size_t n_samples);

#endif
