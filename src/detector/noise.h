/* SPDX-License-Identifier: MIT */
/* The noise of a cell: the mean power of a cell without the echoes. */
#ifndef PNR_DETECTOR_NOISE_H
#define PNR_DETECTOR_NOISE_H

#include "code/waveform.h"
#include "estimate/cross.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * dwell.noise_sum is the sum of P over all cells. The cells within `reach` lags of an echo are the
 * lobe of this echo. The detector subtracts the lobes of all echoes from the sum. It also subtracts
 * the power of the sidelobes in the other cells. The remaining power divided by the number of
 * remaining cells is the noise. An echo with the power S at its peak has the power S * total in all
 * lags, and S * inside in its lobe. The difference is the power of its sidelobes.
 *
 * With weak echoes only the number of independent cells limits the accuracy of this mean. The
 * sidelobes of strong echoes add an error. If this error matters, the residual of the fit around
 * the strongest echo is a second estimate. In sums of powers with several echoes the energy of the
 * samples gives a third estimate. The result is then the mean of these estimates, weighted by the
 * inverse of their variances.
 */
enum {
    PNR_LOBE_STEPS = 64, /* steps of the table in one lag */
    PNR_LOBE_TABLE = 2 * PNR_LOBE_STEPS + 1
};

typedef struct pnr_lobe {
    size_t reach;                  /* lags of the lobe on either side of the peak */
    double total;                  /* sum of |R(u)/R(0)|^2 over all whole lags u */
    double nyquist;                /* the share of R's Nyquist bin in `total` */
    double alike;                  /* |E(sidelobe)|^2 / E(|sidelobe|^2), E: mean over the lags */
    double greatest;               /* upper bound of the amplitude of the sidelobes */
    double inside[PNR_LOBE_TABLE]; /* sum of |R(j - d)/R(0)|^2 over |j| <= reach, for d = -1 .. 1 */
    /* is_mixed: `mixed` is set. mixed: E(|sum of conj(R(j - d)/R(0)) n_j|^2) / sigma^2 over the
     * lags j outside the lobe, for d = -1 .. 1. n_j is the noise of lag j, and sigma^2 its
     * power. */
    bool is_mixed;
    double mixed[PNR_LOBE_TABLE];
} pnr_lobe;

/* Fills *out. autocorrelation: a prepared waveform of the period n_lags. chip: length of a chip,
 * samples. */
void pnr_lobe_fill(const pnr_waveform *autocorrelation, size_t n_lags, double chip, pnr_lobe *out);

/* Fills `mixed` of a lobe, if the correlations of the codes have the table for it. */
void pnr_lobe_mix(const pnr_cross *cross, const pnr_waveform *autocorrelation, size_t n_lags,
                  pnr_lobe *lobe);

/* Returns lobe.inside at the delay d, -1 .. 1, interpolated by the cubic through four steps. */
double pnr_lobe_inside(const pnr_lobe *lobe, double d);
/* Returns lobe.mixed at the delay d, -1 .. 1, interpolated in the same way. */
double pnr_lobe_mixed(const pnr_lobe *lobe, double d);

struct pnr_detector;
struct pnr_dwell_gains;
struct pnr_observed;
struct pnr_track;

/* Constants of the noise estimate, for a dwell without lost samples. */
typedef struct pnr_cells {
    double n;     /* number of cells, each weighted by its noise: E(noise_sum) / noise of a cell */
    double crowd; /* n / (number of independent cells * looks) */
    double ratio; /* the threshold that gives the wanted false-alarm probability with this noise
                   * estimate, divided by plan.threshold */
} pnr_cells;

typedef struct pnr_noise {
    double cell;      /* noise power of one cell */
    double variance;  /* relative variance of `cell` */
    double chance;    /* the part of `variance` that makes the mean of 1 / cell too large; it
                      * excludes the effect of random phases between echoes in sums of powers */
    double least;     /* lower bound of `cell`: the estimate from the sum of P, minus two standard
                      * deviations of the error that strong echoes cause */
    double misfit;    /* residual energy beyond the noise, divided by the energy of the echo; 0: no
                      * misfit */
    double beside;    /* distance to an echo that is too near to be resolved, samples; 0: no such
                      * echo */
    double white;     /* noise power of one cell if the noise of the samples were white */
    double shape;     /* mean square bandwidth of the noise of a cell / mean square bandwidth of the
                       * code */
    bool is_coloured; /* cell and white differ by over 0.5 dB, and by more than chance explains */
} pnr_noise;

/*
 * If the noise of a cell exceeds `white`, the samples were filtered. The model of this noise is
 * flat in an interval of frequencies, whose centre is the mean frequency of the code, and zero
 * outside. b is the width of the interval divided by the width of the sampled band. E(b) is the
 * share of the code's energy in the interval. Then cell / white = E(b) / b, and b follows from this
 * equation. The noise of a cell then has only the bandwidth of the code within the interval. So the
 * slope of the noise at the peak is smaller than in white noise. The error of the delay is smaller,
 * too.
 */
enum { PNR_BAND_STEPS = 64 };
typedef struct pnr_noise_bands {
    double ratio[PNR_BAND_STEPS + 1]; /* E(b) / b at b = s / PNR_BAND_STEPS */
    double shape[PNR_BAND_STEPS + 1]; /* mean square bandwidth of the code within b / mean square
                                       * bandwidth of the whole code */
} pnr_noise_bands;

/* Fills the tables from the waveform of a code. is_half: the samples are real, so only half of the
 * band is sampled. */
void pnr_noise_bands_fill(const pnr_waveform *waveform, bool is_half, pnr_noise_bands *out);

/* Returns the shape for the widest part of the band that explains this ratio of cell to white.
 * Returns 1 if even a sixteenth of the band does not explain the ratio. */
double pnr_noise_shape(const pnr_noise_bands *bands, double ratio);

/* Sums over all pairs of echoes. Each pair has a cross term in the power of the cells and in the
 * energy of the samples. is_known: `all` and `variance` are set. This needs a plan with one row and
 * one code. In sums of powers the phases between echoes are not known, so a pair adds only to the
 * variances. */
typedef struct pnr_pairs {
    bool is_known;
    double all;      /* power of the sum of all echoes in all cells */
    double variance; /* variance of this power outside the lobes, in sums of powers */
    /* The energy that pairs of echoes add to the samples, and its variance. The unit of energy is
     * the energy of an echo with |peak|^2 = 1. */
    double energy, energy_variance;
} pnr_pairs;

/* least: a power; a pair whose cross terms are below it is left out. */
pnr_pairs pnr_noise_pairs(const struct pnr_detector *detector, const struct pnr_track *tracks,
                          size_t n, double least);

/* The sums from which the noise of a cell follows. */
typedef struct pnr_noise_sums {
    double power, cells; /* power P in the cells outside the lobes, without sidelobes; number of
                          * these cells */
    double lobes;        /* power of the model echoes in the lobes; 0 if their cross terms are not
                          * known exactly */
    double sidelobes;    /* power of the sidelobes of all echoes */
    double model;        /* relative error of the model of the sidelobes */
    double error2;       /* variance of `power` without the part that grows with the noise */
    double error_noise;  /* the part that grows with the noise, divided by the noise of a cell */
} pnr_noise_sums;

pnr_noise_sums pnr_noise_sum(const struct pnr_detector *detector,
                             const struct pnr_observed *observed,
                             const struct pnr_dwell_gains *gains, const struct pnr_track *tracks,
                             size_t n, const pnr_pairs *pairs);

void pnr_cells_fill(const struct pnr_detector *detector, double pfa_cell, pnr_cells *out);
pnr_noise pnr_noise_find(const struct pnr_detector *detector, const struct pnr_observed *observed,
                         const struct pnr_dwell_gains *gains, const struct pnr_track *tracks,
                         size_t n);
/* Returns the ratio of two estimates of the same noise that chance exceeds once in 3.5 million, as
 * 5 sigma of a normal variable. variance: the relative variance of the ratio, which is a gamma
 * variable of mean 1. Its upper tail is longer than the normal one: chance exceeds 1 + 5/2 once in
 * 2000, if the variance is 1/4. Formula: the cube root is nearly normal (Wilson and Hilferty,
 * 1931). */
double pnr_noise_most(double variance);
/* Changes *noise from the noise of a dwell to the noise of echo i. The residual of the echo's fit
 * may differ from the noise by more than chance. With CFAR the function then uses the residual as
 * the noise, because CFAR is for noise that differs from cell to cell. Without CFAR it sets
 * `misfit` if the residual is the greater one: another echo is too near, or the echo has another
 * waveform. */
void pnr_noise_around(const struct pnr_detector *detector, const struct pnr_track *tracks, size_t n,
                      size_t i, pnr_noise *noise);
/* Returns the noise power that lost samples add to the sidelobes of an echo, divided by the power
 * of its peak. This is the share of lost samples divided by the number of valid samples. */
double pnr_noise_holes(const struct pnr_detector *detector, const struct pnr_observed *observed);

#endif
