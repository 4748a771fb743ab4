/* SPDX-License-Identifier: MIT */
/* A view of samples: their memory, index, time and losses. */
#ifndef PNR_BLOCK_H
#define PNR_BLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct pnr_span {
    const void *data; /* [n_samples][n_channels] in the plan's format */
    size_t n_samples;
} pnr_span;

typedef enum { PNR_LOST_SOURCE, PNR_LOST_RING_FULL, PNR_LOST_COUNT } pnr_lost_reason;

typedef enum { PNR_TIME_NONE, PNR_TIME_FILE, PNR_TIME_HOST, PNR_TIME_SOURCE } pnr_time_source;

/* The samples first .. first + count - 1 are lost. They are counted from the first sample of the
 * view. */
typedef struct pnr_lost_run {
    uint64_t first, count;
} pnr_lost_run;

/*
 * A view of consecutive whole dwells in the ring. The ring owns the memory and does not reuse it
 * before release. Lost samples are zero in memory. Each window begins N samples after the previous
 * one. No engine uses a window that lost more than N/2 of its first N samples.
 */
typedef struct pnr_windows {
    pnr_span spans[2];     /* the second is empty unless the view wraps. A linear window is longer
                            * than N samples; the spans contain the whole last window */
    uint64_t first_sample; /* absolute index of the first sample */
    size_t n_dwells;
    size_t n_periods;     /* windows of a dwell, in all its looks */
    const uint32_t *lost; /* [n_dwells * n_periods] samples lost in the first N samples of each
                           * window */
    const pnr_lost_run *lost_runs; /* [n_lost_runs] the runs up to the end of the spans, in
                                    * ascending order, with a gap between any two runs. If a dwell
                                    * has more than 1024 runs, its last entry covers the 1024th run,
                                    * all later runs, and the gaps between these runs */
    size_t n_lost_runs;
    uint64_t lost_before; /* samples lost or refused between the previous view and this view */
    const uint64_t
        *ready_ns; /* [n_dwells] CLOCK_MONOTONIC when the dwell's last sample was committed */
    uint64_t submitted_ns, collected_ns; /* times of CLOCK_MONOTONIC */
} pnr_windows;

#endif
