/* SPDX-License-Identifier: MIT */
/* Writes the JSON answers of the server: streams, range-time picture, echoes and newest map. */
#include "tools/view/api.h"

#include "base/clock.h"
#include "tools/view/write.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- streams --- */

static const char *state_of(const view_stream *s)
{
    if (s->has_ended)
        return "ended";
    return view_stream_is_silent(s) ? "silent" : "live";
}

static void add_stream(const view_stream *s, view_buffer *out)
{
    char time[PNR_TIME_LEN];

    view_add(out, "{\"stream\":");
    view_add_string(out, s->name);
    view_addf(out, ",\"run\":\"%s\",\"state\":\"%s\",\"engine\":", s->run, state_of(s));
    view_add_string(out, s->engine);
    view_add(out, ",\"epoch\":");
    view_add_string(out, s->has_epoch ? pnr_time_format(s->epoch_utc_ns, time) : "");
    view_add(out, ",\"rate_hz\":");
    view_add_number(out, s->rate_hz, 12);
    view_add(out, ",\"dwell_s\":");
    view_add_number(out, s->dwell_s, 12);
    view_add(out, ",\"end_s\":");
    view_add_number(out, view_stream_end_s(s), 12);
    view_addf(out, ",\"columns\":%zu,\"first_m\":", s->gate.n_columns);
    view_add_number(out, s->gate.first_m, 12);
    view_add(out, ",\"step_m\":");
    view_add_number(out, s->gate.step_m, 12);
    view_add(out, ",\"line_s\":");
    view_add_number(out, s->fine.step_s, 12);
    view_addf(out, ",\"results\":%" PRIu64 ",\"unseen\":%" PRIu64 ",\"maps\":%" PRIu64 "}",
              s->n_results, s->n_unseen, s->picture.n);
}

void view_api_streams(view_store *store, view_buffer *out)
{
    view_add(out, "{\"fields\":" VIEW_FIELD_NAMES ",\"least_db\":");
    view_add_number(out, VIEW_LEAST_DB, 6);
    view_add(out, ",\"step_db\":");
    view_add_number(out, VIEW_STEP_DB, 6);
    view_add(out, ",\"streams\":[");
    for (size_t i = 0; i < store->n_streams; i++) {
        view_add(out, i > 0 ? "," : "");
        add_stream(&store->streams[i], out);
    }
    view_addf(out, "],\"bad\":%" PRIu64 ",\"refused\":%" PRIu64 "}", store->n_bad,
              store->n_refused);
}

void view_api_latest(const view_stream *s, view_buffer *out)
{
    view_addf(out, "{\"result\":%s,\"status\":%s,\"end\":%s}",
              s != NULL && s->latest.text != NULL ? s->latest.text : "null",
              s != NULL && s->status.text != NULL ? s->status.text : "null",
              s != NULL && s->end.text != NULL ? s->end.text : "null");
}

/* --- the past --- */

/* Merges the lines of a time interval. Uses the coarse lines if the fine lines at the start of the
 * interval are no longer stored. */
static bool merge_time(const view_stream *s, double from_s, double to_s, double first,
                       double n_columns, size_t width, uint8_t *out)
{
    const double oldest_s =
        s->fine.n > s->fine.capacity ? (double)(s->fine.n - s->fine.capacity) * s->fine.step_s : 0;
    const view_lines *lines = from_s >= oldest_s ? &s->fine : &s->coarse;
    const uint64_t from = (uint64_t)floor(fmax(0, from_s) / lines->step_s + 1e-6);
    const uint64_t to = (uint64_t)ceil(fmax(0, to_s) / lines->step_s - 1e-6);

    return to_s > 0 &&
           view_lines_merge(lines, from, to > from ? to : from + 1, first, n_columns, width, out);
}

static void add_losses(const view_stream *s, double from_s, double to_s, view_buffer *out)
{
    const uint64_t first = s->n_losses > VIEW_LOSSES ? s->n_losses - VIEW_LOSSES : 0;
    const char *comma = "";

    for (uint64_t i = first; i < s->n_losses; i++) {
        const view_loss *loss = &s->losses[i % VIEW_LOSSES];

        if (loss->to_s < from_s || loss->from_s > to_s)
            continue;
        view_add(out, comma);
        view_add_loss(out, loss);
        comma = ",";
    }
}

/* Computes the time interval of a query. If the query has no end, the interval ends with the
 * stream. If the query has no start, the interval starts one minute before its end. */
static void find_times(const view_stream *s, const view_query *q, double *from_s, double *to_s)
{
    const double end_s = s != NULL ? view_stream_end_s(s) : 0;

    *to_s = isnan(q->to_s) ? end_s : q->to_s;
    *from_s = isnan(q->from_s) ? fmax(0, *to_s - 60) : q->from_s;
}

void view_api_past(const view_stream *s, const view_query *q, view_buffer *out)
{
    double from_s, to_s;

    find_times(s, q, &from_s, &to_s);

    const double row_s = (to_s - from_s) / (double)q->height;
    const view_columns c =
        s != NULL ? view_columns_of(&s->gate, q->from_m, q->to_m) : (view_columns){0, 0};
    uint8_t *cells = c.n > 0 && row_s > 0 ? calloc(q->height, q->width) : NULL;

    view_addf(out, "{\"run\":\"%s\",\"from\":", s != NULL ? s->run : "");
    view_add_number(out, from_s, 12);
    view_add(out, ",\"to\":");
    view_add_number(out, to_s, 12);
    view_addf(out, ",\"width\":%zu,\"height\":%zu,\"first_m\":", q->width, q->height);
    view_add_number(out, s != NULL ? s->gate.first_m + c.first * s->gate.step_m : NAN, 12);
    view_add(out, ",\"step_m\":");
    view_add_number(out, s != NULL ? c.n * s->gate.step_m / (double)q->width : NAN, 12);
    view_add(out, ",\"losses\":[");
    if (s != NULL)
        add_losses(s, from_s, to_s, out);
    view_add(out, "],\"cells\":\"");
    for (size_t r = 0; cells != NULL && r < q->height; r++)
        merge_time(s, from_s + (double)r * row_s, from_s + (double)(r + 1) * row_s, c.first, c.n,
                   q->width, cells + r * q->width);
    if (cells != NULL)
        view_add_base64(out, cells, q->height * q->width);
    free(cells);
    view_add(out, "\"}");
}

/* --- echoes --- */

/* The strongest echo of each pixel of a canvas. */
typedef struct thinning {
    double from_s, row_s, first_m, pixel_m;
    size_t width, height;
    uint32_t *strongest; /* [height][width] index of the echo minus `first`, plus 1; 0: no echo */
    uint64_t first;
} thinning;

static uint32_t *pixel_of(const thinning *t, double time_s, double range_m)
{
    const double y = (time_s - t->from_s) / t->row_s, x = (range_m - t->first_m) / t->pixel_m;

    if (!(x >= 0 && x < (double)t->width && y >= 0 && y < (double)t->height))
        return NULL;
    return &t->strongest[(size_t)y * t->width + (size_t)x];
}

/* Returns the number of the first result at or after a time. */
static uint64_t result_from(const view_stream *s, double time_s)
{
    uint64_t low = view_stream_oldest_result(s);
    uint64_t high = s->n_results;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (s->results[middle % VIEW_RESULTS].time_s < time_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_strongest(const view_stream *s, const thinning *t, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        const view_result *r = &s->results[i % VIEW_RESULTS];

        for (uint64_t e = r->first_echo; e < r->first_echo + r->n_echoes; e++) {
            const view_echo *echo = &s->echoes[e % VIEW_ECHOES];
            uint32_t *pixel = e >= t->first ? pixel_of(t, r->time_s, echo->range_m) : NULL;

            if (pixel != NULL &&
                (*pixel == 0 ||
                 echo->snr_db > s->echoes[(t->first + *pixel - 1) % VIEW_ECHOES].snr_db))
                *pixel = (uint32_t)(e - t->first + 1);
        }
    }
}

/* Adds every result that has the strongest echo of at least one pixel. Adds only these echoes of
 * the result. Returns the number of added echoes. */
static size_t add_strongest(const view_stream *s, const thinning *t, uint64_t from, uint64_t to,
                            view_buffer *out)
{
    const char *comma = "";
    size_t n = 0;

    for (uint64_t i = from; i < to && n < VIEW_MOST_ECHOES; i++) {
        const view_result *r = &s->results[i % VIEW_RESULTS];
        const char *between = "";
        bool is_begun = false;

        for (uint64_t e = r->first_echo; e < r->first_echo + r->n_echoes; e++) {
            const view_echo *echo = &s->echoes[e % VIEW_ECHOES];
            const uint32_t *pixel = e >= t->first ? pixel_of(t, r->time_s, echo->range_m) : NULL;

            if (pixel == NULL || *pixel != (uint32_t)(e - t->first + 1))
                continue;
            if (!is_begun) {
                view_add(out, comma);
                view_add_result(out, r);
            }
            is_begun = true;
            view_add(out, between);
            view_add_echo(out, echo);
            comma = between = ",";
            n++;
        }
        if (is_begun)
            view_add(out, "]]");
    }
    return n;
}

/* Returns the canvas of a query. If the query has no range limits, the canvas shows the ranges of
 * all echoes. */
static thinning thinning_of(const view_stream *s, const view_query *q)
{
    const size_t most = VIEW_THINNED_PIXELS / q->height, width = q->width < most ? q->width : most;
    thinning t = {.first_m = q->from_m,
                  .width = width,
                  .height = q->height,
                  .first = view_stream_oldest_echo(s)};
    const bool is_open = isnan(q->from_m) || isnan(q->to_m);
    double least_m = INFINITY, most_m = -INFINITY, to_s;

    find_times(s, q, &t.from_s, &to_s);
    t.row_s = (to_s - t.from_s) / (double)q->height;
    for (uint64_t e = t.first; is_open && e < s->n_echoes; e++) {
        least_m = fmin(least_m, s->echoes[e % VIEW_ECHOES].range_m);
        most_m = fmax(most_m, s->echoes[e % VIEW_ECHOES].range_m);
    }
    if (isnan(q->from_m))
        t.first_m = least_m;
    t.pixel_m = ((isnan(q->to_m) ? most_m : q->to_m) - t.first_m) / ((double)width - 0.5);
    t.pixel_m = t.pixel_m > 0 ? t.pixel_m : 1;
    return t;
}

void view_api_echoes(const view_stream *s, const view_query *q, view_buffer *out)
{
    size_t n = 0;

    view_addf(out, "{\"run\":\"%s\",\"results\":[", s != NULL ? s->run : "");
    if (s != NULL) {
        thinning t = thinning_of(s, q);
        const uint64_t from = result_from(s, t.from_s);
        const uint64_t to = result_from(s, t.from_s + t.row_s * (double)t.height);

        t.strongest = t.row_s > 0 ? calloc(t.width * t.height, sizeof *t.strongest) : NULL;
        if (t.strongest != NULL) {
            find_strongest(s, &t, from, to);
            n = add_strongest(s, &t, from, to, out);
        }
        free(t.strongest);
    }
    view_addf(out, "],\"is_cut\":%s}", n >= VIEW_MOST_ECHOES ? "true" : "false");
}

/* --- the newest map --- */

/* A part of a map as a picture. Doppler increases upwards, and range increases to the right. */
typedef struct view_window {
    pnr_map map;
    double first_cell, cells_per_bin;
    pnr_doppler_bins doppler;
    size_t width;
} view_window;

/* Limits the part of the map to the ranges of the query. */
static void cut_range(view_window *w, const view_query *q)
{
    pnr_profile_info *row = &w->map.info.row;
    const double step_m = row->step_s * row->metres_per_second;
    const double start_m = pnr_map_range_m(row, 0);
    const double end = (double)row->n_gate;
    const double from = isnan(q->from_m) ? 0 : floor((q->from_m - start_m) / step_m);
    const double to = isnan(q->to_m) ? end : ceil((q->to_m - start_m) / step_m);
    const double first = fmin(fmax(0, from), end - 1);
    const double n = fmin(fmax(1, to - first), end - first);

    w->first_cell = first;
    row->first_cell = (row->first_cell + (size_t)first) % row->n_cells;
    row->n_gate = (size_t)n;
    w->width = row->n_gate < q->width ? row->n_gate : q->width;
    w->cells_per_bin = n / (double)w->width;
}

/* Limits the part of the map to the Doppler of the query, and divides this part into at most
 * q->height bins. If the query has no Doppler of the map, takes all rows. */
static void cut_doppler(view_window *w, const view_query *q)
{
    pnr_doppler_bins *d = &w->doppler;
    const pnr_doppler_bins all = pnr_doppler_bins_of(&w->map.info, w->map.info.n_rows);
    const double least_hz = all.first_hz - all.step_hz / 2;
    const double most_hz = least_hz + (double)all.n_bins * all.step_hz;
    const double from_hz = fmax(least_hz, isnan(q->from_hz) ? least_hz : q->from_hz);
    const double to_hz = fmin(most_hz, isnan(q->to_hz) ? most_hz : q->to_hz);
    const double n = fmax(1, fmin((double)q->height, ceil((to_hz - from_hz) / all.step_hz)));

    *d = (pnr_doppler_bins){from_hz + (to_hz - from_hz) / n / 2, (to_hz - from_hz) / n, (size_t)n};
    if (!(d->step_hz > 0))
        *d = all.n_bins <= q->height ? all : pnr_doppler_bins_of(&w->map.info, q->height);
}

static void add_window(const view_window *w, size_t code, view_buffer *out)
{
    const bool is_small = w->doppler.n_bins * w->width <= VIEW_MOST_WIDTH;
    float *powers = malloc(w->width * sizeof *powers);
    uint8_t *cells = malloc(w->doppler.n_bins * w->width);
    view_buffer db = {0};

    for (size_t y = 0; powers != NULL && cells != NULL && y < w->doppler.n_bins; y++) {
        size_t first_row;
        const size_t n_rows = pnr_doppler_bins_rows(&w->doppler, &w->map.info, y, &first_row);

        pnr_map_reduce(&w->map, code, first_row, n_rows, w->cells_per_bin, w->width, powers);
        for (size_t x = 0; x < w->width; x++) {
            cells[y * w->width + x] = view_byte_of(powers[x]);
            if (is_small) {
                view_add(&db, x + y > 0 ? "," : "");
                view_add_number(&db, 10 * log10(powers[x]), 6);
            }
        }
    }
    view_add(out, ",\"cells\":\"");
    if (powers != NULL && cells != NULL)
        view_add_base64(out, cells, w->doppler.n_bins * w->width);
    view_addf(out, "\",\"db\":[%.*s]", (int)db.n, db.n > 0 ? db.data : "");
    free(db.data);
    free(cells);
    free(powers);
}

void view_api_map(const view_stream *s, const view_query *q, view_buffer *out)
{
    view_window w;

    view_addf(out, "{\"run\":\"%s\"", s != NULL ? s->run : "");
    if (s != NULL && s->picture.n > 0) {
        const pnr_profile_info *row = &s->picture.map.info.row;

        w.map = s->picture.map;
        cut_range(&w, q);
        cut_doppler(&w, q);
        view_addf(out, ",\"n\":%" PRIu64 ",\"seq\":%" PRIu64 ",\"codes\":%zu,\"rows\":%zu",
                  s->picture.n, w.map.head.seq, w.map.info.n_codes, w.map.info.n_rows);
        view_addf(out, ",\"width\":%zu,\"height\":%zu,\"time\":", w.width, w.doppler.n_bins);
        view_add_number(out, s->picture.time_s, 12);
        view_add(out, ",\"first_m\":");
        view_add_number(out, pnr_map_range_m(row, w.first_cell), 12);
        view_add(out, ",\"step_m\":");
        view_add_number(out, w.cells_per_bin * row->step_s * row->metres_per_second, 12);
        view_add(out, ",\"first_hz\":");
        view_add_number(out, w.doppler.first_hz, 12);
        view_add(out, ",\"step_hz\":");
        view_add_number(out, w.doppler.step_hz, 12);
        view_add(out, ",\"mps_per_hz\":");
        view_add_number(out, w.map.info.mps_per_hz, 12);
        view_add(out, ",\"threshold_db\":");
        view_add_number(out, 10 * log10(row->threshold / row->floor), 6);
        view_add(out, ",\"code\":");
        view_add_string(out, row->code);
        add_window(&w, q->code <= w.map.info.n_codes ? q->code : 0, out);
    }
    view_add(out, "}");
}
