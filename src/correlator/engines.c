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

/* Loads the module of an engine. Does not check its devices. */
static int load_engine(const char *name, const pnr_engine_ops **ops, pnr_error *error)
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

    *(void **)&get = dlsym(module, PNR_ENGINE_SYMBOL); /* POSIX defines this cast */
    const pnr_engine_ops *found = get != NULL ? get() : NULL;

    if (found == NULL || found->abi != PNR_ENGINE_ABI)
        return pnr_error_set(error, PNR_EUNAVAILABLE,
                             "engine %s: its module is of interface %d, this program needs %d",
                             name, found != NULL ? found->abi : 0, PNR_ENGINE_ABI);
    *ops = found;
    return PNR_OK;
}

int pnr_engine_find(const char *name, size_t device, const pnr_engine_ops **ops, pnr_error *error)
{
    char text[256] = "";
    const int code = load_engine(name, ops, error);

    if (code != PNR_OK || (*ops)->probe(device, text, sizeof text) == PNR_OK)
        return code;
    *ops = NULL;
    return pnr_error_set(error, PNR_EUNAVAILABLE, "engine %s: %s", name, text);
}

/* --- several devices --- */

/* True if two texts of `probe` name the same model. */
static bool is_same_model(const char *a, const char *b)
{
    const size_t n = strcspn(a, ",");

    return strcspn(b, ",") == n && strncmp(a, b, n) == 0;
}

/* Adds to `devices` each device of `wanted` that works and has the model of the first device that
 * works. Adds every other device to `lost`. If `lost` is NULL, such a device is an error. */
static int sort_devices(const pnr_engine_ops *ops, const pnr_devices *wanted, pnr_devices *devices,
                        pnr_devices *lost, pnr_error *error)
{
    char first[256] = "", text[256], why[640];

    for (size_t i = 0; i < wanted->n; i++) {
        const size_t device = wanted->index[i];
        const bool works = ops->probe(device, text, sizeof text) == PNR_OK;

        if (works && (devices->n == 0 || is_same_model(text, first))) {
            if (devices->n == 0)
                memcpy(first, text, sizeof first);
            pnr_devices_add(devices, device);
            continue;
        }
        snprintf(why, sizeof why, "engine %s: device %zu: %.200s%s%.200s", ops->name, device, text,
                 works ? ", which may give other bits than " : "", works ? first : "");
        if (lost == NULL)
            return pnr_error_set(error, PNR_EUNAVAILABLE, "%s", why);
        pnr_log(PNR_LOG_WARN, "not used: %s", why);
        pnr_devices_add(lost, device);
    }
    return PNR_OK;
}

/* Finds an engine that has devices. *ops is NULL if the engine has none. "auto" means cuda. */
static int find_with_devices(const char *name, const pnr_engine_ops **ops, pnr_error *error)
{
    const bool is_auto = strcmp(name, "auto") == 0;
    const int code = load_engine(is_auto ? names[0] : name, ops, is_auto ? NULL : error);

    if (code == PNR_OK && ((*ops)->count == NULL || (is_auto && (*ops)->count() == 0)))
        *ops = NULL;
    return is_auto ? PNR_OK : code;
}

int pnr_engine_list_devices(const char *name, pnr_devices *devices, pnr_devices *lost,
                            pnr_error *error)
{
    const bool is_all = devices->n == 0;
    const pnr_engine_ops *ops;
    pnr_devices wanted = *devices, works = {0}, left_out = {0};
    int code = find_with_devices(name, &ops, error);

    if (code != PNR_OK)
        return code;
    if (ops == NULL) {
        if (wanted.n > 1)
            pnr_log(PNR_LOG_INFO, "engine.device: the engine %s has no devices to choose from",
                    name);
        devices->n = 1;
        return PNR_OK;
    }
    for (size_t d = 0; is_all && d < ops->count(); d++)
        pnr_devices_add(&wanted, d);
    code = sort_devices(ops, &wanted, &works, is_all ? &left_out : lost, error);
    if (works.n == 0)
        works.n = 1; /* device 0; pnr_engine_choose reports the error */
    if (code == PNR_OK)
        *devices = works;
    return code;
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
