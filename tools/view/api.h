/* SPDX-License-Identifier: MIT */
/* Answers of the server: JSON, server-sent events, CSV, and metrics for Prometheus. Each function
 * expects that the mutex of the store is held. */
#ifndef VIEW_API_H
#define VIEW_API_H

#include "tools/view/buffer.h"
#include "tools/view/store.h"

enum {
    VIEW_MOST_WIDTH = 4096, /* pixels that a client may ask for */
    VIEW_MOST_HEIGHT = 4096,
    VIEW_MOST_ECHOES = 20000,      /* echoes in one answer */
    VIEW_THINNED_PIXELS = 1 << 22, /* among which they are chosen */
};

/* Part of the history or of a map, and the size of the canvas that shows it. A limit is NAN if the
 * client leaves it open. */
typedef struct view_query {
    char stream[PNR_TEXT_LEN]; /* "": the first one */
    double from_s, to_s, from_m, to_m, from_hz, to_hz;
    size_t width, height; /* 1 .. VIEW_MOST_WIDTH, VIEW_MOST_HEIGHT */
    size_t code;          /* from 1; 0: all codes together */
} view_query;

/* The list of streams: names, runs, states, gates, names of the fields of an echo. */
void view_api_streams(view_store *store, view_buffer *out);
/* The lines of the picture, reduced to the canvas by their maximum, and the losses. A null stream
 * gives an empty picture. */
void view_api_past(const view_stream *stream, const view_query *query, view_buffer *out);
/* The results and echoes of an interval of time. Of all echoes on one pixel, only the strongest is
 * sent. If the canvas has more than VIEW_THINNED_PIXELS pixels, several neighbouring pixels count
 * as one. */
void view_api_echoes(const view_stream *stream, const view_query *query, view_buffer *out);
/* The newest profile or map, reduced to the canvas by its maximum. */
void view_api_map(const view_stream *stream, const view_query *query, view_buffer *out);
/* The newest result and status, as they were received. */
void view_api_latest(const view_stream *stream, view_buffer *out);
void view_api_metrics(const view_store *store, size_t n_clients, view_buffer *out);

/* The position of one client in a stream. */
typedef struct view_cursor {
    view_query query;
    char run[17];
    bool is_begun;
    bool is_idle; /* nothing was new at the last call: the client waits */
    uint64_t n_changes, n_results, n_lines, n_pictures, n_status, n_end, n_events;
    uint64_t beat_ns; /* CLOCK_MONOTONIC of the last frame */
} view_cursor;

/* Adds the events that are new to a client. A client that is slow gets the newest ones: lines are
 * merged by their maximum, and the number of results that were passed over is sent. Adds a comment
 * after some silence, so that a dead connection is noticed. Adds nothing if nothing is new. */
void view_api_frames(view_store *store, view_cursor *cursor, view_buffer *out);

/* The echoes of a stream as CSV, some hundred rows a call. *next: 0 at first, then the number of
 * the next result plus 1. Adds nothing after the last row. */
void view_api_csv(const view_stream *stream, const view_query *query, uint64_t *next,
                  view_buffer *out);

#endif
