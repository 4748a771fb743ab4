/* SPDX-License-Identifier: MIT */
/* The memory that a run and its worker share: an order, a queue of views of samples, a queue of
 * results, and the worker's state. The samples lie in memory of their own. */
#ifndef PNR_SHARED_H
#define PNR_SHARED_H

#include "base/error.h"
#include "base/format.h"
#include "engine/block.h"
#include "engine/devices.h"
#include "pipeline/exchange.h"
#include "pipeline/realtime.h"
#include "ring/queue.h"

#include <stdatomic.h>
#include <sys/types.h>

/* What the worker is to do. The run writes it before the worker starts. */
typedef struct pnr_shared_order {
    size_t bytes[2]; /* sizes of pnr_shared and pnr_made: both sides must be the same program */
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
    pnr_devices left_out;  /* these of them have taken workers down */
    bool may_lack_devices; /* an earlier worker was lost: those that still work go on */
    uint64_t unreported;   /* number of samples without a result directly before the first view */
    size_t config_at, config_bytes, views_at, results_at; /* offsets from the begin */
} pnr_shared_order;

typedef enum { PNR_WORKER_STARTING, PNR_WORKER_READY, PNR_WORKER_FAILED } pnr_worker_state;

typedef struct pnr_shared {
    pnr_shared_order order;
    _Atomic bool is_half_full; /* the ring */

    /* --- written by the worker --- */
    _Atomic int state; /* a pnr_worker_state; once it has changed, the next four are valid */
    pnr_error error;   /* why it failed */
    char engine[48];   /* "cuda/library" */
    size_t ahead;      /* smallest part to upload ahead, in samples; 0: none */
    pnr_realtime_outcome realtime;
    _Atomic uint64_t turns;    /* of its loop */
    _Atomic size_t first_lost; /* 1 + the device that was lost first; 0: none */
} pnr_shared;

/* A record of the queue of views. The arrays of pnr_windows follow: ready_ns, lost_runs, lost. */
typedef struct pnr_shared_view {
    enum { PNR_VIEW_WHOLE, PNR_VIEW_PART, PNR_VIEW_END } kind;
    uint64_t first_sample, lost_before;
    size_t n_samples; /* in the spans */
    size_t n_dwells, n_periods, n_ready, n_runs, n_lost;
} pnr_shared_view;

/* Greatest bytes of the record of a view. */
size_t pnr_shared_view_bytes(size_t max_dwells, size_t n_periods);
/* Writes the record of a view or part; returns its bytes. */
size_t pnr_shared_write_view(pnr_shared_view *to, int kind, const pnr_windows *windows);
/* Makes the view of a record, with the samples in `memory`. The arrays stay in the record. */
pnr_windows pnr_shared_read_view(const pnr_shared_view *from, const pnr_shared_order *order,
                                 const void *memory);

/* A record of the queue of results after those of a view: PNR_MADE_ACCOUNT. */
typedef struct pnr_shared_finish {
    pnr_made_head head;
    pnr_counted counted;
} pnr_shared_finish;

#endif
