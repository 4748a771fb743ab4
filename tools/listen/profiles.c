/* SPDX-License-Identifier: MIT */
/* Receives the profiles and maps of a stream with a separate subscription, so that they never fill
 * the queue of the results. */
#include "tools/listen/profiles.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* libzmq stops reading when its queue is full. If the publisher then closes the connection, the
 * messages that libzmq has not read yet are lost. So, after the first profile, the queue is as long
 * as queue_bytes allow. */
enum { LEAST_HIGH_WATER = 8, MOST_HIGH_WATER = 100000 };
static const size_t queue_bytes = (size_t)256 << 20;
static const char *const topics[] = {"profile", "map", "end", NULL};
static const char monitor_address[] = "inproc://profiles";

struct listen_profiles {
    const pnr_subscriber_source *source;
    void *socket;
    void *monitor; /* NULL: the subscription has reached the publisher */
    pnr_subscriber_message message;
    char run[17], ended_run[17];
    size_t bytes;  /* size of the last profile */
    uint64_t last; /* seq of the last profile of this run */
    uint64_t n_run, n_received, n_missed;
};

/* --- messages --- */

static void count_profile(listen_profiles *p, const pnr_report *head)
{
    if (strcmp(p->run, head->run) != 0) {
        memcpy(p->run, head->run, sizeof p->run);
        p->n_run = 0;
    }
    if (p->n_run > 0 && head->seq > p->last)
        p->n_missed += head->seq - p->last - 1;
    p->last = head->seq;
    p->n_run++;
    p->n_received++;
}

/* Counts the profiles that are missing at the end of a run. Each result has a profile, so all
 * profiles after the last received one are missing. */
void listen_profiles_finish(listen_profiles *p, const pnr_end_summary *end)
{
    if (p->n_run > 0 && strcmp(p->run, end->run) == 0 && end->account.results > p->last + 1) {
        p->n_missed += end->account.results - 1 - p->last;
        p->last = end->account.results - 1;
    }
    memcpy(p->ended_run, end->run, sizeof p->ended_run);
}

static bool is_wanted(const listen_profiles *p, const char *stream)
{
    return p->source->stream == NULL || strcmp(p->source->stream, stream) == 0;
}

/* Sets the length of the queue to as many messages of this size as queue_bytes allow. */
static void fit_queue(listen_profiles *p, size_t bytes)
{
    const size_t most = queue_bytes / (bytes > 0 ? bytes : 1);
    const int high_water = most < LEAST_HIGH_WATER  ? LEAST_HIGH_WATER
                           : most > MOST_HIGH_WATER ? MOST_HIGH_WATER
                                                    : (int)most;

    p->bytes = bytes;
    (void)zmq_setsockopt(p->socket, ZMQ_RCVHWM, &high_water, sizeof high_water);
}

/* Reads the received message. PNR_OK: a profile of this stream; PNR_EAGAIN: another message. */
static int take_message(listen_profiles *p, pnr_map *out, pnr_error *error)
{
    pnr_end_summary end;
    size_t length, bytes;
    const char *text = pnr_subscriber_part(&p->message, 1, &length);
    int code;

    if (pnr_subscriber_has_topic(&p->message,
                                 "end/")) { /* the receiver of the results reports a bad end
                                             * message */
        if (pnr_message_read_end(text, length, &end, NULL) == PNR_OK && is_wanted(p, end.stream))
            listen_profiles_finish(p, &end);
        return PNR_EAGAIN;
    }
    out->cells = pnr_subscriber_part(&p->message, 2, &bytes);
    if (bytes != p->bytes)
        fit_queue(p, bytes);
    if (pnr_subscriber_has_topic(&p->message, "map/")) {
        code = pnr_message_read_map(text, length, bytes, &out->head, &out->info, error);
    } else {
        out->info = (pnr_map_info){.n_codes = 1, .n_rows = 1, .n_runs = 1, .mps_per_hz = NAN};
        out->info.runs[0].n_rows = 1;
        code = pnr_message_read_profile(text, length, bytes, &out->head, &out->info.row, error);
    }
    if (code != PNR_OK)
        return code;
    if (!is_wanted(p, out->head.stream))
        return PNR_EAGAIN;
    count_profile(p, &out->head);
    return PNR_OK;
}

int listen_profiles_next(listen_profiles *p, pnr_map *out, pnr_error *error)
{
    int code = PNR_EAGAIN;

    while (code == PNR_EAGAIN) {
        pnr_subscriber_release(&p->message);
        if (pnr_subscriber_receive(p->socket, &p->message) != PNR_OK)
            return PNR_EAGAIN;
        code = take_message(p, out, error);
    }
    return code;
}

bool listen_profiles_reached(listen_profiles *p)
{
    return pnr_subscriber_reached(p->socket, &p->monitor);
}

bool listen_profiles_ended(const listen_profiles *p, const char *run)
{
    return strcmp(p->ended_run, run) == 0;
}

void listen_profiles_print(const listen_profiles *p, FILE *stream)
{
    fprintf(stream, "%" PRIu64 " profiles received, %" PRIu64 " missed\n", p->n_received,
            p->n_missed);
}

void *listen_profiles_socket(listen_profiles *p)
{
    return p->monitor != NULL ? p->monitor : p->socket;
}

/* --- open and close --- */

int listen_profiles_open(void *context, const pnr_subscriber_source *source, listen_profiles **out,
                         pnr_error *error)
{
    listen_profiles *p = calloc(1, sizeof *p);
    int code;

    *out = NULL;
    if (p == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "profiles: out of memory");
    p->source = source;
    if ((code = pnr_subscriber_create(context, source, topics, MOST_HIGH_WATER, &p->socket,
                                      error)) != PNR_OK ||
        (code = pnr_subscriber_watch(context, p->socket, monitor_address, &p->monitor, error)) !=
            PNR_OK ||
        (code = pnr_subscriber_connect(p->socket, source, error)) != PNR_OK) {
        listen_profiles_close(p);
        return code;
    }
    *out = p;
    return PNR_OK;
}

void listen_profiles_close(listen_profiles *p)
{
    if (p == NULL)
        return;
    pnr_subscriber_release(&p->message);
    pnr_subscriber_unwatch(p->socket, &p->monitor);
    pnr_subscriber_destroy(p->socket);
    free(p);
}
