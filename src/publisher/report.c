/* SPDX-License-Identifier: MIT */
/* A report on paper: the results as a table, as CSV or as JSON lines, for stdout. */
#include "publisher/report.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CELL_LEN = 32, ROW_LEN = 1024 };

static const char *const print_names[] = {
    [PNR_PRINT_TABLE] = "table", [PNR_PRINT_CSV] = "csv", [PNR_PRINT_JSON] = "json"};

int pnr_print_find(const char *name, pnr_print *out, pnr_error *error)
{
    size_t i;

    for (i = 0; i < sizeof print_names / sizeof print_names[0]; i++) {
        if (strcmp(name, print_names[i]) == 0) {
            *out = (pnr_print)i;
            return PNR_OK;
        }
    }
    return pnr_error_set(error, PNR_EUSAGE, "format %s: want table, csv or json", name);
}

void pnr_printer_init(pnr_printer *printer, FILE *stream, pnr_print print, bool with_truth)
{
    *printer = (pnr_printer){.stream = stream, .print = print, .with_truth = with_truth};
}

static int written(const pnr_printer *p)
{
    return ferror(p->stream) ? PNR_EIO : PNR_OK;
}

/* The words of the flags with `between` between them; returns out. */
static char *flag_list(unsigned flags, char between, char *out)
{
    static const char *const words[] = {
#define FLAG_WORD(name, word) [PNR_FLAG_BIT_##name] = word,
        PNR_FLAGS(FLAG_WORD)};
    char *at = out;
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (flags & 1u << i) {
            if (at > out)
                *at++ = between;
            at = stpcpy(at, words[i]);
        }
    }
    *at = '\0';
    return out;
}

/* --- table --- */

/* A number with so many decimals, or "-" when there is none. */
static const char *cell(double value, int decimals, char out[CELL_LEN])
{
    if (!isfinite(value))
        return "-";
    snprintf(out, CELL_LEN, fabs(value) < 1e12 ? "%.*f" : "%.*e", decimals, value);
    return out;
}

/* What a table has a column for once it was there. */
enum { COLUMN_CODE = 1, COLUMN_DOPPLER = 2, COLUMN_VELOCITY = 4, COLUMN_ZERO = 8 };

static unsigned columns_of(const pnr_report *report)
{
    unsigned columns = report->zero.is_tracked ? COLUMN_ZERO : 0;

    for (size_t i = 0; i < report->detection.n_echoes; i++) {
        const pnr_echo *e = &report->detection.echoes[i];

        columns |= (e->code > 0 ? COLUMN_CODE : 0) |
                   (isfinite(e->doppler_hz) ? COLUMN_DOPPLER : 0) |
                   (isfinite(e->velocity_mps) ? COLUMN_VELOCITY : 0);
    }
    return columns;
}

static void table_header(pnr_printer *p, const pnr_report *report)
{
    p->by_time = report->has_time;
    fprintf(p->stream, "%-*s %8s %4s %14s %10s %14s %7s %10s %7s", p->by_time ? 30 : 14,
            p->by_time ? "time" : "sample", "seq", "echo", "range m", "+- m", "delay us", "snr dB",
            "amplitude", "phase");
    if (p->columns & COLUMN_DOPPLER)
        fprintf(p->stream, " %12s", "doppler Hz");
    if (p->columns & COLUMN_VELOCITY)
        fprintf(p->stream, " %12s %8s", "velocity m/s", "+- m/s");
    if (p->columns & COLUMN_CODE)
        fprintf(p->stream, " %4s", "code");
    if (p->columns & COLUMN_ZERO)
        fprintf(p->stream, " %14s %8s", "zero us", "held s");
    if (p->with_truth)
        fprintf(p->stream, " %6s %14s %10s", "target", "true m", "error m");
    fprintf(p->stream, " %6s flags\n", "lost");
}

/* The columns of p->columns. */
static void table_more(const pnr_printer *p, const pnr_report *report, const pnr_echo *e)
{
    const pnr_zero *zero = &report->zero;
    char a[CELL_LEN], b[CELL_LEN];

    if (p->columns & COLUMN_DOPPLER)
        fprintf(p->stream, " %12s", cell(e != NULL ? e->doppler_hz : (double)NAN, 3, a));
    if (p->columns & COLUMN_VELOCITY)
        fprintf(p->stream, " %12s %8s", cell(e != NULL ? e->velocity_mps : (double)NAN, 3, a),
                cell(e != NULL ? e->velocity_sigma_mps : (double)NAN, 3, b));
    if (p->columns & COLUMN_CODE)
        fprintf(p->stream, " %4s", cell(e != NULL ? e->code : (double)NAN, 0, a));
    if (p->columns & COLUMN_ZERO)
        fprintf(p->stream, " %14s %8s",
                cell(zero->is_tracked ? zero->delay_s * 1e6 : (double)NAN, 4, a),
                cell(zero->is_tracked ? zero->held_s : (double)NAN, 3, b));
}

static void table_row(pnr_printer *p, const pnr_report *report, const pnr_report_truth *truth,
                      size_t i)
{
    const bool is_echo = i < report->detection.n_echoes;
    const pnr_echo *e = &report->detection.echoes[i];
    char a[CELL_LEN], b[CELL_LEN], c[CELL_LEN], d[CELL_LEN], f[CELL_LEN], g[CELL_LEN];
    char when[PNR_TIME_LEN], flags[ROW_LEN];

    if (p->by_time && report->has_time)
        pnr_time_format(report->time_ns, when);
    else
        snprintf(when, sizeof when, "%" PRIu64, report->sample);
    fprintf(p->stream, "%-*s %8" PRIu64, p->by_time ? 30 : 14, when, report->seq);
    if (is_echo)
        fprintf(p->stream, " %4zu %14s %10s %14s %7s %10s %7s", i + 1, cell(e->range_m, 3, a),
                cell(e->range_sigma_m, 3, b), cell(e->delay_s * 1e6, 3, c), cell(e->snr_db, 1, d),
                cell(e->amplitude, 6, f), cell(e->phase_rad, 3, g));
    else
        fprintf(p->stream, " %4s %14s %10s %14s %7s %10s %7s", "-", "-", "-", "-", "-", "-", "-");
    table_more(p, report, is_echo ? e : NULL);
    if (p->with_truth && is_echo && truth != NULL && isfinite(truth[i].range_m))
        fprintf(p->stream, " %6u %14s %10s", truth[i].target, cell(truth[i].range_m, 3, a),
                cell(truth[i].error_m, 3, b));
    else if (p->with_truth)
        fprintf(p->stream, " %6s %14s %10s", "-", "-", "-");
    fprintf(p->stream, " %6" PRIu64 "%s%s\n", report->lost, report->flags != 0 ? " " : "",
            flag_list(report->flags, ',', flags));
}

/* --- csv --- */

static void csv_header(pnr_printer *p)
{
    fputs("seq,sample,time,periods,lost,lost_before,flags,noise_db,pfa_cell,cells_above,latency_us,"
          "echo,code,channel,delay_s,delay_samples,delay_sigma_s,range_m,range_sigma_m,snr_db,"
          "amplitude,amplitude_sigma,phase_rad,phase_sigma_rad,doppler_hz,doppler_sigma_hz,"
          "velocity_mps,velocity_sigma_mps,zero_delay_s,zero_sigma_s,zero_snr_db,zero_drift_ppm,"
          "zero_held_s,zero_moved_s",
          p->stream);
    fputs(p->with_truth ? ",target,true_range_m,error_m\n" : "\n", p->stream);
}

static void field(pnr_text *t, double value)
{
    pnr_text_add(t, ",");
    pnr_text_double(t, value, "");
}

static void field_u64(pnr_text *t, uint64_t value)
{
    pnr_text_add(t, ",");
    pnr_text_u64(t, value);
}

static void csv_dwell(pnr_text *t, const pnr_report *report)
{
    const double noise = report->detection.noise_power;
    char words[ROW_LEN], time[PNR_TIME_LEN];

    pnr_text_u64(t, report->seq);
    field_u64(t, report->sample);
    pnr_text_add(t, ",");
    if (report->has_time)
        pnr_text_add(t, pnr_time_format(report->time_ns, time));
    field_u64(t, report->periods);
    field_u64(t, report->lost);
    field_u64(t, report->lost_before);
    pnr_text_add(t, ",");
    pnr_text_add(t, flag_list(report->flags, ' ', words));
    field(t, noise > 0 ? 10 * log10(noise) : (double)NAN);
    field(t, report->pfa_cell);
    field_u64(t, report->cells_above);
    field(t, report->latency_us);
}

static void csv_zero(pnr_text *t, const pnr_zero *zero)
{
    if (!zero->is_tracked) {
        pnr_text_add(t, ",,,,,,");
        return;
    }
    field(t, zero->delay_s);
    field(t, zero->sigma_s);
    field(t, zero->snr_db);
    field(t, zero->drift_ppm);
    field(t, zero->held_s);
    field(t, zero->moved_s);
}

static void csv_row(pnr_printer *p, const pnr_report *report, const pnr_report_truth *truth,
                    size_t i)
{
    char row[ROW_LEN];
    pnr_text t;

    pnr_text_begin(&t, row, sizeof row);
    csv_dwell(&t, report);
    if (i < report->detection.n_echoes) {
        const pnr_echo *e = &report->detection.echoes[i];

        field_u64(&t, i + 1);
        field_u64(&t, e->code);
        field_u64(&t, e->channel);
        field(&t, e->delay_s);
        field(&t, e->delay_samples);
        field(&t, e->delay_sigma_s);
        field(&t, e->range_m);
        field(&t, e->range_sigma_m);
        field(&t, e->snr_db);
        field(&t, e->amplitude);
        field(&t, e->amplitude_sigma);
        field(&t, e->phase_rad);
        field(&t, e->phase_sigma_rad);
        field(&t, e->doppler_hz);
        field(&t, e->doppler_sigma_hz);
        field(&t, e->velocity_mps);
        field(&t, e->velocity_sigma_mps);
    } else {
        pnr_text_add(&t, ",,,,,,,,,,,,,,,,,");
    }
    csv_zero(&t, &report->zero);
    if (p->with_truth && i < report->detection.n_echoes && truth != NULL &&
        isfinite(truth[i].range_m)) {
        field_u64(&t, truth[i].target);
        field(&t, truth[i].range_m);
        field(&t, truth[i].error_m);
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
    return written(p);
}

int pnr_printer_print(pnr_printer *p, const pnr_report *report, const pnr_report_truth *truth)
{
    size_t i;

    if (p->print == PNR_PRINT_JSON)
        return print_json(p, report);
    if (p->print == PNR_PRINT_CSV && !p->has_begun)
        csv_header(p);
    if (p->print == PNR_PRINT_TABLE && (!p->has_begun || (columns_of(report) & ~p->columns) != 0)) {
        p->columns |= columns_of(report);
        table_header(p, report);
    }
    p->has_begun = true;
    for (i = 0; i < report->detection.n_echoes || i == 0; i++) {
        if (p->print == PNR_PRINT_CSV)
            csv_row(p, report, truth, i);
        else
            table_row(p, report, truth, i);
    }
    return written(p);
}

int pnr_printer_finish(pnr_printer *p)
{
    if (p->print == PNR_PRINT_CSV && !p->has_begun)
        csv_header(p);
    p->has_begun = true;
    return fflush(p->stream) != 0 || ferror(p->stream) ? PNR_EIO : PNR_OK;
}
