/* SPDX-License-Identifier: MIT */
/* Maps whose rows have their own time scale, as of a sonar. A strong echo walks through the cells
 * of distant rows and leaves sidelobes there. They are no echoes, and they cost no SNR. */
#include "base/complex.h"
#include "tests/fixture/detection_fixture.h"

/* Rows of 61 Hz that differ by a third of a chip over a look, as those of a sonar in air. */
#define SONAR                                                                                      \
    "dwell.combine=doppler", "dwell.periods=32", "doppler.min_hz=-3000", "doppler.max_hz=3000",    \
        "detector.pfa=1e-4", "engine.batch=1"

typedef struct target {
    double lag, rows, level_db; /* rows: Doppler in 1 / (K Tr) */
} target;

/* Adds amplitude a(n - lag - walk (n - m)) exp(2 pi i bins (n - m) / N), m the middle of the dwell:
 * the code of an echo of Doppler F runs F / carrier faster. */
static void add_target(chain *c, const target *t, double lag, double amplitude)
{
    const size_t n = c->setup->plan.n_samples, n_dwell = dwell_samples(c);
    const double bins = t->rows / (double)c->setup->plan.n_periods;
    const double walk = -bins / (c->setup->radar.period_s * c->config.radar.carrier_hz);
    const pnr_waveform *waveform = c->setup->codes[0].waveform;
    const double phase = uniform();

    for (size_t i = 0; i < n_dwell; i++) {
        const double time = (double)i - ((double)n_dwell - 1) / 2;
        const double complex a = amplitude * pnr_cis(2 * M_PI * (phase + bins * time / (double)n)) *
                                 pnr_waveform_at(waveform, (double)i - lag - walk * time);

        c->x[i][0] += (float)creal(a);
        c->x[i][1] += (float)cimag(a);
    }
}

/* The last five are of the first target: means over the dwells; snr_sigma_db is the standard
 * deviation of the mean snr_db, from its scatter. */
typedef struct counts {
    double n, n_found, n_false;
    double snr_db, snr_sigma_db, delay2, doppler2, amplitude;
} counts;

static counts run_targets(const char *const *settings, double snr_db, const target *targets,
                          size_t n_targets, size_t n_dwells)
{
    const double amplitude = 0.1;
    counts k = {0};
    chain c;

    if (!open_chain(&c, settings))
        skip();

    const pnr_plan *plan = &c.setup->plan;
    const double n = (double)plan->n_samples, rate = pnr_rational_double(c.setup->radar.rate_hz);
    const double row_hz = 1 / (c.setup->radar.period_s * (double)plan->n_periods);
    const double power = pnr_waveform_energy(c.setup->codes[0].waveform) * (double)plan->n_periods *
                         amplitude * amplitude / pow(10, snr_db / 10);

    for (; k.n < (double)n_dwells; k.n++) {
        const double shift = uniform() * n;
        pnr_detection found;
        bool is_seen[8] = {false};

        clear_chain(&c);
        add_noise(c.x, dwell_samples(&c), power);
        for (size_t t = 0; t < n_targets; t++)
            add_target(&c, &targets[t], targets[t].lag + shift,
                       amplitude * pow(10, targets[t].level_db / 20));
        correlate_chain(&c);
        detect_dwell(&c, 0, &found);
        for (size_t e = 0; e < found.n_echoes; e++) {
            const pnr_echo *echo = &found.echoes[e];
            bool is_target = false;

            for (size_t t = 0; t < n_targets; t++) {
                const double off = remainder(echo->lag - targets[t].lag - shift, n);
                const double rows = echo->doppler_hz / row_hz - targets[t].rows;

                if (fabs(off) > 1.5 || fabs(rows) > 1 || is_seen[t])
                    continue;
                is_seen[t] = is_target = true;
                if (t > 0)
                    continue;
                k.snr_db += echo->snr_db;
                k.snr_sigma_db += pow(echo->snr_db, 2);
                k.amplitude += echo->amplitude / amplitude;
                k.delay2 += pow(off / (echo->delay_sigma_s * rate), 2);
                k.doppler2 += pow(rows * row_hz / echo->doppler_sigma_hz, 2);
            }
            k.n_false += !is_target;
        }
        for (size_t t = 0; t < n_targets; t++)
            k.n_found += is_seen[t];
    }
    k.snr_db /= k.n;
    k.snr_sigma_db = sqrt(fmax(k.snr_sigma_db / k.n - k.snr_db * k.snr_db, 0) / k.n);
    k.delay2 /= k.n;
    k.doppler2 /= k.n;
    k.amplitude /= k.n;
    print_message(
        "%s, N = %.0f, %.0f dB: %.0f dwells, found %.0f, false %.0f; SNR %.2f dB, sigma "
        "%.2f dB, amplitude %.4f, (error/sigma)^2 of the delay %.2f, of the Doppler %.2f\n",
        c.setup->codes[0].code->name, n, snr_db, k.n, k.n_found, k.n_false, k.snr_db,
        k.snr_sigma_db, k.amplitude, k.delay2, k.doppler2);
    close_chain(&c);
    return k;
}

/* The limits of this program are those of chance, about once in 1e5 runs. The number of false
 * echoes has a Poisson distribution with a mean of 0.004 in 40 dwells and 0.02 in 200: more than 2
 * in one of 1e6 runs. */
static void assert_found(const counts *k, double n_targets)
{
    assert_on_average(k->n_found == n_targets * k->n && k->n_false <= 2);
}

/* The noise of a strong echo comes from its residual, some 20 independent cells, so its SNR
 * scatters by 1 dB from dwell to dwell. What the model of the map leaves there costs up to
 * 0.4 dB. */
static void assert_snr(const counts *k, double snr_db)
{
    assert_on_average(fabs(k->snr_db - snr_db) < 0.4 + 5 * k->snr_sigma_db);
}

/* Returns the standard deviation of the mean relative amplitude that noise causes. */
static double amplitude_sigma(const counts *k, double snr_db)
{
    return 1 / sqrt(2 * pow(10, snr_db / 10) * k->n);
}

static void is_one_echo(const char *const *settings, double rows)
{
    const target still = {50.3, rows, 0};

    for (double snr_db = 25; snr_db < 70; snr_db += 15) {
        const counts k = run_targets(settings, snr_db, &still, 1, 40 / SHARE);

        assert_found(&k, 1);
        assert_snr(&k, snr_db);
        assert_on_average(k.amplitude > 0.995 - 4 * amplitude_sigma(&k, snr_db));
    }
}

/* The second code fills its band, so nothing of it may be lost where its echo is resampled. */
TEST(a_strong_echo_is_one_echo_of_its_whole_snr)
{
    static const char *const four[] = {SONAR, "code.degree=7", "code.chip_rate_hz=250e3",
                                       "radar.carrier_hz=750e3", NULL};
    static const char *const one[] = {SONAR, "code.type=random", "code.length=508",
                                      "radar.carrier_hz=3e6", NULL};

    is_one_echo(four, 0);
    is_one_echo(four, 20.4);
    is_one_echo(one, 0.3);
    is_one_echo(one, -30.2);
}

/* The direct path. What its delay changes within a window is in the model of the other rows. */
TEST(a_very_strong_echo_at_rest_has_its_snr)
{
    static const char *const four[] = {SONAR, "code.degree=7", "code.chip_rate_hz=250e3",
                                       "radar.carrier_hz=750e3", NULL};
    static const target still = {50.3, 0, 0};

    for (double snr_db = 85; snr_db < 120; snr_db += 15) {
        const counts k = run_targets(four, snr_db, &still, 1, 40 / SHARE);

        assert_found(&k, 1);
        assert_snr(&k, snr_db);
    }
}

/* 18 dB weaker, two rows and ten chips away. */
TEST(a_mover_beside_a_strong_echo)
{
    static const char *const four[] = {SONAR, "code.degree=7", "code.chip_rate_hz=250e3",
                                       "radar.carrier_hz=750e3", NULL};
    static const target targets[] = {{50.3, 0, 0}, {90.6, 1.7, -18}};
    const counts k = run_targets(four, 55, targets, 2, 40 / SHARE);

    assert_found(&k, 2);
}

/* The mean that is removed holds the code of a mover at many delays. It was taken for an echo at
 * rest, and pulled the Doppler of the mover by many sigmas. */
TEST(without_clutter_a_mover_keeps_its_doppler)
{
    static const char *const eight[] = {
        "dwell.combine=doppler", "dwell.periods=8",         "dwell.clutter=remove",
        "code.degree=7",         "code.chip_rate_hz=250e3", "radar.carrier_hz=750e3",
        "detector.pfa=1e-4",     "engine.batch=1",          NULL};
    static const target mover = {50.3, 1.43, 0};

    for (double snr_db = 30; snr_db < 60; snr_db += 20) {
        const counts k = run_targets(eight, snr_db, &mover, 1, 200 / SHARE);

        assert_found(&k, 1);
        assert_on_average(fabs(k.amplitude - 1) < 0.002 + 5 * amplitude_sigma(&k, snr_db));
        /* A mean of 200 squares exceeds 1.55 times its expectation once in 1e6. The expectations
         * are 1.07 and 1.25 here: without the mean of the dwell the sigmas are slightly small. */
        assert_on_average(k.doppler2 < 1.1 * 1.55 && k.delay2 < 1.3 * 1.55);
    }
}
