/* SPDX-License-Identifier: MIT */
/* Thresholds from the false-alarm probability of one search. */
#ifndef PNR_THRESHOLD_H
#define PNR_THRESHOLD_H

#include <stddef.h>

/*
 * Returns the false-alarm probability Q(K, t) of one cell. pfa: the false-alarm probability of a
 * search over n_cells neighbouring cells of the grid; rho2: the squared correlation coefficient of
 * adjacent cells; n_looks: K, the number of powers that are summed. Solves for t
 *     1 - exp(-n_cells (Q(K, t) - S2(t; K, rho2))) = pfa.
 * The exponent is the expected number of upcrossings of t along the grid. S2 is the probability
 * that two neighbouring cells both exceed t, by W. F. Kibble's bivariate gamma distribution (1941).
 */
double pnr_threshold_cell_pfa(double pfa, double n_cells, double rho2, size_t n_looks);

/*
 * Returns the threshold for the ratio of P, the power of a cell, to the floor. With noise alone
 * P / floor exceeds it with probability pfa_cell. K is n_looks, and n is n_samples. The floor is
 * computed from the same n samples of each look. The cell has K of the K n complex dimensions of
 * these samples. So the ratio of its energy to the energy of the samples is a Beta variable, and
 *     threshold = n * quantile of Beta(K, K (n - 1)).
 * The factor n scales the mean of P / floor to 1. For coherent dwells K = 1, and n counts all
 * samples of the dwell.
 */
double pnr_threshold_ratio(double pfa_cell, size_t n_looks, double n_samples);
/* Returns the same threshold for a floor that is computed from other samples than the cell. The
 * threshold is n B / (1 - B), where B is the quantile of Beta(K, K n). Use it for linear
 * correlations: the power of a cell includes samples after the first N, and its floor does not. The
 * threshold is exact for lags of N or more. At smaller lags there are fewer false alarms. */
double pnr_threshold_ratio_apart(double pfa_cell, size_t n_looks, double n_samples);

/* The regularised incomplete gamma function Q(a, x) and beta function I_x(a, b). The relative error
 * is below 1e-12. */
double pnr_gamma_q(double a, double x);
double pnr_beta_i(double a, double b, double x);

/* The logarithms of P(a, x), of Q(a, x), and of x^a exp(-x) / Gamma(a); x > 0. The last is the
 * density of log x if x is gamma distributed with the shape a. The logarithms keep their digits
 * where the values underflow. */
typedef struct pnr_gamma_logs {
    double p, q, density;
} pnr_gamma_logs;
pnr_gamma_logs pnr_gamma_log(double a, double x);

#endif
