/* SPDX-License-Identifier: MIT */
/* What a kind of source is to source.c: open, read and close, and whether it takes an input. */
#ifndef PNR_SOURCE_KIND_H
#define PNR_SOURCE_KIND_H

#include "source/source.h"

#include <stdbool.h>

/* An opened input. source.c owns the descriptor and the text; they outlive the kind's state. */
typedef struct pnr_source_input {
    const char *name; /* the path, or "stdin" */
    int fd;
    bool is_stdin;
    bool is_regular;
    uint64_t n_bytes;       /* of a regular file, from where it stands to its end */
    unsigned char head[16]; /* its first bytes */
    size_t n_head;          /* 0: not looked at (pipes) */
} pnr_source_input;

/*
 * takes: does this kind read such an input? open: makes *state and fills *info: format, n_channels,
 * n_samples (of the file, without lost runs), rate_hz, n_trailing_bytes, and in text the words
 * before the count of samples. info stays where it is until close; read may still set
 * n_trailing_bytes. read: as pnr_source_read, without gaps; PNR_EEND again and again after the end.
 */
typedef struct pnr_source_kind {
    bool (*takes)(const pnr_source_input *input, const pnr_config *config);
    int (*open)(const pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                void **state, pnr_error *error);
    int (*read)(void *state, void *data, size_t max_samples, size_t *n_samples, pnr_error *error);
    void (*close)(void *state);
} pnr_source_kind;

extern const pnr_source_kind pnr_source_raw;   /* samples and nothing else; takes every input */
extern const pnr_source_kind pnr_source_sound; /* WAV, RF64, W64, AU, FLAC in a regular file */

/* source.format, else the extension's; PNR_FORMAT_NONE when neither says. */
pnr_format pnr_source_named_format(const pnr_source_input *input, const pnr_config *config);

#endif
