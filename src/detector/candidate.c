/* SPDX-License-Identifier: MIT */
/* Makes a track of a candidate: loads its values, subtracts the stronger echoes, and fits it.
 * Refuses candidates that stronger echoes explain. */
#include "detector/candidate.h"

#include <math.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* Fills a track from a candidate. In a sum of powers the value j of a candidate is the sum over the
 * looks of c[j] conj(c[0]) / sqrt(P), see Neighbours in engine/plan.h. c[0] is the centre value of
 * a look, and P is the power at the centre. The noise adds view->mean rho(j) / sqrt(P) to the value
 * on average, where rho(j) = R(j)/R(0). The function subtracts this mean. */
void pnr_candidate_load(const pnr_detector *detector, const pnr_dwell_view *view, size_t index,
                        pnr_track *t)
{
    const pnr_candidate *candidate = &view->observed->candidates[index];

    t->candidate = candidate;
    t->code = &detector->codes[candidate->code];
    t->centre = candidate->cell / detector->plan->oversample;
    t->bins = detector->has_rows ? pnr_fit_patch_bins(detector->map, candidate->row) : 0;
    t->bins_variance = 0;
    t->anchor.is_set = false;
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
static bool is_sidelobe(const pnr_detector *detector, const pnr_dwell_view *view,
                        const pnr_track *t, const pnr_track *others, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    const double least = detector->plan->threshold[dwell->n_periods - 1] * dwell->floor;
    double seen = detector->has_rows ? 0 : (double)t->candidate->power, power = 0;

    /* Both powers are taken in the cell of the candidate: a sidelobe does not have the shape of an
     * echo, so its fit may end at a distant maximum. */
    for (int j = 0; detector->has_rows && j < lags_of(detector, t); j++)
        seen += pnr_power(t->c[MIDDLE][MIDDLE + j]);
    for (size_t i = 0; i < n; i++) {
        power += power_at(detector, t, &others[i], view->cell);
        if ((double)t->candidate->power < pow(sqrt(power) + sqrt(least), 2) || seen < 4 * power)
            return true;
    }
    return false;
}

/* Returns the power that a candidate must have after the stronger echoes are subtracted. This is
 * the threshold. The threshold of CFAR is not known here, so half of the candidate's own power
 * replaces it. */
double pnr_candidate_least(const pnr_detector *detector, const pnr_dwell *dwell,
                           const pnr_candidate *candidate)
{
    return detector->plan->cfar.kind == PNR_CFAR_OFF
               ? detector->plan->threshold[dwell->n_periods - 1] * dwell->floor
               : 0.5 * (double)candidate->power;
}

/* Returns the least power that an echo of the power `least` leaves in the 3 x 3 cells around its
 * candidate, in one row in 3 cells. An echo in the middle cell has at least the power least * shape
 * there, where shape is the sum of |R(j)/R(0)|^2 over |j| <= 1. An echo between the cells has two
 * thirds of it. The result is half of it, in one row a quarter, because the noise changes the power
 * of few cells. */
static double least_near(const pnr_detector *detector, const pnr_track *t, double least)
{
    double shape = 0;

    for (int j = -1; j <= 1; j++)
        shape += pnr_power(t->code->rho[J + j]);
    return (detector->has_rows ? 0.5 : 0.25) * shape * least;
}

/* Returns the power of `rest` in the cells around a candidate, in one row. */
static double power_near(const pnr_detector *detector, const pnr_track *t)
{
    double power = 0;

    for (int j = MIDDLE - 1; j <= MIDDLE + lags_of(detector, t); j++)
        power += pnr_power(t->rest[0][j]);
    return power;
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
bool pnr_candidate_is_echo(const pnr_detector *detector, const pnr_dwell_view *view, size_t index,
                           pnr_track *tracks, size_t n)
{
    const pnr_dwell *dwell = view->observed->dwell;
    pnr_track *t = &tracks[n];
    double least = pnr_candidate_least(detector, dwell, &view->observed->candidates[index]);

    t->n_rows = detector->has_rows ? J : 1;
    t->c = detector->has_rows ? detector->patches[2 * n] : &t->row[0];
    t->rest = detector->has_rows ? detector->patches[2 * n + 1] : &t->row[1];
    t->is_told = t->is_dirty = t->is_pair = false;
    t->signs.changes = 0;
    t->cell = view->cell;
    pnr_candidate_load(detector, view, index, t);
    least += unknown_power(detector, view->observed, t, tracks, n);
    if (detector->is_sum) {
        if (is_sidelobe(detector, view, t, tracks, n))
            return false;
        pnr_others_subtract(detector, t, tracks, 0, view->cell);
        pnr_track_fit(detector, t, view->cell);
        return true;
    }
    /* The others explain a candidate if they leave too little power around it. Then no fit is
     * needed, which takes a hundred times as long as this test. */
    const double cell = view->cell * t->loss, near = least_near(detector, t, least * t->loss);

    if (detector->has_rows && n > 0 &&
        ((double)t->candidate->power < 0.5 * least ||
         pnr_others_explain(detector, t, tracks, n, cell, lags_of(detector, t), near)))
        return false;
    pnr_others_subtract(detector, t, tracks, n, cell);
    if (!detector->has_rows && n > 0 && power_near(detector, t) < near)
        return false;
    if (!(pnr_track_fit(detector, t, view->cell) > least * t->loss) && n > 0)
        return false;
    return true;
}
