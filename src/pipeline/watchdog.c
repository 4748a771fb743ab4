/* SPDX-License-Identifier: MIT */
/* The watchdog: sends messages to the service manager only while the threads count turns. */
#include "pipeline/watchdog.h"

#include <stddef.h>

void pnr_turns_count(pnr_turns *turns)
{
    atomic_fetch_add_explicit(&turns->n, 1, memory_order_relaxed);
}

void pnr_watchdog_feed(pnr_watchdog *w, uint64_t now)
{
    uint64_t turns[2];

    if (w->notify == NULL || w->notify->watchdog_ns == 0 ||
        now - w->sent_ns < w->notify->watchdog_ns / 4)
        return;
    for (size_t i = 0; i < 2; i++) {
        turns[i] = atomic_load_explicit(&w->threads[i]->n, memory_order_relaxed);
        if (turns[i] == w->seen[i] && !atomic_load(&w->threads[i]->is_over))
            return;
    }
    pnr_notify_send(w->notify, "WATCHDOG=1");
    w->seen[0] = turns[0];
    w->seen[1] = turns[1];
    w->sent_ns = now;
}
