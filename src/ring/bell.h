/* SPDX-License-Identifier: MIT */
/* A bell wakes the threads that sleep on it. They may belong to several processes that share its
 * memory. To ring makes a system call only if a thread may sleep. */
#ifndef PNR_BELL_H
#define PNR_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory is a bell. */
typedef struct pnr_bell {
    _Atomic uint32_t rings;  /* a sleeper waits for a change */
    _Atomic uint32_t is_set; /* a thread may sleep */
} pnr_bell;

/* Wakes all sleepers. The caller has stored what they wait for. */
void pnr_bell_ring(pnr_bell *bell);
/* Sleeps until is_ready(of), a ring, or patience_ns. If it is not ready then, polls for linger_ns:
 * another thread that the ring has woken is about to pass on what this one waits for. Returns
 * is_ready(of). */
bool pnr_bell_wait(pnr_bell *bell, bool (*is_ready)(void *of), void *of, uint64_t linger_ns,
                   uint64_t patience_ns);

#endif
