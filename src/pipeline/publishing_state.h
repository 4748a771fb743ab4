/* SPDX-License-Identifier: MIT */
/* The state of the publishing thread. publishing.c is the thread and its queue, report.c makes
 * reports from results, cells.c describes profiles and maps, status.c reports the state and closes
 * the account. */
#ifndef PNR_PUBLISHING_STATE_H
#define PNR_PUBLISHING_STATE_H

#include "base/stats.h"
#include "detector/slip.h"
#include "detector/zero.h"
#include "pipeline/deadline.h"
#include "pipeline/publishing.h"
#include "publisher/publisher.h"
#include "recorder/result_recorder.h"

#include <pthread.h>
#include <stdatomic.h>

struct pnr_publishing {
    pnr_publishing_parts parts;
    pthread_t thread;
    pnr_bell *bell; /* the bell that wakes the thread: own_bell, or a bell that a worker also
                     * rings */
    pnr_bell own_bell;
    atomic_bool is_over;        /* no more records follow */
    atomic_bool is_idle;        /* the processing thread waits for samples */
    bool spins, packs, is_live; /* the same for all configurations of the run */
    /* parts of another configuration, used after the last record of `queue`; NULL: none */
    pnr_publishing *_Atomic next;
    uint64_t next_sample, next_skipped; /* first sample of the first window of `next`; samples
                                         * skipped before this sample */
    atomic_bool has_taken;              /* the thread has exchanged these parts with its own */

    /* --- the processing thread --- */
    pnr_queue *to;               /* the processing thread writes records to this queue */
    size_t cells_bytes;          /* bytes of the cells of a result; 0: no cells */
    pnr_made *made;              /* the lent result */
    bool has_cells;              /* the lent memory has space for the cells */
    pnr_made spare;              /* lent while the queue is full */
    uint64_t n_unsent;           /* results refused by the full queue since the last record */
    _Atomic uint64_t account_ns; /* time of the last account */

    /* --- the publishing thread --- */
    pnr_queue *queue;
    pnr_publisher *publisher;
    pnr_result_recorder *recorder; /* NULL: recorder.results is empty */
    pnr_report report;             /* report of the present dwell */
    pnr_map_info map;              /* describes the map of the present dwell; map.row describes its
                                    * profile */
    const char **code_names;       /* [plan.n_codes] names of the codes in the map */
    double gate_delay_s; /* delay of gate_first_cell if the zero delay is radar.zero_delay_s */
    size_t gate_first_cell;
    pnr_zero_tracker zero;
    pnr_slip_tracker slip;
    bool is_zero_kept;    /* the zero delay is written to radar.zero_state_path */
    bool is_zero_refused; /* a write to radar.zero_state_path has failed */
    bool is_fresh;        /* a record was read after the last call of options->pause */
    bool has_flushed;     /* before the last wait the processing thread was idle, and the pack was
                           * sent */
    pnr_account samples;  /* the last account of samples and windows */
    pnr_account account;  /* the counts of results */
    int failure;          /* error code of the last submit that failed */
    pnr_device_state devices;
    pnr_devices lost_told;  /* lost devices that have been reported */
    uint64_t n_told;        /* number of dropped windows that have been reported */
    uint64_t n_unsent_told; /* number of unsent results that have been reported */
    uint64_t n_maps_told;   /* number of unsent profiles and maps that have been reported */
    bool does_hang;         /* the processing thread has begun no turn in the last
                             * engine.deadline_hang seconds */
    bool is_clipping;       /* the last dwell had clipped samples */
    pnr_deadline deadline;
    pnr_histogram latency_ns;
    uint64_t n_echoes;  /* echoes of all results */
    uint64_t began_ns;  /* time when the threads start */
    uint64_t now_ns;    /* time of the last result or wait; kept, because each reading of the clock
                         * takes time */
    uint64_t status_ns; /* time of the last status; at first began_ns */
    pnr_watchdog watchdog;
};

/* --- cells.c --- */

/* Fills in the constants of profiles and maps. PNR_OK; PNR_ECONFIG: the steps of Doppler between
 * the rows change too often; PNR_ENOMEMORY. */
int pnr_publishing_fill_map(pnr_publishing *p, pnr_error *error);
/* Publishes the cells of the present report, and passes them to options->tap_cells. */
void pnr_publishing_give_cells(pnr_publishing *p, const pnr_dwell *dwell, const float *cells);

/* --- report.c --- */

/* Makes the report of a result, updates the trackers and the counts, publishes the report, and
 * calls the tap. */
void pnr_publishing_report(pnr_publishing *p, const pnr_made *made);

/* --- publishing.c --- */

/* Sends the results that are still in a pack. */
void pnr_publishing_finish_pack(pnr_publishing *p);

/* --- change.c --- */

/* Starts the trackers. The tracker of the zero delay reads the state file, if there is one. */
void pnr_publishing_begin_trackers(pnr_publishing *p);
/* Sets the values that the configuration determines: the deadline, and the engine, the rate and the
 * probability of false alarm in the reports. */
void pnr_publishing_begin_reports(pnr_publishing *p);
/* Exchanges the parts with those of p->next, and begins another run. */
void pnr_publishing_take_change(pnr_publishing *p);

/* --- status.c --- */

/* Writes the zero delay for the next run. Logs only the first failure. lasting: writes to the disk,
 * not only to the page cache. */
void pnr_publishing_keep_zero(pnr_publishing *p, bool lasting);

/* Logs and publishes the events that wait. */
void pnr_publishing_tell_events(pnr_publishing *p);
/* Sends a status when a second has passed since the last one. */
void pnr_publishing_send_status(pnr_publishing *p);

#endif
