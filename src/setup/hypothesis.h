/* SPDX-License-Identifier: MIT */
/* Doppler hypotheses: the rotations of the samples, the rows and the changes of the time scale that
 * cover an interval of Doppler shifts. */
#ifndef PNR_HYPOTHESIS_H
#define PNR_HYPOTHESIS_H

#include "base/error.h"
#include "config/config.h"
#include "engine/engine.h"
#include "setup/radar.h"

#include <stddef.h>

/*
 * Makes the hypotheses. A look has K periods of N samples; a period takes Tr seconds. With
 * dwell.combine = doppler there is a row at every F = j / (K Tr) from doppler.min_hz to max_hz. If
 * min_hz and max_hz are 0, there are K rows, from -1 / (2 Tr) to below +1 / (2 Tr). If there is no
 * such F from min_hz to max_hz, the only row is the row nearest to (min_hz + max_hz) / 2. Rotations
 * are multiples of doppler.step. Each row belongs to the nearest rotation; a row between two
 * equally near rotations belongs to the higher one. If there is a rotation other than 0, each
 * rotation must be a whole number of rows: K must be even for half bins, and a multiple of 4 for
 * quarter bins. Other dwells have one row for each rotation, from the last rotation at or below
 * min_hz to the first at or above max_hz. If min_hz and max_hz are 0, they have one row at 0.
 *
 * With a carrier, the code of an echo of Doppler F is stretched, and the echo walks F K N / carrier
 * samples during a look. If this walk is half a sample or more at the lowest or highest row, every
 * hypothesis has the stretch of its middle row. The walks of its rows then differ by at most half a
 * sample. F is the Doppler frequency in the stretched look, and the Doppler of the echo is
 * F / (1 + stretch).
 *
 * *out: [*n], in rising order; the caller frees it with free(). PNR_OK; PNR_ENOMEMORY; PNR_ECONFIG:
 * K does not fit the step, too many rows, or a stretch of a tenth or more.
 */
int pnr_hypotheses_create(const pnr_config *config, const pnr_radar *radar, pnr_hypothesis **out,
                          size_t *n, pnr_error *error);

/* Returns the rotations of the lowest and of the highest row, in cycles per sample. PNR_ECONFIG:
 * too many rows. */
int pnr_hypotheses_rotations(const pnr_config *config, const pnr_radar *radar, double *lowest,
                             double *highest, pnr_error *error);

#endif
