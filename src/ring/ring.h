/* SPDX-License-Identifier: MIT */
/* The ring between the acquisition thread and the processing thread, addressed by absolute sample
 * index. */
#ifndef PNR_RING_H
#define PNR_RING_H

#include "base/account.h"
#include "base/error.h"
#include "engine/block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pnr_ring pnr_ring;

typedef struct pnr_ring_shape {
    void *memory; /* capacity * sample_bytes bytes, from the engine's alloc; stays the caller's */
    size_t capacity;     /* samples; at least (max_dwells + 1) dwells and n_behind */
    size_t sample_bytes; /* of one sample of all channels */
    size_t n_samples;    /* N: from window to window */
    size_t n_behind;  /* a view shows so many samples beyond its last dwell: what linear windows are
                         longer than N; they belong to the next dwell */
    size_t n_periods; /* windows a dwell, of all its looks */
    size_t max_dwells;     /* a view, at most */
    uint64_t first_window; /* sample index where the first window starts */
    size_t zero_byte; /* the byte of a zero sample: 0, 0x80 for cu8 and u8 (their zero lies between
                         codes) */
    size_t depth;     /* views lent at one time, at most */
} pnr_ring_shape;

int pnr_ring_create(const pnr_ring_shape *shape, pnr_ring **out, pnr_error *error);
void pnr_ring_destroy(pnr_ring *ring);

/* --- the acquisition thread ---
 * reserve: where the next samples go, *n_samples <= max contiguous ones. PNR_EAGAIN: the ring is
 * full. commit: n of them are there (n <= reserved). skip: n positions are lost for `reason`; never
 * fails. A ring remembers 2^14 commits and losses at one time, or 4 a dwell where that is more, and
 * counts as full beyond. wait_space: until reserve may succeed, patience at most; PNR_OK or
 * PNR_EAGAIN. end: nothing follows. */
int pnr_ring_reserve(pnr_ring *ring, size_t max_samples, void **data, size_t *n_samples);
void pnr_ring_commit(pnr_ring *ring, size_t n_samples);
void pnr_ring_skip(pnr_ring *ring, uint64_t n_samples, pnr_lost_reason reason);
int pnr_ring_wait_space(pnr_ring *ring, uint64_t patience_ns);
void pnr_ring_end(pnr_ring *ring);

/* --- the processing thread ---
 * acquire: the next view of 1..max_dwells whole dwells, in order, and n_behind samples; lost
 * samples inside are zeroed and counted, each in the window that it is the own of. A dwell in which
 * every window has more than half lost is refused here and never seen. PNR_EAGAIN: none ready;
 * PNR_EEND: none will come. release: the oldest view's memory goes back. wait: until acquire may
 * succeed or the end. n_dwells of the views depends on timing; their dwells do not. */
int pnr_ring_acquire(pnr_ring *ring, size_t max_dwells, pnr_windows *out);
void pnr_ring_release(pnr_ring *ring);
int pnr_ring_wait(pnr_ring *ring, uint64_t patience_ns);

/* What has come of the next dwell and behind it, from its first sample (which is that of the next
 * view) to the last one that is there; out->n_dwells is 1 when it is whole, else 0. Nothing is
 * lent. PNR_EAGAIN: at_least samples (0 is 1) more than peek showed of it before are not there;
 * PNR_EEND: no view will come. What is shown is final: lost samples are zeroed already, and nothing
 * is changed until the view that begins with it is released. But a dwell may lose so much later
 * that it is refused: then the next view begins elsewhere, and this memory is free at once.
 * wait_more: until acquire or peek(at_least) may succeed, or the end. */
int pnr_ring_peek(pnr_ring *ring, size_t at_least, pnr_windows *out);
int pnr_ring_wait_more(pnr_ring *ring, size_t at_least, uint64_t patience_ns);

/* Adds the ring's own part of the account to *account, totals so far: alignment, refused dwells
 * and, after the end, the tail; lost samples there and in views that were released. The rest of
 * each view is the borrower's to account for, before it releases it: then the sum of both closes at
 * any time. In the processing thread. */
void pnr_ring_account(const pnr_ring *ring, pnr_account *account);
/* Stream positions committed or skipped so far. */
uint64_t pnr_ring_positions(const pnr_ring *ring);

#endif
