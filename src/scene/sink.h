/* SPDX-License-Identifier: MIT */
/* Sinks write samples in any format that a source reads: raw files, sound files, stdout, FIFOs. */
#ifndef PNR_SINK_H
#define PNR_SINK_H

#include "base/error.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnr_sink pnr_sink;

/* Properties of the output, valid after pnr_sink_open. */
typedef struct pnr_sink_info {
    pnr_format format;  /* format of one sample of one channel, as a source reads it */
    size_t n_channels;  /* channels in the samples of pnr_sink_write */
    bool is_regular;    /* true: a file that ends and can be removed; false: a pipe or device */
    uint64_t n_written; /* samples written to each channel */
    uint64_t n_clipped; /* samples that the ADC or the format limited, counted in each channel and
                         * added over the channels */
    char text[1280];    /* for the log: "raw ci16, 1 channel: echo.sc16" */
} pnr_sink_info;

/*
 * Opens the output. path "-" is stdout, for raw samples only. If the path ends in .wav, .rf64,
 * .w64, .au or .flac, libsndfile writes a sound file: source.format selects 8 bits, 16 bits or
 * floats; the default is 16 bits. A complex format has two sound channels, I and Q, for each of
 * source.channels. A real format has one, or source.channels if source.layout is channels. Any
 * other path is a raw file. Its format is source.format, or that of the extension if source.format
 * is not set.
 *
 * echo.bits = b > 1: values are first rounded to multiples of 2^(1-b) and limited to
 * -1 .. 1 - 2^(1-b), as by an ADC of b bits. b = 1: values are replaced by -1/2 or 1/2, by their
 * sign, and no sample counts as clipped. b = 0: there is no such rounding.
 *
 * A regular file is written in the folder of `path` under another name, and pnr_sink_close renames
 * it, see base/file.h. A text file, and a file of a code or pulse of the configuration, are never
 * replaced.
 *
 * n_samples: the number of samples that will be written; 0: the output has no end. The function
 * refuses a .wav or .au file of more than 4 GiB and a regular file without an end. If the path is a
 * FIFO, it waits until a reader opens the FIFO. *stop (may be NULL) ends every wait.
 *
 * Returns PNR_OK; PNR_EUSAGE: stdout is a terminal, the file would have no end, or it is an input;
 * PNR_ECONFIG: the format is unknown or impossible in this file, or the existing file is not
 * replaced; PNR_EIO; PNR_EPERMISSION; PNR_ENOMEMORY; PNR_EEND: stopped during a wait.
 */
int pnr_sink_open(const pnr_config *config, const char *path, uint64_t n_samples,
                  const volatile int *stop, pnr_sink **out, pnr_error *error);
const pnr_sink_info *pnr_sink_get_info(const pnr_sink *sink);

/* Writes samples[n_samples][n_channels][2], full scale = 1. Real formats store the real part.
 * Returns PNR_OK; PNR_EEND: the reader of a pipe has closed its end, or *stop is not 0 during a
 * write to a pipe; PNR_EIO with the reason. */
int pnr_sink_write(pnr_sink *sink, const double (*samples)[2], size_t n_samples, pnr_error *error);

/* Completes and closes the output. A regular file is renamed to its path here. If !keep, or if the
 * output cannot be completed, the file at the path is unchanged. sink: may be NULL. */
int pnr_sink_close(pnr_sink *sink, bool keep, pnr_error *error);

#endif
