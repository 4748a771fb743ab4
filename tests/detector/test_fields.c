/* SPDX-License-Identifier: MIT */
/* The published levels of one scene in every kind of dwell: the SNR of one look, the number of
 * looks, the detection statistic, and C/N0, which is that of the scene. */
#include "tests/fixture/detection_fixture.h"

#define SCENE "code.degree=7", "detector.pfa=1e-4", "engine.batch=50"

/* One kind of dwell, and what a look has more than S = C/N0 Tr. */
static const struct kind {
    const char *settings[8];
    double look_db, looks;
} kinds[] = {
    {{SCENE}, 0, 1},
    {{SCENE, "dwell.combine=coherent", "dwell.periods=10"}, 10, 1},
    {{SCENE, "dwell.combine=incoherent", "dwell.periods=10"}, 0, 10},
    {{SCENE, "dwell.combine=coherent", "dwell.periods=4", "dwell.looks=5"}, 6.0206, 5},
    /* a Hann taper costs 1.76 dB */
    {{SCENE, "dwell.combine=doppler", "dwell.periods=16", "dwell.taper=hann"}, 10.28, 1},
    {{SCENE, "dwell.combine=doppler", "dwell.periods=16", "dwell.looks=4"}, 12.04, 4},
    {{SCENE, "code.chip_rate_hz=250000", "dwell.combine=incoherent", "dwell.periods=4"}, 0, 4},
};

/* The means of `n` echoes, in powers. */
typedef struct means {
    double n, snr, statistic, cn0;
} means;

/* Plants an echo at a whole lag in each dwell of noise. Returns the means of the echoes there. */
static means run_kind(chain *c, double amplitude, double noise, const struct kind *kind)
{
    const double n = (double)c->setup->plan.n_samples;
    size_t first, gates; /* without the lag beyond the greatest range, where no echo is reported */
    means out = {0};

    (void)pnr_radar_cells(&c->setup->radar, &c->config, 1, &first, &gates);
    assert_int_equal(first, 0);

    for (int batch = 0; batch < 20 / (SHARE > 1 ? 10 : 1); batch++) {
        double lags[50];

        clear_chain(c);
        add_noise(c->x, c->windows.spans[0].n_samples, noise);
        for (size_t d = 0; d < c->setup->plan.batch; d++) {
            double(*a)[2] = delayed_code(c, lags[d] = (double)below(gates));

            add_echo(c, d, (const double(*)[2])a, amplitude, 7 * uniform());
            free(a);
        }
        correlate_chain(c);
        for (size_t d = 0; d < c->setup->plan.batch; d++) {
            pnr_detection found;

            detect_dwell(c, d, &found);
            for (size_t e = 0; e < found.n_echoes; e++) {
                const pnr_echo *echo = &found.echoes[e];

                if (fabs(remainder(echo->lag - lags[d], n)) > 1)
                    continue;
                assert_true(echo->looks == (uint32_t)kind->looks);
                assert_true(fabs(echo->snr_db - 10 * log10(echo->snr / kind->looks)) < 1e-9);
                out.n++;
                out.snr += pow(10, echo->snr_db / 10);
                out.statistic += pow(10, echo->statistic_db / 10);
                out.cn0 += pow(10, echo->cn0_dbhz / 10);
            }
        }
    }
    out.snr /= out.n;
    out.statistic /= out.n;
    out.cn0 /= out.n;
    return out;
}

TEST(levels_are_those_of_one_look_and_of_the_scene)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *kind = &kinds[i];
        const double period_db = 18; /* S of one period */
        chain c;

        if (!open_chain(&c, kind->settings))
            return;

        const double n = (double)c.setup->plan.n_samples, rate_hz = 1e6, noise = 1e-3;
        const double amplitude = sqrt(noise / n * pow(10, period_db / 10));
        const means m = run_kind(&c, amplitude, noise, kind);
        const double cn0_db = 10 * log10(amplitude * amplitude * rate_hz / noise);
        const double snr_db = period_db + kind->look_db;

        print_message("kind %zu: %.0f echoes, SNR %.2f of %.2f dB, statistic %.2f, C/N0 %.2f of "
                      "%.2f dB Hz\n",
                      i, m.n, 10 * log10(m.snr), snr_db, 10 * log10(m.statistic), 10 * log10(m.cn0),
                      cn0_db);
        assert_on_average(m.n > 980);
        assert_on_average(fabs(10 * log10(m.snr) - snr_db) < 0.1);
        assert_on_average(fabs(10 * log10(m.statistic / (m.snr + 1))) < 0.15);
        assert_on_average(fabs(10 * log10(m.cn0) - cn0_db) < 0.1);
        close_chain(&c);
    }
}

/* A notch removes a part of the code, and a least-squares filter costs SNR: C/N0 counts both. The
 * fixture plants the code without that part, but with its energy. */
TEST(losses_leave_cn0)
{
    static const struct kind costly[] = {
        {{SCENE, "window.notch=100e3+-30e3"}, 0, 1},
        {{SCENE, "code.type=random", "code.length=400", "window.filter=least-squares",
          "radar.max_range_m=15000"},
         0,
         1},
    };

    for (size_t i = 0; i < sizeof costly / sizeof *costly; i++) {
        chain c;

        if (!open_chain(&c, costly[i].settings))
            return;

        const double n = (double)c.setup->plan.n_samples, rate_hz = 1e6, noise = 1e-3;
        const double amplitude = sqrt(noise / n * 1000);
        const means m = run_kind(&c, amplitude, noise, &costly[i]);
        const double sent = amplitude * amplitude / (1 - c.setup->codes[0].removed);
        const double cn0_db = 10 * log10(sent * rate_hz / noise);
        const double lost_db = cn0_db - 10 * log10(m.snr / c.setup->radar.period_s);

        print_message("costly %zu: %.0f echoes, SNR %.2f dB less than whole, C/N0 %.2f of %.2f dB "
                      "Hz\n",
                      i, m.n, lost_db, 10 * log10(m.cn0), cn0_db);
        assert_true(lost_db > 0.15);
        assert_on_average(m.n > 980 && fabs(10 * log10(m.cn0) - cn0_db) < 0.2);
        close_chain(&c);
    }
}
