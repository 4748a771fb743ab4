/* SPDX-License-Identifier: MIT */
/* The memory that a run and its worker share: an order, a queue of views of samples, a queue of
 * results, and the worker's state. The samples have their own shared memory. */
#ifndef PNR_SHARED_H
#define PNR_SHARED_H

#include "base/error.h"
#include "base/format.h"
#include "engine/block.h"
#include "engine/devices.h"
#include "pipeline/exchange.h"
#include "pipeline/realtime.h"
#include "ring/bell.h"
#include "ring/queue.h"

#include <stdatomic.h>
#include <sys/types.h>

/* The order: the parameters of the worker. The run writes them before the worker starts. */
typedef struct pnr_shared_order {
    size_t bytes[2]; /* sizes of pnr_shared and pnr_made, to check that run and worker are the same
                      * program */
    pid_t parent;
    int samples_fd;
    size_t capacity, sample_bytes; /* samples of the ring; bytes of a sample of all channels */
    pnr_format format;
    size_t n_channels;
    bool is_live, wants_power;
    size_t max_dwells;
    size_t most_view_bytes, cells_bytes; /* bytes of a record of a view, and of the cells of a
                                          * result */
    char engine[48];
    pnr_devices devices;
    pnr_devices left_out;  /* devices that have caused the loss of workers */
    bool may_lack_devices; /* a device that does not work is no error, because an earlier worker was
                            * lost */
    uint64_t unreported;   /* number of samples without a result directly before the first view */
    size_t config_at, config_bytes, views_at, results_at; /* offsets from the start of the shared
                                                           * memory */
} pnr_shared_order;

/* The bells are after the samples in the same memory, which lives as long as the ring of samples.
 * Each bell has a cache line of its own. Each call of pnr_bell_ring wakes all threads of both
 * processes that wait for this bell, so that their wake-ups overlap. */
typedef struct pnr_shared_bells {
    /* The processing thread waits for samples and results. The worker waits for views. */
    _Alignas(64) pnr_bell samples;
    _Alignas(64) pnr_bell results; /* the publishing thread waits for results */
} pnr_shared_bells;

/* A thread polls for this time after a bell has woken it. The same bell has woken the processing
 * thread, which will soon pass on a view or a result. */
enum { PNR_LINGER_NS = 20000 };

/* Returns the offset of the bells after sample_bytes bytes of samples. *bytes: the size of the
 * samples and the bells. */
size_t pnr_shared_bells_at(size_t sample_bytes, size_t *bytes);

typedef enum { PNR_WORKER_STARTING, PNR_WORKER_READY, PNR_WORKER_FAILED } pnr_worker_state;

typedef struct pnr_shared {
    pnr_shared_order order;
    _Atomic bool is_half_full; /* the ring is at least half full */

    /* --- written by the worker --- */
    _Atomic int state; /* a pnr_worker_state. FAILED: `error` is valid; READY: engine, ahead and
                        * realtime are valid */
    pnr_error error;   /* reason of PNR_WORKER_FAILED */
    char engine[48];   /* such as "cuda/library" */
    size_t ahead;      /* least number of samples in one upload of a part of a dwell; 0: only
                        * complete dwells are uploaded */
    pnr_realtime_outcome realtime;
    _Atomic uint64_t turns;    /* turns of the worker's loop */
    _Atomic size_t first_lost; /* 1 + index of the device that was lost first; 0: none */
} pnr_shared;

/* A record of the queue of views. The arrays of pnr_windows follow: ready_ns, lost_runs, lost. */
typedef struct pnr_shared_view {
    enum { PNR_VIEW_WHOLE, PNR_VIEW_PART, PNR_VIEW_END } kind;
    uint64_t first_sample, lost_before;
    size_t n_samples; /* samples in both spans */
    size_t n_dwells, n_periods, n_ready, n_runs, n_lost;
} pnr_shared_view;

/* Returns the greatest size of the record of a view, in bytes. */
size_t pnr_shared_view_bytes(size_t max_dwells, size_t n_periods);
/* Writes the record of a view or of a part. Returns the size of the record in bytes. */
size_t pnr_shared_write_view(pnr_shared_view *to, int kind, const pnr_windows *windows);
/* Returns the view that a record describes. The samples of the view are in `memory`, and its arrays
 * are in the record. */
pnr_windows pnr_shared_read_view(const pnr_shared_view *from, const pnr_shared_order *order,
                                 const void *memory);

/* The record that follows the results of a view in the queue of results. Its kind is
 * PNR_MADE_ACCOUNT. */
typedef struct pnr_shared_finish {
    pnr_made_head head;
    pnr_counted counted;
} pnr_shared_finish;

#endif
