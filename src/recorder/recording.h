/* SPDX-License-Identifier: MIT */
/* The table of operations of one kind of recording of samples: files that grow and are valid at
 * every moment. */
#ifndef PNR_RECORDING_H
#define PNR_RECORDING_H

#include "base/error.h"
#include "config/config.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PNR_RECORDING_NO_TIME INT64_MIN

/* Changes with this file, and with the configuration, which create reads. */
#define PNR_RECORDING_ABI (1 << 20 | (int)sizeof(pnr_config))

/* One thread calls all functions after create. */
typedef struct pnr_recording_kind {
    int abi;           /* PNR_RECORDING_ABI */
    bool is_continued; /* all samples of a run, and of later runs, are one recording */
    /* Describes the samples: type, channels and rate, the codes and the tune. Allocates all memory.
     * *state may be set after an error, too. PNR_OK, PNR_ENOMEMORY, PNR_ECONFIG. */
    int (*create)(const pnr_config *config, const pnr_setup *setup, pnr_format format,
                  size_t n_channels, void **state, pnr_error *error);
    /* Frees the memory. An open recording keeps its temporary names. */
    void (*destroy)(void *state);
    /* Checks that the recording PATH can be created. Codes as for open. */
    int (*check)(void *state, const char *path, pnr_error *error);
    /* Opens the recording PATH for samples; replaces no file. PNR_ECONFIG: PATH, or a part of it,
     * exists; PNR_EPERMISSION; PNR_EIO. */
    int (*open)(void *state, const char *path, pnr_error *error);
    /* States the event that began the recording, and its position. Call it after open, before the
     * first append. NULL: the recording states none. */
    void (*label)(void *state, const char *event, uint64_t position);
    /* Appends samples. A jump of the position is a gap of the recording. start_utc_ns: time of
     * position 0, or PNR_RECORDING_NO_TIME. *n_written: samples that are in the recording now, also
     * after an error. PNR_OK; PNR_EIO: the rest could not be written (a full disk); PNR_EDATA: the
     * recording has so many gaps that it takes no further one; PNR_ECONFIG, PNR_EPERMISSION. */
    int (*append)(void *state, uint64_t position, int64_t start_utc_ns, const void *samples,
                  size_t n_samples, size_t *n_written, pnr_error *error);
    /* Leaves the hash out of this recording, which saves most of the time of an append. NULL: there
     * is none. */
    void (*skip_hash)(void *state);
    /* Ends the recording: gives its files their final names, when they are on the disk. Removes an
     * empty recording. Closes it in every case. PNR_OK; PNR_EIO: files keep their temporary names,
     * or are missing. */
    int (*finish)(void *state, pnr_error *error);
    /* For a kind that keeps samples in memory until a file is complete. Returns PNR_OK if the
     * latest file was written, else why not. *n_dropped: samples of the run that append has taken,
     * but that could not be written. NULL: append writes. */
    int (*outcome)(const void *state, uint64_t *n_dropped, pnr_error *error);
} pnr_recording_kind;

enum { PNR_RECORDING_CAPTURES = 16384 }; /* most captures of a SigMF recording */
extern const pnr_recording_kind pnr_recording_sigmf;

/* Entry point of the module recorder-digital-rf.so, of type pnr_recording_module. */
#define PNR_RECORDING_SYMBOL "pnr_recording_kind_get"
typedef const pnr_recording_kind *(*pnr_recording_module)(void);

#endif
