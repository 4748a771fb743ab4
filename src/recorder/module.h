/* SPDX-License-Identifier: MIT */
/* Modules recorder-<name>.so: kinds of files that need an optional library. */
#ifndef PNR_RECORDER_MODULE_H
#define PNR_RECORDER_MODULE_H

#include "base/error.h"

/* Loads a module and calls its function `symbol`, which returns the table of operations. setting:
 * the key and value that need the module. package: the Debian package of its library. Both are for
 * the text of an error. PNR_OK, or PNR_EUNAVAILABLE. */
int pnr_recorder_module_load(const char *module, const char *symbol, const char *setting,
                             const char *package, const void **table, pnr_error *error);

#endif
