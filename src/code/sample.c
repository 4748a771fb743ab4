/* SPDX-License-Identifier: MIT */
/* Makes the N samples of one period: each chip is held for its duration, or excites a pulse. */
#include "base/complex.h"
#include "base/transform.h"
#include "code/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int explain_no_memory(pnr_error *error, size_t n_samples)
{
    return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu code samples", n_samples);
}

/* Sample n carries chip floor(n L / N), stepped in integers. */
static void hold_chips(const pnr_code *code, size_t n_samples, double (*samples)[2])
{
    size_t chip = 0;
    size_t rest = 0; /* n L mod N */

    for (size_t n = 0; n < n_samples; n++) {
        memcpy(samples[n], code->chips[chip], sizeof *samples);
        rest += code->n_chips;
        if (rest >= n_samples) {
            rest -= n_samples;
            chip++;
        }
    }
}

/*
 * s(t) = sum_i chip[i] p(t - i N / L). In harmonic m of the period the delay i N / L is the phase
 * exp(-2 pi i m i / L), so S[m] = P[m] C[m mod L] with the L-point transform C of the chips; the
 * Nyquist harmonic is a cosine, the mean of both signs of m.
 */
static void shape_pulse(const double complex *chips, size_t n_chips, double complex *pulse,
                        size_t n_samples)
{
    for (size_t bin = 0; bin < n_samples; bin++) {
        size_t below = (n_samples - bin) % n_chips; /* harmonic bin - N */
        double complex plus = chips[bin % n_chips];
        double complex minus = chips[(n_chips - below) % n_chips];

        pulse[bin] *= 2 * bin < n_samples ? plus : 2 * bin > n_samples ? minus : (plus + minus) / 2;
    }
}

static double mean_power(const double complex *samples, size_t n_samples)
{
    double sum = 0;

    for (size_t n = 0; n < n_samples; n++)
        sum += pnr_power(samples[n]);
    return sum / (double)n_samples;
}

static int excite_pulses(const pnr_code *code, const char *path, size_t n_samples,
                         double (*samples)[2], pnr_error *error)
{
    double(*pulse)[2] = NULL;
    double(*chips)[2] = NULL;
    size_t n_pulse;
    int rc = pnr_code_read_samples(path, "code.pulse_path", &pulse, &n_pulse, error);

    if (rc != PNR_OK)
        return rc;
    memset(samples, 0, n_samples * sizeof *samples);
    for (size_t k = 0; k < n_pulse; k++) {
        samples[k % n_samples][0] += pulse[k][0];
        samples[k % n_samples][1] += pulse[k][1];
    }
    free(pulse);
    chips = malloc(code->n_chips * sizeof *chips);
    if (!chips)
        return explain_no_memory(error, n_samples);
    memcpy(chips, code->chips, code->n_chips * sizeof *chips);

    rc = pnr_transform_forward(chips, code->n_chips);
    if (rc == PNR_OK)
        rc = pnr_transform_forward(samples, n_samples);
    if (rc == PNR_OK) {
        shape_pulse((const double complex *)chips, code->n_chips, (double complex *)samples,
                    n_samples);
        rc = pnr_transform_inverse(samples, n_samples);
    }
    free(chips);
    if (rc != PNR_OK)
        return explain_no_memory(error, n_samples);
    /* The inverse is not divided by N. A sum that is zero except for rounding is refused, because
     * scaling would turn the rounding errors into a code. */
    if (mean_power((const double complex *)samples, n_samples) <
        1e-20 * (double)n_samples * (double)code->n_chips * (double)n_pulse)
        return pnr_error_set(error, PNR_EDATA, "code.pulse_path %s: passes nothing of code %s",
                             path, code->name);
    return PNR_OK;
}

/* Turns the samples by k whole cycles a period, k = tune_hz N / rate_hz, so that they still repeat. */
static int tune_samples(const pnr_config *config, size_t n_samples, double (*samples)[2],
                        pnr_error *error)
{
    const pnr_rational tune = config->code.tune_hz, rate = config->source.rate_hz;
    const double turns = pnr_rational_double(tune) * (double)n_samples / pnr_rational_double(rate);
    const int64_t n = (int64_t)n_samples, k = (int64_t)round(turns);
    pnr_rational whole;

    if (!(fabs(2 * turns) <= (double)n_samples))
        return pnr_refuse(error, "code.tune_hz = %.10g is beyond half of source.rate_hz = %.10g",
                          pnr_rational_double(tune), pnr_rational_double(rate));
    if (pnr_rational_mul(tune, (pnr_rational){n, 1}, &whole) != PNR_OK ||
        pnr_rational_div(whole, rate, &whole) != PNR_OK || whole.den != 1)
        return pnr_refuse(error,
                          "code.tune_hz = %.10g: must be a multiple of the repetition rate; with "
                          "%.10g, Doppler shifts are higher by %.10g Hz",
                          pnr_rational_double(tune),
                          (double)k * pnr_rational_double(rate) / (double)n,
                          (turns - (double)k) * pnr_rational_double(rate) / (double)n);
    for (int64_t i = 0, at = 0; i < n; i++, at = (at + k % n + n) % n) {
        double complex turn;

        pnr_transform_root((size_t)at, n_samples, (double *)&turn);
        turn *= CMPLX(samples[i][0], samples[i][1]);
        samples[i][0] = creal(turn);
        samples[i][1] = cimag(turn);
    }
    return PNR_OK;
}

/* The samples of the code before it is tuned. */
static int make_samples(const pnr_code *code, const pnr_config *config, size_t n_samples,
                        double (*samples)[2], pnr_error *error)
{
    int rc;

    if (n_samples < code->n_chips)
        return pnr_refuse(
            error, "%zu samples a period for %zu chips: the chip rate is above the sample rate",
            n_samples, code->n_chips);
    if (config->code.pulse == PNR_PULSE_FILE) {
        rc = excite_pulses(code, config->code.pulse_path, n_samples, samples, error);
        if (rc != PNR_OK)
            return rc;
    } else {
        hold_chips(code, n_samples, samples);
        /* Chips of modulus 1 are not scaled, so that they keep their bits. */
        if (fabs(mean_power((const double complex *)samples, n_samples) - 1) < 1e-12)
            return PNR_OK;
    }
    if (pnr_code_normalise(samples, n_samples) != PNR_OK)
        return pnr_error_set(error, PNR_EDATA, "the samples of code %s are all zero", code->name);
    return PNR_OK;
}

int pnr_code_sample(const pnr_code *code, const pnr_config *config, size_t n_samples,
                    double (*samples)[2], pnr_error *error)
{
    int rc = make_samples(code, config, n_samples, samples, error);

    if (rc == PNR_OK && config->code.tune_hz.num != 0)
        rc = tune_samples(config, n_samples, samples, error);
    return rc;
}
