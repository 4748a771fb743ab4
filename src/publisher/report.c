/* SPDX-License-Identifier: MIT */
/* Results as text for stdout: a table, CSV or JSON lines. */
#include "publisher/report.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ROW_LEN = 1024 };

static const char *const print_names[] = {
    [PNR_PRINT_TABLE] = "table", [PNR_PRINT_CSV] = "csv", [PNR_PRINT_JSON] = "json"};

int pnr_print_find(const char *option, const char *name, pnr_print *out, pnr_error *error)
{
    for (size_t i = 0; i < sizeof print_names / sizeof print_names[0]; i++) {
        if (strcmp(name, print_names[i]) == 0) {
            *out = (pnr_print)i;
            return PNR_OK;
        }
    }
    return pnr_error_set(error, PNR_EUSAGE, "%s %s: want table, csv or json", option, name);
}

void pnr_printer_init(pnr_printer *printer, FILE *stream, pnr_print print, bool with_truth)
{
    *printer = (pnr_printer){.stream = stream, .print = print, .with_truth = with_truth};
}

static int stream_code(const pnr_printer *p)
{
    return ferror(p->stream) ? PNR_EIO : PNR_OK;
}

/* Writes the words of the flags to out, separated by `between`. Returns out. */
static char *flag_list(unsigned flags, char between, char *out)
{
    char *at = out;

    for (size_t i = 0; i < PNR_N_FLAGS; i++) {
        if (flags & 1u << i) {
            if (at > out)
                *at++ = between;
            at = stpcpy(at, pnr_flag_words[i]);
        }
    }
    *at = '\0';
    return out;
}

/* --- table --- */

/* Columns that the table gets with the first result that has a value for them. */
enum { COLUMN_CODE = 1, COLUMN_DOPPLER = 2, COLUMN_VELOCITY = 4, COLUMN_ZERO = 8 };

/* A column with a double of pnr_echo. All these columns precede code, zero, truth and flags. */
static const struct column {
    const char *title;
    int width, decimals;
    double scale;
    size_t offset;
    unsigned only; /* a COLUMN_...; 0: in every table */
} columns[] = {
    {"range m", 14, 3, 1, offsetof(pnr_echo, range_m), 0},
    {"+- m", 10, 3, 1, offsetof(pnr_echo, range_sigma_m), 0},
    {"delay us", 14, 3, 1e6, offsetof(pnr_echo, delay_s), 0},
    {"snr dB", 7, 1, 1, offsetof(pnr_echo, snr_db), 0},
    {"amplitude", 10, 6, 1, offsetof(pnr_echo, amplitude), 0},
    {"phase", 7, 3, 1, offsetof(pnr_echo, phase_rad), 0},
    {"doppler Hz", 12, 3, 1, offsetof(pnr_echo, doppler_hz), COLUMN_DOPPLER},
    {"velocity m/s", 12, 3, 1, offsetof(pnr_echo, velocity_mps), COLUMN_VELOCITY},
    {"+- m/s", 8, 3, 1, offsetof(pnr_echo, velocity_sigma_mps), COLUMN_VELOCITY},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static bool has_column(const pnr_printer *p, const struct column *column)
{
    return column->only == 0 || (p->columns & column->only) != 0;
}

/* Prints a number with this number of decimals, or "-" for NaN. */
static void print_cell(const pnr_printer *p, int width, int decimals, double value)
{
    if (isfinite(value))
        fprintf(p->stream, fabs(value) < 1e12 ? " %*.*f" : " %*.*e", width, decimals, value);
    else
        fprintf(p->stream, " %*s", width, "-");
}

static unsigned columns_of(const pnr_report *report)
{
    unsigned only = report->zero.is_tracked ? COLUMN_ZERO : 0;

    for (size_t i = 0; i < report->detection.n_echoes; i++) {
        const pnr_echo *e = &report->detection.echoes[i];

        only |= (e->code > 0 ? COLUMN_CODE : 0) | (isfinite(e->doppler_hz) ? COLUMN_DOPPLER : 0) |
                (isfinite(e->velocity_mps) ? COLUMN_VELOCITY : 0);
    }
    return only;
}

static void table_header(pnr_printer *p, const pnr_report *report)
{
    p->by_time = report->has_time;
    fprintf(p->stream, "%-*s %8s %4s", p->by_time ? 30 : 14, p->by_time ? "time" : "sample", "seq",
            "echo");
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (has_column(p, &columns[i]))
            fprintf(p->stream, " %*s", columns[i].width, columns[i].title);
    if (p->columns & COLUMN_CODE)
        fprintf(p->stream, " %4s", "code");
    if (p->columns & COLUMN_ZERO)
        fprintf(p->stream, " %14s %8s", "zero us", "held s");
    if (p->with_truth)
        fprintf(p->stream, " %6s %14s %10s", "target", "true m", "error m");
    fprintf(p->stream, " %6s flags\n", "lost");
}

/* Prints the columns of an echo and of the zero delay. e: NULL if the dwell has no echo. */
static void table_echo(const pnr_printer *p, const pnr_report *report, const pnr_echo *e)
{
    const pnr_zero *zero = &report->zero;

    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct column *c = &columns[i];
        double value = NAN;

        if (e != NULL)
            memcpy(&value, (const char *)e + c->offset, sizeof value);
        if (has_column(p, c))
            print_cell(p, c->width, c->decimals, value * c->scale);
    }
    if (p->columns & COLUMN_CODE)
        print_cell(p, 4, 0, e != NULL ? e->code : (double)NAN);
    if (p->columns & COLUMN_ZERO) {
        print_cell(p, 14, 4, zero->is_tracked ? zero->delay_s * 1e6 : (double)NAN);
        print_cell(p, 8, 3, zero->is_tracked ? zero->held_s : (double)NAN);
    }
}

/* Prints the line of echo i. truth: that of this echo, or NULL. */
static void table_row(pnr_printer *p, const pnr_report *report, const pnr_report_truth *truth,
                      size_t i)
{
    const bool is_echo = i < report->detection.n_echoes;
    char when[PNR_TIME_LEN], flags[ROW_LEN];

    if (p->by_time && report->has_time)
        pnr_time_format(report->time_ns, when);
    else
        snprintf(when, sizeof when, "%" PRIu64, report->sample);
    fprintf(p->stream, "%-*s %8" PRIu64, p->by_time ? 30 : 14, when, report->seq);
    print_cell(p, 4, 0, is_echo ? (double)(i + 1) : (double)NAN);
    table_echo(p, report, is_echo ? &report->detection.echoes[i] : NULL);
    if (p->with_truth) {
        print_cell(p, 6, 0, truth != NULL ? truth->target : (double)NAN);
        print_cell(p, 14, 3, truth != NULL ? truth->range_m : (double)NAN);
        print_cell(p, 10, 3, truth != NULL ? truth->error_m : (double)NAN);
    }
    fprintf(p->stream, " %6" PRIu64 "%s%s\n", report->lost, report->flags != 0 ? " " : "",
            flag_list(report->flags, ',', flags));
}

/* --- csv --- */

#define CSV_NAME(x, name) "," #name
#define CSV_ZERO_NAME(x, name) ",zero_" #name
#define CSV_NOTHING(x, name) ","
#define CSV_COUNT(from, name) add_field_u64(t, (from)->name);
#define CSV_DOUBLE(from, name) add_field(t, (from)->name);

static void csv_header(pnr_printer *p)
{
    fputs("seq,sample,time,periods,lost,lost_before,flags,noise_db,pfa_cell,cells_above,latency_us,"
          "echo" PNR_ECHO_FIELDS(CSV_NAME, CSV_NAME, CSV_NAME, )
              PNR_ZERO_FIELDS(CSV_ZERO_NAME, CSV_ZERO_NAME, CSV_ZERO_NAME, ),
          p->stream);
    fputs(p->with_truth ? ",target,true_range_m,error_m\n" : "\n", p->stream);
}

static void add_field(pnr_text *t, double value)
{
    pnr_text_add(t, ",");
    pnr_text_double(t, value, "");
}

static void add_field_u64(pnr_text *t, uint64_t value)
{
    pnr_text_add(t, ",");
    pnr_text_u64(t, value);
}

static void csv_dwell(pnr_text *t, const pnr_report *report)
{
    const double noise = report->detection.noise_power;
    char words[ROW_LEN], time[PNR_TIME_LEN];

    pnr_text_u64(t, report->seq);
    add_field_u64(t, report->sample);
    pnr_text_add(t, ",");
    if (report->has_time)
        pnr_text_add(t, pnr_time_format(report->time_ns, time));
    add_field_u64(t, report->periods);
    add_field_u64(t, report->lost);
    add_field_u64(t, report->lost_before);
    pnr_text_add(t, ",");
    pnr_text_add(t, flag_list(report->flags, ' ', words));
    add_field(t, noise > 0 ? 10 * log10(noise) : (double)NAN);
    add_field(t, report->pfa_cell);
    add_field_u64(t, report->cells_above);
    add_field(t, report->latency_us);
}

static void csv_echo(pnr_text *t, const pnr_detection *detection, size_t i)
{
    if (i < detection->n_echoes) {
        add_field_u64(t, i + 1);
        PNR_ECHO_FIELDS(CSV_COUNT, CSV_DOUBLE, CSV_DOUBLE, &detection->echoes[i])
    } else {
        pnr_text_add(t, "," PNR_ECHO_FIELDS(CSV_NOTHING, CSV_NOTHING, CSV_NOTHING, ));
    }
}

static void csv_zero(pnr_text *t, const pnr_zero *zero)
{
    if (zero->is_tracked) {
        PNR_ZERO_FIELDS(CSV_DOUBLE, CSV_DOUBLE, CSV_DOUBLE, zero)
    } else {
        pnr_text_add(t, PNR_ZERO_FIELDS(CSV_NOTHING, CSV_NOTHING, CSV_NOTHING, ));
    }
}

/* Prints the row of echo i. truth: that of this echo, or NULL. */
static void csv_row(pnr_printer *p, const pnr_report *report, const pnr_report_truth *truth,
                    size_t i)
{
    char row[ROW_LEN];
    pnr_text t;

    pnr_text_begin(&t, row, sizeof row);
    csv_dwell(&t, report);
    csv_echo(&t, &report->detection, i);
    csv_zero(&t, &report->zero);
    if (truth != NULL) {
        add_field_u64(&t, truth->target);
        add_field(&t, truth->range_m);
        add_field(&t, truth->error_m);
    } else if (p->with_truth) {
        pnr_text_add(&t, ",,,");
    }
    pnr_text_add(&t, "\n");
    fwrite(row, 1, pnr_text_end(&t), p->stream);
}

/* --- all three --- */

static int print_json(pnr_printer *p, const pnr_report *report)
{
    char text[PNR_MESSAGE_MAX];
    const size_t length = pnr_message_write_range(report, text, sizeof text);

    if (length == 0)
        return PNR_EINTERNAL;
    fwrite(text, 1, length, p->stream);
    putc('\n', p->stream);
    return stream_code(p);
}

int pnr_printer_print(pnr_printer *p, const pnr_report *report, const pnr_report_truth *truth)
{

    if (p->print == PNR_PRINT_JSON)
        return print_json(p, report);
    if (p->print == PNR_PRINT_CSV && !p->has_begun)
        csv_header(p);
    if (p->print == PNR_PRINT_TABLE && (!p->has_begun || (columns_of(report) & ~p->columns) != 0)) {
        p->columns |= columns_of(report);
        table_header(p, report);
    }
    p->has_begun = true;
    for (size_t i = 0; i < report->detection.n_echoes || i == 0; i++) {
        const bool has_truth = p->with_truth && truth != NULL && i < report->detection.n_echoes &&
                               isfinite(truth[i].range_m);

        if (p->print == PNR_PRINT_CSV)
            csv_row(p, report, has_truth ? &truth[i] : NULL, i);
        else
            table_row(p, report, has_truth ? &truth[i] : NULL, i);
    }
    return stream_code(p);
}

int pnr_printer_finish(pnr_printer *p)
{
    if (p->print == PNR_PRINT_CSV && !p->has_begun)
        csv_header(p);
    p->has_begun = true;
    return fflush(p->stream) != 0 || ferror(p->stream) ? PNR_EIO : PNR_OK;
}
