/* SPDX-License-Identifier: MIT */
/* The listener's own account of each stream: received, lost by seq, complete or not, restarts. */
#ifndef LISTEN_COUNT_H
#define LISTEN_COUNT_H

#include "publisher/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LISTEN_MAX_STREAMS = 64 };

/* One run of one stream. last seq - first seq + 1 = received + lost. */
typedef struct listen_run {
    char stream[PNR_TEXT_LEN];
    char run[17];
    uint64_t received;
    uint64_t lost;
    uint64_t first, last; /* seq, when received > 0 */
    bool has_ended;
    pnr_end_summary end; /* when has_ended */
} listen_run;

/* Zero-initialised is empty. */
typedef struct listen_counts {
    listen_run runs[LISTEN_MAX_STREAMS]; /* the present run of each stream */
    size_t n_streams;
    uint64_t received; /* of all runs */
    bool is_faulty;    /* something was lost in a run that is over */
} listen_counts;

/*
 * What any message tells of its run: NULL when there are too many streams. A new run id closes the
 * run before: its summary, and the restart, are written to `log`.
 */
listen_run *listen_count_run(listen_counts *counts, const char *stream, const char *run, FILE *log);
/* One result; false: it came twice or late, and is not counted. */
bool listen_count_result(listen_counts *counts, listen_run *run, uint64_t seq);
/* The end: results that were made after the last one that came are lost. */
void listen_count_end(listen_run *run, const pnr_end_summary *end);

bool listen_count_all_ended(const listen_counts *counts); /* of at least one stream */
bool listen_count_faulty(const listen_counts *counts);    /* for --strict */
void listen_count_print(const listen_counts *counts, FILE *stream);

#endif
