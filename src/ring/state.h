/* SPDX-License-Identifier: MIT */
/* The state that the two sides of the ring share. write.c runs in the acquisition thread, and
 * read.c in the processing thread. Both use marks.c. */
#ifndef PNR_RING_STATE_H
#define PNR_RING_STATE_H

#include "ring/ring.h"

#include <stdatomic.h>

/* A run of positions that begins at the end of the previous mark. All positions of the run have
 * samples, or all are lost. */
typedef struct pnr_ring_mark {
    uint64_t end;     /* position after the last position of the run */
    uint64_t time_ns; /* CLOCK_MONOTONIC of the commit */
    int lost;         /* a pnr_lost_reason; PNR_RING_HELD: the run has samples */
} pnr_ring_mark;

enum {
    PNR_RING_HELD = -1,
    PNR_RING_MIN_MARKS = 1 << 14,
    PNR_RING_CACHE_LINE = 64,
    PNR_RING_RUNS = PNR_RING_VIEW_RUNS / 4 /* largest number of lost runs in a dwell and its
                                            * n_behind samples */
};

/* Lost positions by reason. */
typedef struct pnr_ring_losses {
    uint64_t n[PNR_LOST_COUNT];
} pnr_ring_losses;

typedef struct pnr_ring_view {
    uint64_t first;     /* position of the first sample of the view */
    uint32_t *lost;     /* [max_dwells * n_periods] lost samples of each window */
    uint64_t *ready_ns; /* [max_dwells] time of the last commit that the dwell needs */
    size_t n_runs;
    pnr_lost_run runs[PNR_RING_VIEW_RUNS]; /* counted from the first sample of the view */
    pnr_ring_losses losses; /* losses in the view; pnr_ring_release adds them to the account */
} pnr_ring_view;

/* The tables for dwells of another length. shape.first_window: sample index at which one of the new
 * windows begins. */
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
 * the lost positions of a view. It therefore waits until the view is within [tail, tail +
 * capacity). Members that different sides write are on different cache lines.
 */
struct pnr_ring {
    pnr_ring_shape shape;
    uint64_t dwell;       /* samples of a dwell */
    uint64_t reach;       /* samples that a dwell needs: its samples and n_behind after them */
    size_t n_windows;     /* windows that begin within reach */
    pnr_ring_mark *marks; /* [n_marks] queue: the writer appends, the reader removes */
    size_t n_marks;
    pnr_bell *reader; /* shape.reader, or own_reader */
    pnr_bell own_reader, writer;

    /* written by the writer */
    _Alignas(PNR_RING_CACHE_LINE) _Atomic uint64_t mark_head;
    _Atomic uint64_t head; /* end of the newest mark */
    _Atomic bool ended;
    _Atomic uint64_t fullest;          /* largest number of positions in use since the last
                                        * pnr_ring_fill */
    uint64_t unmarked[PNR_LOST_COUNT]; /* lost positions without a mark: the queue was full */
    uint64_t losing_from;   /* first position of the present loss; valid if `losing` is not 0 */
    pnr_ring_losses losing; /* lost positions of the present loss, by reason */

    /* written by the reader */
    _Alignas(PNR_RING_CACHE_LINE) _Atomic uint64_t mark_tail;
    uint64_t mark_next;      /* next mark to read; the reader has read the marks from mark_tail to
                              * mark_next - 1 */
    uint64_t mark_end;       /* end of the newest mark that the reader has removed */
    _Atomic uint64_t tail;   /* memory before this position is free */
    _Atomic uint64_t wanted; /* value of head that wakes the sleeping reader */
    uint64_t next;           /* position of the next dwell */
    uint64_t passed;         /* the reader has read the marks of all positions before this one */
    uint64_t shown;          /* end of the samples that the previous peek showed */
    uint32_t *lost;          /* [n_windows] lost positions between `next` and `passed`, by window */
    pnr_ring_losses *losses; /* [n_windows] these losses by reason; not accounted for yet */
    size_t n_runs;
    uint64_t ready_ns; /* time of the mark that contains the position before `passed` */
    uint64_t lost_before;
    pnr_ring_view *views; /* [depth] queue of the lent views */
    size_t first_view, n_views;
    pnr_account account;              /* the counts of the ring */
    pnr_lost_run runs[PNR_RING_RUNS]; /* lost runs between `next` and `passed` */
};

/* --- marks.c --- */

/* Appends a mark of the next n_samples positions. Wakes the reader if it has work. lost: a
 * pnr_lost_reason or PNR_RING_HELD. The queue must have space. The writer calls this function.
 * After the end of the stream, the reader calls it. */
void pnr_ring_add_mark(pnr_ring *ring, uint64_t n_samples, int lost);
/* Appends marks of the losses in `unmarked`. Returns false if the queue has too little space for
 * them. The writer calls this function. After the end of the stream, the reader calls it. */
bool pnr_ring_mark_losses(pnr_ring *ring);
/* pnr_ring_has_work: true if the reader can continue. pnr_ring_has_space: true if the writer can
 * continue. Either side may call both functions. */
bool pnr_ring_has_work(const pnr_ring *ring);
bool pnr_ring_has_space(const pnr_ring *ring);

#endif
