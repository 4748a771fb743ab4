/* SPDX-License-Identifier: MIT */
/* Reports as text: columns that align, CSV that reads back, JSON that equals the message. */
#include "publisher/report.h"

#include "tests/fixture/report_fixture.h"

typedef struct paper {
    char *text;
    size_t size;
    FILE *stream;
    pnr_printer printer;
    pnr_report report;
} paper;

static void open_paper(paper *p, pnr_print print, bool with_truth)
{
    p->stream = open_memstream(&p->text, &p->size);
    assert_non_null(p->stream);
    pnr_printer_init(&p->printer, p->stream, print, with_truth);
}

static void print(paper *p, size_t n_echoes, const pnr_report_truth *truth)
{
    report_fixture(&p->report, n_echoes);
    assert_int_equal(pnr_printer_print(&p->printer, &p->report, truth), PNR_OK);
}

static void finish(paper *p)
{
    assert_int_equal(pnr_printer_finish(&p->printer), PNR_OK);
}

static void close_paper(paper *p)
{
    fclose(p->stream);
    free(p->text);
}

/* Line n of the text, from 0, without its newline. */
static char *line(const paper *p, size_t n)
{
    static char out[2048];
    const char *at = p->text;
    size_t length;

    for (; n > 0; n--) {
        at = strchr(at, '\n');
        assert_non_null(at);
        at++;
    }
    length = strcspn(at, "\n");
    assert_true(length < sizeof out);
    memcpy(out, at, length);
    out[length] = '\0';
    return out;
}

/* Field n of a CSV line, from 0. */
static const char *field(const paper *p, size_t row, size_t n)
{
    char *at = line(p, row);
    const char *item = strsep(&at, ",");

    for (; n > 0; n--)
        item = strsep(&at, ",");
    assert_non_null(item);
    return item;
}

static size_t count(const char *text, char c)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += *text == c;
    return n;
}

TEST(test_find)
{
    pnr_print found;
    pnr_error error;

    assert_int_equal(pnr_print_find("--print", "csv", &found, &error), PNR_OK);
    assert_int_equal(found, PNR_PRINT_CSV);
    assert_int_equal(pnr_print_find("--print", "json", &found, &error), PNR_OK);
    assert_int_equal(found, PNR_PRINT_JSON);
    assert_int_equal(pnr_print_find("--print", "table", &found, &error), PNR_OK);
    assert_int_equal(found, PNR_PRINT_TABLE);
    assert_int_equal(pnr_print_find("--print", "xml", &found, &error), PNR_EUSAGE);
    assert_non_null(strstr(error.text, "xml"));
}

TEST(test_table)
{
    paper p;
    size_t end;

    open_paper(&p, PNR_PRINT_TABLE, false);
    print(&p, 2, NULL);
    print(&p, 0, NULL);
    finish(&p);
    assert_int_equal(count(p.text, '\n'), 4); /* header, two echoes, one empty dwell */
    assert_ptr_equal(strstr(line(&p, 0), "time"), line(&p, 0));
    assert_non_null(strstr(line(&p, 1), "2026-11-21T02:40:12.000041943Z"));
    assert_non_null(strstr(line(&p, 1), " 374740.625 "));
    assert_non_null(strstr(line(&p, 1), " 2.250 "));
    assert_non_null(strstr(line(&p, 1), " 2500.000 "));
    assert_non_null(strstr(line(&p, 1), " 27.5 "));
    assert_non_null(strstr(line(&p, 1), " -1.250 "));
    assert_non_null(strstr(line(&p, 2), " 375740.625 "));
    assert_null(strstr(line(&p, 3), "374740"));
    /* The column that is named "range m" ends in one place. */
    end = (size_t)(strstr(line(&p, 0), "range m") - line(&p, 0)) + strlen("range m");
    assert_memory_equal(line(&p, 1) + end - 11, " 374740.625 ", 12);
    assert_memory_equal(line(&p, 2) + end - 11, " 375740.625 ", 12);
    assert_memory_equal(line(&p, 3) + end - 2, " - ", 3);
    close_paper(&p);
}

TEST(test_table_flags_and_sample)
{
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, false);
    report_fixture(&p.report, 1);
    p.report.has_time = false;
    p.report.lost = 12;
    p.report.flags = PNR_FLAG_LOST | PNR_FLAG_CLIPPED;
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    finish(&p);
    assert_ptr_equal(strstr(line(&p, 0), "sample"), line(&p, 0));
    assert_ptr_equal(strstr(line(&p, 1), "41943 "), line(&p, 1));
    assert_non_null(strstr(line(&p, 1), " 12 lost,clipped"));
    close_paper(&p);
}

TEST(test_truth)
{
    const pnr_report_truth truth[] = {{2, 374740.0, 0.625}, {0, NAN, NAN}};
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, true);
    print(&p, 2, truth);
    finish(&p);
    assert_non_null(strstr(line(&p, 0), "true m"));
    assert_non_null(strstr(line(&p, 1), " 374740.000 "));
    assert_non_null(strstr(line(&p, 1), " 0.625 "));
    assert_null(strstr(line(&p, 2), "nan"));
    close_paper(&p);

    open_paper(&p, PNR_PRINT_CSV, true);
    print(&p, 2, truth);
    print(&p, 0, NULL);
    finish(&p);
    assert_string_equal(field(&p, 0, 35), "true_range_m");
    assert_string_equal(field(&p, 1, 34), "2");
    assert_string_equal(field(&p, 1, 35), "374740");
    assert_string_equal(field(&p, 1, 36), "0.625");
    assert_string_equal(field(&p, 2, 35), "");
    assert_int_equal(count(line(&p, 3), ','), count(line(&p, 0), ','));
    close_paper(&p);
}

TEST(test_csv)
{
    paper p;
    size_t i;

    open_paper(&p, PNR_PRINT_CSV, false);
    print(&p, 2, NULL);
    print(&p, 0, NULL);
    finish(&p);
    assert_int_equal(count(p.text, '\n'), 4);
    for (i = 1; i < 4; i++)
        assert_int_equal(count(line(&p, i), ','), count(line(&p, 0), ','));
    assert_string_equal(field(&p, 0, 0), "seq");
    assert_string_equal(field(&p, 1, 0), "41");
    assert_string_equal(field(&p, 0, 1), "sample");
    assert_string_equal(field(&p, 1, 1), "41943");
    assert_string_equal(field(&p, 0, 11), "echo");
    assert_string_equal(field(&p, 1, 11), "1");
    assert_string_equal(field(&p, 2, 11), "2");
    assert_string_equal(field(&p, 3, 11), "");
    assert_string_equal(field(&p, 0, 17), "range_m");
    assert_string_equal(field(&p, 1, 17), "374740.625");
    assert_string_equal(field(&p, 2, 17), "375740.625");
    assert_string_equal(field(&p, 3, 17), "");
    assert_string_equal(field(&p, 0, 21), "amplitude_sigma");
    assert_string_equal(field(&p, 1, 21), "0.0009765625");
    assert_string_equal(field(&p, 0, 23), "phase_sigma_rad");
    assert_string_equal(field(&p, 1, 23), "0.0625");
    assert_string_equal(field(&p, 0, 26), "velocity_mps");
    assert_string_equal(field(&p, 0, 27), "velocity_sigma_mps");
    assert_string_equal(field(&p, 1, 26), ""); /* NAN */
    assert_string_equal(field(&p, 3, 26), "");
    close_paper(&p);

    open_paper(&p, PNR_PRINT_CSV, false); /* nothing came: the header alone */
    finish(&p);
    assert_int_equal(count(p.text, '\n'), 1);
    assert_ptr_equal(strstr(p.text, "seq,sample,"), p.text);
    close_paper(&p);
}

/* A column is added at the first result that has a value for it, and not before. */
TEST(test_columns)
{
    static const char *const names[] = {"doppler Hz", "velocity m/s", "code", "zero us"};
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, false);
    print(&p, 1, NULL); /* lines 0 and 1 */
    report_fixture(&p.report, 2);
    p.report.detection.echoes[0].doppler_hz = -345.5;
    p.report.detection.echoes[1].velocity_mps = 12.25;
    p.report.detection.echoes[1].velocity_sigma_mps = 0.125;
    p.report.zero = (pnr_zero){.is_tracked = true, .delay_s = 3.25e-6, .held_s = 0.5};
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK); /* 2, 3, 4 */
    print(&p, 0, NULL);                                                       /* 5 */
    finish(&p);
    assert_int_equal(count(p.text, '\n'), 6);
    for (size_t i = 0; i < 4; i++)
        assert_null(strstr(line(&p, 0), names[i]));
    for (size_t i = 0; i < 4; i++) {
        const char *header = line(&p, 2), *at = strstr(header, names[i]);
        const size_t end = at != NULL ? (size_t)(at - header) + strlen(names[i]) : 0;

        assert_non_null(at);
        for (size_t row = 3; row < 6; row++) {
            static const char *const values[3][4] = {{" -345.500", " -", " 0", " 3.2500"},
                                                     {" -", " 12.250", " 1", " 3.2500"},
                                                     {" -", " -", " -", " -"}};
            const size_t length = strlen(values[row - 3][i]);

            assert_memory_equal(line(&p, row) + end - length, values[row - 3][i], length);
        }
    }
    assert_non_null(strstr(line(&p, 3), " 0.500 "));
    assert_non_null(strstr(line(&p, 4), " 0.125 "));
    close_paper(&p);

    open_paper(&p, PNR_PRINT_CSV, false);
    report_fixture(&p.report, 1);
    p.report.zero = (pnr_zero){true, 3.25e-6, 1.5e-9, NAN, -2.75, 0.125, -1e-7};
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    finish(&p);
    assert_string_equal(field(&p, 0, 28), "zero_delay_s");
    assert_string_equal(field(&p, 1, 28), "3.25e-6");
    assert_string_equal(field(&p, 1, 30), "");
    assert_string_equal(field(&p, 0, 33), "zero_moved_s");
    assert_string_equal(field(&p, 1, 33), "-1e-7");
    close_paper(&p);
}

TEST(test_json)
{
    static char text[PNR_MESSAGE_MAX];
    paper p;

    open_paper(&p, PNR_PRINT_JSON, false);
    print(&p, 64, NULL);
    finish(&p);
    assert_int_equal(pnr_message_write_range(&p.report, text, sizeof text), p.size - 1);
    assert_memory_equal(p.text, text, p.size - 1);
    assert_int_equal(p.text[p.size - 1], '\n');
    close_paper(&p);
}

/* A full disk is an error. */
TEST(test_full_disk)
{
    static const pnr_print prints[] = {PNR_PRINT_TABLE, PNR_PRINT_CSV, PNR_PRINT_JSON};
    paper p;
    size_t i;

    for (i = 0; i < sizeof prints / sizeof prints[0]; i++) {
        p.stream = fopen("/dev/full", "w");
        if (p.stream == NULL)
            skip();
        pnr_printer_init(&p.printer, p.stream, prints[i], false);
        report_fixture(&p.report, 1);
        (void)pnr_printer_print(&p.printer, &p.report, NULL);
        assert_int_equal(pnr_printer_finish(&p.printer), PNR_EIO);
        assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_EIO);
        fclose(p.stream);
    }
}
