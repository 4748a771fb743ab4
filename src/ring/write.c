/* SPDX-License-Identifier: MIT */
/* The functions of the ring that the acquisition thread calls. */
#include "ring/state.h"

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

void pnr_ring_commit(pnr_ring *ring, size_t n_samples)
{
    if (n_samples > 0)
        pnr_ring_add_mark(ring, n_samples, PNR_RING_HELD);
}

void pnr_ring_skip(pnr_ring *ring, uint64_t n_samples, pnr_lost_reason reason)
{
    ring->unmarked[reason] += n_samples;
    (void)pnr_ring_mark_losses(ring);
}

int pnr_ring_wait_space(pnr_ring *ring, uint64_t patience_ns)
{
    return pnr_ring_sleep(ring, &ring->writer, pnr_ring_has_space, patience_ns);
}

void pnr_ring_end(pnr_ring *ring)
{
    /* After the reader has seen `ended`, it adds the marks of the unmarked losses. */
    atomic_store(&ring->ended, true);
    pnr_ring_wake(&ring->reader);
}

bool pnr_ring_is_half_full(const pnr_ring *ring)
{
    return 2 * (atomic_load(&ring->head) - atomic_load(&ring->tail)) >= ring->shape.capacity;
}

uint64_t pnr_ring_positions(const pnr_ring *ring)
{
    return atomic_load(&ring->head);
}
