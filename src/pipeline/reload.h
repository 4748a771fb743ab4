/* SPDX-License-Identifier: MIT */
/* Another configuration during a run: a thread reads it and opens its parts, and the processing
 * thread takes them at the edge of a window. */
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

/* Starts the thread. The workers that it starts live as long as it does. PNR_OK, PNR_ENOMEMORY. */
int pnr_reload_create(pnr_pipeline *run, pnr_reload **out, pnr_error *error);
/* Ends the thread, after the publishing thread, and closes parts that were not taken. */
void pnr_reload_destroy(pnr_reload *reload);

/* Asks for a reload. What is asked for during a reload follows it as one more. */
void pnr_reload_ask(pnr_reload *reload);

/* --- the processing thread --- */

/* True if parts are ready. It stays true until they are taken or refused. reload: NULL is false. */
bool pnr_reload_is_ready(const pnr_reload *reload);
/* Exchanges the parts of the run with those that are ready. No view is lent. */
void pnr_reload_take(pnr_reload *reload);
/* Gives up the parts that are ready, for this reason. */
void pnr_reload_refuse(pnr_reload *reload, const char *reason);

#endif
