/* SPDX-License-Identifier: MIT */
/* The reference engine's conversion of samples, and the correlation sum. */
#include "engine/reference/state.h"

#include "base/format.h"
#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int pnr_planar_create(pnr_planar *p, size_t n)
{
    p->re = calloc(n, sizeof *p->re);
    p->im = calloc(n, sizeof *p->im);
    return p->re != NULL && p->im != NULL ? PNR_OK : PNR_ENOMEMORY;
}

void pnr_planar_destroy(pnr_planar *p)
{
    free(p->re);
    free(p->im);
}

pnr_planar pnr_planar_at(pnr_planar p, size_t i)
{
    return (pnr_planar){p.re + i, p.im + i};
}

/* Subtracts peak replica[n mod N] exp(2 pi i F n / N) from samples n = first .. of a look. */
static void remove_echoes(const pnr_plan *plan, const pnr_reference_task *task, size_t first,
                          size_t n_samples, pnr_planar x, const unsigned char *flags)
{
    for (size_t i = 0; i < n_samples; i++) {
        const size_t n = first + i;

        if (flags[i] & (PNR_SAMPLE_NONFINITE | PNR_REFERENCE_LOST))
            continue;
        for (size_t r = 0; r < task->n_removals; r++) {
            const pnr_removal *echo = &task->removals[r];
            const float *replica = echo->replica[n % plan->n_samples];
            const double angle = 2 * M_PI * echo->bins * (double)n / (double)plan->n_samples;
            const double c = cos(angle), s = sin(angle);
            const double re = echo->peak[0] * c - echo->peak[1] * s;
            const double im = echo->peak[0] * s + echo->peak[1] * c;

            x.re[i] -= re * (double)replica[0] - im * (double)replica[1];
            x.im[i] -= re * (double)replica[1] + im * (double)replica[0];
        }
    }
}

void pnr_reference_read(const pnr_engine *engine, const pnr_reference_task *task, size_t first,
                        size_t n_samples, pnr_planar out, unsigned char *flags)
{
    const pnr_plan *plan = engine->plan;
    const size_t stride = pnr_plan_sample_bytes(plan);
    const size_t offset = plan->first_channel * pnr_format_get(plan->format)->bytes;
    const size_t begin = task->dwell * pnr_plan_dwell_samples(plan) + first;

    for (size_t done = 0; done < n_samples;) {
        size_t count = n_samples - done;
        const char *data = pnr_plan_locate(plan, task->windows, begin + done, &count);

        for (size_t i = 0; i < count; i++, done++) {
            double x[2];

            flags[done] =
                (unsigned char)pnr_format_read(plan->format, data + i * stride + offset, x);
            if (task->is_lost != NULL && task->is_lost[first + done])
                flags[done] |= PNR_REFERENCE_LOST;
            if (plan->conjugate)
                x[1] = -x[1];
            if (plan->tune.num != 0) {
                /* x exp(-2 pi i frac(tune n)) */
                const uint64_t phase =
                    pnr_rational_phase(plan->tune, task->windows->first_sample + begin + done);
                const double angle = -2 * M_PI * ldexp((double)(int64_t)phase, -64);
                const double c = cos(angle), s = sin(angle);
                const double re = x[0] * c - x[1] * s;

                x[1] = x[0] * s + x[1] * c;
                x[0] = re;
            }
            out.re[done] = x[0];
            out.im[done] = x[1];
        }
    }
    if (task->n_removals > 0)
        remove_echoes(plan, task, first % (plan->n_periods * plan->n_samples), n_samples, out,
                      flags);
}

void pnr_reference_correlate(pnr_planar x, pnr_planar a, size_t n_samples, size_t n_lags,
                             pnr_planar c)
{
    memset(c.re, 0, n_lags * sizeof *c.re);
    memset(c.im, 0, n_lags * sizeof *c.im);
    for (size_t first = 0; first < n_lags; first += 512) {
        const size_t count = n_lags - first < 512 ? n_lags - first : 512;
        double *restrict re = c.re + first, *restrict im = c.im + first;

        for (size_t n = 0; n < n_samples; n++) {
            const double ar = a.re[n], ai = a.im[n];
            const double *xr = x.re + n + first, *xi = x.im + n + first;

            for (size_t k = 0; k < count; k++) {
                re[k] += xr[k] * ar + xi[k] * ai;
                im[k] += xi[k] * ar - xr[k] * ai;
            }
        }
    }
}
