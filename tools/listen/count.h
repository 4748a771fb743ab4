/* SPDX-License-Identifier: MIT */
/* Counts the received and the lost results (gaps in seq) of each stream. Reports restarts. Decides
 * if the stream is complete. */
#ifndef LISTEN_COUNT_H
#define LISTEN_COUNT_H

#include "publisher/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LISTEN_MAX_STREAMS = 64 };

/* One run of one stream. Before the end message, last - first + 1 = received + lost. */
typedef struct listen_run {
    char stream[PNR_TEXT_LEN];
    char run[17];
    uint64_t received;
    uint64_t lost;
    uint64_t first, last; /* seq of the first and last result, if received > 0 */
    bool has_ended;
    pnr_end_summary end; /* valid when has_ended */
} listen_run;

/* The counts of all streams. A struct of zeros: no message has arrived. */
typedef struct listen_counts {
    listen_run runs[LISTEN_MAX_STREAMS]; /* the present run of each stream */
    size_t n_streams;
    uint64_t received; /* number of results of all runs */
    bool is_faulty;    /* an earlier run lost samples or results, or has no end message */
    bool are_events;   /* the program counts events instead of results */
} listen_counts;

/* Returns the run of a message; NULL: there are too many streams. If the stream has a new run id,
 * writes the restart and the summary of the previous run to `log`. */
listen_run *listen_count_run(listen_counts *counts, const char *stream, const char *run, FILE *log);
/* Counts one result. False: the result arrived twice or late, and does not count. */
bool listen_count_result(listen_counts *counts, listen_run *run, uint64_t seq);
/* Stores the end message. Counts the results after the last received result as lost. */
void listen_count_end(const listen_counts *counts, listen_run *run, const pnr_end_summary *end);

/* True if every stream has ended and will not continue. False if there is no stream. After the loss
 * of a GPU a stream continues with a new run, because a supervisor restarts the program. */
bool listen_count_is_over(const listen_counts *counts);
/* True if samples or results were lost, an account does not close, or an earlier run has no end
 * message. --strict then fails. */
bool listen_count_faulty(const listen_counts *counts);
void listen_count_print(const listen_counts *counts, FILE *stream);

#endif
