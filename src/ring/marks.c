/* SPDX-License-Identifier: MIT */
/* The queue of marks from the writer of the ring to the reader. A mark describes a run of
 * positions: all have samples, or all are lost. */
#include "ring/state.h"

#include "base/clock.h"

static bool has_mark_space(const pnr_ring *ring)
{
    return atomic_load(&ring->mark_head) - atomic_load(&ring->mark_tail) < ring->n_marks;
}

/* The reader also has work if more than half of the queue of marks is used. One dwell can have more
 * marks than the queue holds, so the reader must empty the queue before the dwell is complete. */
bool pnr_ring_has_work(const pnr_ring *ring)
{
    return atomic_load(&ring->ended) || atomic_load(&ring->head) >= atomic_load(&ring->wanted) ||
           atomic_load(&ring->mark_head) - atomic_load(&ring->mark_tail) > ring->n_marks / 2;
}

void pnr_ring_add_mark(pnr_ring *ring, uint64_t n_samples, int lost)
{
    const uint64_t m = atomic_load_explicit(&ring->mark_head, memory_order_relaxed);
    const uint64_t end = atomic_load_explicit(&ring->head, memory_order_relaxed) + n_samples;

    ring->marks[m % ring->n_marks] = (pnr_ring_mark){end, pnr_clock_ns(), lost};
    atomic_store(&ring->mark_head, m + 1);
    atomic_store(&ring->head, end);
    if (pnr_ring_has_work(ring))
        pnr_bell_ring(ring->reader);
}

bool pnr_ring_mark_losses(pnr_ring *ring)
{
    for (int reason = 0; reason < PNR_LOST_COUNT; reason++) {
        if (ring->unmarked[reason] == 0)
            continue;
        if (!has_mark_space(ring))
            return false;
        pnr_ring_add_mark(ring, ring->unmarked[reason], reason);
        ring->unmarked[reason] = 0;
    }
    return true;
}

bool pnr_ring_has_space(const pnr_ring *ring)
{
    return atomic_load(&ring->head) < atomic_load(&ring->tail) + ring->shape.capacity &&
           has_mark_space(ring);
}
