/* SPDX-License-Identifier: MIT */
/* The reader of the wire: strict, never trusts what it reads. */
#include "message.h"

#include "clock.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLAG_WORD(name, word) [PNR_FLAG_BIT_##name] = word,
static const char *const flag_words[] = {PNR_FLAGS(FLAG_WORD)};
enum { N_FLAGS = sizeof flag_words / sizeof flag_words[0] };

#define TIME_WORD(name, word) [PNR_TIME_##name] = word,
static const char *const time_sources[] = {PNR_TIME_SOURCES(TIME_WORD)};

static const int64_t year_2262_ns = INT64_C(9214646400) * PNR_NS_PER_S;

/* One message while it is read: the first thing wrong is kept, and later reads do no harm. */
typedef struct reader {
    json_t *root;
    pnr_error *error;
    int code;
} reader;

static void wrong(reader *r, const char *name, const char *what)
{
    if (r->code == PNR_OK)
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: \"%s\" %s", name, what);
}

static json_t *get(reader *r, const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    if (value == NULL)
        wrong(r, name, "is missing");
    return value;
}

static uint64_t get_u64(reader *r, const json_t *object, const char *name, uint64_t max)
{
    const json_t *value = get(r, object, name);

    if (value == NULL)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max) {
        wrong(r, name, "is no integer in its range");
        return 0;
    }
    return (uint64_t)json_integer_value(value);
}

/* A 64-bit integer as a string of digits. */
static uint64_t get_long(reader *r, const json_t *object, const char *name)
{
    const char *digits = json_string_value(get(r, object, name));
    uint64_t value = 0;
    size_t i;

    if (digits == NULL || digits[0] == '\0' || (digits[0] == '0' && digits[1] != '\0')) {
        wrong(r, name, "is no integer in a string");
        return 0;
    }
    for (i = 0; digits[i] != '\0'; i++) {
        if (digits[i] < '0' || digits[i] > '9' ||
            __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(digits[i] - '0'), &value)) {
            wrong(r, name, "is no 64-bit integer");
            return 0;
        }
    }
    return value;
}

/* NAN for null. */
static double get_double(reader *r, const json_t *object, const char *name)
{
    const json_t *value = get(r, object, name);

    if (json_is_number(value))
        return json_number_value(value);
    if (!json_is_null(value))
        wrong(r, name, "is neither a number nor null");
    return NAN;
}

/* A string fit for a terminal and a log. */
static void get_string(reader *r, const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(get(r, object, name));
    size_t i;

    out[0] = '\0';
    if (text == NULL)
        wrong(r, name, "is no string");
    else if (strlen(text) >= size)
        wrong(r, name, "is too long");
    else
        memcpy(out, text, strlen(text) + 1);
    for (i = 0; out[i] != '\0'; i++)
        if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
            wrong(r, name, "has a control character");
}

/* Parses, and reads what every message begins with. */
static void open_message(reader *r, const char *text, size_t length, char run[17],
                         char stream[PNR_TEXT_LEN], uint64_t *seq)
{
    json_error_t json_error;

    r->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
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
        wrong(r, "v", "is not 1: made by another version");
    get_string(r, r->root, "run", run, 17);
    if (r->code == PNR_OK && (strlen(run) != 16 || strspn(run, "0123456789abcdef") != 16))
        wrong(r, "run", "is not 16 hex digits");
    get_string(r, r->root, "stream", stream, PNR_TEXT_LEN);
    if (stream[0] == '\0')
        wrong(r, "stream", "is empty");
    *seq = get_u64(r, r->root, "seq", INT64_MAX);
}

static int close_message(reader *r)
{
    json_decref(r->root);
    return r->code;
}

static void read_moment(reader *r, pnr_report *out)
{
    const json_t *time = get(r, r->root, "time");
    char source[8];
    size_t i;

    out->sample = get_long(r, r->root, "sample");
    out->has_time = !json_is_null(time);
    if (out->has_time &&
        (!json_is_string(time) || pnr_time_parse(json_string_value(time), &out->time_ns) != PNR_OK))
        wrong(r, "time", "is no UTC time");
    get_string(r, r->root, "time_source", source, sizeof source);
    for (i = 0; i < sizeof time_sources / sizeof time_sources[0]; i++) {
        if (strcmp(source, time_sources[i]) == 0) {
            out->time_source = (pnr_time_source)i;
            return;
        }
    }
    wrong(r, "time_source", "is none of none, file, host");
}

static unsigned read_flags(reader *r)
{
    const json_t *words = get(r, r->root, "flags");
    unsigned flags = 0;
    size_t i, bit;

    if (!json_is_array(words))
        wrong(r, "flags", "is no list");
    for (i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));

        for (bit = 0; bit < N_FLAGS; bit++)
            if (word != NULL && strcmp(word, flag_words[bit]) == 0)
                break;
        if (bit == N_FLAGS || flags & 1u << bit)
            wrong(r, "flags", "has an unknown or doubled word");
        else
            flags |= 1u << bit;
    }
    return flags;
}

static void read_echo(reader *r, const json_t *object, pnr_echo *out)
{
    if (!json_is_object(object)) {
        wrong(r, "echoes", "has an element that is no object");
        return;
    }
    *out = (pnr_echo){
        .code = (uint32_t)get_u64(r, object, "code", UINT32_MAX),
        .channel = (uint32_t)get_u64(r, object, "channel", UINT32_MAX),
        .delay_s = get_double(r, object, "delay_s"),
        .delay_samples = get_double(r, object, "delay_samples"),
        .delay_sigma_s = get_double(r, object, "delay_sigma_s"),
        .lag = NAN,
        .snr = NAN,
        .range_m = get_double(r, object, "range_m"),
        .range_sigma_m = get_double(r, object, "range_sigma_m"),
        .snr_db = get_double(r, object, "snr_db"),
        .amplitude = get_double(r, object, "amplitude"),
        .amplitude_sigma = get_double(r, object, "amplitude_sigma"),
        .phase_rad = get_double(r, object, "phase_rad"),
        .phase_sigma_rad = get_double(r, object, "phase_sigma_rad"),
        .doppler_hz = get_double(r, object, "doppler_hz"),
        .doppler_sigma_hz = get_double(r, object, "doppler_sigma_hz"),
        .velocity_mps = get_double(r, object, "velocity_mps"),
        .velocity_sigma_mps = get_double(r, object, "velocity_sigma_mps"),
    };
}

/* The zero delay: not there when it is fixed. */
static void read_zero(reader *r, pnr_zero *out)
{
    const json_t *object = json_object_get(r->root, "zero");

    if (object == NULL)
        return;
    if (!json_is_object(object)) {
        wrong(r, "zero", "is no object");
        return;
    }
    *out = (pnr_zero){
        .is_tracked = true,
        .delay_s = get_double(r, object, "delay_s"),
        .sigma_s = get_double(r, object, "sigma_s"),
        .snr_db = get_double(r, object, "snr_db"),
        .drift_ppm = get_double(r, object, "drift_ppm"),
        .held_s = get_double(r, object, "held_s"),
        .moved_s = get_double(r, object, "moved_s"),
    };
}

static double power_of(double db)
{
    return isfinite(db) ? pow(10, db / 10) : 0;
}

int pnr_message_read_range(const char *text, size_t length, pnr_report *out, pnr_error *error)
{
    reader r = {.error = error};
    const json_t *echoes;
    size_t i;

    memset(out, 0, sizeof *out);
    open_message(&r, text, length, out->run, out->stream, &out->seq);
    if (r.code != PNR_OK)
        return close_message(&r);
    read_moment(&r, out);
    out->periods = (uint32_t)get_u64(&r, r.root, "periods", UINT32_MAX);
    out->lost = get_u64(&r, r.root, "lost", INT64_MAX);
    out->lost_before = get_u64(&r, r.root, "lost_before", INT64_MAX);
    out->flags = read_flags(&r);
    get_string(&r, r.root, "engine", out->engine, sizeof out->engine);
    out->latency_us = get_double(&r, r.root, "latency_us");
    out->detection.noise_power = power_of(get_double(&r, r.root, "noise_db"));
    out->pfa_cell = get_double(&r, r.root, "pfa_cell");
    out->cells_above = (uint32_t)get_u64(&r, r.root, "cells_above", UINT32_MAX);
    read_zero(&r, &out->zero);
    echoes = get(&r, r.root, "echoes");
    if (!json_is_array(echoes) || json_array_size(echoes) > PNR_MAX_CANDIDATES)
        wrong(&r, "echoes", "is no list of at most 64");
    for (i = 0; r.code == PNR_OK && i < json_array_size(echoes); i++)
        read_echo(&r, json_array_get(echoes, i), &out->detection.echoes[i]);
    out->detection.n_echoes = r.code == PNR_OK ? i : 0;
    return close_message(&r);
}

/* A number that a reader divides by or counts with: null is refused too. */
static double get_finite(reader *r, const char *name, bool is_positive)
{
    const double value = get_double(r, r->root, name);

    if (!isfinite(value) || (is_positive && value <= 0))
        wrong(r, name, is_positive ? "is no number above 0" : "is no number");
    return value;
}

static void read_cells(reader *r, size_t bytes, pnr_profile_info *out)
{
    char kind[8];
    size_t each;

    get_string(r, r->root, "profile", kind, sizeof kind);
    out->is_complex = strcmp(kind, "complex") == 0;
    if (!out->is_complex && strcmp(kind, "power") != 0)
        wrong(r, "profile", "is neither power nor complex");
    get_string(r, r->root, "dtype", kind, sizeof kind);
    if (strcmp(kind, out->is_complex ? "<c8" : "<f4") != 0)
        wrong(r, "dtype", "is not that of the profile");
    each = out->is_complex ? 2 * sizeof(float) : sizeof(float);
    out->n_cells = (size_t)get_u64(r, r->root, "n_cells", UINT32_MAX);
    if (out->n_cells == 0 || bytes % each != 0 || bytes / each != out->n_cells)
        wrong(r, "n_cells", "does not fit the bytes that came");
    out->oversample = (size_t)get_u64(r, r->root, "oversample", UINT32_MAX);
    if (out->oversample == 0)
        wrong(r, "oversample", "is 0");
    out->first_cell = (size_t)get_u64(r, r->root, "first_cell", UINT32_MAX);
    out->n_gate = (size_t)get_u64(r, r->root, "n_gate", UINT32_MAX);
    if (out->first_cell >= out->n_cells || out->n_gate < 1 || out->n_gate > out->n_cells)
        wrong(r, "n_gate", "or first_cell is beyond n_cells");
}

int pnr_message_read_profile(const char *text, size_t length, size_t bytes, pnr_report *report,
                             pnr_profile_info *info, pnr_error *error)
{
    reader r = {.error = error};

    memset(report, 0, sizeof *report);
    memset(info, 0, sizeof *info);
    open_message(&r, text, length, report->run, report->stream, &report->seq);
    if (r.code != PNR_OK)
        return close_message(&r);
    read_moment(&r, report);
    get_string(&r, r.root, "engine", report->engine, sizeof report->engine);
    read_cells(&r, bytes, info);
    info->delay_s = get_finite(&r, "delay_s", false);
    info->step_s = get_finite(&r, "step_s", true);
    info->metres_per_second = get_finite(&r, "metres_per_second", true);
    info->dwell_samples = get_u64(&r, r.root, "dwell_samples", INT64_MAX);
    if (info->dwell_samples == 0)
        wrong(&r, "dwell_samples", "is 0");
    info->floor = get_double(&r, r.root, "floor");
    info->threshold = get_double(&r, r.root, "threshold");
    return close_message(&r);
}

/* Status and end are alike; an end has a reason too. */
static void read_summary(reader *r, const char *text, size_t length, pnr_end_summary *out)
{
    const json_t *account;
    uint64_t seq;

    memset(out, 0, sizeof *out);
    open_message(r, text, length, out->run, out->stream, &seq);
    if (r->code != PNR_OK)
        return;
    account = get(r, r->root, "account");
    if (!json_is_object(account)) {
        wrong(r, "account", "is no object");
        return;
    }
#define ACCOUNT_KEY(name) out->account.name = get_long(r, account, #name);
    ACCOUNT_KEY(positions)
    PNR_ACCOUNT_SAMPLES(ACCOUNT_KEY)
    ACCOUNT_KEY(windows)
    PNR_ACCOUNT_WINDOWS(ACCOUNT_KEY)
    ACCOUNT_KEY(results)
    PNR_ACCOUNT_RESULTS(ACCOUNT_KEY)
    ACCOUNT_KEY(n_clipped)
    ACCOUNT_KEY(n_nonfinite)
    ACCOUNT_KEY(deadline_missed)
    out->deadline_s = get_double(r, r->root, "deadline_s");
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
    size_t i;

    read_summary(&r, text, length, out);
    if (r.code != PNR_OK)
        return close_message(&r);
    reason = json_string_value(get(&r, r.root, "reason"));
    if (reason == NULL)
        wrong(&r, "reason", "is no string");
    else
        strncpy(out->reason, reason, sizeof out->reason - 1);
    for (i = 0; out->reason[i] != '\0'; i++)
        if ((unsigned char)out->reason[i] < 0x20 || out->reason[i] == 0x7f)
            out->reason[i] = ' '; /* an error's text may quote anything */
    out->exit_status = (int)get_u64(&r, r.root, "exit_status", 255);
    return close_message(&r);
}

/* --- packed results --- */

bool pnr_message_is_pack(const char *text, size_t length)
{
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    const bool is_pack = json_is_true(json_object_get(root, "pack"));

    json_decref(root);
    return is_pack;
}

static pnr_record record_at(const void *records, size_t index)
{
    pnr_record record; /* copied: the array need not be aligned */

    memcpy(&record, (const char *)records + index * sizeof record, sizeof record);
    return record;
}

/* Records that one dwell takes: one for each echo, and one when there is none. */
static size_t records_of(const pnr_record *record)
{
    return record->n_echoes > 0 ? record->n_echoes : 1;
}

/* The header's counts, and every record's place in its dwell. */
static void check_pack(reader *r, const void *records, size_t bytes)
{
    const size_t n = bytes / sizeof(pnr_record);
    const uint64_t n_records = get_u64(r, r->root, "n_records", INT64_MAX);
    const uint64_t n_results = get_u64(r, r->root, "n_results", INT64_MAX);
    uint64_t results = 0;
    size_t at, i;
    json_t *dtype = json_loads(pnr_record_dtype, 0, NULL);

    if (!json_equal(get(r, r->root, "dtype"), dtype))
        wrong(r, "dtype", "is not this version's record");
    json_decref(dtype);
    if (bytes % sizeof(pnr_record) != 0 || n != n_records)
        wrong(r, "n_records", "does not fit the bytes that came");
    for (at = 0; r->code == PNR_OK && at < n; at += i, results++) {
        const pnr_record first = record_at(records, at);

        if (first.n_echoes > PNR_MAX_CANDIDATES || records_of(&first) > n - at) {
            wrong(r, "n_echoes", "of a record is too large");
            return;
        }
        for (i = 0; i < records_of(&first); i++) {
            const pnr_record record = record_at(records, at + i);

            if (record.seq != first.seq || record.n_echoes != first.n_echoes || record.echo != i)
                wrong(r, "echo", "of a record is out of order");
            if (record.time_ns != INT64_MIN &&
                (record.time_ns < 0 || record.time_ns >= year_2262_ns))
                wrong(r, "time_ns", "of a record is not within 1970..2261");
            if (record.flags >> N_FLAGS != 0)
                wrong(r, "flags", "of a record has an unknown bit");
        }
    }
    if (results != n_results)
        wrong(r, "n_results", "is not the number of dwells in the records");
}

static double finite_or_nan(double value)
{
    return isfinite(value) ? value : (double)NAN;
}

static void read_record(const pnr_record *record, pnr_echo *out)
{
    *out = (pnr_echo){
        .code = record->code,
        .channel = record->channel,
        .delay_s = finite_or_nan(record->delay_s),
        .delay_samples = finite_or_nan(record->delay_samples),
        .delay_sigma_s = finite_or_nan((double)record->delay_sigma_s),
        .lag = NAN,
        .snr = NAN,
        .range_m = finite_or_nan(record->range_m),
        .range_sigma_m = finite_or_nan((double)record->range_sigma_m),
        .snr_db = finite_or_nan((double)record->snr_db),
        .amplitude = finite_or_nan((double)record->amplitude),
        .amplitude_sigma = finite_or_nan((double)record->amplitude_sigma),
        .phase_rad = finite_or_nan((double)record->phase_rad),
        .phase_sigma_rad = finite_or_nan((double)record->phase_sigma_rad),
        .doppler_hz = finite_or_nan((double)record->doppler_hz),
        .doppler_sigma_hz = finite_or_nan((double)record->doppler_sigma_hz),
        .velocity_mps = finite_or_nan((double)record->velocity_mps),
        .velocity_sigma_mps = finite_or_nan((double)record->velocity_sigma_mps),
    };
}

int pnr_message_read_pack(const char *header, size_t length, const void *records, size_t bytes,
                          size_t *offset, pnr_report *out, pnr_error *error)
{
    reader r = {.error = error};
    pnr_record record;
    size_t i, n, at;

    memset(out, 0, sizeof *out);
    open_message(&r, header, length, out->run, out->stream, &out->seq);
    if (r.code != PNR_OK)
        return close_message(&r);
    if (*offset == 0)
        check_pack(&r, records, bytes);
    read_moment(&r, out);
    get_string(&r, r.root, "engine", out->engine, sizeof out->engine);
    out->pfa_cell = get_double(&r, r.root, "pfa_cell");
    if (r.code != PNR_OK)
        return close_message(&r);
    if (*offset >= bytes) {
        json_decref(r.root);
        return PNR_EEND;
    }

    at = *offset / sizeof record;
    record = record_at(records, at);
    n = records_of(&record);
    if (*offset % sizeof record != 0 || n > bytes / sizeof record - at || n > PNR_MAX_CANDIDATES) {
        wrong(&r, "offset", "is not at a dwell");
        return close_message(&r);
    }
    out->seq = record.seq;
    out->sample = record.sample;
    out->has_time = record.time_ns != INT64_MIN;
    out->time_ns = out->has_time ? record.time_ns : 0;
    out->periods = record.periods;
    out->lost = record.lost;
    out->lost_before = record.lost_before;
    out->flags = record.flags;
    out->latency_us = finite_or_nan((double)record.latency_us);
    out->cells_above = record.cells_above;
    out->zero = (pnr_zero){
        .is_tracked = isfinite(record.zero_delay_s),
        .delay_s = finite_or_nan(record.zero_delay_s),
        .sigma_s = finite_or_nan((double)record.zero_sigma_s),
        .snr_db = finite_or_nan((double)record.zero_snr_db),
        .drift_ppm = finite_or_nan((double)record.zero_drift_ppm),
        .held_s = finite_or_nan((double)record.zero_held_s),
        .moved_s = NAN,
    };
    out->detection.noise_power = power_of((double)record.noise_db);
    out->detection.n_echoes = record.n_echoes;
    for (i = 0; i < record.n_echoes; i++) {
        record = record_at(records, at + i);
        read_record(&record, &out->detection.echoes[i]);
    }
    *offset += n * sizeof record;
    return close_message(&r);
}
