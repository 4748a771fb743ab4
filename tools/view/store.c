/* SPDX-License-Identifier: MIT */
/* Stores the last hour of each stream in bounded memory: results, the range-time picture, losses,
 * and the newest profile or map, status and end message. */
#include "tools/view/store.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double view_latency_limits[VIEW_LATENCIES] = {1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3,
                                                    1e-2, 3e-2, 0.1,  0.3,  1,    10};

static const double silence_s = 3; /* a publisher sends a status every second */

/* --- streams and runs --- */

static int lines_create(view_lines *lines, size_t capacity)
{
    lines->capacity = capacity;
    lines->number = calloc(capacity, sizeof *lines->number);
    lines->cells = malloc(capacity * VIEW_COLUMNS); /* pages that are never written use no memory */
    return lines->number != NULL && lines->cells != NULL ? PNR_OK : PNR_ENOMEMORY;
}

static void stream_destroy(view_stream *s)
{
    free(s->fine.number);
    free(s->fine.cells);
    free(s->coarse.number);
    free(s->coarse.cells);
    free(s->results);
    free(s->echoes);
    free(s->losses);
    free(s->status.text);
    free(s->end.text);
    free(s->latest.text);
    for (size_t i = 0; i < VIEW_EVENTS; i++)
        free(s->events[i].text);
    free(s->picture.cells);
    *s = (view_stream){0};
}

static int stream_create(view_stream *s, const char *name)
{
    *s = (view_stream){.dwell_s = NAN};
    memccpy(s->name, name, '\0', sizeof s->name - 1);
    s->results = malloc(VIEW_RESULTS * sizeof *s->results);
    s->echoes = malloc(VIEW_ECHOES * sizeof *s->echoes);
    s->losses = malloc(VIEW_LOSSES * sizeof *s->losses);
    if (s->results != NULL && s->echoes != NULL && s->losses != NULL &&
        lines_create(&s->fine, VIEW_FINE_LINES) == PNR_OK &&
        lines_create(&s->coarse, VIEW_COARSE_LINES) == PNR_OK)
        return PNR_OK;
    stream_destroy(s);
    return PNR_ENOMEMORY;
}

int view_store_create(size_t capacity, view_store **out)
{
    view_store *store = calloc(1, sizeof *store);

    *out = NULL;
    if (store == NULL || (store->streams = calloc(capacity, sizeof *store->streams)) == NULL) {
        free(store);
        return PNR_ENOMEMORY;
    }
    store->capacity = capacity;
    pthread_mutex_init(&store->mutex, NULL);
    *out = store;
    return PNR_OK;
}

void view_store_destroy(view_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->n_streams; i++)
        stream_destroy(&store->streams[i]);
    pthread_mutex_destroy(&store->mutex);
    free(store->streams);
    free(store);
}

view_stream *view_store_find(view_store *store, const char *name)
{
    if (name[0] == '\0' && store->n_streams > 0)
        return &store->streams[0];
    for (size_t i = 0; i < store->n_streams; i++)
        if (strcmp(store->streams[i].name, name) == 0)
            return &store->streams[i];
    return NULL;
}

static void text_clear(view_text *text)
{
    free(text->text);
    text->text = NULL;
}

/* Empties a stream for a new run. */
static void begin_run(view_store *store, view_stream *s, const char *run)
{
    memcpy(s->past_runs[s->n_past_runs++ % VIEW_PAST_RUNS], s->run, sizeof s->run);
    memccpy(s->run, run, '\0', sizeof s->run - 1);
    s->has_epoch = s->has_ended = s->has_summary = false;
    s->dwell_s = NAN;
    s->gate = (view_gate){0};
    s->fine.n = s->coarse.n = 0;
    memset(s->fine.number, 0, s->fine.capacity * sizeof *s->fine.number);
    memset(s->coarse.number, 0, s->coarse.capacity * sizeof *s->coarse.number);
    s->n_results = s->n_echoes = s->n_losses = s->n_unseen = 0;
    s->picture.n = 0;
    text_clear(&s->status);
    text_clear(&s->end);
    text_clear(&s->latest);
    memset(s->latencies, 0, sizeof s->latencies);
    s->latency_sum_us = 0;
    store->n_changes++;
}

static bool is_past(const view_stream *s, const char *run)
{
    for (size_t i = 0; i < VIEW_PAST_RUNS; i++)
        if (strcmp(s->past_runs[i], run) == 0)
            return true;
    return false;
}

/* Finds or creates the stream of a message. NULL: the message is late, or there is no space for
 * another stream. */
static view_stream *stream_of(view_store *store, const char *name, const char *run)
{
    view_stream *s = name[0] != '\0' ? view_store_find(store, name) : NULL;

    if (s == NULL) {
        if (name[0] == '\0' || store->n_streams == store->capacity ||
            stream_create(&store->streams[store->n_streams], name) != PNR_OK) {
            store->n_refused++;
            return NULL;
        }
        s = &store->streams[store->n_streams++];
    }
    if (strcmp(s->run, run) != 0) {
        if (is_past(s, run))
            return NULL;
        begin_run(store, s, run);
    }
    s->heard_ns = pnr_clock_ns();
    return s;
}

/* Stores a message as one line of text, because the data of a server-sent event are one line.
 * Replaces control characters by spaces. */
static void keep_text(view_text *to, const char *text, size_t length)
{
    char *copy = length < VIEW_TEXT ? realloc(to->text, length + 1) : NULL;

    if (copy == NULL)
        return;
    for (size_t i = 0; i < length; i++)
        copy[i] = text[i];
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)copy[i] < ' ')
            copy[i] = ' ';
    copy[length] = '\0';
    *to = (view_text){copy, to->n + 1, pnr_clock_utc_ns()};
}

/* --- results --- */

static void add_loss(view_stream *s, double from_s, double to_s, double share, bool is_unseen)
{
    if (to_s > from_s)
        s->losses[s->n_losses++ % VIEW_LOSSES] = (view_loss){from_s, to_s, share, is_unseen};
}

/* Adds the losses between the previous result and this one, and the losses in the dwell of this
 * result. */
static void add_losses(view_stream *s, const pnr_report *report, double time_s)
{
    const view_result *last =
        s->n_results > 0 ? &s->results[(s->n_results - 1) % VIEW_RESULTS] : NULL;

    if (last != NULL && report->seq > s->next_seq) {
        const double from_s = last->time_s + (s->dwell_s > 0 ? s->dwell_s : 0);

        s->n_unseen += report->seq - s->next_seq;
        add_loss(s, from_s, time_s, 1, true);
    }
    if (report->lost_before > 0)
        add_loss(s, time_s - (double)report->lost_before / s->rate_hz, time_s, 1, false);
    if (report->lost > 0 && s->dwell_s > 0)
        add_loss(s, time_s, time_s + s->dwell_s,
                 fmin(1, (double)report->lost / s->rate_hz / s->dwell_s), false);
}

static void add_echo(view_stream *s, const pnr_echo *from)
{
    view_echo *to = &s->echoes[s->n_echoes++ % VIEW_ECHOES];

#define COPY_COUNT(x, name) to->name = from->name;
#define COPY_NARROW(x, name) to->name = (float)from->name;
    PNR_ECHO_FIELDS(COPY_COUNT, COPY_COUNT, COPY_COUNT, COPY_NARROW, )
#undef COPY_COUNT
#undef COPY_NARROW
    memcpy(&to->code_name, &from->code_name, sizeof to->code_name);
}

static void count_latency(view_stream *s, double latency_us)
{
    size_t i = 0;

    if (!(latency_us >= 0))
        return;
    while (i < VIEW_LATENCIES && latency_us * 1e-6 > view_latency_limits[i])
        i++;
    s->latencies[i]++;
    s->latency_sum_us += latency_us;
}

void view_store_result(view_store *store, const pnr_report *report)
{
    view_stream *s = stream_of(store, report->stream, report->run);
    const pnr_detection *d = &report->detection;
    double time_s;

    if (s == NULL || !(report->rate_hz > 0) || (s->n_results > 0 && report->seq < s->next_seq))
        return;
    s->rate_hz = report->rate_hz;
    memcpy(s->engine, report->engine, sizeof s->engine);
    time_s = (double)report->sample / s->rate_hz;
    if (report->has_time) {
        s->has_epoch = true;
        s->epoch_utc_ns = report->time_ns - (int64_t)(time_s * 1e9);
    }
    if (s->n_results > 0 && report->seq == s->next_seq) {
        const double step_s = time_s - s->results[(s->n_results - 1) % VIEW_RESULTS].time_s -
                              (double)report->lost_before / s->rate_hz;

        if (step_s > 0 && !(s->dwell_s <= step_s))
            s->dwell_s = step_s; /* the dwell is the shortest time between two results: losses and
                                  * refused windows increase this time */
    }
    add_losses(s, report, time_s);
    s->results[s->n_results++ % VIEW_RESULTS] = (view_result){
        .seq = report->seq,
        .sample = report->sample,
        .lost = report->lost,
        .lost_before = report->lost_before,
        .time_s = time_s,
        .latency_us = report->latency_us,
        .noise_db = 10 * log10(d->noise_power),
        .first_echo = s->n_echoes,
        .n_echoes = (uint32_t)d->n_echoes,
        .flags = report->flags,
    };
    for (size_t i = 0; i < d->n_echoes; i++)
        add_echo(s, &d->echoes[i]);
    s->next_seq = report->seq + 1;
    count_latency(s, report->latency_us);
}

void view_store_latest(view_store *store, const char *stream, const char *text, size_t length)
{
    view_stream *s = view_store_find(store, stream);

    if (s != NULL)
        keep_text(&s->latest, text, length);
}

void view_store_summary(view_store *store, const pnr_end_summary *summary, bool is_end,
                        const char *text, size_t length)
{
    view_stream *s = stream_of(store, summary->stream, summary->run);

    if (s == NULL)
        return;
    s->summary = *summary;
    s->has_summary = true;
    keep_text(is_end ? &s->end : &s->status, text, length);
    if (is_end && !s->has_ended) {
        s->has_ended = true;
        store->n_changes++;
    }
}

void view_store_event(view_store *store, const char *stream, const char *run, const char *text,
                      size_t length)
{
    view_stream *s = stream_of(store, stream, run);

    if (s != NULL)
        keep_text(&s->events[s->n_events++ % VIEW_EVENTS], text, length);
}

/* --- lines --- */

uint8_t view_byte_of(float power)
{
    const double value = 1 + (10 * log10(fmax(power, 1e-30)) - VIEW_LEAST_DB) / VIEW_STEP_DB;

    if (isnan(power))
        return 0;
    return (uint8_t)(value < 1 ? 1 : value > 255 ? 255 : lround(value));
}

/* Replaces each byte of `to` by the byte of `from`, if this byte is greater. */
static void raise_bytes(uint8_t *restrict to, const uint8_t *restrict from)
{
    for (size_t c = 0; c < VIEW_COLUMNS; c++)
        to[c] = from[c] > to[c] ? from[c] : to[c];
}

/* Replaces each cell of the line at this time by the new cell, if the new cell is greater. */
static void raise_line(view_lines *lines, double time_s, const uint8_t cells[VIEW_COLUMNS])
{
    const uint64_t i = (uint64_t)(time_s / lines->step_s + 1e-9);
    const size_t slot = i % lines->capacity;
    uint8_t *line = &lines->cells[slot * VIEW_COLUMNS];

    if (lines->number[slot] > i + 1)
        return; /* the line is no longer stored */
    if (lines->number[slot] != i + 1) {
        lines->number[slot] = i + 1;
        memset(line, 0, VIEW_COLUMNS);
    }
    raise_bytes(line, cells);
    lines->n = i + 1 > lines->n ? i + 1 : lines->n;
}

bool view_lines_merge(const view_lines *lines, uint64_t from, uint64_t to, double first,
                      double n_columns, size_t width, uint8_t *out)
{
    uint8_t merged[VIEW_COLUMNS] = {0};
    const double per = n_columns / (double)width;
    bool is_any = false;

    to = to < lines->n ? to : lines->n;
    if (lines->n > lines->capacity && from < lines->n - lines->capacity)
        from = lines->n - lines->capacity;
    for (; from < to; from++)
        if (lines->number[from % lines->capacity] == from + 1) {
            raise_bytes(merged, &lines->cells[from % lines->capacity * VIEW_COLUMNS]);
            is_any = true;
        }
    for (size_t x = 0; x < width; x++) {
        const double begin = first + (double)x * per;
        size_t c = (size_t)fmax(0, begin);
        const size_t end = (size_t)fmin(VIEW_COLUMNS, ceil(begin + per - 1e-9));

        out[x] = 0;
        do
            out[x] = c < VIEW_COLUMNS && merged[c] > out[x] ? merged[c] : out[x];
        while (++c < end);
    }
    return is_any;
}

view_columns view_columns_of(const view_gate *gate, double from_m, double to_m)
{
    const double end = (double)gate->n_columns;
    const double from = isnan(from_m) ? 0 : (from_m - gate->first_m) / gate->step_m;
    const double to = isnan(to_m) ? end : (to_m - gate->first_m) / gate->step_m;
    const double first = fmin(fmax(0, from), end);

    return (view_columns){first, fmax(0, fmin(to, end) - first)};
}

bool view_stream_is_silent(const view_stream *s)
{
    return (double)(pnr_clock_ns() - s->heard_ns) * 1e-9 > silence_s;
}

uint64_t view_stream_oldest_result(const view_stream *s)
{
    return s->n_results > VIEW_RESULTS ? s->n_results - VIEW_RESULTS : 0;
}

uint64_t view_stream_oldest_echo(const view_stream *s)
{
    return s->n_echoes > VIEW_ECHOES ? s->n_echoes - VIEW_ECHOES : 0;
}

double view_stream_end_s(const view_stream *s)
{
    const double lines_s = (double)s->fine.n * s->fine.step_s;
    double end_s = 0;

    if (s->n_results > 0) {
        const view_result *last = &s->results[(s->n_results - 1) % VIEW_RESULTS];

        end_s = last->time_s + (s->dwell_s > 0 ? s->dwell_s : 0);
    }
    return fmax(end_s, s->fine.n > 0 ? lines_s : 0);
}

/* Sets the columns and the steps of the lines from the first profile of a run. */
static void begin_lines(view_stream *s, const pnr_map *map)
{
    const pnr_profile_info *info = &map->info.row;
    const size_t n = info->n_gate < VIEW_COLUMNS ? info->n_gate : VIEW_COLUMNS;
    const double cells_per_column = (double)info->n_gate / (double)n;
    const double dwell_s = (double)info->dwell_samples / map->head.rate_hz;

    s->gate.n_columns = n;
    s->gate.first_m = pnr_map_range_m(info, 0);
    s->gate.step_m = cells_per_column * info->step_s * info->metres_per_second;
    s->fine.step_s = fmax(VIEW_SLOT_S, dwell_s);
    s->coarse.step_s = s->fine.step_s * VIEW_MERGED;
    s->dwell_s = dwell_s;
}

static void add_line(view_stream *s, const pnr_map *map)
{
    const size_t n = s->gate.n_columns;
    float powers[VIEW_COLUMNS];
    uint8_t cells[VIEW_COLUMNS] = {0};
    const double time_s = (double)map->head.sample / map->head.rate_hz;

    pnr_map_reduce(map, 0, 0, map->info.n_rows, (double)map->info.row.n_gate / (double)n, n,
                   powers);
    for (size_t i = 0; i < n; i++)
        cells[i] = view_byte_of(powers[i]);
    raise_line(&s->fine, time_s, cells);
    raise_line(&s->coarse, time_s, cells);
}

void view_store_map(view_store *store, const pnr_map *map, size_t bytes)
{
    view_stream *s = stream_of(store, map->head.stream, map->head.run);
    view_picture *p;

    if (s == NULL || !(map->head.rate_hz > 0) || map->info.row.n_gate == 0)
        return;
    s->rate_hz = map->head.rate_hz;
    if (s->gate.n_columns == 0)
        begin_lines(s, map);
    add_line(s, map);
    p = &s->picture;
    if (bytes > p->capacity) {
        void *cells = realloc(p->cells, bytes);

        if (cells == NULL)
            return; /* the line is stored, but the map is not */
        p->cells = cells;
        p->capacity = bytes;
    }
    memcpy(p->cells, map->cells, bytes);
    p->map = *map;
    p->map.cells = p->cells;
    p->time_s = (double)map->head.sample / s->rate_hz;
    p->n++;
}
