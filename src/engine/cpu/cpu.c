/* SPDX-License-Identifier: MIT */
/* The cpu engine: threads, and transforms in single precision. The licence of FFTW is the GPL, so
 * the program does not link it: the engine is a module. */
#include "engine/engine.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "engine/cpu/fused.h"
#include "engine/cpu/team.h"
#include "engine/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pnr_engine {
    pnr_plan *plan;
    pnr_cpu cpu;
    /* memory of the dwell that each leading thread computes */
    pnr_cpu_memory memory[PNR_CPU_MAX_THREADS];
    pnr_cpu_team team;
};

static int probe(size_t device, char *text, size_t text_size)
{
    (void)device;
    const size_t n = pnr_parallel_processors();

    snprintf(text, text_size, "%s, %zu core%s", fftwf_version, n, n == 1 ? "" : "s");
    return PNR_OK;
}

/* With plan.measure only one thread works, so that the total time is the sum of the stages. */
static size_t threads_of(const pnr_plan *plan)
{
    const size_t wanted = plan->measure       ? 1
                          : plan->threads > 0 ? plan->threads
                                              : pnr_parallel_processors();

    return wanted < 1 ? 1 : wanted > PNR_CPU_MAX_THREADS ? PNR_CPU_MAX_THREADS : wanted;
}

static bool is_named(const pnr_plan *plan, const char *method)
{
    return strcmp(plan->method, method) == 0;
}

static int check_plan(const pnr_plan *plan, pnr_error *error)
{
    const int code = pnr_plan_check(plan, "cpu", error);

    if (code != PNR_OK)
        return code;
    if (!is_named(plan, "auto") && !is_named(plan, "library") && !is_named(plan, "walsh"))
        return pnr_error_set(error, PNR_ECONFIG,
                             "engine.method = %s: the cpu engine has walsh and library",
                             plan->method);
    if (is_named(plan, "walsh") && !pnr_plan_is_one_line(plan))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine.method = walsh: maps of codes, Doppler or gates are "
                             "library's");
    if (is_named(plan, "walsh") && pnr_cpu_walsh_refusal(plan) != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine.method = walsh: %s",
                             pnr_cpu_walsh_refusal(plan));
    return PNR_OK;
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    pnr_cpu cpu = {0};
    int code = check_plan(plan, error);

    if (code == PNR_OK)
        code = pnr_cpu_shape(plan, threads_of(plan), &cpu, choice, error);
    pnr_cpu_destroy(&cpu);
    return code;
}

/* --- dwells --- */

static void lead_dwell(void *owner, pnr_slot *slot, size_t number, size_t leader, size_t worker)
{
    pnr_engine *engine = owner;
    const pnr_slot_dwell dwell = pnr_slot_get_dwell(engine->plan, slot, number);

    pnr_cpu_process(&engine->cpu, &engine->memory[leader], &dwell, &engine->team, worker);
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    pnr_cpu_team *team = &engine->team;
    int code;

    pthread_mutex_lock(&team->lock);
    if ((code = pnr_slots_submit(&team->slots, job)) == PNR_OK)
        pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    return code;
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    pnr_cpu_team *team = &engine->team;
    int code = PNR_EAGAIN;

    pthread_mutex_lock(&team->lock);
    if (team->slots.in_flight > 0) {
        const pnr_slot *s = pnr_slots_get(&team->slots, 0);

        while (wait && !pnr_slot_is_done(s))
            pnr_cpu_team_wait(team);
        if (pnr_slot_is_done(s)) {
            pnr_slots_collect(&team->slots, result);
            code = PNR_OK;
        }
    }
    pthread_mutex_unlock(&team->lock);
    return code;
}

/* The dwell that is searched again goes to the next thread that can lead a dwell, before all dwells
 * that wait. */
static int search_without(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    pnr_cpu_team *team = &engine->team;

    pthread_mutex_lock(&team->lock);
    pnr_slots_begin_without(&team->slots, windows, dwell, removals, n_removals);
    pthread_cond_broadcast(&team->changed);
    while (!pnr_slot_is_done(&team->slots.without))
        pnr_cpu_team_wait(team);
    *result = pnr_slot_result(&team->slots.without);
    pthread_mutex_unlock(&team->lock);
    return PNR_OK;
}

/* --- create and destroy --- */

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    pnr_cpu_team_stop(&engine->team);
    for (size_t i = 0; i < engine->cpu.n_leaders; i++)
        pnr_cpu_memory_destroy(&engine->cpu, &engine->memory[i]);
    pnr_cpu_destroy(&engine->cpu);
    pnr_slots_destroy(&engine->team.slots);
    free(engine->plan);
    free(engine);
}

/* Call after pnr_cpu_shape. Creates all other parts of the engine, the threads last. */
static int prepare(pnr_engine *engine)
{
    pnr_cpu *cpu = &engine->cpu;
    const size_t n_threads = threads_of(cpu->plan);
    int code = pnr_slots_create(cpu->plan, &engine->team.slots);

    if (code == PNR_OK)
        code = pnr_cpu_create(cpu, n_threads);
    for (size_t i = 0; code == PNR_OK && i < cpu->n_leaders; i++)
        code = pnr_cpu_memory_create(cpu, &engine->memory[i]);
    engine->team.n_leaders = cpu->n_leaders;
    engine->team.help_first = cpu->finishes_first;
    return code == PNR_OK ? pnr_cpu_team_start(&engine->team, n_threads) : code;
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    int code;

    *out = NULL;
    if ((code = check_plan(plan, error)) != PNR_OK)
        return code;

    pnr_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cpu: out of memory");
    pnr_cpu_team_init(&engine->team, lead_dwell, engine);
    if ((engine->plan = pnr_plan_copy(plan)) == NULL)
        code = pnr_error_set(error, PNR_ENOMEMORY, "engine cpu: out of memory");
    else if ((code = pnr_cpu_shape(engine->plan, threads_of(plan), &engine->cpu, &choice, error)) ==
                 PNR_OK &&
             (code = prepare(engine)) != PNR_OK)
        (void)pnr_error_set(
            error, code, "engine cpu: no memory for %llu bytes (N = %zu, transform %zu)",
            (unsigned long long)choice.host_bytes, plan->n_samples, choice.n_transform);
    if (code != PNR_OK)
        destroy(engine);
    else
        *out = engine;
    return code;
}

__attribute__((visibility("default"))) const pnr_engine_ops *pnr_engine_module(void);

const pnr_engine_ops *pnr_engine_module(void)
{
    static const pnr_engine_ops ops = {
        .abi = PNR_ENGINE_ABI,
        .name = "cpu",
        .title = "FFTW, single precision, all cores",
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
