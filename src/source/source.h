/* SPDX-License-Identifier: MIT */
/* Sources of samples: files, stdin, FIFOs, sound cards, receivers and datagrams, in the format of
 * the input. */
#ifndef PNR_SOURCE_H
#define PNR_SOURCE_H

#include "base/error.h"
#include "base/event.h"
#include "config/config.h"
#include "engine/block.h"

#include <stdbool.h>

typedef struct pnr_source pnr_source;

/* The detail in which a source reports samples that were lost before they reached it. NONE: it
 * reports no loss. FLAG: it reports that samples were lost, without their number. EXACT: it reports
 * each loss as a gap with its length. */
#define PNR_LOSS_VISIBILITIES(X) X(NONE, "none") X(FLAG, "flag") X(EXACT, "exact")
typedef enum {
#define PNR_LOSS_VISIBILITY(name, word) PNR_LOSS_##name,
    PNR_LOSS_VISIBILITIES(PNR_LOSS_VISIBILITY)
#undef PNR_LOSS_VISIBILITY
} pnr_loss_visibility;
/* Returns "none", "flag" or "exact". */
const char *pnr_loss_visibility_word(pnr_loss_visibility visibility);

/* Properties of the stream, known after open. */
typedef struct pnr_source_info {
    pnr_format format;    /* format of one sample of one channel in memory */
    size_t n_channels;    /* memory is [n_samples][n_channels] */
    uint64_t n_samples;   /* number of recorded and lost samples, without the intervals of
                           * source.lost that begin after the end of the file; UINT64_MAX: not
                           * known */
    uint64_t n_lost;      /* number of lost samples in n_samples */
    bool has_start;       /* the input states start_utc_ns */
    int64_t start_utc_ns; /* UTC of sample 0 of the stream */
    pnr_rational rate_hz; /* sample rate as the input states it, else {0, 0} */
    pnr_loss_visibility loss_visibility;
    bool is_live;      /* the sender cannot wait: samples that are not read in time are lost */
    size_t read_bytes; /* a read of this size keeps all threads of the source busy; 0: any size */
    uint64_t n_trailing_bytes; /* bytes after the last whole sample; for a pipe known only at the
                                * end */
    char text[256];            /* for the log: "raw ci16, 1 channel, 41943 samples: echo.sc16" */
} pnr_source_info;

/*
 * Opens source.input. Inputs:
 * - "-": stdin.
 * - alsa:DEVICE: a sound card. It also transmits if transmit.output is set.
 * - soapy:ARGUMENTS: a receiver of SoapySDR.
 * - rtl_tcp:HOST:PORT: a server of samples.
 * - zmq-sub:ENDPOINT, zmq-pull:ENDPOINT: sinks of GNU Radio.
 * - udp:HOST:PORT, vrt:HOST:PORT: datagrams.
 * - WAV, RF64, W64, AIFF, AU, FLAC: identified by the first bytes, and read with libsndfile.
 * - .sigmf-meta, .sigmf-data, .sigmf, .sigmf-collection: SigMF recordings.
 * - A folder with drf_properties.h5 or metadata.h5: a channel of Digital RF.
 * - All others: raw samples, in source.format or the format of the extension. An input that begins
 *   like a container (a sound file in a pipe, an archive, HDF5, ...) is refused. The error names
 *   the container and a remedy. A file is refused here, and a pipe when its first bytes are read.
 *
 * Sound files of at most 16 bits are integers (i16, ci16); others are f32 or cf32. With
 * source.layout = iq, 2n channels are n complex ones, and a single channel is real. With
 * source.layout = channels, n channels are n real ones. Raw files ignore the layout. Borrows
 * source.lost of the configuration until close.
 *
 * PNR_ENOINPUT: no such file, or no server; PNR_EPERMISSION; PNR_EUNAVAILABLE: the module of the
 * source is not installed, or an address is in use; PNR_ECONFIG: the format is not known, the rate
 * differs from source.rate_hz, or the channel is out of range; PNR_EDATA: header and file size
 * disagree (the text has both numbers), or no samples; PNR_EIO; PNR_ENOMEMORY.
 */
int pnr_source_open(const pnr_config *config, pnr_source **out, pnr_error *error);
/* Completes the configuration from an input that states its own values: the rate, the sample
 * format, the channels if source.channels is 1, and source.start_time if it is empty. Changes
 * nothing for other input, or for a file that does not exist. PNR_OK, or an error of
 * pnr_source_open. */
int pnr_source_complete(pnr_config *config, pnr_error *error);
void pnr_source_close(pnr_source *source);
const pnr_source_info *pnr_source_get_info(const pnr_source *source);
/* Returns the number of messages that were refused so far. Any thread may call it. */
uint64_t pnr_source_refused(const pnr_source *source);
/* Returns the number of datagrams that the kernel has dropped so far because its buffer was full.
 * Their samples become gaps. Any thread may call it. */
uint64_t pnr_source_dropped(const pnr_source *source);

/* Sets the queue for the events of the source. The source borrows the queue until close. Call
 * before the first read. */
void pnr_source_report_to(pnr_source *source, pnr_events *events);

/* Extends a shorter stream to n_samples samples. The missing samples are one gap at the end. Call
 * before the first read. */
void pnr_source_pad(pnr_source *source, uint64_t n_samples);

/* Limits a recording to the samples first .. end - 1, where first <= end <= n_samples. The numbers
 * of the samples do not change. Call before the first read. PNR_OK; PNR_ECONFIG: the input is a
 * pipe or a receiver; PNR_EIO; PNR_EDATA. */
int pnr_source_limit(pnr_source *source, uint64_t first, uint64_t end, pnr_error *error);

/* The result of one read: samples or a gap. */
typedef struct pnr_source_block {
    size_t n_samples;
    uint64_t gap;   /* number of lost samples */
    bool has_time;  /* the sender states utc_ns */
    int64_t utc_ns; /* UTC of the first sample, or of the first lost sample */
} pnr_source_block;

/*
 * Reads up to max_samples >= 1 samples, and sets block->n_samples >= 1. If samples are lost here,
 * reads no samples, and sets block->gap >= 1 to the number of lost samples. Losses are from
 * source.lost, from pnr_source_pad, or from the input. Joins a sample that is split between two
 * reads. Logs a warning once if the first raw samples look like another format.
 *
 * PNR_OK; PNR_EAGAIN: no whole sample within 50 ms, or the hash of the data is not ready after the
 * last sample (check the stop flag and call again); PNR_EEND: the end; PNR_EIO: read error;
 * PNR_EDATA: the file is shorter than its size or header stated, the data do not match their hash
 * (after the last sample), a pipe ended before its first sample, or a sender restarted;
 * PNR_ECONFIG: a pipe carries a container, or a sender states another rate.
 *
 * Allocates no memory, with two exceptions: HDF5 allocates, and libFLAC allocates if a frame is
 * more complex than all frames before.
 */
int pnr_source_read(pnr_source *source, void *data, size_t max_samples, pnr_source_block *block,
                    pnr_error *error);

#endif
