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

/* Number of this interface. A change of this file must change it. It contains the size of the
 * configuration, because create reads the configuration. */
#define PNR_RECORDING_ABI (1 << 20 | (int)sizeof(pnr_config))

/* No two functions run at the same time. The creator of the recorder calls create, check and
 * destroy; the recorder's thread calls the others. */
typedef struct pnr_recording_kind {
    int abi;           /* PNR_RECORDING_ABI */
    bool is_continued; /* all samples of a run, and of later runs, are one recording */
    /* Creates the state for samples of this format, with all its memory. After an error *state is
     * NULL or a state that the caller destroys. PNR_OK, PNR_ENOMEMORY, PNR_ECONFIG. */
    int (*create)(const pnr_config *config, const pnr_setup *setup, pnr_format format,
                  size_t n_channels, void **state, pnr_error *error);
    /* Frees the memory. An open recording keeps its temporary names. */
    void (*destroy)(void *state);
    /* Checks that the recording PATH can be created. Returns PNR_OK or an error of open. */
    int (*check)(void *state, const char *path, pnr_error *error);
    /* Opens the recording PATH for samples; replaces no file. PNR_ECONFIG: PATH or one of its files
     * exists; PNR_EPERMISSION; PNR_EIO. */
    int (*open)(void *state, const char *path, pnr_error *error);
    /* Writes the event that began the recording, and the position of this event, into the metadata.
     * Call it after open and before the first append. NULL: this kind stores no event. */
    void (*label)(void *state, const char *event, uint64_t position);
    /* Appends samples, the first at `position`. A jump of the position is a gap of the recording.
     * start_utc_ns: time of position 0, or PNR_RECORDING_NO_TIME. *n_written: number of these
     * samples that the recording has accepted, also after an error. PNR_OK; PNR_EIO: the rest could
     * not be written (a full disk); PNR_EDATA: the recording has as many gaps as it can have;
     * PNR_ECONFIG, PNR_EPERMISSION. */
    int (*append)(void *state, uint64_t position, int64_t start_utc_ns, const void *samples,
                  size_t n_samples, size_t *n_written, pnr_error *error);
    /* Stops the hash of this recording: its metadata will have no hash. The hash takes most of the
     * time of an append. NULL: this kind has no hash. */
    void (*skip_hash)(void *state);
    /* Ends the recording: writes its files to the disk, then renames them to their final names.
     * Removes an empty recording. Closes the files also after an error. PNR_OK; PNR_EIO: files keep
     * their temporary names, or are missing. */
    int (*finish)(void *state, pnr_error *error);
    /* For a kind that keeps samples in memory until a file is complete. Returns PNR_OK if the
     * latest file was written, or the error. *n_dropped: samples of the run that append accepted,
     * but that could not be written. NULL: append itself writes the samples. */
    int (*outcome)(const void *state, uint64_t *n_dropped, pnr_error *error);
} pnr_recording_kind;

enum { PNR_RECORDING_CAPTURES = 16384 }; /* largest number of captures in a SigMF recording */
extern const pnr_recording_kind pnr_recording_sigmf;

/* Entry point of the module recorder-digital-rf.so, of type pnr_recording_module. */
#define PNR_RECORDING_SYMBOL "pnr_recording_kind_get"
typedef const pnr_recording_kind *(*pnr_recording_module)(void);

#endif
