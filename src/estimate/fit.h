/* SPDX-License-Identifier: MIT */
/* The fit: delay and complex amplitude of one echo, jointly, from the 17 values around it. */
#ifndef PNR_FIT_H
#define PNR_FIT_H

#include "code/waveform.h"
#include "engine/engine.h"
#include "estimate/residual.h"

#include <complex.h>

/*
 * An echo of amplitude A at delay d gives c_j = A g R(j - d) at the lag j. The noise has the
 * covariance P_ij = sigma^2 R(i - j)/R(0). R is the code's autocorrelation. g is the number of
 * valid samples divided by N. sigma^2 is the noise power of one cell. S is |A g R(0)|^2 / sigma^2.
 */
typedef struct pnr_fit pnr_fit;

typedef struct pnr_fitted {
    double delay;        /* d: lags from the centre, -1..1 */
    double complex peak; /* A g R(0) */
    double gain;         /* gain in log likelihood from this echo, times sigma^2 */
    /* power: an estimate of |A g R(0)|^2 from the projection of c onto the span of the echoes at
     * all delays -1 .. 1. Unlike |peak|^2 it is not a maximum over the delay. The mean of `power`
     * is |A g R(0)|^2 + cells sigma^2 at any S. */
    double power, cells;
    /* Variances multiplied by S: of the delay (lags^2), of |A| (relative) and of the phase (rad^2).
     * Each holds when the other two are unknown. */
    double delay_variance, amplitude_variance, phase_variance;
} pnr_fitted;

/* autocorrelation: R(u)/R(0), after pnr_waveform_prepare. PNR_OK, PNR_ENOMEMORY. The caller owns
 * *out. */
int pnr_fit_create(const pnr_waveform *autocorrelation, pnr_fit **out);
void pnr_fit_destroy(pnr_fit *fit);
/* Finds the likeliest echo by climbing from the delay `start`, in lags from the centre. c:
 * [PNR_NEIGHBOURS]. Allocates nothing. */
void pnr_fit_find(const pnr_fit *fit, const double complex *c, double start, pnr_fitted *out);

/* Returns the x of the vertex of the parabola through (-1, a), (0, b), (1, c): -1/2 .. 1/2. Returns
 * 0 if b is not the greatest. */
static inline double pnr_parabola_vertex(double a, double b, double c)
{
    const double curvature = a - 2 * b + c;

    return curvature < 0 && b >= a && b >= c ? 0.5 * (a - c) / curvature : 0;
}

/* Returns the noise power of one cell, from the residual of c after the echo is subtracted. The
 * noise may have any spectrum; `cells` and `chance` are for white noise. */
pnr_residual pnr_fit_noise(const pnr_fit *fit, const double complex *c, const pnr_fitted *fitted);

#endif
