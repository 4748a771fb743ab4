/* SPDX-License-Identifier: MIT */
/* What the tests of fits in maps share: configurations, and a patch by the sums of engine.h. */
#ifndef FIT_MAP_FIXTURE_H
#define FIT_MAP_FIXTURE_H

#include "detection_fixture.h"
#include "fit_map.h"
#include "plan.h"

typedef struct map_bench {
    pnr_config config;
    pnr_setup *setup;
    pnr_fit_map *fit;
    pnr_detector *detector;
} map_bench;

static inline void map_open(map_bench *b, const char *const *settings)
{
    pnr_error error = {0};

    memset(b, 0, sizeof *b);
    pnr_config_init(&b->config);
    assert_int_equal(pnr_config_set(&b->config, "source.rate_hz=1e6", &error), PNR_OK);
    for (; *settings != NULL; settings++)
        if (pnr_config_set(&b->config, *settings, &error) != PNR_OK)
            fail_msg("%s", error.text);
    if (pnr_setup_create(&b->config, PNR_FORMAT_CF32, 1, &b->setup, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static inline void map_close(map_bench *b)
{
    pnr_setup_destroy(b->setup);
    pnr_config_clear(&b->config);
}

typedef struct map_place {
    double bins, rotation; /* F, f */
} map_place;

/* F and f of a row, counted through all hypotheses. */
static inline map_place map_row(const pnr_plan *plan, size_t row)
{
    size_t h = 0;

    while (row >= pnr_plan_hypothesis(plan, h).n_rows)
        row -= pnr_plan_hypothesis(plan, h++).n_rows;

    const pnr_hypothesis at = pnr_plan_hypothesis(plan, h);
    const double f = at.quarters / 4.0;

    return (map_place){f + ((double)at.first_bin + (double)row) / (double)plan->n_periods, f};
}

/*
 * What an engine returns around a place for one echo in a look, sample by sample:
 *     x_p[i] = A a(i - d) exp(2 pi i (v (p N + i - (K N - 1)/2) / N + phase)),
 *     c[k] = sum_p w_p exp(-2 pi i F p) sum_n x_p[i] exp(-2 pi i f i / N) conj(a[n]).
 */
static inline void map_patch(const pnr_plan *plan, const pnr_waveform *waveform,
                             const pnr_patch_place *place, double lag, double bins,
                             double amplitude, double phase,
                             float out[PNR_NEIGHBOURS][PNR_NEIGHBOURS][2])
{
    enum { J = PNR_NEIGHBOURS, MIDDLE = J / 2 };
    const long n = (long)plan->n_samples, periods = (long)plan->n_periods;
    const long length = (long)pnr_plan_window_samples(plan);
    double(*echo)[2] = malloc((size_t)n * sizeof *echo);
    double(*x)[2] = malloc((size_t)length * sizeof *x);
    double(*mean)[2] = calloc((size_t)length, sizeof *mean);

    assert_true(echo && x && mean);
    assert_int_equal(pnr_waveform_shift(waveform, lag, echo), PNR_OK);
    memset(out, 0, sizeof(float[J][J][2]));
    for (int r = 0; r < J; r++) {
        const long row = (long)place->row + r - MIDDLE;

        if (row < 0 || row >= (long)pnr_plan_rows(plan))
            continue;
        const map_place at = map_row(plan, (size_t)row);
        double sum[J][2] = {{0}}, slow[2] = {0, 0}, still[2] = {0, 0}, average[2] = {0, 0};

        for (long p = 0; p < periods; p++) { /* over windows; a window's own samples below */
            const double w = plan->taper != NULL ? plan->taper[p] : 1;

            slow[0] += w * cos(2 * M_PI * (bins - at.bins) * (double)p);
            slow[1] += w * sin(2 * M_PI * (bins - at.bins) * (double)p);
            still[0] += w * cos(2 * M_PI * at.bins * (double)p);
            still[1] -= w * sin(2 * M_PI * at.bins * (double)p);
            average[0] += cos(2 * M_PI * bins * (double)p) / (double)periods;
            average[1] += sin(2 * M_PI * bins * (double)p) / (double)periods;
        }
        if (plan->remove_mean) {
            slow[0] -= average[0] * still[0] - average[1] * still[1];
            slow[1] -= average[0] * still[1] + average[1] * still[0];
        }
        for (long i = 0; i < length; i++) {
            const double turns = (bins - at.rotation) * (double)i / (double)n;
            const double *a = echo[i % n], c = cos(2 * M_PI * turns), s = sin(2 * M_PI * turns);

            x[i][0] = a[0] * c - a[1] * s;
            x[i][1] = a[0] * s + a[1] * c;
        }
        for (int j = 0; j < J; j++)
            for (long m = 0; m < n; m++) {
                const long k = place->lag + j - MIDDLE;
                const long i = plan->linear ? m + k : ((m + k) % n + n) % n;
                const double *a =
                    plan->references[(long)place->code * n * (long)plan->oversample + m];

                sum[j][0] += x[i][0] * a[0] + x[i][1] * a[1];
                sum[j][1] += x[i][1] * a[0] - x[i][0] * a[1];
            }

        const double middle = ((double)(n * periods) - 1) / (2 * (double)n);
        const double angle = phase - 2 * M_PI * bins * middle;
        const double re = amplitude * cos(angle), im = amplitude * sin(angle);
        const double turn[2] = {re * slow[0] - im * slow[1], re * slow[1] + im * slow[0]};

        for (int j = 0; j < J; j++) {
            out[r][j][0] = (float)(turn[0] * sum[j][0] - turn[1] * sum[j][1]);
            out[r][j][1] = (float)(turn[0] * sum[j][1] + turn[1] * sum[j][0]);
        }
    }
    free(echo);
    free(x);
    free(mean);
}

#define MAP_DOPPLER "dwell.combine=doppler", "dwell.periods=16"
static const char *const map_random[] = {MAP_DOPPLER, "code.type=random", "code.length=101", NULL};
static const char *const map_chu[] = {MAP_DOPPLER, "code.type=zadoff-chu", "code.length=61",
                                      "doppler.step=half", NULL};
static const char *const map_m_sequence[] = {MAP_DOPPLER, "code.degree=6", "doppler.min_hz=-20000",
                                             "doppler.max_hz=30000", NULL};
static const char *const map_hann[] = {MAP_DOPPLER, "code.degree=6", "dwell.taper=hann", NULL};
static const char *const map_without_mean[] = {MAP_DOPPLER,
                                               "code.type=random",
                                               "code.length=64",
                                               "dwell.clutter=remove",
                                               "doppler.min_hz=4000",
                                               "doppler.max_hz=12000",
                                               NULL};
static const char *const map_linear[] = {MAP_DOPPLER,
                                         "code.type=random",
                                         "code.length=91",
                                         "window.correlation=linear",
                                         "radar.min_range_m=3000",
                                         "radar.max_range_m=9000",
                                         NULL};
static const char *const map_single[] = {"code.type=random", "code.length=101",
                                         "doppler.min_hz=-20000", "doppler.max_hz=20000", NULL};

#endif
