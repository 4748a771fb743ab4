/* SPDX-License-Identifier: MIT */
/* Samples in single precision, with the real and the imaginary parts in separate arrays. */
#ifndef PNR_PLANAR_H
#define PNR_PLANAR_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

/* The rounding error of each product of two samples is 6e-8 of the product. In a sum over N samples
 * these errors average to below 1e-8 of the greatest value of the correlation. The rounding errors
 * of an engine are 6e-8 of its values. */
typedef struct pnr_planar {
    float *re, *im;
} pnr_planar;

/* pnr_planar_correlate may read this number of samples after the last sample of u; their values
 * have no effect. */
enum { PNR_PLANAR_GUARD = 16 };

/* Copies the real and the imaginary parts of x, [n], to the arrays of out, [n]. */
void pnr_planar_fill(const double complex *x, size_t n, const pnr_planar *out);

/* Sets out[j] = x[m mod n] exp(2 pi i e (m - (n - 1)/2) / n) for j = 0 .. count - 1, with m = first
 * + j. by_e: sets the derivative of out[j] with respect to e instead. If is_linear is not set, the
 * phase factor also uses m mod n instead of m. */
void pnr_planar_rotate(const pnr_planar *x, long n, double e, long first, size_t count,
                       bool is_linear, bool by_e, const pnr_planar *out);

/* Fills out[l] = factor * sum_i u[i + l] conj(a[i]) for l = 0 .. n_lags - 1 and i = 0 .. n - 1.
 * is_real: the imaginary part of `a` is zero, so the sum needs half of the products.
 * u: [n + n_lags - 1 + PNR_PLANAR_GUARD]. */
void pnr_planar_correlate(const pnr_planar *u, const pnr_planar *a, size_t n, size_t n_lags,
                          double factor, bool is_real, double complex *out);

#endif
