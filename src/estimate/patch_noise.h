/* SPDX-License-Identifier: MIT */
/* The noise covariance of weighted sums over the cells of a patch, from the samples of the code. */
#ifndef PNR_PATCH_NOISE_H
#define PNR_PATCH_NOISE_H

#include "estimate/echo_model.h"
#include "estimate/fit_patch.h"
#include "setup/setup.h"

/*
 * If white noise has the power 1 in each cell, the cells (row r, lag l) and (r', l') have the
 * covariance
 *
 *     g(r, r') 1/R(0) sum_n exp(-2 pi i (f_r - f_r') t_n / N) conj(a(n - l)) a(n - l'),
 *
 * where g is the covariance of slow time, f_r the rotation of row r, and t_n the time of sample n
 * from the middle of the window. The noise of rows with different rotations is correlated at
 * different lags too. A product over rows and lags cannot describe this. The sum is computed in
 * blocks of time. Within a block the rotations are taken as constant.
 */
typedef struct pnr_patch_noise pnr_patch_noise;

/* PNR_OK, PNR_ENOMEMORY. The caller owns *out. */
int pnr_patch_noise_create(const pnr_setup *setup, pnr_patch_noise **out);
void pnr_patch_noise_destroy(pnr_patch_noise *noise);

/* out[i][j] = h_i^H C h_j for i, j < n <= PNR_PATCH_SUMS. C: the covariance above. h_i: the weights
 * of the cells in sum i. */
enum { PNR_PATCH_SUMS = 3 };
void pnr_patch_noise_covariance(const pnr_patch_noise *noise, const pnr_slow_time *slow,
                                const pnr_echo_rows *rows, const pnr_patch_place *place,
                                const pnr_patch *h, int n, double complex (*out)[PNR_PATCH_SUMS]);

#endif
