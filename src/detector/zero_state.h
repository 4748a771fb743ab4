/* SPDX-License-Identifier: MIT */
/* The zero delay from run to run: a file with one line of JSON, valid for one source, format and
 * rate. */
#ifndef PNR_ZERO_STATE_H
#define PNR_ZERO_STATE_H

#include "base/error.h"
#include "config/config.h"
#include "detector/zero.h"

/* Reads radar.zero_state_path; true when it holds the last zero delay of this source, channel,
 * format and rate. A missing file means the first start. A file of another source or a broken one
 * is reported in a warning and ignored. */
bool pnr_zero_state_read(const pnr_config *config, pnr_format format, pnr_zero_memory *out);

/* Checks that the file can be written, before the first sample, and changes nothing. Codes as for
 * pnr_new_file_create in base/file.h: PNR_ECONFIG for a file that is no state. */
int pnr_zero_state_check(const pnr_config *config, pnr_error *error);

enum { PNR_ZERO_STATE_LEN = 4096 }; /* bytes of the longest state file */

/* Replaces the file atomically, without allocation. lasting: waits until it is on the disk. Codes as
 * for pnr_new_file_finish in base/file.h. */
int pnr_zero_state_write(const pnr_config *config, pnr_format format, const pnr_zero_memory *memory,
                         bool lasting, pnr_error *error);

#endif
