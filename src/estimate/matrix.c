/* SPDX-License-Identifier: MIT */
/* Complex matrices of 17 x 17: the weights of a candidate's neighbours. */
#include "estimate/matrix.h"

enum { J = PNR_NEIGHBOURS };

void pnr_matrix_invert(double (*m)[PNR_NEIGHBOURS][2])
{
    for (int k = 0; k < J; k++) {
        const double pivot = 1 / m[k][k][0]; /* real, because every Schur complement is Hermitian */

        for (int j = 0; j < J; j++)
            if (j != k) {
                m[k][j][0] *= pivot;
                m[k][j][1] *= pivot;
            }
        for (int i = 0; i < J; i++) {
            if (i == k)
                continue;
            const double re = m[i][k][0], im = m[i][k][1];

            for (int j = 0; j < J; j++)
                if (j != k) {
                    m[i][j][0] -= re * m[k][j][0] - im * m[k][j][1];
                    m[i][j][1] -= re * m[k][j][1] + im * m[k][j][0];
                }
            m[i][k][0] = -re * pivot;
            m[i][k][1] = -im * pivot;
        }
        m[k][k][0] = pivot;
        m[k][k][1] = 0;
    }
}

void pnr_matrix_apply(const double (*m)[PNR_NEIGHBOURS][2], const double (*x)[2], double (*out)[2])
{
    for (int i = 0; i < J; i++) {
        double re = 0, im = 0;

        for (int j = 0; j < J; j++) {
            re += m[i][j][0] * x[j][0] - m[i][j][1] * x[j][1];
            im += m[i][j][0] * x[j][1] + m[i][j][1] * x[j][0];
        }
        out[i][0] = re;
        out[i][1] = im;
    }
}
