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

/* The cell of a row below a title, which ends where the number ends or its blanks do. */
static const char *cell(const paper *p, size_t row, const char *title)
{
    static char out[64];
    const char *at = strstr(line(p, 0), title);
    size_t end;

    for (size_t n = 0; at == NULL && n < row; n++) /* a later header */
        at = strstr(line(p, n), title);
    assert_non_null(at);
    for (size_t n = row; (at = strstr(line(p, n), title)) == NULL; n--)
        assert_true(n > 0);
    end = (size_t)(at - line(p, 0)) + strlen(title);
    at = line(p, row);
    end = end < strlen(at) ? end : strlen(at);
    while (end > 0 && at[end - 1] == ' ')
        end--;
    size_t begin = end;
    while (begin > 0 && at[begin - 1] != ' ')
        begin--;
    snprintf(out, sizeof out, "%.*s", (int)(end - begin), at + begin);
    return out;
}

static void expect_width(const paper *p)
{
    for (size_t n = 0; n < count(p->text, '\n'); n++) {
        const char *text = line(p, n);

        if (strlen(text) > 80)
            fail_msg("%zu columns: %s", strlen(text), text);
    }
}

TEST(test_table)
{
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, false);
    print(&p, 2, NULL);
    print(&p, 0, NULL);
    finish(&p);
    expect_width(&p);
    assert_int_equal(count(p.text, '\n'), 4); /* header, two echoes, one empty dwell */
    assert_ptr_equal(strstr(line(&p, 0), "UTC 2026-11-21  echo "), line(&p, 0));
    assert_ptr_equal(strstr(line(&p, 1), "02:40:12.000041    1 "), line(&p, 1));
    assert_string_equal(cell(&p, 1, "range m"), "374740.6");
    assert_string_equal(cell(&p, 1, "+- m"), "2.2");
    assert_string_equal(cell(&p, 1, "snr dB"), "27.5");
    assert_string_equal(cell(&p, 1, "code"), "1");
    assert_string_equal(cell(&p, 1, "amplitude"), "0.01562");
    assert_string_equal(cell(&p, 2, "range m"), "375740.6");
    assert_string_equal(cell(&p, 2, "code"), "2");
    assert_string_equal(cell(&p, 3, "range m"), "-");
    close_paper(&p);
}

/* Two digits of the sigma, the points of a column below each other. */
TEST(test_table_decimals)
{
    static const struct {
        double sigma;
        const char *range, *shown;
    } cases[] = {{123.4, "374741", "123"},          {45.3, "374741", "45"},
                 {2.25, "374740.6", "2.2"},         {0.99, "374740.62", "0.99"},
                 {0.0034, "374740.6250", "0.0034"}, {NAN, "374740.625", "-"}};
    paper p;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_paper(&p, PNR_PRINT_TABLE, false);
        report_fixture(&p.report, 1);
        p.report.detection.echoes[0].range_sigma_m = cases[i].sigma;
        assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
        finish(&p);
        assert_string_equal(cell(&p, 1, "range m"), cases[i].range);
        assert_string_equal(cell(&p, 1, "+- m"), cases[i].shown);
        close_paper(&p);
    }
}

TEST(test_table_flags_and_seconds)
{
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, false);
    report_fixture(&p.report, 1);
    p.report.detection.echoes[0].code_name.text[0] = '\0';
    p.report.has_time = false;
    p.report.lost = 12;
    p.report.flags = PNR_FLAG_LOST | PNR_FLAG_CLIPPED;
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    p.report.flags |= PNR_FLAG_COLOURED;
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    finish(&p);
    expect_width(&p);
    assert_ptr_equal(strstr(line(&p, 0), "time s       echo "), line(&p, 0));
    assert_null(strstr(line(&p, 0), "code")); /* there is one code */
    assert_ptr_equal(strstr(line(&p, 1), "0.041943     "), line(&p, 1));
    assert_non_null(strstr(line(&p, 1), " 12 lost,clipped"));
    assert_ptr_equal(strstr(line(&p, 3), "       12 lost,clipped,coloured-noise"), line(&p, 3));
    close_paper(&p);
}

TEST(test_table_new_date)
{
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, false);
    print(&p, 1, NULL);
    p.report.time_ns += INT64_C(86400) * 1000 * 1000 * 1000;
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    finish(&p);
    assert_ptr_equal(strstr(line(&p, 2), "UTC 2026-11-22  echo "), line(&p, 2));
    assert_ptr_equal(strstr(line(&p, 3), "02:40:12.000041    1 "), line(&p, 3));
    close_paper(&p);
}

TEST(test_truth)
{
    const pnr_report_truth truth[] = {{2, 374740.0, 0.625}, {0, NAN, NAN}};
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, true);
    report_fixture(&p.report, 2);
    p.report.has_time = false;
    for (size_t k = 0; k < 2; k++)
        p.report.detection.echoes[k].code_name.text[0] = '\0';
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, truth), PNR_OK);
    finish(&p);
    assert_non_null(strstr(line(&p, 0), "true m"));
    expect_width(&p);
    assert_string_equal(cell(&p, 1, "true m"), "374740.0");
    assert_string_equal(cell(&p, 1, "error m"), "0.6");
    assert_null(strstr(line(&p, 2), "nan"));
    close_paper(&p);

    open_paper(&p, PNR_PRINT_CSV, true);
    print(&p, 2, truth);
    print(&p, 0, NULL);
    finish(&p);
    assert_string_equal(field(&p, 0, 39), "true_range_m");
    assert_string_equal(field(&p, 1, 38), "2");
    assert_string_equal(field(&p, 1, 39), "374740");
    assert_string_equal(field(&p, 1, 40), "0.625");
    assert_string_equal(field(&p, 2, 39), "");
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
    assert_string_equal(field(&p, 0, 12), "echo");
    assert_string_equal(field(&p, 1, 12), "1");
    assert_string_equal(field(&p, 2, 12), "2");
    assert_string_equal(field(&p, 3, 12), "");
    assert_string_equal(field(&p, 0, 18), "range_m");
    assert_string_equal(field(&p, 1, 18), "374740.625");
    assert_string_equal(field(&p, 2, 18), "375740.625");
    assert_string_equal(field(&p, 3, 18), "");
    assert_string_equal(field(&p, 0, 25), "amplitude_sigma");
    assert_string_equal(field(&p, 1, 25), "0.0009765625");
    assert_string_equal(field(&p, 0, 27), "phase_sigma_rad");
    assert_string_equal(field(&p, 1, 27), "0.0625");
    assert_string_equal(field(&p, 0, 30), "velocity_mps");
    assert_string_equal(field(&p, 0, 31), "velocity_sigma_mps");
    assert_string_equal(field(&p, 1, 30), ""); /* NAN */
    assert_string_equal(field(&p, 3, 30), "");
    close_paper(&p);

    open_paper(&p, PNR_PRINT_CSV, false); /* nothing came: the header alone */
    finish(&p);
    assert_int_equal(count(p.text, '\n'), 1);
    assert_ptr_equal(strstr(p.text, "seq,sample,"), p.text);
    close_paper(&p);
}

/* A column is added at the first result that has a value for it, and not before. The least
 * important columns give way. */
TEST(test_columns)
{
    static const char *const names[] = {"doppler Hz", "vel m/s", "code", "+- m/s"};
    paper p;

    open_paper(&p, PNR_PRINT_TABLE, false);
    report_fixture(&p.report, 1); /* lines 0 and 1 */
    p.report.has_time = false;
    p.report.detection.echoes[0].code_name.text[0] = '\0';
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    report_fixture(&p.report, 2);
    p.report.has_time = false;
    p.report.detection.echoes[0].doppler_hz = -345.5;
    p.report.detection.echoes[0].doppler_sigma_hz = 1.25;
    p.report.detection.echoes[1].velocity_mps = 12.25;
    p.report.detection.echoes[1].velocity_sigma_mps = 0.125;
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK); /* 2, 3, 4 */
    finish(&p);
    expect_width(&p);
    assert_int_equal(count(p.text, '\n'), 5);
    assert_non_null(strstr(line(&p, 0), "amplitude  phase"));
    for (size_t i = 0; i < 4; i++)
        assert_null(strstr(line(&p, 0), names[i]));
    for (size_t i = 0; i < 4; i++) {
        static const char *const values[2][4] = {{"-345.5", "-", "prn 1", "-"},
                                                 {"-", "12.25", "prn 2", "0.12"}};
        const char *at = strstr(line(&p, 2), names[i]);

        assert_non_null(at);
        for (size_t row = 3; row < 5; row++)
            if (i != 2)
                assert_string_equal(cell(&p, row, names[i]), values[row - 3][i]);
            else
                assert_non_null(strstr(line(&p, row), values[row - 3][i]));
    }
    assert_null(strstr(line(&p, 2), "amplitude"));
    close_paper(&p);

    open_paper(&p, PNR_PRINT_TABLE, false);
    report_fixture(&p.report, 1);
    p.report.zero = (pnr_zero){.is_tracked = true, .delay_s = 3.25e-6, .held_s = 0.5};
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    finish(&p);
    expect_width(&p);
    assert_string_equal(cell(&p, 1, "zero us"), "3.2500");
    assert_string_equal(cell(&p, 1, "held s"), "0.500");
    close_paper(&p);

    open_paper(&p, PNR_PRINT_CSV, false);
    report_fixture(&p.report, 1);
    p.report.zero = (pnr_zero){true, 3.25e-6, 1.5e-9, NAN, -2.75, 0.125, -1e-7};
    assert_int_equal(pnr_printer_print(&p.printer, &p.report, NULL), PNR_OK);
    finish(&p);
    assert_string_equal(field(&p, 0, 32), "zero_delay_s");
    assert_string_equal(field(&p, 1, 32), "3.25e-6");
    assert_string_equal(field(&p, 1, 34), "");
    assert_string_equal(field(&p, 0, 37), "zero_moved_s");
    assert_string_equal(field(&p, 1, 37), "-1e-7");
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
