/* SPDX-License-Identifier: MIT */
/* Samples of a map's looks on the cpu engine: converted, counted, without their mean. */
#include "engine/cpu/map_steps.h"

#include "base/wide.h"
#include "engine/cpu/read.h"
#include "engine/plan.h"

#include <string.h>

typedef pnr_cpu_value value;

enum { BLOCK = PNR_CPU_MAP_BLOCK };

static size_t blocks_of(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

size_t pnr_cpu_map_own_blocks(const pnr_cpu_map *map)
{
    return blocks_of(map->plan->n_samples);
}

size_t pnr_cpu_map_blocks(const pnr_cpu_map *map)
{
    return pnr_cpu_map_own_blocks(map) + blocks_of(map->window - map->plan->n_samples);
}

/* Energy and counts are of a window's own samples; those behind them are the next one's. */
static void read_window(void *context, size_t task, size_t worker)
{
    const pnr_cpu_map_step *s = context;
    const pnr_cpu_map *map = s->map;
    const pnr_plan *plan = map->plan;
    const size_t look = s->first_look + task / plan->n_periods;
    const size_t first = s->dwell->number * pnr_plan_windows(plan); /* window */
    const size_t number = s->first_look * plan->n_periods + task, n = plan->n_samples;
    const pnr_cpu_reading reading = {
        .plan = plan,
        .windows = s->dwell->windows,
        .rotation = &map->turns,
        .removals = s->dwell->removals,
        .n_removals = s->dwell->n_removals,
        .look = (first + look * plan->n_periods) * n,
        .keeps_marks = plan->remove_mean,
    };
    value *x = s->my->x + task * map->x_pitch;
    pnr_converted own = {0}, behind = {0};

    (void)worker;
    for (size_t i = 0, count; i < map->window; i += count) {
        const size_t end = i < n ? n : map->window;

        count = end - i < PNR_CPU_READ_MOST ? end - i : PNR_CPU_READ_MOST;
        pnr_cpu_read(&reading, (first + number) * n + i, count, x + i, i < n ? &own : &behind);
        if (i < n && !plan->remove_mean)
            own.energy += pnr_cpu_energy(count, (const value *)(x + i));
    }
    s->my->windows[number] = (pnr_cpu_map_window){
        .converted = own,
        .n_lost = s->dwell->lost[number],
    };
}

/* What is counted of every window; could this one be used? */
static bool count_window(const pnr_cpu_map_step *s, size_t number)
{
    const pnr_cpu_map_window *window = &s->my->windows[number];
    const uint64_t n_nonfinite = window->converted.n_nonfinite;

    s->dwell->sums->n_clipped += window->converted.n_clipped;
    s->dwell->sums->n_nonfinite += n_nonfinite;
    s->dwell->nonfinite[number] = (uint32_t)n_nonfinite;
    return window->n_lost + n_nonfinite <= s->map->plan->n_samples / 2;
}

/* Lists a look that has used windows enough: one, and two where their mean is taken out. */
static void count_look(pnr_cpu_map_step *s, size_t look)
{
    const pnr_plan *plan = s->map->plan;
    const size_t first = look * plan->n_periods;
    pnr_cpu_map_window *windows = s->my->windows + first;
    size_t n_used = 0;

    for (size_t p = 0; p < plan->n_periods; p++) {
        windows[p].is_used = count_window(s, first + p);
        n_used += windows[p].is_used;
    }
    if (n_used > (plan->remove_mean ? 1 : 0))
        s->my->looks[s->n_used++] = look;
}

/* --- the mean over the used windows --- */

/* Marks are NaN. Their comparison stands between a loop and its vectors, that of the bits does not:
 * all ones where a float is good. */
typedef uint32_t bits __attribute__((may_alias));

static inline uint32_t good(uint32_t x)
{
    return -(uint32_t)((x & 0x7fffffff) <= 0x7f800000);
}

static inline float of_bits(uint32_t x)
{
    union {
        uint32_t bits;
        float value;
    } u = {x};

    return u.value;
}

PNR_WIDE static void add_good(size_t n, const bits *restrict x, double *restrict sum,
                              uint32_t *restrict n_bad)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t mask = good(x[i]);

        sum[i] += (double)of_bits(x[i] & mask);
        n_bad[i] += 1 + mask;
    }
}

PNR_WIDE static void subtract(size_t n, const double *restrict mean, bits *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        union {
            float value;
            uint32_t bits;
        } u = {(float)((double)of_bits(x[i]) - mean[i])};

        x[i] = u.bits & good(x[i]);
    }
}

/* One block of columns of a look. What is not used has the mean taken out too: a stretched look is
 * made of it. */
static void take_mean(void *context, size_t task, size_t worker)
{
    const pnr_cpu_map_step *s = context;
    const pnr_cpu_map *map = s->map;
    const size_t n_periods = map->plan->n_periods, n = map->plan->n_samples;
    const size_t n_blocks = pnr_cpu_map_blocks(map), n_own = pnr_cpu_map_own_blocks(map);
    const size_t look = task / n_blocks, block = task % n_blocks;
    const bool is_own = block < n_own;
    const size_t first = is_own ? block * BLOCK : n + (block - n_own) * BLOCK;
    const size_t left = (is_own ? n : map->window) - first, count = left < BLOCK ? left : BLOCK;
    const pnr_cpu_map_window *windows = s->my->windows + (s->first_look + look) * n_periods;
    value *x = s->my->x + look * n_periods * map->x_pitch + first;
    double *energies = s->my->energies + (look * n_own + block) * n_periods;
    double mean[2 * BLOCK] = {0};
    uint32_t n_bad[2 * BLOCK] = {0};
    size_t n_used = 0;

    (void)worker;
    for (size_t p = 0; p < n_periods; p++)
        if (windows[p].is_used) {
            n_used++;
            add_good(2 * count, (const bits *)x[p * map->x_pitch], mean, n_bad);
        }
    for (size_t i = 0; i < 2 * count; i++)
        mean[i] = n_used > n_bad[i] ? mean[i] / (double)(n_used - n_bad[i]) : 0;
    for (size_t p = 0; p < n_periods; p++) {
        value *at = x + p * map->x_pitch;

        subtract(2 * count, mean, (bits *)at[0]);
        if (is_own)
            energies[p] = pnr_cpu_energy(count, (const value *)at);
    }
}

/* What the mean took from a window's noise, 1/U of it, is put back into its energy. */
static void add_energies(const pnr_cpu_map_step *s, size_t look)
{
    const size_t n_periods = s->map->plan->n_periods, n_own = pnr_cpu_map_own_blocks(s->map);
    pnr_cpu_map_window *windows = s->my->windows + (s->first_look + look) * n_periods;
    const double *energies = s->my->energies + look * n_own * n_periods;
    size_t n_used = 0;

    for (size_t p = 0; p < n_periods; p++)
        n_used += windows[p].is_used;
    for (size_t p = 0; p < n_periods; p++) {
        double energy = 0;

        for (size_t b = 0; b < n_own; b++)
            energy += energies[b * n_periods + p];
        windows[p].converted.energy = energy * (double)n_used / (double)(n_used - 1);
    }
}

/* --- the dwell's sums --- */

/* floor = sum w_p^2 E_p E_a / N */
static void add_look(const pnr_cpu_map_step *s, size_t look)
{
    const pnr_plan *plan = s->map->plan;
    const pnr_cpu_map_window *windows = s->my->windows + look * plan->n_periods;
    pnr_dwell *sums = s->dwell->sums;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const double weight = plan->taper != NULL ? plan->taper[p] : 1;
        const double energy = windows[p].converted.energy;

        if (!windows[p].is_used)
            continue;
        sums->n_periods++;
        sums->n_valid += plan->n_samples - windows[p].n_lost - windows[p].converted.n_nonfinite;
        sums->energy += energy;
        sums->floor += weight * weight * energy * s->map->energy_of_code / (double)plan->n_samples;
    }
}

void pnr_cpu_map_read(pnr_cpu_map_step *s)
{
    const pnr_cpu_map *map = s->map;
    const size_t before = s->n_used;

    pnr_cpu_map_do(s, read_window, s->n_looks * map->plan->n_periods);
    for (size_t l = 0; l < s->n_looks; l++)
        count_look(s, s->first_look + l);
    if (map->plan->remove_mean)
        pnr_cpu_map_do(s, take_mean, s->n_looks * pnr_cpu_map_blocks(map));
    for (size_t i = before; i < s->n_used; i++) {
        if (map->plan->remove_mean)
            add_energies(s, s->my->looks[i] - s->first_look);
        add_look(s, s->my->looks[i]);
    }
    pnr_cpu_map_lap(s->dwell, PNR_STAGE_CONVERT, &s->since);
}
