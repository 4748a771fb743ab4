/* SPDX-License-Identifier: MIT */
/* Writes profiles and maps to two files: a numpy array of all results, and the axes of each
 * result. */
#ifndef PNR_CELL_FILE_H
#define PNR_CELL_FILE_H

#include "base/error.h"
#include "publisher/message.h"

typedef struct pnr_cell_file pnr_cell_file;

/* Prepares both files. The array is [results][codes][rows][cells] of dtype <f4 or <c8. The other
 * file has the same name with .jsonl in place of .npy: its line i is the header of the message that
 * publishes result i (pnradar-wire(5)). The files are opened at the first result, or by
 * pnr_cell_file_close, and then replace earlier files of the same kind. A refused run therefore
 * changes no file. Returns PNR_OK; PNR_EUSAGE: the path does not end in .npy; PNR_ENOMEMORY; an
 * error of pnr_new_file_check. The caller closes *out. */
int pnr_cell_file_create(const char *path, pnr_cell_file **out, pnr_error *error);
/* Adds one result. All results have the same shape. cells: [n_codes][n_rows][n_cells] powers, or
 * (I, Q) pairs. The number of results in the head of the array is written last. The array can
 * therefore be read at any time, also after the program was killed. Waits for the file system;
 * allocates nothing. Returns PNR_OK or PNR_EIO. */
int pnr_cell_file_write(pnr_cell_file *file, const pnr_report *report, const pnr_map_info *info,
                        const float *cells, pnr_error *error);
/* Closes both files and frees *file, which may be NULL. wants_empty: if there was no result, writes
 * an array without results. Returns PNR_OK, or PNR_EIO: the file system has lost data. */
int pnr_cell_file_close(pnr_cell_file *file, bool wants_empty, pnr_error *error);

#endif
