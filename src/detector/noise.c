/* SPDX-License-Identifier: MIT */
/* Estimates the noise of a cell from the sum of P minus the power of the echoes, and from the
 * residual of the fit. */
#include "detector/noise.h"

#include "detector/state.h"
#include "engine/plan.h"
#include "setup/threshold.h"

#include <math.h>
#include <stdlib.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* --- tables --- */

/* sum of |R(j - d)/R(0)|^2 over |j| <= reach */
static double lobe_at(const pnr_waveform *autocorrelation, size_t reach, double d)
{
    double sum = 0;

    for (double j = -(double)reach; j <= (double)reach; j++)
        sum += pnr_power(pnr_waveform_at(autocorrelation, j - d));
    return sum;
}

void pnr_lobe_fill(const pnr_waveform *autocorrelation, size_t n_lags, double chip, pnr_lobe *out)
{
    enum { MAX_SIDELOBES = 4096 };
    const size_t wanted = (size_t)fmin(ceil(chip) + 2, MIDDLE);
    double complex mean = 0;
    double power = 0, n = 0;

    out->reach = wanted < n_lags / 8 ? wanted : n_lags / 8;
    out->total = pnr_waveform_energy(autocorrelation);
    out->nyquist = pnr_waveform_nyquist(autocorrelation);
    for (int s = 0; s < PNR_LOBE_TABLE; s++)
        out->inside[s] = lobe_at(autocorrelation, out->reach, (double)s / PNR_LOBE_STEPS - 1);
    for (size_t u = out->reach + 1; u + out->reach < n_lags; u += n_lags / MAX_SIDELOBES + 1, n++) {
        const double complex r = pnr_waveform_at(autocorrelation, (double)u);

        mean += r;
        power += pnr_power(r);
        out->greatest = fmax(out->greatest, 1.5 * sqrt(pnr_power(r)));
    }
    out->alike = power > 0 ? pnr_power(mean) / (n * power) : 0;
}

/* The lobe's power at the delay d, by linear interpolation. */
static double inside_at(const pnr_lobe *lobe, double d)
{
    const double at = fmin(fmax((d + 1) * PNR_LOBE_STEPS, 0), PNR_LOBE_TABLE - 1.001);
    const int s = (int)at;

    return lobe->inside[s] + (at - s) * (lobe->inside[s + 1] - lobe->inside[s]);
}

/* Returns the number of gates that count as one, because their noise is correlated. The outputs of
 * the filter F have the noise covariance F[k][j] / sqrt(loss[j]), see setup/least_squares.h. */
static double filter_crowd(const pnr_least_squares *filter)
{
    double sum = 0;

    for (size_t k = 0; k < filter->n_gates; k++)
        for (size_t j = 0; j < filter->n_gates; j++)
            sum += pnr_power(filter->filter[k * filter->n_gates + j]) / filter->loss[j];
    return sum / (double)filter->n_gates;
}

void pnr_cells_fill(const pnr_detector *detector, double pfa_cell, pnr_cells *out)
{
    const pnr_plan *plan = detector->plan;
    const size_t n_lags = plan->filter != NULL ? plan->gate_count : plan->n_lags;
    const double samples = (pnr_format_get(plan->format)->is_complex ? 1 : 0.5) *
                           (double)(plan->n_samples * plan->n_periods);
    const double looks = (double)plan->n_looks;

    out->n = (double)(plan->n_codes * n_lags) * (double)pnr_plan_rows(plan);
    out->crowd = detector->least_squares != NULL ? filter_crowd(detector->least_squares)
                                                 : detector->codes[0].lobe.total;
    if (detector->map != NULL) {
        double weight, crowd;

        pnr_fit_patch_cells(detector->map, &weight, &crowd);
        out->n *= weight;
        out->crowd *= crowd;
    }

    const double independent = fmin(out->n / out->crowd, samples);
    const double threshold = plan->threshold[pnr_plan_windows(plan) - 1];

    out->crowd = out->n / (independent * looks);
    out->ratio = fmax(pnr_threshold_ratio(pfa_cell, plan->n_looks, independent) / threshold, 1e-3);
}

void pnr_noise_bands_fill(const pnr_waveform *waveform, bool is_half, pnr_noise_bands *out)
{
    enum { STEPS = 2 * PNR_BAND_STEPS };
    double share[STEPS + 1], bandwidth[STEPS + 1];
    const size_t step = is_half ? 1 : 2;

    pnr_waveform_bands(waveform, STEPS, share, bandwidth);
    for (size_t s = 0; s <= PNR_BAND_STEPS; s++) {
        out->ratio[s] = share[s * step] * PNR_BAND_STEPS / fmax((double)s, 1e-3);
        out->shape[s] = bandwidth[s * step] / fmax(bandwidth[STEPS], 1e-30);
    }
}

/* Finds the widest part of the band that explains this ratio of cell to white. Returns its shape; 1
 * if even a sixteenth of the band does not explain the ratio. */
static double shape_of(const pnr_noise_bands *bands, double ratio)
{
    enum { LEAST = PNR_BAND_STEPS / 16 };
    size_t s = PNR_BAND_STEPS;

    while (s > LEAST && bands->ratio[s - 1] < ratio)
        s--;
    if (s == LEAST)
        return 1;

    const double rise = bands->ratio[s - 1] - bands->ratio[s];
    const double at = rise > 0 ? fmin(fmax((ratio - bands->ratio[s]) / rise, 0), 1) : 0;

    return bands->shape[s] + at * (bands->shape[s - 1] - bands->shape[s]);
}

/* --- the sum --- */

/* The sums from which the noise of a cell follows. */
typedef struct sums {
    double power, cells; /* sum of P outside the lobes without sidelobes; cells of this sum */
    double sidelobes;    /* power of the sidelobes of all echoes */
    double error2;       /* variance of `power` without the part that grows with the noise */
    double error_noise;  /* the part of this variance that is proportional to the noise of a cell */
} sums;

static size_t index_of(const pnr_observed *observed, const pnr_track *t)
{
    return (size_t)(t->candidate - observed->candidates);
}

/* The distance in lags and rows from one track to an earlier one whose lobe overlaps its lobe. */
typedef struct overlap {
    long lags, rows, reach;
} overlap;

/* Lists the earlier tracks whose lobes overlap that of track i. Returns their number. */
static size_t list_overlaps(const pnr_detector *detector, const pnr_track *tracks, size_t i,
                            overlap out[PNR_MAX_CANDIDATES])
{
    const pnr_track *t = &tracks[i];
    size_t n = 0;

    for (size_t e = 0; e < i; e++) {
        const overlap o = {
            .lags = (long)pnr_track_distance(detector, (double)tracks[e].centre, (double)t->centre),
            .rows = (long)tracks[e].candidate->row - (long)t->candidate->row,
            .reach = (long)tracks[e].code->lobe.reach};

        if (tracks[e].code == t->code && labs(o.lags) <= o.reach + (long)t->code->lobe.reach &&
            labs(o.rows) <= 2 * MIDDLE)
            out[n++] = o;
    }
    return n;
}

/* True if one of the earlier lobes holds the cell at these lags and rows from the track. */
static bool is_counted(const overlap *overlaps, size_t n, long lags, long rows)
{
    for (size_t e = 0; e < n; e++)
        if (labs(lags - overlaps[e].lags) <= overlaps[e].reach &&
            labs(rows - overlaps[e].rows) <= MIDDLE)
            return true;
    return false;
}

/*
 * Removes the cells in the lobe of track i. With several looks c[j] is the product with the centre
 * value, divided by the root of the centre's power. |c[j]|^2 is then the part of P in phase with
 * the centre. The noise of the other dimensions, which are looks - 1, stays in the sum.
 */
static void remove_lobe(const pnr_detector *detector, const pnr_observed *observed,
                        const pnr_track *tracks, size_t i, double looks, sums *s)
{
    const pnr_track *t = &tracks[i];
    const long reach = (long)t->code->lobe.reach, n_rows = (long)pnr_plan_rows(detector->plan);
    const long rows = detector->has_rows ? MIDDLE : 0, row = t->candidate->row;
    const float complex *values =
        detector->has_rows
            ? (const float complex *)observed->patches + index_of(observed, t) * J * J
            : (const float complex *)t->candidate->value - MIDDLE * J;

    overlap overlaps[PNR_MAX_CANDIDATES];
    const size_t n_overlaps = list_overlaps(detector, tracks, i, overlaps);

    for (long r = -rows; r <= rows; r++) {
        if (row + r < 0 || row + r >= n_rows)
            continue;
        for (long j = -reach; j <= reach; j++) {
            const double rho2 = r == 0 ? pnr_power(t->code->rho[J + j]) : 0;

            if (is_counted(overlaps, n_overlaps, j, r))
                continue;
            s->power -= pnr_power((double complex)values[(MIDDLE + r) * J + MIDDLE + j]);
            s->cells -= 1 - (1 - 1 / looks) * (1 - rho2);
        }
    }
}

/* The power of an echo in the cells outside its lobe, divided by P at its peak. */
static double sidelobes_of(const pnr_detector *detector, const pnr_track *t)
{
    const pnr_lobe *lobe = &t->code->lobe;
    const pnr_plan *plan = detector->plan;
    const double sine = sin(M_PI * t->fit.delay);
    double total = lobe->total * (1 - lobe->nyquist * sine * sine);
    double inside = inside_at(lobe, t->fit.delay);

    if (detector->least_squares != NULL) /* between gates: sum of sinc^2(k - d), |k| > reach */
        return 2 * sine * sine / (M_PI * M_PI * ((double)lobe->reach + 0.5));
    if (detector->has_rows) {
        const pnr_patch_place place = pnr_track_place(detector, t);
        const pnr_patch_spread spread = pnr_fit_patch_spread(detector->map, &place, t->bins);

        total = spread.smooth * total + spread.rough * lobe->inside[PNR_LOBE_STEPS];
        inside *= spread.near;
    }
    if (plan->linear)
        total = inside + (total - inside) * fmin((double)plan->n_lags / (double)plan->n_samples, 1);
    return fmax(total - inside, 0);
}

/* Returns the power that an echo puts into all cells of the other codes. *is_exact: it is known from
 * the correlations of the codes. Otherwise each code gets the power of the echo's lobe, because the
 * cross-correlation of two unlike codes with the same spectrum has this power. */
static double crossed_by(const pnr_detector *detector, const pnr_track *t, bool *is_exact)
{
    const size_t of = (size_t)(t->code - detector->codes);
    const double lobe = t->power * t->code->lobe.inside[PNR_LOBE_STEPS];
    const double power = (double)(detector->n_codes - 1) * lobe;
    double exact = 0;

    *is_exact = true;
    for (size_t c = 0; c < detector->n_codes && *is_exact; c++) {
        *is_exact = pnr_cross_is_known(detector->cross, of, c);
        exact += c != of ? t->power * pnr_cross_total(detector->cross, of, c) : 0;
    }
    if (*is_exact)
        return exact;
    if (!detector->has_rows)
        return power;

    const pnr_patch_place place = pnr_track_place(detector, t);
    const pnr_patch_spread spread = pnr_fit_patch_spread(detector->map, &place, t->bins);

    return power * (spread.smooth + spread.rough);
}

static sums sum_outside(const pnr_detector *detector, const pnr_observed *observed,
                        const pnr_dwell_gains *gains, const pnr_track *tracks, size_t n)
{
    const double n_samples = (double)detector->plan->n_samples;
    /* The model of sidelobes in Doppler rows, of linear windows and between gates is rough. */
    const double rough = detector->has_rows || detector->plan->linear ? 0.3 : 3e-3;
    const double model = detector->least_squares != NULL ? 0.3 : rough;
    const double holes = pnr_noise_holes(detector, observed);
    sums s = {.power = observed->dwell->noise_sum, .cells = detector->cells.n};

    double lobe[PNR_MAX_CANDIDATES];

    for (size_t i = 0; i < n; i++) {
        const double before = s.cells;

        remove_lobe(detector, observed, tracks, i, gains->looks, &s);
        lobe[i] = before - s.cells;
    }
    for (size_t i = 0; i < n; i++) {
        const pnr_track *t = &tracks[i];
        /* the share of this track's sidelobes that lies in no lobe */
        const double seen = fmax(s.cells, 0) / fmax(detector->cells.n - lobe[i], 1);
        const double peak = t->power, own = seen * peak * sidelobes_of(detector, t);
        const double others = holes * peak * fmax(s.cells, 0);
        /* alike: sidelobes that add in phase; total / N: those that add by chance, as `total` lags
         * count as one */
        const double chance = 2 * t->code->lobe.total / n_samples;
        const double cross = 2 * t->code->lobe.alike + chance;

        s.power -= own + others;
        s.error_noise += 2 * own;
        if (peak > 0)
            s.error_noise += 4 * own * own * t->loss * t->fit.amplitude_variance / peak;
        s.error2 += cross * own * s.sidelobes + model * model * (own * own + 4e-3 * peak * peak) +
                    holes / 2 * peak * peak;
        s.sidelobes += own;
        if (detector->n_codes > 1) {
            bool is_exact;
            const double crossed = crossed_by(detector, t, &is_exact);

            s.power -= crossed;
            s.error2 += pow((is_exact ? model : 0.1) * crossed, 2) +
                        (is_exact ? chance * crossed * s.sidelobes : 0);
            s.sidelobes += is_exact ? crossed : 0;
        }
    }
    /* the rounding of sums in single precision */
    s.error2 += pow(1e-6 * observed->dwell->noise_sum, 2);
    return s;
}

/* --- the noise --- */

double pnr_noise_holes(const pnr_detector *detector, const pnr_observed *observed)
{
    const pnr_dwell *dwell = observed->dwell;
    const double n_all = (double)dwell->n_periods * (double)detector->radar->n_samples;

    return (1 - (double)dwell->n_valid / n_all) / (double)dwell->n_valid;
}

/* Returns the relative variance of the mean of n cells. It is near crowd / n if many cells are
 * independent. A filter may leave few independent cells, because most of the noise is common to all
 * gates. The mean is then no gamma variable, and its inverse has a mean below 1 / (1 - crowd / n).
 * So the function returns less than crowd / n. */
static double chance_of(const pnr_detector *detector, double n)
{
    return detector->cells.crowd / (n + detector->cells.crowd);
}

/* The part of the energy of the echoes that two of them share, in one row: with least squares the
 * samples without the echoes have the energy of all minus the sum over all pairs of A_i conj(A_j)
 * R(0) C(d_j - d_i). Returns this sum over unlike pairs, divided by R(0). */
static double shared_energy(const pnr_detector *detector, const pnr_track *tracks, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            const pnr_patch_echo a = pnr_track_echo(detector, &tracks[i]);
            const pnr_patch_echo b = pnr_track_echo(detector, &tracks[k]);

            if (pnr_cross_is_known(detector->cross, a.code, b.code))
                sum += 2 * creal(a.peak * conj(b.peak) *
                                 pnr_cross_at(detector->cross, a.code, b.code, b.lag - a.lag));
        }
    return sum;
}

/* Computes `white` from the energy of the samples. Sets is_coloured. */
static void compare_energy(const pnr_detector *detector, const pnr_dwell *dwell,
                           const pnr_dwell_gains *gains, const pnr_track *tracks, size_t n,
                           pnr_noise *noise)
{
    const double scale = gains->noise * detector->energy_of_code / (double)dwell->n_valid;
    const double windows = (double)dwell->n_valid / (double)detector->radar->n_samples;
    double echoes = 0;

    for (size_t i = 0; i < n; i++) {
        const pnr_track *t = &tracks[i];
        const double sine = sin(M_PI * t->fit.delay);

        echoes += t->code->energy_scale * t->amplitude2 * windows * detector->energy_of_code *
                  scale * (1 - t->code->lobe.nyquist * sine * sine);
    }
    const bool is_one_row = !detector->has_rows && !detector->is_sum;

    if (is_one_row && n > 1)
        echoes += tracks[0].code->energy_scale * windows * scale / detector->energy_of_code /
                  pow(gains->amplitude, 2) * shared_energy(detector, tracks, n);
    noise->white = fmax(scale * dwell->energy - echoes, 0);

    const double apart = fabs(noise->cell - noise->white);
    const bool is_exact =
        is_one_row && !detector->plan->linear && pnr_format_get(detector->plan->format)->is_complex;
    const double model = is_exact ? 3e-5 : n > 1 && !detector->has_rows ? 0.3 : 0.03;
    const double error = sqrt(noise->variance) * noise->cell + model * echoes;

    noise->is_coloured = apart > 0.12 * fmin(noise->cell, noise->white) && apart > 4 * error;
    noise->shape = noise->is_coloured && noise->cell > noise->white
                       ? shape_of(&detector->bands, noise->cell / noise->white)
                       : 1;
}

/* Combines the estimate of the sum with that of the residual at the strongest echo. The variances
 * of both depend on the noise, so the result is iterated. */
static void add_residual(const pnr_detector *detector, const sums *s, double holes,
                         const pnr_track *tracks, size_t n, double least, pnr_noise *noise)
{
    const double left = fmax(s->cells, 1), of_cells = chance_of(detector, left);
    const double sidelobes = tracks[0].power * holes, sum = s->power / left;
    double cells = 0;
    const double near =
        pnr_track_noise(detector, tracks, n, 0, 0.1 * fmax(noise->cell, least), &cells) - sidelobes;
    double cell = fmax(near, least);

    for (int i = 0; i < 4; i++) {
        const double of_near = (cell + sidelobes) * (cell + sidelobes) / cells;
        double of_sum = s->error2 + s->error_noise * (cell + sidelobes);

        of_sum = s->cells < 1 ? INFINITY : of_sum / (left * left) + cell * cell * of_cells;

        const double share = isinf(of_sum) ? 0 : of_near / (of_sum + of_near);
        const double variance = isinf(of_sum) ? of_near : of_sum * share;

        cell = (isinf(of_sum) ? 0 : sum * share) + near * (1 - share);
        /* An estimate below half of its own uncertainty is no more accurate than that bound. */
        cell = fmax(cell, fmax(sqrt(variance) / 2, least));
        noise->variance = fmin(variance / (cell * cell), 0.5);
    }
    noise->cell = cell;
}

pnr_noise pnr_noise_find(const pnr_detector *detector, const pnr_observed *observed,
                         const pnr_dwell_gains *gains, const pnr_track *tracks, size_t n)
{
    /* At this relative variance (0.1 dB) the sum needs no second estimate. */
    const double negligible = 5e-4;
    const sums s = sum_outside(detector, observed, gains, tracks, n);
    const double left = fmax(s.cells, 1);
    const double least = 1e-12 * observed->dwell->noise_sum / detector->cells.n; /* rounding */
    const double cell = fmax(s.power / left, least);
    const double error = (s.error2 + s.error_noise * cell) / (left * left * cell * cell);
    const double of_cells = chance_of(detector, left);
    pnr_noise noise = {.cell = cell,
                       .variance = fmin(of_cells + error, 0.5),
                       .least = cell * fmax(1 - 2 * sqrt(error), 0)};

    if (n > 0 && !detector->is_sum && (s.cells < 1 || error > fmax(negligible, 0.1 * of_cells)))
        add_residual(detector, &s, pnr_noise_holes(detector, observed), tracks, n, least, &noise);
    else /* an estimate below its own uncertainty is no more accurate than that bound */
        noise.cell = fmax(noise.cell, sqrt(s.error2) / left);
    compare_energy(detector, observed->dwell, gains, tracks, n, &noise);
    return noise;
}

/* Returns the distance to the nearest echo of the same code within 1.5 chips and 1.5 rows; 0:
 * none. */
static double distance_beside(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                              size_t i)
{
    const pnr_radar *radar = detector->radar;
    const double chip = (double)radar->n_samples / (double)radar->n_chips;
    const pnr_track *t = &tracks[i];
    double least = 1.5 * chip;

    for (size_t k = 0; k < n; k++) {
        const double lags =
            (double)tracks[k].centre + tracks[k].fit.delay - (double)t->centre - t->fit.delay;
        const double rows = (tracks[k].bins - t->bins) * (double)detector->plan->n_periods;

        if (k != i && tracks[k].code == t->code && fabs(rows) < 1.5)
            least = fmin(least, fabs(pnr_track_distance(detector, lags, 0)));
    }
    return least < 1.5 * chip ? least : 0;
}

/* Adds the echoes of other codes to the noise, unless they were subtracted, as in maps. They are noise in the
 * cells of this code only. */
static void add_other_codes(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                            size_t i, pnr_noise *noise)
{
    const double before = noise->cell;

    for (size_t k = 0; k < n; k++) {
        bool is_exact = true;
        const double crossed =
            tracks[k].code != tracks[i].code ? crossed_by(detector, &tracks[k], &is_exact) : 0;

        if (!is_exact && !detector->has_rows)
            noise->cell += crossed / (double)(detector->n_codes - 1) * (double)detector->n_codes /
                           detector->cells.n;
    }
    noise->variance *= before * before / (noise->cell * noise->cell);
}

/* Fills the variances that the sidelobes of other echoes add to delay and relative amplitude.
 * Without phases, sums of powers cannot be cleared of them. If the echoes keep their phases from
 * look to look, they disturb all looks alike. An echo a R(u) moves by Re(b C'(u) / a) / B and grows
 * by Re(b C(u) / a) when b C(u) is added, B the mean square bandwidth. The phase of b / a is random,
 * and the means over five lags stand for the sidelobes around the peak. */
static void find_disturbance(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                             size_t i, pnr_noise *noise)
{
    const pnr_patch_echo own = pnr_track_echo(detector, &tracks[i]);
    const double bandwidth = tracks[i].code->bandwidth;

    for (size_t k = 0; k < n && !detector->has_rows; k++) {
        const pnr_patch_echo other = pnr_track_echo(detector, &tracks[k]);
        const double from = pnr_track_distance(detector, own.lag, other.lag) - MIDDLE;
        const double share = tracks[k].power / tracks[i].power / (2 * 5);
        pnr_vector response, slope;

        if (k == i || !pnr_cross_is_known(detector->cross, other.code, own.code))
            continue;
        pnr_cross_run(detector->cross, other.code, own.code, from, response, slope);
        for (int j = MIDDLE - 2; j <= MIDDLE + 2; j++) {
            noise->disturbed_amplitude += share * pnr_power(response[j]);
            noise->disturbed_delay += share * pnr_power(slope[j]) / (bandwidth * bandwidth);
        }
    }
}

void pnr_noise_around(const pnr_detector *detector, const pnr_track *tracks, size_t n, size_t i,
                      pnr_noise *noise)
{
    /* a deviation of more than this is not chance */
    const double sigmas = 5;
    const double strong = 100, rounding = 1e-11;
    const bool is_cfar = detector->plan->cfar.kind != PNR_CFAR_OFF;
    double cells = 0;

    add_other_codes(detector, tracks, n, i, noise);
    noise->misfit = 0;
    noise->beside = distance_beside(detector, tracks, n, i);
    if (detector->is_sum)
        find_disturbance(detector, tracks, n, i, noise);
    if (detector->is_sum || detector->least_squares != NULL ||
        (!is_cfar && tracks[i].power < strong * noise->cell))
        return;

    const double near = pnr_track_noise(detector, tracks, n, i, 0.1 * noise->cell, &cells);
    const double ratio = near / noise->cell, chance = sigmas * sqrt(1 / cells + noise->variance);

    if (is_cfar && (ratio > 1 + chance || ratio < 1 / (1 + chance))) {
        noise->cell = near;
        noise->variance = fmin(1 / cells, 0.5);
        noise->shape = 1;
    } else if (ratio > 1 + chance && near > rounding * tracks[i].power) {
        noise->misfit = (near - noise->cell) * cells / tracks[i].power;
    }
}
