/* SPDX-License-Identifier: MIT */
/* Estimates after a least-squares filter by statistics: delay, amplitude and SNR, each with the
 * filter's loss. */
#include "tests/fixture/detection_fixture.h"

/* The weaker of two echoes as a run found it, means over its dwells. */
typedef struct tally {
    size_t n, n_missed;
    double delay, delay_square, amplitude_square; /* of error / sigma */
    double snr, loss, bias;
    double snr_scatter; /* standard deviation of the mean SNR, dB */
} tally;

/* Echoes at random fractions of a gate: the measured one of snr_db, and clutter of clutter_db at
 * least `apart` gates from it, on a whole gate or not. */
static void measure(const char *const *settings, double snr_db, double clutter_db, bool is_whole,
                    size_t n_dwells, tally *sum)
{
    const double noise = 1e-4;
    chain c;

    *sum = (tally){0};
    if (!open_chain(&c, settings))
        return;

    const pnr_plan *plan = &c.setup->plan;
    const double margin = plan->gate_count < plan->n_samples ? 12 : 0;
    const double n = (double)plan->n_samples, room = (double)plan->gate_count - 2 * margin;
    const double first = (double)plan->gate_first + margin;
    const double gain = n * (double)c.n_windows;
    const double amplitude = sqrt(noise * pow(10, snr_db / 10) / gain);

    for (n_dwells /= SHARE; sum->n + sum->n_missed < n_dwells;) {
        double delays[1024];

        assert_true(plan->batch <= 1024);
        clear_chain(&c);
        add_noise(c.x, c.windows.spans[0].n_samples, noise);
        for (size_t d = 0; d < plan->batch; d++) {
            double clutter = first + uniform() * room;

            do
                delays[d] = first + uniform() * room;
            while (fabs(remainder(delays[d] - clutter, n)) < 10);
            if (is_whole)
                clutter = floor(clutter);

            double(*a)[2] = delayed_code(&c, delays[d]), (*b)[2] = delayed_code(&c, clutter);

            add_echo(&c, d, (const double(*)[2])a, amplitude, 2 * M_PI * uniform());
            add_echo(&c, d, (const double(*)[2])b, amplitude * pow(10, (clutter_db - snr_db) / 20),
                     2 * M_PI * uniform());
            free(a);
            free(b);
        }
        correlate_chain(&c);
        for (size_t d = 0; d < plan->batch; d++) {
            const pnr_echo *echo = NULL;
            pnr_detection found;

            detect_dwell(&c, d, &found);
            for (size_t e = 0; e < found.n_echoes; e++)
                if (fabs(remainder(found.echoes[e].lag - delays[d], n)) < 1 &&
                    (echo == NULL || found.echoes[e].snr > echo->snr))
                    echo = &found.echoes[e]; /* a false alarm may be as near */
            if (echo == NULL) {
                sum->n_missed++;
                continue;
            }

            const double rate = pnr_rational_double(c.setup->radar.rate_hz);
            const double error = remainder(echo->lag - delays[d], n) / (echo->delay_sigma_s * rate);
            const double amplitude_error = (echo->amplitude - amplitude) / echo->amplitude_sigma;

            sum->n++;
            sum->delay += error;
            sum->delay_square += error * error;
            sum->amplitude_square += amplitude_error * amplitude_error;
            sum->bias += amplitude_error;
            sum->snr += echo->snr;
            sum->snr_scatter += echo->snr * echo->snr;
            sum->loss +=
                c.setup->least_squares
                    ->loss[((size_t)lrint(delays[d]) - plan->gate_first) % plan->n_samples];
        }
    }
    close_chain(&c);

    const double count = (double)sum->n;

    sum->delay /= count;
    sum->delay_square /= count;
    sum->amplitude_square /= count;
    sum->bias /= count;
    sum->snr /= count;
    sum->snr_scatter = sqrt((sum->snr_scatter / count / (sum->snr * sum->snr) - 1) / count);
    sum->snr_scatter *= 10 / log(10);
    sum->snr = 10 * log10(sum->snr);
    sum->loss = 10 * log10(sum->loss / count);
    print_message("%s: %zu of %zu; error/sigma of delay %+.3f, squared %.3f, amplitude %+.3f, "
                  "%.3f; SNR %.3f +- %.3f dB of %.1f, loss %.3f\n",
                  settings[0], sum->n, sum->n + sum->n_missed, sum->delay, sum->delay_square,
                  sum->bias, sum->amplitude_square, sum->snr, sum->snr_scatter, snr_db, sum->loss);
}

#define FILTER "window.filter=least-squares", "code.type=random"

TEST(test_estimates)
{
    static const char *const single[] = {"code.length=400",         FILTER,
                                         "radar.max_range_m=14800", "engine.batch=50",
                                         "detector.pfa=1e-4",       NULL};
    static const char *const linear[] = {"window.correlation=linear",
                                         "code.length=400",
                                         FILTER,
                                         "radar.max_range_m=14800",
                                         "engine.batch=1",
                                         "detector.pfa=1e-4",
                                         NULL};
    static const char *const rows[] = {
        "dwell.combine=doppler",   "dwell.periods=8", "code.length=400",   FILTER,
        "radar.max_range_m=14800", "engine.batch=50", "detector.pfa=1e-4", NULL};
    static const char *const looks[] = {
        "dwell.looks=4",   "code.length=400",   FILTER, "radar.max_range_m=14800",
        "engine.batch=50", "detector.pfa=1e-4", NULL};
    static const struct {
        const char *const *settings;
        double snr_db, clutter_db;
        bool is_whole;
        size_t n_dwells;
    } cases[] = {
        {single, 25, 50, true, 2000},  {single, 30, 30, false, 2000},
        {single, 50, 50, false, 1000}, {linear, 30, 30, false, 1000},
        {rows, 30, 30, false, 600},    {looks, 30, 12, false, 600}}; /* of sums others stay in */

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tally t;

        measure(cases[i].settings, cases[i].snr_db, cases[i].clutter_db, cases[i].is_whole,
                cases[i].n_dwells, &t);
        if (t.n == 0)
            return;

        /* Squares of n normal errors have the standard deviation sqrt(2 / n), and 0.1 is theirs. */
        const double deviation = 5 * sqrt(2 / (double)t.n) + 0.1;

        assert_on_average(t.n_missed == 0);
        assert_on_average(fabs(t.delay) < 5 / sqrt((double)t.n) + 0.1);
        assert_on_average(fabs(t.bias) < 5 / sqrt((double)t.n) + 0.2);
        assert_on_average(fabs(t.delay_square - 1) < deviation);
        assert_on_average(fabs(t.amplitude_square - 1) < deviation);
        /* The bias is at most 0.2 dB. The noise of few gates scatters. */
        assert_on_average(fabs(t.snr - (cases[i].snr_db - t.loss)) < 0.2 + 5 * t.snr_scatter);
    }
}

/* All lags of an m-sequence, across their end too: half of the noise is one constant for all gates,
 * 3 dB of an amplitude. It does not change the delay, whose stated sigma is therefore too large. */
TEST(test_all_lags)
{
    static const char *const all_lags[] = {"code.degree=8", "window.filter=least-squares",
                                           "engine.batch=50", "detector.pfa=1e-4", NULL};
    tally t;

    measure(all_lags, 30, 30, false, 1000, &t);
    assert_on_average(t.n_missed == 0);
    if (t.n == 0)
        return;
    assert_on_average(fabs(t.delay) < 5 / sqrt((double)t.n) + 0.1);
    assert_on_average(t.delay_square > 0.3 && t.delay_square < 1.2);
    assert_on_average(fabs(t.snr - 27) < 0.5);
}
