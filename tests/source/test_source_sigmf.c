/* SPDX-License-Identifier: MIT */
/* SigMF recordings: all data types, captures and their gaps, times, refusals, broken metadata. */
#include "base/random.h"
#include "source/sigmf_meta.h"
#include "tests/fixture/source_fixture.h"

#include <math.h>

/* Writes x.sigmf-meta; "..." are the members of global besides type and version, and captures. */
static void write_meta(const char *datatype, const char *global, const char *captures)
{
    write_text("x.sigmf-meta",
               "{\"global\":{\"core:datatype\":\"%s\",\"core:version\":\"1.2.0\"%s},"
               "\"captures\":[%s],\"annotations\":[]}",
               datatype, global, captures);
}

static void remove_recording(void)
{
    remove_file("x.sigmf-meta");
    remove_file("x.sigmf-data");
}

/* --- data types --- */

/* The value of one component as the specification has it: signed integers and floats as they are,
 * unsigned ones about the middle of their range. */
static double value_of(const char *form, const unsigned char *le)
{
    int64_t whole = 0;
    float f32;
    double f64;

    memcpy(&f32, le, sizeof f32);
    memcpy(&f64, le, sizeof f64);
    if (form[0] == 'f')
        return form[1] == '3' ? (double)f32 : f64;

    const int bits = atoi(form + 1);

    for (int i = 0; i < bits / 8; i++)
        whole |= (int64_t)le[i] << (8 * i);
    if (form[0] == 'u')
        return ldexp((double)whole - (bits == 8 ? 127.5 : ldexp(1, bits - 1)), 1 - bits);
    if (whole >> (bits - 1) != 0)
        whole -= INT64_C(1) << bits;
    return ldexp((double)whole, 1 - bits);
}

TEST(test_every_datatype)
{
    static const char *const forms[] = {"f32", "f64", "i32", "u32", "i16", "u16", "i8", "u8"};
    static const char *const orders[] = {"", "_le", "_be"};
    enum { N = 128 }; /* components */
    static taken got;
    uint64_t seed = 7;

    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
            for (int is_complex = 0; is_complex < 2; is_complex++) {
                const size_t bytes = (size_t)atoi(forms[f] + 1) / 8;
                unsigned char le[N][8] = {{0}}, file[N * 8];
                char datatype[16];
                pnr_config config = source_config("x.sigmf-meta");

                for (size_t i = 0; i < N; i++) {
                    const double real = 2 * pnr_random_uniform(&seed) - 1;
                    const float single = (float)real;
                    const uint64_t bits = pnr_random_next(&seed);

                    memcpy(le[i], &bits, bytes);
                    if (strcmp(forms[f], "f32") == 0)
                        memcpy(le[i], &single, sizeof single);
                    if (strcmp(forms[f], "f64") == 0)
                        memcpy(le[i], &real, sizeof real);
                    for (size_t b = 0; b < bytes; b++)
                        file[i * bytes + b] = le[i][o == 2 ? bytes - 1 - b : b];
                }
                snprintf(datatype, sizeof datatype, "%c%s%s", is_complex ? 'c' : 'r', forms[f],
                         orders[o]);
                write_meta(datatype, "", "{\"core:sample_start\":0}");
                write_file("x.sigmf-data", file, N * bytes);
                pnr_source *source = open_source(&config);
                const pnr_format format = pnr_source_get_info(source)->format;
                const size_t each = pnr_format_get(format)->bytes;
                take_all(source, 5, &got);
                assert_int_equal(got.end, PNR_EEND);
                assert_int_equal(got.position, N / (is_complex + 1));
                for (size_t i = 0; i < got.position; i++) {
                    double iq[2];

                    (void)pnr_format_read(format, got.bytes + i * each, iq);
                    for (int k = 0; k <= is_complex; k++) {
                        const double want =
                            value_of(forms[f], le[i * (size_t)(is_complex + 1) + (size_t)k]);

                        if (fabs(iq[k] - want) > 0x1p-24 * fabs(want))
                            fail_msg("%s: component %zu is %.17g, not %.17g", datatype, i, iq[k],
                                     want);
                    }
                }
                pnr_source_close(source);
                remove_recording();
            }
}

/* --- captures --- */

TEST(test_gaps_and_headers)
{
    static const char captures[] =
        "{\"core:sample_start\":1000,\"core:global_index\":5000000000,\"core:header_bytes\":12,"
        "\"core:datetime\":\"2026-11-21T02:40:12.5Z\"},"
        "{\"core:sample_start\":1030,\"core:global_index\":5000000137,\"core:header_bytes\":20},"
        "{\"core:sample_start\":1040,\"core:global_index\":5000000147},"
        "{\"core:sample_start\":1099,\"core:global_index\":9000000000}";
    static const size_t chunks[] = {1, 7, 30, 1000};
    static taken got;
    unsigned char samples[200], file[300];
    pnr_config config = source_config("x.sigmf-data");

    fill_bytes(samples, sizeof samples); /* 100 of 2 bytes */
    memset(file, 0xee, sizeof file);
    memcpy(file + 12, samples, 60);
    memcpy(file + 12 + 60 + 20, samples + 60, 140);
    write_meta("ri16_le",
               ",\"core:offset\":1000,\"core:sample_rate\":1000.0,\"core:trailing_bytes\":7,"
               "\"other:thing\":{\"a\":[1,2]}",
               captures);
    write_file("x.sigmf-data", file, 12 + 60 + 20 + 140 + 7);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        pnr_source *source = open_source(&config);
        const pnr_source_info *info = pnr_source_get_info(source);

        assert_int_equal(info->loss_visibility, PNR_LOSS_EXACT);
        assert_true(info->n_samples == UINT64_C(4000000001));
        assert_true(info->n_lost == info->n_samples - 100);
        assert_true(info->has_start);
        assert_int_equal(info->n_trailing_bytes, 0);
        assert_int_equal(info->rate_hz.num, 1000);
        take_all(source, chunks[i], &got);
        assert_int_equal(got.end, PNR_EEND);
        expect_bytes(&got, samples, sizeof samples);
        assert_true(got.position == info->n_samples);
        assert_int_equal(got.n_gaps, 2);
        assert_true(got.gaps[0].first == 30 && got.gaps[0].count == 107);
        assert_true(got.gaps[1].first == 206 &&
                    got.gaps[1].count == UINT64_C(9000000000) - 5000000206);
        pnr_source_close(source);
    }
    remove_recording();
}

TEST(test_loss_visibility)
{
    static const struct {
        const char *captures;
        pnr_loss_visibility visibility;
    } cases[] = {
        {"", PNR_LOSS_NONE},
        {"{\"core:sample_start\":0}", PNR_LOSS_NONE},
        {"{\"core:sample_start\":0,\"core:global_index\":3}", PNR_LOSS_EXACT},
        {"{\"core:sample_start\":0},{\"core:sample_start\":3}", PNR_LOSS_FLAG},
        {"{\"core:sample_start\":0,\"core:global_index\":3},{\"core:sample_start\":3}",
         PNR_LOSS_FLAG},
    };
    unsigned char bytes[20];

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sigmf-data", bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pnr_config config = source_config("x.sigmf-meta");

        write_meta("ci16_le", "", cases[i].captures);
        assert_int_equal(expect_stream(&config, bytes, sizeof bytes).loss_visibility,
                         cases[i].visibility);
    }
    remove_recording();
}

TEST(test_the_configuration_is_completed)
{
    unsigned char bytes[32];
    pnr_config config = source_config("x.sigmf-meta");
    pnr_error error;

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sigmf-data", bytes, sizeof bytes);
    write_meta("cf32_le", ",\"core:sample_rate\":1023000.25,\"core:num_channels\":2",
               "{\"core:sample_start\":0},{\"core:sample_start\":1,"
               "\"core:datetime\":\"2026-11-21T02:40:12.5000000000009Z\"}");
    assert_int_equal(pnr_source_complete(&config, &error), PNR_OK);
    assert_int_equal(config.source.format, PNR_FORMAT_CF32);
    assert_int_equal(config.source.channels, 2);
    assert_true(config.source.rate_hz.num == 4092001 && config.source.rate_hz.den == 4);
    assert_string_equal(config.source.start_time, "2026-11-21T02:40:12.499999023Z");

    strcpy(config.source.start_time, "2020-01-01T00:00:00Z"); /* the user's own is kept */
    assert_int_equal(pnr_source_complete(&config, &error), PNR_OK);
    assert_string_equal(config.source.start_time, "2020-01-01T00:00:00Z");
    config.source.rate_hz = (pnr_rational){1000000, 1};
    expect_source_refused(&config, PNR_ECONFIG, "4092001/4 Hz", "1000000 Hz", NULL);
    config.source.rate_hz = (pnr_rational){8184002, 8};
    config.source.format = PNR_FORMAT_CI16;
    expect_source_refused(&config, PNR_ECONFIG, "a SigMF recording", "ci16", NULL);
    config.source.format = PNR_FORMAT_CF32;
    pnr_source_close(open_source(&config));

    /* The user gives what the recording does not state. */
    write_meta("cf32_le", "", "");
    config = source_config("x.sigmf-meta");
    assert_int_equal(pnr_source_complete(&config, &error), PNR_OK);
    assert_int_equal(config.source.format, PNR_FORMAT_CF32);
    assert_int_equal(config.source.rate_hz.den, 0);
    assert_string_equal(config.source.start_time, "");
    remove_recording();
}

TEST(test_dataset_in_the_same_folder)
{
    unsigned char bytes[32];
    pnr_config config = source_config("x.sigmf-meta");

    fill_bytes(bytes, sizeof bytes);
    write_file("raw.bin", bytes, sizeof bytes);
    write_meta("ci8", ",\"core:dataset\":\"raw.bin\"", "");
    (void)expect_stream(&config, bytes, sizeof bytes);
    remove_file("raw.bin");
    remove_file("x.sigmf-meta");
}

TEST(test_own_losses_exclude_source_lost)
{
    unsigned char bytes[32] = {0};
    pnr_run lost[] = {{3, 2}};
    pnr_config config = source_config("x.sigmf-meta");

    write_file("x.sigmf-data", bytes, sizeof bytes);
    write_meta("ci8", "", "{\"core:sample_start\":0,\"core:global_index\":0}");
    config.source.lost = lost;
    config.source.n_lost = 1;
    expect_source_refused(&config, PNR_ECONFIG, "source.lost", "its own losses", NULL);
    write_meta("ci8", "", "");
    pnr_source_close(open_source(&config));
    remove_recording();
}

TEST(test_annotated_as_clipped)
{
    unsigned char bytes[32];
    pnr_config config = source_config("x.sigmf-meta");

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sigmf-data", bytes, sizeof bytes);
    write_text("x.sigmf-meta",
               "{\"global\":{\"core:datatype\":\"ci8\",\"core:version\":\"1.2.0\"},\"captures\":[],"
               "\"annotations\":[{\"core:sample_start\":1,\"core:sample_count\":7,"
               "\"core:label\":\"Clipped\"},{\"core:sample_start\":2,\"core:label\":\"a ship\"},"
               "{\"core:sample_start\":9,\"core:label\":\"clipped\"}]}");
    assert_non_null(strstr(expect_stream(&config, bytes, sizeof bytes).text,
                           ", 8 samples annotated as clipped"));
    remove_recording();
}

/* --- collections --- */

TEST(test_collections)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } refused[] = {
        {"{", PNR_EDATA, "no JSON"},
        {"{\"collection\":{}}", PNR_EDATA, "this is no collection"},
        {"{\"collection\":{\"core:streams\":[]}}", PNR_EDATA, "this is no collection"},
        {"{\"collection\":{\"core:streams\":[{\"name\":\"../x\"}]}}", PNR_EDATA,
         "core:streams[0] has no name"},
        {"{\"collection\":{\"core:streams\":[3]}}", PNR_EDATA, "core:streams[0] has no name"},
        {"{\"collection\":{\"core:streams\":[{\"name\":\"y\"},[\"x\"]]}}", PNR_ECONFIG,
         "want one of the collection: y, x"},
        {"{\"collection\":{\"core:streams\":[{\"name\":\"none\"}]}}", PNR_ENOINPUT,
         "none.sigmf-meta"},
    };
    unsigned char bytes[32];
    pnr_config config = source_config("all.sigmf-collection");

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sigmf-data", bytes, sizeof bytes);
    write_meta("ci16_le", "", "");
    for (size_t i = 0; i < COUNT(refused); i++) {
        write_text("all.sigmf-collection", "%s", refused[i].text);
        expect_source_refused(&config, refused[i].code, refused[i].words, NULL);
    }
    write_text("all.sigmf-collection",
               "{\"collection\":{\"core:version\":\"1.2.0\",\"core:streams\":[{\"name\":\"x\"}]}}");
    (void)expect_stream(&config, bytes, sizeof bytes);
    write_text("all.sigmf-collection", "%s", refused[5].text);
    strcpy(config.source.recording, "x");
    (void)expect_stream(&config, bytes, sizeof bytes);
    strcpy(config.source.recording, "z");
    expect_source_refused(&config, PNR_ECONFIG, "source.recording = z", "y, x", NULL);
    remove_file("all.sigmf-collection");
    remove_recording();
}

/* --- refusals --- */

TEST(test_refusals)
{
    static const struct {
        const char *datatype, *global, *captures, *words;
    } cases[] = {
        {"ci12_le", "", "", "ci12_le"},
        {"xi16_le", "", "", "core:datatype"},
        {"ci16_xe", "", "", "ci16_xe"},
        {"cf32_le", ",\"core:sample_rate\":0", "", "core:sample_rate is 0"},
        {"cf32_le", ",\"core:sample_rate\":-5", "", "core:sample_rate is -5"},
        {"cf32_le", ",\"core:sample_rate\":\"1e6\"", "", "core:sample_rate is \"1e6\""},
        {"cf32_le", ",\"core:sample_rate\":1e400", "", "no JSON"},
        {"cf32_le", ",\"core:num_channels\":0", "", "core:num_channels is 0"},
        {"cf32_le", ",\"core:num_channels\":257", "", "core:num_channels is 257"},
        {"cf32_le", ",\"core:num_channels\":1.5", "", "core:num_channels is 1.5"},
        {"cf32_le", ",\"core:dataset\":\"../x\"", "", "core:dataset is \"../x\""},
        {"cf32_le", ",\"core:dataset\":\"..\"", "", "core:dataset"},
        {"cf32_le", ",\"core:dataset\":\"\"", "", "core:dataset"},
        {"cf32_le", ",\"core:metadata_only\":true", "", "core:metadata_only"},
        {"cf32_le", ",\"core:trailing_bytes\":9223372036854775807", "", "no samples"},
        {"cf32_le", ",\"core:version\":\"1\"", "", "no JSON: line 1: duplicate"},
        {"cf32_le", "", "{}", "captures[0]: core:sample_start is missing"},
        {"cf32_le", "", "3", "captures[0]"},
        {"cf32_le", "", "{\"core:sample_start\":-1}", "core:sample_start is -1"},
        {"cf32_le", "", "{\"core:sample_start\":5}", "sample 5 of the data file, which has 4"},
        {"cf32_le", "", "{\"core:sample_start\":2},{\"core:sample_start\":1}", "captures[1]"},
        {"cf32_le", ",\"core:offset\":9", "{\"core:sample_start\":2}", "before core:offset, 9"},
        {"cf32_le", "", "{\"core:sample_start\":0,\"core:header_bytes\":31}", "no samples"},
        {"cf32_le", "",
         "{\"core:sample_start\":0,\"core:global_index\":7},"
         "{\"core:sample_start\":3,\"core:global_index\":9}",
         "from 7 to 9 over 3 samples"},
        {"cf32_le", "", "{\"core:sample_start\":0,\"core:datetime\":\"yesterday\"}", "yesterday"},
        {"cf32_le", "", "{\"core:sample_start\":0,\"core:datetime\":5}", "core:datetime is 5"},
    };
    unsigned char bytes[32] = {0};
    pnr_config config = source_config("x.sigmf-meta");

    write_file("x.sigmf-data", bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_meta(cases[i].datatype, cases[i].global, cases[i].captures);
        expect_source_refused(&config, PNR_EDATA, "x.sigmf-meta", cases[i].words, NULL);
    }
    write_text("x.sigmf-meta", "[]");
    expect_source_refused(&config, PNR_EDATA, "this is no SigMF metadata", NULL);
    write_text("x.sigmf-meta", "{\"global\":{\"core:datatype\":\"ri8\"},\"captures\":[]}");
    expect_source_refused(&config, PNR_EDATA, "core:version is missing", NULL);
    remove_file("x.sigmf-data");
    write_meta("cf32_le", "", "");
    expect_source_refused(&config, PNR_ENOINPUT, "x.sigmf-data", "data file", NULL);
    remove_file("x.sigmf-meta");
    write_file("x.sigmf-data", bytes, sizeof bytes);
    config = source_config("x.sigmf-data");
    expect_source_refused(&config, PNR_ENOINPUT, "x.sigmf-meta", "metadata", NULL);
    remove_file("x.sigmf-data");
}

TEST(test_data_cut_short_while_read)
{
    static taken got;
    unsigned char bytes[32];
    pnr_config config = source_config("x.sigmf-data");

    fill_bytes(bytes, sizeof bytes);
    write_meta("ci16_le", "", "");
    write_file("x.sigmf-data", bytes, sizeof bytes);
    pnr_source *source = open_source(&config);
    assert_int_equal(truncate(config.source.input, 13), 0);
    take_all(source, 2, &got);
    assert_int_equal(got.end, PNR_EDATA);
    assert_non_null(strstr(got.error.text, "3 samples came, 5 more"));
    expect_bytes(&got, bytes, 12);
    pnr_source_close(source);
    remove_recording();
}

/* A mutated header is refused in words, or what it describes is consistent. */
TEST(test_mutated_metadata)
{
    static const char meta[] =
        "{\"global\":{\"core:datatype\":\"ci16_le\",\"core:version\":\"1.2.0\","
        "\"core:sample_rate\":1000000,\"core:num_channels\":1,\"core:offset\":0},"
        "\"captures\":[{\"core:sample_start\":0,\"core:global_index\":0,"
        "\"core:datetime\":\"2026-11-21T02:40:12Z\"},"
        "{\"core:sample_start\":5,\"core:global_index\":9,\"core:header_bytes\":4}],"
        "\"annotations\":[{\"core:label\":\"clipped\",\"core:sample_count\":3}]}";
    uint64_t seed = 11;
    size_t n_refused = 0;

    for (int round = 0; round < 1000; round++) {
        char text[sizeof meta];
        size_t length = sizeof meta - 1;
        pnr_sigmf_meta out;
        pnr_error error = {0};

        memcpy(text, meta, sizeof meta);
        for (uint64_t n = 1 + pnr_random_next(&seed) % 3; n > 0; n--)
            text[pnr_random_next(&seed) % length] = (char)(32 + pnr_random_next(&seed) % 95);
        if (round % 10 == 0)
            length = pnr_random_next(&seed) % length;

        const int code = pnr_sigmf_meta_read(text, length, &out, &error);

        if (code != PNR_OK) {
            assert_int_equal(code, PNR_EDATA);
            assert_true(error.text[0] != '\0');
            assert_null(out.captures);
            n_refused++;
            continue;
        }
        assert_true(pnr_format_get(out.format)->bytes > 0);
        assert_true(out.n_channels >= 1 && out.n_channels <= PNR_SIGMF_MAX_CHANNELS);
        for (size_t i = 1; i < out.n_captures; i++)
            assert_true(out.captures[i].first >= out.captures[i - 1].first);
        pnr_sigmf_meta_clear(&out);
    }
    assert_true(n_refused > 500 && n_refused < 1000);
}

/* Parts that begin in a capture, in a gap, and after the header of a capture. */
TEST(test_parts)
{
    pnr_config config = source_config("x.sigmf-meta");
    unsigned char bytes[4000];

    fill_bytes(bytes, sizeof bytes);
    write_file("x.sigmf-data", bytes, sizeof bytes);
    write_meta("ci16_be", "",
               "{\"core:sample_start\":0,\"core:global_index\":1000,\"core:header_bytes\":5},"
               "{\"core:sample_start\":300,\"core:global_index\":1350},"
               "{\"core:sample_start\":310,\"core:global_index\":2000,\"core:header_bytes\":11},"
               "{\"core:sample_start\":600,\"core:global_index\":2290}");
    expect_parts(&config);
    remove_recording();
}

TESTS_BETWEEN(make_folder, remove_folder)
