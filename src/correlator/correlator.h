/* SPDX-License-Identifier: MIT */
/* The correlator submits jobs, returns their results in order, and stores the submits in flight. It
 * distributes the jobs to engines on several devices. If a device is lost, the other devices get
 * its jobs. */
#ifndef PNR_CORRELATOR_H
#define PNR_CORRELATOR_H

#include "base/error.h"
#include "engine/block.h"
#include "engine/devices.h"
#include "engine/engine.h"

typedef struct pnr_correlator pnr_correlator;

/* Creates the engines. choice: filled by the function describe of the engine for this plan.
 * devices: a list from pnr_engine_list_devices; an engine that ignores devices is created once.
 * lost: devices that are already known not to work. An engine cannot always be created on a device.
 * If `lost` is NULL, this is an error. If `lost` is not NULL, the correlator counts this device as
 * lost too. If all devices are lost, the error is the error of the last one. Returns PNR_OK or an
 * error of the function create in engine.h. */
int pnr_correlator_create(const pnr_engine_ops *ops, const pnr_plan *plan,
                          const pnr_engine_choice *choice, const pnr_devices *devices,
                          const pnr_devices *lost, pnr_correlator **out, pnr_error *error);
void pnr_correlator_destroy(pnr_correlator *correlator);

/* True if the number of submits in flight is below plan.depth times the number of remaining
 * devices. */
bool pnr_correlator_has_room(const pnr_correlator *correlator);
/* Submits windows. Copies their header, not their samples. Waits only after a device is lost,
 * until the other devices have finished their jobs. Returns PNR_OK: pnr_correlator_collect
 * returns the result or the failure of this job; PNR_EAGAIN: pnr_correlator_has_room is false;
 * PNR_ELOST: all devices are lost. */
int pnr_correlator_submit(pnr_correlator *correlator, const pnr_windows *windows);
/* Uploads the part of the next submit that has already arrived. Waits only after a device is lost,
 * as pnr_correlator_submit does. Returns PNR_OK; PNR_EAGAIN: there is no room, or the engine does
 * not upload ahead; PNR_ELOST: all devices are lost. */
int pnr_correlator_upload_ahead(pnr_correlator *correlator, const pnr_windows *windows);
/* Returns the result of the oldest job. It is valid until the next submit or collect. Sets *windows
 * to the header of this job, even if the job failed. A job that failed is submitted once more, to
 * another device, if one remains. A device is lost if its engine returns PNR_ELOST, an unknown
 * status or the result of another job, or after 16 failures in sequence. Returns PNR_OK;
 * PNR_EAGAIN: the result is not ready (only if !wait), or no job is in flight; PNR_ELOST: all
 * devices are lost; another error: this job failed. */
int pnr_correlator_collect(pnr_correlator *correlator, bool wait, pnr_windows *windows,
                           pnr_result *result);
/* Subtracts the echoes in `removals` from the samples of one dwell of the last collected result.
 * Then searches this dwell again (see engine.h). Waits for the result. PNR_EUNSUPPORTED: the engine
 * cannot do this. */
int pnr_correlator_search_without(pnr_correlator *correlator, const pnr_windows *windows,
                                  size_t dwell, const pnr_removal *removals, size_t n_removals,
                                  pnr_result *result);
/* Returns the engine and its method for messages, as "cuda/library". */
const char *pnr_correlator_name(const pnr_correlator *correlator);
/* Returns the devices that get jobs, and the lost devices. Both lists are empty if the run began
 * with one device or if the engine ignores devices. */
pnr_device_state pnr_correlator_devices(const pnr_correlator *correlator);
/* Returns the reason of the last loss of a device. */
const char *pnr_correlator_reason(const pnr_correlator *correlator);

#endif
