/* SPDX-License-Identifier: MIT */
/* Changes the configuration during a run. A thread reads the new configuration and opens the new
 * parts. The processing thread exchanges the parts at the edge of a window. */
#ifndef PNR_RELOAD_H
#define PNR_RELOAD_H

#include "base/error.h"

#include <stdbool.h>

typedef struct pnr_pipeline pnr_pipeline;
typedef struct pnr_reload pnr_reload;

/* Exchanges a member of *p and *next. */
#define PNR_EXCHANGE(type, member)                                                                 \
    do {                                                                                           \
        type kept = p->member;                                                                     \
        p->member = next->member;                                                                  \
        next->member = kept;                                                                       \
    } while (0)

/* Starts the thread. The thread may start a worker; this worker ends when the thread ends. PNR_OK,
 * PNR_ENOMEMORY. */
int pnr_reload_create(pnr_pipeline *run, pnr_reload **out, pnr_error *error);
/* Waits until a reload that has begun is over, and prevents another one. The parts of the run,
 * which a reload reads, may be closed only after this. Call it after the publishing thread has
 * ended. */
void pnr_reload_finish(pnr_reload *reload);
/* Ends the thread. Call this after pnr_reload_finish. */
void pnr_reload_destroy(pnr_reload *reload);

/* Asks for a reload. All calls during a reload together cause one more reload. */
void pnr_reload_ask(pnr_reload *reload);

/* --- the processing thread --- */

/* Returns true while parts are ready, until they are taken or refused. Returns false if `reload` is
 * NULL. */
bool pnr_reload_is_ready(const pnr_reload *reload);
/* Exchanges the parts of the run with the parts that are ready. Call this only when all views are
 * released. */
void pnr_reload_take(pnr_reload *reload);
/* Refuses the parts that are ready, and reports the reason. */
void pnr_reload_refuse(pnr_reload *reload, const char *reason);

#endif
