/* SPDX-License-Identifier: MIT */
/* The state of the ring, which its two sides share: write.c runs in the acquisition thread, read.c
 * in the processing thread; both stand on marks.c and sleep.c. */
#ifndef PNR_RING_STATE_H
#define PNR_RING_STATE_H

#include "ring/ring.h"

#include <pthread.h>
#include <stdatomic.h>

/* What lies between the mark before and this one: samples, or a run that is lost. */
typedef struct pnr_ring_mark {
    uint64_t end;     /* position after the last one */
    uint64_t time_ns; /* CLOCK_MONOTONIC of the commit */
    int lost;         /* a pnr_lost_reason, or PNR_RING_HELD */
} pnr_ring_mark;

enum {
    PNR_RING_HELD = -1,
    PNR_RING_MIN_MARKS = 1 << 14,
    PNR_RING_CACHE_LINE = 64,
    PNR_RING_RUNS = 1024, /* lost runs that are told apart, of a dwell and behind it */
    PNR_RING_VIEW_RUNS = 4 * PNR_RING_RUNS /* of a view */
};

/* Lost positions, by reason. */
typedef struct pnr_ring_losses {
    uint64_t n[PNR_LOST_COUNT];
} pnr_ring_losses;

typedef struct pnr_ring_view {
    uint64_t first;     /* position of its first sample */
    uint32_t *lost;     /* [max_dwells * n_periods] */
    uint64_t *ready_ns; /* [max_dwells] */
    pnr_lost_run *runs; /* [PNR_RING_VIEW_RUNS] from its first sample on */
    size_t n_runs;
    pnr_ring_losses losses; /* inside it: they go to the account when it comes back */
} pnr_ring_view;

/* A side that sleeps: the other wakes it when what it waits for is there. */
typedef struct pnr_ring_sleeper {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic bool is_asleep;
} pnr_ring_sleeper;

/*
 * The writer stores a sample at memory[position mod capacity] only while position < tail +
 * capacity. A lost position needs no memory, so head may run ahead of that; the reader then takes
 * no view that does not lie within [tail, tail + capacity), and zeroes the lost positions inside
 * the views it takes. What each side writes lies in cache lines of its own.
 */
struct pnr_ring {
    pnr_ring_shape shape;
    uint64_t dwell;       /* samples a dwell */
    uint64_t reach;       /* samples that must be there for a dwell: and n_behind */
    size_t n_windows;     /* that reach begins in: n_periods, and those behind */
    pnr_ring_mark *marks; /* [n_marks], single writer, single reader */
    size_t n_marks;
    pnr_ring_sleeper reader, writer;

    /* the writer's */
    _Alignas(PNR_RING_CACHE_LINE) _Atomic uint64_t mark_head;
    _Atomic uint64_t head; /* positions told so far */
    _Atomic bool ended;
    uint64_t unmarked[PNR_LOST_COUNT]; /* lost, but the queue of marks was full */

    /* the reader's */
    _Alignas(PNR_RING_CACHE_LINE) _Atomic uint64_t mark_tail;
    _Atomic uint64_t tail;   /* memory before this position is free */
    _Atomic uint64_t wanted; /* while the reader sleeps: where head wakes it */
    uint64_t next;           /* where the next dwell starts */
    uint64_t passed;         /* positions whose marks are behind us; next .. next + reach */
    uint64_t shown;          /* peek has shown what lies before */
    uint32_t *lost;          /* [n_windows] from the next dwell's first on, as far as passed */
    pnr_ring_losses *losses; /* [n_windows] the same, by reason: not yet in the account or a view */
    pnr_lost_run *runs;      /* [PNR_RING_RUNS] the same, counted from next */
    size_t n_runs;
    uint64_t ready_ns; /* when the position before `passed` was told */
    uint64_t lost_before;
    pnr_ring_view *views; /* [depth], a queue */
    size_t first_view, n_views;
    pnr_account account; /* the ring's part */
};

/* --- marks.c --- */

/* Appends a mark over the next n_samples and wakes the reader when it has work. lost: as in a mark.
 * Called by the writer; after the end by the reader. The queue must have room. */
void pnr_ring_add_mark(pnr_ring *ring, uint64_t n_samples, int lost);
/* Appends the losses that found the queue full; false: it has no room for all of them. Called by
 * the writer; after the end by the reader. */
bool pnr_ring_mark_losses(pnr_ring *ring);
/* True when the reader (at the position that it waits for) or the writer can go on. Both sides may
 * ask. */
bool pnr_ring_has_work(const pnr_ring *ring);
bool pnr_ring_has_space(const pnr_ring *ring);

/* --- sleep.c --- */

void pnr_ring_sleeper_init(pnr_ring_sleeper *sleeper);
void pnr_ring_sleeper_clear(pnr_ring_sleeper *sleeper);
/* Wakes the side when it sleeps. */
void pnr_ring_wake(pnr_ring_sleeper *sleeper);
/* Waits until is_ready(ring). PNR_OK, or PNR_EAGAIN after patience_ns. */
int pnr_ring_sleep(pnr_ring *ring, pnr_ring_sleeper *sleeper,
                   bool (*is_ready)(const pnr_ring *ring), uint64_t patience_ns);

#endif
