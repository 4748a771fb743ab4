/* SPDX-License-Identifier: MIT */
/* Engines by name: the built-in reference, and modules that are loaded at run time. */
#ifndef PNR_ENGINES_H
#define PNR_ENGINES_H

#include "engine/bench.h"
#include "engine/devices.h"
#include "engine/engine.h"

/*
 * Finds an engine. "reference" is built in; others are modules <name>.so in $PNR_MODULE_PATH
 * (colon-separated), else in ../lib/pnradar from the folder of the program, else in the installed
 * folder. PNR_OK, or PNR_EUNAVAILABLE with the reason (no such module, missing library, wrong ABI,
 * or the text of `probe`). Modules stay loaded until exit.
 */
int pnr_engine_find(const char *name, size_t device, const pnr_engine_ops **ops, pnr_error *error);

/* Leaves in the list the devices that work and are of the model of the first of these. An empty
 * list stands for all devices of the engine, of which the others are logged. Of a list that names
 * devices, the others are appended to `lost`; if `lost` is NULL, they are an error. The name "auto"
 * means cuda. Where the engine ignores devices or none works, the list becomes one device, for
 * which pnr_engine_choose gives the reason. PNR_OK; PNR_EUNAVAILABLE. */
int pnr_engine_list_devices(const char *name, pnr_devices *devices, pnr_devices *lost,
                            pnr_error *error);

/* Finds the engine for a plan, and fills *choice with the `describe` function of that engine. The
 * name "auto" means "cuda", or "cpu" if "cuda" does not work for the plan. It never means
 * "reference". The choice is logged, with the reason why each other engine was refused. An engine
 * that is named is never replaced. */
int pnr_engine_choose(const char *name, const pnr_plan *plan, const pnr_engine_ops **ops,
                      pnr_engine_choice *choice, pnr_error *error);

/* The names that --list-engines shows, best first. The list ends with NULL. */
const char *const *pnr_engine_names(void);

/* Returns the benchmark table of an engine that pnr_engine_find has found. NULL: no table. */
const pnr_engine_bench *pnr_engine_get_bench(const char *name);

#endif
