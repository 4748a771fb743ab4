/* SPDX-License-Identifier: MIT */
/* A thread that checks *stop while its caller waits for a driver. */
#include "pipeline/start_guard.h"

#include "base/log.h"

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* The thread calls _exit when more than this number of checks have found *stop set. If the engine
 * is ready before that, the program ends as usual. */
enum { LOOKS = 10 };

static const uint64_t look_ns = 50 * 1000 * 1000;

static bool is_over(void *of)
{
    return atomic_load(&((pnr_start_guard *)of)->is_over);
}

static void *watch(void *argument)
{
    pnr_start_guard *guard = argument;
    int looks = 0;

    while (!pnr_bell_wait(&guard->bell, is_over, guard, 0, look_ns))
        if (__atomic_load_n(guard->stop, __ATOMIC_RELAXED) != 0 && ++looks > LOOKS) {
            pnr_log(PNR_LOG_INFO, "stopped before the first sample");
            _exit(0); /* the functions that exit() calls may wait for the driver, too */
        }
    return NULL;
}

void pnr_start_guard_begin(pnr_start_guard *guard, const volatile int *stop)
{
    *guard = (pnr_start_guard){.stop = stop};
    guard->is_started = stop != NULL && pthread_create(&guard->thread, NULL, watch, guard) == 0;
}

void pnr_start_guard_end(pnr_start_guard *guard)
{
    if (!guard->is_started)
        return;
    atomic_store(&guard->is_over, true);
    pnr_bell_ring(&guard->bell);
    pthread_join(guard->thread, NULL);
}
