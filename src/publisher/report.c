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

enum {
    TABLE_WIDTH = 80,
    PLAIN_WIDTH = 66, /* columns of the last two ranks must end here, to leave space for flags */
    ECHO_WIDTH = 4,
    CODE_WIDTH = 4, /* smallest width of the column */
    MOST_DECIMALS = 6
};

/* Optional columns. The table shows each of them from the first result that has a value for it. */
enum {
    COLUMN_CODE = 1,
    COLUMN_DOPPLER = 2,
    COLUMN_VELOCITY = 4,
    COLUMN_ZERO = 8,
    COLUMN_TRUTH = 16
};

typedef enum { CELL_ECHO, CELL_ZERO, CELL_TRUTH, CELL_TARGET, CELL_CODE } cell_kind;

#define ECHO(member) offsetof(pnr_echo, member)
#define ZERO(member) offsetof(pnr_zero, member)
#define TRUTH(member) offsetof(pnr_report_truth, member)
enum { NO_SIGMA = 0xffff };

/* The columns after time and echo. A value of type double is a member of the pnr_echo, pnr_zero or
 * pnr_report_truth of the row. It has the decimals that show two digits of its sigma, or `places`
 * decimals if it has no sigma. Columns are added in the order of `rank`, until a column does not
 * fit the width. */
static const struct column {
    const char *title;
    cell_kind kind;
    int width, places;
    double scale;
    size_t offset, sigma; /* sigma: offset of the sigma in pnr_echo */
    unsigned only;        /* the COLUMN_... bit of an optional column, else 0 */
    unsigned rank;
} columns[] = {
    {"code", CELL_CODE, CODE_WIDTH, 0, 1, 0, NO_SIGMA, COLUMN_CODE, 3},
    {"range m", CELL_ECHO, 12, 3, 1, ECHO(range_m), ECHO(range_sigma_m), 0, 0},
    {"+- m", CELL_ECHO, 7, 3, 1, ECHO(range_sigma_m), ECHO(range_sigma_m), 0, 1},
    {"target", CELL_TARGET, 6, 0, 1, TRUTH(target), NO_SIGMA, COLUMN_TRUTH, 4},
    {"error m", CELL_TRUTH, 8, 3, 1, TRUTH(error_m), ECHO(range_sigma_m), COLUMN_TRUTH, 5},
    {"true m", CELL_TRUTH, 11, 3, 1, TRUTH(range_m), ECHO(range_sigma_m), COLUMN_TRUTH, 9},
    {"vel m/s", CELL_ECHO, 9, 3, 1, ECHO(velocity_mps), ECHO(velocity_sigma_mps), COLUMN_VELOCITY,
     6},
    {"+- m/s", CELL_ECHO, 6, 3, 1, ECHO(velocity_sigma_mps), ECHO(velocity_sigma_mps),
     COLUMN_VELOCITY, 7},
    {"doppler Hz", CELL_ECHO, 10, 3, 1, ECHO(doppler_hz), ECHO(doppler_sigma_hz), COLUMN_DOPPLER,
     8},
    {"snr dB", CELL_ECHO, 6, 1, 1, ECHO(snr_db), NO_SIGMA, 0, 2},
    {"zero us", CELL_ZERO, 10, 4, 1e6, ZERO(delay_s), NO_SIGMA, COLUMN_ZERO, 10},
    {"held s", CELL_ZERO, 7, 3, 1, ZERO(held_s), NO_SIGMA, COLUMN_ZERO, 11},
    {"amplitude", CELL_ECHO, 9, 5, 1, ECHO(amplitude), ECHO(amplitude_sigma), 0, 12},
    {"phase", CELL_ECHO, 6, 3, 1, ECHO(phase_rad), ECHO(phase_sigma_rad), 0, 13},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0], FIRST_PLAIN_RANK = 12 };

/* A row that is being written. echo, truth: NULL if the row has none. */
typedef struct table_line {
    const pnr_report *report;
    const pnr_echo *echo;
    const pnr_report_truth *truth;
    char text[ROW_LEN];
    size_t length;
} table_line;

/* Adds a cell. Its text ends `blank` characters before the right end of the cell. */
static void add_cell(table_line *r, int width, int blank, const char *text)
{
    const int n = snprintf(r->text + r->length, sizeof r->text - r->length, " %*s%*s",
                           width - blank, text, blank, "");

    r->length += n > 0 ? (size_t)n : 0;
}

/* Adds a number. The decimal points of a column are aligned: there is space for `places` decimals
 * between the point and the right end. */
static void add_number(table_line *r, int width, int places, int decimals, double value)
{
    const int blank = decimals == 0 && places > 0 ? places + 1 : places - decimals;
    char text[64];

    if (isfinite(value))
        snprintf(text, sizeof text, fabs(value) < 1e12 ? "%.*f" : "%.*e", decimals, value);
    add_cell(r, width, isfinite(value) && blank > 0 ? blank : 0, isfinite(value) ? text : "-");
}

/* Returns the number of decimals that show two digits of a sigma, at most MOST_DECIMALS. Returns
 * `places` if there is no sigma. */
static int decimals_of(double sigma, int places)
{
    const double decimals = 1 - floor(log10(sigma));

    if (!(sigma > 0) || !isfinite(decimals))
        return places;
    return (int)fmin(fmax(decimals, 0), MOST_DECIMALS);
}

static const char *label_of(const pnr_echo *echo, char number[16])
{
    snprintf(number, 16, "%" PRIu32, echo->code + 1);
    return echo->code_name.text[0] != '\0' ? echo->code_name.text : number;
}

static double read_double(const void *from, size_t offset)
{
    double value = NAN;

    if (from != NULL)
        memcpy(&value, (const char *)from + offset, sizeof value);
    return value;
}

static void add_column(const pnr_printer *p, table_line *r, const struct column *c)
{
    const pnr_zero *zero = r->report->zero.is_tracked ? &r->report->zero : NULL;
    const void *const sources[] = {
        [CELL_ECHO] = r->echo, [CELL_ZERO] = zero, [CELL_TRUTH] = r->truth};
    int decimals = c->places;
    char number[16];

    if (c->kind == CELL_CODE) {
        add_cell(r, (int)p->code_width, 0, r->echo != NULL ? label_of(r->echo, number) : "-");
    } else if (c->kind == CELL_TARGET) {
        add_number(r, c->width, 0, 0, r->truth != NULL ? r->truth->target : (double)NAN);
    } else {
        if (c->sigma != NO_SIGMA)
            decimals = decimals_of(read_double(r->echo, c->sigma) * c->scale, c->places);
        add_number(r, c->width, c->places, decimals,
                   read_double(sources[c->kind], c->offset) * c->scale);
    }
}

/* Returns the bits of the optional columns that a result needs. *code_width: the width of its
 * longest code name, in characters. */
static unsigned columns_of(const pnr_report *report, bool with_truth, unsigned *code_width)
{
    unsigned only = (report->zero.is_tracked ? COLUMN_ZERO : 0) | (with_truth ? COLUMN_TRUTH : 0);
    char number[16];

    *code_width = CODE_WIDTH;
    for (size_t i = 0; i < report->detection.n_echoes; i++) {
        const pnr_echo *e = &report->detection.echoes[i];
        const unsigned width = (unsigned)strlen(label_of(e, number));

        only |= (e->code > 0 || e->code_name.text[0] != '\0' ? COLUMN_CODE : 0) |
                (isfinite(e->doppler_hz) ? COLUMN_DOPPLER : 0) |
                (isfinite(e->velocity_mps) ? COLUMN_VELOCITY : 0);
        *code_width = width > *code_width ? width : *code_width;
    }
    return only;
}

static unsigned time_width(const pnr_printer *p)
{
    return p->date[0] != '\0' ? 15 : 12;
}

/* Chooses the columns that the table has space for, by rank. */
static void choose_columns(pnr_printer *p)
{
    unsigned used = time_width(p) + 1 + ECHO_WIDTH;

    p->shown = 0;
    for (unsigned rank = 0; rank < N_COLUMNS; rank++)
        for (size_t i = 0; i < N_COLUMNS; i++) {
            const struct column *c = &columns[i];
            const unsigned width = 1 + (c->kind == CELL_CODE ? p->code_width : (unsigned)c->width);
            const unsigned most = rank < FIRST_PLAIN_RANK ? TABLE_WIDTH : PLAIN_WIDTH;

            if (c->rank != rank || (c->only & ~p->columns) != 0)
                continue;
            if (used + width > most)
                return;
            p->shown |= 1u << i;
            used += width;
        }
}

/* Writes the date of a result, or "" if the time of the result is not known. */
static void date_of(const pnr_report *report, char date[PNR_DATE_LEN])
{
    char when[PNR_TIME_LEN] = "";

    if (report->has_time)
        pnr_time_format(report->time_ns, when);
    snprintf(date, PNR_DATE_LEN, "%.10s", when);
}

/* Prints a header line if this result needs columns, a width or a date that the last header line
 * does not have. */
static void table_header(pnr_printer *p, const pnr_report *report)
{
    unsigned code_width;
    const unsigned only = columns_of(report, p->with_truth, &code_width);
    char date[PNR_DATE_LEN], title[32];
    table_line r = {.report = report};

    date_of(report, date);
    if (p->has_begun && (only & ~p->columns) == 0 && code_width <= p->code_width &&
        strcmp(date, p->date) == 0)
        return;
    p->columns |= only;
    p->code_width = code_width > p->code_width ? code_width : p->code_width;
    memcpy(p->date, date, sizeof date);
    choose_columns(p);
    snprintf(title, sizeof title, "%s%s", date[0] != '\0' ? "UTC " : "time s", date);
    r.length = (size_t)snprintf(r.text, sizeof r.text, "%-*s", (int)time_width(p), title);
    add_cell(&r, ECHO_WIDTH, 0, "echo");
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (p->shown & 1u << i)
            add_cell(&r, columns[i].kind == CELL_CODE ? (int)p->code_width : columns[i].width, 0,
                     columns[i].title);
    fprintf(p->stream, "%s\n", r.text);
}

/* Prints the line of echo i. truth: the true values of this echo, or NULL. Flags that do not fit
 * the width are printed in a line of their own. */
static void table_row(pnr_printer *p, const pnr_report *report, const pnr_report_truth *truth,
                      size_t i)
{
    const bool is_echo = i < report->detection.n_echoes;
    table_line r = {
        .report = report, .echo = is_echo ? &report->detection.echoes[i] : NULL, .truth = truth};
    char when[PNR_TIME_LEN], flags[ROW_LEN], lost[32] = "";

    if (report->has_time)
        r.length = (size_t)snprintf(r.text, sizeof r.text, "%.15s",
                                    pnr_time_format(report->time_ns, when) + PNR_DATE_LEN);
    else
        r.length = (size_t)snprintf(r.text, sizeof r.text, "%-12.6f",
                                    (double)report->sample / report->rate_hz);
    add_number(&r, ECHO_WIDTH, 0, 0, is_echo ? (double)(i + 1) : (double)NAN);
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (p->shown & 1u << c)
            add_column(p, &r, &columns[c]);
    while (r.length > 0 && r.text[r.length - 1] == ' ')
        r.text[--r.length] = '\0';
    flag_list(report->flags, ',', flags);
    if (report->lost > 0)
        snprintf(lost, sizeof lost, " %" PRIu64, report->lost);
    fputs(r.text, p->stream);
    if (report->lost > 0 || report->flags != 0)
        fprintf(p->stream, "%s%s%s%s",
                r.length + strlen(lost) + 1 + strlen(flags) <= TABLE_WIDTH ? "" : "\n      ", lost,
                flags[0] != '\0' ? " " : "", flags);
    putc('\n', p->stream);
}

/* --- csv --- */

#define CSV_NAME(x, name) "," #name
#define CSV_ZERO_NAME(x, name) ",zero_" #name
#define CSV_NOTHING(x, name) ","
#define CSV_CODE(from, name) add_field_u64(t, (from)->name + (uint64_t)1);
#define CSV_COUNT(from, name) add_field_u64(t, (from)->name);
#define CSV_DOUBLE(from, name) add_field(t, (from)->name);

static void csv_header(pnr_printer *p)
{
    fputs("seq,sample,time,periods,lost,lost_before,slip,flags,noise_db,pfa_cell,cells_above,"
          "latency_us,"
          "echo" PNR_ECHO_FIELDS(CSV_NAME, CSV_NAME, CSV_NAME, CSV_NAME, )
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
    add_field_u64(t, report->slip);
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
        PNR_ECHO_FIELDS(CSV_CODE, CSV_COUNT, CSV_DOUBLE, CSV_DOUBLE, &detection->echoes[i])
    } else {
        pnr_text_add(t, "," PNR_ECHO_FIELDS(CSV_NOTHING, CSV_NOTHING, CSV_NOTHING, CSV_NOTHING, ));
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

/* Prints the row of echo i. truth: the true values of this echo, or NULL. */
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

/* --- all formats --- */

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
    if (p->print == PNR_PRINT_TABLE)
        table_header(p, report);
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
