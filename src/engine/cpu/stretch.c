/* SPDX-License-Identifier: MIT */
/* Resamples looks to another time scale. See engine/stretch.h. */
#include "engine/cpu/steps.h"

#include "base/multiversion.h"

#include <string.h>

typedef pnr_cpu_value value;
typedef pnr_cpu_wide wide;

#define INLINE static inline __attribute__((always_inline))

/* --- the doubled rate --- */

enum { SPREAD = 8192 }; /* samples that one call of spread_part copies */

/* Copies the samples of a window to the look. A sample belongs to the window whose first N samples
 * contain it. The samples after the first K N of the look belong to the last window. */
static void gather_window(void *context, size_t p, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const size_t n_periods = cpu->plan->n_periods, n = cpu->plan->n_samples;
    const value *x = s->my->x + (s->look * n_periods + p) * cpu->x_pitch;

    (void)worker;
    memcpy(s->my->look + cpu->doubling.margin + p * n, x,
           (p + 1 < n_periods ? n : cpu->window) * sizeof *x);
}

/* Writes the margins on both sides of the look, and zeros after the second margin. */
static void extend_look(const pnr_cpu_step *s)
{
    const pnr_cpu_doubling *d = &s->cpu->doubling;
    const size_t period = s->cpu->plan->n_samples, n_look = d->n_look - 2 * d->margin;
    value *x = s->my->look + d->margin;

    for (size_t i = 0; i < d->margin; i++)
        for (size_t side = 0; side < 2; side++) {
            const int64_t n = side == 0 ? -(int64_t)i - 1 : (int64_t)(n_look + i);
            const value *from = (const value *)(x + pnr_stretch_inside(n, n_look, period));

            x[n][0] = d->fade[i] * (*from)[0];
            x[n][1] = d->fade[i] * (*from)[1];
        }
    memset(x + n_look + d->margin, 0, (d->transform.length - d->n_look) * sizeof *x);
}

static void forward_columns(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu_transform *t = &s->cpu->doubling.transform;

    pnr_cpu_split_forward(&t->split, block, (const value *)s->my->look, t->length, t->length,
                          s->my->spectrum, s->cpu->scratch[worker].transform.tile);
}

static void shift_rows(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;
    value *const spectra[2] = {s->my->spectrum};
    value *const weights[2] = {s->shift};

    pnr_cpu_split_rows(&s->cpu->doubling.transform.split, block, 1, spectra, weights,
                       s->cpu->scratch[worker].transform.tile, NULL);
}

static void inverse_columns(void *context, size_t block, size_t worker)
{
    const pnr_cpu_step *s = context;

    pnr_cpu_split_inverse(&s->cpu->doubling.transform.split, block, (const value *)s->my->spectrum,
                          s->my->halves, 0, false, NULL, s->cpu->scratch[worker].transform.tile,
                          NULL);
}

/* Copies SPREAD values of `from` to every second value of `out`. The even values of the doubled
 * look lie at the samples of the look, and the odd values halfway between samples. For the odd
 * values the caller passes out + 1. */
static void spread_part(const pnr_cpu_step *s, const value *from, const pnr_cpu_split *split,
                        size_t task, value *out)
{
    const size_t first = task * SPREAD, left = s->cpu->doubling.n_look - first;

    for (size_t i = first; i < first + (left < SPREAD ? left : SPREAD); i++)
        memcpy(out[2 * i], from[split != NULL ? pnr_cpu_split_place(split, i) : i], sizeof *out);
}

static value *doubled_look(const pnr_cpu_step *s, size_t look)
{
    return s->my->doubled + look * s->cpu->doubling.pitch;
}

static void spread_samples(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;

    (void)worker;
    spread_part(s, (const value *)s->my->look, NULL, task, doubled_look(s, s->look));
}

/* Copies the output of shift_look to every second value of the doubled look. */
static void spread_shifted(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu_transform *t = &s->cpu->doubling.transform;

    (void)worker;
    spread_part(s, (const value *)s->my->halves, t->is_split ? &t->split : NULL, task,
                doubled_look(s, s->look) + (s->shift == s->cpu->doubling.half ? 1 : 0));
}

/* Writes the look and its margins to my->look. shift_look overwrites my->look. */
static void fill_look(pnr_cpu_step *s)
{
    pnr_cpu_do(s, gather_window, s->cpu->plan->n_periods);
    extend_look(s);
}

/* Transforms the look, multiplies its bins by the weights, and transforms the products back. */
static void shift_look(pnr_cpu_step *s, value *weights)
{
    const pnr_cpu_transform *t = &s->cpu->doubling.transform;
    const pnr_cpu_transform_scratch scratch = {s->my->look, s->my->halves, NULL};

    s->shift = weights;
    if (t->is_split) {
        pnr_cpu_do(s, forward_columns, t->split.n_blocks);
        pnr_cpu_do(s, shift_rows, t->split.n_row_blocks);
        pnr_cpu_do(s, inverse_columns, t->split.n_blocks);
    } else {
        pnr_cpu_transform_forward(t, &scratch, s->my->spectrum);
        pnr_cpu_transform_correlate(t, &scratch, (const value *)s->my->spectrum, 0,
                                    (const value *)weights, 0, NULL, false, NULL);
    }
}

void pnr_cpu_double(pnr_cpu_step *s)
{
    const pnr_cpu_doubling *d = &s->cpu->doubling;
    const size_t n_parts = (d->n_look + SPREAD - 1) / SPREAD;

    for (s->look = 0; s->look < s->n_looks; s->look++) {
        if (!pnr_cpu_is_used(s, s->first_look + s->look))
            continue;
        fill_look(s);
        if (d->whole != NULL) {
            shift_look(s, d->whole);
            pnr_cpu_do(s, spread_shifted, n_parts);
            fill_look(s);
        } else {
            pnr_cpu_do(s, spread_samples, n_parts);
        }
        shift_look(s, d->half);
        pnr_cpu_do(s, spread_shifted, n_parts);
    }
}

/* --- the interpolation --- */

/* DOUBLED writes each of the weights n .. n + 7 twice, for the real and the imaginary part of a
 * value. interpolate computes sum_i x[i] (low[i] + part (high[i] - low[i])), i = 0 .. 15, as 8
 * partial sums. */
#define DOUBLED(w, n)                                                                              \
    __builtin_shufflevector(w, w, n, n, n + 1, n + 1, n + 2, n + 2, n + 3, n + 3, n + 4, n + 4,    \
                            n + 5, n + 5, n + 6, n + 6, n + 7, n + 7)

INLINE void interpolate(const float *low, const float *high, float part, const value *x, wide *out)
{
    const wide l = *(const wide *)low, w = l + part * (*(const wide *)high - l);
    const wide *at = (const wide *)x;

    *out = at[0] * DOUBLED(w, 0) + at[1] * DOUBLED(w, 8);
}

/* Adds each pair of neighbouring complex values: first the pairs of a, then the pairs of b. */
INLINE void add_pairs(const wide *a, const wide *b, wide *out)
{
    *out =
        __builtin_shufflevector(*a, *b, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
        __builtin_shufflevector(*a, *b, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
}

enum { PLACES = 64 };

/* Interpolates n samples at their places. n is a multiple of 8. d: the doubled look. */
PNR_MULTIVERSION static void stretch_block(const pnr_cpu *cpu, const pnr_stretch_place *places,
                                           size_t n, const value *d, value *out)
{
    for (size_t i = 0; i < n; i += 8) {
        wide sum[8];

        for (size_t j = 0; j < 8; j++) {
            const pnr_stretch_place *at = &places[i + j];

            interpolate(cpu->kernel[at->row], cpu->kernel[at->row + 1], at->part, d + at->first,
                        &sum[j]);
        }
        for (size_t half = 4; half > 0; half /= 2)
            for (size_t j = 0; j < half; j++)
                add_pairs(&sum[2 * j], &sum[2 * j + 1], &sum[j]);
        *(wide *)(out + i) = sum[0];
    }
}

PNR_MULTIVERSION static void stretch_samples(const pnr_cpu *cpu, double stretch, size_t first,
                                             const value *d, value *out)
{
    const size_t n_look = cpu->plan->n_periods * cpu->plan->n_samples;
    pnr_stretch_place places[PLACES];

    for (size_t i = 0; i < cpu->window; i += PLACES) {
        const size_t left = (cpu->window - i + 7) / 8 * 8, n = left < PLACES ? left : PLACES;

        for (size_t j = 0; j < n; j++)
            places[j] = pnr_stretch_at(stretch, n_look, first + i + j);
        stretch_block(cpu, places, n, d, out + i);
    }
}

static void stretch_window(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const size_t n_periods = cpu->plan->n_periods, n = cpu->plan->n_samples;
    const size_t look = task / n_periods, p = task % n_periods;
    const value *d = (const value *)(doubled_look(s, look) + 2 * cpu->doubling.margin);
    value *out = s->my->stretched + task * cpu->x_pitch;

    (void)worker;
    if (!pnr_cpu_is_used(s, s->first_look + look))
        return;
    if (!s->my->windows[s->first_look * n_periods + task].is_used) {
        memset(out, 0, cpu->window * sizeof *out);
        return;
    }
    stretch_samples(cpu, s->stretch, p * n, d, out);
}

void pnr_cpu_stretch(pnr_cpu_step *s, double stretch)
{
    s->stretch = stretch;
    pnr_cpu_do(s, stretch_window, s->n_looks * s->cpu->plan->n_periods);
}
