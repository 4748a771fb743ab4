/* SPDX-License-Identifier: MIT */
/* The ring between the acquisition thread and the processing thread. It is addressed by the
 * absolute sample index. */
#ifndef PNR_RING_H
#define PNR_RING_H

#include "base/account.h"
#include "base/error.h"
#include "base/event.h"
#include "engine/block.h"
#include "ring/bell.h"
#include "ring/queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnr_ring pnr_ring;

enum { PNR_RING_VIEW_RUNS = 4096 }; /* largest number of lost runs in a view */

typedef struct pnr_ring_shape {
    void *memory;        /* [capacity * sample_bytes] bytes; the caller owns them */
    size_t capacity;     /* number of samples in memory: at least max_dwells + 1 dwells plus
                          * n_behind samples */
    size_t sample_bytes; /* bytes of one sample of all channels */
    size_t n_samples;    /* N: samples from one window to the next */
    size_t n_behind;     /* samples that a view shows after its last dwell; a linear window has N +
                        * n_behind samples */
    size_t n_periods;    /* windows in a dwell, in all its looks */
    size_t max_dwells;   /* largest number of dwells in a view */
    uint64_t first_sample; /* sample index of the first position; at most first_window */
    uint64_t first_window; /* sample index of the first window */
    /* The account excludes positions from `end` on, but a view may show up to n_behind of them. end
     * = first_window + a number of whole dwells; 0: the account has all positions. */
    uint64_t end;
    size_t zero_byte;   /* byte of a zero sample: 0, or 0x80 for cu8 and u8 */
    size_t depth;       /* largest number of views lent at one time */
    pnr_bell *reader;   /* bell of the processing thread; owner: the caller; NULL: the ring has its
                       * own */
    pnr_events *events; /* receives an event when a loss begins and when it ends; may be NULL */
} pnr_ring_shape;

int pnr_ring_create(const pnr_ring_shape *shape, pnr_ring **out, pnr_error *error);
void pnr_ring_destroy(pnr_ring *ring);

/*
 * --- the acquisition thread ---
 *
 * A ring has a queue of marks, one for each commit and each loss. The queue has space for 2^14
 * marks. If the memory has space for more than 2^12 dwells, the queue has space for four marks for
 * each dwell. The ring is full if it has no space for samples or for the next mark.
 */

/* Sets *data to the memory for the next *n_samples contiguous samples, at most max_samples. Returns
 * PNR_OK, or PNR_EAGAIN: the ring is full. */
int pnr_ring_reserve(pnr_ring *ring, size_t max_samples, void **data, size_t *n_samples);
/* Commits the first n_samples samples of the reserved memory. */
void pnr_ring_commit(pnr_ring *ring, size_t n_samples);
/* Marks the next n_samples positions as lost. Never fails. */
void pnr_ring_skip(pnr_ring *ring, uint64_t n_samples, pnr_lost_reason reason);
/* Waits until the ring has space, at most patience_ns. Returns PNR_OK or PNR_EAGAIN. */
int pnr_ring_wait_space(pnr_ring *ring, uint64_t patience_ns);
/* Ends the stream after the last position that was committed or skipped. */
void pnr_ring_end(pnr_ring *ring);

/* --- the processing thread --- */

/* Lends the next view: 1 .. max_dwells whole dwells, in order, and n_behind samples. Lost samples
 * are zeroed. A lost sample counts only in the window that has it among its first N samples. If
 * every window of a dwell has lost more than half of its samples, the dwell is refused and never
 * shown. The number of dwells in a view depends on timing, but the dwells that are shown do not.
 * Returns PNR_OK; PNR_EAGAIN: no dwell is ready; PNR_EEND: there are no further dwells. */
int pnr_ring_acquire(pnr_ring *ring, size_t max_dwells, pnr_windows *out);
/* Releases the memory of the oldest view. */
void pnr_ring_release(pnr_ring *ring);
/* True if at least half of the memory is in use: the reader is late. */
bool pnr_ring_is_half_full(const pnr_ring *ring);

/* Shows the part that has arrived of the next dwell and of the n_behind samples after it. Lends
 * nothing. out->n_dwells is 1 if all of them have arrived, else 0. The lost samples of this part
 * are zeroed. The part does not change until the view that begins with it is released. If the dwell
 * later loses so many samples that it is refused, the next view begins at another sample, and this
 * memory is free at once. Returns PNR_OK; PNR_EAGAIN: fewer than at_least samples are new since the
 * previous peek (0 means 1); PNR_EEND: there are no further views. */
int pnr_ring_peek(pnr_ring *ring, size_t at_least, pnr_windows *out);
/* Waits until pnr_ring_acquire has work, the stream has ended, or the queue (NULL: none) has a
 * record. The call of pnr_ring_acquire can still return PNR_EAGAIN. The writer of the queue must
 * ring shape.reader. If at_least > 0, waits for work of pnr_ring_peek, not of pnr_ring_acquire.
 * Returns PNR_OK; or PNR_EAGAIN after patience_ns or after the bell has rung for another reason. */
int pnr_ring_wait(pnr_ring *ring, size_t at_least, pnr_queue *queue, uint64_t patience_ns);

/*
 * Divides the stream into other dwells while the acquisition continues. pnr_ring_prepare allocates
 * the tables for the other dwells, in any thread. It reads n_samples, n_behind, n_periods,
 * max_dwells, depth and first_window of `shape`. Returns PNR_OK; PNR_ECONFIG: the dwells are too
 * long for the ring, or much shorter than those of pnr_ring_create; PNR_ENOMEMORY. Call
 * pnr_ring_divide only while no view is lent. It puts the new tables into the ring, and the old
 * tables into *division. The samples stay where they are. Windows then begin at
 * first_window + i n_samples. The first window begins at or after the end of the last dwell that
 * was acquired or refused. *skipped: the samples between this dwell and this window, also lost
 * ones. Returns the first sample of this window.
 */
typedef struct pnr_ring_division pnr_ring_division;
int pnr_ring_prepare(const pnr_ring *ring, const pnr_ring_shape *shape, pnr_ring_division **out,
                     pnr_error *error);
uint64_t pnr_ring_divide(pnr_ring *ring, pnr_ring_division *division, uint64_t *skipped);
void pnr_ring_division_destroy(pnr_ring_division *division);

/* Adds the counts of the ring to *account: alignment, refused dwells, losses in released views and,
 * after the end, the tail. The borrower of a view has its own account. Before the borrower releases
 * the view, it adds to that account the samples of the view that are not lost. The sums of
 * account.h are therefore valid at any time for both accounts together. Only the processing thread
 * calls this function. */
void pnr_ring_account(const pnr_ring *ring, pnr_account *account);
/* Returns the number of positions that are committed or skipped so far, up to `end` of the
 * shape. */
uint64_t pnr_ring_positions(const pnr_ring *ring);

/* --- any thread, but always the same one --- */

/* Returns the largest fraction of the memory that was in use since the last call, 0 .. 1. Lost
 * positions count too, until the reader passes them. */
double pnr_ring_fill(pnr_ring *ring);

#endif
