/* SPDX-License-Identifier: MIT */
/* One dwell of the cpu engine, from samples to candidates. */
#include "engine/cpu/dwell.h"

#include "base/clock.h"
#include "engine/cpu/memory.h"
#include "engine/cpu/read.h"
#include "engine/plan.h"
#include "engine/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples converted and summed at once: blocks begin at fixed places of a window, so that its
 * energy does not depend on where the view wraps, nor on who converts. */
enum { BLOCK = PNR_CPU_READ_MOST };

typedef pnr_cpu_value value;

/* --- memory --- */

static size_t blocks_of(const pnr_plan *plan)
{
    return (plan->n_samples + BLOCK - 1) / BLOCK;
}

static bool is_coherent(const pnr_plan *plan)
{
    return plan->n_periods > 1;
}

/* Of one row the samples are done with when its profile comes:
 * both in one place stay in the cache. */
static bool is_shared(const pnr_cpu *cpu)
{
    return cpu->is_split && cpu->n_rows * cpu->plan->oversample == 1;
}

/* Method walsh at one sample a chip: c and its powers stay where W lies. */
static bool is_placed(const pnr_cpu *cpu)
{
    return cpu->is_walsh && cpu->walsh.n_parts == 1;
}

static size_t parts_values(const pnr_cpu *cpu)
{
    return cpu->is_walsh && !is_placed(cpu) ? cpu->walsh.n_parts * pnr_cpu_walsh_values(&cpu->walsh)
                                            : 0;
}

static size_t in_values(const pnr_cpu *cpu)
{
    return cpu->is_split || cpu->is_walsh ? cpu->plan->n_samples : cpu->n_transform;
}

size_t pnr_cpu_memory_bytes(const pnr_cpu *cpu)
{
    const pnr_plan *plan = cpu->plan;
    const size_t n = plan->n_samples;
    const size_t in = is_shared(cpu) ? 0 : in_values(cpu);
    const size_t spectra = (cpu->is_split ? plan->oversample : 1) * cpu->spectrum_values;
    const size_t profiles = cpu->n_rows * plan->oversample * cpu->profile_values;

    return sizeof(value) *
               (in + spectra + (is_coherent(plan) ? n : 0) + profiles + parts_values(cpu)) +
           sizeof(float) * (is_placed(cpu)
                                ? pnr_cpu_walsh_values(&cpu->walsh)
                                : n * (plan->oversample > 1 ? 2 * plan->oversample : 1)) +
           sizeof(pnr_converted) * blocks_of(plan);
}

int pnr_cpu_memory_create(const pnr_cpu *cpu, pnr_cpu_memory *memory)
{
    const pnr_plan *plan = cpu->plan;
    const size_t n = plan->n_samples;
    bool is_complete;

    memory->profile =
        pnr_cpu_zeroed(cpu->n_rows * plan->oversample * cpu->profile_values * sizeof(value));
    memory->in = is_shared(cpu) ? memory->profile : pnr_cpu_zeroed(in_values(cpu) * sizeof(value));
    memory->converted = pnr_cpu_zeroed(blocks_of(plan) * sizeof *memory->converted);
    is_complete = memory->in != NULL && memory->profile != NULL && memory->converted != NULL;
    if (is_coherent(plan))
        is_complete &= (memory->window = pnr_cpu_zeroed(n * sizeof(value))) != NULL;
    for (size_t h = 0; h < plan->oversample; h++) {
        if (!is_placed(cpu))
            is_complete &= (memory->power[h] = pnr_cpu_zeroed(n * sizeof **memory->power)) != NULL;
        if (h == 1)
            is_complete &= (memory->grid = pnr_cpu_zeroed(2 * n * sizeof *memory->grid)) != NULL;
        if (!cpu->is_walsh && (h == 0 || cpu->is_split))
            is_complete &= (memory->spectrum[h] =
                                pnr_cpu_zeroed(cpu->spectrum_values * sizeof(value))) != NULL;
    }
    if (parts_values(cpu) > 0)
        is_complete &=
            (memory->walsh_parts = pnr_cpu_zeroed(parts_values(cpu) * sizeof(value))) != NULL;
    if (is_placed(cpu))
        is_complete &= (memory->walsh_power = pnr_cpu_zeroed(pnr_cpu_walsh_values(&cpu->walsh) *
                                                             sizeof(float))) != NULL;
    return is_complete ? PNR_OK : PNR_ENOMEMORY;
}

void pnr_cpu_memory_destroy(pnr_cpu_memory *memory)
{
    if (memory->in != memory->profile)
        free(memory->in);
    free(memory->window);
    free(memory->profile);
    free(memory->converted);
    free(memory->walsh_power);
    free(memory->grid);
    free(memory->walsh_parts);
    for (int h = 0; h < 2; h++) {
        free(memory->spectrum[h]);
        free(memory->power[h]);
    }
}

/* --- the steps --- */

/* What the tasks of one dwell work on. */
typedef struct step {
    const pnr_cpu *cpu;
    const pnr_cpu_memory *my;
    const pnr_cpu_dwell *dwell;
    size_t worker;             /* the leader */
    size_t first;              /* sample of the view: of the window that is read */
    value *window;             /* where it goes; NULL: nowhere, it is counted only */
    pnr_cpu_walsh_input input; /* method walsh: where it is read from */
    size_t row, h;
    uint64_t since; /* the stopwatch */
} step;

static void do_all(const step *s, pnr_cpu_task *task, size_t n_tasks)
{
    step context = *s;

    if (s->cpu->by_team)
        pnr_cpu_team_do(s->cpu->team, s->worker, task, &context, n_tasks);
    else
        for (size_t i = 0; i < n_tasks; i++)
            task(&context, i, s->worker);
}

/* A stopwatch that costs nothing when nobody measures. */
static void lap(step *s, int stage)
{
    if (s->dwell->stage_ns != NULL) {
        const uint64_t now = pnr_clock_ns();

        if (stage < PNR_STAGE_COUNT)
            s->dwell->stage_ns[stage] += now - s->since;
        s->since = now;
    }
}

static value *profile_of(const step *s, size_t row, size_t h)
{
    return s->my->profile + (row * s->cpu->plan->oversample + h) * s->cpu->profile_values;
}

/* Once more, without the echoes found. */
static void read_rest(const step *s, size_t first, size_t n, value *out, pnr_converted *converted)
{
    const pnr_plan *plan = s->cpu->plan;
    const pnr_cpu_reading reading = {
        .plan = plan,
        .windows = s->dwell->windows,
        .rotation = &s->cpu->rotation,
        .removals = s->dwell->removals,
        .n_removals = s->dwell->n_removals,
        .look = s->first - s->first % (plan->n_periods * plan->n_samples),
    };

    pnr_cpu_read(&reading, first, n, out, converted);
    converted->energy = pnr_cpu_energy(n, (const value *)out);
}

static void read_block(void *context, size_t block, size_t worker)
{
    const step *s = context;
    const pnr_plan *plan = s->cpu->plan;
    const size_t stride = pnr_plan_sample_bytes(plan);
    const size_t offset = plan->first_channel * pnr_format_get(plan->format)->bytes;
    const size_t left = plan->n_samples - BLOCK * block, n = left < BLOCK ? left : BLOCK;
    const size_t first = s->first + BLOCK * block;
    value counted_only[BLOCK];
    value *out = s->window != NULL ? s->window + BLOCK * block : counted_only;
    pnr_converted *converted = &s->my->converted[block];

    (void)worker;
    *converted = (pnr_converted){0};
    if (s->dwell->n_removals > 0) {
        read_rest(s, first, n, out, converted);
        return;
    }
    for (size_t done = 0; done < n;) {
        size_t count = n - done;
        const char *data = pnr_plan_locate(plan, s->dwell->windows, first + done, &count);

        pnr_cpu_convert(plan->format, data + offset, stride, count, plan->conjugate, out + done,
                        converted);
        done += count;
    }
    converted->energy = pnr_cpu_energy(n, (const value *)out);
    if (plan->tune.num != 0)
        pnr_cpu_rotate(&s->cpu->rotation,
                       pnr_rational_phase(plan->tune, s->dwell->windows->first_sample + first),
                       pnr_rational_phase(plan->tune, 1), n, out);
}

static void add_block(void *context, size_t block, size_t worker)
{
    const step *s = context;
    const size_t left = s->cpu->plan->n_samples - BLOCK * block;

    (void)worker;
    pnr_cpu_add(left < BLOCK ? left : BLOCK, (const value *)s->my->window + BLOCK * block,
                s->my->in + BLOCK * block);
}

static void forward_block(void *context, size_t block, size_t worker)
{
    const step *s = context;

    pnr_cpu_split_forward(&s->cpu->split, block, (const value *)s->my->in, s->cpu->plan->n_samples,
                          s->my->spectrum[0], s->cpu->tile[worker]);
}

static void row_block(void *context, size_t block, size_t worker)
{
    const step *s = context;

    pnr_cpu_split_rows(&s->cpu->split, block, s->cpu->plan->oversample, s->my->spectrum,
                       s->cpu->reference, s->cpu->tile[worker], s->dwell->stage_ns);
}

static void inverse_block(void *context, size_t block, size_t worker)
{
    const step *s = context;

    pnr_cpu_split_inverse(&s->cpu->split, block, (const value *)s->my->spectrum[s->h],
                          profile_of(s, s->row, s->h), s->cpu->plan->n_samples, s->row > 0,
                          s->my->power[s->h], s->cpu->tile[worker], s->dwell->stage_ns);
}

/* in[0 .. N-1] -> a profile and its power for each lag grid. Length trap: an extended transform
 * sees x[n mod N], n < 2N-1, and zeros. */
static void correlate_split(step *s)
{
    const pnr_cpu_split *split = &s->cpu->split;

    do_all(s, forward_block, split->n_blocks);
    lap(s, PNR_STAGE_FORWARD);
    do_all(s, row_block, split->n_row_blocks);
    for (s->h = 0; s->h < s->cpu->plan->oversample; s->h++)
        do_all(s, inverse_block, split->n_blocks);
    lap(s, PNR_STAGE_COUNT); /* the blocks have timed themselves */
}

static void correlate_at_once(step *s)
{
    const pnr_cpu *cpu = s->cpu;
    const size_t n = cpu->plan->n_samples, length = cpu->n_transform;
    value *in = s->my->in, *spectrum = s->my->spectrum[0];

    if (length != n) {
        memcpy(in + n, in, (n - 1) * sizeof *in);
        memset(in + 2 * n - 1, 0, (length - (2 * n - 1)) * sizeof *in);
    }
    lap(s, PNR_STAGE_CONVERT);
    fftwf_execute_dft(cpu->forward, in, spectrum);
    lap(s, PNR_STAGE_FORWARD);
    for (size_t h = 0; h < cpu->plan->oversample; h++) {
        pnr_cpu_product(length, (const value *)spectrum, (const value *)cpu->reference[h], in);
        lap(s, PNR_STAGE_PRODUCT);
        fftwf_execute_dft(cpu->inverse, in, profile_of(s, s->row, h));
        lap(s, PNR_STAGE_INVERSE);
        pnr_cpu_power(n, (const value *)profile_of(s, s->row, h), s->row > 0, s->my->power[h]);
        lap(s, PNR_STAGE_PEAK);
    }
}

static void walsh_row(void *context, size_t row, size_t worker)
{
    const step *s = context;

    (void)worker;
    pnr_cpu_walsh_row(&s->cpu->walsh, row, &s->input, profile_of(s, s->row, 0));
}

static void walsh_columns(void *context, size_t task, size_t worker)
{
    const step *s = context;

    (void)worker;
    pnr_cpu_walsh_columns(&s->cpu->walsh, task, (const value *)profile_of(s, s->row, 0), s->row > 0,
                          s->my->walsh_power);
}

/* Part r of the samples begins at sample r. */
static void part_row(void *context, size_t task, size_t worker)
{
    const step *s = context;
    const pnr_cpu_walsh *walsh = &s->cpu->walsh;
    const size_t part = task / walsh->rows;
    pnr_cpu_walsh_input input = s->input;

    (void)worker;
    input.data = (const char *)input.data + part * input.stride;
    input.stride *= walsh->n_parts;
    pnr_cpu_walsh_row(walsh, task % walsh->rows, &input,
                      s->my->walsh_parts + part * pnr_cpu_walsh_values(walsh));
}

static void part_columns(void *context, size_t task, size_t worker)
{
    const step *s = context;
    const pnr_cpu_walsh *walsh = &s->cpu->walsh;
    const size_t part = task / walsh->n_column_tasks;

    (void)worker;
    pnr_cpu_walsh_part(walsh, task % walsh->n_column_tasks,
                       s->my->walsh_parts + part * pnr_cpu_walsh_values(walsh));
}

static void part_sums(void *context, size_t task, size_t worker)
{
    const step *s = context;

    (void)worker;
    pnr_cpu_walsh_sum(&s->cpu->walsh, task, (const value *)s->my->walsh_parts, s->row > 0,
                      profile_of(s, s->row, 0), s->my->power[0]);
}

static void correlate_parts(step *s)
{
    const pnr_cpu_walsh *walsh = &s->cpu->walsh;

    do_all(s, part_row, walsh->n_parts * walsh->rows);
    lap(s, PNR_STAGE_FORWARD);
    if (walsh->rows > 1)
        do_all(s, part_columns, walsh->n_parts * walsh->n_column_tasks);
    do_all(s, part_sums, pnr_cpu_walsh_n_sums(walsh));
    lap(s, PNR_STAGE_INVERSE);
}

static void correlate_walsh(step *s)
{
    do_all(s, walsh_row, s->cpu->walsh.rows);
    lap(s, PNR_STAGE_FORWARD);
    do_all(s, walsh_columns, s->cpu->walsh.n_column_tasks);
    lap(s, PNR_STAGE_INVERSE);
}

static void correlate(step *s)
{
    if (is_placed(s->cpu))
        correlate_walsh(s);
    else if (s->cpu->is_walsh)
        correlate_parts(s);
    else if (s->cpu->is_split)
        correlate_split(s);
    else
        correlate_at_once(s);
    s->row++;
}

/* c at an integer lag of a profile. */
static void value_at(const pnr_cpu *cpu, const value *profile, size_t lag, value c)
{
    if (is_placed(cpu))
        pnr_cpu_walsh_value(&cpu->walsh, profile, lag, c);
    else
        memcpy(c, profile[cpu->is_split ? pnr_cpu_split_place(&cpu->split, lag) : lag],
               sizeof(value));
}

/* 17 values around a candidate; of an incoherent dwell sum over windows c[k + j] conj(c[k]) /
 * sqrt(P[k]). */
static void gather(const step *s, pnr_candidate *candidate)
{
    const pnr_plan *plan = s->cpu->plan;
    const bool is_sum = plan->n_looks > 1;
    const size_t centre = pnr_search_lag(plan, candidate->cell, 0);

    for (int j = -8; j <= 8; j++) {
        const size_t lag = pnr_search_lag(plan, candidate->cell, j);
        double re = 0, im = 0, power = 0;

        for (size_t r = 0; r < s->row; r++) {
            const value *profile = (const value *)profile_of(s, r, 0);
            value at = {1, 0}, c;

            value_at(s->cpu, profile, lag, c);
            if (is_sum)
                value_at(s->cpu, profile, centre, at);

            const double cr = (double)at[0], ci = (double)at[1];

            re += (double)c[0] * cr + (double)c[1] * ci;
            im += (double)c[1] * cr - (double)c[0] * ci;
            power += cr * cr + ci * ci;
        }

        const double scale = is_sum && power > 0 ? 1 / sqrt(power) : 1;

        candidate->value[j + 8][0] = (float)(re * scale);
        candidate->value[j + 8][1] = (float)(im * scale);
    }
}

static void return_profile(const step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t n = plan->n_samples, oversample = plan->oversample;
    const bool is_power = plan->want_profile == PNR_WANT_POWER;
    float *out = s->dwell->profile;

    if (s->row == 0) {
        memset(out, 0, (is_power ? 1 : 2) * n * oversample * sizeof *out);
        return;
    }
    for (size_t h = 0; h < oversample; h++) {
        const value *c = (const value *)profile_of(s, s->row - 1, h);

        for (size_t k = 0; k < n; k++) {
            const size_t cell = k * oversample + h;

            if (is_power && is_placed(s->cpu))
                out[cell] = s->my->walsh_power[s->cpu->walsh.place[k]];
            else if (is_power)
                out[cell] = s->my->power[h][k];
            else
                value_at(s->cpu, c, k, out + 2 * cell);
        }
    }
}

/* Method walsh gathers a window in one piece from where it is; a copy of it would cost more than
 * its transform. */
static void choose_input(step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    size_t count = plan->n_samples;
    const char *data = pnr_plan_locate(plan, s->dwell->windows, s->first, &count);

    s->input = (pnr_cpu_walsh_input){s->my->in, sizeof(value), PNR_FORMAT_CF32, false};
    if (pnr_cpu_walsh_reads(plan) && count == plan->n_samples && s->dwell->n_removals == 0) {
        data += plan->first_channel * pnr_format_get(plan->format)->bytes;
        s->input =
            (pnr_cpu_walsh_input){data, pnr_plan_sample_bytes(plan), plan->format, plan->conjugate};
        s->window = NULL;
    }
}

/* One window to where the step says; false: too much of it is lost. */
static bool read_window(step *s, size_t period)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t w = s->dwell->number * pnr_plan_windows(plan) + period, n = plan->n_samples;
    pnr_dwell *sums = s->dwell->sums;
    double energy = 0;
    uint64_t n_nonfinite = 0;

    s->first = w * n;
    if (s->cpu->is_walsh)
        choose_input(s);
    do_all(s, read_block, blocks_of(plan));
    for (size_t b = 0; b < blocks_of(plan); b++) {
        energy += s->my->converted[b].energy;
        n_nonfinite += s->my->converted[b].n_nonfinite;
        sums->n_clipped += s->my->converted[b].n_clipped;
    }
    sums->n_nonfinite += n_nonfinite;
    s->dwell->nonfinite[period] = (uint32_t)n_nonfinite;
    if (s->dwell->lost[period] + n_nonfinite > n / 2)
        return false;
    sums->n_periods++;
    sums->n_valid += n - s->dwell->lost[period] - n_nonfinite;
    sums->energy += energy;
    return true;
}

/* Half lags lie apart from the integer ones until here. */
static const float *grid_of(const step *s)
{
    const pnr_cpu_memory *my = s->my;

    if (s->cpu->plan->oversample == 1)
        return my->power[0];
    for (size_t k = 0; k < s->cpu->plan->n_samples; k++) {
        my->grid[2 * k] = my->power[0][k];
        my->grid[2 * k + 1] = my->power[1][k];
    }
    return my->grid;
}

static void search_dwell(const step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    pnr_dwell *sums = s->dwell->sums;
    const pnr_cpu_walsh *walsh = &s->cpu->walsh;
    const pnr_search_places places = {walsh->place, walsh->lag_at,
                                      is_placed(s->cpu) ? pnr_cpu_walsh_values(walsh) : 0};

    sums->floor = sums->energy * s->cpu->energy_of_code / (double)plan->n_samples;
    /* Powers of method walsh are searched in place: to put every lag into order takes as long as
     * the columns do. */
    pnr_search_dwell(plan, s->cpu->energy_of_code,
                     is_placed(s->cpu) ? s->my->walsh_power : grid_of(s), sums->n_periods, NULL,
                     is_placed(s->cpu) ? &places : NULL, sums, s->dwell->candidates);
}

void pnr_cpu_process(const pnr_cpu *cpu, const pnr_cpu_memory *memory, const pnr_cpu_dwell *dwell,
                     size_t worker)
{
    const pnr_plan *plan = cpu->plan;
    const bool is_sum = plan->n_looks > 1;
    pnr_dwell *sums = dwell->sums;
    step s = {.cpu = cpu, .my = memory, .dwell = dwell, .worker = worker};

    lap(&s, PNR_STAGE_COUNT);
    memset(sums, 0, sizeof *sums);
    for (size_t p = 0; p < pnr_plan_windows(plan); p++) {
        const bool into_sum = !is_sum && sums->n_periods > 0;

        s.window = into_sum ? memory->window : memory->in;

        const bool is_used = read_window(&s, p);

        if (is_used && into_sum)
            do_all(&s, add_block, blocks_of(plan));
        lap(&s, PNR_STAGE_CONVERT);
        if (is_used && is_sum)
            correlate(&s);
    }
    if (!is_sum && sums->n_periods > 0)
        correlate(&s);

    search_dwell(&s);
    for (size_t i = 0; i < sums->n_candidates; i++)
        gather(&s, &dwell->candidates[i]);
    if (dwell->profile != NULL)
        return_profile(&s);
    lap(&s, PNR_STAGE_PEAK);
}
