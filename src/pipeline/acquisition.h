/* SPDX-License-Identifier: MIT */
/* The acquisition thread: source -> ring, at the recording's own pace or as fast as it goes. */
#ifndef PNR_ACQUISITION_H
#define PNR_ACQUISITION_H

#include "base/error.h"
#include "config/config.h"
#include "ring/ring.h"
#include "source/source.h"

#include <stdatomic.h>

/* Shared by the thread and who started it. */
typedef struct pnr_acquisition {
    pnr_source *source;
    pnr_ring *ring;
    size_t chunk; /* samples a read, at most */
    uint64_t first_window;
    size_t dwell; /* samples; a live read ends where a dwell ends, so that its last sample waits for
                     no other; 0: anywhere */
    void *spare;  /* [chunk] where a live source's samples go when the ring is full */
    pnr_rational rate_hz;
    bool is_live;                 /* never waits: a full ring drops */
    bool is_paced;                /* a recording played in real time */
    const volatile int *stop;     /* may be NULL */
    _Atomic int cancel;           /* the pipeline's own stop */
    _Atomic int64_t start_utc_ns; /* host time of sample 0, once the first samples came; 0 before */
    int code;                     /* after the end: PNR_OK, or the source's error */
    pnr_error error;
} pnr_acquisition;

/* The whole thread: reads until the end, stop or cancel, then ends the ring. */
void pnr_acquisition_run(pnr_acquisition *acquisition);

#endif
