/* SPDX-License-Identifier: MIT */
/* Computes the waveform that removes an echo from the samples. Adds removed echoes to the values of
 * candidates that are found afterwards. */
#include "detector/state.h"

#include <math.h>

enum { J = PNR_NEIGHBOURS, MIDDLE = PNR_NEIGHBOURS / 2 };

/* Returns the frequency of an echo in the samples, in bins. A map with one row has only the
 * frequency of that row. */
static double bins_of(const pnr_detector *detector, const pnr_echo *echo)
{
    if (detector->map == NULL)
        return 0;
    if (!isfinite(echo->doppler_hz))
        return pnr_fit_patch_bins(detector->map, 0);
    return echo->doppler_hz * detector->radar->period_s;
}

/* Returns the complex amplitude A of an echo at the first sample of the look. */
static double complex amplitude_of(const pnr_detector *detector, const pnr_echo *echo, double bins)
{
    const double n = (double)detector->plan->n_samples;
    const double middle = (n * (double)detector->plan->n_periods - 1) / (2 * n);
    const double phase = echo->phase_rad - 2 * M_PI * remainder(bins * middle, 1);

    return echo->amplitude / detector->codes[echo->code].amplitude_scale * pnr_cis(phase);
}

static void narrow_to_float(const double complex *from, size_t n, float (*to)[2])
{
    for (size_t i = 0; i < n; i++)
        ((float complex *)to)[i] = (float complex)from[i];
}

bool pnr_removal_is_possible(const pnr_detector *detector, size_t code, double bins)
{
    const double chip = M_PI / sqrt(3 * detector->codes[code].bandwidth); /* chip length of a code
                                                                           * with this bandwidth and
                                                                           * a flat spectrum */

    return detector->map == NULL ||
           fabs(pnr_fit_patch_walk(detector->map, bins, 0)) * (double)detector->plan->n_periods <=
               0.5 * chip;
}

/* If the delay of an echo is d in the middle m of the look and grows by w samples per sample, the
 * echo is a(n - d - w (n - m)) = a(n - d) - w (n - m) a'(n - d) to first order. With n - m = sin(u
 * (n - m)) / u for small u, the second term is a'(n - d) times two tones. */
size_t pnr_detector_removals(const pnr_detector *detector, const pnr_echo *echo,
                             float (*replica)[2], float (*slope)[2], double complex *work,
                             pnr_removal out[PNR_MAX_REMOVALS])
{
    const double n = (double)detector->plan->n_samples;
    const double periods = (double)detector->plan->n_periods, middle = (n * periods - 1) / 2;
    const double bins = bins_of(detector, echo);
    const double walk = detector->map != NULL ? pnr_fit_patch_walk(detector->map, bins, 0) / n : 0;
    const double apart = 0.02 / periods, u = 2 * M_PI * apart / n; /* apart is in bins, u in rad per
                                                                    * sample */
    double complex *by_time = work + detector->plan->n_samples;

    if (!pnr_removal_is_possible(detector, echo->code, bins))
        return 0;

    const double complex peak = amplitude_of(detector, echo, bins);

    out[0] = (pnr_removal){
        .replica = (const float(*)[2])replica, .bins = bins, .peak = {creal(peak), cimag(peak)}};
    pnr_waveform_delay(detector->waveforms[echo->code].waveform, echo->lag, work,
                       walk != 0 ? by_time : NULL);
    narrow_to_float(work, detector->plan->n_samples, replica);
    if (walk == 0)
        return 1;
    narrow_to_float(by_time, detector->plan->n_samples, slope);
    for (int side = 0; side < 2; side++) { /* `at` is the amplitude of a tone: +-A w i / (2 u)
                                            * exp(-+ i u m) */
        const double sign = side == 0 ? 1 : -1, factor = sign * walk / (2 * u);
        const double complex at =
            peak * CMPLX(factor * sin(sign * u * middle), factor * cos(u * middle));

        out[1 + side] = (pnr_removal){.replica = (const float(*)[2])slope,
                                      .bins = bins + sign * apart,
                                      .peak = {creal(at), cimag(at)}};
    }
    return PNR_MAX_REMOVALS;
}

/* Adds an echo to values[n_rows][17][2], which are outputs of a least-squares filter. The added
 * values are the amplitude of the echo in each row, taken at the nearest lag, times the response of
 * the filter. */
static void add_filtered(const pnr_detector *detector, const pnr_patch_place *place,
                         const pnr_patch_echo *echo, float *values)
{
    const pnr_plan *plan = detector->plan;
    const size_t n_lags = plan->n_lags;
    const size_t gate = ((size_t)place->lag + n_lags - plan->gate_first) % n_lags;
    const pnr_patch_place next_to = {
        .code = place->code, .row = place->row, .lag = lrint(echo->lag)};
    const double delay = remainder(echo->lag - (double)place->lag, (double)plan->n_samples);
    const double complex rho = pnr_waveform_at(detector->codes[echo->code].autocorrelation,
                                               (double)next_to.lag - echo->lag);
    float complex patch[J][J] = {{0}};
    pnr_vector response;

    pnr_least_squares_response(detector->least_squares, gate, delay, response);
    if (detector->has_rows)
        pnr_fit_patch_add(detector->map, &next_to, echo, 0, (float *)patch);
    for (int row = 0; row < (detector->has_rows ? J : 1); row++) {
        const double complex a =
            detector->has_rows ? (double complex)patch[row][MIDDLE] * conj(rho) / pnr_power(rho)
                               : echo->peak;

        for (int j = 0; j < J; j++)
            ((float complex *)values)[J * row + j] += (float complex)(a * response[j]);
    }
}

void pnr_detector_restore(const pnr_detector *detector, const pnr_observed *observed,
                          const pnr_detection *removed, pnr_candidate *candidate, float *patch)
{
    const double scale =
        pnr_detector_gains(detector, observed).amplitude * detector->energy_of_code;
    const size_t centre = candidate->cell / detector->plan->oversample;
    const pnr_patch_place place = {
        .code = candidate->code, .row = candidate->row, .lag = (long)centre};

    for (size_t e = 0; e < removed->n_echoes + removed->n_outside; e++) {
        const pnr_echo *echo = &removed->echoes[e];
        const double bins = bins_of(detector, echo);

        if (!pnr_removal_is_possible(detector, echo->code, bins))
            continue;

        pnr_patch_echo there = {.code = echo->code, .lag = echo->lag, .bins = bins};
        pnr_vector response;

        there.peak = scale * amplitude_of(detector, echo, detector->has_rows ? 0 : bins);
        if (detector->least_squares != NULL) {
            add_filtered(detector, &place, &there,
                         detector->has_rows ? patch : &candidate->value[0][0]);
            continue;
        }
        if (detector->has_rows) {
            pnr_fit_patch_add(detector->map, &place, &there, 0, patch); /* a noise of 0 demands
                                                                         * exact sums */
            continue;
        }
        if (!pnr_cross_is_known(detector->cross, echo->code, candidate->code))
            continue;
        pnr_cross_run(detector->cross, echo->code, candidate->code,
                      pnr_track_distance(detector, (double)centre, echo->lag) - MIDDLE, response,
                      NULL);
        for (int j = 0; j < J; j++)
            ((float complex *)candidate->value)[j] += (float complex)(there.peak * response[j]);
    }
}
