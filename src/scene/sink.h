/* SPDX-License-Identifier: MIT */
/* Sinks write samples in any format that a source reads: raw, sound files, stdout, FIFOs. */
#ifndef PNR_SINK_H
#define PNR_SINK_H

#include "base/error.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnr_sink pnr_sink;

/* Properties of the output, known after open. */
typedef struct pnr_sink_info {
    pnr_format
        /* format of one sample of one channel; for a sound file, the format in which a source reads
         * it */
        format;
    size_t n_channels;  /* pnr_sink_write gets [n_samples][n_channels] */
    bool is_regular;    /* true: a file that ends and can be removed; false: a pipe or device */
    uint64_t n_written; /* samples written of each channel */
    uint64_t n_clipped; /* samples of a channel that the ADC or the format limited */
    char text[1280];    /* for the log: "raw ci16, 1 channel: echo.sc16" */
} pnr_sink_info;

/*
 * Opens the output. path "-" is stdout, for raw samples only. libsndfile writes a path that ends in
 * .wav .rf64 .w64 .au .flac: 8 bits, 16 bits or floats as source.format says (none: 16 bits). A
 * complex format has two sound channels, I and Q. A real format has one, or source.channels if
 * source.layout is channels. Any other path is raw, in source.format, else in the format of the
 * extension.
 *
 * echo.bits = b > 1: values are first rounded to multiples of 2^(1-b) and limited to
 * -1 .. 1 - 2^(1-b), as a b-bit ADC does. b = 1: the sign of a value makes it -1/2 or 1/2, and
 * nothing counts as clipped. b = 0: the bits of the format.
 *
 * A regular file is written beside `path` and renamed by close, see base/file.h. It replaces
 * neither a text file nor a code file of the configuration.
 *
 * n_samples: how many will be written; 0: until stopped. A WAV file of more than 4 GiB, and a
 * regular file without an end, are refused before the first sample. Opening a FIFO waits until a
 * reader opens it; *stop (may be NULL) ends every wait.
 *
 * PNR_EUSAGE: stdout is a terminal, the file would have no end, or it is an input; PNR_ECONFIG: the
 * format is unknown or impossible in this file, or the file is not replaced; PNR_EIO,
 * PNR_EPERMISSION; PNR_EEND: stopped while waiting.
 */
int pnr_sink_open(const pnr_config *config, const char *path, uint64_t n_samples,
                  const volatile int *stop, pnr_sink **out, pnr_error *error);
const pnr_sink_info *pnr_sink_get_info(const pnr_sink *sink);

/* samples[n_samples][n_channels][2], full scale = 1; real formats take the real part. PNR_OK;
 * PNR_EEND: the reader has closed its end, or *stop is not 0; PNR_EIO with the reason. */
int pnr_sink_write(pnr_sink *sink, const double (*samples)[2], size_t n_samples, pnr_error *error);

/* Completes and closes the output. A regular file gets its name here; when !keep, or when the
 * output cannot be completed, its path is as before. NULL is allowed. */
int pnr_sink_close(pnr_sink *sink, bool keep, pnr_error *error);

#endif
