/* SPDX-License-Identifier: MIT */
/* Finds the echoes among the candidates: one after the other, then in passes over all of them. */
#include "detector/candidate.h"

#include "base/clock.h"

#include <math.h>

enum { MAX_PASSES = 4 /* greatest number of passes over the fits of all echoes */ };

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

/* Returns the noise power of one cell of a map, from the energy of the samples minus the energy of
 * the echoes found. */
static double cell_without(const pnr_detector *detector, const pnr_dwell_view *view,
                           const pnr_track *tracks, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    double energy = dwell->energy;

    for (size_t i = 0; i < n; i++)
        energy -= pnr_track_squared_amplitude(detector, &view->gains, &tracks[i]) *
                  detector->energy_of_code * (double)dwell->n_valid /
                  (double)detector->radar->n_samples;
    energy = fmax(energy, 1e-9 * dwell->energy);
    return fmin(view->cell,
                view->gains.noise * detector->energy_of_code * energy / (double)dwell->n_valid);
}

/* Fits the tracks again after the weaker echoes are subtracted, too. A track is fitted again only
 * if its `rest` has changed. The noise is known only after all echoes are found. If `rest`
 * of a track was computed for more than twice this noise, it is computed again: weaker echoes,
 * which were negligible beside the greater noise, are now subtracted. */
static void refine_tracks(const pnr_detector *detector, double cell, pnr_track *tracks, size_t n)
{
    bool moved = true;

    for (size_t i = 0; i < n; i++) {
        if (tracks[i].cell <= 2 * cell)
            continue;
        tracks[i].is_dirty = true;
        tracks[i].cell = cell;
        pnr_others_subtract(detector, &tracks[i], tracks, n, cell);
    }
    for (int pass = 0; pass < MAX_PASSES && moved; pass++) {
        moved = false;
        for (size_t i = 0; i < n; i++) {
            if (!tracks[i].is_dirty)
                continue;
            tracks[i].is_dirty = false;
            pnr_track_fit(detector, &tracks[i], cell);
            pnr_others_tell(detector, tracks, n, i, cell);
            moved = true;
        }
    }
}

/* Takes the mean power of the sidelobes of the latest track from the noise in `view`. The floor of
 * one row includes this power. Strong sidelobes are not known well enough, so a tenth of the floor
 * is left. */
static void lower_floor(const pnr_detector *detector, pnr_dwell_view *view, const pnr_track *t)
{
    const pnr_lobe *lobe = &t->code->lobe;
    const double sidelobes = fmax(lobe->total - lobe->inside[PNR_LOBE_STEPS], 0);

    view->cell -= pnr_power(t->fit.peak) / t->loss * sidelobes / (double)detector->plan->n_samples;
    view->cell = fmax(view->cell, 0.1 * view->observed->dwell->floor);
}

/* Updates the noise in `view` of a map. If it is below half of the earlier noise, subtracts the
 * other echoes from the last track again, and fits this track again: a lower noise demands a more
 * accurate model of the echoes. */
static void lower_cell(const pnr_detector *detector, pnr_dwell_view *view, pnr_track *tracks,
                       size_t n)
{
    pnr_track *t = &tracks[n - 1];
    const double cell = cell_without(detector, view, tracks, n);
    const bool is_less = cell < 0.5 * view->cell;

    view->cell = cell;
    if (!is_less || detector->is_sum)
        return;
    t->cell = cell;
    pnr_others_subtract(detector, t, tracks, n - 1, cell * t->loss);
    pnr_track_fit(detector, t, cell);
}

/* Fills `order` with the indices of the candidates, the strongest first. Of equal candidates the
 * one with the lower index is first. */
static void sort_candidates(const pnr_observed *observed, uint8_t order[PNR_MAX_CANDIDATES])
{
    const pnr_candidate *candidates = observed->candidates;

    for (size_t i = 0; i < observed->dwell->n_candidates; i++) {
        size_t at = i;

        for (; at > 0 && candidates[order[at - 1]].power < candidates[i].power; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

/* True if more echoes than wanted are found in the gate, and a candidate of this power cannot be
 * among the strongest. The peak of the candidate may lie between two lags. So the peak may have 4
 * dB more power than the cell, or 1 dB more with half lags. */
static bool is_enough(const pnr_detector *detector, const pnr_track *tracks, size_t n, double power)
{
    const double peak = power * (detector->plan->oversample == 1 ? 2.5 : 1.26);
    size_t n_inside = 0, n_stronger = 0;

    for (size_t i = 0; i < n; i++) {
        const bool is_inside = pnr_track_is_inside(detector, tracks[i].candidate);

        n_inside += is_inside;
        n_stronger += is_inside && tracks[i].fit.power > peak * tracks[i].loss;
    }
    return n_inside > detector->max_echoes && n_stronger >= detector->max_echoes;
}

/* If some tracks have signs, fits all tracks again, and removes tracks without signs that the
 * tracks with signs explain. Returns the number of tracks left. */
static size_t judge_again(const pnr_detector *detector, const pnr_dwell_view *view,
                          pnr_track *tracks, size_t n)
{
    const double cell = view->cell;
    size_t n_signs = 0, left = 0;

    for (size_t i = 0; i < n; i++)
        n_signs += tracks[i].signs.changes != 0;
    if (n_signs == 0)
        return n;
    for (size_t i = 0; i < n; i++)
        pnr_others_note(detector, &tracks[i]);
    for (size_t i = 0; i < n; i++) {
        pnr_track *t = &tracks[i];
        const double least =
            pnr_candidate_least(detector, view->observed->dwell, t->candidate) * t->loss;

        pnr_others_subtract(detector, t, tracks, n, cell * t->loss);
        if (!(pnr_track_fit(detector, t, cell) > least) && t->signs.changes == 0)
            t->told.echo.peak = 0;
        else
            pnr_others_note(detector, t);
    }
    for (size_t i = 0; i < n; i++)
        if (tracks[i].told.echo.peak != 0)
            tracks[left++] = tracks[i];
    for (size_t i = 0; i < left && left < n; i++) {
        pnr_others_subtract(detector, &tracks[i], tracks, left, cell * tracks[i].loss);
        (void)pnr_track_fit(detector, &tracks[i], cell);
    }
    return left;
}

static bool is_late(const pnr_observed *observed)
{
    return observed->until_ns > 0 && pnr_clock_ns() > observed->until_ns;
}

size_t pnr_track_all(const pnr_detector *detector, const pnr_observed *observed, pnr_track *tracks,
                     bool *is_coarse)
{
    const double floor = observed->dwell->floor;
    pnr_dwell_view view = {observed, pnr_detector_gains(detector, observed), floor, floor};
    uint8_t order[PNR_MAX_CANDIDATES];
    size_t n = 0;

    *is_coarse = false;
    sort_candidates(observed, order);
    for (size_t k = 0; k < observed->dwell->n_candidates; k++) {
        const size_t best = order[k];

        if (n > 0 && (*is_coarse = is_late(observed)))
            break;

        if (is_enough(detector, tracks, n, (double)observed->candidates[best].power))
            break;
        if (!pnr_candidate_is_echo(detector, &view, best, tracks, n))
            continue;
        n++;
        if (detector->has_rows)
            lower_cell(detector, &view, tracks, n);
        else if (!detector->is_sum)
            lower_floor(detector, &view, &tracks[n - 1]);
        if (!detector->is_sum)
            pnr_others_tell(detector, tracks, n, n - 1, view.cell);
    }
    if (!detector->is_sum && n > 1 && !(*is_coarse = *is_coarse || is_late(observed)))
        refine_tracks(detector, view.cell, tracks, n);
    n = judge_again(detector, &view, tracks, pnr_sign_correct(detector, tracks, n, view.cell));
    for (size_t i = 0; i < n; i++)
        pnr_track_measure(detector, &view.gains, &tracks[i]);
    return n;
}

void pnr_track_all_again(const pnr_detector *detector, const pnr_observed *observed, double cell,
                         pnr_track *tracks, size_t n)
{
    const pnr_dwell_view view = {observed, pnr_detector_gains(detector, observed), cell, cell};

    for (size_t i = 0; i < n; i++) {
        const size_t index = (size_t)(tracks[i].candidate - observed->candidates);

        pnr_candidate_load(detector, &view, index, &tracks[i]);
        pnr_others_subtract(detector, &tracks[i], tracks, 0, cell);
        pnr_track_fit(detector, &tracks[i], cell);
        pnr_track_measure(detector, &view.gains, &tracks[i]);
    }
}
