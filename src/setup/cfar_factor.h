/* SPDX-License-Identifier: MIT */
/* Thresholds of constant false alarm rate: the factor by which a cell must exceed its
 * neighbourhood. */
#ifndef PNR_CFAR_H
#define PNR_CFAR_H

#include "engine/engine.h"

#include <stddef.h>

/*
 * The factor f for which noise passes P > f Z with probability pfa_cell (0 < pfa_cell < 1), Z as in
 * engine.h from `before` and `after` training cells. All cells are independent sums of n_looks
 * exponential looks of one mean (gamma of shape n_looks), so that
 *     Pfa = integral of Q(n_looks, f z) p(z) dz,
 * p the density of Z: of the mean of both sides (CA), its greater or lesser side (GO, SO), or the
 * order statistic (OS). By the trapezoidal rule in log z, which converges exponentially; relative
 * error of Pfa below 1e-9. +INFINITY without a cell.
 */
double pnr_cfar_factor(pnr_cfar_kind kind, double pfa_cell, size_t n_looks, size_t before,
                       size_t after);

/*
 * Fills plan->cfar.factor, [n_looks][training + 1][training + 1], from all else that is in the plan
 * (its filter counts as one when it is not NULL). Pairs of training cells that no cell of the plan
 * has are +INFINITY: along cyclic lags every cell has all; a line with ends is the rows, or the
 * lags of a linear correlation, or those of the gate under a filter. Exact for the first 32 looks
 * and the last; between those, every eighth part further, with the ones within by interpolation in
 * 1 / sqrt(looks), right to 2e-4: they serve only dwells that lost looks.
 */
void pnr_cfar_factors(const pnr_plan *plan, double pfa_cell, double *factor);

/*
 * What the unknown noise costs: the SNR in dB that an echo needs more than under known noise to be
 * found with probability 1/2, with all training cells on both sides. The echo's looks fluctuate
 * independently (Swerling II): it is found with probability Pfa(f / (1 + S)), so that S = f(pfa) /
 * f(1/2) - 1, exactly.
 */
double pnr_cfar_loss_db(pnr_cfar_kind kind, double pfa_cell, size_t n_looks, size_t training);

#endif
