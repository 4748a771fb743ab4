/* SPDX-License-Identifier: MIT */
/* Finds engines: the built-in reference, and modules that are loaded at run time. */
#include "correlator/engines.h"

#include "base/log.h"
#include "base/module.h"
#include "engine/reference/reference.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"cuda", "cpu", "reference", NULL}; /* the best engine first */

const char *const *pnr_engine_names(void)
{
    return names;
}

int pnr_engine_find(const char *name, size_t device, const pnr_engine_ops **ops, pnr_error *error)
{
    *ops = NULL;
    if (strcmp(name, "reference") == 0) {
        *ops = pnr_engine_reference();
        return PNR_OK;
    }

    pnr_error reason = {0};
    void *module = pnr_module_load(name, &reason);

    if (module == NULL)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "engine %s: %s (auto, cuda, cpu and reference are known)", name,
                             reason.text);

    pnr_engine_module_fn get;

    *(void **)&get = dlsym(module, PNR_ENGINE_SYMBOL); /* the cast that POSIX gives for function
                                                        * pointers */
    const pnr_engine_ops *found = get != NULL ? get() : NULL;

    if (found == NULL || found->abi != PNR_ENGINE_ABI)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "engine %s: its module is of interface %d, this program needs %d",
                             name, found != NULL ? found->abi : 0, PNR_ENGINE_ABI);

    char text[256] = "";

    if (found->probe(device, text, sizeof text) != PNR_OK)
        return pnr_error_set(error, PNR_EUNAVAILABLE, "engine %s: %s", name, text);
    *ops = found;
    return PNR_OK;
}

int pnr_engine_choose(const char *name, const pnr_plan *plan, const pnr_engine_ops **ops,
                      pnr_engine_choice *choice, pnr_error *error)
{
    static const char *const candidates[] = {"cuda", "cpu"};
    pnr_error why = {0};
    char reasons[400] = "";

    if (strcmp(name, "auto") != 0) {
        const int code = pnr_engine_find(name, plan->device, ops, error);

        return code != PNR_OK ? code : (*ops)->describe(plan, choice, error);
    }
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        if (pnr_engine_find(candidates[i], plan->device, ops, &why) == PNR_OK &&
            (*ops)->describe(plan, choice, &why) == PNR_OK) {
            pnr_log(PNR_LOG_INFO, "engine %s, method %s: %s", (*ops)->name, choice->method,
                    choice->why);
            return PNR_OK;
        }
        pnr_log(pnr_module_is_there(candidates[i]) ? PNR_LOG_INFO : PNR_LOG_DEBUG, "not used: %s",
                why.text);
        const size_t length = strlen(reasons);

        snprintf(reasons + length, sizeof reasons - length, "%s%.180s", i > 0 ? "; " : "",
                 why.text);
    }
    *ops = NULL;
    return pnr_error_set(error, PNR_EUNAVAILABLE, "no engine works here: %s", reasons);
}

const pnr_engine_bench *pnr_engine_get_bench(const char *name)
{
    void *module = strcmp(name, "reference") == 0 ? NULL : pnr_module_load(name, NULL);
    const pnr_engine_bench *bench =
        module != NULL ? (const pnr_engine_bench *)dlsym(module, PNR_ENGINE_BENCH_SYMBOL) : NULL;

    return bench != NULL && bench->abi == PNR_ENGINE_ABI ? bench : NULL;
}
