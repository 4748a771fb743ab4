/* SPDX-License-Identifier: MIT */
/* SoapySDR with a receiver that does not exist: gaps by its time, what it reports without one, its
 * settings, refusals. */
#include "tests/fixture/source_fixture.h"

#include <limits.h>

/* The fake receiver lies in <build>/tests/soapy. */
__attribute__((constructor)) static void find_receiver(void)
{
    char path[PATH_MAX] = "";
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);

    assert_true(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/soapy");
    setenv("SOAPY_SDR_PLUGIN_PATH", path, 1);
    setenv("PNR_LOG", "quiet", 0);
}

/* A configuration of the fake receiver with these arguments besides its name. */
static pnr_config config_of(const char *arguments)
{
    pnr_config config = {
        .source = {
            .channels = 1, .rate_hz = {1000000, 1}, .centre_hz = 100e6, .format = PNR_FORMAT_CI16}};

    snprintf(config.source.input, sizeof config.source.input, "soapy:driver=fake,%s", arguments);
    return config;
}

static void need_receiver(void)
{
    pnr_config config = config_of("n=1");
    pnr_source *source = NULL;
    pnr_error error = {0};

    if (pnr_source_open(&config, &source, &error) == PNR_EUNAVAILABLE) {
        print_message("skipped: source-soapy.so is not built\n");
        skip();
    }
    pnr_source_close(source);
}

/* Checks that the samples are 0, 1, 2, ... n - 1 of the fake receiver. */
static void expect_count(const taken *got, size_t n)
{
    assert_int_equal(got->n_bytes, 4 * n);
    for (size_t i = 0; i < n; i++) {
        int16_t iq[2];

        memcpy(iq, got->bytes + 4 * i, sizeof iq);
        if (iq[0] != (int16_t)i || iq[1] != (int16_t)(2 * i))
            fail_msg("sample %zu is %d, %d", i, iq[0], iq[1]);
    }
}

/* Reads a stream, and counts its events. */
static void take_with_events(pnr_source *source, size_t chunk, taken *got, uint64_t *n_overruns,
                             uint64_t *n_errors)
{
    static pnr_events events;

    pnr_events_begin(&events);
    pnr_source_report_to(source, &events);
    take_all(source, chunk, got);
    *n_overruns = pnr_event_count(&events, PNR_EVENT_OVERRUN);
    *n_errors = pnr_event_count(&events, PNR_EVENT_SOURCE_ERROR);
}

TEST(test_gaps_by_the_time_of_the_receiver)
{
    static const size_t chunks[] = {7, 1000, 30000};
    static const pnr_run gaps[] = {{1000, 300}, {2300, 7}, {3207, 11}};
    static taken got;
    uint64_t n_overruns, n_errors;
    const pnr_config config =
        config_of("time=yes,n=9000,events=overflow@1000+300 jump@2000+7 back@2500+5 jump@2900+11 "
                  "timeout@3000 "
                  "error@3100 corruption@3200 time-error@3300 back@5000+1000000");

    need_receiver();
    for (size_t i = 0; i < COUNT(chunks); i++) {
        pnr_source *source = open_source(&config);

        assert_int_equal(pnr_source_get_info(source)->loss_visibility, PNR_LOSS_EXACT);
        assert_true(pnr_source_get_info(source)->is_live);
        take_with_events(source, chunks[i], &got, &n_overruns, &n_errors);
        assert_int_equal(got.end, PNR_EIO); /* the receiver fails at its end */
        assert_non_null(strstr(got.error.text, "the receiver fails: STREAM_ERROR"));
        expect_count(&got, 9000);
        assert_int_equal(got.n_gaps, COUNT(gaps));
        for (size_t g = 0; g < COUNT(gaps); g++)
            assert_true(got.gaps[g].first == gaps[g].first && got.gaps[g].count == gaps[g].count);
        /* Two steps back, three reports, and 15 errors before the last one. */
        assert_int_equal(n_errors, 2 + 3 + 15);
        assert_int_equal(n_overruns, 1);
        pnr_source_close(source);
    }
}

/* Without a time a loss is seen, but not its length. The status is asked for every 100 ms; the fake
 * receiver waits 50 ms before it reports a timeout. */
TEST(test_flags_without_a_time)
{
    static taken got;
    uint64_t n_overruns, n_errors;
    const pnr_config config =
        config_of("n=4000,events=overflow@1000+300 jump@2000+7 status@3000+5 timeout@3500 "
                  "timeout@3500 timeout@3500");

    need_receiver();
    pnr_source *source = open_source(&config);
    assert_int_equal(pnr_source_get_info(source)->loss_visibility, PNR_LOSS_FLAG);
    take_with_events(source, 1000, &got, &n_overruns, &n_errors);
    expect_count(&got, 4000);
    assert_int_equal(got.n_gaps, 0);
    assert_int_equal(n_overruns, 2);
    assert_int_equal(n_errors, 15);
    pnr_source_close(source);
}

TEST(test_the_time_of_a_block)
{
    unsigned char bytes[4000];
    pnr_source_block block;
    pnr_error error;
    const pnr_config config = config_of("time=yes,n=2000,events=jump@1000+500000");

    need_receiver();
    pnr_source *source = open_source(&config);
    assert_int_equal(pnr_source_read(source, bytes, 1000, &block, &error), PNR_OK);
    assert_true(block.has_time && block.n_samples == 1000);
    const int64_t start_ns = block.utc_ns;
    assert_int_equal(pnr_source_read(source, bytes, 1000, &block, &error), PNR_OK);
    assert_true(block.has_time && block.gap == 500000 && block.utc_ns == start_ns + 1000000);
    assert_int_equal(pnr_source_read(source, bytes, 300, &block, &error), PNR_OK);
    assert_true(block.has_time && block.n_samples == 300 && block.utc_ns == start_ns + 501000000);
    assert_int_equal(pnr_source_read(source, bytes, 300, &block, &error), PNR_OK);
    assert_true(block.has_time && block.n_samples == 300 && block.utc_ns == start_ns + 501300000);
    pnr_source_close(source);
}

TEST(test_settings)
{
    static const char expected[] =
        "clock external 0 0\ntime gpsdo 0 0\nantenna B 0 0\nbandwidth 800000 0\n"
        "frequency 1e+08 0\nautomatic 0 1\ngain 30 0\nLNA 20 0\nVGA 10.5 0\n";
    unsigned char text[sizeof expected] = "";
    char arguments[128];

    need_receiver();
    snprintf(arguments, sizeof arguments, "n=1,notes=%s/notes", folder);
    pnr_config config = config_of(arguments);
    config.source.device_channel = 1;
    config.source.bandwidth_hz = 800e3;
    config.source.gain_db = 30;
    config.source.has_gain_db = true;
    strcpy(config.source.gains, "LNA=20, VGA=10.5");
    strcpy(config.source.antenna, "B");
    strcpy(config.source.clock_source, "external");
    strcpy(config.source.time_source, "gpsdo");
    pnr_source_close(open_source(&config));
    assert_int_equal(read_file("notes", text, sizeof text), sizeof expected - 1);
    assert_string_equal((char *)text, expected);
    remove_file("notes");
}

TEST(test_refusals)
{
    pnr_config config = config_of("rate=999900");

    need_receiver();
    expect_source_refused(&config, PNR_ECONFIG, "1000000 Hz", "makes 999900 Hz", NULL);
    config = config_of("");
    config.source.format = PNR_FORMAT_CF32;
    expect_source_refused(&config, PNR_ECONFIG, "does not give CF32", "its own: CS16", NULL);
    config.source.format = PNR_FORMAT_I16;
    expect_source_refused(&config, PNR_ECONFIG, "i16", "complex samples", NULL);
    config = config_of("");
    config.source.device_channel = 2;
    expect_source_refused(&config, PNR_ECONFIG, "source.device_channel is 2", "has 2", NULL);
    config = config_of("");
    strcpy(config.source.antenna, "C");
    expect_source_refused(&config, PNR_ECONFIG, "source.antenna", "no antenna C", NULL);
    config = config_of("");
    strcpy(config.source.gains, "LNA=loud");
    expect_source_refused(&config, PNR_ECONFIG, "source.gains", "LNA", "loud", NULL);
    strcpy(config.source.gains, "MIX=1");
    expect_source_refused(&config, PNR_ECONFIG, "source.gains", "no gain MIX", NULL);
    config = config_of("");
    config.source.centre_hz = 0;
    expect_source_refused(&config, PNR_ECONFIG, "source.centre_hz is not given", NULL);
    config.source.rate_hz = (pnr_rational){0, 0};
    expect_source_refused(&config, PNR_ECONFIG, "source.rate_hz is not given", NULL);
    config = config_of("");
    strcpy(config.source.input, "soapy:driver=absent");
    expect_source_refused(&config, PNR_ENOINPUT, "soapy:driver=absent", "no receiver is there",
                          NULL);
}

TESTS_BETWEEN(make_folder, remove_folder)
