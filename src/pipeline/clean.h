/* SPDX-License-Identifier: MIT */
/* CLEAN: searches the samples again without the echoes that were found. */
#ifndef PNR_CLEAN_H
#define PNR_CLEAN_H

#include "correlator/correlator.h"
#include "detector/detector.h"

typedef struct pnr_clean pnr_clean;

/* pnr_clean_run makes at most config->detector.subtract searches. Each search subtracts the echoes
 * that were found before it. Keeps the pointers setup and detector. Allocates memory for the
 * delayed code of each echo, and for the derivative of this code. PNR_OK or PNR_ENOMEMORY. The
 * caller owns *out. */
int pnr_clean_create(const pnr_config *config, const pnr_setup *setup, const pnr_detector *detector,
                     pnr_clean **out, pnr_error *error);
void pnr_clean_destroy(pnr_clean *clean);

/* Adds the echoes that stronger echoes hide, and fits all echoes together. On entry *detection is
 * the detection of dwell d of the last collected result. A candidate within 1.5 lags and 1.5 rows
 * of an echo of the same code is a remnant of this echo and is ignored. Waits for the engine;
 * allocates nothing. PNR_OK, or the error of the engine: then *detection is the result of the last
 * good search. */
int pnr_clean_run(pnr_clean *clean, pnr_correlator *correlator, const pnr_windows *windows,
                  size_t d, const pnr_observed *observed, pnr_detection *detection);

#endif
