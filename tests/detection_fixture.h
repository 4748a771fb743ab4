/* SPDX-License-Identifier: MIT */
/* What the statistics of detection and estimation share: noise, and everything between samples and
 * echoes. */
#ifndef DETECTION_FIXTURE_H
#define DETECTION_FIXTURE_H

#include "correlator.h"
#include "detector.h"
#include "plan.h"
#include "setup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Sanitizers make this ten times slower: there a twentieth of the trials goes through the
 * machinery, and of so few nothing is judged. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SHARE = 20 };
#else
enum { SHARE = 1 };
#endif

/* What is true of many trials. */
#define assert_on_average(holds) assert_true((holds) || SHARE > 1)

static uint64_t state;

static inline uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static inline double uniform(void)
{
    return ((double)(next() >> 11) + 0.5) * 0x1p-53;
}

/* Complex white noise of power `power`. */
static inline void add_noise(float (*x)[2], size_t n, double power)
{
    for (size_t i = 0; i < n; i++) {
        const float r = sqrtf(-(float)power * logf((float)uniform()));
        const float angle = (float)(2 * M_PI) * (float)uniform();

        x[i][0] += r * cosf(angle);
        x[i][1] += r * sinf(angle);
    }
}

/* Everything between samples and echoes. */
typedef struct chain {
    pnr_config config;
    pnr_setup *setup;
    const pnr_engine_ops *ops;
    pnr_correlator *correlator;
    pnr_detector *detector;
    float (*x)[2];    /* [batch][windows][n_samples], of a linear correlation and what is behind */
    size_t n_windows; /* a dwell */
    uint32_t *lost;
    uint64_t *ready;
    pnr_windows windows;
    pnr_result result;
} chain;

/* The cpu engine, or the reference where it does not take the plan (yet). false: there is no cpu
 * engine here. */
static inline bool choose_engine(chain *c)
{
    pnr_error error = {0};
    pnr_engine_choice choice;

    if (pnr_engine_find("cpu", 0, &c->ops, &error) != PNR_OK) {
        print_message("skipped: %s\n", error.text);
        return false;
    }
    if (c->ops->describe(&c->setup->plan, &choice, NULL) == PNR_EUNSUPPORTED)
        assert_int_equal(pnr_engine_find("reference", 0, &c->ops, &error), PNR_OK);
    return true;
}

/* settings: NULL-terminated. false: no cpu engine here. */
static inline bool open_chain(chain *c, const char *const *settings)
{
    pnr_error error = {0};

    memset(c, 0, sizeof *c);
    pnr_config_init(&c->config);
    assert_int_equal(pnr_config_set(&c->config, "source.rate_hz=1e6", &error), PNR_OK);
    for (; *settings != NULL; settings++)
        if (pnr_config_set(&c->config, *settings, &error) != PNR_OK)
            fail_msg("%s", error.text);
    if (pnr_setup_create(&c->config, PNR_FORMAT_CF32, 1, &c->setup, &error) != PNR_OK)
        fail_msg("%s", error.text);
    if (!choose_engine(c)) {
        pnr_setup_destroy(c->setup);
        pnr_config_clear(&c->config);
        return false;
    }
    if (pnr_correlator_create(c->ops, &c->setup->plan, &c->correlator, &error) != PNR_OK ||
        pnr_detector_create(&c->config, c->setup, &c->detector, &error) != PNR_OK)
        fail_msg("%s", error.text);

    const pnr_plan *plan = &c->setup->plan;
    const size_t windows = plan->batch * pnr_plan_windows(plan);
    const size_t n_x = (windows - 1) * plan->n_samples + pnr_plan_window_samples(plan);

    c->n_windows = pnr_plan_windows(plan);
    c->x = c->ops->alloc(n_x * sizeof *c->x);
    c->lost = calloc(windows, sizeof *c->lost);
    c->ready = calloc(plan->batch, sizeof *c->ready);
    assert_true(c->x && c->lost && c->ready);
    c->windows = (pnr_windows){.spans = {{c->x, n_x}, {c->x, 0}},
                               .n_dwells = plan->batch,
                               .n_periods = c->n_windows,
                               .lost = c->lost,
                               .ready_ns = c->ready};
    return true;
}

static inline void close_chain(chain *c)
{
    pnr_correlator_destroy(c->correlator);
    pnr_detector_destroy(c->detector);
    pnr_setup_destroy(c->setup);
    pnr_config_clear(&c->config);
    c->ops->free(c->x);
    free(c->lost);
    free(c->ready);
}

static inline size_t dwell_samples(const chain *c)
{
    return c->setup->plan.n_samples * c->n_windows;
}

static inline void clear(chain *c)
{
    memset(c->x, 0, c->windows.spans[0].n_samples * sizeof *c->x);
}

/* a(n - delay), [n_samples]; the caller frees it. */
static inline double (*delayed(const chain *c, double delay))[2]
{
    double(*a)[2] = malloc(c->setup->plan.n_samples * sizeof *a);

    assert_non_null(a);
    assert_int_equal(pnr_waveform_shift(c->setup->codes[0].waveform, delay, a), PNR_OK);
    return a;
}

/* amplitude exp(i phase) a[n] onto every period of dwell d, and what is behind the last one. */
static inline void add_echo(chain *c, size_t d, const double (*a)[2], double amplitude,
                            double phase)
{
    const size_t n = c->setup->plan.n_samples, first = d * dwell_samples(c);
    const size_t end =
        d + 1 < c->setup->plan.batch ? first + dwell_samples(c) : c->windows.spans[0].n_samples;
    const double re = amplitude * cos(phase), im = amplitude * sin(phase);

    for (size_t i = first; i < end; i++) {
        c->x[i][0] += (float)(re * a[i % n][0] - im * a[i % n][1]);
        c->x[i][1] += (float)(re * a[i % n][1] + im * a[i % n][0]);
    }
}

static inline void correlate(chain *c)
{
    pnr_windows windows;

    assert_int_equal(pnr_correlator_submit(c->correlator, &c->windows), PNR_OK);
    assert_int_equal(pnr_correlator_collect(c->correlator, true, &windows, &c->result), PNR_OK);
}

static inline void detect(const chain *c, size_t d, pnr_detection *out)
{
    const pnr_plan *plan = &c->setup->plan;
    const size_t candidates = d * plan->max_candidates, windows = d * pnr_plan_windows(plan);
    const pnr_observed observed = {
        .dwell = &c->result.dwells[d],
        .candidates = c->result.candidates + candidates,
        .patches = c->result.patches != NULL
                       ? c->result.patches + candidates * 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS
                       : NULL,
        .lost = c->lost + windows,
        .nonfinite = c->result.nonfinite + windows,
    };

    pnr_detector_detect(c->detector, &observed, out);
}

/* A fresh seed, or that of PNR_SEED, told. */
static inline void seed(void)
{
    const char *text = getenv("PNR_SEED");

    state = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) | 1;
    fprintf(stderr, "PNR_SEED=%llu\n", (unsigned long long)state);
}

#endif
