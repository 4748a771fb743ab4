/* SPDX-License-Identifier: MIT */
/* A SigMF recording that grows: a data file and its metadata. Both are valid at every moment. */
#ifndef PNR_RECORDING_H
#define PNR_RECORDING_H

#include "base/error.h"
#include "base/rational.h"
#include "config/config.h"
#include "setup/setup.h"

#include <limits.h>
#include <sodium/crypto_hash_sha512.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PNR_RECORDING_NO_TIME INT64_MIN
enum { PNR_RECORDING_CAPTURES = 16384 }; /* most captures of a recording */

typedef struct pnr_recording {
    size_t sample_bytes; /* bytes of one sample of all channels */
    pnr_rational rate_hz;
    double centre_hz; /* 0: not known */

    char path[PATH_MAX]; /* path of the recording, without extension; valid while it is open */
    int fd;              /* descriptor of the data file; -1: no recording is open */
    uint64_t first;      /* position of the first sample */
    uint64_t n_samples;  /* samples in the data file */
    uint64_t next;       /* position after the last sample */
    uint64_t flushed;    /* bytes for which a write to the disk has started */
    size_t n_captures;
    char *meta; /* metadata: the members before the captures, and the captures */
    size_t before_captures, meta_bytes, meta_room;
    bool is_hashed; /* all samples so far are in `hash` */
    crypto_hash_sha512_state hash;
} pnr_recording;

/* Prepares recordings: type, channels and rate of the samples, the codes and the tune. Allocates
 * all memory. Returns PNR_OK or PNR_ENOMEMORY. */
int pnr_recording_create(const pnr_config *config, const pnr_setup *setup, pnr_format format,
                         size_t n_channels, pnr_recording *out, pnr_error *error);
/* Frees the memory. An open recording keeps its temporary names. */
void pnr_recording_destroy(pnr_recording *recording);

/* Opens PATH.partial.sigmf-data for samples from position `first` on. Replaces no file. The next
 * append writes the metadata. Returns PNR_OK; PNR_ECONFIG: a file of the recording exists;
 * PNR_EPERMISSION; PNR_EIO. */
int pnr_recording_open(pnr_recording *recording, const char *path, uint64_t first,
                       pnr_error *error);
/* Appends samples. If the position is not the next one, begins a new capture. The metadata of a
 * capture have its position (core:global_index) and its time, unless start_utc_ns is
 * PNR_RECORDING_NO_TIME. start_utc_ns: time of position 0. The metadata on the disk have the
 * capture before the data file has its samples. *n_written: samples that have been appended, also
 * after an error. Returns PNR_OK; PNR_EIO: the other samples could not be written (a full disk);
 * PNR_EDATA: the recording already has the greatest number of captures. */
int pnr_recording_append(pnr_recording *recording, uint64_t position, int64_t start_utc_ns,
                         const void *samples, size_t n_samples, size_t *n_written,
                         pnr_error *error);
/* Adds the event that began the recording, and its position, to the metadata. Call it after open,
 * before the first append. */
void pnr_recording_label(pnr_recording *recording, const char *event, uint64_t position);
/* Leaves the hash out of this recording, which saves most of the time of an append. */
void pnr_recording_skip_hash(pnr_recording *recording);
/* Adds the hash of the data to the metadata, and renames both files to their final names when they
 * are on the disk. Removes an empty recording. Closes the recording in every case. Returns PNR_OK,
 * or PNR_EIO: the files keep their temporary names. */
int pnr_recording_finish(pnr_recording *recording, pnr_error *error);

/* Checks that PATH does not exist and can be created. Returns a code of pnr_recording_open. */
int pnr_recording_check(const char *path, pnr_error *error);

#endif
