/* SPDX-License-Identifier: MIT */
/* Complex matrices of 17 x 17: the weights of a candidate's neighbours. */
#include "estimate/matrix.h"

#include "base/complex.h"
#include "base/multiversion.h"

enum { J = PNR_NEIGHBOURS };

void pnr_matrix_invert(pnr_vector *m)
{
    for (int k = 0; k < J; k++) {
        const double pivot = 1 / creal(m[k][k]); /* real, because every Schur complement is
                                                  * Hermitian */

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

void pnr_matrix_weigh(const pnr_waveform *autocorrelation, pnr_vector *p, pnr_vector *w)
{
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++)
            p[i][j] = w[i][j] = pnr_waveform_at(autocorrelation, i - j);
    for (int i = 0; i < J; i++)
        w[i][i] += 1e-4;
    pnr_matrix_invert(w);
}

PNR_MULTIVERSION void pnr_matrix_apply(const pnr_vector *m, const double complex *x,
                                       double complex *out)
{
    double sum[2 * J] = {0};

    for (int j = 0; j < J; j++) {
        const double *row = (const double *)m[j], re = creal(x[j]), im = cimag(x[j]);

        for (int i = 0; i < J; i++) {
            sum[2 * i] += row[2 * i] * re + row[2 * i + 1] * im;
            sum[2 * i + 1] += row[2 * i] * im - row[2 * i + 1] * re;
        }
    }
    for (int i = 0; i < J; i++)
        out[i] = CMPLX(sum[2 * i], sum[2 * i + 1]);
}
