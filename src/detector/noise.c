/* SPDX-License-Identifier: MIT */
/* Estimates the noise of a cell: from the sum of the power P of all cells minus the power of the
 * echoes, from the residual of the fit, and from the energy of the samples. */
#include "detector/noise.h"

#include "detector/state.h"
#include "engine/plan.h"

#include <math.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

double pnr_noise_holes(const pnr_detector *detector, const pnr_observed *observed)
{
    const pnr_dwell *dwell = observed->dwell;
    const double n_all = (double)dwell->n_periods * (double)detector->radar->n_samples;

    return (1 - (double)dwell->n_valid / n_all) / (double)dwell->n_valid;
}

/* Returns the relative variance of the mean of n cells. It is near crowd / n if many cells are
 * independent. A filter may leave few independent cells, because most of the noise is common to all
 * range gates. Then the mean is no gamma variable. Its inverse has a mean below 1 / (1 - crowd /
 * n), so the function returns less than crowd / n. */
static double chance_of(const pnr_detector *detector, double n)
{
    return detector->cells.crowd / (n + detector->cells.crowd);
}

/* Computes noise->white from the energy of the samples. Returns the standard deviation of
 * noise->white without the part that the noise itself causes. After a least-squares filter it
 * returns INFINITY. */
static double find_white(const pnr_detector *detector, const pnr_dwell *dwell,
                         const pnr_dwell_gains *gains, const pnr_track *tracks, size_t n,
                         const pnr_pairs *pairs, double model_of_rows, pnr_noise *noise)
{
    const double scale = gains->noise * detector->energy_of_code / (double)dwell->n_valid;
    const double windows = (double)dwell->n_valid / (double)detector->radar->n_samples;
    /* the contribution of an echo with |peak|^2 = 1 to `echoes` */
    const double of_peak = windows * scale * gains->looks /
                           (detector->energy_of_code * gains->amplitude * gains->amplitude);
    const double scale_of_pairs = n > 0 ? of_peak * tracks[0].code->energy_scale : 0;
    double echoes = scale_of_pairs * pairs->energy, error2 = 0;

    for (size_t i = 0; i < n; i++) {
        const pnr_track *t = &tracks[i];
        const double sine = sin(M_PI * t->fit.delay);
        /* v17 / v_all - 1. v17: variance of the amplitude of a fit to 17 values. v_all: the same of
         * a fit to all samples */
        const double excess = fmax(2 * t->fit.amplitude_variance - 1, 1e-4);

        error2 += 4 * pow(of_peak * t->code->energy_scale, 2) * t->power * noise->cell * excess;
        echoes += t->code->energy_scale * t->amplitude2 * windows * detector->energy_of_code *
                  scale * (1 - t->code->nyquist * sine * sine);
    }
    noise->white = fmax(scale * dwell->energy - echoes, 0);

    /* `model` is the relative error of the energy of the model echoes. The energy of an echo in
     * real samples without a carrier depends on the phase of the echo. With rows `model` is a tenth
     * of model_of_rows, the relative error of the sidelobes in rows. */
    const bool is_exact =
        !detector->plan->linear &&
        (pnr_format_get(detector->plan->format)->is_complex || detector->plan->tune.num != 0);
    const double model = !is_exact ? 0.03 : detector->has_rows ? 0.1 * model_of_rows : 1e-5;

    error2 += scale_of_pairs * scale_of_pairs * pairs->energy_variance;
    return detector->least_squares == NULL ? model * echoes + sqrt(error2) : INFINITY;
}

/* True if the echoes of other codes are subtracted, but sidelobes may hide weak echoes of these
 * codes. This needs a plan with one row, no sums of powers, and known cross-correlations. */
static bool has_hidden_codes(const pnr_detector *detector)
{
    return detector->n_codes > 1 && !detector->has_rows && !detector->is_sum &&
           pnr_cross_is_known(detector->cross, 0, 1);
}

/* Returns the mean of `shape` over the possible errors of cell / white. error: standard deviation
 * of noise->white and noise->cell together. Hidden echoes of other codes act as filtered noise,
 * because they have the spectrum of a code. */
static double expect_shape(const pnr_detector *detector, double error, const pnr_noise *noise)
{
    static const double quantiles[] = {-1.59, -0.97, -0.59, -0.28, 0, 0.28, 0.59, 0.97, 1.59};
    const double n = sizeof quantiles / sizeof *quantiles;
    double sum = 0;

    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        const double ratio = (noise->cell + quantiles[i] * error) / noise->white;

        sum += ratio > 1 ? pnr_noise_shape(&detector->bands, ratio) : 1;
    }
    return sum / n;
}

/* Sets is_coloured and `shape`. If the cells have more noise than white noise causes, the noise
 * was filtered before it was sampled. Then pnr_noise_shape computes `shape`. Otherwise `shape`
 * is 1, or its expectation if echoes of other codes are hidden. The flag needs more evidence than
 * `shape`: of a hundred dwells with white noise one may have a smaller sigma, but none the flag.
 * error: standard deviation of noise->white. */
static void compare_energy(const pnr_detector *detector, double error, pnr_noise *noise)
{
    const double apart = fabs(noise->cell - noise->white);

    error = hypot(error, sqrt(noise->variance) * fmax(noise->cell, noise->white));
    const bool is_apart = apart > 0.12 * fmin(noise->cell, noise->white);

    noise->is_coloured = is_apart && apart > 4 * error;
    if (is_apart && apart > 2.5 * error)
        noise->shape = noise->cell > noise->white
                           ? pnr_noise_shape(&detector->bands, noise->cell / noise->white)
                           : 1;
    else
        noise->shape = has_hidden_codes(detector) ? expect_shape(detector, error, noise) : 1;
}

/* Returns the mean power that the other echoes add to the neighbours of the strongest echo in
 * sums of powers of one row, where they are not subtracted. Returns 0 in all other dwells. The
 * phases of the echoes are unknown, so the standard deviation of this power is about as large as
 * its mean. */
static double sidelobes_of_others(const pnr_detector *detector, const pnr_track *tracks, size_t n)
{
    const pnr_patch_echo own = pnr_track_echo(detector, &tracks[0]);
    double sum = 0;

    for (size_t k = 1; k < n && detector->is_sum; k++) {
        const pnr_patch_echo other = pnr_track_echo(detector, &tracks[k]);
        const double from = pnr_track_distance(detector, own.lag, other.lag) - MIDDLE;
        pnr_vector response;

        if (!pnr_cross_is_known(detector->cross, other.code, own.code))
            continue;
        pnr_cross_run(detector->cross, other.code, own.code, from, response, NULL);
        for (int j = 0; j < J; j++)
            sum += tracks[k].power * pnr_power(response[j]) / J;
    }
    return sum;
}

/* Returns the noise power of a cell from the residual at the strongest echo; if echoes of other
 * codes are hidden, from the residuals at all echoes. */
static pnr_residual residual_of(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                                double least)
{
    double sum = 0, cells = 0, chance = 0;

    for (size_t i = 0; i < (has_hidden_codes(detector) ? n : 1); i++) {
        const pnr_residual own = pnr_track_noise(detector, tracks, n, i, least);

        sum += own.noise * own.cells;
        chance += own.chance * own.cells * own.cells;
        cells += own.cells;
    }
    return (pnr_residual){.noise = sum / cells, .cells = cells, .chance = chance / (cells * cells)};
}

/*
 * Combines three estimates of the noise: from the sum over the cells, from the residual at the
 * strongest echo, and noise->white. Each is weighted by the inverse of its variance. The variances
 * depend on the noise, so the function iterates. noise->white is used only in sums of powers with
 * several echoes, because these echoes disturb the residual. It has a low weight: the noise of most
 * receivers differs from white noise by 1 to 2 dB.
 */
static void add_estimates(const pnr_detector *detector, const pnr_noise_sums *s, double holes,
                          double looks, const pnr_track *tracks, size_t n, double least,
                          double white_error, pnr_noise *noise)
{
    const double colour = 0.3, left = fmax(s->cells, 1), of_cells = chance_of(detector, left);
    const double of_holes = tracks[0].power * holes;
    const double others = detector->has_rows ? pnr_sum_noise(detector, looks, tracks, n, 0)
                                             : looks * sidelobes_of_others(detector, tracks, n);
    const pnr_residual rest = residual_of(detector, tracks, n, 0.1 * fmax(noise->cell, least));
    /* In a sum of powers the residual contains only the noise in phase with the echo. This is the
     * noise of one look. */
    const double near = looks * rest.noise - of_holes - others;
    const double value[] = {s->power / left, near, noise->white};
    const bool has_white = detector->is_sum && n > 1;
    double cell = fmax(near, least);

    for (int i = 0; i < 4; i++) {
        const double of_sum = s->error2 + s->error_noise * (cell + of_holes);
        double variance[] = {
            s->cells < 1 ? INFINITY : of_sum / (left * left) + cell * cell * of_cells,
            (cell + of_holes) * (cell + of_holes) / rest.cells + others * others,
            has_white ? pow(colour * fmax(noise->white, cell), 2) + white_error * white_error
                      : INFINITY};
        double weights = 0, sum = 0, chance = 0;

        /* If the estimate from the sum is below 0, the sidelobes differ from their model. */
        if (value[0] < 0)
            variance[0] = fmax(variance[0], value[0] * value[0]);

        /* the shares of the variances that make the mean of 1 / cell too large */
        const double of_chance[] = {has_white ? cell * cell * of_cells / variance[0] : 1,
                                    pow(cell + of_holes, 2) * rest.chance / variance[1], 0};

        for (int e = 0; e < 3; e++) {
            weights += 1 / variance[e];
            sum += value[e] / variance[e];
            chance += of_chance[e] / variance[e];
        }
        /* A result below half of its standard deviation is replaced by half of this deviation. */
        cell = fmax(sum / weights, fmax(sqrt(1 / weights) / 2, least));
        noise->variance = fmin(1 / (weights * cell * cell), 0.5);
        noise->chance = fmin(chance / (weights * weights * cell * cell), noise->variance);
    }
    noise->cell = cell;
}

pnr_noise pnr_noise_find(const pnr_detector *detector, const pnr_observed *observed,
                         const pnr_dwell_gains *gains, const pnr_track *tracks, size_t n)
{
    /* Below this relative variance (0.1 dB) no second estimate is needed. */
    const double negligible = 5e-4;
    /* The sum of the noise over all cells scatters by a thousand times this power, or more; in sums
     * of powers, where pairs add to variances alone, by a hundred times. */
    const double least = (detector->is_sum ? 1e-2 : 1e-3) * (n > 0 ? tracks[n - 1].cell : 0) *
                         sqrt((double)detector->plan->n_samples / gains->looks);
    const pnr_pairs pairs = pnr_noise_pairs(detector, tracks, n, least);
    const pnr_noise_sums s = pnr_noise_sum(detector, observed, gains, tracks, n, &pairs);
    const double left = fmax(s.cells, 1);
    const double rounding = 1e-12 * observed->dwell->noise_sum / detector->cells.n;
    const double cell = fmax(s.power / left, rounding);
    const double error = (s.error2 + s.error_noise * cell) / (left * left * cell * cell);
    const double of_cells = chance_of(detector, left);
    pnr_noise noise = {.cell = cell,
                       .variance = fmin(of_cells + error, 0.5),
                       .least = cell * fmax(1 - 2 * sqrt(error), 0)};

    noise.chance = noise.variance;

    const double white_error =
        find_white(detector, observed->dwell, gains, tracks, n, &pairs, s.model, &noise);

    if (n > 0 && (s.cells < 1 || error > fmax(negligible, 0.1 * of_cells)))
        add_estimates(detector, &s, pnr_noise_holes(detector, observed), gains->looks, tracks, n,
                      rounding, white_error, &noise);
    compare_energy(detector, white_error, &noise);
    return noise;
}
