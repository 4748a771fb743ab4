/* SPDX-License-Identifier: MIT */
/* The windows of a look: converted, counted, added or without their mean. */
#include "engine/cpu/fused.h"

#include "base/wide.h"
#include "engine/cpu/read.h"
#include "engine/plan.h"

#include <string.h>

typedef pnr_cpu_value value;

enum { BLOCK = PNR_CPU_BLOCK };

static size_t blocks_of(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

size_t pnr_cpu_own_blocks(const pnr_cpu *cpu)
{
    return blocks_of(cpu->plan->n_samples);
}

size_t pnr_cpu_blocks(const pnr_cpu *cpu)
{
    return pnr_cpu_own_blocks(cpu) + blocks_of(cpu->window - cpu->plan->n_samples);
}

static pnr_cpu_reading reading_of(const pnr_cpu_step *s, size_t number)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t first = s->dwell->number * pnr_plan_windows(plan); /* window */

    return (pnr_cpu_reading){
        .plan = plan,
        .windows = s->dwell->windows,
        .rotation = &s->cpu->rotation,
        .removals = s->dwell->removals,
        .n_removals = s->dwell->n_removals,
        .look = (first + number - number % plan->n_periods) * plan->n_samples,
        .keeps_marks = plan->remove_mean,
    };
}

/* The sample of the view at which a window of the dwell begins. */
static size_t first_sample(const pnr_cpu_step *s, size_t number)
{
    const pnr_plan *plan = s->cpu->plan;

    return (s->dwell->number * pnr_plan_windows(plan) + number) * plan->n_samples;
}

/* Energy and counts are those of a window's first N samples; the next window counts the others. */
static void read_window(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const pnr_plan *plan = cpu->plan;
    const size_t number = s->first_look * plan->n_periods + task, n = plan->n_samples;
    const pnr_cpu_reading reading = reading_of(s, number);
    value *x = s->my->x + task * cpu->x_pitch;
    pnr_converted own = {0}, next = {0};

    (void)worker;
    for (size_t i = 0, count; i < cpu->window; i += count) {
        const size_t end = i < n ? n : cpu->window;

        count = end - i < PNR_CPU_READ_MOST ? end - i : PNR_CPU_READ_MOST;
        pnr_cpu_read(&reading, first_sample(s, number) + i, count, x + i, i < n ? &own : &next);
        if (i < n && !plan->remove_mean)
            own.energy += pnr_cpu_energy(count, (const value *)(x + i));
    }
    s->my->windows[number] = (pnr_cpu_window){
        .converted = own,
        .n_lost = s->dwell->lost[number],
    };
}

/* What is counted of every window; could this one be used? */
static bool count_window(const pnr_cpu_step *s, size_t number)
{
    const pnr_cpu_window *window = &s->my->windows[number];
    const uint64_t n_nonfinite = window->converted.n_nonfinite;

    s->dwell->sums->n_clipped += window->converted.n_clipped;
    s->dwell->sums->n_nonfinite += n_nonfinite;
    s->dwell->nonfinite[number] = (uint32_t)n_nonfinite;
    return window->n_lost + n_nonfinite <= s->cpu->plan->n_samples / 2;
}

/* Lists a look that has used windows enough: one, and two where their mean is taken out. */
static void count_look(pnr_cpu_step *s, size_t look)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t first = look * plan->n_periods;
    pnr_cpu_window *windows = s->my->windows + first;
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
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const size_t n_periods = cpu->plan->n_periods, n = cpu->plan->n_samples;
    const size_t n_blocks = pnr_cpu_blocks(cpu), n_own = pnr_cpu_own_blocks(cpu);
    const size_t look = task / n_blocks, block = task % n_blocks;
    const bool is_own = block < n_own;
    const size_t first = is_own ? block * BLOCK : n + (block - n_own) * BLOCK;
    const size_t left = (is_own ? n : cpu->window) - first, count = left < BLOCK ? left : BLOCK;
    const pnr_cpu_window *windows = s->my->windows + (s->first_look + look) * n_periods;
    value *x = s->my->x + look * n_periods * cpu->x_pitch + first;
    double *energies = s->my->energies + (look * n_own + block) * n_periods;
    double mean[2 * BLOCK] = {0};
    uint32_t n_bad[2 * BLOCK] = {0};
    size_t n_used = 0;

    (void)worker;
    for (size_t p = 0; p < n_periods; p++)
        if (windows[p].is_used) {
            n_used++;
            add_good(2 * count, (const bits *)x[p * cpu->x_pitch], mean, n_bad);
        }
    for (size_t i = 0; i < 2 * count; i++)
        mean[i] = n_used > n_bad[i] ? mean[i] / (double)(n_used - n_bad[i]) : 0;
    for (size_t p = 0; p < n_periods; p++) {
        value *at = x + p * cpu->x_pitch;

        subtract(2 * count, mean, (bits *)at[0]);
        if (is_own)
            energies[p] = pnr_cpu_energy(count, (const value *)at);
    }
}

/* What the mean took from a window's noise, 1/U of it, is put back into its energy. */
static void add_energies(const pnr_cpu_step *s, size_t look)
{
    const size_t n_periods = s->cpu->plan->n_periods, n_own = pnr_cpu_own_blocks(s->cpu);
    pnr_cpu_window *windows = s->my->windows + (s->first_look + look) * n_periods;
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
static void add_look(const pnr_cpu_step *s, size_t look)
{
    const pnr_plan *plan = s->cpu->plan;
    const pnr_cpu_window *windows = s->my->windows + look * plan->n_periods;
    pnr_dwell *sums = s->dwell->sums;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const double weight = plan->taper != NULL ? plan->taper[p] : 1;
        const double energy = windows[p].converted.energy;

        if (!windows[p].is_used)
            continue;
        sums->n_periods++;
        sums->n_valid += plan->n_samples - windows[p].n_lost - windows[p].converted.n_nonfinite;
        sums->energy += energy;
        sums->floor += weight * weight * energy * s->cpu->energy_of_code / (double)plan->n_samples;
    }
}

void pnr_cpu_read_looks(pnr_cpu_step *s)
{
    const pnr_cpu *cpu = s->cpu;
    const size_t before = s->n_used;

    pnr_cpu_do(s, read_window, s->n_looks * cpu->plan->n_periods);
    for (size_t l = 0; l < s->n_looks; l++)
        count_look(s, s->first_look + l);
    if (cpu->plan->remove_mean)
        pnr_cpu_do(s, take_mean, s->n_looks * pnr_cpu_blocks(cpu));
    for (size_t i = before; i < s->n_used; i++) {
        if (cpu->plan->remove_mean)
            add_energies(s, s->my->looks[i] - s->first_look);
        add_look(s, s->my->looks[i]);
    }
    pnr_cpu_lap(s->dwell, PNR_STAGE_CONVERT, &s->since);
}

/* --- fused --- */

/* Blocks begin at fixed places of a window, so that its energy depends neither on the thread that
 * converts a block nor on the sample at which the view wraps. */
enum { READ_BLOCK = PNR_CPU_READ_MOST };

static size_t read_blocks(size_t n)
{
    return (n + READ_BLOCK - 1) / READ_BLOCK;
}

size_t pnr_cpu_read_blocks(const pnr_cpu *cpu)
{
    return read_blocks(cpu->plan->n_samples) + read_blocks(cpu->window - cpu->plan->n_samples);
}

/* The first sample of a block, and how many it has. */
static size_t first_of_block(const pnr_cpu *cpu, size_t block, size_t *count)
{
    const size_t n = cpu->plan->n_samples, n_own = read_blocks(n);
    const size_t first = block < n_own ? block * READ_BLOCK : n + (block - n_own) * READ_BLOCK;
    const size_t left = (block < n_own ? n : cpu->window) - first;

    *count = left < READ_BLOCK ? left : READ_BLOCK;
    return first;
}

static void read_block(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu_reading reading = reading_of(s, s->number);
    size_t n;
    const size_t at = first_of_block(s->cpu, block, &n), first = first_sample(s, s->number) + at;
    value counted_only[READ_BLOCK];
    value *out = s->to != NULL ? s->to + at : counted_only;
    pnr_converted *converted = &s->my->converted[block];

    (void)worker;
    *converted = (pnr_converted){0};
    if (reading.n_removals > 0 || !s->cpu->is_plain) {
        pnr_cpu_read(&reading, first, n, out, converted);
        converted->energy = pnr_cpu_energy(n, (const value *)out);
        return;
    }
    pnr_cpu_convert_view(&reading, first, n, out, converted);
    converted->energy = pnr_cpu_energy(n, (const value *)out);
    pnr_cpu_tune(&reading, first, n, out);
}

static void add_block(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    size_t n;
    const size_t first = first_of_block(s->cpu, block, &n);

    (void)worker;
    pnr_cpu_add(n, (const value *)s->my->period + first, s->my->y + first);
}

/* Reads one window; false: it is not used. */
static bool read_period(pnr_cpu_step *s)
{
    pnr_cpu_window *window = &s->my->windows[s->number];

    if (s->cpu->fused->choose_input != NULL)
        s->cpu->fused->choose_input(s, first_sample(s, s->number));
    pnr_cpu_do(s, read_block, pnr_cpu_read_blocks(s->cpu));
    *window = (pnr_cpu_window){.n_lost = s->dwell->lost[s->number]};
    for (size_t b = 0; b < read_blocks(s->cpu->plan->n_samples); b++) {
        window->converted.energy += s->my->converted[b].energy;
        window->converted.n_nonfinite += s->my->converted[b].n_nonfinite;
        window->converted.n_clipped += s->my->converted[b].n_clipped;
    }
    return window->is_used = count_window(s, s->number);
}

bool pnr_cpu_read_fused(pnr_cpu_step *s)
{
    const size_t n_periods = s->cpu->plan->n_periods;
    bool is_used = false;

    for (size_t p = 0; p < n_periods; p++) {
        s->number = s->first_look * n_periods + p;
        s->to = is_used ? s->my->period : s->my->y;
        if (read_period(s)) {
            if (is_used)
                pnr_cpu_do(s, add_block, pnr_cpu_read_blocks(s->cpu));
            is_used = true;
        }
        pnr_cpu_lap(s->dwell, PNR_STAGE_CONVERT, &s->since);
    }
    if (is_used)
        add_look(s, s->first_look);
    return is_used;
}
