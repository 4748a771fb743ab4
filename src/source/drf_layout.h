/* SPDX-License-Identifier: MIT */
/* The layout of a Digital RF recording: its properties, the names of its files, the index in a
 * file, and missing samples. */
#ifndef PNR_DRF_LAYOUT_H
#define PNR_DRF_LAYOUT_H

#include "base/error.h"
#include "base/rational.h"
#include "source/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_DRF_MAX_CHANNELS = 256 };

/* The attributes that describe a channel: X(member, name of the attribute, least, most). */
#define PNR_DRF_ATTRIBUTES(X)                                                                      \
    X(rate_num, "sample_rate_numerator", 1, INT64_MAX)                                             \
    X(rate_den, "sample_rate_denominator", 1, INT64_MAX)                                           \
    X(folder_s, "subdir_cadence_secs", 1, INT64_C(1) << 32)                                        \
    X(file_ms, "file_cadence_millisecs", 1, INT64_C(1) << 42)                                      \
    X(n_channels, "num_subchannels", 1, PNR_DRF_MAX_CHANNELS)                                      \
    X(is_complex, "is_complex", 0, 1)                                                              \
    X(is_continuous, "is_continuous", 0, 1)

/* The values of the attributes, each in its range. */
typedef struct pnr_drf_layout {
#define PNR_DRF_MEMBER(member, name, least, most) int64_t member;
    PNR_DRF_ATTRIBUTES(PNR_DRF_MEMBER)
#undef PNR_DRF_MEMBER
    pnr_rational rate_hz; /* rate_num / rate_den; pnr_drf_layout_check sets it */
} pnr_drf_layout;

/* Checks the values, and sets rate_hz. PNR_OK, or PNR_EDATA: error names the attribute, its value
 * and its range. */
int pnr_drf_layout_check(pnr_drf_layout *layout, pnr_error *error);

/* Returns the number of the first sample at or after this time (ms since 1970): ceil(ms rate /
 * 1000). Sample numbers count from 1970. UINT64_MAX: beyond 64 bits. */
uint64_t pnr_drf_first_sample(const pnr_drf_layout *layout, int64_t ms);

/* Parses the name of a folder, for example 2026-11-21T02-40-00. *s: seconds since 1970. False: it
 * is not the name of a folder. */
bool pnr_drf_folder_name(const char *name, int64_t *s);
/* Parses the name of a file, for example rf@1795228800.250.h5. *ms: milliseconds since 1970. False:
 * it is not the name of a complete file. The name of an incomplete file begins with tmp. */
bool pnr_drf_file_name(const char *name, int64_t *ms);

/* A row of the index in a file. Row `local` of the data has sample number `sample`. Up to the next
 * row of the index, the sample numbers have no gaps. */
typedef struct pnr_drf_row {
    uint64_t sample; /* sample number, counted from 1970 */
    uint64_t local;
} pnr_drf_row;

/* Checks the index of a file that begins at ms and has n_data samples: `local` of the first row is
 * 0, `local` ascends and is below n_data, no samples overlap, and all samples are in the interval
 * [ms, ms + file_ms). The interval has a tolerance of one sample, because writers round. PNR_OK, or
 * PNR_EDATA: error has the row and its values. */
int pnr_drf_index_check(const pnr_drf_layout *layout, int64_t ms, const pnr_drf_row *rows,
                        size_t n_rows, uint64_t n_data, pnr_error *error);

/* Finds missing samples in a continuous recording. Its files have data for every sample, also for a
 * missing one. In a missing sample all numbers have the fill value: NaN, or the smallest integer.
 * Looks at n >= 1 samples of n_numbers each. *is_missing: the first sample is missing. In this case
 * returns the number of missing samples at the start of the data, else the number of present
 * samples there. */
size_t pnr_drf_run(const pnr_number_form *form, size_t n_numbers, const void *data, size_t n,
                   bool *is_missing);

#endif
