/* SPDX-License-Identifier: MIT */
/* The header of a sound file, checked against the size of the file. */
#ifndef PNR_SOUND_HEADER_H
#define PNR_SOUND_HEADER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At most this number of bytes may precede the samples. The same limit is valid for the bytes after
 * the samples. */
enum { PNR_SOUND_HEAD_BYTES = 1 << 20 };
enum { PNR_SOUND_MAX_CHANNELS = 1024 };

/* A frame is one sample of every channel. */
typedef struct pnr_sound_header {
    const char *name;    /* "WAV", "RF64", "W64", "AIFF", "AU" or "FLAC" */
    uint64_t n_frames;   /* number of whole frames, >= 1 */
    unsigned n_channels; /* 1..PNR_SOUND_MAX_CHANNELS */
    unsigned bits;       /* bits of one channel: 8, 16, 24, 32, 64 (float); FLAC 4..32 */
    bool is_float;
    uint32_t rate_hz;          /* > 0 */
    unsigned n_trailing_bytes; /* bytes after the last whole frame */
    /* Offset of the samples if their format in the file is their format in memory (WAV, RF64 or W64
     * with 16-bit integers or 32-bit floats); else 0. */
    uint64_t plain_offset;
    uint64_t rest_offset; /* offset of the bytes after the samples (tags, cues) */
    uint64_t rest_bytes;  /* number of these bytes */
} pnr_sound_header;

/* Identifies the kind of a sound file from its first bytes, and returns the name of this kind.
 * NULL: no known kind, or fewer than 4 bytes. */
const char *pnr_sound_header_kind(const void *bytes, size_t n_bytes);

/* Reads and checks a header. bytes: the first n_bytes of the file (the whole file, or
 * PNR_SOUND_HEAD_BYTES). file_bytes: size of the file. PNR_OK, or PNR_EDATA with the reason.
 * Examples: the file is none of the six kinds, or is cut short; its data size is 0, is 0xffffffff
 * in WAV (the recording is not finished), or has wrapped past 4 GiB; its samples are neither
 * integers nor floats. If two sizes disagree, the reason has both. The header of FLAC has no size
 * in bytes to compare. */
int pnr_sound_header_read(const void *bytes, size_t n_bytes, uint64_t file_bytes,
                          pnr_sound_header *out, pnr_error *error);

/* Checks the header->rest_bytes bytes of the file from header->rest_offset on. PNR_OK: they are
 * whole chunks; PNR_EDATA: they are samples that the header does not count. */
int pnr_sound_header_check_rest(const pnr_sound_header *header, const void *bytes,
                                pnr_error *error);

#endif
