/* SPDX-License-Identifier: MIT */
/* Results in files: the lines are those of --print, whole after a kill and on a full disk, and no
 * file of others is changed. */
#include "base/clock.h"
#include "publisher/report.h"
#include "recorder/result_recorder.h"
#include "tests/fixture/config_fixture.h"
#include "tests/fixture/report_fixture.h"
#include "tests/fixture/source_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

TESTS_BETWEEN(make_folder, remove_folder)

static pnr_config config;
static pnr_result_recorder *recorder;
static pnr_error error;
static char path[256];

static int open_results(const char *name)
{
    pnr_config_init(&config);
    snprintf(path, sizeof path, "%.100s/%s", folder, name);
    snprintf(config.recorder.results, sizeof config.recorder.results, "%s", path);
    return pnr_result_recorder_create(&config, true, NULL, &recorder, &error);
}

/* Returns the number of results that were not recorded. */
static uint64_t close_results(void)
{
    uint64_t lost;

    pnr_result_recorder_finish(recorder);
    lost = pnr_result_recorder_lost(recorder);
    pnr_result_recorder_destroy(recorder);
    pnr_config_clear(&config);
    return lost;
}

static void add_results(uint64_t first, uint64_t end)
{
    static pnr_report report;

    for (uint64_t seq = first; seq < end; seq++) {
        report_fixture(&report, seq % 3);
        report.seq = seq;
        pnr_result_recorder_add(recorder, &report);
    }
}

/* What --print writes for the same results; the caller frees it. */
static char *printed_results(pnr_print print, uint64_t end)
{
    static pnr_report report;
    pnr_printer printer;
    char *text;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    pnr_printer_init(&printer, stream, print, false);
    for (uint64_t seq = 0; seq < end; seq++) {
        report_fixture(&report, seq % 3);
        report.seq = seq;
        (void)pnr_printer_print(&printer, &report, NULL);
    }
    (void)pnr_printer_finish(&printer);
    fclose(stream);
    return text;
}

static void expect_file(pnr_print print, uint64_t n_results)
{
    char *want = printed_results(print, n_results), *got = file_text(path);

    assert_string_equal(got, want);
    free(want);
    free(got);
}

static void append_text(const char *text)
{
    FILE *file = fopen(path, "ab");

    fputs(text, file);
    fclose(file);
}

TEST(lines_are_those_of_print_over_several_runs)
{
    static const char *const names[] = {[PNR_PRINT_CSV] = "r.csv", [PNR_PRINT_JSON] = "r.JSONL"};

    for (pnr_print print = PNR_PRINT_CSV; print <= PNR_PRINT_JSON; print++) {
        assert_int_equal(open_results(names[print]), PNR_OK);
        assert_int_equal(close_results(), 0);
        expect_file(print, 0);
        assert_int_equal(open_results(names[print]), PNR_OK);
        add_results(0, 1000);
        assert_int_equal(close_results(), 0);
        expect_file(print, 1000);

        append_text("{\"v\":1,\"half of a li"); /* as a killed program leaves it */
        assert_int_equal(open_results(names[print]), PNR_OK);
        add_results(1000, 1200);
        assert_int_equal(close_results(), 0);
        expect_file(print, 1200);
        remove_file(names[print]);
    }
}

TEST(files_of_others_are_refused_and_unchanged)
{
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        {"r.jsonl", "{\"version\":1}\n", "does not begin with {\"v\":"},
        {"r.jsonl", "x", "does not begin"},
        {"r.csv", "seq,sample\n1,2\n", "does not begin with seq,sample,time"},
        {"r.txt", "", ".jsonl, .csv, .sqlite or .h5"},
        {"csv", "", ".jsonl, .csv, .sqlite or .h5"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text;

        snprintf(path, sizeof path, "%.100s/%s", folder, cases[i].name);
        append_text(cases[i].text);
        assert_int_equal(open_results(cases[i].name), PNR_ECONFIG);
        assert_non_null(strstr(error.text, cases[i].words));
        assert_null(recorder);
        pnr_config_clear(&config);
        text = file_text(path);
        assert_string_equal(text, cases[i].text);
        free(text);
        remove_file(cases[i].name);
    }
    snprintf(path, sizeof path, "%.100s/r.csv", folder);
    assert_int_equal(symlink("target", path), 0);
    assert_int_equal(open_results("r.csv"), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "symbolic link"));
    assert_int_equal(unlink(path), 0);
    pnr_config_clear(&config);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_results("r.csv"), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "no regular file"));
    pnr_config_clear(&config);
    remove_file("r.csv");
    assert_int_equal(open_results("no/r.csv"), PNR_EIO);
    pnr_config_clear(&config);
}

TEST(a_full_disk_leaves_whole_lines_and_a_count)
{
    struct rlimit limit;
    uint64_t lost, n_lines = 0;
    char *text;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(open_results("r.jsonl"), PNR_OK);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 100001;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    add_results(0, 1000);
    while (pnr_result_recorder_lost(recorder) == 0)
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 1000 * 1000, NULL);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    add_results(1000, 1001);
    lost = close_results();
    text = file_text(path);
    for (char *line = text, *end; *line != '\0'; line = end + 1, n_lines++) {
        pnr_report report;

        end = strchr(line, '\n');
        assert_non_null(end);
        assert_int_equal(pnr_message_read_range(line, (size_t)(end - line), &report, &error),
                         PNR_OK);
    }
    free(text);
    assert_int_equal(n_lines + lost, 1001);
    assert_true(lost > 0);
    remove_file("r.jsonl");
}
