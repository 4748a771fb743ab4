/* SPDX-License-Identifier: MIT */
/* Computes the N samples of one period. A chip is constant over a whole number of samples, or it is
 * the factor of a pulse. */
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

/* Sample n is chip floor(n L / N) of L chips, computed in integers. */
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
 * Writes the samples of s(t) = sum_k chip[k] p(t - k N / L), for L chips and N samples. For
 * harmonic m of the period, the delay k N / L is the factor exp(-2 pi i m k / L). So S[m] = P[m]
 * C[m mod L], where P is the spectrum of the pulse and C the L-point transform of the chips. The
 * Nyquist harmonic is a cosine: its value is the mean of the values for both signs of m.
 */
static void shape_pulse(const double complex *chips, size_t n_chips, double complex *pulse,
                        size_t n_samples)
{
    for (size_t bin = 0; bin < n_samples; bin++) {
        size_t below = (n_samples - bin) % n_chips; /* bin is the harmonic -(N - bin) */
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

/* Reads a pulse from a file and computes its spectrum. *power: the sum of |p|^2 over all samples p
 * of the pulse. */
static int read_pulse(const char *path, size_t n_samples, double (*spectrum)[2], double *power,
                      pnr_error *error)
{
    double(*pulse)[2] = NULL;
    size_t n_pulse;
    int rc = pnr_code_read_samples(path, "code.pulse_path", &pulse, &n_pulse, error);

    if (rc != PNR_OK)
        return rc;
    memset(spectrum, 0, n_samples * sizeof *spectrum);
    for (size_t k = 0; k < n_pulse; k++) {
        spectrum[k % n_samples][0] += pulse[k][0];
        spectrum[k % n_samples][1] += pulse[k][1];
    }
    free(pulse);
    *power = (double)n_pulse;
    rc = pnr_transform_forward(spectrum, n_samples);
    return rc == PNR_OK ? rc : explain_no_memory(error, n_samples);
}

/* Returns the spectrum of a rectangular pulse from t = 0 to 1 chip, at f cycles per chip. */
static double complex rectangle_at(double f)
{
    return f == 0 ? 1 : sin(M_PI * f) / (M_PI * f) * pnr_cis(-M_PI * f);
}

/* Returns the spectrum of the root-raised-cosine pulse with its centre at t = 0, at f cycles per
 * chip (J. G. Proakis, Digital Communications, section 9.2). */
static double root_raised_cosine_at(double f, double rolloff)
{
    const double beyond = fabs(f) - (1 - rolloff) / 2;

    return beyond <= 0 ? 1 : beyond >= rolloff ? 0 : cos(M_PI / 2 * beyond / rolloff);
}

/* Computes the spectrum of a pulse from its formula. The spectrum is 0 from half of the sample rate
 * on, as after an ideal filter. For a filtered pulse it is 0 from code.cutoff_hz on. */
static void compute_pulse(const pnr_config *config, size_t n_chips, size_t n_samples,
                          double (*spectrum)[2])
{
    const bool is_rrc = config->code.pulse == PNR_PULSE_RRC;
    const double rate = pnr_rational_double(config->source.rate_hz);
    const double cutoff =
        config->code.pulse == PNR_PULSE_FILTERED ? fmin(config->code.cutoff_hz / rate, 0.5) : 0.5;

    for (size_t bin = 0; bin < n_samples; bin++) {
        const double m = 2 * bin < n_samples ? (double)bin : (double)bin - (double)n_samples;
        const double f = m / (double)n_chips;
        const double complex value = fabs(m) >= cutoff * (double)n_samples ? 0
                                     : is_rrc ? root_raised_cosine_at(f, config->code.rolloff)
                                              : rectangle_at(f);

        spectrum[bin][0] = creal(value);
        spectrum[bin][1] = cimag(value);
    }
}

static int excite_pulses(const pnr_code *code, const pnr_config *config, size_t n_samples,
                         double (*samples)[2], pnr_error *error)
{
    const bool is_file = config->code.pulse == PNR_PULSE_FILE;
    const double repetition = pnr_rational_double(config->source.rate_hz) / (double)n_samples;
    double(*chips)[2] = NULL;
    double power = 1;
    int rc = PNR_OK;

    if (config->code.pulse == PNR_PULSE_FILTERED && config->code.cutoff_hz <= repetition)
        return pnr_refuse(error,
                          "code.cutoff_hz = %.10g is not above the repetition rate, %.10g Hz",
                          config->code.cutoff_hz, repetition);
    if (is_file)
        rc = read_pulse(config->code.pulse_path, n_samples, samples, &power, error);
    else
        compute_pulse(config, code->n_chips, n_samples, samples);
    if (rc != PNR_OK)
        return rc;
    chips = malloc(code->n_chips * sizeof *chips);
    if (!chips)
        return explain_no_memory(error, n_samples);
    memcpy(chips, code->chips, code->n_chips * sizeof *chips);

    rc = pnr_transform_forward(chips, code->n_chips);
    if (rc == PNR_OK) {
        shape_pulse((const double complex *)chips, code->n_chips, (double complex *)samples,
                    n_samples);
        rc = pnr_transform_inverse(samples, n_samples);
    }
    free(chips);
    if (rc != PNR_OK)
        return explain_no_memory(error, n_samples);
    /* The inverse transform has no factor 1 / N, so the mean power is at most about N L `power`,
     * with L chips. A waveform with less than 1e-20 of this power is only rounding errors. It is
     * refused, because scaling would turn these errors into a code. */
    if (mean_power((const double complex *)samples, n_samples) <
        1e-20 * (double)n_samples * (double)code->n_chips * power)
        return pnr_error_set(error, PNR_EDATA, "code.pulse%s%s: passes nothing of code %s",
                             is_file ? "_path " : "", is_file ? config->code.pulse_path : "",
                             code->name);
    return PNR_OK;
}

/* Rotates the samples by k whole cycles in a period, k = tune_hz N / rate_hz. The period of the
 * tuned samples is therefore still N. */
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

/* Computes the samples of the code before the rotation by code.tune_hz. */
static int make_samples(const pnr_code *code, const pnr_config *config, size_t n_samples,
                        double (*samples)[2], pnr_error *error)
{
    int rc;

    if (n_samples < code->n_chips)
        return pnr_refuse(
            error, "%zu samples a period for %zu chips: the chip rate is above the sample rate",
            n_samples, code->n_chips);
    if (config->code.pulse != PNR_PULSE_BAND_LIMITED) {
        rc = excite_pulses(code, config, n_samples, samples, error);
        if (rc != PNR_OK)
            return rc;
    } else {
        hold_chips(code, n_samples, samples);
        /* Chips of modulus 1 are not scaled, so that their values stay exact. */
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
