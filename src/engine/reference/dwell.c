/* SPDX-License-Identifier: MIT */
/* Computes one dwell in the reference engine, as plan.h defines it. */
#include "engine/reference/state.h"

#include "base/transform.h"
#include "engine/plan.h"
#include "engine/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns 1 / L sum_v exp(pi i v t / L) over v = first .. first + n - 1, where t is in half
 * samples. */
static double complex sum_bins(double first, double n, size_t t, double l)
{
    const double half = (double)t / 2;
    const double sum = t == 0 ? n : sin(M_PI * fmod(n * half, 2 * l) / l) / sin(M_PI * half / l);

    return sum / l * pnr_cis(M_PI * fmod((2 * first + n - 1) * half, 2 * l) / l);
}

/* Fills `between`. The bins in the band form runs of adjacent bins. sum_bins sums each run. */
static void fill_between(const double band[2], pnr_reference_work *work)
{
    const int64_t length = (int64_t)pnr_transform_fast_length(work->n_extended);
    int64_t n = 0;

    for (int64_t v = -(length - 1) / 2; v <= length / 2; v++) {
        const bool is_kept =
            pnr_stretch_keeps(band, (size_t)((v + length) % length), (size_t)length);

        if (!is_kept && n > 0)
            for (size_t t = 0; t < 2 * work->n_extended; t++)
                work->between[t] += sum_bins((double)(v - n), (double)n, t, (double)length);
        n = is_kept ? n + 1 : 0;
    }
    for (size_t t = 0; n > 0 && t < 2 * work->n_extended; t++)
        work->between[t] += sum_bins((double)(length / 2 - n + 1), (double)n, t, (double)length);
}

/* Allocates the memory of a stretch and fills its tables. */
static int create_stretch(const double band[2], pnr_reference_work *work)
{
    const size_t n = work->n_extended = work->n_look + 2 * work->margin;

    work->kernel = calloc(PNR_STRETCH_STEPS + 1, sizeof *work->kernel);
    work->extended = calloc(n, sizeof *work->extended);
    work->doubled = calloc(2 * n, sizeof *work->doubled);
    work->stretched = calloc(work->n_look, sizeof *work->stretched);
    work->between = calloc(2 * n, sizeof *work->between);
    if (!work->kernel || !work->extended || !work->doubled || !work->stretched || !work->between)
        return PNR_ENOMEMORY;
    fill_between(band, work);
    pnr_stretch_table(work->kernel);
    return PNR_OK;
}

int pnr_reference_work_create(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;
    const size_t n = plan->n_samples;

    work->n_cells = pnr_plan_cells(plan);
    work->n_window = pnr_plan_window_samples(plan);
    work->n_look = (plan->n_periods - 1) * n + work->n_window;
    work->flags = calloc(work->n_look, 1);
    work->is_used = calloc(plan->n_periods, sizeof *work->is_used);
    work->power = calloc(work->n_cells, sizeof *work->power);
    work->look = calloc(work->n_look, sizeof *work->look);
    work->own = calloc(work->n_look, sizeof *work->own);
    work->mean = calloc(work->n_window, sizeof *work->mean);
    work->sum = calloc(plan->linear ? work->n_window : 2 * n, sizeof *work->sum);
    work->filtered = calloc(plan->gate_count, sizeof *work->filtered);
    work->value = calloc(plan->n_looks * work->n_cells, sizeof *work->value);
    if (!work->flags || !work->is_used || !work->power || !work->look || !work->own ||
        !work->mean || !work->sum || !work->filtered || !work->value)
        return PNR_ENOMEMORY;
    work->margin = pnr_stretch_margin(plan);
    return work->margin > 0 ? create_stretch(plan->band, work) : PNR_OK;
}

void pnr_reference_work_destroy(pnr_engine *engine)
{
    pnr_reference_work *work = &engine->work;

    free(work->look);
    free(work->own);
    free(work->extended);
    free(work->doubled);
    free(work->stretched);
    free(work->between);
    free(work->mean);
    free(work->sum);
    free(work->filtered);
    free(work->value);
    free(work->flags);
    free(work->kernel);
    free(work->is_used);
    free(work->power);
}

/* Returns c of one row and one code. look: index among the used looks. */
static double complex *line_of(const pnr_engine *engine, size_t look, size_t code, size_t row)
{
    const pnr_plan *plan = engine->plan;
    const size_t line = code * pnr_plan_rows(plan) + row;

    return engine->work.value + look * engine->work.n_cells +
           line * plan->n_lags * plan->oversample;
}

static bool is_valid(const pnr_reference_work *work, size_t sample)
{
    return (work->flags[sample] & (PNR_SAMPLE_NONFINITE | PNR_REFERENCE_LOST)) == 0;
}

/* Reads a look and counts the clipped and non-finite samples of its windows. Returns the number of
 * used windows. */
static size_t read_look(pnr_engine *engine, const pnr_slot_dwell *task, size_t look)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;
    const size_t n = plan->n_samples;
    size_t used = 0;

    pnr_reference_read(engine, task, look * plan->n_periods * n, work->n_look, work->look,
                       work->flags);
    for (size_t p = 0; p < plan->n_periods; p++) {
        const size_t w = look * plan->n_periods + p;
        uint32_t *nonfinite = &task->nonfinite[w];

        *nonfinite = 0;
        for (size_t i = p * n; i < (p + 1) * n; i++) {
            *nonfinite += (work->flags[i] & PNR_SAMPLE_NONFINITE) != 0;
            task->sums->n_clipped += (work->flags[i] & PNR_SAMPLE_CLIPPED) != 0;
        }
        task->sums->n_nonfinite += *nonfinite;
        work->is_used[p] = task->lost[w] + *nonfinite <= n / 2;
        used += work->is_used[p];
    }
    return used;
}

/* Finds the mean of the used windows at each place of a window, without lost and non-finite
 * samples. */
static void find_mean(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;

    for (size_t i = 0; i < work->n_window; i++) {
        double complex sum = 0;
        size_t count = 0;

        for (size_t p = 0; p < plan->n_periods; p++) {
            const size_t sample = p * plan->n_samples + i;

            if (!work->is_used[p] || !is_valid(work, sample))
                continue;
            sum += work->look[sample];
            count++;
        }
        work->mean[i] = count > 0 ? sum / (double)count : 0;
    }
}

/* Returns x_p[i], minus the mean if remove_mean is set. */
static double complex find_sample(const pnr_engine *engine, size_t p, size_t i)
{
    const pnr_reference_work *work = &engine->work;
    const size_t sample = p * engine->plan->n_samples + i;

    if (!engine->plan->remove_mean)
        return work->look[sample];
    return is_valid(work, sample) ? work->look[sample] - work->mean[i] : 0;
}

/* Fills work->own with the samples of the look, minus the mean if plan->remove_mean is set; samples
 * that are not used become 0. A sample belongs to the window whose first N samples contain it. The
 * samples after the first K N of the look belong to the last window. */
static void fill_own_samples(pnr_engine *engine)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;

    for (size_t j = 0; j < work->n_look; j++) {
        const size_t own = j / plan->n_samples;
        const size_t p = own < plan->n_periods ? own : plan->n_periods - 1;

        work->own[j] = find_sample(engine, p, j - p * plan->n_samples);
    }
}

/* Adds the energy of the used windows of a look to dwell->energy. Adds to dwell->floor the mean of
 * P for noise of this energy. */
static void add_energy(const pnr_engine *engine, size_t used, pnr_dwell *dwell)
{
    const pnr_plan *plan = engine->plan;
    const pnr_reference_work *work = &engine->work;
    const size_t n = plan->n_samples;
    /* The removal of the mean also removed 1/used of the noise. */
    const double unbiased = plan->remove_mean ? (double)used / (double)(used - 1) : 1;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const double w = plan->taper != NULL ? plan->taper[p] : 1;
        double energy = 0;

        if (!work->is_used[p])
            continue;
        for (size_t i = p * n; i < (p + 1) * n; i++)
            energy += pnr_power(work->own[i]);
        energy *= unbiased;
        dwell->energy += energy;
        dwell->floor += w * w * energy * engine->energy_of_code / (double)n;
    }
}

static void count_used_windows(const pnr_engine *engine, const pnr_slot_dwell *task, size_t look)
{
    const pnr_plan *plan = engine->plan;

    for (size_t p = 0; p < plan->n_periods; p++) {
        const size_t w = look * plan->n_periods + p;

        if (!engine->work.is_used[p])
            continue;
        task->sums->n_periods++;
        task->sums->n_valid += plan->n_samples - task->nonfinite[w] - task->lost[w];
    }
}

/* Fills work->extended: the samples of a look, and the margins on both sides. */
static void extend_look(const pnr_plan *plan, pnr_reference_work *work)
{
    const int64_t margin = (int64_t)work->margin, n_look = (int64_t)work->n_look;

    for (int64_t n = -margin; n < n_look + margin; n++) {
        const int64_t beyond = n < 0 ? -n : n - n_look + 1;
        const double complex x = work->own[pnr_stretch_inside(n, work->n_look, plan->n_samples)];

        work->extended[n + margin] =
            beyond > 0 ? (double)pnr_stretch_fade((size_t)beyond, work->margin) * x : x;
    }
}

/* Returns value m of d, see stretch.h. */
static double complex double_sample(const pnr_reference_work *work, size_t m)
{
    double complex sum = 0;

    for (size_t j = 0; j < work->n_extended; j++)
        sum += (2 * j <= m ? work->between[m - 2 * j] : conj(work->between[2 * j - m])) *
               work->extended[j];
    return sum;
}

static void double_look(pnr_engine *engine)
{
    pnr_reference_work *work = &engine->work;
    const bool has_band = pnr_stretch_has_band(engine->plan->band);

    extend_look(engine->plan, work);
    for (size_t m = 0; m < 2 * work->n_extended; m++)
        work->doubled[m] = m % 2 == 0 && !has_band ? work->extended[m / 2] : double_sample(work, m);
}

static void stretch_look(pnr_engine *engine, double by)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;

    for (size_t n = 0; n < work->n_look; n++) {
        const pnr_stretch_place at = pnr_stretch_at(by, plan->n_periods * plan->n_samples, n);
        double complex sum = 0;

        for (int i = 0; i < PNR_STRETCH_TAPS; i++) {
            const int64_t from = at.first + i + 2 * (int64_t)work->margin;
            const double low = (double)work->kernel[at.row][i];
            const double high = (double)work->kernel[at.row + 1][i];
            const double weight = low + (double)at.part * (high - low);

            sum += weight * work->doubled[from];
        }
        work->stretched[n] = sum;
    }
}

/* sum[i] = exp(-2 pi i f i / N) sum_p w_p exp(-2 pi i F p) x_p[i], f = quarters / 4, F = f + s / K.
 * A circular sum is written twice, so that n + k needs no modulo. */
static void sum_windows(pnr_engine *engine, const pnr_hypothesis *hypothesis, int64_t s)
{
    const pnr_plan *plan = engine->plan;
    pnr_reference_work *work = &engine->work;
    const int64_t periods = (int64_t)plan->n_periods, n = (int64_t)plan->n_samples;

    memset(work->sum, 0, work->n_window * sizeof *work->sum);
    for (int64_t p = 0; p < periods; p++) {
        const double taper = plan->taper != NULL ? plan->taper[p] : 1;
        const double complex w =
            conj(pnr_root((hypothesis->quarters * periods + 4 * s) * p, 4 * plan->n_periods));

        for (size_t i = 0; work->is_used[p] && i < work->n_window; i++)
            work->sum[i] +=
                taper * (w * (hypothesis->stretch == 0 ? find_sample(engine, (size_t)p, i)
                                                       : work->stretched[(size_t)(p * n) + i]));
    }
    for (size_t i = 0; hypothesis->quarters != 0 && i < work->n_window; i++)
        work->sum[i] *= conj(pnr_root(hypothesis->quarters * (int64_t)i, 4 * plan->n_samples));
    if (!plan->linear)
        memcpy(work->sum + n, work->sum, (size_t)n * sizeof *work->sum);
}

/* Replaces c[gate_first + k] by sum_j filter[k][j] c[gate_first + j]; all other c become 0. */
static void filter_gate(pnr_engine *engine, double complex *c)
{
    const pnr_plan *plan = engine->plan;
    double complex *out = engine->work.filtered;

    for (size_t k = 0; k < plan->gate_count; k++) {
        const double complex *row = (const double complex *)plan->filter + k * plan->gate_count;

        out[k] = 0;
        for (size_t j = 0; j < plan->gate_count; j++)
            out[k] += row[j] * c[(plan->gate_first + j) % plan->n_lags];
    }
    memset(c, 0, plan->n_lags * sizeof *c);
    for (size_t k = 0; k < plan->gate_count; k++)
        c[(plan->gate_first + k) % plan->n_lags] = out[k];
}

/* Correlates one look with every code in every row. */
static void correlate_look(pnr_engine *engine, size_t look)
{
    const pnr_plan *plan = engine->plan;
    size_t row = 0;

    if (engine->work.doubled != NULL)
        double_look(engine);
    for (size_t h = 0; h < plan->n_hypotheses; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);

        if (hypothesis.stretch != 0)
            stretch_look(engine, hypothesis.stretch);
        for (size_t r = 0; r < hypothesis.n_rows; r++, row++) {
            sum_windows(engine, &hypothesis, (int64_t)hypothesis.first_bin + (int64_t)r);
            for (size_t i = 0; i < plan->n_codes * plan->oversample; i++) {
                double complex *c = line_of(engine, look, i / plan->oversample, row);

                pnr_reference_correlate(engine->work.sum, engine->code + i * plan->n_samples,
                                        plan->n_samples, plan->n_lags, plan->oversample,
                                        c + i % plan->oversample);
                if (plan->filter != NULL)
                    filter_gate(engine, c);
            }
        }
    }
}

static void add_powers(pnr_reference_work *work, size_t looks)
{
    for (size_t cell = 0; cell < work->n_cells; cell++) {
        double power = 0;

        for (size_t look = 0; look < looks; look++)
            power += pnr_power(work->value[look * work->n_cells + cell]);
        work->power[cell] = (float)power;
    }
}

/* Finds the value in row `row`, j lags from the centre of a candidate. With one look the value is
 * c. With several looks it is sum c conj(c0) / sqrt(sum |c0|^2) over the looks, where c0 is at the
 * centre. */
static void find_neighbour(const pnr_engine *engine, size_t looks, const pnr_candidate *candidate,
                           size_t row, int j, float out[2])
{
    const pnr_plan *plan = engine->plan;
    const size_t centre = pnr_search_lag(plan, candidate->cell, 0) * plan->oversample;
    const size_t cell = pnr_search_lag(plan, candidate->cell, j) * plan->oversample;
    const bool is_sum = plan->n_looks > 1;
    double complex sum = 0;
    double power = 0;

    for (size_t look = 0; look < looks; look++) {
        const double complex c = line_of(engine, look, candidate->code, row)[cell];
        const double complex c0 =
            is_sum ? line_of(engine, look, candidate->code, candidate->row)[centre] : 1;

        sum += c * conj(c0);
        power += pnr_power(c0);
    }

    const double scale = is_sum && power > 0 ? 1 / sqrt(power) : 1;

    out[0] = (float)(creal(sum) * scale);
    out[1] = (float)(cimag(sum) * scale);
}

static void gather_neighbours(const pnr_engine *engine, const pnr_slot_dwell *task, size_t looks,
                              size_t number)
{
    const int64_t rows = (int64_t)pnr_plan_rows(engine->plan);
    pnr_candidate *candidate = &task->candidates[number];

    for (int j = -8; j <= 8; j++)
        find_neighbour(engine, looks, candidate, candidate->row, j, candidate->value[j + 8]);
    if (task->patches == NULL)
        return;

    float *patch = task->patches + number * PNR_NEIGHBOURS * PNR_NEIGHBOURS * 2;

    for (int r = -8; r <= 8; r++)
        for (int j = -8; j <= 8; j++, patch += 2) {
            const int64_t row = (int64_t)candidate->row + r;

            patch[0] = patch[1] = 0;
            if (row >= 0 && row < rows)
                find_neighbour(engine, looks, candidate, (size_t)row, j, patch);
        }
}

/* Writes the powers, or c of the last used look, to the profile. */
static void return_profile(const pnr_engine *engine, float *profile, size_t looks)
{
    const pnr_reference_work *work = &engine->work;

    if (engine->plan->want_profile == PNR_WANT_POWER) {
        memcpy(profile, work->power, work->n_cells * sizeof *profile);
        return;
    }
    for (size_t i = 0; i < work->n_cells; i++) {
        const double complex c = looks > 0 ? work->value[(looks - 1) * work->n_cells + i] : 0;

        profile[2 * i] = (float)creal(c);
        profile[2 * i + 1] = (float)cimag(c);
    }
}

void pnr_reference_process(pnr_engine *engine, const pnr_slot_dwell *task)
{
    const pnr_plan *plan = engine->plan;
    pnr_dwell *dwell = task->sums;
    size_t looks = 0; /* used looks */

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
    add_powers(&engine->work, looks);
    pnr_search_dwell(plan, engine->energy_of_code, engine->work.power, looks, NULL, NULL, dwell,
                     task->candidates);
    for (size_t i = 0; i < dwell->n_candidates; i++)
        gather_neighbours(engine, task, looks, i);
    if (task->profile != NULL)
        return_profile(engine, task->profile, looks);
}
