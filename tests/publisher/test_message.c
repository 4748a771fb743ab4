/* SPDX-License-Identifier: MIT */
/* A written message is read back with the words of the wire format; every other text is refused. */
#include "publisher/message.h"

#include "tests/fixture/report_fixture.h"

#include <float.h>
#include <jansson.h>

/* Same within the 12 digits of the wire; null and NAN are the same. */
static void assert_close(double a, double b)
{
    if (isnan(a) && isnan(b))
        return;
    if (!(fabs(a - b) <= 1e-11 * fabs(a)))
        fail_msg("%.17g is not %.17g", a, b);
}

/* To single precision. */
static void assert_near(double a, double b)
{
    if (isnan(a) && isnan(b))
        return;
    if (!(fabs(a - b) <= (double)FLT_EPSILON * fabs(a)))
        fail_msg("%.17g is not %.17g", a, b);
}

static void assert_same_header(const pnr_report *a, const pnr_report *b)
{
    assert_string_equal(a->run, b->run);
    assert_string_equal(a->stream, b->stream);
    assert_string_equal(a->engine, b->engine);
    assert_true(a->seq == b->seq);
    assert_true(a->sample == b->sample);
    assert_int_equal(a->has_time, b->has_time);
    assert_true(a->time_ns == b->time_ns);
    assert_int_equal(a->time_source, b->time_source);
    assert_close(a->rate_hz, b->rate_hz);
    assert_int_equal(a->periods, b->periods);
    assert_true(a->lost == b->lost);
    assert_true(a->lost_before == b->lost_before);
    assert_int_equal(a->slip, b->slip);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->cells_above, b->cells_above);
    assert_close(a->pfa_cell, b->pfa_cell);
    assert_int_equal(a->detection.n_echoes, b->detection.n_echoes);
}

typedef void (*compare)(double a, double b);

static void assert_same_echo(const pnr_echo *a, const pnr_echo *b, compare same)
{
#define SAME_COUNT(x, name) assert_int_equal(a->name, b->name);
#define SAME_WIDE(x, name) assert_close(a->name, b->name);
#define SAME_NARROW(x, name) same(a->name, b->name);
#define NOT_COMPARED(x, name)
    assert_string_equal(a->code_name.text, b->code_name.text);
    PNR_ECHO_FIELDS(SAME_COUNT, SAME_COUNT, SAME_WIDE, SAME_NARROW, )
}

static const pnr_zero tracked = {true, 3.25e-6, 1.5e-9, 33.5, -2.75, 0.125, -1e-7};

static void assert_same_zero(const pnr_zero *a, const pnr_zero *b, compare same)
{
    assert_int_equal(a->is_tracked, b->is_tracked);
    if (!a->is_tracked)
        return;
    PNR_ZERO_FIELDS(SAME_WIDE, SAME_NARROW, NOT_COMPARED, )
}

static size_t write_range(const pnr_report *report, char *text)
{
    const size_t length = pnr_message_write_range(report, text, PNR_MESSAGE_MAX);

    assert_true(length > 0);
    assert_int_equal(length, strlen(text));
    return length;
}

TEST(test_range_text)
{
    static char text[PNR_MESSAGE_MAX];
    pnr_report report;

    report_fixture(&report, 1);
    report.flags = PNR_FLAG_LOST | PNR_FLAG_MORE_ECHOES;
    report.lost = 3;
    report.lost_before = 5;
    report.slip = 965;
    write_range(&report, text);
    assert_string_equal(
        text,
        "{\"v\":1,\"run\":\"9f2c00112233aabb\",\"stream\":\"demo\",\"seq\":41,\"sample\":\"41943\","
        "\"time\":\"2026-11-21T02:40:12.000041943Z\",\"time_source\":\"file\",\"rate_hz\":1000000,"
        "\"periods\":1,"
        "\"lost\":3,\"lost_before\":5,\"slip\":965,\"flags\":[\"lost\",\"more-echoes\"],"
        "\"engine\":\"cuda/walsh\",\"latency_us\":61.25,\"noise_db\":-12.4,\"pfa_cell\":1e-6,"
        "\"cells_above\":7,\"echoes\":[{\"code\":1,\"code_name\":\"prn "
        "1\",\"channel\":1,\"delay_s\":0."
        "0025,"
        "\"delay_samples\":2500.125,\"delay_sigma_s\":1.5e-8,\"range_m\":374740.625,"
        "\"range_sigma_m\":2.25,\"snr_db\":27.5,\"looks\":4,\"statistic_db\":28.25,"
        "\"cn0_dbhz\":57.5,\"amplitude\":0.015625,"
        "\"amplitude_sigma\":0.0009765625,\"phase_rad\":-1.25,\"phase_sigma_rad\":0.0625,"
        "\"doppler_hz\":null,\"doppler_sigma_hz\":null,\"velocity_mps\":null,"
        "\"velocity_sigma_mps\":null}]}");

    report_fixture(&report, 0);
    report.has_time = false;
    report.time_source = PNR_TIME_NONE;
    report.detection.noise_power = 0;
    report.sample = UINT64_MAX;
    report.zero = tracked;
    report.zero.snr_db = NAN;
    report.flags = PNR_FLAG_ZERO_ALARM;
    write_range(&report, text);
    assert_non_null(strstr(text, "\"cells_above\":7,\"zero\":{\"delay_s\":3.25e-6,"
                                 "\"sigma_s\":1.5e-9,\"snr_db\":null,\"drift_ppm\":-2.75,"
                                 "\"held_s\":0.125,\"moved_s\":-1e-7},\"echoes\""));
    assert_non_null(strstr(text, "\"sample\":\"18446744073709551615\",\"time\":null,"
                                 "\"time_source\":\"none\""));
    assert_non_null(strstr(text, "\"flags\":[\"zero-alarm\"],"));
    assert_non_null(strstr(text, "\"noise_db\":null,"));
    assert_non_null(strstr(text, "\"echoes\":[]}"));
}

TEST(test_range_round_trip)
{
    static char text[PNR_MESSAGE_MAX];
    pnr_report report, read;
    pnr_error error;
    size_t n, i;

    for (n = 0; n <= PNR_MAX_CANDIDATES; n++) {
        report_fixture(&report, n);
        report.flags = (unsigned)n & 127;
        report.zero = tracked;
        report.zero.is_tracked = n % 2 != 0;
        report.zero.held_s = n % 4 == 1 ? NAN : 0;
        report.time_source = (pnr_time_source)(n % PNR_N_TIME_SOURCES);
        report.has_time = report.time_source != PNR_TIME_NONE;
        if (!report.has_time)
            report.time_ns = 0;
        report.lost = n * 1000;
        report.seq = n << 40;
        if (n > 0)
            report.detection.echoes[n - 1].phase_rad = NAN;
        assert_int_equal(pnr_message_read_range(text, write_range(&report, text), &read, &error),
                         PNR_OK);
        assert_same_header(&report, &read);
        assert_close(report.latency_us, read.latency_us);
        assert_same_zero(&report.zero, &read.zero, assert_close);
        assert_true(!read.zero.is_tracked || read.zero.moved_s == tracked.moved_s);
        assert_close(report.detection.noise_power, read.detection.noise_power);
        for (i = 0; i < n; i++)
            assert_same_echo(&report.detection.echoes[i], &read.detection.echoes[i], assert_close);
    }
}

/* The longest that there can be fits, every shorter memory is refused, and nothing is written
 * beyond it. */
TEST(test_range_capacity)
{
    static char text[PNR_MESSAGE_MAX], cut[PNR_MESSAGE_MAX];
    pnr_report report;
    size_t length, i;

    report_fixture(&report, PNR_MAX_CANDIDATES);
    memset(report.stream, 1, sizeof report.stream - 1); /* six bytes each */
    memset(report.engine, '"', sizeof report.engine - 1);
    report.seq = report.sample = report.lost = report.lost_before = UINT64_MAX;
    report.slip = UINT32_MAX;
    report.flags = 127;
    report.zero = tracked;
    for (i = 0; i < PNR_MAX_CANDIDATES; i++) {
#define LONGEST_COUNT(e, name) (e)->name = UINT32_MAX;
#define LONGEST_VALUE(e, name) (e)->name = -1.23456789012e-300;
        PNR_ECHO_FIELDS(LONGEST_COUNT, LONGEST_COUNT, LONGEST_VALUE, LONGEST_VALUE,
                        &report.detection.echoes[i])
    }
    length = write_range(&report, text);
    assert_true(length < PNR_MESSAGE_MAX);
    for (i = 0; i <= length; i += i < 300 || i + 300 > length ? 1 : 97) {
        memset(cut, 'x', sizeof cut);
        assert_int_equal(pnr_message_write_range(&report, cut, i), 0);
        assert_int_equal(cut[i], 'x');
    }
    assert_int_equal(pnr_message_write_range(&report, cut, length + 1), length);
}

static int read_refused_range(const char *text, size_t length, pnr_error *error)
{
    static pnr_report read;
    const int code = pnr_message_read_range(text, length, &read, error);

    assert_int_equal(read.detection.n_echoes, 0);
    return code;
}

TEST(test_range_refused)
{
    static const text_change cases[] = {
        {"\"v\":1", "\"v\":2", "\"v\""},
        {"\"v\":1", "\"v\":\"1\"", "\"v\""},
        {"\"v\":1,", "", "\"v\""},
        {"9f2c00112233aabb", "9f2c00112233aab", "run"},
        {"9f2c00112233aabb", "9f2c00112233aabbc", "run"},
        {"9f2c00112233aabb", "9f2c00112233aabg", "run"},
        {"\"demo\"", "\"\"", "stream"},
        {"\"demo\"", "\"de\\u001bmo\"", "stream"},
        {"\"demo\"", "\"de\\u0000mo\"", "JSON"},
        {"\"demo\"", "7", "stream"},
        {"\"seq\":41", "\"seq\":-1", "seq"},
        {"\"seq\":41", "\"seq\":41.5", "seq"},
        {"\"seq\":41", "\"seq\":\"41\"", "seq"},
        {"\"seq\":41", "\"seq\":41,\"seq\":42", "JSON"},
        {"\"sample\":\"41943\"", "\"sample\":41943", "sample"},
        {"\"41943\"", "\"\"", "sample"},
        {"\"41943\"", "\"041943\"", "sample"},
        {"\"41943\"", "\"-1\"", "sample"},
        {"\"41943\"", "\" 1\"", "sample"},
        {"\"41943\"", "\"1e3\"", "sample"},
        {"\"41943\"", "\"18446744073709551616\"", "sample"},
        {"\"41943\"", "\"99999999999999999999999\"", "sample"},
        {"2026-11-21", "2026-13-21", "time"},
        {"\"2026-11-21T02:40:12.000041943Z\"", "0", "time"},
        {"\"file\"", "\"gps\"", "time_source"},
        {"\"periods\":1", "\"periods\":4294967296", "periods"},
        {"\"flags\":[]", "\"flags\":[\"lots\"]", "flags"},
        {"\"flags\":[]", "\"flags\":[\"lost\",\"lost\"]", "flags"},
        {"\"flags\":[]", "\"flags\":[3]", "flags"},
        {"\"flags\":[]", "\"flags\":null", "flags"},
        {"\"latency_us\":61.25", "\"latency_us\":\"61\"", "latency_us"},
        {"\"latency_us\":61.25", "\"latency_us\":NaN", "JSON"},
        {"\"latency_us\":61.25", "\"latency_us\":1e999", "JSON"},
        {"\"echoes\":[", "\"echoes\":[5,", "echoes"},
        {"\"echoes\":[{", "\"echoes\":{\"a\":{", "JSON"},
        {"\"range_m\":374740.625,", "", "range_m"},
        {"\"velocity_mps\":null", "\"velocity_mps\":false", "velocity_mps"},
        {"\"rate_hz\":1000000", "\"rate_hz\":0", "rate_hz"},
        {"\"rate_hz\":1000000,", "", "rate_hz"},
        {"\"code\":1,", "\"code\":0,", "code"},
        {"\"code_name\":\"prn 1\"", "\"code_name\":\"a name too long\\u0007\"", "code_name"},
        {"\"code_name\":\"prn 1\"", "\"code_name\":\"16 bytes, no NUL\"", "code_name"},
        {"\"code_name\":\"prn 1\"", "\"code_name\":\"a\\u009b2J\"", "code_name"},
        {"\"velocity_sigma_mps\":null}]}", "\"velocity_sigma_mps\":null}]} {}", "JSON"},
        {"\"velocity_sigma_mps\":null}]}", "\"velocity_sigma_mps\":null}]", "JSON"},
    };
    static char text[PNR_MESSAGE_MAX], many[PNR_MESSAGE_MAX];
    pnr_report report;

    report_fixture(&report, 1);
    write_range(&report, text);
    expect_changes_refused(text, cases, COUNT(cases), read_refused_range);
    strcpy(many, "\"echoes\":[{}");
    for (size_t i = 0; i < PNR_MAX_CANDIDATES; i++)
        strcat(many, ",{}");
    strcat(many, "],\"x\":[");
    expect_changes_refused(text, &(text_change){"\"echoes\":[", many, "echoes"}, 1,
                           read_refused_range);
}

TEST(test_unknown_keys_pass)
{
    static char text[PNR_MESSAGE_MAX];
    pnr_report report, read;
    pnr_error error;
    size_t length;

    report_fixture(&report, 2);
    length = write_range(&report, text);
    strcpy(text + length - 1, ",\"later\":{\"a\":[1]}}");
    assert_int_equal(pnr_message_read_range(text, strlen(text), &read, &error), PNR_OK);
    assert_same_header(&report, &read);
}

/* --- packed results --- */

typedef struct packed {
    char header[4096];
    size_t length;
    pnr_record records[64];
    size_t n_records;
    pnr_report reports[4];
} packed;

static void fill_pack(packed *p)
{
    static const size_t n_echoes[] = {2, 0, 1, 3};
    size_t i, k;

    memset(p, 0, sizeof *p);
    for (i = 0; i < 4; i++) {
        pnr_report *r = &p->reports[i];

        report_fixture(r, n_echoes[i]);
        r->seq = 41 + i + (i > 1 ? 5 : 0); /* five were refused between */
        r->sample += i * 1023;
        r->has_time = i != 2;
        r->time_ns = r->has_time ? r->time_ns + (int64_t)i : 0;
        r->flags = (unsigned)(i * 39 & 127);
        r->zero = tracked;
        r->zero.is_tracked = i != 1;
        r->lost = i == 3 ? UINT64_C(1) << 40 : i;
        r->lost_before = i * 10;
        r->slip = (uint32_t)(i % 2) * 1022;
        for (k = 0; k < n_echoes[i] || k == 0; k++)
            pnr_message_fill_record(r, k, &p->records[p->n_records++]);
    }
    p->length =
        pnr_message_write_pack(&p->reports[0], 4, p->n_records, p->header, sizeof p->header);
    assert_true(p->length > 0);
}

TEST(test_pack_round_trip)
{
    packed p;
    pnr_report read;
    pnr_error error;
    pnr_pack pack;
    size_t i, k;

    fill_pack(&p);
    assert_int_equal(p.n_records, 7);
    assert_non_null(strstr(p.header, "\"pack\":true"));
    assert_int_equal(pnr_message_open_pack(p.header, p.length, p.records,
                                           p.n_records * sizeof p.records[0], &pack, &error),
                     PNR_OK);
    for (i = 0; i < 4; i++) {
        assert_true(pnr_message_next_dwell(&pack, &read));
        assert_same_header(&p.reports[i], &read);
        assert_near(p.reports[i].latency_us, read.latency_us);
        assert_same_zero(&p.reports[i].zero, &read.zero, assert_near);
        assert_true(fabs(log(p.reports[i].detection.noise_power / read.detection.noise_power)) <
                    1e-6);
        for (k = 0; k < read.detection.n_echoes; k++)
            assert_same_echo(&p.reports[i].detection.echoes[k], &read.detection.echoes[k],
                             assert_near);
    }
    assert_false(pnr_message_next_dwell(&pack, &read));
}

/* The dtype names each member once, in order, and its sizes add up to the record. */
TEST(test_dtype)
{
    json_t *dtype = json_loads(pnr_record_dtype, 0, NULL);
    size_t bytes = 0, i;

    assert_true(json_is_array(dtype));
    for (i = 0; i < json_array_size(dtype); i++) {
        const json_t *member = json_array_get(dtype, i);
        const char *type = json_string_value(json_array_get(member, 1));

        assert_int_equal(json_array_size(member), 2);
        assert_int_equal(type[0], strcmp(type, "|S16") == 0 ? '|' : '<');
        if (strcmp(json_string_value(json_array_get(member, 0)), "range_m") == 0)
            assert_int_equal(bytes, offsetof(pnr_record, range_m));
        if (strcmp(json_string_value(json_array_get(member, 0)), "echo") == 0)
            assert_int_equal(bytes, offsetof(pnr_record, echo));
        bytes += strtoul(type + 2, NULL, 10);
    }
    assert_int_equal(bytes, sizeof(pnr_record));
    json_decref(dtype);
}

static void check_pack_refused(const packed *p, size_t bytes, const char *word)
{
    pnr_error error = {0};
    pnr_pack pack;

    assert_int_equal(pnr_message_open_pack(p->header, p->length, p->records, bytes, &pack, &error),
                     PNR_EDATA);
    if (strstr(error.text, word) == NULL)
        fail_msg("\"%s\" does not name %s", error.text, word);
}

TEST(test_pack_refused)
{
    const size_t bytes = 7 * sizeof(pnr_record);
    packed p;

    fill_pack(&p);
    check_pack_refused(&p, bytes - 1, "n_records");
    check_pack_refused(&p, bytes - sizeof(pnr_record), "n_records");
    check_pack_refused(&p, 0, "n_records");
    p.records[0].n_echoes = 65;
    check_pack_refused(&p, bytes, "n_echoes");
    fill_pack(&p);
    p.records[6].echo = 1;
    check_pack_refused(&p, bytes, "echo");
    fill_pack(&p);
    p.records[1].seq++;
    check_pack_refused(&p, bytes, "echo");
    fill_pack(&p);
    p.records[4].n_echoes = 9; /* beyond the array's end */
    check_pack_refused(&p, bytes, "n_echoes");
    fill_pack(&p);
    p.records[0].code = 0;
    check_pack_refused(&p, bytes, "code");
    fill_pack(&p);
    memset(p.records[1].code_name.text, 'x', PNR_CODE_LABEL_LEN);
    check_pack_refused(&p, bytes, "code_name");
    strcpy(p.records[1].code_name.text, "a\x9b\x32J");
    check_pack_refused(&p, bytes, "code_name");
    strcpy(p.records[1].code_name.text, "a\xff");
    check_pack_refused(&p, bytes, "code_name");
    fill_pack(&p);
    p.records[2].flags = 1 << 20;
    check_pack_refused(&p, bytes, "flags");
    fill_pack(&p);
    p.records[2].time_ns = -5;
    check_pack_refused(&p, bytes, "time_ns");
    fill_pack(&p);
    p.records[2].time_ns = INT64_MAX; /* in 2262: no text for it */
    check_pack_refused(&p, bytes, "time_ns");
    fill_pack(&p);
    p.length = pnr_message_write_pack(&p.reports[0], 3, 7, p.header, sizeof p.header);
    check_pack_refused(&p, bytes, "n_results");
    fill_pack(&p);
    *strstr(p.header, "<u8") = '>';
    check_pack_refused(&p, bytes, "dtype");
}

/* Records at an odd address, and infinities, do no harm. */
TEST(test_pack_odd)
{
    const size_t bytes = 7 * sizeof(pnr_record);
    char odd[7 * sizeof(pnr_record) + 1];
    packed p;
    pnr_report read;
    pnr_error error;
    pnr_pack pack;

    fill_pack(&p);
    p.records[0].range_m = INFINITY;
    p.records[0].snr_db = -INFINITY;
    memcpy(odd + 1, p.records, bytes);
    assert_int_equal(pnr_message_open_pack(p.header, p.length, odd + 1, bytes, &pack, &error),
                     PNR_OK);
    assert_true(pnr_message_next_dwell(&pack, &read));
    assert_true(isnan(read.detection.echoes[0].range_m));
    assert_true(isnan(read.detection.echoes[0].snr_db));
}

/* --- status and end --- */

static void fill_status(pnr_status *status, const pnr_radar *radar, const pnr_config *config)
{
    memset(status, 0, sizeof *status);
    strcpy(status->run, "0123456789abcdef");
    strcpy(status->stream, "demo");
    strcpy(status->engine, "cpu/library");
    status->seq = 3;
    status->elapsed_s = 12.5;
    status->account = (pnr_account){.positions = UINT64_C(9007199254740993), /* 2^53 + 1 */
                                    .used = UINT64_C(9007199254740900),
                                    .lost_ring_full = 93,
                                    .windows = 10,
                                    .processed = 9,
                                    .dropped_shutdown = 1,
                                    .results = 9,
                                    .sent = 8,
                                    .unsent_publish_refused = 1,
                                    .n_clipped = 4,
                                    .deadline_missed = 6};
    status->latency_p50_us = 10;
    status->latency_p99_us = 20;
    status->latency_p999_us = 30;
    status->latency_max_us = 40.5;
    status->deadline_s = 0.001;
    status->ring_fill = 0.375;
    status->subscribers = 2;
    status->radar = radar;
    status->config = config;
}

TEST(test_status)
{
    static char text[PNR_MESSAGE_MAX];
    const pnr_radar radar = {.n_chips = 1023,
                             .n_samples = 4000,
                             .rate_hz = {4000000, 1},
                             .chip_rate_hz = {1023000, 1},
                             .period_s = 1e-3,
                             .gain_db = 36.02,
                             .resolution_m = 146.5,
                             .unambiguous_m = 149896.229};
    const pnr_realtime_outcome realtime = {.lock_memory = "refused: \"no\"",
                                           .acquisition_cpu = "any",
                                           .processing_cpu = "3",
                                           .priority = "none"};
    const pnr_zero_tracker zero = {.last = tracked, .n_alarms = 2, .is_alarm = true};
    const pnr_source_info source = {.loss_visibility = PNR_LOSS_FLAG};
    pnr_config config = {.code.type = PNR_CODE_GPS_L1CA, .radar.carrier_hz = 1575420000};
    pnr_status status;
    pnr_end_summary end;
    pnr_error error;
    json_t *json, *part;
    size_t length;

    fill_status(&status, &radar, &config);
    status.realtime = &realtime;
    status.source = &source;
    status.source_refused = 17;
    status.source_dropped = 18;
    status.zero = &zero;
    length = pnr_message_write_status(&status, text, sizeof text);
    json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "subscribers")), 2);
    assert_null(json_object_get(json, "reason"));
    part = json_object_get(json, "account");
    assert_string_equal(json_string_value(json_object_get(part, "positions")), "9007199254740993");
    assert_string_equal(json_string_value(json_object_get(part, "lost_ring_full")), "93");
    assert_true(json_is_true(json_object_get(part, "closes")));
    assert_string_equal(json_string_value(json_object_get(part, "deadline_missed")), "6");
    assert_close(json_number_value(json_object_get(json, "deadline_s")), 0.001);
    assert_close(json_number_value(json_object_get(json, "ring_fill")), 0.375);
    part = json_object_get(json, "realtime");
    assert_string_equal(json_string_value(json_object_get(part, "lock_memory")), "refused: \"no\"");
    assert_string_equal(json_string_value(json_object_get(part, "acquisition_cpu")), "any");
    assert_string_equal(json_string_value(json_object_get(part, "processing_cpu")), "3");
    assert_string_equal(json_string_value(json_object_get(part, "priority")), "none");
    part = json_object_get(json, "source");
    assert_string_equal(json_string_value(json_object_get(part, "loss_visibility")), "flag");
    assert_int_equal(json_integer_value(json_object_get(part, "refused")), 17);
    assert_int_equal(json_integer_value(json_object_get(part, "dropped")), 18);
    part = json_object_get(json, "latency_us");
    assert_close(json_number_value(json_object_get(part, "max")), 40.5);
    part = json_object_get(json, "zero");
    assert_close(json_number_value(json_object_get(part, "drift_ppm")), -2.75);
    assert_int_equal(json_integer_value(json_object_get(part, "alarms")), 2);
    assert_true(json_is_true(json_object_get(part, "alarm")));
    part = json_object_get(json, "radar");
    assert_int_equal(json_integer_value(json_object_get(part, "n_samples")), 4000);
    assert_close(json_number_value(json_object_get(part, "rate_hz")), 4e6);
    assert_close(json_number_value(json_object_get(part, "unambiguous_m")), 149896.229);
    assert_close(json_number_value(json_object_get(part, "carrier_hz")), 1575420000);
    assert_string_equal(json_string_value(json_object_get(part, "code_type")), "gps-l1ca");
    json_decref(json);

    assert_int_equal(pnr_message_read_status(text, length, &end, &error), PNR_OK);
    assert_string_equal(end.run, status.run);
    assert_close(end.deadline_s, 0.001);
    assert_close(end.ring_fill, 0.375);
    status.deadline_s = 0; /* none */
    length = pnr_message_write_status(&status, text, sizeof text);
    assert_int_equal(pnr_message_read_status(text, length, &end, &error), PNR_OK);
    assert_true(isnan(end.deadline_s));
    assert_memory_equal(&end.account, &status.account, sizeof end.account);
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_EDATA); /* no reason */
}

TEST(test_end)
{
    static char text[PNR_MESSAGE_MAX];
    char reason[400];
    pnr_status status;
    pnr_end_summary end;
    pnr_error error;
    size_t length;

    fill_status(&status, NULL, NULL);
    status.reason = "end of input";
    status.exit_status = 75;
    length = pnr_message_write_status(&status, text, sizeof text);
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_OK);
    assert_string_equal(end.reason, "end of input");
    assert_string_equal(end.stream, "demo");
    assert_int_equal(end.exit_status, 75);
    assert_memory_equal(&end.account, &status.account, sizeof end.account);

    memset(reason, 'r', sizeof reason);
    reason[10] = '\x1b';
    reason[sizeof reason - 1] = '\0';
    status.reason = reason;
    length = pnr_message_write_status(&status, text, sizeof text);
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_OK);
    assert_int_equal(strlen(end.reason), sizeof end.reason - 1);
    assert_int_equal(end.reason[10], '?');

    *strstr(text, "\"sent\":\"8\"") = ' ';
    assert_int_equal(pnr_message_read_end(text, length, &end, &error), PNR_EDATA);
}

/* Every code type has on the wire the word that the configuration has for it. */
TEST(test_words)
{
    static char text[PNR_MESSAGE_MAX];
    static const char *const words[] = {
        "m-sequence", "gold",   "gps-l1ca", "gps-l2c",    "gps-l5", "glonass", "bds-b1i", "bds-b3i",
        "kasami",     "barker", "legendre", "zadoff-chu", "frank",  "p4",      "random",  "file"};
    const pnr_radar radar = {0};
    char setting[64];
    pnr_config config;
    pnr_status status;
    pnr_error error;
    size_t i;

    pnr_config_init(&config);
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        snprintf(setting, sizeof setting, "code.type=%s", words[i]);
        assert_int_equal(pnr_config_set(&config, setting, &error), PNR_OK);
        fill_status(&status, &radar, &config);
        assert_true(pnr_message_write_status(&status, text, sizeof text) > 0);
        snprintf(setting, sizeof setting, "\"code_type\":\"%s\"", words[i]);
        assert_non_null(strstr(text, setting));
    }
    pnr_config_clear(&config);
}

/* --- profiles --- */

static const pnr_profile_info cells = {.is_complex = true,
                                       .n_cells = 2046,
                                       .oversample = 2,
                                       .first_cell = 2040,
                                       .n_gate = 100,
                                       .delay_s = -1.5e-6,
                                       .step_s = 5e-7,
                                       .metres_per_second = 149896229,
                                       .dwell_samples = 4092,
                                       .floor = 0.5,
                                       .threshold = NAN};

static void write_profile(const pnr_profile_info *info, char text[4096])
{
    const pnr_map_info profile = {.row = *info, .n_codes = 1, .n_rows = 1};
    pnr_report report;

    report_fixture(&report, 0);
    assert_true(pnr_message_write_cells(&report, 12, &profile, text, 4096) > 0);
}

TEST(test_profile)
{
    char text[4096];
    pnr_report report, read;
    pnr_profile_info info;
    pnr_error error;

    report_fixture(&report, 0);
    write_profile(&cells, text);
    assert_non_null(strstr(text, "\"seq\":12,\"sample\":\"41943\""));
    assert_non_null(
        strstr(text, "\"profile\":\"complex\",\"dtype\":\"<c8\",\"n_cells\":2046,\"oversample\":2,"
                     "\"first_cell\":2040,\"n_gate\":100,\"delay_s\":-1.5e-6,\"step_s\":5e-7,"
                     "\"metres_per_second\":149896229,\"dwell_samples\":4092,\"floor\":0.5,"
                     "\"threshold\":null}"));
    assert_int_equal(pnr_message_read_profile(text, strlen(text), 2046 * 8, &read, &info, &error),
                     PNR_OK);
    assert_true(read.seq == 12 && read.sample == report.sample && read.time_ns == report.time_ns);
    assert_string_equal(read.run, report.run);
    assert_string_equal(read.stream, report.stream);
    assert_true(info.is_complex && info.n_cells == 2046 && info.oversample == 2);
    assert_true(info.first_cell == 2040 && info.n_gate == 100 && info.dwell_samples == 4092);
    assert_close(info.delay_s, cells.delay_s);
    assert_close(info.step_s, cells.step_s);
    assert_close(info.metres_per_second, cells.metres_per_second);
    assert_close(info.floor, cells.floor);
    assert_true(isnan(info.threshold));
    assert_int_equal(pnr_message_read_profile(text, strlen(text), 2046 * 4, &read, &info, &error),
                     PNR_EDATA);
}

TEST(test_profile_has_the_name_of_its_code)
{
    static const char *const names[] = {"m-sequence n=9 \"a\""};
    static const char number[] = "\"codes\":[12],", none[] = "\"codes\":[],";
    const pnr_map_info profile = {.row = cells, .n_codes = 1, .n_rows = 1, .code_names = names};
    char text[4096], *codes;
    pnr_report report, read;
    pnr_profile_info info;
    pnr_error error;
    size_t length;

    report_fixture(&report, 0);
    length = pnr_message_write_cells(&report, 12, &profile, text, sizeof text);
    codes = strstr(text, "\"codes\":[\"m-sequence n=9 \\\"a\\\"\"],");
    assert_non_null(codes);
    assert_int_equal(pnr_message_read_profile(text, length, 2046 * 8, &read, &info, &error),
                     PNR_OK);
    assert_string_equal(info.code, names[0]);
    memset(codes, ' ', strlen("\"codes\":[\"m-sequence n=9 \\\"a\\\"\"],"));
    assert_int_equal(pnr_message_read_profile(text, length, 2046 * 8, &read, &info, &error),
                     PNR_OK);
    assert_string_equal(info.code, "");
    memcpy(codes, number, strlen(number));
    assert_int_equal(pnr_message_read_profile(text, length, 2046 * 8, &read, &info, &error),
                     PNR_EDATA);
    memset(codes, ' ', strlen(number));
    memcpy(codes, none, strlen(none));
    assert_int_equal(pnr_message_read_profile(text, length, 2046 * 8, &read, &info, &error),
                     PNR_EDATA);
    assert_non_null(strstr(error.text, "codes"));
}

static int read_profile(const char *text, size_t length, pnr_error *error)
{
    static pnr_report read;
    pnr_profile_info info;

    return pnr_message_read_profile(text, length, 2046 * 8, &read, &info, error);
}

TEST(test_profile_refused)
{
    static const text_change cases[] = {
        {"\"complex\"", "\"phase\"", "profile"},
        {"\"<c8\"", "\"<f4\"", "dtype"},
        {"\"n_cells\":2046", "\"n_cells\":2047", "n_cells"},
        {"\"n_cells\":2046", "\"n_cells\":0", "n_cells"},
        {"\"oversample\":2", "\"oversample\":0", "oversample"},
        {"\"first_cell\":2040", "\"first_cell\":2046", "first_cell"},
        {"\"n_gate\":100", "\"n_gate\":0", "n_gate"},
        {"\"n_gate\":100", "\"n_gate\":2047", "n_gate"},
        {"\"delay_s\":-1.5e-6", "\"delay_s\":null", "delay_s"},
        {"\"step_s\":5e-7", "\"step_s\":0", "step_s"},
        {"\"metres_per_second\":149896229,", "", "metres_per_second"},
        {"\"dwell_samples\":4092", "\"dwell_samples\":0", "dwell_samples"},
        {"\"floor\":0.5", "\"floor\":\"low\"", "floor"},
    };
    char text[4096];

    write_profile(&cells, text);
    expect_changes_refused(text, cases, COUNT(cases), read_profile);
}

/* --- events --- */

TEST(test_event)
{
    static pnr_event event = {.kind = PNR_EVENT_SLIP,
                              .utc_ns = INT64_C(1763692812000041943),
                              .sample = UINT64_MAX - 1,
                              .count = 7,
                              .numbers = {965, 1000},
                              .text = "slip: \"965\" \xff samples"};
    pnr_event_summary read;
    pnr_error error;
    char text[2048];

    for (int i = 0; i < 2; i++) {
        const size_t length =
            pnr_message_write_event("0123456789abcdef", "demo", 5, &event, text, sizeof text);
        json_t *root = json_loadb(text, length, 0, NULL);

        assert_true(json_number_value(json_object_get(root, "vanished")) == 965);
        json_decref(root);
        assert_int_equal(pnr_message_read_event(text, length, &read, &error), PNR_OK);
        assert_string_equal(read.run, "0123456789abcdef");
        assert_string_equal(read.stream, "demo");
        assert_string_equal(read.kind, "slip");
        assert_true(read.seq == 5 && read.utc_ns == event.utc_ns && read.count == 7);
        assert_true(read.sample == event.sample);
        assert_string_equal(read.text, "slip: \"965\" \xef\xbf\xbd samples");
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(pnr_message_read_event(text, cut, &read, &error), PNR_EDATA);
        event.sample = PNR_EVENT_NO_SAMPLE;
    }
}

/* Later versions have other kinds, and texts that a terminal would obey are refused. */
TEST(test_strange_events)
{
    static const char *const good = "{\"v\":1,\"run\":\"0123456789abcdef\",\"stream\":\"demo\","
                                    "\"seq\":0,\"event\":\"flood\",\"time\":"
                                    "\"2026-11-21T02:40:12Z\",\"sample\":null,\"count\":1,"
                                    "\"text\":\"water\"}";
    static const char *const changes[][2] = {{"water", "wa\\u001bter"},
                                             {"water", "\\u009b"},
                                             {"flood", "\\u0007"},
                                             {"null", "1"},
                                             {"null", "\"-1\""},
                                             {":12Z", ":12"},
                                             {"\"count\":1", "\"count\":-1"}};
    pnr_event_summary read;
    pnr_error error;
    char text[1024];

    assert_int_equal(pnr_message_read_event(good, strlen(good), &read, &error), PNR_OK);
    assert_string_equal(read.kind, "flood");
    for (size_t i = 0; i < COUNT(changes); i++) {
        const char *at = strstr(good, changes[i][0]);

        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, changes[i][1],
                 at + strlen(changes[i][0]));
        assert_int_equal(pnr_message_read_event(text, strlen(text), &read, &error), PNR_EDATA);
    }
}

/* A text that no publisher writes is refused before it takes memory. */
TEST(test_long_text)
{
    char *text = malloc(PNR_MESSAGE_MAX + 1);
    pnr_end_summary end;
    pnr_error error;

    memset(text, ' ', PNR_MESSAGE_MAX + 1);
    assert_int_equal(pnr_message_read_end(text, PNR_MESSAGE_MAX + 1, &end, &error), PNR_EDATA);
    assert_non_null(strstr(error.text, "65537 bytes: at most 65536"));
    assert_int_equal(pnr_message_read_end(text, PNR_MESSAGE_MAX, &end, &error), PNR_EDATA);
    assert_non_null(strstr(error.text, "no JSON"));
    free(text);
}
