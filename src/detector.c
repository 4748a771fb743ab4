/* SPDX-License-Identifier: MIT */
/* Candidates to echoes: each is fitted with the others taken out; noise, SNR and sigmas follow. */
#include "detector.h"

#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MIDDLE = PNR_NEIGHBOURS / 2,
    MAX_PASSES = 4 /* of the fits of several echoes */
};

typedef double value[2]; /* re, im */

struct pnr_detector {
    const pnr_config *config;
    const pnr_radar *radar;
    const pnr_waveform *autocorrelation; /* R(u)/R(0) */
    pnr_fit *fit;
    double energy_of_code;  /* R(0) */
    double curvature_noise; /* (kurtosis - 1) / 2 */
    double nyquist;         /* the Nyquist bin's share of the energy */
    bool is_sum;            /* incoherent dwells */
    size_t max_echoes;      /* before those that are no targets are left out, see zero.h */
    double amplitude_scale; /* 2 for a tuned real recording: A cos(wt) is A/2 on either side of 0 */
    const double *threshold; /* [n_periods] as the engine has it */
    value rho[2 * J];        /* R(u)/R(0) at u = -J .. J-1 */
};

static void rho_at(const pnr_detector *detector, double u, value rho)
{
    pnr_waveform_at(detector->autocorrelation, u, rho);
}

static double squared(const value z)
{
    return z[0] * z[0] + z[1] * z[1];
}

/* The vertex of the parabola through (-1, a), (0, b), (1, c), b the greatest: within -1/2..1/2. */
static double vertex(double a, double b, double c)
{
    const double curvature = a - 2 * b + c;

    return curvature < 0 ? 0.5 * (a - c) / curvature : 0;
}

/* Where the climb starts: the vertex of |c| over the three lags around the cell, on the grid of the
 * search. */
static double first_guess(const pnr_detector *detector, const pnr_candidate *candidate,
                          const value *c)
{
    const size_t oversample = detector->config->detector.oversample;

    if (candidate->cell % oversample != 0)
        return 0.5;
    double p[3];

    for (int i = 0; i < 3; i++)
        p[i] = sqrt(squared(c[MIDDLE - 1 + i]));
    return p[1] >= p[0] && p[1] >= p[2] ? vertex(p[0], p[1], p[2]) : 0;
}

/* One candidate on its way to an echo. */
typedef struct track {
    const pnr_candidate *candidate;
    size_t centre; /* lag */
    value c[J];    /* as the engine gave it; of an incoherent dwell free of the noise's bias */
    pnr_fitted fit;
    double amplitude2; /* |A|^2 */
} track;

/* Distance from lag b to lag a on the circle, in (-N/2, N/2]. */
static double apart(const pnr_detector *detector, double a, double b)
{
    const double n = (double)detector->radar->n_samples;
    const double difference = a - b;

    return difference - n * floor(difference / n + 0.5);
}

/* c less what the other echo puts there: A g R(0) rho(lag - its delay). */
static void subtract(const pnr_detector *detector, const track *from, const track *other, value *c)
{
    const double distance =
        apart(detector, (double)from->centre, (double)other->centre + other->fit.delay);

    for (int j = 0; j < J; j++) {
        value rho;

        rho_at(detector, distance + j - MIDDLE, rho);
        c[j][0] -= other->fit.peak[0] * rho[0] - other->fit.peak[1] * rho[1];
        c[j][1] -= other->fit.peak[0] * rho[1] + other->fit.peak[1] * rho[0];
    }
}

/* `out`: the values of one candidate with the other echoes taken out. */
static void alone(const pnr_detector *detector, const track *t, const track *others,
                  size_t n_others, value *out)
{
    memcpy(out, t->c, sizeof t->c);
    for (size_t i = 0; i < n_others; i++)
        if (&others[i] != t)
            subtract(detector, t, &others[i], out);
}

/* Fits one candidate among the others; returns its gain. */
static double fit_among(const pnr_detector *detector, track *t, const track *others,
                        size_t n_others)
{
    const value *c = (const value *)t->c;
    value rest[J];

    if (n_others > 0) {
        alone(detector, t, others, n_others, rest);
        c = (const value *)rest;
    }
    pnr_fit_find(detector->fit, c, first_guess(detector, t->candidate, c), &t->fit);
    return t->fit.gain;
}

/* Is this candidate of a dwell summed in power no more than what the stronger echoes' sidelobes put
 * there? Their phases are gone, so it must stand out by 6 dB. */
static bool is_sidelobe(const pnr_detector *detector, const track *t, const track *others, size_t n)
{
    double power = 0;

    for (size_t i = 0; i < n; i++) {
        value rho;

        rho_at(detector,
               apart(detector, (double)t->centre + t->fit.delay,
                     (double)others[i].centre + others[i].fit.delay),
               rho);
        power += squared(rho) * squared(others[i].fit.peak);
    }
    return squared(t->fit.peak) < 4 * power;
}

/* Of an incoherent dwell c_j = sum_p c_p[j] conj(c_p[0]) / sqrt(P): the noise's own part of its
 * mean, floor rho(j) / sqrt(P), is taken out. */
static void load(const pnr_detector *detector, const pnr_dwell *dwell,
                 const pnr_candidate *candidate, track *t)
{
    t->candidate = candidate;
    t->centre = candidate->cell / detector->config->detector.oversample;
    for (int j = 0; j < J; j++) {
        t->c[j][0] = (double)candidate->value[j][0];
        t->c[j][1] = (double)candidate->value[j][1];
    }
    if (detector->is_sum && t->c[MIDDLE][0] > 0) {
        const double share = dwell->floor / t->c[MIDDLE][0];

        for (int j = 0; j < J; j++) {
            t->c[j][0] -= share * detector->rho[J + j - MIDDLE][0];
            t->c[j][1] -= share * detector->rho[J + j - MIDDLE][1];
        }
    }
}

/* Each once more, free of the weaker ones too, until no peak moves by more than rounding. */
static void refine(const pnr_detector *detector, track *tracks, size_t n)
{
    bool moved = true;

    for (int pass = 0; pass < MAX_PASSES && moved; pass++) {
        moved = false;
        for (size_t i = 0; i < n; i++) {
            double *peak = tracks[i].fit.peak;
            const value before = {peak[0], peak[1]};

            fit_among(detector, &tracks[i], tracks, n);

            const value change = {peak[0] - before[0], peak[1] - before[1]};

            moved = moved || squared(change) > 1e-14 * squared(peak);
        }
    }
}

/* The echoes among the candidates, strongest first. A candidate that the stronger ones explain is
 * none. */
static size_t sort_out(const pnr_detector *detector, const pnr_dwell *dwell,
                       const pnr_candidate *candidates, track *tracks)
{
    const double least = detector->threshold[dwell->n_periods - 1] * dwell->floor;
    bool taken[PNR_MAX_CANDIDATES] = {false};
    size_t n = 0;

    for (size_t k = 0; k < dwell->n_candidates && n < detector->max_echoes; k++) {
        size_t best = 0;
        float power = -1;

        for (size_t i = 0; i < dwell->n_candidates; i++)
            if (!taken[i] && candidates[i].power > power)
                power = candidates[best = i].power;
        taken[best] = true;

        track *t = &tracks[n];

        load(detector, dwell, &candidates[best], t);
        if (detector->is_sum) {
            fit_among(detector, t, NULL, 0);
            n += n == 0 || !is_sidelobe(detector, t, tracks, n);
        } else {
            n += fit_among(detector, t, tracks, n) > least || n == 0;
        }
    }
    if (!detector->is_sum && n > 1)
        refine(detector, tracks, n);
    return n;
}

/* |A|^2 of a track, from the peak |a| = |A| g R(0); of an incoherent dwell a = |A|^2 (sum g_p^2)
 * R(0)^2 |rho(d)| / sqrt(P), with sum g_p^2 = g^2 / windows where the windows lost alike. */
static double squared_amplitude(const pnr_detector *detector, const pnr_dwell *dwell,
                                const track *t)
{
    const double g = (double)dwell->n_valid / (double)detector->radar->n_samples;
    const double peak = sqrt(squared(t->fit.peak)) / detector->energy_of_code;
    value rho;

    if (!detector->is_sum)
        return peak * peak / (g * g);
    rho_at(detector, t->fit.delay, rho);
    return peak * (double)t->candidate->value[MIDDLE][0] * dwell->n_periods /
           (g * g * detector->energy_of_code * sqrt(squared(rho)));
}

/* sum_n a(n - x) conj(a(n - y)) / R(0), x and y lags of two echoes: R(y - x)/R(0), but a cosine at
 * the Nyquist frequency is cos(pi x) cos(pi y) there, not cos(pi (x - y)). */
static void overlap(const pnr_detector *detector, const track *x, const track *y, value out)
{
    const double sines = sin(M_PI * x->fit.delay) * sin(M_PI * y->fit.delay);

    rho_at(detector,
           apart(detector, (double)y->centre + y->fit.delay, (double)x->centre + x->fit.delay),
           out);
    out[0] -= ((x->centre ^ y->centre) & 1 ? -1 : 1) * detector->nyquist * sines;
}

/* What the echoes add to sum |x|^2. */
static double echo_energy(const pnr_detector *detector, const pnr_dwell *dwell, const track *tracks,
                          size_t n)
{
    const double g = (double)dwell->n_valid / (double)detector->radar->n_samples;
    const double energy_of_code = g * detector->energy_of_code;
    double energy = 0;

    for (size_t i = 0; i < n; i++) {
        const track *t = &tracks[i];
        value rho;

        energy += t->amplitude2 * energy_of_code;
        if (detector->nyquist > 0)
            energy -= t->amplitude2 * energy_of_code * detector->nyquist *
                      pow(sin(M_PI * t->fit.delay), 2);
        /* Of an incoherent dwell the phases are gone: the cross terms cancel on the average. */
        for (size_t k = 0; k < i && !detector->is_sum; k++) { /* 2 Re(A_i conj(A_k) overlap) */
            const double *a = t->fit.peak, *b = tracks[k].fit.peak;
            const double re = a[0] * b[0] + a[1] * b[1], im = a[1] * b[0] - a[0] * b[1];

            overlap(detector, t, &tracks[k], rho);
            energy += 2 * (re * rho[0] - im * rho[1]) / energy_of_code;
        }
    }
    return energy;
}

/* The lost share of an echo's samples over the valid ones: what is missing in its sidelobes is
 * noise of this times its own peak power. */
static double holes_of(const pnr_detector *detector, const pnr_dwell *dwell)
{
    const double n_all = (double)dwell->n_periods * (double)detector->radar->n_samples;

    return (1 - (double)dwell->n_valid / n_all) / (double)dwell->n_valid;
}

/* Noise of one cell, and the variance of that estimate over its square. */
typedef struct noise_found {
    double cell, variance;
} noise_found;

/*
 * From the whole energy less the echoes'; but an echo's peak is known from 17 values, not from all
 * samples, and the difference e of the two errors, of variance (amplitude_variance - 1/2) sigma^2,
 * leaves 2 |a| e in that rest: too much where S is near N^2; and lost samples do not all have the
 * same share of an echo. What the fit leaves of the strongest echo's 17 values is the other
 * estimate. Both are weighted by their variances, which depend on the noise itself: a few turns
 * settle that.
 */
static noise_found find_noise(const pnr_detector *detector, const pnr_dwell *dwell,
                              const track *tracks, size_t n)
{
    const double g = (double)dwell->n_valid / (double)detector->radar->n_samples;
    const double scale = g * detector->energy_of_code; /* of a sample's noise to a cell's */
    /* Each fit's three real parameters take 3/2 of a complex sample's noise along. */
    const double n_left = fmax((double)dwell->n_valid - 1.5 * (double)n, 1);
    const double least = scale * dwell->energy / (double)dwell->n_valid * 1e-12; /* rounding */
    const double rest = scale * (dwell->energy - echo_energy(detector, dwell, tracks, n)) / n_left;
    const double holes = holes_of(detector, dwell);
    double leak = 0, uneven = 0, cells = 0;
    value c[J];

    for (size_t i = 0; i < n; i++) {
        const double power = squared(tracks[i].fit.peak) / (n_left * n_left);

        leak += 4 * power * (tracks[i].fit.amplitude_variance - 0.5);
        uneven +=
            power * squared(tracks[i].fit.peak) * holes / 2; /* of |a(n)|^2, half its square */
    }
    if (n == 0 || detector->is_sum ||
        (rest > 0 && leak * rest + uneven < 0.1 * rest * rest / n_left))
        return (noise_found){fmax(rest, least), 1 / n_left};

    const double sidelobes = squared(tracks[0].fit.peak) * holes;
    double cell, variance = 0;

    alone(detector, &tracks[0], tracks, n, c);

    const double near = pnr_fit_noise(detector->fit, (const value *)c, &tracks[0].fit, &cells);

    cell = fmax(near, least);
    for (int turn = 0; turn < 4; turn++) {
        const double of_rest = leak * (cell + sidelobes) + uneven + cell * cell / n_left;
        const double of_near = (cell + sidelobes) * (cell + sidelobes) / cells;

        variance = of_rest * of_near / (of_rest + of_near);
        cell = (rest * of_near + (near - sidelobes) * of_rest) / (of_rest + of_near);
        /* Below half of its own uncertainty it says no more than that. */
        cell = fmax(cell, fmax(sqrt(variance) / 2, least));
    }
    return (noise_found){cell, fmin(variance / (cell * cell), 0.5)};
}

/* Variances of delay (samples^2), relative amplitude and phase at the SNR s. */
typedef struct variances {
    double delay, amplitude, phase;
} variances;

static variances find_variances(const pnr_detector *detector, const pnr_dwell *dwell,
                                const track *t, double s)
{
    const pnr_fitted *fit = &t->fit;
    /* Amplitude and phase are free of the lost sidelobes: every sample has its share of them. */
    /*
     * To second order the likeliest delay has the variance 1/(2 S B) (1 + (kurtosis + 1)/(2 S)):
     * the noise bends the peak too. Of the measured S, which has moved with the peak, kurtosis - 1
     * is left.
     */
    variances v = {fit->delay_variance *
                       ((1 + detector->curvature_noise / s) / s + holes_of(detector, dwell)),
                   fit->amplitude_variance / s, fit->phase_variance / s};

    if (detector->is_sum) {
        /* Each look is turned by its own value at the centre, |rho| of the peak: noise times noise
         * counts 1/(S of a look |rho|^2) more. */
        value rho;

        rho_at(detector, fit->delay, rho);

        const double product = 1 + dwell->n_periods / (s * squared(rho));

        v.delay *= product;
        v.amplitude *= product;
        v.phase = NAN;
    }
    return v;
}

static void describe(const pnr_detector *detector, const pnr_dwell *dwell, const track *t,
                     const noise_found *noise, pnr_echo *echo)
{
    const pnr_radar *radar = detector->radar;
    const double n = (double)radar->n_samples;
    const double rate = pnr_rational_double(radar->rate_hz);
    const double g = (double)dwell->n_valid / n;
    const double scale = g * detector->energy_of_code;
    /* The mean of 1/noise is 1/(1 - variance): noise is a gamma variable. */
    const double snr = detector->is_sum
                           ? t->amplitude2 * scale * scale / noise->cell
                           : t->fit.power / noise->cell * (1 - noise->variance) - t->fit.cells;
    const double s = snr > 1e-3 ? snr : 1e-3;
    const variances v = find_variances(detector, dwell, t, s);

    *echo = (pnr_echo){
        .code = t->candidate->code,
        .channel = t->candidate->channel,
        .lag = (double)t->centre + t->fit.delay,
        .snr = snr,
        .snr_db = 10 * log10(s),
        .amplitude = detector->amplitude_scale * sqrt(t->amplitude2),
        .phase_rad = detector->is_sum ? NAN : atan2(t->fit.peak[1], t->fit.peak[0]),
        .phase_sigma_rad = sqrt(v.phase),
        .doppler_hz = NAN,
        .doppler_sigma_hz = NAN,
        .velocity_mps = NAN,
        .velocity_sigma_mps = NAN,
    };
    echo->amplitude_sigma = echo->amplitude * sqrt(v.amplitude);
    echo->delay_s = pnr_radar_delay_s(radar, detector->config, echo->lag);
    echo->delay_samples = echo->delay_s * rate;
    echo->delay_sigma_s = sqrt(v.delay) / rate;
    echo->range_m = pnr_radar_range_m(radar, echo->delay_s);
    echo->range_sigma_m = radar->metres_per_second * echo->delay_sigma_s;
}

void pnr_detector_detect(const pnr_detector *detector, const pnr_dwell *dwell,
                         const pnr_candidate *candidates, pnr_detection *out)
{
    track tracks[PNR_MAX_CANDIDATES];
    const size_t n = dwell->n_periods > 0 ? sort_out(detector, dwell, candidates, tracks) : 0;
    const double per_sample =
        detector->energy_of_code * (double)dwell->n_valid / (double)detector->radar->n_samples;
    noise_found noise = {0};

    for (size_t i = 0; i < n; i++)
        tracks[i].amplitude2 = squared_amplitude(detector, dwell, &tracks[i]);

    if (dwell->n_valid > 0)
        noise = find_noise(detector, dwell, tracks, n);
    out->noise_power = dwell->n_valid > 0 ? noise.cell / per_sample : 0;
    out->n_echoes = n;
    for (size_t i = 0; i < n; i++)
        describe(detector, dwell, &tracks[i], &noise, &out->echoes[i]);
    for (size_t i = 1; i < n; i++) { /* refined fits may have changed places */
        const pnr_echo echo = out->echoes[i];
        size_t at = i;

        for (; at > 0 && out->echoes[at - 1].snr_db < echo.snr_db; at--)
            out->echoes[at] = out->echoes[at - 1];
        out->echoes[at] = echo;
    }
}

int pnr_detector_create(const pnr_config *config, const pnr_setup *setup, pnr_detector **out,
                        pnr_error *error)
{
    pnr_detector *detector = calloc(1, sizeof *detector);

    *out = detector;
    if (detector == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "detector: out of memory");
    detector->config = config;
    detector->radar = &setup->radar;
    detector->autocorrelation = setup->codes[0].autocorrelation;
    detector->threshold = setup->threshold;
    detector->is_sum = config->dwell.combine == PNR_COMBINE_INCOHERENT;
    detector->max_echoes = config->radar.zero == PNR_ZERO_DIRECT_PATH ? PNR_MAX_CANDIDATES
                                                                      : config->detector.max_echoes;
    detector->amplitude_scale =
        !pnr_format_get(setup->plan.format)->is_complex && setup->plan.tune.num != 0 ? 2 : 1;
    detector->energy_of_code = pnr_waveform_energy(setup->codes[0].waveform);
    detector->nyquist = pnr_waveform_nyquist(setup->codes[0].waveform);
    detector->curvature_noise = (pnr_waveform_kurtosis(setup->codes[0].waveform) - 1) / 2;
    for (int u = -J; u < J; u++)
        rho_at(detector, u, detector->rho[J + u]);
    if (pnr_fit_create(setup->codes[0].autocorrelation, &detector->fit) != PNR_OK) {
        pnr_detector_destroy(detector);
        *out = NULL;
        return pnr_error_set(error, PNR_ENOMEMORY, "detector: out of memory");
    }
    return PNR_OK;
}

void pnr_detector_destroy(pnr_detector *detector)
{
    if (detector == NULL)
        return;
    pnr_fit_destroy(detector->fit);
    free(detector);
}
