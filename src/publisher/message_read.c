/* SPDX-License-Identifier: MIT */
/* The reader of the wire: finds values by name and checks every value. Compares the header of a
 * profile or map with the size of its cells. */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "publisher/message.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t year_2262_ns = INT64_C(9214646400) * PNR_NS_PER_S;

/* The reader of one message. It owns root until close_message. It stores the first error and
 * ignores later errors. */
typedef struct reader {
    json_t *root;
    pnr_error *error;
    int code;
} reader;

/* --- values by name --- */

static void refuse_member(reader *r, const char *name, const char *what)
{
    if (r->code == PNR_OK)
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: \"%s\" %s", name, what);
}

/* Returns a member. Its absence is an error. */
static json_t *get_member(reader *r, const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    if (value == NULL)
        refuse_member(r, name, "is missing");
    return value;
}

static uint64_t get_u64(reader *r, const json_t *object, const char *name, uint64_t max)
{
    const json_t *value = get_member(r, object, name);
    const json_int_t n = json_integer_value(value);

    if (json_is_integer(value) && n >= 0 && (uint64_t)n <= max)
        return (uint64_t)n;
    refuse_member(r, name, "is no integer in its range");
    return 0;
}

/* Returns a 64-bit integer. The message has it as a string of digits. */
static uint64_t get_long(reader *r, const json_t *object, const char *name)
{
    const char *digits = json_string_value(get_member(r, object, name));
    uint64_t value;

    if (digits == NULL || digits[0] == '\0' || (digits[0] == '0' && digits[1] != '\0')) {
        refuse_member(r, name, "is no integer in a string");
        return 0;
    }
    errno = 0;
    value = strtoull(digits, NULL, 10);
    if (errno == 0 && digits[strspn(digits, "0123456789")] == '\0')
        return value;
    refuse_member(r, name, "is no 64-bit integer");
    return 0;
}

/* Returns a number; NAN for null. */
static double get_double(reader *r, const json_t *object, const char *name)
{
    const json_t *value = get_member(r, object, name);

    if (json_is_number(value))
        return json_number_value(value);
    if (!json_is_null(value))
        refuse_member(r, name, "is neither a number nor null");
    return NAN;
}

/* Reads a finite number; null is an error too. */
static double get_finite(reader *r, const char *name, bool is_positive)
{
    const double value = get_double(r, r->root, name);

    if (!isfinite(value) || (is_positive && value <= 0))
        refuse_member(r, name, is_positive ? "is no number above 0" : "is no number");
    return value;
}

/* Copies a string, and refuses control characters. */
static void get_string(reader *r, const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(get_member(r, object, name));

    out[0] = '\0';
    if (text == NULL)
        refuse_member(r, name, "is no string");
    else if (strlen(text) >= size)
        refuse_member(r, name, "is too long");
    else
        memcpy(out, text, strlen(text) + 1);
    if (pnr_text_find_control(out, strlen(out)) != NULL)
        refuse_member(r, name, "has a control character");
}

/* Parses the text and reads the first members, which every message has. */
static void open_message(reader *r, const char *text, size_t length, char run[17],
                         char stream[PNR_TEXT_LEN], uint64_t *seq)
{
    json_error_t json_error;

    if (length > PNR_MESSAGE_MAX) { /* a JSON tree takes many times the memory of its text */
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: a text of %zu bytes: at most %d",
                                length, PNR_MESSAGE_MAX);
        return;
    }
    r->root = pnr_json_read(text, length, &json_error);
    if (r->root == NULL) {
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: no JSON: %s (byte %d)",
                                json_error.text, json_error.position);
        return;
    }
    if (!json_is_object(r->root)) {
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: no JSON object");
        return;
    }
    if (get_u64(r, r->root, "v", INT64_MAX) != 1)
        refuse_member(r, "v", "is not 1: made by another version");
    get_string(r, r->root, "run", run, 17);
    if (r->code == PNR_OK && (strlen(run) != 16 || strspn(run, "0123456789abcdef") != 16))
        refuse_member(r, "run", "is not 16 hex digits");
    get_string(r, r->root, "stream", stream, PNR_TEXT_LEN);
    if (stream[0] == '\0')
        refuse_member(r, "stream", "is empty");
    *seq = get_u64(r, r->root, "seq", INT64_MAX);
}

static int close_message(reader *r)
{
    json_decref(r->root);
    return r->code;
}

/* Clears *out, opens a message about a dwell and reads the members that all such messages have. */
static void open_dwell(reader *r, const char *text, size_t length, pnr_report *out)
{
    const json_t *time;
    char source[8];
    size_t i = 0;

    memset(out, 0, sizeof *out);
    open_message(r, text, length, out->run, out->stream, &out->seq);
    out->sample = get_long(r, r->root, "sample");
    time = get_member(r, r->root, "time");
    out->has_time = !json_is_null(time);
    if (out->has_time &&
        (!json_is_string(time) || pnr_time_parse(json_string_value(time), &out->time_ns) != PNR_OK))
        refuse_member(r, "time", "is no UTC time");
    get_string(r, r->root, "time_source", source, sizeof source);
    while (i < PNR_N_TIME_SOURCES && strcmp(source, pnr_time_source_words[i]) != 0)
        i++;
    if (i == PNR_N_TIME_SOURCES)
        refuse_member(r, "time_source", "is none of none, file, host, source");
    else
        out->time_source = (pnr_time_source)i;
    out->rate_hz = get_finite(r, "rate_hz", true);
    get_string(r, r->root, "engine", out->engine, sizeof out->engine);
}

/* --- range, status and end --- */

static unsigned read_flags(reader *r)
{
    const json_t *words = get_member(r, r->root, "flags");
    unsigned flags = 0;

    if (!json_is_array(words))
        refuse_member(r, "flags", "is no list");
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        size_t bit = 0;

        while (bit < PNR_N_FLAGS && (word == NULL || strcmp(word, pnr_flag_words[bit]) != 0))
            bit++;
        if (bit == PNR_N_FLAGS || flags & 1u << bit)
            refuse_member(r, "flags", "has an unknown or doubled word");
        else
            flags |= 1u << bit;
    }
    return flags;
}

#define READ_CODE(object, name) .name = get_code(r, object, #name),
#define READ_COUNT(object, name) .name = (uint32_t)get_u64(r, object, #name, UINT32_MAX),
#define READ_DOUBLE(object, name) .name = get_double(r, object, #name),

/* Returns the index of a code: its number - 1, because the numbers begin at 1. */
static uint32_t get_code(reader *r, const json_t *object, const char *name)
{
    const uint64_t number = get_u64(r, object, name, UINT32_MAX);

    if (number == 0)
        refuse_member(r, name, "is 0: codes count from 1");
    return (uint32_t)(number - 1);
}

static void read_echo(reader *r, const json_t *object, pnr_echo *out)
{
    if (!json_is_object(object))
        refuse_member(r, "echoes", "has an element that is no object");
    *out = (pnr_echo){.lag = NAN,
                      .snr = NAN,
                      PNR_ECHO_FIELDS(READ_CODE, READ_COUNT, READ_DOUBLE, READ_DOUBLE, object)};
    get_string(r, object, "code_name", out->code_name.text, sizeof out->code_name.text);
}

/* Reads the zero delay. The message has none if radar.zero is fixed. */
static void read_zero(reader *r, pnr_zero *out)
{
    const json_t *object = json_object_get(r->root, "zero");

    if (object == NULL)
        return;
    if (!json_is_object(object))
        refuse_member(r, "zero", "is no object");
    *out = (pnr_zero){.is_tracked = true,
                      PNR_ZERO_FIELDS(READ_DOUBLE, READ_DOUBLE, READ_DOUBLE, object)};
}

static double power_of(double db)
{
    return isfinite(db) ? pow(10, db / 10) : 0;
}

int pnr_message_read_range(const char *text, size_t length, pnr_report *out, pnr_error *error)
{
    reader r = {.error = error};
    const json_t *echoes;

    open_dwell(&r, text, length, out);
    out->periods = (uint32_t)get_u64(&r, r.root, "periods", UINT32_MAX);
    out->lost = get_u64(&r, r.root, "lost", INT64_MAX);
    out->lost_before = get_u64(&r, r.root, "lost_before", INT64_MAX);
    out->slip = (uint32_t)get_u64(&r, r.root, "slip", UINT32_MAX);
    out->flags = read_flags(&r);
    out->latency_us = get_double(&r, r.root, "latency_us");
    out->detection.noise_power = power_of(get_double(&r, r.root, "noise_db"));
    out->pfa_cell = get_double(&r, r.root, "pfa_cell");
    out->cells_above = (uint32_t)get_u64(&r, r.root, "cells_above", UINT32_MAX);
    read_zero(&r, &out->zero);
    echoes = get_member(&r, r.root, "echoes");
    if (!json_is_array(echoes) || json_array_size(echoes) > PNR_MAX_CANDIDATES)
        refuse_member(&r, "echoes", "is no list of at most 64");
    for (size_t i = 0; r.code == PNR_OK && i < json_array_size(echoes); i++)
        read_echo(&r, json_array_get(echoes, i), &out->detection.echoes[i]);
    out->detection.n_echoes = r.code == PNR_OK ? json_array_size(echoes) : 0;
    return close_message(&r);
}

static void read_radar(reader *r, pnr_radar_summary *out)
{
    const json_t *object = json_object_get(r->root, "radar");

    if (object == NULL)
        return;
    if (!json_is_object(object))
        refuse_member(r, "radar", "is no object");
    get_string(r, object, "code_type", out->code_type, sizeof out->code_type);
    out->n_chips = get_u64(r, object, "n_chips", INT64_MAX);
    out->period_s = get_double(r, object, "period_s");
}

/* Reads the members that status and end messages share. */
static void read_summary(reader *r, const char *text, size_t length, pnr_end_summary *out)
{
    const json_t *account;
    uint64_t seq;

    memset(out, 0, sizeof *out);
    open_message(r, text, length, out->run, out->stream, &seq);
    account = get_member(r, r->root, "account");
    if (!json_is_object(account))
        refuse_member(r, "account", "is no object");
#define READ_ACCOUNT(name) out->account.name = get_long(r, account, #name);
    PNR_ACCOUNT_FIELDS(READ_ACCOUNT)
    out->deadline_s = get_double(r, r->root, "deadline_s");
    out->ring_fill = get_double(r, r->root, "ring_fill");
    read_radar(r, &out->radar);
}

int pnr_message_read_status(const char *text, size_t length, pnr_end_summary *out, pnr_error *error)
{
    reader r = {.error = error};

    read_summary(&r, text, length, out);
    return close_message(&r);
}

int pnr_message_read_end(const char *text, size_t length, pnr_end_summary *out, pnr_error *error)
{
    reader r = {.error = error};
    const char *reason;

    read_summary(&r, text, length, out);
    reason = json_string_value(get_member(&r, r.root, "reason"));
    if (reason == NULL)
        refuse_member(&r, "reason", "is no string");
    else
        strncpy(out->reason, reason, sizeof out->reason - 1);
    pnr_text_hide_controls(out->reason); /* the text of an error may quote any byte */
    out->exit_status = (int)get_u64(&r, r.root, "exit_status", 255);
    return close_message(&r);
}

int pnr_message_read_event(const char *text, size_t length, pnr_event_summary *out,
                           pnr_error *error)
{
    reader r = {.error = error};
    const json_t *sample;
    char time[PNR_TIME_LEN];

    memset(out, 0, sizeof *out);
    open_message(&r, text, length, out->run, out->stream, &out->seq);
    get_string(&r, r.root, "event", out->kind, sizeof out->kind);
    get_string(&r, r.root, "time", time, sizeof time);
    if (pnr_time_parse(time, &out->utc_ns) != PNR_OK)
        refuse_member(&r, "time", "is no UTC time");
    sample = get_member(&r, r.root, "sample");
    out->sample = json_is_null(sample) ? PNR_EVENT_NO_SAMPLE : get_long(&r, r.root, "sample");
    out->count = get_u64(&r, r.root, "count", INT64_MAX);
    get_string(&r, r.root, "text", out->text, sizeof out->text);
    return close_message(&r);
}

/* --- profiles and maps --- */

/* Reads the kind of the cells, power or complex. name: "profile" or "map". Returns the size of a
 * cell in bytes. */
static size_t read_kind(reader *r, const char *name, pnr_profile_info *out)
{
    char kind[8];

    get_string(r, r->root, name, kind, sizeof kind);
    out->is_complex = strcmp(kind, "complex") == 0;
    if (!out->is_complex && strcmp(kind, "power") != 0)
        refuse_member(r, name, "is neither power nor complex");
    get_string(r, r->root, "dtype", kind, sizeof kind);
    if (strcmp(kind, out->is_complex ? "<c8" : "<f4") != 0)
        refuse_member(r, "dtype", "is not that of the cells");
    return out->is_complex ? 2 * sizeof(float) : sizeof(float);
}

/* Checks the names of the codes. Stores the name if there is only one code. */
static void read_codes(reader *r, const json_t *codes, size_t n_codes, pnr_profile_info *out)
{
    if (!json_is_array(codes) || json_array_size(codes) != n_codes)
        refuse_member(r, "codes", "is no list of as many names");
    for (size_t i = 0; i < json_array_size(codes); i++)
        if (!json_is_string(json_array_get(codes, i)))
            refuse_member(r, "codes", "has an element that is no name");
    if (r->code == PNR_OK && n_codes == 1)
        snprintf(out->code, sizeof out->code, "%s", json_string_value(json_array_get(codes, 0)));
}

/* Reads the last members of profiles and maps; out->n_cells must be set. */
static void read_cells(reader *r, pnr_profile_info *out)
{
    out->oversample = (size_t)get_u64(r, r->root, "oversample", UINT32_MAX);
    if (out->oversample == 0)
        refuse_member(r, "oversample", "is 0");
    out->first_cell = (size_t)get_u64(r, r->root, "first_cell", UINT32_MAX);
    out->n_gate = (size_t)get_u64(r, r->root, "n_gate", UINT32_MAX);
    if (out->first_cell >= out->n_cells || out->n_gate < 1 || out->n_gate > out->n_cells)
        refuse_member(r, "n_gate", "or first_cell is beyond n_cells");
    out->delay_s = get_finite(r, "delay_s", false);
    out->step_s = get_finite(r, "step_s", true);
    out->metres_per_second = get_finite(r, "metres_per_second", true);
    out->dwell_samples = get_u64(r, r->root, "dwell_samples", INT64_MAX);
    if (out->dwell_samples == 0)
        refuse_member(r, "dwell_samples", "is 0");
    out->floor = get_double(r, r->root, "floor");
    out->threshold = get_double(r, r->root, "threshold");
}

int pnr_message_read_profile(const char *text, size_t length, size_t bytes, pnr_report *report,
                             pnr_profile_info *info, pnr_error *error)
{
    reader r = {.error = error};
    size_t each;

    memset(info, 0, sizeof *info);
    open_dwell(&r, text, length, report);
    each = read_kind(&r, "profile", info);
    info->n_cells = (size_t)get_u64(&r, r.root, "n_cells", UINT32_MAX);
    if (info->n_cells == 0 || bytes % each != 0 || bytes / each != info->n_cells)
        refuse_member(&r, "n_cells", "does not fit the bytes that arrived");
    if (json_object_get(r.root, "codes") != NULL) /* earlier versions send no name */
        read_codes(&r, json_object_get(r.root, "codes"), 1, info);
    read_cells(&r, info);
    return close_message(&r);
}

/* Reads the shape. Its product must be the number of cells that arrived. The function divides this
 * number by each size, because a product of the sizes may overflow. */
static void read_shape(reader *r, size_t bytes, size_t each, pnr_map_info *out)
{
    const json_t *shape = get_member(r, r->root, "shape");
    size_t *const sizes[] = {&out->n_codes, &out->n_rows, &out->row.n_cells};
    uint64_t left = bytes % each == 0 ? bytes / each : 0;

    if (!json_is_array(shape) || json_array_size(shape) != 3)
        refuse_member(r, "shape", "is no list of three");
    for (size_t i = 0; i < 3; i++) {
        const json_int_t n = json_integer_value(json_array_get(shape, i));

        *sizes[i] = n > 0 ? (size_t)n : 0;
        left = n > 0 && left % (uint64_t)n == 0 ? left / (uint64_t)n : 0;
    }
    if (left != 1)
        refuse_member(r, "shape", "does not fit the bytes that arrived");
    read_codes(r, get_member(r, r->root, "codes"), out->n_codes, &out->row);
}

static void read_doppler(reader *r, pnr_map_info *out)
{
    const json_t *runs = get_member(r, r->root, "doppler");
    const size_t n = json_array_size(runs);
    double last_hz = -INFINITY;
    uint64_t n_rows = 0;

    if (n < 1 || n > PNR_MAX_DOPPLER_RUNS)
        refuse_member(r, "doppler", "is no list of 1 to 512");
    for (size_t i = 0; i < n && r->code == PNR_OK; i++) {
        const json_t *object = json_array_get(runs, i);
        pnr_doppler_run *run = &out->runs[i];

        if (!json_is_object(object))
            refuse_member(r, "doppler", "has an element that is no object");
        run->first_hz = get_double(r, object, "first_hz");
        run->step_hz = get_double(r, object, "step_hz");
        run->n_rows = (size_t)get_u64(r, object, "n_rows", UINT32_MAX);
        if (!(run->first_hz > last_hz) || !isfinite(run->first_hz) || run->n_rows < 1 ||
            !(run->step_hz > 0 || (run->step_hz == 0 && run->n_rows == 1)))
            refuse_member(r, "doppler", "does not ascend");
        last_hz = run->first_hz + run->step_hz * (double)(run->n_rows - 1);
        n_rows += run->n_rows;
    }
    if (n_rows != out->n_rows || !isfinite(last_hz))
        refuse_member(r, "doppler", "has not as many rows");
    out->n_runs = n;
}

int pnr_message_read_map(const char *text, size_t length, size_t bytes, pnr_report *report,
                         pnr_map_info *info, pnr_error *error)
{
    reader r = {.error = error};

    memset(info, 0, sizeof *info);
    open_dwell(&r, text, length, report);
    read_shape(&r, bytes, read_kind(&r, "map", &info->row), info);
    read_doppler(&r, info);
    info->mps_per_hz = get_double(&r, r.root, "mps_per_hz");
    read_cells(&r, &info->row);
    return close_message(&r);
}

/* --- packed results --- */

static pnr_record record_at(const void *records, size_t index)
{
    pnr_record record; /* a copy, since the array may be unaligned */

    memcpy(&record, (const char *)records + index * sizeof record, sizeof record);
    return record;
}

/* Returns the number of records of one dwell: one for each echo, or one if there is no echo. */
static size_t records_of(const pnr_record *record)
{
    return record->n_echoes > 0 ? record->n_echoes : 1;
}

/* True for UTF-8 without control characters and with a NUL at the end. A text of 16 bytes has no
 * NUL after it and is refused. */
static bool is_label(const pnr_code_label *label)
{
    const size_t n = strnlen(label->text, sizeof label->text);

    if (n == sizeof label->text || pnr_text_find_control(label->text, n) != NULL)
        return false;
    for (size_t at = 0, bytes; at < n; at += bytes)
        if ((bytes = pnr_text_character(label->text + at)) == 0)
            return false;
    return true;
}

/* Checks the n records of one dwell. */
static void check_dwell(reader *r, const void *records, size_t at, size_t n)
{
    const pnr_record first = record_at(records, at);

    for (size_t i = 0; i < n; i++) {
        const pnr_record record = record_at(records, at + i);

        if (record.seq != first.seq || record.n_echoes != first.n_echoes || record.echo != i)
            refuse_member(r, "echo", "of a record is out of order");
        if (record.time_ns != INT64_MIN && (record.time_ns < 0 || record.time_ns >= year_2262_ns))
            refuse_member(r, "time_ns", "of a record is not within 1970..2261");
        if (record.n_echoes > 0 && record.code == 0)
            refuse_member(r, "code", "of a record is 0: codes count from 1");
        if (!is_label(&record.code_name))
            refuse_member(r, "code_name", "of a record is no text");
        if (record.flags >> PNR_N_FLAGS != 0)
            refuse_member(r, "flags", "of a record has an unknown bit");
    }
}

/* Checks the counts of the header and all records. */
static void check_pack(reader *r, const void *records, size_t bytes)
{
    const size_t n = bytes / sizeof(pnr_record);
    const uint64_t n_records = get_u64(r, r->root, "n_records", INT64_MAX);
    const uint64_t n_results = get_u64(r, r->root, "n_results", INT64_MAX);
    uint64_t results = 0;
    size_t n_dwell;
    json_t *dtype = pnr_json_read(pnr_record_dtype, strlen(pnr_record_dtype), NULL);

    if (!json_equal(get_member(r, r->root, "dtype"), dtype))
        refuse_member(r, "dtype", "is not this version's record");
    json_decref(dtype);
    if (bytes % sizeof(pnr_record) != 0 || n != n_records)
        refuse_member(r, "n_records", "does not fit the bytes that arrived");
    for (size_t at = 0; r->code == PNR_OK && at < n; at += n_dwell, results++) {
        const pnr_record first = record_at(records, at);

        n_dwell = records_of(&first);
        if (first.n_echoes > PNR_MAX_CANDIDATES || n_dwell > n - at) {
            refuse_member(r, "n_echoes", "of a record is too large");
            return;
        }
        check_dwell(r, records, at, n_dwell);
    }
    if (results != n_results)
        refuse_member(r, "n_results", "is not the number of dwells in the records");
}

static double finite_or_nan(double value)
{
    return isfinite(value) ? value : (double)NAN;
}

#define TAKE_CODE(record, name) .name = (record)->name - 1, .name##_name = (record)->name##_name,
#define TAKE_COUNT(record, name) .name = (record)->name,
#define TAKE_DOUBLE(record, name) .name = finite_or_nan((double)(record)->name),
#define TAKE_ZERO(record, name) .name = finite_or_nan((double)(record)->zero_##name),
#define TAKE_NOTHING(record, name) .name = NAN,

static void take_echo(const pnr_record *record, pnr_echo *out)
{
    *out = (pnr_echo){.lag = NAN,
                      .snr = NAN,
                      PNR_ECHO_FIELDS(TAKE_CODE, TAKE_COUNT, TAKE_DOUBLE, TAKE_DOUBLE, record)};
}

static void take_dwell(const pnr_record *record, pnr_report *out)
{
    out->seq = record->seq;
    out->sample = record->sample;
    out->has_time = record->time_ns != INT64_MIN;
    out->time_ns = out->has_time ? record->time_ns : 0;
    out->periods = record->periods;
    out->lost = record->lost;
    out->lost_before = record->lost_before;
    out->flags = record->flags;
    out->slip = record->slip;
    out->latency_us = finite_or_nan((double)record->latency_us);
    out->cells_above = record->cells_above;
    out->zero = (pnr_zero){.is_tracked = isfinite(record->zero_delay_s),
                           PNR_ZERO_FIELDS(TAKE_ZERO, TAKE_ZERO, TAKE_NOTHING, record)};
    out->detection.noise_power = power_of((double)record->noise_db);
    out->detection.n_echoes = record->n_echoes;
}

int pnr_message_open_pack(const char *header, size_t length, const void *records, size_t bytes,
                          pnr_pack *out, pnr_error *error)
{
    reader r = {.error = error};

    out->records = records;
    out->n_records = bytes / sizeof(pnr_record);
    out->at = 0;
    open_dwell(&r, header, length, &out->head);
    check_pack(&r, records, bytes);
    out->head.pfa_cell = get_double(&r, r.root, "pfa_cell");
    return close_message(&r);
}

bool pnr_message_next_dwell(pnr_pack *pack, pnr_report *out)
{
    pnr_record record;

    if (pack->at >= pack->n_records)
        return false;
    record = record_at(pack->records, pack->at);
    *out = pack->head;
    take_dwell(&record, out);
    for (size_t i = 0; i < record.n_echoes; i++) {
        const pnr_record echo = record_at(pack->records, pack->at + i);

        take_echo(&echo, &out->detection.echoes[i]);
    }
    pack->at += records_of(&record);
    return true;
}
