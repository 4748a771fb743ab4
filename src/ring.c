/* SPDX-License-Identifier: MIT */
/* The ring: one writer, one reader, sample memory addressed by absolute index, and a queue of marks
 * that say which positions hold samples and which are lost. */
#include "ring.h"

#include "clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What lies between the mark before and this one: samples, or a run that is lost. */
typedef struct mark {
    uint64_t end;     /* position after the last one */
    uint64_t time_ns; /* CLOCK_MONOTONIC of the commit */
    int lost;         /* a pnr_lost_reason, or HELD */
} mark;

enum { HELD = -1, MARKS_LOG2 = 14, N_MARKS = 1 << MARKS_LOG2 };

typedef struct view {
    uint64_t first;     /* position of its first sample */
    uint32_t *lost;     /* [max_dwells * n_periods] */
    uint64_t *ready_ns; /* [max_dwells] */
} view;

/*
 * The writer stores a sample at memory[position mod capacity] only while position < tail +
 * capacity. A lost position needs no memory, so head may run ahead of that; the reader then takes
 * no view that does not lie within [tail, tail + capacity), and zeroes the lost positions inside
 * the views it takes.
 */
struct pnr_ring {
    pnr_ring_shape shape;
    uint64_t dwell; /* samples a dwell */
    mark *marks;    /* [N_MARKS], single writer, single reader */
    _Atomic uint64_t mark_head, mark_tail;
    _Atomic uint64_t head; /* positions told so far */
    _Atomic uint64_t tail; /* memory before this position is free */
    _Atomic bool ended;

    /* the writer's */
    uint64_t unmarked[PNR_LOST_COUNT]; /* lost, but the queue of marks was full */

    /* the reader's */
    uint64_t next; /* where the next dwell starts */
    uint64_t
        passed;     /* positions whose marks are behind us; inside the next dwell or at its start */
    uint32_t *lost; /* [n_periods] of the next dwell, as far as passed */
    uint64_t ready_ns; /* when the position before `passed` was told */
    uint64_t lost_before;
    view *views; /* [depth], a queue */
    size_t first_view, n_views;
    pnr_account account; /* the ring's part */

    pthread_mutex_t lock; /* only for sleeping */
    pthread_cond_t changed;
    _Atomic int sleepers;
};

/* --- sleeping --- */

static void wake(pnr_ring *ring)
{
    if (atomic_load(&ring->sleepers) > 0) {
        pthread_mutex_lock(&ring->lock);
        pthread_cond_broadcast(&ring->changed);
        pthread_mutex_unlock(&ring->lock);
    }
}

static int sleep_until(pnr_ring *ring, bool (*is_ready)(const pnr_ring *), uint64_t patience_ns)
{
    if (is_ready(ring))
        return PNR_OK;

    const uint64_t until = pnr_clock_ns() + patience_ns;
    const struct timespec time = {.tv_sec = (time_t)(until / PNR_NS_PER_S),
                                  .tv_nsec = (long)(until % PNR_NS_PER_S)};
    int timed_out = 0;

    pthread_mutex_lock(&ring->lock);
    atomic_fetch_add(&ring->sleepers, 1);
    while (!is_ready(ring) && !timed_out)
        timed_out = pthread_cond_timedwait(&ring->changed, &ring->lock, &time);
    atomic_fetch_sub(&ring->sleepers, 1);
    pthread_mutex_unlock(&ring->lock);
    return is_ready(ring) ? PNR_OK : PNR_EAGAIN;
}

/* --- the acquisition thread --- */

static bool has_mark_space(const pnr_ring *ring)
{
    return atomic_load(&ring->mark_head) - atomic_load(&ring->mark_tail) < N_MARKS;
}

static void tell(pnr_ring *ring, uint64_t n_samples, int lost)
{
    const uint64_t m = atomic_load_explicit(&ring->mark_head, memory_order_relaxed);
    const uint64_t end = atomic_load_explicit(&ring->head, memory_order_relaxed) + n_samples;

    ring->marks[m % N_MARKS] = (mark){end, pnr_clock_ns(), lost};
    atomic_store(&ring->mark_head, m + 1);
    atomic_store(&ring->head, end);
    wake(ring);
}

/* Losses that found the queue of marks full are told as soon as there is room. */
static bool tell_unmarked(pnr_ring *ring)
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

static bool has_space(const pnr_ring *ring)
{
    return atomic_load(&ring->head) < atomic_load(&ring->tail) + ring->shape.capacity &&
           has_mark_space(ring);
}

int pnr_ring_reserve(pnr_ring *ring, size_t max_samples, void **data, size_t *n_samples)
{
    if (!tell_unmarked(ring) || !has_space(ring))
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
        tell(ring, n_samples, HELD);
}

void pnr_ring_skip(pnr_ring *ring, uint64_t n_samples, pnr_lost_reason reason)
{
    ring->unmarked[reason] += n_samples;
    (void)tell_unmarked(ring);
}

int pnr_ring_wait_space(pnr_ring *ring, uint64_t patience_ns)
{
    return sleep_until(ring, has_space, patience_ns);
}

void pnr_ring_end(pnr_ring *ring)
{
    /* What is still unmarked is read by the other side after it has seen `ended`. */
    atomic_store(&ring->ended, true);
    wake(ring);
}

/* --- the processing thread --- */

/* Also when many marks wait, so that they are passed before the dwell is whole: a dwell may have
 * any number. */
static bool has_work(const pnr_ring *ring)
{
    const uint64_t head = atomic_load(&ring->head);

    return atomic_load(&ring->ended) || head >= ring->next + ring->dwell ||
           (ring->passed < ring->next && head > ring->passed) ||
           atomic_load(&ring->mark_head) - atomic_load(&ring->mark_tail) > N_MARKS / 2;
}

/* Zeroes positions [first, end), all within one view. */
static void zero(pnr_ring *ring, uint64_t first, uint64_t end)
{
    const pnr_ring_shape *shape = &ring->shape;

    while (first < end) {
        const size_t at = (size_t)(first % shape->capacity);
        const size_t room = shape->capacity - at;
        const size_t n = end - first < room ? (size_t)(end - first) : room;

        memset((char *)shape->memory + at * shape->sample_bytes, (int)shape->zero_byte,
               n * shape->sample_bytes);
        first += n;
    }
}

/* Walks the marks over [passed, end), which has been told. Returns the lost positions in it; zeroes
 * them in memory when they lie in a view. */
static uint64_t walk(pnr_ring *ring, uint64_t end, bool is_view)
{
    uint64_t lost = 0;

    while (ring->passed < end) {
        const uint64_t m = atomic_load_explicit(&ring->mark_tail, memory_order_relaxed);
        const mark *at = &ring->marks[m % N_MARKS];
        const uint64_t to = at->end < end ? at->end : end;

        if (at->lost != HELD) {
            lost += to - ring->passed;
            *(at->lost == PNR_LOST_SOURCE ? &ring->account.lost_source
                                          : &ring->account.lost_ring_full) += to - ring->passed;
            if (is_view)
                zero(ring, ring->passed, to);
        }
        ring->ready_ns = at->time_ns;
        ring->passed = to;
        if (to == at->end) {
            atomic_store(&ring->mark_tail, m + 1);
            wake(ring);
        }
    }
    return lost;
}

/* Where the run ends that the reader stands in, when it is a lost one; else where the reader
 * stands. */
static uint64_t end_of_loss(const pnr_ring *ring)
{
    const uint64_t m = atomic_load_explicit(&ring->mark_tail, memory_order_relaxed);

    if (m == atomic_load(&ring->mark_head) || ring->marks[m % N_MARKS].lost == HELD)
        return ring->passed;
    return ring->marks[m % N_MARKS].end;
}

/* Positions that no window will see: before the first window, after the last whole dwell. */
static void pass_by(pnr_ring *ring, uint64_t end, uint64_t *skipped)
{
    const uint64_t n = end - ring->passed;
    const uint64_t lost = walk(ring, end, false);

    *skipped += n - lost;
    ring->account.positions += n;
    ring->lost_before += lost;
}

/* Counts n_dwells dwells as refused: nearly nothing of them is there. */
static void refuse(pnr_ring *ring, uint64_t n_dwells, uint64_t lost)
{
    const uint64_t windows = n_dwells * ring->shape.n_periods;

    ring->account.positions += n_dwells * ring->dwell;
    ring->account.skipped_refused += n_dwells * ring->dwell - lost;
    ring->account.windows += windows;
    ring->account.refused_too_much_lost += windows;
    ring->lost_before += n_dwells * ring->dwell;
}

/* Dwells that lie wholly in one lost run, however long, in one step. */
static void refuse_lost_run(pnr_ring *ring)
{
    if (ring->passed != ring->next)
        return;

    const uint64_t n_dwells = (end_of_loss(ring) - ring->next) / ring->dwell;

    if (n_dwells > 0) {
        ring->next += n_dwells * ring->dwell;
        refuse(ring, n_dwells, walk(ring, ring->next, false));
    }
}

/* Walks on inside the next dwell as far as head; true when the dwell is whole. */
static bool build_dwell(pnr_ring *ring, uint64_t head)
{
    const size_t n_samples = ring->shape.n_samples;
    const uint64_t dwell_end = ring->next + ring->dwell;
    const uint64_t told = head < dwell_end ? head : dwell_end;

    while (ring->passed < told) {
        const size_t p = (size_t)((ring->passed - ring->next) / n_samples);
        const uint64_t window_end = ring->next + (p + 1) * n_samples;

        ring->lost[p] += (uint32_t)walk(ring, window_end < told ? window_end : told, true);
    }
    return ring->passed == dwell_end;
}

static uint64_t lost_in_dwell(const pnr_ring *ring)
{
    uint64_t lost = 0;

    for (size_t p = 0; p < ring->shape.n_periods; p++)
        lost += ring->lost[p];
    return lost;
}

/* The whole dwell that was built becomes dwell d of view v; false when it is refused instead. */
static bool take_dwell(pnr_ring *ring, const view *v, size_t d)
{
    const pnr_ring_shape *shape = &ring->shape;
    bool is_of_use = false;

    for (size_t p = 0; p < shape->n_periods; p++)
        is_of_use |= ring->lost[p] <= shape->n_samples / 2;
    if (is_of_use) {
        memcpy(v->lost + d * shape->n_periods, ring->lost, shape->n_periods * sizeof *v->lost);
        v->ready_ns[d] = ring->ready_ns;
    } else {
        refuse(ring, 1, lost_in_dwell(ring));
    }
    memset(ring->lost, 0, shape->n_periods * sizeof *ring->lost);
    ring->next += ring->dwell;
    return is_of_use;
}

static void free_memory(pnr_ring *ring)
{
    atomic_store(&ring->tail, ring->n_views > 0 ? ring->views[ring->first_view].first : ring->next);
    wake(ring);
}

/* The rest of an ended stream: it fills no dwell. */
static void finish(pnr_ring *ring, uint64_t head)
{
    const uint64_t walked = ring->passed - ring->next;

    ring->account.positions += walked;
    ring->account.skipped_tail += walked - lost_in_dwell(ring);
    memset(ring->lost, 0, ring->shape.n_periods * sizeof *ring->lost);
    pass_by(ring, head, &ring->account.skipped_tail);
    ring->next = head; /* asked again, nothing is left */
}

/* May the next dwell be walked? Its lost positions are zeroed, so its memory must be the reader's;
 * a view holds what is consecutive. */
static bool is_ours(const pnr_ring *ring, size_t n_in_view)
{
    const uint64_t limit =
        atomic_load_explicit(&ring->tail, memory_order_relaxed) + ring->shape.capacity;

    return ring->n_views + n_in_view == 0 || ring->next + ring->dwell <= limit;
}

/* Whole dwells into v, at most max_dwells; returns how many. */
static size_t fill_view(pnr_ring *ring, view *v, size_t max_dwells, uint64_t head,
                        uint64_t *lost_before)
{
    size_t n = 0;

    while (n < max_dwells && is_ours(ring, n)) {
        if (n == 0) {
            refuse_lost_run(ring);
            if (ring->n_views == 0)
                free_memory(ring);
            if (!is_ours(ring, n))
                break; /* beyond the loss the memory is still lent */
            v->first = ring->next;
        }
        if (!build_dwell(ring, head))
            break;
        if (!take_dwell(ring, v, n)) {
            if (n > 0)
                break; /* the view ends before the refused dwell */
            continue;
        }
        if (n++ == 0) {
            *lost_before = ring->lost_before;
            ring->lost_before = 0;
        }
    }
    return n;
}

int pnr_ring_acquire(pnr_ring *ring, size_t max_dwells, pnr_windows *out)
{
    const pnr_ring_shape *shape = &ring->shape;
    const bool ended = atomic_load(&ring->ended);        /* read before head, which is final then */
    const bool all_told = !ended || tell_unmarked(ring); /* after the end the writer is gone */
    const uint64_t head = atomic_load(&ring->head);
    uint64_t lost_before = 0;

    if (ring->n_views == shape->depth)
        return PNR_EAGAIN;
    if (ring->passed < ring->next) {
        pass_by(ring, head < ring->next ? head : ring->next, &ring->account.skipped_alignment);
        atomic_store(&ring->tail, ring->passed);
        wake(ring);
        if (ring->passed < ring->next)
            return ended && all_told ? PNR_EEND : PNR_EAGAIN;
    }

    view *v = &ring->views[(ring->first_view + ring->n_views) % shape->depth];
    const size_t n =
        fill_view(ring, v, max_dwells < shape->max_dwells ? max_dwells : shape->max_dwells, head,
                  &lost_before);

    if (n == 0) {
        if (!ended || !all_told || ring->next + ring->dwell <= head)
            return PNR_EAGAIN;
        finish(ring, head);
        return PNR_EEND;
    }

    const size_t at = (size_t)(v->first % shape->capacity);
    const size_t n_samples = n * (size_t)ring->dwell;
    const size_t before_wrap = shape->capacity - at < n_samples ? shape->capacity - at : n_samples;

    ring->n_views++;
    *out = (pnr_windows){
        .spans = {{(const char *)shape->memory + at * shape->sample_bytes, before_wrap},
                  {shape->memory, n_samples - before_wrap}},
        .first_sample = v->first,
        .n_dwells = n,
        .n_periods = shape->n_periods,
        .lost = v->lost,
        .lost_before = lost_before,
        .ready_ns = v->ready_ns,
    };
    return PNR_OK;
}

void pnr_ring_release(pnr_ring *ring)
{
    if (ring->n_views == 0)
        return;
    ring->first_view = (ring->first_view + 1) % ring->shape.depth;
    ring->n_views--;
    free_memory(ring);
}

int pnr_ring_wait(pnr_ring *ring, uint64_t patience_ns)
{
    return sleep_until(ring, has_work, patience_ns);
}

void pnr_ring_account(const pnr_ring *ring, pnr_account *account)
{
    account->positions += ring->account.positions;
    account->skipped_alignment += ring->account.skipped_alignment;
    account->skipped_tail += ring->account.skipped_tail;
    account->skipped_refused += ring->account.skipped_refused;
    account->lost_source += ring->account.lost_source;
    account->lost_ring_full += ring->account.lost_ring_full;
    account->windows += ring->account.windows;
    account->refused_too_much_lost += ring->account.refused_too_much_lost;
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
    if (shape->depth < 1 || shape->max_dwells < 1 ||
        shape->capacity / dwell < shape->max_dwells + 1)
        return pnr_error_set(
            error, PNR_ECONFIG, "ring of %zu samples: %zu dwells of %zu samples need at least %zu",
            shape->capacity, shape->max_dwells + 1, dwell, (shape->max_dwells + 1) * dwell);

    pnr_ring *ring = calloc(1, sizeof *ring);
    pthread_condattr_t monotonic;

    if (ring == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "ring: out of memory");
    ring->shape = *shape;
    ring->dwell = dwell;
    ring->next = shape->first_window;
    pthread_mutex_init(&ring->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&ring->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    ring->marks = calloc(N_MARKS, sizeof *ring->marks);
    ring->views = calloc(shape->depth, sizeof *ring->views);
    ring->lost = calloc(shape->n_periods, sizeof *ring->lost);
    if (ring->marks == NULL || ring->views == NULL || ring->lost == NULL)
        goto fail;
    for (size_t i = 0; i < shape->depth; i++) {
        view *v = &ring->views[i];

        v->lost = calloc(shape->max_dwells * shape->n_periods, sizeof *v->lost);
        v->ready_ns = calloc(shape->max_dwells, sizeof *v->ready_ns);
        if (v->lost == NULL || v->ready_ns == NULL)
            goto fail;
    }
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
    }
    free(ring->views);
    free(ring->lost);
    free(ring->marks);
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}
