/* SPDX-License-Identifier: MIT */
/* Maps straight from the formulas of engine.h, in complex numbers, one dwell at a time: nothing is
 * shared with the engines but the conversion of a sample and the search. */
#ifndef PNR_MAP_NAIVE_H
#define PNR_MAP_NAIVE_H

#include "map_answer.h"
#include "search_map.h"

#include <complex.h>

typedef double complex naive_value;

typedef struct naive {
    const map_world *w;
    size_t dwell, n_rows, n_cells, n_look, looks; /* looks used */
    naive_value *raw, *mean, *own, *stretched;
    bool *is_there, *is_used;
    naive_value *c; /* [looks][n_codes][n_rows][n_cells] */
    pnr_dwell sums;
    uint32_t *nonfinite;
} naive;

static naive_value expi(double turns)
{
    return cexp(2 * M_PI * I * (turns - floor(turns)));
}

/* Sample i of the view. */
static naive_value naive_sample(const map_world *w, size_t i, unsigned *flags)
{
    const pnr_plan *p = &w->plan;
    const size_t bytes = pnr_format_get(p->format)->bytes;
    const uint64_t n = w->windows.first_sample + i;
    double x[2];

    *flags =
        pnr_format_read(p->format, w->samples + (i * p->n_channels + p->first_channel) * bytes, x);

    const naive_value value = x[0] + (p->conjugate ? -I : I) * x[1];
    __extension__ const __int128 cycles = (__int128)p->tune.num * (__int128)n;

    return value * expi(-(double)(int64_t)(cycles % p->tune.den) / (double)p->tune.den);
}

/* Reads a look; returns the used windows. */
static size_t naive_look(naive *m, size_t look)
{
    const map_world *w = m->w;
    const pnr_plan *p = &w->plan;
    const size_t n = p->n_samples,
                 first_window = m->dwell * pnr_plan_windows(p) + look * p->n_periods;
    size_t used = 0;

    for (size_t i = 0; i < p->n_periods; i++)
        m->nonfinite[look * p->n_periods + i] = 0;
    for (size_t i = 0; i < m->n_look; i++) {
        const size_t at = first_window * n + i;
        unsigned flags;

        m->raw[i] = naive_sample(w, at, &flags);
        m->is_there[i] = !w->is_lost[at] && !(flags & PNR_SAMPLE_NONFINITE);
        if (i >= p->n_periods * n)
            continue;
        m->nonfinite[look * p->n_periods + i / n] += (flags & PNR_SAMPLE_NONFINITE) != 0;
        m->sums.n_nonfinite += (flags & PNR_SAMPLE_NONFINITE) != 0;
        m->sums.n_clipped += (flags & PNR_SAMPLE_CLIPPED) != 0;
    }
    for (size_t i = 0; i < p->n_periods; i++) {
        const size_t bad = w->lost[first_window + i] + m->nonfinite[look * p->n_periods + i];

        m->is_used[i] = bad <= n / 2;
        used += m->is_used[i];
    }
    if (p->remove_mean && used == 1)
        used = 0;
    for (size_t i = 0; i < p->n_periods && used > 0; i++)
        if (m->is_used[i]) {
            m->sums.n_periods++;
            m->sums.n_valid +=
                n - w->lost[first_window + i] - m->nonfinite[look * p->n_periods + i];
        }
    return used;
}

static void naive_means(naive *m)
{
    const pnr_plan *p = &m->w->plan;

    for (size_t i = 0; i < pnr_plan_window_samples(p); i++) {
        naive_value sum = 0;
        size_t count = 0;

        for (size_t window = 0; window < p->n_periods; window++)
            if (m->is_used[window] && m->is_there[window * p->n_samples + i]) {
                sum += m->raw[window * p->n_samples + i];
                count++;
            }
        m->mean[i] = count > 0 ? sum / (double)count : 0;
    }
}

/* x_p[i] without its mean, not stretched. */
static naive_value naive_at(const naive *m, size_t window, size_t i)
{
    const size_t at = window * m->w->plan.n_samples + i;

    if (!m->w->plan.remove_mean)
        return m->raw[at];
    return m->is_there[at] ? m->raw[at] - m->mean[i] : 0;
}

static double naive_bessel(double x)
{
    double sum = 0;

    for (int k = 0; k < 64; k++) /* I0(x) = mean over t of exp(x cos t) */
        sum += exp(x * cos(2 * M_PI * k / 64.0));
    return sum / 64;
}

static double naive_kernel(double t)
{
    const double inside = 1 - t * t / 256;

    if (inside <= 0)
        return 0;
    return (fabs(t) < 1e-12 ? 1 : sin(M_PI * t) / (M_PI * t)) * naive_bessel(6 * sqrt(inside));
}

/* The look at m + (n - m) (1 + b), by a sinc of 32 samples within a Kaiser window. */
static void naive_stretch(naive *m, double b)
{
    const pnr_plan *p = &m->w->plan;
    const double middle = ((double)(p->n_periods * p->n_samples) - 1) / 2;

    for (size_t j = 0; j < m->n_look; j++) {
        const size_t window = j / p->n_samples < p->n_periods ? j / p->n_samples : p->n_periods - 1;

        m->own[j] = naive_at(m, window, j - window * p->n_samples);
    }
    for (size_t n = 0; n < m->n_look; n++) {
        const double t = middle + ((double)n - middle) * (1 + b);
        naive_value sum = 0;
        double weights = 0;

        for (long i = (long)floor(t) - 15; i <= (long)floor(t) + 16; i++) {
            const double weight = naive_kernel(t - (double)i);

            weights += weight;
            if (i >= 0 && i < (long)m->n_look)
                sum += weight * m->own[i];
        }
        m->stretched[n] = sum / weights;
    }
}

static naive_value *naive_row(const naive *m, size_t look, size_t code, size_t row)
{
    return m->c + ((look * m->w->plan.n_codes + code) * m->n_rows + row) * m->n_cells;
}

/* c of one row of one code: the sum over windows and samples, term by term. */
static void naive_correlate(const naive *m, size_t look, size_t code, size_t row,
                            const pnr_hypothesis *h, long s)
{
    const pnr_plan *p = &m->w->plan;
    const size_t n = p->n_samples, length = pnr_plan_window_samples(p);
    const double f = h->quarters / 4.0, F = f + (double)s / (double)p->n_periods;
    naive_value *c = naive_row(m, look, code, row);
    naive_value *z = calloc(length, sizeof *z), *filtered = calloc(m->n_cells, sizeof *filtered);

    assert_true(z != NULL && filtered != NULL);
    memset(c, 0, m->n_cells * sizeof *c);
    for (size_t window = 0; window < p->n_periods; window++) {
        if (!m->is_used[window])
            continue;
        for (size_t i = 0; i < length; i++)
            z[i] = (h->stretch != 0 ? m->stretched[window * n + i] : naive_at(m, window, i)) *
                   expi(-f * (double)i / (double)n) * expi(-F * (double)window) *
                   (p->taper != NULL ? p->taper[window] : 1);
        for (size_t cell = 0; cell < m->n_cells; cell++) {
            const size_t lag = cell / p->oversample, half = cell % p->oversample;
            const double(*a)[2] = p->references + (code * p->oversample + half) * n;

            for (size_t i = 0; i < n; i++)
                c[cell] += z[p->linear ? i + lag : (i + lag) % n] * (a[i][0] - I * a[i][1]);
        }
    }
    if (p->filter != NULL) {
        for (size_t k = 0; k < p->gate_count; k++)
            for (size_t j = 0; j < p->gate_count; j++) {
                const double *t = p->filter[k * p->gate_count + j];

                filtered[(p->gate_first + k) % p->n_lags] +=
                    (t[0] + I * t[1]) * c[(p->gate_first + j) % p->n_lags];
            }
        memcpy(c, filtered, m->n_cells * sizeof *c);
    }
    free(z);
    free(filtered);
}

static void naive_energy(naive *m, size_t used)
{
    const pnr_plan *p = &m->w->plan;
    const double energy_of_code = pnr_plan_code_energy(p);

    for (size_t window = 0; window < p->n_periods; window++) {
        const double taper = p->taper != NULL ? p->taper[window] : 1;
        double energy = 0;

        for (size_t i = 0; i < p->n_samples; i++)
            energy += pow(cabs(naive_at(m, window, i)), 2);
        if (!m->is_used[window])
            continue;
        if (p->remove_mean)
            energy *= (double)used / ((double)used - 1);
        m->sums.energy += energy;
        m->sums.floor += taper * taper * energy * energy_of_code / (double)p->n_samples;
    }
}

/* Sum over looks c conj(c0) / sqrt(P0); of a plan of one look c itself. */
static void naive_neighbour(const naive *m, const pnr_candidate *at, long row, long offset,
                            float out[2])
{
    const pnr_plan *p = &m->w->plan;
    const long n = (long)p->n_lags, centre = (long)(at->cell / p->oversample);
    const size_t lag = (size_t)((((centre + offset) % n) + n) % n) * p->oversample;
    naive_value sum = 0;
    double power = 0;

    for (size_t look = 0; look < m->looks; look++) {
        const naive_value c0 =
            naive_row(m, look, at->code, at->row)[(size_t)centre * p->oversample];
        const naive_value c = naive_row(m, look, at->code, (size_t)row)[lag];

        sum += p->n_looks > 1 ? c * conj(c0) : c;
        power += pow(cabs(c0), 2);
    }
    if (p->n_looks > 1 && power > 0)
        sum /= sqrt(power);
    out[0] = (float)creal(sum);
    out[1] = (float)cimag(sum);
}

/* Powers, search, neighbours, patches, profile: dwell m->dwell of out. */
static void naive_answer(naive *m, pnr_want want, map_answer *out)
{
    const pnr_plan *p = &m->w->plan;
    const size_t n_map = p->n_codes * m->n_rows * m->n_cells, d = m->dwell;
    pnr_candidate *candidates = out->candidates + d * p->max_candidates;
    float *power = calloc(n_map, sizeof *power), *profile = out->profile + d * out->n_values;

    assert_non_null(power);
    for (size_t i = 0; i < n_map; i++) {
        double sum = 0;

        for (size_t look = 0; look < m->looks; look++)
            sum += pow(cabs(m->c[look * n_map + i]), 2);
        power[i] = (float)sum;
        if (want == PNR_WANT_POWER)
            profile[i] = power[i];
        else
            for (int part = 0; part < 2; part++)
                profile[2 * i + (size_t)part] =
                    m->looks == 0 ? 0 : (float)((double *)&m->c[(m->looks - 1) * n_map + i])[part];
    }
    pnr_search_map(p, pnr_plan_code_energy(p), power, m->looks, NULL, &m->sums, candidates);
    for (size_t i = 0; i < m->sums.n_candidates; i++)
        for (long j = -8; j <= 8; j++) {
            naive_neighbour(m, &candidates[i], candidates[i].row, j, candidates[i].value[j + 8]);
            for (long r = -8; r <= 8 && out->patches != NULL; r++) {
                const long row = (long)candidates[i].row + r;
                float *patch = out->patches + (d * p->max_candidates + i) * out->n_patch;

                if (row >= 0 && row < (long)m->n_rows)
                    naive_neighbour(m, &candidates[i], row, j,
                                    patch + ((r + 8) * PNR_NEIGHBOURS + j + 8) * 2);
            }
        }
    out->dwells[d] = m->sums;
    memcpy(out->nonfinite + d * out->n_windows, m->nonfinite,
           out->n_windows * sizeof *m->nonfinite);
    free(power);
}

static void naive_dwell(naive *m, pnr_want want, map_answer *out)
{
    const pnr_plan *p = &m->w->plan;

    memset(&m->sums, 0, sizeof m->sums);
    m->looks = 0;
    for (size_t look = 0; look < p->n_looks; look++) {
        const size_t used = naive_look(m, look);
        size_t row = 0;

        if (used == 0)
            continue;
        naive_means(m);
        naive_energy(m, used);
        for (size_t h = 0; h < p->n_hypotheses; h++) {
            const pnr_hypothesis hypothesis = pnr_plan_hypothesis(p, h);

            if (hypothesis.stretch != 0)
                naive_stretch(m, hypothesis.stretch);
            for (size_t r = 0; r < hypothesis.n_rows; r++, row++)
                for (size_t code = 0; code < p->n_codes; code++)
                    naive_correlate(m, m->looks, code, row, &hypothesis,
                                    (long)hypothesis.first_bin + (long)r);
        }
        m->looks++;
    }
    naive_answer(m, want, out);
}

/* All dwells of a world. */
static void ask_naive(const map_world *w, pnr_want want, map_answer *out)
{
    const pnr_plan *p = &w->plan;
    const size_t n_dwells = w->windows.n_dwells;
    naive m = {.w = w, .n_rows = pnr_plan_rows(p), .n_cells = p->n_lags * p->oversample};

    m.n_look = (p->n_periods - 1) * p->n_samples + pnr_plan_window_samples(p);
    m.raw = calloc(4 * m.n_look, sizeof *m.raw);
    m.mean = m.raw + m.n_look;
    m.own = m.mean + m.n_look;
    m.stretched = m.own + m.n_look;
    m.is_there = calloc(m.n_look, sizeof *m.is_there);
    m.is_used = calloc(p->n_periods, sizeof *m.is_used);
    m.c = calloc(p->n_looks * p->n_codes * m.n_rows * m.n_cells, sizeof *m.c);
    m.nonfinite = calloc(pnr_plan_windows(p), sizeof *m.nonfinite);
    assert_true(m.raw && m.is_there && m.is_used && m.c && m.nonfinite);
    *out = (map_answer){
        .n_dwells = n_dwells,
        .max_candidates = p->max_candidates,
        .n_windows = pnr_plan_windows(p),
        .n_values = pnr_plan_cells(p) * (want == PNR_WANT_COMPLEX ? 2 : 1),
        .n_patch = m.n_rows > 1 ? PNR_NEIGHBOURS * PNR_NEIGHBOURS * 2 : 0,
    };
    out->dwells = calloc(n_dwells, sizeof *out->dwells);
    out->candidates = calloc(n_dwells * p->max_candidates, sizeof *out->candidates);
    out->nonfinite = calloc(n_dwells * out->n_windows, sizeof *out->nonfinite);
    out->profile = calloc(n_dwells * out->n_values, sizeof *out->profile);
    assert_true(out->dwells && out->candidates && out->nonfinite && out->profile);
    if (out->n_patch > 0)
        out->patches = calloc(n_dwells * p->max_candidates * out->n_patch, sizeof *out->patches);
    for (m.dwell = 0; m.dwell < n_dwells; m.dwell++)
        naive_dwell(&m, want, out);
    free(m.raw);
    free(m.is_there);
    free(m.is_used);
    free(m.c);
    free(m.nonfinite);
}

#endif
