/* SPDX-License-Identifier: MIT */
/* Profiles and maps in a file: one numpy array of all results, and their axes beside it. */
#ifndef PNR_CELL_FILE_H
#define PNR_CELL_FILE_H

#include "base/error.h"
#include "publisher/message.h"

typedef struct pnr_cell_file pnr_cell_file;

/*
 * Creates the array, [results][codes][rows][cells] of dtype <f4 or <c8, and a file of the same name
 * with .jsonl in place of .npy: line i is the header of the message that publishes result i
 * (pnradar-wire(5)). Both replace earlier files of their kind, at the first result or at the end: a
 * run that is refused leaves them as they were. PNR_EUSAGE: the path does not end in
 * .npy; PNR_ENOMEMORY; those of pnr_new_file_check. The caller closes *out.
 */
int pnr_cell_file_create(const char *path, pnr_cell_file **out, pnr_error *error);
/* Adds one result. All results have the same shape. cells: [n_codes][n_rows][n_cells] powers, or
 * (I, Q) pairs. Writes the count in the head of the array last, so that the array can be read at
 * any time, also after the program was killed. Waits for the file system; allocates nothing.
 * PNR_OK, PNR_EIO. */
int pnr_cell_file_write(pnr_cell_file *file, const pnr_report *report, const pnr_map_info *info,
                        const float *cells, pnr_error *error);
/* wants_empty: creates an array of no result if there was none. PNR_OK, or PNR_EIO: the file system
 * has lost data. file: may be NULL. */
int pnr_cell_file_close(pnr_cell_file *file, bool wants_empty, pnr_error *error);

#endif
