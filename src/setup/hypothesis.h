/* SPDX-License-Identifier: MIT */
/* Doppler hypotheses: which rotations of the samples, which rows and which changes of the time
 * scale cover a range of Doppler shifts. */
#ifndef PNR_HYPOTHESIS_H
#define PNR_HYPOTHESIS_H

#include "base/error.h"
#include "config/config.h"
#include "engine/engine.h"
#include "setup/radar.h"

#include <stddef.h>

/*
 * A look has K periods of N samples; a period takes Tr seconds. With dwell.combine = doppler there
 * is a row at every F = j / (K Tr) from doppler.min_hz to max_hz. If min_hz and max_hz are 0, the
 * rows are the K rows from -1 / (2 Tr) to below +1 / (2 Tr). If no j lies within the range, the
 * only row is the one nearest to the middle of the range. Each row belongs to the nearest rotation
 * of doppler.step, or to the higher of two equally near ones. If a rotation other than 0 is needed,
 * all rotations must be whole numbers of rows: K is even for half bins, a multiple of 4 for quarter
 * bins. Other dwells have one row for each rotation, from the last rotation at or below min_hz to
 * the first at or above max_hz. If min_hz and max_hz are 0, they have one row at 0.
 *
 * With a carrier, the code of an echo of Doppler F is stretched, and the echo walks F K N / carrier
 * samples during a look. If this walk reaches half a sample at one end of the range, every
 * hypothesis has the stretch of its middle row, and the walks of its rows differ by at most half a
 * sample. F is then the Doppler frequency in the stretched look, and the Doppler of the echo is
 * F / (1 + stretch).
 *
 * *out: [*n], ascending; the caller owns it and frees it with free(). PNR_ECONFIG: K does not fit
 * the step; too many rows; a stretch of a tenth or more.
 */
int pnr_hypotheses_create(const pnr_config *config, const pnr_radar *radar, pnr_hypothesis **out,
                          size_t *n, pnr_error *error);

/* The rotations of the lowest and of the highest row, in cycles a sample. PNR_ECONFIG: too many
 * rows. */
int pnr_hypotheses_rotations(const pnr_config *config, const pnr_radar *radar, double *lowest,
                             double *highest, pnr_error *error);

#endif
