/* SPDX-License-Identifier: MIT */
/* Compares the truth of pnradar-echo with the measurement: matches, errors, target statistics. */
#ifndef LISTEN_TRUTH_H
#define LISTEN_TRUTH_H

#include "base/error.h"
#include "config/config.h"
#include "publisher/report.h"

#include <stdio.h>

typedef struct listen_truth listen_truth;

/* Reads a file of `pnradar-echo --truth`. The configuration gives rate, speed and periods of a
 * dwell. PNR_ENOINPUT, PNR_EDATA with file:line, PNR_ENOMEMORY. */
int listen_truth_read(const char *path, const pnr_config *config, listen_truth **out,
                      pnr_error *error);
void listen_truth_destroy(listen_truth *truth);

/* Matches each echo with the nearest target of its dwell, with ranges modulo the unambiguous range.
 * A target is detected when it and an echo are nearest to each other and at most two chips apart;
 * every other echo is a stray. */
void listen_truth_match(listen_truth *truth, const pnr_report *report,
                        pnr_report_truth out[PNR_MAX_CANDIDATES]);

/* Prints a line for each target: detections, mean error, rms error; then the strays. */
void listen_truth_print(const listen_truth *truth, FILE *stream);

#endif
