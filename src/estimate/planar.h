/* SPDX-License-Identifier: MIT */
/* Samples in single precision, with the real and the imaginary parts in separate arrays. */
#ifndef PNR_PLANAR_H
#define PNR_PLANAR_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

/* Single precision rounds each product of two samples by 6e-8 of its own. In a sum over N samples
 * these errors average to below 1e-8 of the sum's peak. The values of an engine have 6e-8. */
typedef struct pnr_planar {
    float *re, *im;
} pnr_planar;

enum { PNR_PLANAR_GUARD = 16 }; /* samples that may be read after the last one, and do not count */

/* x: [n]; out: [n]. */
void pnr_planar_fill(const double complex *x, size_t n, const pnr_planar *out);

/*
 * Sets out[j] = x[m mod n] exp(2 pi i e (m - (n - 1)/2) / n) with m = first + j for
 * j = 0 .. count - 1. by_e: sets the derivative of out[j] with respect to e instead. Unless
 * is_linear is set, the phase, too, has m mod n in place of m.
 */
void pnr_planar_rotate(const pnr_planar *x, long n, double e, long first, size_t count,
                       bool is_linear, bool by_e, const pnr_planar *out);

/* Fills out[l] = factor sum_i u[i + l] conj(a[i]) for l = 0 .. n_lags - 1 and i = 0 .. n - 1.
 * is_real: a has no imaginary part, so the sum needs half of the products. u:
 * [n + n_lags - 1 + PNR_PLANAR_GUARD]. */
void pnr_planar_correlate(const pnr_planar *u, const pnr_planar *a, size_t n, size_t n_lags,
                          double factor, bool is_real, double complex *out);

#endif
