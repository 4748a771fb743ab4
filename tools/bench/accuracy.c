/* SPDX-License-Identifier: MIT */
/* bench accuracy: measures the errors of delay, amplitude, phase, SNR and Doppler over many dwells,
 * and prints them with the Cramer-Rao bounds. */
#include "tools/bench/bench.h"

#include "base/complex.h"
#include "base/random.h"
#include "cli.h"
#include "detector/detector.h"
#include "engine/plan.h"
#include "scene/noise.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DWELLS_A_RUN = 500, N_OVERSAMPLES = 2, BATCH_SAMPLES = 1 << 18 };
static const double snrs_db[] = {10, 12.5, 15, 17.5, 20, 25, 30, 35, 40, 45, 50, 55, 60};
static const double amplitude = 0.1; /* amplitude of the echo, full scale = 1 */

#define DELAY_COLUMNS                                                                              \
    "snr_db oversample outliers_pct rms_over_bound bias_over_sigma delay_variance amp_variance "   \
    "phase_variance snr_error_db rms_samples bound_samples bound_amp bound_phase_rad"
static const char delay_columns[] = DELAY_COLUMNS;
/* Doppler errors are in rows. The width of a row is 1 / (K Tr), where K periods of Tr seconds are
 * combined. */
static const char doppler_columns[] =
    DELAY_COLUMNS " doppler_rms_over_bound doppler_bias_over_sigma doppler_variance rms_rows "
                  "bound_rows";

static const bench_picture picture = {
    .title = "Error of the delay against the Cramer-Rao bound",
    .x_label = "SNR of an echo, dB",
    .y_label = "error of the delay, samples",
    .curves = {{"rms_samples", "measured, rms"}, {"bound_samples", "bound", true}},
    .series = "oversample",
    .series_label = "cells a lag ",
    .x_scale = BENCH_X_LINEAR};
static const bench_picture picture_doppler = {
    .title = "Errors of delay and Doppler against the Cramer-Rao bounds",
    .x_label = "SNR of an echo, dB",
    .y_label = "error of the delay, samples; of the Doppler, rows",
    .curves = {{"rms_samples", "delay, rms"},
               {"bound_samples", "delay, bound", true},
               {"rms_rows", "Doppler, rms"},
               {"bound_rows", "Doppler, bound", true}},
    .series = "oversample",
    .series_label = "cells a lag ",
    .x_scale = BENCH_X_LINEAR};

/* The objects that find the echoes in samples, for one value of detector.oversample. */
typedef struct chain {
    pnr_config config;
    bench_subject subject;
    const pnr_setup *setup; /* the subject owns it */
    pnr_trial trial;
    pnr_detector *detector;
} chain;

/* The samples of one submit, and the true values of their echoes. */
typedef struct scene {
    float (*x)[2];        /* [batch][n_periods][n_samples] */
    double (*noise)[2];   /* [n_samples] */
    double complex *echo; /* [n_samples] */
    double *phase;        /* [batch] */
    double lag, bins;     /* delay in samples, and Doppler in 1 / period; both are the same for all
                           * echoes of a submit */
    uint64_t position;    /* number of noise samples used so far */
    uint64_t state;       /* state of the generator of delays, Doppler and phases */
} scene;

/* Sums over the n dwells in which the delay error of the strongest echo is below one sample.
 * n_missed counts the other dwells. */
typedef struct tally {
    double n, n_missed;
    double bias, square;
    double delay, amplitude, phase; /* sums of (error / sigma)^2 */
    double bins_bias, bins_square, doppler;
    double snr;
} tally;

static int open_chain(const bench *b, size_t n_samples, size_t oversample, chain *c,
                      pnr_error *error)
{
    int rc;

    pnr_measure_configure(b->config, n_samples, &c->config);
    c->config.detector.oversample = oversample;
    c->config.source.spectrum = PNR_SPECTRUM_NORMAL;
    c->config.source.format = PNR_FORMAT_CF32; /* the bound does not include quantisation */
    if (b->config->engine.batch == 0)
        c->config.engine.batch = BATCH_SAMPLES / (n_samples * c->config.dwell.periods) + 1;
    rc = bench_prepare(&c->config, n_samples, 0, &c->subject, error);
    c->setup = c->subject.setup;
    if (rc == PNR_OK)
        rc = pnr_trial_open(c->subject.ops, &c->setup->plan, &c->trial, error);
    if (rc == PNR_OK)
        rc = pnr_detector_create(&c->config, c->setup, &c->detector, error);
    return rc;
}

static void close_chain(chain *c)
{
    pnr_trial_close(&c->trial);
    pnr_detector_destroy(c->detector);
    pnr_setup_destroy(c->subject.setup); /* the caller owns the arrays of the configuration */
}

static int open_scene(const chain *c, scene *s, pnr_error *error)
{
    const pnr_plan *plan = &c->setup->plan;

    s->x = c->subject.ops->alloc(pnr_plan_view_samples(plan, plan->batch) * sizeof *s->x);
    s->noise = malloc(plan->n_samples * sizeof *s->noise);
    s->echo = malloc(plan->n_samples * sizeof *s->echo);
    s->phase = calloc(plan->batch, sizeof *s->phase);
    if (!s->x || !s->noise || !s->echo || !s->phase)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a batch of %zu dwells",
                             plan->batch);
    return PNR_OK;
}

static void close_scene(const chain *c, scene *s)
{
    if (c->subject.ops != NULL)
        c->subject.ops->free(s->x);
    free(s->noise);
    free(s->echo);
    free(s->phase);
}

static bool is_doppler(const chain *c)
{
    return c->config.dwell.combine == PNR_COMBINE_DOPPLER;
}

/* Returns a random Doppler, in 1 / Tr, within the middle four fifths of the rows. */
static double draw_bins(const chain *c, scene *s)
{
    const pnr_plan *plan = &c->setup->plan;
    const pnr_hypothesis first = pnr_plan_hypothesis(plan, 0);
    const double row =
        (0.1 + 0.8 * pnr_random_uniform(&s->state)) * (double)(pnr_plan_rows(plan) - 1);

    return first.quarters / 4.0 + (first.first_bin + row) / (double)plan->n_periods;
}

/* Fills the samples of a batch. All echoes have the same random delay and Doppler. Each dwell has
 * another random phase, which its echo has in the middle of a look. power: mean noise power of a
 * sample. */
static int fill_scene(const chain *c, double power, scene *s)
{
    const pnr_plan *plan = &c->setup->plan;
    const size_t n = plan->n_samples;
    const float scale = (float)sqrt(power);

    s->lag = pnr_random_uniform(&s->state) * (double)n;
    s->bins = is_doppler(c) ? draw_bins(c, s) : 0;
    if (pnr_waveform_shift(c->setup->codes[0].waveform, s->lag, s->echo) != PNR_OK)
        return PNR_ENOMEMORY;
    for (size_t w = 0; w < plan->batch * pnr_plan_windows(plan); w++) {
        const size_t d = w / pnr_plan_windows(plan);
        float(*x)[2] = s->x + w * n;

        if (w % pnr_plan_windows(plan) == 0)
            s->phase[d] = 2 * M_PI * pnr_random_uniform(&s->state) - M_PI;

        const double periods = (double)(w % plan->n_periods) - ((double)plan->n_periods - 1) / 2;
        const double step = 2 * M_PI * s->bins / (double)n;
        const double first =
            2 * M_PI * remainder(s->bins * periods, 1) - step * ((double)n - 1) / 2 + s->phase[d];

        pnr_noise_gaussian(1, 0, s->position, n, s->noise);
        s->position += n;
        for (size_t i = 0; i < n; i++) {
            const double complex a = amplitude * pnr_cis(first + step * (double)i) * s->echo[i];

            x[i][0] = scale * (float)s->noise[i][0] + (float)creal(a);
            x[i][1] = scale * (float)s->noise[i][1] + (float)cimag(a);
        }
    }
    return PNR_OK;
}

static void add_dwell(const chain *c, const scene *s, size_t d, const pnr_detection *found,
                      tally *t)
{
    const pnr_echo *echo = &found->echoes[0];
    const double sigma = echo->delay_sigma_s * pnr_rational_double(c->setup->radar.rate_hz);
    const double error = remainder(echo->lag - s->lag, (double)c->setup->plan.n_samples);

    if (found->n_echoes == 0 || fabs(error) >= 1) {
        t->n_missed++;
        return;
    }
    t->n++;
    t->bias += error;
    t->square += error * error;
    t->delay += pow(error / sigma, 2);
    t->amplitude += pow((echo->amplitude - amplitude) / echo->amplitude_sigma, 2);
    t->phase += pow(remainder(echo->phase_rad - s->phase[d], 2 * M_PI) / echo->phase_sigma_rad, 2);
    t->snr += echo->snr;
    if (is_doppler(c)) {
        const double period_s = c->setup->radar.period_s;
        const double bins = echo->doppler_hz * period_s - s->bins;

        t->bins_bias += bins;
        t->bins_square += bins * bins;
        t->doppler += pow(bins / (echo->doppler_sigma_hz * period_s), 2);
    }
}

static int detect_all(chain *c, const scene *s, size_t n_dwells, tally *t, pnr_error *error)
{
    const pnr_plan *plan = &c->setup->plan;
    pnr_result result;
    const int rc = pnr_trial_run(&c->trial, s->x, n_dwells, &result, error);

    if (rc != PNR_OK)
        return rc;
    for (size_t d = 0; d < result.n_dwells; d++) {
        pnr_detection found = {.n_echoes = 0};

        const pnr_observed observed = pnr_trial_observed(plan, &result, d);

        pnr_detector_detect(c->detector, &observed, &found);
        add_dwell(c, s, d, &found, t);
    }
    return PNR_OK;
}

static void add_row(bench_table *table, const chain *c, double snr_db, const tally *t)
{
    const double snr = pow(10, snr_db / 10);
    const double bandwidth = pnr_waveform_bandwidth(c->setup->codes[0].waveform);
    const double bound = 1 / sqrt(2 * snr * bandwidth);
    const double n = t->n > 0 ? t->n : (double)NAN, rms = sqrt(t->square / n);
    /* turn: the mean angular frequency of the code, Im R'(0), where R is the autocorrelation */
    const double turn = cimag(pnr_waveform_at(c->setup->codes[0].autocorrelation, 1e-3)) / 1e-3;

    bench_table_add(table, "%g %zu %g %g %g %g %g %g %g %g %g %g %g", snr_db,
                    c->setup->plan.oversample, 100 * t->n_missed / (t->n + t->n_missed),
                    rms / bound, t->bias / n / bound, t->delay / n, t->amplitude / n, t->phase / n,
                    10 * log10(t->snr / n / snr), rms, bound, 1 / sqrt(2 * snr),
                    sqrt((1 + turn * turn / bandwidth) / (2 * snr)));
    if (!is_doppler(c))
        return;

    /* The Cramer-Rao bound for the frequency of a tone: sqrt(6 / snr) / (2 pi) rows. */
    const double periods = (double)c->setup->plan.n_periods;
    const double bound_rows = sqrt(6 / snr) / (2 * M_PI);
    const double rms_rows = sqrt(t->bins_square / n) * periods;

    bench_table_add(table, "%g %g %g %g %g", rms_rows / bound_rows,
                    t->bins_bias / n * periods / bound_rows, t->doppler / n, rms_rows, bound_rows);
}

static int measure_snr(chain *chains, scene *s, double snr_db, size_t n_dwells, bench_table *table,
                       pnr_error *error)
{
    const pnr_plan *plan = &chains[0].setup->plan;
    const double energy =
        pnr_waveform_energy(chains[0].setup->codes[0].waveform) * (double)pnr_plan_windows(plan);
    const double power = energy * amplitude * amplitude / pow(10, snr_db / 10);
    tally tallies[N_OVERSAMPLES] = {{0}};
    int rc = PNR_OK;

    for (size_t done = 0; done < n_dwells && rc == PNR_OK; done += plan->batch) {
        const size_t left = n_dwells - done;

        if (pnr_stop)
            return pnr_error_set(error, PNR_EEND, "stopped by signal");
        if (fill_scene(&chains[0], power, s) != PNR_OK)
            return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a delayed code");
        for (size_t o = 0; o < N_OVERSAMPLES && rc == PNR_OK; o++)
            rc = detect_all(&chains[o], s, left < plan->batch ? left : plan->batch, &tallies[o],
                            error);
    }
    for (size_t o = 0; o < N_OVERSAMPLES && rc == PNR_OK; o++)
        add_row(table, &chains[o], snr_db, &tallies[o]);
    return rc;
}

int bench_accuracy(const bench *b, pnr_error *error)
{
    const size_t n_samples = b->sizes[0];
    const size_t n_dwells = b->runs * DWELLS_A_RUN;
    chain chains[N_OVERSAMPLES] = {{.setup = NULL}};
    bench_table *table = NULL;
    scene s = {.x = NULL};
    char title[192];
    int rc = PNR_OK;

    if (b->n_sizes > 1)
        return pnr_error_set(error, PNR_EUSAGE, "accuracy: one size at a time");
    for (size_t o = 0; o < N_OVERSAMPLES && rc == PNR_OK; o++)
        rc = open_chain(b, n_samples, o + 1, &chains[o], error);
    if (rc == PNR_OK)
        rc = open_scene(&chains[0], &s, error);
    if (rc == PNR_OK) {
        snprintf(title, sizeof title, "accuracy: %s, N = %zu, %zu dwells a row",
                 chains[0].setup->codes[0].code->name, n_samples, n_dwells);
        rc = bench_table_create(title, is_doppler(&chains[0]) ? doppler_columns : delay_columns,
                                &table, error);
    }
    for (size_t i = 0; i < sizeof snrs_db / sizeof snrs_db[0] && rc == PNR_OK; i++)
        rc = measure_snr(chains, &s, snrs_db[i], n_dwells, table, error);
    if (rc == PNR_OK)
        rc =
            bench_table_show(b, table, is_doppler(&chains[0]) ? &picture_doppler : &picture, error);
    bench_table_destroy(table);
    close_scene(&chains[0], &s);
    for (size_t o = 0; o < N_OVERSAMPLES; o++)
        close_chain(&chains[o]);
    return rc;
}
