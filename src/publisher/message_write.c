/* SPDX-License-Identifier: MIT */
/* Writes messages as JSON, and packed records. */
#include "publisher/message.h"

#include "base/clock.h"
#include "base/text.h"
#include "config/keys.h"

#include <math.h>

#define DTYPE_FIRST(type, numpy, name) "[\"" #name "\",\"" numpy "\"]"
#define DTYPE_NEXT(type, numpy, name) ",[\"" #name "\",\"" numpy "\"]"
const char pnr_record_dtype[] = "[" PNR_RECORD_FIELDS(DTYPE_FIRST, DTYPE_NEXT) "]";

/* The bytes of a record are sent as they are in memory. The record must therefore be little endian,
 * and its members must have the offsets that numpy computes. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little endian");
typedef struct numpy_record {
#define NUMPY_MEMBER(type, numpy, name) type name;
    PNR_RECORD_FIELDS(NUMPY_MEMBER, NUMPY_MEMBER)
} __attribute__((packed)) numpy_record;
#define SAME_OFFSET(type, numpy, name)                                                             \
    _Static_assert(offsetof(pnr_record, name) == offsetof(numpy_record, name), #name);
PNR_RECORD_FIELDS(SAME_OFFSET, SAME_OFFSET)
_Static_assert(sizeof(pnr_record) == sizeof(numpy_record), "no padding at the end");

#define FLAG_WORD(name, word) [PNR_FLAG_BIT_##name] = word,
const char *const pnr_flag_words[PNR_N_FLAGS] = {PNR_FLAGS(FLAG_WORD)};
#define TIME_WORD(name, word) [PNR_TIME_##name] = word,
const char *const pnr_time_source_words[PNR_N_TIME_SOURCES] = {PNR_TIME_SOURCES(TIME_WORD)};

/* --- members and elements, with a comma before each --- */

static void add_comma(pnr_text *t)
{
    if (t->at > t->start && t->at[-1] != '{' && t->at[-1] != '[')
        pnr_text_add(t, ",");
}

static void add_key(pnr_text *t, const char *name)
{
    add_comma(t);
    pnr_text_add(t, "\"");
    pnr_text_add(t, name);
    pnr_text_add(t, "\":");
}

/* Adds a member whose value is JSON text. */
static void add_json(pnr_text *t, const char *name, const char *value)
{
    add_key(t, name);
    pnr_text_add(t, value);
}

static void add_double(pnr_text *t, const char *name, double value)
{
    add_key(t, name);
    pnr_text_double(t, value, "null");
}

static void add_u64(pnr_text *t, const char *name, uint64_t value)
{
    add_key(t, name);
    pnr_text_u64(t, value);
}

static void add_string(pnr_text *t, const char *name, const char *value)
{
    add_key(t, name);
    pnr_text_string(t, value);
}

/* Adds a 64-bit integer as a string: JSON readers lose digits of integers beyond 2^53. */
static void add_long(pnr_text *t, const char *name, uint64_t value)
{
    add_json(t, name, "\"");
    pnr_text_u64(t, value);
    pnr_text_add(t, "\"");
}

static void add_rational(pnr_text *t, const char *name, pnr_rational value)
{
    add_double(t, name, value.den != 0 ? pnr_rational_double(value) : (double)NAN);
}

/* --- parts of messages --- */

static double decibels(double power)
{
    return power > 0 ? 10 * log10(power) : (double)NAN;
}

/* Writes the first members of every message. */
static void begin_message(pnr_text *t, char *text, size_t capacity, const char *run,
                          const char *stream, uint64_t seq)
{
    pnr_text_begin(t, text, capacity);
    pnr_text_add(t, "{\"v\":1");
    add_string(t, "run", run);
    add_string(t, "stream", stream);
    add_u64(t, "seq", seq);
}

static size_t end_message(pnr_text *t)
{
    pnr_text_add(t, "}");
    return pnr_text_end(t);
}

/* Writes the first members of every message about a dwell. */
static void begin_dwell(pnr_text *t, char *text, size_t capacity, const pnr_report *report,
                        uint64_t seq)
{
    char time[PNR_TIME_LEN];

    begin_message(t, text, capacity, report->run, report->stream, seq);
    add_long(t, "sample", report->sample);
    if (report->has_time)
        add_string(t, "time", pnr_time_format(report->time_ns, time));
    else
        add_json(t, "time", "null");
    add_string(t, "time_source", pnr_time_source_words[report->time_source]);
    add_double(t, "rate_hz", report->rate_hz);
}

static void add_flags(pnr_text *t, unsigned flags)
{
    add_json(t, "flags", "[");
    for (size_t i = 0; i < PNR_N_FLAGS; i++)
        if (flags & 1u << i) {
            add_comma(t);
            pnr_text_string(t, pnr_flag_words[i]);
        }
    pnr_text_add(t, "]");
}

/* Adds the key of a member, with a comma before it. This is faster than add_key, because the size
 * is a constant. */
#define ADD_KEY(key) pnr_text_bytes(t, ",\"" key "\":", sizeof ",\"" key "\":" - 1);
#define ADD_CODE(from, name)                                                                       \
    ADD_KEY(#name)                                                                                 \
    pnr_text_u64(t, (from)->name + (uint64_t)1);                                                   \
    ADD_KEY(#name "_name")                                                                         \
    pnr_text_string(t, (from)->name##_name.text);
#define ADD_COUNT(from, name)                                                                      \
    ADD_KEY(#name)                                                                                 \
    pnr_text_u64(t, (from)->name);
#define ADD_DOUBLE(from, name)                                                                     \
    ADD_KEY(#name)                                                                                 \
    pnr_text_double(t, (from)->name, "null");

/* Replaces the comma before the first member by the bracket of the object. */
static void begin_object(const pnr_text *t, char *comma)
{
    if (!t->full)
        *comma = '{';
}

static void add_echoes(pnr_text *t, const pnr_detection *detection)
{
    add_json(t, "echoes", "[");
    for (size_t i = 0; i < detection->n_echoes; i++) {
        add_comma(t);

        char *const begin = t->at;

        PNR_ECHO_FIELDS(ADD_CODE, ADD_COUNT, ADD_DOUBLE, ADD_DOUBLE, &detection->echoes[i])
        begin_object(t, begin);
        pnr_text_add(t, "}");
    }
    pnr_text_add(t, "]");
}

/* Writes the zero delay. The caller closes the JSON object. */
static void open_zero(pnr_text *t, const pnr_zero *zero)
{
    add_key(t, "zero");

    char *const begin = t->at;

    PNR_ZERO_FIELDS(ADD_DOUBLE, ADD_DOUBLE, ADD_DOUBLE, zero)
    begin_object(t, begin);
}

size_t pnr_message_write_range(const pnr_report *report, char *text, size_t capacity)
{
    pnr_text t;

    begin_dwell(&t, text, capacity, report, report->seq);
    add_u64(&t, "periods", report->periods);
    add_u64(&t, "lost", report->lost);
    add_u64(&t, "lost_before", report->lost_before);
    add_u64(&t, "slip", report->slip);
    add_flags(&t, report->flags);
    add_string(&t, "engine", report->engine);
    add_double(&t, "latency_us", report->latency_us);
    add_double(&t, "noise_db", decibels(report->detection.noise_power));
    add_double(&t, "pfa_cell", report->pfa_cell);
    add_u64(&t, "cells_above", report->cells_above);
    if (report->zero.is_tracked) {
        open_zero(&t, &report->zero);
        pnr_text_add(&t, "}");
    }
    add_echoes(&t, &report->detection);
    return end_message(&t);
}

/* --- profiles and maps --- */

size_t pnr_map_bytes(const pnr_map_info *info)
{
    return info->n_codes * info->n_rows * info->row.n_cells * sizeof(float) *
           (info->row.is_complex ? 2 : 1);
}

double pnr_map_doppler_hz(const pnr_map_info *info, size_t row)
{
    const pnr_doppler_run *run = info->runs;

    for (; row >= run->n_rows; run++)
        row -= run->n_rows;
    return run->first_hz + (double)row * run->step_hz;
}

static void add_doppler(pnr_text *t, const pnr_map_info *info)
{
    add_json(t, "doppler", "[");
    for (size_t i = 0; i < info->n_runs; i++) {
        add_comma(t);
        pnr_text_add(t, "{");
        add_double(t, "first_hz", info->runs[i].first_hz);
        add_double(t, "step_hz", info->runs[i].step_hz);
        add_u64(t, "n_rows", info->runs[i].n_rows);
        pnr_text_add(t, "}");
    }
    pnr_text_add(t, "]");
}

static void add_codes(pnr_text *t, const pnr_map_info *info)
{
    add_json(t, "codes", "[");
    for (size_t i = 0; i < info->n_codes; i++) {
        add_comma(t);
        pnr_text_string(t, info->code_names[i]);
    }
    pnr_text_add(t, "]");
}

/* Adds the members that only a map has. */
static void add_axes(pnr_text *t, const pnr_map_info *info)
{
    const size_t shape[] = {info->n_codes, info->n_rows, info->row.n_cells};

    add_json(t, "shape", "[");
    for (size_t i = 0; i < 3; i++) {
        add_comma(t);
        pnr_text_u64(t, shape[i]);
    }
    pnr_text_add(t, "]");
    add_codes(t, info);
    add_doppler(t, info);
    add_double(t, "mps_per_hz", info->mps_per_hz);
}

bool pnr_map_is_profile(const pnr_map_info *info)
{
    return info->n_codes * info->n_rows == 1;
}

size_t pnr_message_write_cells(const pnr_report *report, uint64_t seq, const pnr_map_info *info,
                               char *text, size_t capacity)
{
    const pnr_profile_info *row = &info->row;
    const bool is_profile = pnr_map_is_profile(info);
    pnr_text t;

    begin_dwell(&t, text, capacity, report, seq);
    add_string(&t, "engine", report->engine);
    add_string(&t, is_profile ? "profile" : "map", row->is_complex ? "complex" : "power");
    add_string(&t, "dtype", row->is_complex ? "<c8" : "<f4");
    if (is_profile)
        add_u64(&t, "n_cells", row->n_cells);
    else
        add_axes(&t, info);
    if (is_profile && info->code_names != NULL)
        add_codes(&t, info);
    add_u64(&t, "oversample", row->oversample);
    add_u64(&t, "first_cell", row->first_cell);
    add_u64(&t, "n_gate", row->n_gate);
    add_double(&t, "delay_s", row->delay_s);
    add_double(&t, "step_s", row->step_s);
    add_double(&t, "metres_per_second", row->metres_per_second);
    add_u64(&t, "dwell_samples", row->dwell_samples);
    add_double(&t, "floor", row->floor);
    add_double(&t, "threshold", row->threshold);
    return end_message(&t);
}

/* --- packed results --- */

void pnr_message_fill_record(const pnr_report *report, size_t index, pnr_record *out)
{
#define NO_CODE(from, name) .name = UINT32_MAX, /* the record gets code number 0: no echo */
#define NO_COUNT(from, name)
#define NO_VALUE(from, name) .name = NAN,
#define COPY_CODE(from, name)                                                                      \
    out->name = (from)->name + 1;                                                                  \
    out->name##_name = (from)->name##_name;
#define COPY(from, name) out->name = (from)->name;
#define COPY_NARROW(from, name) out->name = (float)(from)->name;
#define COPY_ZERO(from, name) out->zero_##name = (from)->is_tracked ? (from)->name : (double)NAN;
#define COPY_ZERO_NARROW(from, name) out->zero_##name = (float)(from)->name;
    static const pnr_echo none = {PNR_ECHO_FIELDS(NO_CODE, NO_COUNT, NO_VALUE, NO_VALUE, )};
    const pnr_detection *d = &report->detection;
    const pnr_echo *e = index < d->n_echoes ? &d->echoes[index] : &none;

    *out = (pnr_record){
        .seq = report->seq,
        .sample = report->sample,
        .time_ns = report->has_time ? report->time_ns : INT64_MIN,
        .lost = report->lost,
        .lost_before = report->lost_before,
        .noise_db = (float)decibels(d->noise_power),
        .latency_us = (float)report->latency_us,
        .periods = report->periods,
        .cells_above = report->cells_above,
        .flags = report->flags,
        .slip = report->slip,
        .n_echoes = (uint32_t)d->n_echoes,
        .echo = (uint32_t)index,
    };
    PNR_ECHO_FIELDS(COPY_CODE, COPY, COPY, COPY_NARROW, e)
    PNR_ZERO_FIELDS(COPY_ZERO, COPY_ZERO_NARROW, NO_COUNT, &report->zero)
}

size_t pnr_message_write_pack(const pnr_report *first, size_t n_results, size_t n_records,
                              char *text, size_t capacity)
{
    pnr_text t;

    begin_dwell(&t, text, capacity, first, first->seq);
    add_string(&t, "engine", first->engine);
    add_double(&t, "pfa_cell", first->pfa_cell);
    add_json(&t, "pack", "true");
    add_u64(&t, "n_results", n_results);
    add_u64(&t, "n_records", n_records);
    add_json(&t, "dtype", pnr_record_dtype);
    return end_message(&t);
}

/* --- status and end --- */

static void add_account(pnr_text *t, const pnr_account *account)
{
#define ADD_ACCOUNT(name) add_long(t, #name, account->name);
    add_json(t, "account", "{");
    add_json(t, "closes", pnr_account_closes(account) ? "true" : "false");
    PNR_ACCOUNT_FIELDS(ADD_ACCOUNT)
    pnr_text_add(t, "}");
}

static void add_latency(pnr_text *t, const pnr_status *status)
{
    add_json(t, "latency_us", "{");
    add_double(t, "p50", status->latency_p50_us);
    add_double(t, "p99", status->latency_p99_us);
    add_double(t, "p999", status->latency_p999_us);
    add_double(t, "max", status->latency_max_us);
    pnr_text_add(t, "}");
}

static void add_realtime(pnr_text *t, const pnr_realtime_outcome *r)
{
    add_json(t, "realtime", "{");
    add_string(t, "lock_memory", r->lock_memory);
    add_string(t, "acquisition_cpu", r->acquisition_cpu);
    add_string(t, "processing_cpu", r->processing_cpu);
    add_string(t, "priority", r->priority);
    pnr_text_add(t, "}");
}

static void add_events(pnr_text *t, const pnr_events *events)
{
    add_json(t, "events", "{");
    for (int kind = 0; kind < PNR_EVENT_COUNT; kind++)
        add_u64(t, pnr_event_words[kind], pnr_event_count(events, (pnr_event_kind)kind));
    pnr_text_add(t, "}");
}

static void add_worker(pnr_text *t, const pnr_status *status)
{
    add_json(t, "worker", "{");
    add_u64(t, "deaths", status->worker_deaths);
    add_json(t, "degraded", status->is_degraded ? "true" : "false");
    pnr_text_add(t, "}");
}

static void add_device_list(pnr_text *t, const char *name, const pnr_devices *devices)
{
    char list[PNR_DEVICES_LEN];

    add_json(t, name, "[");
    pnr_text_add(t, devices->n > 0 ? pnr_devices_format(devices, list) : "");
    pnr_text_add(t, "]");
}

static void add_devices(pnr_text *t, const pnr_device_state *devices)
{
    add_json(t, "devices", "{");
    add_device_list(t, "used", &devices->used);
    add_device_list(t, "lost", &devices->lost);
    pnr_text_add(t, "}");
}

static void add_source(pnr_text *t, const pnr_status *status)
{
    const pnr_source_info *source = status->source;

    add_json(t, "source", "{");
    add_string(t, "loss_visibility", pnr_loss_visibility_word(source->loss_visibility));
    add_u64(t, "refused", status->source_refused);
    add_u64(t, "dropped", status->source_dropped);
    pnr_text_add(t, "}");
}

/* code_type: that of [code.1], if there are several codes. */
static void add_config(pnr_text *t, const pnr_config *c)
{
    pnr_config first;

    pnr_config_code(c, 0, &first);
    add_double(t, "carrier_hz", c->radar.carrier_hz);
    add_double(t, "speed_mps", c->radar.speed_mps);
    add_string(t, "path", pnr_config_word(c, "radar", "path"));
    add_double(t, "zero_delay_s", c->radar.zero_delay_s);
    add_string(t, "zero", pnr_config_word(c, "radar", "zero"));
    add_double(t, "zero_alarm_m", c->radar.zero_alarm_m);
    add_double(t, "min_range_m", c->radar.min_range_m);
    add_double(t, "max_range_m", c->radar.max_range_m);
    add_string(t, "code_type", pnr_config_word(&first, "code", "type"));
    add_string(t, "pulse", pnr_config_word(c, "code", "pulse"));
    add_rational(t, "tune_hz", c->source.tune_hz);
    add_u64(t, "dwell_periods", c->dwell.periods);
    add_string(t, "combine", pnr_config_word(c, "dwell", "combine"));
    add_double(t, "pfa", c->detector.pfa);
    add_u64(t, "max_echoes", c->detector.max_echoes);
    add_u64(t, "oversample", c->detector.oversample);
    add_u64(t, "pack", c->publisher.pack);
}

static void add_radar(pnr_text *t, const pnr_radar *r, const pnr_config *config)
{
    add_json(t, "radar", "{");
    add_u64(t, "n_chips", r->n_chips);
    add_u64(t, "n_samples", r->n_samples);
    add_rational(t, "rate_hz", r->rate_hz);
    add_rational(t, "chip_rate_hz", r->chip_rate_hz);
    add_double(t, "period_s", r->period_s);
    add_double(t, "gain_db", r->gain_db);
    add_double(t, "metres_per_second", r->metres_per_second);
    add_double(t, "resolution_m", r->resolution_m);
    add_double(t, "unambiguous_m", r->unambiguous_m);
    add_double(t, "wavelength_m", r->wavelength_m);
    if (config != NULL)
        add_config(t, config);
    pnr_text_add(t, "}");
}

size_t pnr_message_write_status(const pnr_status *status, char *text, size_t capacity)
{
    const pnr_zero_tracker *zero = status->zero;
    pnr_text t;

    begin_message(&t, text, capacity, status->run, status->stream, status->seq);
    add_string(&t, "engine", status->engine);
    add_double(&t, "elapsed_s", status->elapsed_s);
    add_u64(&t, "subscribers", status->subscribers);
    if (status->access != NULL)
        add_string(&t, "access", status->access);
    add_account(&t, &status->account);
    add_latency(&t, status);
    add_double(&t, "deadline_s", status->deadline_s > 0 ? status->deadline_s : (double)NAN);
    add_double(&t, "ring_fill", status->ring_fill);
    if (zero != NULL && zero->last.is_tracked) {
        open_zero(&t, &zero->last);
        add_u64(&t, "alarms", zero->n_alarms);
        add_json(&t, "alarm", zero->is_alarm ? "true}" : "false}");
    }
    add_u64(&t, "slips", status->slips);
    add_events(&t, status->events);
    if (status->has_worker)
        add_worker(&t, status);
    if (status->devices.used.n + status->devices.lost.n > 0)
        add_devices(&t, &status->devices);
    if (status->source != NULL)
        add_source(&t, status);
    if (status->realtime != NULL)
        add_realtime(&t, status->realtime);
    if (status->radar != NULL)
        add_radar(&t, status->radar, status->config);
    if (status->reason != NULL) {
        add_string(&t, "reason", status->reason);
        add_key(&t, "exit_status");
        pnr_text_i64(&t, status->exit_status);
    }
    return end_message(&t);
}

size_t pnr_message_write_event(const char *run, const char *stream, uint64_t seq,
                               const pnr_event *event, char *text, size_t capacity)
{
    char time[PNR_TIME_LEN];
    pnr_text t;

    begin_message(&t, text, capacity, run, stream, seq);
    add_string(&t, "event", pnr_event_words[event->kind]);
    add_string(&t, "time", pnr_time_format(event->utc_ns, time));
    if (event->sample != PNR_EVENT_NO_SAMPLE)
        add_long(&t, "sample", event->sample);
    else
        add_json(&t, "sample", "null");
    add_u64(&t, "count", event->count);
    for (size_t i = 0; i < 2; i++)
        if (pnr_event_numbers[event->kind][i][0] != '\0')
            add_double(&t, pnr_event_numbers[event->kind][i], event->numbers[i]);
    add_string(&t, "text", event->text);
    return end_message(&t);
}
