/* SPDX-License-Identifier: MIT */
/* The cross-ambiguity of a code: the exact response at a lag to an echo with a Doppler. */
#include "estimate/ambiguity.h"

#include "base/complex.h"
#include "base/parallel.h"
#include "estimate/planar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMORY = 64 << 20, /* bytes for stored echoes; at least one echo is stored */
    ANSWERS = 512      /* places of stored answers; a power of 2 */
};

/* An echo that pnr_ambiguity_set has set: its code, its delay, and its samples. */
typedef struct held_echo {
    size_t code; /* SIZE_MAX: this entry is empty */
    double delay;
    size_t row;                /* sum of windows: the row of the map; SIZE_MAX: a single delay */
    double bins;               /* sum of windows: the frequency of the echo */
    uint64_t used;             /* number of the last use; a later use has a greater number */
    bool has_value, has_slope; /* `value`, `slope` are filled */
    pnr_planar value, slope;   /* [N] */
} held_echo;

/* chi of an echo, and its derivatives with respect to delay and e, at some lags of a code. */
typedef struct answer {
    size_t echo_code, code;
    double delay, e;
    long first;
    size_t n_lags;            /* 0: this entry is empty */
    bool has_slope, has_turn; /* by_delay, by_e are filled */
    double complex chi[PNR_AMBIGUITY_LAGS], by_delay[PNR_AMBIGUITY_LAGS], by_e[PNR_AMBIGUITY_LAGS];
} answer;

struct pnr_ambiguity {
    const pnr_setup *setup;
    size_t n;          /* N */
    held_echo *echoes; /* [n_echoes]; a new echo replaces the echo that was used longest ago */
    size_t n_echoes;
    uint64_t turn;
    held_echo *echo; /* the entry of the last pnr_ambiguity_set */
    pnr_planar code; /* [N] the code with which the echo is correlated */
    size_t code_held;
    bool is_real;         /* this code has no imaginary part */
    pnr_planar turned;    /* [N + PNR_AMBIGUITY_LAGS + PNR_PLANAR_GUARD] the echo rotated by e */
    double complex *work; /* [2 N] */
    double complex *sum;  /* [N] the sum that pnr_ambiguity_add computes */
    float *memory;
    answer answers[ANSWERS];
};

/* Returns n samples of the memory from *next on, and advances *next by n samples. */
static pnr_planar take_planar(float **next, size_t n)
{
    const pnr_planar out = {*next, *next + n};

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
    const size_t n = setup->plan.n_samples, longest = n + PNR_AMBIGUITY_LAGS + PNR_PLANAR_GUARD;
    const size_t most = MEMORY / (4 * n * sizeof(float));
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
    ambiguity->sum = malloc(n * sizeof *ambiguity->sum);
    ambiguity->memory = malloc(2 * ((2 * ambiguity->n_echoes + 1) * n + longest) * sizeof(float));
    if (!ambiguity->echoes || !ambiguity->work || !ambiguity->sum || !ambiguity->memory)
        goto fail;

    float *next = ambiguity->memory;

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
    free(ambiguity->sum);
    free(ambiguity->memory);
    free(ambiguity);
}

/* Selects the stored echo with these values and returns false. If no stored echo has these values,
 * replaces the echo that was used longest ago, and returns true. */
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
    ambiguity->echo->has_value = ambiguity->echo->has_slope = false;
    return true;
}

void pnr_ambiguity_set(pnr_ambiguity *ambiguity, size_t code, double delay)
{
    (void)take_echo(ambiguity, code, delay, SIZE_MAX, 0);
}

bool pnr_ambiguity_set_sum(pnr_ambiguity *ambiguity, size_t code, double delay, size_t row,
                           double bins)
{
    if (!take_echo(ambiguity, code, delay, row, bins))
        return false;
    memset(ambiguity->sum, 0, ambiguity->n * sizeof *ambiguity->sum);
    return true;
}

/* Returns the number of parts into which a window is divided. Within a part the walk is modelled to
 * first order. If the echo walks by at most 1/512 of a chip within a part, the second order is
 * below the rounding error of an engine. */
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

            ambiguity->sum[i] += sum * value[i - first] - late * slope[i - first];
        }
    }
}

static void hold_code(pnr_ambiguity *ambiguity, size_t code)
{
    const pnr_plan *plan = &ambiguity->setup->plan;

    if (ambiguity->code_held == code)
        return;
    ambiguity->code_held = code;
    pnr_planar_fill((const double complex *)plan->references +
                        code * plan->oversample * plan->n_samples,
                    ambiguity->n, &ambiguity->code);
    ambiguity->is_real = true;
    for (size_t i = 0; i < ambiguity->n && ambiguity->is_real; i++)
        ambiguity->is_real = fabsf(ambiguity->code.im[i]) < 1e-14F;
}

/* Correlates samples of the echo, rotated by e, with the code. */
static void correlate(pnr_ambiguity *ambiguity, const pnr_planar *x, double e, long first,
                      size_t n_lags, double sign, bool by_e, double complex *out)
{
    const double energy = pnr_waveform_energy(ambiguity->setup->codes[0].waveform);

    pnr_planar_rotate(x, (long)ambiguity->n, e, first, ambiguity->n + n_lags - 1,
                      ambiguity->setup->plan.linear, by_e, &ambiguity->turned);
    pnr_planar_correlate(&ambiguity->turned, &ambiguity->code, ambiguity->n, n_lags, sign / energy,
                         ambiguity->is_real, out);
}

/* Fills echo->value, and echo->slope if with_slope is set, unless they are filled. */
static void fill_echo(pnr_ambiguity *ambiguity, bool with_slope)
{
    held_echo *echo = ambiguity->echo;
    const pnr_waveform *waveform = ambiguity->setup->codes[echo->code].waveform;

    if (!echo->has_value && echo->row == SIZE_MAX)
        pnr_waveform_delay(waveform, echo->delay, ambiguity->work, NULL);
    if (!echo->has_value)
        pnr_planar_fill(echo->row == SIZE_MAX ? ambiguity->work : ambiguity->sum, ambiguity->n,
                        &echo->value);
    echo->has_value = true;
    if (!with_slope || echo->has_slope)
        return;
    pnr_waveform_delay(waveform, echo->delay, NULL, ambiguity->work);
    pnr_planar_fill(ambiguity->work, ambiguity->n, &echo->slope);
    echo->has_slope = true;
}

/* Returns the place of an answer. Another question may have the same place; the later answer
 * replaces the earlier one. */
static answer *place_of(pnr_ambiguity *ambiguity, const answer *asked)
{
    uint64_t bits[2];

    memcpy(&bits[0], &asked->delay, sizeof bits[0]);
    memcpy(&bits[1], &asked->e, sizeof bits[1]);

    const uint64_t mixed = (bits[0] * 3 + bits[1] * 5 + (uint64_t)asked->first * 7 + asked->code) *
                           0x9E3779B97F4A7C15U;

    return &ambiguity->answers[mixed >> 32 & (ANSWERS - 1)];
}

/* True if an answer has the parameters of `asked`. All parameters must be equal, so that the bits
 * of a result do not depend on earlier calls. */
static bool is_answer(const answer *a, const answer *asked)
{
    return a->delay == asked->delay && a->e == asked->e && a->first == asked->first &&
           a->n_lags == asked->n_lags && a->code == asked->code &&
           a->echo_code == asked->echo_code && (a->has_slope || !asked->has_slope) &&
           (a->has_turn || !asked->has_turn);
}

void pnr_ambiguity_at(pnr_ambiguity *ambiguity, size_t code, double e, long first, size_t n_lags,
                      double complex *chi, double complex *by_delay, double complex *by_e)
{
    const held_echo *echo = ambiguity->echo;
    answer asked = {.echo_code = echo->code,
                    .code = code,
                    .delay = echo->delay,
                    .e = e,
                    .first = first,
                    .n_lags = n_lags,
                    .has_slope = by_delay != NULL,
                    .has_turn = by_e != NULL};
    answer *found = place_of(ambiguity, &asked);

    if (echo->row != SIZE_MAX || !is_answer(found, &asked)) {
        hold_code(ambiguity, code);
        fill_echo(ambiguity, by_delay != NULL);
        correlate(ambiguity, &echo->value, e, first, n_lags, 1, false, asked.chi);
        if (by_delay != NULL)
            correlate(ambiguity, &echo->slope, e, first, n_lags, -1, false, asked.by_delay);
        if (by_e != NULL)
            correlate(ambiguity, &echo->value, e, first, n_lags, 1, true, asked.by_e);
        if (echo->row != SIZE_MAX)
            found = &asked;
        else
            *found = asked;
    }
    memcpy(chi, found->chi, n_lags * sizeof *chi);
    if (by_delay != NULL)
        memcpy(by_delay, found->by_delay, n_lags * sizeof *by_delay);
    if (by_e != NULL)
        memcpy(by_e, found->by_e, n_lags * sizeof *by_e);
}
