/* SPDX-License-Identifier: MIT */
/* The least-squares filter estimates the echoes of all range gates together, so they have no
 * sidelobes. */
#ifndef PNR_LEAST_SQUARES_H
#define PNR_LEAST_SQUARES_H

#include "base/error.h"
#include "code/waveform.h"
#include "engine/engine.h"

#include <complex.h>
#include <stddef.h>

enum { PNR_MAX_FILTER_GATES = 4096 }; /* a matrix of 256 MiB */

/*
 * The samples are x = A h + noise; column k of A is the code with the delay of gate k, and h[k] is
 * the amplitude of the echo of gate k. The best unbiased estimate is (A^H A)^-1 A^H x. A^H x is the
 * correlation c at the gates. T = A^H A is the Toeplitz matrix R(k - j) of the autocorrelation R of
 * the code. c' is the output of the filter. White noise of variance sigma^2 in x has the variance
 * R(0) sigma^2 in c. Each row of the filter is scaled so that the noise has the same variance in
 * c':
 *     c'[k] = sum_j filter[k][j] c[j],   filter[k][j] = sqrt(R(0) / T^-1[k][k]) T^-1[k][j].
 * An echo of amplitude h at gate k gives c'[k] = h R(0) / sqrt(loss[k]), and 0 at all other gates.
 * The total loss of SNR is loss[k] = R(0) T^-1[k][k] >= 1. Echoes from outside the gates are not
 * modelled.
 */
typedef struct pnr_least_squares {
    size_t n_gates;
    bool is_cyclic;         /* the gates are all lags: the last gate is next to the first one */
    double complex *filter; /* [n_gates][n_gates] */
    double *loss;           /* [n_gates] loss of SNR, a power ratio */
    double condition;       /* estimate of the condition number of T; it is not above the true
                             * value */
    double mean_loss_db, worst_loss_db;
    const pnr_waveform *autocorrelation;
    double complex near[PNR_NEIGHBOURS]; /* R(u)/R(0) at u = 0 .. 16 */
} pnr_least_squares;

/*
 * Makes the filter. autocorrelation: R(u)/R(0), after pnr_waveform_prepare; the filter keeps the
 * pointer. R is cyclic also for linear windows, because the code repeats after N samples. n_gates:
 * 1 .. PNR_MAX_FILTER_GATES. is_cyclic: the gates are all N lags of a circular correlation. Returns
 * PNR_OK; PNR_ENOMEMORY; PNR_ECONFIG with the reason: too many gates, or the code does not separate
 * their echoes (condition number above 1e6). Takes n_gates^2 steps. The caller owns *out.
 */
int pnr_least_squares_create(const pnr_waveform *autocorrelation, size_t n_gates, bool is_cyclic,
                             pnr_least_squares **out, pnr_error *error);
void pnr_least_squares_destroy(pnr_least_squares *least_squares);

/*
 * Computes `out`, the filtered values at the gates `gate` - 8 to `gate` + 8 for an echo of
 * amplitude 1 / R(0). The echo is `delay` gates after `gate`; `delay` may have a fraction. Gates
 * count from 0:
 *     out[i] = sum_j filter[k][j] R(j - gate - delay)/R(0),   k = gate + i - 8.
 * If the gates are not cyclic, out[i] is 0 beyond their ends. If the delay is a whole number of
 * gates, `out` is 1 / sqrt(loss) at the gate of the echo, and 0 at all other gates. Takes 17
 * n_gates steps.
 */
void pnr_least_squares_response(const pnr_least_squares *least_squares, size_t gate, double delay,
                                double complex *out);

/*
 * Computes `out`, the correlation that the echoes of the 17 gates `gate` - 8 to `gate` + 8 would
 * have without the echoes of all other gates. Computes it from the filtered values at these gates:
 *     out[i] = sum_j R(i - j)/R(0) sqrt(loss[j]) filtered[j].
 * The formulas of the correlation are valid for `out`: an echo of amplitude h and delay d gives
 * h R(i - d), and the noise power of `out` is loss[gate] times that of one cell. If the delay is
 * not a whole number of gates, the filtered echo reaches beyond the 17 gates. The error of `out` is
 * then about 1/20 of the echo, multiplied by the sidelobes of the code. For 1000 chips this error
 * changes the delay by a thousandth of a sample.
 */
void pnr_least_squares_restore(const pnr_least_squares *least_squares, size_t gate,
                               const double complex *filtered, double complex *out);

/* Computes `out`, the restored values of an echo of amplitude 1 / R(0): calls
 * pnr_least_squares_response, then pnr_least_squares_restore. Without the filter, the
 * correlation of this echo is R(i - 8 - delay)/R(0). To correct the restored values of a candidate,
 * the caller adds the difference R(i - 8 - delay)/R(0) - out[i]. */
void pnr_least_squares_echo(const pnr_least_squares *least_squares, size_t gate, double delay,
                            double complex *out);

#endif
