/* SPDX-License-Identifier: MIT */
/* Subtracts what the other echoes of a dwell put into the values of a track, where it matters
 * against the noise. */
#include "detector/state.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* Adds `sign` times the echo of `other`, with the peak and delay of `fit`, to the values of `from`:
 * A g R(0) rho(lag - delay). In a map with one row the other echo has the frequency of that row.
 * Echoes of other codes are not modelled. */
static void add_other(const pnr_detector *detector, pnr_track *from, const pnr_track *other,
                      const pnr_fitted *fit, double sign)
{
    pnr_vector response;

    if (detector->least_squares != NULL) {
        pnr_track moved = *other;

        moved.fit = *fit;
        if (pnr_track_response(detector, from, &moved, response)) /* of peak -1 */
            pnr_track_add(-sign * fit->peak, response, from->rest);
        return;
    }

    const double distance =
        pnr_track_distance(detector, (double)from->centre, (double)other->centre + fit->delay);

    pnr_waveform_run(from->code->autocorrelation, distance - MIDDLE, J, response, NULL);
    pnr_track_add(sign * fit->peak, response, from->rest);
}

/* True if a change of the echo of t, with the power `change`, matters in the values of `from`. */
static bool is_reached(const pnr_detector *detector, const pnr_track *from, const pnr_track *t,
                       double change, double tolerance)
{
    enum { NEAR = 3 * MIDDLE }; /* farther lags hold only sidelobes and the end of the pulse */
    const double apart =
        fabs(pnr_track_distance(detector, (double)from->centre, (double)t->centre)) - MIDDLE;
    const double far = fmax(t->code->lobe.greatest, 0.35 / fmax(apart, 1));

    if (detector->least_squares != NULL)
        return true;
    return from->code == t->code && change * (apart > NEAR ? far * far : 1) > tolerance;
}

void pnr_others_tell(const pnr_detector *detector, pnr_track *tracks, size_t n, size_t i,
                     double tolerance)
{
    pnr_track *t = &tracks[i];
    const double complex step = t->fit.peak - (t->is_told ? t->told.peak : 0);
    const double shift = t->is_told ? t->fit.delay - t->told.delay : 0;
    const double change = pnr_power(step) + 4 * pnr_power(t->fit.peak) * shift * shift;

    for (size_t k = 0; k < n; k++) {
        if (k == i || !is_reached(detector, &tracks[k], t, change, tolerance))
            continue;
        if (t->is_told)
            add_other(detector, &tracks[k], t, &t->told, 1);
        add_other(detector, &tracks[k], t, &t->fit, -1);
        tracks[k].is_dirty = true;
    }
    t->told = t->fit;
    t->is_told = true;
}

void pnr_others_subtract(const pnr_detector *detector, pnr_track *t, const pnr_track *others,
                         size_t n, double tolerance)
{
    memcpy(t->rest, t->c, sizeof t->c);
    t->is_told = t->is_dirty = false;
    for (size_t i = 0; i < n; i++)
        if (is_reached(detector, t, &others[i], pnr_power(others[i].told.peak), tolerance))
            add_other(detector, t, &others[i], &others[i].told, -1);
}

/* True if the echo `other` may put more than a hundredth of the noise power `cell` into a cell of
 * the patch of t. Far lags hold the code's sidelobes; for another rotation or code they hold the
 * self-noise of chi, about 8/N (see pnr_echo_model_mark_exact). Far rows hold the sidelobes of the
 * slow time, 1 / (pi rows)^2. */
static bool is_in_patch(const pnr_detector *detector, const pnr_track *t, const pnr_track *other,
                        double cell)
{
    const double k = (double)detector->plan->n_periods, n = (double)detector->plan->n_samples;
    const double lags =
        fabs(pnr_track_distance(detector, (double)t->centre, (double)other->centre));
    const double rows = k * fabs(remainder(t->bins - other->bins, 1)) - MIDDLE - 2;
    const double greatest = fmax(other->code->lobe.greatest * other->code->lobe.greatest, 8 / n);
    const double by_lag = t->code == other->code && lags < 4 * MIDDLE ? 1 : fmin(greatest, 1);
    const double by_row = rows > 1 ? 1 / (M_PI * M_PI * rows * rows) : 1;

    return detector->least_squares != NULL ||
           pnr_power(other->fit.peak) * by_lag * by_row > 0.01 * cell;
}

void pnr_others_patch(const pnr_detector *detector, const pnr_track *t, const pnr_track *others,
                      size_t n_others, double cell, pnr_vector *out)
{
    const pnr_patch_place place = pnr_track_place(detector, t);

    memcpy(out, t->patch, sizeof(pnr_patch));
    for (size_t i = 0; i < n_others; i++) {
        if (&others[i] == t || !is_in_patch(detector, t, &others[i], cell))
            continue;
        if (detector->least_squares != NULL) {
            pnr_vector response, rows;

            if (pnr_track_response(detector, t, &others[i], response)) {
                pnr_track_rows(detector, t, &others[i], cell, rows);
                pnr_track_add_rows(rows, response, out);
            }
            continue;
        }
        const pnr_patch_echo echo = pnr_track_echo(detector, &others[i]);

        pnr_fit_patch_subtract(detector->map, &place, &echo, cell, out);
    }
}
