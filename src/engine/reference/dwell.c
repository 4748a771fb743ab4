/* SPDX-License-Identifier: MIT */
/* A plain dwell of the reference engine: the sum as it stands in the book. */
#include "engine/reference/state.h"

#include "engine/plan.h"
#include "engine/search_plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int pnr_reference_plain_create(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_plain *plain = &engine->plain;
    const size_t n = plan->n_samples;

    plain->n_rows = plan->dwell == PNR_DWELL_INCOHERENT ? plan->n_periods : 1;
    plain->profile = calloc(plain->n_rows * plan->oversample, sizeof *plain->profile);
    plain->flags = calloc(n, 1);
    if (plain->profile == NULL || plain->flags == NULL ||
        pnr_planar_create(&plain->window, 2 * n) != PNR_OK ||
        pnr_planar_create(&plain->sum, n) != PNR_OK)
        return PNR_ENOMEMORY;
    for (size_t h = 0; h < plan->oversample; h++)
        if ((plain->power[h] = calloc(n, sizeof **plain->power)) == NULL)
            return PNR_ENOMEMORY;
    for (size_t i = 0; i < plain->n_rows * plan->oversample; i++)
        if (pnr_planar_create(&plain->profile[i], n) != PNR_OK)
            return PNR_ENOMEMORY;
    return PNR_OK;
}

void pnr_reference_plain_destroy(pnr_engine *engine)
{
    pnr_reference_plain *plain = &engine->plain;

    pnr_planar_destroy(&plain->window);
    pnr_planar_destroy(&plain->sum);
    if (plain->profile != NULL)
        for (size_t i = 0; i < plain->n_rows * engine->plan->oversample; i++)
            pnr_planar_destroy(&plain->profile[i]);
    free(plain->profile);
    free(plain->flags);
    free(plain->power[0]);
    free(plain->power[1]);
}

static void correlate_row(pnr_engine *engine, pnr_planar x, size_t row)
{
    const size_t n = engine->plan->n_samples;
    const size_t oversample = engine->plan->oversample;

    memcpy(x.re + n, x.re, n * sizeof *x.re);
    memcpy(x.im + n, x.im, n * sizeof *x.im);
    for (size_t h = 0; h < oversample; h++)
        pnr_reference_correlate(x, pnr_planar_at(engine->code, h * n), n, n,
                                engine->plain.profile[row * oversample + h]);
}

/* 17 values around a candidate; of an incoherent dwell sum over windows c[k + j] conj(c[k]) /
 * sqrt(P[k]). */
static void gather(const pnr_engine *engine, size_t rows, pnr_candidate *candidate)
{
    const pnr_plan *plan = engine->plan;
    const bool is_sum = plan->dwell == PNR_DWELL_INCOHERENT;
    const size_t centre = pnr_search_lag(plan, candidate->cell, 0);

    for (int j = -8; j <= 8; j++) {
        const size_t lag = pnr_search_lag(plan, candidate->cell, j);
        double re = 0, im = 0, power = 0;

        for (size_t r = 0; r < rows; r++) {
            const pnr_planar *c = &engine->plain.profile[r * plan->oversample];
            const double cr = is_sum ? c->re[centre] : 1, ci = is_sum ? c->im[centre] : 0;

            re += c->re[lag] * cr + c->im[lag] * ci;
            im += c->im[lag] * cr - c->re[lag] * ci;
            power += cr * cr + ci * ci;
        }

        const double scale = is_sum && power > 0 ? 1 / sqrt(power) : 1;

        candidate->value[j + 8][0] = (float)(re * scale);
        candidate->value[j + 8][1] = (float)(im * scale);
    }
}

static void return_profile(const pnr_engine *engine, float *profile, size_t rows)
{
    const pnr_plan *plan = engine->plan;
    const size_t n = plan->n_samples, oversample = plan->oversample;

    for (size_t cell = 0; cell < n * oversample; cell++) {
        const size_t h = cell % oversample, lag = cell / oversample;

        if (plan->want_profile == PNR_WANT_POWER) {
            profile[cell] = engine->plain.power[h][lag];
        } else {
            const pnr_planar *c =
                &engine->plain.profile[(rows > 0 ? rows - 1 : 0) * oversample + h];

            profile[2 * cell] = rows > 0 ? (float)c->re[lag] : 0;
            profile[2 * cell + 1] = rows > 0 ? (float)c->im[lag] : 0;
        }
    }
}

/* Reads window p into plain->window[0..N-1] and counts it. Does it take part? */
static bool take_window(pnr_engine *engine, const pnr_reference_task *task, size_t p)
{
    const size_t n = engine->plan->n_samples;
    const uint32_t lost = task->windows->lost[task->dwell * engine->plan->n_periods + p];
    pnr_reference_plain *plain = &engine->plain;
    pnr_dwell *dwell = task->sums;
    const double energy = pnr_reference_read(engine, task, p * n, n, plain->window, plain->flags);

    task->nonfinite[p] = 0;
    for (size_t i = 0; i < n; i++) {
        task->nonfinite[p] += (plain->flags[i] & PNR_SAMPLE_NONFINITE) != 0;
        dwell->n_clipped += (plain->flags[i] & PNR_SAMPLE_CLIPPED) != 0;
    }
    dwell->n_nonfinite += task->nonfinite[p];
    if ((size_t)lost + task->nonfinite[p] > n / 2)
        return false;
    dwell->n_periods++;
    dwell->n_valid += n - lost - task->nonfinite[p];
    dwell->energy += energy;
    return true;
}

void pnr_reference_plain_process(pnr_engine *engine, const pnr_reference_task *task)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_plain *plain = &engine->plain;
    const size_t n = plan->n_samples;
    const bool is_sum = plan->dwell == PNR_DWELL_INCOHERENT;
    pnr_dwell *dwell = task->sums;
    size_t rows = 0;

    memset(dwell, 0, sizeof *dwell);
    memset(plain->sum.re, 0, n * sizeof *plain->sum.re);
    memset(plain->sum.im, 0, n * sizeof *plain->sum.im);
    for (size_t p = 0; p < plan->n_periods; p++) {
        if (!take_window(engine, task, p))
            continue;
        if (is_sum) {
            correlate_row(engine, plain->window, rows++);
        } else {
            for (size_t i = 0; i < n; i++) {
                plain->sum.re[i] += plain->window.re[i];
                plain->sum.im[i] += plain->window.im[i];
            }
        }
    }
    if (!is_sum && dwell->n_periods > 0) {
        memcpy(plain->window.re, plain->sum.re, n * sizeof *plain->sum.re);
        memcpy(plain->window.im, plain->sum.im, n * sizeof *plain->sum.im);
        correlate_row(engine, plain->window, rows++);
    }
    for (size_t h = 0; h < plan->oversample; h++)
        for (size_t k = 0; k < n; k++) {
            double power = 0;

            for (size_t r = 0; r < rows; r++) {
                const pnr_planar *c = &plain->profile[r * plan->oversample + h];

                power += c->re[k] * c->re[k] + c->im[k] * c->im[k];
            }
            plain->power[h][k] = (float)power;
        }

    const pnr_power power = {
        .lag = {plain->power[0], plain->power[1]}, .n_samples = n, .oversample = plan->oversample};

    pnr_search_dwell(plan, engine->energy_of_code, &power, dwell, task->candidates);
    for (size_t i = 0; i < dwell->n_candidates; i++)
        gather(engine, rows, &task->candidates[i]);
    if (task->profile != NULL)
        return_profile(engine, task->profile, rows);
}
