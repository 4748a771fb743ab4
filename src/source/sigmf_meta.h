/* SPDX-License-Identifier: MIT */
/* Reads the metadata of a SigMF recording from JSON, and checks every member. The text may come
 * from an untrusted source. */
#ifndef PNR_SIGMF_META_H
#define PNR_SIGMF_META_H

#include "base/error.h"
#include "base/format.h"
#include "base/rational.h"
#include "source/file_hash.h"
#include "source/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_SIGMF_META_BYTES = 1 << 24, PNR_SIGMF_MAX_CHANNELS = 256, PNR_SIGMF_NAME_LEN = 256 };
/* One byte more than the text of a hash. So a longer text is detected. */
enum { PNR_SIGMF_HASH_LEN = PNR_HASH_LEN + 1 };

typedef struct pnr_sigmf_capture {
    uint64_t first;        /* index of its first sample in the data file, from 0 */
    uint64_t header_bytes; /* length of a header before this sample in the data file */
    uint64_t global_index; /* position of this sample, if has_global_index */
    int64_t utc_ns;        /* UTC of this sample, if has_time */
    bool has_global_index, has_time;
} pnr_sigmf_capture;

typedef struct pnr_sigmf_meta {
    char datatype[16]; /* core:datatype, for example "ri16_be" */
    pnr_format format; /* format in memory */
    pnr_number number;
    size_t n_channels;                /* 1 .. PNR_SIGMF_MAX_CHANNELS */
    pnr_rational rate_hz;             /* {0, 0}: not stated */
    char dataset[PNR_SIGMF_NAME_LEN]; /* name of the data file in the same folder; "": the name of
                                       * the metadata with the extension .sigmf-data */
    char sha512[PNR_SIGMF_HASH_LEN];  /* text of core:sha512, not checked to be a hash; "": not
                                       * stated */
    uint64_t trailing_bytes;          /* bytes after the samples in the data file */
    pnr_sigmf_capture *captures; /* [n_captures], in ascending order of `first`; from one capture to
                                  * the next, global_index grows at least as much as `first` */
    size_t n_captures;
    uint64_t n_clipped; /* number of samples in annotations with the label "clipped" */
} pnr_sigmf_meta;

/* Reads JSON of `length` bytes. PNR_OK: the caller clears *out later. PNR_EDATA: the text is no
 * JSON, a member is missing or out of range, or captures contradict each other; the error names the
 * member and its value. PNR_ENOMEMORY. */
int pnr_sigmf_meta_read(const char *text, size_t length, pnr_sigmf_meta *out, pnr_error *error);
/* Finds a recording in the JSON of a collection: the recording with the name `wanted`, or the only
 * recording if `wanted` is "". name: the file name of its metadata in the folder of the collection,
 * without .sigmf-meta. hash: the text that states the hash of that file, not checked to be a hash;
 * "": not stated. PNR_OK; PNR_EDATA, as above; PNR_ECONFIG: there are several recordings, or none
 * has this name; the error lists them. */
int pnr_sigmf_collection_find(const char *text, size_t length, const char *wanted,
                              char name[PNR_SIGMF_NAME_LEN], char hash[PNR_SIGMF_HASH_LEN],
                              pnr_error *error);
void pnr_sigmf_meta_clear(pnr_sigmf_meta *meta);

/* Writes the core:datatype of samples that a file stores as they are in memory, for example
 * "ci16_le" for PNR_FORMAT_CI16. format: a format of samples in memory, so never PNR_FORMAT_CI4.
 * Returns out. */
char *pnr_sigmf_datatype(pnr_format format, char out[16]);

#endif
