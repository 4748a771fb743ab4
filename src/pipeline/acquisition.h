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

/* The parts and the state of the acquisition thread. The processing thread and the publishing
 * thread also use them. */
typedef struct pnr_acquisition {
    pnr_source *source;
    pnr_ring *ring;
    pnr_sample_recorder *recorder; /* NULL: recorder.samples is empty */
    bool is_loss_event;            /* a loss triggers the recorder */
    size_t chunk;                  /* greatest number of samples in one read */
    uint64_t first_sample;         /* index of the first sample that the source reads */
    /* A live read ends at or before the next sample first_window + i * dwell (i = 0, 1, ...), so
     * that the engine gets each dwell as soon as the dwell is complete. first_window: index of the
     * first window, plus the number of samples that a linear window needs after its dwell. dwell:
     * number of samples of a dwell; 0: reads have no such limit. Another configuration changes
     * both. */
    _Atomic uint64_t first_window;
    _Atomic size_t dwell;
    void *spare; /* [chunk] for samples of a live source when the ring is full */
    pnr_rational rate_hz;
    bool has_start; /* the configuration or the file states the time of sample 0 */
    int64_t stated_start_utc_ns;
    bool is_clocked;              /* the source is not a file; if no time is stated, the time of
                                   * sample 0 is read from the host's clock */
    bool is_live;                 /* the source cannot wait: samples are lost while the ring is
                                   * full */
    bool is_paced;                /* the source is a recording that plays in real time */
    const volatile int *stop;     /* may be NULL */
    pnr_turns turns;              /* turns of this thread, for the watchdog */
    _Atomic int cancel;           /* not 0: the pipeline stops this thread */
    _Atomic int64_t start_utc_ns; /* host time of sample 0; 0 before the first samples */
    _Atomic int64_t source_start_utc_ns; /* time of sample 0 according to the source; 0: unknown */
    pnr_events *events;                  /* gets an event when start_utc_ns is changed; may be
                                          * NULL */
    uint64_t late_since_ns; /* all samples after this time are late, compared with the host's clock;
                             * 0: samples are not late */
    int64_t least_late_ns;  /* least lateness since late_since_ns */
    int64_t moved_ns;       /* sum of all changes of start_utc_ns */
    int code;               /* after the end: PNR_OK, or the error of the source */
    pnr_error error;
} pnr_acquisition;

/* Reads until the end of the source, stop or cancel, then ends the ring. */
void pnr_acquisition_run(pnr_acquisition *acquisition);

/* Returns the origin of the time of sample 0, and sets *utc_ns to this time unless the origin is
 * PNR_TIME_NONE. Any thread may call this. */
pnr_time_source pnr_acquisition_start(const pnr_acquisition *acquisition, int64_t *utc_ns);

#endif
