/* SPDX-License-Identifier: MIT */
/* Asks the operating system for locked memory, processors and priorities for the threads of a run.
 * A refusal is never fatal. */
#ifndef PNR_REALTIME_H
#define PNR_REALTIME_H

#include "config/config.h"
#include "publisher/message.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

typedef struct pnr_realtime {
    pnr_realtime_outcome outcome; /* outcome of each request, for status and log */

    bool is_locked; /* begin has locked the memory; end unlocks it */
    /* The state of the processing thread before begin; end restores it. */
    cpu_set_t cpus;
    int policy;
    struct sched_param param;
} pnr_realtime;

/* Saves the state of the processing thread, which calls this after it has allocated all its memory,
 * before the acquisition thread begins. Locks memory if realtime.lock_memory asks for it. A finite
 * RLIMIT_MEMLOCK without CAP_IPC_LOCK counts as a refusal: an allocation beyond the limit would
 * fail, and libzmq would end the program. */
void pnr_realtime_begin(pnr_realtime *realtime, const pnr_config *config);
/* Sets the processors and priorities of the processing thread, which calls this, and of the
 * acquisition thread, which already runs. Sets only the priority of the publishing thread.
 * has_worker: realtime.processing_cpu is for the worker. The threads of libzmq and of the engine
 * are not changed: libzmq has options for its own threads, but ends the program if the system
 * refuses these options. */
void pnr_realtime_enter(pnr_realtime *realtime, const pnr_config *config, pthread_t acquisition,
                        pthread_t publishing, bool has_worker);
/* As pnr_realtime_enter, for the processing thread of a worker, which calls this. */
void pnr_realtime_enter_worker(pnr_realtime *realtime, const pnr_config *config);
/* Restores the state that pnr_realtime_begin saved. The processing thread calls this. */
void pnr_realtime_end(pnr_realtime *realtime);

/* Touches the stack that the calling thread may need, so that no page fault occurs later. */
void pnr_realtime_touch_stack(void);

#endif
