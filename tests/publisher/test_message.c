/* SPDX-License-Identifier: MIT */
/* A written message is read back with the words of the wire format; every other text is refused. */
#include "publisher/message.h"

#include "tests/fixture/report_fixture.h"

#include <float.h>
#include <jansson.h>

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
    report.zero = zero_fixture;
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
        report.zero = zero_fixture;
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
        assert_true(!read.zero.is_tracked || read.zero.moved_s == zero_fixture.moved_s);
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
    report.zero = zero_fixture;
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
        r->zero = zero_fixture;
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
