/* SPDX-License-Identifier: MIT */
/* Fits one track to its values. Computes amplitude, power and noise from the fit. */
#include "detector/state.h"

#include <math.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    TURNS = 2 /* number of repeated fits after a least-squares filter */
};

static const double strong = 100; /* least SNR for which the fit is repeated */

/* Returns the lag at which the fit starts, relative to the centre. For a cell at a half lag this is
 * 1/2. Otherwise it is the vertex of the parabola through |c| at the cell's lag and at the two lags
 * beside it. */
static double first_guess(const pnr_detector *detector, const pnr_candidate *candidate,
                          const double complex *c)
{
    if (candidate->cell % detector->plan->oversample != 0)
        return 0.5;
    double p[3];

    for (int i = 0; i < 3; i++)
        p[i] = sqrt(pnr_power(c[MIDDLE - 1 + i]));
    return pnr_parabola_vertex(p[0], p[1], p[2]);
}

/* Finds the likeliest echo in the values c. start: lags from the centre. is_near: in a map the
 * search begins at the track's previous fit, also in Doppler. */
static void fit_values(const pnr_detector *detector, pnr_track *t, const pnr_vector *c,
                       double start, bool is_near, double cell)
{
    const pnr_patch_place place = pnr_track_place(detector, t);
    pnr_patch_echo from = {.code = place.code, .lag = (double)t->centre + start};
    pnr_patch_fitted found;

    if (!detector->has_rows) {
        pnr_fit_find(t->code->fit, c[0], start, &t->fit);
        if (detector->is_sum)
            t->share = sqrt(pnr_power(pnr_waveform_at(t->code->autocorrelation, t->fit.delay)));
        return;
    }
    if (is_near)
        from = pnr_track_echo(detector, t);
    pnr_sign_begin(detector, t);
    pnr_fit_patch_find(detector->map, &place, c, &from, cell, &found);
    pnr_sign_end(detector, t);
    t->fit = found.at;
    t->bins = found.bins;
    t->bins_variance = found.bins_variance;
    t->anchor = found.anchor;
    t->share = found.centre;
}

double pnr_track_fit(const pnr_detector *detector, pnr_track *t, double cell)
{
    const double start =
        t->is_told ? t->fit.delay : first_guess(detector, t->candidate, t->rest[pnr_track_row(t)]);

    cell *= t->loss;
    fit_values(detector, t, t->rest, start, t->is_told, cell);
    for (int turn = 0;
         turn < TURNS && detector->least_squares != NULL && t->fit.gain > strong * cell; turn++) {
        pnr_patch whole;

        memcpy(whole, t->rest, (size_t)t->n_rows * sizeof *whole);
        pnr_track_add_missing(detector, t, cell, whole);
        fit_values(detector, t, whole, t->fit.delay, true, cell);
    }
    return t->fit.gain;
}

/* Returns |A|^2 of a track. In a dwell of one look the peak is |a| = |A| g R(0), where g is the
 * gain of the dwell. In a sum of powers it is a = |A|^2 (sum g_p^2) R(0)^2 share / sqrt(P), where
 * g_p is the gain of look p. sqrt(P) is the value in the centre without the other echoes. The sum
 * of g_p^2 is g^2 / looks if all looks lost equally many samples. */
double pnr_track_squared_amplitude(const pnr_detector *detector, const pnr_dwell_gains *gains,
                                   const pnr_track *t)
{
    const double peak = sqrt(pnr_power(t->fit.peak)) / detector->energy_of_code;
    const double g = gains->amplitude;

    if (!detector->is_sum)
        return peak * peak / (g * g);

    const double own = sqrt(pnr_power((double)t->candidate->value[MIDDLE][0] - t->others));

    return peak * sqrt(t->loss) * own * gains->looks /
           (g * g * detector->energy_of_code * t->share);
}

void pnr_track_measure(const pnr_detector *detector, const pnr_dwell_gains *gains, pnr_track *t)
{
    const double scale = gains->amplitude * detector->energy_of_code;

    t->amplitude2 = pnr_track_squared_amplitude(detector, gains, t);
    t->power = detector->is_sum ? t->amplitude2 * scale * scale / gains->looks
                                : pnr_power(t->fit.peak) / t->loss;
}

pnr_residual pnr_track_noise(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                             size_t i, double cell)
{
    const pnr_track *t = &tracks[i];
    const pnr_patch_place place = pnr_track_place(detector, t);
    const pnr_patch_fitted found = {.at = t->fit, .bins = t->bins, .anchor = t->anchor};
    pnr_residual rest = {.noise = t->pair_noise, .cells = t->pair_cells};
    pnr_vector *values = t->rest;
    pnr_patch c;

    if (t->is_pair) {
        rest.chance = 1 / rest.cells;
        return rest;
    }
    if (detector->has_rows && !detector->is_sum && cell < 0.03 * t->cell)
        pnr_others_subtract(detector, t, tracks, n, cell);
    if (detector->least_squares != NULL) {
        memcpy(c, t->rest, (size_t)t->n_rows * sizeof *c);
        pnr_track_add_missing(detector, t, cell, c);
        values = c;
    }
    if (!detector->has_rows) {
        rest = pnr_fit_noise(t->code->fit, values[0], &t->fit);
    } else {
        pnr_sign_begin(detector, t);
        rest.noise = pnr_fit_patch_noise(detector->map, &place, values, &found, cell, &rest.cells);
        rest.chance = 1 / rest.cells;
        pnr_sign_end(detector, t);
    }
    rest.noise /= t->loss;
    return rest;
}
