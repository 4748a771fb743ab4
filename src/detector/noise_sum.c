/* SPDX-License-Identifier: MIT */
/* Subtracts the power of the echoes from the sum of the power P of all cells. */
#include "detector/noise.h"

#include "detector/state.h"
#include "engine/plan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

static size_t index_of(const pnr_observed *observed, const pnr_track *t)
{
    return (size_t)(t->candidate - observed->candidates);
}

/* The distance in lags and rows from a track to an earlier track. The lobes of both tracks overlap.
 * reach: lags of the earlier track's lobe on either side of its peak. */
typedef struct overlap {
    long lags, rows, reach;
} overlap;

/* Lists the earlier tracks with lobes that overlap the lobe of track i. Returns their number. */
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

/* Fills `model` with the sum of all model echoes in the values of a track, in a plan with one row.
 * Only there c minus `rest` is the sum of all other model echoes. is_alone: no other lobe overlaps
 * the lobe of the track. If it also has no other echo in its values, as most tracks, adds the power
 * of the model echo in its lobe to s->lobes instead, and returns false. */
static bool fill_model(const pnr_detector *detector, const pnr_track *t, bool is_alone,
                       pnr_noise_sums *s, pnr_vector *model)
{
    if (is_alone && memcmp(t->c[0], t->rest[0], sizeof *model) == 0) {
        s->lobes += t->power * pnr_lobe_inside(&t->code->lobe, t->fit.delay);
        return false;
    }
    for (int j = 0; j < J; j++)
        (*model)[j] = t->c[0][j] - t->rest[0][j];
    pnr_others_add(detector, t, &t->told, 1, model);
    return true;
}

/* Subtracts the cells in the lobe of track i from *s. With several looks values[] are sums over the
 * looks (plan.h, Neighbours), so |values[j]|^2 is only the part of P that is in phase with the
 * centre. Noise has `looks` dimensions. The noise of looks - 1 dimensions remains in the sum, so
 * s->cells still counts this part of each cell. with_model: also adds the power of the sum of all
 * model echoes in these cells to s->lobes. with_model needs a plan with one row. */
static void remove_lobe(const pnr_detector *detector, const pnr_observed *observed,
                        const pnr_track *tracks, size_t i, double looks, bool with_model,
                        pnr_noise_sums *s)
{
    const double unseen = 1 - 1 / looks;
    const pnr_track *t = &tracks[i];
    const long reach = (long)t->code->lobe.reach, n_rows = (long)pnr_plan_rows(detector->plan);
    const long rows = detector->has_rows ? MIDDLE : 0, row = t->candidate->row;
    const float complex *values =
        detector->has_rows
            ? (const float complex *)observed->patches + index_of(observed, t) * J * J
            : (const float complex *)t->candidate->value - MIDDLE * J;

    overlap overlaps[PNR_MAX_CANDIDATES];
    const size_t n_overlaps = list_overlaps(detector, tracks, i, overlaps);
    pnr_vector model;

    with_model = with_model && fill_model(detector, t, n_overlaps == 0, s, &model);
    for (long r = -rows; r <= rows; r++) {
        if (row + r < 0 || row + r >= n_rows)
            continue;
        for (long j = -reach; j <= reach; j++) {
            const double rho2 = r == 0 ? pnr_power(t->code->rho[J + j]) : 0;

            if (is_counted(overlaps, n_overlaps, j, r))
                continue;
            s->power -= pnr_power((double complex)values[(MIDDLE + r) * J + MIDDLE + j]);
            if (with_model)
                s->lobes += pnr_power(model[MIDDLE + j]);
            s->cells -= 1 - unseen * (1 - rho2);
        }
    }
}

/* The power of an echo in the cells outside its lobe. `alike`: the part of `power` that has the
 * shape of R, in the rows of the echo. error2: the variance of `power` without the part that the
 * noise causes. */
typedef struct sidelobes {
    double power, alike, error2;
} sidelobes;

/* Returns the relative error of the model of sidelobes. With rows, a rotation spreads a part of an
 * echo over all lags. The relative error of this part is a few hundredths. The model is rough with
 * tapers, a removed mean, a stretch or linear windows. It is also rough between the range gates of
 * a least-squares filter. */
static double model_error(const pnr_detector *detector)
{
    const pnr_plan *plan = detector->plan;
    const double first = pnr_plan_hypothesis(plan, 0).stretch;

    if (plan->linear || plan->taper != NULL || plan->remove_mean ||
        detector->least_squares != NULL ||
        pnr_plan_hypothesis(plan, plan->n_hypotheses - 1).stretch != first)
        return 0.3;
    return detector->has_rows ? 0.05 : 3e-3;
}

/* Corrects three powers of an echo for the rows of a map. *total: in all cells. *inside: in the
 * cells of its lobe. *alike: outside of the lobe, in the shape of R. Each power is divided by P at
 * the peak of the echo. */
static void add_rows(const pnr_detector *detector, const pnr_track *t, double *total,
                     double *inside, double *alike)
{
    /* The model of an echo may be wrong in each cell by 1/100 of the noise that is passed to it, so
     * here by a third of the noise of a cell. The effect of this error on the sum over all cells is
     * small. */
    const double coarse = 30 * t->cell;
    const pnr_patch_place place = pnr_track_place(detector, t);
    const pnr_patch_echo echo = pnr_track_echo(detector, t);
    const pnr_patch_spread spread = pnr_fit_patch_spread(detector->map, place.code, t->bins);

    *total = spread.smooth * *total + spread.rough;
    *alike *= spread.smooth;
    if (detector->least_squares != NULL)
        return;
    pnr_sign_begin(detector, t);
    *inside = pnr_fit_patch_inside(detector->map, &place, &echo, coarse, (int)t->code->lobe.reach);
    pnr_sign_end(detector, t);
    *inside /= fmax(pnr_power(echo.peak), DBL_MIN);
}

/* Returns the sidelobes of a track. seen: the share of the cells outside the track's lobe that are
 * in no other lobe. */
static sidelobes sidelobes_of(const pnr_detector *detector, const pnr_track *t, double seen)
{
    const pnr_lobe *lobe = &t->code->lobe;
    const pnr_plan *plan = detector->plan;
    const double sine = sin(M_PI * t->fit.delay), model = model_error(detector);
    double total = lobe->total * (1 - lobe->nyquist * sine * sine);
    double inside = pnr_lobe_inside(lobe, t->fit.delay), alike = fmax(total - inside, 0);

    if (detector->has_rows)
        add_rows(detector, t, &total, &inside, &alike);
    if (plan->linear)
        total = inside + (total - inside) * fmin((double)plan->n_lags / (double)plan->n_samples, 1);
    if (detector->least_squares != NULL) /* the sum of sinc^2(k - d) over |k| > reach, for
                                          * an echo between two range gates */
        total = inside + 2 * sine * sine / (M_PI * M_PI * ((double)lobe->reach + 0.5));

    const double own = seen * t->power * fmax(total - inside, 0);

    return (sidelobes){.power = own,
                       .alike = fmin(seen * t->power * alike, own),
                       .error2 = model * model * (own * own + 4e-3 * t->power * t->power)};
}

/* Returns the variance of the cross term of the sidelobes of two echoes. The part lobe.alike of the
 * sidelobes adds in phase. The other sidelobes add with random phases. Only N / total lags are
 * independent. Each product of two sidelobes occurs twice, since R(-u) = conj(R(u)). Echoes of
 * different frequencies overlap only in the sidelobes of slow time. */
static double shared_power(const pnr_detector *detector, const pnr_track *a, const sidelobes *of_a,
                           const pnr_track *b, const sidelobes *of_b)
{
    const pnr_lobe *lobe = &a->code->lobe;
    const double chance = 4 * lobe->total / (double)detector->plan->n_samples;
    const double turns = M_PI * (double)detector->plan->n_periods * remainder(a->bins - b->bins, 1);
    const double together = detector->has_rows ? fmin(1 / (turns * turns + 1e-9), 1) : 1;

    if (a->code != b->code)
        return 0;
    return together *
           (2 * lobe->alike * of_a->alike * of_b->alike + chance * of_a->power * of_b->power);
}

/* Returns the power that an echo adds to all cells of the other codes. *is_exact: this power is
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

    return power * pnr_fit_patch_spread(detector->map, of, t->bins).rows;
}

/* Subtracts the power that an echo adds to the cells of the other codes. own: the power of the
 * echo's sidelobes in the cells of its own code. *all_crossed: the sum of the powers that
 * crossed_by has computed exactly. */
static void subtract_crossed(const pnr_detector *detector, const pnr_track *t, double own,
                             double *all_crossed, pnr_noise_sums *s)
{
    bool is_known;
    const double crossed = crossed_by(detector, t, &is_known);
    const double chance = 2 * t->code->lobe.total / (double)detector->plan->n_samples;
    const double model = is_known ? s->model : 0.1;

    s->power -= crossed;
    s->error2 += model * crossed * model * crossed + chance * own * *all_crossed;
    if (!is_known)
        return;
    s->error2 += chance * crossed * s->sidelobes;
    s->sidelobes += crossed;
    *all_crossed += crossed;
}

/* Returns the variance of the product of an echo's sidelobes and the noise, divided by the noise of
 * a cell: 2 E(|sum conj(s_k) n_k|^2), where s_k are the sidelobes. Subtracts the part that the fit
 * explains: the noise at the peak changes the fitted amplitude, and so the power of the sidelobes
 * that is subtracted. own: the power of the sidelobes. */
static double mixed_with(const pnr_track *t, double seen, double own)
{
    const double mixed = seen * t->power * pnr_lobe_mixed(&t->code->lobe, t->fit.delay);

    return 2 * fmax(mixed - own * own / fmax(t->power, DBL_MIN), 0);
}

/* Does the same for sidelobes and noise of independent cells. */
static double mixed_as_white(const pnr_track *t, double own)
{
    const double peak = fmax(t->power, DBL_MIN);

    return 2 * own + 4 * own * own * t->loss * t->fit.amplitude_variance / peak;
}

pnr_noise_sums pnr_noise_sum(const pnr_detector *detector, const pnr_observed *observed,
                             const pnr_dwell_gains *gains, const pnr_track *tracks, size_t n,
                             const pnr_pairs *pairs)
{
    const double holes = pnr_noise_holes(detector, observed);
    const bool is_known = pairs->is_known && !detector->is_sum && holes == 0;
    const bool is_exact = is_known && n > 1; /* of one echo `own` is exact, too */
    pnr_noise_sums s = {.power = observed->dwell->noise_sum,
                        .cells = detector->cells.n,
                        .model = model_error(detector)};
    sidelobes sides[PNR_MAX_CANDIDATES];
    double lobe[PNR_MAX_CANDIDATES], all_crossed = 0;

    for (size_t i = 0; i < n; i++) {
        const double before = s.cells;

        remove_lobe(detector, observed, tracks, i, gains->looks, is_exact, &s);
        lobe[i] = before - s.cells;
    }
    for (size_t i = 0; i < n; i++) {
        const pnr_track *t = &tracks[i];
        /* the share of this track's sidelobes that lies in no lobe */
        const double seen = fmax(s.cells, 0) / fmax(detector->cells.n - lobe[i], 1);
        const sidelobes of = sides[i] = sidelobes_of(detector, t, seen);
        const double peak = t->power, own = of.power;
        const double others = holes * peak * fmax(s.cells, 0);

        s.power -= (is_exact ? 0 : own) + others;
        s.error_noise +=
            is_known && t->code->lobe.is_mixed ? mixed_with(t, seen, own) : mixed_as_white(t, own);
        s.error2 += (is_known ? 0 : of.error2) + holes / 2 * peak * peak;
        for (size_t k = 0; k < i && !pairs->is_known; k++)
            s.error2 += shared_power(detector, t, &of, &tracks[k], &sides[k]);
        s.sidelobes += own;
        if (detector->n_codes > 1)
            subtract_crossed(detector, t, own, &all_crossed, &s);
    }
    if (is_exact)
        s.power -= pairs->all - s.lobes;
    if (is_known)
        s.error2 += pow(1e-5 * pairs->all, 2);
    s.error2 += pairs->variance;
    /* the rounding of sums in single precision */
    s.error2 += pow(1e-6 * observed->dwell->noise_sum, 2);
    return s;
}
