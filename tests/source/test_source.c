/* SPDX-License-Identifier: MIT */
/* Raw files give the same samples for any size of reads, lost runs in their places, or are
 * refused. */
#include "tests/fixture/source_fixture.h"

#include <sys/stat.h>

TEST(test_every_format)
{
    unsigned char bytes[1000], unpacked[2 * sizeof bytes];

    fill_bytes(bytes, sizeof bytes);
    unpack_bytes(bytes, sizeof bytes, unpacked);
    for (int format = PNR_FORMAT_NONE + 1; format < PNR_FORMAT_COUNT; format++)
        for (size_t channels = 1; channels <= 3; channels++) {
            const pnr_format_info *words = pnr_format_get((pnr_format)format);
            size_t sample_bytes = words->bytes * channels;
            char name[64];

            snprintf(name, sizeof name, "x.%s", words->name);
            write_file(name, bytes, sizeof bytes);
            pnr_config config = source_config(name);
            config.source.channels = channels;
            config.source.channel = channels - 1;
            const size_t n = sizeof bytes / sample_bytes * sample_bytes;
            const bool is_packed = format == PNR_FORMAT_CI4;
            pnr_source_info info =
                expect_stream(&config, is_packed ? unpacked : bytes, is_packed ? 2 * n : n);
            assert_int_equal(info.format, pnr_format_in_memory((pnr_format)format));
            assert_int_equal(info.n_channels, channels);
            assert_int_equal(info.n_samples, sizeof bytes / sample_bytes);
            assert_int_equal(info.n_trailing_bytes, sizeof bytes % sample_bytes);
            assert_int_equal(info.rate_hz.den, 0);
            assert_int_equal(info.loss_visibility, PNR_LOSS_NONE);
            assert_non_null(strstr(info.text, words->name));
            remove_file(name);
        }
}

TEST(test_format_by_name_and_by_extension)
{
    unsigned char bytes[32];

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sc16", bytes, sizeof bytes);
    write_file("x.dat", bytes, sizeof bytes);
    pnr_config config = source_config("x.sc16");
    pnr_source_info info = expect_stream(&config, bytes, sizeof bytes);
    assert_int_equal(info.format, PNR_FORMAT_CI16);
    assert_non_null(strstr(info.text, "raw ci16, 1 channel, 8 samples: "));
    config.source.format = PNR_FORMAT_CF32; /* the key is stronger than the extension */
    assert_int_equal(expect_stream(&config, bytes, sizeof bytes).format, PNR_FORMAT_CF32);

    config = source_config("x.dat");
    expect_source_refused(&config, PNR_ECONFIG, "x.dat", "source.format", pnr_format_names(), NULL);
    config.source.format = PNR_FORMAT_U8;
    assert_int_equal(expect_stream(&config, bytes, sizeof bytes).n_samples, 32);
    remove_file("x.sc16");
    remove_file("x.dat");
}

TEST(test_no_such_input)
{
    pnr_config config = source_config("none.sc16");

    expect_source_refused(&config, PNR_ENOINPUT, "none.sc16", NULL);
    config.source.input[0] = '\0';
    expect_source_refused(&config, PNR_ENOINPUT, "source.input", NULL);
    config = source_config("/");
    expect_source_refused(&config, PNR_ENOINPUT, "directory", NULL);
    config.source.format = PNR_FORMAT_CI16;
    expect_source_refused(&config, PNR_ENOINPUT, "directory", NULL);
}

TEST(test_no_permission)
{
    unsigned char bytes[8] = {0};
    pnr_config config = source_config("secret.sc16");

    if (geteuid() == 0) { /* root may read everything: drop to nobody for the open */
        assert_int_equal(seteuid(65534), 0);
        pnr_config shadow = source_config("/etc/shadow");
        shadow.source.format = PNR_FORMAT_CI16;
        expect_source_refused(&shadow, PNR_EPERMISSION, "/etc/shadow", NULL);
        assert_int_equal(seteuid(0), 0);
        return;
    }
    write_file("secret.sc16", bytes, sizeof bytes);
    assert_int_equal(chmod(config.source.input, 0), 0);
    expect_source_refused(&config, PNR_EPERMISSION, "secret.sc16", NULL);
    remove_file("secret.sc16");
}

TEST(test_no_samples)
{
    unsigned char bytes[16] = {0};
    pnr_config config = source_config("x.sc16");

    write_file("x.sc16", bytes, 0);
    expect_source_refused(&config, PNR_EDATA, "empty", NULL);
    write_file("x.sc16", bytes, 3);
    expect_source_refused(&config, PNR_EDATA, "3 bytes", "has 4", NULL);
    write_file("x.sc16", bytes, 15);
    config.source.channels = 4;
    expect_source_refused(&config, PNR_EDATA, "15 bytes", "has 16", NULL);
    remove_file("x.sc16");
}

TEST(test_channels_out_of_range)
{
    unsigned char bytes[16] = {0};
    pnr_config config = source_config("x.sc16");

    write_file("x.sc16", bytes, sizeof bytes);
    config.source.channel = 1;
    expect_source_refused(&config, PNR_ECONFIG, "source.channel = 1 ", "source.channels is 1 in",
                          NULL);
    config.source.channels = SIZE_MAX;
    expect_source_refused(&config, PNR_ECONFIG, "18446744073709551615", NULL);
    remove_file("x.sc16");
}

/* Files that change while they are read. */
TEST(test_file_that_shrinks_or_grows)
{
    static taken got;
    unsigned char bytes[400];
    pnr_config config = source_config("x.sc16");
    pnr_source_block block;

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sc16", bytes, 200);
    pnr_source *source = open_source(&config);
    write_file("x.sc16", bytes, 400);
    take_all(source, 1000, &got);
    assert_int_equal(got.end, PNR_EEND);
    expect_bytes(&got, bytes, 200);
    pnr_source_close(source);

    source = open_source(&config);
    assert_int_equal(truncate(config.source.input, 202), 0);
    take_all(source, 1000, &got);
    assert_int_equal(got.end, PNR_EDATA);
    assert_non_null(strstr(got.error.text, "50 samples arrived, 50 more"));
    expect_bytes(&got, bytes, 200);
    assert_int_equal(pnr_source_read(source, got.bytes, 1, &block, NULL), PNR_EEND);
    pnr_source_close(source);
    remove_file("x.sc16");
}

/* --- lost runs --- */

TEST(test_lost_runs)
{
    static const struct {
        pnr_run lost[4];
        size_t n_lost;
        pnr_run gaps[4];
        size_t n_gaps;
        uint64_t n_samples;
    } cases[] = {
        {{{0, 5}}, 1, {{0, 5}}, 1, 105},                       /* start */
        {{{50, 7}}, 1, {{50, 7}}, 1, 107},                     /* middle */
        {{{99, 2}}, 1, {{99, 2}}, 1, 102},                     /* before the last sample */
        {{{100, 3}}, 1, {{100, 3}}, 1, 103},                   /* right at the end */
        {{{101, 3}}, 1, {{0}}, 0, 100},                        /* past the end */
        {{{0, 10}, {105, 5}}, 2, {{0, 10}, {105, 5}}, 2, 115}, /* in only because of the first */
        {{{0, 10}, {111, 5}}, 2, {{0, 10}}, 1, 110},           /* just out */
        {{{20, 5}, {60, 5}}, 2, {{20, 5}, {60, 5}}, 2, 110},   /* several: the configuration refuses
                                                                  or joins all others */
        {{{3, UINT64_C(1) << 60}}, 1, {{3, UINT64_C(1) << 60}}, 1, (UINT64_C(1) << 60) + 100},
    };
    static const size_t chunks[] = {1, 3, 64, 1000};
    static taken got;
    unsigned char bytes[403];

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sc16", bytes, sizeof bytes); /* 100 samples and 3 bytes */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t k = 0; k < sizeof chunks / sizeof chunks[0]; k++) {
            pnr_run lost[4];
            pnr_config config = source_config("x.sc16");

            memcpy(lost, cases[i].lost, sizeof lost);
            config.source.lost = lost;
            config.source.n_lost = cases[i].n_lost;
            pnr_source *source = open_source(&config);
            assert_true(pnr_source_get_info(source)->n_samples == cases[i].n_samples);
            take_all(source, chunks[k], &got);
            assert_int_equal(got.end, PNR_EEND);
            expect_bytes(&got, bytes, 400);
            assert_true(got.position == cases[i].n_samples);
            assert_int_equal(got.n_gaps, cases[i].n_gaps);
            for (size_t g = 0; g < got.n_gaps; g++) {
                assert_true(got.gaps[g].first == cases[i].gaps[g].first);
                assert_true(got.gaps[g].count == cases[i].gaps[g].count);
            }
            pnr_source_close(source);
        }
    remove_file("x.sc16");
}

TEST(test_lost_runs_in_the_text)
{
    unsigned char bytes[400];
    pnr_run lost[] = {{10, 5}, {20, 6}, {500, 5}};
    pnr_config config = source_config("x.sc16");

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sc16", bytes, sizeof bytes);
    config.source.lost = lost;
    config.source.n_lost = 3;
    pnr_source *source = open_source(&config);
    assert_non_null(strstr(pnr_source_get_info(source)->text,
                           "111 samples, 11 of them lost (source.lost beyond the end: 1): "));
    pnr_source_close(source);
    remove_file("x.sc16");
}

TEST(test_lost_runs_beyond_any_stream)
{
    unsigned char bytes[400] = {0};
    pnr_run lost[] = {{UINT64_MAX, 1}};
    pnr_config config = source_config("x.sc16");

    write_file("x.sc16", bytes, sizeof bytes);
    config.source.lost = lost;
    config.source.n_lost = 1;
    expect_source_refused(&config, PNR_ECONFIG, "source.lost", "18446744073709551615", NULL);
    lost[0] = (pnr_run){5, UINT64_MAX - 6}; /* fits alone, not with the 100 samples */
    expect_source_refused(&config, PNR_ECONFIG, "source.lost", NULL);
    remove_file("x.sc16");
}

/* Parts of a recording, across and within lost runs, and of packed samples. */
TEST(test_parts)
{
    static const char *const names[] = {"x.ci4", "x.sc16", "x.cf64"};
    pnr_run lost[] = {{0, 20}, {50, 7}, {100, 200}, {340, 1}};
    unsigned char bytes[4000];

    fill_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_file(names[i], bytes, sizeof bytes);
        pnr_config config = source_config(names[i]);
        expect_parts(&config);
        config.source.lost = lost;
        config.source.n_lost = sizeof lost / sizeof *lost;
        expect_parts(&config);
        remove_file(names[i]);
    }
}

TESTS_BETWEEN(make_folder, remove_folder)
