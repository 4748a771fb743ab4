/* SPDX-License-Identifier: MIT */
/* Discrete Fourier transforms of any length, in double precision. They are for code waveforms,
 * stored spectra and tests. The engines have their own, faster transforms. */
#ifndef PNR_TRANSFORM_H
#define PNR_TRANSFORM_H

#include <stddef.h>

/* Transforms data, [n][2] (re, im), in place: X[m] = sum_k x[k] exp(-2 pi i m k / n), n >= 1. A
 * transform of a length with small prime factors has one step for each factor. Other transforms use
 * Bluestein's chirp (L. Bluestein, 1970) with phases from exact integers. From n = 2^15 on, all
 * processors work. The relative L2 error is below 1e-14 * log2 n. Returns PNR_OK; PNR_ENOMEMORY;
 * PNR_EEND: stopped as pnr_parallel_stop_at describes. */
int pnr_transform_forward(double (*data)[2], size_t n);
/* The inverse transform, x[k] = sum_m X[m] exp(+2 pi i m k / n). The result is NOT divided by n. */
int pnr_transform_inverse(double (*data)[2], size_t n);

/* Returns the bytes of memory that a transform of n values allocates while it runs. Omits small
 * parts, which grow more slowly than n. n < SIZE_MAX / 256. */
double pnr_transform_bytes(size_t n);

/* Writes exp(2 pi i j / n), 0 <= j < n, 1 <= n < 2^60. The angle is reduced to one octant in
 * integers, so multiples of a quarter turn are exact, and |value| is 1 within an ulp. */
void pnr_transform_root(size_t j, size_t n, double value[2]);

/* Returns the smallest 2^a 3^b 5^c 7^d >= n. Every FFT library is fast at such a length. Returns 0
 * if no such length fits a size_t. */
size_t pnr_transform_fast_length(size_t n);

#endif
