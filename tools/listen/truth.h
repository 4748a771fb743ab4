/* SPDX-License-Identifier: MIT */
/* Compares the results with the truth file of pnradar-echo: matches echoes and targets, and
 * computes errors and statistics of the targets. */
#ifndef LISTEN_TRUTH_H
#define LISTEN_TRUTH_H

#include "base/error.h"
#include "config/config.h"
#include "publisher/report.h"

#include <stdio.h>

typedef struct listen_truth listen_truth;

/* Reads a file of `pnradar-echo --truth`. Uses these values of the configuration: sampling rate,
 * chip rate, propagation speed, path, looks and periods of a dwell. PNR_ENOINPUT, PNR_EDATA with
 * file:line, PNR_ENOMEMORY. */
int listen_truth_read(const char *path, const pnr_config *config, listen_truth **out,
                      pnr_error *error);
void listen_truth_destroy(listen_truth *truth);

/* Matches each echo with the nearest target of its dwell. Distances are modulo the unambiguous
 * range. A target is detected if an echo and this target are nearest to each other and at most two
 * chips apart. All other echoes are strays. */
void listen_truth_match(listen_truth *truth, const pnr_report *report,
                        pnr_report_truth out[PNR_MAX_CANDIDATES]);

/* Prints a line for each target (detections, mean error, rms error), and then the number of
 * strays. */
void listen_truth_print(const listen_truth *truth, FILE *stream);

#endif
