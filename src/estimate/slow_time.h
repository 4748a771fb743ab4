/* SPDX-License-Identifier: MIT */
/* Slow time: the response of a Doppler row to an echo and to noise. The response is a sum over the
 * windows of a look. */
#ifndef PNR_SLOW_TIME_H
#define PNR_SLOW_TIME_H

#include "engine/engine.h"

#include <complex.h>

/*
 * An echo of frequency v has the value exp(2 pi i v (p - (K - 1)/2)) in window p. The value of the
 * row at F is
 *     sum_p w_p u_p exp(2 pi i (v - F) (p - (K - 1)/2)),
 * where w_p is the taper, and u_p is the share of valid samples of the window (0: the window is not
 * used). With several looks the value is the mean of this sum over the looks. plan.remove_mean
 * subtracts the mean of the used windows before the sum. Frequencies are in bins of 1/Tr.
 */
typedef struct pnr_slow_time pnr_slow_time;

/* PNR_OK, PNR_ENOMEMORY. The caller owns *out. */
int pnr_slow_time_create(const pnr_plan *plan, pnr_slow_time **out);
/* Shares the tables of `from`. Destroy `from` after *out. PNR_OK, PNR_ENOMEMORY. */
int pnr_slow_time_share(const pnr_slow_time *from, pnr_slow_time **out);
void pnr_slow_time_destroy(pnr_slow_time *slow);

/* Begins a dwell. lost, nonfinite: the numbers of lost and of non-finite samples in each window,
 * [n_looks n_periods]; NULL: none. */
void pnr_slow_time_begin(pnr_slow_time *slow, const uint32_t *lost, const uint32_t *nonfinite);
/* True if all samples of the used looks are valid. */
bool pnr_slow_time_is_whole(const pnr_slow_time *slow);
double pnr_slow_time_gain(const pnr_slow_time *slow);       /* sum of w_p u_p over all looks */
double pnr_slow_time_noise_gain(const pnr_slow_time *slow); /* sum of w_p^2 u_p over all looks */
double pnr_slow_time_looks(const pnr_slow_time *slow);      /* number of used looks */

/* Sets a factor, the sign, for each window. It is 1 or -1, or the mean over a window in which the
 * sign changes while the echo turns. pnr_slow_time_echo multiplies the echo by these factors.
 * signs: [n_periods], copied; NULL: 1 in all windows, as after pnr_slow_time_begin. Only for plans
 * of one look without remove_mean. The sums above do not change. */
void pnr_slow_time_signs(pnr_slow_time *slow, const double complex *signs);
/* Fills value, [n], with the response of the rows at f_row + i/K, i = 0 .. n - 1, to an echo. The
 * response is 1 at v = F when no mean is removed and no sign is set. slope, [n]: its derivative
 * with respect to v; NULL: not wanted. */
void pnr_slow_time_echo(const pnr_slow_time *slow, double v, double f_row, int n,
                        double complex *value, double complex *slope);
/* Fills out[p] = w_p^power u_p exp(2 pi i x (p - (K - 1)/2)), divided by the sum of w_p^power u_p;
 * power is 0 or 1. For power = 1 and x = v - F without remove_mean, the sum of out is the value of
 * pnr_slow_time_echo. */
void pnr_slow_time_windows(const pnr_slow_time *slow, int power, double x, double complex *out);
/* Returns the covariance E n conj(n') of white noise in two rows. If no mean is removed, the
 * covariance is 1 at f_other = f_row. */
double complex pnr_slow_time_noise(const pnr_slow_time *slow, double f_row, double f_other);

#endif
