/* SPDX-License-Identifier: MIT */
/* The cross-ambiguity of a code: the exact response at a lag to an echo with a Doppler. */
#include "estimate/ambiguity.h"

#include "base/complex.h"
#include "base/multiversion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 8,  /* samples in one vector */
    STRIDE = 64 /* samples between two phases that sin and cos give; products give the others */
};

typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8)));

/* n samples, planar. */
typedef struct planar {
    double *re, *im;
} planar;

struct pnr_ambiguity {
    const pnr_setup *setup;
    size_t n;            /* N */
    size_t code_of_echo; /* SIZE_MAX: no echo is set */
    double delay;
    bool has_slope;
    double complex *value, *slope; /* [N] the echo's waveform, its slope */
    planar code;                   /* [N] b, the code of the correlation */
    size_t code_held;
    planar phase, turned; /* [N + PNR_AMBIGUITY_LAGS - 1] the rotation by e; the rotated echo */
    double *memory;
};

int pnr_ambiguity_create(const pnr_setup *setup, pnr_ambiguity **out)
{
    const size_t n = setup->plan.n_samples, longest = n + PNR_AMBIGUITY_LAGS - 1;
    pnr_ambiguity *ambiguity = calloc(1, sizeof *ambiguity);

    *out = NULL;
    if (ambiguity == NULL)
        return PNR_ENOMEMORY;
    for (size_t c = 0; c < setup->n_codes; c++)
        if (pnr_waveform_prepare(setup->codes[c].waveform) != PNR_OK)
            goto fail;
    ambiguity->setup = setup;
    ambiguity->n = n;
    ambiguity->code_of_echo = ambiguity->code_held = SIZE_MAX;
    ambiguity->value = malloc(n * sizeof *ambiguity->value);
    ambiguity->slope = malloc(n * sizeof *ambiguity->slope);
    ambiguity->memory = malloc((2 * n + 4 * longest) * sizeof(double));
    if (!ambiguity->value || !ambiguity->slope || !ambiguity->memory)
        goto fail;
    ambiguity->code = (planar){ambiguity->memory, ambiguity->memory + n};
    ambiguity->turned = (planar){ambiguity->memory + 2 * n, ambiguity->memory + 2 * n + longest};
    ambiguity->phase =
        (planar){ambiguity->turned.re + 2 * longest, ambiguity->turned.re + 3 * longest};
    *out = ambiguity;
    return PNR_OK;
fail:
    pnr_ambiguity_destroy(ambiguity);
    return PNR_ENOMEMORY;
}

void pnr_ambiguity_destroy(pnr_ambiguity *ambiguity)
{
    if (ambiguity == NULL)
        return;
    free(ambiguity->value);
    free(ambiguity->slope);
    free(ambiguity->memory);
    free(ambiguity);
}

void pnr_ambiguity_set(pnr_ambiguity *ambiguity, size_t code, double delay)
{
    if (ambiguity->code_of_echo == code && ambiguity->delay == delay)
        return;
    ambiguity->code_of_echo = code;
    ambiguity->delay = delay;
    ambiguity->has_slope = false;
    pnr_waveform_delay(ambiguity->setup->codes[code].waveform, delay, ambiguity->value, NULL);
}

static void hold_code(pnr_ambiguity *ambiguity, size_t code)
{
    const pnr_plan *plan = &ambiguity->setup->plan;
    const double(*a)[2] = plan->references + code * plan->oversample * plan->n_samples;

    if (ambiguity->code_held == code)
        return;
    ambiguity->code_held = code;
    for (size_t i = 0; i < ambiguity->n; i++) {
        ambiguity->code.re[i] = a[i][0];
        ambiguity->code.im[i] = a[i][1];
    }
}

static double time_of(const pnr_ambiguity *ambiguity, long i)
{
    const long n = (long)ambiguity->n, in_window = i % n + (i % n < 0 ? n : 0);

    return (double)(ambiguity->setup->plan.linear ? i : in_window) - (double)(n - 1) / 2;
}

/* phase[j] = exp(2 pi i e (i - (N - 1)/2) / N) for `count` samples from i = first. A cyclic
 * correlation takes i mod N; in a linear one i continues. */
static void fill_phase(pnr_ambiguity *ambiguity, double e, long first, size_t count)
{
    const double step = e / (double)ambiguity->n;
    const double complex turn = pnr_cis(2 * M_PI * step);
    double complex phase = 0;
    double last = 0;
    int fresh = 0;

    for (size_t j = 0; j < count; j++) {
        const double time = time_of(ambiguity, first + (long)j);

        if (fresh == 0 || time < last) { /* the phase jumps at the end of a cyclic window */
            phase = pnr_cis(2 * M_PI * remainder(step * time, 1));
            fresh = STRIDE;
        }
        ambiguity->phase.re[j] = creal(phase);
        ambiguity->phase.im[j] = cimag(phase);
        phase *= turn;
        last = time;
        fresh--;
    }
}

/* turned[j] = x[i mod N] phase[j], i = first + j */
static void rotate_samples(pnr_ambiguity *ambiguity, const double complex *x, long first,
                           size_t count)
{
    const long n = (long)ambiguity->n;
    size_t at = (size_t)(first % n + (first % n < 0 ? n : 0));
    double *re = ambiguity->turned.re, *im = ambiguity->turned.im;

    for (size_t j = 0; j < count;) {
        const size_t piece = count - j < (size_t)n - at ? count - j : (size_t)n - at;

        for (size_t k = 0; k < piece; k++) {
            const double complex turned =
                x[at + k] * CMPLX(ambiguity->phase.re[j + k], ambiguity->phase.im[j + k]);

            re[j + k] = creal(turned);
            im[j + k] = cimag(turned);
        }
        j += piece;
        at = 0;
    }
}

/* turned[j] *= 2 pi i (i - (N - 1)/2) / N, the derivative with respect to e */
static void turn_by_e(pnr_ambiguity *ambiguity, long first, size_t count)
{
    double *re = ambiguity->turned.re, *im = ambiguity->turned.im;

    for (size_t j = 0; j < count; j++) {
        const double factor = 2 * M_PI * time_of(ambiguity, first + (long)j) / (double)ambiguity->n;
        const double keep = re[j];

        re[j] = -factor * im[j];
        im[j] = factor * keep;
    }
}

/* sum_i u[i + shift] conj(a[i]) */
PNR_MULTIVERSION static double complex correlate(const planar *u, size_t shift, const planar *a,
                                                 size_t n)
{
    const double *ur = u->re + shift, *ui = u->im + shift;
    lanes re = {0}, im = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        lanes xr, xi, yr, yi;

        memcpy(&xr, ur + i, sizeof xr);
        memcpy(&xi, ui + i, sizeof xi);
        memcpy(&yr, a->re + i, sizeof yr);
        memcpy(&yi, a->im + i, sizeof yi);
        re += xr * yr + xi * yi;
        im += xi * yr - xr * yi;
    }

    double complex sum =
        CMPLX(((re[0] + re[1]) + (re[2] + re[3])) + ((re[4] + re[5]) + (re[6] + re[7])),
              ((im[0] + im[1]) + (im[2] + im[3])) + ((im[4] + im[5]) + (im[6] + im[7])));

    for (; i < n; i++)
        sum += CMPLX(ur[i], ui[i]) * CMPLX(a->re[i], -a->im[i]);
    return sum;
}

static void correlate_all(pnr_ambiguity *ambiguity, size_t n_lags, double sign, double complex *out)
{
    const double energy = pnr_waveform_energy(ambiguity->setup->codes[0].waveform);

    for (size_t l = 0; l < n_lags; l++)
        out[l] = correlate(&ambiguity->turned, l, &ambiguity->code, ambiguity->n) * (sign / energy);
}

void pnr_ambiguity_at(pnr_ambiguity *ambiguity, size_t code, double e, long first, size_t n_lags,
                      double complex *chi, double complex *by_delay, double complex *by_e)
{
    const size_t count = ambiguity->n + n_lags - 1;

    hold_code(ambiguity, code);
    fill_phase(ambiguity, e, first, count);
    rotate_samples(ambiguity, ambiguity->value, first, count);
    correlate_all(ambiguity, n_lags, 1, chi);
    if (by_e != NULL) {
        turn_by_e(ambiguity, first, count);
        correlate_all(ambiguity, n_lags, 1, by_e);
    }
    if (by_delay != NULL) {
        if (!ambiguity->has_slope)
            pnr_waveform_delay(ambiguity->setup->codes[ambiguity->code_of_echo].waveform,
                               ambiguity->delay, NULL, ambiguity->slope);
        ambiguity->has_slope = true;
        rotate_samples(ambiguity, ambiguity->slope, first, count);
        correlate_all(ambiguity, n_lags, -1, by_delay);
    }
}
