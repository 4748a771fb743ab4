/* SPDX-License-Identifier: MIT */
/* Reads the windows of a look. Converts and counts their samples. Then adds the windows, or removes
 * their mean. */
#include "engine/cpu/fused.h"

#include "base/multiversion.h"
#include "engine/cpu/read.h"
#include "engine/plan.h"

#include <string.h>

typedef pnr_cpu_value value;

/* READ_BLOCK: samples in a block that is read. MEAN_BLOCK: samples in a block from which the mean
 * is removed. The blocks begin at fixed places of a window. So the energy of the window depends
 * neither on the thread that converts a block nor on the sample at which the view wraps. */
enum { READ_BLOCK = PNR_CPU_READ_MOST, MEAN_BLOCK = PNR_CPU_MEAN_BLOCK };

/* blocks_of: the number of blocks in n samples. blocks_of_window: the number of blocks in a window.
 * The first N samples of the window and its other samples are divided into blocks separately. */
static size_t blocks_of(size_t n, size_t size)
{
    return (n + size - 1) / size;
}

static size_t blocks_of_window(const pnr_cpu *cpu, size_t size)
{
    const size_t n = cpu->plan->n_samples;

    return blocks_of(n, size) + blocks_of(cpu->window - n, size);
}

/* Returns the first sample of a block; *count is the number of its samples. */
static size_t find_block(const pnr_cpu *cpu, size_t size, size_t block, size_t *count)
{
    const size_t n = cpu->plan->n_samples, n_own = blocks_of(n, size);
    const size_t first = block < n_own ? block * size : n + (block - n_own) * size;
    const size_t left = (block < n_own ? n : cpu->window) - first;

    *count = left < size ? left : size;
    return first;
}

size_t pnr_cpu_read_blocks(const pnr_cpu *cpu)
{
    return blocks_of_window(cpu, READ_BLOCK);
}

size_t pnr_cpu_mean_blocks(const pnr_cpu *cpu)
{
    return blocks_of(cpu->plan->n_samples, MEAN_BLOCK);
}

/* --- reading --- */

static void read_block(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_plan *plan = s->cpu->plan;
    const size_t n_blocks = pnr_cpu_read_blocks(s->cpu), i = task / n_blocks;
    const size_t window = s->dwell->number * pnr_plan_windows(plan) + s->number + i;
    const pnr_cpu_reading reading = {
        .plan = plan,
        .windows = s->dwell->windows,
        .rotation = &s->cpu->rotation,
        .removals = s->dwell->removals,
        .n_removals = s->dwell->n_removals,
        .look = (window - window % plan->n_periods) * plan->n_samples,
        .keeps_marks = plan->remove_mean,
    };
    size_t n;
    const size_t at = find_block(s->cpu, READ_BLOCK, task % n_blocks, &n);
    const size_t first = window * plan->n_samples + at;
    value counted_only[READ_BLOCK];
    value *out = s->to != NULL ? s->to + i * s->cpu->x_pitch + at : counted_only;
    pnr_converted *converted = &s->my->converted[task];

    (void)worker;
    *converted = (pnr_converted){0};
    if (s->cpu->is_plain && reading.n_removals == 0) {
        pnr_cpu_convert_view(&reading, first, n, out, converted);
        converted->energy = pnr_cpu_energy(n, (const value *)out);
        pnr_cpu_tune(&reading, first, n, out);
    } else {
        pnr_cpu_read(&reading, first, n, out, converted);
        if (!reading.keeps_marks) /* else the energy is computed after the mean is removed */
            converted->energy = pnr_cpu_energy(n, (const value *)out);
    }
}

/* Counts the lost, clipped and non-finite samples among the first N samples of window
 * s->number + i. Returns true if the window is used. */
static bool count_window(const pnr_cpu_step *s, size_t i)
{
    const size_t number = s->number + i, n = s->cpu->plan->n_samples;
    const pnr_converted *converted = s->my->converted + i * pnr_cpu_read_blocks(s->cpu);
    pnr_cpu_window *window = &s->my->windows[number];

    *window = (pnr_cpu_window){.n_lost = s->dwell->lost[number]};
    for (size_t b = 0; b < blocks_of(n, READ_BLOCK); b++) {
        window->energy += converted[b].energy;
        window->n_nonfinite += converted[b].n_nonfinite;
        s->dwell->sums->n_clipped += converted[b].n_clipped;
    }
    s->dwell->sums->n_nonfinite += window->n_nonfinite;
    s->dwell->nonfinite[number] = (uint32_t)window->n_nonfinite;
    return window->is_used = window->n_lost + window->n_nonfinite <= n / 2;
}

/* Adds the used windows of a look to the dwell's sums: floor = sum w_p^2 E_p E_a / N. */
static void add_look(const pnr_cpu_step *s, size_t look)
{
    const pnr_plan *plan = s->cpu->plan;
    const pnr_cpu_window *windows = s->my->windows + look * plan->n_periods;
    pnr_dwell *sums = s->dwell->sums;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const double weight = plan->taper != NULL ? plan->taper[p] : 1;
        const double energy = windows[p].energy;

        if (!windows[p].is_used)
            continue;
        sums->n_periods++;
        sums->n_valid += plan->n_samples - windows[p].n_lost - windows[p].n_nonfinite;
        sums->energy += energy;
        sums->floor += weight * weight * energy * s->cpu->energy_of_code / (double)plan->n_samples;
    }
}

/* --- way `fused`: the sum of the used windows --- */

static void add_block(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    size_t n;
    const size_t first = find_block(s->cpu, READ_BLOCK, block, &n);

    (void)worker;
    pnr_cpu_add(n, (const value *)s->my->period + first, s->my->y + first);
}

bool pnr_cpu_read_fused(pnr_cpu_step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t n_blocks = pnr_cpu_read_blocks(s->cpu);
    bool is_used = false;

    for (size_t p = 0; p < plan->n_periods; p++) {
        s->number = s->first_look * plan->n_periods + p;
        s->to = is_used ? s->my->period : s->my->y;
        if (s->cpu->fused->choose_input != NULL)
            s->cpu->fused->choose_input(s);
        pnr_cpu_do(s, read_block, n_blocks);
        if (count_window(s, 0)) {
            if (is_used)
                pnr_cpu_do(s, add_block, n_blocks);
            is_used = true;
        }
        pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_CONVERT, &s->since);
    }
    if (is_used)
        add_look(s, s->first_look);
    return is_used;
}

/* --- way `kept`: the mean over the used windows --- */

/* A mark is a NaN in place of a sample. The compiler vectorises a loop that compares bits, but not
 * a loop that compares floats. unmarked(x) has all bits 1 when x is not a mark, else all bits 0. */
typedef uint32_t bits __attribute__((may_alias));

static inline uint32_t unmarked(uint32_t x)
{
    return -(uint32_t)((x & 0x7fffffff) <= 0x7f800000);
}

static inline float float_of_bits(uint32_t x)
{
    union {
        uint32_t bits;
        float value;
    } u = {x};

    return u.value;
}

PNR_MULTIVERSION static void add_unmarked(size_t n, const bits *restrict x, double *restrict sum,
                                          uint32_t *restrict n_bad)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t mask = unmarked(x[i]);

        sum[i] += (double)float_of_bits(x[i] & mask);
        n_bad[i] += 1 + mask;
    }
}

PNR_MULTIVERSION static void subtract_mean(size_t n, const double *restrict mean, bits *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        union {
            float value;
            uint32_t bits;
        } u = {(float)((double)float_of_bits(x[i]) - mean[i])};

        x[i] = u.bits & unmarked(x[i]);
    }
}

/* Removes the mean from one block of columns of a look. The mean is also subtracted from unused
 * windows, because a stretched look reads them. */
static void remove_mean(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const size_t n_periods = cpu->plan->n_periods;
    const size_t n_blocks = blocks_of_window(cpu, MEAN_BLOCK), n_own = pnr_cpu_mean_blocks(cpu);
    const size_t look = task / n_blocks, block = task % n_blocks;
    size_t count;
    const size_t first = find_block(cpu, MEAN_BLOCK, block, &count);
    const pnr_cpu_window *windows = s->my->windows + (s->first_look + look) * n_periods;
    value *x = s->my->x + look * n_periods * cpu->x_pitch + first;
    double *energies = s->my->energies + (look * n_own + block) * n_periods;
    double mean[2 * MEAN_BLOCK] = {0};
    uint32_t n_bad[2 * MEAN_BLOCK] = {0};
    size_t n_used = 0;

    (void)worker;
    for (size_t p = 0; p < n_periods; p++)
        if (windows[p].is_used) {
            n_used++;
            add_unmarked(2 * count, (const bits *)x[p * cpu->x_pitch], mean, n_bad);
        }
    for (size_t i = 0; i < 2 * count; i++)
        mean[i] = n_used > n_bad[i] ? mean[i] / (double)(n_used - n_bad[i]) : 0;
    for (size_t p = 0; p < n_periods; p++) {
        value *at = x + p * cpu->x_pitch;

        subtract_mean(2 * count, mean, (bits *)at[0]);
        if (block < n_own)
            energies[p] = pnr_cpu_energy(count, (const value *)at);
    }
}

/* Sets the energies of the windows of a look with U used windows. Multiplies each energy by
 * U / (U - 1), because the removal of the mean removed 1/U of the noise. */
static void add_energies(const pnr_cpu_step *s, size_t look)
{
    const size_t n_periods = s->cpu->plan->n_periods, n_own = pnr_cpu_mean_blocks(s->cpu);
    pnr_cpu_window *windows = s->my->windows + (s->first_look + look) * n_periods;
    const double *energies = s->my->energies + look * n_own * n_periods;
    size_t n_used = 0;

    for (size_t p = 0; p < n_periods; p++)
        n_used += windows[p].is_used;
    for (size_t p = 0; p < n_periods; p++) {
        double energy = 0;

        for (size_t b = 0; b < n_own; b++)
            energy += energies[b * n_periods + p];
        windows[p].energy = energy * (double)n_used / (double)(n_used - 1);
    }
}

/* --- the list of used looks, for the way `kept` of cpu.h --- */

/* Lists a look that has enough used windows: one, or two when the mean is removed. */
static void list_look(pnr_cpu_step *s, size_t look)
{
    const pnr_plan *plan = s->cpu->plan;
    size_t n_used = 0;

    for (size_t p = 0; p < plan->n_periods; p++)
        n_used += count_window(s, (look - s->first_look) * plan->n_periods + p);
    if (n_used > (plan->remove_mean ? 1 : 0))
        s->my->looks[s->n_used++] = look;
}

void pnr_cpu_read_kept(pnr_cpu_step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t before = s->n_used;

    s->number = s->first_look * plan->n_periods;
    s->to = s->my->x;
    pnr_cpu_do(s, read_block, s->n_looks * plan->n_periods * pnr_cpu_read_blocks(s->cpu));
    for (size_t l = 0; l < s->n_looks; l++)
        list_look(s, s->first_look + l);
    if (plan->remove_mean)
        pnr_cpu_do(s, remove_mean, s->n_looks * blocks_of_window(s->cpu, MEAN_BLOCK));
    for (size_t i = before; i < s->n_used; i++) {
        if (plan->remove_mean)
            add_energies(s, s->my->looks[i] - s->first_look);
        add_look(s, s->my->looks[i]);
    }
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_CONVERT, &s->since);
}
