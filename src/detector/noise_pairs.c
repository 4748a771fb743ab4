/* SPDX-License-Identifier: MIT */
/* Computes the cross term of each pair of echoes, in the power of the cells and in the power of the
 * samples. */
#include "detector/noise.h"

#include "detector/state.h"

#include <math.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* Returns the sum of R(k - a) conj(R(k - b)) / R(0)^2 over the lags k in the lobe of t. Lags in the
 * lobe of `without` are left out; NULL: no lag is left out. */
static double complex overlap_in_lobe(const pnr_detector *detector, const pnr_track *t,
                                      const pnr_track *without, double a, double b)
{
    const size_t code = (size_t)(t->code - detector->codes);
    const double centre = (double)t->centre, reach = (double)t->code->lobe.reach;
    pnr_vector of_a, of_b;
    double complex sum = 0;

    pnr_cross_run(detector->cross, code, code, pnr_track_distance(detector, centre, a) - MIDDLE,
                  of_a, NULL);
    pnr_cross_run(detector->cross, code, code, pnr_track_distance(detector, centre, b) - MIDDLE,
                  of_b, NULL);
    for (double k = -reach; k <= reach; k++)
        if (without == NULL ||
            fabs(pnr_track_distance(detector, centre + k, (double)without->centre)) > reach)
            sum += of_a[MIDDLE + (int)k] * conj(of_b[MIDDLE + (int)k]);
    return sum;
}

/* Adds the term 2 Re(product * x) to *sum if the dwell has one look. In sums of powers the phase
 * between two echoes is random. There the function adds the variance of the term to *variance. */
static void add_term(const pnr_detector *detector, double complex product, double complex x,
                     double *sum, double *variance)
{
    if (detector->is_sum)
        *variance += 2 * pnr_power(product * x);
    else
        *sum += 2 * creal(product * x);
}

/* Returns the mean of exp(2 pi i x n / N) over the samples n of the look, where n = 0 is the
 * middle of the look. The cross term of two echoes has this factor if their frequencies are x
 * bins apart. */
static double tone_of(const pnr_detector *detector, double x)
{
    const double turns = M_PI * (double)detector->plan->n_periods * x;

    return fabs(turns) < 1e-6 ? 1 : sin(turns) / turns;
}

/* True if both cross terms of a pair are below `least`, or not known. with_all: the term in the
 * power of the cells is known. In sums of powers the terms only add variances, and the models of
 * echoes have greater errors than 3e-6 of the peak. */
static bool is_negligible(const pnr_detector *detector, const pnr_track *a, const pnr_track *b,
                          bool with_all, double least)
{
    const size_t of = (size_t)(a->code - detector->codes), in = (size_t)(b->code - detector->codes);
    const double apart = fabs(pnr_track_distance(detector, (double)a->centre + a->fit.delay,
                                                 (double)b->centre + b->fit.delay));
    const double model = detector->is_sum ? 3e-6 * fmax(a->power, b->power) : 0;
    double most;

    if (!pnr_cross_is_known(detector->cross, of, in))
        return true;
    most = pnr_cross_most(detector->cross, of, in, of == in ? apart : 0);
    if (with_all)
        most = fmax(most, pnr_cross_most_overlap(detector->cross, apart));
    return 4 * a->power * b->power * most * most < pow(fmax(least, model), 2);
}

/* Adds the cross terms of the tracks a and b. */
static void add_pair(const pnr_detector *detector, const pnr_track *a, const pnr_track *b,
                     pnr_pairs *out)
{
    const pnr_patch_echo of_a = pnr_track_echo(detector, a), of_b = pnr_track_echo(detector, b);
    const double tone = tone_of(detector, of_b.bins - of_a.bins);
    const double complex product =
        detector->is_sum ? sqrt(a->power * b->power) : of_a.peak * conj(of_b.peak);
    const double apart = of_b.lag - of_a.lag;
    double complex all, at;

    if (!out->is_known) {
        at = pnr_cross_at(detector->cross, of_a.code, of_b.code, apart);
        add_term(detector, product * tone, at, &out->energy, &out->energy_variance);
        return;
    }
    pnr_cross_overlap(detector->cross, apart, &at, &all);
    add_term(detector, product * tone, at, &out->energy, &out->energy_variance);
    if (detector->is_sum)
        all -= overlap_in_lobe(detector, a, NULL, of_a.lag, of_b.lag) +
               overlap_in_lobe(detector, b, a, of_a.lag, of_b.lag);
    add_term(detector, product, all, &out->all, &out->variance);
}

/* Sums the cross terms in the power of the lags and in the power of the samples. a(n) is the code.
 * Echo i has the delay d_i, the peak p_i and the amplitude A_i. Lag k has the power
 * |sum_i p_i R(k - d_i)|^2. Sample n has the power |sum_i A_i a(n - d_i)|^2. */
pnr_pairs pnr_noise_pairs(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                          double least)
{
    pnr_pairs out = {.is_known = !detector->has_rows && !detector->plan->linear &&
                                 detector->least_squares == NULL &&
                                 pnr_cross_has_overlap(detector->cross)};

    for (size_t i = 0; i < n; i++) {
        out.all += tracks[i].power * tracks[i].code->lobe.total;
        for (size_t k = 0; k < i; k++)
            if (!is_negligible(detector, &tracks[i], &tracks[k], out.is_known, least))
                add_pair(detector, &tracks[i], &tracks[k], &out);
    }
    return out;
}
