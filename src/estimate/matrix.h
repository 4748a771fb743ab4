/* SPDX-License-Identifier: MIT */
/* Complex matrices of 17 x 17: the weights of a candidate's neighbours. */
#ifndef PNR_MATRIX_H
#define PNR_MATRIX_H

#include "engine/engine.h"

/* Inverts a Hermitian positive definite matrix in place by Gauss and Jordan. It needs no pivoting,
 * because the loaded diagonal dominates. */
void pnr_matrix_invert(double (*m)[PNR_NEIGHBOURS][2]);

/* out = m x; [PNR_NEIGHBOURS] each. */
void pnr_matrix_apply(const double (*m)[PNR_NEIGHBOURS][2], const double (*x)[2], double (*out)[2]);

#endif
