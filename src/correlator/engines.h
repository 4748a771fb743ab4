/* SPDX-License-Identifier: MIT */
/* Finds engines by name: the built-in reference, and modules that are loaded at run time. */
#ifndef PNR_ENGINES_H
#define PNR_ENGINES_H

#include "engine/bench.h"
#include "engine/devices.h"
#include "engine/engine.h"

/* Finds an engine. "reference" is built in. Other engines are modules <name>.so. The function
 * searches the folders of $PNR_MODULE_PATH (separated by colons), then <folder of the
 * program>/../lib/pnradar, then the installed folder. Returns PNR_OK, or PNR_EUNAVAILABLE with the
 * reason (no such module, missing library, wrong ABI, or the text of `probe`). Modules stay loaded
 * until exit. */
int pnr_engine_find(const char *name, size_t device, const pnr_engine_ops **ops, pnr_error *error);

/* Removes from `devices` each device that does not work, and each device of another model than the
 * first device that works. Logs the removed devices. An empty list means all devices of the engine.
 * If the list was not empty, the function adds the removed devices to `lost`, or returns an error
 * if `lost` is NULL. The name "auto" means cuda. If the engine ignores devices, the function
 * returns a list of one device. If no device works, it returns a list of device 0, and
 * pnr_engine_choose reports the error. Returns PNR_OK or PNR_EUNAVAILABLE. */
int pnr_engine_list_devices(const char *name, pnr_devices *devices, pnr_devices *lost,
                            pnr_error *error);

/* Finds the engine for a plan, and fills *choice with the `describe` function of this engine. The
 * name "auto" means "cuda", or "cpu" if "cuda" does not work for the plan. It never means
 * "reference". Logs the choice of "auto", and the reason why another engine was refused. An engine
 * that is chosen by its name is never replaced. */
int pnr_engine_choose(const char *name, const pnr_plan *plan, const pnr_engine_ops **ops,
                      pnr_engine_choice *choice, pnr_error *error);

/* Returns the names of all engines, best first. The list ends with NULL. */
const char *const *pnr_engine_names(void);

/* Returns the benchmark table of an engine that pnr_engine_find has found. NULL: no table. */
const pnr_engine_bench *pnr_engine_get_bench(const char *name);

#endif
