/* SPDX-License-Identifier: MIT */
/* A block of samples as it travels: where it lies, which samples it holds, their time, what is
 * lost. */
#ifndef PNR_BLOCK_H
#define PNR_BLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct pnr_span {
    const void *data; /* [n_samples][n_channels] in the plan's format */
    size_t n_samples;
} pnr_span;

typedef enum { PNR_LOST_SOURCE, PNR_LOST_RING_FULL, PNR_LOST_COUNT } pnr_lost_reason;

typedef enum { PNR_TIME_NONE, PNR_TIME_FILE, PNR_TIME_HOST } pnr_time_source;

/* Lost samples first .. + count - 1, counted from the view's first sample. */
typedef struct pnr_lost_run {
    uint64_t first, count;
} pnr_lost_run;

/*
 * Consecutive whole dwells, a view into the ring (the lender keeps the memory until release).
 * Lost samples are zero in memory. A period with more than half lost is marked by lost > N/2 and
 * gives nothing.
 */
typedef struct pnr_windows {
    pnr_span spans[2];     /* the second is empty unless the view wraps; of a linear correlation it
                              goes on to the end of the last window */
    uint64_t first_sample; /* absolute index of the first sample */
    size_t n_dwells;
    size_t n_periods;     /* windows a dwell, of all its looks */
    const uint32_t *lost; /* [n_dwells * n_periods] samples lost inside each window's own N */
    const pnr_lost_run *lost_runs; /* [n_lost_runs] where they are, and those behind the last
                                      window's own; ascending, none touches another. Of more than
                                      1024 in a dwell the last one goes on to the last one's end */
    size_t n_lost_runs;
    uint64_t lost_before; /* samples lost or refused between the last view and this one */
    const uint64_t
        *ready_ns; /* [n_dwells] CLOCK_MONOTONIC when the dwell's last sample was committed */
    uint64_t submitted_ns, collected_ns; /* the same clock: to the engine, and back from it */
} pnr_windows;

#endif
