/* SPDX-License-Identifier: MIT */
/* The reference engine: the correlation sum as it stands in the book, in double precision. */
#include "engine_reference.h"

#include "plan.h"
#include "search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Planar complex numbers, so that the compiler sees plain loops. */
typedef struct planar {
    double *re, *im;
} planar;

typedef struct slot {
    pnr_windows windows;
    uint32_t *lost; /* [batch * n_periods] */
    uint64_t tag;
} slot;

struct pnr_engine {
    pnr_plan *plan;
    double energy_of_code;
    planar code[2];  /* [n_samples] for each lag grid */
    planar window;   /* [2 n_samples]: one window twice, so that n + k needs no modulo */
    planar sum;      /* [n_samples]: the coherent sum of a dwell */
    planar *profile; /* [n_periods or 1][oversample] of [n_samples] */
    size_t n_rows;   /* profiles kept: n_periods for incoherent dwells, else 1 */
    float *power[2]; /* [n_samples] */
    slot slots[PNR_MAX_DEPTH];
    size_t first, in_flight;
    pnr_dwell *dwells;
    pnr_candidate *candidates;
    uint32_t *nonfinite;
    float *returned; /* want_profile */
};

static int probe(size_t device, char *text, size_t text_size)
{
    (void)device;
    snprintf(text, text_size, "N^2 operations a window: for tests and short codes");
    return PNR_OK;
}

static void *alloc_memory(size_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, bytes) != 0)
        return NULL;
    return memset(memory, 0, bytes);
}

static int describe(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error)
{
    const int code = pnr_plan_check(plan, "reference", error);

    if (code != PNR_OK)
        return code;
    if (pnr_plan_is_map(plan))
        return pnr_error_set(
            error, PNR_EUNSUPPORTED,
            "engine reference: maps of codes, Doppler, looks, gates or CFAR are not there yet");
    if (strcmp(plan->method, "auto") != 0 && strcmp(plan->method, "sum") != 0)
        return pnr_error_set(error, PNR_ECONFIG,
                             "engine.method = %s: the reference engine has only sum", plan->method);
    memset(choice, 0, sizeof *choice);
    snprintf(choice->method, sizeof choice->method, "sum");
    snprintf(choice->why, sizeof choice->why, "the definition itself, N^2 operations a window");
    choice->n_transform = plan->n_samples;
    choice->host_bytes = plan->n_samples * 16 * (plan->oversample * (plan->n_periods + 1) + 4);
    return PNR_OK;
}

static int planar_create(planar *p, size_t n)
{
    p->re = calloc(n, sizeof *p->re);
    p->im = calloc(n, sizeof *p->im);
    return p->re != NULL && p->im != NULL ? PNR_OK : PNR_ENOMEMORY;
}

static void planar_destroy(planar *p)
{
    free(p->re);
    free(p->im);
}

static void destroy(pnr_engine *engine)
{
    if (engine == NULL)
        return;
    for (size_t h = 0; h < 2; h++) {
        planar_destroy(&engine->code[h]);
        free(engine->power[h]);
    }
    planar_destroy(&engine->window);
    planar_destroy(&engine->sum);
    if (engine->profile != NULL)
        for (size_t i = 0; i < engine->n_rows * engine->plan->oversample; i++)
            planar_destroy(&engine->profile[i]);
    free(engine->profile);
    for (size_t i = 0; i < PNR_MAX_DEPTH; i++)
        free(engine->slots[i].lost);
    free(engine->dwells);
    free(engine->candidates);
    free(engine->nonfinite);
    free(engine->returned);
    free(engine->plan);
    free(engine);
}

static int create(const pnr_plan *plan, pnr_engine **out, pnr_error *error)
{
    pnr_engine_choice choice;
    const size_t n = plan->n_samples;
    int code;

    *out = NULL;
    if ((code = describe(plan, &choice, error)) != PNR_OK)
        return code;

    pnr_engine *engine = calloc(1, sizeof *engine);

    code = PNR_ENOMEMORY;
    if (engine == NULL || (engine->plan = pnr_plan_copy(plan)) == NULL)
        goto fail;
    engine->energy_of_code = pnr_plan_code_energy(plan);
    engine->n_rows = plan->dwell == PNR_DWELL_INCOHERENT ? plan->n_periods : 1;
    engine->profile = calloc(engine->n_rows * plan->oversample, sizeof *engine->profile);
    if (engine->profile == NULL || planar_create(&engine->window, 2 * n) != PNR_OK ||
        planar_create(&engine->sum, n) != PNR_OK)
        goto fail;
    for (size_t h = 0; h < plan->oversample; h++) {
        engine->power[h] = calloc(n, sizeof **engine->power);
        if (engine->power[h] == NULL || planar_create(&engine->code[h], n) != PNR_OK)
            goto fail;
        for (size_t i = 0; i < n; i++) {
            engine->code[h].re[i] = plan->references[h * n + i][0];
            engine->code[h].im[i] = plan->references[h * n + i][1];
        }
    }
    for (size_t i = 0; i < engine->n_rows * plan->oversample; i++)
        if (planar_create(&engine->profile[i], n) != PNR_OK)
            goto fail;
    for (size_t i = 0; i < plan->depth; i++)
        if ((engine->slots[i].lost = calloc(plan->batch * plan->n_periods, sizeof(uint32_t))) ==
            NULL)
            goto fail;
    engine->dwells = calloc(plan->batch, sizeof *engine->dwells);
    engine->candidates = calloc(plan->batch * plan->max_candidates, sizeof *engine->candidates);
    engine->nonfinite = calloc(plan->batch * plan->n_periods, sizeof *engine->nonfinite);
    if (engine->dwells == NULL || engine->candidates == NULL || engine->nonfinite == NULL)
        goto fail;
    if (plan->want_profile != PNR_WANT_NONE) {
        const size_t values = plan->want_profile == PNR_WANT_COMPLEX ? 2 : 1;

        engine->returned =
            calloc(plan->batch * n * plan->oversample * values, sizeof *engine->returned);
        if (engine->returned == NULL)
            goto fail;
    }
    *out = engine;
    return PNR_OK;
fail:
    if (engine != NULL && engine->plan == NULL) {
        free(engine);
        engine = NULL;
    }
    destroy(engine);
    return pnr_error_set(error, code, "engine reference: no memory for %zu samples a period", n);
}

static int submit(pnr_engine *engine, const pnr_job *job)
{
    const pnr_plan *plan = engine->plan;

    if (engine->in_flight == plan->depth)
        return PNR_EAGAIN;

    slot *s = &engine->slots[(engine->first + engine->in_flight) % plan->depth];
    uint32_t *lost = s->lost;

    s->windows = *job->windows;
    memcpy(lost, job->windows->lost, job->windows->n_dwells * plan->n_periods * sizeof *lost);
    s->windows.lost = lost;
    s->tag = job->tag;
    engine->in_flight++;
    return PNR_OK;
}

/* One window into engine->window[0..N-1]: full scale, conjugated, tuned. Returns its energy and the
 * number of non-finite samples; adds the clipped ones. */
static double read_window(pnr_engine *engine, const pnr_windows *windows, size_t first,
                          uint32_t *nonfinite, uint64_t *clipped)
{
    const pnr_plan *plan = engine->plan;
    const size_t stride = pnr_plan_sample_bytes(plan);
    const size_t offset = plan->first_channel * pnr_format_get(plan->format)->bytes;
    double energy = 0;

    *nonfinite = 0;
    for (size_t done = 0; done < plan->n_samples;) {
        size_t count = plan->n_samples - done;
        const char *data = pnr_plan_locate(plan, windows, first + done, &count);

        for (size_t i = 0; i < count; i++, done++) {
            double x[2];
            const unsigned flags = pnr_format_read(plan->format, data + i * stride + offset, x);

            *nonfinite += (flags & PNR_SAMPLE_NONFINITE) != 0;
            *clipped += (flags & PNR_SAMPLE_CLIPPED) != 0;
            if (plan->conjugate)
                x[1] = -x[1];
            energy += x[0] * x[0] + x[1] * x[1];
            if (plan->tune.num != 0) {
                /* x exp(-2 pi i frac(tune n)) */
                const uint64_t phase =
                    pnr_rational_phase(plan->tune, windows->first_sample + first + done);
                const double angle = -2 * M_PI * ldexp((double)(int64_t)phase, -64);
                const double c = cos(angle), s = sin(angle);
                const double re = x[0] * c - x[1] * s;

                x[1] = x[0] * s + x[1] * c;
                x[0] = re;
            }
            engine->window.re[done] = x[0];
            engine->window.im[done] = x[1];
        }
    }
    return energy;
}

/* c[k] = sum_n x[(n + k) mod N] conj(a[n]) */
static void correlate(const planar *x, const planar *a, size_t n_samples, planar *c)
{
    memset(c->re, 0, n_samples * sizeof *c->re);
    memset(c->im, 0, n_samples * sizeof *c->im);
    for (size_t first = 0; first < n_samples; first += 512) {
        const size_t count = n_samples - first < 512 ? n_samples - first : 512;
        double *restrict re = c->re + first, *restrict im = c->im + first;

        for (size_t n = 0; n < n_samples; n++) {
            const double ar = a->re[n], ai = a->im[n];
            const double *xr = x->re + n + first, *xi = x->im + n + first;

            for (size_t k = 0; k < count; k++) {
                re[k] += xr[k] * ar + xi[k] * ai;
                im[k] += xi[k] * ar - xr[k] * ai;
            }
        }
    }
}

static void correlate_row(pnr_engine *engine, planar *x, size_t row)
{
    const size_t n = engine->plan->n_samples;
    const size_t oversample = engine->plan->oversample;

    memcpy(x->re + n, x->re, n * sizeof *x->re);
    memcpy(x->im + n, x->im, n * sizeof *x->im);
    for (size_t h = 0; h < oversample; h++)
        correlate(x, &engine->code[h], n, &engine->profile[row * oversample + h]);
}

/* 17 values around a candidate; of an incoherent dwell sum over windows c[k + j] conj(c[k]) /
 * sqrt(P[k]). */
static void gather(const pnr_engine *engine, size_t rows, pnr_candidate *candidate)
{
    const pnr_plan *plan = engine->plan;
    const bool is_sum = plan->dwell == PNR_DWELL_INCOHERENT;
    const size_t centre = pnr_search_lag(plan, candidate->cell, 0);

    for (int j = -8; j <= 8; j++) {
        const size_t lag = pnr_search_lag(plan, candidate->cell, j);
        double re = 0, im = 0, power = 0;

        for (size_t r = 0; r < rows; r++) {
            const planar *c = &engine->profile[r * plan->oversample];
            const double cr = is_sum ? c->re[centre] : 1, ci = is_sum ? c->im[centre] : 0;

            re += c->re[lag] * cr + c->im[lag] * ci;
            im += c->im[lag] * cr - c->re[lag] * ci;
            power += cr * cr + ci * ci;
        }

        const double scale = is_sum && power > 0 ? 1 / sqrt(power) : 1;

        candidate->value[j + 8][0] = (float)(re * scale);
        candidate->value[j + 8][1] = (float)(im * scale);
    }
}

static void return_profile(pnr_engine *engine, size_t d, size_t rows)
{
    const pnr_plan *plan = engine->plan;
    const size_t n = plan->n_samples, oversample = plan->oversample;

    for (size_t cell = 0; cell < n * oversample; cell++) {
        const size_t h = cell % oversample, lag = cell / oversample;

        if (plan->want_profile == PNR_WANT_POWER) {
            engine->returned[d * n * oversample + cell] = engine->power[h][lag];
        } else {
            const planar *c = &engine->profile[(rows > 0 ? rows - 1 : 0) * oversample + h];
            float *out = &engine->returned[2 * (d * n * oversample + cell)];

            out[0] = rows > 0 ? (float)c->re[lag] : 0;
            out[1] = rows > 0 ? (float)c->im[lag] : 0;
        }
    }
}

static void process_dwell(pnr_engine *engine, const pnr_windows *windows, size_t d)
{
    const pnr_plan *plan = engine->plan;
    const size_t n = plan->n_samples;
    const bool is_sum = plan->dwell == PNR_DWELL_INCOHERENT;
    pnr_dwell *dwell = &engine->dwells[d];
    pnr_candidate *candidates = &engine->candidates[d * plan->max_candidates];
    size_t rows = 0;

    memset(dwell, 0, sizeof *dwell);
    memset(engine->sum.re, 0, n * sizeof *engine->sum.re);
    memset(engine->sum.im, 0, n * sizeof *engine->sum.im);
    for (size_t p = 0; p < plan->n_periods; p++) {
        const size_t w = d * plan->n_periods + p;
        uint32_t *nonfinite = &engine->nonfinite[w];
        const double energy = read_window(engine, windows, w * n, nonfinite, &dwell->n_clipped);

        dwell->n_nonfinite += *nonfinite;
        if ((size_t)windows->lost[w] + *nonfinite > n / 2)
            continue;
        dwell->n_periods++;
        dwell->n_valid += n - windows->lost[w] - *nonfinite;
        dwell->energy += energy;
        if (is_sum) {
            correlate_row(engine, &engine->window, rows++);
        } else {
            for (size_t i = 0; i < n; i++) {
                engine->sum.re[i] += engine->window.re[i];
                engine->sum.im[i] += engine->window.im[i];
            }
        }
    }
    if (!is_sum && dwell->n_periods > 0) {
        memcpy(engine->window.re, engine->sum.re, n * sizeof *engine->sum.re);
        memcpy(engine->window.im, engine->sum.im, n * sizeof *engine->sum.im);
        correlate_row(engine, &engine->window, rows++);
    }
    for (size_t h = 0; h < plan->oversample; h++)
        for (size_t k = 0; k < n; k++) {
            double power = 0;

            for (size_t r = 0; r < rows; r++) {
                const planar *c = &engine->profile[r * plan->oversample + h];

                power += c->re[k] * c->re[k] + c->im[k] * c->im[k];
            }
            engine->power[h][k] = (float)power;
        }

    const pnr_power power = {.lag = {engine->power[0], engine->power[1]},
                             .n_samples = n,
                             .oversample = plan->oversample};

    pnr_search_dwell(plan, engine->energy_of_code, &power, dwell, candidates);
    for (size_t i = 0; i < dwell->n_candidates; i++)
        gather(engine, rows, &candidates[i]);
    if (plan->want_profile != PNR_WANT_NONE)
        return_profile(engine, d, rows);
}

static int collect(pnr_engine *engine, bool wait, pnr_result *result)
{
    (void)wait; /* the work is done here, so the result is always ready */
    if (engine->in_flight == 0)
        return PNR_EAGAIN;

    const slot *s = &engine->slots[engine->first];

    for (size_t d = 0; d < s->windows.n_dwells; d++)
        process_dwell(engine, &s->windows, d);
    *result = (pnr_result){
        .tag = s->tag,
        .n_dwells = s->windows.n_dwells,
        .dwells = engine->dwells,
        .candidates = engine->candidates,
        .nonfinite = engine->nonfinite,
        .profile = engine->returned,
    };
    engine->first = (engine->first + 1) % engine->plan->depth;
    engine->in_flight--;
    return PNR_OK;
}

const pnr_engine_ops *pnr_engine_reference(void)
{
    static const pnr_engine_ops ops = {
        .abi = PNR_ENGINE_ABI,
        .name = "reference",
        .title = "the sum as in the book, double precision",
        .probe = probe,
        .alloc = alloc_memory,
        .free = free,
        .describe = describe,
        .create = create,
        .destroy = destroy,
        .submit = submit,
        .collect = collect,
    };

    return &ops;
}
