/* SPDX-License-Identifier: MIT */
/* The header of a map describes the cells that follow it, and any other header is refused. */
#include "publisher/message.h"

#include "tests/fixture/report_fixture.h"

#include <jansson.h>

enum { CAPACITY = 8192 };
static const char *const names[] = {"gps-l1ca prn=29", "a \"second\""};

/* Seven rows: five at even steps, and two more after half a step. */
static pnr_map_info map = {.row = {.n_cells = 2046,
                                   .oversample = 2,
                                   .first_cell = 2040,
                                   .n_gate = 100,
                                   .delay_s = -1.5e-6,
                                   .step_s = 5e-7,
                                   .metres_per_second = 149896229,
                                   .dwell_samples = 4092,
                                   .floor = 0.5,
                                   .threshold = 7.25},
                           .n_codes = 2,
                           .n_rows = 7,
                           .code_names = names,
                           .mps_per_hz = 0.0375,
                           .n_runs = 2,
                           .runs = {{-500, 250, 5}, {625, 250, 2}}};
enum { BYTES = 2 * 7 * 2046 * 4 };

static size_t write_map(const pnr_map_info *info, char text[CAPACITY])
{
    pnr_report report;
    size_t length;

    report_fixture(&report, 0);
    length = pnr_message_write_cells(&report, 12, info, text, CAPACITY);
    assert_true(length > 0 && length == strlen(text));
    return length;
}

TEST(test_text)
{
    char text[CAPACITY];
    json_t *json;
    size_t length;

    length = write_map(&map, text);
    json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    json_decref(json);
    assert_non_null(strstr(
        text,
        "\"seq\":12,\"sample\":\"41943\",\"time\":\"2026-11-21T02:40:12.000041943Z\","
        "\"time_source\":\"file\",\"rate_hz\":1000000,\"engine\":\"cuda/"
        "walsh\",\"map\":\"power\",\"dtype\":\"<f4\","
        "\"shape\":[2,7,2046],\"codes\":[\"gps-l1ca prn=29\",\"a \\\"second\\\"\"],"
        "\"doppler\":[{\"first_hz\":-500,\"step_hz\":250,\"n_rows\":5},"
        "{\"first_hz\":625,\"step_hz\":250,\"n_rows\":2}],\"mps_per_hz\":0.0375,\"oversample\":2,"
        "\"first_cell\":2040,\"n_gate\":100,\"delay_s\":-1.5e-6,\"step_s\":5e-7,"
        "\"metres_per_second\":149896229,\"dwell_samples\":4092,\"floor\":0.5,"
        "\"threshold\":7.25}"));
}

TEST(test_round_trip)
{
    static const double doppler_hz[] = {-500, -250, 0, 250, 500, 625, 875};
    static pnr_map_info info;
    pnr_map_info complex_map = map;
    char text[CAPACITY];
    pnr_report report, read;
    pnr_error error;
    size_t length, i;

    report_fixture(&report, 0);
    length = write_map(&map, text);
    assert_int_equal(pnr_message_read_map(text, length, BYTES, &read, &info, &error), PNR_OK);
    assert_true(read.seq == 12 && read.sample == report.sample && read.time_ns == report.time_ns);
    assert_string_equal(read.run, report.run);
    assert_string_equal(read.stream, report.stream);
    assert_string_equal(read.engine, report.engine);
    assert_true(info.n_codes == 2 && info.n_rows == 7 && info.n_runs == 2);
    assert_true(info.mps_per_hz == 0.0375);
    for (i = 0; i < 7; i++) {
        assert_true(pnr_map_doppler_hz(&info, i) == doppler_hz[i]);
        assert_true(pnr_map_doppler_hz(&map, i) == doppler_hz[i]);
    }
    assert_memory_equal(&info.row, &map.row, sizeof info.row);

    complex_map.row.is_complex = true;
    complex_map.row.threshold = complex_map.mps_per_hz = NAN;
    length = write_map(&complex_map, text);
    assert_non_null(strstr(text, "\"map\":\"complex\",\"dtype\":\"<c8\""));
    assert_int_equal(pnr_message_read_map(text, length, BYTES, &read, &info, &error), PNR_EDATA);
    assert_int_equal(pnr_message_read_map(text, length, 2 * BYTES, &read, &info, &error), PNR_OK);
    assert_true(info.row.is_complex && isnan(info.row.threshold) && isnan(info.mps_per_hz));
}

static int read_map(const char *text, size_t length, pnr_error *error)
{
    static pnr_report read;
    static pnr_map_info info;

    return pnr_message_read_map(text, length, BYTES, &read, &info, error);
}

TEST(test_refused)
{
    static const text_change cases[] = {
        {"\"power\"", "\"phase\"", "map"},
        {"\"<f4\"", "\"<c8\"", "dtype"},
        {"[2,7,2046]", "[2,7,2047]", "shape"},
        {"[2,7,2046]", "[2,7]", "shape"},
        {"[2,7,2046]", "[1,2,7,2046]", "shape"},
        {"[2,7,2046]", "[-2,-7,2046]", "shape"},
        {"[2,7,2046]", "[2,7.0,2046]", "shape"},
        {"[2,7,2046]", "[0,7,2046]", "shape"},
        {"[2,7,2046]", "[4294967296,4294967296,0]", "shape"},
        {"[2,7,2046]", "[2,9223372036854775807,7]", "shape"},
        {"[2,7,2046]", "[7,2,2046]", "codes"},
        {"[2,7,2046]", "[2,2046,7]", "doppler"},
        {"[\"gps-l1ca prn=29\",", "[", "codes"},
        {"\"gps-l1ca prn=29\"", "29", "codes"},
        {"\"n_rows\":5", "\"n_rows\":4", "doppler"},
        {"\"n_rows\":5", "\"n_rows\":0", "doppler"},
        {"\"n_rows\":2}", "\"n_rows\":4294967298}", "n_rows"},
        {"\"step_hz\":250", "\"step_hz\":-250", "doppler"},
        {"\"step_hz\":250", "\"step_hz\":0", "doppler"},
        {"\"step_hz\":250", "\"step_hz\":null", "doppler"},
        {"\"first_hz\":625", "\"first_hz\":500", "doppler"},
        {"\"first_hz\":625", "\"first_hz\":null", "doppler"},
        {"\"first_hz\":625,", "", "first_hz"},
        {"{\"first_hz\":-500,\"step_hz\":250,\"n_rows\":5}", "7", "doppler"},
        {"\"doppler\":[", "\"doppler\":[],\"more\":[", "doppler"},
        {"\"mps_per_hz\":0.0375,", "", "mps_per_hz"},
        {"\"oversample\":2", "\"oversample\":0", "oversample"},
        {"\"n_gate\":100", "\"n_gate\":2047", "n_gate"},
        {"\"delay_s\":-1.5e-6", "\"delay_s\":null", "delay_s"},
    };
    static pnr_map_info info;
    char text[CAPACITY];
    pnr_report read;
    pnr_error error = {0};

    write_map(&map, text);
    expect_changes_refused(text, cases, COUNT(cases), read_map);
    for (size_t bytes = BYTES - 5; bytes < BYTES + 9; bytes++)
        assert_int_equal(pnr_message_read_map(text, strlen(text), bytes, &read, &info, &error) ==
                             PNR_OK,
                         bytes == BYTES);
    for (size_t length = 0; length < strlen(text); length++)
        assert_int_equal(pnr_message_read_map(text, length, BYTES, &read, &info, &error),
                         PNR_EDATA);
}

/* As many runs as there may be fit the longest text, and nothing is written beyond it. */
TEST(test_capacity)
{
    static char text[PNR_MESSAGE_MAX], cut[PNR_MESSAGE_MAX];
    static pnr_map_info most, info;
    pnr_report report, read;
    pnr_error error;
    size_t length, i;

    most = map;
    most.n_runs = PNR_MAX_DOPPLER_RUNS;
    most.n_rows = 2 * most.n_runs;
    for (i = 0; i < most.n_runs; i++)
        most.runs[i] = (pnr_doppler_run){(double)i * 12345.678901234, 1.23456789012345, 2};
    report_fixture(&report, 0);
    length = pnr_message_write_cells(&report, UINT64_MAX >> 1, &most, text, sizeof text);
    assert_true(length > 0);
    assert_int_equal(pnr_message_read_map(text, length, most.n_codes * most.n_rows * 2046 * 4,
                                          &read, &info, &error),
                     PNR_OK);
    assert_true(fabs(pnr_map_doppler_hz(&info, most.n_rows - 1) -
                     pnr_map_doppler_hz(&most, most.n_rows - 1)) < 1e-4);
    for (i = 0; i <= length; i += i < 300 || i + 300 > length ? 1 : 97) {
        cut[i] = 'x';
        assert_int_equal(pnr_message_write_cells(&report, UINT64_MAX >> 1, &most, cut, i), 0);
        assert_int_equal(cut[i], 'x');
    }
}
