/* SPDX-License-Identifier: MIT */
/* libFuzzer: the history that pnradar-view keeps, and its answers. The first line of the input is a
 * query: six limits, width, height and code. Every other line is a letter for the kind of message
 * and its text; that of a profile or map begins with the number of bytes of its cells, which follow
 * the line. */
#include "tools/view/api.h"

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MOST_PIXELS = 200 };

/* What is left of the input. */
typedef struct input {
    const char *at, *end;
} input;

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Takes a line. Returns its length, without the line feed. */
static size_t take_line(input *in, const char **line)
{
    const char *end = memchr(in->at, '\n', (size_t)(in->end - in->at));

    *line = in->at;
    in->at = end != NULL ? end + 1 : in->end;
    return (size_t)((end != NULL ? end : in->end) - *line);
}

static size_t pixels_of(unsigned long value)
{
    return 1 + value % MOST_PIXELS;
}

static void take_query(input *in, view_query *q)
{
    double *const limits[] = {&q->from_s, &q->to_s, &q->from_m, &q->to_m, &q->from_hz, &q->to_hz};
    const char *line;
    char text[256] = "", *at = text;
    const size_t n = take_line(in, &line);

    memcpy(text, line, n < sizeof text ? n : sizeof text - 1);
    *q = (view_query){.width = 1};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char *end;

        *limits[i] = strtod(at, &end);
        if (end == at || !(fabs(*limits[i]) < 1e15)) /* as the server lets in */
            *limits[i] = NAN;
        at = end;
    }
    q->width = pixels_of(strtoul(at, &at, 10));
    q->height = pixels_of(strtoul(at, &at, 10));
    q->code = strtoul(at, &at, 10) % 4;
}

/* Stores a profile ('p') or a map ('m') with its cells. */
static void store_cells(view_store *store, input *in, char kind, const char *text, size_t length)
{
    static pnr_map map;
    char *end;
    const size_t wanted = length > 0 ? strtoul(text, &end, 10) : 0;
    const size_t left = (size_t)(in->end - in->at), bytes = wanted < left ? wanted : left;
    void *cells = malloc(bytes + sizeof(float));
    pnr_error error;
    int code;

    memcpy(cells, in->at, bytes);
    in->at += bytes;
    map.cells = cells;
    while (length > 0 && *text >= '0' && *text <= '9') {
        text++;
        length--;
    }
    if (kind == 'm') {
        code = pnr_message_read_map(text, length, bytes, &map.head, &map.info, &error);
    } else {
        map.info = (pnr_map_info){.n_codes = 1, .n_rows = 1, .n_runs = 1, .mps_per_hz = NAN};
        map.info.runs[0].n_rows = 1;
        code = pnr_message_read_profile(text, length, bytes, &map.head, &map.info.row, &error);
    }
    if (code == PNR_OK)
        view_store_map(store, &map, bytes);
    free(cells);
}

static void store_message(view_store *store, input *in)
{
    static pnr_report report;
    pnr_end_summary summary;
    pnr_event_summary event;
    pnr_error error;
    const char *text;
    size_t length = take_line(in, &text);
    const char kind = length > 0 ? *text : '\0';

    if (length == 0)
        return;
    text++;
    length--;
    if (kind == 'p' || kind == 'm')
        store_cells(store, in, kind, text, length);
    else if (kind == 'r' && pnr_message_read_range(text, length, &report, &error) == PNR_OK) {
        view_store_result(store, &report);
        view_store_latest(store, report.stream, text, length);
    } else if (kind == 's' && pnr_message_read_status(text, length, &summary, &error) == PNR_OK)
        view_store_summary(store, &summary, false, text, length);
    else if (kind == 'e' && pnr_message_read_end(text, length, &summary, &error) == PNR_OK)
        view_store_summary(store, &summary, true, text, length);
    else if (kind == 'v' && pnr_message_read_event(text, length, &event, &error) == PNR_OK)
        view_store_event(store, event.stream, event.run, text, length);
}

/* An answer is JSON, and that of a stream is of its run. Empties the buffer. */
static void check_json(view_buffer *b, const view_stream *stream)
{
    json_error_t error;
    json_t *json = json_loadb(b->data, b->n, JSON_REJECT_DUPLICATES, &error);
    const json_t *run = json_object_get(json, "run");

    if (json == NULL)
        fprintf(stderr, "%s: %.*s\n", error.text, (int)b->n, b->data);
    require(json != NULL);
    if (stream != NULL && run != NULL)
        require(strcmp(json_string_value(run), stream->run) == 0);
    json_decref(json);
    b->n = 0;
}

/* Server-sent events are lines "event: " and "data: " with JSON, and empty lines. Events of the
 * radar stay when a new run begins. */
static void check_events(view_buffer *b, const view_stream *stream)
{
    const input whole = {b->data, b->data + b->n};
    input in = whole;
    const char *line;
    bool is_of_run = true;

    while (in.at < in.end) {
        const size_t n = take_line(&in, &line);

        if (n > 6 && memcmp(line, "data: ", 6) == 0) {
            view_buffer one = {.data = (char *)(uintptr_t)line + 6, .n = n - 6};

            check_json(&one, is_of_run ? stream : NULL);
        } else {
            if (n > 0)
                is_of_run = n != 12 || memcmp(line, "event: event", n) != 0;
            require(n == 0 || memcmp(line, "event: ", 7) == 0 || line[0] == ':');
        }
    }
    b->n = 0;
}

static void check_answers(view_store *store, const view_query *query, view_cursor *cursor)
{
    const view_stream *stream = view_store_find(store, query->stream);
    view_buffer b = {0};
    uint64_t next = 0;

    view_api_streams(store, &b);
    check_json(&b, NULL);
    view_api_past(stream, query, &b);
    check_json(&b, stream);
    view_api_echoes(stream, query, &b);
    check_json(&b, stream);
    view_api_map(stream, query, &b);
    check_json(&b, stream);
    view_api_latest(stream, &b);
    check_json(&b, NULL);
    view_api_frames(store, cursor, &b);
    check_events(&b, stream);
    view_api_metrics(store, 1, &b);
    require(b.n > 0 && b.data[b.n - 1] == '\n');
    for (b.n = 0; stream != NULL; b.n = 0) {
        view_api_csv(stream, query, &next, &b);
        if (b.n == 0)
            break;
        require(b.data[b.n - 1] == '\n');
    }
    require(!b.is_failed);
    free(b.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    input in = {(const char *)data, (const char *)data + n_bytes};
    view_cursor cursor = {0};
    view_query query;
    view_store *store;

    take_query(&in, &query);
    cursor.query = query;
    if (view_store_create(2, &store) != PNR_OK)
        return 0;
    while (in.at < in.end) {
        store_message(store, &in);
        if (in.at >= in.end || *in.at == '\n') /* an empty line asks */
            check_answers(store, &query, &cursor);
    }
    view_store_destroy(store);
    return 0;
}
