/* SPDX-License-Identifier: MIT */
/* The noise that weighted sums of a patch's cells have in common, from the samples of the code. */
#ifndef PNR_MAP_NOISE_H
#define PNR_MAP_NOISE_H

#include "estimate/echo_model.h"
#include "estimate/fit_patch.h"
#include "setup/setup.h"

/*
 * White noise of power 1 in the samples, on the scale of one cell, gives the cells at (row r, lag
 * l) and (r', l') the covariance g(r, r') 1/R(0) sum_n exp(-2 pi i (f_r - f_r') t_n / N) conj(a(n -
 * l)) a(n - l'), g that of slow time, t_n the time from the window's middle: rows with rotations of
 * their own share noise at other lags too, which no product of rows and lags has. Time is taken in
 * blocks, in which the rotations stand still.
 */
typedef struct pnr_map_noise pnr_map_noise;

/* PNR_OK, PNR_ENOMEMORY. Owner of *out: the caller. */
int pnr_map_noise_create(const pnr_setup *setup, pnr_map_noise **out);
void pnr_map_noise_destroy(pnr_map_noise *noise);

/* out[i][j] = h_i^H C h_j of the n weights h of a patch's cells, n <= PNR_MAP_SUMS. */
enum { PNR_MAP_SUMS = 3 };
void pnr_map_noise_of(const pnr_map_noise *noise, const pnr_slow_time *slow,
                      const pnr_map_rows *rows, const pnr_patch_place *place, const pnr_patch *h,
                      int n, double (*out)[PNR_MAP_SUMS][2]);

#endif
