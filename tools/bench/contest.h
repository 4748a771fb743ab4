/* SPDX-License-Identifier: MIT */
/* Compares methods of one engine on the same samples, which are in the memory where the engine
 * computes. Checks every result, then times all methods in turns. */
#ifndef PNR_TOOLS_BENCH_CONTEST_H
#define PNR_TOOLS_BENCH_CONTEST_H

#include "tools/bench/bench.h"
#include "tools/bench/resident.h"

enum { CONTEST_METHODS = 4 };

/* One method and its measurements. */
typedef struct contest_entry {
    pnr_engine_choice choice;
    resident *resident;
    pnr_result result; /* result of the set that was checked last */
    double *ns;        /* [n_times] measured times */
    double deviation;  /* greatest deviation so far from the result of the first entry; `judge` sets
                        * it */
} contest_entry;

/* The caller sets subject, runs and judge, zeroes the rest, and always calls contest_end. */
typedef struct contest {
    const bench_subject *subject; /* the contest changes method, depth, want_profile of the plan */
    size_t runs;
    /* Compares the result of an entry in one dwell with the result of the first entry. Sets
     * e->deviation. NULL: no comparison. */
    int (*judge)(const struct contest *c, contest_entry *e, size_t dwell, pnr_error *error);
    contest_entry entries[CONTEST_METHODS];
    size_t n_entries, n_times;
    uint32_t *lags;   /* [batch] delay of the echo in each dwell, samples */
    uint64_t state;   /* state of the generator of these delays */
    size_t n_checked; /* number of checked dwells of each method */
} contest;

/* Adds an entry for each of the n methods that supports the plan. Logs why the other methods of
 * this engine do not support the plan. Then checks every entry on n_submits sets of new samples,
 * times all entries, and fills `ns` of each entry. A signal ends the contest early. Errors are
 * those of the engine's create. PNR_EENGINE: the strongest candidate of a dwell is not its echo, or
 * samples are missing. */
int contest_run(contest *c, const char *const *methods, size_t n, size_t n_submits,
                pnr_error *error);
void contest_end(contest *c);

#endif
