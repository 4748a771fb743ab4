/* SPDX-License-Identifier: MIT */
/* CLEAN: the search again, with the echoes that were found taken out of the samples. */
#ifndef PNR_CLEAN_H
#define PNR_CLEAN_H

#include "correlator/correlator.h"
#include "detector/detector.h"

typedef struct pnr_clean pnr_clean;

/* config->detector.subtract searches at most, each after all echoes so far. Keeps the pointers; its
 * memory is two copies of the code for each of setup->max_echoes. PNR_OK, PNR_ENOMEMORY. Owner of
 * *out: the caller. */
int pnr_clean_create(const pnr_config *config, const pnr_setup *setup, const pnr_detector *detector,
                     pnr_clean **out, pnr_error *error);
void pnr_clean_destroy(pnr_clean *clean);

/*
 * After the detector: *detection, of dwell d of the result collected last, gets the echoes that
 * show only without the stronger ones; all are fitted together. Candidates within 1.5 lags and 1.5
 * rows of an echo are what is left of it. Waits for the engine; allocates nothing. PNR_OK, or what
 * the engine said: *detection is good as far as it came.
 */
int pnr_clean_run(pnr_clean *clean, pnr_correlator *correlator, const pnr_windows *windows,
                  size_t d, const pnr_observed *observed, pnr_detection *detection);

#endif
