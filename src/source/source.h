/* SPDX-License-Identifier: MIT */
/* Sources: samples in the file's own format, from raw files, sound files, stdin and FIFOs. */
#ifndef PNR_SOURCE_H
#define PNR_SOURCE_H

#include "base/error.h"
#include "config/config.h"
#include "engine/block.h"

typedef struct pnr_source pnr_source;

/* What the stream is, known after open. */
typedef struct pnr_source_info {
    pnr_format format;    /* of one sample of one channel in memory */
    size_t n_channels;    /* memory is [n_samples][n_channels] */
    uint64_t n_samples;   /* stream positions, with the lost runs that begin at or before the file's
                             end; UINT64_MAX: not known */
    pnr_rational rate_hz; /* of the file's header (sound files), else {0, 0} */
    bool is_live; /* never waits: a full ring drops (stdin and FIFO are not live: they wait) */
    uint64_t n_trailing_bytes; /* bytes after the last whole sample: told in a warning, never a
                                  sample; of a pipe: known at the end */
    char text[256];            /* "raw ci16, 1 channel, 41943 samples: echo.sc16" for the log */
} pnr_source_info;

/*
 * Chooses by source.input: "-" is stdin, a FIFO or raw file by format or extension,
 * WAV/RF64/W64/AU/FLAC by their magic through libsndfile: 16 bits and fewer as integers (i16/ci16),
 * more as f32/cf32; layout iq: two channels are I, Q (2n: n complex channels; one: real); layout
 * channels: n real channels. The format and source.channels of a raw file say all about it: layout
 * is not looked at. PNR_ENOINPUT no such file; PNR_EPERMISSION; PNR_ECONFIG format not known, rate
 * differs from source.rate_hz, channel out of range; PNR_EDATA header and file size disagree (both
 * numbers in the text) or no samples at all; PNR_EIO.
 */
int pnr_source_open(const pnr_config *config, pnr_source **out, pnr_error *error);
void pnr_source_close(pnr_source *source);
const pnr_source_info *pnr_source_get_info(const pnr_source *source);

/*
 * What comes next in the stream: reads up to max_samples into data and sets *n_samples >= 1, or
 * *gap >= 1 positions are lost here (source.lost) and nothing is read. PNR_OK; PNR_EAGAIN: no whole
 * sample within 50 ms (look at the stop flag and call again); PNR_EEND: the end, for good; PNR_EIO:
 * read error; PNR_EDATA: less came than the file or its header said, or a pipe ended before its
 * first sample; both explained in *error. Short reads are normal; a sample split between two reads
 * is put together. max_samples >= 1. Never allocates (but libFLAC may, at a frame more intricate
 * than all before).
 */
int pnr_source_read(pnr_source *source, void *data, size_t max_samples, size_t *n_samples,
                    uint64_t *gap, pnr_error *error);

#endif
