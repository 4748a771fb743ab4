/* SPDX-License-Identifier: MIT */
/* The cross-ambiguity of a code: the exact response at a lag to an echo with a Doppler. */
#include "estimate/ambiguity.h"

#include "base/complex.h"
#include "base/multiversion.h"
#include "base/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 8,        /* samples in one vector */
    STRIDE = 64,      /* samples for each call of sin and cos; the phases between two calls are
                       * products */
    MEMORY = 64 << 20 /* bytes for stored echoes; at least one echo is stored */
};

typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8)));

/* Samples with the real and the imaginary parts in separate arrays. */
typedef struct planar {
    double *re, *im;
} planar;

/* An echo that pnr_ambiguity_set has set: its code, its delay, and its samples. */
typedef struct held_echo {
    size_t code; /* SIZE_MAX: this entry is empty */
    double delay;
    size_t row;          /* sum of windows: the row of the map; SIZE_MAX: a single delay */
    double bins;         /* sum of windows: the frequency of the echo */
    uint64_t used;       /* `turn` of pnr_ambiguity at the last use */
    bool has_slope;      /* slope is filled */
    planar value, slope; /* [N] */
} held_echo;

struct pnr_ambiguity {
    const pnr_setup *setup;
    size_t n;          /* N */
    held_echo *echoes; /* [n_echoes]; the echo unused for longest is replaced */
    size_t n_echoes;
    uint64_t turn;
    held_echo *echo; /* the entry of the last pnr_ambiguity_set */
    planar code;     /* [N] the code with which the echo is correlated */
    size_t code_held;
    bool is_real;         /* this code has no imaginary part */
    planar turned;        /* [N + PNR_AMBIGUITY_LAGS + LANES] the echo rotated by e */
    double complex *work; /* [2 N] */
    double *memory;
};

/* Returns the next n samples of the memory, and moves *next behind these samples. */
static planar take_planar(double **next, size_t n)
{
    const planar out = {*next, *next + n};

    *next += 2 * n;
    return out;
}

/* Prepares the waveform of code c, if there is memory. */
static void prepare_code(void *context, size_t c, size_t thread)
{
    const pnr_setup *setup = context;

    (void)thread;
    (void)pnr_waveform_prepare(setup->codes[c].waveform);
}

/* Prepares the waveforms of all codes. Uses several threads if the codes are short. */
static int prepare_codes(const pnr_setup *setup)
{
    enum { LONG = 1 << 15 };
    const size_t n_codes = setup->n_codes;
    pnr_setup codes = *setup;
    int code = PNR_OK;

    pnr_parallel_run(n_codes, setup->plan.n_samples < LONG ? pnr_parallel_threads(n_codes) : 1,
                     prepare_code, &codes);
    /* This prepares only the waveforms that are not prepared yet. */
    for (size_t c = 0; c < n_codes && code == PNR_OK; c++)
        code = pnr_waveform_prepare(setup->codes[c].waveform);
    return code;
}

int pnr_ambiguity_create(const pnr_setup *setup, pnr_ambiguity **out)
{
    const size_t n = setup->plan.n_samples, longest = n + PNR_AMBIGUITY_LAGS + LANES;
    const size_t most = MEMORY / (4 * n * sizeof(double));
    pnr_ambiguity *ambiguity = calloc(1, sizeof *ambiguity);

    *out = NULL;
    if (ambiguity == NULL)
        return PNR_ENOMEMORY;
    if (prepare_codes(setup) != PNR_OK)
        goto fail;
    ambiguity->setup = setup;
    ambiguity->n = n;
    ambiguity->code_held = SIZE_MAX;
    ambiguity->n_echoes = most < 1                    ? 1
                          : most < PNR_MAX_CANDIDATES ? most
                                                      : (size_t)PNR_MAX_CANDIDATES;
    ambiguity->echoes = calloc(ambiguity->n_echoes, sizeof *ambiguity->echoes);
    ambiguity->work = malloc(2 * n * sizeof *ambiguity->work);
    ambiguity->memory = malloc(2 * ((2 * ambiguity->n_echoes + 1) * n + longest) * sizeof(double));
    if (!ambiguity->echoes || !ambiguity->work || !ambiguity->memory)
        goto fail;

    double *next = ambiguity->memory;

    for (size_t i = 0; i < ambiguity->n_echoes; i++) {
        ambiguity->echoes[i].code = SIZE_MAX;
        ambiguity->echoes[i].value = take_planar(&next, n);
        ambiguity->echoes[i].slope = take_planar(&next, n);
    }
    ambiguity->code = take_planar(&next, n);
    ambiguity->turned = take_planar(&next, longest);
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
    free(ambiguity->echoes);
    free(ambiguity->work);
    free(ambiguity->memory);
    free(ambiguity);
}

static void lay_out(const double complex *x, size_t n, planar out)
{
    for (size_t i = 0; i < n; i++) {
        out.re[i] = creal(x[i]);
        out.im[i] = cimag(x[i]);
    }
}

/* Selects the stored echo with these values. If no stored echo has them, uses the memory of the
 * echo that was unused for longest, and returns true. */
static bool take_echo(pnr_ambiguity *ambiguity, size_t code, double delay, size_t row, double bins)
{
    held_echo *oldest = ambiguity->echoes, *echo = NULL;

    for (held_echo *e = ambiguity->echoes; e < ambiguity->echoes + ambiguity->n_echoes; e++) {
        if (e->code == code && e->delay == delay && e->row == row && e->bins == bins)
            echo = e;
        if (e->used < oldest->used)
            oldest = e;
    }

    const bool is_new = echo == NULL;

    ambiguity->echo = is_new ? oldest : echo;
    ambiguity->echo->used = ++ambiguity->turn;
    if (!is_new)
        return false;
    ambiguity->echo->code = code;
    ambiguity->echo->delay = delay;
    ambiguity->echo->row = row;
    ambiguity->echo->bins = bins;
    ambiguity->echo->has_slope = false;
    return true;
}

void pnr_ambiguity_set(pnr_ambiguity *ambiguity, size_t code, double delay)
{
    if (!take_echo(ambiguity, code, delay, SIZE_MAX, 0))
        return;
    pnr_waveform_delay(ambiguity->setup->codes[code].waveform, delay, ambiguity->work, NULL);
    lay_out(ambiguity->work, ambiguity->n, ambiguity->echo->value);
}

bool pnr_ambiguity_set_sum(pnr_ambiguity *ambiguity, size_t code, double delay, size_t row,
                           double bins)
{
    if (!take_echo(ambiguity, code, delay, row, bins))
        return false;
    memset(ambiguity->echo->value.re, 0, ambiguity->n * sizeof(double));
    memset(ambiguity->echo->value.im, 0, ambiguity->n * sizeof(double));
    return true;
}

/* Returns the number of parts of a window. Within a part the walk is modelled to first order. If a
 * part walks by at most a 512th of a chip, the second order is below the rounding of an engine. */
static size_t parts_of(const pnr_setup *setup, double walk)
{
    enum { FEWEST_SAMPLES = 16 };
    const pnr_radar *radar = &setup->radar;
    const double chip = (double)radar->n_samples / (double)radar->n_chips;
    const double most = (double)(radar->n_samples / FEWEST_SAMPLES);

    return setup->plan.linear ? 1 : 1 + (size_t)fmin(512 * fabs(walk) / chip, most);
}

void pnr_ambiguity_add(pnr_ambiguity *ambiguity, double delay, double complex sum,
                       double complex by_delay, double walk)
{
    const held_echo *echo = ambiguity->echo;
    const pnr_waveform *waveform = ambiguity->setup->codes[echo->code].waveform;
    const size_t n = ambiguity->n, n_parts = parts_of(ambiguity->setup, walk);
    const double a_sample = ambiguity->setup->plan.linear ? 0 : walk / (double)n;
    double complex *value = ambiguity->work, *slope = value + n;

    for (size_t part = 0; part < n_parts; part++) {
        const size_t first = part * n / n_parts, end = (part + 1) * n / n_parts;
        const double middle = (double)(first + end - 1) / 2;
        const double of_part = delay + a_sample * (middle - (double)(n - 1) / 2);

        pnr_waveform_run(waveform, (double)first - of_part, end - first, value, slope);
        for (size_t i = first; i < end; i++) {
            const double complex late = by_delay + sum * a_sample * ((double)i - middle);
            const double complex x = sum * value[i - first] - late * slope[i - first];

            echo->value.re[i] += creal(x);
            echo->value.im[i] += cimag(x);
        }
    }
}

static void hold_code(pnr_ambiguity *ambiguity, size_t code)
{
    const pnr_plan *plan = &ambiguity->setup->plan;

    if (ambiguity->code_held == code)
        return;
    ambiguity->code_held = code;
    lay_out((const double complex *)plan->references + code * plan->oversample * plan->n_samples,
            ambiguity->n, ambiguity->code);
    ambiguity->is_real = true;
    for (size_t i = 0; i < ambiguity->n && ambiguity->is_real; i++)
        ambiguity->is_real = fabs(ambiguity->code.im[i]) < 1e-14;
}

/* Rotates n <= STRIDE samples: out[k] = x[k] begin turn[k]. begin: the phase factor of x[0].
 * turn[k]: the rotation within k samples. */
static inline void rotate_stride(const double *xr, const double *xi, const planar *turn,
                                 double complex begin, size_t n, double *re, double *im)
{
    const double br = creal(begin), bi = cimag(begin);

    for (size_t k = 0; k < n; k++) {
        const double c = br * turn->re[k] - bi * turn->im[k];
        const double s = br * turn->im[k] + bi * turn->re[k];

        re[k] = xr[k] * c - xi[k] * s;
        im[k] = xr[k] * s + xi[k] * c;
    }
}

/* x[k] *= 2 pi i (time + k) / N, which makes x its derivative with respect to e. */
static inline void turn_by_e(double time, double per_sample, size_t n, double *re, double *im)
{
    for (size_t k = 0; k < n; k++) {
        const double factor = per_sample * (time + (double)k), keep = re[k];

        re[k] = -factor * im[k];
        im[k] = factor * keep;
    }
}

/*
 * Sets turned[j] = x[m mod N] exp(2 pi i e (m - (N - 1)/2) / N) with m = first + j. by_e: sets the
 * derivative of turned[j] with respect to e instead. In a cyclic correlation the phase, too, has m
 * mod N in place of m.
 */
PNR_MULTIVERSION static void rotate_samples(pnr_ambiguity *ambiguity, const planar *x, double e,
                                            long first, size_t count, bool by_e)
{
    const long n = (long)ambiguity->n;
    const double step = e / (double)n;
    const double complex one = pnr_cis(2 * M_PI * step);
    double turn_re[STRIDE], turn_im[STRIDE];
    const planar turn = {turn_re, turn_im};
    double complex phase = 1;
    size_t at = (size_t)(first % n + (first % n < 0 ? n : 0));

    for (int k = 0; k < STRIDE; k++, phase *= one) {
        turn_re[k] = creal(phase);
        turn_im[k] = cimag(phase);
    }
    for (size_t j = 0, piece; j < count; j += piece, at = (at + piece) % (size_t)n) {
        const double place = ambiguity->setup->plan.linear ? (double)(first + (long)j) : (double)at;
        const double time = place - (double)(n - 1) / 2;
        double *re = ambiguity->turned.re + j, *im = ambiguity->turned.im + j;

        piece = (size_t)n - at < STRIDE ? (size_t)n - at : STRIDE;
        piece = piece < count - j ? piece : count - j;
        rotate_stride(x->re + at, x->im + at, &turn,
                      pnr_cis(2 * M_PI * (step * time - rint(step * time))), piece, re, im);
        if (by_e)
            turn_by_e(time, 2 * M_PI / (double)n, piece, re, im);
    }
}

static inline double sum_lanes(const lanes *x)
{
    const lanes y = *x;

    return ((y[0] + y[1]) + (y[2] + y[3])) + ((y[4] + y[5]) + (y[6] + y[7]));
}

/* Fills out[l] = factor sum_i u[i + l] conj(a[i]) for l = 0 .. n_lags - 1, with several lags in one
 * pass over a. is_real: a has no imaginary part, so the sum needs half of the products. */
static inline __attribute__((always_inline)) void correlate_with(const planar *u, const planar *a,
                                                                 size_t n, size_t n_lags,
                                                                 double factor, bool is_real,
                                                                 double complex *out)
{
    enum { TOGETHER = 3 };

    for (size_t first = 0; first < n_lags; first += TOGETHER) {
        lanes re[TOGETHER] = {{0}}, im[TOGETHER] = {{0}};
        size_t i = 0;

        for (; i + LANES <= n; i += LANES) {
            lanes xr, xi, yr, yi;

            memcpy(&yr, a->re + i, sizeof yr);
            memcpy(&yi, a->im + i, sizeof yi);
            for (size_t l = 0; l < TOGETHER; l++) { /* the sums of lags >= n_lags are not used */
                memcpy(&xr, u->re + i + first + l, sizeof xr);
                memcpy(&xi, u->im + i + first + l, sizeof xi);
                re[l] += is_real ? xr * yr : xr * yr + xi * yi;
                im[l] += is_real ? xi * yr : xi * yr - xr * yi;
            }
        }
        for (size_t l = 0; l < TOGETHER && first + l < n_lags; l++) {
            double complex sum = CMPLX(sum_lanes(&re[l]), sum_lanes(&im[l]));

            for (size_t k = i; k < n; k++)
                sum +=
                    CMPLX(u->re[k + first + l], u->im[k + first + l]) * CMPLX(a->re[k], -a->im[k]);
            out[first + l] = sum * factor;
        }
    }
}

PNR_MULTIVERSION static void correlate(const planar *u, const planar *a, size_t n, size_t n_lags,
                                       double factor, bool is_real, double complex *out)
{
    if (is_real)
        correlate_with(u, a, n, n_lags, factor, true, out);
    else
        correlate_with(u, a, n, n_lags, factor, false, out);
}

static void correlate_all(pnr_ambiguity *ambiguity, size_t n_lags, double sign, double complex *out)
{
    const double energy = pnr_waveform_energy(ambiguity->setup->codes[0].waveform);

    correlate(&ambiguity->turned, &ambiguity->code, ambiguity->n, n_lags, sign / energy,
              ambiguity->is_real, out);
}

void pnr_ambiguity_at(pnr_ambiguity *ambiguity, size_t code, double e, long first, size_t n_lags,
                      double complex *chi, double complex *by_delay, double complex *by_e)
{
    const size_t count = ambiguity->n + n_lags - 1;
    held_echo *echo = ambiguity->echo;

    hold_code(ambiguity, code);
    rotate_samples(ambiguity, &echo->value, e, first, count, false);
    correlate_all(ambiguity, n_lags, 1, chi);
    if (by_e != NULL) {
        rotate_samples(ambiguity, &echo->value, e, first, count, true);
        correlate_all(ambiguity, n_lags, 1, by_e);
    }
    if (by_delay != NULL) {
        if (!echo->has_slope) {
            pnr_waveform_delay(ambiguity->setup->codes[echo->code].waveform, echo->delay, NULL,
                               ambiguity->work);
            lay_out(ambiguity->work, ambiguity->n, echo->slope);
        }
        echo->has_slope = true;
        rotate_samples(ambiguity, &echo->slope, e, first, count, false);
        correlate_all(ambiguity, n_lags, -1, by_delay);
    }
}
