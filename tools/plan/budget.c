/* SPDX-License-Identifier: MIT */
/* The budget of pnradar-plan: finds the longest code that this machine correlates within a given
 * time. Measures the time of a correlation of each length. */
#include "tools/plan/sheet.h"

#include "base/log.h"
#include "engine/plan.h"
#include "tools/common/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_LOG2 = 10, MAX_LOG2 = 24, RUNS = 20 };

/* The longest codes that the memoir (cited in README.md) correlates in 62 ms. */
static const struct {
    const char *key, *label;
    int log2_n;
} memoir[] = {
    {"memoir_matlab_log2", "memoir, MATLAB, in 62 ms", 18},
    {"memoir_gpu_log2", "memoir, its estimate for a GPU, in 62 ms", 19},
};

/* A kind of code. Its length doubles from one step to the next. */
typedef struct series {
    const char *key, *label;
    size_t less;    /* the length is N = 2^k - less */
    bool over;      /* a code was too long, so longer codes are not tried */
    size_t longest; /* greatest N that fits in the time; 0: no length fits */
} series;

/* Measures the time of one correlation of n samples: a submit of one dwell of one period. */
static int time_length(const pnr_config *config, const pnr_engine_ops *ops, size_t n,
                       pnr_timing *timing, pnr_engine_choice *choice, pnr_error *error)
{
    pnr_config sized;
    pnr_setup *setup = NULL;
    int rc;

    pnr_measure_configure(config, n, &sized);
    sized.dwell.periods = 1;
    sized.dwell.looks = 1;
    sized.dwell.combine = PNR_COMBINE_NONE;
    sized.dwell.taper = PNR_TAPER_RECTANGULAR;
    sized.dwell.clutter = PNR_CLUTTER_KEEP;
    sized.doppler.min_hz = sized.doppler.max_hz = 0;
    sized.window.correlation = PNR_CORRELATION_CIRCULAR;
    sized.window.filter = PNR_FILTER_MATCHED;
    sized.detector.cfar = PNR_CFAR_OFF;
    sized.detector.exclusion_cells = sized.detector.exclusion_rows = 1;
    sized.detector.subtract = 0;
    sized.engine.batch = 1;
    rc = pnr_setup_create(&sized, sized.source.format, 1, &setup, error);
    if (rc == PNR_OK)
        rc = ops->describe(&setup->plan, choice, error);
    if (rc == PNR_OK)
        rc = pnr_measure_time(ops, setup, PNR_MEASURE_PINNED, RUNS, timing, error);
    pnr_setup_destroy(setup);
    return rc;
}

static int measure_length(plan_sheet *sheet, const pnr_config *config, const pnr_engine_ops *ops,
                          double budget_s, int log2_n, series *s, pnr_error *error)
{
    const size_t n = ((size_t)1 << log2_n) - s->less;
    pnr_timing timing;
    pnr_engine_choice choice;
    char median[48], p99[48];
    bool fits;
    int rc;

    pnr_log(PNR_LOG_DEBUG, "measuring %s, N = %zu", s->label, n);
    rc = time_length(config, ops, n, &timing, &choice, error);
    if (rc == PNR_EUNSUPPORTED || rc == PNR_ENOMEMORY) {
        s->over = true;
        pnr_log(PNR_LOG_WARN, "%s, N = %zu: %s", s->label, n, error->text);
        return PNR_OK;
    }
    if (rc != PNR_OK)
        return rc;
    fits = timing.p99_ns * 1e-9 <= budget_s;
    s->over = !fits;
    if (fits)
        s->longest = n;
    plan_sheet_row(sheet, "measured",
                   json_pack("{s:s, s:I, s:s, s:I, s:f, s:f, s:b}", "code", s->key, "n_samples",
                             (json_int_t)n, "method", choice.method, "n_transform",
                             (json_int_t)choice.n_transform, "median_s", timing.median_ns * 1e-9,
                             "p99_s", timing.p99_ns * 1e-9, "fits", fits));
    plan_sheet_line(sheet, "  %-16s %9zu  %-10s %12s %12s  %s\n", s->label, n, choice.method,
                    plan_format_si(timing.median_ns * 1e-9, "s", median),
                    plan_format_si(timing.p99_ns * 1e-9, "s", p99), fits ? "fits" : "too long");
    return PNR_OK;
}

static void print_longest(plan_sheet *sheet, const series *s)
{
    char key[64], text[96] = "none";

    snprintf(key, sizeof key, "longest_%s", s->key);
    json_object_set_new(sheet->section, key,
                        s->longest > 0 ? json_integer((json_int_t)s->longest) : json_null());
    if (s->longest > 0)
        snprintf(text, sizeof text, "2^%.0f%s = %zu samples", log2((double)(s->longest + s->less)),
                 s->less > 0 ? " - 1" : "", s->longest);
    plan_sheet_line(sheet, "  longest %-28s %s\n", s->label, text);
}

/* Measures the time of the configured dwell. With a short code, noise may hide the echo. This is no
 * error here. */
static void time_configured(plan_sheet *sheet, pnr_setup *setup, const pnr_engine_ops *ops)
{
    const double dwell_s = setup->radar.period_s * (double)pnr_plan_windows(&setup->plan);
    const size_t batch = setup->plan.batch;
    pnr_error reason = {0};
    pnr_timing timing;
    int rc;

    setup->plan.batch = 1;
    rc = pnr_measure_time(ops, setup, PNR_MEASURE_PINNED, RUNS, &timing, &reason);
    setup->plan.batch = batch;
    if (rc != PNR_OK) {
        plan_sheet_text(sheet, "configured_reason", "the configured dwell is not measured",
                        reason.text);
        return;
    }
    plan_sheet_number(sheet, "configured_median_s", "the configured dwell takes",
                      timing.median_ns * 1e-9, "s");
    plan_sheet_number(sheet, "configured_p99_s", "its 99th percentile", timing.p99_ns * 1e-9, "s");
    plan_sheet_number(sheet, "configured_load", "of its own time, one at a time",
                      100.0 * timing.median_ns * 1e-9 / dwell_s, "%");
}

int plan_budget(plan_sheet *sheet, const pnr_config *config, pnr_setup *setup,
                const pnr_engine_ops *ops, double budget_s, pnr_error *error)
{
    series all[] = {
        {.key = "m_sequence", .label = "m-sequence", .less = 1},
        {.key = "power_of_two", .label = "power of two"},
    };
    const size_t n_series = sizeof all / sizeof all[0];
    char machine[192];

    plan_sheet_section(sheet, "budget", "budget");
    plan_sheet_text(sheet, "machine", "machine", pnr_measure_machine(machine, sizeof machine));
    plan_sheet_number(sheet, "budget_s", "time a period", budget_s, "s");
    plan_sheet_count(sheet, "runs", "runs counted, one discarded", RUNS);
    time_configured(sheet, setup, ops);
    plan_sheet_line(sheet, "  %-16s %9s  %-10s %12s %12s  (99%% must fit)\n", "code", "N", "method",
                    "median", "99%");
    for (int log2_n = MIN_LOG2; log2_n <= MAX_LOG2; log2_n++) {
        for (size_t i = 0; i < n_series; i++) {
            const int rc =
                all[i].over ? PNR_OK
                            : measure_length(sheet, config, ops, budget_s, log2_n, &all[i], error);

            if (rc != PNR_OK)
                return rc;
        }
    }
    for (size_t i = 0; i < n_series; i++)
        print_longest(sheet, &all[i]);
    for (size_t i = 0; i < sizeof memoir / sizeof memoir[0]; i++) {
        json_object_set_new(sheet->section, memoir[i].key, json_integer(memoir[i].log2_n));
        plan_sheet_line(sheet, "  %-36s 2^%d = %d samples\n", memoir[i].label, memoir[i].log2_n,
                        1 << memoir[i].log2_n);
    }
    return PNR_OK;
}
