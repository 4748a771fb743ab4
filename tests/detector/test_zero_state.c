/* SPDX-License-Identifier: MIT */
/* The file of the zero delay is read as it was written, for the same source only, and a broken file
 * is refused. */
#include "detector/zero_state.h"

#include "base/clock.h"
#include "tests/fixture/test.h"

#include <sys/stat.h>
#include <unistd.h>

static pnr_config config;
static char folder[256], path[300];
static pnr_radar radar;
static const pnr_zero_memory memory = {1.23456789012e-5, 2.5e-9, -3.25e-7, 1e-9, 1.2e-5};

static pnr_events events;

static void set(const char *assignment)
{
    pnr_error error;

    if (pnr_config_set(&config, assignment, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static int begin(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char setting[400];
    pnr_error error;

    (void)state;
    setenv("PNR_LOG", "quiet", 0);
    snprintf(folder, sizeof folder, "%s/pnr.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/zero", folder);
    pnr_events_begin(&events);
    pnr_config_init(&config);
    set("source.rate_hz=10000000/3");
    set("source.channels=2");
    set("code.degree=10");
    set("radar.zero=direct-path");
    set("radar.zero_search_m=3000"); /* 20 us */
    if (pnr_radar_derive(&config, 1023, &radar, &error) != PNR_OK)
        return -1;
    strcpy(config.source.input, "a \"strange\"\tname.ci16");
    snprintf(setting, sizeof setting, "radar.zero_state_path=%s", path);
    set(setting);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pnr_config_clear(&config);
    (void)unlink(path);
    return rmdir(folder); /* fails when another file was left */
}

static void keep(bool lasting)
{
    pnr_error error;

    assert_int_equal(pnr_zero_state_write(&config, PNR_FORMAT_CI16, &memory, lasting, &error),
                     PNR_OK);
}

static bool is_back(pnr_format format)
{
    pnr_zero_memory out;

    return pnr_zero_state_read(&config, &radar, format, &events, &out) &&
           out.delay_s == memory.delay_s && out.sigma_s == memory.sigma_s &&
           out.drift == memory.drift && out.drift_sigma == memory.drift_sigma &&
           out.first_s == memory.first_s;
}

TEST_BETWEEN(test_round_trip, begin, end)
{
    pnr_error error;

    assert_int_equal(pnr_zero_state_check(&config, &error), PNR_OK);
    assert_true(access(path, F_OK) != 0);
    assert_false(is_back(PNR_FORMAT_CI16)); /* the first start */
    keep(false);
    assert_true(is_back(PNR_FORMAT_CI16));
    keep(true); /* over the one before */
    assert_true(is_back(PNR_FORMAT_CI16));
}

TEST_BETWEEN(test_another, begin, end)
{
    keep(false);
    assert_false(is_back(PNR_FORMAT_CF32));
    set("source.channel=1");
    assert_false(is_back(PNR_FORMAT_CI16));
    set("source.channel=0");
    set("source.rate_hz=10000000/3.0");
    set("source.rate_hz=10000001/3");
    assert_false(is_back(PNR_FORMAT_CI16));
    set("source.rate_hz=10000000/3");
    set("source.input=b.ci16");
    assert_false(is_back(PNR_FORMAT_CI16));
    strcpy(config.source.input, "a \"strange\"\tname.ci16");
    assert_true(is_back(PNR_FORMAT_CI16));
}

/* What the measured delay depends on makes another state; what it does not depend on does not. */
TEST_BETWEEN(test_another_configuration, begin, end)
{
    static const char *const others[][2] = {
        {"code.degree=11", "code.degree=10"},
        {"code.epoch=5", "code.epoch=0"},
        {"code.pulse=rectangular", "code.pulse=band-limited"},
        {"window.dc=remove", "window.dc=keep"},
        {"source.tune_hz=1000", "source.tune_hz=0"},
    };
    static const char *const same[] = {"radar.max_range_m=5000", "dwell.periods=4",
                                       "detector.pfa=1e-6",      "radar.zero_alarm_m=3",
                                       "publisher.endpoint=",    "engine.name=cpu"};

    keep(false);
    for (size_t i = 0; i < COUNT(same); i++)
        set(same[i]);
    assert_true(is_back(PNR_FORMAT_CI16));
    for (size_t i = 0; i < COUNT(others); i++) {
        set(others[i][0]);
        assert_false(is_back(PNR_FORMAT_CI16));
        set(others[i][1]);
        assert_true(is_back(PNR_FORMAT_CI16));
    }
    set("code.1.type=barker");
    assert_false(is_back(PNR_FORMAT_CI16));
}

static void write_file(const char *text, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Reads the state after the text of one member, up to the next comma, is another one. */
static bool is_used_with(const char *name, const char *value)
{
    char text[PNR_ZERO_STATE_LEN] = "", changed[PNR_ZERO_STATE_LEN + 64], member[32];
    pnr_zero_memory out;
    const char *at;
    FILE *file;

    keep(false);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    snprintf(member, sizeof member, "\"%s\":", name);
    at = strstr(text, member);
    assert_non_null(at);
    at += strlen(member);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, value,
             at + strcspn(at, ",}"));
    write_file(changed, strlen(changed));

    const uint64_t before = pnr_event_count(&events, PNR_EVENT_ZERO_STATE_DROPPED);
    const bool is_used = pnr_zero_state_read(&config, &radar, PNR_FORMAT_CI16, &events, &out);

    assert_int_equal(pnr_event_count(&events, PNR_EVENT_ZERO_STATE_DROPPED), before + !is_used);
    return is_used;
}

TEST_BETWEEN(test_age, begin, end)
{
    static const struct {
        double days;
        bool is_used;
    } cases[] = {{0, true},     {29.9, true},   {30.1, false},  {4000, false},
                 {-0.03, true}, {-0.05, false}, {-20000, false}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t then = pnr_clock_utc_ns() - (int64_t)(cases[i].days * 86400e9);
        char time[PNR_TIME_LEN], value[PNR_TIME_LEN + 2];

        snprintf(value, sizeof value, "\"%s\"", pnr_time_format(then, time));
        if (is_used_with("written", value) != cases[i].is_used)
            fail_msg("%g days", cases[i].days);
    }
    assert_false(is_used_with("written", "\"yesterday\""));
    assert_false(is_used_with("written", "1.7e9"));
}

/* The search reaches 20 us from radar.zero_delay_s = 0. */
TEST_BETWEEN(test_implausible, begin, end)
{
    static const struct {
        const char *name, *value;
        bool is_used;
    } cases[] = {
        {"zero_delay_s", "1.9e-5", true},
        {"zero_delay_s", "2.1e-5", false},
        {"zero_delay_s", "-1.9e-5", true},
        {"zero_delay_s", "-2.1e-5", false},
        {"zero_delay_s", "1e300", false},
        {"zero_delay_s", "5.2e-4", false}, /* 78 km */
        {"first_s", "1.9e-5", true},
        {"first_s", "-2.1e-5", false},
        {"sigma_s", "1.9e-5", true},
        {"sigma_s", "2.1e-5", false},
        {"sigma_s", "0", false},
        {"sigma_s", "-1e-9", false},
        {"drift", "0.009", true},
        {"drift", "0.011", false},
        {"drift", "-0.011", false},
        {"drift_sigma", "0.009", true},
        {"drift_sigma", "0.011", false},
        {"drift_sigma", "-1e-9", false},
        {"config", "\"0123456789abcdef\"", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        if (is_used_with(cases[i].name, cases[i].value) != cases[i].is_used)
            fail_msg("%s = %s", cases[i].name, cases[i].value);
}

/* Truncated at any byte, or with one of its numbers missing or wrong. */
TEST_BETWEEN(test_broken, begin, end)
{
    static const char *const names[] = {"\"v\"",       "\"zero_delay_s\"", "\"sigma_s\"",
                                        "\"drift\"",   "\"drift_sigma\"",  "\"first_s\"",
                                        "\"pnradar\"", "\"config\"",       "\"written\""};
    char text[PNR_ZERO_STATE_LEN] = "", changed[PNR_ZERO_STATE_LEN + 64];
    FILE *file;
    size_t n;

    keep(false);
    file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    for (size_t i = 0; i + 1 < n; i++) { /* all but its last newline */
        write_file(text, i);
        assert_false(is_back(PNR_FORMAT_CI16));
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *at = strstr(text, names[i]);

        assert_non_null(at);
        snprintf(changed, sizeof changed, "%.*s\"x%s", (int)(at - text), text, at + 1);
        write_file(changed, strlen(changed));
        assert_false(is_back(PNR_FORMAT_CI16));
        snprintf(changed, sizeof changed, "%.*s:null,\"%zu\"%s",
                 (int)(at - text + (ptrdiff_t)strlen(names[i])), text, i, at + strlen(names[i]));
        write_file(changed, strlen(changed));
        assert_false(is_back(PNR_FORMAT_CI16));
    }
    write_file(text, n);
    assert_true(is_back(PNR_FORMAT_CI16));
}

TEST_BETWEEN(test_no_file, begin, end)
{
    pnr_error error;
    pnr_zero_memory out;

    assert_int_equal(mkdir(path, 0700), 0); /* a folder in its place */
    assert_false(pnr_zero_state_read(&config, &radar, PNR_FORMAT_CI16, &events, &out));
    assert_int_equal(pnr_zero_state_write(&config, PNR_FORMAT_CI16, &memory, false, &error),
                     PNR_ECONFIG);
    assert_non_null(strstr(error.text, path));
    assert_int_equal(rmdir(path), 0);
    set("radar.zero_state_path=/nowhere/at/all");
    assert_int_equal(pnr_zero_state_check(&config, &error), PNR_EIO);
}

/* What the path holds is not ours: neither the check nor a write changes it, and neither waits. */
static void expect_refused(const char *word)
{
    pnr_zero_memory out;
    pnr_error error = {0};

    assert_int_equal(pnr_zero_state_check(&config, &error), PNR_ECONFIG);
    if (strstr(error.text, word) == NULL || strstr(error.text, "radar.zero_state_path") == NULL)
        fail_msg("no %s in: %s", word, error.text);
    assert_int_equal(pnr_zero_state_write(&config, PNR_FORMAT_CI16, &memory, true, &error),
                     PNR_ECONFIG);
    assert_false(pnr_zero_state_read(&config, &radar, PNR_FORMAT_CI16, &events, &out));
}

TEST_BETWEEN(test_not_ours, begin, end)
{
    static const char samples[] = "\x01\x02\x03\x04 samples of a recording";
    char target[320], back[sizeof samples];
    FILE *file;

    write_file(samples, sizeof samples);
    expect_refused("did not write");
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(back, 1, sizeof back, file), sizeof back);
    fclose(file);
    assert_memory_equal(back, samples, sizeof samples);
    assert_int_equal(unlink(path), 0);

    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused("FIFO");
    assert_int_equal(unlink(path), 0);

    snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(symlink(target, path), 0); /* of a file that is not there: none is made */
    expect_refused("symbolic link");
    assert_int_equal(access(target, F_OK), -1);
    assert_int_equal(unlink(path), 0);

    write_file("", 0); /* an empty file loses nothing */
    keep(false);
    assert_true(is_back(PNR_FORMAT_CI16));
    set("radar.zero_state_path=/dev/null");
    expect_refused("device");
}

/* A link under the old name of the temporary file is not followed. */
TEST_BETWEEN(test_link_beside, begin, end)
{
    char beside[320], target[320];

    snprintf(beside, sizeof beside, "%s.new", path);
    snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(symlink(target, beside), 0);
    keep(false);
    assert_int_equal(access(target, F_OK), -1);
    assert_true(is_back(PNR_FORMAT_CI16));
    assert_int_equal(unlink(beside), 0);
}
