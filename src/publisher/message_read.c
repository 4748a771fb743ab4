/* SPDX-License-Identifier: MIT */
/* The reader of range, status and end messages and of packed results: checks every value. */
#include "publisher/message_reader.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t year_2262_ns = INT64_C(9214646400) * PNR_NS_PER_S;

static unsigned read_flags(pnr_reader *r)
{
    const json_t *words = pnr_reader_get(r, r->root, "flags");
    unsigned flags = 0;

    if (!json_is_array(words))
        pnr_reader_wrong(r, "flags", "is no list");
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        size_t bit = 0;

        while (bit < PNR_N_FLAGS && (word == NULL || strcmp(word, pnr_flag_words[bit]) != 0))
            bit++;
        if (bit == PNR_N_FLAGS || flags & 1u << bit)
            pnr_reader_wrong(r, "flags", "has an unknown or doubled word");
        else
            flags |= 1u << bit;
    }
    return flags;
}

#define READ_COUNT(object, name) .name = (uint32_t)pnr_reader_u64(r, object, #name, UINT32_MAX),
#define READ_DOUBLE(object, name) .name = pnr_reader_double(r, object, #name),

static void read_echo(pnr_reader *r, const json_t *object, pnr_echo *out)
{
    if (!json_is_object(object))
        pnr_reader_wrong(r, "echoes", "has an element that is no object");
    *out = (pnr_echo){
        .lag = NAN, .snr = NAN, PNR_ECHO_FIELDS(READ_COUNT, READ_DOUBLE, READ_DOUBLE, object)};
}

/* Reads the zero delay; a message with a fixed zero delay does not have it. */
static void read_zero(pnr_reader *r, pnr_zero *out)
{
    const json_t *object = json_object_get(r->root, "zero");

    if (object == NULL)
        return;
    if (!json_is_object(object))
        pnr_reader_wrong(r, "zero", "is no object");
    *out = (pnr_zero){.is_tracked = true,
                      PNR_ZERO_FIELDS(READ_DOUBLE, READ_DOUBLE, READ_DOUBLE, object)};
}

static double power_of(double db)
{
    return isfinite(db) ? pow(10, db / 10) : 0;
}

int pnr_message_read_range(const char *text, size_t length, pnr_report *out, pnr_error *error)
{
    pnr_reader r = {.error = error};
    const json_t *echoes;

    memset(out, 0, sizeof *out);
    pnr_reader_open(&r, text, length, out->run, out->stream, &out->seq);
    pnr_reader_moment(&r, out);
    out->periods = (uint32_t)pnr_reader_u64(&r, r.root, "periods", UINT32_MAX);
    out->lost = pnr_reader_u64(&r, r.root, "lost", INT64_MAX);
    out->lost_before = pnr_reader_u64(&r, r.root, "lost_before", INT64_MAX);
    out->flags = read_flags(&r);
    pnr_reader_string(&r, r.root, "engine", out->engine, sizeof out->engine);
    out->latency_us = pnr_reader_double(&r, r.root, "latency_us");
    out->detection.noise_power = power_of(pnr_reader_double(&r, r.root, "noise_db"));
    out->pfa_cell = pnr_reader_double(&r, r.root, "pfa_cell");
    out->cells_above = (uint32_t)pnr_reader_u64(&r, r.root, "cells_above", UINT32_MAX);
    read_zero(&r, &out->zero);
    echoes = pnr_reader_get(&r, r.root, "echoes");
    if (!json_is_array(echoes) || json_array_size(echoes) > PNR_MAX_CANDIDATES)
        pnr_reader_wrong(&r, "echoes", "is no list of at most 64");
    for (size_t i = 0; r.code == PNR_OK && i < json_array_size(echoes); i++)
        read_echo(&r, json_array_get(echoes, i), &out->detection.echoes[i]);
    out->detection.n_echoes = r.code == PNR_OK ? json_array_size(echoes) : 0;
    return pnr_reader_close(&r);
}

/* Reads the members that a status and an end share. */
static void read_summary(pnr_reader *r, const char *text, size_t length, pnr_end_summary *out)
{
    const json_t *account;
    uint64_t seq;

    memset(out, 0, sizeof *out);
    pnr_reader_open(r, text, length, out->run, out->stream, &seq);
    account = pnr_reader_get(r, r->root, "account");
    if (!json_is_object(account))
        pnr_reader_wrong(r, "account", "is no object");
#define READ_ACCOUNT(name) out->account.name = pnr_reader_long(r, account, #name);
    PNR_ACCOUNT_FIELDS(READ_ACCOUNT)
    out->deadline_s = pnr_reader_double(r, r->root, "deadline_s");
}

int pnr_message_read_status(const char *text, size_t length, pnr_end_summary *out, pnr_error *error)
{
    pnr_reader r = {.error = error};

    read_summary(&r, text, length, out);
    return pnr_reader_close(&r);
}

int pnr_message_read_end(const char *text, size_t length, pnr_end_summary *out, pnr_error *error)
{
    pnr_reader r = {.error = error};
    const char *reason;

    read_summary(&r, text, length, out);
    reason = json_string_value(pnr_reader_get(&r, r.root, "reason"));
    if (reason == NULL)
        pnr_reader_wrong(&r, "reason", "is no string");
    else
        strncpy(out->reason, reason, sizeof out->reason - 1);
    for (size_t i = 0; out->reason[i] != '\0'; i++)
        if ((unsigned char)out->reason[i] < 0x20 || out->reason[i] == 0x7f)
            out->reason[i] = ' '; /* the text of an error may quote any byte */
    out->exit_status = (int)pnr_reader_u64(&r, r.root, "exit_status", 255);
    return pnr_reader_close(&r);
}

/* --- packed results --- */

static pnr_record record_at(const void *records, size_t index)
{
    pnr_record record; /* copied: the array need not be aligned */

    memcpy(&record, (const char *)records + index * sizeof record, sizeof record);
    return record;
}

/* Counts the records of one dwell: one for each echo, and one when there is none. */
static size_t records_of(const pnr_record *record)
{
    return record->n_echoes > 0 ? record->n_echoes : 1;
}

/* The n records of one dwell. */
static void check_dwell(pnr_reader *r, const void *records, size_t at, size_t n)
{
    const pnr_record first = record_at(records, at);

    for (size_t i = 0; i < n; i++) {
        const pnr_record record = record_at(records, at + i);

        if (record.seq != first.seq || record.n_echoes != first.n_echoes || record.echo != i)
            pnr_reader_wrong(r, "echo", "of a record is out of order");
        if (record.time_ns != INT64_MIN && (record.time_ns < 0 || record.time_ns >= year_2262_ns))
            pnr_reader_wrong(r, "time_ns", "of a record is not within 1970..2261");
        if (record.flags >> PNR_N_FLAGS != 0)
            pnr_reader_wrong(r, "flags", "of a record has an unknown bit");
    }
}

/* The counts of the header, and the place of every record in its dwell. */
static void check_pack(pnr_reader *r, const void *records, size_t bytes)
{
    const size_t n = bytes / sizeof(pnr_record);
    const uint64_t n_records = pnr_reader_u64(r, r->root, "n_records", INT64_MAX);
    const uint64_t n_results = pnr_reader_u64(r, r->root, "n_results", INT64_MAX);
    uint64_t results = 0;
    size_t n_dwell;
    json_t *dtype = json_loads(pnr_record_dtype, 0, NULL);

    if (!json_equal(pnr_reader_get(r, r->root, "dtype"), dtype))
        pnr_reader_wrong(r, "dtype", "is not this version's record");
    json_decref(dtype);
    if (bytes % sizeof(pnr_record) != 0 || n != n_records)
        pnr_reader_wrong(r, "n_records", "does not fit the bytes that came");
    for (size_t at = 0; r->code == PNR_OK && at < n; at += n_dwell, results++) {
        const pnr_record first = record_at(records, at);

        n_dwell = records_of(&first);
        if (first.n_echoes > PNR_MAX_CANDIDATES || n_dwell > n - at) {
            pnr_reader_wrong(r, "n_echoes", "of a record is too large");
            return;
        }
        check_dwell(r, records, at, n_dwell);
    }
    if (results != n_results)
        pnr_reader_wrong(r, "n_results", "is not the number of dwells in the records");
}

static double finite_or_nan(double value)
{
    return isfinite(value) ? value : (double)NAN;
}

#define TAKE_COUNT(record, name) .name = (record)->name,
#define TAKE_DOUBLE(record, name) .name = finite_or_nan((double)(record)->name),
#define TAKE_ZERO(record, name) .name = finite_or_nan((double)(record)->zero_##name),
#define TAKE_NOTHING(record, name) .name = NAN,

static void take_echo(const pnr_record *record, pnr_echo *out)
{
    *out = (pnr_echo){
        .lag = NAN, .snr = NAN, PNR_ECHO_FIELDS(TAKE_COUNT, TAKE_DOUBLE, TAKE_DOUBLE, record)};
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
    out->latency_us = finite_or_nan((double)record->latency_us);
    out->cells_above = record->cells_above;
    out->zero = (pnr_zero){.is_tracked = isfinite(record->zero_delay_s),
                           PNR_ZERO_FIELDS(TAKE_ZERO, TAKE_ZERO, TAKE_NOTHING, record)};
    out->detection.noise_power = power_of((double)record->noise_db);
    out->detection.n_echoes = record->n_echoes;
}

int pnr_message_read_pack(const char *header, size_t length, const void *records, size_t bytes,
                          size_t *offset, pnr_report *out, pnr_error *error)
{
    pnr_reader r = {.error = error};
    pnr_record record;
    size_t i, n, at;

    memset(out, 0, sizeof *out);
    pnr_reader_open(&r, header, length, out->run, out->stream, &out->seq);
    if (*offset == 0)
        check_pack(&r, records, bytes);
    pnr_reader_moment(&r, out);
    pnr_reader_string(&r, r.root, "engine", out->engine, sizeof out->engine);
    out->pfa_cell = pnr_reader_double(&r, r.root, "pfa_cell");
    if (r.code != PNR_OK)
        return pnr_reader_close(&r);
    if (*offset >= bytes) {
        json_decref(r.root);
        return PNR_EEND;
    }

    at = *offset / sizeof record;
    record = record_at(records, at);
    n = records_of(&record);
    if (*offset % sizeof record != 0 || n > bytes / sizeof record - at || n > PNR_MAX_CANDIDATES) {
        pnr_reader_wrong(&r, "offset", "is not at a dwell");
        return pnr_reader_close(&r);
    }
    take_dwell(&record, out);
    for (i = 0; i < record.n_echoes; i++) {
        record = record_at(records, at + i);
        take_echo(&record, &out->detection.echoes[i]);
    }
    *offset += n * sizeof record;
    return pnr_reader_close(&r);
}
