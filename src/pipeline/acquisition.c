/* SPDX-License-Identifier: MIT */
/* The acquisition thread: commits the samples that arrive and skips those that are lost. */
#include "pipeline/acquisition.h"

#include "base/clock.h"
#include "recorder/recording.h"

static const uint64_t patience_ns = 50 * 1000 * 1000;
/* The time of sample 0 is increased if all samples of the last settle_ns are at least least_move_ns
 * late. */
static const int64_t least_move_ns = PNR_NS_PER_S / 2;
static const uint64_t settle_ns = 2 * (uint64_t)PNR_NS_PER_S;

static bool is_stopped(const pnr_acquisition *a)
{
    return (a->stop != NULL && __atomic_load_n(a->stop, __ATOMIC_RELAXED) != 0) ||
           atomic_load(&a->cancel) != 0;
}

/* Returns the greatest number of samples for a read at `position`. */
static size_t next_chunk(const pnr_acquisition *a, uint64_t position)
{
    const uint64_t first = atomic_load(&a->first_window), dwell = atomic_load(&a->dwell);

    if (!a->is_live || dwell == 0)
        return a->chunk;

    const uint64_t to_end =
        position < first ? first - position : dwell - (position - first) % dwell;

    return to_end < a->chunk ? (size_t)to_end : a->chunk;
}

/* Returns memory for the next samples: in the ring, or spare memory when the source is live and the
 * ring is full. NULL: the acquisition was stopped. */
static void *next_place(pnr_acquisition *a, uint64_t position, size_t *n_samples, bool *is_spare)
{
    const size_t chunk = next_chunk(a, position);
    void *data = NULL;

    while (!is_stopped(a)) {
        *is_spare = false;
        if (pnr_ring_reserve(a->ring, chunk, &data, n_samples) == PNR_OK)
            return data;
        if (a->is_live) {
            *is_spare = true;
            *n_samples = chunk;
            return a->spare;
        }
        pnr_turns_count(&a->turns);
        (void)pnr_ring_wait_space(a->ring, patience_ns);
    }
    return NULL;
}

/* Waits until the time of the sample at `position`. */
static void keep_pace(pnr_acquisition *a, uint64_t began_ns, uint64_t position)
{
    const uint64_t due =
        began_ns + (uint64_t)pnr_rational_time_ns(a->rate_hz, position - a->first_sample);

    while (!is_stopped(a)) {
        const uint64_t now = pnr_clock_ns();

        if (now >= due)
            return;
        pnr_turns_count(&a->turns);
        (void)pnr_clock_sleep_until(due - now > patience_ns ? now + patience_ns : due, NULL);
    }
}

pnr_time_source pnr_acquisition_start(const pnr_acquisition *a, int64_t *utc_ns)
{
    *utc_ns = a->stated_start_utc_ns;
    if (a->has_start)
        return PNR_TIME_FILE;
    if ((*utc_ns = atomic_load(&a->source_start_utc_ns)) != 0)
        return PNR_TIME_SOURCE;
    if (a->is_clocked && (*utc_ns = atomic_load(&a->start_utc_ns)) != 0)
        return PNR_TIME_HOST;
    return PNR_TIME_NONE;
}

/* Passes a block at `position` to the recorder of samples, also if the ring had no space for the
 * block. A gap has no samples: if is_loss_event is set, the gap triggers the recorder. */
static void record_block(const pnr_acquisition *a, uint64_t position, const pnr_source_block *block,
                         const void *data)
{
    int64_t start_utc_ns;

    if (a->recorder == NULL)
        return;
    if (pnr_acquisition_start(a, &start_utc_ns) == PNR_TIME_NONE)
        start_utc_ns = PNR_RECORDING_NO_TIME;
    if (block->gap == 0)
        pnr_sample_recorder_add(a->recorder, position, start_utc_ns, data, block->n_samples);
    else if (a->is_loss_event)
        pnr_sample_recorder_trigger(a->recorder, PNR_TRIGGER_LOSS, position);
}

static void move_start(pnr_acquisition *a, uint64_t position, int64_t by_ns)
{
    atomic_fetch_add(&a->start_utc_ns, by_ns);
    a->moved_ns += by_ns;
    a->late_since_ns = 0;
    pnr_event_post(a->events, PNR_EVENT_TIME_MOVED, position, (double)by_ns * 1e-9, 0,
                   "the host's times move by %.3f s at sample %llu: samples come %s",
                   (double)by_ns * 1e-9, (unsigned long long)position,
                   by_ns > 0 ? "later than at their rate, as after a source that stood still"
                             : "in time again");
}

/* Compares the host's clock with the time of the sample at `position`. If all samples of the last
 * settle_ns are late by least_move_ns or more, the source has paused: adds the least lateness to
 * the time of sample 0. If a later sample is early by more than least_move_ns, the late samples
 * were only delayed: moves the time of sample 0 back until this sample is in time, but not beyond
 * the original time of sample 0. */
static void follow_clock(pnr_acquisition *a, uint64_t position)
{
    const int64_t begin_ns = pnr_clock_utc_ns() - pnr_rational_time_ns(a->rate_hz, position);
    const int64_t start_ns = atomic_load(&a->start_utc_ns), late_ns = begin_ns - start_ns;
    const uint64_t now = pnr_clock_ns();

    if (start_ns == 0)
        atomic_store(&a->start_utc_ns, begin_ns);
    if (start_ns == 0 || !a->is_clocked)
        return;
    if (late_ns < least_move_ns) {
        a->late_since_ns = 0;
        if (late_ns < -least_move_ns && a->moved_ns > 0)
            move_start(a, position, late_ns < -a->moved_ns ? -a->moved_ns : late_ns);
        return;
    }
    if (a->late_since_ns == 0 || late_ns < a->least_late_ns)
        a->least_late_ns = late_ns;
    if (a->late_since_ns == 0)
        a->late_since_ns = now;
    if (now - a->late_since_ns >= settle_ns)
        move_start(a, position, a->least_late_ns);
}

void pnr_acquisition_run(pnr_acquisition *a)
{
    const uint64_t began_ns = pnr_clock_ns();
    uint64_t position = a->first_sample;

    while (a->code == PNR_OK) {
        size_t n_samples = 0;
        pnr_source_block block;
        bool is_spare;

        pnr_turns_count(&a->turns);

        void *data = next_place(a, position, &n_samples, &is_spare);

        if (data == NULL)
            break;

        const int code = pnr_source_read(a->source, data, n_samples, &block, &a->error);

        if (code == PNR_EAGAIN)
            continue;
        if (code == PNR_EEND)
            break;
        if (code != PNR_OK) {
            a->code = code;
            break;
        }
        if (block.has_time && atomic_load(&a->source_start_utc_ns) == 0)
            atomic_store(&a->source_start_utc_ns,
                         block.utc_ns - pnr_rational_time_ns(a->rate_hz, position));

        const uint64_t first = position;

        position += block.n_samples + block.gap;
        follow_clock(a, position);
        if (a->is_paced)
            keep_pace(a, began_ns, position);
        record_block(a, first, &block, data);
        if (block.gap > 0)
            pnr_ring_skip(a->ring, block.gap, PNR_LOST_SOURCE);
        else if (is_spare)
            pnr_ring_skip(a->ring, block.n_samples, PNR_LOST_RING_FULL);
        else
            pnr_ring_commit(a->ring, block.n_samples);
    }
    atomic_store(&a->turns.is_over, true);
    pnr_ring_end(a->ring);
}
