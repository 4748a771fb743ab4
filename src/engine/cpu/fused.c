/* SPDX-License-Identifier: MIT */
/* The way `fused` of cpu.h. The engine uses method walsh, a transform in three passes, or one whole
 * transform. */
#include "engine/cpu/fused.h"

#include "engine/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef pnr_cpu_value value;

/* LARGE: from this length on, the cache of one core does not hold a dwell. TEAM_WALSH: from this
 * length on, several threads are faster than one. */
enum { LARGE = 1 << 18, TEAM_WALSH = 1 << 15 };

static value *profile_at(const pnr_cpu_step *s, size_t look, size_t h)
{
    return s->my->profile + (look * s->cpu->plan->oversample + h) * s->cpu->profile_pitch;
}

/* Returns the powers at the integer lags (h = 0) or at the half lags (h = 1). */
static float *powers_at(const pnr_cpu_step *s, size_t h)
{
    return s->my->grid != NULL ? s->my->grid + h * s->cpu->plan->n_lags : s->power;
}

static size_t lit_samples(const pnr_cpu *cpu)
{
    const bool is_extended = !cpu->plan->linear && cpu->axes.n_transform != cpu->window;

    return is_extended ? 2 * cpu->window - 1 : cpu->window;
}

/* --- one whole transform --- */

static bool suits_always(const pnr_plan *plan, size_t n_transform)
{
    (void)plan;
    (void)n_transform;
    return true;
}

static void shape_whole(pnr_cpu *cpu)
{
    const size_t length = cpu->axes.n_transform;

    pnr_cpu_transform_shape(length, false, &cpu->transform);
    cpu->in_values = length;
    cpu->profile_pitch = (length + 7) / 8 * 8; /* FFTW needs the same alignment in all rows */
    cpu->n_spectra = 1;
}

/* Correlates y. An extended transform reads y[n mod N] for n < 2 N - 1, then zeros. */
static void correlate_whole(pnr_cpu_step *s)
{
    const pnr_cpu *cpu = s->cpu;
    const size_t length = cpu->axes.n_transform, lit = lit_samples(cpu);
    value *y = s->my->y;
    pnr_cpu_transform_scratch scratch = {.in = y};

    memcpy(y + cpu->window, y, (lit - cpu->window) * sizeof *y);
    memset(y + lit, 0, (length - lit) * sizeof *y);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_CONVERT, &s->since);
    pnr_cpu_transform_forward(&cpu->transform, &scratch, s->my->fused[0]);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_FORWARD, &s->since);
    for (size_t h = 0; h < cpu->plan->oversample; h++) {
        scratch.out = profile_at(s, s->n_used, h);
        pnr_cpu_transform_correlate(&cpu->transform, &scratch, (const value *)s->my->fused[0], 0,
                                    (const value *)cpu->codes + h * cpu->transform.spectrum_pitch,
                                    cpu->plan->n_lags, powers_at(s, h), s->n_used > 0,
                                    s->dwell->stage_ns);
    }
    /* adds no time, because the called functions have added their times */
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_COUNT, &s->since);
}

static void whole_value(const pnr_cpu *cpu, const value *profile, size_t lag, value c)
{
    (void)cpu;
    memcpy(c, profile[lag], sizeof(value));
}

/* --- three passes --- */

static bool suits_split(const pnr_plan *plan, size_t n_transform)
{
    size_t n1, n2;

    (void)plan;
    return pnr_cpu_split_factors(n_transform, &n1, &n2);
}

/* With one profile, all samples are read before the profile is written. So y and the profile use
 * the same memory, which stays in the cache. */
static void shape_split(pnr_cpu *cpu)
{
    const pnr_plan *plan = cpu->plan;

    pnr_cpu_transform_shape(cpu->axes.n_transform, true, &cpu->transform);
    cpu->in_values = plan->n_looks * plan->oversample == 1 ? 0 : cpu->window;
    cpu->profile_pitch = pnr_cpu_split_profile_values(&cpu->transform.split);
    cpu->n_spectra = plan->oversample;
    cpu->is_shared = true;
}

static void forward_block(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;

    pnr_cpu_split_forward(&cpu->transform.split, block, (const value *)s->my->y, cpu->window,
                          lit_samples(cpu), s->my->fused[0], cpu->scratch[worker].transform.tile);
}

static void row_block(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    value *const codes[2] = {cpu->codes, cpu->codes + cpu->transform.spectrum_pitch};

    pnr_cpu_split_rows(&cpu->transform.split, block, cpu->plan->oversample, s->my->fused, codes,
                       cpu->scratch[worker].transform.tile, s->dwell->stage_ns);
}

static void inverse_block(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;

    pnr_cpu_split_inverse(&cpu->transform.split, block, (const value *)s->my->fused[s->h],
                          profile_at(s, s->n_used, s->h), cpu->plan->n_lags, s->n_used > 0,
                          powers_at(s, s->h), cpu->scratch[worker].transform.tile,
                          s->dwell->stage_ns);
}

static void correlate_split(pnr_cpu_step *s)
{
    const pnr_cpu_split *split = &s->cpu->transform.split;

    pnr_cpu_do(s, forward_block, split->n_blocks);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_FORWARD, &s->since);
    pnr_cpu_do(s, row_block, split->n_row_blocks);
    for (s->h = 0; s->h < s->cpu->plan->oversample; s->h++)
        pnr_cpu_do(s, inverse_block, split->n_blocks);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_COUNT,
                &s->since); /* adds no time: the blocks have added their times */
}

static void split_value(const pnr_cpu *cpu, const value *profile, size_t lag, value c)
{
    memcpy(c, profile[pnr_cpu_split_place(&cpu->transform.split, lag)], sizeof(value));
}

/* --- walsh --- */

static bool suits_walsh(const pnr_plan *plan, size_t n_transform)
{
    (void)n_transform;
    return strcmp(plan->method, "library") != 0 && pnr_cpu_walsh_refusal(plan) == NULL;
}

/* At one sample per chip, c and |c|^2 stay in the order in which the Walsh-Hadamard transform
 * returns them: to sort them by lag would take as long as to transform the columns. The search
 * reads |c|^2 in the order of lags only for CFAR, because training cells are neighbours in lag. A
 * profile in the result also has the order of lags. */
static void shape_walsh(pnr_cpu *cpu)
{
    const pnr_plan *plan = cpu->plan;

    pnr_cpu_walsh_shape(plan, &cpu->walsh);
    cpu->axes.n_transform = (size_t)1 << plan->m_degree;
    cpu->in_values = plan->n_samples;
    cpu->profile_pitch = (plan->n_samples + 7) / 8 * 8;
    cpu->is_shared = plan->n_samples >= TEAM_WALSH;
    if (plan->m_samples > 1)
        return;
    cpu->profile_pitch = cpu->n_places = pnr_cpu_walsh_values(&cpu->walsh);
    cpu->is_ordered = plan->cfar.kind != PNR_CFAR_OFF;
}

/* Method walsh reads a window that is contiguous in the ring directly from the ring, because a copy
 * would take longer than the transform. */
static void choose_walsh_input(pnr_cpu_step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t window = s->dwell->number * pnr_plan_windows(plan) + s->number;
    size_t count = plan->n_samples;
    const char *data = pnr_plan_locate(plan, s->dwell->windows, window * plan->n_samples, &count);

    s->input = (pnr_cpu_walsh_input){s->my->y, sizeof(value), PNR_FORMAT_CF32, false};
    if (pnr_cpu_walsh_reads(plan) && count == plan->n_samples && s->dwell->n_removals == 0) {
        data += plan->first_channel * pnr_format_get(plan->format)->bytes;
        s->input =
            (pnr_cpu_walsh_input){data, pnr_plan_sample_bytes(plan), plan->format, plan->conjugate};
        s->to = NULL;
    }
}

/* Returns X of the first part. If there is only one part, its X is in the profile. */
static value *first_part(const pnr_cpu_step *s)
{
    return s->cpu->walsh.n_parts > 1 ? s->my->parts : profile_at(s, s->n_used, 0);
}

/* Computes one row of one part. Part r has the samples r, r + n_parts, r + 2 n_parts, ... */
static void walsh_row(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu_walsh *walsh = &s->cpu->walsh;
    const size_t part = task / walsh->rows;
    pnr_cpu_walsh_input input = s->input;

    (void)worker;
    input.data = (const char *)input.data + part * input.stride;
    input.stride *= walsh->n_parts;
    pnr_cpu_walsh_row(walsh, task % walsh->rows, &input,
                      first_part(s) + part * pnr_cpu_walsh_values(walsh));
}

static void walsh_columns(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;

    (void)worker;
    pnr_cpu_walsh_columns(&s->cpu->walsh, task, (const value *)first_part(s), s->n_used > 0,
                          s->my->grid);
}

static void part_columns(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu_walsh *walsh = &s->cpu->walsh;
    const size_t part = task / walsh->n_column_tasks;

    (void)worker;
    pnr_cpu_walsh_part(walsh, task % walsh->n_column_tasks,
                       s->my->parts + part * pnr_cpu_walsh_values(walsh));
}

static void part_sums(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;

    (void)worker;
    pnr_cpu_walsh_sum(&s->cpu->walsh, task, (const value *)s->my->parts, s->n_used > 0,
                      profile_at(s, s->n_used, 0), s->power);
}

static void correlate_walsh(pnr_cpu_step *s)
{
    const pnr_cpu_walsh *walsh = &s->cpu->walsh;

    pnr_cpu_do(s, walsh_row, walsh->n_parts * walsh->rows);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_FORWARD, &s->since);
    if (walsh->n_parts == 1) {
        pnr_cpu_do(s, walsh_columns, walsh->n_column_tasks);
    } else {
        if (walsh->rows > 1)
            pnr_cpu_do(s, part_columns, walsh->n_parts * walsh->n_column_tasks);
        pnr_cpu_do(s, part_sums, pnr_cpu_walsh_n_sums(walsh));
    }
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_INVERSE, &s->since);
}

static void walsh_value(const pnr_cpu *cpu, const value *profile, size_t lag, value c)
{
    if (cpu->walsh.n_parts == 1)
        pnr_cpu_walsh_value(&cpu->walsh, profile, lag, c);
    else
        whole_value(cpu, profile, lag, c);
}

/* --- the table of ways --- */

/* The ways to compute the line, the fastest first. Method walsh only adds. At every length it is
 * faster than a Fourier transform. */
static const pnr_cpu_fused lines[] = {
    {"walsh", suits_walsh, shape_walsh, choose_walsh_input, correlate_walsh, walsh_value},
    {"library", suits_split, shape_split, NULL, correlate_split, split_value},
    {"library", suits_always, shape_whole, NULL, correlate_whole, whole_value},
};

const pnr_cpu_fused *pnr_cpu_fused_choose(const pnr_plan *plan, size_t n_transform)
{
    const pnr_cpu_fused *line = lines;

    if (!pnr_plan_is_one_line(plan))
        return NULL;
    while (!line->suits(plan, n_transform))
        line++;
    return line;
}

/* With more than two threads, a second large dwell begins before the first ends. The second dwell
 * keeps threads busy during the steps that only one thread computes. */
void pnr_cpu_fused_shape(pnr_cpu *cpu, size_t n_threads)
{
    cpu->fused->shape(cpu);
    cpu->finishes_first =
        cpu->is_shared && (cpu->axes.n_transform >= LARGE || cpu->plan->n_samples >= LARGE);
    cpu->n_leaders = cpu->finishes_first && n_threads > 2 ? 2 : n_threads;
}

void pnr_cpu_fused_describe(const pnr_cpu *cpu, pnr_engine_choice *choice)
{
    const size_t n = cpu->plan->n_samples, length = cpu->axes.n_transform;
    const pnr_cpu_transform *transform = &cpu->transform;
    char how[48] = "FFTW";

    snprintf(choice->method, sizeof choice->method, "%s", cpu->fused->method);
    if (transform->is_split)
        snprintf(how, sizeof how, "FFTW, %zu x %zu in three passes,", transform->split.n1,
                 transform->split.n2);
    if (cpu->walsh.n_parts > 1)
        snprintf(choice->why, sizeof choice->why,
                 "an m-sequence at %zu samples a chip: %zu polyphase parts, each a Walsh-Hadamard "
                 "transform of %zu, N = %zu exactly",
                 cpu->walsh.n_parts, cpu->walsh.n_parts, length, n);
    else if (cpu->walsh.n_parts == 1)
        snprintf(choice->why, sizeof choice->why,
                 "an m-sequence at one sample a chip: Walsh-Hadamard transform of %zu, N = %zu "
                 "exactly",
                 length, n);
    else if (cpu->plan->linear)
        snprintf(choice->why, sizeof choice->why, "%s at %zu: N + %zu lags - 1 samples", how,
                 length, cpu->plan->n_lags);
    else if (length == n)
        snprintf(choice->why, sizeof choice->why, "%s at N = %zu itself", how, n);
    else
        snprintf(choice->why, sizeof choice->why,
                 "%s at %zu: N = %zu has a prime factor above 7, so a period is extended", how,
                 length, n);
}

/* --- after the last look --- */

static void order_powers(const pnr_cpu_step *s)
{
    const pnr_plan *plan = s->cpu->plan;

    for (size_t k = 0; s->cpu->n_places > 0 && k < plan->n_lags; k++)
        s->power[k] = s->my->grid[s->cpu->walsh.place[k]];
    for (size_t h = 0; plan->oversample > 1 && h < plan->oversample; h++)
        for (size_t k = 0; k < plan->n_lags; k++)
            s->power[k * plan->oversample + h] = s->my->grid[h * plan->n_lags + k];
}

void pnr_cpu_fused_finish(const pnr_cpu_step *s)
{
    const pnr_plan *plan = s->cpu->plan;
    value *out = (value *)s->dwell->profile;

    if (s->n_used == 0)
        return;
    if (s->my->grid != NULL && s->power != NULL)
        order_powers(s);
    for (size_t h = 0; plan->want_profile == PNR_WANT_COMPLEX && h < plan->oversample; h++)
        for (size_t k = 0; k < plan->n_lags; k++)
            s->cpu->fused->value(s->cpu, (const value *)profile_at(s, s->n_used - 1, h), k,
                                 out[k * plan->oversample + h]);
}

/* Sets the values of a candidate: c of one look, or the sum over looks that plan.h defines. */
static void gather_values(const pnr_cpu_step *s, pnr_candidate *candidate)
{
    const pnr_cpu *cpu = s->cpu;
    const bool is_sum = cpu->plan->n_looks > 1;
    const size_t centre = pnr_search_lag(cpu->plan, candidate->cell, 0);

    for (int j = -PNR_CPU_REACH; j <= PNR_CPU_REACH; j++) {
        const size_t lag = pnr_search_lag(cpu->plan, candidate->cell, j);
        double re = 0, im = 0, power = 0;

        for (size_t look = 0; look < s->n_used; look++) {
            const value *profile = (const value *)profile_at(s, look, 0);
            value at = {1, 0}, c;

            cpu->fused->value(cpu, profile, lag, c);
            if (is_sum)
                cpu->fused->value(cpu, profile, centre, at);

            const double cr = (double)at[0], ci = (double)at[1];

            re += (double)c[0] * cr + (double)c[1] * ci;
            im += (double)c[1] * cr - (double)c[0] * ci;
            power += cr * cr + ci * ci;
        }

        const double scale = is_sum && power > 0 ? 1 / sqrt(power) : 1;

        candidate->value[j + PNR_CPU_REACH][0] = (float)(re * scale);
        candidate->value[j + PNR_CPU_REACH][1] = (float)(im * scale);
    }
}

void pnr_cpu_fused_gather(const pnr_cpu_step *s)
{
    for (size_t i = 0; i < s->dwell->sums->n_candidates; i++)
        gather_values(s, &s->dwell->candidates[i]);
}
