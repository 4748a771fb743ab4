/* SPDX-License-Identifier: MIT */
/* The statistics of a residual: how its power scatters if it holds noise alone. */
#ifndef PNR_RESIDUAL_H
#define PNR_RESIDUAL_H

#include "estimate/matrix.h"

/* The noise of one cell, from the power of a residual. */
typedef struct pnr_residual {
    double noise;  /* noise power of one cell */
    double cells;  /* number of independent cells: the relative variance of `noise` is 1 / cells */
    double chance; /* the mean of 1 / noise is too large by the factor 1 / (1 - chance) */
} pnr_residual;

/* Returns the statistics of |n - sum_m x_m Re(h_m^H n)|^2 for noise n of the covariance p. x_m is
 * what parameter m of a fit changes, and Re(h_m^H n) is its error. noise: the mean of this power.
 * p: [17][17]. x, h: [n_parameters][17]. */
pnr_residual pnr_residual_of(const pnr_vector *p, const pnr_vector *x, const pnr_vector *h,
                             int n_parameters);

#endif
