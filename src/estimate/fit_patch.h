/* SPDX-License-Identifier: MIT */
/* The fit in a map: delay, Doppler and complex amplitude of one echo, jointly, from the 17 x 17
 * values around it. */
#ifndef PNR_FIT_PATCH_H
#define PNR_FIT_PATCH_H

#include "base/error.h"
#include "estimate/fit.h"
#include "estimate/matrix.h"
#include "setup/setup.h"

/*
 * m = (K N - 1)/2 is the middle of the look. An echo A a(n - d) exp(2 pi i v (n - m) / N) has at
 * lag k, in the row at F with the rotation f, the value
 *     A R(0) G g(v - F) chi(k; d, v - f),   g(x) = sum_p w_p exp(2 pi i x (p - (K - 1)/2)) / G.
 * The phase of each row is referred to the middle of the look (see engine/plan.h). The sum is over
 * the used windows p of the look. w_p includes the fraction of valid samples of window p, and G is
 * the sum of w_p. If the mean of the windows is removed, the mean of the echo is also subtracted
 * (slow_time.h). chi is the cross-ambiguity (ambiguity.h). It is approximated by the smooth chi
 *     R(k - d)/R(0) sin(pi e) / (N sin(pi e / N)),   e = v - f.
 * The exact sum over all samples replaces the smooth chi if the difference matters for this echo
 * and code.
 *
 * An echo with the carrier frequency c walks: its code is faster by the factor 1 + v/(Tr c). The
 * stretch of the row removes a part of this walk. d is the delay in the middle of the look. The
 * model is linear in the remaining walk if that is accurate enough for this echo. Otherwise each
 * window has its own delay.
 *
 * The noise of two cells has the covariance R(k - k')/R(0) times the covariance of the rows. The
 * frequencies v, F, f are in bins of 1/Tr. In a row of the stretch b, v (1 + b) replaces v.
 */
typedef struct pnr_fit_patch pnr_fit_patch;

/* The values of a patch: [row][lag]. */
typedef pnr_vector pnr_patch[PNR_NEIGHBOURS];

/* The middle cell of a patch. */
typedef struct pnr_patch_place {
    size_t code, row;
    long lag;
    int reach; /* rows and lags used on each side of the middle cell; 0: all */
} pnr_patch_place;

/* A lag and a frequency near those of an echo. In the patch with this middle lag, the exact sums of
 * chi and their slopes are computed there. To first order, the sums of the echo follow from
 * them. */
typedef struct pnr_patch_anchor {
    bool is_set;
    long middle;
    double lag, bins;
} pnr_patch_anchor;

/* An echo in the coordinates of the map. */
typedef struct pnr_patch_echo {
    size_t code;
    double lag;          /* d: the delay in samples from the start of the window */
    double bins;         /* v */
    double complex peak; /* A R(0) G */
    pnr_patch_anchor anchor;
} pnr_patch_echo;

/* Returns the power of the difference of two states of an echo. before: NULL if the echo is new.
 * With a flat spectrum a shift by x samples changes a signal by pi x / sqrt(3) of its amplitude.
 * The function takes 2 x, also for a change of the frequency by x / K bins. */
static inline double pnr_patch_echo_change(const pnr_patch_echo *before,
                                           const pnr_patch_echo *after, double n_periods)
{
    if (before == NULL)
        return pnr_power(after->peak);

    const double shift = after->lag - before->lag;
    const double turn = (after->bins - before->bins) * n_periods;

    return pnr_power(after->peak - before->peak) +
           4 * pnr_power(after->peak) * (shift * shift + turn * turn);
}

typedef struct pnr_patch_fitted {
    pnr_fitted at; /* power: |peak|^2. gain: the least of three powers: `power`; the energy that the
                    * echo explains; and |s|^2 divided by E|s|^2 for noise of power 1 in each cell,
                    * where s is the weighted sum of the patch that is proportional to the peak */
    double bins, bins_variance;
    pnr_patch_anchor anchor;
    double centre; /* |value in the middle cell| of the model echo with peak 1 */
} pnr_patch_fitted;

/* carrier_hz 0: no echo walks. Keeps a pointer to setup. PNR_OK, PNR_ENOMEMORY. The caller owns
 * *out. The functions below use the scratch memory of *out, so they allow one caller at a time. */
int pnr_fit_patch_create(const pnr_setup *setup, double carrier_hz, pnr_fit_patch **out);
/* Creates a fit for another thread. It shares the tables of `from`. Destroy `from` after *out.
 * PNR_OK, PNR_ENOMEMORY. */
int pnr_fit_patch_share(const pnr_fit_patch *from, pnr_fit_patch **out);
void pnr_fit_patch_destroy(pnr_fit_patch *map);

/* Begins a dwell. lost, nonfinite: the numbers of lost and of non-finite samples in each window,
 * [n_looks n_periods]; NULL: none. */
void pnr_fit_patch_begin(pnr_fit_patch *map, const uint32_t *lost, const uint32_t *nonfinite);
/* Sets the signs of an echo's windows in the model, see pnr_slow_time_signs. NULL: no signs. */
void pnr_fit_patch_signs(pnr_fit_patch *map, const double complex *signs);
/* Fills out[row] with the value of each row of the patch at `delay` lags beside the middle, by
 * least squares over the lags of the row. out: [PNR_NEIGHBOURS]. Returns the noise power of a
 * value divided by the noise power of a cell. */
double pnr_fit_patch_column(const pnr_fit_patch *map, size_t code, double delay,
                            const pnr_vector *patch, double complex *out);
/* Returns the gain of the amplitude of an echo in the dwell: sum w_p u_p over all looks, with w_p
 * and u_p as in slow_time.h. */
double pnr_fit_patch_gain(const pnr_fit_patch *map);
/* Returns the gain of the noise power in the dwell: sum w_p^2 u_p over all looks. */
double pnr_fit_patch_noise_gain(const pnr_fit_patch *map);
double pnr_fit_patch_looks(const pnr_fit_patch *map); /* number of looks with at least one used
                                                       * window */
/* *weight: the noise power of a cell, as a mean over the rows of the map; 1 if no mean is removed.
 * *crowd: the number of rows that count as one because their noise is correlated. */
void pnr_fit_patch_cells(const pnr_fit_patch *map, double *weight, double *crowd);
/* The power of an echo in all rows of a map. rows: this power, divided by the power that the echo
 * would have in a row at its frequency. smooth: the part of `rows` with the shape of R over the
 * lags. rough: the power of the other part in all lags, divided by the power of the peak. */
typedef struct pnr_patch_spread {
    double rows, smooth, rough;
} pnr_patch_spread;
pnr_patch_spread pnr_fit_patch_spread(const pnr_fit_patch *map, size_t code, double bins);

/* Reads a patch of the engine. Multiplies each row by a phase factor that moves the reference of
 * the phase from the start to the middle of the look. With several looks, also subtracts the
 * contribution of the noise. floor: mean noise power. */
void pnr_fit_patch_load(const pnr_fit_patch *map, const pnr_patch_place *place, const float *values,
                        double floor, pnr_vector *out);
/* Finds the likeliest echo near the middle cell. start: an echo near the likeliest echo. If its
 * peak is 0, only its lag is used. cell: the approximate noise power of one cell. */
void pnr_fit_patch_find(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_vector *patch,
                        const pnr_patch_echo *start, double cell, pnr_patch_fitted *out);
/* Subtracts the model echo `after` from the patch. Adds the model echo `before`, unless it is NULL.
 * Both are states of one echo. Only the difference of the states decides whether exact sums are
 * used. */
void pnr_fit_patch_change(pnr_fit_patch *map, const pnr_patch_place *place,
                          const pnr_patch_echo *before, const pnr_patch_echo *after, double cell,
                          pnr_vector *patch);
/* Adds the model echo to values of the engine. The phases of these values are still referred to the
 * start of the look. */
void pnr_fit_patch_add(pnr_fit_patch *map, const pnr_patch_place *place, const pnr_patch_echo *echo,
                       double cell, float *values);
/* Returns the power of the model echo in the middle cell and the next n_lags - 1 lags of its
 * row. */
double pnr_fit_patch_power(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_patch_echo *echo, double cell, int n_lags);
/* Returns the power of the model echo in all rows of the patch, at the lags up to `reach` on either
 * side of the middle. */
double pnr_fit_patch_inside(pnr_fit_patch *map, const pnr_patch_place *place,
                            const pnr_patch_echo *echo, double cell, int reach);
/* Returns an upper bound of the unmodelled power of the echo in one cell of the patch. This power
 * is 0 if the echo walks by less than half a chip in a look. */
double pnr_fit_patch_unknown(const pnr_fit_patch *map, const pnr_patch_place *place,
                             const pnr_patch_echo *echo);
/* Returns the noise power of one cell, from the residual after the echo is subtracted. *cells: the
 * number of independent cells in the residual. cell: the approximate noise power of one cell. */
double pnr_fit_patch_noise(pnr_fit_patch *map, const pnr_patch_place *place,
                           const pnr_vector *patch, const pnr_patch_fitted *fitted, double cell,
                           double *cells);
/* Returns the growth of an echo's delay in one period, in samples, without the part that `stretch`
 * removes. */
double pnr_fit_patch_walk(const pnr_fit_patch *map, double bins, double stretch);
/* Returns the frequency v, in bins, of an echo at the frequency F of a row. */
double pnr_fit_patch_bins(const pnr_fit_patch *map, size_t row);
/* Returns the stretch of a row. */
double pnr_fit_patch_stretch(const pnr_fit_patch *map, size_t row);

#endif
