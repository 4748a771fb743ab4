/* SPDX-License-Identifier: MIT */
/* Writes echoes as CSV, and metrics in the text format of Prometheus. */
#include "base/clock.h"
#include "tools/view/api.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- CSV --- */

enum { RESULTS_AT_ONCE = 200 };

static void add_value(view_buffer *out, double value, int digits)
{
    view_add(out, ",");
    if (isfinite(value))
        view_addf(out, "%.*g", digits, value);
}

static void add_row(const view_stream *s, const view_result *r, const view_echo *echo,
                    view_buffer *out)
{
    char time[PNR_TIME_LEN] = "";

    if (s->has_epoch)
        pnr_time_format(s->epoch_utc_ns + (int64_t)llround(r->time_s * 1e9), time);
    view_addf(out, "%s,%" PRIu64 ",%" PRIu64 ",%s,%.9f,%" PRIu64 ",%" PRIu64, s->run, r->seq,
              r->sample, time, r->time_s, r->lost, r->lost_before);
    add_value(out, r->latency_us, 6);
    add_value(out, r->noise_db, 6);
    view_addf(out, ",%" PRIu32, echo->code + 1);
#define ADD_COUNT(x, name) view_addf(out, ",%" PRIu32, echo->name);
#define ADD_WIDE(x, name) add_value(out, echo->name, 12);
#define ADD_NARROW(x, name) add_value(out, (double)echo->name, 7);
#define ADD_NOTHING(x, name)
    PNR_ECHO_FIELDS(ADD_NOTHING, ADD_COUNT, ADD_WIDE, ADD_NARROW, )
#undef ADD_NOTHING
#undef ADD_NARROW
#undef ADD_WIDE
#undef ADD_COUNT
    view_add(out, "\n");
}

void view_api_csv(const view_stream *s, const view_query *q, uint64_t *next, view_buffer *out)
{
    const uint64_t oldest = view_stream_oldest_result(s);
    const uint64_t oldest_echo = view_stream_oldest_echo(s);
    uint64_t i = *next > 0 ? *next - 1 : 0;

    i = i < oldest ? oldest : i;
#define ADD_NAME(x, name) view_add(out, "," #name);
    if (*next == 0) {
        view_add(out, "run,seq,sample,time,time_s,lost,lost_before,latency_us,noise_db");
        PNR_ECHO_FIELDS(ADD_NAME, ADD_NAME, ADD_NAME, ADD_NAME, )
        view_add(out, "\n");
    }
#undef ADD_NAME
    for (size_t n = 0; i < s->n_results && (n < RESULTS_AT_ONCE || out->n == 0); i++, n++) {
        const view_result *r = &s->results[i % VIEW_RESULTS];

        if (r->time_s < q->from_s || r->time_s > q->to_s)
            continue;
        for (uint64_t e = r->first_echo; e < r->first_echo + r->n_echoes; e++)
            if (e >= oldest_echo)
                add_row(s, r, &s->echoes[e % VIEW_ECHOES], out);
    }
    *next = i + 1;
}

/* --- metrics --- */

static void add_help(view_buffer *out, const char *name, const char *type, const char *help)
{
    view_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Adds the value of a label. Escapes backslash, quote and line break. */
static void add_label(view_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const char byte[3] = {'\\', *text == '\n' ? 'n' : *text, '\0'};

        view_add(out, strchr("\\\"\n", *text) != NULL ? byte : byte + 1);
    }
}

static void add_sample(view_buffer *out, const char *name, const view_stream *s,
                       const char *more_labels, double value)
{
    view_addf(out, "%s{stream=\"", name);
    add_label(out, s->name);
    view_addf(out, "\"%s} %.17g\n", more_labels, value);
}

/* A metric that is a count of the account. */
typedef struct metric {
    const char *name, *labels, *help; /* help NULL: the same metric as in the previous row, with
                                       * other labels */
    size_t offset;
} metric;

#define OF(field) offsetof(pnr_account, field)
static const metric counts[] = {
    {"pnradar_samples_total", "", "Stream positions so far.", OF(positions)},
    {"pnradar_samples_lost_total", ",cause=\"source\"", "Samples lost.", OF(lost_source)},
    {"pnradar_samples_lost_total", ",cause=\"ring_full\"", NULL, OF(lost_ring_full)},
    {"pnradar_samples_clipped_total", "", "Samples at an end of the range.", OF(n_clipped)},
    {"pnradar_windows_total", "", "Windows made.", OF(windows)},
    {"pnradar_windows_dropped_total", ",cause=\"engine_error\"", "Windows without a result.",
     OF(dropped_engine_error)},
    {"pnradar_windows_dropped_total", ",cause=\"shutdown\"", NULL, OF(dropped_shutdown)},
    {"pnradar_windows_dropped_total", ",cause=\"too_much_lost\"", NULL, OF(refused_too_much_lost)},
    {"pnradar_results_total", "", "Results made.", OF(results)},
    {"pnradar_results_unsent_total", ",cause=\"refused\"", "Results that were not published.",
     OF(unsent_publish_refused)},
    {"pnradar_results_unsent_total", ",cause=\"queue_full\"", NULL, OF(unsent_queue_full)},
    {"pnradar_results_late_total", "", "Results after their deadline.", OF(deadline_missed)},
};
#undef OF

static void add_counts(const view_store *store, view_buffer *out)
{
    for (size_t m = 0; m < sizeof counts / sizeof counts[0]; m++) {
        if (counts[m].help != NULL)
            add_help(out, counts[m].name, "counter", counts[m].help);
        for (size_t i = 0; i < store->n_streams; i++) {
            const view_stream *s = &store->streams[i];
            uint64_t value;

            if (!s->has_summary)
                continue;
            memcpy(&value, (const char *)&s->summary.account + counts[m].offset, sizeof value);
            add_sample(out, counts[m].name, s, counts[m].labels, (double)value);
        }
    }
}

static void add_latencies(const view_store *store, view_buffer *out)
{
    static const char name[] = "pnradar_latency_seconds";

    add_help(out, name, "histogram", "From the last sample in the ring to the message.");
    for (size_t i = 0; i < store->n_streams; i++) {
        const view_stream *s = &store->streams[i];
        uint64_t n = 0;
        char label[48];

        for (size_t b = 0; b <= VIEW_LATENCIES; b++) {
            n += s->latencies[b];
            if (b < VIEW_LATENCIES)
                snprintf(label, sizeof label, ",le=\"%g\"", view_latency_limits[b]);
            else
                snprintf(label, sizeof label, ",le=\"+Inf\"");
            add_sample(out, "pnradar_latency_seconds_bucket", s, label, (double)n);
        }
        add_sample(out, "pnradar_latency_seconds_sum", s, "", s->latency_sum_us * 1e-6);
        add_sample(out, "pnradar_latency_seconds_count", s, "", (double)n);
    }
}

/* Adds the other metrics of the streams: state, ring fill, engine, and missed results. */
static void add_view(const view_store *store, view_buffer *out)
{
    add_help(out, "pnradar_up", "gauge", "1 while messages of the stream arrive.");
    for (size_t i = 0; i < store->n_streams; i++) {
        const view_stream *s = &store->streams[i];

        add_sample(out, "pnradar_up", s, "", !s->has_ended && !view_stream_is_silent(s) ? 1 : 0);
    }
    add_help(out, "pnradar_ring_fill_ratio", "gauge",
             "Greatest share of the ring that was taken in the last second.");
    for (size_t i = 0; i < store->n_streams; i++)
        if (store->streams[i].has_summary && isfinite(store->streams[i].summary.ring_fill))
            add_sample(out, "pnradar_ring_fill_ratio", &store->streams[i], "",
                       store->streams[i].summary.ring_fill);
    add_help(out, "pnradar_engine_info", "gauge", "The engine and method.");
    for (size_t i = 0; i < store->n_streams; i++) {
        view_addf(out, "pnradar_engine_info{stream=\"");
        add_label(out, store->streams[i].name);
        view_add(out, "\",engine=\"");
        add_label(out, store->streams[i].engine);
        view_add(out, "\"} 1\n");
    }
    add_help(out, "pnradar_view_results_missed_total", "counter",
             "Results of the run that did not reach the view.");
    for (size_t i = 0; i < store->n_streams; i++)
        add_sample(out, "pnradar_view_results_missed_total", &store->streams[i], "",
                   (double)store->streams[i].n_unseen);
}

void view_api_metrics(const view_store *store, size_t n_clients, view_buffer *out)
{
    add_counts(store, out);
    add_latencies(store, out);
    add_view(store, out);
    add_help(out, "pnradar_view_clients", "gauge", "Browsers that follow a stream.");
    view_addf(out, "pnradar_view_clients %zu\n", n_clients);
    add_help(out, "pnradar_view_bad_messages_total", "counter", "Messages that make no sense.");
    view_addf(out, "pnradar_view_bad_messages_total %" PRIu64 "\n", store->n_bad);
}
