/* SPDX-License-Identifier: MIT */
/* The fit of two paths: delays and complex amplitudes of two echoes, jointly, from the 17 values
 * around them. */
#ifndef PNR_FIT_PAIR_H
#define PNR_FIT_PAIR_H

#include "estimate/fit.h"

#include <stdbool.h>

/*
 * The model is c_j = a_1 r_j(d_1) + a_2 r_j(d_2) + noise, with r_j(d) = R(j - d)/R(0). R and the
 * noise are those of fit.h. The fit is least squares with the weight W, the inverse of the noise
 * covariance. The Gauss-Newton method finds the delays. The model is linear in the amplitudes,
 * which follow from the delays (G. Golub, V. Pereyra, The differentiation of pseudo-inverses,
 * 1973). The errors have the covariance F^-1 sigma^2 / 2 with F = Re J^H W J. J has one column for
 * each of the six real parameters: r_1, i r_1, a_1 r_1', r_2, i r_2, a_2 r_2' (S. Kay, Estimation
 * Theory, 1993, 15.7).
 */
typedef struct pnr_fit_pair pnr_fit_pair;

typedef struct pnr_fitted_pair {
    /* The members are as in pnr_fit_find, with these differences: delay is within
     * -PNR_PAIR_REACH .. PNR_PAIR_REACH, the variances hold when all six parameters are unknown,
     * and gain and power are |peak|^2. */
    pnr_fitted echo[2];
    double gain;  /* gain in log likelihood from both echoes, times sigma^2 */
    double noise; /* the noise power of one cell, from the residual */
    double cells; /* the number of independent cells in `noise` */
} pnr_fitted_pair;

enum { PNR_PAIR_REACH = 6 }; /* lags */

/* autocorrelation: R(u)/R(0), after pnr_waveform_prepare; the pointer is kept. PNR_OK,
 * PNR_ENOMEMORY. The caller owns *out. */
int pnr_fit_pair_create(const pnr_waveform *autocorrelation, pnr_fit_pair **out);
void pnr_fit_pair_destroy(pnr_fit_pair *pair);
/* Finds the likeliest pair, the stronger echo first. c: [PNR_NEIGHBOURS]. Returns false if a delay
 * ends beyond PNR_PAIR_REACH, or if the equations for the six parameters are singular. Allocates
 * nothing. */
bool pnr_fit_pair_find(const pnr_fit_pair *pair, const double complex *c, pnr_fitted_pair *out);

#endif
