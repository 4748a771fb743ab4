/* SPDX-License-Identifier: MIT */
/* Tests that libpnradar gives the results of the program for the same samples, however these are
 * pushed, and that it explains each failure. */
#include "library/pnradar.h"

#include "tests/fixture/pipeline_fixture.h"

enum { DWELLS = 300 };

/* Returns the configuration of a stage as text. */
static char *text_of(const stage *s)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    assert_non_null(stream);
    pnr_config_print(&s->config, stream);
    fclose(stream);
    return text;
}

static pnradar *create(const stage *s)
{
    char *text = text_of(s), why[512] = "";
    pnradar *radar = pnradar_create(text, why, sizeof why);

    if (radar == NULL)
        fail_msg("%s", why);
    free(text);
    return radar;
}

static void assert_same_result(const pnradar_result *is, const pnr_report *wanted)
{
    assert_int_equal(is->sample, wanted->sample);
    assert_int_equal(is->lost, wanted->lost);
    assert_int_equal(is->lost_before, wanted->lost_before);
    assert_int_equal(is->periods, wanted->periods);
    assert_int_equal(is->flags, wanted->flags);
    assert_int_equal(is->slip, wanted->slip);
    assert_memory_equal(&is->noise_power, &wanted->detection.noise_power, sizeof is->noise_power);
    assert_int_equal(is->n_echoes, wanted->detection.n_echoes);
    for (size_t i = 0; i < is->n_echoes; i++) {
        const pnr_echo *echo = &wanted->detection.echoes[i];

#define SAME_FIELD(x, name)                                                                        \
    assert_memory_equal(&is->echoes[i].name, &echo->name, sizeof echo->name);
#define SAME_NUMBER(x, name) assert_int_equal(is->echoes[i].name, echo->name + 1);
        PNR_ECHO_FIELDS(SAME_NUMBER, SAME_FIELD, SAME_FIELD, SAME_FIELD, )
#undef SAME_NUMBER
#undef SAME_FIELD
        assert_string_equal(is->echoes[i].code_name, echo->code_name.text);
    }
}

/* Gets all results that have arrived, and compares them with those of the program from number *seen
 * on. */
static int take_results(pnradar *radar, double patience_s, const outcome *wanted, size_t *seen)
{
    pnradar_result result;
    int code;

    while ((code = pnradar_get(radar, patience_s, &result)) == 1) {
        assert_true(*seen < wanted->n);
        assert_same_result(&result, &wanted->reports[(*seen)++]);
    }
    return code;
}

/* Pushes the samples of a stage, `piece` samples at a time. Gets the results after each push, or
 * all results at the end. */
static void assert_same_as_program(const char *setting, size_t piece, bool gets_at_once)
{
    const char *const settings[] = {"target.2.range_m=12000",
                                    "target.2.amplitude=0.2",
                                    "target.2.velocity_mps=300",
                                    "detector.oversample=2",
                                    setting,
                                    NULL};
    outcome wanted = {0};
    size_t seen = 0;
    stage s;

    open_stage(&s, DWELLS * N + 5, settings);
    save_stage(&s, 0);
    run_stage(&s, &wanted);
    assert_int_equal(wanted.code, PNR_OK);
    assert_true(wanted.n == DWELLS && wanted.reports[0].detection.n_echoes == 2);

    pnradar *radar = create(&s);

    for (size_t at = 0; at < s.n_positions; at += piece) {
        const size_t n = s.n_positions - at < piece ? s.n_positions - at : piece;

        assert_int_equal(pnradar_push(radar, s.bytes + at * s.sample_bytes, n), 0);
        if (gets_at_once)
            assert_int_equal(take_results(radar, 0, &wanted, &seen), 0);
    }
    pnradar_finish(radar);
    assert_int_equal(take_results(radar, INFINITY, &wanted, &seen), 0);
    assert_int_equal(seen, wanted.n);
    assert_string_equal(pnradar_error(radar), "");
    pnradar_destroy(radar);
    forget_outcome(&wanted);
    close_stage(&s);
}

TEST(test_results_of_pieces)
{
    assert_same_as_program("radar.carrier_hz=30e6", 1000, true);
    assert_same_as_program("detector.oversample=1", 127, true);
    assert_same_as_program("source.format=cf64", 1, true);
}

/* The queue grows, because it has more results than its first size. The ring holds few dwells. */
TEST(test_results_kept_to_the_end)
{
    assert_same_as_program("ring.bytes=24384", DWELLS * N + 5, false);
    assert_same_as_program("ring.bytes=24384", 50, false);
}

/* The state of a thread that gets results while the test pushes samples. */
typedef struct getter {
    pnradar *radar;
    size_t n;
    int code;
} getter;

static void *get_all(void *context)
{
    getter *g = context;
    pnradar_result result;

    while ((g->code = pnradar_get(g->radar, INFINITY, &result)) == 1)
        g->n++;
    return NULL;
}

TEST(test_two_threads)
{
    getter g = {0};
    pthread_t thread;
    stage s;

    open_stage(&s, DWELLS * N, NULL);
    g.radar = create(&s);
    assert_int_equal(pthread_create(&thread, NULL, get_all, &g), 0);
    assert_int_equal(pnradar_push(g.radar, s.bytes, s.n_positions), 0);
    pnradar_finish(g.radar);
    pthread_join(thread, NULL);
    assert_int_equal(g.code, 0);
    assert_int_equal(g.n, DWELLS);
    pnradar_destroy(g.radar);
    close_stage(&s);
}

/* Gets results and checks that each begins where the previous one ended. Adds the lost samples to
 * *lost, and advances *position. */
static size_t take_chain(pnradar *radar, double patience_s, uint64_t *position, uint64_t *lost)
{
    pnradar_result result;
    size_t n = 0;

    while (pnradar_get(radar, patience_s, &result) == 1) {
        assert_int_equal(result.sample, *position + result.lost_before);
        *position = result.sample + N;
        *lost += result.lost + result.lost_before;
        n++;
    }
    return n;
}

/* A live radar never waits: samples without space are lost, and the next result counts them. */
TEST(test_live_counts_what_it_loses)
{
    static const char *const settings[] = {"source.pace=real-time", "ring.bytes=24384", NULL};
    uint64_t position = 0, lost = 0;
    size_t n = 0;
    stage s;

    open_stage(&s, DWELLS * N, settings);

    pnradar *radar = create(&s);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pnradar_push(radar, s.bytes, s.n_positions), 0);
        for (const size_t before = n; n == before;)
            n += take_chain(radar, 0.01, &position, &lost);
    }
    pnradar_finish(radar);
    n += take_chain(radar, INFINITY, &position, &lost);
    assert_true(n > 0 && lost > 0 && position <= 3 * s.n_positions);
    pnradar_destroy(radar);
    close_stage(&s);
}

/* --- failures --- */

static void assert_refused(const char *configuration, const char *reason)
{
    char why[512] = "";

    if (pnradar_create(configuration, why, sizeof why) != NULL)
        fail_msg("not refused: %s", configuration);
    if (strstr(why, reason) == NULL)
        fail_msg("no '%s' in: %s", reason, why);
    assert_null(pnradar_create(configuration, NULL, 0));
}

TEST(test_refused)
{
    assert_refused("", "source.rate_hz is not given");
    assert_refused("[source]\nrate_hz = 1e6\n", "source.format is not given");
    assert_refused("[source]\nrate_hz = 1e6\nformat = ci17\n", "configuration:3: ");
    assert_refused("[source]\nrate_hz = 1e6\nformat = ci16\n[engine]\nname = abacus\n", "abacus");
}

TEST(test_push_after_finish)
{
    pnradar_result result;
    stage s;

    open_stage(&s, N, NULL);

    pnradar *radar = create(&s);

    pnradar_finish(radar);
    pnradar_finish(radar);
    assert_int_equal(pnradar_push(radar, s.bytes, N), -1);
    assert_string_equal(pnradar_error(radar), "samples after pnradar_finish");
    assert_int_equal(pnradar_get(radar, 0, &result) == 1, false);
    pnradar_destroy(radar);
    close_stage(&s);
}

/* Destroys radars that got no samples or were not finished. No call may wait for long. */
TEST(test_destroyed_early)
{
    pnradar_result result;
    stage s;

    open_stage(&s, DWELLS * N, NULL);

    pnradar *radar = create(&s);

    assert_int_equal(pnradar_get(radar, 0, &result), 0);
    assert_int_equal(pnradar_get(radar, 0.01, &result), 0);
    pnradar_destroy(radar);
    radar = create(&s);
    /* no thread gets the results */
    assert_int_equal(pnradar_push(radar, s.bytes, s.n_positions), 0);
    pnradar_destroy(radar);
    pnradar_destroy(NULL);
    close_stage(&s);
}

/* The engine is lost at the third submit. The earlier results are still returned. Later calls of
 * push and get fail and explain why. */
TEST(test_engine_lost)
{
    static const char *const settings[] = {"engine.name=fault", "engine.batch=1", NULL};
    pnradar_result result;
    size_t n = 0;
    stage s;
    int code;

    open_stage(&s, DWELLS * N, settings);
    setenv("PNR_FAULT", "submit:3=ELOST", 1);

    pnradar *radar = create(&s);

    do
        code = pnradar_push(radar, s.bytes, s.n_positions);
    while (code == 0);
    unsetenv("PNR_FAULT");
    assert_non_null(strstr(pnradar_error(radar), "restart"));
    while ((code = pnradar_get(radar, INFINITY, &result)) == 1)
        n++;
    assert_int_equal(n, 2);
    assert_int_equal(code, -1);
    pnradar_destroy(radar);
    close_stage(&s);
}

TEST(test_version)
{
    assert_string_equal(pnradar_version(), PNR_VERSION);
}
