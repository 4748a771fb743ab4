/* SPDX-License-Identifier: MIT */
/* Starts the driver of a GPU in a thread, while the set-up of the codes uses this one: each takes
 * 0.1 to 0.3 s. */
#ifndef PNR_ENGINE_START_H
#define PNR_ENGINE_START_H

#include "config/config.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct pnr_engine_start {
    const pnr_config *config;
    pthread_t thread;
    bool is_started;
} pnr_engine_start;

/* Begins to find the first device of engine.name = cuda or auto. Does nothing for other engines. No
 * module may be loaded until pnr_engine_start_end. */
void pnr_engine_start_begin(pnr_engine_start *start, const pnr_config *config);
/* Waits for the thread. Reports no error: pnr_engine_choose reports it. stop: as in
 * pnr_start_guard_begin. */
void pnr_engine_start_end(pnr_engine_start *start, const volatile int *stop);

#endif
