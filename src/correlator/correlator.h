/* SPDX-License-Identifier: MIT */
/* The correlator submits jobs, returns their results in order, and remembers what is in flight. */
#ifndef PNR_CORRELATOR_H
#define PNR_CORRELATOR_H

#include "base/error.h"
#include "engine/block.h"
#include "engine/engine.h"

typedef struct pnr_correlator pnr_correlator;

/* choice: the result of describe for this plan. Codes as for create in engine.h. */
int pnr_correlator_create(const pnr_engine_ops *ops, const pnr_plan *plan,
                          const pnr_engine_choice *choice, pnr_correlator **out, pnr_error *error);
void pnr_correlator_destroy(pnr_correlator *correlator);

/* Never waits. Copies the header of the windows, not their samples. Codes as in engine.h. */
int pnr_correlator_submit(pnr_correlator *correlator, const pnr_windows *windows);
/* Uploads the part of the next submit that has already arrived; never waits. PNR_OK; PNR_EAGAIN:
 * depth submits are in flight, or the engine does not upload ahead; PNR_ELOST. */
int pnr_correlator_upload_ahead(pnr_correlator *correlator, const pnr_windows *windows);
/* Returns the result of the oldest job. Sets *windows to the header of this job, even if the job
 * failed (PNR_EENGINE, PNR_ELOST). Codes as in engine.h. */
int pnr_correlator_collect(pnr_correlator *correlator, bool wait, pnr_windows *windows,
                           pnr_result *result);
/* Subtracts these echoes from one dwell of the last collected result and searches this dwell again
 * (see engine.h). Waits for the result. PNR_EUNSUPPORTED: the engine cannot do this. */
int pnr_correlator_search_without(pnr_correlator *correlator, const pnr_windows *windows,
                                  size_t dwell, const pnr_removal *removals, size_t n_removals,
                                  pnr_result *result);
/* "cuda/library", for messages. */
const char *pnr_correlator_name(const pnr_correlator *correlator);

#endif
