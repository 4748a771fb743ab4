/* SPDX-License-Identifier: MIT */
/* Reads samples of a view: converts them, mixes them down by plan->tune, and subtracts echoes. */
#include "engine/cpu/read.h"

#include "base/multiversion.h"
#include "engine/plan.h"

#include <assert.h>
#include <math.h>

static void mark_samples(size_t n, float (*x)[2])
{
    for (size_t i = 0; i < n; i++)
        x[i][0] = x[i][1] = NAN;
}

/* Marks non-finite samples with NaN, because conversion has made them 0. */
static void mark_nonfinite(pnr_format format, const char *raw, size_t stride, size_t n,
                           float (*x)[2])
{
    for (size_t i = 0; i < n; i++) {
        double unused[2];

        if (pnr_format_read(format, raw + i * stride, unused) & PNR_SAMPLE_NONFINITE)
            mark_samples(1, x + i);
    }
}

static void mark_lost(const pnr_windows *windows, size_t first, size_t n, float (*x)[2])
{
    const pnr_lost_run *runs = windows->lost_runs;
    size_t low = 0, high = windows->n_lost_runs; /* binary search for the first run that ends after
                                                  * `first` */

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (runs[middle].first + runs[middle].count > first)
            high = middle;
        else
            low = middle + 1;
    }
    for (; low < windows->n_lost_runs && runs[low].first < first + n; low++) {
        const size_t from = runs[low].first > first ? runs[low].first - first : 0;
        const size_t end = runs[low].first + runs[low].count - first;

        mark_samples((end < n ? end : n) - from, x + from);
    }
}

PNR_MULTIVERSION static void clear_marks(size_t n, float (*x)[2])
{
    for (size_t i = 0; i < n; i++) {
        x[i][0] = x[i][0] == x[i][0] ? x[i][0] : 0;
        x[i][1] = x[i][1] == x[i][1] ? x[i][1] : 0;
    }
}

/* Returns the fractional part of `cycles` in units of 2^-64. */
static uint64_t fraction_of(double cycles)
{
    const double fraction = cycles - floor(cycles);

    return fraction < 1 ? (uint64_t)ldexp(fraction, 64) : 0;
}

/* x[k] -= peak replica[n mod N] exp(2 pi i F n / N), with n = at + k and F = removal->bins */
static void subtract_echo(const pnr_cpu_reading *reading, const pnr_removal *removal, size_t at,
                          size_t n, float (*x)[2])
{
    const size_t period = reading->plan->n_samples;
    const float re = (float)removal->peak[0], im = (float)removal->peak[1];
    const uint64_t step = -fraction_of(removal->bins / (double)period);
    float echo[PNR_CPU_READ_MOST][2];

    for (size_t i = 0, from = at % period; i < n; i++, from = from + 1 < period ? from + 1 : 0) {
        const float *a = removal->replica[from];

        echo[i][0] = a[0] * re - a[1] * im;
        echo[i][1] = a[0] * im + a[1] * re;
    }
    pnr_cpu_rotate(reading->rotation, step * at, step, n, echo);
    for (size_t i = 0; i < n; i++) {
        x[i][0] -= echo[i][0];
        x[i][1] -= echo[i][1];
    }
}

void pnr_cpu_convert_view(const pnr_cpu_reading *reading, size_t first, size_t n, float (*out)[2],
                          pnr_converted *counts)
{
    const pnr_plan *plan = reading->plan;
    const size_t stride = pnr_plan_sample_bytes(plan);
    const size_t offset = plan->first_channel * pnr_format_get(plan->format)->bytes;
    const bool is_marked = reading->keeps_marks || reading->n_removals > 0;

    assert(n <= PNR_CPU_READ_MOST);
    for (size_t done = 0; done < n;) {
        size_t count = n - done;
        const char *data = pnr_plan_locate(plan, reading->windows, first + done, &count);
        const uint64_t before = counts->n_nonfinite;

        pnr_cpu_convert(plan->format, data + offset, stride, count, plan->conjugate, out + done,
                        counts);
        if (is_marked && counts->n_nonfinite > before)
            mark_nonfinite(plan->format, data + offset, stride, count, out + done);
        done += count;
    }
    if (is_marked)
        mark_lost(reading->windows, first, n, out);
}

void pnr_cpu_tune(const pnr_cpu_reading *reading, size_t first, size_t n, float (*x)[2])
{
    const pnr_plan *plan = reading->plan;

    if (plan->tune.num != 0)
        pnr_cpu_rotate(reading->rotation,
                       pnr_rational_phase(plan->tune, reading->windows->first_sample + first),
                       pnr_rational_phase(plan->tune, 1), n, x);
}

void pnr_cpu_read(const pnr_cpu_reading *reading, size_t first, size_t n, float (*out)[2],
                  pnr_converted *counts)
{
    pnr_cpu_convert_view(reading, first, n, out, counts);
    pnr_cpu_tune(reading, first, n, out);
    for (size_t r = 0; r < reading->n_removals; r++)
        subtract_echo(reading, &reading->removals[r], first - reading->look, n, out);
    if (reading->n_removals > 0 && !reading->keeps_marks)
        clear_marks(n, out);
}
