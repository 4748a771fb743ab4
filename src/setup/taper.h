/* SPDX-License-Identifier: MIT */
/* Tapers: the weights of the periods of a look. They lower the sidelobes in Doppler, and reduce the
 * resolution in Doppler. */
#ifndef PNR_TAPER_H
#define PNR_TAPER_H

#include "config/config.h"

#include <stddef.h>

/*
 * Computes the n weights w[p] of a taper, scaled to sum w^2 = n. The power of noise is then the
 * same as without a taper, as the floor of plan.h expects. The power of an echo is multiplied by
 * (sum w / n)^2.
 * - rectangular: 1.
 * - hann, blackman-harris (4 terms, -92 dB): the cosine sums of F. J. Harris (1978), periodic. The
 *   cosines have the arguments 2 pi j (p + 1/2) / n. So the weights are symmetric and never 0.
 * - dolph-chebyshev: C. L. Dolph (1946). All sidelobes are sidelobe_db below the main lobe.
 * PNR_OK, PNR_ENOMEMORY.
 */
int pnr_taper_fill(pnr_taper kind, double sidelobe_db, size_t n, double *weights);

/* Returns the loss of an echo at exactly the Doppler of a row: -20 log10(sum w / n) dB, 0 or more.
 * If `weights` is NULL, the taper is rectangular. */
double pnr_taper_loss_db(const double *weights, size_t n);
/* Returns the least distance m, in rows, at which the noise of two rows counts as not correlated:
 * |sum_p w[p]^2 exp(2 pi i j p / n) / n|^2 <= 1/50 for j = m .. n / 2. The distance is 1 without a
 * taper, and 3 with hann. Returns 0 if there is no memory. */
size_t pnr_taper_stride(const double *weights, size_t n);

#endif
