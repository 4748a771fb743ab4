/* SPDX-License-Identifier: MIT */
/* Writes the answers of the server: JSON, server-sent events, CSV, and metrics for Prometheus. The
 * caller of each function holds the mutex of the store. */
#ifndef VIEW_API_H
#define VIEW_API_H

#include "tools/view/buffer.h"
#include "tools/view/store.h"

enum {
    VIEW_MOST_WIDTH = 4096, /* greatest width and height, in pixels, that a client may request */
    VIEW_MOST_HEIGHT = 4096,
    VIEW_MOST_ECHOES = 20000,      /* greatest number of echoes in one answer */
    VIEW_THINNED_PIXELS = 1 << 22, /* greatest number of pixels in the canvas of view_api_echoes */
};

/* A request for a part of the history or of a map, and the size of the canvas that shows this part.
 * A limit that the client does not set is NAN. */
typedef struct view_query {
    char stream[PNR_TEXT_LEN]; /* name of the stream; "": the first stream */
    double from_s, to_s, from_m, to_m, from_hz, to_hz;
    size_t width, height; /* width: 1 .. VIEW_MOST_WIDTH; height: 1 .. VIEW_MOST_HEIGHT */
    size_t code;          /* number of the code, from 1; 0: all codes together */
} view_query;

/* Adds the list of streams: names, runs, states, gates, and the names of the fields of an echo. */
void view_api_streams(view_store *store, view_buffer *out);
/* Adds the range-time picture, and the losses. Each pixel of the canvas is the maximum of its
 * cells. stream NULL: an empty picture. */
void view_api_past(const view_stream *stream, const view_query *query, view_buffer *out);
/* Adds the results and echoes of an interval of time. On each pixel, only the strongest echo is
 * added. If the canvas has more than VIEW_THINNED_PIXELS pixels, several neighbouring pixels count
 * as one. */
void view_api_echoes(const view_stream *stream, const view_query *query, view_buffer *out);
/* Adds the newest profile or map. Each pixel of the canvas is the maximum of its cells. */
void view_api_map(const view_stream *stream, const view_query *query, view_buffer *out);
/* Adds the newest result, status and end message, as they were received. */
void view_api_latest(const view_stream *stream, view_buffer *out);
void view_api_metrics(const view_store *store, size_t n_clients, view_buffer *out);

/* The state of one client: which data of its stream are already sent. */
typedef struct view_cursor {
    view_query query;
    char run[17];
    bool is_begun;
    bool is_idle; /* the last call added nothing, so the client waits */
    uint64_t n_changes, n_results, n_lines, n_pictures, n_status, n_end, n_events;
    uint64_t beat_ns; /* CLOCK_MONOTONIC of the last frame */
} view_cursor;

/* Adds the data that are new to a client, as server-sent events. If a client is behind, merges
 * several lines into their maximum, and omits the oldest results. Adds the number of omitted
 * results. If nothing is new, adds nothing. After 5 s without new data, adds a comment, so that the
 * server detects a broken connection. */
void view_api_frames(view_store *store, view_cursor *cursor, view_buffer *out);

/* Adds the next echoes of a stream as CSV. Each call adds the echoes of about 200 results. *next: 0
 * in the first call, then the number of the next result plus 1. Adds nothing after the last row. */
void view_api_csv(const view_stream *stream, const view_query *query, uint64_t *next,
                  view_buffer *out);

#endif
