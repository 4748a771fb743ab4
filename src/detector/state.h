/* SPDX-License-Identifier: MIT */
/* The internal state of the detector. detector.c computes echoes from tracks. track.c finds
 * them among the candidates, and fits each after the others are subtracted. */
#ifndef PNR_DETECTOR_STATE_H
#define PNR_DETECTOR_STATE_H

#include "base/complex.h"
#include "detector/detector.h"
#include "detector/noise.h"
#include "detector/sign.h"
#include "estimate/cross.h"
#include "estimate/fit.h"
#include "estimate/fit_among.h"
#include "estimate/fit_pair.h"
#include "estimate/fit_patch.h"

#include <math.h>

/* The data of the detector for one code. */
typedef struct pnr_detector_code {
    const pnr_waveform *autocorrelation; /* R(u)/R(0) */
    pnr_fit *fit;
    pnr_fit_pair *pair;   /* the fit of two paths; NULL unless the plan has one row and one code */
    pnr_fit_among *among; /* the fit among other echoes; NULL unless the plan has sums of powers in
                           * one row */
    pnr_lobe lobe;
    double bandwidth;       /* B, the mean square bandwidth */
    double nyquist;         /* the share of the code's energy in its Nyquist bin */
    double curvature_noise; /* (kurtosis of the spectrum - 1) / 2 */
    double sidelobe_shape;  /* mean square bandwidth of the sidelobes / B. The sidelobes of codes of
                             * random phase have the power spectrum of R, the square of that of the
                             * code */
    /* Amplitude and energy of an echo in the samples, divided by amplitude and energy of the fitted
     * echo. Usually they are 1 / sqrt(s) and 1 / s, where s is the share of the code's energy that
     * the waveform keeps (`share` in setup/setup.h). s is 1 for complex samples without notches.
     * Real samples that are mixed to frequency zero: 2 / sqrt(s) and 2 / (1 - r), where r is the
     * share that notches removed. In these samples A cos(wt) has the amplitude A/2 on either side
     * of 0, and the receiver has removed the frequencies outside of its band. */
    double amplitude_scale, energy_scale;
    double complex rho[2 * PNR_NEIGHBOURS]; /* R(u)/R(0) for u = -17 .. 16 */
} pnr_detector_code;

struct pnr_detector {
    bool is_shared; /* the tables belong to another detector */
    const pnr_config *config;
    const pnr_radar *radar;
    const pnr_plan *plan;
    const pnr_setup_code *waveforms; /* [n_codes], owned by the setup */
    size_t n_codes;
    pnr_detector_code *codes;
    pnr_cross *cross;   /* auto- and cross-correlations of the codes */
    pnr_fit_patch *map; /* the fit with slow time; NULL: not needed, see create.c */
    bool has_rows;      /* the plan has several rows; each candidate has a patch */
    pnr_patch *patches; /* [2 PNR_MAX_CANDIDATES] `c` and `rest` of the tracks; NULL if the plan has
                         * one row */
    const pnr_least_squares *least_squares; /* the least-squares filter; NULL: matched filter */
    double energy_of_code;                  /* R(0) */
    pnr_cells cells;
    pnr_noise_bands bands;
    bool is_sum;       /* values are sums of powers over several looks */
    size_t max_echoes; /* greatest number of echoes; the direct path, which zero.c removes later, is
                        * one of them */
};

/* The gains of a dwell for an echo's amplitude and for noise. */
typedef struct pnr_dwell_gains {
    double amplitude; /* the peak of an echo over all looks, divided by A R(0) */
    double noise;     /* noise power of a cell, divided by the noise power of a sample and by
                       * R(0) */
    double looks;     /* number of looks whose powers are summed */
} pnr_dwell_gains;

/* The fit of a track that was subtracted from the other tracks. at: the place of -echo.lag in the
 * correlations of the codes; set if the plan has one row. */
typedef struct pnr_told {
    pnr_patch_echo echo;
    pnr_waveform_point at;
} pnr_told;

/* A candidate with its fit. */
typedef struct pnr_track {
    const pnr_candidate *candidate;
    const pnr_detector_code *code;
    size_t centre; /* the lag in the middle of the values */
    double loss;   /* noise power of the track's values / noise power of a cell; above 1 after a
                    * least-squares filter */
    int n_rows;    /* number of rows of c and rest: 17 if has_rows, else 1. c and rest are
                    * [n_rows][17] */
    /* The engine's values. With a least-squares filter they are first restored to values of the
     * correlation. In sums of powers the mean noise is then subtracted. */
    pnr_vector *c;
    pnr_vector *rest;  /* c minus the `told` fits of the other echoes */
    pnr_vector row[2]; /* memory of c and rest if the plan has one row */
    pnr_told told;
    bool is_told, is_dirty; /* is_told: `told` is set; is_dirty: `rest` has changed since the fit */
    double cell;            /* noise power of one cell, assumed when `rest` was computed */
    pnr_fitted fit;
    double bins, bins_variance; /* Doppler in bins; S times the variance of `bins`. Both are 0 if
                                 * the plan has one row */
    pnr_patch_anchor anchor;
    pnr_signs signs; /* signs of the periods in the model of this echo */
    double share;    /* |value of the model echo in the centre| / |peak| */
    /* In sums of powers: what other echoes add to the value in the centre, as far as it is known,
     * and the variances of delay (samples^2) and relative amplitude that the others cause. In a map
     * of such sums: the noise power of a cell that would disturb the track as the others do. */
    double complex others;
    double disturbed_delay, disturbed_amplitude, noise_of_others;
    double amplitude2; /* |A|^2 */
    double power;      /* P at the peak, on the scale of the engine's values */
    /* is_pair: the track is one of two paths that were fitted together, with the same candidate.
     * pair_noise: the noise power of a cell, as a mean over the residual of the fit of both paths.
     * pair_cells: the number of cells in this mean. */
    bool is_pair;
    double pair_noise, pair_cells;
} pnr_track;

pnr_dwell_gains pnr_detector_gains(const pnr_detector *detector, const pnr_observed *observed);

/* Returns the cyclic distance from lag b to lag a, in [-N/2, N/2). */
static inline double pnr_track_distance(const pnr_detector *detector, double a, double b)
{
    const double n = (double)detector->radar->n_samples;
    const double difference = a - b;

    if (fabs(difference) < 0.5 * n)
        return difference;
    return difference - n * floor(difference / n + 0.5);
}

static inline pnr_patch_place pnr_track_place(const pnr_detector *detector, const pnr_track *t)
{
    return (pnr_patch_place){.code = (size_t)(t->code - detector->codes),
                             .row = t->candidate->row,
                             .lag = (long)t->centre};
}

static inline pnr_patch_echo pnr_track_echo(const pnr_detector *detector, const pnr_track *t)
{
    return (pnr_patch_echo){.code = (size_t)(t->code - detector->codes),
                            .lag = (double)t->centre + t->fit.delay,
                            .bins = t->bins,
                            .peak = t->fit.peak,
                            .anchor = t->anchor};
}

/* Finds the echoes among the candidates, strongest first. Fits each echo after the others are
 * subtracted. Returns the number of echoes. tracks: [PNR_MAX_CANDIDATES]. *is_coarse: true if the
 * time limit was reached before all candidates and all fits were done. */
size_t pnr_track_all(const pnr_detector *detector, const pnr_observed *observed, pnr_track *tracks,
                     bool *is_coarse);
/* Fits a track to `rest`, its values without the other echoes. Returns fit.gain. After
 * a least-squares filter the restored values in `rest` lack a part of the track's own echo. The
 * function computes this part from the first fit, adds it, and fits again. cell: noise power of one
 * cell. */
double pnr_track_fit(const pnr_detector *detector, pnr_track *t, double cell);
double pnr_track_squared_amplitude(const pnr_detector *detector, const pnr_dwell_gains *gains,
                                   const pnr_track *t);
/* Fills amplitude2 and power of a track from its fit. */
void pnr_track_measure(const pnr_detector *detector, const pnr_dwell_gains *gains, pnr_track *t);
/* Replaces an echo by two paths if two paths explain its values. Tries this if another echo is
 * near, or if the fit of the echo has a misfit. Does so only if the plan has one row and one code.
 * Then drops the other echoes that are below the threshold, `ratio` times the noise of a cell. *n:
 * number of tracks, before and after. Returns true if there is a pair. */
bool pnr_track_split(const pnr_detector *detector, const pnr_dwell_gains *gains, double ratio,
                     const pnr_noise *noise, pnr_track *tracks, size_t *n);
/* Fits the echoes of a sum of powers again, after subtracting the mean noise power `cell`. */
void pnr_track_all_again(const pnr_detector *detector, const pnr_observed *observed, double cell,
                         pnr_track *tracks, size_t n);
/* Takes the other echoes of a sum of powers into account. In one row fits each track again, jointly
 * with the echoes that add much to its variances, and fills the variances that the others add. In a
 * map fills noise_of_others. Does nothing in plans with one look. cell: noise power of a cell. */
void pnr_sum_separate(const pnr_detector *detector, const pnr_dwell_gains *gains, double cell,
                      pnr_track *tracks, size_t n);
/* Returns the noise power of a cell that would disturb track i as the other echoes of a sum of
 * powers do, in a map. The phase between two echoes turns from look to look with the difference of
 * their frequencies. Returns 0 in other plans. */
double pnr_sum_noise(const pnr_detector *detector, double looks, const pnr_track *tracks, size_t n,
                     size_t i);
/* Returns the noise power of one cell, as a mean around track i. cell: a noise power; echoes that
 * are negligible against it are not subtracted. */
pnr_residual pnr_track_noise(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                             size_t i, double cell);

/* True if a candidate lies in the gate of the plan. Later the estimated delay decides whether its
 * echo lies in the gate. */
static inline bool pnr_track_is_inside(const pnr_detector *detector, const pnr_candidate *candidate)
{
    const pnr_plan *plan = detector->plan;

    return !plan->has_outside || pnr_plan_is_in_gate(plan, candidate->cell / plan->oversample);
}

/* Returns the index of the candidate's row in c and rest. */
static inline int pnr_track_row(const pnr_track *t)
{
    return t->n_rows / 2;
}

/* --- one track among others --- */

/* Sets t->told to the latest fit of the track. */
void pnr_others_note(const pnr_detector *detector, pnr_track *t);
/* Adds factor times an echo to the values of a track. The plan has one row, and no least-squares
 * filter. values: [17]. */
void pnr_others_add(const pnr_detector *detector, const pnr_track *t, const pnr_told *echo,
                    double factor, pnr_vector *values);
/* True if an echo is not negligible in the values of a track. cell: the noise power of a cell. */
bool pnr_others_reach(const pnr_detector *detector, const pnr_track *t, const pnr_patch_echo *echo,
                      double cell);
/* Subtracts the latest fit of track i from `rest` of every other track, and adds back the earlier
 * fit of track i that was subtracted there. Skips tracks in which the echo is negligible. cell: the
 * noise power of a cell. */
void pnr_others_tell(const pnr_detector *detector, pnr_track *tracks, size_t n, size_t i,
                     double cell);
/* Fills `rest` of a track: its values minus the other echoes that are not negligible. cell: the
 * noise power of a cell. */
void pnr_others_subtract(const pnr_detector *detector, const pnr_track *t, const pnr_track *others,
                         size_t n, double cell);
/* True if the other echoes leave less than the power `least` in the 3 x 3 cells around the
 * candidate of a map, or with n_lags = 2 in 3 x 4 cells. Ends as soon as the remaining echoes
 * cannot change the answer. Changes `rest`. */
bool pnr_others_explain(const pnr_detector *detector, const pnr_track *t, const pnr_track *others,
                        size_t n, double cell, int n_lags, double least);

/* True if the delay of an echo with this frequency changes by at most half a chip in a look. Only
 * such an echo can be subtracted from the samples. */
bool pnr_removal_is_possible(const pnr_detector *detector, size_t code, double bins);

/* --- after a least-squares filter --- */

/* Returns the noise power of a track's restored values divided by the noise power of a cell.
 * Returns 1 without a filter. */
double pnr_track_loss(const pnr_detector *detector, const pnr_track *t);
/* Restores the correlation from the filtered values around a track. values, out:
 * [n_rows][17][2]. */
void pnr_track_restore(const pnr_detector *detector, const pnr_track *t, const float *values,
                       size_t n_rows, float *out);
/* Returns the distance from the centre of a track to a lag, in range gates. */
double pnr_track_gates(const pnr_detector *detector, const pnr_track *from, double lag);
/* Adds an echo, multiplied by `factor`, to the values of a track. A negligible echo is not
 * added. */
void pnr_track_add_filtered(const pnr_detector *detector, const pnr_track *t,
                            const pnr_patch_echo *echo, double factor, double cell,
                            pnr_vector *values);
/* Adds the part of a track's own echo that the restoration misses. */
void pnr_track_add_missing(const pnr_detector *detector, const pnr_track *t, double cell,
                           pnr_vector *values);

#endif
