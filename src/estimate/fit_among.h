/* SPDX-License-Identifier: MIT */
/* The fit of one echo among others of unknown phase, as in sums of powers: delay and complex
 * amplitude, jointly with the complex amplitudes of the others. */
#ifndef PNR_FIT_AMONG_H
#define PNR_FIT_AMONG_H

#include "estimate/fit.h"
#include "estimate/matrix.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The model is c_j = a r_j(d) + sum_k b_k e_jk + noise, with r_j(d) = R(j - d)/R(0). R and the
 * noise are those of fit.h. e_k are the values of another echo, and b_k is an unknown complex
 * factor with the mean power 1. With the columns X = (r, r', e_1 .. e_n) and
 * D = diag(0, 0, 1 .. 1) the likeliest factors solve
 *     (X^H W X + sigma^2 D) x = X^H W c,
 * and their errors have the covariance sigma^2 (X^H W X + sigma^2 D)^-1 (S. Kay, Estimation Theory,
 * 1993, 10.6). W is the inverse of the noise covariance for sigma = 1.
 */
typedef struct pnr_fit_among pnr_fit_among;

enum { PNR_AMONG_MOST = 4 }; /* greatest number of other echoes in a fit */

/* autocorrelation: R(u)/R(0), after pnr_waveform_prepare; the pointer is kept. PNR_OK,
 * PNR_ENOMEMORY. The caller owns *out. */
int pnr_fit_among_create(const pnr_waveform *autocorrelation, pnr_fit_among **out);
void pnr_fit_among_destroy(pnr_fit_among *among);

/* How an addition e to the values of an echo of peak 1 changes the fit of pnr_fit_find, to first
 * order: the delay by Re(delay^H e), the relative amplitude by Re(amplitude^H e). */
typedef struct pnr_fit_pull {
    pnr_vector delay, amplitude;
} pnr_fit_pull;
/* Returns the pull at the delay d of the echo, -1 .. 1 lags from the centre. The pull belongs to
 * `among`. */
const pnr_fit_pull *pnr_fit_among_pull(const pnr_fit_among *among, double d);

/* The same for an echo that is fitted jointly with the others e. The addition is one more echo that
 * this fit leaves out. The factors b_k then fit it as well as they can, and pull the echo with
 * them. e, n, cell: as below. */
void pnr_fit_among_pull_beside(const pnr_fit_among *among, double d, const pnr_vector *e, size_t n,
                               double cell, pnr_fit_pull *out);

/* Fits the echo again, from the delay fitted->delay. fit: of the same code. c: [17]. e: [n][17], n
 * is 1 .. PNR_AMONG_MOST. cell: the noise power of one cell. *centre: the sum of b_k e_k at the
 * centre. Returns false if the delay does not converge within -1 .. 1; *fitted and *centre then do
 * not change. Allocates nothing. */
bool pnr_fit_among_find(const pnr_fit_among *among, const pnr_fit *fit, const double complex *c,
                        const pnr_vector *e, size_t n, double cell, pnr_fitted *fitted,
                        double complex *centre);

#endif
