/* SPDX-License-Identifier: MIT */
/* The reference engine: computes dwells by their definition, in double precision. */
#include "engine/reference/reference.h"

#include "base/memory.h"
#include "engine/plan.h"
#include "engine/reference/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int probe(size_t device, char *text, size_t text_size)
{
    (void)device;
    snprintf(text, text_size, "N^2 operations a window: for tests and short codes");
    return PNR_OK;
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    const int code = pnr_plan_check(plan, "reference", error);

    if (code != PNR_OK)
        return code;
    if (strcmp(plan->method, "auto") != 0 && strcmp(plan->method, "sum") != 0)
        return pnr_error_set(error, PNR_ECONFIG,
                             "engine.method = %s: the reference engine has only sum", plan->method);
    memset(choice, 0, sizeof *choice);
    snprintf(choice->method, sizeof choice->method, "sum");
    snprintf(choice->why, sizeof choice->why, "the definition itself, N^2 operations a window");
    choice->n_transform = plan->n_samples;
    choice->host_bytes =
        pnr_plan_cells(plan) * (16 * plan->n_looks + 4) +
        plan->n_samples * 16 * (3 * plan->n_periods + plan->n_codes * plan->oversample + 2);
    return PNR_OK;
}

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    pnr_reference_work_destroy(engine);
    pnr_slots_destroy(&engine->slots);
    free(engine->plan);
    free(engine);
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    int code;

    *out = NULL;
    if ((code = describe(plan, &choice, error)) != PNR_OK)
        return code;

    pnr_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL || (engine->plan = pnr_plan_copy(plan)) == NULL) {
        free(engine);
        engine = NULL;
        goto fail;
    }
    engine->energy_of_code = pnr_plan_code_energy(plan);
    engine->code = (const double complex *)engine->plan->references;
    if (pnr_reference_work_create(engine) != PNR_OK ||
        pnr_slots_create(engine->plan, &engine->slots) != PNR_OK)
        goto fail;
    *out = engine;
    return PNR_OK;
fail:
    destroy(engine);
    return pnr_error_set(error, PNR_ENOMEMORY,
                         "engine reference: no memory for %zu samples a period", plan->n_samples);
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    return pnr_slots_submit(&engine->slots, job);
}

static void process_slot(pnr_engine *engine, pnr_slot *slot)
{
    for (size_t d = 0; d < slot->windows.n_dwells; d++) {
        const pnr_slot_dwell dwell = pnr_slot_get_dwell(engine->plan, slot, d);

        pnr_reference_process(engine, &dwell);
    }
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    (void)wait; /* the work is done here, so the result is always ready */
    if (engine->slots.in_flight == 0)
        return PNR_EAGAIN;
    process_slot(engine, pnr_slots_get(&engine->slots, 0));
    pnr_slots_collect(&engine->slots, result);
    return PNR_OK;
}

static int search_without(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    pnr_slots_begin_without(&engine->slots, windows, dwell, removals, n_removals);
    process_slot(engine, &engine->slots.without);
    *result = pnr_slot_result(&engine->slots.without);
    return PNR_OK;
}

const pnr_engine_ops *pnr_engine_reference(void)
{
    static const pnr_engine_ops ops = {
        .abi = PNR_ENGINE_ABI,
        .name = "reference",
        .title = "the sum as in the book, double precision",
        .probe = probe,
        .alloc = pnr_memory_zeroed,
        .free = free,
        .describe = describe,
        .create = create,
        .destroy = destroy,
        .submit = submit,
        .collect = collect,
        .search_without = search_without,
    };

    return &ops;
}
