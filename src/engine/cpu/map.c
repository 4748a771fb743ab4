/* SPDX-License-Identifier: MIT */
/* Maps on the cpu engine: their sizes, tables and memory. */
#include "engine/cpu/map_steps.h"

#include "base/transform.h"
#include "engine/cpu/memory.h"
#include "engine/cpu/slot.h"
#include "engine/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef pnr_cpu_value value;

enum {
    SMALL_BYTES = 1 << 21, /* a map that a core's cache holds */
    SLOW_BYTES = 1 << 18,  /* what a thread's columns of slow time may take of it */
    FEWEST_COLUMNS = 16,
    MOST_COLUMNS = 64,
    READ_BYTES = 1 << 24 /* samples read at once, when looks are short */
};

static size_t slow_columns(const pnr_cpu_map *map)
{
    const size_t fit = SLOW_BYTES / (map->slow_pitch * sizeof(value)) / 8 * 8;

    return fit < FEWEST_COLUMNS ? FEWEST_COLUMNS : fit > MOST_COLUMNS ? MOST_COLUMNS : fit;
}

/* Samples that a stretched window is made from: a tenth more or less, see plan.c, and the taps. */
static size_t line_of(size_t window)
{
    return window + window / 10 + 2 * PNR_STRETCH_TAPS;
}

static bool is_transformed(const pnr_cpu_map_axes *axes)
{
    for (size_t s = 0; s < axes->n_sets; s++)
        if (!axes->sets[s].is_summed)
            return true;
    return false;
}

int pnr_cpu_map_shape(const pnr_plan *plan, pnr_cpu_map *map)
{
    const int code = pnr_cpu_map_axes_create(plan, &map->axes);
    double look_bytes;

    map->plan = plan;
    if (code != PNR_OK)
        return code;
    map->window = pnr_plan_window_samples(plan);
    map->x_pitch = pnr_cpu_pitch(map->window);
    pnr_cpu_map_transform_shape(map->axes.n_transform, &map->transform);
    map->energy_of_code = pnr_plan_code_energy(plan);
    map->filter_pitch = plan->filter != NULL ? pnr_cpu_pitch(plan->gate_count) : 0;
    if (is_transformed(&map->axes)) {
        map->slow_pitch = pnr_cpu_pitch(plan->n_periods);
        map->slow_columns = slow_columns(map);
    }
    look_bytes = (double)plan->n_periods * (double)map->x_pitch * (double)sizeof(value);
    map->looks_at_once = look_bytes >= READ_BYTES ? 1 : (size_t)(READ_BYTES / look_bytes);
    if (map->looks_at_once > plan->n_looks)
        map->looks_at_once = plan->n_looks;
    for (size_t s = 0; s < map->axes.n_sets; s++)
        if (map->axes.sets[s].stretch != 0)
            map->line = line_of(map->window);
    map->is_fused = plan->n_codes == 1 && map->axes.n_spectra == map->axes.n_rows;
    return PNR_OK;
}

/* --- bytes: of one list, which allocates too --- */

/* What a list comes to, and, unless it is only counted, its memory. */
typedef struct order {
    bool is_real;
    bool is_complete;
    double bytes;
} order;

static void *take(order *o, double n, size_t each)
{
    const double bytes = n * (double)each;
    void *memory = NULL;

    o->bytes += bytes;
    if (!o->is_real || !o->is_complete || n == 0)
        return NULL;
    if (bytes < 0x1p62)
        memory = pnr_cpu_zeroed((size_t)bytes);
    o->is_complete = memory != NULL;
    return memory;
}

#define TAKE(field, n) field = take(o, n, sizeof *field)

static void memory_take(const pnr_cpu_map *map, pnr_cpu_map_memory *my, order *o)
{
    const pnr_plan *plan = map->plan;
    const double periods = (double)plan->n_periods, looks = (double)plan->n_looks;
    const double lines = (double)plan->n_codes * (double)map->axes.n_rows;
    const double x = (double)map->looks_at_once * periods * (double)map->x_pitch;

    TAKE(my->x, x);
    TAKE(my->stretched, map->line > 0 ? x : 0);
    TAKE(my->spectra, looks * (double)map->axes.n_spectra * (double)map->transform.spectrum_pitch);
    TAKE(my->power, plan->want_profile == PNR_WANT_POWER
                        ? 0
                        : (double)plan->n_codes * (double)map->axes.n_rows *
                              (double)(plan->n_lags * plan->oversample));
    TAKE(my->lines, lines);
    TAKE(my->above, lines * (double)pnr_search_words(plan));
    TAKE(my->windows, looks * periods);
    TAKE(my->energies, plan->remove_mean
                           ? (double)(map->looks_at_once * pnr_cpu_map_own_blocks(map)) * periods
                           : 0);
    TAKE(my->looks, looks);
    TAKE(my->centres, (double)plan->max_candidates * looks);
    TAKE(my->around, (double)(plan->max_candidates * PNR_NEIGHBOURS));
}

static void bench_take(const pnr_cpu_map *map, pnr_cpu_map_bench *bench, order *o)
{
    const double slow = (double)(map->slow_columns * map->slow_pitch);

    TAKE(bench->room.in, (double)map->transform.in_values);
    TAKE(bench->room.out, (double)map->transform.out_values);
    TAKE(bench->room.tile, (double)map->transform.tile_values);
    TAKE(bench->slow[0], slow);
    TAKE(bench->slow[1], slow);
    TAKE(bench->line, (double)map->line);
    TAKE(bench->filter,
         map->filter_pitch > 0 ? (double)(4 * map->plan->gate_count + map->filter_pitch) : 0);
}

/* Of set i. */
static double weights_of(const pnr_cpu_map *map, size_t i)
{
    const pnr_cpu_map_set *set = &map->axes.sets[i];
    const double each = (double)map->plan->n_periods;

    if (set->is_summed)
        return each * (double)((set->count + 3) / 4 * 4);
    return map->plan->taper != NULL || set->quarters != 0 ? each : 0;
}

static void tables_take(pnr_cpu_map *map, order *o)
{
    const pnr_plan *plan = map->plan;
    const pnr_cpu_map_axes *axes = &map->axes;

    TAKE(map->codes, (double)(plan->n_codes * plan->oversample) * (double)axes->n_variants *
                         (double)map->transform.spectrum_pitch);
    TAKE(map->filter, (double)plan->gate_count * (double)map->filter_pitch);
    TAKE(map->kernel, map->line > 0 ? PNR_STRETCH_STEPS + 1 : 0);
    TAKE(map->rotations, (double)axes->n_rotations);
    TAKE(map->weights, (double)axes->n_sets);
    for (size_t i = 0; i < axes->n_rotations; i++) {
        value *table = take(o, axes->rotations[i] != 0 ? (double)map->window : 0, sizeof *table);

        if (map->rotations != NULL)
            map->rotations[i] = table;
    }
    for (size_t i = 0; i < axes->n_sets; i++) {
        value *table = take(o, weights_of(map, i), sizeof *table);

        if (map->weights != NULL)
            map->weights[i] = table;
    }
}

static double memory_bytes(const pnr_cpu_map *map)
{
    pnr_cpu_map_memory unused;
    order o = {0};

    memory_take(map, &unused, &o);
    return o.bytes;
}

static double all_bytes(const pnr_cpu_map *map, size_t n_threads)
{
    pnr_cpu_map sizes = *map;
    pnr_cpu_map_bench unused;
    order tables = {0}, bench = {0};

    tables_take(&sizes, &tables);
    bench_take(map, &unused, &bench);
    return tables.bytes + (double)pnr_cpu_map_transform_table_bytes(&map->transform) +
           bench.bytes * (double)n_threads +
           memory_bytes(map) * (double)pnr_cpu_map_leaders(map, n_threads) +
           pnr_cpu_slots_bytes(map->plan);
}

/* Maps that a core's cache holds are done by one thread each; of larger ones a second fills the
 * steps that one thread does alone. */
size_t pnr_cpu_map_leaders(const pnr_cpu_map *map, size_t n_threads)
{
    if (memory_bytes(map) < SMALL_BYTES || n_threads < 2)
        return n_threads;
    return n_threads > 2 ? 2 : 1;
}

static int refuse(const pnr_plan *plan, double bytes, double there, pnr_error *error)
{
    return pnr_error_set(error, PNR_EUNSUPPORTED,
                         "engine cpu: a map of %zu codes, %zu rows, %zu lags and %zu looks of %zu "
                         "periods takes %.0f MiB, and this machine has %.0f",
                         plan->n_codes, pnr_plan_rows(plan), plan->n_lags, plan->n_looks,
                         plan->n_periods, bytes / 0x1p20, there / 0x1p20);
}

int pnr_cpu_map_describe(const pnr_plan *plan, size_t n_threads, pnr_engine_choice *choice,
                         pnr_error *error)
{
    const double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    const double power = (double)plan->n_codes * (double)pnr_plan_rows(plan) *
                         (double)(plan->n_lags * plan->oversample) * (double)sizeof(float);
    pnr_cpu_map map = {0};
    double bytes = 0;
    int code;

    if (power > there) /* already, without arranging its rows */
        return refuse(plan, power, there, error);
    code = pnr_cpu_map_shape(plan, &map);
    if (code != PNR_OK)
        (void)pnr_error_set(error, code, "engine cpu: no memory to arrange %zu rows of a map",
                            pnr_plan_rows(plan));
    else if ((bytes = all_bytes(&map, n_threads)) > there)
        code = refuse(plan, bytes, there, error);
    *choice = (pnr_engine_choice){
        .method = "library", .n_transform = map.axes.n_transform, .host_bytes = (uint64_t)bytes};
    snprintf(choice->why, sizeof choice->why,
             "FFTW at %zu: %zu transforms a look forward, %zu x %zu back (rows x codes); %.0f MiB",
             map.axes.n_transform, map.axes.n_spectra, map.axes.n_rows, plan->n_codes,
             bytes / 0x1p20);
    pnr_cpu_map_destroy(&map);
    return code;
}

int pnr_cpu_map_memory_create(const pnr_cpu_map *map, pnr_cpu_map_memory *memory)
{
    order o = {.is_real = true, .is_complete = true};

    memory_take(map, memory, &o);
    for (size_t i = 0; memory->above != NULL && i < map->plan->n_codes * map->axes.n_rows; i++)
        memory->lines[i].above = memory->above + i * pnr_search_words(map->plan);
    return o.is_complete ? PNR_OK : PNR_ENOMEMORY;
}

void pnr_cpu_map_memory_destroy(pnr_cpu_map_memory *memory)
{
    free(memory->x);
    free(memory->stretched);
    free(memory->spectra);
    free(memory->power);
    free(memory->lines);
    free(memory->above);
    free(memory->windows);
    free(memory->energies);
    free(memory->looks);
    free(memory->centres);
    free(memory->around);
}

/* --- tables --- */

/* exp(-2 pi i j / n) */
static void root(uint64_t j, size_t n, double out[2])
{
    pnr_transform_root((size_t)(j % n), n, out);
    out[1] = -out[1];
}

static void store(const double a[2], value out)
{
    out[0] = (float)a[0];
    out[1] = (float)a[1];
}

/* exp(-2 pi i rotation i / (4 N)) */
static void fill_rotations(const pnr_cpu_map *map)
{
    const size_t circle = 4 * map->plan->n_samples;

    for (size_t r = 0; r < map->axes.n_rotations; r++) {
        const int64_t quarters = map->axes.rotations[r] % (int64_t)circle;
        const uint64_t step = (uint64_t)(quarters < 0 ? quarters + (int64_t)circle : quarters);

        for (size_t i = 0; quarters != 0 && i < map->window; i++) {
            double w[2];

            root(step * i, circle, w);
            store(w, map->rotations[r][i]);
        }
    }
}

/* w_p exp(-2 pi i (r/4 + s/K) p), of a set that is transformed without s. */
static void fill_weights(const pnr_cpu_map *map, size_t number)
{
    const pnr_cpu_map_set *set = &map->axes.sets[number];
    const size_t k = map->plan->n_periods, count = set->is_summed ? set->count : 1;
    value *weights = map->weights[number];

    for (size_t u = 0; weights != NULL && u < count; u++)
        for (size_t p = 0; p < k; p++) {
            const double taper = map->plan->taper != NULL ? map->plan->taper[p] : 1;
            const uint64_t bin = set->is_summed ? map->axes.spectra[set->first + u].bin : 0;
            double w[2];

            root((set->quarters * k + 4 * bin) % (4 * k) * p, 4 * k, w);
            w[0] *= taper;
            w[1] *= taper;
            store(w, weights[set->is_summed ? (u / 4 * k + p) * 4 + u % 4 : p]);
        }
}

/* conj(DFT of a[n] exp(2 pi i m n / N), zero beyond N) / length, in double, rounded once. */
static int fill_code(const pnr_cpu_map *map, size_t code, double (*spectrum)[2])
{
    const size_t n = map->plan->n_samples, length = map->axes.n_transform;
    const double(*a)[2] = map->plan->references + code * n;

    for (size_t v = 0; v < map->axes.n_variants; v++) {
        const int64_t m = map->axes.variants[v] % (int64_t)n;
        const uint64_t step = (uint64_t)(m < 0 ? m + (int64_t)n : m);
        value *out = map->codes + (code * map->axes.n_variants + v) * map->transform.spectrum_pitch;

        memset(spectrum, 0, length * sizeof *spectrum);
        for (size_t i = 0; i < n; i++) {
            double w[2];

            root(step * i, n, w);
            spectrum[i][0] = a[i][0] * w[0] + a[i][1] * w[1];
            spectrum[i][1] = a[i][1] * w[0] - a[i][0] * w[1];
        }
        if (pnr_transform_forward(spectrum, length) != PNR_OK)
            return PNR_ENOMEMORY;
        for (size_t i = 0; i < length; i++) {
            spectrum[i][0] /= (double)length;
            spectrum[i][1] /= -(double)length;
        }
        pnr_cpu_map_transform_order(&map->transform, (const double(*)[2])spectrum, out);
    }
    return PNR_OK;
}

/* Columns j, so that c'[k] = sum_j filter[k][j] c[j] is a sum of rows. */
static void fill_filter(const pnr_cpu_map *map)
{
    const size_t n = map->plan->gate_count;

    for (size_t k = 0; map->filter != NULL && k < n; k++)
        for (size_t j = 0; j < n; j++)
            store(map->plan->filter[k * n + j], map->filter[j * map->filter_pitch + k]);
}

/* Estimated plans are the same in every process, so the results are the same bits. */
static int slow_create(pnr_cpu_map *map)
{
    const pnr_cpu_map_bench *bench = &map->bench[0];
    const int k = (int)map->plan->n_periods, pitch = (int)map->slow_pitch;

    if (map->slow_columns == 0)
        return PNR_OK;
    map->slow = fftwf_plan_many_dft(1, &k, (int)map->slow_columns, bench->slow[0], NULL, 1, pitch,
                                    bench->slow[1], NULL, 1, pitch, FFTW_FORWARD,
                                    FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    return map->slow != NULL ? PNR_OK : PNR_ENOMEMORY;
}

int pnr_cpu_map_create(pnr_cpu_map *map, size_t n_threads)
{
    double(*spectrum)[2] = calloc(map->axes.n_transform, sizeof *spectrum);
    order o = {.is_real = true, .is_complete = spectrum != NULL};
    int code;

    tables_take(map, &o);
    for (size_t i = 0; i < n_threads; i++)
        bench_take(map, &map->bench[i], &o);
    code = o.is_complete ? PNR_OK : PNR_ENOMEMORY;
    if (code == PNR_OK) {
        pnr_cpu_rotation_tables(&map->turns);
        fill_rotations(map);
        fill_filter(map);
        if (map->kernel != NULL)
            pnr_stretch_table(map->kernel);
        for (size_t s = 0; s < map->axes.n_sets; s++)
            fill_weights(map, s);
        code = slow_create(map);
    }
    if (code == PNR_OK)
        code = pnr_cpu_map_transform_create(&map->transform);
    for (size_t c = 0; code == PNR_OK && c < map->plan->n_codes * map->plan->oversample; c++)
        code = fill_code(map, c, spectrum);
    free(spectrum);
    return code;
}

void pnr_cpu_map_destroy(pnr_cpu_map *map)
{
    pnr_cpu_map_transform_destroy(&map->transform);
    if (map->slow != NULL)
        fftwf_destroy_plan(map->slow);
    for (size_t i = 0; i < PNR_CPU_MAX_THREADS; i++) {
        free(map->bench[i].room.in);
        free(map->bench[i].room.out);
        free(map->bench[i].room.tile);
        free(map->bench[i].slow[0]);
        free(map->bench[i].slow[1]);
        free(map->bench[i].line);
        free(map->bench[i].filter);
    }
    for (size_t i = 0; map->rotations != NULL && i < map->axes.n_rotations; i++)
        free(map->rotations[i]);
    for (size_t i = 0; map->weights != NULL && i < map->axes.n_sets; i++)
        free(map->weights[i]);
    free(map->rotations);
    free(map->weights);
    free(map->codes);
    free(map->filter);
    free(map->kernel);
    pnr_cpu_map_axes_destroy(&map->axes);
}
