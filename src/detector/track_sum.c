/* SPDX-License-Identifier: MIT */
/* Other echoes in sums of powers. These sums have no phases, so the tracks contain all echoes. The
 * echoes nearest to a track are fitted jointly with it. The others add variances. */
#include "detector/state.h"
#include "engine/plan.h"

#include <math.h>
#include <string.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* Returns the power of the sum of `looks` equal vectors, divided by the power of a sum with random
 * phases. The phase turns by `turns` from look to look. */
static double coherence(double turns, double looks)
{
    const double sine = sin(M_PI * turns);

    return fabs(sine) < 1e-6 ? looks : pow(sin(M_PI * looks * turns) / sine, 2) / looks;
}

/* Returns the power that an echo adds to a cell of track t in a map, as a mean over the lags. Cells
 * of other codes, and far rows of the same code, contain the self-noise of the code. Near rows
 * contain its sidelobes. */
static double power_in_map(const pnr_detector *detector, const pnr_track *t, const pnr_track *other)
{
    enum { NEAR = 2 };
    const double cells = (double)detector->plan->n_samples * (double)pnr_plan_rows(detector->plan);
    const size_t of = (size_t)(other->code - detector->codes);
    const pnr_patch_spread spread = pnr_fit_patch_spread(detector->map, of, other->bins);
    const pnr_patch_echo echo = pnr_track_echo(detector, other);
    pnr_patch_place place = pnr_track_place(detector, t);

    if (t->code != other->code)
        return other->power * other->code->lobe.inside[PNR_LOBE_STEPS] * spread.rows / cells;
    place.lag -= NEAR;
    return other->power * spread.rough / cells +
           pnr_fit_patch_power(detector->map, &place, &echo, INFINITY, 2 * NEAR + 1) /
               (2 * NEAR + 1);
}

double pnr_sum_noise(const pnr_detector *detector, double looks, const pnr_track *tracks, size_t n,
                     size_t i)
{
    const double periods = (double)detector->plan->n_periods;
    double power = 0;

    for (size_t k = 0; k < n && detector->is_sum && detector->has_rows; k++)
        if (k != i)
            power += coherence((tracks[k].bins - tracks[i].bins) * periods, looks) *
                     power_in_map(detector, &tracks[i], &tracks[k]);
    return power;
}

/* --- one row --- */

/* What another echo adds to a track. response: its values, on the scale of the track's values.
 * delay, amplitude: the variances that it causes in a fit without it, if its phase is random and
 * equal in all looks. */
typedef struct neighbour {
    double delay, amplitude;
    pnr_vector response;
} neighbour;

/* Fills the responses of the other echoes that are not negligible. Returns their number. */
static size_t list_neighbours(const pnr_detector *detector, const pnr_track *t,
                              const pnr_track *tracks, size_t n, double cell, neighbour *out)
{
    size_t n_out = 0;

    for (size_t k = 0; k < n; k++) {
        if (&tracks[k] == t || !pnr_others_reach(detector, t, &tracks[k].told.echo, cell))
            continue;
        out[n_out] = (neighbour){0};
        pnr_others_add(detector, t, &tracks[k].told, 1, &out[n_out++].response);
    }
    return n_out;
}

/* Fills the variances of n neighbours. Returns the index of the neighbour with the greatest effect.
 * *effect: the greater ratio of its variances to those of the noise. cell: the noise power of a
 * cell in one look. */
static size_t weigh_neighbours(const pnr_track *t, const pnr_fit_pull *pull, double cell,
                               neighbour *neighbours, size_t n, double *effect)
{
    size_t best = 0;

    *effect = 0;
    for (size_t k = 0; k < n; k++) {
        neighbour *at = &neighbours[k];

        at->delay = pnr_power(pnr_inner(pull->delay, at->response)) / (2 * t->power);
        at->amplitude = pnr_power(pnr_inner(pull->amplitude, at->response)) / (2 * t->power);

        const double own =
            fmax(at->delay / t->fit.delay_variance, at->amplitude / t->fit.amplitude_variance) *
            t->power / cell;

        if (own > *effect) {
            *effect = own;
            best = k;
        }
    }
    return best;
}

/* Moves the neighbours that add more than a tenth to a variance to the front, and copies their
 * values to e. The first has the greatest effect on a fit of the track alone, and each next one on
 * a joint fit with those before it. The others keep the variances that they add to the joint fit.
 * Returns the number of chosen neighbours, at most PNR_AMONG_MOST. */
static size_t choose_near(const pnr_track *t, double cell, neighbour *neighbours, size_t n,
                          pnr_vector e[PNR_AMONG_MOST])
{
    const double least = 0.1;
    const pnr_fit_pull *pull = pnr_fit_among_pull(t->code->among, t->fit.delay);
    pnr_fit_pull beside;

    for (size_t n_near = 0;; n_near++) {
        double effect;
        const size_t best =
            n_near + weigh_neighbours(t, pull, cell, neighbours + n_near, n - n_near, &effect);

        if (n_near == PNR_AMONG_MOST || !(effect > least))
            return n_near;

        const neighbour strongest = neighbours[best];

        neighbours[best] = neighbours[n_near];
        neighbours[n_near] = strongest;
        memcpy(e[n_near], strongest.response, sizeof e[n_near]);
        pnr_fit_among_pull_beside(t->code->among, t->fit.delay, (const pnr_vector *)e, n_near + 1,
                                  cell, &beside);
        pull = &beside;
    }
}

/* cell: the noise power of a cell in one look. */
static void separate_track(const pnr_detector *detector, const pnr_dwell_gains *gains, double cell,
                           const pnr_track *tracks, size_t n_tracks, pnr_track *t)
{
    neighbour neighbours[PNR_MAX_CANDIDATES];
    pnr_vector e[PNR_AMONG_MOST];
    const size_t n = list_neighbours(detector, t, tracks, n_tracks, cell, neighbours);
    double effect;

    size_t n_near = choose_near(t, cell, neighbours, n, e);

    if (n_near > 0 &&
        pnr_fit_among_find(t->code->among, t->code->fit, t->c[0], (const pnr_vector *)e, n_near,
                           cell, &t->fit, &t->others)) {
        t->share = sqrt(pnr_power(pnr_waveform_at(t->code->autocorrelation, t->fit.delay)));
        pnr_track_measure(detector, gains, t);
    } else if (n_near > 0) { /* the joint fit did not converge */
        n_near = 0;
        weigh_neighbours(t, pnr_fit_among_pull(t->code->among, t->fit.delay), cell, neighbours, n,
                         &effect);
    }
    for (size_t k = n_near; k < n; k++) {
        t->disturbed_delay += neighbours[k].delay;
        t->disturbed_amplitude += neighbours[k].amplitude;
    }
}

void pnr_sum_separate(const pnr_detector *detector, const pnr_dwell_gains *gains, double cell,
                      pnr_track *tracks, size_t n)
{
    if (!detector->is_sum || n < 2)
        return;
    for (size_t i = 0; i < n && detector->has_rows; i++)
        tracks[i].noise_of_others = pnr_sum_noise(detector, gains->looks, tracks, n, i);
    if (detector->has_rows)
        return;
    for (size_t i = 0; i < n; i++)
        pnr_others_note(detector, &tracks[i]);
    /* The weakest track is the first: stronger tracks are fitted at its improved delay. */
    for (size_t i = n; i-- > 0;) {
        separate_track(detector, gains, cell / gains->looks, tracks, n, &tracks[i]);
        pnr_others_note(detector, &tracks[i]);
    }
}
