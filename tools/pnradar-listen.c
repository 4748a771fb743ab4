/* SPDX-License-Identifier: MIT */
/* pnradar-listen: subscribes to the results, prints them, and counts missing results. */
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli.h"
#include "picture/picture.h"
#include "publisher/endpoint.h"
#include "publisher/report.h"
#include "tools/common/subscriber.h"
#include "tools/listen/count.h"
#include "tools/listen/events.h"
#include "tools/listen/live.h"
#include "tools/listen/profiles.h"
#include "tools/listen/screen.h"
#include "tools/listen/truth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    POLL_MS = 100,
    HIGH_WATER = 100000, /* greatest number of messages that wait while stdout is slow */
    BAD_SHOWN = 10,      /* number of bad messages that are reported */
    MAX_OTHERS = 8
};
/* The topics for results. status/ and end/ match all streams, so the program also receives the
 * names of other streams. */
static const char *const result_topics[] = {"range", "status/", "end/", NULL};
static const char *const event_topics[] = {"event", "status/", "end/", NULL};
static const char monitor_name[] = "inproc://results";
static const double silence_s = 3; /* after this silence the program warns once */
/* After the last result, a silence of this length ends the wait for profiles. */
static const double patience_s = 1;

typedef struct listener {
    const pnr_config *config;
    pnr_subscriber_source source;
    size_t count;     /* number of results to print; 0: no limit */
    double timeout_s; /* 0: no limit */
    bool follow;

    void *context, *socket;
    void *monitor; /* NULL: the subscription has reached the publisher */
    bool is_connected;
    pnr_contact contact; /* state of the connection to the publisher */
    FILE *log;
    listen_truth *truth;
    listen_counts counts;
    pnr_printer printer;
    pnr_report report;
    pnr_pack pack;
    uint64_t n_bad;
    uint64_t heard_ns;                     /* time of the last message of the stream */
    bool is_other;                         /* the last message is of another stream */
    char others[MAX_OTHERS][PNR_TEXT_LEN]; /* [n_others] names of other streams */
    size_t n_others;

    /* Optional displays of the results. NULL: not wanted. */
    pnr_picture *picture;
    listen_live *live;
    listen_profiles *profiles; /* profiles for picture and live */
    pnr_map profile;           /* the last received profile */
    uint64_t last_sample;      /* first sample of the last result */
} listener;

/* --- one message --- */

/* True if the user wants this stream. Stores the name of any other stream. A ZeroMQ subscription is
 * a prefix: a subscription to demo also receives demo2. */
static bool is_wanted(listener *l, const char *stream)
{
    size_t i = 0;

    l->is_other = l->source.stream != NULL && strcmp(l->source.stream, stream) != 0;
    if (!l->is_other)
        return true;
    while (i < l->n_others && strcmp(l->others[i], stream) != 0)
        i++;
    if (i == l->n_others && i < MAX_OTHERS)
        memccpy(l->others[l->n_others++], stream, '\0', PNR_TEXT_LEN);
    return false;
}

static void warn_user(const listener *l, const char *text)
{
    if (l->live != NULL)
        listen_live_notice(l->live, text);
    else
        pnr_log(PNR_LOG_WARN, "%s", text);
}

/* If `code` is PNR_EDATA (a message cannot be read), counts and reports the message and returns
 * PNR_OK. Else returns `code`. */
static int pass_bad(listener *l, int code, const pnr_error *error)
{
    char text[sizeof error->text + 32];

    if (code != PNR_EDATA)
        return code;
    snprintf(text, sizeof text, "%s%s", error->text,
             l->n_bad + 1 == BAD_SHOWN ? " (no more of these)" : "");
    if (++l->n_bad <= BAD_SHOWN)
        warn_user(l, text);
    return PNR_OK;
}

static bool is_full(const listener *l)
{
    return l->count > 0 && l->counts.received >= l->count;
}

/* Counts and shows one result. raw: the received message; NULL: the result was in a pack. */
static int take_result(listener *l, const char *raw, size_t length, pnr_error *error)
{
    pnr_report_truth truth[PNR_MAX_CANDIDATES];
    const pnr_report *report = &l->report;
    listen_run *run;

    if (!is_wanted(l, report->stream) || is_full(l))
        return PNR_OK;
    run = listen_count_run(&l->counts, report->stream, report->run, l->log);
    if (run == NULL || !listen_count_result(&l->counts, run, report->seq)) {
        pnr_error_set(error, PNR_EDATA, "message: seq %llu of %s is late, or too many streams",
                      (unsigned long long)report->seq, report->stream);
        return pass_bad(l, PNR_EDATA, error);
    }
    if (l->truth != NULL)
        listen_truth_match(l->truth, report, truth);
    l->last_sample = report->sample;
    if (l->picture != NULL)
        pnr_picture_result(l->picture, report);
    if (l->live != NULL) {
        listen_live_result(l->live, report);
        return PNR_OK;
    }
    if (raw != NULL && pnr_text_find_control(raw, length) != NULL)
        raw = NULL; /* a message with control characters is printed from its fields */
    if (l->printer.print != PNR_PRINT_JSON || raw == NULL)
        return pnr_printer_print(&l->printer, report, l->truth != NULL ? truth : NULL);
    fwrite(raw, 1, length, l->printer.stream);
    putc('\n', l->printer.stream);
    return ferror(l->printer.stream) ? PNR_EIO : PNR_OK;
}

static int take_pack(listener *l, const char *text, size_t length, pnr_subscriber_message *m,
                     pnr_error *error)
{
    size_t bytes;
    const void *records = pnr_subscriber_part(m, 2, &bytes);
    int code = pnr_message_open_pack(text, length, records, bytes, &l->pack, error);

    while (code == PNR_OK && pnr_message_next_dwell(&l->pack, &l->report))
        code = take_result(l, NULL, 0, error);
    return code;
}

static int take_summary(listener *l, const char *text, size_t length, bool is_end, pnr_error *error)
{
    pnr_end_summary summary;
    listen_run *run;
    const int code = is_end ? pnr_message_read_end(text, length, &summary, error)
                            : pnr_message_read_status(text, length, &summary, error);

    if (code != PNR_OK || !is_wanted(l, summary.stream))
        return code;
    if (l->picture != NULL)
        pnr_picture_status(l->picture, &summary);
    run = listen_count_run(&l->counts, summary.stream, summary.run, l->log);
    if (run != NULL && is_end)
        listen_count_end(&l->counts, run, &summary);
    return PNR_OK;
}

static int take_event(listener *l, const char *text, size_t length, pnr_error *error)
{
    pnr_event_summary event;
    listen_run *run;
    const int code = pnr_message_read_event(text, length, &event, error);

    if (code != PNR_OK || !is_wanted(l, event.stream) || is_full(l))
        return code;
    run = listen_count_run(&l->counts, event.stream, event.run, l->log);
    if (run == NULL || !listen_count_result(&l->counts, run, event.seq))
        return pnr_error_set(error, PNR_EDATA,
                             "message: event %llu of %s is late, or too many streams",
                             (unsigned long long)event.seq, event.stream);
    return listen_event_print(&l->printer, &event, text, length, error);
}

/* Processes a message of any topic. PNR_OK; PNR_EDATA: the message cannot be read; PNR_EIO. */
static int take_message(listener *l, pnr_subscriber_message *m, pnr_error *error)
{
    size_t length;
    const char *text = pnr_subscriber_part(m, 1, &length);
    int code;

    if (l->counts.are_events && pnr_subscriber_has_topic(m, "event/"))
        return take_event(l, text, length, error);
    if (!pnr_subscriber_has_topic(m, "range/"))
        return take_summary(l, text, length, pnr_subscriber_has_topic(m, "end/"), error);
    if (m->n_parts > 2)
        return take_pack(l, text, length, m, error);
    code = pnr_message_read_range(text, length, &l->report, error);
    return code == PNR_OK ? take_result(l, text, length, error) : code;
}

/* Shows the next profile in the picture and on the terminal. PNR_OK; PNR_EAGAIN: no profile has
 * arrived; PNR_EDATA: the profile cannot be read; PNR_ENOMEMORY. */
static int take_profile(listener *l, pnr_error *error)
{
    const int code =
        l->profiles != NULL ? listen_profiles_next(l->profiles, &l->profile, error) : PNR_EAGAIN;

    if (code == PNR_OK && l->live != NULL)
        listen_live_profile(l->live, &l->profile);
    if (code == PNR_OK && l->picture != NULL)
        pnr_picture_map(l->picture, &l->profile);
    return code;
}

/* --- the loop --- */

static double silent_s(const listener *l)
{
    return (double)(pnr_clock_ns() - l->heard_ns) * 1e-9;
}

/* True if no more results are needed, or no more results will arrive. */
static bool has_all(const listener *l)
{
    return is_full(l) || (!l->follow && listen_count_is_over(&l->counts));
}

/* Called after all results have arrived. True if all profiles have also arrived, or after a silence
 * of patience_s. */
static bool has_profiles(const listener *l)
{
    const char *run = l->counts.runs[0].run; /* a picture has only one stream */

    return l->profiles == NULL || listen_profiles_ended(l->profiles, run) ||
           (strcmp(l->profile.head.run, run) == 0 && l->profile.head.sample >= l->last_sample) ||
           silent_s(l) > patience_s;
}

/* Returns the reason why the publisher refuses this subscriber. NULL: no refusal is known. */
static const char *objection(const listener *l)
{
    if (l->contact == PNR_CONTACT_KEY)
        return l->source.secret_path != NULL
                   ? "authentication refused: the publisher does not allow the key of "
                     "--curve-secret"
                   : "authentication refused: the publisher allows known keys only: --curve-secret";
    if (l->contact == PNR_CONTACT_SECURITY)
        return l->source.curve_key != NULL ? "the publisher has no keys: leave out --curve-key"
                                           : "the publisher wants a key: --curve-key";
    if (l->contact == PNR_CONTACT_FAILED)
        return l->source.curve_key != NULL
                   ? "the handshake failed: is --curve-key the publisher's public key?"
                   : "the handshake failed: the publisher wants a key (--curve-key), or is another "
                     "program";
    return NULL;
}

/* True if the publisher has refused this subscriber, for a known reason. */
static bool is_refused(const listener *l)
{
    return l->contact == PNR_CONTACT_KEY || l->contact == PNR_CONTACT_SECURITY;
}

/* Writes the reason why nothing publishes at the endpoint. */
static void describe_absence(const listener *l, char *text, size_t size)
{
    const char *endpoint = l->source.endpoint;
    const char *place = strncmp(endpoint, "ipc://", 6) == 0 ? "path" : "port", *refusal;

    if (objection(l) != NULL)
        snprintf(text, size, "%s: %s", endpoint, objection(l));
    else if ((refusal = pnr_subscriber_refusal(endpoint)) != NULL)
        snprintf(text, size, "nothing publishes at %s: %s (not started yet, or another %s?)",
                 endpoint, refusal, place);
    else if (l->source.curve_key != NULL)
        snprintf(text, size, "nothing publishes at %s with this --curve-key", endpoint);
    else
        snprintf(text, size, "nothing publishes at %s (another %s, or one that wants --curve-key?)",
                 endpoint, place);
}

/* Reads the events of the connection to the publisher. Warns once of a refusal. A handshake that
 * failed for an unknown reason does not replace the known one of a handshake before it. */
static void note_contact(listener *l)
{
    const pnr_contact before = l->contact;
    char text[PNR_ENDPOINT_LEN + 256];
    pnr_contact contact;

    while ((contact = pnr_subscriber_contact(l->monitor)) != PNR_CONTACT_NONE) {
        if (contact != PNR_CONTACT_LOST && !(contact == PNR_CONTACT_FAILED && is_refused(l)))
            l->contact = contact;
        if (contact == PNR_CONTACT_REACHED)
            pnr_subscriber_unwatch(l->socket, &l->monitor);
    }
    if (l->contact == before || !is_refused(l))
        return;
    describe_absence(l, text, sizeof text);
    warn_user(l, text);
}

/* Writes the reason for the silence at the endpoint: only other streams, a silent publisher, or no
 * publisher. */
static void describe_silence(listener *l, char *text, size_t size)
{
    const char *stream = l->source.stream;
    size_t length;

    if (l->n_others == 0) {
        if (l->monitor == NULL)
            snprintf(text, size, "a publisher is at %s, but nothing arrived from it",
                     l->source.endpoint);
        else
            describe_absence(l, text, size);
        return;
    }
    snprintf(text, size, "no stream %s at %s, but", stream, l->source.endpoint);
    for (size_t i = 0; i < l->n_others; i++) {
        length = strlen(text);
        snprintf(text + length, size - length, "%s %s", i > 0 ? "," : "", l->others[i]);
    }
    length = strlen(text);
    snprintf(text + length, size - length, ": --stream NAME or --all");
}

static int check_silence(listener *l, bool *is_warned, pnr_error *error)
{
    const double seconds = silent_s(l);
    char text[PNR_ENDPOINT_LEN + (MAX_OTHERS + 2) * PNR_TEXT_LEN];

    if (l->timeout_s > 0 && seconds >= l->timeout_s) {
        describe_silence(l, text, sizeof text);
        return pnr_error_set(error, PNR_EUNAVAILABLE, "nothing arrived within %.3g s: %s",
                             l->timeout_s, text);
    }
    if (!*is_warned && seconds >= silence_s && !is_refused(l)) {
        *is_warned = true;
        describe_silence(l, text, sizeof text);
        warn_user(l, text);
    }
    return PNR_OK;
}

/* Connects to the results after the subscription to profiles has reached the publisher, so that
 * each result has its profile. */
static int connect_when_reached(listener *l, pnr_error *error)
{
    int code;

    if (l->is_connected || (l->profiles != NULL && !listen_profiles_reached(l->profiles)))
        return PNR_OK;
    code = pnr_subscriber_connect(l->socket, &l->source, error);
    l->is_connected = code == PNR_OK;
    return code;
}

/* Processes one message and one profile, if they have arrived. PNR_EAGAIN: no message and no
 * profile has arrived. */
static int take_next(listener *l, pnr_error *error)
{
    pnr_subscriber_message m;
    int code, result = PNR_EAGAIN;

    if ((code = connect_when_reached(l, error)) != PNR_OK)
        return code;
    /* if no more results are needed, receives only profiles */
    if (!is_full(l) && pnr_subscriber_receive(l->socket, &m) == PNR_OK) {
        result = pass_bad(l, take_message(l, &m, error), error);
        pnr_subscriber_release(&m);
        if (result != PNR_OK)
            return result;
    }
    code = pass_bad(l, take_profile(l, error), error);
    return code != PNR_EAGAIN ? code : result;
}

/* Waits for a message, or for an event of the connection for profiles. False: POLL_MS have
 * passed. */
static bool wait_for_more(listener *l)
{
    zmq_pollitem_t items[2] = {{.events = ZMQ_POLLIN}, {.events = ZMQ_POLLIN}};
    int n = 0;

    if (l->profiles != NULL)
        items[n++].socket = listen_profiles_socket(l->profiles);
    if (!is_full(l))
        items[n++].socket = l->socket;
    return zmq_poll(items, n, POLL_MS) != 0;
}

static int listen_all(listener *l, pnr_error *error)
{
    bool is_warned = false;
    int code = PNR_OK, drawn;

    l->heard_ns = pnr_clock_ns();
    while (code == PNR_OK && !pnr_stop && !(has_all(l) && has_profiles(l))) {
        l->is_other = false;
        note_contact(l);
        code = take_next(l, error);
        if (code == PNR_OK && !l->is_other) {
            l->heard_ns = pnr_clock_ns();
            is_warned = true;
        } else if (code == PNR_OK) {
            code = check_silence(l, &is_warned, error);
        } else if (code == PNR_EAGAIN) {
            code = PNR_OK;
            fflush(l->printer.stream); /* no message waits, so the printed lines are shown now */
            if (!wait_for_more(l) && !has_all(l))
                code = check_silence(l, &is_warned, error);
        }
        drawn = l->live != NULL ? listen_live_draw(l->live, &l->counts) : PNR_OK;
        if (drawn == PNR_EEND)
            pnr_stop = 1; /* ends the program as a signal would */
        else if (code == PNR_OK)
            code = drawn;
    }
    if (code == PNR_EIO)
        pnr_error_set(error, code, "cannot write the results: %s", strerror(errno));
    return code;
}

static int summarize(listener *l, int code, pnr_error *error)
{
    int (*const finish)(pnr_printer *) =
        l->counts.are_events ? listen_event_finish : pnr_printer_finish;

    listen_live_close(l->live, &l->counts, &l->log);
    if (finish(&l->printer) != PNR_OK && code == PNR_OK)
        code = pnr_error_set(error, PNR_EIO, "cannot write the results: %s", strerror(errno));
    listen_count_print(&l->counts, l->log);
    if (l->n_bad > 0)
        fprintf(l->log, "%llu messages could not be read\n", (unsigned long long)l->n_bad);
    if (l->truth != NULL)
        listen_truth_print(l->truth, l->log);
    if (l->profiles != NULL) {
        if (l->counts.runs[0].has_ended)
            listen_profiles_finish(l->profiles, &l->counts.runs[0].end);
        listen_profiles_print(l->profiles, l->log);
    }
    return l->picture != NULL ? pnr_picture_finish(l->picture, code, error) : code;
}

static void close_all(listener *l)
{
    listen_profiles_close(l->profiles);
    pnr_subscriber_unwatch(l->socket, &l->monitor);
    pnr_picture_destroy(l->picture);
    pnr_subscriber_destroy(l->socket);
    while (l->context != NULL && zmq_ctx_term(l->context) != 0 && zmq_errno() == EINTR)
        ;
    listen_truth_destroy(l->truth);
}

/* --- the command line --- */

typedef struct arguments {
    const char *format, *stream, *truth;
    pnr_picture_options picture;
    bool all, live, events;
} arguments;

static int check_view(const arguments *a, pnr_error *error)
{
    if (a->events && (a->picture.path != NULL || a->live || a->truth != NULL))
        return pnr_error_set(error, PNR_EUSAGE,
                             "--events prints events in place of results: not with --plot, --live "
                             "or --truth");
    if ((a->picture.path != NULL || a->live) && a->all)
        return pnr_error_set(error, PNR_EUSAGE, "--plot and --live show one stream: not --all");
    if (a->live && a->format != NULL)
        return pnr_error_set(error, PNR_EUSAGE, "--live prints no results: not --format");
    return a->live ? listen_screen_check(error) : PNR_OK;
}

static int check_arguments(const arguments *a, listener *l, pnr_print *print, pnr_error *error)
{
    const int code = check_view(a, error);

    *print = PNR_PRINT_TABLE;
    if (code != PNR_OK)
        return code;
    if (a->format != NULL && pnr_print_find("--format", a->format, print, error) != PNR_OK)
        return PNR_EUSAGE;
    l->counts.are_events = a->events;
    if (a->stream != NULL && a->all)
        return pnr_error_set(error, PNR_EUSAGE, "--stream and --all exclude each other");
    if (a->stream != NULL && (a->stream[0] == '\0' || strlen(a->stream) >= PNR_TEXT_LEN))
        return pnr_error_set(error, PNR_EUSAGE, "--stream '%.20s': want a name of 1 to %d bytes",
                             a->stream, PNR_TEXT_LEN - 1);
    if (l->source.secret_path != NULL && l->source.curve_key == NULL)
        return pnr_error_set(error, PNR_EUSAGE,
                             "--curve-secret needs --curve-key, the publisher's public key");
    if (!a->all)
        l->source.stream = a->stream != NULL ? a->stream : l->config->stream.name;
    if (l->source.endpoint[0] == '\0')
        return pnr_error_set(error, PNR_EUSAGE,
                             "no endpoint: give one, or publisher.endpoint in the configuration");
    if (strlen(l->source.endpoint) >= PNR_ENDPOINT_LEN)
        return pnr_error_set(error, PNR_EUSAGE, "the endpoint is too long");
    return PNR_OK;
}

static int open_socket(listener *l, const arguments *a, pnr_error *error)
{
    int code = pnr_endpoint_enough_files(PNR_ENDPOINT_FILES, error);

    if (code != PNR_OK)
        return code;
    if ((l->context = zmq_ctx_new()) == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "no ZeroMQ context: %s",
                             zmq_strerror(zmq_errno()));
    if ((code =
             pnr_subscriber_create(l->context, &l->source, a->events ? event_topics : result_topics,
                                   HIGH_WATER, &l->socket, error)) != PNR_OK ||
        (code = pnr_subscriber_watch(l->context, l->socket, monitor_name, &l->monitor, error)) !=
            PNR_OK ||
        ((a->picture.path != NULL || a->live) &&
         (code = listen_profiles_open(l->context, &l->source, &l->profiles, error)) != PNR_OK))
        return code;
    return connect_when_reached(l, error);
}

static int run(listener *l, const arguments *a, pnr_error *error)
{
    pnr_print print;
    int code = check_arguments(a, l, &print, error);

    pnr_cli_catch_signals();
    if (code != PNR_OK || (code = pnr_picture_create(&a->picture, &l->picture, error)) != PNR_OK ||
        (a->truth != NULL &&
         (code = listen_truth_read(a->truth, l->config, &l->truth, error)) != PNR_OK) ||
        (code = open_socket(l, a, error)) != PNR_OK)
        return code;
    pnr_printer_init(&l->printer, stdout, print, l->truth != NULL);
    if (!a->live)
        pnr_log(PNR_LOG_INFO, "waiting at %s for %s%s", l->source.endpoint,
                l->source.stream != NULL ? "stream " : "every stream",
                l->source.stream != NULL ? l->source.stream : "");
    if (a->live &&
        (code = listen_live_open(l->source.endpoint, &l->live, &l->log, error)) != PNR_OK)
        return code;
    return summarize(l, listen_all(l, error), error);
}

int main(int argc, char **argv)
{
    arguments a = {0};
    pnr_config config;
    listener l = {.config = &config, .log = stderr};
    const pnr_cli_option options[] = {
        {"format", "table|json|csv",
         "how results are printed: a table (default), the range messages themselves, or CSV",
         .value = &a.format},
        {"count", "N", "stop after N results", .count = &l.count, .min = 1, .max = 0x1p53},
        {"timeout", "SECONDS", "give up (exit 69) when nothing arrives for so long",
         .number = &l.timeout_s, .unit = "s", .min = 1e-6, .max = 1e9},
        {"stream", "NAME", "listen to this stream instead of the configuration's",
         .value = &a.stream},
        {"all", NULL, "listen to every stream of the endpoint", .flag = &a.all},
        {"follow", NULL, "go on after the end, for the next run", .flag = &l.follow},
        {"events", NULL,
         "print events (losses, slips, refused subscribers, ...) in place of results",
         .flag = &a.events},
        {"curve-key", "KEY", "the publisher's CURVE public key", .value = &l.source.curve_key},
        {"curve-secret", "FILE", "this subscriber's CURVE secret key, from pnradar-keys",
         .value = &l.source.secret_path},
        {"truth", "FILE", "show the truth that pnradar-echo wrote, and the errors",
         .value = &a.truth},
        PNR_PICTURE_CLI(a.picture),
        {"live", NULL, "show the profile or map and its echoes on the terminal; q: quit",
         .flag = &a.live},
        {0}};
    pnr_cli cli = {
        .program = "pnradar-listen",
        .usage = "[OPTION]... [ENDPOINT]",
        .summary = "Subscribes to the results that pnradar publishes, prints them, and counts what "
                   "was lost.\nENDPOINT is publisher.endpoint of the configuration when left out. "
                   "Ends when the publisher does.",
        .examples = "pnradar-listen\n"
                    "pnradar-listen --format csv --count 100 tcp://127.0.0.1:5510\n"
                    "pnradar-listen -c config/demo.conf --truth truth.csv --strict\n"
                    "pnradar-listen -c config/demo.conf --plot run.png --live",
        .options = options,
        .max_operands = 1,
    };
    pnr_error error = {0};
    int code = pnr_cli_parse(&cli, argc, argv, &config, &error);

    if (code == PNR_OK) {
        l.source.endpoint = cli.n_operands > 0 ? cli.operands[0] : config.publisher.endpoint;
        code = run(&l, &a, &error);
    }
    close_all(&l);
    pnr_config_clear(&config);
    if (code != PNR_OK)
        return pnr_cli_fail(&error);
    return cli.strict && (l.n_bad > 0 || listen_count_faulty(&l.counts)) ? PNR_EXIT_LOST : 0;
}
