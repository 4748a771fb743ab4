/* SPDX-License-Identifier: MIT */
/* The writer of the wire: range, profile, status and end messages as JSON, and packed records. */
#include "publisher/message.h"

#include "base/clock.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

#define DTYPE_FIRST(type, numpy, name) "[\"" #name "\",\"" numpy "\"]"
#define DTYPE_NEXT(type, numpy, name) ",[\"" #name "\",\"" numpy "\"]"
const char pnr_record_dtype[] = "[" PNR_RECORD_FIELDS(DTYPE_FIRST, DTYPE_NEXT) "]";

/* The records go out as they lie in memory: little endian, and at the offsets that numpy counts. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little endian");
typedef struct numpy_record {
#define NUMPY_MEMBER(type, numpy, name) type name;
    PNR_RECORD_FIELDS(NUMPY_MEMBER, NUMPY_MEMBER)
} __attribute__((packed)) numpy_record;
#define SAME_OFFSET(type, numpy, name)                                                             \
    _Static_assert(offsetof(pnr_record, name) == offsetof(numpy_record, name), #name);
PNR_RECORD_FIELDS(SAME_OFFSET, SAME_OFFSET)
_Static_assert(sizeof(pnr_record) == sizeof(numpy_record), "no padding at the end");

#define TIME_WORD(name, word) [PNR_TIME_##name] = word,
static const char *const time_sources[] = {PNR_TIME_SOURCES(TIME_WORD)};

#define FLAG_WORD(name, word) [PNR_FLAG_BIT_##name] = word,
static const char *const flag_words[] = {PNR_FLAGS(FLAG_WORD)};
enum { N_FLAGS = sizeof flag_words / sizeof flag_words[0] };

/* In the order of the enums of config.h, as the configuration spells them. */
static const char *const code_types[] = {[PNR_CODE_M_SEQUENCE] = "m-sequence",
                                         [PNR_CODE_GOLD] = "gold",
                                         [PNR_CODE_GPS_L1CA] = "gps-l1ca",
                                         [PNR_CODE_KASAMI] = "kasami",
                                         [PNR_CODE_BARKER] = "barker",
                                         [PNR_CODE_LEGENDRE] = "legendre",
                                         [PNR_CODE_ZADOFF_CHU] = "zadoff-chu",
                                         [PNR_CODE_FRANK] = "frank",
                                         [PNR_CODE_P4] = "p4",
                                         [PNR_CODE_RANDOM] = "random",
                                         [PNR_CODE_FILE] = "file"};
static const char *const pulses[] = {[PNR_PULSE_BAND_LIMITED] = "band-limited",
                                     [PNR_PULSE_RECTANGULAR] = "rectangular",
                                     [PNR_PULSE_FILE] = "file"};
static const char *const paths[] = {[PNR_PATH_TWO_WAY] = "two-way", [PNR_PATH_ONE_WAY] = "one-way"};
static const char *const zeros[] = {
    [PNR_ZERO_FIXED] = "fixed", [PNR_ZERO_DIRECT_PATH] = "direct-path"};
static const char *const combines[] = {[PNR_COMBINE_NONE] = "none",
                                       [PNR_COMBINE_COHERENT] = "coherent",
                                       [PNR_COMBINE_INCOHERENT] = "incoherent",
                                       [PNR_COMBINE_DOPPLER] = "doppler"};
#define WORD(list, i)                                                                              \
    ((size_t)(i) < sizeof(list) / sizeof((list)[0]) ? (list)[(size_t)(i)] : "unknown")

/* --- keys: each writes ,"key":value --- */

static void key(pnr_text *t, const char *name)
{
    pnr_text_add(t, ",\"");
    pnr_text_add(t, name);
    pnr_text_add(t, "\":");
}

static void key_double(pnr_text *t, const char *name, double value)
{
    key(t, name);
    pnr_text_double(t, value, "null");
}

static void key_u64(pnr_text *t, const char *name, uint64_t value)
{
    key(t, name);
    pnr_text_u64(t, value);
}

static void key_string(pnr_text *t, const char *name, const char *value)
{
    key(t, name);
    pnr_text_string(t, value);
}

/* A 64-bit integer as a string: JSON readers lose integers beyond 2^53. */
static void key_long(pnr_text *t, const char *name, uint64_t value)
{
    key(t, name);
    pnr_text_add(t, "\"");
    pnr_text_u64(t, value);
    pnr_text_add(t, "\"");
}

static void key_rational(pnr_text *t, const char *name, pnr_rational value)
{
    key_double(t, name, value.den != 0 ? pnr_rational_double(value) : (double)NAN);
}

static double decibels(double power)
{
    return power > 0 ? 10 * log10(power) : (double)NAN;
}

/* What every message begins with. */
static void begin(pnr_text *t, char *text, size_t capacity, const char *run, const char *stream,
                  uint64_t seq)
{
    pnr_text_begin(t, text, capacity);
    pnr_text_add(t, "{\"v\":1");
    key_string(t, "run", run);
    key_string(t, "stream", stream);
    key_u64(t, "seq", seq);
}

static void moment(pnr_text *t, const pnr_report *report)
{
    char time[PNR_TIME_LEN];

    key_long(t, "sample", report->sample);
    if (report->has_time) {
        key_string(t, "time", pnr_time_format(report->time_ns, time));
    } else {
        key(t, "time");
        pnr_text_add(t, "null");
    }
    key_string(t, "time_source", WORD(time_sources, report->time_source));
}

static void flags(pnr_text *t, unsigned value)
{
    const char *comma = "";
    size_t i;

    key(t, "flags");
    pnr_text_add(t, "[");
    for (i = 0; i < N_FLAGS; i++) {
        if (value & 1u << i) {
            pnr_text_add(t, comma);
            pnr_text_string(t, flag_words[i]);
            comma = ",";
        }
    }
    pnr_text_add(t, "]");
}

static void echo(pnr_text *t, const pnr_echo *e)
{
    pnr_text_add(t, "{\"code\":");
    pnr_text_u64(t, e->code);
    key_u64(t, "channel", e->channel);
    key_double(t, "delay_s", e->delay_s);
    key_double(t, "delay_samples", e->delay_samples);
    key_double(t, "delay_sigma_s", e->delay_sigma_s);
    key_double(t, "range_m", e->range_m);
    key_double(t, "range_sigma_m", e->range_sigma_m);
    key_double(t, "snr_db", e->snr_db);
    key_double(t, "amplitude", e->amplitude);
    key_double(t, "amplitude_sigma", e->amplitude_sigma);
    key_double(t, "phase_rad", e->phase_rad);
    key_double(t, "phase_sigma_rad", e->phase_sigma_rad);
    key_double(t, "doppler_hz", e->doppler_hz);
    key_double(t, "doppler_sigma_hz", e->doppler_sigma_hz);
    key_double(t, "velocity_mps", e->velocity_mps);
    key_double(t, "velocity_sigma_mps", e->velocity_sigma_mps);
    pnr_text_add(t, "}");
}

static void zero(pnr_text *t, const pnr_zero *z)
{
    key(t, "zero");
    pnr_text_add(t, "{\"delay_s\":");
    pnr_text_double(t, z->delay_s, "null");
    key_double(t, "sigma_s", z->sigma_s);
    key_double(t, "snr_db", z->snr_db);
    key_double(t, "drift_ppm", z->drift_ppm);
    key_double(t, "held_s", z->held_s);
    key_double(t, "moved_s", z->moved_s);
}

size_t pnr_message_write_range(const pnr_report *report, char *text, size_t capacity)
{
    pnr_text t;
    size_t i;

    begin(&t, text, capacity, report->run, report->stream, report->seq);
    moment(&t, report);
    key_u64(&t, "periods", report->periods);
    key_u64(&t, "lost", report->lost);
    key_u64(&t, "lost_before", report->lost_before);
    flags(&t, report->flags);
    key_string(&t, "engine", report->engine);
    key_double(&t, "latency_us", report->latency_us);
    key_double(&t, "noise_db", decibels(report->detection.noise_power));
    key_double(&t, "pfa_cell", report->pfa_cell);
    key_u64(&t, "cells_above", report->cells_above);
    if (report->zero.is_tracked) {
        zero(&t, &report->zero);
        pnr_text_add(&t, "}");
    }
    key(&t, "echoes");
    pnr_text_add(&t, "[");
    for (i = 0; i < report->detection.n_echoes; i++) {
        if (i > 0)
            pnr_text_add(&t, ",");
        echo(&t, &report->detection.echoes[i]);
    }
    pnr_text_add(&t, "]}");
    return pnr_text_end(&t);
}

/* What profiles and maps tell of their rows. */
static void cells(pnr_text *t, const pnr_profile_info *info)
{
    key_u64(t, "oversample", info->oversample);
    key_u64(t, "first_cell", info->first_cell);
    key_u64(t, "n_gate", info->n_gate);
    key_double(t, "delay_s", info->delay_s);
    key_double(t, "step_s", info->step_s);
    key_double(t, "metres_per_second", info->metres_per_second);
    key_u64(t, "dwell_samples", info->dwell_samples);
    key_double(t, "floor", info->floor);
    key_double(t, "threshold", info->threshold);
}

size_t pnr_message_write_profile(const pnr_report *report, uint64_t seq,
                                 const pnr_profile_info *info, char *text, size_t capacity)
{
    pnr_text t;

    begin(&t, text, capacity, report->run, report->stream, seq);
    moment(&t, report);
    key_string(&t, "engine", report->engine);
    key_string(&t, "profile", info->is_complex ? "complex" : "power");
    key_string(&t, "dtype", info->is_complex ? "<c8" : "<f4");
    key_u64(&t, "n_cells", info->n_cells);
    cells(&t, info);
    pnr_text_add(&t, "}");
    return pnr_text_end(&t);
}

double pnr_map_doppler_hz(const pnr_map_info *info, size_t row)
{
    const pnr_doppler_run *run = info->runs;

    for (; row >= run->n_rows; run++)
        row -= run->n_rows;
    return run->first_hz + (double)row * run->step_hz;
}

static void doppler(pnr_text *t, const pnr_map_info *info)
{
    size_t i;

    key(t, "doppler");
    pnr_text_add(t, "[");
    for (i = 0; i < info->n_runs; i++) {
        pnr_text_add(t, i > 0 ? ",{\"first_hz\":" : "{\"first_hz\":");
        pnr_text_double(t, info->runs[i].first_hz, "null");
        key_double(t, "step_hz", info->runs[i].step_hz);
        key_u64(t, "n_rows", info->runs[i].n_rows);
        pnr_text_add(t, "}");
    }
    pnr_text_add(t, "]");
}

size_t pnr_message_write_map(const pnr_report *report, uint64_t seq, const pnr_map_info *info,
                             char *text, size_t capacity)
{
    const size_t shape[] = {info->n_codes, info->n_rows, info->row.n_cells};
    pnr_text t;
    size_t i;

    begin(&t, text, capacity, report->run, report->stream, seq);
    moment(&t, report);
    key_string(&t, "engine", report->engine);
    key_string(&t, "map", info->row.is_complex ? "complex" : "power");
    key_string(&t, "dtype", info->row.is_complex ? "<c8" : "<f4");
    key(&t, "shape");
    for (i = 0; i < 3; i++) {
        pnr_text_add(&t, i > 0 ? "," : "[");
        pnr_text_u64(&t, shape[i]);
    }
    pnr_text_add(&t, "]");
    key(&t, "codes");
    for (i = 0; i < info->n_codes; i++) {
        pnr_text_add(&t, i > 0 ? "," : "[");
        pnr_text_string(&t, info->code_names[i]);
    }
    pnr_text_add(&t, "]");
    doppler(&t, info);
    key_double(&t, "mps_per_hz", info->mps_per_hz);
    cells(&t, &info->row);
    pnr_text_add(&t, "}");
    return pnr_text_end(&t);
}

void pnr_message_fill_record(const pnr_report *report, size_t index, pnr_record *out)
{
    static const pnr_echo none = {.delay_s = NAN,
                                  .delay_samples = NAN,
                                  .delay_sigma_s = NAN,
                                  .range_m = NAN,
                                  .range_sigma_m = NAN,
                                  .snr_db = NAN,
                                  .amplitude = NAN,
                                  .amplitude_sigma = NAN,
                                  .phase_rad = NAN,
                                  .phase_sigma_rad = NAN,
                                  .doppler_hz = NAN,
                                  .doppler_sigma_hz = NAN,
                                  .velocity_mps = NAN,
                                  .velocity_sigma_mps = NAN};
    const pnr_detection *d = &report->detection;
    const pnr_echo *e = index < d->n_echoes ? &d->echoes[index] : &none;

    *out = (pnr_record){
        .seq = report->seq,
        .sample = report->sample,
        .time_ns = report->has_time ? report->time_ns : INT64_MIN,
        .lost = report->lost,
        .lost_before = report->lost_before,
        .delay_s = e->delay_s,
        .delay_samples = e->delay_samples,
        .range_m = e->range_m,
        .delay_sigma_s = (float)e->delay_sigma_s,
        .range_sigma_m = (float)e->range_sigma_m,
        .snr_db = (float)e->snr_db,
        .amplitude = (float)e->amplitude,
        .amplitude_sigma = (float)e->amplitude_sigma,
        .phase_rad = (float)e->phase_rad,
        .phase_sigma_rad = (float)e->phase_sigma_rad,
        .doppler_hz = (float)e->doppler_hz,
        .doppler_sigma_hz = (float)e->doppler_sigma_hz,
        .velocity_mps = (float)e->velocity_mps,
        .velocity_sigma_mps = (float)e->velocity_sigma_mps,
        .zero_delay_s = report->zero.is_tracked ? report->zero.delay_s : NAN,
        .zero_sigma_s = (float)report->zero.sigma_s,
        .zero_snr_db = (float)report->zero.snr_db,
        .zero_drift_ppm = (float)report->zero.drift_ppm,
        .zero_held_s = (float)report->zero.held_s,
        .noise_db = (float)decibels(d->noise_power),
        .latency_us = (float)report->latency_us,
        .periods = report->periods,
        .cells_above = report->cells_above,
        .flags = report->flags,
        .code = e->code,
        .channel = e->channel,
        .n_echoes = (uint32_t)d->n_echoes,
        .echo = (uint32_t)index,
    };
}

size_t pnr_message_write_pack(const pnr_report *first, size_t n_results, size_t n_records,
                              char *text, size_t capacity)
{
    pnr_text t;

    begin(&t, text, capacity, first->run, first->stream, first->seq);
    moment(&t, first);
    key_string(&t, "engine", first->engine);
    key_double(&t, "pfa_cell", first->pfa_cell);
    key(&t, "pack");
    pnr_text_add(&t, "true");
    key_u64(&t, "n_results", n_results);
    key_u64(&t, "n_records", n_records);
    key(&t, "dtype");
    pnr_text_add(&t, pnr_record_dtype);
    pnr_text_add(&t, "}");
    return pnr_text_end(&t);
}

static void account(pnr_text *t, const pnr_account *a)
{
#define ACCOUNT_KEY(name) key_long(t, #name, a->name);
    key(t, "account");
    pnr_text_add(t, "{\"closes\":");
    pnr_text_add(t, pnr_account_closes(a) ? "true" : "false");
    ACCOUNT_KEY(positions)
    PNR_ACCOUNT_SAMPLES(ACCOUNT_KEY)
    ACCOUNT_KEY(windows)
    PNR_ACCOUNT_WINDOWS(ACCOUNT_KEY)
    ACCOUNT_KEY(results)
    PNR_ACCOUNT_RESULTS(ACCOUNT_KEY)
    ACCOUNT_KEY(n_clipped)
    ACCOUNT_KEY(n_nonfinite)
    ACCOUNT_KEY(deadline_missed)
    pnr_text_add(t, "}");
}

static void realtime(pnr_text *t, const pnr_realtime_outcome *r)
{
    key(t, "realtime");
    pnr_text_add(t, "{\"lock_memory\":");
    pnr_text_string(t, r->lock_memory);
    key_string(t, "acquisition_cpu", r->acquisition_cpu);
    key_string(t, "processing_cpu", r->processing_cpu);
    key_string(t, "priority", r->priority);
    pnr_text_add(t, "}");
}

static void radar(pnr_text *t, const pnr_radar *r, const pnr_config *c)
{
    key(t, "radar");
    pnr_text_add(t, "{\"n_chips\":");
    pnr_text_u64(t, r->n_chips);
    key_u64(t, "n_samples", r->n_samples);
    key_rational(t, "rate_hz", r->rate_hz);
    key_rational(t, "chip_rate_hz", r->chip_rate_hz);
    key_double(t, "period_s", r->period_s);
    key_double(t, "gain_db", r->gain_db);
    key_double(t, "metres_per_second", r->metres_per_second);
    key_double(t, "resolution_m", r->resolution_m);
    key_double(t, "unambiguous_m", r->unambiguous_m);
    key_double(t, "wavelength_m", r->wavelength_m);
    if (c != NULL) {
        key_double(t, "carrier_hz", c->radar.carrier_hz);
        key_double(t, "speed_mps", c->radar.speed_mps);
        key_string(t, "path", WORD(paths, c->radar.path));
        key_double(t, "zero_delay_s", c->radar.zero_delay_s);
        key_string(t, "zero", WORD(zeros, c->radar.zero));
        key_double(t, "zero_alarm_m", c->radar.zero_alarm_m);
        key_double(t, "min_range_m", c->radar.min_range_m);
        key_double(t, "max_range_m", c->radar.max_range_m);
        key_string(t, "code_type", WORD(code_types, c->code.type));
        key_string(t, "pulse", WORD(pulses, c->code.pulse));
        key_rational(t, "tune_hz", c->source.tune_hz);
        key_u64(t, "dwell_periods", c->dwell.periods);
        key_string(t, "combine", WORD(combines, c->dwell.combine));
        key_double(t, "pfa", c->detector.pfa);
        key_u64(t, "max_echoes", c->detector.max_echoes);
        key_u64(t, "oversample", c->detector.oversample);
        key_u64(t, "pack", c->publisher.pack);
    }
    pnr_text_add(t, "}");
}

size_t pnr_message_write_status(const pnr_status *status, char *text, size_t capacity)
{
    pnr_text t;

    begin(&t, text, capacity, status->run, status->stream, status->seq);
    key_string(&t, "engine", status->engine);
    key_double(&t, "elapsed_s", status->elapsed_s);
    key_u64(&t, "subscribers", status->subscribers);
    account(&t, &status->account);
    key(&t, "latency_us");
    pnr_text_add(&t, "{\"p50\":");
    pnr_text_double(&t, status->latency_p50_us, "null");
    key_double(&t, "p99", status->latency_p99_us);
    key_double(&t, "p999", status->latency_p999_us);
    key_double(&t, "max", status->latency_max_us);
    pnr_text_add(&t, "}");
    key_double(&t, "deadline_s", status->deadline_s > 0 ? status->deadline_s : (double)NAN);
    if (status->zero != NULL && status->zero->last.is_tracked) {
        zero(&t, &status->zero->last);
        key_u64(&t, "alarms", status->zero->n_alarms);
        key(&t, "alarm");
        pnr_text_add(&t, status->zero->is_alarm ? "true}" : "false}");
    }
    if (status->realtime != NULL)
        realtime(&t, status->realtime);
    if (status->radar != NULL)
        radar(&t, status->radar, status->config);
    if (status->reason != NULL) {
        key_string(&t, "reason", status->reason);
        key(&t, "exit_status");
        pnr_text_i64(&t, status->exit_status);
    }
    pnr_text_add(&t, "}");
    return pnr_text_end(&t);
}
