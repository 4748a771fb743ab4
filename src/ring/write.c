/* SPDX-License-Identifier: MIT */
/* The ring: one writer, one reader, sample memory addressed by absolute index, and a queue of marks
 * that say which positions hold samples and which are lost. Here its life and the writer. */
#include "ring/state.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- sleeping --- */

void pnr_ring_wake(pnr_ring_sleeper *sleeper)
{
    if (atomic_load(&sleeper->is_asleep)) {
        pthread_mutex_lock(&sleeper->lock);
        pthread_cond_signal(&sleeper->changed);
        pthread_mutex_unlock(&sleeper->lock);
    }
}

int pnr_ring_sleep(pnr_ring *ring, pnr_ring_sleeper *sleeper,
                   bool (*is_ready)(const pnr_ring *ring), uint64_t patience_ns)
{
    if (is_ready(ring))
        return PNR_OK;

    const uint64_t until = pnr_clock_ns() + patience_ns;
    const struct timespec time = {.tv_sec = (time_t)(until / PNR_NS_PER_S),
                                  .tv_nsec = (long)(until % PNR_NS_PER_S)};
    int timed_out = 0;

    pthread_mutex_lock(&sleeper->lock);
    atomic_store(&sleeper->is_asleep, true); /* before the look: what comes after it, wakes */
    while (!is_ready(ring) && !timed_out)
        timed_out = pthread_cond_timedwait(&sleeper->changed, &sleeper->lock, &time);
    atomic_store(&sleeper->is_asleep, false);
    pthread_mutex_unlock(&sleeper->lock);
    return is_ready(ring) ? PNR_OK : PNR_EAGAIN;
}

static void sleeper_init(pnr_ring_sleeper *sleeper)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&sleeper->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sleeper->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void sleeper_clear(pnr_ring_sleeper *sleeper)
{
    pthread_cond_destroy(&sleeper->changed);
    pthread_mutex_destroy(&sleeper->lock);
}

/* --- the acquisition thread --- */

static bool has_mark_space(const pnr_ring *ring)
{
    return atomic_load(&ring->mark_head) - atomic_load(&ring->mark_tail) < ring->n_marks;
}

static void tell(pnr_ring *ring, uint64_t n_samples, int lost)
{
    const uint64_t m = atomic_load_explicit(&ring->mark_head, memory_order_relaxed);
    const uint64_t end = atomic_load_explicit(&ring->head, memory_order_relaxed) + n_samples;

    ring->marks[m % ring->n_marks] = (pnr_ring_mark){end, pnr_clock_ns(), lost};
    atomic_store(&ring->mark_head, m + 1);
    atomic_store(&ring->head, end);
    if (pnr_ring_has_work(ring))
        pnr_ring_wake(&ring->reader);
}

bool pnr_ring_tell_unmarked(pnr_ring *ring)
{
    for (int reason = 0; reason < PNR_LOST_COUNT; reason++) {
        if (ring->unmarked[reason] == 0)
            continue;
        if (!has_mark_space(ring))
            return false;
        tell(ring, ring->unmarked[reason], reason);
        ring->unmarked[reason] = 0;
    }
    return true;
}

bool pnr_ring_has_space(const pnr_ring *ring)
{
    return atomic_load(&ring->head) < atomic_load(&ring->tail) + ring->shape.capacity &&
           has_mark_space(ring);
}

int pnr_ring_reserve(pnr_ring *ring, size_t max_samples, void **data, size_t *n_samples)
{
    if (!pnr_ring_tell_unmarked(ring) || !pnr_ring_has_space(ring))
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
        tell(ring, n_samples, PNR_RING_HELD);
}

void pnr_ring_skip(pnr_ring *ring, uint64_t n_samples, pnr_lost_reason reason)
{
    ring->unmarked[reason] += n_samples;
    (void)pnr_ring_tell_unmarked(ring);
}

int pnr_ring_wait_space(pnr_ring *ring, uint64_t patience_ns)
{
    return pnr_ring_sleep(ring, &ring->writer, pnr_ring_has_space, patience_ns);
}

void pnr_ring_end(pnr_ring *ring)
{
    /* What is still unmarked is read by the other side after it has seen `ended`. */
    atomic_store(&ring->ended, true);
    pnr_ring_wake(&ring->reader);
}

uint64_t pnr_ring_positions(const pnr_ring *ring)
{
    return atomic_load(&ring->head);
}

/* --- life --- */

int pnr_ring_create(const pnr_ring_shape *shape, pnr_ring **out, pnr_error *error)
{
    const size_t dwell = shape->n_samples * shape->n_periods;

    *out = NULL;
    if (shape->depth < 1 || shape->max_dwells < 1 || shape->capacity < shape->n_behind ||
        (shape->capacity - shape->n_behind) / dwell < shape->max_dwells + 1)
        return pnr_error_set(error, PNR_ECONFIG,
                             "ring of %zu samples: %zu dwells of %zu samples need at least %zu",
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
    sleeper_init(&ring->reader);
    sleeper_init(&ring->writer);
    ring->n_marks = 4 * (shape->capacity / dwell);
    if (ring->n_marks < PNR_RING_MIN_MARKS)
        ring->n_marks = PNR_RING_MIN_MARKS;
    ring->marks = calloc(ring->n_marks, sizeof *ring->marks);
    ring->views = calloc(shape->depth, sizeof *ring->views);
    ring->lost = calloc(ring->n_windows, sizeof *ring->lost);
    ring->losses = calloc(ring->n_windows, sizeof *ring->losses);
    ring->runs = calloc(PNR_RING_RUNS, sizeof *ring->runs);
    if (ring->marks == NULL || ring->views == NULL || ring->lost == NULL || ring->losses == NULL ||
        ring->runs == NULL)
        goto fail;
    for (size_t i = 0; i < shape->depth; i++) {
        pnr_ring_view *v = &ring->views[i];

        v->lost = calloc(shape->max_dwells * shape->n_periods, sizeof *v->lost);
        v->ready_ns = calloc(shape->max_dwells, sizeof *v->ready_ns);
        v->runs = calloc(PNR_RING_VIEW_RUNS, sizeof *v->runs);
        if (v->lost == NULL || v->ready_ns == NULL || v->runs == NULL)
            goto fail;
    }
    /* Its pages are there before the first sample comes. */
    memset(ring->marks, 0xff, ring->n_marks * sizeof *ring->marks);
    *out = ring;
    return PNR_OK;
fail:
    pnr_ring_destroy(ring);
    return pnr_error_set(error, PNR_ENOMEMORY, "ring: out of memory");
}

void pnr_ring_destroy(pnr_ring *ring)
{
    if (ring == NULL)
        return;
    for (size_t i = 0; ring->views != NULL && i < ring->shape.depth; i++) {
        free(ring->views[i].lost);
        free(ring->views[i].ready_ns);
        free(ring->views[i].runs);
    }
    free(ring->views);
    free(ring->lost);
    free(ring->losses);
    free(ring->runs);
    free(ring->marks);
    sleeper_clear(&ring->reader);
    sleeper_clear(&ring->writer);
    free(ring);
}
