/* SPDX-License-Identifier: MIT */
/* Tapers: the weights of a dwell's periods, which trade resolution in Doppler for low sidelobes. */
#ifndef PNR_TAPER_H
#define PNR_TAPER_H

#include "config/config.h"

#include <stddef.h>

/*
 * Fills n weights w[p] with sum w^2 = n. The power of noise is then the same as without a taper, as
 * the floor of plan.h expects. The power of an echo is multiplied by (sum w / n)^2.
 * - rectangular: 1.
 * - hann, blackman-harris (4 terms, -92 dB): the cosine sums of F. J. Harris (1978), periodic. They
 *   are taken at (p + 1/2) / n, so they are symmetric about the middle of the dwell and never 0.
 * - dolph-chebyshev: C. L. Dolph (1946), all sidelobes sidelobe_db below the main lobe.
 * PNR_OK, PNR_ENOMEMORY.
 */
int pnr_taper_fill(pnr_taper kind, double sidelobe_db, size_t n, double *weights);

/* Returns the loss of an echo in the middle of a row: -20 log10(sum w / n) dB, 0 or more. If
 * `weights` is NULL, the taper is rectangular. */
double pnr_taper_loss_db(const double *weights, size_t n);
/* Returns the least distance m, in rows, from which on the noise of two rows counts as not
 * correlated: |sum_p w[p]^2 exp(2 pi i m p / n) / n|^2 <= 1/50 for this m and for all greater m up
 * to n / 2. The distance is 1 without a taper, and 3 with hann. Returns 0 if there is no memory. */
size_t pnr_taper_stride(const double *weights, size_t n);

#endif
