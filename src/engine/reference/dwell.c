/* SPDX-License-Identifier: MIT */
/* A dwell of the reference engine: codes, hypotheses, Doppler rows and looks as plan.h says. */
#include "engine/reference/state.h"

#include "base/transform.h"
#include "engine/plan.h"
#include "engine/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_stretched(const pnr_plan *plan)
{
    for (size_t h = 0; h < plan->n_hypotheses; h++)
        if (pnr_plan_hypothesis(plan, h).stretch != 0)
            return true;
    return false;
}

static int create_stretch(pnr_reference_work *work)
{
    work->kernel = calloc(PNR_STRETCH_STEPS + 1, sizeof *work->kernel);
    if (work->kernel == NULL || pnr_planar_create(&work->stretched, work->n_look) != PNR_OK)
        return PNR_ENOMEMORY;
    pnr_stretch_table(work->kernel);
    return PNR_OK;
}

int pnr_reference_work_create(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;
    const size_t cells = pnr_plan_cells(plan), n = plan->n_samples;

    work->n_window = pnr_plan_window_samples(plan);
    work->n_look = (plan->n_periods - 1) * n + work->n_window;
    work->flags = calloc(work->n_look, 1);
    work->is_used = calloc(plan->n_periods, sizeof *work->is_used);
    work->power = calloc(cells, sizeof *work->power);
    if (work->flags == NULL || work->is_used == NULL || work->power == NULL ||
        pnr_planar_create(&work->look, work->n_look) != PNR_OK ||
        pnr_planar_create(&work->own, work->n_look) != PNR_OK ||
        pnr_planar_create(&work->mean, work->n_window) != PNR_OK ||
        pnr_planar_create(&work->sum, plan->linear ? work->n_window : 2 * n) != PNR_OK ||
        pnr_planar_create(&work->filtered, plan->gate_count) != PNR_OK ||
        pnr_planar_create(&work->value, plan->n_looks * cells) != PNR_OK)
        return PNR_ENOMEMORY;
    return is_stretched(plan) ? create_stretch(work) : PNR_OK;
}

void pnr_reference_work_destroy(pnr_engine *engine)
{
    pnr_reference_work *work = &engine->work;

    pnr_planar_destroy(&work->look);
    pnr_planar_destroy(&work->own);
    pnr_planar_destroy(&work->stretched);
    pnr_planar_destroy(&work->mean);
    pnr_planar_destroy(&work->sum);
    pnr_planar_destroy(&work->filtered);
    pnr_planar_destroy(&work->value);
    free(work->flags);
    free(work->kernel);
    free(work->is_used);
    free(work->power);
}

/* c of the used look `look`, at the integer lags (h = 0) or the half lags above them (h = 1). */
static pnr_planar line_of(const pnr_engine *engine, size_t look, size_t code, size_t row, size_t h)
{
    const pnr_plan *plan = engine->plan;
    const size_t line = (look * plan->n_codes + code) * pnr_plan_rows(plan) + row;

    return pnr_planar_at(engine->work.value, (line * plan->oversample + h) * plan->n_lags);
}

static bool is_valid(const pnr_reference_work *work, size_t sample)
{
    return (work->flags[sample] & (PNR_SAMPLE_NONFINITE | PNR_REFERENCE_LOST)) == 0;
}

/* Reads a look and counts its windows; returns how many are used. */
static size_t read_look(pnr_engine *engine, const pnr_reference_task *task, size_t look)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;
    const size_t n = plan->n_samples;
    size_t used = 0;

    pnr_reference_read(engine, task, look * plan->n_periods * n, work->n_look, work->look,
                       work->flags);
    for (size_t p = 0; p < plan->n_periods; p++) {
        const size_t w = look * plan->n_periods + p;
        const size_t lost = task->windows->lost[task->dwell * pnr_plan_windows(plan) + w];
        uint32_t *nonfinite = &task->nonfinite[w];

        *nonfinite = 0;
        for (size_t i = p * n; i < (p + 1) * n; i++) {
            *nonfinite += (work->flags[i] & PNR_SAMPLE_NONFINITE) != 0;
            task->sums->n_clipped += (work->flags[i] & PNR_SAMPLE_CLIPPED) != 0;
        }
        task->sums->n_nonfinite += *nonfinite;
        work->is_used[p] = lost + *nonfinite <= n / 2;
        used += work->is_used[p];
    }
    return used;
}

/* Finds the mean at each place of the used windows, without lost and non-finite samples. */
static void find_mean(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;

    for (size_t i = 0; i < work->n_window; i++) {
        double re = 0, im = 0;
        size_t count = 0;

        for (size_t p = 0; p < plan->n_periods; p++) {
            const size_t sample = p * plan->n_samples + i;

            if (!work->is_used[p] || !is_valid(work, sample))
                continue;
            re += work->look.re[sample];
            im += work->look.im[sample];
            count++;
        }
        work->mean.re[i] = count > 0 ? re / (double)count : 0;
        work->mean.im[i] = count > 0 ? im / (double)count : 0;
    }
}

/* x_p[i], without the mean. */
static void find_sample(const pnr_engine *engine, size_t p, size_t i, double x[2])
{
    const pnr_reference_work *work = &engine->work;
    const size_t sample = p * engine->plan->n_samples + i;
    const bool is_mean_free = engine->plan->remove_mean;

    x[0] = x[1] = 0;
    if (is_mean_free && !is_valid(work, sample))
        return;
    x[0] = work->look.re[sample] - (is_mean_free ? work->mean.re[i] : 0);
    x[1] = work->look.im[sample] - (is_mean_free ? work->mean.im[i] : 0);
}

/* Removes the mean of the look. A sample belongs to the window whose first N samples it is among;
 * the samples after all of these belong to the last window. */
static void fill_own_samples(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;

    for (size_t j = 0; j < work->n_look; j++) {
        const size_t own = j / plan->n_samples;
        const size_t p = own < plan->n_periods ? own : plan->n_periods - 1;
        double x[2];

        find_sample(engine, p, j - p * plan->n_samples, x);
        work->own.re[j] = x[0];
        work->own.im[j] = x[1];
    }
}

/* Adds the energy of a look's windows to the dwell, and the mean of P if they were noise to the
 * floor. */
static void add_energy(const pnr_engine *engine, size_t used, pnr_dwell *dwell)
{
    const pnr_plan *plan = engine->plan;
    const pnr_reference_work *work = &engine->work;
    const size_t n = plan->n_samples;
    /* The mean took 1/used of the noise. */
    const double unbiased = plan->remove_mean ? (double)used / (double)(used - 1) : 1;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const double w = plan->taper != NULL ? plan->taper[p] : 1;
        double energy = 0;

        if (!work->is_used[p])
            continue;
        for (size_t i = p * n; i < (p + 1) * n; i++)
            energy += work->own.re[i] * work->own.re[i] + work->own.im[i] * work->own.im[i];
        energy *= unbiased;
        dwell->energy += energy;
        dwell->floor += w * w * energy * engine->energy_of_code / (double)n;
    }
}

static void count_used_windows(const pnr_engine *engine, const pnr_reference_task *task,
                               size_t look)
{
    const pnr_plan *plan = engine->plan;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const size_t w = look * plan->n_periods + p;

        if (!engine->work.is_used[p])
            continue;
        task->sums->n_periods++;
        task->sums->n_valid += plan->n_samples - task->nonfinite[w] -
                               task->windows->lost[task->dwell * pnr_plan_windows(plan) + w];
    }
}

static void stretch_look(pnr_engine *engine, double by)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;

    for (size_t n = 0; n < work->n_look; n++) {
        const pnr_stretch_place at = pnr_stretch_at(by, plan->n_periods * plan->n_samples, n);
        double re = 0, im = 0;

        for (int i = 0; i < PNR_STRETCH_TAPS; i++) {
            const int64_t from = at.first + i;
            const double low = (double)work->kernel[at.row][i];
            const double high = (double)work->kernel[at.row + 1][i];
            const double weight = low + (double)at.part * (high - low);

            if (from < 0 || from >= (int64_t)work->n_look)
                continue;
            re += weight * work->own.re[from];
            im += weight * work->own.im[from];
        }
        work->stretched.re[n] = re;
        work->stretched.im[n] = im;
    }
}

/* exp(-2 pi i numerator / denominator), the numerator reduced as an integer. */
static void find_rotation(int64_t numerator, int64_t denominator, double value[2])
{
    const int64_t rest = numerator % denominator;

    pnr_transform_root((size_t)(rest < 0 ? rest + denominator : rest), (size_t)denominator, value);
    value[1] = -value[1];
}

/* sum[i] = exp(-2 pi i f i / N) sum_p w_p exp(-2 pi i F p) x_p[i], f = quarters / 4, F = f + s / K.
 * A circular sum is written twice, so that n + k needs no modulo. */
static void sum_windows(pnr_engine *engine, const pnr_hypothesis *hypothesis, int64_t s)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;
    const int64_t periods = (int64_t)plan->n_periods, n = (int64_t)plan->n_samples;

    memset(work->sum.re, 0, work->n_window * sizeof *work->sum.re);
    memset(work->sum.im, 0, work->n_window * sizeof *work->sum.im);
    for (int64_t p = 0; p < periods; p++) {
        const double taper = plan->taper != NULL ? plan->taper[p] : 1;
        double w[2];

        if (!work->is_used[p])
            continue;
        find_rotation((hypothesis->quarters * periods + 4 * s) * p, 4 * periods, w);
        for (size_t i = 0; i < work->n_window; i++) {
            const size_t sample = (size_t)(p * n) + i;
            double x[2];

            if (hypothesis->stretch == 0) {
                find_sample(engine, (size_t)p, i, x);
            } else {
                x[0] = work->stretched.re[sample];
                x[1] = work->stretched.im[sample];
            }
            work->sum.re[i] += taper * (w[0] * x[0] - w[1] * x[1]);
            work->sum.im[i] += taper * (w[0] * x[1] + w[1] * x[0]);
        }
    }
    for (size_t i = 0; hypothesis->quarters != 0 && i < work->n_window; i++) {
        const double re = work->sum.re[i], im = work->sum.im[i];
        double w[2];

        find_rotation(hypothesis->quarters * (int64_t)i, 4 * n, w);
        work->sum.re[i] = w[0] * re - w[1] * im;
        work->sum.im[i] = w[0] * im + w[1] * re;
    }
    if (!plan->linear) {
        memcpy(work->sum.re + n, work->sum.re, (size_t)n * sizeof *work->sum.re);
        memcpy(work->sum.im + n, work->sum.im, (size_t)n * sizeof *work->sum.im);
    }
}

/* Replaces c[gate_first + k] by sum_j filter[k][j] c[gate_first + j]; all others become 0. */
static void filter_gate(pnr_engine *engine, pnr_planar c)
{
    const pnr_plan *plan = engine->plan;
    pnr_planar out = engine->work.filtered;

    for (size_t k = 0; k < plan->gate_count; k++) {
        const double(*row)[2] = plan->filter + k * plan->gate_count;

        out.re[k] = out.im[k] = 0;
        for (size_t j = 0; j < plan->gate_count; j++) {
            const size_t lag = (plan->gate_first + j) % plan->n_lags;

            out.re[k] += row[j][0] * c.re[lag] - row[j][1] * c.im[lag];
            out.im[k] += row[j][0] * c.im[lag] + row[j][1] * c.re[lag];
        }
    }
    memset(c.re, 0, plan->n_lags * sizeof *c.re);
    memset(c.im, 0, plan->n_lags * sizeof *c.im);
    for (size_t k = 0; k < plan->gate_count; k++) {
        c.re[(plan->gate_first + k) % plan->n_lags] = out.re[k];
        c.im[(plan->gate_first + k) % plan->n_lags] = out.im[k];
    }
}

/* Correlates one look with every code in every row. */
static void correlate_look(pnr_engine *engine, size_t look)
{
    const pnr_plan *plan = engine->plan;
    size_t row = 0;

    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);

        if (hypothesis.stretch != 0)
            stretch_look(engine, hypothesis.stretch);
        for (size_t r = 0; r < hypothesis.n_rows; r++, row++) {
            sum_windows(engine, &hypothesis, (int64_t)hypothesis.first_bin + (int64_t)r);
            for (size_t i = 0; i < plan->n_codes * plan->oversample; i++) {
                const pnr_planar c =
                    line_of(engine, look, i / plan->oversample, row, i % plan->oversample);

                pnr_reference_correlate(engine->work.sum,
                                        pnr_planar_at(engine->code, i * plan->n_samples),
                                        plan->n_samples, plan->n_lags, c);
                if (plan->filter != NULL)
                    filter_gate(engine, c);
            }
        }
    }
}

static void add_powers(pnr_engine *engine, size_t looks)
{
    const pnr_plan *plan = engine->plan;
    const size_t rows = pnr_plan_rows(plan), cells = plan->n_lags * plan->oversample;

    for (size_t line = 0; line < plan->n_codes * rows; line++)
        for (size_t cell = 0; cell < cells; cell++) {
            const size_t lag = cell / plan->oversample;
            double power = 0;

            for (size_t look = 0; look < looks; look++) {
                const pnr_planar c =
                    line_of(engine, look, line / rows, line % rows, cell % plan->oversample);

                power += c.re[lag] * c.re[lag] + c.im[lag] * c.im[lag];
            }
            engine->work.power[line * cells + cell] = (float)power;
        }
}

/* The value of a row, j lags from a candidate's centre: c of one look, or the sum over several
 * looks of c conj(c0) / sqrt(P0), where c0 is at the centre. */
static void find_neighbour(const pnr_engine *engine, size_t looks, const pnr_candidate *candidate,
                           size_t row, int j, float out[2])
{
    const pnr_plan *plan = engine->plan;
    const size_t centre = candidate->cell / plan->oversample;
    const size_t lag = pnr_search_lag(plan, candidate->cell, j);
    const bool is_sum = plan->n_looks > 1;
    double re = 0, im = 0, power = 0;

    for (size_t look = 0; look < looks; look++) {
        const pnr_planar c = line_of(engine, look, candidate->code, row, 0);
        const pnr_planar c0 = line_of(engine, look, candidate->code, candidate->row, 0);
        const double cr = is_sum ? c0.re[centre] : 1, ci = is_sum ? c0.im[centre] : 0;

        re += c.re[lag] * cr + c.im[lag] * ci;
        im += c.im[lag] * cr - c.re[lag] * ci;
        power += cr * cr + ci * ci;
    }

    const double scale = is_sum && power > 0 ? 1 / sqrt(power) : 1;

    out[0] = (float)(re * scale);
    out[1] = (float)(im * scale);
}

static void gather_neighbours(const pnr_engine *engine, const pnr_reference_task *task,
                              size_t looks, size_t number)
{
    const int64_t rows = (int64_t)pnr_plan_rows(engine->plan);
    pnr_candidate *candidate = &task->candidates[number];

    for (int j = -8; j <= 8; j++)
        find_neighbour(engine, looks, candidate, candidate->row, j, candidate->value[j + 8]);
    if (task->patches == NULL)
        return;

    float *patch = task->patches + number * PNR_NEIGHBOURS * PNR_NEIGHBOURS * 2;

    for (int r = -8; r <= 8; r++)
        for (int j = -8; j <= 8; j++) {
            const int64_t row = (int64_t)candidate->row + r;
            float *out = patch + ((r + 8) * PNR_NEIGHBOURS + j + 8) * 2;

            out[0] = out[1] = 0;
            if (row >= 0 && row < rows)
                find_neighbour(engine, looks, candidate, (size_t)row, j, out);
        }
}

static void return_profile(const pnr_engine *engine, float *profile, size_t looks)
{
    const pnr_plan *plan = engine->plan;
    const size_t rows = pnr_plan_rows(plan), cells = plan->n_lags * plan->oversample;

    for (size_t line = 0; line < plan->n_codes * rows; line++)
        for (size_t cell = 0; cell < cells; cell++) {
            const size_t i = line * cells + cell, lag = cell / plan->oversample;

            if (plan->want_profile == PNR_WANT_POWER) {
                profile[i] = engine->work.power[i];
            } else {
                const pnr_planar c = line_of(engine, looks > 0 ? looks - 1 : 0, line / rows,
                                             line % rows, cell % plan->oversample);

                profile[2 * i] = looks > 0 ? (float)c.re[lag] : 0;
                profile[2 * i + 1] = looks > 0 ? (float)c.im[lag] : 0;
            }
        }
}

void pnr_reference_process(pnr_engine *engine, const pnr_reference_task *task)
{
    const pnr_plan *plan = engine->plan;
    pnr_dwell *dwell = task->sums;
    size_t looks = 0; /* used */

    memset(dwell, 0, sizeof *dwell);
    for (size_t look = 0; look < plan->n_looks; look++) {
        const size_t used = read_look(engine, task, look);

        if (used <= (plan->remove_mean ? 1 : 0))
            continue;
        if (plan->remove_mean)
            find_mean(engine);
        fill_own_samples(engine);
        count_used_windows(engine, task, look);
        add_energy(engine, used, dwell);
        correlate_look(engine, looks++);
    }
    add_powers(engine, looks);
    pnr_search_dwell(plan, engine->energy_of_code, engine->work.power, looks, NULL, NULL, dwell,
                     task->candidates);
    for (size_t i = 0; i < dwell->n_candidates; i++)
        gather_neighbours(engine, task, looks, i);
    if (task->profile != NULL)
        return_profile(engine, task->profile, looks);
}
