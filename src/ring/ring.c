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

static bool allocate_division(pnr_ring_division *d)
{
    const size_t depth = d->shape.depth;
    size_t i = 0;

    d->n_windows =
        d->shape.n_periods + (d->shape.n_behind + d->shape.n_samples - 1) / d->shape.n_samples;
    d->views = calloc(depth, sizeof *d->views);
    d->lost = calloc(d->n_windows, sizeof *d->lost);
    d->losses = calloc(d->n_windows, sizeof *d->losses);
    while (d->views != NULL && i < depth && allocate_view(&d->shape, &d->views[i]))
        i++;
    return i == depth && d->lost != NULL && d->losses != NULL;
}

static void free_division(const pnr_ring_division *d)
{
    for (size_t i = 0; d->views != NULL && i < d->shape.depth; i++) {
        free(d->views[i].lost);
        free(d->views[i].ready_ns);
    }
    free(d->views);
    free(d->lost);
    free(d->losses);
}

static bool allocate(pnr_ring *ring)
{
    pnr_ring_division d = {.shape = ring->shape};
    const bool is_good = allocate_division(&d);

    ring->n_windows = d.n_windows;
    ring->lost = d.lost;
    ring->losses = d.losses;
    ring->views = d.views;
    if (!is_good || (ring->marks = calloc(ring->n_marks, sizeof *ring->marks)) == NULL)
        return false;
    /* Writes to the pages of the marks now, so that no page fault occurs later. */
    memset(ring->marks, 0xff, ring->n_marks * sizeof *ring->marks);
    return true;
}

static int check_shape(const pnr_ring_shape *shape, size_t dwell, pnr_error *error)
{
    if (shape->depth >= 1 && shape->max_dwells >= 1 && shape->capacity >= shape->n_behind &&
        (shape->capacity - shape->n_behind) / dwell >= shape->max_dwells + 1)
        return PNR_OK;
    return pnr_refuse(error, "ring of %zu samples: %zu dwells of %zu samples need at least %zu",
                      shape->capacity, shape->max_dwells + 1, dwell,
                      (shape->max_dwells + 1) * dwell + shape->n_behind);
}

int pnr_ring_create(const pnr_ring_shape *shape, pnr_ring **out, pnr_error *error)
{
    const size_t dwell = shape->n_samples * shape->n_periods;

    const int code = check_shape(shape, dwell, error);

    *out = NULL;
    if (code != PNR_OK)
        return code;

    pnr_ring *ring = aligned_alloc(PNR_RING_CACHE_LINE, sizeof *ring);

    if (ring == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "ring: out of memory");
    memset(ring, 0, sizeof *ring);
    ring->shape = *shape;
    ring->dwell = dwell;
    ring->reach = dwell + shape->n_behind;
    ring->next = shape->first_window;
    ring->passed = shape->first_sample;
    atomic_store(&ring->head, shape->first_sample);
    atomic_store(&ring->tail, shape->first_sample);
    if (shape->end == 0)
        ring->shape.end = UINT64_MAX;
    ring->reader = shape->reader != NULL ? shape->reader : &ring->own_reader;
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
    free_division(&(pnr_ring_division){
        .shape = ring->shape, .lost = ring->lost, .losses = ring->losses, .views = ring->views});
    free(ring->marks);
    free(ring);
}

int pnr_ring_prepare(const pnr_ring *ring, const pnr_ring_shape *shape, pnr_ring_division **out,
                     pnr_error *error)
{
    const size_t dwell = shape->n_samples * shape->n_periods;
    const size_t capacity = ring->shape.capacity;
    pnr_ring_division *d = calloc(1, sizeof *d);
    int code;

    *out = NULL;
    if (d == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "ring: out of memory");
    d->shape = *shape;
    d->shape.capacity = capacity;
    if ((code = check_shape(&d->shape, dwell, error)) == PNR_OK &&
        2 * (capacity / dwell) > ring->n_marks)
        code = pnr_refuse(error,
                          "ring of %zu samples: it was made for dwells of at least %zu samples, "
                          "and these have %zu: this needs a new start",
                          capacity, 2 * capacity / ring->n_marks + 1, dwell);
    if (code == PNR_OK && !allocate_division(d))
        code = pnr_error_set(error, PNR_ENOMEMORY, "ring: out of memory");
    if (code == PNR_OK)
        *out = d;
    else
        pnr_ring_division_destroy(d);
    return code;
}

void pnr_ring_division_destroy(pnr_ring_division *division)
{
    if (division != NULL)
        free_division(division);
    free(division);
}
