/* SPDX-License-Identifier: MIT */
/* One line on the terminal of standard error: how far a recording has been processed. */
#ifndef PNR_PROGRESS_H
#define PNR_PROGRESS_H

#include "pipeline/pipeline.h"

#include <stdbool.h>

enum { PNR_PROGRESS_LEN = 128 };

typedef struct pnr_progress_line {
    bool is_on; /* standard error is a terminal that can clear a line, and PNR_LOG is not quiet */
    bool is_shown; /* the cursor is at the end of the line */
    char text[PNR_PROGRESS_LEN];
} pnr_progress_line;

void pnr_progress_begin(pnr_progress_line *line);
/* The pnr_pipeline_watch of a pipeline. context: the line. */
void pnr_progress_watch(void *context, const pnr_progress *progress);
/* pnr_progress_hide removes the line before other text is printed; pnr_progress_show shows it
 * again. */
void pnr_progress_hide(pnr_progress_line *line);
void pnr_progress_show(pnr_progress_line *line);

/* Writes "42 %, 12.3 Msamples/s, 1 min 05 s left, 1234 echoes". */
void pnr_progress_format(const pnr_progress *progress, char out[PNR_PROGRESS_LEN]);

#endif
