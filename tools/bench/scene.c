/* SPDX-License-Identifier: MIT */
/* bench scene: measures realistic dwells with several echoes and a leak. Prints the times of
 * engine, detection and publishing for one result, the rate of the whole pipeline, the percentage
 * of found echoes, and the errors of these echoes. */
#include "tools/bench/bench.h"
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/stats.h"
#include "cli.h"
#include "detector/detector.h"
#include "engine/plan.h"
#include "publisher/publisher.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PACK = 256,
    LONG_DWELL = 1 << 16, /* samples; results of shorter dwells are packed */
    LEAST_JUDGED = 100    /* planted echoes: a mean of (error / sigma)^2 scatters by 0.14 */
};

#define RADAR(code)                                                                                \
    "[source]\nrate_hz = 1e6\n[radar]\ncarrier_hz = 10e9\n[code]\nchip_rate_hz = 250e3\n" code
#define CODE(chips) RADAR("type = zadoff-chu\nlength = " chips "\n[dwell]\n")
#define GPS(cfar)                                                                                  \
    "[source]\nrate_hz = 4e6\n[code]\ntype = gps-l1ca\nchip_rate_hz = 1.023e6\n"                   \
    "[radar]\ncarrier_hz = 1575.42e6\npath = one-way\n[dwell]\nperiods = 10\n"                     \
    "combine = incoherent\n[doppler]\nmin_hz = -14e3\nmax_hz = 14e3\nstep = half\n"                \
    "[detector]\noversample = 2\ncfar = " cfar "\n"

static const struct scene_case {
    const char *name, *text; /* text: the configuration */
    const char *key;         /* configuration key that selects a code, such as prn; NULL: the scene
                              * has one code */
    size_t n_codes;
    double span_db;        /* level of the strongest echo above the weakest, in dB */
    double max_doppler_hz; /* greatest Doppler of the search; 0: no search */
    bool leaks;
} cases[] = {
    {"single-1024", CODE("256"), NULL, 1, 40, 0, true},
    {"single-8192", CODE("2048"), NULL, 1, 40, 0, true},
    {"single-65536", CODE("16384"), NULL, 1, 40, 0, true},
    {"single-2^20", CODE("262144"), NULL, 1, 40, 0, true},
    {"coherent", CODE("256") "periods = 16\ncombine = coherent\n", NULL, 1, 40, 0, true},
    {"incoherent", CODE("256") "periods = 16\ncombine = incoherent\n", NULL, 1, 40, 0, true},
    {"doppler-1024", CODE("256") "periods = 512\ncombine = doppler\n", NULL, 1, 40, 488, true},
    {"doppler-8192", CODE("2048") "periods = 512\ncombine = doppler\n", NULL, 1, 40, 61, true},
    {"10-codes", RADAR("type = gold\ndegree = 10\n"), "index", 10, 40, 0, true},
    {"gps", GPS("ca"), "prn", 32, 10, 14e3, false},
    {"gps-no-cfar", GPS("off"), "prn", 32, 10, 14e3, false},
};

/* The variants of the samples. Real samples have a carrier at a quarter of the sampling rate.
 * Coloured noise fills 5/8 of the band of the samples. */
static const struct variant {
    const char *form, *noise, *text;
    double bandwidth; /* bandwidth of the noise / sampling rate; 0: white noise */
} variants[] = {
    {"complex", "white", "[source]\nformat = ci16\n", 0},
    {"complex", "coloured", "[source]\nformat = ci16\n", 0.625},
    {"real", "white", "[source]\nformat = i16\n", 0},
    {"real", "coloured", "[source]\nformat = i16\n", 0.3125},
};

static const char columns[] =
    "scene: form: noise: echoes N periods codes batch engine: engine_us detect_us publish_us "
    "whole_us Msps link_pct busy_pct judged found_pct false_a_result delay_variance "
    "velocity_variance amp_variance account:";

/* Sums over the judged dwells. n_found and n_false are numbers of echoes. delay, velocity and
 * amplitude are sums of (error / sigma)^2. */
typedef struct tally {
    double n_dwells, n_found, n_false, delay, velocity, amplitude;
} tally;

typedef struct work {
    const struct scene_case *own;
    stream_subject stream;
    pnr_detector *detector;
    pnr_publisher *publisher;
    double engine_ns;             /* time of one result: a median */
    double detect_ns, publish_ns; /* times of all judged results */
    tally tally;
} work;

/* --- the scene --- */

static int configure(const bench *b, const struct variant *form, work *w, pnr_error *error)
{
    pnr_config *config = &w->stream.config;
    const size_t n_echoes = w->stream.echoes.n_echoes, max_echoes = n_echoes > 4 ? 2 * n_echoes : 8;
    char text[160];
    int rc = pnr_config_parse(config, w->own->text, strlen(w->own->text), w->own->name, error);

    if (rc == PNR_OK)
        rc = pnr_config_parse(config, form->text, strlen(form->text), form->form, error);
    for (size_t i = 1; i <= w->own->n_codes && w->own->n_codes > 1 && rc == PNR_OK; i++) {
        snprintf(text, sizeof text, "code.%zu.%s=%zu", i, w->own->key, i);
        rc = pnr_config_set(config, text, error);
    }
    if (rc != PNR_OK)
        return rc;
    config->engine = b->config->engine;
    config->ring = b->config->ring;
    config->realtime = b->config->realtime;
    config->publisher = b->config->publisher;
    config->detector.threads = b->config->detector.threads;
    bench_set_endpoint(config);
    config->detector.max_echoes = max_echoes;
    config->echo.noise_bandwidth_hz = form->bandwidth * pnr_rational_double(config->source.rate_hz);
    return pnr_format_get(config->source.format)->is_complex
               ? PNR_OK
               : pnr_rational_div(config->source.rate_hz, (pnr_rational){4, 1},
                                  &config->source.tune_hz);
}

/* --- the measurement --- */

/* Matches an echo with the nearest planted echo of the same code. A match is within one chip and
 * one Doppler row. Each planted echo has at most one match. Adds the errors to the tally. Counts an
 * echo without a match as false. */
static void judge_echo(work *w, const pnr_echo *echo, planted_echo *truths)
{
    const pnr_setup *setup = w->stream.engine.setup;
    const double n = (double)setup->radar.n_samples;
    const double row_mps = setup->radar.metres_per_second / w->stream.config.radar.carrier_hz /
                           (setup->radar.period_s * (double)setup->plan.n_periods);
    double best = n / (double)setup->radar.n_chips;
    planted_echo *match = NULL;

    for (planted_echo *p = truths; p < truths + w->stream.echoes.n_echoes; p++) {
        const double apart = fabs(remainder(echo->delay_samples - p->delay_samples, n));

        if (p->found || p->code != echo->code || !(apart < best) ||
            fabs(echo->velocity_mps - p->velocity_mps) > row_mps)
            continue;
        best = apart;
        match = p;
    }
    if (match == NULL) {
        w->tally.n_false++;
        return;
    }
    match->found = true;
    w->tally.n_found++;
    w->tally.delay +=
        pow(best / (echo->delay_sigma_s * pnr_rational_double(setup->radar.rate_hz)), 2);
    w->tally.velocity +=
        pow((echo->velocity_mps - match->velocity_mps) / echo->velocity_sigma_mps, 2);
    w->tally.amplitude += pow((echo->amplitude - match->amplitude) / echo->amplitude_sigma, 2);
}

/* Measures the times of detection and publishing for the results of a submit. Compares the detected
 * echoes with the planted echoes. */
static void detect_all(work *w, const pnr_result *result)
{
    const pnr_plan *plan = &w->stream.engine.setup->plan;
    pnr_report report = {.rate_hz = pnr_rational_double(w->stream.engine.setup->radar.rate_hz)};

    for (size_t d = 0; d < result->n_dwells; d++) {
        const pnr_observed observed = pnr_trial_observed(plan, result, d);
        const uint64_t start_ns = pnr_clock_ns();

        pnr_detector_detect(w->detector, &observed, &report.detection);

        const uint64_t found_ns = pnr_clock_ns();

        (void)pnr_publisher_send_range(w->publisher, &report);
        w->publish_ns += (double)(pnr_clock_ns() - found_ns);
        w->detect_ns += (double)(found_ns - start_ns);
        w->tally.n_dwells++;
        for (size_t i = 0; i < report.detection.n_echoes; i++)
            judge_echo(w, &report.detection.echoes[i],
                       w->stream.echoes.truths + d * w->stream.echoes.n_echoes);
    }
}

/* Returns the number of planted echoes in the judged dwells. */
static double count_planted(const work *w)
{
    return w->tally.n_dwells * (double)w->stream.echoes.n_echoes;
}

/* Detects the echoes in the results of the last submit. Detects those of other dwells, too, until
 * LEAST_JUDGED echoes are judged, in at most as many submits as there are runs. */
static int judge(const bench *b, work *w, pnr_trial *trial, pnr_result *result, pnr_error *error)
{
    int rc = PNR_OK;

    detect_all(w, result);
    for (size_t i = 1; i < b->runs && count_planted(w) < LEAST_JUDGED && rc == PNR_OK && !pnr_stop;
         i++) {
        rc = planted_next(&w->stream.echoes, &w->stream.config, w->stream.engine.setup, error);
        if (rc == PNR_OK)
            rc = pnr_trial_run(trial, w->stream.echoes.samples, result->n_dwells, result, error);
        if (rc == PNR_OK)
            detect_all(w, result);
    }
    return rc;
}

/* Measures the time of the engine for one submit after another. Then judges the echoes. */
static int time_parts(const bench *b, work *w, pnr_error *error)
{
    const pnr_plan *plan = &w->stream.engine.setup->plan;
    double *ns = calloc(b->runs + 1, sizeof *ns);
    pnr_trial trial = {0};
    pnr_result result;
    int rc = ns != NULL ? pnr_trial_open(w->stream.engine.ops, plan, &trial, error)
                        : pnr_error_set(error, PNR_ENOMEMORY, "no memory for times");

    for (size_t i = 0; i <= b->runs && rc == PNR_OK && !pnr_stop; i++) {
        const uint64_t start_ns = pnr_clock_ns();

        rc = pnr_trial_run(&trial, w->stream.echoes.samples, plan->batch, &result, error);
        ns[i] = (double)(pnr_clock_ns() - start_ns) / (double)plan->batch;
    }
    if (rc == PNR_OK && !pnr_stop) {
        w->engine_ns = pnr_median(ns + 1, b->runs);
        rc = judge(b, w, &trial, &result, error);
    }
    pnr_trial_close(&trial);
    free(ns);
    return rc;
}

static int prepare(work *w, pnr_error *error)
{
    pnr_config *config = &w->stream.config;
    int rc = bench_prepare(config, 0, 0, &w->stream.engine, error);

    if (rc != PNR_OK)
        return rc;

    const pnr_plan *plan = &w->stream.engine.setup->plan;

    if (config->publisher.pack == 1 && pnr_plan_dwell_samples(plan) < LONG_DWELL)
        config->publisher.pack = PACK;
    stream_measure_link(&w->stream);
    rc = planted_fill(&w->stream.echoes, config, w->stream.engine.setup, w->stream.engine.ops,
                      plan->batch, error);
    if (rc == PNR_OK)
        rc = pnr_detector_create(config, w->stream.engine.setup, &w->detector, error);
    return rc == PNR_OK ? pnr_publisher_create(config, NULL, &w->publisher, error) : rc;
}

static int add_row(const bench *b, work *w, const struct variant *form, const stream_result *run,
                   bench_table *table, pnr_error *error)
{
    const pnr_plan *plan = &w->stream.engine.setup->plan;
    const double n = w->tally.n_found > 0 ? w->tally.n_found : (double)NAN;
    const double n_dwells = w->tally.n_dwells;
    const double rate = (double)run->outcome.account.used / run->seconds;
    const double link = w->stream.link_bytes_per_s > 0 ? w->stream.link_bytes_per_s : (double)NAN;

    bench_table_add(table, "%s %s %s %zu %zu %zu %zu %zu %s", w->own->name, form->form, form->noise,
                    w->stream.echoes.n_echoes, plan->n_samples, pnr_plan_windows(plan),
                    plan->n_codes, plan->batch, w->stream.engine.engine);
    bench_table_add(table, "%g %g %g %g %g %g %g", w->engine_ns * 1e-3,
                    w->detect_ns / n_dwells * 1e-3, w->publish_ns / n_dwells * 1e-3,
                    (double)pnr_plan_dwell_samples(plan) / rate * 1e6, rate * 1e-6,
                    100 * rate * w->stream.sample_bytes / link, 100 * run->busy);
    bench_table_add(table, "%g %g %g %g %g %g %s", count_planted(w),
                    100 * w->tally.n_found / count_planted(w), w->tally.n_false / n_dwells,
                    w->tally.delay / n,
                    w->own->max_doppler_hz > 0 ? w->tally.velocity / n : (double)NAN,
                    w->tally.amplitude / n, bench_is_complete(&run->outcome) ? "closes" : "OPEN");
    bench_warn_open(&run->outcome, plan->n_samples);
    *b->lost |= !bench_is_lossless(&run->outcome);
    return bench_is_complete(&run->outcome)
               ? PNR_OK
               : pnr_error_set(error, PNR_EINTERNAL, "scene: the account does not close");
}

static int measure_scene(const bench *b, const struct scene_case *own, const struct variant *form,
                         size_t n_echoes, bench_table *table, pnr_error *error)
{
    work w = {.own = own,
              .stream.echoes = {.n_echoes = n_echoes,
                                .span_db = own->span_db,
                                .max_doppler_hz = own->max_doppler_hz,
                                .leaks = own->leaks}};
    stream_result run;
    int rc;

    pnr_config_init(&w.stream.config);
    if ((rc = configure(b, form, &w, error)) == PNR_OK && (rc = prepare(&w, error)) == PNR_OK)
        rc = time_parts(b, &w, error);
    pnr_publisher_destroy(w.publisher); /* frees the address for the pipeline */
    pnr_detector_destroy(w.detector);
    if (rc == PNR_OK && !pnr_stop &&
        (rc = stream_run(&w.stream, b->seconds, 0, NULL, NULL, &run, error)) == PNR_OK)
        rc = add_row(b, &w, form, &run, table, error);
    stream_release(&w.stream);
    pnr_config_clear(&w.stream.config);
    return rc;
}

/* True if the name of this case and variant contains the text of --only, or if --only is not
 * given. */
static bool is_chosen(const bench *b, size_t i, size_t v)
{
    char name[64];

    snprintf(name, sizeof name, "%s %s %s", cases[i].name, variants[v].form, variants[v].noise);
    return b->only == NULL || strstr(name, b->only) != NULL;
}

static int measure_size(const bench *b, void *context, size_t n_echoes, bench_table *table,
                        pnr_error *error)
{
    int rc = PNR_OK;

    (void)context;
    if (n_echoes > PLANTED_MAX)
        return pnr_error_set(error, PNR_EUSAGE, "scene: -n %zu: 1 to %d echoes", n_echoes,
                             PLANTED_MAX);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
            if (rc == PNR_OK && !pnr_stop && is_chosen(b, i, v))
                rc = measure_scene(b, &cases[i], &variants[v], n_echoes, table, error);
    return rc;
}

int bench_scene(const bench *b, pnr_error *error)
{
    static const bench_sweep sweep = {.columns = columns, .measure = measure_size};
    size_t n = 0;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
            n += is_chosen(b, i, v);
    if (n == 0)
        return pnr_error_set(error, PNR_EUSAGE,
                             "--only %s: no scene has this in its name, as %s %s %s", b->only,
                             cases[0].name, variants[0].form, variants[0].noise);
    return bench_sweep_run(b, &sweep, NULL, error,
                           "scene: ring to subscriber, %g s a scene; engine, detect and publish "
                           "alone, %zu runs",
                           b->seconds, b->runs);
}
