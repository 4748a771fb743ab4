/* SPDX-License-Identifier: MIT */
/* Measures the time of an engine, on samples with a known echo. */
#include "tools/common/measure.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/random.h"
#include "base/rational.h"
#include "base/stats.h"
#include "engine/plan.h"
#include "scene/noise.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double echo_amplitude = 0.2; /* full scale = 1 */
static const double noise_rms = 0.2;
enum {
    TILE_SAMPLES = 1 << 20, /* about this number of samples is computed; later samples repeat
                             * them */
    NOISE_BLOCK = 64,
    ALIGNMENT = 64 /* in bytes, as in the memory of the engines */
};

struct pnr_measure {
    const pnr_engine_ops *ops;
    const pnr_setup *setup;
    pnr_measure_mode mode;
    pnr_trial trial; /* closed between the runs of PNR_MEASURE_ANEW */
    void *memory;    /* allocated by ops->alloc for PNR_MEASURE_PINNED, else by the C library */
    size_t bytes;
};

int pnr_trial_open(const pnr_engine_ops *ops, const pnr_plan *plan, pnr_trial *out,
                   pnr_error *error)
{
    *out = (pnr_trial){.ops = ops, .plan = plan};
    out->zeros = calloc(plan->batch * pnr_plan_windows(plan), sizeof(uint64_t));
    return out->zeros != NULL
               ? ops->create(plan, &out->engine, error)
               : pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu dwells", plan->batch);
}

void pnr_trial_close(pnr_trial *trial)
{
    if (trial->engine != NULL)
        trial->ops->destroy(trial->engine);
    free(trial->zeros);
    *trial = (pnr_trial){0};
}

int pnr_trial_run(pnr_trial *trial, const void *samples, size_t n_dwells, pnr_result *result,
                  pnr_error *error)
{
    const pnr_plan *plan = trial->plan;
    const pnr_windows windows = {
        .spans = {{samples, pnr_plan_view_samples(plan, plan->batch)}},
        .n_dwells = n_dwells,
        .n_periods = pnr_plan_windows(plan),
        .lost = trial->zeros,
        .ready_ns = trial->zeros,
    };
    const pnr_job job = {.windows = &windows, .tag = ++trial->tag};
    int rc = trial->ops->submit(trial->engine, &job);

    if (rc == PNR_OK)
        rc = trial->ops->collect(trial->engine, true, result);
    return rc == PNR_OK
               ? rc
               : pnr_error_set(error, rc, "engine %s: %s (N = %zu, %zu dwells)", trial->ops->name,
                               pnr_error_text(rc), plan->n_samples, n_dwells);
}

pnr_observed pnr_trial_observed(const pnr_plan *plan, const pnr_result *result, size_t d)
{
    const size_t at = d * plan->max_candidates;

    return (pnr_observed){.dwell = &result->dwells[d],
                          .candidates = result->candidates + at,
                          .patches =
                              result->patches != NULL
                                  ? result->patches + at * 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS
                                  : NULL};
}

/* Returns the number of samples in a chip, rate / chip rate, if this is a whole number; else 1. */
static size_t chip_samples_of(const pnr_config *config)
{
    pnr_rational q;

    return config->code.chip_rate_hz.num > 0 && config->source.rate_hz.num > 0 &&
                   pnr_rational_div(config->source.rate_hz, config->code.chip_rate_hz, &q) ==
                       PNR_OK &&
                   q.num > 0 && q.den == 1
               ? (size_t)q.num
               : 1;
}

void pnr_measure_configure(const pnr_config *base, size_t n_samples, pnr_config *out)
{
    const size_t q = chip_samples_of(base);

    *out = *base;
    out->codes = NULL;
    out->n_codes = 0;
    out->code.type = PNR_CODE_RANDOM;
    out->code.length = n_samples;
    out->code.chip_rate_hz = (pnr_rational){0, 0};
    for (size_t k = 2; k <= 24; k++) {
        const size_t n_chips = ((size_t)1 << k) - 1;

        if (n_samples == n_chips || n_samples == q * n_chips) {
            out->code.type = PNR_CODE_M_SEQUENCE;
            out->code.degree = k;
            if (n_samples != n_chips)
                out->code.chip_rate_hz = base->code.chip_rate_hz;
        }
    }
    out->code.taps[0] = '\0';
    out->code.pulse = PNR_PULSE_BAND_LIMITED;
    out->code.epoch = (pnr_epoch){.is_utc = false};
    if (out->source.format == PNR_FORMAT_NONE)
        out->source.format = PNR_FORMAT_CI16;
    if (out->source.rate_hz.num == 0)
        out->source.rate_hz = (pnr_rational){1000000, 1};
    out->source.tune_hz = (pnr_rational){0, 1};
    out->source.spectrum = PNR_SPECTRUM_NORMAL;
    out->source.channels = 1;
    out->source.channel = 0;
    out->source.layout = PNR_LAYOUT_IQ;
    out->radar.zero_delay_s = 0;
    out->radar.min_range_m = 0;
    out->radar.max_range_m = 0;
}

size_t pnr_measure_lag(const pnr_setup *setup)
{
    const pnr_plan *plan = &setup->plan;

    return (plan->gate_first + plan->gate_count / 3) % plan->n_samples;
}

/* The engine conjugates the samples if plan->conjugate is set, then mixes them down by plan->tune.
 * This function applies the inverse steps to a sample, in reverse order. */
static void distort_sample(const pnr_plan *plan, uint64_t n, double iq[2])
{
    if (plan->tune.num != 0) {
        const double turns = (double)pnr_rational_phase(plan->tune, n) * 0x1p-64;
        const double c = cos(2.0 * M_PI * turns), s = sin(2.0 * M_PI * turns);
        const double i = iq[0];

        iq[0] = i * c - iq[1] * s;
        iq[1] = i * s + iq[1] * c;
    }
    if (plan->conjugate)
        iq[1] = -iq[1];
}

void pnr_measure_fill(const pnr_setup *setup, void *memory, size_t n_samples)
{
    const pnr_plan *plan = &setup->plan;
    const size_t n = plan->n_samples, lag = pnr_measure_lag(setup);
    const size_t sample_bytes = pnr_format_get(plan->format)->bytes;
    const size_t stride = sample_bytes * plan->n_channels;
    /* If plan.tune is 0, computes one tile, which has whole periods, and copies it to all later
     * samples. Else computes all samples. */
    const size_t tile = n * ((TILE_SAMPLES + n - 1) / n);
    const size_t computed = plan->tune.num != 0 || n_samples < tile ? n_samples : tile;
    unsigned char *to = memory;
    double noise[NOISE_BLOCK][2];

    for (size_t channel = 0; channel < plan->n_channels; channel++) {
        for (size_t i = 0; i < computed; i++) {
            const double *a = plan->references[(i % n + n - lag) % n];
            double iq[2];

            if (i % NOISE_BLOCK == 0)
                pnr_noise_gaussian(n, (uint32_t)channel, i, NOISE_BLOCK, noise);
            iq[0] = echo_amplitude * a[0] + noise_rms * noise[i % NOISE_BLOCK][0];
            iq[1] = echo_amplitude * a[1] + noise_rms * noise[i % NOISE_BLOCK][1];
            distort_sample(plan, i, iq);
            pnr_format_write(plan->format, iq, to + i * stride + channel * sample_bytes);
        }
    }
    for (size_t done = computed; done < n_samples;) {
        const size_t more = n_samples - done < computed ? n_samples - done : computed;

        memcpy(to + done * stride, to, more * stride);
        done += more;
    }
}

void pnr_measure_scatter(const pnr_plan *plan, uint64_t seed, const uint32_t *lags, void *memory)
{
    const size_t n = plan->n_samples, n_windows = plan->batch * pnr_plan_windows(plan);
    const size_t sample_bytes = pnr_format_get(plan->format)->bytes;
    const bool is_complex = pnr_format_get(plan->format)->is_complex;
    unsigned char *to = memory;
    double noise[NOISE_BLOCK][2];
    uint64_t state = seed;
    double phase = 0;

    for (size_t w = 0; w < n_windows; w++) {
        const size_t lag = lags[w / pnr_plan_windows(plan)];
        const size_t code = lag % plan->n_codes * plan->oversample * n;
        const double bins = pnr_plan_bins(plan, lag % pnr_plan_rows(plan));
        const double turns = pnr_random_uniform(&state);

        /* A real format has only I. The phase is 0 or pi, so I is the echo or its negative. */
        if (w % plan->n_periods == 0)
            phase = 2.0 * M_PI * (is_complex ? turns : floor(2.0 * turns) / 2.0);
        for (size_t i = 0; i < n; i++) {
            const double *a = plan->references[code + (i >= lag ? i - lag : i + n - lag)];
            const double moved =
                bins * (double)(w % plan->n_periods * n + i) / (double)n; /* Doppler phase, in
                                                                           * turns */
            const double angle = phase + 2.0 * M_PI * (moved - floor(moved));
            const double re = echo_amplitude * cos(angle), im = echo_amplitude * sin(angle);

            if (i % NOISE_BLOCK == 0)
                pnr_noise_gaussian(seed, 0, w * n + i, NOISE_BLOCK, noise);

            const double *z = noise[i % NOISE_BLOCK];
            const double iq[2] = {a[0] * re - a[1] * im + noise_rms * z[0],
                                  a[0] * im + a[1] * re + noise_rms * z[1]};

            for (size_t channel = 0; channel < plan->n_channels; channel++, to += sample_bytes)
                pnr_format_write(plan->format, iq, to);
        }
    }
}

static void *allocate_samples(const pnr_measure *m)
{
    const size_t whole = (m->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    return m->mode == PNR_MEASURE_PINNED ? m->ops->alloc(m->bytes)
                                         : aligned_alloc(ALIGNMENT, whole);
}

int pnr_measure_create(const pnr_engine_ops *ops, const pnr_setup *setup, pnr_measure_mode mode,
                       pnr_measure **out, pnr_error *error)
{
    const pnr_plan *plan = &setup->plan;
    pnr_measure *m = calloc(1, sizeof *m);
    int rc = PNR_ENOMEMORY;

    *out = NULL;
    if (m == NULL)
        return pnr_error_set(error, rc, "no memory for a measurement");
    m->ops = ops;
    m->setup = setup;
    m->mode = mode;
    m->bytes = pnr_plan_view_samples(plan, plan->batch) * pnr_plan_sample_bytes(plan);
    m->memory = allocate_samples(m);
    if (m->memory == NULL) {
        pnr_error_set(error, rc, "engine %s: no memory for %zu bytes of samples", ops->name,
                      m->bytes);
        goto fail;
    }
    pnr_measure_fill(setup, m->memory, pnr_plan_view_samples(plan, plan->batch));
    rc = mode == PNR_MEASURE_ANEW ? PNR_OK : pnr_trial_open(ops, plan, &m->trial, error);
    if (rc != PNR_OK)
        goto fail;
    *out = m;
    return PNR_OK;
fail:
    pnr_measure_destroy(m);
    return rc;
}

void pnr_measure_destroy(pnr_measure *measure)
{
    if (measure == NULL)
        return;
    pnr_trial_close(&measure->trial);
    if (measure->mode != PNR_MEASURE_PINNED)
        free(measure->memory);
    else if (measure->memory != NULL)
        measure->ops->free(measure->memory);
    free(measure);
}

/* Checks in every dwell that the lag of the strongest candidate is within one chip of the lag of
 * the echo. If lags is not NULL, stores the lags of the candidates. */
static int check_lags(const pnr_measure *m, const pnr_result *result, size_t *lags,
                      pnr_error *error)
{
    const pnr_plan *plan = &m->setup->plan;
    const size_t n = plan->n_samples, expected = pnr_measure_lag(m->setup);
    const size_t slack = (n - 1) / m->setup->radar.n_chips;

    if (result->n_dwells != plan->batch)
        return pnr_error_set(error, PNR_EENGINE, "engine %s: %zu of %zu dwells were returned",
                             m->ops->name, result->n_dwells, plan->batch);
    for (size_t d = 0; d < plan->batch; d++) {
        const pnr_candidate *candidates = result->candidates + d * plan->max_candidates;
        const pnr_candidate *best = NULL;
        size_t lag, off;

        for (uint32_t i = 0; i < result->dwells[d].n_candidates; i++)
            if (best == NULL || candidates[i].power > best->power)
                best = &candidates[i];
        if (best == NULL)
            return pnr_error_set(error, PNR_EENGINE,
                                 "engine %s: no echo found in dwell %zu (N = %zu, lag %zu)",
                                 m->ops->name, d, n, expected);
        lag = best->cell / plan->oversample;
        off = (lag + n - expected) % n;
        if (off > slack && n - off > slack)
            return pnr_error_set(error, PNR_EENGINE,
                                 "engine %s: wrong echo in dwell %zu (N = %zu): lag %zu, not %zu",
                                 m->ops->name, d, n, lag, expected);
        if (lags != NULL)
            lags[d] = lag;
    }
    return PNR_OK;
}

int pnr_measure_run(pnr_measure *measure, pnr_measurement *out, size_t *lags, pnr_error *error)
{
    const pnr_plan *plan = &measure->setup->plan;
    const bool is_anew = measure->mode == PNR_MEASURE_ANEW;
    pnr_result result;
    uint64_t start_ns = pnr_clock_ns();
    int rc = is_anew ? pnr_trial_open(measure->ops, plan, &measure->trial, error) : PNR_OK;

    if (rc != PNR_OK || (rc = pnr_trial_run(&measure->trial, measure->memory, plan->batch, &result,
                                            error)) != PNR_OK)
        return rc;
    out->total_ns = pnr_clock_ns() - start_ns;
    memset(out->stage_ns, 0, sizeof out->stage_ns);
    if (plan->measure)
        memcpy(out->stage_ns, result.stage_ns, sizeof out->stage_ns);
    rc = check_lags(measure, &result, lags, error);
    if (is_anew) {
        start_ns = pnr_clock_ns();
        pnr_trial_close(&measure->trial);
        out->total_ns += pnr_clock_ns() - start_ns;
    }
    return rc;
}

const void *pnr_measure_samples(const pnr_measure *measure, size_t *bytes)
{
    *bytes = measure->bytes;
    return measure->memory;
}

int pnr_measure_time(const pnr_engine_ops *ops, const pnr_setup *setup, pnr_measure_mode mode,
                     size_t n, pnr_timing *out, pnr_error *error)
{
    enum { TOTAL = PNR_STAGE_COUNT, EXPLAINED, N_COLUMNS };
    pnr_measure *measure = NULL;
    pnr_measurement run;
    double *columns = NULL; /* [N_COLUMNS][n] */
    int rc;

    if (n < PNR_MEASURE_MIN_RUNS)
        return pnr_error_set(error, PNR_EUSAGE, "%zu runs: at least %d are counted", n,
                             PNR_MEASURE_MIN_RUNS);
    if ((columns = calloc(N_COLUMNS * n, sizeof *columns)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu runs", n);
    rc = pnr_measure_create(ops, setup, mode, &measure, error);
    if (rc == PNR_OK)
        rc = pnr_measure_run(measure, &run, NULL, error); /* the first run is discarded */
    for (size_t i = 0; i < n && rc == PNR_OK; i++) {
        rc = pnr_measure_run(measure, &run, NULL, error);
        for (size_t s = 0; s < PNR_STAGE_COUNT && rc == PNR_OK; s++) {
            columns[s * n + i] = (double)run.stage_ns[s];
            columns[EXPLAINED * n + i] +=
                (double)run.stage_ns[s] / (run.total_ns > 0 ? (double)run.total_ns : 1.0);
        }
        columns[TOTAL * n + i] = rc == PNR_OK ? (double)run.total_ns : 0;
    }
    if (rc == PNR_OK) {
        out->median_ns = pnr_median(columns + TOTAL * n, n);
        out->p99_ns = pnr_quantile(columns + TOTAL * n, n, 0.99);
        out->explained = pnr_median(columns + EXPLAINED * n, n);
        for (size_t s = 0; s < PNR_STAGE_COUNT; s++) {
            out->stage_median_ns[s] = pnr_median(columns + s * n, n);
            out->stage_p99_ns[s] = pnr_quantile(columns + s * n, n, 0.99);
        }
    }
    pnr_measure_destroy(measure);
    free(columns);
    return rc;
}

char *pnr_measure_machine(char *text, size_t size)
{
    char line[256], model[128] = "CPU of unknown model";
    FILE *info = fopen("/proc/cpuinfo", "re");
    cpu_set_t cores;
    int n_cores = 0;

    while (info != NULL && fgets(line, sizeof line, info) != NULL &&
           sscanf(line, "model name : %127[^\n]", model) != 1)
        continue;
    if (info != NULL)
        fclose(info);
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        n_cores = CPU_COUNT(&cores);
    snprintf(text, size, "%s, %d core%s usable", model, n_cores, n_cores == 1 ? "" : "s");
    return text;
}
