/* SPDX-License-Identifier: MIT */
/* The reference engine's conversion of samples, and the correlation sum. */
#include "engine/reference/state.h"

#include "base/format.h"
#include "base/multiversion.h"
#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256, /* lags of one block; their sums stay in the first-level cache */
    AT_ONCE = 4, /* samples for each load and store of a sum */
};

/* Subtracts peak replica[n mod N] exp(2 pi i F n / N) from each sample n of a look, except lost and
 * non-finite samples. `x` points to sample `first`. */
static void remove_echoes(const pnr_plan *plan, const pnr_slot_dwell *task, size_t first,
                          size_t n_samples, double complex *x, const unsigned char *flags)
{
    for (size_t i = 0; i < n_samples; i++) {
        const size_t n = first + i;

        if (flags[i] & (PNR_SAMPLE_NONFINITE | PNR_REFERENCE_LOST))
            continue;
        for (size_t r = 0; r < task->n_removals; r++) {
            const pnr_removal *echo = &task->removals[r];
            const float *replica = echo->replica[n % plan->n_samples];
            const double angle = 2 * M_PI * echo->bins * (double)n / (double)plan->n_samples;

            x[i] -= CMPLX(echo->peak[0], echo->peak[1]) * pnr_cis(angle) *
                    CMPLX(replica[0], replica[1]);
        }
    }
}

/* Marks the lost samples among the samples first .. first + n - 1 of a view. */
static void mark_lost(const pnr_windows *windows, size_t first, size_t n, unsigned char *flags)
{
    for (size_t r = 0; r < windows->n_lost_runs; r++) {
        const size_t from = windows->lost_runs[r].first, end = from + windows->lost_runs[r].count;

        for (size_t at = from > first ? from : first; at < end && at < first + n; at++)
            flags[at - first] |= PNR_REFERENCE_LOST;
    }
}

void pnr_reference_read(const pnr_engine *engine, const pnr_slot_dwell *task, size_t first,
                        size_t n_samples, double complex *out, unsigned char *flags)
{
    const pnr_plan *plan = engine->plan;
    const size_t stride = pnr_plan_sample_bytes(plan);
    const size_t offset = plan->first_channel * pnr_format_get(plan->format)->bytes;
    const size_t begin = task->number * pnr_plan_dwell_samples(plan) + first;

    for (size_t done = 0; done < n_samples;) {
        size_t count = n_samples - done;
        const char *data = pnr_plan_locate(plan, task->windows, begin + done, &count);

        for (size_t i = 0; i < count; i++, done++) {
            double iq[2];

            flags[done] =
                (unsigned char)pnr_format_read(plan->format, data + i * stride + offset, iq);
            out[done] = CMPLX(iq[0], plan->conjugate ? -iq[1] : iq[1]);
            if (plan->tune.num != 0) {
                /* x exp(-2 pi i frac(tune n)) */
                const uint64_t phase =
                    pnr_rational_phase(plan->tune, task->windows->first_sample + begin + done);

                out[done] *= pnr_cis(-2 * M_PI * ldexp((double)(int64_t)phase, -64));
            }
        }
    }
    mark_lost(task->windows, begin, n_samples, flags);
    if (task->n_removals > 0)
        remove_echoes(plan, task, first % (plan->n_periods * plan->n_samples), n_samples, out,
                      flags);
}

/* x conj(a) = x Re a - j x Im a. Both products have real factors, so all vector widths round them
 * alike. Each sum adds the samples in their order. */
PNR_MULTIVERSION
void pnr_reference_correlate(const double complex *x, const double complex *a, size_t n_samples,
                             size_t n_lags, size_t step, double complex *c)
{
    const size_t whole = n_samples - n_samples % AT_ONCE;

    for (size_t first = 0; first < n_lags; first += BLOCK) {
        const size_t count = n_lags - first < BLOCK ? n_lags - first : BLOCK;
        double by_re[2 * BLOCK] = {0}, by_im[2 * BLOCK] = {0}; /* [count][2] */

        for (size_t n = 0; n < whole; n += AT_ONCE) {
            const double *code = (const double *)(a + n), *from = (const double *)(x + n + first);

            for (size_t i = 0; i < 2 * count; i++) {
                by_re[i] = by_re[i] + from[i] * code[0] + from[i + 2] * code[2] +
                           from[i + 4] * code[4] + from[i + 6] * code[6];
                by_im[i] = by_im[i] + from[i] * code[1] + from[i + 2] * code[3] +
                           from[i + 4] * code[5] + from[i + 6] * code[7];
            }
        }
        for (size_t n = whole; n < n_samples; n++) {
            const double *from = (const double *)(x + n + first);

            for (size_t i = 0; i < 2 * count; i++) {
                by_re[i] += from[i] * creal(a[n]);
                by_im[i] += from[i] * cimag(a[n]);
            }
        }
        for (size_t k = 0; k < count; k++)
            c[(first + k) * step] =
                CMPLX(by_re[2 * k] + by_im[2 * k + 1], by_re[2 * k + 1] - by_im[2 * k]);
    }
}
