/* SPDX-License-Identifier: MIT */
/* The noise of one echo: corrects the noise of a dwell for the surroundings of the echo, for other
 * echoes and for other codes. */
#include "detector/noise.h"

#include "detector/state.h"

#include <math.h>

/* Returns the distance in samples to the nearest echo of the same code that is within 1.5 chips and
 * 1.5 rows; 0: no such echo. Two paths that were fitted together are not counted. */
static double distance_beside(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                              size_t i)
{
    const pnr_radar *radar = detector->radar;
    const double chip = (double)radar->n_samples / (double)radar->n_chips;
    const pnr_track *t = &tracks[i];
    double least = 1.5 * chip;

    for (size_t k = 0; k < n; k++) {
        const double rows = (tracks[k].bins - t->bins) * (double)detector->plan->n_periods;
        const double lags =
            fabs(pnr_track_distance(detector, (double)tracks[k].centre + tracks[k].fit.delay,
                                    (double)t->centre + t->fit.delay));

        if (lags < least && tracks[k].candidate != t->candidate && tracks[k].code == t->code &&
            fabs(rows) < 1.5)
            least = lags;
    }
    return least < 1.5 * chip ? least : 0;
}

/* Adds the power of the echoes of other codes, which is noise in the cells of this code. Skips
 * echoes that were subtracted: all echoes in maps, and echoes with a known correlation with this
 * code. */
static void add_other_codes(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                            size_t i, pnr_noise *noise)
{
    const double before = noise->cell;

    if (detector->n_codes == 1)
        return;
    for (size_t k = 0; k < n && !detector->has_rows; k++) {
        const pnr_track *t = &tracks[k];
        const size_t of = (size_t)(t->code - detector->codes);

        if (!pnr_cross_is_known(detector->cross, of, (size_t)(tracks[i].code - detector->codes)))
            noise->cell += t->power * t->code->lobe.inside[PNR_LOBE_STEPS] *
                           (double)detector->n_codes / detector->cells.n;
    }
    noise->variance *= before * before / (noise->cell * noise->cell);
    noise->chance *= before * before / (noise->cell * noise->cell);
}

double pnr_noise_most(double variance)
{
    const double sigmas = 5, third = 1 - variance / 9 + sigmas * sqrt(variance) / 3;

    return third * third * third;
}

void pnr_noise_around(const pnr_detector *detector, const pnr_track *tracks, size_t n, size_t i,
                      pnr_noise *noise)
{
    const double strong = 100, rounding = 1e-11;
    const bool is_cfar = detector->plan->cfar.kind != PNR_CFAR_OFF;

    add_other_codes(detector, tracks, n, i, noise);
    noise->misfit = 0;
    noise->beside = distance_beside(detector, tracks, n, i);
    if (detector->is_sum || detector->least_squares != NULL ||
        (!is_cfar && tracks[i].power < strong * noise->cell))
        return;

    const pnr_residual near = pnr_track_noise(detector, tracks, n, i, 0.1 * noise->cell);
    const double ratio = near.noise / noise->cell,
                 most = pnr_noise_most(1 / near.cells + noise->variance);

    if (is_cfar && (ratio > most || ratio < 1 / most)) {
        noise->cell = near.noise;
        noise->variance = fmin(1 / near.cells, 0.5);
        noise->chance = fmin(near.chance, 0.5);
        noise->shape = 1;
    } else if (ratio > most && near.noise > rounding * tracks[i].power) {
        noise->misfit = (near.noise - noise->cell) * near.cells / tracks[i].power;
    }
}
