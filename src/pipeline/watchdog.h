/* SPDX-License-Identifier: MIT */
/* The watchdog: sends messages to the service manager only while the threads count turns. */
#ifndef PNR_WATCHDOG_H
#define PNR_WATCHDOG_H

#include "base/notify.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The turns of a thread. The thread counts at least one turn every 50 ms, also while it waits for
 * samples or for space. A thread that hangs in a driver or an engine counts none. */
typedef struct pnr_turns {
    _Atomic uint64_t n;
    atomic_bool is_over; /* the thread has done its work */
} pnr_turns;

typedef struct pnr_watchdog {
    const pnr_notify *notify; /* NULL: no service manager */
    const pnr_turns *threads[2];
    uint64_t seen[2]; /* turns of each thread at the last message */
    uint64_t sent_ns; /* time of the last message */
} pnr_watchdog;

/* Counts a turn of the calling thread. */
void pnr_turns_count(pnr_turns *turns);
/* Sends a message if a quarter of notify->watchdog_ns has passed since the last message, and each
 * thread has counted a turn since then or has ended. now: CLOCK_MONOTONIC in ns. */
void pnr_watchdog_feed(pnr_watchdog *watchdog, uint64_t now);

#endif
