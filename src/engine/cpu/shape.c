/* SPDX-License-Identifier: MIT */
/* The sizes and the memory of the cpu engine. */
#include "base/memory.h"
#include "base/transform.h"
#include "engine/cpu/fused.h"
#include "engine/cpu/steps.h"
#include "engine/plan.h"
#include "engine/slot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef pnr_cpu_value value;

enum {
    SMALL_BYTES = 1 << 21, /* a dwell of fewer bytes fits into the cache of one core */
    SLOW_BYTES = 1 << 18,  /* bytes of this cache for the slow-time columns of a thread */
    FEWEST_COLUMNS = 16,
    MOST_COLUMNS = 64,
    READ_BYTES = 1 << 24 /* short looks are read together, up to this number of bytes */
};

static size_t slow_columns(const pnr_cpu *cpu)
{
    const size_t fit = SLOW_BYTES / (cpu->slow_pitch * sizeof(value)) / 8 * 8;

    return fit < FEWEST_COLUMNS ? FEWEST_COLUMNS : fit > MOST_COLUMNS ? MOST_COLUMNS : fit;
}

static void shape_doubling(pnr_cpu *cpu)
{
    pnr_cpu_doubling *d = &cpu->doubling;
    size_t length;

    d->margin = pnr_stretch_margin(cpu->plan);
    if (d->margin == 0)
        return;
    d->n_look = (cpu->plan->n_periods - 1) * cpu->plan->n_samples + cpu->window + 2 * d->margin;
    length = pnr_transform_fast_length(d->n_look);
    pnr_cpu_transform_shape(length, pnr_cpu_split_pays(length), &d->transform);
    d->pitch = pnr_cpu_pitch(2 * d->n_look);
}

static void shape_kept(pnr_cpu *cpu)
{
    const pnr_plan *plan = cpu->plan;
    double look_bytes;

    cpu->x_pitch = pnr_cpu_pitch(cpu->window);
    pnr_cpu_transform_shape(cpu->axes.n_transform, pnr_cpu_split_pays(cpu->axes.n_transform),
                            &cpu->transform);
    cpu->filter_pitch = plan->filter != NULL ? pnr_cpu_pitch(plan->gate_count) : 0;
    for (size_t s = 0; s < cpu->axes.n_sets; s++)
        if (!cpu->axes.sets[s].is_summed)
            cpu->slow_pitch = pnr_cpu_pitch(plan->n_periods);
    shape_doubling(cpu);
    if (cpu->slow_pitch > 0)
        cpu->slow_columns = slow_columns(cpu);
    look_bytes = (double)plan->n_periods * (double)cpu->x_pitch * (double)sizeof(value);
    cpu->looks_at_once = look_bytes >= READ_BYTES ? 1 : (size_t)(READ_BYTES / look_bytes);
    if (cpu->looks_at_once > plan->n_looks)
        cpu->looks_at_once = plan->n_looks;
    cpu->is_transformed_late = plan->n_codes == 1 && cpu->axes.n_spectra == cpu->axes.n_rows;
}

/* --- memory: the same functions count the bytes, allocate the memory and free it --- */

typedef enum { COUNT, ALLOCATE, FREE } purpose;

typedef struct allocation {
    purpose purpose;
    bool has_failed;
    double bytes;
} allocation;

static void *next_memory(allocation *a, double n, size_t each, void *old)
{
    const double bytes = n * (double)each;
    void *memory = NULL;

    a->bytes += bytes;
    if (a->purpose == FREE)
        free(old);
    if (a->purpose != ALLOCATE || a->has_failed || n == 0)
        return NULL;
    if (bytes < 0x1p62)
        memory = pnr_memory_zeroed((size_t)bytes);
    a->has_failed = memory == NULL;
    return memory;
}

#define MEMORY(field, n) field = next_memory(a, n, sizeof *field, field)

static void list_fused(const pnr_cpu *cpu, pnr_cpu_memory *my, allocation *a)
{
    const pnr_plan *plan = cpu->plan;
    const size_t grids = plan->oversample > 1 ? plan->oversample * plan->n_lags : cpu->n_places;

    MEMORY(my->profile, (double)(plan->n_looks * plan->oversample) * (double)cpu->profile_pitch);
    if (cpu->in_values > 0)
        MEMORY(my->y, (double)cpu->in_values);
    else if (a->purpose == ALLOCATE)
        my->y = my->profile;
    MEMORY(my->period, plan->n_periods > 1 ? (double)cpu->window : 0);
    for (size_t h = 0; h < cpu->n_spectra; h++)
        MEMORY(my->fused[h], (double)cpu->transform.spectrum_pitch);
    if (cpu->walsh.n_parts > 1)
        MEMORY(my->parts, (double)cpu->walsh.n_parts * (double)pnr_cpu_walsh_values(&cpu->walsh));
    MEMORY(my->grid, (double)grids);
    if (plan->want_profile != PNR_WANT_POWER && (cpu->n_places == 0 || cpu->is_ordered))
        MEMORY(my->power, (double)pnr_plan_cells(plan));
}

static void list_kept(const pnr_cpu *cpu, pnr_cpu_memory *my, allocation *a)
{
    const pnr_plan *plan = cpu->plan;
    const double periods = (double)plan->n_periods, looks = (double)plan->n_looks;
    const double lines = (double)plan->n_codes * (double)cpu->axes.n_rows;
    const double x = (double)cpu->looks_at_once * periods * (double)cpu->x_pitch;
    const pnr_cpu_doubling *d = &cpu->doubling;

    MEMORY(my->x, x);
    MEMORY(my->stretched, d->margin > 0 ? x : 0);
    MEMORY(my->doubled, (double)cpu->looks_at_once * (double)d->pitch);
    MEMORY(my->look, (double)d->transform.in_values);
    MEMORY(my->halves, (double)d->transform.out_values);
    MEMORY(my->spectrum, (double)d->transform.spectrum_pitch);
    MEMORY(my->spectra,
           looks * (double)cpu->axes.n_spectra * (double)cpu->transform.spectrum_pitch);
    MEMORY(my->power, plan->want_profile == PNR_WANT_POWER
                          ? 0
                          : lines * (double)(plan->n_lags * plan->oversample));
    MEMORY(my->lines, lines);
    MEMORY(my->above, lines * (double)pnr_search_words(plan));
    MEMORY(my->energies, plan->remove_mean
                             ? (double)(cpu->looks_at_once * pnr_cpu_mean_blocks(cpu)) * periods
                             : 0);
    MEMORY(my->looks, looks);
    MEMORY(my->centres, (double)plan->max_candidates * looks);
    MEMORY(my->around, (double)(plan->max_candidates * PNR_NEIGHBOURS));
}

static void list_memory(const pnr_cpu *cpu, pnr_cpu_memory *my, allocation *a)
{
    const pnr_plan *plan = cpu->plan;

    MEMORY(my->windows, (double)pnr_plan_windows(plan));
    MEMORY(my->converted, (double)(cpu->fused != NULL ? 1 : cpu->looks_at_once * plan->n_periods) *
                              (double)pnr_cpu_read_blocks(cpu));
    if (cpu->fused != NULL)
        list_fused(cpu, my, a);
    else
        list_kept(cpu, my, a);
}

static void list_scratch(const pnr_cpu *cpu, pnr_cpu_scratch *scratch, allocation *a)
{
    const double slow = (double)(cpu->slow_columns * cpu->slow_pitch);

    MEMORY(scratch->transform.tile,
           fmax((double)cpu->transform.tile_values, (double)cpu->doubling.transform.tile_values));
    if (cpu->fused != NULL)
        return;
    MEMORY(scratch->transform.in, (double)cpu->transform.in_values);
    MEMORY(scratch->transform.out, (double)cpu->transform.out_values);
    MEMORY(scratch->slow[0], slow);
    MEMORY(scratch->slow[1], slow);
    MEMORY(scratch->filter,
           cpu->filter_pitch > 0 ? (double)(4 * cpu->plan->gate_count + cpu->filter_pitch) : 0);
}

/* Returns the number of complex values in the table of weights of set i, or 0 if there is no
 * table. */
static double weight_values(const pnr_cpu *cpu, size_t i)
{
    const pnr_cpu_set *set = &cpu->axes.sets[i];
    const double each = (double)cpu->plan->n_periods;

    if (set->is_summed)
        return each * (double)((set->count + 3) / 4 * 4);
    return cpu->plan->taper != NULL || set->quarters != 0 ? each : 0;
}

/* Counts, allocates or frees table i of a list. The list is NULL while bytes are counted, and after
 * a failed allocation. */
static void list_table(allocation *a, double n, value **tables, size_t i)
{
    value *table = next_memory(a, n, sizeof *table, tables != NULL ? tables[i] : NULL);

    if (tables != NULL)
        tables[i] = table;
}

static void list_tables(pnr_cpu *cpu, allocation *a)
{
    const pnr_plan *plan = cpu->plan;
    const pnr_cpu_axes *axes = &cpu->axes;

    MEMORY(cpu->codes, (double)(plan->n_codes * plan->oversample) * (double)axes->n_variants *
                           (double)cpu->transform.spectrum_pitch);
    if (cpu->fused != NULL)
        return;
    MEMORY(cpu->filter, (double)plan->gate_count * (double)cpu->filter_pitch);
    MEMORY(cpu->kernel, cpu->doubling.margin > 0 ? PNR_STRETCH_STEPS + 1 : 0);
    MEMORY(cpu->doubling.half, (double)cpu->doubling.transform.spectrum_pitch);
    MEMORY(cpu->doubling.whole,
           pnr_stretch_has_band(plan->band) ? (double)cpu->doubling.transform.spectrum_pitch : 0);
    MEMORY(cpu->doubling.fade, (double)cpu->doubling.margin);
    if (a->purpose != FREE) { /* the lists are freed below, after their tables */
        MEMORY(cpu->rotations, (double)axes->n_rotations);
        MEMORY(cpu->weights, (double)axes->n_sets);
    }
    for (size_t i = 0; i < axes->n_rotations; i++)
        list_table(a, axes->rotations[i] != 0 ? (double)cpu->window : 0, cpu->rotations, i);
    for (size_t i = 0; i < axes->n_sets; i++)
        list_table(a, weight_values(cpu, i), cpu->weights, i);
    if (a->purpose != FREE)
        return;
    free(cpu->rotations);
    free(cpu->weights);
}

static double memory_bytes(const pnr_cpu *cpu)
{
    pnr_cpu_memory unused = {0};
    allocation a = {0};

    list_memory(cpu, &unused, &a);
    return a.bytes;
}

static double all_bytes(const pnr_cpu *cpu, size_t n_threads)
{
    pnr_cpu sizes = *cpu;
    pnr_cpu_scratch unused = {0};
    allocation tables = {0}, scratch = {0};

    list_tables(&sizes, &tables);
    list_scratch(cpu, &unused, &scratch);
    return tables.bytes + (double)pnr_cpu_transform_table_bytes(&cpu->transform) +
           (double)pnr_cpu_transform_table_bytes(&cpu->doubling.transform) +
           (cpu->walsh.degree > 0 ? (double)pnr_cpu_walsh_table_bytes(&cpu->walsh) : 0) +
           scratch.bytes * (double)n_threads + memory_bytes(cpu) * (double)cpu->n_leaders +
           pnr_slots_bytes(cpu->plan);
}

/* --- sizes --- */

/* If the memory of a dwell fits into the cache of one core, one thread computes the dwell. Several
 * threads share a larger dwell. More than two threads compute two such dwells at the same time. */
static void arrange_kept(pnr_cpu *cpu, size_t n_threads)
{
    if (memory_bytes(cpu) < SMALL_BYTES || n_threads < 2)
        cpu->n_leaders = n_threads;
    else
        cpu->n_leaders = n_threads > 2 ? 2 : 1;
    cpu->is_shared = cpu->finishes_first = cpu->n_leaders < n_threads;
}

static int arrange_sizes(const pnr_plan *plan, size_t n_threads, pnr_cpu *cpu)
{
    const int code = pnr_cpu_axes_create(plan, &cpu->axes);

    cpu->plan = plan;
    cpu->is_plain = pnr_plan_is_plain(plan);
    cpu->n_leaders = 1;
    if (code != PNR_OK)
        return code;
    cpu->window = pnr_plan_window_samples(plan);
    cpu->energy_of_code = pnr_plan_code_energy(plan);
    cpu->fused = pnr_cpu_fused_choose(plan, cpu->axes.n_transform);
    if (cpu->fused != NULL) {
        pnr_cpu_fused_shape(cpu, n_threads);
    } else {
        shape_kept(cpu);
        arrange_kept(cpu, n_threads);
    }
    cpu->is_shaped = true;
    return PNR_OK;
}

static int refuse(const pnr_plan *plan, double bytes, double available, pnr_error *error)
{
    return pnr_error_set(error, PNR_EUNSUPPORTED,
                         "engine cpu: a map of %zu codes, %zu rows, %zu lags and %zu looks of %zu "
                         "periods takes %.0f MiB, and this machine has %.0f",
                         plan->n_codes, pnr_plan_rows(plan), plan->n_lags, plan->n_looks,
                         plan->n_periods, bytes / 0x1p20, available / 0x1p20);
}

int pnr_cpu_shape(const pnr_plan *plan, size_t n_threads, pnr_cpu *cpu, pnr_engine_choice *choice,
                  pnr_error *error)
{
    const double available = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    const double power = (double)plan->n_codes * (double)pnr_plan_rows(plan) *
                         (double)(plan->n_lags * plan->oversample) * (double)sizeof(float);
    double bytes;
    int code;

    if (power > available) /* refuses before arrange_sizes allocates memory for each row */
        return refuse(plan, power, available, error);
    if ((code = arrange_sizes(plan, n_threads, cpu)) != PNR_OK)
        return pnr_error_set(error, code, "engine cpu: no memory to arrange %zu rows of a map",
                             pnr_plan_rows(plan));
    bytes = all_bytes(cpu, n_threads);
    *choice = (pnr_engine_choice){
        .method = "library", .n_transform = cpu->axes.n_transform, .host_bytes = (uint64_t)bytes};
    if (cpu->fused != NULL)
        pnr_cpu_fused_describe(cpu, choice);
    else
        snprintf(choice->why, sizeof choice->why,
                 "FFTW at %zu: %zu transform%s a look forward, %zu x %zu back (rows x codes); %.0f "
                 "MiB",
                 cpu->axes.n_transform, cpu->axes.n_spectra, cpu->axes.n_spectra != 1 ? "s" : "",
                 cpu->axes.n_rows, plan->n_codes, bytes / 0x1p20);
    return bytes > available ? refuse(plan, bytes, available, error) : PNR_OK;
}

/* --- create and destroy --- */

int pnr_cpu_memory_create(const pnr_cpu *cpu, pnr_cpu_memory *memory)
{
    allocation a = {.purpose = ALLOCATE};

    list_memory(cpu, memory, &a);
    for (size_t i = 0; memory->above != NULL && i < cpu->plan->n_codes * cpu->axes.n_rows; i++)
        memory->lines[i].above = memory->above + i * pnr_search_words(cpu->plan);
    return a.has_failed ? PNR_ENOMEMORY : PNR_OK;
}

void pnr_cpu_memory_destroy(const pnr_cpu *cpu, pnr_cpu_memory *memory)
{
    list_memory(cpu, memory, &(allocation){.purpose = FREE});
}

/* FFTW_ESTIMATE gives the same plan in every process, so the results have the same bits. */
static int create_slow(pnr_cpu *cpu)
{
    const pnr_cpu_scratch *scratch = &cpu->scratch[0];
    const int k = (int)cpu->plan->n_periods, pitch = (int)cpu->slow_pitch;

    if (cpu->slow_columns == 0)
        return PNR_OK;
    cpu->slow = fftwf_plan_many_dft(1, &k, (int)cpu->slow_columns, scratch->slow[0], NULL, 1, pitch,
                                    scratch->slow[1], NULL, 1, pitch, FFTW_FORWARD,
                                    FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    return cpu->slow != NULL ? PNR_OK : PNR_ENOMEMORY;
}

int pnr_cpu_create(pnr_cpu *cpu, size_t n_threads)
{
    allocation a = {.purpose = ALLOCATE};
    int code;

    list_tables(cpu, &a);
    for (size_t i = 0; i < n_threads; i++)
        list_scratch(cpu, &cpu->scratch[i], &a);
    code = a.has_failed ? PNR_ENOMEMORY : create_slow(cpu);
    if (code == PNR_OK)
        code = cpu->walsh.degree > 0 ? pnr_cpu_walsh_create(&cpu->walsh, cpu->plan)
                                     : pnr_cpu_transform_create(&cpu->transform);
    if (code == PNR_OK && cpu->doubling.margin > 0)
        code = pnr_cpu_transform_create(&cpu->doubling.transform);
    return code == PNR_OK ? pnr_cpu_fill_tables(cpu) : code;
}

void pnr_cpu_destroy(pnr_cpu *cpu)
{
    allocation a = {.purpose = FREE};

    pnr_cpu_transform_destroy(&cpu->transform);
    pnr_cpu_transform_destroy(&cpu->doubling.transform);
    pnr_cpu_walsh_destroy(&cpu->walsh);
    if (cpu->slow != NULL)
        fftwf_destroy_plan(cpu->slow);
    if (cpu->is_shaped) {
        for (size_t i = 0; i < PNR_CPU_MAX_THREADS; i++)
            list_scratch(cpu, &cpu->scratch[i], &a);
        list_tables(cpu, &a);
    }
    pnr_cpu_axes_destroy(&cpu->axes);
}
