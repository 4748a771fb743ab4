/* SPDX-License-Identifier: MIT */
/* The table of operations for one kind of file of results. */
#ifndef PNR_RESULT_FILE_H
#define PNR_RESULT_FILE_H

#include "base/error.h"
#include "publisher/message.h"

/* No two functions run at the same time. The creator of the recorder calls open and close; the
 * recorder's thread calls add and sync. After an error the file contains only whole results, and
 * the next call can succeed. */
typedef struct pnr_result_file {
    bool is_block; /* a failed add also loses the results since the last sync */
    /* Creates the file, or opens an existing file to append results; the HDF5 kind refuses an
     * existing file. Keeps the pointer `path`. After an error *state is NULL or a state that the
     * caller closes. Returns PNR_OK; PNR_ECONFIG: the path is a file of another program, or no
     * regular file; PNR_EPERMISSION; PNR_EIO; PNR_ENOMEMORY. */
    int (*open)(const char *path, void **state, pnr_error *error);
    /* Adds one result. Returns PNR_OK or PNR_EIO. */
    int (*add)(void *state, const pnr_report *report, pnr_error *error);
    /* Writes the added results to the disk. The thread calls it about once a second. Returns
     * PNR_OK, or PNR_EIO: all results since the last sync may be lost. */
    int (*sync)(void *state, pnr_error *error);
    /* Closes the file after the last sync. Frees the state also after an error. Returns PNR_OK or
     * PNR_EIO. */
    int (*close)(void *state, pnr_error *error);
} pnr_result_file;

extern const pnr_result_file pnr_result_file_json;
extern const pnr_result_file pnr_result_file_csv;

/* The entry point of a module recorder-<name>.so. Its type is pnr_result_file_module. */
#define PNR_RESULT_FILE_SYMBOL "pnr_result_file_get"
typedef const pnr_result_file *(*pnr_result_file_module)(void);

#endif
