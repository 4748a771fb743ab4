/* SPDX-License-Identifier: MIT */
/* The fit in a map: delay, Doppler and complex amplitude of one echo, jointly, from the 17 x 17
 * values around it. */
#ifndef PNR_FIT_MAP_H
#define PNR_FIT_MAP_H

#include "base/error.h"
#include "estimate/fit.h"
#include "setup/setup.h"

/*
 * An echo A a(n - d) exp(2 pi i v (n - m) / N), m = (K N - 1)/2 the look's middle, gives in the row
 * at F of the rotation f, at the lag k (see engine.h, each row turned back to that middle),
 *     A R(0) G g(v - F) chi(k; d, v - f),   g(x) = sum_p w_p exp(2 pi i x (p - (K - 1)/2)) / G,
 * over the look's used windows, each as much as it has samples; G = sum_p w_p; chi is the code's
 * cross-ambiguity (ambiguity.h). With the mean of the windows removed there is, instead of g, what
 * is left of it. chi is taken as R(k - d)/R(0) sin(pi e) / (N sin(pi e / N)), e = v - f, and as the
 * exact sum over all samples where an echo is so strong, or its code such, that it matters.
 * An echo of carrier c walks: its code is v/(Tr c) faster, less what the row's stretch takes out. d
 * is its delay in the look's middle; of the rest the model has what is linear in the walk. The
 * noise of two cells has the covariance R(k - k')/R(0) times that of the rows. Frequencies v, F, f
 * are in bins of 1/Tr.
 */
typedef struct pnr_fit_map pnr_fit_map;

/* Rows of lags. */
typedef double pnr_vector[PNR_NEIGHBOURS][2];
typedef pnr_vector pnr_patch[PNR_NEIGHBOURS];

/* Where a patch lies: its middle. */
typedef struct pnr_patch_place {
    size_t code, row;
    long lag;
} pnr_patch_place;

/* An echo as it lies in the map. */
typedef struct pnr_map_echo {
    size_t code;
    double lag;     /* d, from the window's start */
    double bins;    /* v */
    double peak[2]; /* A R(0) G */
} pnr_map_echo;

typedef struct pnr_map_fitted {
    pnr_fitted at; /* at.gain: S of the weighted sum, in cells of noise; .power: |peak|^2 */
    double bins, bins_variance;
    double centre; /* |what of the peak is in the middle of the patch| */
} pnr_map_fitted;

/* carrier_hz: 0: none, no echo walks. Keeps a pointer to setup. PNR_OK, PNR_ENOMEMORY. Owner of
 * *out: the caller. One user at a time: the functions below work in memory of its own. */
int pnr_fit_map_create(const pnr_setup *setup, double carrier_hz, pnr_fit_map **out);
void pnr_fit_map_destroy(pnr_fit_map *map);

/* A dwell begins: samples lost and not finite, [n_looks n_periods]; NULL: none. */
void pnr_fit_map_begin(pnr_fit_map *map, const uint32_t *lost, const uint32_t *nonfinite);
/* Of the dwell, summed over its looks: sum w_p, the gain of an echo's amplitude, and sum w_p^2,
 * that of the noise's power, each window as far as it is there. */
double pnr_fit_map_gain(const pnr_fit_map *map);
double pnr_fit_map_noise_gain(const pnr_fit_map *map);
double pnr_fit_map_looks(const pnr_fit_map *map); /* with a window at least */
/* The share of an echo's energy that is in the dwell's: 1, but without the mean. */
double pnr_fit_map_energy(const pnr_fit_map *map, double bins);

/* Of a map with several rows: the values that the engine gave, turned to the look's middle;
 * is_sum: the noise's own part of several looks' sum is taken out, `floor` its mean power. */
void pnr_fit_map_load(const pnr_fit_map *map, const pnr_patch_place *place, const float *values,
                      double floor, pnr_vector *out);
/* The likeliest echo near the middle; start: lags from it. cell: about the noise of one. */
void pnr_fit_map_find(pnr_fit_map *map, const pnr_patch_place *place, const pnr_vector *patch,
                      double start, double cell, pnr_map_fitted *out);
/* patch -= what the echo puts there. */
void pnr_fit_map_subtract(pnr_fit_map *map, const pnr_patch_place *place, const pnr_map_echo *echo,
                          double cell, pnr_vector *patch);
/* The engine's own values, not turned: what the echo puts there is added. */
void pnr_fit_map_add(pnr_fit_map *map, const pnr_patch_place *place, const pnr_map_echo *echo,
                     double cell, float *values);
/* sum |what the echo puts into the middle and the next n_lags - 1 lags of its row|^2 */
double pnr_fit_map_power(pnr_fit_map *map, const pnr_patch_place *place, const pnr_map_echo *echo,
                         double cell, int n_lags);
/* Correlation of two echoes over all samples: what of the one's energy is the other's. */
void pnr_fit_map_overlap(const pnr_fit_map *map, const pnr_map_echo *x, const pnr_map_echo *y,
                         double out[2]);
/* The noise of one cell that is left beside the echo found; *cells: how many it is the mean of. */
double pnr_fit_map_noise(pnr_fit_map *map, const pnr_patch_place *place, const pnr_vector *patch,
                         const pnr_map_fitted *fitted, double *cells);
/* Samples that an echo's delay grows by in a period, in a row. */
double pnr_fit_map_walk(const pnr_fit_map *map, double bins, double stretch);
/* The row's frequency F, in bins, and its own change of time scale. */
double pnr_fit_map_bins(const pnr_fit_map *map, size_t row);
double pnr_fit_map_stretch(const pnr_fit_map *map, size_t row);

#endif
