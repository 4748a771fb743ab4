/* SPDX-License-Identifier: MIT */
/* From one candidate to a track. */
#ifndef PNR_DETECTOR_CANDIDATE_H
#define PNR_DETECTOR_CANDIDATE_H

#include "detector/state.h"

/* Data that all tracks of a dwell share. */
typedef struct pnr_dwell_view {
    const pnr_observed *observed;
    pnr_dwell_gains gains;
    double cell; /* noise power of one cell, without the echoes found so far */
    double mean; /* mean noise power of a cell, subtracted from the values in sums of powers */
} pnr_dwell_view;

/* Fills a track from candidate `index`, without a fit. */
void pnr_candidate_load(const pnr_detector *detector, const pnr_dwell_view *view, size_t index,
                        pnr_track *t);
/* Returns the power that a candidate must have after the stronger echoes are subtracted. */
double pnr_candidate_least(const pnr_detector *detector, const pnr_dwell *dwell,
                           const pnr_candidate *candidate);
/* Fits candidate `index` as track n, after the tracks 0 .. n - 1. Returns true if the candidate is
 * an echo. The strongest candidate, with n = 0, always is an echo. */
bool pnr_candidate_is_echo(const pnr_detector *detector, const pnr_dwell_view *view, size_t index,
                           pnr_track *tracks, size_t n);

#endif
