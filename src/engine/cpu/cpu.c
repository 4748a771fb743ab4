/* SPDX-License-Identifier: MIT */
/* The cpu engine, a module of its own (FFTW is GPL): FFTW in single precision, threads. */
#include "engine/engine.h"

#include "base/transform.h"
#include "engine/cpu/dwell.h"
#include "engine/cpu/map.h"
#include "engine/cpu/memory.h"
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
    pnr_cpu cpu;
    pnr_cpu_memory memory[PNR_CPU_MAX_THREADS]; /* of each leader */
    bool is_map;                                /* else these two are empty */
    pnr_cpu_map map;
    pnr_cpu_map_memory map_memory[PNR_CPU_MAX_THREADS];
    pnr_cpu_team team; /* its lock guards what follows */
    pnr_cpu_slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight;
    pnr_cpu_slot again; /* goes before all others */
    bool is_again;
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
    if (bytes >= LARGE_PAGES) /* samples are gathered in any order: fewer translations; a hint */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 0, bytes);
}

/* One thread when stages are measured: their times then add up to the whole. */
static size_t threads_of(const pnr_plan *plan)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t wanted = plan->measure ? 1 : plan->threads > 0 ? plan->threads : (size_t)cores;

    return wanted < 1 ? 1 : wanted > PNR_CPU_MAX_THREADS ? PNR_CPU_MAX_THREADS : wanted;
}

/* Dwells worked on at once. Those that no core's own cache holds are finished one after the other
 * by all threads; a second one fills the steps that one thread does alone. */
enum { LARGE = 1 << 18, TEAM_WALSH = 1 << 15 };
static bool is_large(const pnr_cpu *cpu)
{
    return cpu->by_team && (cpu->n_transform >= LARGE || cpu->plan->n_samples >= LARGE);
}

static size_t leaders_of(const pnr_cpu *cpu)
{
    const size_t n_threads = threads_of(cpu->plan);

    return is_large(cpu) && n_threads > 2 ? 2 : n_threads;
}

static bool is_named(const pnr_plan *plan, const char *method)
{
    return strcmp(plan->method, method) == 0;
}

/* The sizes that a plan leads to; allocates nothing. The rule of auto: walsh wherever it suits, for
 * additions alone are faster at every length. */
static void shape(pnr_cpu *cpu, pnr_plan *plan)
{
    const size_t length = pnr_plan_transform_length(plan->n_samples);
    size_t n1, n2;

    cpu->plan = plan;
    cpu->n_rows = plan->n_looks;
    cpu->is_walsh = !is_named(plan, "library") && pnr_cpu_walsh_refusal(plan) == NULL;
    if (cpu->is_walsh) {
        pnr_cpu_walsh_shape(plan, &cpu->walsh);
        cpu->n_transform = (size_t)1 << plan->m_degree;
        cpu->by_team = plan->n_samples >= TEAM_WALSH;
        cpu->profile_values =
            plan->m_samples > 1 ? (plan->n_samples + 7) / 8 * 8 : pnr_cpu_walsh_values(&cpu->walsh);
        return;
    }
    cpu->n_transform = length;
    cpu->is_split = cpu->by_team = pnr_cpu_split_factors(length, &n1, &n2);
    cpu->spectrum_values = length;
    cpu->profile_values = (length + 7) / 8 * 8; /* FFTW wants every row aligned alike */
    if (cpu->is_split) {
        pnr_cpu_split_shape(length, &cpu->split);
        cpu->spectrum_values = pnr_cpu_split_spectrum_values(&cpu->split);
        cpu->profile_values = pnr_cpu_split_profile_values(&cpu->split);
    }
}

static uint64_t host_bytes(const pnr_cpu *cpu)
{
    const pnr_plan *plan = cpu->plan;
    size_t bytes = leaders_of(cpu) * pnr_cpu_memory_bytes(cpu) +
                   sizeof(pnr_cpu_value) * plan->oversample * cpu->spectrum_values +
                   (size_t)pnr_cpu_slots_bytes(plan);

    if (cpu->is_walsh)
        bytes += pnr_cpu_walsh_table_bytes(&cpu->walsh);
    if (cpu->is_split)
        bytes += pnr_cpu_split_table_bytes(&cpu->split) +
                 threads_of(plan) * pnr_cpu_split_tile_values(&cpu->split) * sizeof(pnr_cpu_value);
    return bytes;
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    const int code = pnr_plan_check(plan, "cpu", error);
    pnr_plan copy = *plan;
    pnr_cpu cpu = {0};
    char how[48] = "FFTW";

    if (code != PNR_OK)
        return code;
    if (!is_named(plan, "auto") && !is_named(plan, "library") && !is_named(plan, "walsh"))
        return pnr_error_set(error, PNR_ECONFIG,
                             "engine.method = %s: the cpu engine has walsh and library",
                             plan->method);
    if (!pnr_plan_is_plain(plan) && is_named(plan, "walsh"))
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine.method = walsh: maps of codes, Doppler, looks, gates or CFAR "
                             "are library's");
    if (!pnr_plan_is_plain(plan))
        return pnr_cpu_map_describe(plan, threads_of(plan), choice, error);
    if (is_named(plan, "walsh") && pnr_cpu_walsh_refusal(plan) != NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED, "engine.method = walsh: %s",
                             pnr_cpu_walsh_refusal(plan));
    shape(&cpu, &copy);
    memset(choice, 0, sizeof *choice);
    snprintf(choice->method, sizeof choice->method, cpu.is_walsh ? "walsh" : "library");
    if (cpu.is_split)
        snprintf(how, sizeof how, "FFTW, %zu x %zu in three passes,", cpu.split.n1, cpu.split.n2);
    if (cpu.is_walsh && plan->m_samples > 1)
        snprintf(choice->why, sizeof choice->why,
                 "an m-sequence at %zu samples a chip: %zu polyphase parts, each a Walsh-Hadamard "
                 "transform of %zu, N = %zu exactly",
                 plan->m_samples, plan->m_samples, cpu.n_transform, plan->n_samples);
    else if (cpu.is_walsh)
        snprintf(choice->why, sizeof choice->why,
                 "an m-sequence at one sample a chip: Walsh-Hadamard transform of %zu, N = %zu "
                 "exactly",
                 cpu.n_transform, plan->n_samples);
    else if (cpu.n_transform == plan->n_samples)
        snprintf(choice->why, sizeof choice->why, "%s at N = %zu itself", how, plan->n_samples);
    else
        snprintf(choice->why, sizeof choice->why,
                 "%s at %zu: N = %zu has a prime factor above 7, so a period is extended", how,
                 cpu.n_transform, plan->n_samples);
    choice->n_transform = cpu.n_transform;
    choice->host_bytes = host_bytes(&cpu);
    return PNR_OK;
}

/* --- the threads: what they ask, see engine_cpu_team.h --- */

static bool take(void *owner, pnr_cpu_turn *turn)
{
    pnr_engine *engine = owner;

    if (engine->is_again && engine->again.n_taken == 0) {
        engine->again.n_taken = 1;
        *turn = (pnr_cpu_turn){&engine->again, 0};
        return true;
    }
    for (size_t i = 0; i < engine->in_flight; i++) {
        pnr_cpu_slot *s = &engine->slots[(engine->first + i) % engine->cpu.plan->depth];

        if (s->n_taken < s->windows.n_dwells) {
            *turn = (pnr_cpu_turn){s, s->n_taken++};
            return true;
        }
    }
    return false;
}

static void lead(void *owner, const pnr_cpu_turn *turn, size_t leader, size_t worker)
{
    const pnr_engine *engine = owner;
    pnr_cpu_slot *s = turn->slot;
    const pnr_cpu_dwell dwell = pnr_cpu_slot_dwell(engine->cpu.plan, s, turn->dwell);

    if (engine->is_map)
        pnr_cpu_map_process(&engine->map, &engine->map_memory[leader], &dwell,
                            engine->team.help_first ? engine->cpu.team : NULL, worker);
    else
        pnr_cpu_process(&engine->cpu, &engine->memory[leader], &dwell, worker);
}

static bool finish(void *owner, const pnr_cpu_turn *turn)
{
    pnr_cpu_slot *s = turn->slot;

    (void)owner;
    s->n_done++;
    return pnr_cpu_slot_is_done(s);
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    const pnr_plan *plan = engine->cpu.plan;

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
            engine->first = (engine->first + 1) % engine->cpu.plan->depth;
            engine->in_flight--;
            code = PNR_OK;
        }
    }
    pthread_mutex_unlock(&engine->team.lock);
    return code;
}

/* Before whatever else waits; those that lead already finish their dwells first. */
static int search_without(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result)
{
    pnr_cpu_slot *s = &engine->again;

    pthread_mutex_lock(&engine->team.lock);
    pnr_cpu_slot_fill(engine->cpu.plan, windows, dwell, 1, s);
    s->removals = removals;
    s->n_removals = n_removals;
    engine->is_again = true;
    pthread_cond_broadcast(&engine->team.changed);
    while (!pnr_cpu_slot_is_done(s))
        pnr_cpu_team_wait(&engine->team);
    engine->is_again = false;
    *result = pnr_cpu_slot_result(s);
    pthread_mutex_unlock(&engine->team.lock);
    return PNR_OK;
}

/* --- life --- */

/* conj(DFT of the code, zero beyond N) / length, in double, rounded once. */
static int reference_create(pnr_cpu *cpu, size_t h)
{
    const size_t n = cpu->plan->n_samples, length = cpu->n_transform;
    double(*spectrum)[2] = calloc(length, sizeof *spectrum);
    pnr_cpu_value *reference = pnr_cpu_zeroed(cpu->spectrum_values * sizeof *reference);
    int code = PNR_ENOMEMORY;

    cpu->reference[h] = reference;
    if (spectrum != NULL && reference != NULL) {
        memcpy(spectrum, cpu->plan->references + h * n, n * sizeof *spectrum);
        code = pnr_transform_forward(spectrum, length);
    }
    if (code == PNR_OK) {
        for (size_t i = 0; i < length; i++) {
            spectrum[i][0] /= (double)length;
            spectrum[i][1] /= -(double)length;
        }
        if (cpu->is_split)
            pnr_cpu_split_order(&cpu->split, (const double(*)[2])spectrum, reference);
        for (size_t i = 0; !cpu->is_split && i < length; i++) {
            reference[i][0] = (float)spectrum[i][0];
            reference[i][1] = (float)spectrum[i][1];
        }
    }
    free(spectrum);
    return code;
}

/* Estimated plans are the same in every process, so the results are the same bits. */
static int plans_create(pnr_cpu *cpu, const pnr_cpu_memory *my)
{
    const int length = (int)cpu->n_transform;

    if (cpu->is_walsh)
        return pnr_cpu_walsh_create(&cpu->walsh, cpu->plan);
    if (cpu->is_split)
        return pnr_cpu_split_create(&cpu->split);
    cpu->forward = fftwf_plan_dft_1d(length, my->in, my->spectrum[0], FFTW_FORWARD,
                                     FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    cpu->inverse = fftwf_plan_dft_1d(length, my->in, my->profile, FFTW_BACKWARD,
                                     FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    return cpu->forward != NULL && cpu->inverse != NULL ? PNR_OK : PNR_ENOMEMORY;
}

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    pnr_cpu_team_stop(&engine->team);
    if (engine->cpu.forward != NULL)
        fftwf_destroy_plan(engine->cpu.forward);
    if (engine->cpu.inverse != NULL)
        fftwf_destroy_plan(engine->cpu.inverse);
    pnr_cpu_split_destroy(&engine->cpu.split);
    pnr_cpu_walsh_destroy(&engine->cpu.walsh);
    pnr_cpu_map_destroy(&engine->map);
    for (size_t i = 0; i < PNR_CPU_MAX_THREADS; i++) {
        pnr_cpu_memory_destroy(&engine->memory[i]);
        pnr_cpu_map_memory_destroy(&engine->map_memory[i]);
        free(engine->cpu.tile[i]);
    }
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++)
        pnr_cpu_slot_destroy(&engine->slots[i]);
    pnr_cpu_slot_destroy(&engine->again);
    free(engine->cpu.reference[0]);
    free(engine->cpu.reference[1]);
    free(engine->cpu.plan);
    free(engine);
}

static int prepare_plain(pnr_engine *engine)
{
    pnr_cpu *cpu = &engine->cpu;
    const pnr_plan *plan = cpu->plan;
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < leaders_of(cpu); i++)
        code = pnr_cpu_memory_create(cpu, &engine->memory[i]);
    for (size_t i = 0; code == PNR_OK && cpu->is_split && i < threads_of(plan); i++) {
        cpu->tile[i] = pnr_cpu_zeroed(pnr_cpu_split_tile_values(&cpu->split) * sizeof **cpu->tile);
        code = cpu->tile[i] != NULL ? PNR_OK : PNR_ENOMEMORY;
    }
    for (size_t h = 0; code == PNR_OK && !cpu->is_walsh && h < plan->oversample; h++)
        code = reference_create(cpu, h);
    return code == PNR_OK ? plans_create(cpu, &engine->memory[0]) : code;
}

static int prepare_map(pnr_engine *engine)
{
    pnr_cpu_map *map = &engine->map;
    int code = pnr_cpu_map_create(map, threads_of(map->plan));

    for (size_t i = 0; code == PNR_OK && i < pnr_cpu_map_leaders(map, threads_of(map->plan)); i++)
        code = pnr_cpu_map_memory_create(map, &engine->map_memory[i]);
    return code;
}

/* Everything but the threads. */
static int prepare(pnr_engine *engine)
{
    const pnr_plan *plan = engine->cpu.plan;
    int code = pnr_cpu_slot_create(plan, 1, &engine->again);

    for (size_t i = 0; code == PNR_OK && i < plan->depth; i++)
        code = pnr_cpu_slot_create(plan, plan->batch, &engine->slots[i]);
    if (code == PNR_OK)
        code = engine->is_map ? prepare_map(engine) : prepare_plain(engine);
    return code;
}

/* The sizes, and who works: that a plan leads to. */
static int arrange(pnr_engine *engine, pnr_plan *plan)
{
    pnr_cpu *cpu = &engine->cpu;

    cpu->plan = plan;
    cpu->team = &engine->team;
    if ((engine->is_map = !pnr_plan_is_plain(plan))) {
        const int code = pnr_cpu_map_shape(plan, &engine->map);

        engine->team.n_leaders =
            code == PNR_OK ? pnr_cpu_map_leaders(&engine->map, threads_of(plan)) : 1;
        engine->team.help_first = engine->team.n_leaders < threads_of(plan);
        return code;
    }
    shape(cpu, plan);
    cpu->energy_of_code = pnr_plan_code_energy(plan);
    pnr_cpu_rotation_tables(&cpu->rotation);
    engine->team.n_leaders = leaders_of(cpu);
    engine->team.help_first = is_large(cpu);
    return PNR_OK;
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    pnr_plan *copy;
    int code;

    *out = NULL;
    if ((code = describe(plan, &choice, error)) != PNR_OK)
        return code;

    pnr_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cpu: out of memory");
    pnr_cpu_team_init(&engine->team, &(pnr_cpu_owner){engine, take, lead, finish});
    code = PNR_ENOMEMORY;
    if ((copy = pnr_plan_copy(plan)) == NULL)
        goto fail;
    if ((code = arrange(engine, copy)) != PNR_OK || (code = prepare(engine)) != PNR_OK ||
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
