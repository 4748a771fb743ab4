/* SPDX-License-Identifier: MIT */
/* The engine that fails on demand: the reference, with errors where PNR_FAULT says.
 * PNR_FAULT = place[:n]=error[,...]; place: probe, alloc, describe, create, submit, collect; n: at
 * the n-th call (from 1), none: at every one; error: a name of error.h (EENGINE, ELOST, EAGAIN,
 * ...). "collect:2=EENGINE,submit:5=ELOST". After an ELOST every submit and collect gives ELOST, as
 * a lost GPU does. PNR_FAULT_SLOW_MS delays every collect. */
#include "clock.h"
#include "engine.h"
#include "engine_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pnr_engine {
    pnr_engine *inner;
    unsigned n_submits, n_collects;
    bool is_lost;
};

static int code_of(const char *name, size_t length)
{
#define PNR_NAMED(id, value, status, text)                                                         \
    if (strlen(#id) == length && strncmp(name, #id, length) == 0)                                  \
        return value;
    PNR_ERRORS(PNR_NAMED)
#undef PNR_NAMED
    return PNR_EINTERNAL;
}

/* The error asked for at the n-th call of place, or PNR_OK. */
static int fault_at(const char *place, unsigned n)
{
    const char *faults = getenv("PNR_FAULT");

    while (faults != NULL && *faults != '\0') {
        const size_t length = strcspn(faults, ",");
        const char *equals = memchr(faults, '=', length);
        const size_t name = strcspn(faults, ":=");
        const bool every = equals != NULL && faults[name] == '=';

        if (equals != NULL && strlen(place) == name && strncmp(place, faults, name) == 0 &&
            (every || strtoul(faults + name + 1, NULL, 10) == n))
            return code_of(equals + 1, (size_t)(faults + length - equals - 1));
        faults += length + (faults[length] == ',');
    }
    return PNR_OK;
}

static int probe(size_t device, char *text, size_t text_size)
{
    const int code = fault_at("probe", 1);

    (void)device;
    snprintf(text, text_size, "%s", code == PNR_OK ? "fails on demand" : pnr_error_text(code));
    return code == PNR_OK ? PNR_OK : PNR_EUNAVAILABLE;
}

static void *alloc_memory(size_t bytes)
{
    return fault_at("alloc", 1) == PNR_OK ? pnr_engine_reference()->alloc(bytes) : NULL;
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    const int code = fault_at("describe", 1);

    if (code != PNR_OK)
        return pnr_error_set(error, code, "engine fault: %s", pnr_error_text(code));
    return pnr_engine_reference()->describe(plan, choice, error);
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    const int code = fault_at("create", 1);

    *out = NULL;
    if (code != PNR_OK)
        return pnr_error_set(error, code, "engine fault: %s", pnr_error_text(code));

    pnr_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return PNR_ENOMEMORY;

    const int inner = pnr_engine_reference()->create(plan, &engine->inner, error);

    if (inner != PNR_OK) {
        free(engine);
        return inner;
    }
    *out = engine;
    return PNR_OK;
}

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    pnr_engine_reference()->destroy(engine->inner);
    free(engine);
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    const int code = engine->is_lost ? PNR_ELOST : fault_at("submit", ++engine->n_submits);

    engine->is_lost |= code == PNR_ELOST;
    return code != PNR_OK ? code : pnr_engine_reference()->submit(engine->inner, job);
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    const char *slow = getenv("PNR_FAULT_SLOW_MS");
    const int code = engine->is_lost ? PNR_ELOST : fault_at("collect", engine->n_collects + 1);

    if (slow != NULL)
        (void)pnr_clock_sleep_until(pnr_clock_ns() + strtoull(slow, NULL, 10) * 1000000, NULL);

    const int inner = pnr_engine_reference()->collect(engine->inner, wait, result);

    if (inner != PNR_OK)
        return inner;
    engine->n_collects++;
    engine->is_lost |= code == PNR_ELOST;
    return code;
}

__attribute__((visibility("default"))) const pnr_engine_ops *pnr_engine_module(void);

const pnr_engine_ops *pnr_engine_module(void)
{
    static const pnr_engine_ops ops = {
        .abi = PNR_ENGINE_ABI,
        .name = "fault",
        .title = "fails on demand, for tests",
        .probe = probe,
        .alloc = alloc_memory,
        .free = free,
        .describe = describe,
        .create = create,
        .destroy = destroy,
        .submit = submit,
        .collect = collect,
    };

    return &ops;
}
