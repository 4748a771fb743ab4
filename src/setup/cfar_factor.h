/* SPDX-License-Identifier: MIT */
/* Constant false alarm rate: the factor by which a cell must exceed its training cells. */
#ifndef PNR_CFAR_H
#define PNR_CFAR_H

#include "engine/engine.h"

#include <stddef.h>

/*
 * Returns the factor f for which a cell of noise satisfies P > f Z with probability pfa_cell
 * (0 < pfa_cell < 1). Z is the statistic of plan.h for `before` and `after` training cells: the
 * mean of both sides (CA), the greater or lesser of the two means (GO, SO), or the order statistic
 * (OS). All cells are independent sums of n_looks exponential looks with the same mean (gamma of
 * shape n_looks):
 *     Pfa = integral of Q(n_looks, f z) p(z) dz,
 * where p is the density of Z and Q is pnr_gamma_q. The trapezoidal rule in log z converges
 * exponentially; the relative error of Pfa is below 1e-9. Without a training cell the factor is
 * +INFINITY.
 */
double pnr_cfar_factor(pnr_cfar_kind kind, double pfa_cell, size_t n_looks, size_t before,
                       size_t after);

/* Fills factor, [n_looks][training + 1][training + 1], from the plan. The caller then sets
 * plan->cfar.factor to `factor`. Only the presence of plan->filter matters, not its values. The
 * last two indices are the numbers of training cells before and after a cell. If no cell of the
 * plan has these two numbers, the factor is +INFINITY. With cyclic lags every cell has all training
 * cells. All other axes have ends: the rows, the lags of a linear correlation, and the gate under a
 * filter. Cells near an end have fewer training cells. Factors are computed exactly for 1 to 32
 * looks, then for numbers of looks that increase by one eighth, and for n_looks. All other factors
 * are interpolated in 1 / sqrt(looks), with an error below 2e-4. Only dwells that lost looks use
 * them. */
void pnr_cfar_factors(const pnr_plan *plan, double pfa_cell, double *factor);

/*
 * Returns the loss in dB that unknown noise causes. An echo is detected with probability 1/2 at a
 * certain SNR. The loss is this SNR divided by the SNR that known noise would need. Both sides have
 * all training cells. The looks of the echo fluctuate independently (Swerling II). An echo of SNR S
 * is detected with probability Pfa(f / (1 + S)), so S = f(pfa) / f(1/2) - 1, exactly.
 */
double pnr_cfar_loss_db(pnr_cfar_kind kind, double pfa_cell, size_t n_looks, size_t training);

#endif
