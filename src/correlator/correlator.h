/* SPDX-License-Identifier: MIT */
/* The correlator submits jobs, returns their results in order, and remembers the submits in
 * flight. */
#ifndef PNR_CORRELATOR_H
#define PNR_CORRELATOR_H

#include "base/error.h"
#include "engine/block.h"
#include "engine/engine.h"

typedef struct pnr_correlator pnr_correlator;

/* choice: filled by describe for this plan. Returns the codes of create in engine.h. */
int pnr_correlator_create(const pnr_engine_ops *ops, const pnr_plan *plan,
                          const pnr_engine_choice *choice, pnr_correlator **out, pnr_error *error);
void pnr_correlator_destroy(pnr_correlator *correlator);

/* Never waits. Copies the header of the windows, not their samples. Returns the codes of submit in
 * engine.h. */
int pnr_correlator_submit(pnr_correlator *correlator, const pnr_windows *windows);
/* Uploads the part of the next submit that has already arrived; never waits. PNR_OK; PNR_EAGAIN:
 * depth submits are in flight, or the engine does not upload ahead; PNR_ELOST. */
int pnr_correlator_upload_ahead(pnr_correlator *correlator, const pnr_windows *windows);
/* Returns the result of the oldest job. Sets *windows to the header of this job, even if the job
 * failed (PNR_EENGINE, PNR_ELOST). Returns the codes of collect in engine.h. */
int pnr_correlator_collect(pnr_correlator *correlator, bool wait, pnr_windows *windows,
                           pnr_result *result);
/* Subtracts these echoes from one dwell of the last collected result and searches this dwell again
 * (see engine.h). Waits for the result. PNR_EUNSUPPORTED: the engine cannot do this. */
int pnr_correlator_search_without(pnr_correlator *correlator, const pnr_windows *windows,
                                  size_t dwell, const pnr_removal *removals, size_t n_removals,
                                  pnr_result *result);
/* Returns the engine and its method for messages, as "cuda/library". */
const char *pnr_correlator_name(const pnr_correlator *correlator);

#endif
