/* SPDX-License-Identifier: MIT */
/* Complex matrices of 17 x 17: the weights of a candidate's neighbours. */
#include "estimate/matrix.h"

enum { J = PNR_NEIGHBOURS };

void pnr_matrix_invert(pnr_vector *m)
{
    for (int k = 0; k < J; k++) {
        const double pivot = 1 / creal(m[k][k]); /* real: every Schur complement is Hermitian */

        for (int j = 0; j < J; j++)
            if (j != k)
                m[k][j] *= pivot;
        for (int i = 0; i < J; i++) {
            if (i == k)
                continue;
            const double complex factor = m[i][k];

            for (int j = 0; j < J; j++)
                if (j != k)
                    m[i][j] -= factor * m[k][j];
            m[i][k] = -factor * pivot;
        }
        m[k][k] = pivot;
    }
}

void pnr_matrix_apply(const pnr_vector *m, const double complex *x, double complex *out)
{
    for (int i = 0; i < J; i++) {
        double complex sum = 0;

        for (int j = 0; j < J; j++)
            sum += m[i][j] * x[j];
        out[i] = sum;
    }
}
