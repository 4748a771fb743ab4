/* SPDX-License-Identifier: MIT */
/* Creates and destroys the ring. */
#include "ring/state.h"

#include <stdlib.h>
#include <string.h>

static bool allocate_view(const pnr_ring_shape *shape, pnr_ring_view *v)
{
    v->lost = calloc(shape->max_dwells * shape->n_periods, sizeof *v->lost);
    v->ready_ns = calloc(shape->max_dwells, sizeof *v->ready_ns);
    return v->lost != NULL && v->ready_ns != NULL;
}

static bool allocate(pnr_ring *ring)
{
    const size_t depth = ring->shape.depth;
    size_t i = 0;

    ring->marks = calloc(ring->n_marks, sizeof *ring->marks);
    ring->views = calloc(depth, sizeof *ring->views);
    ring->lost = calloc(ring->n_windows, sizeof *ring->lost);
    ring->losses = calloc(ring->n_windows, sizeof *ring->losses);
    while (ring->views != NULL && i < depth && allocate_view(&ring->shape, &ring->views[i]))
        i++;
    if (i < depth || ring->marks == NULL || ring->lost == NULL || ring->losses == NULL)
        return false;
    /* Touches the pages of the marks before the first sample arrives. */
    memset(ring->marks, 0xff, ring->n_marks * sizeof *ring->marks);
    return true;
}

int pnr_ring_create(const pnr_ring_shape *shape, pnr_ring **out, pnr_error *error)
{
    const size_t dwell = shape->n_samples * shape->n_periods;

    *out = NULL;
    if (shape->depth < 1 || shape->max_dwells < 1 || shape->capacity < shape->n_behind ||
        (shape->capacity - shape->n_behind) / dwell < shape->max_dwells + 1)
        return pnr_refuse(error, "ring of %zu samples: %zu dwells of %zu samples need at least %zu",
                          shape->capacity, shape->max_dwells + 1, dwell,
                          (shape->max_dwells + 1) * dwell + shape->n_behind);

    pnr_ring *ring = aligned_alloc(PNR_RING_CACHE_LINE, sizeof *ring);

    if (ring == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "ring: out of memory");
    memset(ring, 0, sizeof *ring);
    ring->shape = *shape;
    ring->dwell = dwell;
    ring->reach = dwell + shape->n_behind;
    ring->n_windows =
        shape->n_periods + (shape->n_behind + shape->n_samples - 1) / shape->n_samples;
    ring->next = shape->first_window;
    ring->passed = shape->first_sample;
    atomic_store(&ring->head, shape->first_sample);
    atomic_store(&ring->tail, shape->first_sample);
    if (shape->end == 0)
        ring->shape.end = UINT64_MAX;
    pnr_ring_sleeper_init(&ring->reader);
    pnr_ring_sleeper_init(&ring->writer);
    ring->n_marks = 4 * (shape->capacity / dwell);
    if (ring->n_marks < PNR_RING_MIN_MARKS)
        ring->n_marks = PNR_RING_MIN_MARKS;
    if (!allocate(ring)) {
        pnr_ring_destroy(ring);
        return pnr_error_set(error, PNR_ENOMEMORY, "ring: out of memory");
    }
    *out = ring;
    return PNR_OK;
}

void pnr_ring_destroy(pnr_ring *ring)
{
    if (ring == NULL)
        return;
    for (size_t i = 0; ring->views != NULL && i < ring->shape.depth; i++) {
        free(ring->views[i].lost);
        free(ring->views[i].ready_ns);
    }
    free(ring->views);
    free(ring->lost);
    free(ring->losses);
    free(ring->marks);
    pnr_ring_sleeper_clear(&ring->reader);
    pnr_ring_sleeper_clear(&ring->writer);
    free(ring);
}
