/* SPDX-License-Identifier: MIT */
/* Tests the way from a configuration to a map: 31 looks of 16 periods of 1023 chips, and one look
 * whose rows have their own time scale. One sample a chip, linear correlation. A script in numpy
 * checks each cell. */
#include "engine/stretch.h"
#include "setup/setup.h"
#include "tests/fixture/answer.h"

#include <unistd.h>

static const char *const plain[] = {
    "source.rate_hz=1e6",
    "code.type=m-sequence",
    "code.degree=10",
    "code.taps=10,7",
    "window.correlation=linear",
    "dwell.combine=doppler",
    "dwell.periods=16",
    "dwell.looks=31",
    "radar.max_range_m=45000",
    "engine.batch=1",
    "doppler.min_hz=-700",
    "doppler.max_hz=500",
    NULL,
};

/* Neighbouring rows differ by half a sample over the look. */
static const char *const stretched[] = {
    "source.rate_hz=1e6",
    "code.type=m-sequence",
    "code.degree=8",
    "code.taps=8,6,5,4",
    "window.correlation=linear",
    "dwell.combine=doppler",
    "dwell.periods=16",
    "radar.carrier_hz=2e6",
    "radar.max_range_m=20000",
    "engine.batch=1",
    NULL,
};

/* Makes noise and an echo that moves. Between the two nearest samples the code is linear.
 * stretch_per_bin: the relative change of the time scale for a Doppler of one cycle a period. */
static void make_samples(const pnr_plan *plan, double stretch_per_bin, size_t n_view,
                         int16_t (*samples)[2])
{
    const double amplitude = 0.36 / sqrt((double)(plan->n_looks * plan->n_periods * 16));
    const double bins = -0.43;

    for (size_t i = 0; i < n_view; i++) {
        const double at = (1 + bins * stretch_per_bin) * (double)i - 123;
        const double part = at - floor(at);
        const size_t before = (size_t)(floor(at) + 100 * (double)plan->n_samples);
        const double a = (1 - part) * plan->references[before % plan->n_samples][0] +
                         part * plan->references[(before + 1) % plan->n_samples][0];
        const double angle = 2 * M_PI * bins * (double)i / (double)plan->n_samples;
        const double x[2] = {0.1 * gaussian() + amplitude * cos(angle) * a,
                             0.1 * gaussian() + amplitude * sin(angle) * a};

        (void)pnr_format_write(PNR_FORMAT_CI16, x, samples[i]);
    }
}

static void write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[300];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Writes the map of one engine to a file. Returns false if the engine does not support an axis; the
 * engine's reason is printed. */
static bool write_map(const pnr_engine_ops *ops, const pnr_plan *plan, const pnr_windows *windows,
                      const char *folder)
{
    pnr_engine *engine;
    pnr_error error = {0};
    pnr_result result;
    const int code = ops->create(plan, &engine, &error);

    if (code == PNR_EUNSUPPORTED) {
        print_message("skipped: %s\n", error.text);
        return false;
    }
    if (code != PNR_OK)
        fail_msg("%s: %s", ops->name, error.text);
    assert_int_equal(ops->submit(engine, &(pnr_job){windows, 0}), PNR_OK);
    assert_int_equal(ops->collect(engine, true, &result), PNR_OK);
    assert_true(result.dwells[0].n_candidates >= 1);
    write_file(folder, "map", result.profile, pnr_plan_cells(plan) * sizeof *result.profile);
    ops->destroy(engine);
    return true;
}

/* Finds a python that has numpy. Returns NULL if there is none. */
static const char *find_python(void)
{
    static const char *const candidates[] = {"python3", "/usr/bin/python3"};

    for (size_t i = 0; i < 2; i++) {
        char command[100];

        snprintf(command, sizeof command, "%s -c 'import numpy' 2>/dev/null", candidates[i]);
        if (system(command) == 0)
            return candidates[i];
    }
    return NULL;
}

static void check_by_script(const char *python, const pnr_plan *plan, const char *code,
                            const char *folder)
{
    char command[1600];
    size_t length = (size_t)snprintf(
        command, sizeof command, "%s tests/tools/map_numpy.py %s %s %zu %zu %zu %zu ", python,
        folder, code, plan->n_lags, plan->n_periods, plan->n_looks, pnr_stretch_margin(plan));

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);

        length += (size_t)snprintf(command + length, sizeof command - length, "%s%d:%d:%u:%.17g",
                                   h > 0 ? "," : "", hypothesis.quarters, hypothesis.first_bin,
                                   hypothesis.n_rows, hypothesis.stretch);
    }
    /* prints the TAP of the script as comments of this test */
    snprintf(command + length, sizeof command - length, " >%s/out", folder);
    assert_true(length + 60 < sizeof command);

    const int status = system(command);

    snprintf(command, sizeof command, "sed 's/^/# /' %s/out >&2", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(status, 0);
}

/* code: the degree and the taps of the m-sequence. */
static void compare(const char *const *settings, const char *code)
{
    static const char *const names[] = {"reference", "cpu", "cuda"};
    const char *python = find_python();
    char folder[] = "/tmp/pnr-map-XXXXXX";
    pnr_config config;
    pnr_setup *setup;
    pnr_error error = {0};

    if (python == NULL) {
        print_message("skipped: no python3 with numpy\n");
        skip();
    }
    pnr_config_init(&config);
    for (size_t i = 0; settings[i] != NULL; i++)
        if (pnr_config_set(&config, settings[i], &error) != PNR_OK)
            fail_msg("%s", error.text);
    if (pnr_setup_create(&config, PNR_FORMAT_CI16, 1, &setup, &error) != PNR_OK)
        fail_msg("%s", error.text);

    pnr_plan plan = setup->plan;
    const size_t windows = pnr_plan_windows(&plan);
    const size_t n_view = (windows - 1) * plan.n_samples + pnr_plan_window_samples(&plan);
    int16_t(*samples)[2] = calloc(n_view, sizeof *samples);
    uint32_t *lost = calloc(windows, sizeof *lost);
    const uint64_t ready_ns = 0;
    const pnr_windows view = {
        .spans = {{samples, n_view / 3}, {samples + n_view / 3, n_view - n_view / 3}},
        .n_dwells = 1,
        .n_periods = windows,
        .lost = lost,
        .ready_ns = &ready_ns};

    assert_true(samples != NULL && lost != NULL && mkdtemp(folder) != NULL);
    assert_true(plan.linear && plan.n_periods == 16 && plan.n_lags > 100 &&
                pnr_plan_rows(&plan) >= 16);
    plan.want_profile = PNR_WANT_POWER;
    make_samples(
        &plan,
        config.radar.carrier_hz > 0 ? 1e6 / (double)plan.n_samples / config.radar.carrier_hz : 0,
        n_view, samples);
    write_file(folder, "samples", samples, n_view * sizeof *samples);
    for (size_t e = 0; e < 3; e++) {
        const pnr_engine_ops *ops = find_engine(names[e]);

        if (ops != NULL && write_map(ops, &plan, &view, folder))
            check_by_script(python, &plan, code, folder);
    }

    char command[100];

    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    free(samples);
    free(lost);
    pnr_setup_destroy(setup);
    pnr_config_clear(&config);
}

TEST(test_looks)
{
    compare(plain, "10 10,7");
}

TEST(test_rows_with_their_own_time_scale)
{
    compare(stretched, "8 8,6,5,4");
}
