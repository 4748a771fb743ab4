/* SPDX-License-Identifier: MIT */
/* Fits each candidate after the others are subtracted. Rejects candidates that stronger echoes
 * explain. */
#include "detector/state.h"

#include <math.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    MAX_PASSES = 4, /* passes over the fits of all echoes */
    TURNS = 2       /* iterations of a fit that adds what a filter removed */
};

/* The power of a change, in cells of noise, that is not worth another fit. */
static const double negligible = 1e-6;
static const double strong = 100; /* least S at which the part that a filter removed matters */

/* The vertex of the parabola through (-1, a), (0, b), (1, c). If b is the greatest, it lies within
 * -1/2..1/2. */
static double parabola_vertex(double a, double b, double c)
{
    const double curvature = a - 2 * b + c;

    return curvature < 0 ? 0.5 * (a - c) / curvature : 0;
}

/* Returns the start of the climb, in lags: the vertex of |c| over the cell's lag and its
 * neighbours, or 1/2 for a cell at a half lag. */
static double first_guess(const pnr_detector *detector, const pnr_candidate *candidate,
                          const double complex *c)
{
    if (candidate->cell % detector->plan->oversample != 0)
        return 0.5;
    double p[3];

    for (int i = 0; i < 3; i++)
        p[i] = sqrt(pnr_power(c[MIDDLE - 1 + i]));
    return p[1] >= p[0] && p[1] >= p[2] ? parabola_vertex(p[0], p[1], p[2]) : 0;
}

/* --- the candidates of a dwell --- */

/* Data that all tracks of a dwell share. */
typedef struct dwell_view {
    const pnr_observed *observed;
    pnr_dwell_gains gains;
    double cell; /* noise power of one cell, without the echoes found so far */
} dwell_view;

pnr_dwell_gains pnr_detector_gains(const pnr_detector *detector, const pnr_observed *observed)
{
    const pnr_dwell *dwell = observed->dwell;
    const double windows = (double)dwell->n_valid / (double)detector->radar->n_samples;

    if (detector->map == NULL)
        return (pnr_dwell_gains){windows, windows, detector->is_sum ? (double)dwell->n_periods : 1};
    pnr_fit_patch_begin(detector->map, observed->lost, observed->nonfinite);
    return (pnr_dwell_gains){pnr_fit_patch_gain(detector->map),
                             pnr_fit_patch_noise_gain(detector->map),
                             pnr_fit_patch_looks(detector->map)};
}

/* Fills a track from a candidate. An incoherent dwell has c_j = sum_p c_p[j] conj(c_p[0]) /
 * sqrt(P). The mean of the noise in c_j, floor rho(j) / sqrt(P), is subtracted. */
static void load_candidate(const pnr_detector *detector, const dwell_view *view, size_t index,
                           pnr_track *t)
{
    const pnr_candidate *candidate = &view->observed->candidates[index];

    t->candidate = candidate;
    t->code = &detector->codes[candidate->code];
    t->centre = candidate->cell / detector->plan->oversample;
    t->bins = detector->has_rows ? pnr_fit_patch_bins(detector->map, candidate->row) : 0;
    t->bins_variance = 0;
    t->loss = pnr_track_loss(detector, t);

    const double floor = view->observed->dwell->floor * t->loss;

    if (detector->has_rows) {
        const pnr_patch_place place = pnr_track_place(detector, t);
        const float *values = view->observed->patches + index * sizeof(pnr_patch) / sizeof(double);
        float restored[2 * J * J];

        if (detector->least_squares != NULL) {
            pnr_track_restore(detector, t, values, J, restored);
            values = restored;
        }
        pnr_fit_patch_load(detector->map, &place, values, floor, t->patch);
        return;
    }
    const float *values = &candidate->value[0][0];
    float restored[2 * J];

    if (detector->least_squares != NULL) {
        pnr_track_restore(detector, t, values, 1, restored);
        values = restored;
    }
    for (int j = 0; j < J; j++)
        t->c[j] = (double complex)((const float complex *)values)[j];

    const double centre = creal(t->c[MIDDLE]);

    for (int j = 0; j < J && detector->is_sum && centre > 0; j++)
        t->c[j] -= floor / centre * t->code->rho[J + j - MIDDLE];
}

/* --- one candidate among others --- */

static void take_candidate(const pnr_patch_fitted *found, pnr_track *t)
{
    t->fit = found->at;
    t->bins = found->bins;
    t->bins_variance = found->bins_variance;
    t->share = found->centre;
}

static void fit_patch(const pnr_detector *detector, pnr_track *t, const pnr_track *others,
                      size_t n_others, double cell)
{
    const pnr_patch_place place = pnr_track_place(detector, t);
    pnr_patch_fitted found;
    pnr_patch rest;

    cell *= t->loss;
    pnr_others_patch(detector, t, others, n_others, cell, rest);
    pnr_fit_patch_find(detector->map, &place, rest,
                       first_guess(detector, t->candidate, rest[MIDDLE]), cell, &found);
    take_candidate(&found, t);
    for (int turn = 0;
         turn < TURNS && detector->least_squares != NULL && t->fit.gain > strong * cell; turn++) {
        pnr_vector missing, rows;
        pnr_patch whole;

        pnr_track_missing(detector, t, missing);
        pnr_track_rows(detector, t, t, cell, rows);
        memcpy(whole, rest, sizeof whole);
        pnr_track_add_rows(rows, missing, whole);
        pnr_fit_patch_find(detector->map, &place, whole, t->fit.delay, cell, &found);
        take_candidate(&found, t);
    }
}

/* Adds the part of the echo that the filter removed, and fits again. */
static void fit_whole(const pnr_detector *detector, pnr_track *t, const double complex *c,
                      double cell)
{
    for (int turn = 0; turn < TURNS && t->fit.gain > strong * t->loss * cell; turn++) {
        pnr_vector whole, missing;

        pnr_track_missing(detector, t, missing);
        memcpy(whole, c, sizeof whole);
        pnr_track_add(t->fit.peak, missing, whole);
        pnr_fit_find(t->code->fit, whole, t->fit.delay, &t->fit);
    }
}

/* Fits one candidate among the others; returns its gain. */
static double fit_among(const pnr_detector *detector, pnr_track *t, const pnr_track *others,
                        size_t n_others, double cell)
{
    if (detector->has_rows) {
        fit_patch(detector, t, others, n_others, cell);
        return t->fit.gain;
    }
    pnr_fit_find(t->code->fit, t->rest, first_guess(detector, t->candidate, t->rest), &t->fit);
    if (detector->least_squares != NULL)
        fit_whole(detector, t, t->rest, cell);
    t->share = sqrt(pnr_power(pnr_waveform_at(t->code->autocorrelation, t->fit.delay)));
    return t->fit.gain;
}

/* The lags of a patch that represent a candidate's cell: one, or the two around a half lag. */
static int lags_of(const pnr_detector *detector, const pnr_track *t)
{
    return t->candidate->cell % detector->plan->oversample != 0 ? 2 : 1;
}

/* Returns the power of the echo `other` at the fitted peak of track t. In a map: at the lags of the
 * cell of t's candidate. */
static double power_at(const pnr_detector *detector, const pnr_track *t, const pnr_track *other,
                       double cell)
{
    if (detector->least_squares != NULL && fabs(pnr_track_gates(detector, t, other)) > MIDDLE)
        return 0;
    if (detector->has_rows) {
        const pnr_patch_place place = pnr_track_place(detector, t);
        const pnr_patch_echo echo = pnr_track_echo(detector, other);

        return pnr_fit_patch_power(detector->map, &place, &echo, cell, lags_of(detector, t));
    }
    if (t->code != other->code)
        return 0;

    const double distance = pnr_track_distance(detector, (double)t->centre + t->fit.delay,
                                               (double)other->centre + other->fit.delay);

    return pnr_power(pnr_waveform_at(t->code->autocorrelation, distance)) *
           pnr_power(other->fit.peak);
}

/* True if the sidelobes of stronger echoes explain a candidate. The function is for sums of powers.
 * They have no phases, so the candidate must exceed the sidelobes by 6 dB. In a map, noise may add
 * to the sidelobes in phase. There the candidate's amplitude must also exceed the amplitude of the
 * sidelobes plus the amplitude of the threshold. */
static bool is_sidelobe(const pnr_detector *detector, const dwell_view *view, const pnr_track *t,
                        const pnr_track *others, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    const double least = detector->plan->threshold[dwell->n_periods - 1] * dwell->floor;
    double seen = detector->has_rows ? 0 : pnr_power(t->fit.peak), power = 0;

    /* In a map both powers are taken in the cell of the candidate: a sidelobe does not have the
     * shape of an echo, so its fit may climb far away. */
    for (int j = 0; detector->has_rows && j < lags_of(detector, t); j++)
        seen += pnr_power(t->patch[MIDDLE][MIDDLE + j]);
    for (size_t i = 0; i < n; i++)
        power += power_at(detector, t, &others[i], view->cell);
    if (detector->has_rows && (double)t->candidate->power < pow(sqrt(power) + sqrt(least), 2))
        return true;
    return seen < 4 * power;
}

/* --- all candidates of a dwell --- */

/* |A|^2 of a track, from the peak |a| = |A| g R(0). In an incoherent dwell
 * a = |A|^2 (sum g_p^2) R(0)^2 share / sqrt(P), where sum g_p^2 = g^2 / looks when all looks lost
 * equally many samples. */
static double squared_amplitude(const pnr_detector *detector, const pnr_dwell_gains *gains,
                                const pnr_track *t)
{
    const double peak = sqrt(pnr_power(t->fit.peak)) / detector->energy_of_code;
    const double g = gains->amplitude;

    if (!detector->is_sum)
        return peak * peak / (g * g);
    return peak * sqrt(t->loss) * (double)t->candidate->value[MIDDLE][0] * gains->looks /
           (g * g * detector->energy_of_code * t->share);
}

static void measure_track(const pnr_detector *detector, const pnr_dwell_gains *gains, pnr_track *t)
{
    const double scale = gains->amplitude * detector->energy_of_code;

    t->amplitude2 = squared_amplitude(detector, gains, t);
    t->power = detector->is_sum ? t->amplitude2 * scale * scale / gains->looks
                                : pnr_power(t->fit.peak) / t->loss;
}

/* The noise power of one cell of a map, from the energy minus that of the echoes found. */
static double cell_without(const pnr_detector *detector, const dwell_view *view,
                           const pnr_track *tracks, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    double energy = dwell->energy;

    for (size_t i = 0; i < n; i++)
        energy -= squared_amplitude(detector, &view->gains, &tracks[i]) * detector->energy_of_code *
                  (double)dwell->n_valid / (double)detector->radar->n_samples;
    energy = fmax(energy, 1e-9 * dwell->energy);
    return fmin(view->cell,
                view->gains.noise * detector->energy_of_code * energy / (double)dwell->n_valid);
}

/* Fits each track again after the weaker ones are subtracted, too, until no peak moves by more than
 * a small part of the noise. */
static void refine_patches(const pnr_detector *detector, const dwell_view *view, pnr_track *tracks,
                           size_t n)
{
    const double least = 1e-3 * view->cell;
    bool moved = true;

    for (int pass = 0; pass < MAX_PASSES && moved; pass++) {
        moved = false;
        for (size_t i = 0; i < n; i++) {
            const double complex before = tracks[i].fit.peak;

            fit_among(detector, &tracks[i], tracks, n, view->cell);

            const double complex peak = tracks[i].fit.peak;

            moved = moved || pnr_power(peak - before) > 1e-14 * pnr_power(peak) + least;
        }
    }
}

/* Does the same for maps of one row. Each track keeps its values without the other echoes. It is
 * fitted again only when these values have changed. */
static void refine_rows(const pnr_detector *detector, const dwell_view *view, pnr_track *tracks,
                        size_t n)
{
    bool moved = true;

    for (int pass = 0; pass < MAX_PASSES && moved; pass++) {
        moved = false;
        for (size_t i = 0; i < n; i++) {
            if (!tracks[i].is_dirty)
                continue;
            tracks[i].is_dirty = false;
            fit_among(detector, &tracks[i], tracks, n, view->cell);
            pnr_others_tell(detector, tracks, n, i, negligible * view->cell);
            moved = true;
        }
    }
}

/* Fits the last track again when there is less noise than assumed, because then the exact sums may
 * be needed. */
static void lower_cell(const pnr_detector *detector, dwell_view *view, pnr_track *tracks, size_t n)
{
    const double cell = cell_without(detector, view, tracks, n);
    const bool is_less = cell < 0.5 * view->cell;

    view->cell = cell;
    if (is_less && !detector->is_sum)
        fit_among(detector, &tracks[n - 1], tracks, n, cell);
}

/* The power that a candidate must have after the stronger ones are subtracted: the threshold. The
 * threshold of CFAR is not known here: half of the candidate's own power replaces it. */
static double least_gain(const pnr_detector *detector, const pnr_dwell *dwell,
                         const pnr_candidate *candidate)
{
    return detector->plan->cfar.kind == PNR_CFAR_OFF
               ? detector->plan->threshold[dwell->n_periods - 1] * dwell->floor
               : 0.5 * (double)candidate->power;
}

/* The strongest candidate that is not yet a track. */
static size_t strongest_candidate(const pnr_observed *observed, const bool *taken)
{
    float power = -1;
    size_t best = 0;

    for (size_t i = 0; i < observed->dwell->n_candidates; i++)
        if (!taken[i] && observed->candidates[i].power > power)
            power = observed->candidates[best = i].power;
    return best;
}

/* True if the others leave too little of a candidate in a map for an echo of the power `least`. The
 * 3 x 3 cells around the candidate hold two thirds of an echo wherever it lies between them. If
 * they hold less than half of `least`, no fit is needed. A fit takes a hundred times as long. */
static bool is_explained(const pnr_detector *detector, const pnr_track *t, const pnr_track *others,
                         size_t n, double cell, double least)
{
    pnr_patch rest;
    double power = 0;

    pnr_others_patch(detector, t, others, n, cell * t->loss, rest);
    for (int r = MIDDLE - 1; r <= MIDDLE + 1; r++)
        for (int j = MIDDLE - 1; j <= MIDDLE + 1 + (lags_of(detector, t) > 1); j++)
            power += pnr_power(rest[r][j]);
    return power < 0.5 * least;
}

/* True when more echoes than wanted are found, and a candidate of this power cannot be among the
 * strongest: between two lags its peak is at most 4 dB above its cell, with half lags 1 dB. */
static bool is_enough(const pnr_detector *detector, const pnr_track *tracks, size_t n, double power)
{
    const double peak = power * (detector->plan->oversample == 1 ? 2.5 : 1.26);
    size_t n_stronger = 0;

    for (size_t i = 0; i < n; i++)
        n_stronger += tracks[i].fit.power > peak * tracks[i].loss;
    return n > detector->max_echoes && n_stronger >= detector->max_echoes;
}

/* Fits a candidate as the next track; returns whether it is an echo. The strongest always is. */
static bool is_echo(const pnr_detector *detector, const dwell_view *view, size_t index,
                    pnr_track *tracks, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    const double least = least_gain(detector, dwell, &view->observed->candidates[index]);
    const double tolerance = negligible * view->cell;
    pnr_track *t = &tracks[n];

    t->patch = detector->has_rows ? detector->patches[n] : NULL;
    load_candidate(detector, view, index, t);
    if (!detector->has_rows)
        pnr_others_subtract(detector, t, tracks, detector->is_sum ? 0 : n, tolerance);
    if (detector->is_sum) {
        fit_among(detector, t, NULL, 0, view->cell);
        return n == 0 || !is_sidelobe(detector, view, t, tracks, n);
    }
    if (detector->has_rows && n > 0 &&
        is_explained(detector, t, tracks, n, view->cell, least * t->loss))
        return false;
    if (!(fit_among(detector, t, tracks, n, view->cell) > least * t->loss) && n > 0)
        return false;
    if (!detector->has_rows)
        pnr_others_tell(detector, tracks, n + 1, n, tolerance);
    return true;
}

size_t pnr_track_all(const pnr_detector *detector, const pnr_observed *observed, pnr_track *tracks)
{
    dwell_view view = {observed, pnr_detector_gains(detector, observed), observed->dwell->floor};
    bool taken[PNR_MAX_CANDIDATES] = {false};
    size_t n = 0;

    for (size_t k = 0; k < observed->dwell->n_candidates; k++) {
        const size_t best = strongest_candidate(observed, taken);

        if (is_enough(detector, tracks, n, (double)observed->candidates[best].power))
            break;
        taken[best] = true;
        if (!is_echo(detector, &view, best, tracks, n))
            continue;
        n++;
        if (detector->has_rows)
            lower_cell(detector, &view, tracks, n);
    }
    if (!detector->is_sum && n > 1)
        (detector->has_rows ? refine_patches : refine_rows)(detector, &view, tracks, n);
    for (size_t i = 0; i < n; i++)
        measure_track(detector, &view.gains, &tracks[i]);
    return n;
}

double pnr_track_noise(const pnr_detector *detector, const pnr_track *tracks, size_t n, size_t i,
                       double cell, double *cells)
{
    const pnr_track *t = &tracks[i];

    if (detector->has_rows) {
        const pnr_patch_place place = pnr_track_place(detector, t);
        const pnr_patch_fitted found = {.at = t->fit, .bins = t->bins};
        pnr_patch rest;

        pnr_others_patch(detector, t, tracks, n, cell, rest);
        if (detector->least_squares != NULL) {
            pnr_vector missing, rows;

            pnr_track_missing(detector, t, missing);
            pnr_track_rows(detector, t, t, cell, rows);
            pnr_track_add_rows(rows, missing, rest);
        }
        return pnr_fit_patch_noise(detector->map, &place, rest, &found, cell, cells) / t->loss;
    }

    pnr_vector c;

    memcpy(c, t->rest, sizeof c);
    if (detector->least_squares != NULL) {
        pnr_vector missing;

        pnr_track_missing(detector, t, missing);
        pnr_track_add(t->fit.peak, missing, c);
    }
    return pnr_fit_noise(t->code->fit, c, &t->fit, cells) / t->loss;
}
