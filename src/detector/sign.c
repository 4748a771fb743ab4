/* SPDX-License-Identifier: MIT */
/* Sign changes inside a look: finds the signs in slow time, and fits the echo with them. */
#include "detector/sign.h"

#include "base/complex.h"
#include "detector/state.h"
#include "engine/plan.h"

#include <math.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    DOPPLERS = 21 /* Dopplers tried around the candidate, 1/4 row apart */
};

/* Without partners (see most_loss) a fit with signs must explain more power than the fit of a
 * single echo. The difference must be at least least_gain times the noise power of a cell, plus
 * least_share times the power of the echo. Noise alone reaches the first part with the probability
 * exp(-11) for one pattern of signs. The second part covers errors of the model. */
static const double least_gain = 11, least_share = 0.003;
/* A partner is a track that may be a lobe of the same echo. With partners a fit with signs is
 * accepted even if it explains less power than the fits of the partners, because their parameters
 * also fit noise. The greatest accepted difference is most_loss times the noise power of a cell for
 * each partner, plus most_loss_share times the power of the echo. */
static const double most_loss = 10, most_loss_share = 0.05;
/* Without partners, signs are tried only if column_power of the residual of the fit of a single
 * echo is at least this many times the noise power of one cell. It is the power of 17 rows at one
 * delay, so it is 17 times the noise power if only noise is left. */
static const double least_residual = 22;
static const double reach_rows = 8; /* rows; lobes at a greater distance are about 20 dB below the
                                     * echo, and are not searched */

static size_t bits_of(const pnr_detector *detector, size_t code)
{
    return detector->waveforms[code].code->bits;
}

bool pnr_sign_is_corrected(const pnr_detector *detector, size_t code)
{
    const pnr_plan *plan = detector->plan;
    const size_t bits = bits_of(detector, code), n_periods = plan->n_periods;

    return bits >= PNR_SIGN_BITS && n_periods > 1 && n_periods <= PNR_SIGN_PERIODS &&
           n_periods <= PNR_SIGN_CHANGES * bits && detector->has_rows && !detector->is_sum &&
           !plan->remove_mean && detector->least_squares == NULL &&
           detector->config->detector.subtract == 0;
}

/* Returns the integral of exp(2 pi i turns (x - 1/2)) over x = from .. to. */
static double complex integrate(double turns, double from, double to)
{
    const double half = M_PI * turns * (to - from);

    return (to - from) * (fabs(half) < 1e-6 ? 1 : sin(half) / half) *
           pnr_cis(M_PI * turns * (from + to - 1));
}

/* Returns the factor of a window in which the sign changes from 1 to -1, for an echo of `bins`. The
 * code begins at d of the window, and the echo turns by bins - f in it: the factor is the integral
 * over 0 .. d minus that over d .. 1, divided by their sum. It is 2 d - 1 at bins = f. */
static double complex factor_at_change(const pnr_detector *detector, const pnr_track *t,
                                       double bins)
{
    const double lag = ((double)t->centre + t->fit.delay) / (double)detector->plan->n_samples;
    size_t row = t->candidate->row;
    const double turns = bins - pnr_plan_find_row(detector->plan, &row).quarters / 4.0;

    if (detector->plan->linear)
        return -1;
    return 2 * integrate(turns, 0, lag - floor(lag)) / integrate(turns, 0, 1) - 1;
}

/* Fills the sign of each window, and its factor where the sign changes. out: [n_periods]. */
static void fill_signs(const pnr_detector *detector, const pnr_track *t, const pnr_signs *signs,
                       double complex *out)
{
    const size_t bits = bits_of(detector, t->candidate->code);
    const double complex at_change = factor_at_change(detector, t, t->bins);
    double sign = 1;

    for (size_t p = 0; p < detector->plan->n_periods; p++) {
        const bool is_edge = p >= signs->first && (p - signs->first) % bits == 0;
        const bool changes = is_edge && (signs->changes >> (p - signs->first) / bits & 1) != 0;

        out[p] = changes ? sign * at_change : sign;
        sign = changes ? -sign : sign;
    }
}

void pnr_sign_begin(const pnr_detector *detector, const pnr_track *t)
{
    double complex signs[PNR_SIGN_PERIODS];

    if (t->signs.changes == 0)
        return;
    fill_signs(detector, t, &t->signs, signs);
    pnr_fit_patch_signs(detector->map, signs);
}

void pnr_sign_end(const pnr_detector *detector, const pnr_track *t)
{
    if (t->signs.changes != 0)
        pnr_fit_patch_signs(detector->map, NULL);
}

/* Transforms the values of a patch at the delay of a track to slow time: z_p = sum over the rows of
 * c exp(2 pi i F (p - m)). c is the value in a row, F is the Doppler of the row in bins, and m is
 * the middle of the look. */
static void fill_slow_time(const pnr_detector *detector, const pnr_track *t,
                           const pnr_vector *patch, double complex *z)
{
    const long n_rows = (long)pnr_plan_rows(detector->plan), row = t->candidate->row;
    const size_t n_periods = detector->plan->n_periods;
    const double middle = ((double)n_periods - 1) / 2;
    const pnr_patch_place place = pnr_track_place(detector, t);
    pnr_vector column;

    (void)pnr_fit_patch_column(detector->map, place.code, t->fit.delay, patch, column);
    memset(z, 0, n_periods * sizeof *z);
    for (long i = -MIDDLE; i <= MIDDLE; i++) {
        if (row + i < 0 || row + i >= n_rows)
            continue;

        const double bins = pnr_plan_bins(detector->plan, (size_t)(row + i));

        for (size_t p = 0; p < n_periods; p++)
            z[p] +=
                column[MIDDLE + i] * pnr_cis(2 * M_PI * remainder(bins * ((double)p - middle), 1));
    }
}

/* Returns the power that an echo with the signs u_p explains in slow time, |sum conj(u_p) z_p|^2 /
 * sum |u_p|^2. sums: [n_periods + 1]; sums[p] is the sum of the first p values of z. */
static double power_with(const double complex *sums, size_t n_periods, size_t bits,
                         double complex at_change, const pnr_signs *signs)
{
    double complex sum = 0;
    double sign = 1, squares = (double)n_periods;
    size_t from = 0;

    for (size_t i = 0, edge = signs->first; edge < n_periods; i++, edge += bits)
        if (signs->changes >> i & 1) {
            sum +=
                sign * (sums[edge] - sums[from] + conj(at_change) * (sums[edge + 1] - sums[edge]));
            squares += pnr_power(at_change) - 1;
            sign = -sign;
            from = edge + 1;
        }
    return pnr_power(sum + sign * (sums[n_periods] - sums[from])) / squares;
}

/* K rows of one hypothesis give a Doppler modulo 1 / Tr. Returns the value within these rows, or
 * within half a row of them. Other rows do not repeat: returns bins. */
static double within_rows(const pnr_plan *plan, double bins)
{
    const double first = pnr_plan_bins(plan, 0) - 0.5 / (double)plan->n_periods;

    return plan->n_hypotheses == 1 && pnr_plan_rows(plan) == plan->n_periods
               ? bins - floor(bins - first)
               : bins;
}

/* Finds the signs and the Doppler that explain the most power in slow time. Returns the Doppler in
 * bins. */
static double find_signs(const pnr_detector *detector, const pnr_track *t, const double complex *z,
                         pnr_signs *out)
{
    const size_t n_periods = detector->plan->n_periods;
    const size_t bits = bits_of(detector, t->candidate->code);
    double best = -1, best_bins = 0;

    for (int at = 0; at < DOPPLERS; at++) {
        const double bins = pnr_plan_bins(detector->plan, t->candidate->row) +
                            (at - DOPPLERS / 2) / (4.0 * (double)n_periods);
        const double complex at_change =
            factor_at_change(detector, t, within_rows(detector->plan, bins));
        double complex sums[PNR_SIGN_PERIODS + 1] = {0};

        for (size_t p = 0; p < n_periods; p++)
            sums[p + 1] = sums[p] + z[p] * pnr_cis(-2 * M_PI * remainder(bins * (double)p, 1));
        for (size_t first = 0; first < bits && first < n_periods; first++) {
            const size_t n_edges = (n_periods - 1 - first) / bits + 1;

            for (unsigned changes = 1; changes < 1U << n_edges; changes++) {
                const pnr_signs signs = {first, changes};
                const double power = power_with(sums, n_periods, bits, at_change, &signs);

                if (power > best) {
                    best = power;
                    best_bins = bins;
                    *out = signs;
                }
            }
        }
    }
    return within_rows(detector->plan, best_bins) /
           (1 + pnr_fit_patch_stretch(detector->map, t->candidate->row));
}

/* True if track k may be a partner of track t: both have the same code, and lie within half a chip
 * and reach_rows rows. Dopplers repeat in slow time after 1 / Tr, so lobes beyond the last row
 * appear among the first. */
static bool is_partner(const pnr_detector *detector, const pnr_track *t, const pnr_track *k)
{
    const double chip = (double)detector->radar->n_samples / (double)detector->radar->n_chips;
    const double rows = remainder(k->bins - t->bins, 1) * (double)detector->plan->n_periods;
    const double lags = pnr_track_distance(detector, (double)k->centre + k->fit.delay,
                                           (double)t->centre + t->fit.delay);

    return k != t && k->code == t->code && fabs(lags) < 0.5 * chip && fabs(rows) <= reach_rows;
}

/* Returns the power of all rows of a patch at the delay of a track. If only noise is left, the
 * power of a row is on average the noise power of a cell. */
static double column_power(const pnr_detector *detector, const pnr_track *t,
                           const pnr_vector *patch)
{
    const pnr_patch_place place = pnr_track_place(detector, t);
    pnr_vector column;
    double sum = 0;
    const double noise =
        pnr_fit_patch_column(detector->map, place.code, t->fit.delay, patch, column);

    for (int row = 0; row < J; row++)
        sum += pnr_power(column[row]);
    return sum / noise;
}

/* Returns column_power after the echo is subtracted from the patch. */
static double power_without(const pnr_detector *detector, const pnr_track *t,
                            const pnr_patch_echo *echo, const pnr_vector *patch, double cell)
{
    const pnr_patch_place place = pnr_track_place(detector, t);
    pnr_patch rest;

    memcpy(rest, patch, sizeof rest);
    pnr_fit_patch_change(detector->map, &place, NULL, echo, cell, rest);
    return column_power(detector, t, rest);
}

/* Adds the partners of track i back to its values. Returns the number of partners. */
static size_t add_partners(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                           size_t i, double cell, pnr_vector *patch)
{
    const pnr_patch_place place = pnr_track_place(detector, &tracks[i]);
    size_t n_partners = 0;

    for (size_t k = 0; k < n; k++) {
        pnr_patch_echo nothing = tracks[k].told.echo;

        if (!is_partner(detector, &tracks[i], &tracks[k]))
            continue;
        nothing.peak = 0;
        pnr_fit_patch_change(detector->map, &place, &tracks[k].told.echo, &nothing, cell, patch);
        n_partners++;
    }
    return n_partners;
}

/* Fits a track with its signs to `whole`, the values of the track with its partners. Returns
 * column_power of the residual of the fit. */
static double fit_signs(const pnr_detector *detector, const pnr_vector *whole, double bins,
                        double cell, pnr_track *t)
{
    const pnr_patch_place place = pnr_track_place(detector, t);
    const pnr_patch_echo start = {.code = place.code,
                                  .lag = (double)t->centre + t->fit.delay,
                                  .bins = bins,
                                  .peak = t->fit.peak};
    pnr_patch_fitted fitted;

    pnr_sign_begin(detector, t);
    pnr_fit_patch_find(detector->map, &place, whole, &start, cell, &fitted);
    t->fit = fitted.at;
    t->bins = fitted.bins;
    t->bins_variance = fitted.bins_variance;
    t->anchor = fitted.anchor;
    t->share = fitted.centre;

    const pnr_patch_echo echo = pnr_track_echo(detector, t);
    const double left = power_without(detector, t, &echo, whole, cell);

    pnr_sign_end(detector, t);
    return left;
}

/* Finds the signs of a track, and fits the track with these signs. Returns column_power of the
 * residual of the fit. */
static double find_changes(const pnr_detector *detector, const pnr_vector *whole, double cell,
                           pnr_track *t)
{
    double complex z[PNR_SIGN_PERIODS];

    fill_slow_time(detector, t, whole, z);

    const double bins = find_signs(detector, t, z, &t->signs);

    return fit_signs(detector, whole, bins, cell, t);
}

/* Fits a track with sign changes. Returns false, and changes nothing, if the signs explain too
 * little power. */
static bool correct_track(const pnr_detector *detector, pnr_track *tracks, size_t n, size_t i,
                          double cell)
{
    pnr_track *t = &tracks[i], found = *t;
    const pnr_patch_echo own = pnr_track_echo(detector, t);
    const double now = power_without(detector, t, &own, t->rest, cell);
    pnr_patch whole;

    memcpy(whole, t->rest, sizeof whole);

    const size_t n_partners = add_partners(detector, tracks, n, i, cell, whole);

    if (n_partners == 0 && now < least_residual * cell)
        return false;

    const double less = now - find_changes(detector, whole, cell, &found);
    const double echo = fmax(column_power(detector, t, whole) - now, 0);
    const double limit = (n_partners > 0 ? -most_loss * (double)n_partners : least_gain) * cell +
                         (n_partners > 0 ? -most_loss_share : least_share) * echo;

    if (less < limit)
        return false;
    memcpy(t->rest, whole, sizeof whole);
    *t = found;
    return true;
}

size_t pnr_sign_correct(const pnr_detector *detector, pnr_track *tracks, size_t n, double cell)
{
    for (size_t i = 0; i < n && detector->has_rows; i++) {
        const pnr_track before = tracks[i];
        size_t left = 0;

        if (!pnr_sign_is_corrected(detector, before.candidate->code) ||
            !correct_track(detector, tracks, n, i, cell * before.loss))
            continue;
        for (size_t k = 0; k < n; k++) {
            if (k != i && is_partner(detector, &before, &tracks[k]))
                continue;
            i -= k == i ? i - left : 0;
            tracks[left++] = tracks[k];
        }
        n = left;
    }
    return n;
}
