/* SPDX-License-Identifier: MIT */
/* The processing thread: feeds the engine with views of samples, and detects the echoes of its
 * results. processing.c is the loop, processing_parts.c opens and closes, result.c detects. */
#ifndef PNR_PROCESSING_H
#define PNR_PROCESSING_H

#include "correlator/correlator.h"
#include "correlator/engines.h"
#include "detector/detector.h"
#include "pipeline/clean.h"
#include "pipeline/exchange.h"
#include "pipeline/pending.h"
#include "pipeline/team.h"
#include "setup/setup.h"

#include <pthread.h>

typedef struct pnr_processing {
    const pnr_config *config;
    const pnr_setup *setup;
    bool is_live;      /* samples arrive at a fixed rate and cannot wait */
    size_t max_dwells; /* greatest number of dwells of a submit */
    const pnr_exchange *exchange;
    pnr_devices devices; /* the devices of engine.device; if may_lack is set, pnr_processing_choose
                          * removes those that do not work */
    bool may_lack;       /* a device that does not work is no error, because an earlier worker was
                          * lost */
    pnr_devices lost;    /* the missing devices */
    const pnr_engine_ops *ops;
    pnr_engine_choice choice;
    pnr_correlator *correlator;
    pthread_t opening; /* opens the detector while the device starts */
    bool is_opening;
    int detector_code; /* outcome of the thread `opening` */
    pnr_error detector_error;
    pnr_detector *detector;
    pnr_team *team;       /* detects on several threads */
    pnr_pending *pending; /* NULL: each result is reported before the next one is collected */
    size_t pending_dwell; /* next dwell to report, in the oldest pending result */
    pnr_clean *clean;     /* NULL: detector.subtract is 0 */
    size_t ahead;         /* least number of samples in one upload of a part of a dwell; 0: only
                           * complete dwells are uploaded */

    /* The views in the engine are n_back .. n_fed - 1. View i is at
     * fed[i mod PNR_MAX_IN_FLIGHT]. */
    pnr_windows fed[PNR_MAX_IN_FLIGHT];
    uint64_t n_fed, n_back; /* views submitted to the engine; views that the engine has finished */
    int failure;            /* error code of the last failed submit */
    uint64_t unreported;    /* samples since the last result, also lost ones */
} pnr_processing;

/* Chooses the engine of this name for views of up to max_dwells dwells, and starts a thread that
 * opens the detector. The caller has set config, setup, devices, is_live and max_dwells. Errors:
 * those of pnr_engine_list_devices and pnr_engine_choose. */
int pnr_processing_choose(pnr_processing *p, const char *engine, pnr_error *error);
/* Refuses a plan if the plan and a ring of n_samples need more memory than the system has free.
 * Without this check the system would grant the memory, and would later kill the program. Counts
 * the memory of the engine only after pnr_processing_choose. has_ring: the ring is already
 * allocated. PNR_OK, PNR_ENOMEMORY. */
int pnr_processing_check_memory(const pnr_processing *p, size_t n_samples, bool has_ring,
                                pnr_error *error);
/* Opens all parts except the exchange. Call pnr_processing_choose first. Call close also after an
 * error. */
int pnr_processing_open(pnr_processing *p, pnr_error *error);
void pnr_processing_close(pnr_processing *p);

/* Runs until the stream ends. PNR_EEND: every result is committed. PNR_ELOST: all devices are lost.
 * Then the views n_back .. n_fed - 1 have no result, and all results of earlier views are
 * committed. */
int pnr_processing_run(pnr_processing *p);

/* Returns the counts of a view: *account, and the other members of pnr_counted from *p. */
pnr_counted pnr_processing_counted(const pnr_processing *p, const pnr_account *account);
/* Releases and finishes windows without a result. reason: offset of the member of pnr_account that
 * counts them. */
void pnr_processing_drop(pnr_processing *p, const pnr_windows *windows, size_t reason);

/* --- result.c --- */

/* Passes each dwell of a result to the detector and to the exchange, then releases and finishes the
 * view. If p->pending is not NULL, copies the result and releases the view: the dwells wait for the
 * detection threads, and pnr_processing_report_pending passes them to the exchange. */
void pnr_processing_report(pnr_processing *p, const pnr_windows *windows, const pnr_result *result);
/* Reports the oldest dwell that waits. False: none waits, or it is not ready and `wait` is
 * false. */
bool pnr_processing_report_pending(pnr_processing *p, bool wait);

#endif
