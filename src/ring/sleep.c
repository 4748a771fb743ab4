/* SPDX-License-Identifier: MIT */
/* Lets a side of the ring sleep, and lets the other side wake it. The waker uses no lock while the
 * other side is awake. */
#include "ring/state.h"

#include "base/clock.h"

#include <time.h>

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
    atomic_store(&sleeper->is_asleep, true); /* set before the check, or a wake is lost */
    while (!is_ready(ring) && !timed_out)
        timed_out = pthread_cond_timedwait(&sleeper->changed, &sleeper->lock, &time);
    atomic_store(&sleeper->is_asleep, false);
    pthread_mutex_unlock(&sleeper->lock);
    return is_ready(ring) ? PNR_OK : PNR_EAGAIN;
}

void pnr_ring_sleeper_init(pnr_ring_sleeper *sleeper)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&sleeper->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sleeper->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void pnr_ring_sleeper_clear(pnr_ring_sleeper *sleeper)
{
    pthread_cond_destroy(&sleeper->changed);
    pthread_mutex_destroy(&sleeper->lock);
}
