/* SPDX-License-Identifier: MIT */
/* One line on the terminal of standard error: the share of a recording that has been processed. */
#ifndef PNR_PROGRESS_H
#define PNR_PROGRESS_H

#include "pipeline/pipeline.h"

#include <stdbool.h>

enum { PNR_PROGRESS_LEN = 128 };

typedef struct pnr_progress_line {
    bool is_on; /* PNR_LOG is not quiet, and standard error is a terminal that can clear a line */
    bool is_shown; /* the cursor is at the end of the line */
    char text[PNR_PROGRESS_LEN];
} pnr_progress_line;

void pnr_progress_begin(pnr_progress_line *line);
/* A function of type pnr_pipeline_watch. context: the pnr_progress_line. */
void pnr_progress_watch(void *context, const pnr_progress *progress);
/* pnr_progress_hide clears the line before other text is printed. pnr_progress_show prints the line
 * again. */
void pnr_progress_hide(pnr_progress_line *line);
void pnr_progress_show(pnr_progress_line *line);

/* Writes the text of the line, for example "42 %, 12.3 Msamples/s, 1 min 05 s left, 1234
 * echoes". */
void pnr_progress_format(const pnr_progress *progress, char out[PNR_PROGRESS_LEN]);

#endif
