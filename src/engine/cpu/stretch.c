/* SPDX-License-Identifier: MIT */
/* Reads a look with another time scale on the cpu engine. */
#include "engine/cpu/steps.h"

#include "base/multiversion.h"

#include <string.h>

typedef pnr_cpu_value value;
typedef pnr_cpu_wide wide;

#define INLINE static inline __attribute__((always_inline))

/* Copies n samples of a look from index `from` on. Each sample is read from the window whose first
 * N samples contain it. Samples after the last period are read from the last window. Samples
 * outside the look are 0. */
static void copy_samples(const pnr_cpu *cpu, const value *x, int64_t from, size_t n, value *line)
{
    const int64_t period = (int64_t)cpu->plan->n_samples;
    const int64_t last = (int64_t)cpu->plan->n_periods - 1;
    const int64_t end = last * period + (int64_t)cpu->window;

    for (size_t done = 0; done < n;) {
        const int64_t at = from + (int64_t)done;
        int64_t p = at / period, count;

        if (at < 0 || at >= end) {
            count = at < 0 ? -at : (int64_t)(n - done);
            if (count > (int64_t)(n - done))
                count = (int64_t)(n - done);
            memset(line + done, 0, (size_t)count * sizeof *line);
        } else {
            p = p < last ? p : last;
            count = (p < last ? (p + 1) * period : end) - at;
            if (count > (int64_t)(n - done))
                count = (int64_t)(n - done);
            memcpy(line + done, x + p * (int64_t)cpu->x_pitch + (at - p * period),
                   (size_t)count * sizeof *line);
        }
        done += (size_t)count;
    }
}

/* DOUBLED repeats weights n .. n + 7, because each one serves the two parts of a complex value.
 * interpolate computes sum_i x[i] (low[i] + part (high[i] - low[i])) of 32 taps, as 8 partial
 * sums. */
#define DOUBLED(w, n)                                                                              \
    __builtin_shufflevector(w, w, n, n, n + 1, n + 1, n + 2, n + 2, n + 3, n + 3, n + 4, n + 4,    \
                            n + 5, n + 5, n + 6, n + 6, n + 7, n + 7)

INLINE void interpolate(const float *low, const float *high, float part, const value *x, wide *out)
{
    wide sum = {0};

    for (int half = 0; half < 2; half++) {
        const wide l = *(const wide *)(low + (ptrdiff_t)half * 16);
        const wide w = l + part * (*(const wide *)(high + (ptrdiff_t)half * 16) - l);
        const wide *at = (const wide *)(x + (ptrdiff_t)half * 16);

        sum += at[0] * DOUBLED(w, 0) + at[1] * DOUBLED(w, 8);
    }
    *out = sum;
}

/* Adds each pair of neighbouring complex values: those of a, then those of b. */
INLINE void add_pairs(const wide *a, const wide *b, wide *out)
{
    *out =
        __builtin_shufflevector(*a, *b, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
        __builtin_shufflevector(*a, *b, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
}

enum { PLACES = 64 };

/* Interpolates n samples at their places. n is a multiple of 8; line[0] is sample `from` of the
 * look. */
PNR_MULTIVERSION static void stretch_block(const pnr_cpu *cpu, const pnr_stretch_place *places,
                                           size_t n, const value *line, int64_t from, value *out)
{
    for (size_t i = 0; i < n; i += 8) {
        wide sum[8];

        for (size_t j = 0; j < 8; j++) {
            const pnr_stretch_place *at = &places[i + j];

            interpolate(cpu->kernel[at->row], cpu->kernel[at->row + 1], at->part,
                        line + (at->first - from), &sum[j]);
        }
        for (size_t half = 4; half > 0; half /= 2)
            for (size_t j = 0; j < half; j++)
                add_pairs(&sum[2 * j], &sum[2 * j + 1], &sum[j]);
        *(wide *)(out + i) = sum[0];
    }
}

PNR_MULTIVERSION static void stretch_samples(const pnr_cpu *cpu, double stretch, size_t first,
                                             const value *line, value *out)
{
    const size_t n_look = cpu->plan->n_periods * cpu->plan->n_samples;
    const int64_t from = pnr_stretch_at(stretch, n_look, first).first;
    pnr_stretch_place places[PLACES];

    for (size_t i = 0; i < cpu->window; i += PLACES) {
        const size_t left = (cpu->window - i + 7) / 8 * 8, n = left < PLACES ? left : PLACES;

        for (size_t j = 0; j < n; j++)
            places[j] = pnr_stretch_at(stretch, n_look, first + i + j);
        stretch_block(cpu, places, n, line, from, out + i);
    }
}

static void stretch_window(void *context, size_t task, size_t worker)
{
    const pnr_cpu_step *s = context;
    const pnr_cpu *cpu = s->cpu;
    const size_t n_periods = cpu->plan->n_periods, n = cpu->plan->n_samples;
    const size_t look = task / n_periods, p = task % n_periods;
    value *line = cpu->scratch[worker].line, *out = s->my->stretched + task * cpu->x_pitch;

    if (!pnr_cpu_is_used(s, s->first_look + look))
        return;
    if (!s->my->windows[s->first_look * n_periods + task].is_used) {
        memset(out, 0, cpu->window * sizeof *out);
        return;
    }
    copy_samples(cpu, (const value *)(s->my->x + look * n_periods * cpu->x_pitch),
                 pnr_stretch_at(s->stretch, n_periods * n, p * n).first, cpu->line, line);
    stretch_samples(cpu, s->stretch, p * n, (const value *)line, out);
}

void pnr_cpu_stretch(pnr_cpu_step *s, double stretch)
{
    s->stretch = stretch;
    pnr_cpu_do(s, stretch_window, s->n_looks * s->cpu->plan->n_periods);
}
