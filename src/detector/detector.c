/* SPDX-License-Identifier: MIT */
/* Computes echoes from fitted tracks: noise, SNR and sigmas. */
#include "detector/gate.h"
#include "detector/state.h"

#include "engine/plan.h"

#include <math.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MEANS = 4 /* greatest number of repeated noise estimates for a sum of powers */
};

/* (kurtosis - 1) / 2 of a uniform distribution: the samples that determine a Doppler are spread
 * uniformly in time. */
static const double flat_curvature = 0.4;

/* The variances of delay (samples^2), relative amplitude, phase (rad^2) and frequency (bins^2). */
typedef struct variances {
    double delay, amplitude, phase, bins;
} variances;

static variances find_variances(const pnr_detector *detector, const pnr_observed *observed,
                                const pnr_dwell_gains *gains, const pnr_track *t,
                                const pnr_noise *noise, double snr)
{
    const pnr_fitted *fit = &t->fit;
    /* In maps of sums of powers other echoes disturb the fit as noise does. Their part of the
     * bandwidth is smaller. */
    const double others = t->noise_of_others / noise->cell, s = snr / (1 + others);
    const double shape = (noise->shape + t->code->sidelobe_shape * others) / (1 + others);
    /* At the peak every valid sample adds about the same value, and the gains count only valid
     * samples. So lost samples add an error only to the delay. */
    /* To second order, the fitted delay has the variance 1/(2 S B) (1 + (kurtosis + 1)/(2 S)),
     * because the noise also changes the curvature of the peak. S is the signal-to-noise ratio of
     * the dwell (snr in detector.h). B is the mean square bandwidth of the code. kurtosis is the
     * kurtosis of the code's spectrum. The measured S is taken at the displaced peak. With this S
     * the numerator kurtosis + 1 becomes kurtosis - 1. */
    variances v = {fit->delay_variance * (shape * (1 + t->code->curvature_noise / s) / s +
                                          pnr_noise_holes(detector, observed)),
                   fit->amplitude_variance / s, fit->phase_variance / s,
                   t->bins_variance * (1 + flat_curvature / s) / s};

    /* A misfit may come from two equal paths that are x samples apart. The residual of the fit of
     * one echo is then the share u = (x^2 / 8)^2 B^2 (kurtosis - 1) of the power of this echo. This
     * follows from the expansion of exp(i w x / 2). Each path is x / 2 away from the fit:
     *     x^2 / 4 = 2 sqrt(u) / (B sqrt(kurtosis - 1)). */
    if (noise->misfit > 0) {
        v.delay +=
            2 * sqrt(noise->misfit) / (t->code->bandwidth * sqrt(2 * t->code->curvature_noise));
        v.amplitude += sqrt(noise->misfit);
        v.phase += sqrt(noise->misfit);
    }
    v.delay += noise->beside * noise->beside / 4;

    if (detector->is_sum) {
        /* The engine subtracts the phase of the centre value of a look from all values of that
         * look. The amplitude of the centre value is `share` times the amplitude of the peak. The
         * centre value has noise, too. The product of this noise and the noise of another value
         * increases the variances by the factor 1 + 1/(S share^2), where S is the S of one look. */
        const double product = 1 + gains->looks / (s * t->share * t->share);

        v.delay = v.delay * product + t->disturbed_delay;
        v.amplitude = v.amplitude * product + t->disturbed_amplitude;
        v.phase = NAN;
        v.bins *= product;
    }
    return v;
}

static void describe_motion(const pnr_detector *detector, const pnr_track *t, double variance,
                            pnr_echo *echo)
{
    const pnr_radar *radar = detector->radar;
    const double scale = 1 / radar->period_s;
    const double carrier_hz = detector->config->radar.carrier_hz;
    const double ways = detector->config->radar.path == PNR_PATH_ONE_WAY ? 1 : 2;

    echo->doppler_hz = t->bins * scale;
    echo->doppler_sigma_hz = sqrt(variance) * scale;
    if (!(radar->wavelength_m > 0))
        return;
    /* doppler = ways * velocity * carrier / (speed of the wave - velocity) */
    echo->velocity_mps = echo->doppler_hz * radar->wavelength_m / ways /
                         (1 + echo->doppler_hz / (ways * carrier_hz));
    echo->velocity_sigma_mps = echo->doppler_sigma_hz * radar->wavelength_m / ways;
}

/* Returns the phase change of an echo from the first sample of the look to the middle of the look,
 * rad. The echo has the frequency of the only row. */
static double middle_turn(const pnr_detector *detector)
{
    const double n = (double)detector->plan->n_samples;
    const double middle = (n * (double)detector->plan->n_periods - 1) / (2 * n);

    return 2 * M_PI * remainder(pnr_plan_bins(detector->plan, 0) * middle, 1);
}

/* Returns C/N0 in dB Hz. A matched correlation over the time T has S = T C/N0. With weights w_p of
 * the periods, T is Tr (sum w_p)^2 / sum w_p^2. Notches remove a part of the code, and a
 * least-squares filter increases the noise. Both reduce S, and this function corrects for both. */
static double find_cn0_dbhz(const pnr_detector *detector, const pnr_dwell_gains *gains,
                            const pnr_track *t, double snr)
{
    const double time_s =
        detector->radar->period_s * gains->amplitude * gains->amplitude / gains->noise;
    const double kept = 1 - detector->waveforms[t->candidate->code].removed;

    return snr > 0 ? 10 * log10(snr * t->loss / (kept * time_s)) : (double)NAN;
}

static void describe_echo(const pnr_detector *detector, const pnr_observed *observed,
                          const pnr_dwell_gains *gains, const pnr_track *t, const pnr_noise *noise,
                          pnr_echo *echo)
{
    const pnr_radar *radar = detector->radar;
    const double rate = pnr_rational_double(radar->rate_hz);
    const double scale = gains->amplitude * detector->energy_of_code;
    const double cell = noise->cell * t->loss;
    /* The noise estimate is a gamma variable. On average its inverse is too large by the factor
     * 1/(1 - chance). */
    const double snr = detector->is_sum ? t->amplitude2 * scale * scale / cell * (1 - noise->chance)
                                        : t->fit.power / cell * (1 - noise->chance) - t->fit.cells;
    const double s = snr > 1e-3 ? snr : 1e-3;
    const variances v = find_variances(detector, observed, gains, t, noise, s);

    *echo = (pnr_echo){
        .code = t->candidate->code,
        .channel = t->candidate->channel,
        .candidate = (uint32_t)(t->candidate - observed->candidates),
        .row = t->candidate->row,
        .lag = (double)t->centre + t->fit.delay,
        .snr = snr,
        .snr_db = 10 * log10(fmax(snr / gains->looks, 1e-3)),
        .looks = (uint32_t)gains->looks,
        .statistic_db = 10 * log10((double)t->candidate->power / noise->cell),
        .cn0_dbhz = find_cn0_dbhz(detector, gains, t, snr),
        .amplitude = t->code->amplitude_scale * sqrt(t->amplitude2),
        .phase_rad = detector->is_sum ? NAN : carg(t->fit.peak),
        .phase_sigma_rad = sqrt(v.phase),
        .doppler_hz = NAN,
        .doppler_sigma_hz = NAN,
        .velocity_mps = NAN,
        .velocity_sigma_mps = NAN,
    };
    echo->amplitude_sigma = echo->amplitude * sqrt(v.amplitude);
    echo->delay_s = pnr_gate_wrap(radar, pnr_radar_delay_s(radar, detector->config, echo->lag));
    echo->delay_samples = echo->delay_s * rate;
    echo->delay_sigma_s = sqrt(v.delay) / rate;
    echo->range_m = pnr_radar_range_m(radar, echo->delay_s);
    echo->range_sigma_m = radar->metres_per_second * echo->delay_sigma_s;
    if (detector->has_rows)
        describe_motion(detector, t, v.bins, echo);
    else if (detector->map != NULL) /* the echo is assumed to have the frequency of the only row */
        echo->phase_rad = remainder(echo->phase_rad + middle_turn(detector), 2 * M_PI);
}

/* Drops the weakest tracks, until a track exceeds `ratio` times the noise of a cell. Returns the
 * number of tracks left. This noise includes the power of the tested track, because the threshold
 * is computed for such a noise (setup/threshold.h). The engine's own threshold may be too low: it
 * uses the floor, which follows from the energy of the samples. The noise of the samples may differ
 * from the noise of the cells. */
static size_t drop_noise(const pnr_detector *detector, double ratio, const pnr_noise *noise,
                         const pnr_track *tracks, size_t n)
{
    double cell = noise->least;

    for (; n > 0 && detector->plan->cfar.kind == PNR_CFAR_OFF; n--) {
        const double power = (double)tracks[n - 1].candidate->power;

        cell += power * tracks[n - 1].code->lobe.total / detector->cells.n;
        if (power > ratio * cell)
            break;
    }
    return n;
}

/* Adds the echo of a track to `out`, before all weaker echoes. Adds an echo outside of the gate to
 * `outside` instead. The tracks are not sorted by SNR, because a weaker candidate may be estimated
 * as a stronger echo. */
static void add_echo(const pnr_detector *detector, const pnr_observed *observed,
                     const pnr_dwell_gains *gains, const pnr_track *t, const pnr_noise *noise,
                     pnr_detection *out, pnr_echo *outside)
{
    const pnr_radar *radar = detector->radar;
    size_t at = out->n_echoes;
    pnr_echo echo;

    describe_echo(detector, observed, gains, t, noise, &echo);
    /* the tracker of the direct path (zero.c) needs all delays, and applies the gate later */
    if (radar->zero_search_s == 0 && !pnr_gate_holds(radar, echo.delay_s, echo.delay_sigma_s)) {
        if (out->n_outside < PNR_MAX_OUTSIDE)
            outside[out->n_outside++] = echo;
        return;
    }
    for (; at > 0 && out->echoes[at - 1].snr_db < echo.snr_db; at--)
        out->echoes[at] = out->echoes[at - 1];
    out->echoes[at] = echo;
    out->n_echoes++;
    out->is_unresolved |= noise->misfit > 0 || noise->beside > 0;
    out->is_sign_changed |= t->signs.changes != 0;
}

/* True if track i is a remnant of an earlier track. Two paths within a chip are fitted as one
 * echo. The residual power of this fit appears as remnants around the echo. own[i]: the noise of
 * track i. */
static bool is_remnant(const pnr_detector *detector, const pnr_track *tracks, size_t i,
                       const pnr_noise *own)
{
    const pnr_track *t = &tracks[i];

    for (size_t k = 0; k < i; k++) {
        const double lags =
            pnr_track_distance(detector, (double)t->centre, (double)tracks[k].centre);
        const double rows = (t->bins - tracks[k].bins) * (double)detector->plan->n_periods;

        if (tracks[k].code == t->code && fabs(lags) <= J / 2 && fabs(rows) < 1.5 &&
            t->power < own[k].misfit * tracks[k].power)
            return true;
    }
    return false;
}

size_t pnr_detector_inside(const pnr_detector *detector, const pnr_candidate *candidates, size_t n)
{
    size_t n_inside = 0;

    for (size_t i = 0; i < n; i++)
        n_inside += pnr_track_is_inside(detector, &candidates[i]);
    return n_inside;
}

/* True if the engine left out maxima in the gate, and the weakest candidate in the gate is an echo.
 * A maximum that was left out may then be an echo, too. */
static bool is_cut(const pnr_detector *detector, const pnr_observed *observed,
                   const pnr_track *tracks, size_t n)
{
    const pnr_dwell *dwell = observed->dwell;
    const pnr_candidate *weakest = NULL;

    if (dwell->n_maxima <= pnr_detector_inside(detector, observed->candidates, dwell->n_candidates))
        return false;
    for (size_t i = 0; i < dwell->n_candidates; i++)
        if (pnr_track_is_inside(detector, &observed->candidates[i]) &&
            (weakest == NULL || observed->candidates[i].power < weakest->power))
            weakest = &observed->candidates[i];
    for (size_t i = 0; i < n; i++)
        if (tracks[i].candidate == weakest)
            return true;
    return false;
}

/* Fills the noise of each echo. Returns true if any echo has a misfit or another echo beside it. */
static bool find_own(const pnr_detector *detector, const pnr_track *tracks, size_t n,
                     const pnr_noise *noise, pnr_noise *own)
{
    bool is_any = false;

    for (size_t i = 0; i < n; i++) {
        own[i] = *noise;
        pnr_noise_around(detector, tracks, n, i, &own[i]);
        is_any |= own[i].misfit > 0 || own[i].beside > 0;
    }
    return is_any;
}

void pnr_detector_detect(const pnr_detector *detector, const pnr_observed *observed,
                         pnr_detection *out)
{
    const pnr_dwell *dwell = observed->dwell;
    pnr_track tracks[PNR_MAX_CANDIDATES];
    pnr_noise own[PNR_MAX_CANDIDATES];
    pnr_echo outside[PNR_MAX_OUTSIDE];

    out->noise_power = 0;
    out->is_coloured = out->is_more = out->is_unresolved = out->is_sign_changed = out->is_coarse =
        false;
    out->n_echoes = out->n_outside = 0;
    if (dwell->n_periods == 0 || dwell->n_valid == 0)
        return;

    const size_t n_found = pnr_track_all(detector, observed, tracks, &out->is_coarse);
    const pnr_dwell_gains gains = pnr_detector_gains(detector, observed);
    pnr_noise noise = pnr_noise_find(detector, observed, &gains, tracks, n_found);
    double mean = dwell->floor;

    /* In a sum of powers the noise changes the shape of an echo. The first tracking assumes the
     * floor as noise, which includes the sidelobes of strong echoes. So this loop estimates the
     * shapes and the noise in turn. */
    for (int turn = 0; turn < MEANS && detector->is_sum && noise.cell < 0.9 * mean; turn++) {
        mean = noise.cell;
        pnr_track_all_again(detector, observed, mean, tracks, n_found);
        noise = pnr_noise_find(detector, observed, &gains, tracks, n_found);
    }

    const double ratio = detector->plan->threshold[dwell->n_periods - 1] * detector->cells.ratio;
    size_t n = drop_noise(detector, ratio, &noise, tracks, n_found);

    if (n < n_found)
        noise = pnr_noise_find(detector, observed, &gains, tracks, n);
    pnr_sum_separate(detector, &gains, noise.cell, tracks, n);
    if (find_own(detector, tracks, n, &noise, own) &&
        pnr_track_split(detector, &gains, ratio, &noise, tracks, &n)) {
        noise = pnr_noise_find(detector, observed, &gains, tracks, n);
        find_own(detector, tracks, n, &noise, own);
    }
    out->is_coloured = noise.is_coloured;
    out->noise_power = noise.cell / (gains.noise * detector->energy_of_code);
    for (size_t i = 0; i < n; i++)
        if (!is_remnant(detector, tracks, i, own))
            add_echo(detector, observed, &gains, &tracks[i], &own[i], out, outside);
    out->is_more = out->n_echoes > detector->max_echoes || is_cut(detector, observed, tracks, n);
    if (out->n_echoes > detector->max_echoes)
        out->n_echoes = detector->max_echoes;
    if (out->n_outside > PNR_MAX_CANDIDATES - out->n_echoes)
        out->n_outside = PNR_MAX_CANDIDATES - out->n_echoes;
    memcpy(&out->echoes[out->n_echoes], outside, out->n_outside * sizeof *outside);
}

bool pnr_detector_has_rows(const pnr_detector *detector)
{
    return detector->has_rows;
}
