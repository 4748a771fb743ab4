/* SPDX-License-Identifier: MIT */
/* Publishes profiles and maps in the format of GNU Radio's ZeroMQ blocks: a header with stream
 * tags, then the vectors, in one message part. */
#include "publisher/gnuradio.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/plan.h"
#include "publisher/endpoint.h"
#include "publisher/guard.h"
#include "source/gr_tags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    DWELL_TAGS = 5,
    VECTOR_TAGS = 2,
    POLL_MS = 50,
    MAX_DRAIN = 1024 /* largest number of messages that one call reads */
};

struct pnr_gnuradio {
    void *context, *socket;
    pnr_guard *guard;
    uint64_t offset;       /* number of the next vector */
    uint64_t n_dwells;     /* dwells so far, sent or not */
    unsigned char *header; /* [capacity] */
    size_t capacity;
    double patience_s;
    const volatile int *stop;
    bool is_stalled; /* the last wait ended without success */
};

static size_t count_vectors(const pnr_map_info *info)
{
    return info->n_codes * info->n_rows;
}

static bool is_stopped(const volatile int *stop)
{
    return stop != NULL && *stop != 0;
}

/* Reads the messages of the peers. True: a peer has subscribed. */
static bool drain_subscriptions(pnr_gnuradio *g)
{
    unsigned char data[PNR_GUARD_SUBSCRIPTION_LEN];
    bool is_any = false;
    size_t size;
    int code = PNR_OK;

    for (int i = 0; i < MAX_DRAIN && code != PNR_EAGAIN; i++) {
        code = pnr_guard_receive(g->guard, data, &size);
        is_any |= code == PNR_OK && data[0] == 1;
    }
    return is_any;
}

int pnr_gnuradio_wait(pnr_gnuradio *g, double patience_s, const volatile int *stop)
{
    const uint64_t begin_ns = pnr_clock_ns();

    while (!drain_subscriptions(g)) {
        zmq_pollitem_t item = {.socket = g->socket, .events = ZMQ_POLLIN};

        if (is_stopped(stop) || (double)(pnr_clock_ns() - begin_ns) * 1e-9 >= patience_s)
            return PNR_EAGAIN;
        (void)zmq_poll(&item, 1, POLL_MS);
    }
    return PNR_OK;
}

/* Writes the header of a dwell. Returns its length. */
static size_t write_header(pnr_gnuradio *g, const pnr_report *report, const pnr_map_info *info)
{
    const uint64_t first = g->offset;
    pnr_gr_writer w;

    pnr_gr_write_begin(&w, g->header, g->capacity, first);
    if (report->has_time && report->time_ns >= 0)
        pnr_gr_write_time(&w, first, report->time_ns);
    pnr_gr_write_u64(&w, first, "dwell", g->n_dwells);
    pnr_gr_write_u64(&w, first, "sample", report->sample);
    pnr_gr_write_u64(&w, first, "lost", report->lost);
    pnr_gr_write_double(&w, first, "step_s", info->row.step_s);
    for (size_t v = 0; v < count_vectors(info) && !pnr_map_is_profile(info); v++) {
        pnr_gr_write_u64(&w, first + v, "code", v / info->n_rows + 1);
        pnr_gr_write_double(&w, first + v, "doppler_hz",
                            pnr_map_doppler_hz(info, v % info->n_rows));
    }
    return w.n;
}

/* Sends a message. Waits at most patience_s until a slow subscriber has space. After a wait without
 * success, does not wait again until a message has been sent. */
static int send_message(pnr_gnuradio *g, zmq_msg_t *message)
{
    const uint64_t begin_ns = pnr_clock_ns();

    while (zmq_msg_send(message, g->socket, ZMQ_DONTWAIT) < 0) {
        zmq_pollitem_t item = {.socket = g->socket, .events = ZMQ_POLLOUT};

        g->is_stalled |=
            is_stopped(g->stop) || (double)(pnr_clock_ns() - begin_ns) * 1e-9 >= g->patience_s;
        if (g->is_stalled)
            return PNR_EAGAIN;
        (void)drain_subscriptions(g);
        (void)zmq_poll(&item, 1, POLL_MS);
    }
    g->is_stalled = false;
    return PNR_OK;
}

int pnr_gnuradio_send(pnr_gnuradio *g, const pnr_report *report, const pnr_map_info *info,
                      const float *cells)
{
    const size_t n_header = write_header(g, report, info), n_cells = pnr_map_bytes(info);
    zmq_msg_t message;
    int code;

    g->n_dwells++;
    g->offset += count_vectors(info);
    (void)drain_subscriptions(g);
    if (zmq_msg_init_size(&message, n_header + n_cells) != 0)
        return PNR_EAGAIN;
    memcpy(zmq_msg_data(&message), g->header, n_header);
    memcpy((char *)zmq_msg_data(&message) + n_header, cells, n_cells);
    code = send_message(g, &message);
    zmq_msg_close(&message); /* does nothing for a message that was sent */
    return code;
}

static int open_socket(pnr_gnuradio *g, const pnr_config *config, const pnr_map_info *info,
                       pnr_events *events, pnr_error *error)
{
    const int high_water = (int)pnr_plan_maps(pnr_map_bytes(info));
    const int linger_ms = (int)(config->publisher.linger_s * 1e3);
    const int waits = g->patience_s > 0;
    char bound[PNR_ENDPOINT_LEN];
    /* Each connection uses two descriptors, one of libzmq and one of the guard. There are two
     * sockets, one for results and one for vectors. */
    int code = pnr_endpoint_enough_files(PNR_ENDPOINT_FILES + 4 * config->publisher.max_subscribers,
                                         error);

    if (code != PNR_OK)
        return code;
    g->context = zmq_ctx_new();
    g->socket = g->context != NULL ? zmq_socket(g->context, ZMQ_XPUB) : NULL;
    if (g->socket == NULL ||
        zmq_setsockopt(g->socket, ZMQ_SNDHWM, &high_water, sizeof high_water) != 0 ||
        zmq_setsockopt(g->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms) != 0 ||
        zmq_setsockopt(g->socket, ZMQ_XPUB_NODROP, &waits, sizeof waits) != 0)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "publisher.gnuradio: no ZeroMQ socket: %s",
                             zmq_strerror(zmq_errno()));
    if ((code = pnr_guard_create(g->context, g->socket, config, "", events, &g->guard, error)) ==
            PNR_OK &&
        (code = pnr_endpoint_bind(g->socket, config, PNR_BIND_GNURADIO, bound, error)) == PNR_OK)
        pnr_log(PNR_LOG_INFO, "publisher: vectors of %zu %s for GNU Radio at %s", info->row.n_cells,
                info->row.is_complex ? "complex values" : "floats", bound);
    return code;
}

int pnr_gnuradio_open(const pnr_config *config, const pnr_map_info *info, double patience_s,
                      const volatile int *stop, pnr_events *events, pnr_gnuradio **out,
                      pnr_error *error)
{
    pnr_gnuradio *g = calloc(1, sizeof *g);
    int code = PNR_ENOMEMORY;

    *out = NULL;
    if (g != NULL) {
        g->patience_s = patience_s;
        g->stop = stop;
        g->capacity = PNR_GR_LEAST_BYTES +
                      PNR_GR_TAG_BYTES * (DWELL_TAGS + VECTOR_TAGS * count_vectors(info));
        g->header = malloc(g->capacity);
    }
    if (g == NULL || g->header == NULL)
        code = pnr_error_set(error, PNR_ENOMEMORY, "publisher.gnuradio: no memory");
    else
        code = open_socket(g, config, info, events, error);
    if (code == PNR_OK)
        *out = g;
    else
        pnr_gnuradio_close(g);
    return code;
}

void pnr_gnuradio_close(pnr_gnuradio *g)
{
    if (g == NULL)
        return;
    pnr_guard_destroy(g->guard);
    if (g->socket != NULL)
        zmq_close(g->socket);
    while (g->context != NULL && zmq_ctx_term(g->context) != 0 && zmq_errno() == EINTR)
        ;
    free(g->header);
    free(g);
}
