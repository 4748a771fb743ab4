/* SPDX-License-Identifier: MIT */
/* A run whose engine and detection are in a worker: another process, which may die, hang or lose
 * its GPU. The ring keeps each view until the run has all results of the view. So a new worker
 * continues where the last worker stopped. */
#ifndef PNR_ISOLATION_H
#define PNR_ISOLATION_H

#include "base/event.h"
#include "config/config.h"
#include "pipeline/exchange.h"
#include "pipeline/realtime.h"
#include "pipeline/shared.h"
#include "setup/setup.h"
#include "source/source.h"

typedef struct pnr_isolation pnr_isolation;

/* All pointers except `before` outlive the isolation. */
typedef struct pnr_isolation_parts {
    const pnr_config *config;
    const pnr_setup *setup;
    const pnr_source_info *info;
    const volatile int *stop; /* ends the wait for the first worker; may be NULL */
    pnr_events *events;
    bool is_live;
    size_t capacity, max_dwells; /* as in pnr_ring_shape */
    const pnr_isolation *before; /* isolation of the earlier configuration, with the same memory of
                                  * samples; NULL: none */
} pnr_isolation_parts;

/* Returns true if engine.isolate is yes. With engine.isolate = auto, returns true for a live stream
 * if engine.name is cuda, or if engine.name is auto and the cuda module is installed. */
bool pnr_isolation_is_wanted(const pnr_config *config, bool is_live);
/* Starts the first worker and waits until it is ready. PNR_OK; PNR_ENOMEMORY; PNR_EUNAVAILABLE: no
 * process can be started; PNR_EEND: *stop was set; or the error of the worker. */
int pnr_isolation_create(const pnr_isolation_parts *parts, pnr_isolation **out, pnr_error *error);
/* Continues a run with the worker of another configuration. All views of `from` must have their
 * results. `to` takes over the memory of the samples and the times of the lost workers. */
void pnr_isolation_hand_over(pnr_isolation *from, pnr_isolation *to);
/* Ends all workers. */
void pnr_isolation_destroy(pnr_isolation *isolation);

/* Returns the memory of `capacity` samples, which the worker shares. */
void *pnr_isolation_memory(const pnr_isolation *isolation);
/* Returns the bells that wake the threads of a run with a worker. They live as long as the
 * memory. */
pnr_shared_bells *pnr_isolation_bells(const pnr_isolation *isolation);
/* Returns how many views may be lent at one time, for pnr_ring_shape. */
size_t pnr_isolation_views(const pnr_setup *setup);
/* Returns how many more samples a ring needs than without a worker, so that the source has space
 * while all views are lent. */
size_t pnr_isolation_more_samples(const pnr_setup *setup);
/* Returns the engine of the first worker, such as "cuda/library". */
const char *pnr_isolation_engine(const pnr_isolation *isolation);
/* Returns the real-time settings that the system granted to the first worker. */
const pnr_realtime_outcome *pnr_isolation_realtime(const pnr_isolation *isolation);

/* Returns the number of workers that died, hung or lost their engine. Any thread may call this. */
uint64_t pnr_isolation_deaths(const pnr_isolation *isolation);
/* Returns true while the cpu engine replaces the wanted engine. Any thread may call this. */
bool pnr_isolation_is_degraded(const pnr_isolation *isolation);

/* Runs until the stream ends: moves views from the exchange to the worker, and results from the
 * worker to the exchange. PNR_EEND; PNR_ELOST: the stream has ended or was stopped, and no worker
 * could finish the last views. pnr_isolation_drop then returns these views. */
int pnr_isolation_run(pnr_isolation *isolation, const pnr_exchange *exchange);
/* Returns the number of samples since the last result, also lost ones. */
uint64_t pnr_isolation_unreported(const pnr_isolation *isolation);
/* Fills *out with the oldest view that does not have all its results, and removes this view.
 * Returns false if there is none. */
bool pnr_isolation_drop(pnr_isolation *isolation, pnr_windows *out);

#endif
