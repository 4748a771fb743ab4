/* SPDX-License-Identifier: MIT */
/* Replaces an echo by two close paths, if the 17 values around the echo show both. This is tried if
 * another echo is near, or if the residual of the echo's fit exceeds the noise. */
#include "detector/state.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

static double lag_of(const pnr_track *t)
{
    return (double)t->centre + t->fit.delay;
}

static double chip_of(const pnr_detector *detector)
{
    return (double)detector->radar->n_samples / (double)detector->radar->n_chips;
}

/* True if track b may be a path of the same pair as track a, or a remnant of that pair. A
 * remnant is a part of the residual power of the fit of one echo. It is weak, and lies within
 * three chips. */
static bool is_near(const pnr_detector *detector, const pnr_track *a, const pnr_track *b)
{
    const double chips =
        fabs(pnr_track_distance(detector, lag_of(a), lag_of(b))) / chip_of(detector);

    return a->code == b->code && chips < (b->power < 0.1 * a->power ? 3 : 1.5);
}

/* True if track i is the strongest of the tracks near it, and is not alone. It is not alone if
 * another track is near, or if the residual of its fit exceeds the noise. */
static bool is_wanted(const pnr_detector *detector, const pnr_track *tracks, size_t n, size_t i,
                      const pnr_noise *noise)
{
    pnr_noise own = *noise;
    bool is_alone = true;

    if (tracks[i].is_pair || tracks[i].power < 100 * noise->cell)
        return false;
    for (size_t k = 0; k < n; k++) {
        if (k == i || !is_near(detector, &tracks[i], &tracks[k]))
            continue;
        if (tracks[k].is_pair || tracks[k].power > tracks[i].power)
            return false;
        is_alone = false;
    }
    if (!is_alone)
        return true;
    pnr_noise_around(detector, tracks, n, i, &own);
    return own.misfit > 0;
}

/* Fits a pair to the values of track i and of the echoes near it. All farther echoes are
 * subtracted. Returns true if the pair explains these values, and the weaker path is
 * significant. */
static bool find_pair(const pnr_detector *detector, const pnr_track *tracks, size_t n, size_t i,
                      const pnr_noise *noise, pnr_fitted_pair *out)
{
    const pnr_track *t = &tracks[i];
    /* In noise alone, a second echo with three parameters explains 1.5 times the noise of a cell on
     * average. */
    const double least = 3, least_gain = 30;
    pnr_fitted single;
    const pnr_fitted *weaker = &out->echo[1];
    pnr_vector c;

    memcpy(c, t->rest[0], sizeof c);
    for (size_t k = 0; k < n; k++) {
        if (k == i || !is_near(detector, t, &tracks[k]))
            continue;
        pnr_others_add(detector, t, &tracks[k].told, 1, &c);
    }
    pnr_fit_find(t->code->fit, c, fmin(fmax(t->fit.delay, -1), 1), &single);
    return pnr_fit_pair_find(t->code->pair, c, out) &&
           out->gain - single.gain > least_gain * noise->cell &&
           fabs(out->echo[0].delay - out->echo[1].delay) < 1.5 * chip_of(detector) &&
           out->noise < noise->cell * pnr_noise_most(1 / out->cells + noise->variance) &&
           weaker->power > least * least * weaker->amplitude_variance * noise->cell;
}

/* Replaces track i by the pair, and removes the other tracks near track i. Returns the new number
 * of tracks. */
static size_t put_pair(const pnr_detector *detector, pnr_track *tracks, size_t n, size_t i,
                       const pnr_fitted_pair *pair, const pnr_dwell_gains *gains)
{
    const pnr_track whole = tracks[i];
    size_t left = 0;

    for (size_t k = 0; k < n; k++)
        if (k != i && !is_near(detector, &whole, &tracks[k]))
            tracks[left++] = tracks[k];
    for (int e = 0; e < 2; e++) {
        pnr_track *t = &tracks[left++];

        *t = whole;
        t->fit = pair->echo[e];
        t->is_pair = true;
        t->pair_noise = pair->noise;
        t->pair_cells = pair->cells;
        pnr_others_note(detector, t);
        pnr_track_measure(detector, gains, t);
    }
    for (size_t k = 0; k < left; k++) {
        tracks[k].c = &tracks[k].row[0];
        tracks[k].rest = &tracks[k].row[1];
    }
    return left;
}

/* Fits all echoes outside of pairs again, because their values contained remnants of the new pair.
 * Drops echoes whose gain is less than `least`. Returns the number of tracks left. */
static size_t refit_others(const pnr_detector *detector, const pnr_dwell_gains *gains,
                           pnr_track *tracks, size_t n, double least, double cell)
{
    size_t left = 0;

    for (size_t k = 0; k < n; k++)
        pnr_others_subtract(detector, &tracks[k], tracks, n, cell);
    for (size_t k = 0; k < n; k++) {
        if (!tracks[k].is_pair && pnr_track_fit(detector, &tracks[k], cell) < least)
            continue;
        if (!tracks[k].is_pair)
            pnr_others_note(detector, &tracks[k]);
        pnr_track_measure(detector, gains, &tracks[k]);
        tracks[left++] = tracks[k];
    }
    for (size_t k = 0; k < left; k++) {
        tracks[k].c = &tracks[k].row[0];
        tracks[k].rest = &tracks[k].row[1];
    }
    for (size_t k = 0; k < left; k++)
        pnr_others_subtract(detector, &tracks[k], tracks, left, cell);
    return left;
}

bool pnr_track_split(const pnr_detector *detector, const pnr_dwell_gains *gains, double ratio,
                     const pnr_noise *noise, pnr_track *tracks, size_t *n)
{
    bool is_split = false;

    if (detector->has_rows || detector->is_sum || detector->plan->linear ||
        detector->least_squares != NULL || detector->plan->cfar.kind != PNR_CFAR_OFF ||
        !pnr_cross_has_overlap(detector->cross))
        return false;
    for (size_t i = 0; i < *n && *n < PNR_MAX_CANDIDATES; i++) {
        pnr_fitted_pair pair;

        if (!is_wanted(detector, tracks, *n, i, noise) ||
            !find_pair(detector, tracks, *n, i, noise, &pair))
            continue;
        *n = put_pair(detector, tracks, *n, i, &pair, gains);
        *n = refit_others(detector, gains, tracks, *n, ratio * noise->cell, noise->cell);
        is_split = true;
        i = (size_t)-1; /* the tracks have moved: begin again */
    }
    return is_split;
}
