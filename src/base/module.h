/* SPDX-License-Identifier: MIT */
/* Modules: parts of the program that are loaded at run time, only if they are needed. */
#ifndef PNR_MODULE_H
#define PNR_MODULE_H

#include "base/error.h"

#include <stdbool.h>

/*
 * Loads <name>.so from the folders of $PNR_MODULE_PATH, which colons separate; else from <folder of
 * the program>/../lib/pnradar; else from the installed folder. Returns the handle for dlsym; the
 * module stays loaded until exit. NULL: *error (may be NULL) is PNR_EUNAVAILABLE with the reason,
 * "no module <name>.so was built or installed" or the reason of the loader.
 */
void *pnr_module_load(const char *name, pnr_error *error);
/* True if one of these folders has a readable <name>.so. Loading it may still fail. */
bool pnr_module_is_there(const char *name);

#endif
