/* SPDX-License-Identifier: MIT */
/* The power of a residual is a quadratic form of normal variables. Its moments follow from the
 * covariance K of the real and imaginary parts of the residual. */
#include "estimate/residual.h"

#include "base/complex.h"

#include <math.h>

enum { J = PNR_NEIGHBOURS, R = 2 * J };

typedef double real_matrix[R][R];

/* Fills k with the covariance of the real and imaginary parts of noise of the covariance p. */
static void fill_noise(const pnr_vector *p, real_matrix k)
{
    for (int i = 0; i < J; i++)
        for (int j = 0; j < J; j++) {
            k[i][j] = k[J + i][J + j] = creal(p[i][j]) / 2;
            k[J + i][j] = cimag(p[i][j]) / 2;
            k[i][J + j] = -cimag(p[i][j]) / 2;
        }
}

static double part(const double complex *x, int i)
{
    return i < J ? creal(x[i]) : cimag(x[i - J]);
}

/* k becomes (1 - x h^T) k (1 - x h^T)^T for each parameter in turn. The parameters of a fit have no
 * influence on each other, h_m^T x_l = 0 for m != l, so the product of these matrices is 1 - sum_m
 * x_m h_m^T. */
static void take_out(real_matrix k, const double complex *x, const double complex *h)
{
    double kh[R] = {0}, hkh = 0;

    for (int i = 0; i < R; i++)
        for (int j = 0; j < R; j++)
            kh[i] += k[i][j] * part(h, j);
    for (int i = 0; i < R; i++)
        hkh += part(h, i) * kh[i];
    for (int i = 0; i < R; i++)
        for (int j = 0; j < R; j++)
            k[i][j] += part(x, i) * part(x, j) * hkh - part(x, i) * kh[j] - kh[i] * part(x, j);
}

/* Returns det(1 + t k)^(-1/2), from the factors of Cholesky. No pivot is below 1, because k is
 * positive. */
static double inverse_root(const real_matrix k, double t)
{
    real_matrix l;
    double product = 1;

    for (int i = 0; i < R; i++)
        for (int j = 0; j <= i; j++) {
            double sum = t * k[i][j] + (i == j);

            for (int m = 0; m < j; m++)
                sum -= l[i][m] * l[j][m];
            l[i][j] = i == j ? sqrt(fmax(sum, 1)) : sum / l[j][j];
            product *= i == j ? 1 / l[i][i] : 1;
        }
    return product;
}

/* Returns the mean of 1 / |e|^2, where e has the covariance k and the mean power 1. It is the
 * integral over t > 0 of the mean of exp(-t |e|^2), which is det(1 + 2 t k)^(-1/2). With t = exp(y)
 * the trapezoidal rule is accurate. */
static double mean_inverse(const real_matrix k)
{
    const double step = 0.5;
    double sum = 0;

    for (double y = -16; y <= 20; y += step)
        sum += step * exp(y) * inverse_root(k, 2 * exp(y));
    return sum;
}

pnr_residual pnr_residual_of(const pnr_vector *p, const pnr_vector *x, const pnr_vector *h,
                             int n_parameters)
{
    real_matrix k;
    double mean = 0, square = 0;

    fill_noise(p, k);
    for (int m = 0; m < n_parameters; m++)
        take_out(k, x[m], h[m]);
    for (int i = 0; i < R; i++)
        mean += k[i][i];
    for (int i = 0; i < R; i++)
        for (int j = 0; j < R; j++) {
            k[i][j] /= mean;
            square += k[i][j] * k[i][j];
        }
    return (pnr_residual){.noise = mean,
                          .cells = fmin(1 / (2 * square), (R - n_parameters) / 2.0),
                          .chance = 1 - 1 / mean_inverse(k)};
}
