/* SPDX-License-Identifier: MIT */
/* The side of a run whose engine and detection are in a worker, another process that may die, hang
 * or lose its GPU. The ring keeps each view until its results are here, so a new worker continues
 * where the last one has stopped. */
#ifndef PNR_ISOLATION_H
#define PNR_ISOLATION_H

#include "base/event.h"
#include "config/config.h"
#include "pipeline/exchange.h"
#include "pipeline/realtime.h"
#include "setup/setup.h"
#include "source/source.h"

typedef struct pnr_isolation pnr_isolation;

/* All pointers but `before` outlive the isolation. */
typedef struct pnr_isolation_parts {
    const pnr_config *config;
    const pnr_setup *setup;
    const pnr_source_info *info;
    const volatile int *stop; /* ends the wait for the first worker; may be NULL */
    pnr_events *events;
    bool is_live;
    size_t capacity, max_dwells; /* as in pnr_ring_shape */
    const pnr_isolation *before; /* of an earlier configuration, whose samples it shares; NULL */
} pnr_isolation_parts;

/* True if engine.isolate asks for a worker: yes, or auto where the stream is live and the engine is
 * cuda, or may be. */
bool pnr_isolation_is_wanted(const pnr_config *config, bool is_live);
/* Starts the first worker and waits until it is ready. PNR_OK; PNR_ENOMEMORY; PNR_EUNAVAILABLE: no
 * process can be started; PNR_EEND: *stop was set; or the error of the worker. */
int pnr_isolation_create(const pnr_isolation_parts *parts, pnr_isolation **out, pnr_error *error);
/* Continues a run with the worker of another configuration, when all views of the earlier one have
 * their results. `to` takes over the memory of the samples and the times of the lost workers. */
void pnr_isolation_hand_over(pnr_isolation *from, pnr_isolation *to);
/* Ends all workers. */
void pnr_isolation_destroy(pnr_isolation *isolation);

/* Memory of `capacity` samples, which the worker shares. */
void *pnr_isolation_memory(const pnr_isolation *isolation);
/* Views that may be lent at one time, for pnr_ring_shape. */
size_t pnr_isolation_views(const pnr_setup *setup);
/* Samples by which a ring is longer than without a worker, so that the source has space while all
 * views are lent. */
size_t pnr_isolation_more_samples(const pnr_setup *setup);
/* The first worker's engine, as "cuda/library"; and what the system granted to it. */
const char *pnr_isolation_engine(const pnr_isolation *isolation);
const pnr_realtime_outcome *pnr_isolation_realtime(const pnr_isolation *isolation);

/* Number of workers that died, hung or lost their engine; and true while the cpu engine stands in
 * for the wanted one. Any thread may call these two. */
uint64_t pnr_isolation_deaths(const pnr_isolation *isolation);
bool pnr_isolation_is_degraded(const pnr_isolation *isolation);

/* Runs until the stream ends: moves views from the exchange to the worker, and results from the
 * worker to the exchange. PNR_EEND; PNR_ELOST: after the end of the samples no worker could finish
 * the views that pnr_isolation_drop then gives back. */
int pnr_isolation_run(pnr_isolation *isolation, const pnr_exchange *exchange);
/* Number of samples since the last result, lost ones too. */
uint64_t pnr_isolation_unreported(const pnr_isolation *isolation);
/* Returns the oldest view without a result; false: there is none. */
bool pnr_isolation_drop(pnr_isolation *isolation, pnr_windows *out);

#endif
