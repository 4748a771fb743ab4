/* SPDX-License-Identifier: MIT */
/* Slow time on the cpu engine: sums over the periods, and the forward transforms. */
#include "engine/cpu/steps.h"

#include "base/multiversion.h"

#include <string.h>

typedef pnr_cpu_value value;

/* SUM_COLUMNS: columns of one task if bins are computed as sums. SUM_PERIODS: periods that are
 * added before their sum is added to the total. The samples of these periods stay in the
 * first-level cache. */
enum { SUM_COLUMNS = 128, SUM_PERIODS = 32 };

typedef pnr_cpu_wide wide;

/* Sums at most SUM_PERIODS periods. Sum a uses the real parts of the weights, and sum b the
 * imaginary parts. The result is a + i b. */
PNR_MULTIVERSION static void sum_few_periods(size_t n_periods, size_t n, const float (*x)[2],
                                             size_t x_pitch, const float (*w)[4][2], bool add,
                                             size_t n_out, float (*out)[2], size_t out_pitch)
{
    const wide turn = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};

    for (size_t i = 0; i < n; i += 8) {
        wide a[4] = {{0}}, b[4] = {{0}};

        for (size_t p = 0; p < n_periods; p++) {
            const wide v = *(const wide *)(x + p * x_pitch + i);

            for (int u = 0; u < 4; u++) {
                a[u] += w[p][u][0] * v;
                b[u] += w[p][u][1] * v;
            }
        }
        for (int u = 0; u < 4; u++)
            a[u] += turn * __builtin_shufflevector(b[u], b[u], 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10,
                                                   13, 12, 15, 14);
        for (size_t u = 0; u < n_out; u++) {
            wide *to = (wide *)(out + u * out_pitch + i);

            if (add)
                a[u] += *to;
            *to = a[u];
        }
    }
}

/* Prefetches the next periods. They lie too far apart in memory for the processor's own
 * prefetcher. */
static void prefetch_rows(size_t n_periods, size_t n, const float (*x)[2], size_t x_pitch)
{
    for (size_t p = 0; p < n_periods; p++)
        for (size_t i = 0; i < n; i += 8)
            __builtin_prefetch(x + p * x_pitch + i);
}

void pnr_cpu_sums(size_t n_periods, size_t n, const float (*x)[2], size_t x_pitch,
                  const float (*w)[4][2], size_t n_out, float (*out)[2], size_t out_pitch)
{
    for (size_t p = 0; p < n_periods; p += SUM_PERIODS) {
        const size_t left = n_periods - p, count = left < SUM_PERIODS ? left : SUM_PERIODS;
        const size_t next = left - count < SUM_PERIODS ? left - count : SUM_PERIODS;

        prefetch_rows(next, n, x + (p + count) * x_pitch, x_pitch);
        for (size_t u = 0; u < n_out; u += 4)
            sum_few_periods(count, n, x + p * x_pitch, x_pitch, w + u / 4 * n_periods + p, p > 0,
                            n_out - u < 4 ? n_out - u : 4, out + u * out_pitch, out_pitch);
    }
}

static void sum_columns(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const pnr_cpu_set *set = &cpu->axes.sets[s->set];
    const size_t n_periods = cpu->plan->n_periods;
    const size_t n_tasks = (cpu->window + SUM_COLUMNS - 1) / SUM_COLUMNS;
    const size_t look = task / n_tasks, first = task % n_tasks * SUM_COLUMNS;
    const size_t left = cpu->window - first, n = left < SUM_COLUMNS ? left : SUM_COLUMNS;
    const value *x = s->x + look * n_periods * cpu->x_pitch + first;

    (void)worker;
    if (!pnr_cpu_is_used(s, s->first_look + look))
        return;
    pnr_cpu_sums(n_periods, n, x, cpu->x_pitch, (const float(*)[4][2])cpu->weights[s->set],
                 set->count,
                 pnr_cpu_spectrum_at(cpu, s->my, s->first_look + look, set->first) + first,
                 cpu->transform.spectrum_pitch);
}

/* Transposes columns to rows and transforms the rows. Transposes the wanted bins back, one run of
 * adjacent bins at a time. */
static void transform_columns(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const pnr_cpu_set *set = &cpu->axes.sets[s->set];
    const pnr_cpu_spectrum *spectra = cpu->axes.spectra + set->first;
    const value *weights = (const value *)cpu->weights[s->set];
    const pnr_cpu_scratch *scratch = &cpu->scratch[worker];
    const size_t k = cpu->plan->n_periods, most = cpu->slow_columns;
    const size_t n_tasks = (cpu->window + most - 1) / most;
    const size_t look = task / n_tasks, first = task % n_tasks * most;
    const size_t left = cpu->window - first, n = left < most ? left : most;

    if (!pnr_cpu_is_used(s, s->first_look + look))
        return;
    pnr_cpu_transpose(k, n, s->x + look * k * cpu->x_pitch + first, cpu->x_pitch, scratch->slow[0],
                      cpu->slow_pitch);
    for (size_t i = 0; weights != NULL && i < n; i++) {
        value *at = scratch->slow[0] + i * cpu->slow_pitch;

        pnr_cpu_product(k, (const value *)at, weights, at);
    }
    fftwf_execute_dft(cpu->slow, scratch->slow[0], scratch->slow[1]);
    for (size_t u = 0, run; u < set->count; u += run) {
        run = 1;
        while (u + run < set->count && spectra[u + run].bin == spectra[u].bin + run)
            run++;
        pnr_cpu_transpose(
            n, run, (const value *)(scratch->slow[1] + spectra[u].bin), cpu->slow_pitch,
            pnr_cpu_spectrum_at(cpu, s->my, s->first_look + look, set->first + u) + first,
            cpu->transform.spectrum_pitch);
    }
}

/* Transforms y to its spectrum in place. If the period is extended, the input is y[i mod N] for
 * i < 2 N - 1, then zeros. If the correlation is linear, the input is all of y, then zeros. */
void pnr_cpu_forward(const pnr_cpu *cpu, size_t spectrum, pnr_cpu_value *y, size_t worker)
{
    const value *rotation = (const value *)cpu->rotations[cpu->axes.spectra[spectrum].rotation];
    const size_t n = cpu->window, length = cpu->axes.n_transform;
    value *in = cpu->scratch[worker].transform.in;
    size_t lit = n;

    if (rotation != NULL)
        pnr_cpu_product(n, (const value *)y, rotation, in);
    else
        memcpy(in, y, n * sizeof *in);
    if (length != n && !cpu->plan->linear) {
        memcpy(in + n, in, (n - 1) * sizeof *in);
        lit = 2 * n - 1;
    }
    memset(in + lit, 0, (length - lit) * sizeof *in);
    pnr_cpu_transform_forward(&cpu->transform, &cpu->scratch[worker].transform, y);
}

static void forward_spectrum(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const size_t n_spectra = s->cpu->axes.n_spectra;
    const size_t look = s->first_look + task / n_spectra, spectrum = task % n_spectra;

    if (pnr_cpu_is_used(s, look))
        pnr_cpu_forward(s->cpu, spectrum, pnr_cpu_spectrum_at(s->cpu, s->my, look, spectrum),
                        worker);
}

/* Clears the samples of the unused windows, so that they add nothing to the sums. */
static void clear_unused(pnr_cpu_step *s)
{
    const size_t n_periods = s->cpu->plan->n_periods, first = s->first_look * n_periods;

    for (size_t w = 0; w < s->n_looks * n_periods; w++)
        if (!s->my->windows[first + w].is_used)
            memset(s->my->x + w * s->cpu->x_pitch, 0, s->cpu->window * sizeof(value));
}

static void compute_set(pnr_cpu_step *s, size_t set)
{
    const pnr_cpu *cpu = s->cpu;
    const bool is_summed = cpu->axes.sets[set].is_summed;
    const size_t most = is_summed ? SUM_COLUMNS : cpu->slow_columns;

    s->set = set;
    pnr_cpu_do(s, is_summed ? sum_columns : transform_columns,
               s->n_looks * ((cpu->window + most - 1) / most));
}

/* Computes the stretched sets first, because they read all windows. Then clears the unused windows
 * and computes the other sets. */
void pnr_cpu_slow_time(pnr_cpu_step *s)
{
    const pnr_cpu *cpu = s->cpu;
    double stretch = 0;

    if (cpu->doubling.margin > 0)
        pnr_cpu_double(s);
    s->x = s->my->stretched;
    for (size_t i = 0; i < cpu->axes.n_sets; i++) {
        if (cpu->axes.sets[i].stretch == 0)
            continue;
        if (cpu->axes.sets[i].stretch != stretch)
            pnr_cpu_stretch(s, stretch = cpu->axes.sets[i].stretch);
        compute_set(s, i);
    }
    clear_unused(s);
    s->x = s->my->x;
    for (size_t i = 0; i < cpu->axes.n_sets; i++)
        if (cpu->axes.sets[i].stretch == 0)
            compute_set(s, i);
    if (!cpu->is_transformed_late)
        pnr_cpu_do(s, forward_spectrum, s->n_looks * cpu->axes.n_spectra);
    pnr_cpu_lap(s->dwell->stage_ns, PNR_STAGE_FORWARD, &s->since);
}
