/* SPDX-License-Identifier: MIT */
/* The engine that fails on demand: the reference, with errors where PNR_FAULT says.
 * PNR_FAULT = place[:n]=error[,...]; place: probe, alloc, describe, create, submit, collect,
 * advance; n: at the n-th call (from 1), none: at every one; error: a name of error.h (EENGINE,
 * ELOST, EAGAIN,
 * ...). "collect:2=EENGINE,submit:5=ELOST". After an ELOST every submit and collect gives ELOST, as
 * a lost GPU does. PNR_FAULT_SLOW_MS delays every collect. What comes ahead is checked against what
 * is submitted: see pnr_fault_ahead. */
#include "clock.h"
#include "engine.h"
#include "engine_reference.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pnr_engine {
    pnr_engine *inner;
    unsigned n_submits, n_collects, n_advances;
    bool is_lost;
    size_t sample_bytes;

    /* What came ahead of the next submit. */
    uint64_t ahead_first;
    size_t n_ahead; /* samples; 0: nothing did */
    uint64_t ahead_sum;
};

/* For the tests, which find it by its name: how often samples came ahead, whether the submit then
 * began with them, was another (its dwell was refused), or held other bits at their place. */
typedef struct fault_ahead {
    uint64_t n_advances, n_kept, n_dropped, n_broken;
} fault_ahead;
__attribute__((visibility("default"))) extern fault_ahead pnr_fault_ahead;
fault_ahead pnr_fault_ahead;

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
    engine->sample_bytes = pnr_plan_sample_bytes(plan);

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

/* Of the first n samples (FNV-1a). */
static uint64_t sum_of(const pnr_engine *engine, const pnr_windows *windows, size_t n)
{
    uint64_t sum = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < 2; i++) {
        const size_t here = windows->spans[i].n_samples < n ? windows->spans[i].n_samples : n;
        const unsigned char *bytes = windows->spans[i].data;

        for (size_t b = 0; b < here * engine->sample_bytes; b++)
            sum = (sum ^ bytes[b]) * UINT64_C(1099511628211);
        n -= here;
    }
    return sum;
}

static bool is_changed(const pnr_engine *engine, const pnr_windows *windows)
{
    const size_t n = windows->spans[0].n_samples + windows->spans[1].n_samples;

    return n < engine->n_ahead || sum_of(engine, windows, engine->n_ahead) != engine->ahead_sum;
}

static int advance(pnr_engine *engine, const pnr_windows *windows)
{
    const int code = engine->is_lost ? PNR_ELOST : fault_at("advance", ++engine->n_advances);

    engine->is_lost |= code == PNR_ELOST;
    if (code != PNR_OK)
        return code;
    pnr_fault_ahead.n_advances++;
    if (engine->n_ahead > 0 && windows->first_sample != engine->ahead_first)
        pnr_fault_ahead.n_dropped++;
    else if (engine->n_ahead > 0 && is_changed(engine, windows))
        pnr_fault_ahead.n_broken++;
    engine->ahead_first = windows->first_sample;
    engine->n_ahead = windows->spans[0].n_samples + windows->spans[1].n_samples;
    engine->ahead_sum = sum_of(engine, windows, engine->n_ahead);
    return PNR_OK;
}

/* Samples that came ahead and are others now: the submit is refused. */
static int check_ahead(pnr_engine *engine, const pnr_windows *windows)
{
    const bool is_next = windows->first_sample == engine->ahead_first;
    const bool is_broken = engine->n_ahead > 0 && is_next && is_changed(engine, windows);

    if (engine->n_ahead > 0)
        *(is_broken ? &pnr_fault_ahead.n_broken
          : is_next ? &pnr_fault_ahead.n_kept
                    : &pnr_fault_ahead.n_dropped) += 1;
    engine->n_ahead = 0;
    return is_broken ? PNR_EENGINE : PNR_OK;
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    int code = engine->is_lost ? PNR_ELOST : fault_at("submit", ++engine->n_submits);

    if (code == PNR_OK)
        code = check_ahead(engine, job->windows);
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
        .advance = advance,
    };

    return &ops;
}
