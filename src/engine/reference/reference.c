/* SPDX-License-Identifier: MIT */
/* The reference engine: dwells by their definition, in double precision. */
#include "engine/reference/reference.h"

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

static void *alloc_memory(size_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, bytes) != 0)
        return NULL;
    return memset(memory, 0, bytes);
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
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++) {
        free(engine->slots[i].lost);
        free(engine->slots[i].is_lost);
    }
    free(engine->is_lost);
    free(engine->dwells);
    free(engine->candidates);
    free(engine->nonfinite);
    free(engine->profile);
    free(engine->patches);
    free(engine->plan);
    free(engine);
}

static size_t profile_values(const pnr_plan *plan)
{
    return pnr_plan_cells(plan) * (plan->want_profile == PNR_WANT_COMPLEX ? 2 : 1);
}

static size_t patch_values(const pnr_plan *plan)
{
    return plan->max_candidates * PNR_NEIGHBOURS * PNR_NEIGHBOURS * 2;
}

/* The memory of the results and of the submits in flight. */
static int create_results(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    const size_t n_windows = pnr_plan_windows(plan), n_dwells = plan->batch + 1;

    for (size_t i = 0; i < plan->depth; i++) {
        pnr_reference_slot *slot = &engine->slots[i];

        if ((slot->lost = calloc(plan->batch * n_windows, sizeof *slot->lost)) == NULL ||
            (plan->remove_mean && (slot->is_lost = calloc(pnr_plan_view_samples(plan, plan->batch),
                                                          sizeof *slot->is_lost)) == NULL))
            return PNR_ENOMEMORY;
    }
    engine->is_lost = calloc(pnr_plan_view_samples(plan, 1), sizeof *engine->is_lost);
    engine->dwells = calloc(n_dwells, sizeof *engine->dwells);
    engine->candidates = calloc(n_dwells * plan->max_candidates, sizeof *engine->candidates);
    engine->nonfinite = calloc(n_dwells * n_windows, sizeof *engine->nonfinite);
    if (engine->is_lost == NULL || engine->dwells == NULL || engine->candidates == NULL ||
        engine->nonfinite == NULL)
        return PNR_ENOMEMORY;
    if (plan->want_profile != PNR_WANT_NONE &&
        (engine->profile = calloc(n_dwells * profile_values(plan), sizeof *engine->profile)) ==
            NULL)
        return PNR_ENOMEMORY;
    if (pnr_plan_rows(plan) > 1 &&
        (engine->patches = calloc(n_dwells * patch_values(plan), sizeof *engine->patches)) == NULL)
        return PNR_ENOMEMORY;
    return PNR_OK;
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
    if (pnr_reference_work_create(engine) != PNR_OK || create_results(engine) != PNR_OK)
        goto fail;
    *out = engine;
    return PNR_OK;
fail:
    destroy(engine);
    return pnr_error_set(error, PNR_ENOMEMORY,
                         "engine reference: no memory for %zu samples a period", plan->n_samples);
}

/* Marks which of the samples first .. first + n - 1 of a view are lost. */
static void mark_lost(const pnr_windows *windows, size_t first, size_t n, bool *is_lost)
{
    memset(is_lost, 0, n * sizeof *is_lost);
    for (size_t r = 0; r < windows->n_lost_runs; r++)
        for (uint64_t i = 0; i < windows->lost_runs[r].count; i++) {
            const uint64_t at = windows->lost_runs[r].first + i;

            if (at >= first && at - first < n)
                is_lost[at - first] = true;
        }
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    const pnr_plan *plan = engine->plan;

    if (engine->in_flight == plan->depth)
        return PNR_EAGAIN;

    pnr_reference_slot *s = &engine->slots[(engine->first + engine->in_flight) % plan->depth];
    const size_t n_dwells = job->windows->n_dwells;

    s->windows = *job->windows;
    memcpy(s->lost, job->windows->lost, n_dwells * pnr_plan_windows(plan) * sizeof *s->lost);
    s->windows.lost = s->lost;
    if (s->is_lost != NULL)
        mark_lost(job->windows, 0, pnr_plan_view_samples(plan, n_dwells), s->is_lost);
    s->tag = job->tag;
    engine->in_flight++;
    return PNR_OK;
}

/* Computes one dwell; its results go to place `out`. */
static void process_dwell(pnr_engine *engine, pnr_reference_task task, size_t out)
{
    const pnr_plan *plan = engine->plan;

    task.sums = &engine->dwells[out];
    task.candidates = &engine->candidates[out * plan->max_candidates];
    task.nonfinite = &engine->nonfinite[out * pnr_plan_windows(plan)];
    task.profile = engine->profile != NULL ? engine->profile + out * profile_values(plan) : NULL;
    task.patches = engine->patches != NULL ? engine->patches + out * patch_values(plan) : NULL;
    pnr_reference_process(engine, &task);
}

/* The results of n dwells from place `first` on. */
static pnr_result result_of(const pnr_engine *engine, size_t first, size_t n)
{
    const pnr_plan *plan = engine->plan;

    return (pnr_result){
        .n_dwells = n,
        .dwells = engine->dwells + first,
        .candidates = engine->candidates + first * plan->max_candidates,
        .nonfinite = engine->nonfinite + first * pnr_plan_windows(plan),
        .profile = engine->profile != NULL ? engine->profile + first * profile_values(plan) : NULL,
        .patches = engine->patches != NULL ? engine->patches + first * patch_values(plan) : NULL,
    };
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    (void)wait; /* submit has done the work, so the result is always ready */
    if (engine->in_flight == 0)
        return PNR_EAGAIN;

    const pnr_reference_slot *s = &engine->slots[engine->first];
    const size_t n_dwell = pnr_plan_dwell_samples(engine->plan);

    for (size_t d = 0; d < s->windows.n_dwells; d++)
        process_dwell(
            engine,
            (pnr_reference_task){.windows = &s->windows,
                                 .dwell = d,
                                 .is_lost = s->is_lost != NULL ? s->is_lost + d * n_dwell : NULL},
            d);
    *result = result_of(engine, 0, s->windows.n_dwells);
    result->tag = s->tag;
    engine->first = (engine->first + 1) % engine->plan->depth;
    engine->in_flight--;
    return PNR_OK;
}

static int search_without(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    const pnr_plan *plan = engine->plan;

    mark_lost(windows, dwell * pnr_plan_dwell_samples(plan), pnr_plan_view_samples(plan, 1),
              engine->is_lost);
    process_dwell(engine,
                  (pnr_reference_task){.windows = windows,
                                       .dwell = dwell,
                                       .is_lost = engine->is_lost,
                                       .removals = removals,
                                       .n_removals = n_removals},
                  plan->batch);
    *result = result_of(engine, plan->batch, 1);
    return PNR_OK;
}

const pnr_engine_ops *pnr_engine_reference(void)
{
    static const pnr_engine_ops ops = {
        .abi = PNR_ENGINE_ABI,
        .name = "reference",
        .title = "the sum as in the book, double precision",
        .probe = probe,
        .alloc = alloc_memory,
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
