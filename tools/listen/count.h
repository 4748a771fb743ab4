/* SPDX-License-Identifier: MIT */
/* Counts for each stream the received results, the results lost according to seq, and the restarts.
 * Tells whether the stream is complete. */
#ifndef LISTEN_COUNT_H
#define LISTEN_COUNT_H

#include "publisher/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LISTEN_MAX_STREAMS = 64 };

/* One run of one stream. last - first + 1 = received + lost. */
typedef struct listen_run {
    char stream[PNR_TEXT_LEN];
    char run[17];
    uint64_t received;
    uint64_t lost;
    uint64_t first, last; /* seq of the first and last result, if received > 0 */
    bool has_ended;
    pnr_end_summary end; /* valid when has_ended */
} listen_run;

/* A struct of zeros: no message has arrived. */
typedef struct listen_counts {
    listen_run runs[LISTEN_MAX_STREAMS]; /* the present run of each stream */
    size_t n_streams;
    uint64_t received; /* results of all runs */
    bool is_faulty;    /* something was lost in an earlier run */
    bool are_events;   /* events are counted in place of results */
} listen_counts;

/* Returns the run of a message; NULL: there are too many streams. A new run id closes the previous
 * run, and writes its summary and the restart to `log`. */
listen_run *listen_count_run(listen_counts *counts, const char *stream, const char *run, FILE *log);
/* Counts one result; false: the result arrived twice or late, and does not count. */
bool listen_count_result(listen_counts *counts, listen_run *run, uint64_t seq);
/* Stores the end message. Results published after the last received one count as lost. */
void listen_count_end(const listen_counts *counts, listen_run *run, const pnr_end_summary *end);

/* True when every stream has ended and will not continue; false when there is no stream. A run that
 * lost its GPU will continue, because a supervisor restarts it. */
bool listen_count_is_over(const listen_counts *counts);
bool listen_count_faulty(const listen_counts *counts); /* if true, --strict fails */
void listen_count_print(const listen_counts *counts, FILE *stream);

#endif
