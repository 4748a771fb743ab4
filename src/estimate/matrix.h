/* SPDX-License-Identifier: MIT */
/* Complex matrices of 17 x 17: the weights of a candidate's neighbours. */
#ifndef PNR_MATRIX_H
#define PNR_MATRIX_H

#include "base/complex.h"
#include "code/waveform.h"
#include "engine/engine.h"

typedef double complex pnr_vector[PNR_NEIGHBOURS];

/* Inverts a Hermitian positive definite matrix in place by Gauss and Jordan. It needs no pivoting,
 * because the loaded diagonal dominates. */
void pnr_matrix_invert(pnr_vector *m);

/* Fills p[i][j] = R(i - j)/R(0), the noise covariance of neighbouring lags. Fills w, its inverse
 * with a loaded diagonal, because the matrix of an oversampled code is nearly singular.
 * autocorrelation: R(u)/R(0), after pnr_waveform_prepare. */
void pnr_matrix_weigh(const pnr_waveform *autocorrelation, pnr_vector *p, pnr_vector *w);

/* out = m^H x. x, out: [PNR_NEIGHBOURS]. */
void pnr_matrix_apply(const pnr_vector *m, const double complex *x, double complex *out);

/* Returns a^H b. a, b: [PNR_NEIGHBOURS]. */
static inline double complex pnr_inner(const double complex *a, const double complex *b)
{
    double complex sum = 0;

    for (int j = 0; j < PNR_NEIGHBOURS; j++)
        sum += conj(a[j]) * b[j];
    return sum;
}

#endif
