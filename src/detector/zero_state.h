/* SPDX-License-Identifier: MIT */
/* Stores the zero delay for the next run in a file with one line of JSON. The file is valid for 30
 * days, for one source, channel, format, rate, code, window and tuning. */
#ifndef PNR_ZERO_STATE_H
#define PNR_ZERO_STATE_H

#include "base/error.h"
#include "config/config.h"
#include "detector/zero.h"

enum { PNR_ZERO_STATE_DAYS = 30 }; /* the greatest age of a state that is used */

/*
 * Reads radar.zero_state_path. Returns true when the file holds a plausible zero delay of this
 * source, channel, format, rate, code, window and tuning. Plausible means: at most
 * PNR_ZERO_STATE_DAYS old, delay_s and first_s within radar.zero_search_m of radar.zero_delay_s,
 * sigma at most radar.zero_search_m, and drift at most 1 %. A missing file means the first start.
 * Any other unusable file is ignored. If the file cannot be read, this is logged as a warning. If
 * its content is not used, the event zero-state-dropped is posted. events may be NULL. The use of a
 * file is logged with its age.
 */
bool pnr_zero_state_read(const pnr_config *config, const pnr_radar *radar, pnr_format format,
                         pnr_events *events, pnr_zero_memory *out);

/* Checks before the first sample that the file can be written, and changes nothing. Returns the
 * same errors as pnr_new_file_create in base/file.h. PNR_ECONFIG: the file is not a state file. */
int pnr_zero_state_check(const pnr_config *config, pnr_error *error);

enum { PNR_ZERO_STATE_LEN = 4096 }; /* bytes of the longest state file */

/* Replaces the file atomically, without allocation. lasting: waits until the file is on the disk.
 * Returns the same errors as pnr_new_file_finish in base/file.h. */
int pnr_zero_state_write(const pnr_config *config, pnr_format format, const pnr_zero_memory *memory,
                         bool lasting, pnr_error *error);

#endif
