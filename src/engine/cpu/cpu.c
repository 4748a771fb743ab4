/* SPDX-License-Identifier: MIT */
/* The cpu engine, a separate module (FFTW is GPL): transforms in single precision, threads. */
#include "engine/engine.h"

#include "engine/cpu/fused.h"
#include "engine/cpu/slot.h"
#include "engine/cpu/team.h"
#include "engine/plan.h"

#include <fftw3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pnr_engine {
    pnr_plan *plan;
    pnr_cpu cpu;
    pnr_cpu_memory memory[PNR_CPU_MAX_THREADS]; /* of each leader */
    pnr_cpu_team team;                          /* the lock of the team guards the fields below */
    pnr_cpu_slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight;
    pnr_cpu_slot without; /* runs before all other dwells */
    bool has_without;
};

static int probe(size_t device, char *text, size_t text_size)
{
    (void)device;
    snprintf(text, text_size, "%s, %ld cores", fftwf_version, sysconf(_SC_NPROCESSORS_ONLN));
    return PNR_OK;
}

enum { LARGE_PAGES = 1 << 21 };
static void *alloc_memory(size_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, bytes >= LARGE_PAGES ? LARGE_PAGES : 4096, bytes) != 0)
        return NULL;
    /* a hint: samples are gathered in any order, with fewer address translations */
    if (bytes >= LARGE_PAGES)
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 0, bytes);
}

/* With plan.measure there is one thread, so that the times of the stages add up to the whole. */
static size_t threads_of(const pnr_plan *plan)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t wanted = plan->measure ? 1 : plan->threads > 0 ? plan->threads : (size_t)cores;

    return wanted < 1 ? 1 : wanted > PNR_CPU_MAX_THREADS ? PNR_CPU_MAX_THREADS : wanted;
}

static bool is_named(const pnr_plan *plan, const char *method)
{
    return strcmp(plan->method, method) == 0;
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    const int code = pnr_plan_check(plan, "cpu", error);

    if (code != PNR_OK)
        return code;
    if (!is_named(plan, "auto") && !is_named(plan, "library") && !is_named(plan, "walsh"))
        return pnr_error_set(error, PNR_ECONFIG,
                             "engine.method = %s: the cpu engine has walsh and library",
                             plan->method);
    if (is_named(plan, "walsh") && !pnr_cpu_fused_is_one_line(plan))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine.method = walsh: maps of codes, Doppler or gates are "
                             "library's");
    if (is_named(plan, "walsh") && pnr_cpu_walsh_refusal(plan) != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine.method = walsh: %s",
                             pnr_cpu_walsh_refusal(plan));
    return pnr_cpu_describe(plan, threads_of(plan), choice, error);
}

/* --- the owner of the team --- */

static bool take_dwell(void *owner, pnr_cpu_work *work)
{
    pnr_engine *engine = owner;

    if (engine->has_without && engine->without.n_taken == 0) {
        engine->without.n_taken = 1;
        *work = (pnr_cpu_work){&engine->without, 0};
        return true;
    }
    for (size_t i = 0; i < engine->in_flight; i++) {
        pnr_cpu_slot *s = &engine->slots[(engine->first + i) % engine->plan->depth];

        if (s->n_taken < s->windows.n_dwells) {
            *work = (pnr_cpu_work){s, s->n_taken++};
            return true;
        }
    }
    return false;
}

static void lead_dwell(void *owner, const pnr_cpu_work *work, size_t leader, size_t worker)
{
    pnr_engine *engine = owner;
    pnr_cpu_slot *s = work->slot;
    const pnr_cpu_dwell dwell = pnr_cpu_slot_dwell(engine->plan, s, work->dwell);

    pnr_cpu_process(&engine->cpu, &engine->memory[leader], &dwell, &engine->team, worker);
}

static bool finish_dwell(void *owner, const pnr_cpu_work *work)
{
    pnr_cpu_slot *s = work->slot;

    (void)owner;
    s->n_done++;
    return pnr_cpu_slot_is_done(s);
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    const pnr_plan *plan = engine->plan;

    pthread_mutex_lock(&engine->team.lock);

    const bool is_full = engine->in_flight == plan->depth;

    if (!is_full) {
        pnr_cpu_slot *s = &engine->slots[(engine->first + engine->in_flight) % plan->depth];

        pnr_cpu_slot_fill(plan, job->windows, 0, job->windows->n_dwells, s);
        s->tag = job->tag;
        engine->in_flight++;
        pthread_cond_broadcast(&engine->team.changed);
    }
    pthread_mutex_unlock(&engine->team.lock);
    return is_full ? PNR_EAGAIN : PNR_OK;
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    int code = PNR_EAGAIN;

    pthread_mutex_lock(&engine->team.lock);
    if (engine->in_flight > 0) {
        pnr_cpu_slot *s = &engine->slots[engine->first];

        while (wait && !pnr_cpu_slot_is_done(s))
            pnr_cpu_team_wait(&engine->team);
        if (pnr_cpu_slot_is_done(s)) {
            *result = pnr_cpu_slot_result(s);
            engine->first = (engine->first + 1) % engine->plan->depth;
            engine->in_flight--;
            code = PNR_OK;
        }
    }
    pthread_mutex_unlock(&engine->team.lock);
    return code;
}

/* Threads finish the dwells that they lead, then take this dwell before all others that wait. */
static int search_without(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    pnr_cpu_slot *s = &engine->without;

    pthread_mutex_lock(&engine->team.lock);
    pnr_cpu_slot_fill(engine->plan, windows, dwell, 1, s);
    s->removals = removals;
    s->n_removals = n_removals;
    engine->has_without = true;
    pthread_cond_broadcast(&engine->team.changed);
    while (!pnr_cpu_slot_is_done(s))
        pnr_cpu_team_wait(&engine->team);
    engine->has_without = false;
    *result = pnr_cpu_slot_result(s);
    pthread_mutex_unlock(&engine->team.lock);
    return PNR_OK;
}

/* --- life --- */

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    pnr_cpu_team_stop(&engine->team);
    for (size_t i = 0; i < engine->cpu.n_leaders; i++)
        pnr_cpu_memory_destroy(&engine->cpu, &engine->memory[i]);
    pnr_cpu_destroy(&engine->cpu);
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++)
        pnr_cpu_slot_destroy(&engine->slots[i]);
    pnr_cpu_slot_destroy(&engine->without);
    free(engine->plan);
    free(engine);
}

/* Creates all of the engine except the threads. */
static int prepare(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_cpu *cpu = &engine->cpu;
    int code = pnr_cpu_slot_create(plan, 1, &engine->without);

    for (size_t i = 0; code == PNR_OK && i < plan->depth; i++)
        code = pnr_cpu_slot_create(plan, plan->batch, &engine->slots[i]);
    if (code == PNR_OK)
        code = pnr_cpu_shape(plan, threads_of(plan), cpu);
    if (code == PNR_OK)
        code = pnr_cpu_create(cpu, threads_of(plan));
    for (size_t i = 0; code == PNR_OK && i < cpu->n_leaders; i++)
        code = pnr_cpu_memory_create(cpu, &engine->memory[i]);
    engine->team.n_leaders = cpu->n_leaders;
    engine->team.help_first = cpu->finishes_first;
    return code;
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    int code;

    *out = NULL;
    if ((code = describe(plan, &choice, error)) != PNR_OK)
        return code;

    pnr_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cpu: out of memory");
    pnr_cpu_team_init(&engine->team,
                      &(pnr_cpu_owner){engine, take_dwell, lead_dwell, finish_dwell});
    code = PNR_ENOMEMORY;
    if ((engine->plan = pnr_plan_copy(plan)) == NULL)
        goto fail;
    if ((code = prepare(engine)) != PNR_OK ||
        (code = pnr_cpu_team_start(&engine->team, threads_of(plan))) != PNR_OK)
        goto fail;
    *out = engine;
    return PNR_OK;
fail:
    destroy(engine);
    return pnr_error_set(
        error, code, "engine cpu: no memory for %llu bytes (N = %zu, transform %zu)",
        (unsigned long long)choice.host_bytes, plan->n_samples, choice.n_transform);
}

__attribute__((visibility("default"))) const pnr_engine_ops *pnr_engine_module(void);

const pnr_engine_ops *pnr_engine_module(void)
{
    static const pnr_engine_ops ops = {
        .abi = PNR_ENGINE_ABI,
        .name = "cpu",
        .title = "FFTW, single precision, all cores",
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
