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
 * A dwell with combine = doppler has one row at every F = j / (K Tr), doppler.min_hz <= F <=
 * max_hz. Both 0: the K rows from -1 / (2 Tr) to below +1 / (2 Tr). Where no j lies between them:
 * the row nearest to their middle. Each row is given to the nearest rotation of doppler.step (of
 * two the higher), and K rotations must be whole rows: K even for half, a multiple of 4 for quarter
 * bins, wherever more than the rotation by 0 is needed.
 * Other dwells have one row a rotation, from the last at or below min_hz to the first at or above
 * max_hz; both 0: the one at 0.
 *
 * With a carrier, an echo of Doppler F walks F / carrier K N samples during a look, for its code
 * comes stretched. Where this reaches half a sample at one end of the range every hypothesis is
 * given the stretch of its middle row, and holds no rows that walk more than half a sample apart.
 * F is the Doppler after that: an echo's own is F / (1 + stretch).
 *
 * *out: [*n], ascending, the caller's, freed with free(). PNR_ECONFIG: K does not fit the step; too
 * many rows; a stretch of a tenth and more.
 */
int pnr_hypotheses_create(const pnr_config *config, const pnr_radar *radar, pnr_hypothesis **out,
                          size_t *n, pnr_error *error);

#endif
