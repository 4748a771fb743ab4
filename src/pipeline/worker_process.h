/* SPDX-License-Identifier: MIT */
/* A worker as its run sees it: the process, and the memory that both share. */
#ifndef PNR_WORKER_PROCESS_H
#define PNR_WORKER_PROCESS_H

#include "pipeline/isolation.h"
#include "pipeline/shared.h"

typedef struct pnr_worker_process {
    size_t views_capacity; /* bytes of the queue of views */
    uint64_t hang_ns;      /* without progress for this time, a worker that has views is lost */
    uint64_t limit_ns;     /* time in which it must be ready; 0: no limit */
    uint64_t due_ns;       /* when it may be started */
    pid_t pid;
    bool is_started, is_ready;
    pnr_shared *shared;
    size_t bytes; /* of `shared` and what follows it */
    int fd;       /* of `shared`; -1: none */
    pnr_queue *views, *results;
    uint64_t started_ns, moved_ns; /* time of its last progress */
    uint64_t turns;                /* of its loop, at that time */
} pnr_worker_process;

/* Lists all devices of an engine, as pnr_engine_list_devices does, in a process of its own, since
 * this one never touches a GPU. PNR_OK; PNR_EUNAVAILABLE; PNR_EEND: *stop (may be NULL) was set. */
int pnr_worker_list_devices(const char *engine, const volatile int *stop, pnr_devices *out,
                            pnr_error *error);

/* Makes the memory. samples_fd: memory of the samples. PNR_OK, PNR_ENOMEMORY. Call close also after
 * an error. */
int pnr_worker_open(pnr_worker_process *w, const pnr_isolation_parts *parts, int samples_fd,
                    pnr_error *error);
/* Kills the worker unless it ends within a second, and frees the memory. */
void pnr_worker_close(pnr_worker_process *w);

/* Starts a worker of this engine with empty queues. left_out, unreported: as in pnr_shared_order.
 * left_out is NULL for the first worker, which must have all devices. If the start fails,
 * pnr_worker_is_lost says so. */
void pnr_worker_start(pnr_worker_process *w, const char *engine, const pnr_devices *left_out,
                      uint64_t unreported);
/* Kills the worker, and waits until it is gone. What it has written stays readable. */
void pnr_worker_kill(pnr_worker_process *w);
/* Returns true if a started worker has ended, has failed, or hangs, with the reason in words. Sets
 * is_ready. has_views: it has views without results. */
bool pnr_worker_is_lost(pnr_worker_process *w, bool has_views, char *reason, size_t size);

/* Appends a view, a part or the end to its queue. False: the queue is full. */
bool pnr_worker_send(pnr_worker_process *w, int kind, const pnr_windows *windows);
void pnr_worker_wake(pnr_worker_process *w);

#endif
