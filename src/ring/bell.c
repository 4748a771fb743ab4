/* SPDX-License-Identifier: MIT */
/* A bell is a futex. */
#include "ring/bell.h"

#include "base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A sleeper reads `rings`, sets is_set and executes a full fence. It then calls is_ready. The
 * thread that rings has stored something before. Either is_ready sees what is stored, or the
 * ringing thread sees is_set. In the second case it changes `rings`, and FUTEX_WAIT returns at
 * once. */
void pnr_bell_ring(pnr_bell *bell)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&bell->is_set, memory_order_relaxed) == 0 ||
        atomic_exchange(&bell->is_set, 0) == 0)
        return;
    atomic_fetch_add(&bell->rings, 1);
    (void)syscall(SYS_futex, &bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool pnr_bell_wait(pnr_bell *bell, bool (*is_ready)(void *of), void *of, uint64_t linger_ns,
                   uint64_t patience_ns)
{
    const struct timespec time = {.tv_sec = (time_t)(patience_ns / PNR_NS_PER_S),
                                  .tv_nsec = (long)(patience_ns % PNR_NS_PER_S)};
    const uint32_t rings = atomic_load(&bell->rings);

    (void)atomic_exchange(&bell->is_set, 1);
    atomic_thread_fence(memory_order_seq_cst); /* on ARM the exchange alone is no full fence */
    if (is_ready(of))
        return true;
    (void)syscall(SYS_futex, &bell->rings, FUTEX_WAIT, rings, &time, NULL, 0);

    const uint64_t until_ns = linger_ns > 0 ? pnr_clock_ns() + linger_ns : 0;
    bool ready;

    while (!(ready = is_ready(of)) && linger_ns > 0 && pnr_clock_ns() < until_ns)
        (void)sched_yield(); /* the other thread may wait for this processor */
    return ready;
}
