/* SPDX-License-Identifier: MIT */
/* What the operating system is asked for so that the two threads keep time; a refusal is never
 * fatal.
 */
#ifndef PNR_REALTIME_H
#define PNR_REALTIME_H

#include "config/config.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum { PNR_REALTIME_LEN = 160 };

/* What came of each key of the section, in words for status and log: "no", "any" or "none" where
 * nothing was asked for; "yes" or the number; "refused: " and why. */
typedef struct pnr_realtime {
    char lock_memory[PNR_REALTIME_LEN];
    char acquisition_cpu[PNR_REALTIME_LEN];
    char processing_cpu[PNR_REALTIME_LEN];
    char priority[PNR_REALTIME_LEN];

    /* What the processing thread gets back at the end. */
    bool is_locked;
    cpu_set_t cpus;
    int policy;
    struct sched_param param;
} pnr_realtime;

/* In the processing thread, when all its memory is there and before the acquisition thread is:
 * locks memory. A limit that is not far away refuses it: an allocation beyond it would fail, and
 * libzmq ends the program then. */
void pnr_realtime_begin(pnr_realtime *realtime, const pnr_config *config);
/* In the processing thread, when the acquisition thread is there: places and ranks both. Threads
 * that began before (libzmq's, an engine's) stay as they are: libzmq ends the program when its own
 * options for that are refused. */
void pnr_realtime_enter(pnr_realtime *realtime, const pnr_config *config, pthread_t acquisition);
/* In the processing thread: as before begin. */
void pnr_realtime_end(pnr_realtime *realtime);

/* Each thread, before it has something to do: so much of its stack as it may need is there. */
void pnr_realtime_touch_stack(void);

#endif
