/* SPDX-License-Identifier: MIT */
/* The table of operations of one kind of file of results. */
#ifndef PNR_RESULT_FILE_H
#define PNR_RESULT_FILE_H

#include "base/error.h"
#include "publisher/message.h"

/* The thread of the result recorder calls all functions. After an error the file holds whole
 * results only, and the next call may succeed. */
typedef struct pnr_result_file {
    bool is_block; /* a failed add loses the results since the last sync, as a failed sync does */
    /* Opens or creates the file; keeps `path`. *state may be set after an error, too. Replaces
     * nothing: PNR_ECONFIG if the path is that of a file of another program, or another kind of
     * object. PNR_EPERMISSION, PNR_EIO, PNR_ENOMEMORY. */
    int (*open)(const char *path, void **state, pnr_error *error);
    /* Adds one result. PNR_OK or PNR_EIO. */
    int (*add)(void *state, const pnr_report *report, pnr_error *error);
    /* Writes the added results to the disk. Called about once a second. PNR_OK, or PNR_EIO: all
     * results since the last sync may be lost. */
    int (*sync)(void *state, pnr_error *error);
    /* Closes the file after the last sync. Frees the state also after an error. PNR_OK, PNR_EIO. */
    int (*close)(void *state, pnr_error *error);
} pnr_result_file;

extern const pnr_result_file pnr_result_file_json;
extern const pnr_result_file pnr_result_file_csv;

/* Entry point of a module recorder-<name>.so, of type pnr_result_file_module. */
#define PNR_RESULT_FILE_SYMBOL "pnr_result_file_get"
typedef const pnr_result_file *(*pnr_result_file_module)(void);

#endif
