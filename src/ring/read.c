/* SPDX-License-Identifier: MIT */
/* The reader of the ring: builds dwells from marks and views from dwells. Refuses dwells that have
 * lost too many samples. */
#include "ring/state.h"

#include <string.h>

static void wake_writer(pnr_ring *ring)
{
    if (pnr_ring_has_space(ring))
        pnr_bell_ring(&ring->writer);
}

/* Zeroes positions [first, end), all within one view. */
static void clear_lost(pnr_ring *ring, uint64_t first, uint64_t end)
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

/* Appends the lost run [first, end) to a list. Joins it to the previous run if the two touch or the
 * list is full. */
static void note_run(pnr_lost_run *runs, size_t *n_runs, size_t most, uint64_t first, uint64_t end)
{
    pnr_lost_run *last = &runs[*n_runs > 0 ? *n_runs - 1 : 0];

    if (*n_runs > 0 && (last->first + last->count == first || *n_runs == most))
        last->count = end - last->first;
    else
        runs[(*n_runs)++] = (pnr_lost_run){first, end - first};
}

/* Frees the marks that have been read and that end before the next dwell. Keeps the marks of the
 * next dwell for pnr_ring_divide, unless they fill a quarter of the queue. */
static void free_marks(pnr_ring *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->mark_tail, memory_order_relaxed);
    const uint64_t before = tail;

    while (tail < ring->mark_next && (ring->marks[tail % ring->n_marks].end <= ring->next ||
                                      ring->mark_next - tail > ring->n_marks / 4)) {
        ring->mark_end = ring->marks[tail % ring->n_marks].end;
        tail++;
    }
    if (tail == before)
        return;
    atomic_store(&ring->mark_tail, tail);
    wake_writer(ring);
}

/* Reads the marks of the positions [passed, end) and adds their losses to *losses. `end` is at most
 * head. Returns the number of lost positions. If is_view, also lists the lost runs and zeroes their
 * samples. */
static uint64_t take_marks(pnr_ring *ring, uint64_t end, bool is_view, pnr_ring_losses *losses)
{
    uint64_t lost = 0;

    while (ring->passed < end) {
        const pnr_ring_mark *at = &ring->marks[ring->mark_next % ring->n_marks];
        const uint64_t to = at->end < end ? at->end : end;

        if (at->lost != PNR_RING_HELD) {
            lost += to - ring->passed;
            losses->n[at->lost] += to - ring->passed;
            if (is_view) {
                clear_lost(ring, ring->passed, to);
                note_run(ring->runs, &ring->n_runs, PNR_RING_RUNS, ring->passed - ring->next,
                         to - ring->next);
            }
        }
        ring->ready_ns = at->time_ns;
        ring->passed = to;
        if (to == at->end)
            ring->mark_next++;
    }
    free_marks(ring);
    return lost;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the end of the lost run at `passed`, or `passed` if there is no lost run. */
static uint64_t end_of_loss(const pnr_ring *ring)
{
    const pnr_ring_mark *at = &ring->marks[ring->mark_next % ring->n_marks];

    return ring->mark_next == atomic_load(&ring->mark_head) || at->lost == PNR_RING_HELD
               ? ring->passed
               : at->end;
}

/* Adds the losses to the account and sets them to zero. */
static void account_for(pnr_ring *ring, pnr_ring_losses *losses)
{
    ring->account.lost_source += losses->n[PNR_LOST_SOURCE];
    ring->account.lost_ring_full += losses->n[PNR_LOST_RING_FULL];
    *losses = (pnr_ring_losses){{0}};
}

/* Passes the positions up to `end`. They belong to no dwell: they are before the first window or
 * after the last complete dwell. Adds to *skipped the number of positions that are not lost. */
static void pass_by(pnr_ring *ring, uint64_t end, uint64_t *skipped)
{
    const uint64_t n = end - ring->passed;
    pnr_ring_losses losses = {{0}};
    const uint64_t lost = take_marks(ring, end, false, &losses);

    *skipped += n - lost;
    ring->account.positions += n;
    ring->lost_before += lost;
    account_for(ring, &losses);
}

/* Returns the number of lost samples of the first n_windows windows after ring->next. */
static uint64_t lost_in(const pnr_ring *ring, size_t n_windows)
{
    uint64_t lost = 0;

    for (size_t p = 0; p < n_windows; p++)
        lost += ring->lost[p];
    return lost;
}

/* Adds to *losses, by reason, the losses of the first n_windows windows after ring->next. Only
 * losses before ring->passed are known. */
static void add_losses(const pnr_ring *ring, size_t n_windows, pnr_ring_losses *losses)
{
    for (size_t p = 0; p < n_windows; p++)
        for (size_t reason = 0; reason < PNR_LOST_COUNT; reason++)
            losses->n[reason] += ring->losses[p].n[reason];
}

/* Returns how many windows of the next n_dwells dwells have an entry in ring->lost. */
static size_t windows_in(const pnr_ring *ring, uint64_t n_dwells)
{
    const uint64_t n = ring->shape.n_periods * n_dwells;

    return n < ring->n_windows ? (size_t)n : ring->n_windows;
}

/* Advances ring->next by n_dwells dwells. Keeps the losses of the windows after these dwells. */
static void leave_dwells(pnr_ring *ring, uint64_t n_dwells)
{
    const size_t n = windows_in(ring, n_dwells), n_left = ring->n_windows - n;
    const uint64_t n_samples = n_dwells * ring->dwell;
    size_t n_runs = 0;

    memmove(ring->lost, ring->lost + n, n_left * sizeof *ring->lost);
    memset(ring->lost + n_left, 0, n * sizeof *ring->lost);
    memmove(ring->losses, ring->losses + n, n_left * sizeof *ring->losses);
    memset(ring->losses + n_left, 0, n * sizeof *ring->losses);
    for (size_t i = 0; i < ring->n_runs; i++) {
        const uint64_t first = ring->runs[i].first, end = first + ring->runs[i].count;

        if (end > n_samples)
            note_run(ring->runs, &n_runs, PNR_RING_RUNS, first > n_samples ? first - n_samples : 0,
                     end - n_samples);
    }
    ring->n_runs = n_runs;
    ring->next += n_samples;
    free_marks(ring);
}

/* Refuses the next n_dwells dwells. They have `lost` lost positions. */
static void refuse_dwells(pnr_ring *ring, uint64_t n_dwells, uint64_t lost, pnr_ring_losses *losses)
{
    const uint64_t windows = n_dwells * ring->shape.n_periods;

    add_losses(ring, windows_in(ring, n_dwells), losses);
    ring->account.positions += n_dwells * ring->dwell;
    ring->account.skipped_refused += n_dwells * ring->dwell - lost;
    ring->account.windows += windows;
    ring->account.refused_too_much_lost += windows;
    account_for(ring, losses);
    ring->lost_before += n_dwells * ring->dwell;
    leave_dwells(ring, n_dwells);
}

/* Refuses all dwells that are entirely within one lost run, in one step. */
static void refuse_lost_run(pnr_ring *ring)
{
    const uint64_t lost_end = lesser(end_of_loss(ring), ring->shape.end);
    const uint64_t n_dwells = lost_end > ring->next ? (lost_end - ring->next) / ring->dwell : 0;
    const uint64_t end = ring->next + n_dwells * ring->dwell;
    pnr_ring_losses losses = {{0}};

    if (n_dwells == 0 || lost_in(ring, ring->n_windows) != ring->passed - ring->next)
        return;
    if (ring->passed < end)
        (void)take_marks(ring, end, false, &losses);
    refuse_dwells(ring, n_dwells, n_dwells * ring->dwell, &losses);
}

/* Reads the marks of the next dwell and of the n_behind samples after it, up to head. Returns true
 * if all these marks have been read. */
static bool build_dwell(pnr_ring *ring, uint64_t head)
{
    const size_t n_samples = ring->shape.n_samples;
    const uint64_t end = ring->next + ring->reach;
    const uint64_t until = head < end ? head : end;

    while (ring->passed < until) {
        const size_t p = (size_t)((ring->passed - ring->next) / n_samples);
        const uint64_t window_end = ring->next + (p + 1) * n_samples;

        ring->lost[p] += (uint32_t)take_marks(ring, window_end < until ? window_end : until, true,
                                              &ring->losses[p]);
    }
    return ring->passed == end;
}

/* True if at least one window of the dwell has at least half of its samples. */
static bool is_usable(const pnr_ring *ring)
{
    for (size_t p = 0; p < ring->shape.n_periods; p++)
        if (ring->lost[p] <= ring->shape.n_samples / 2)
            return true;
    return false;
}

/* Appends to the list of view v the lost runs of the n_samples positions after ring->next. at:
 * offset of ring->next in the view. */
static void copy_runs(const pnr_ring *ring, uint64_t n_samples, pnr_ring_view *v, uint64_t at)
{
    for (size_t i = 0; i < ring->n_runs && ring->runs[i].first < n_samples; i++) {
        const uint64_t first = ring->runs[i].first, end = first + ring->runs[i].count;

        note_run(v->runs, &v->n_runs, PNR_RING_VIEW_RUNS, at + first,
                 at + (end < n_samples ? end : n_samples));
    }
}

/* Adds the next dwell to view v, as dwell number d of the view. */
static void take_dwell(pnr_ring *ring, pnr_ring_view *v, size_t d)
{
    const size_t n_periods = ring->shape.n_periods;

    memcpy(v->lost + d * n_periods, ring->lost, n_periods * sizeof *v->lost);
    v->ready_ns[d] = ring->ready_ns;
    add_losses(ring, n_periods, &v->losses);
    copy_runs(ring, ring->dwell, v, d * ring->dwell);
    leave_dwells(ring, 1);
}

static void free_memory(pnr_ring *ring)
{
    atomic_store(&ring->tail, ring->n_views > 0 ? ring->views[ring->first_view].first : ring->next);
    wake_writer(ring);
}

/* Adds to the account the positions at the end of the stream that fill no dwell. */
static void account_for_tail(pnr_ring *ring, uint64_t head)
{
    const uint64_t end = lesser(head, ring->shape.end);
    const uint64_t taken = end > ring->next ? lesser(ring->passed, end) - ring->next : 0;
    const size_t n_windows = (size_t)lesser(
        (taken + ring->shape.n_samples - 1) / ring->shape.n_samples, ring->n_windows);
    pnr_ring_losses losses = {{0}};

    ring->account.positions += taken;
    ring->account.skipped_tail += taken - lost_in(ring, n_windows);
    add_losses(ring, n_windows, &losses);
    account_for(ring, &losses);
    if (ring->passed < end)
        pass_by(ring, end, &ring->account.skipped_tail);
    leave_dwells(ring, ring->n_windows); /* a second call then counts nothing */
    ring->next = head;
}

/* True if the reader owns the memory of the next dwell and may zero its lost positions. n_in_view:
 * number of dwells in the view that is being filled. If there is no view, the reader owns this
 * memory, because free_memory moves `tail` to the dwell. */
static bool is_ours(const pnr_ring *ring, size_t n_in_view)
{
    const uint64_t limit =
        atomic_load_explicit(&ring->tail, memory_order_relaxed) + ring->shape.capacity;

    return ring->n_views + n_in_view == 0 || ring->next + ring->reach <= limit;
}

/* Builds the next usable dwell from the samples that have arrived. Refuses the unusable dwells
 * before it. Returns true if the dwell is complete. */
static bool reach_dwell(pnr_ring *ring, uint64_t head)
{
    while (is_ours(ring, 0)) {
        refuse_lost_run(ring);
        if (ring->n_views == 0)
            free_memory(ring);
        if (!is_ours(ring, 0) || !build_dwell(ring, head))
            break; /* the memory of the dwell is lent, or samples have not arrived */
        if (is_usable(ring))
            return true;

        pnr_ring_losses losses = {{0}};

        refuse_dwells(ring, 1, lost_in(ring, ring->shape.n_periods), &losses);
    }
    return false;
}

/* Adds at most max_dwells whole dwells to v and returns their number. A view ends before a refused
 * dwell, and before its list of lost runs could overflow. */
static size_t fill_view(pnr_ring *ring, pnr_ring_view *v, size_t max_dwells, uint64_t head)
{
    size_t n = 0;

    if (!reach_dwell(ring, head))
        return 0;
    v->first = ring->next;
    v->n_runs = 0;
    do
        take_dwell(ring, v, n++);
    while (n < max_dwells && v->n_runs <= PNR_RING_VIEW_RUNS - 2 * PNR_RING_RUNS &&
           is_ours(ring, n) && build_dwell(ring, head) && is_usable(ring));
    copy_runs(ring, ring->shape.n_behind, v, n * ring->dwell);
    return n;
}

/* Returns head. *is_final: the stream has ended, and head does not change any more. */
static uint64_t read_head(pnr_ring *ring, bool *is_final)
{
    /* `ended` is read before head. If `ended` is set, the writer has finished, and the reader adds
     * the marks of the last losses. */
    *is_final = atomic_load(&ring->ended) && pnr_ring_mark_losses(ring);
    return atomic_load(&ring->head);
}

/* Passes the positions before the first window. Returns true if all of them are passed. */
static bool align(pnr_ring *ring, uint64_t head)
{
    if (ring->passed < ring->next) {
        pass_by(ring, head < ring->next ? head : ring->next, &ring->account.skipped_alignment);
        atomic_store(&ring->tail, ring->passed);
        wake_writer(ring);
    }
    return ring->passed >= ring->next;
}

static pnr_windows windows_at(const pnr_ring *ring, uint64_t first, size_t n_samples)
{
    const pnr_ring_shape *shape = &ring->shape;
    const size_t at = (size_t)(first % shape->capacity);
    const size_t before_wrap = shape->capacity - at < n_samples ? shape->capacity - at : n_samples;

    return (pnr_windows){
        .spans = {{(const char *)shape->memory + at * shape->sample_bytes, before_wrap},
                  {shape->memory, n_samples - before_wrap}},
        .first_sample = first,
        .n_periods = shape->n_periods,
    };
}

int pnr_ring_acquire(pnr_ring *ring, size_t max_dwells, pnr_windows *out)
{
    const pnr_ring_shape *shape = &ring->shape;
    bool is_final;
    const uint64_t head = read_head(ring, &is_final);

    if (ring->n_views == shape->depth)
        return PNR_EAGAIN;
    if (!align(ring, head))
        return is_final ? PNR_EEND : PNR_EAGAIN;

    pnr_ring_view *v = &ring->views[(ring->first_view + ring->n_views) % shape->depth];
    const size_t n =
        fill_view(ring, v, max_dwells < shape->max_dwells ? max_dwells : shape->max_dwells, head);

    if (n == 0) {
        if (!is_final || ring->next + ring->reach <= head)
            return PNR_EAGAIN;
        account_for_tail(ring, head);
        return PNR_EEND;
    }
    ring->n_views++;
    *out = windows_at(ring, v->first, n * (size_t)ring->dwell + shape->n_behind);
    out->n_dwells = n;
    out->lost = v->lost;
    out->lost_runs = v->runs;
    out->n_lost_runs = v->n_runs;
    out->lost_before = ring->lost_before;
    out->ready_ns = v->ready_ns;
    ring->lost_before = 0;
    return PNR_OK;
}

/* Returns the end of the part of the next dwell that pnr_ring_peek has shown. */
static uint64_t end_of_shown(const pnr_ring *ring)
{
    return ring->shown > ring->next ? ring->shown : ring->next;
}

int pnr_ring_peek(pnr_ring *ring, size_t at_least, pnr_windows *out)
{
    bool is_final;
    const uint64_t head = read_head(ring, &is_final);

    if (!align(ring, head))
        return is_final ? PNR_EEND : PNR_EAGAIN;

    const bool is_whole = reach_dwell(ring, head);

    if (is_final && ring->next + ring->reach > head)
        return PNR_EEND;
    if (ring->passed < end_of_shown(ring) + (at_least > 0 ? at_least : 1))
        return PNR_EAGAIN;
    ring->shown = ring->passed;
    *out = windows_at(ring, ring->next, (size_t)(ring->passed - ring->next));
    out->n_dwells = is_whole;
    out->lost = ring->lost;
    out->lost_runs = ring->runs;
    out->n_lost_runs = ring->n_runs;
    out->lost_before = ring->lost_before;
    out->ready_ns = &ring->ready_ns;
    return PNR_OK;
}

void pnr_ring_release(pnr_ring *ring)
{
    if (ring->n_views == 0)
        return;
    account_for(ring, &ring->views[ring->first_view].losses);
    ring->first_view = (ring->first_view + 1) % ring->shape.depth;
    ring->n_views--;
    free_memory(ring);
}

/* Returns the value of head at which the reader can continue: when the next dwell
 * is complete, when pnr_ring_peek has at_least new samples, or, until the samples before the next
 * window have arrived, with each new sample. */
static uint64_t next_work(const pnr_ring *ring, size_t at_least)
{
    const uint64_t end = ring->next + ring->reach;

    if (ring->passed < ring->next)
        return ring->passed + 1;
    if (at_least == 0 || end_of_shown(ring) + at_least > end || !is_ours(ring, 0))
        return end;
    return end_of_shown(ring) + at_least;
}

typedef struct either {
    const pnr_ring *ring;
    pnr_queue *queue; /* NULL: there is no queue */
} either;

static bool has_either(void *of)
{
    const either *e = of;

    return pnr_ring_has_work(e->ring) || (e->queue != NULL && pnr_queue_has_record(e->queue));
}

int pnr_ring_wait(pnr_ring *ring, size_t at_least, pnr_queue *queue, uint64_t patience_ns)
{
    either wanted = {ring, queue};

    atomic_store(&ring->wanted, next_work(ring, at_least));
    return has_either(&wanted) || pnr_bell_wait(ring->reader, has_either, &wanted, 0, patience_ns)
               ? PNR_OK
               : PNR_EAGAIN;
}

/* Moves the reader back to the start of the next dwell, so that its positions can be read again as
 * other windows. If the queue no longer has all marks of these positions, skips the positions. */
static void untake_dwell(pnr_ring *ring)
{
    pnr_ring_losses losses = {{0}};
    const uint64_t n = ring->passed - ring->next, lost = lost_in(ring, ring->n_windows);

    if (ring->mark_end <= ring->next) {
        ring->mark_next = atomic_load_explicit(&ring->mark_tail, memory_order_relaxed);
        ring->passed = ring->next;
        return;
    }
    add_losses(ring, ring->n_windows, &losses);
    ring->account.positions += n;
    ring->account.skipped_alignment += n - lost;
    ring->lost_before += lost;
    account_for(ring, &losses);
    ring->next = ring->passed;
}

uint64_t pnr_ring_divide(pnr_ring *ring, pnr_ring_division *d, uint64_t *skipped)
{
    const pnr_ring_division old = {ring->shape, ring->n_windows, ring->lost, ring->losses,
                                   ring->views};
    const uint64_t n = d->shape.n_samples, from = lesser(ring->passed, ring->next);

    if (ring->passed > ring->next)
        untake_dwell(ring);
    ring->shape.n_samples = d->shape.n_samples;
    ring->shape.n_behind = d->shape.n_behind;
    ring->shape.n_periods = d->shape.n_periods;
    ring->shape.max_dwells = d->shape.max_dwells;
    ring->shape.depth = d->shape.depth;
    ring->dwell = n * d->shape.n_periods;
    ring->reach = ring->dwell + d->shape.n_behind;
    ring->n_windows = d->n_windows;
    ring->lost = d->lost;
    ring->losses = d->losses;
    ring->views = d->views;
    ring->first_view = 0;
    ring->n_runs = 0;
    ring->shown = 0;
    ring->next = ring->passed + (d->shape.first_window % n + n - ring->passed % n) % n;
    *skipped = ring->next - from;
    *d = old;
    return ring->next;
}

void pnr_ring_account(const pnr_ring *ring, pnr_account *account)
{
#define ADD_COUNT(name) account->name += ring->account.name;
    PNR_ACCOUNT_FIELDS(ADD_COUNT)
}
