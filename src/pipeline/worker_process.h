/* SPDX-License-Identifier: MIT */
/* A worker, on the side of the run: the process of the worker, and the memory that run and worker
 * share. */
#ifndef PNR_WORKER_PROCESS_H
#define PNR_WORKER_PROCESS_H

#include "pipeline/isolation.h"
#include "pipeline/shared.h"

typedef struct pnr_worker_process {
    size_t views_capacity; /* bytes of the queue of views */
    uint64_t hang_ns;      /* a worker that has views and makes no progress for this time is lost */
    uint64_t limit_ns;     /* longest time from the start until the worker is ready; 0: no limit */
    uint64_t due_ns;       /* earliest time of the start */
    pid_t pid;
    bool is_started, is_ready;
    bool is_ending; /* the worker was told that the stream has ended */
    pnr_shared *shared;
    size_t bytes; /* size of the memory that begins with *shared */
    int fd;       /* file descriptor of that memory; -1: none */
    pnr_queue *views, *results;
    uint64_t started_ns, moved_ns; /* time of the start; time of the last progress */
    uint64_t turns;                /* turns of the worker's loop at moved_ns */
} pnr_worker_process;

/* Lists all devices of an engine, as pnr_engine_list_devices does, but in another process, so that
 * the process of the caller never touches a GPU. PNR_OK; PNR_EUNAVAILABLE; PNR_EEND: *stop (may be
 * NULL) was set. */
int pnr_worker_list_devices(const char *engine, const volatile int *stop, pnr_devices *out,
                            pnr_error *error);

/* Allocates the shared memory. samples_fd: memory of the samples. PNR_OK, PNR_ENOMEMORY. Call close
 * also after an error. */
int pnr_worker_open(pnr_worker_process *w, const pnr_isolation_parts *parts, int samples_fd,
                    pnr_error *error);
/* Kills the worker and frees the memory. If the worker was told that the stream has ended, first
 * waits up to a second until the worker ends. */
void pnr_worker_close(pnr_worker_process *w);

/* Starts a worker with this engine and with empty queues. left_out, unreported: as in
 * pnr_shared_order. left_out is NULL for the first worker, which must have all devices. If the
 * start fails, pnr_worker_is_lost returns true. */
void pnr_worker_start(pnr_worker_process *w, const char *engine, const pnr_devices *left_out,
                      uint64_t unreported);
/* Kills the worker, and waits until its process has ended. Its results stay readable. */
void pnr_worker_kill(pnr_worker_process *w);
/* Returns true if a started worker has ended, has failed, or hangs, and writes the reason. Sets
 * w->is_ready. has_views: the worker has views without results. */
bool pnr_worker_is_lost(pnr_worker_process *w, bool has_views, char *reason, size_t size);

/* Appends a view, a part or the end to the worker's queue. False: the queue is full. */
bool pnr_worker_send(pnr_worker_process *w, int kind, const pnr_windows *windows);

#endif
