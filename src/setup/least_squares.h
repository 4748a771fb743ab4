/* SPDX-License-Identifier: MIT */
/* The least-squares filter: the echoes of the range gates, solved for together, free of the code's
 * sidelobes. */
#ifndef PNR_LEAST_SQUARES_H
#define PNR_LEAST_SQUARES_H

#include "base/error.h"
#include "code/waveform.h"
#include "engine/engine.h"

#include <stddef.h>

enum { PNR_MAX_FILTER_GATES = 4096 }; /* a matrix of 256 MiB */

/*
 * Samples x = A h + noise, column k of A the code delayed by gate k, h the echoes' amplitudes: the
 * best unbiased estimate is (A^H A)^-1 A^H x. A^H x is the correlation c at the gates, T = A^H A
 * the Toeplitz matrix R(k - j). Each row is scaled so that white noise has the variance R(0)
 * sigma^2 in it, as in the correlation: c'[k] = sum_j filter[k][j] c[j],   filter[k][j] = sqrt(R(0)
 * / T^-1[k][k]) T^-1[k][j]. An echo A at gate k gives c'[k] = A R(0) / sqrt(loss[k]), and 0 at all
 * other gates; loss[k] = R(0) T^-1[k][k] >= 1 is what of the SNR is lost, and all that is. What
 * comes from outside the gates is not modelled.
 */
typedef struct pnr_least_squares {
    size_t n_gates;
    bool is_cyclic;      /* the gates are all lags: the last is next to the first */
    double (*filter)[2]; /* [n_gates][n_gates] */
    double *loss;        /* [n_gates] power ratio */
    double condition;    /* of T: greatest over least eigenvalue, estimated from below */
    double mean_loss_db, worst_loss_db;
    const pnr_waveform *autocorrelation;
    double near[PNR_NEIGHBOURS][2]; /* R(u)/R(0) at 0 .. 16 */
} pnr_least_squares;

/*
 * autocorrelation: R(u)/R(0), prepared, kept; cyclic, for the code is sent again after N samples,
 * also where the windows are those of a linear correlation. n_gates: 1 .. PNR_MAX_FILTER_GATES;
 * is_cyclic: they are all N lags of a circular one.
 * PNR_OK, PNR_ENOMEMORY; PNR_ECONFIG: too many gates, or the code cannot tell their echoes apart
 * (condition above 1e6), in words. Takes n_gates^2 steps. Owner of *out: the caller.
 */
int pnr_least_squares_create(const pnr_waveform *autocorrelation, size_t n_gates, bool is_cyclic,
                             pnr_least_squares **out, pnr_error *error);
void pnr_least_squares_destroy(pnr_least_squares *least_squares);

/*
 * What an echo with A R(0) = 1 puts at the gates `gate` - 8 .. + 8, its delay `delay` gates behind
 * `gate`, any fraction; 0 beyond the ends, if
 * there are any:
 *     out[i] = sum_j filter[k][j] R(j - gate - delay)/R(0),   k = gate + i - 8.
 * At whole delays this is 1 / sqrt(loss) at the echo and 0 around it. Not cyclic: gates count from
 * 0 at the gate's beginning. Takes 17 n_gates steps.
 */
void pnr_least_squares_response(const pnr_least_squares *least_squares, size_t gate, double delay,
                                double out[PNR_NEIGHBOURS][2]);

/*
 * The correlation that the echoes of the gates `gate` - 8 .. + 8 alone would have, from their
 * filtered values:
 *     out[i] = sum_j R(i - j)/R(0) sqrt(loss[j]) filtered[j],
 * free of the sidelobes of all other gates; what is made for the correlation is right for it: an
 * echo of delay d is A R(0) times R(i - d)/R(0), its noise loss[gate] times that of one cell. At
 * fractions of a gate the response reaches beyond the 17: some 1/20 of it, times the code's
 * sidelobes, is missing (a thousandth of a sample for 1000 chips).
 */
void pnr_least_squares_restore(const pnr_least_squares *least_squares, size_t gate,
                               const double filtered[PNR_NEIGHBOURS][2],
                               double out[PNR_NEIGHBOURS][2]);

/* Both: what pnr_least_squares_restore makes of an echo with A R(0) = 1, see
 * pnr_least_squares_response. R(i - d)/R(0) less this is what is missing. */
void pnr_least_squares_echo(const pnr_least_squares *least_squares, size_t gate, double delay,
                            double out[PNR_NEIGHBOURS][2]);

#endif
