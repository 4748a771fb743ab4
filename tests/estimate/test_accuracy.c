/* SPDX-License-Identifier: MIT */
/* Accuracy by statistics, from samples through the cpu engine to echoes: delay, SNR, lost samples,
 * strong echoes. */
#include "tests/fixture/detection_fixture.h"

#include "base/complex.h"
#include "setup/threshold.h"

/* --- delay, amplitude and phase --- */

/* Results of many dwells with one echo each; the averages are of those in the right lobe. */
typedef struct accuracy {
    size_t n, n_outliers;
    double bias, square;                  /* of the delay, samples */
    double delay, amplitude, phase;       /* mean of (error / sigma)^2 */
    double snr, relative_noise, strength; /* means; noise and amplitude over the truth */
} accuracy;

/* Holes in the samples of a dwell; `lost`: the engine is informed of them. */
typedef void (*hole_maker)(float (*x)[2], size_t n, uint32_t *lost);

static void note(accuracy *a, const chain *c, const pnr_echo *echo, double lag, double amplitude,
                 double phase)
{
    const double n = (double)c->setup->plan.n_samples;
    const double error = remainder(echo->lag - lag, n);
    const double sigma = echo->delay_sigma_s * pnr_rational_double(c->setup->radar.rate_hz);

    if (fabs(error) >= 1) {
        a->n_outliers++;
        return;
    }
    a->bias += error;
    a->square += error * error;
    a->delay += pow(error / sigma, 2);
    a->amplitude += pow((echo->amplitude - amplitude) / echo->amplitude_sigma, 2);
    a->phase += pow(remainder(echo->phase_rad - phase, 2 * M_PI) / echo->phase_sigma_rad, 2);
    a->snr += echo->snr;
    a->strength += echo->amplitude / amplitude;
    a->n++;
}

/* n_trials dwells; the SNR is that of an echo in a whole dwell. */
static accuracy trials(chain *c, double snr_db, size_t n_trials, hole_maker holes)
{
    const size_t n = c->setup->plan.n_samples, periods = pnr_plan_windows(&c->setup->plan);
    const double energy = pnr_waveform_energy(c->setup->codes[0].waveform) * (double)periods;
    const double amplitude = 0.1, power = energy * amplitude * amplitude / pow(10, snr_db / 10);
    accuracy a = {0};
    double phases[1024];

    /* A submit has one delay. How many are missed depends on its fraction: each has its turn. */
    for (size_t submit = 0; a.n + a.n_outliers < n_trials; submit++) {
        const double turn = ((double)submit + uniform()) * (double)c->setup->plan.batch;
        const double lag = floor(uniform() * (double)n) + fmin(turn / (double)n_trials, 1);
        double(*shape)[2] = delayed_code(c, lag);

        clear_chain(c);
        add_noise(c->x, c->setup->plan.batch * dwell_samples(c), power);
        for (size_t d = 0; d < c->setup->plan.batch; d++) {
            add_echo(c, d, (const double(*)[2])shape, amplitude,
                     phases[d] = 2 * M_PI * uniform() - M_PI);
            for (size_t p = 0; holes != NULL && p < periods; p++)
                holes(c->x + d * dwell_samples(c) + p * n, n, &c->lost[d * periods + p]);
        }
        correlate_chain(c);
        for (size_t d = 0; d < c->setup->plan.batch; d++) {
            pnr_detection found;

            detect_dwell(c, d, &found);
            if (found.n_echoes == 0)
                a.n_outliers++;
            else
                note(&a, c, &found.echoes[0], lag, amplitude, phases[d]);
            a.relative_noise += found.noise_power / power;
        }
        free(shape);
    }
    const double good = (double)a.n;

    a.relative_noise /= (double)(a.n + a.n_outliers);
    a.bias /= good;
    a.square /= good;
    a.delay /= good;
    a.amplitude /= good;
    a.phase /= good;
    a.snr /= good;
    a.strength /= good;
    return a;
}

/* The probability that |sqrt(S) + noise|^2 is below t: exp(-S) sum S^k/k! P(k + 1, t). */
static double rice_below(double snr, double t)
{
    double sum = 0;

    for (int k = 0; k < 400; k++)
        sum += exp(-snr + k * log(snr) - lgamma(k + 1)) * (1 - pnr_gamma_q(k + 1, t));
    return sum;
}

/* How many echoes stay below the threshold at the best cell, on the average of all delays: at most
 * so many are missed, since its neighbours may still pass. */
static double misses(const chain *c, double snr)
{
    const double reach = 0.5 / (double)c->setup->plan.oversample;
    const double t = c->setup->threshold[pnr_plan_windows(&c->setup->plan) - 1];
    const int n = 50;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        const double power =
            pnr_power(pnr_waveform_at(c->setup->codes[0].autocorrelation, reach * (i + 0.5) / n));

        /* The floor has the echo in it when all is said in one search. */
        sum += rice_below(snr * power, t * (1 + snr / (double)dwell_samples(c)));
    }
    return sum / n;
}

static void check_accuracy(const char *const *settings, double snr_db)
{
    /* Near 15 dB the second order is close to the limit, so the number of trials makes five sigma
     * small enough. */
    const size_t n_trials = (snr_db < 20 ? 40000 : 10000) / SHARE;
    const double snr = pow(10, snr_db / 10);
    chain c;

    if (!open_chain(&c, settings))
        return;
    const accuracy a = trials(&c, snr_db, n_trials, NULL);
    const double bound = 1 / sqrt(2 * snr * pnr_waveform_bandwidth(c.setup->codes[0].waveform));
    const double n = (double)(a.n + a.n_outliers), expected = misses(&c, snr);
    const double outliers = (double)a.n_outliers / n, rms = sqrt(a.square) / bound;
    const double chance = 5 * sqrt(2 / n); /* of a variance from n trials: five sigma */
    const bool has_phase = c.setup->plan.n_looks == 1;

    print_message(
        "%s x %zu, oversample %zu, %g dB: outliers %.2f %% (at most %.2f %%), rms %.3f of "
        "the bound, bias %+.3f sigma, normalised variances: delay %.3f, amplitude %.3f, "
        "phase %.3f; SNR %+.3f dB, noise %.4f\n",
        c.setup->codes[0].code->name, pnr_plan_windows(&c.setup->plan), c.setup->plan.oversample,
        snr_db, 100 * outliers, 100 * expected, rms, a.bias / bound, a.delay, a.amplitude, a.phase,
        10 * log10(a.snr / snr), a.relative_noise);
    close_chain(&c);
    assert_on_average(outliers <= expected + 5 * sqrt((expected + 1 / n) / n));
    assert_on_average(rms <= 1.06);
    assert_on_average(fabs(a.bias) <= 0.3 * bound);
    if (expected > 0.01) /* only echoes that noise has raised are found */
        return;
    assert_on_average(fabs(a.delay - 1) <= fmax(0.1, chance));
    assert_on_average(fabs(a.amplitude - 1) <= fmax(0.1, chance));
    assert_on_average(!has_phase || fabs(a.phase - 1) <= fmax(0.1, chance));
    assert_on_average(fabs(10 * log10(a.snr / snr)) <= 0.1 + 50 * sqrt(1 / snr / n));
}

TEST(test_accuracy)
{
#define M_SEQUENCE "code.degree=10", "engine.batch=100"
#define ZADOFF_CHU "code.type=zadoff-chu", "code.length=839", "engine.batch=100"
    static const char *const m_sequence[] = {M_SEQUENCE, "detector.oversample=1", NULL};
    static const char *const m_sequence_halves[] = {M_SEQUENCE, "detector.oversample=2", NULL};
    static const char *const chu[] = {ZADOFF_CHU, "detector.oversample=1", NULL};
    static const char *const chu_halves[] = {ZADOFF_CHU, "detector.oversample=2", NULL};
    static const char *const random_phase[] = {"code.type=random", "code.length=300",
                                               "dwell.periods=3",  "dwell.combine=coherent",
                                               "engine.batch=100", NULL};
    static const char *const gps[] = {"code.type=gps-l1ca", "code.prn=7",
                                      "source.rate_hz=4e6", "code.chip_rate_hz=1.023e6",
                                      "engine.batch=25",    NULL};
    static const char *const looks[] = {"code.degree=8", "dwell.periods=4",
                                        "dwell.combine=incoherent", "engine.batch=100", NULL};
    static const double snrs_db[] = {15, 20, 30, 40, 50};

    for (size_t s = 0; s < sizeof snrs_db / sizeof *snrs_db; s++) {
        check_accuracy(m_sequence, snrs_db[s]);
        check_accuracy(m_sequence_halves, snrs_db[s]);
        check_accuracy(chu, snrs_db[s]);
        check_accuracy(chu_halves, snrs_db[s]);
    }
    check_accuracy(random_phase, 30);
    check_accuracy(gps, 30);
    check_accuracy(looks, 25);
    check_accuracy(looks, 40);
}

/* --- SNR --- */

/* The candidate that a search would make of this lag, from the profile. */
static pnr_candidate candidate_at(const chain *c, size_t d, size_t lag)
{
    const size_t n = c->setup->plan.n_samples;
    const float *profile = c->result.profile + 2 * n * d;
    pnr_candidate candidate = {.cell = (uint32_t)lag};

    for (size_t j = 0; j < PNR_NEIGHBOURS; j++) {
        const float *value = profile + 2 * ((lag + n - PNR_NEIGHBOURS / 2 + j) % n);

        memcpy(candidate.value[j], value, sizeof candidate.value[j]);
    }
    candidate.power = (float)pow(hypot((double)profile[2 * lag], (double)profile[2 * lag + 1]), 2);
    return candidate;
}

/* |c(peak)|^2 over the mean |c|^2 of the lags away from it: the definition that takes the code's
 * sidelobes for noise. */
static double peak_ratio(const chain *c, size_t d, size_t lag)
{
    const size_t n = c->setup->plan.n_samples;
    const float *profile = c->result.profile + 2 * n * d;
    double sum = 0;
    size_t count = 0;

    for (size_t k = 0; k < n; k++) {
        if (fabs(remainder((double)k - (double)lag, (double)n)) <= PNR_NEIGHBOURS / 2)
            continue;
        sum += pow((double)profile[2 * k], 2) + pow((double)profile[2 * k + 1], 2);
        count++;
    }
    return (double)candidate_at(c, d, lag).power / (sum / (double)count) - 1;
}

/* This test does not use the threshold: the lag is known, as it must be at 0 dB. */
TEST(test_snr)
{
    static const char *const settings[] = {"code.type=random", "code.length=1000",
                                           "engine.batch=100", "publisher.profile=complex", NULL};
    chain c;

    if (!open_chain(&c, settings))
        return;
    const size_t n = c.setup->plan.n_samples;
    const double energy = pnr_waveform_energy(c.setup->codes[0].waveform);

    c.setup->threshold[0] = 0; /* the detector's */
    for (double snr_db = 0; snr_db <= 60; snr_db += 10) {
        const size_t n_trials = 10000 / SHARE;
        const double snr = pow(10, snr_db / 10), power = energy * 0.01 / snr;
        double sum = 0, squares = 0, by_peak = 0, count = 0;

        while (count < (double)n_trials) {
            const size_t lag = (size_t)(uniform() * (double)n);
            double(*shape)[2] = delayed_code(&c, (double)lag + uniform() - 0.5);

            clear_chain(&c);
            add_noise(c.x, c.setup->plan.batch * n, power);
            for (size_t d = 0; d < c.setup->plan.batch; d++)
                add_echo(&c, d, (const double(*)[2])shape, 0.1, 7 * uniform());
            correlate_chain(&c);
            for (size_t d = 0; d < c.setup->plan.batch; d++, count++) {
                const pnr_candidate candidate = candidate_at(&c, d, lag);
                pnr_dwell dwell = c.result.dwells[d];
                pnr_detection found;

                dwell.n_candidates = 1;
                pnr_detector_detect(
                    c.detector, &(pnr_observed){.dwell = &dwell, .candidates = &candidate}, &found);
                sum += found.echoes[0].snr;
                squares += pow(found.echoes[0].snr, 2);
                by_peak += peak_ratio(&c, d, lag);
            }
            free(shape);
        }
        const double mean = sum / count;
        const double chance = sqrt((squares / count - mean * mean) / count) / snr;

        print_message("SNR %2.0f dB: measured %+.3f dB (%.3f is one sigma of the mean), by the "
                      "correlation's peak %.2f dB\n",
                      snr_db, 10 * log10(mean / snr), 10 / log(10) * chance,
                      10 * log10(by_peak / count));
        assert_on_average(fabs(10 * log10(mean / snr)) <= 0.1 + 4 * 10 / log(10) * chance);
        /* It cannot see more than N. */
        assert_on_average(by_peak / count < 1.1 * (double)n);
        assert_on_average(snr_db < 50 || by_peak / count < snr / 30);
    }
    close_chain(&c);
}

/* --- lost samples --- */

static void clear_run(float (*x)[2], size_t first, size_t count)
{
    memset(x[first], 0, count * sizeof *x);
}

/* One run of a tenth, anywhere. */
static void one_hole(float (*x)[2], size_t n, uint32_t *lost)
{
    const size_t count = n / 10;

    clear_run(x, (size_t)(uniform() * (double)(n - count)), count);
    *lost = (uint32_t)count;
}

/* Single samples, a tenth of all. */
static void scattered_holes(float (*x)[2], size_t n, uint32_t *lost)
{
    *lost = 0;
    for (size_t i = 0; i < n; i++)
        if (uniform() < 0.1) {
            clear_run(x, i, 1);
            ++*lost;
        }
}

/* The run holds stale memory, and no loss is reported. */
static void stale_run(float (*x)[2], size_t n, uint32_t *lost)
{
    const size_t count = n / 10;
    const size_t first = count + (size_t)(uniform() * (double)(n - 2 * count));

    memcpy(x[first], x[first - count], count * sizeof *x);
    *lost = 0;
}

/* The run is cleared, but no loss is reported. */
static void untold_hole(float (*x)[2], size_t n, uint32_t *lost)
{
    one_hole(x, n, lost);
    *lost = 0;
}

/* Does a tenth lost cost what it must, 10 log10(0.9) = 0.46 dB, without bias, and does sigma cover:
 * the normalised variance within 1 +- `allowed`? */
static bool is_true_window(const char *const *settings, const char *name, double snr_db,
                           hole_maker holes, double allowed)
{
    const size_t n_trials = 10000 / SHARE;
    const double snr = pow(10, snr_db / 10);
    chain c;

    if (!open_chain(&c, settings))
        skip();
    const accuracy a = trials(&c, snr_db, n_trials, holes);
    const double bound = 1 / sqrt(2 * snr * pnr_waveform_bandwidth(c.setup->codes[0].waveform));
    const double cost_db = -10 * log10(a.snr / snr);

    print_message("%s, %s, %g dB: costs %.3f dB, amplitude %.4f, noise %.3f, bias %+.3f sigma, rms "
                  "%.3f of the bound of all samples, normalised variance %.3f\n",
                  c.setup->codes[0].code->name, name, snr_db, cost_db, a.strength, a.relative_noise,
                  a.bias / bound, sqrt(a.square) / bound, a.delay);
    close_chain(&c);
    return fabs(cost_db - 0.4576) <= 0.1 && fabs(a.strength - 1) < 0.01 &&
           fabs(a.bias) <= 0.3 * bound && fabs(a.delay - 1) <= allowed;
}

TEST(test_lost_samples)
{
    /* A submit has one delay: small ones, since the lost sidelobes depend on it. */
    static const char *const m_sequence[] = {"code.degree=10", "engine.batch=20",
                                             "detector.oversample=2", NULL};
    static const char *const chu[] = {"code.type=zadoff-chu", "code.length=1009", "engine.batch=20",
                                      "detector.oversample=2", NULL};
    static const char *const random_phase[] = {"code.type=random", "code.length=1000",
                                               "engine.batch=20", "detector.oversample=2", NULL};

    assert_on_average(is_true_window(m_sequence, "one run lost", 25, one_hole, 0.1));
    assert_on_average(
        is_true_window(m_sequence, "scattered samples lost", 25, scattered_holes, 0.1));
    assert_on_average(is_true_window(random_phase, "one run lost", 25, one_hole, 0.1));
    assert_on_average(
        is_true_window(random_phase, "scattered samples lost", 25, scattered_holes, 0.1));
    assert_on_average(is_true_window(chu, "scattered samples lost", 25, scattered_holes, 0.1));
    /* Here the missing sidelobes are as strong as the noise; sigma has their average. Of a real
     * code they are in phase with the peak and count 2 at a lag, 0.4 half-way; of others 1 and 0.6.
     */
    assert_on_average(
        is_true_window(random_phase, "scattered samples lost", 40, scattered_holes, 0.3));
    assert_on_average(
        is_true_window(m_sequence, "scattered samples lost", 40, scattered_holes, 0.3));
    assert_on_average(!is_true_window(m_sequence, "one run stale", 25, stale_run, 0.1));
    assert_on_average(
        !is_true_window(m_sequence, "one run cleared, not told", 25, untold_hole, 0.1));
}

/* --- strong echoes --- */

/* Three strong echoes anywhere, at fractions of a sample: their energy is not noise. */
static void strong_echoes(const char *const *settings, double snr_db)
{
    const double snr = pow(10, snr_db / 10);
    double sum = 0, square = 0;
    size_t n_done = 0;
    chain c;

    if (!open_chain(&c, settings))
        return;
    const size_t n = c.setup->plan.n_samples, batch = c.setup->plan.batch;
    const double power = pnr_waveform_energy(c.setup->codes[0].waveform) * 0.01 / snr;

    while (n_done < 1000 / SHARE) {
        clear_chain(&c);
        add_noise(c.x, batch * n, power);
        for (size_t e = 0; e < 3; e++) { /* a third of the period apart, or nearly so */
            const double lag = ((double)e + 0.7 * uniform()) * (double)n / 3;
            double(*shape)[2] = delayed_code(&c, lag);

            for (size_t d = 0; d < batch; d++)
                add_echo(&c, d, (const double(*)[2])shape, 0.1, 7 * uniform());
            free(shape);
        }
        correlate_chain(&c);
        for (size_t d = 0; d < batch; d++, n_done++) {
            pnr_detection found;

            detect_dwell(&c, d, &found);
            sum += found.noise_power / power;
            square += pow(found.noise_power / power, 2);
        }
    }
    const double mean = sum / (double)n_done;
    const double chance = sqrt((square / (double)n_done - mean * mean) / (double)n_done);

    print_message("%s, three echoes of %g dB: noise %+.3f dB (%.3f is one sigma of the mean)\n",
                  c.setup->codes[0].code->name, snr_db, 10 * log10(mean), 10 / log(10) * chance);
    close_chain(&c);
    assert_on_average(fabs(10 * log10(mean)) <= 0.1 + 4 * 10 / log(10) * chance);
}

TEST(test_strong_echoes)
{
    static const char *const random_phase[] = {"code.type=random", "code.length=2000",
                                               "engine.batch=20", NULL};
    static const char *const m_sequence[] = {"code.degree=11", "engine.batch=20", NULL};

    strong_echoes(random_phase, 30);
    strong_echoes(random_phase, 45);
    strong_echoes(m_sequence, 55);
}
