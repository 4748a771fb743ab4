/* SPDX-License-Identifier: MIT */
/* Computes the correlations and powers of each line, which is one row of one code, and the values
 * around candidates (`kept` in cpu.h). */
#include "engine/cpu/steps.h"

#include "base/multiversion.h"
#include "engine/plan.h"

#include <math.h>
#include <string.h>

typedef pnr_cpu_value value;

enum { REACH = PNR_CPU_REACH };

/* --- a line of one look --- */

/* Filters c: replaces c in the gate by c' of plan.h, and all other c by 0. */
static void filter_lags(const pnr_cpu *cpu, const pnr_cpu_scratch *scratch, value *c)
{
    const pnr_plan *plan = cpu->plan;
    const size_t n = plan->gate_count;
    float(*gate_in)[4][2] = (float(*)[4][2])scratch->filter;
    value *gate_out = scratch->filter + 4 * n;

    for (size_t j = 0; j < n; j++)
        memcpy(gate_in[j][0], c[(plan->gate_first + j) % plan->n_lags], sizeof(value));
    pnr_cpu_sums(n, n, (const value *)cpu->filter, cpu->filter_pitch, (const float(*)[4][2])gate_in,
                 1, gate_out, cpu->filter_pitch);
    memset(c, 0, plan->n_lags * sizeof *c);
    for (size_t k = 0; k < n; k++)
        memcpy(c[(plan->gate_first + k) % plan->n_lags], gate_out[k], sizeof(value));
}

/* Multiplies c[k] by exp(-2 pi i m k / N), with m = row->phase, for the n lags k = first,
 * first + 1, ... The correlation with a rotated code lacks this factor. `c` points to c[first]. */
static void restore_phase(const pnr_cpu *cpu, const pnr_cpu_row *row, size_t first, size_t n,
                          value *c)
{
    const pnr_rational phase = {(int64_t)row->phase, (int64_t)cpu->plan->n_samples};

    if (row->phase != 0)
        pnr_cpu_rotate(&cpu->rotation, pnr_rational_phase(phase, first),
                       pnr_rational_phase(phase, 1), n, c);
}

/* Correlates a row of one look with a code, at the integer lags (h = 0) or at the half lags above
 * these (h = 1). c stays in the scratch memory of the worker. Writes |c|^2 to `power`, or adds it
 * there. `power` NULL: computes no |c|^2. */
static void correlate_line(const pnr_cpu_step *s, size_t look, size_t code, size_t number, size_t h,
                           float *power, bool add, size_t worker)
{
    const pnr_cpu *cpu = s->cpu;
    const pnr_cpu_row *row = &cpu->axes.rows[number];
    const size_t variant = (code * cpu->plan->oversample + h) * cpu->axes.n_variants + row->variant;

    pnr_cpu_transform_correlate(&cpu->transform, &cpu->scratch[worker].transform,
                                (const value *)pnr_cpu_spectrum_at(cpu, s->my, look, row->spectrum),
                                row->shift,
                                (const value *)cpu->codes + variant * cpu->transform.spectrum_pitch,
                                cpu->plan->n_lags, power, add, s->dwell->stage_ns);
}

/* Returns c from the scratch memory, in the order of lags. With a filter, c is filtered and its
 * phase is restored. Without a filter, a caller that needs the phase of c must call
 * restore_phase. */
static value *ordered_lags(const pnr_cpu *cpu, size_t number, size_t worker)
{
    const pnr_cpu_scratch *scratch = &cpu->scratch[worker];
    value *c = pnr_cpu_transform_lags(&cpu->transform, &scratch->transform);

    if (cpu->filter != NULL) {
        restore_phase(cpu, &cpu->axes.rows[number], 0, cpu->plan->n_lags, c);
        filter_lags(cpu, scratch, c);
    }
    return c;
}

/* --- all lines --- */

PNR_MULTIVERSION static void spread_power(size_t n, const float (*c)[2], size_t step, bool add,
                                          float *power)
{
    for (size_t i = 0; i < n; i++) {
        const float square = c[i][0] * c[i][0] + c[i][1] * c[i][1];

        power[i * step] = add ? power[i * step] + square : square;
    }
}

/* Writes c of the last used look to the result. */
static void return_values(const pnr_cpu_step *s, size_t code, size_t row, size_t h, value *c)
{
    const pnr_plan *plan = s->cpu->plan;
    const size_t first = (code * s->cpu->axes.n_rows + row) * plan->n_lags;
    value *out = (value *)s->dwell->profile + first * plan->oversample + h;

    if (s->cpu->filter == NULL)
        restore_phase(s->cpu, &s->cpu->axes.rows[row], 0, plan->n_lags, c);
    for (size_t k = 0; k < plan->n_lags; k++)
        memcpy(out[k * plan->oversample], c[k], sizeof *c);
}

/* Scans one line for the search. CFAR along the rows needs the powers of all lines first. */
static void scan_line(void *context, size_t number, size_t worker)
{
    const pnr_cpu_step *s = context;

    (void)worker;
    pnr_search_scan_line(s->cpu->plan, s->power, s->n_used, number, &s->my->lines[number]);
}

static bool is_along_rows(const pnr_plan *plan)
{
    return plan->cfar.kind != PNR_CFAR_OFF && plan->cfar.axis == PNR_CFAR_ALONG_ROWS;
}

static void compute_line(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const pnr_plan *plan = cpu->plan;
    const size_t row = cpu->axes.order[task / plan->n_codes], code = task % plan->n_codes;
    const size_t cells = plan->n_lags * plan->oversample, spectrum = cpu->axes.rows[row].spectrum;
    const bool is_plain = plan->oversample == 1 && cpu->filter == NULL;
    float *power = s->power + (code * cpu->axes.n_rows + row) * cells;
    uint64_t since = 0;

    for (size_t i = 0; i < s->n_used; i++) {
        const size_t look = s->my->looks[i];
        const bool is_returned = plan->want_profile == PNR_WANT_COMPLEX && i + 1 == s->n_used;

        pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_COUNT, &since);
        if (cpu->is_transformed_late)
            pnr_cpu_forward(cpu, spectrum, pnr_cpu_spectrum_at(cpu, s->my, look, spectrum), worker);
        pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_FORWARD, &since);
        for (size_t h = 0; h < plan->oversample; h++) {
            value *c;

            correlate_line(s, look, code, row, h, is_plain ? power : NULL, i > 0, worker);
            if (is_plain && !is_returned)
                continue;
            pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_COUNT, &since);
            c = ordered_lags(cpu, row, worker);
            if (!is_plain)
                spread_power(plan->n_lags, (const value *)c, plan->oversample, i > 0, power + h);
            if (is_returned)
                return_values(s, code, row, h, c);
            pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_PEAK, &since);
        }
    }
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_COUNT, &since);
    if (!is_along_rows(plan)) /* scans now, because the line is still in the cache */
        scan_line(context, code * cpu->axes.n_rows + row, worker);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_PEAK, &since);
}

void pnr_cpu_rows(pnr_cpu_step *s)
{
    const size_t n_lines = s->cpu->axes.n_rows * s->cpu->plan->n_codes;

    pnr_cpu_do(s, compute_line, n_lines);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_COUNT,
                &s->since); /* adds no time: compute_line has added it */
    if (is_along_rows(s->cpu->plan))
        pnr_cpu_do(s, scan_line, n_lines);
}

/* --- around the candidates --- */

static bool is_near(const pnr_candidate *candidate, size_t code, size_t row)
{
    return candidate->code == code && row + REACH >= candidate->row &&
           row <= (size_t)candidate->row + REACH;
}

static void value_at_lag(const pnr_cpu *cpu, size_t row, const value *c, size_t lag, value out)
{
    memcpy(out, c[lag], sizeof(value));
    if (cpu->filter == NULL)
        restore_phase(cpu, &cpu->axes.rows[row], lag, 1, (value *)out);
}

/* Stores c at the centres of all candidates of one line, look by look. Only the task of the first
 * candidate of the line does this. */
static void gather_centres(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const size_t n_candidates = s->dwell->sums->n_candidates;
    const pnr_candidate *candidates = s->dwell->candidates, *me = candidates + task;

    if (task > 0 && me[-1].code == me->code && me[-1].row == me->row)
        return;
    for (size_t i = 0; i < s->n_used; i++) {
        const value *c;

        correlate_line(s, s->my->looks[i], me->code, me->row, 0, NULL, false, worker);
        c = (const value *)ordered_lags(cpu, me->row, worker);
        for (size_t t = task;
             t < n_candidates && candidates[t].code == me->code && candidates[t].row == me->row;
             t++)
            value_at_lag(cpu, me->row, c, pnr_search_lag(cpu->plan, candidates[t].cell, 0),
                         s->my->centres[t * cpu->plan->n_looks + i]);
    }
}

/* Sets the values of one line around all candidates near this line. With one look a value is c.
 * With several looks it is the sum of c[j] conj(c[0]) over the looks, where c[0] is at the centre.
 * Later scale_values divides this sum by the square root of the sum of |c[0]|^2. */
static void gather_row(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const pnr_plan *plan = cpu->plan;
    const size_t code = s->my->around[task].code, row = s->my->around[task].row;

    for (size_t i = 0; i < s->n_used; i++) {
        const value *c;

        correlate_line(s, s->my->looks[i], code, row, 0, NULL, false, worker);
        c = (const value *)ordered_lags(cpu, row, worker);
        for (size_t t = 0; t < s->dwell->sums->n_candidates; t++) {
            pnr_candidate *candidate = &s->dwell->candidates[t];
            const float *centre = s->my->centres[t * plan->n_looks + i];
            value *out = candidate->value;

            if (!is_near(candidate, code, row))
                continue;
            if (s->dwell->patches != NULL)
                out = (value *)s->dwell->patches +
                      (t * PNR_NEIGHBOURS + row + REACH - candidate->row) * PNR_NEIGHBOURS;
            for (int j = -REACH; j <= REACH; j++) {
                float *to = out[j + REACH];
                value at;

                value_at_lag(cpu, row, c, pnr_search_lag(plan, candidate->cell, j), at);
                if (plan->n_looks == 1) {
                    memcpy(to, at, sizeof at);
                } else {
                    to[0] += at[0] * centre[0] + at[1] * centre[1];
                    to[1] += at[1] * centre[0] - at[0] * centre[1];
                }
            }
        }
    }
}

/* Lists each line around the candidates once. The candidates are in the order of code and row. */
static size_t list_lines(const pnr_cpu_step *s)
{
    const size_t reach = s->dwell->patches != NULL ? REACH : 0, n_rows = s->cpu->axes.n_rows;
    const pnr_candidate *candidates = s->dwell->candidates;
    size_t n = 0, next = 0; /* next: the first row that is not listed yet */

    for (size_t t = 0; t < s->dwell->sums->n_candidates; t++) {
        const pnr_candidate *c = &candidates[t];
        const size_t first = c->row > reach ? c->row - reach : 0;

        if (t == 0 || candidates[t - 1].code != c->code)
            next = 0;
        for (next = next > first ? next : first; next <= c->row + reach && next < n_rows; next++)
            s->my->around[n++] = (pnr_cpu_around){c->code, (uint32_t)next};
    }
    return n;
}

static void scale_values(const pnr_cpu_step *s, size_t t, value *values, size_t n)
{
    double power = 0;

    for (size_t i = 0; i < s->n_used; i++) {
        const float *c = s->my->centres[t * s->cpu->plan->n_looks + i];

        power += (double)c[0] * (double)c[0] + (double)c[1] * (double)c[1];
    }
    for (size_t i = 0; power > 0 && i < n; i++) {
        values[i][0] = (float)((double)values[i][0] / sqrt(power));
        values[i][1] = (float)((double)values[i][1] / sqrt(power));
    }
}

void pnr_cpu_gather(pnr_cpu_step *s)
{
    const size_t n_candidates = s->dwell->sums->n_candidates;
    const size_t n_patch = (size_t)PNR_NEIGHBOURS * PNR_NEIGHBOURS;
    value *patches = (value *)s->dwell->patches;

    for (size_t t = 0; t < n_candidates; t++)
        memset(s->dwell->candidates[t].value, 0, sizeof s->dwell->candidates[t].value);
    if (patches != NULL)
        memset(patches, 0, n_candidates * n_patch * sizeof *patches);
    if (s->cpu->plan->n_looks > 1)
        pnr_cpu_do(s, gather_centres, n_candidates);
    pnr_cpu_do(s, gather_row, list_lines(s));
    for (size_t t = 0; t < n_candidates; t++) {
        pnr_candidate *candidate = &s->dwell->candidates[t];

        if (s->cpu->plan->n_looks > 1 && patches != NULL)
            scale_values(s, t, patches + t * n_patch, n_patch);
        else if (s->cpu->plan->n_looks > 1)
            scale_values(s, t, candidate->value, PNR_NEIGHBOURS);
        if (patches != NULL)
            memcpy(candidate->value, patches + t * n_patch + (size_t)REACH * PNR_NEIGHBOURS,
                   sizeof candidate->value);
    }
}
