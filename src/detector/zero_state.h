/* SPDX-License-Identifier: MIT */
/* The zero delay from run to run: a small file of one line of JSON, for one source, format and
 * rate. */
#ifndef PNR_ZERO_STATE_H
#define PNR_ZERO_STATE_H

#include "base/error.h"
#include "config/config.h"
#include "detector/zero.h"

/* Reads radar.zero_state_path: true when it holds the last zero delay of this source, channel,
 * format and rate. A file that is not there is the first start; one of another source, or a broken
 * one, is told in a warning and left out. */
bool pnr_zero_state_read(const pnr_config *config, pnr_format format, pnr_zero_memory *out);

/* PNR_EIO: it could not be written. Better told before the first sample than after the last. */
int pnr_zero_state_check(const pnr_config *config, pnr_error *error);

enum { PNR_ZERO_STATE_LEN = 4096 }; /* bytes of the longest such file */

/* Replaces the file, so that whoever reads it finds the old one or the new one, whole. lasting:
 * waits until it is on the disk. Without allocation. PNR_OK, PNR_EIO. */
int pnr_zero_state_write(const pnr_config *config, pnr_format format, const pnr_zero_memory *memory,
                         bool lasting, pnr_error *error);

#endif
