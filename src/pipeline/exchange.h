/* SPDX-License-Identifier: MIT */
/* The input and output of the loop in processing.c. The loop reads views of samples. It writes
 * dwells with their echoes, and the counts of samples and windows. The exchange connects the loop
 * with the ring and the publishing thread, or with another process. */
#ifndef PNR_EXCHANGE_H
#define PNR_EXCHANGE_H

#include "base/account.h"
#include "detector/detector.h"
#include "engine/block.h"
#include "engine/devices.h"
#include "engine/engine.h"
#include "ring/queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of each record in a queue of results. */
typedef struct pnr_made_head {
    enum { PNR_MADE_RESULT, PNR_MADE_ACCOUNT } kind;
    uint64_t n_unsent; /* number of results that the full queue has refused since the previous
                        * record */
} pnr_made_head;

/* A dwell and its detection, as a record of a queue. The record has only the first
 * detection.n_echoes echoes; the cells follow them. */
typedef struct pnr_made {
    pnr_made_head head;   /* set by commit */
    size_t cells_at;      /* offset of the cells from the start of the record; 0: none; set by
                           * commit */
    uint64_t sample;      /* index of the first sample of the dwell */
    uint64_t lost;        /* samples of the dwell that are lost or not finite */
    uint64_t lost_before; /* all samples between the previous result and this dwell, also lost
                           * ones */
    uint64_t ready_ns, submitted_ns, collected_ns; /* as in pnr_windows */
    bool is_restarted;                             /* the first result of a new worker */
    const char *engine;                            /* NULL: the engine of the run */
    pnr_dwell dwell;
    pnr_detection detection;
} pnr_made;

/* The reader of the results is woken at the latest after this number of committed results. It then
 * reads them while the next results are computed. */
enum { PNR_MADE_TOGETHER = 128 };

/* Returns the greatest size of a result with its cells, in bytes. */
size_t pnr_made_most_bytes(size_t cells_bytes);
/* Returns the size of a result without its cells, in bytes. */
size_t pnr_made_bytes(const pnr_made *made);
/* Copies the cells (NULL: none) to the memory after the result, and sets cells_at. The memory must
 * have pnr_made_most_bytes() bytes. Returns the size of the record in bytes. */
size_t pnr_made_finish(pnr_made *made, const float *cells, size_t cells_bytes);
/* Returns the cells of a record; NULL: none. */
const float *pnr_made_cells(const pnr_made *made);

/* The account of the samples and windows of one view, and the state of the engine after it. */
typedef struct pnr_counted {
    pnr_account account;
    uint64_t unreported; /* samples after the last result, up to the end of this view */
    int failure;         /* error code of the last submit that failed */
    pnr_device_state devices;
} pnr_counted;

/* `of` is the first argument of each function. */
typedef struct pnr_exchange {
    void *of;
    /* --- samples: as pnr_ring_acquire, _peek, _wait and _is_half_full --- */
    int (*acquire)(void *of, size_t max_dwells, pnr_windows *out);
    int (*peek)(void *of, size_t at_least, pnr_windows *out);
    int (*wait)(void *of, size_t at_least, pnr_queue *queue, uint64_t patience_ns);
    bool (*is_half_full)(const void *of);
    /* Releases the oldest view: the engine no longer needs its samples. */
    void (*release)(void *of, const pnr_counted *counted);

    /* --- results --- */
    /* Lends memory for the next result; never NULL. */
    pnr_made *(*reserve)(void *of);
    /* Appends the lent result with its cells; NULL: none. */
    void (*commit)(void *of, const float *cells);
    /* Finishes the oldest unfinished view: all its results are committed. */
    void (*finish)(void *of, const pnr_counted *counted);
    /* Wakes the reader of the results. is_idle: no result is being computed. */
    void (*wake)(void *of, bool is_idle);
    /* The loop calls this at the start of each turn. */
    void (*turn)(void *of);
} pnr_exchange;

#endif
