/* SPDX-License-Identifier: MIT */
/* Counts the received and the lost results (gaps in seq) of each stream. Reports restarts. Decides
 * if the stream is complete. */
#include "tools/listen/count.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool run_is_faulty(const listen_counts *counts, const listen_run *run)
{
    const pnr_account *account = &run->end.account;

    if (run->lost > 0)
        return true;
    return run->has_ended && (!pnr_account_lossless(account) || !pnr_account_closes(account) ||
                              (run->received == 0 && account->results > 0 && !counts->are_events));
}

static void print_run(const listen_counts *counts, const listen_run *run, FILE *stream)
{
    char text[512];

    fprintf(stream, "%s run %s: %" PRIu64 " %s received, %" PRIu64 " lost", run->stream, run->run,
            run->received, counts->are_events ? "events" : "results", run->lost);
    if (run->received > 0)
        fprintf(stream, ", seq %" PRIu64 " to %" PRIu64, run->first, run->last);
    if (!run->has_ended) {
        fputs("; not complete: the end is missing\n", stream);
        return;
    }
    fprintf(stream, "; complete: %s, exit status %d\n", run->end.reason, run->end.exit_status);
    fprintf(stream, "%s account: %s%s\n", run->stream,
            pnr_account_format(&run->end.account, text, sizeof text),
            pnr_account_closes(&run->end.account) ? "" : " (does not close)");
    if (isfinite(run->end.deadline_s))
        fprintf(stream, "%s deadline: %g s, missed by %" PRIu64 " of %" PRIu64 " results\n",
                run->stream, run->end.deadline_s, run->end.account.deadline_missed,
                run->end.account.results);
}

listen_run *listen_count_run(listen_counts *counts, const char *stream, const char *run, FILE *log)
{
    listen_run *r = NULL;
    size_t i;

    for (i = 0; i < counts->n_streams && r == NULL; i++)
        if (strcmp(counts->runs[i].stream, stream) == 0)
            r = &counts->runs[i];
    if (r != NULL && strcmp(r->run, run) == 0)
        return r;
    if (r != NULL) {
        fprintf(log, "%s: restarted as run %s\n", stream, run);
        print_run(counts, r, log);
        counts->is_faulty |= !r->has_ended || run_is_faulty(counts, r);
    } else if (counts->n_streams < LISTEN_MAX_STREAMS) {
        r = &counts->runs[counts->n_streams++];
    } else {
        return NULL;
    }
    memset(r, 0, sizeof *r);
    memccpy(r->stream, stream, '\0', sizeof r->stream - 1);
    memccpy(r->run, run, '\0', sizeof r->run - 1);
    return r;
}

bool listen_count_result(listen_counts *counts, listen_run *run, uint64_t seq)
{
    if (run->received == 0)
        run->first = seq;
    else if (seq <= run->last)
        return false;
    else
        run->lost += seq - run->last - 1;
    run->last = seq;
    run->received++;
    counts->received++;
    return true;
}

void listen_count_end(const listen_counts *counts, listen_run *run, const pnr_end_summary *end)
{
    if (!counts->are_events && !run->has_ended && run->received > 0 &&
        end->account.results > run->last + 1)
        run->lost += end->account.results - 1 - run->last;
    run->has_ended = true;
    run->end = *end;
}

bool listen_count_is_over(const listen_counts *counts)
{
    size_t i;

    for (i = 0; i < counts->n_streams; i++)
        if (!counts->runs[i].has_ended ||
            counts->runs[i].end.exit_status == pnr_error_exit(PNR_ELOST))
            return false;
    return counts->n_streams > 0;
}

bool listen_count_faulty(const listen_counts *counts)
{
    size_t i;

    for (i = 0; i < counts->n_streams; i++)
        if (run_is_faulty(counts, &counts->runs[i]))
            return true;
    return counts->is_faulty;
}

void listen_count_print(const listen_counts *counts, FILE *stream)
{
    size_t i;

    for (i = 0; i < counts->n_streams; i++)
        print_run(counts, &counts->runs[i], stream);
    if (counts->n_streams == 0)
        fprintf(stream, "no %s received\n", counts->are_events ? "events" : "results");
}
