/* SPDX-License-Identifier: MIT */
/* Very strong echoes, up to 140 dB: the SNR is right, and nothing but the echo is found. */
#include "tests/fixture/detection_fixture.h"

typedef struct strong {
    double n, n_echoes, delay2;
    double ratio, ratio2; /* measured / true S: its mean, and the mean of its square */
} strong;

/* The standard error of the mean SNR. */
static double scatter_db(const strong *s)
{
    return 10 / log(10) * sqrt((s->ratio2 / (s->ratio * s->ratio) - 1) / s->n);
}

static strong run_strong(const char *const *settings, double snr_db, size_t n_dwells)
{
    strong s = {0};
    chain c;

    if (!open_chain(&c, settings))
        skip();

    const double amplitude = 0.5, rate = pnr_rational_double(c.setup->radar.rate_hz);
    const double power = pnr_waveform_energy(c.setup->codes[0].waveform) * (double)c.n_windows *
                         amplitude * amplitude / pow(10, snr_db / 10);

    while (s.n < (double)n_dwells) {
        const double lag = uniform() * (double)c.setup->plan.n_samples;
        double(*a)[2] = delayed_code(&c, lag);
        pnr_detection found;

        clear_chain(&c);
        add_noise(c.x, c.windows.spans[0].n_samples, power);
        add_echo(&c, 0, (const double(*)[2])a, amplitude, 7 * uniform());
        correlate_chain(&c);
        detect_dwell(&c, 0, &found);
        assert_true(found.n_echoes > 0);
        s.n++;
        s.n_echoes += (double)found.n_echoes;

        const double ratio =
            found.echoes[0].looks * pow(10, (found.echoes[0].snr_db - snr_db) / 10);

        s.ratio += ratio;
        s.ratio2 += ratio * ratio;
        s.delay2 += pow(remainder(found.echoes[0].lag - lag, (double)c.setup->plan.n_samples) /
                            (found.echoes[0].delay_sigma_s * rate),
                        2);
        free(a);
    }
    s.ratio /= s.n;
    s.ratio2 /= s.n;
    s.delay2 /= s.n;
    print_message("%s, %zu x %zu, %.0f dB: SNR %+.2f +- %.3f dB, %.0f echoes in %.0f dwells, "
                  "(error/sigma)^2 of the delay %.2f\n",
                  c.setup->codes[0].code->name, c.n_windows, c.setup->plan.n_samples, snr_db,
                  10 * log10(s.ratio), scatter_db(&s), s.n_echoes, s.n, s.delay2);
    close_chain(&c);
    return s;
}

/* The noise is known from 6 cells if a chip has four samples, from 15 if it has one, and in maps
 * from 200. The SNR of a dwell scatters by 2, 1.2 and 0.3 dB. So the limit of the mean is at least
 * five of its standard errors away from its bias, which is at most 0.05 dB. */
enum { OF_FOUR = 1600, OF_ONE = 800, OF_MAPS = 400 };

/* From 60 dB on. One echo of noise in all dwells is allowed. */
static void is_right(const char *const *settings, double most_db, int n_dwells)
{
    for (double snr_db = 60; snr_db <= most_db; snr_db += (most_db - 60) / 2) {
        const double n = n_dwells / SHARE;
        const strong s = run_strong(settings, snr_db, (size_t)n);

        assert_on_average(fabs(10 * log10(s.ratio)) < 0.3);
        assert_on_average(s.n_echoes <= n + 1);
        assert_on_average(s.delay2 < 3);
    }
}

TEST(one_row)
{
    static const char *const one[] = {"code.degree=10", "engine.batch=1", NULL};
    static const char *const four[] = {"code.degree=8", "code.chip_rate_hz=250e3",
                                       "detector.oversample=2", "engine.batch=1", NULL};
    static const char *const random[] = {"code.type=random", "code.length=1000", "engine.batch=1",
                                         NULL};
    static const char *const coherent[] = {"code.degree=10", "dwell.combine=coherent",
                                           "dwell.periods=16", "engine.batch=1", NULL};

    is_right(one, 140, OF_ONE);
    is_right(four, 130, OF_FOUR); /* single precision rounds each of seven large values */
    is_right(random, 140, OF_ONE);
    is_right(coherent, 140, OF_ONE);
}

TEST(maps)
{
    static const char *const doppler[] = {"code.degree=9", "dwell.combine=doppler",
                                          "dwell.periods=32", "engine.batch=1", NULL};
    static const char *const random[] = {
        "code.type=random",     "code.length=500",     "dwell.combine=doppler", "dwell.periods=32",
        "doppler.min_hz=-4000", "doppler.max_hz=4000", "engine.batch=1",        NULL};

    is_right(doppler, 140, OF_MAPS);
    is_right(random, 140, OF_MAPS);
}

/* The noise in a sum of powers came from the sum of all cells alone. From 70 dB on it was wrong by
 * up to 70 dB, and the code's sidelobes moved the delay by thousands of sigmas. */
TEST(sums_of_powers)
{
    static const char *const m_sequence[] = {"code.degree=10", "dwell.combine=incoherent",
                                             "dwell.periods=16", "engine.batch=1", NULL};
    static const char *const random[] = {"code.type=random",         "code.length=1000",
                                         "dwell.combine=incoherent", "dwell.periods=4",
                                         "engine.batch=1",           NULL};
    static const char *const map[] = {"code.type=random",
                                      "code.length=150",
                                      "dwell.combine=doppler",
                                      "dwell.periods=8",
                                      "dwell.looks=4",
                                      "engine.batch=1",
                                      NULL};

    is_right(m_sequence, 140, OF_ONE);
    is_right(random, 140, OF_ONE);
    is_right(map, 140, OF_MAPS);
}
