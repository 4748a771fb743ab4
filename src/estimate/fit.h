/* SPDX-License-Identifier: MIT */
/* The fit: delay and complex amplitude of one echo, jointly, from the 17 values around it. */
#ifndef PNR_FIT_H
#define PNR_FIT_H

#include "code/waveform.h"
#include "engine/engine.h"

/*
 * An echo of amplitude A at delay d gives c_j = A g R(j - d) at the lag j; its noise has the
 * covariance P_ij = sigma^2 R(i - j)/R(0), R the code's autocorrelation, g the valid samples over
 * N, sigma^2 the noise of one cell. S = |A g R(0)|^2 / sigma^2.
 */
typedef struct pnr_fit pnr_fit;

typedef struct pnr_fitted {
    double delay;   /* d: lags from the centre, -1..1 */
    double peak[2]; /* A g R(0) */
    double gain;    /* what the echo adds to the likelihood: |A g R(0)|^2 times the share of it that
                       the 17 values hold */
    /* |A g R(0)|^2 from all that the delays -1..1 reach, none of them chosen: its mean is
     * |A g R(0)|^2 + cells sigma^2 at any S. */
    double power, cells;
    /* Times S: variances of the delay (lags^2), of |A| (relative) and of the phase (rad^2), each
     * with the other two unknown. */
    double delay_variance, amplitude_variance, phase_variance;
} pnr_fitted;

/* autocorrelation: R(u)/R(0), prepared, kept. PNR_OK, PNR_ENOMEMORY. Owner of *out: the caller. */
int pnr_fit_create(const pnr_waveform *autocorrelation, pnr_fit **out);
void pnr_fit_destroy(pnr_fit *fit);
/* The likeliest echo, by climbing from the delay `start`. No allocation. */
void pnr_fit_find(const pnr_fit *fit, const double c[PNR_NEIGHBOURS][2], double start,
                  pnr_fitted *out);

/* The noise of one cell that is left in c beside the echo found there; *cells: how many cells it is
 * the mean of. */
double pnr_fit_noise(const pnr_fit *fit, const double c[PNR_NEIGHBOURS][2],
                     const pnr_fitted *fitted, double *cells);

#endif
