/* SPDX-License-Identifier: MIT */
/* Estimates the noise of a cell in two ways: from the sum of the power P of all cells minus the
 * power of the echoes, and from the residual of the fit. */
#include "detector/noise.h"

#include "detector/state.h"
#include "engine/plan.h"
#include "setup/threshold.h"

#include <math.h>
#include <stdlib.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* The sums from which the noise of a cell follows. */
typedef struct sums {
    double power, cells; /* P and number of the cells outside the lobes; P without sidelobes */
    double sidelobes;    /* power of the sidelobes of all echoes */
    double error2;       /* variance of `power` without the part that grows with the noise */
    double error_noise;  /* factor of the part that grows: error_noise * noise of a cell */
} sums;

static size_t index_of(const pnr_observed *observed, const pnr_track *t)
{
    return (size_t)(t->candidate - observed->candidates);
}

/* The distance in lags and rows from one track to an earlier track whose lobe overlaps its own.
 * reach: that of the earlier lobe, lags. */
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

/* True if the cell at these lags and rows from the track lies in one of the earlier lobes. */
static bool is_counted(const overlap *overlaps, size_t n, long lags, long rows)
{
    for (size_t e = 0; e < n; e++)
        if (labs(lags - overlaps[e].lags) <= overlaps[e].reach &&
            labs(rows - overlaps[e].rows) <= MIDDLE)
            return true;
    return false;
}

/*
 * Subtracts the cells in the lobe of track i from *s. With several looks values[] are sums over the
 * looks (plan.h, Neighbours), so |values[j]|^2 is only the part of P that is in phase with the
 * centre. Noise has `looks` dimensions: the noise of the other looks - 1 stays in the sum, and
 * s->cells keeps their share.
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
    double inside = pnr_lobe_inside(lobe, t->fit.delay);

    if (detector->least_squares != NULL) /* echo between gates: sum of sinc^2(k - d), |k| > reach */
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

/* Returns the power that an echo puts into all cells of the other codes. *is_exact: this power is
 * known from the correlations of the codes. Otherwise each code gets the power of the echo's lobe,
 * because the cross-correlation of two unlike codes with the same spectrum has this power. */
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
        /* alike: the share of sidelobes that add in phase. total / N: the share of sidelobes that
         * add by chance, because only N / total lags are independent. */
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

/* Returns the part of the energy of the echoes that pairs of unlike echoes share in one row,
 * divided by R(0). The samples without the echoes, subtracted by least squares, have the energy of
 * the samples minus the sum over all pairs of A_i conj(A_j) R(0) C(d_j - d_i). */
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
                       ? pnr_noise_shape(&detector->bands, noise->cell / noise->white)
                       : 1;
}

/* Combines the estimate from the sum over the cells with the estimate from the residual at the
 * strongest echo. The variances of both depend on the noise, so the result is iterated. */
static void add_residual(const pnr_detector *detector, const sums *s, double holes, double looks,
                         const pnr_track *tracks, size_t n, double least, pnr_noise *noise)
{
    const double left = fmax(s->cells, 1), of_cells = chance_of(detector, left);
    const double sidelobes = tracks[0].power * holes, sum = s->power / left;
    double cells = 0;
    /* In a sum of powers the residual is in phase with the echo: it is that of one look. */
    const double near =
        looks * pnr_track_noise(detector, tracks, n, 0, 0.1 * fmax(noise->cell, least), &cells) -
        sidelobes;
    double cell = fmax(near, least);

    for (int i = 0; i < 4; i++) {
        const double of_near = (cell + sidelobes) * (cell + sidelobes) / cells;
        double of_sum = s->error2 + s->error_noise * (cell + sidelobes);

        of_sum = s->cells < 1 ? INFINITY : of_sum / (left * left) + cell * cell * of_cells;

        const double share = isinf(of_sum) ? 0 : of_near / (of_sum + of_near);
        const double variance = isinf(of_sum) ? of_near : of_sum * share;

        cell = (isinf(of_sum) ? 0 : sum * share) + near * (1 - share);
        /* A result below half of its standard deviation is replaced by half of the standard
         * deviation. */
        cell = fmax(cell, fmax(sqrt(variance) / 2, least));
        noise->variance = fmin(variance / (cell * cell), 0.5);
    }
    noise->cell = cell;
}

pnr_noise pnr_noise_find(const pnr_detector *detector, const pnr_observed *observed,
                         const pnr_dwell_gains *gains, const pnr_track *tracks, size_t n)
{
    /* Below this relative variance (0.1 dB) no second estimate is needed. */
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

    if (n > 0 && (s.cells < 1 || error > fmax(negligible, 0.1 * of_cells)))
        add_residual(detector, &s, pnr_noise_holes(detector, observed), gains->looks, tracks, n,
                     least, &noise);
    compare_energy(detector, observed->dwell, gains, tracks, n, &noise);
    return noise;
}
