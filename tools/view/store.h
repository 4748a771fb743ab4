/* SPDX-License-Identifier: MIT */
/* Stores the last hour of each stream in bounded memory: results, the range-time picture, losses,
 * and the newest profile or map, status and end message. One mutex guards all data. */
#ifndef VIEW_STORE_H
#define VIEW_STORE_H

#include "picture/map.h"
#include "publisher/message.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    VIEW_COLUMNS = 2048,      /* greatest number of columns of a line */
    VIEW_MERGED = 8,          /* number of fine lines in a coarse line */
    VIEW_FINE_LINES = 6000,   /* five minutes of the shortest fine lines */
    VIEW_COARSE_LINES = 9000, /* an hour of the shortest coarse lines */
    VIEW_RESULTS = 1 << 17,
    VIEW_ECHOES = 1 << 18,
    VIEW_LOSSES = 4096,
    VIEW_EVENTS = 256,
    VIEW_TEXT = 65536,     /* greatest size of a stored message with its NUL, in bytes */
    VIEW_LATENCIES = 12,   /* number of finite limits in the latency histogram */
    VIEW_PAST_RUNS = 16,   /* number of earlier runs whose late messages are ignored */
    VIEW_MAX_STREAMS = 64, /* greatest value of --streams */
};
#define VIEW_SLOT_S 0.05 /* shortest duration of a fine line */

/* The power of a cell in one byte. 0: no data. v > 0: the power is (v - 1) * VIEW_STEP_DB +
 * VIEW_LEAST_DB, in dB above the noise floor. */
#define VIEW_STEP_DB 0.4
#define VIEW_LEAST_DB (-10.0)

/* A published echo, with the fields of the message. */
typedef struct view_echo {
#define VIEW_ECHO_COUNT(x, name) uint32_t name;
#define VIEW_ECHO_WIDE(x, name) double name;
#define VIEW_ECHO_NARROW(x, name) float name;
    PNR_ECHO_FIELDS(VIEW_ECHO_COUNT, VIEW_ECHO_COUNT, VIEW_ECHO_WIDE, VIEW_ECHO_NARROW, )
#undef VIEW_ECHO_COUNT
#undef VIEW_ECHO_WIDE
#undef VIEW_ECHO_NARROW
    pnr_code_label code_name;
} view_echo;

typedef struct view_result {
    uint64_t seq, sample, lost, lost_before;
    double time_s; /* from the start of the stream to the first sample */
    double latency_us, noise_db;
    uint64_t first_echo; /* number of the first echo of this result; the first echo of the run is
                          * number 0 */
    uint32_t n_echoes;
    unsigned flags;
} view_result;

/* An interval of the stream that has lost samples or missing results. */
typedef struct view_loss {
    double from_s, to_s;
    double share;   /* lost part of the interval, 0 .. 1 */
    bool is_unseen; /* true: the results were published, but this program did not receive them */
} view_loss;

/* Lines of the range-time picture. Line i stores the greatest power of each column, over all
 * profiles and maps that begin in the time from i * step_s to (i + 1) * step_s. Line i is at slot i
 * mod `capacity`. */
typedef struct view_lines {
    size_t capacity;
    double step_s;
    uint64_t n;       /* number of lines so far; the newest line is n - 1 */
    uint64_t *number; /* [capacity] number of the line in a slot, plus 1; 0: empty */
    uint8_t *cells;   /* [capacity][VIEW_COLUMNS] */
} view_lines;

/* The columns of the lines. The first cell of column i has the range first_m + i * step_m. */
typedef struct view_gate {
    size_t n_columns; /* 0: no profile has arrived */
    double first_m, step_m;
} view_gate;

/* A part of the gate: its first column and its number of columns. */
typedef struct view_columns {
    double first, n;
} view_columns;

/* The newest profile or map, with all its cells. */
typedef struct view_picture {
    pnr_map map; /* map.cells points to `cells`, which this struct owns */
    void *cells;
    size_t capacity; /* bytes of the memory `cells` */
    uint64_t n;      /* number of profiles and maps of the run so far */
    double time_s;
} view_picture;

typedef struct view_text {
    char *text;   /* one line of JSON; NULL: none */
    uint64_t n;   /* number of texts so far, with this one */
    int64_t when; /* UTC of the arrival, ns */
} view_text;

typedef struct view_stream {
    char name[PNR_TEXT_LEN], run[17];
    char past_runs[VIEW_PAST_RUNS][17]; /* run i at i mod VIEW_PAST_RUNS */
    uint64_t n_past_runs;
    char engine[48];
    double rate_hz;
    double dwell_s;       /* NAN: not known */
    int64_t epoch_utc_ns; /* UTC of sample 0, ns */
    bool has_epoch, has_ended;
    uint64_t heard_ns; /* CLOCK_MONOTONIC of the last message */
    view_gate gate;
    view_lines fine, coarse;
    view_result *results; /* [VIEW_RESULTS]; result i at i mod VIEW_RESULTS */
    view_echo *echoes;    /* [VIEW_ECHOES]; echo i at i mod VIEW_ECHOES */
    view_loss *losses;    /* [VIEW_LOSSES]; loss i at i mod VIEW_LOSSES */
    uint64_t n_results, n_echoes, n_losses;
    uint64_t n_unseen; /* number of results of the run that this program did not receive */
    uint64_t next_seq; /* seq of the next result, if n_results > 0 */
    view_text status, end, latest;
    view_text events[VIEW_EVENTS]; /* event i at i mod VIEW_EVENTS */
    uint64_t n_events;
    pnr_end_summary summary; /* content of the last status or end message */
    bool has_summary;
    uint64_t latencies[VIEW_LATENCIES + 1]; /* number of results in each bucket of the histogram */
    double latency_sum_us;
    view_picture picture;
} view_stream;

typedef struct view_store {
    pthread_mutex_t mutex; /* lock it before you use the members below */
    view_stream *streams;  /* [capacity] */
    size_t n_streams, capacity;
    uint64_t n_changes; /* number of starts and ends of runs */
    uint64_t n_bad;     /* number of messages that could not be read */
    uint64_t n_refused; /* number of messages of streams for which there was no space */
} view_store;

/* Returns the byte of a cell. power: power of the cell / noise floor; NAN: no data. */
uint8_t view_byte_of(float power);

/* The upper limits of the latency buckets, in seconds. */
extern const double view_latency_limits[VIEW_LATENCIES];

/* Creates a store for `capacity` streams, 1 .. VIEW_MAX_STREAMS. PNR_OK, PNR_ENOMEMORY. */
int view_store_create(size_t capacity, view_store **out);
void view_store_destroy(view_store *store);

/* Finds a stream by its name; "" means the first stream. NULL: there is no such stream. */
view_stream *view_store_find(view_store *store, const char *name);

/* Each function stores one message. The caller holds the mutex. A message of a new run empties the
 * stream. A late message of an earlier run is ignored. */
void view_store_result(view_store *store, const pnr_report *report);
void view_store_latest(view_store *store, const char *stream, const char *text, size_t length);
void view_store_map(view_store *store, const pnr_map *map, size_t bytes);
void view_store_summary(view_store *store, const pnr_end_summary *summary, bool is_end,
                        const char *text, size_t length);
void view_store_event(view_store *store, const char *stream, const char *run, const char *text,
                      size_t length);

/* Divides the n_columns columns from column `first` on into `width` equal parts. Stores in out[x]
 * the greatest cell of part x over the lines `from` .. `to` - 1. Ignores lines that are no longer
 * stored or were never received. False: none of the lines is stored. */
bool view_lines_merge(const view_lines *lines, uint64_t from, uint64_t to, double first,
                      double n_columns, size_t width, uint8_t *out);

/* Returns the columns from range from_m to range to_m. NAN: from the start, or to the end of the
 * gate. n is 0 if the gate has none of these ranges, or if the gate is not known. */
view_columns view_columns_of(const view_gate *gate, double from_m, double to_m);

/* True if no message has arrived for three seconds. A publisher sends a status message every
 * second. */
bool view_stream_is_silent(const view_stream *stream);
/* These functions return the number of the oldest result, and of the oldest echo, that is still
 * stored. */
uint64_t view_stream_oldest_result(const view_stream *stream);
uint64_t view_stream_oldest_echo(const view_stream *stream);
/* Returns the end of the newest result or of the newest line (a row of the picture over time), in
 * seconds from the start of the stream. */
double view_stream_end_s(const view_stream *stream);

#endif
