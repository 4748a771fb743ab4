/* SPDX-License-Identifier: MIT */
/* pnradar-listen: subscribes to the results, prints them, and counts what did not come. */
#include "cli.h"
#include "clock.h"
#include "endpoint.h"
#include "listen_count.h"
#include "listen_truth.h"
#include "log.h"
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    POLL_MS = 100,
    HIGH_WATER = 100000, /* messages kept while stdout is slow */
    MAX_PARTS = 3,
    BAD_SHOWN = 10, /* bad messages told one by one */
    KEY_LEN = 40
};
static const int64_t max_message_bytes = INT64_C(1) << 28;
static const double silence_s = 5; /* without --timeout: said once */

typedef struct listener {
    const pnr_config *config;
    const char *stream;   /* NULL: all */
    const char *endpoint; /* as connected */
    char address[PNR_ENDPOINT_LEN];
    uint64_t count;   /* results wanted; 0: no limit */
    double timeout_s; /* 0: none */
    bool follow;

    void *context, *socket;
    FILE *log;
    listen_truth *truth;
    listen_counts counts;
    pnr_printer printer;
    pnr_report report;
    uint64_t n_bad;
} listener;

/* --- subscribe --- */

static int use_curve(listener *l, const char *key, pnr_error *error)
{
    char public[KEY_LEN + 1], secret[KEY_LEN + 1];

    if (!zmq_has("curve"))
        return pnr_error_set(error, PNR_EUNSUPPORTED, "--curve-key: this libzmq has no CURVE");
    if (strlen(key) != KEY_LEN ||
        zmq_setsockopt(l->socket, ZMQ_CURVE_SERVERKEY, key, KEY_LEN + 1) != 0)
        return pnr_error_set(error, PNR_EUSAGE,
                             "--curve-key %s: want the publisher's public key, 40 Z85 characters",
                             key);
    if (zmq_curve_keypair(public, secret) != 0 ||
        zmq_setsockopt(l->socket, ZMQ_CURVE_PUBLICKEY, public, sizeof public) != 0 ||
        zmq_setsockopt(l->socket, ZMQ_CURVE_SECRETKEY, secret, sizeof secret) != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "CURVE: %s", zmq_strerror(zmq_errno()));
    return PNR_OK;
}

static int subscribe(listener *l)
{
    static const char *const topics[] = {"range/", "status/", "end/"};
    char topic[PNR_TEXT_LEN + 16];
    size_t i;

    for (i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        snprintf(topic, sizeof topic, "%s%s", topics[i], l->stream != NULL ? l->stream : "");
        if (zmq_setsockopt(l->socket, ZMQ_SUBSCRIBE, topic, strlen(topic)) != 0)
            return PNR_EUNAVAILABLE;
    }
    return PNR_OK;
}

/* Where a publisher that is bound to every address can be reached from here. */
static const char *address_of(listener *l)
{
    static const char *const any[] = {"tcp://*:", "tcp://0.0.0.0:"};
    size_t i;

    for (i = 0; i < sizeof any / sizeof any[0]; i++) {
        if (strncmp(l->endpoint, any[i], strlen(any[i])) == 0) {
            snprintf(l->address, sizeof l->address, "tcp://127.0.0.1:%s",
                     l->endpoint + strlen(any[i]));
            return l->address;
        }
    }
    return l->endpoint;
}

static int open_socket(listener *l, const char *curve_key, pnr_error *error)
{
    const int high_water = HIGH_WATER, v6 = strchr(l->endpoint, '[') != NULL, linger = 0;
    int code = pnr_endpoint_enough_files(error);

    if (code != PNR_OK)
        return code;
    l->context = zmq_ctx_new();
    l->socket = l->context != NULL ? zmq_socket(l->context, ZMQ_SUB) : NULL;
    if (l->socket == NULL ||
        zmq_setsockopt(l->socket, ZMQ_RCVHWM, &high_water, sizeof high_water) != 0 ||
        zmq_setsockopt(l->socket, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_setsockopt(l->socket, ZMQ_IPV6, &v6, sizeof v6) != 0 ||
        zmq_setsockopt(l->socket, ZMQ_MAXMSGSIZE, &max_message_bytes, sizeof max_message_bytes) !=
            0 ||
        subscribe(l) != PNR_OK)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "no ZeroMQ socket: %s",
                             zmq_strerror(zmq_errno()));
    if (curve_key != NULL && (code = use_curve(l, curve_key, error)) != PNR_OK)
        return code;
    if (zmq_connect(l->socket, address_of(l)) != 0)
        return pnr_error_set(error, PNR_EUSAGE, "cannot connect to %s: %s", l->endpoint,
                             zmq_strerror(zmq_errno()));
    return PNR_OK;
}

/* --- one message --- */

typedef struct message {
    zmq_msg_t parts[MAX_PARTS];
    int n_parts; /* those received, also beyond MAX_PARTS */
} message;

static int receive(void *socket, message *m)
{
    int more = 1;

    m->n_parts = 0;
    while (more) {
        zmq_msg_t spare;
        zmq_msg_t *part = m->n_parts < MAX_PARTS ? &m->parts[m->n_parts] : &spare;

        zmq_msg_init(part);
        if (zmq_msg_recv(part, socket, m->n_parts > 0 ? 0 : ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(part);
            if (m->n_parts > 0 && errno == EINTR)
                continue; /* the rest of a message is already there */
            return PNR_EAGAIN;
        }
        more = zmq_msg_more(part);
        if (part == &spare)
            zmq_msg_close(&spare);
        m->n_parts++;
    }
    return PNR_OK;
}

static void release(message *m)
{
    int i;

    for (i = 0; i < m->n_parts && i < MAX_PARTS; i++)
        zmq_msg_close(&m->parts[i]);
}

static bool is_wanted(const listener *l, const char *stream)
{
    /* A subscription is a prefix: demo gives demo2 too. */
    return l->stream == NULL || strcmp(l->stream, stream) == 0;
}

static void bad(listener *l, const pnr_error *error)
{
    if (++l->n_bad <= BAD_SHOWN)
        pnr_log(PNR_LOG_WARN, "%s%s", error->text,
                l->n_bad == BAD_SHOWN ? " (no more of these)" : "");
}

static bool is_full(const listener *l)
{
    return l->count > 0 && l->counts.received >= l->count;
}

/* raw: the message as it came, or NULL. */
static int take_result(listener *l, const char *raw, size_t length, pnr_error *error)
{
    pnr_report_truth truth[PNR_MAX_CANDIDATES];
    const pnr_report *report = &l->report;
    listen_run *run;
    size_t i;

    if (!is_wanted(l, report->stream) || is_full(l))
        return PNR_OK;
    run = listen_count_run(&l->counts, report->stream, report->run, l->log);
    if (run == NULL || !listen_count_result(&l->counts, run, report->seq)) {
        pnr_error_set(error, PNR_EDATA, "message: seq %llu of %s came late, or too many streams",
                      (unsigned long long)report->seq, report->stream);
        bad(l, error);
        return PNR_OK;
    }
    if (l->truth != NULL)
        listen_truth_match(l->truth, report, truth);
    for (i = 0; raw != NULL && i < length; i++)
        if ((unsigned char)raw[i] < 0x20)
            raw = NULL; /* not one line */
    if (l->printer.print != PNR_PRINT_JSON || raw == NULL)
        return pnr_printer_print(&l->printer, report, l->truth != NULL ? truth : NULL);
    fwrite(raw, 1, length, l->printer.stream);
    putc('\n', l->printer.stream);
    return ferror(l->printer.stream) ? PNR_EIO : PNR_OK;
}

static int take_pack(listener *l, const char *text, size_t length, message *m, pnr_error *error)
{
    const void *records = zmq_msg_data(&m->parts[2]);
    const size_t bytes = zmq_msg_size(&m->parts[2]);
    size_t offset = 0;
    int code, printed = PNR_OK;

    while (printed == PNR_OK && (code = pnr_message_read_pack(text, length, records, bytes, &offset,
                                                              &l->report, error)) != PNR_EEND) {
        if (code != PNR_OK) {
            bad(l, error);
            return PNR_OK;
        }
        printed = take_result(l, NULL, 0, error);
    }
    return printed;
}

static int take_summary(listener *l, const char *text, size_t length, bool is_end, pnr_error *error)
{
    pnr_end_summary summary;
    listen_run *run;

    if ((is_end ? pnr_message_read_end(text, length, &summary, error)
                : pnr_message_read_status(text, length, &summary, error)) != PNR_OK) {
        bad(l, error);
        return PNR_OK;
    }
    if (!is_wanted(l, summary.stream))
        return PNR_OK;
    run = listen_count_run(&l->counts, summary.stream, summary.run, l->log);
    if (run != NULL && is_end)
        listen_count_end(run, &summary);
    return PNR_OK;
}

static int take(listener *l, message *m, pnr_error *error)
{
    const char *topic = zmq_msg_data(&m->parts[0]);
    const size_t topic_length = zmq_msg_size(&m->parts[0]);
    const char *text = m->n_parts > 1 ? zmq_msg_data(&m->parts[1]) : "";
    const size_t length = m->n_parts > 1 ? zmq_msg_size(&m->parts[1]) : 0;

    if (topic_length >= 6 && memcmp(topic, "range/", 6) == 0) {
        if (m->n_parts > 2)
            return take_pack(l, text, length, m, error);
        if (pnr_message_read_range(text, length, &l->report, error) == PNR_OK)
            return take_result(l, text, length, error);
        bad(l, error);
        return PNR_OK;
    }
    return take_summary(l, text, length, topic_length >= 4 && memcmp(topic, "end/", 4) == 0, error);
}

/* --- the loop --- */

/* A run that lost its GPU is started again by its supervisor: its end is not the last word. */
static bool is_over(const listener *l)
{
    size_t i;

    if (l->follow || !listen_count_all_ended(&l->counts))
        return false;
    for (i = 0; i < l->counts.n_streams; i++)
        if (l->counts.runs[i].end.exit_status == pnr_error_exit(PNR_ELOST))
            return false;
    return true;
}

static int silent(listener *l, double seconds, bool *is_told, pnr_error *error)
{
    if (l->timeout_s > 0 && seconds >= l->timeout_s)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "nothing came from %s within %.3g s (is the publisher running there, "
                             "and is its stream %s?)",
                             l->endpoint, l->timeout_s, l->stream != NULL ? l->stream : "any");
    if (!*is_told && seconds >= silence_s) {
        *is_told = true;
        pnr_log(PNR_LOG_WARN, "nothing from %s yet; still waiting", l->endpoint);
    }
    return PNR_OK;
}

static int listen_all(listener *l, pnr_error *error)
{
    uint64_t heard_ns = pnr_clock_ns();
    bool is_told = false;
    int code = PNR_OK;

    while (code == PNR_OK && !pnr_stop && !is_full(l) && !is_over(l)) {
        zmq_pollitem_t item = {.socket = l->socket, .events = ZMQ_POLLIN};
        message m;

        if (receive(l->socket, &m) != PNR_OK) {
            fflush(l->printer.stream); /* nothing waits: show what there is */
            if (zmq_poll(&item, 1, POLL_MS) == 0)
                code = silent(l, (double)(pnr_clock_ns() - heard_ns) * 1e-9, &is_told, error);
            continue;
        }
        heard_ns = pnr_clock_ns();
        is_told = true;
        code = take(l, &m, error);
        release(&m);
    }
    if (code == PNR_EIO)
        pnr_error_set(error, code, "cannot write the results: %s", strerror(errno));
    return code;
}

static int summarize(listener *l, int code, pnr_error *error)
{
    if (pnr_printer_finish(&l->printer) != PNR_OK && code == PNR_OK)
        code = pnr_error_set(error, PNR_EIO, "cannot write the results: %s", strerror(errno));
    listen_count_print(&l->counts, l->log);
    if (l->n_bad > 0)
        fprintf(l->log, "%llu messages could not be read\n", (unsigned long long)l->n_bad);
    if (l->truth != NULL)
        listen_truth_print(l->truth, l->log);
    return code;
}

static void close_all(listener *l)
{
    if (l->socket != NULL)
        zmq_close(l->socket);
    while (l->context != NULL && zmq_ctx_term(l->context) != 0 && zmq_errno() == EINTR)
        ;
    listen_truth_destroy(l->truth);
}

/* --- the command line --- */

typedef struct arguments {
    const char *format, *count, *timeout, *stream, *all, *follow, *curve_key, *truth;
} arguments;

static int read_arguments(const arguments *a, listener *l, pnr_print *print, pnr_error *error)
{
    char *end;

    *print = PNR_PRINT_TABLE;
    if (a->format != NULL && pnr_print_find(a->format, print, error) != PNR_OK)
        return PNR_EUSAGE;
    if (a->count != NULL) {
        errno = 0;
        l->count = strtoull(a->count, &end, 10);
        if (*end != '\0' || a->count[0] < '0' || a->count[0] > '9' || errno != 0 || l->count == 0)
            return pnr_error_set(error, PNR_EUSAGE, "--count %s: want a number from 1", a->count);
    }
    if (a->timeout != NULL) {
        l->timeout_s = strtod(a->timeout, &end);
        if (*end != '\0' || end == a->timeout || !(l->timeout_s > 0) || !isfinite(l->timeout_s))
            return pnr_error_set(error, PNR_EUSAGE, "--timeout %s: want seconds above 0",
                                 a->timeout);
    }
    if (a->stream != NULL && a->all != NULL)
        return pnr_error_set(error, PNR_EUSAGE, "--stream and --all exclude each other");
    if (a->stream != NULL && (a->stream[0] == '\0' || strlen(a->stream) >= PNR_TEXT_LEN))
        return pnr_error_set(error, PNR_EUSAGE, "--stream: want a name of 1 to %d bytes",
                             PNR_TEXT_LEN - 1);
    l->stream = a->all != NULL ? NULL : a->stream != NULL ? a->stream : l->config->stream.name;
    l->follow = a->follow != NULL;
    if (l->endpoint[0] == '\0')
        return pnr_error_set(error, PNR_EUSAGE,
                             "no endpoint: give one, or publisher.endpoint in the configuration");
    if (strlen(l->endpoint) >= PNR_ENDPOINT_LEN)
        return pnr_error_set(error, PNR_EUSAGE, "the endpoint is too long");
    return PNR_OK;
}

static int run(listener *l, const arguments *a, pnr_error *error)
{
    pnr_print print;
    int code = read_arguments(a, l, &print, error);

    if (code != PNR_OK ||
        (a->truth != NULL &&
         (code = listen_truth_read(a->truth, l->config, &l->truth, error)) != PNR_OK) ||
        (code = open_socket(l, a->curve_key, error)) != PNR_OK)
        return code;
    pnr_printer_init(&l->printer, stdout, print, l->truth != NULL);
    pnr_cli_catch_signals();
    return summarize(l, listen_all(l, error), error);
}

int main(int argc, char **argv)
{
    arguments a = {0};
    const pnr_cli_option options[] = {
        {"format", "FORMAT", "table (default), json (the range message itself) or csv", &a.format},
        {"count", "N", "stop after N results", &a.count},
        {"timeout", "SECONDS", "give up (exit 69) when nothing comes for so long", &a.timeout},
        {"stream", "NAME", "listen to this stream instead of the configuration's", &a.stream},
        {"all", NULL, "listen to every stream of the endpoint", &a.all},
        {"follow", NULL, "go on after the end, for the next run", &a.follow},
        {"curve-key", "KEY", "the publisher's CURVE public key", &a.curve_key},
        {"truth", "FILE", "show the truth that pnradar-echo wrote, and the errors", &a.truth},
        {NULL, NULL, NULL, NULL}};
    pnr_cli cli = {
        .program = "pnradar-listen",
        .usage = "[OPTION]... [ENDPOINT]",
        .summary = "Subscribes to the results that pnradar publishes, prints them, and counts what "
                   "was lost.\nENDPOINT is publisher.endpoint of the configuration when left out. "
                   "Ends when the publisher does.",
        .examples = "pnradar-listen\n"
                    "pnradar-listen --format csv --count 100 tcp://127.0.0.1:5510\n"
                    "pnradar-listen -c config/demo.conf --truth truth.csv --strict",
        .options = options,
        .max_operands = 1,
    };
    pnr_config config;
    pnr_error error = {0};
    listener l = {.config = &config, .log = stderr};
    int status, code = pnr_cli_parse(&cli, argc, argv, &config, &error);

    if (code == PNR_OK) {
        l.endpoint = cli.n_operands > 0 ? cli.operands[0] : config.publisher.endpoint;
        code = run(&l, &a, &error);
    }
    if (code == PNR_EEND)
        status = 0;
    else if (code != PNR_OK)
        status = pnr_cli_fail(&error);
    else
        status = cli.strict && (l.n_bad > 0 || listen_count_faulty(&l.counts)) ? PNR_EXIT_LOST : 0;
    close_all(&l);
    pnr_config_clear(&config);
    return status;
}
