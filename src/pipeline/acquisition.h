/* SPDX-License-Identifier: MIT */
/* The acquisition thread: moves samples from the source to the ring. */
#ifndef PNR_ACQUISITION_H
#define PNR_ACQUISITION_H

#include "base/error.h"
#include "config/config.h"
#include "pipeline/watchdog.h"
#include "recorder/sample_recorder.h"
#include "ring/ring.h"
#include "source/source.h"

#include <stdatomic.h>

/* The state that the acquisition thread and the processing thread share. */
typedef struct pnr_acquisition {
    pnr_source *source;
    pnr_ring *ring;
    pnr_sample_recorder *recorder; /* NULL: recorder.samples is empty */
    bool is_loss_event;            /* the recorder is told of losses */
    size_t chunk;                  /* greatest number of samples in one read */
    uint64_t first_sample;         /* position of the first sample that the source reads */
    /* Samples of a dwell, and where one begins: a live read stops at the end of a dwell, so that
     * the dwell is ready at once. 0: reads have no such limit. Another configuration changes
     * them. */
    _Atomic uint64_t first_window;
    _Atomic size_t dwell;
    void *spare; /* [chunk] for samples of a live source when the ring is full */
    pnr_rational rate_hz;
    bool has_start; /* the configuration or the file states the time of sample 0 */
    int64_t stated_start_utc_ns;
    bool is_clocked;              /* the source is no file: without a stated time, the host's clock
                                   * gives it */
    bool is_live;                 /* the source cannot wait: a full ring drops samples */
    bool is_paced;                /* the source is a recording that plays in real time */
    const volatile int *stop;     /* may be NULL */
    pnr_turns turns;              /* of this thread, for the watchdog */
    _Atomic int cancel;           /* stop flag of the pipeline itself */
    _Atomic int64_t start_utc_ns; /* host time of sample 0; 0 before the first samples */
    _Atomic int64_t source_start_utc_ns; /* time of sample 0 as the source states it; 0 before it
                                          * does */
    pnr_events *events;                  /* gets each move of the host's time; may be NULL */
    uint64_t
        late_since_ns;     /* since then all samples are late by the host's time; 0: they are not */
    int64_t least_late_ns; /* the least since then */
    int64_t moved_ns;      /* of start_utc_ns, in all */
    int code;              /* after the end: PNR_OK, or the error of the source */
    pnr_error error;
} pnr_acquisition;

/* Reads until the end of the source, stop or cancel, then ends the ring. */
void pnr_acquisition_run(pnr_acquisition *acquisition);

/* Returns the origin of the time of sample 0, and sets *utc_ns unless it is PNR_TIME_NONE. Any
 * thread may call it. */
pnr_time_source pnr_acquisition_start(const pnr_acquisition *acquisition, int64_t *utc_ns);

#endif
