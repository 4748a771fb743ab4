/* SPDX-License-Identifier: MIT */
/* Results as text for stdout: a table, CSV or JSON lines. */
#ifndef PNR_REPORT_H
#define PNR_REPORT_H

#include "base/error.h"
#include "publisher/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PNR_DATE_LEN = 11 };

typedef enum { PNR_PRINT_TABLE, PNR_PRINT_CSV, PNR_PRINT_JSON } pnr_print;

/* Finds a format by its name: "table", "csv" or "json". option: the command-line option with this
 * value, for the text of an error. PNR_OK, or PNR_EUSAGE: the name is none of the three. */
int pnr_print_find(const char *option, const char *name, pnr_print *out, pnr_error *error);

/* The true values of an echo in a synthetic scene. range_m and error_m are NAN if the dwell has no
 * target for the echo. */
typedef struct pnr_report_truth {
    unsigned target;
    double range_m;
    double error_m; /* measured minus true value */
} pnr_report_truth;

/* A printer allocates nothing. The caller owns the stream. */
typedef struct pnr_printer {
    FILE *stream;
    pnr_print print;
    bool with_truth;
    bool has_begun;
    char date[PNR_DATE_LEN]; /* UTC date in the header line; "": times are seconds since sample 0 */
    unsigned columns;        /* bits of the optional columns of the table */
    unsigned shown;          /* bits of the columns that are printed */
    unsigned code_width;
} pnr_printer;

void pnr_printer_init(pnr_printer *printer, FILE *stream, pnr_print print, bool with_truth);

/*
 * Prints one result.
 * - table: a header line, and a line for each echo, within 80 columns. The first column is UTC, or
 *   the seconds since sample 0. Numbers have the decimals that show two digits of their sigma. A
 *   new header line is printed when the date changes, and before the first result that needs
 *   another column, such as the velocity. If the table is too wide, the least important columns
 *   are not printed.
 * - csv: one row for each echo; a dwell without an echo has a row with empty fields.
 * - json: the range message in one line, without truth.
 *
 * truth: [n_echoes], or NULL. PNR_OK, or PNR_EIO: the stream accepts no more text.
 */
int pnr_printer_print(pnr_printer *printer, const pnr_report *report,
                      const pnr_report_truth *truth);
/* Writes the CSV header if nothing was printed, and flushes the stream. PNR_OK or PNR_EIO. */
int pnr_printer_finish(pnr_printer *printer);

#endif
