/* SPDX-License-Identifier: MIT */
/* A report on paper: the results as a table, as CSV or as JSON lines, for stdout. */
#ifndef PNR_REPORT_H
#define PNR_REPORT_H

#include "base/error.h"
#include "publisher/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum { PNR_PRINT_TABLE, PNR_PRINT_CSV, PNR_PRINT_JSON } pnr_print;

/* "table", "csv", "json". PNR_OK, or PNR_EUSAGE naming the three. */
int pnr_print_find(const char *name, pnr_print *out, pnr_error *error);

/* What an echo should have been, when that is known. NAN: no target in this dwell. */
typedef struct pnr_report_truth {
    unsigned target;
    double range_m;
    double error_m; /* measured less true */
} pnr_report_truth;

/* On the caller's stack; the stream stays the caller's. */
typedef struct pnr_printer {
    FILE *stream;
    pnr_print print;
    bool with_truth;
    bool has_begun;
    bool by_time;     /* the table's first column: time, or the sample index */
    unsigned columns; /* of the table, besides those that it always has */
} pnr_printer;

void pnr_printer_init(pnr_printer *printer, FILE *stream, pnr_print print, bool with_truth);

/*
 * table: one line an echo below a header line, which comes anew when an echo first has a Doppler, a
 * velocity, another code, or a result a zero delay that is tracked: a column more; csv: one row an
 * echo, a dwell without one has a row with empty fields; json: the range message itself, one a
 * line, without truth. truth: [n_echoes], or NULL. PNR_OK, or PNR_EIO: the stream takes no more.
 * Needs no allocation of its own.
 */
int pnr_printer_print(pnr_printer *printer, const pnr_report *report,
                      const pnr_report_truth *truth);
/* Writes CSV's header if nothing else came, and flushes. PNR_OK, PNR_EIO. */
int pnr_printer_finish(pnr_printer *printer);

#endif
