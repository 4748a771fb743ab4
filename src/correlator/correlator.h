/* SPDX-License-Identifier: MIT */
/* The correlator submits jobs, returns their results in order, and remembers the submits in flight.
 * It deals the jobs out to engines on several devices. A device that is lost leaves its jobs to the
 * others. */
#ifndef PNR_CORRELATOR_H
#define PNR_CORRELATOR_H

#include "base/error.h"
#include "engine/block.h"
#include "engine/devices.h"
#include "engine/engine.h"

typedef struct pnr_correlator pnr_correlator;

/* choice: filled by describe for this plan. devices: as pnr_engine_list_devices leaves them; an
 * engine that ignores devices is created once. lost: devices that do not work; NULL: none, and an
 * engine that cannot be created is an error. Else its device is lost, and the error is that of the
 * last one if all are. Returns the codes of create in engine.h. */
int pnr_correlator_create(const pnr_engine_ops *ops, const pnr_plan *plan,
                          const pnr_engine_choice *choice, const pnr_devices *devices,
                          const pnr_devices *lost, pnr_correlator **out, pnr_error *error);
void pnr_correlator_destroy(pnr_correlator *correlator);

/* True if plan.depth submits for each device that is left are not in flight. */
bool pnr_correlator_has_room(const pnr_correlator *correlator);
/* Copies the header of the windows, not their samples. Waits only after a device is lost, until the
 * others have finished their jobs. PNR_OK: `collect` returns the result or the failure of this job;
 * PNR_EAGAIN: there is no room; PNR_ELOST: all devices are lost. */
int pnr_correlator_submit(pnr_correlator *correlator, const pnr_windows *windows);
/* Uploads the part of the next submit that has already arrived; never waits. PNR_OK; PNR_EAGAIN:
 * there is no room, or the engine does not upload ahead; PNR_ELOST: all devices are lost. */
int pnr_correlator_upload_ahead(pnr_correlator *correlator, const pnr_windows *windows);
/* Returns the result of the oldest job. It is valid until the next submit or collect. Sets *windows
 * to the header of this job, even if the job failed. While another device is left, a failed job is
 * done again there once. A device is lost if its engine returns PNR_ELOST, an unknown code or the
 * result of another job, or after 16 failures in a row. PNR_OK; PNR_EAGAIN: not ready (only when
 * !wait), or nothing in flight; PNR_ELOST: all devices are lost; other codes: this job failed. */
int pnr_correlator_collect(pnr_correlator *correlator, bool wait, pnr_windows *windows,
                           pnr_result *result);
/* Subtracts these echoes from one dwell of the last collected result and searches this dwell again
 * (see engine.h). Waits for the result. PNR_EUNSUPPORTED: the engine cannot do this. */
int pnr_correlator_search_without(pnr_correlator *correlator, const pnr_windows *windows,
                                  size_t dwell, const pnr_removal *removals, size_t n_removals,
                                  pnr_result *result);
/* Returns the engine and its method for messages, as "cuda/library". */
const char *pnr_correlator_name(const pnr_correlator *correlator);
/* Returns the devices that get jobs, and those that are lost so far. */
pnr_device_state pnr_correlator_devices(const pnr_correlator *correlator);
/* Returns why the last device was lost. */
const char *pnr_correlator_reason(const pnr_correlator *correlator);

#endif
