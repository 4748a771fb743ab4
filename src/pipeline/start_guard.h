/* SPDX-License-Identifier: MIT */
/* Ends the program when it is stopped while an engine is created in this process. A driver may take
 * many seconds for that, and cannot be interrupted. */
#ifndef PNR_START_GUARD_H
#define PNR_START_GUARD_H

#include "ring/bell.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct pnr_start_guard {
    const volatile int *stop;
    pthread_t thread;
    bool is_started;
    atomic_bool is_over;
    pnr_bell bell;
} pnr_start_guard;

/* From now on until pnr_start_guard_end, the program ends with status 0 half a second after *stop
 * is set. stop: NULL does nothing. */
void pnr_start_guard_begin(pnr_start_guard *guard, const volatile int *stop);
void pnr_start_guard_end(pnr_start_guard *guard);

#endif
