/* SPDX-License-Identifier: MIT */
#include "recorder/module.h"

#include "base/module.h"

#include <dlfcn.h>

int pnr_recorder_module_load(const char *module, const char *symbol, const char *setting,
                             const char *package, const void **table, pnr_error *error)
{
    const void *(*get)(void);
    pnr_error reason = {0};
    void *handle = pnr_module_load(module, &reason);

    *table = NULL;
    if (handle == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "%.250s: %.200s; it needs the package %s",
                             setting, reason.text, package);
    *(void **)&get = dlsym(handle, symbol);
    if (get == NULL || (*table = get()) == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "%s.so is of another version", module);
    return PNR_OK;
}
