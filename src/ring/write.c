/* SPDX-License-Identifier: MIT */
/* The functions of the ring that the acquisition thread calls, and those that read how much of the
 * ring is in use. */
#include "ring/state.h"

#include <inttypes.h>

int pnr_ring_reserve(pnr_ring *ring, size_t max_samples, void **data, size_t *n_samples)
{
    if (!pnr_ring_mark_losses(ring) || !pnr_ring_has_space(ring))
        return PNR_EAGAIN;

    const uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    const uint64_t space = atomic_load(&ring->tail) + ring->shape.capacity - head;
    const size_t at = (size_t)(head % ring->shape.capacity);
    size_t n = ring->shape.capacity - at;

    n = n < max_samples ? n : max_samples;
    *n_samples = n < space ? n : (size_t)space;
    *data = (char *)ring->shape.memory + at * ring->shape.sample_bytes;
    return PNR_OK;
}

static bool is_losing(const pnr_ring *ring)
{
    return ring->losing.n[PNR_LOST_SOURCE] + ring->losing.n[PNR_LOST_RING_FULL] > 0;
}

/* Adds lost positions to the present loss. Posts an event if the loss begins. */
static void add_loss(pnr_ring *ring, uint64_t n_samples, pnr_lost_reason reason)
{
    const bool begins = !is_losing(ring);

    if (begins && n_samples > 0) {
        ring->losing_from = atomic_load_explicit(&ring->head, memory_order_relaxed);
        for (int i = 0; i < PNR_LOST_COUNT; i++)
            ring->losing_from += ring->unmarked[i];
        pnr_event_post(ring->shape.events, PNR_EVENT_LOSS_BEGINS, ring->losing_from,
                       reason == PNR_LOST_SOURCE ? (double)n_samples : 0,
                       reason == PNR_LOST_RING_FULL ? (double)n_samples : 0,
                       "loss begins at sample %" PRIu64 ": %" PRIu64 " samples %s",
                       ring->losing_from, n_samples,
                       reason == PNR_LOST_SOURCE ? "are missing from the source"
                                                 : "find the ring full");
    }
    ring->losing.n[reason] += n_samples;
}

/* Posts an event at the end of the present loss, if there is one. */
static void end_loss(pnr_ring *ring)
{
    const uint64_t source = ring->losing.n[PNR_LOST_SOURCE];
    const uint64_t full = ring->losing.n[PNR_LOST_RING_FULL];

    if (!is_losing(ring))
        return;
    pnr_event_post(ring->shape.events, PNR_EVENT_LOSS_ENDS, ring->losing_from + source + full,
                   (double)source, (double)full,
                   "loss ends: %" PRIu64 " samples lost from sample %" PRIu64 " on: %" PRIu64
                   " missing from the source, %" PRIu64 " because the ring was full",
                   source + full, ring->losing_from, source, full);
    ring->losing = (pnr_ring_losses){0};
}

/* Returns the number of positions of the memory that are in use. After a loss, head may be greater
 * than tail + capacity. */
static uint64_t taken_of(const pnr_ring *ring)
{
    const uint64_t tail = atomic_load(&ring->tail), n = atomic_load(&ring->head) - tail;

    return n < ring->shape.capacity ? n : ring->shape.capacity;
}

void pnr_ring_commit(pnr_ring *ring, size_t n_samples)
{
    const uint64_t taken = taken_of(ring) + n_samples;

    if (n_samples == 0)
        return;
    if (taken > atomic_load_explicit(&ring->fullest, memory_order_relaxed))
        atomic_store_explicit(&ring->fullest, taken, memory_order_relaxed);
    end_loss(ring);
    pnr_ring_add_mark(ring, n_samples, PNR_RING_HELD);
}

void pnr_ring_skip(pnr_ring *ring, uint64_t n_samples, pnr_lost_reason reason)
{
    add_loss(ring, n_samples, reason);
    ring->unmarked[reason] += n_samples;
    (void)pnr_ring_mark_losses(ring);
}

static bool has_space(void *of)
{
    return pnr_ring_has_space(of);
}

int pnr_ring_wait_space(pnr_ring *ring, uint64_t patience_ns)
{
    return has_space(ring) || pnr_bell_wait(&ring->writer, has_space, ring, 0, patience_ns)
               ? PNR_OK
               : PNR_EAGAIN;
}

void pnr_ring_end(pnr_ring *ring)
{
    end_loss(ring);
    /* As soon as the reader sees `ended`, it adds the marks of the unmarked losses. */
    atomic_store(&ring->ended, true);
    pnr_bell_ring(ring->reader);
}

bool pnr_ring_is_half_full(const pnr_ring *ring)
{
    return 2 * taken_of(ring) >= ring->shape.capacity;
}

double pnr_ring_fill(pnr_ring *ring)
{
    const uint64_t now = taken_of(ring), fullest = atomic_exchange(&ring->fullest, 0);

    return (double)(fullest > now ? fullest : now) / (double)ring->shape.capacity;
}

uint64_t pnr_ring_positions(const pnr_ring *ring)
{
    const uint64_t head = atomic_load(&ring->head);

    return (head < ring->shape.end ? head : ring->shape.end) - ring->shape.first_sample;
}
