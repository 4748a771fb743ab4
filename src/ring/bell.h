/* SPDX-License-Identifier: MIT */
/* A bell wakes the threads that sleep on it. The threads may belong to several processes that share
 * the memory of the bell. pnr_bell_ring makes a system call only if a thread may be asleep. */
#ifndef PNR_BELL_H
#define PNR_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A bell whose bytes are all zero is ready for use. */
typedef struct pnr_bell {
    _Atomic uint32_t rings;  /* number of rings; a sleeper waits until it changes */
    _Atomic uint32_t is_set; /* 1: a thread may be asleep */
} pnr_bell;

/* Wakes all sleepers. The caller first stores what they wait for. */
void pnr_bell_ring(pnr_bell *bell);
/* Returns true at once if is_ready(of) is true. Else sleeps until the bell rings, at most
 * patience_ns. Then calls is_ready(of) until it is true, at most for linger_ns: another thread,
 * which the bell has also woken, may soon store what this thread waits for. Returns
 * is_ready(of). */
bool pnr_bell_wait(pnr_bell *bell, bool (*is_ready)(void *of), void *of, uint64_t linger_ns,
                   uint64_t patience_ns);

#endif
