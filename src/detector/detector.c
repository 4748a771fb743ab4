/* SPDX-License-Identifier: MIT */
/* Computes echoes from fitted tracks: noise, SNR and sigmas. */
#include "detector/gate.h"
#include "detector/state.h"

#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    J = PNR_NEIGHBOURS,
    MEANS = 4 /* turns of the noise in sums of powers */
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
                                const pnr_noise *noise, double s)
{
    const pnr_fitted *fit = &t->fit;
    /* Lost samples do not disturb amplitude and phase, because every sample contributes equally to
     * these. */
    /* To second order the likeliest delay has the variance 1/(2 S B) (1 + (kurtosis + 1)/(2 S)),
     * because the noise also bends the peak. B is the code's bandwidth. The measured S is taken at
     * the displaced peak. With this S the numerator kurtosis + 1 becomes kurtosis - 1. */
    variances v = {fit->delay_variance * (noise->shape * (1 + t->code->curvature_noise / s) / s +
                                          pnr_noise_holes(detector, observed)),
                   fit->amplitude_variance / s, fit->phase_variance / s,
                   t->bins_variance * (1 + flat_curvature / s) / s};

    /* Two paths of half the power each lie x apart. The fit of one echo leaves the residual u =
     * (x^2 / 8)^2 B^2 (kurtosis - 1) of their power, from the expansion of exp(i w x / 2). Each
     * path lies x / 2 from the fit: x^2 / 4 = 2 sqrt(u) / (B sqrt(kurtosis - 1)). */
    if (noise->misfit > 0) {
        v.delay +=
            2 * sqrt(noise->misfit) / (t->code->bandwidth * sqrt(2 * t->code->curvature_noise));
        v.amplitude += sqrt(noise->misfit);
        v.phase += sqrt(noise->misfit);
    }
    v.delay += noise->beside * noise->beside / 4;

    if (detector->is_sum) {
        /* The phase of each look is taken from its own centre value, whose amplitude is `share`
         * times that of the peak. The product of the noise of a value and the noise of the centre
         * multiplies the variances by 1 + 1/(S share^2), where S is that of one look. */
        const double product = 1 + gains->looks / (s * t->share * t->share);

        v.delay = v.delay * product + noise->disturbed_delay;
        v.amplitude = v.amplitude * product + noise->disturbed_amplitude;
        v.phase = NAN;
        v.bins *= product;
    }
    return v;
}

/* Fills Doppler and velocity of an echo. */
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
    /* doppler = ways velocity carrier / (speed - velocity) */
    echo->velocity_mps = echo->doppler_hz * radar->wavelength_m / ways /
                         (1 + echo->doppler_hz / (ways * carrier_hz));
    echo->velocity_sigma_mps = echo->doppler_sigma_hz * radar->wavelength_m / ways;
}

/* Returns the phase, rad, by which the frequency of the only row turns an echo from the first
 * sample of the look to its middle. */
static double middle_turn(const pnr_detector *detector)
{
    const double n = (double)detector->plan->n_samples;
    const double middle = (n * (double)detector->plan->n_periods - 1) / (2 * n);

    return 2 * M_PI * remainder(pnr_plan_bins(detector->plan, 0) * middle, 1);
}

/*
 * C/N0 in dB Hz. A matched correlation over the time T has S = C/N0 T. Weights w_p of the periods
 * replace T by Tr (sum w_p)^2 / sum w_p^2. The part of the code that notches removed is missing in
 * S, and so is the loss of a least-squares filter: both are corrected.
 */
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
    /* The noise estimate is a gamma variable: on average its inverse is too large by the factor
     * 1/(1 - variance). */
    const double snr = detector->is_sum
                           ? t->amplitude2 * scale * scale / cell * (1 - noise->variance)
                           : t->fit.power / cell * (1 - noise->variance) - t->fit.cells;
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

/* Drops the weakest tracks that this noise explains, and returns the number of tracks left. The
 * noise includes the power of the tested track, as the threshold expects (setup/threshold.h). The
 * engine's floor may be too low, because it comes from the samples, whose noise may differ from
 * that of the cells. */
static size_t drop_noise(const pnr_detector *detector, const pnr_dwell *dwell,
                         const pnr_noise *noise, const pnr_track *tracks, size_t n)
{
    const double ratio = detector->plan->threshold[dwell->n_periods - 1] * detector->cells.ratio;
    double cell = noise->least;

    for (; n > 0 && detector->plan->cfar.kind == PNR_CFAR_OFF; n--) {
        const double power = (double)tracks[n - 1].candidate->power;

        cell += power * tracks[n - 1].code->lobe.total / detector->cells.n;
        if (power > ratio * cell)
            break;
    }
    return n;
}

/* Adds the echo of a track before all weaker echoes, if the echo lies in the gate. The tracks are
 * not in this order, because a weaker candidate may be estimated as a stronger echo. */
static void add_echo(const pnr_detector *detector, const pnr_observed *observed,
                     const pnr_dwell_gains *gains, const pnr_track *t, const pnr_noise *noise,
                     pnr_detection *out)
{
    const pnr_radar *radar = detector->radar;
    size_t at = out->n_echoes;
    pnr_echo echo;

    describe_echo(detector, observed, gains, t, noise, &echo);
    /* the tracker of the direct path (zero.c) needs all delays, and applies the gate later */
    if (radar->zero_search_s == 0 && !pnr_gate_holds(radar, echo.delay_s, echo.delay_sigma_s))
        return;
    for (; at > 0 && out->echoes[at - 1].snr_db < echo.snr_db; at--)
        out->echoes[at] = out->echoes[at - 1];
    out->echoes[at] = echo;
    out->n_echoes++;
    out->is_unresolved |= noise->misfit > 0 || noise->beside > 0;
    out->is_sign_changed |= t->signs.changes != 0;
}

/* True if track i is a remnant of an earlier track: two paths within a chip are fitted as one echo,
 * and the power that this fit leaves appears around it as remnants. misfit: the energy of the
 * remnants around each track. */
static bool is_remnant(const pnr_detector *detector, const pnr_track *tracks, size_t i,
                       const double *misfit)
{
    const pnr_track *t = &tracks[i];

    for (size_t k = 0; k < i; k++) {
        const double lags =
            pnr_track_distance(detector, (double)t->centre, (double)tracks[k].centre);
        const double rows = (t->bins - tracks[k].bins) * (double)detector->plan->n_periods;

        if (tracks[k].code == t->code && fabs(lags) <= J / 2 && fabs(rows) < 1.5 &&
            t->power < misfit[k])
            return true;
    }
    return false;
}

/* True if the engine left out maxima, and the weakest candidate that it returned is an echo. A
 * maximum that it left out may then be an echo, too. */
static bool is_cut(const pnr_dwell *dwell, const pnr_observed *observed, const pnr_track *tracks,
                   size_t n)
{
    const pnr_candidate *weakest = observed->candidates;

    if (dwell->n_maxima <= dwell->n_candidates)
        return false;
    for (size_t i = 1; i < dwell->n_candidates; i++)
        if (observed->candidates[i].power < weakest->power)
            weakest = &observed->candidates[i];
    for (size_t i = 0; i < n; i++)
        if (tracks[i].candidate == weakest)
            return true;
    return false;
}

void pnr_detector_detect(const pnr_detector *detector, const pnr_observed *observed,
                         pnr_detection *out)
{
    const pnr_dwell *dwell = observed->dwell;
    pnr_track tracks[PNR_MAX_CANDIDATES];
    double misfit[PNR_MAX_CANDIDATES];

    out->noise_power = 0;
    out->is_coloured = out->is_more = out->is_unresolved = out->is_sign_changed = out->is_coarse =
        false;
    out->n_echoes = 0;
    if (dwell->n_periods == 0 || dwell->n_valid == 0)
        return;

    const size_t n_found = pnr_track_all(detector, observed, tracks, &out->is_coarse);
    const pnr_dwell_gains gains = pnr_detector_gains(detector, observed);
    pnr_noise noise = pnr_noise_find(detector, observed, &gains, tracks, n_found);
    double mean = dwell->floor;

    /* In a sum of powers the noise changes the shape of an echo. The floor holds the sidelobes of
     * strong echoes, too, so the shapes and the noise are found in turns. */
    for (int turn = 0; turn < MEANS && detector->is_sum && noise.cell < 0.9 * mean; turn++) {
        mean = noise.cell;
        pnr_track_all_again(detector, observed, mean, tracks, n_found);
        noise = pnr_noise_find(detector, observed, &gains, tracks, n_found);
    }

    const size_t n = drop_noise(detector, dwell, &noise, tracks, n_found);

    if (n < n_found)
        noise = pnr_noise_find(detector, observed, &gains, tracks, n);
    out->is_coloured = noise.is_coloured;
    out->noise_power = noise.cell / (gains.noise * detector->energy_of_code);
    for (size_t i = 0; i < n; i++) {
        pnr_noise own = noise;

        pnr_noise_around(detector, tracks, n, i, &own);
        misfit[i] = own.misfit * tracks[i].power;
        if (!is_remnant(detector, tracks, i, misfit))
            add_echo(detector, observed, &gains, &tracks[i], &own, out);
    }
    out->is_more = out->n_echoes > detector->max_echoes || is_cut(dwell, observed, tracks, n);
    if (out->n_echoes > detector->max_echoes)
        out->n_echoes = detector->max_echoes;
}

static int fill_code(const pnr_setup *setup, const pnr_setup_code *from, pnr_detector_code *code)
{
    const bool is_split =
        !pnr_format_get(setup->plan.format)->is_complex && setup->plan.tune.num != 0;

    code->autocorrelation = from->autocorrelation;
    code->amplitude_scale = (is_split ? 2 : 1) / sqrt(from->share);
    code->energy_scale = is_split ? 2 / (1 - from->removed) : 1 / from->share;
    code->curvature_noise = (pnr_waveform_kurtosis(from->waveform) - 1) / 2;
    code->bandwidth = pnr_waveform_bandwidth(from->waveform);
    for (int u = -J; u < J; u++)
        code->rho[J + u] = pnr_waveform_at(code->autocorrelation, u);
    pnr_lobe_fill(code->autocorrelation, setup->plan.n_samples,
                  (double)setup->radar.n_samples / (double)setup->radar.n_chips, &code->lobe);
    return pnr_fit_create(code->autocorrelation, &code->fit);
}

/* True if the fit needs slow time: the plan has rows, tapers, a removed mean, a rotation, a
 * stretch, or several looks of several periods. Else the windows of a dwell are added without
 * weights. */
static bool needs_patch_fit(const pnr_plan *plan)
{
    const pnr_hypothesis first = pnr_plan_hypothesis(plan, 0);

    return pnr_plan_rows(plan) > 1 || plan->taper != NULL || plan->remove_mean ||
           first.quarters != 0 || first.first_bin != 0 || first.stretch != 0 ||
           (plan->n_looks > 1 && plan->n_periods > 1);
}

static int allocate_patches(pnr_detector *detector)
{
    if (detector->has_rows)
        detector->patches = calloc((size_t)2 * PNR_MAX_CANDIDATES, sizeof *detector->patches);
    return detector->has_rows && detector->patches == NULL ? PNR_ENOMEMORY : PNR_OK;
}

int pnr_detector_create(const pnr_config *config, const pnr_setup *setup, pnr_detector **out,
                        pnr_error *error)
{
    const pnr_plan *plan = &setup->plan;
    pnr_detector *detector = calloc(1, sizeof *detector);
    int code = detector == NULL ? PNR_ENOMEMORY : PNR_OK;

    *out = NULL;
    if (code != PNR_OK)
        goto fail;
    detector->config = config;
    detector->radar = &setup->radar;
    detector->plan = plan;
    detector->waveforms = setup->codes;
    detector->least_squares = setup->least_squares;
    detector->is_sum = plan->n_looks > 1;
    detector->max_echoes = setup->max_echoes;
    detector->has_rows = pnr_plan_rows(plan) > 1;
    detector->energy_of_code = pnr_waveform_energy(setup->codes[0].waveform);
    detector->n_codes = setup->n_codes;
    detector->codes = calloc(setup->n_codes, sizeof *detector->codes);
    if (detector->codes == NULL)
        code = PNR_ENOMEMORY;
    for (size_t c = 0; c < setup->n_codes && code == PNR_OK; c++)
        code = fill_code(setup, &setup->codes[c], &detector->codes[c]);
    if (code == PNR_OK)
        code = pnr_cross_create(setup, &detector->cross);
    if (code == PNR_OK && needs_patch_fit(plan))
        code = pnr_fit_patch_create(setup, config->radar.carrier_hz, &detector->map);
    if (code == PNR_OK)
        code = allocate_patches(detector);
    if (code != PNR_OK)
        goto fail;
    pnr_cells_fill(detector, setup->pfa_cell, &detector->cells);
    pnr_noise_bands_fill(setup->codes[0].waveform, !pnr_format_get(plan->format)->is_complex,
                         &detector->bands);
    *out = detector;
    return PNR_OK;
fail:
    pnr_detector_destroy(detector);
    return pnr_error_set(error, code, "detector: out of memory");
}

int pnr_detector_share(const pnr_detector *from, pnr_detector **out)
{
    pnr_detector *detector = malloc(sizeof *detector);

    *out = NULL;
    if (detector == NULL)
        return PNR_ENOMEMORY;
    *detector = *from;
    detector->is_shared = true;
    detector->map = NULL;
    detector->patches = NULL;
    if ((from->map != NULL && pnr_fit_patch_share(from->map, &detector->map) != PNR_OK) ||
        allocate_patches(detector) != PNR_OK) {
        pnr_detector_destroy(detector);
        return PNR_ENOMEMORY;
    }
    *out = detector;
    return PNR_OK;
}

void pnr_detector_destroy(pnr_detector *detector)
{
    if (detector == NULL)
        return;
    pnr_fit_patch_destroy(detector->map);
    free(detector->patches);
    for (size_t c = 0; !detector->is_shared && detector->codes != NULL && c < detector->n_codes;
         c++)
        pnr_fit_destroy(detector->codes[c].fit);
    if (!detector->is_shared) {
        pnr_cross_destroy(detector->cross);
        free(detector->codes);
    }
    free(detector);
}

bool pnr_detector_has_rows(const pnr_detector *detector)
{
    return detector->has_rows;
}
