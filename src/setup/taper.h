/* SPDX-License-Identifier: MIT */
/* Tapers: the weights of a dwell's periods, which trade resolution in Doppler for low sidelobes. */
#ifndef PNR_TAPER_H
#define PNR_TAPER_H

#include "config/config.h"

#include <stddef.h>

/*
 * n weights w[p], sum w^2 = n, so that noise keeps the power that it has without a taper
 * (engine.h's floor), and an echo loses (sum w / n)^2 of its own.
 * - rectangular: 1.
 * - hann, blackman-harris: the cosine sums of F. J. Harris (1978), the latter his 4 terms at -92
 *   dB, periodic, taken at (p + 1/2) / n: the middle is the dwell's, and no period has weight 0.
 * - dolph-chebyshev: C. L. Dolph (1946), all sidelobes sidelobe_db below the main lobe.
 * PNR_OK, PNR_ENOMEMORY.
 */
int pnr_taper_fill(pnr_taper kind, double sidelobe_db, size_t n, double *weights);

/* What an echo in the middle of a row loses: -20 log10(sum w / n) dB, 0 or more. weights NULL:
 * rectangular. */
double pnr_taper_loss_db(const double *weights, size_t n);
/* Rows from one to the next whose noise is not correlated, |sum w^2 exp(2 pi i m p / n) / n|^2 <=
 * 1/50 from there on: 1 without a taper, 3 with hann. 0: out of memory. */
size_t pnr_taper_stride(const double *weights, size_t n);

#endif
