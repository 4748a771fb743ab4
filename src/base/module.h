/* SPDX-License-Identifier: MIT */
/* Modules: parts of the program that are loaded at run time, when a user names them. */
#ifndef PNR_MODULE_H
#define PNR_MODULE_H

#include "base/error.h"

#include <stdbool.h>

/*
 * Loads <name>.so from $PNR_MODULE_PATH (folders, colon-separated), else from ../lib/pnradar beside
 * the folder of the program, else from the installed folder. Returns the handle for dlsym; the
 * module stays loaded until exit. NULL: *error (may be NULL) is PNR_EUNAVAILABLE with the reason,
 * "no module <name>.so was built or installed" or that of the loader.
 */
void *pnr_module_load(const char *name, pnr_error *error);
/* True if one of these folders has a readable <name>.so, which may still fail to load. */
bool pnr_module_is_there(const char *name);

#endif
