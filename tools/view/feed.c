/* SPDX-License-Identifier: MIT */
/* Receives the messages of one publisher and stores them. */
#include "tools/view/feed.h"

#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The queue of maps has at most queue_bytes, but space for at least two maps. When the publisher
 * ends, messages that found no space in a full queue are lost. */
enum { RESULTS_HIGH_WATER = 10000, MAPS_HIGH_WATER = 2, TAKEN_AT_ONCE = 500, BAD_SHOWN = 10 };
static const int never_ms = 3600 * 1000; /* libzmq does not reconnect the socket of results;
                                          * connect_results connects it again */
static const size_t queue_bytes = (size_t)32 << 20;
static const char *const result_topics[] = {"range/", "status/", "end/", "event/", NULL};
static const char *const map_topics[] = {"profile/", "map/", NULL};

enum { RESULTS, MAPS, N_SOCKETS };
static const char *const socket_names[N_SOCKETS] = {"results", "maps"};

struct view_feed {
    const pnr_subscriber_source *source;
    view_store *store;
    void *sockets[N_SOCKETS];
    void *monitors[N_SOCKETS];
    bool is_reached;   /* the subscription to maps has reached the publisher */
    bool is_connected; /* the socket of results is connected */
    bool is_lost;      /* the connection of the results was lost; messages from before the loss can
                        * still wait in the socket */
    size_t map_bytes;  /* size of the last map */
    pnr_report report;
    pnr_pack pack;
    pnr_map map;
};

/* --- one message --- */

static int take_pack(view_feed *f, const char *text, size_t length, pnr_subscriber_message *m,
                     pnr_error *error)
{
    size_t bytes;
    const void *records = pnr_subscriber_part(m, 2, &bytes);
    const int code = pnr_message_open_pack(text, length, records, bytes, &f->pack, error);

    while (code == PNR_OK && pnr_message_next_dwell(&f->pack, &f->report))
        view_store_result(f->store, &f->report);
    return code;
}

static int take_range(view_feed *f, const char *text, size_t length, pnr_subscriber_message *m,
                      pnr_error *error)
{
    int code;

    if (m->n_parts > 2)
        code = take_pack(f, text, length, m, error);
    else if ((code = pnr_message_read_range(text, length, &f->report, error)) == PNR_OK)
        view_store_result(f->store, &f->report);
    if (code == PNR_OK)
        view_store_latest(f->store, f->report.stream, text, length);
    return code;
}

static int take_summary(view_feed *f, const char *text, size_t length, bool is_end,
                        pnr_error *error)
{
    pnr_end_summary summary;
    const int code = is_end ? pnr_message_read_end(text, length, &summary, error)
                            : pnr_message_read_status(text, length, &summary, error);

    if (code == PNR_OK)
        view_store_summary(f->store, &summary, is_end, text, length);
    return code;
}

static int take_event(view_feed *f, const char *text, size_t length, pnr_error *error)
{
    pnr_event_summary event;
    const int code = pnr_message_read_event(text, length, &event, error);

    if (code == PNR_OK)
        view_store_event(f->store, event.stream, event.run, text, length);
    return code;
}

/* Sets the length of the queue to as many maps of this size as queue_bytes allow. */
static void fit_queue(view_feed *f, size_t bytes)
{
    const size_t n = queue_bytes / (bytes > 0 ? bytes : 1);
    const int high_water = n < MAPS_HIGH_WATER      ? MAPS_HIGH_WATER
                           : n > RESULTS_HIGH_WATER ? RESULTS_HIGH_WATER
                                                    : (int)n;

    f->map_bytes = bytes;
    (void)zmq_setsockopt(f->sockets[MAPS], ZMQ_RCVHWM, &high_water, sizeof high_water);
}

static int take_map(view_feed *f, const char *text, size_t length, pnr_subscriber_message *m,
                    pnr_error *error)
{
    size_t bytes;
    int code;

    f->map.cells = pnr_subscriber_part(m, 2, &bytes);
    if (bytes != f->map_bytes)
        fit_queue(f, bytes);
    if (pnr_subscriber_has_topic(m, "map/")) {
        code = pnr_message_read_map(text, length, bytes, &f->map.head, &f->map.info, error);
    } else {
        f->map.info = (pnr_map_info){.n_codes = 1, .n_rows = 1, .n_runs = 1, .mps_per_hz = NAN};
        f->map.info.runs[0].n_rows = 1;
        code = pnr_message_read_profile(text, length, bytes, &f->map.head, &f->map.info.row, error);
    }
    if (code == PNR_OK)
        view_store_map(f->store, &f->map, bytes);
    return code;
}

static void take_message(view_feed *f, pnr_subscriber_message *m)
{
    pnr_error error = {0};
    size_t length;
    const char *text = pnr_subscriber_part(m, 1, &length);
    int code;

    if (pnr_subscriber_has_topic(m, "range/"))
        code = take_range(f, text, length, m, &error);
    else if (pnr_subscriber_has_topic(m, "status/") || pnr_subscriber_has_topic(m, "end/"))
        code = take_summary(f, text, length, pnr_subscriber_has_topic(m, "end/"), &error);
    else if (pnr_subscriber_has_topic(m, "event/"))
        code = take_event(f, text, length, &error);
    else
        code = take_map(f, text, length, m, &error);
    if (code != PNR_OK && ++f->store->n_bad <= BAD_SHOWN)
        pnr_log(PNR_LOG_WARN, "%s%s", error.text,
                f->store->n_bad == BAD_SHOWN ? " (no more of these)" : "");
}

/* --- connections --- */

/* Connects the results after the subscription to maps has reached the publisher, and again after
 * every loss of the connection. A publisher begins when its results have a subscriber. With this
 * order, the first results of every run have their maps. */
static void connect_results(view_feed *f)
{
    pnr_error error;

    if (f->is_connected || !f->is_reached)
        return;
    if (pnr_subscriber_connect(f->sockets[RESULTS], f->source, &error) != PNR_OK)
        pnr_log(PNR_LOG_ERROR, "%s", error.text);
    f->is_connected = true;
}

/* Reads the events of the connections. */
static void note_contacts(view_feed *f)
{
    pnr_contact contact;

    while ((contact = pnr_subscriber_contact(f->monitors[MAPS])) != PNR_CONTACT_NONE)
        f->is_reached = contact == PNR_CONTACT_REACHED;
    while ((contact = pnr_subscriber_contact(f->monitors[RESULTS])) != PNR_CONTACT_NONE)
        f->is_lost |= contact == PNR_CONTACT_LOST;
}

/* Stores the messages that have arrived at a socket. True: none is left. */
static bool drain_socket(view_feed *f, size_t i)
{
    pnr_subscriber_message m;

    for (size_t n = 0; n < TAKEN_AT_ONCE; n++) {
        if (pnr_subscriber_receive(f->sockets[i], &m) != PNR_OK)
            return true;
        take_message(f, &m);
        pnr_subscriber_release(&m);
    }
    return false;
}

void view_feed_take(view_feed *f)
{
    bool is_dry;

    note_contacts(f);
    pthread_mutex_lock(&f->store->mutex);
    is_dry = drain_socket(f, RESULTS);
    drain_socket(f, MAPS);
    pthread_mutex_unlock(&f->store->mutex);
    if (f->is_lost && is_dry) {
        pnr_subscriber_disconnect(f->sockets[RESULTS], f->source);
        f->is_connected = f->is_lost = false;
    }
    connect_results(f);
}

/* --- open and close --- */

void view_feed_poll(const view_feed *f, zmq_pollitem_t items[VIEW_FEED_ITEMS])
{
    for (size_t i = 0; i < N_SOCKETS; i++) {
        items[2 * i] = (zmq_pollitem_t){.socket = f->sockets[i], .events = ZMQ_POLLIN};
        items[2 * i + 1] = (zmq_pollitem_t){.socket = f->monitors[i], .events = ZMQ_POLLIN};
    }
}

static int open_socket(view_feed *f, void *context, size_t i, const char *const *topics,
                       size_t number, pnr_error *error)
{
    char name[40];
    int code = pnr_subscriber_create(context, f->source, topics, RESULTS_HIGH_WATER, &f->sockets[i],
                                     error);

    snprintf(name, sizeof name, "inproc://%s%zu", socket_names[i], number);
    if (code == PNR_OK)
        code = pnr_subscriber_watch(context, f->sockets[i], name, &f->monitors[i], error);
    return code;
}

int view_feed_open(void *context, const pnr_subscriber_source *source, size_t number,
                   view_store *store, view_feed **out, pnr_error *error)
{
    view_feed *f = calloc(1, sizeof *f);
    int code;

    *out = NULL;
    if (f == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "view: out of memory");
    f->store = store;
    f->source = source;
    if ((code = open_socket(f, context, RESULTS, result_topics, number, error)) != PNR_OK ||
        (code = open_socket(f, context, MAPS, map_topics, number, error)) != PNR_OK ||
        (code = pnr_subscriber_connect(f->sockets[MAPS], source, error)) != PNR_OK) {
        view_feed_close(f);
        return code;
    }
    (void)zmq_setsockopt(f->sockets[RESULTS], ZMQ_RECONNECT_IVL, &never_ms, sizeof never_ms);
    *out = f;
    return PNR_OK;
}

void view_feed_close(view_feed *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < N_SOCKETS; i++) {
        pnr_subscriber_unwatch(f->sockets[i], &f->monitors[i]);
        pnr_subscriber_destroy(f->sockets[i]);
    }
    free(f);
}
