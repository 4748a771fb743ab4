/* SPDX-License-Identifier: MIT */
/* The header of a profile describes the cells that follow it, and any other header is refused. */
#include "publisher/message.h"

#include "tests/fixture/report_fixture.h"

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
    write_profile(&cells_fixture, text);
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
    assert_close(info.delay_s, cells_fixture.delay_s);
    assert_close(info.step_s, cells_fixture.step_s);
    assert_close(info.metres_per_second, cells_fixture.metres_per_second);
    assert_close(info.floor, cells_fixture.floor);
    assert_true(isnan(info.threshold));
    assert_int_equal(pnr_message_read_profile(text, strlen(text), 2046 * 4, &read, &info, &error),
                     PNR_EDATA);
}

TEST(test_profile_has_the_name_of_its_code)
{
    static const char *const names[] = {"m-sequence n=9 \"a\""};
    static const char number[] = "\"codes\":[12],", none[] = "\"codes\":[],";
    const pnr_map_info profile = {
        .row = cells_fixture, .n_codes = 1, .n_rows = 1, .code_names = names};
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

    write_profile(&cells_fixture, text);
    expect_changes_refused(text, cases, COUNT(cases), read_profile);
}
