/* SPDX-License-Identifier: MIT */
/* Fits each candidate after the other echoes are subtracted. Rejects candidates that stronger
 * echoes explain. */
#include "detector/state.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    MAX_PASSES = 4 /* greatest number of passes over the fits of all echoes */
};

/* --- the candidates of a dwell --- */

/* Data that all tracks of a dwell share. */
typedef struct dwell_view {
    const pnr_observed *observed;
    pnr_dwell_gains gains;
    double cell; /* noise power of one cell, without the echoes found so far */
    double mean; /* mean noise power of a cell, which load_candidate subtracts in sums of powers */
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

/* Fills a track from a candidate. In a sum of powers the value j of a candidate is the sum over the
 * looks of c[j] conj(c[0]) / sqrt(P), see Neighbours in engine/plan.h. c[0] is the centre value of
 * a look, and P is the power at the centre. The noise adds view->mean rho(j) / sqrt(P) to the value
 * on average, where rho(j) = R(j)/R(0). The function subtracts this mean. */
static void load_candidate(const pnr_detector *detector, const dwell_view *view, size_t index,
                           pnr_track *t)
{
    const pnr_candidate *candidate = &view->observed->candidates[index];

    t->candidate = candidate;
    t->code = &detector->codes[candidate->code];
    t->centre = candidate->cell / detector->plan->oversample;
    t->bins = detector->has_rows ? pnr_fit_patch_bins(detector->map, candidate->row) : 0;
    t->bins_variance = 0;
    t->others = t->disturbed_delay = t->disturbed_amplitude = t->noise_of_others = 0;
    t->loss = pnr_track_loss(detector, t);

    const double mean = view->mean * t->loss;

    if (detector->has_rows) {
        const pnr_patch_place place = pnr_track_place(detector, t);
        const float *values = view->observed->patches + index * sizeof(pnr_patch) / sizeof(double);
        float restored[2 * J * J];

        if (detector->least_squares != NULL) {
            pnr_track_restore(detector, t, values, J, restored);
            values = restored;
        }
        pnr_fit_patch_load(detector->map, &place, values, mean, t->c);
        return;
    }
    const float *values = &candidate->value[0][0];
    float restored[2 * J];

    if (detector->least_squares != NULL) {
        pnr_track_restore(detector, t, values, 1, restored);
        values = restored;
    }
    for (int j = 0; j < J; j++)
        t->c[0][j] = (double complex)((const float complex *)values)[j];

    const double centre = creal(t->c[0][MIDDLE]);

    for (int j = 0; j < J && detector->is_sum && centre > 0; j++)
        t->c[0][j] -= mean / centre * t->code->rho[J + j - MIDDLE];
}

/* --- one candidate among others --- */

/* Returns the number of lags of a patch that represent a candidate's cell: 2 for a cell at a half
 * lag, else 1. */
static int lags_of(const pnr_detector *detector, const pnr_track *t)
{
    return t->candidate->cell % detector->plan->oversample != 0 ? 2 : 1;
}

/* Returns the power of the echo `other` in the cell of t's candidate. In a map it is the sum of the
 * powers at the lags of this cell. */
static double power_at(const pnr_detector *detector, const pnr_track *t, const pnr_track *other,
                       double cell)
{
    const double lag = (double)other->centre + other->fit.delay;

    if (detector->least_squares != NULL && fabs(pnr_track_gates(detector, t, lag)) > MIDDLE)
        return 0;
    if (detector->has_rows) {
        const pnr_patch_place place = pnr_track_place(detector, t);
        const pnr_patch_echo echo = pnr_track_echo(detector, other);

        return pnr_fit_patch_power(detector->map, &place, &echo, cell, lags_of(detector, t));
    }

    const size_t of = (size_t)(other->code - detector->codes);
    const size_t in = (size_t)(t->code - detector->codes);
    const double half = lags_of(detector, t) > 1 ? 0.5 : 0;
    const double distance = pnr_track_distance(detector, (double)t->centre + half, lag);

    if (!pnr_cross_is_known(detector->cross, of, in))
        return 0;
    return pnr_power(pnr_cross_at(detector->cross, of, in, distance)) * pnr_power(other->fit.peak);
}

/* True if the sidelobes of stronger echoes explain a candidate in a sum of powers. Sums of powers
 * have no phases, so the candidate must exceed the sidelobes by 6 dB. Noise may add to the
 * sidelobes in phase. So the amplitude of the candidate must also exceed the sum of two amplitudes,
 * of the sidelobes and of the threshold. */
static bool is_sidelobe(const pnr_detector *detector, const dwell_view *view, const pnr_track *t,
                        const pnr_track *others, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    const double least = detector->plan->threshold[dwell->n_periods - 1] * dwell->floor;
    double seen = detector->has_rows ? 0 : (double)t->candidate->power, power = 0;

    /* Both powers are taken in the cell of the candidate: a sidelobe does not have the shape of an
     * echo, so its fit may end at a distant maximum. */
    for (int j = 0; detector->has_rows && j < lags_of(detector, t); j++)
        seen += pnr_power(t->c[MIDDLE][MIDDLE + j]);
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        power += power_at(detector, t, &others[i], view->cell);
    if ((double)t->candidate->power < pow(sqrt(power) + sqrt(least), 2))
        return true;
    return seen < 4 * power;
}

/* --- all candidates of a dwell --- */

/* Returns the noise power of one cell of a map, from the energy of the samples minus the energy of
 * the echoes found. */
static double cell_without(const pnr_detector *detector, const dwell_view *view,
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
        pnr_others_subtract(detector, &tracks[i], tracks, n, cell, 0);
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
static void lower_floor(const pnr_detector *detector, dwell_view *view, const pnr_track *t)
{
    const pnr_lobe *lobe = &t->code->lobe;
    const double sidelobes = fmax(lobe->total - lobe->inside[PNR_LOBE_STEPS], 0);

    view->cell -= pnr_power(t->fit.peak) / t->loss * sidelobes / (double)detector->plan->n_samples;
    view->cell = fmax(view->cell, 0.1 * view->observed->dwell->floor);
}

/* Updates the noise in `view` of a map. If it is below half of the earlier noise, subtracts the other echoes
 * from the last track again, and fits this track again: a lower noise demands a more accurate model
 * of the echoes. */
static void lower_cell(const pnr_detector *detector, dwell_view *view, pnr_track *tracks, size_t n)
{
    pnr_track *t = &tracks[n - 1];
    const double cell = cell_without(detector, view, tracks, n);
    const bool is_less = cell < 0.5 * view->cell;

    view->cell = cell;
    if (!is_less || detector->is_sum)
        return;
    t->cell = cell;
    pnr_others_subtract(detector, t, tracks, n - 1, cell * t->loss, 0);
    pnr_track_fit(detector, t, cell);
}

/* Returns the power that a candidate must have after the stronger echoes are subtracted. This is
 * the threshold. The threshold of CFAR is not known here, so half of the candidate's own power
 * replaces it. */
static double least_gain(const pnr_detector *detector, const pnr_dwell *dwell,
                         const pnr_candidate *candidate)
{
    return detector->plan->cfar.kind == PNR_CFAR_OFF
               ? detector->plan->threshold[dwell->n_periods - 1] * dwell->floor
               : 0.5 * (double)candidate->power;
}

static size_t strongest_candidate(const pnr_observed *observed, const bool *taken)
{
    float power = -1;
    size_t best = 0;

    for (size_t i = 0; i < observed->dwell->n_candidates; i++)
        if (!taken[i] && observed->candidates[i].power > power)
            power = observed->candidates[best = i].power;
    return best;
}

/* True if the other echoes explain a candidate in a map: too little power remains for an echo of
 * the power `least`. In the 3 x 3 cells around the candidate an echo in the middle cell has at
 * least the power least * shape, where shape is the sum of |R(j)/R(0)|^2 over |j| <= 1. An echo
 * between the cells has two thirds of it. If these cells contain less than half, no fit is needed.
 * A fit takes a hundred times as long as this test. */
static bool is_explained(const pnr_detector *detector, const pnr_track *t, double least)
{
    double power = 0, shape = 0;

    for (int j = -1; j <= 1; j++)
        shape += pnr_power(t->code->rho[J + j]);
    for (int r = MIDDLE - 1; r <= MIDDLE + 1; r++)
        for (int j = MIDDLE - 1; j <= MIDDLE + lags_of(detector, t); j++)
            power += pnr_power(t->rest[r][j]);
    return power < 0.5 * shape * least;
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

/* True if an echo had been subtracted from the samples before a candidate was found. */
static bool is_removed(const pnr_detector *detector, const pnr_observed *observed,
                       const pnr_track *t, const pnr_track *echo)
{
    const pnr_candidate *first = observed->candidates;

    return observed->search != NULL &&
           observed->search[echo->candidate - first] < observed->search[t->candidate - first] &&
           pnr_removal_is_possible(detector, echo->candidate->code, echo->bins);
}

/* Returns the power in the cell of a candidate that the models of the other echoes do not describe.
 * Echoes that were subtracted from the samples, and restored by their models, add no such power. */
static double unknown_power(const pnr_detector *detector, const pnr_observed *observed,
                            const pnr_track *t, const pnr_track *others, size_t n)
{
    double power = 0;

    for (size_t i = 0; i < n && detector->has_rows; i++) {
        const pnr_patch_place place = pnr_track_place(detector, t);
        const pnr_patch_echo echo = pnr_track_echo(detector, &others[i]);

        if (!is_removed(detector, observed, t, &others[i]))
            power += pnr_fit_patch_unknown(detector->map, &place, &echo);
    }
    return power;
}

/* Fits a candidate as the next track. Returns true if the candidate is an echo. The strongest
 * candidate always is an echo. */
static bool is_echo(const pnr_detector *detector, const dwell_view *view, size_t index,
                    pnr_track *tracks, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    pnr_track *t = &tracks[n];
    double least = least_gain(detector, dwell, &view->observed->candidates[index]);

    t->n_rows = detector->has_rows ? J : 1;
    t->c = detector->has_rows ? detector->patches[2 * n] : &t->row[0];
    t->rest = detector->has_rows ? detector->patches[2 * n + 1] : &t->row[1];
    t->is_told = t->is_dirty = t->is_pair = false;
    t->signs.changes = 0;
    t->cell = view->cell;
    load_candidate(detector, view, index, t);
    least += unknown_power(detector, view->observed, t, tracks, n);
    if (detector->is_sum) {
        if (is_sidelobe(detector, view, t, tracks, n))
            return false;
        pnr_others_subtract(detector, t, tracks, 0, view->cell, 0);
        pnr_track_fit(detector, t, view->cell);
        return true;
    }
    if (detector->has_rows && n > 0) {
        if ((double)t->candidate->power < 0.5 * least)
            return false;
        pnr_others_subtract(detector, t, tracks, n, view->cell * t->loss, lags_of(detector, t));
        if (is_explained(detector, t, least * t->loss))
            return false;
    }
    pnr_others_subtract(detector, t, tracks, n, view->cell * t->loss, 0);
    if (!(pnr_track_fit(detector, t, view->cell) > least * t->loss) && n > 0)
        return false;
    return true;
}

/* If some tracks have signs, fits all tracks again, and removes tracks without signs that the
 * tracks with signs explain. Returns the number of tracks left. */
static size_t judge_again(const pnr_detector *detector, const dwell_view *view, pnr_track *tracks,
                          size_t n)
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
        const double least = least_gain(detector, view->observed->dwell, t->candidate) * t->loss;

        pnr_others_subtract(detector, t, tracks, n, cell * t->loss, 0);
        if (!(pnr_track_fit(detector, t, cell) > least) && t->signs.changes == 0)
            t->told.echo.peak = 0;
        else
            pnr_others_note(detector, t);
    }
    for (size_t i = 0; i < n; i++)
        if (tracks[i].told.echo.peak != 0)
            tracks[left++] = tracks[i];
    for (size_t i = 0; i < left && left < n; i++) {
        pnr_others_subtract(detector, &tracks[i], tracks, left, cell * tracks[i].loss, 0);
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
    dwell_view view = {observed, pnr_detector_gains(detector, observed), floor, floor};
    bool taken[PNR_MAX_CANDIDATES] = {false};
    size_t n = 0;

    *is_coarse = false;
    for (size_t k = 0; k < observed->dwell->n_candidates; k++) {
        const size_t best = strongest_candidate(observed, taken);

        if (n > 0 && (*is_coarse = is_late(observed)))
            break;

        if (is_enough(detector, tracks, n, (double)observed->candidates[best].power))
            break;
        taken[best] = true;
        if (!is_echo(detector, &view, best, tracks, n))
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
    const dwell_view view = {observed, pnr_detector_gains(detector, observed), cell, cell};

    for (size_t i = 0; i < n; i++) {
        const size_t index = (size_t)(tracks[i].candidate - observed->candidates);

        load_candidate(detector, &view, index, &tracks[i]);
        pnr_others_subtract(detector, &tracks[i], tracks, 0, cell, 0);
        pnr_track_fit(detector, &tracks[i], cell);
        pnr_track_measure(detector, &view.gains, &tracks[i]);
    }
}
