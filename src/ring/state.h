/* SPDX-License-Identifier: MIT */
/* The state that the two sides of the ring share. write.c runs in the acquisition thread, and
 * read.c in the processing thread. Both use marks.c and sleep.c. */
#ifndef PNR_RING_STATE_H
#define PNR_RING_STATE_H

#include "ring/ring.h"

#include <pthread.h>
#include <stdatomic.h>

/* A run of positions that begins where the previous mark ends. Either all positions of the run hold
 * samples, or all are lost. */
typedef struct pnr_ring_mark {
    uint64_t end;     /* position after the last position of the run */
    uint64_t time_ns; /* CLOCK_MONOTONIC of the commit */
    int lost;         /* a pnr_lost_reason; PNR_RING_HELD: the run holds samples */
} pnr_ring_mark;

enum {
    PNR_RING_HELD = -1,
    PNR_RING_MIN_MARKS = 1 << 14,
    PNR_RING_CACHE_LINE = 64,
    PNR_RING_RUNS = PNR_RING_VIEW_RUNS / 4 /* greatest number of separate lost runs in a dwell and
                                            * its n_behind samples together */
};

/* Lost positions by reason. */
typedef struct pnr_ring_losses {
    uint64_t n[PNR_LOST_COUNT];
} pnr_ring_losses;

typedef struct pnr_ring_view {
    uint64_t first;     /* position of the first sample of the view */
    uint32_t *lost;     /* [max_dwells * n_periods] lost samples of each window */
    uint64_t *ready_ns; /* [max_dwells] when the last sample that the dwell needs was committed */
    size_t n_runs;
    pnr_lost_run runs[PNR_RING_VIEW_RUNS]; /* positions count from the first sample of the view */
    pnr_ring_losses losses; /* losses in the view; pnr_ring_release accounts for them */
} pnr_ring_view;

/* One side of the ring. It sleeps until it can continue; the other side wakes it. */
typedef struct pnr_ring_sleeper {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic bool is_asleep;
} pnr_ring_sleeper;

/* The memory for dwells of another length. first_window counts from any window, as in the shape. */
struct pnr_ring_division {
    pnr_ring_shape shape;
    size_t n_windows;
    uint32_t *lost;
    pnr_ring_losses *losses;
    pnr_ring_view *views;
};

/*
 * The writer stores a sample at memory[position mod capacity], and only while position < tail +
 * capacity. A lost position needs no memory, so head may exceed tail + capacity. The reader zeroes
 * the lost positions of a view. So the reader waits until the view is within
 * [tail, tail + capacity). The members that one side writes share no cache line with the members
 * that the other side writes.
 */
struct pnr_ring {
    pnr_ring_shape shape;
    uint64_t dwell;       /* samples of a dwell */
    uint64_t reach;       /* samples that a dwell needs: its own, and n_behind after it */
    size_t n_windows;     /* windows that begin within reach */
    pnr_ring_mark *marks; /* [n_marks] queue: the writer appends, the reader removes */
    size_t n_marks;
    pnr_ring_sleeper reader, writer;

    /* written by the writer */
    _Alignas(PNR_RING_CACHE_LINE) _Atomic uint64_t mark_head;
    _Atomic uint64_t head; /* end of the newest mark */
    _Atomic bool ended;
    _Atomic uint64_t fullest;          /* most positions taken since the last pnr_ring_fill */
    uint64_t unmarked[PNR_LOST_COUNT]; /* lost positions without a mark; the queue was full */
    uint64_t losing_from; /* first position of the present loss, valid if any of `losing` is set */
    pnr_ring_losses losing; /* the present loss */

    /* written by the reader */
    _Alignas(PNR_RING_CACHE_LINE) _Atomic uint64_t mark_tail;
    uint64_t mark_next; /* the next mark to take; the marks of the next dwell are kept after that */
    uint64_t mark_end;  /* end of the last mark that is no longer kept */
    _Atomic uint64_t tail;   /* memory before this position is free */
    _Atomic uint64_t wanted; /* the head at which the writer wakes the sleeping reader */
    uint64_t next;           /* where the next dwell starts */
    uint64_t passed;         /* end of the positions whose marks the reader has taken */
    uint64_t shown;          /* end of the samples that the previous peek showed */
    uint32_t *lost;          /* [n_windows] lost positions in next .. passed, by window */
    pnr_ring_losses *losses; /* [n_windows] lost positions by window and reason; not yet in the
                              * account or in a view */
    size_t n_runs;
    uint64_t ready_ns; /* time of the mark that contains the position before `passed` */
    uint64_t lost_before;
    pnr_ring_view *views; /* [depth], a queue */
    size_t first_view, n_views;
    pnr_account account;              /* the counts that the ring itself keeps */
    pnr_lost_run runs[PNR_RING_RUNS]; /* lost runs in next .. passed, counted from `next` */
};

/* --- marks.c --- */

/* Appends a mark of the next n_samples positions. Wakes the reader when it has work. `lost` is a
 * pnr_lost_reason or PNR_RING_HELD. The queue must have space. The writer calls this function;
 * after the end of the stream, the reader calls it. */
void pnr_ring_add_mark(pnr_ring *ring, uint64_t n_samples, int lost);
/* Appends marks of the losses in `unmarked`. Returns false if the queue has no space for all of
 * them. The writer calls this function; after the end of the stream, the reader calls it. */
bool pnr_ring_mark_losses(pnr_ring *ring);
/* has_work: true when the reader can continue. has_space: true when the writer can continue. Either
 * side may call both functions. */
bool pnr_ring_has_work(const pnr_ring *ring);
bool pnr_ring_has_space(const pnr_ring *ring);

/* --- sleep.c --- */

void pnr_ring_sleeper_init(pnr_ring_sleeper *sleeper);
void pnr_ring_sleeper_clear(pnr_ring_sleeper *sleeper);
/* Wakes the side if it sleeps. */
void pnr_ring_wake(pnr_ring_sleeper *sleeper);
/* Waits until is_ready(ring). PNR_OK, or PNR_EAGAIN after patience_ns. */
int pnr_ring_sleep(pnr_ring *ring, pnr_ring_sleeper *sleeper,
                   bool (*is_ready)(const pnr_ring *ring), uint64_t patience_ns);

#endif
