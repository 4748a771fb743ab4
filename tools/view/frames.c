/* SPDX-License-Identifier: MIT */
/* Writes server-sent events: the data that are new to a client since its last frame. */
#include "base/clock.h"
#include "tools/view/api.h"
#include "tools/view/write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* MOST_LINES, MOST_RESULTS: the greatest numbers of lines and of results in a frame. If there are
 * more lines, neighbouring lines are merged. If there are more results, only the newest are sent. A
 * client that needs slow_ns for a frame is slow. Its frames are small, so their data are still new
 * when they arrive. */
enum { MOST_LINES = 16, MOST_RESULTS = 500, SLOW_LINES = 4, SLOW_RESULTS = 8 };
static const uint64_t slow_ns = PNR_NS_PER_S / 2;
static const uint64_t beat_ns = 5 * (uint64_t)PNR_NS_PER_S;

static void begin_event(view_buffer *out, const char *name)
{
    view_addf(out, "event: %s\ndata: ", name);
}

static void end_event(view_buffer *out)
{
    view_add(out, "\n\n");
}

/* Adds the list of streams if it has changed. If a new run has begun, sets the cursor to the newest
 * data of this run. */
static void add_streams(view_store *store, const view_stream *s, view_cursor *c, view_buffer *out)
{
    const bool is_new = s != NULL && strcmp(c->run, s->run) != 0;

    if (c->is_begun && !is_new && c->n_changes == store->n_changes)
        return;
    begin_event(out, "streams");
    view_api_streams(store, out);
    end_event(out);
    c->is_begun = true;
    c->n_changes = store->n_changes;
    if (!is_new)
        return;
    memcpy(c->run, s->run, sizeof c->run);
    c->n_results = s->n_results; /* the client requests the past separately */
    c->n_lines = s->fine.n > 0 ? s->fine.n - 1 : 0;
    c->n_pictures = 0;
    c->n_status = c->n_end = 0;
    c->n_events = s->n_events > VIEW_EVENTS ? s->n_events - VIEW_EVENTS : 0;
}

static void add_results(const view_stream *s, view_cursor *c, bool is_slow, view_buffer *out)
{
    const uint64_t n = s->n_results - c->n_results;
    const uint64_t most = is_slow ? SLOW_RESULTS : MOST_RESULTS;
    const uint64_t skipped = n > most ? n - most : 0;
    const char *comma = "";

    if (n == 0)
        return;
    begin_event(out, "results");
    view_addf(out, "{\"run\":\"%s\",\"skipped\":%" PRIu64 ",\"unseen\":%" PRIu64 ",\"results\":[",
              s->run, skipped, s->n_unseen);
    for (uint64_t i = c->n_results + skipped; i < s->n_results; i++) {
        const view_result *r = &s->results[i % VIEW_RESULTS];

        view_add(out, comma);
        view_add_result(out, r);
        for (uint32_t e = 0; e < r->n_echoes; e++) {
            view_add(out, e > 0 ? "," : "");
            view_add_echo(out, &s->echoes[(r->first_echo + e) % VIEW_ECHOES]);
        }
        view_add(out, "]]");
        comma = ",";
    }
    view_add(out, "]}");
    end_event(out);
    c->n_results = s->n_results;
}

/* Adds the complete lines, as [from_s, to_s, cells]. Omits lines whose time has no profile. The
 * newest line is complete only after the end of the stream. */
static void add_lines(const view_stream *s, view_cursor *c, bool is_slow, view_buffer *out)
{
    const uint64_t end = s->has_ended || s->fine.n == 0 ? s->fine.n : s->fine.n - 1;
    const uint64_t n = end > c->n_lines ? end - c->n_lines : 0;
    const uint64_t most = is_slow ? SLOW_LINES : MOST_LINES;
    const uint64_t merged = (n + most - 1) / most;
    uint8_t cells[VIEW_MOST_WIDTH];
    const view_columns columns = view_columns_of(&s->gate, c->query.from_m, c->query.to_m);
    const char *comma = "";

    if (n == 0 || !(columns.n > 0))
        return;
    begin_event(out, "lines");
    view_addf(out, "{\"run\":\"%s\",\"lines\":[", s->run);
    for (uint64_t i = c->n_lines; i < end; i += merged) {
        const uint64_t to = i + merged < end ? i + merged : end;

        if (!view_lines_merge(&s->fine, i, to, columns.first, columns.n, c->query.width, cells))
            continue;
        view_addf(out, "%s[", comma);
        view_add_number(out, (double)i * s->fine.step_s, 15);
        view_add(out, ",");
        view_add_number(out, (double)to * s->fine.step_s, 15);
        view_add(out, ",\"");
        view_add_base64(out, cells, c->query.width);
        view_add(out, "\"]");
        comma = ",";
    }
    view_add(out, "]}");
    end_event(out);
    c->n_lines = end;
}

/* Announces the newest map. The client requests the cells of the map when it is ready to draw
 * them. */
static void add_map(const view_stream *s, view_cursor *c, view_buffer *out)
{
    if (c->n_pictures == s->picture.n)
        return;
    begin_event(out, "map");
    view_addf(out, "{\"run\":\"%s\",\"n\":%" PRIu64 ",\"codes\":%zu,\"rows\":%zu}", s->run,
              s->picture.n, s->picture.map.info.n_codes, s->picture.map.info.n_rows);
    end_event(out);
    c->n_pictures = s->picture.n;
}

static void add_text(const char *name, const view_text *text, uint64_t *n, view_buffer *out)
{
    if (text->text == NULL || *n == text->n)
        return;
    begin_event(out, name);
    view_add(out, text->text);
    end_event(out);
    *n = text->n;
}

static void add_events(const view_stream *s, view_cursor *c, view_buffer *out)
{
    if (s->n_events > VIEW_EVENTS && c->n_events < s->n_events - VIEW_EVENTS)
        c->n_events = s->n_events - VIEW_EVENTS;
    for (; c->n_events < s->n_events; c->n_events++) {
        const view_text *event = &s->events[c->n_events % VIEW_EVENTS];

        if (event->text == NULL)
            continue;
        begin_event(out, "event");
        view_add(out, event->text);
        end_event(out);
    }
}

void view_api_frames(view_store *store, view_cursor *c, view_buffer *out)
{
    const view_stream *s = view_store_find(store, c->query.stream);
    const uint64_t now_ns = pnr_clock_ns();
    const bool is_slow = !c->is_idle && now_ns - c->beat_ns > slow_ns;

    add_streams(store, s, c, out);
    if (s != NULL) {
        add_results(s, c, is_slow, out);
        add_lines(s, c, is_slow, out);
        add_map(s, c, out);
        add_text("status", &s->status, &c->n_status, out);
        add_events(s, c, out);
        add_text("end", &s->end, &c->n_end, out);
    }
    c->is_idle = out->n == 0;
    if (c->is_idle && now_ns - c->beat_ns >= beat_ns)
        view_add(out, ": still here\n\n");
    if (out->n > 0)
        c->beat_ns = now_ns;
}
