/* SPDX-License-Identifier: MIT */
/* Maps: sizes, and the tables that the kernels read. */
#include "cuda/map/map.h"

#include "cuda/base/resources.h"

extern "C" {
#include "engine/stretch.h"
}

#include <cmath>
#include <cstdlib>
#include <cstring>

/* --- the bases --- */

/* Hypotheses that share bases: their time scale is the same, and their rotations differ by whole
 * bins or not at all. */
typedef struct family {
    double stretch;
    int32_t quarters;
    uint32_t *base_of; /* [K] 1 + the base of slow-time bin s; 0: no base yet */
} family;

static int32_t quarters_of(const pnr_hypothesis *hypothesis, bool is_direct)
{
    return is_direct ? ((hypothesis->quarters % 4) + 4) % 4 : hypothesis->quarters;
}

static uint32_t wrap(int64_t value, size_t n)
{
    const int64_t rest = value % (int64_t)n;

    return (uint32_t)(rest < 0 ? rest + (int64_t)n : rest);
}

/* Adds the rows of one hypothesis, and numbers the bases that are new. */
static void add_rows(const pnr_plan *plan, const pnr_hypothesis *hypothesis, family *f,
                     pnr_map_plan *out)
{
    const uint32_t shift = wrap(((int64_t)hypothesis->quarters - f->quarters) / 4, plan->n_samples);

    for (uint32_t i = 0; i < hypothesis->n_rows; i++) {
        const uint32_t bin = wrap((int64_t)hypothesis->first_bin + i, plan->n_periods);

        if (f->base_of[bin] == 0) {
            out->quarters[out->n_bases] = f->quarters;
            out->bins[out->n_bases] = bin;
            f->base_of[bin] = ++out->n_bases;
        }
        out->rows[out->n_rows++] = {f->base_of[bin] - 1, shift};
    }
}

/* Adds all hypotheses of one time scale. Their bases are consecutive. */
static int add_stretch(const pnr_plan *plan, bool is_direct, double stretch, pnr_map_plan *out,
                       const size_t *first_row)
{
    family *families = (family *)calloc(plan->n_hypotheses, sizeof *families);
    pnr_map_stretch *own = &out->stretches[out->n_stretches++];
    size_t n = 0;
    int code = families != NULL ? PNR_OK : PNR_ENOMEMORY;

    *own = {stretch, out->n_bases, 0};
    for (size_t h = 0; h < plan->n_hypotheses && code == PNR_OK; h++) {
        const pnr_hypothesis hypothesis = pnr_plan_hypothesis(plan, h);
        const int32_t quarters = quarters_of(&hypothesis, is_direct);
        size_t f = is_direct ? 0 : n;

        if (hypothesis.stretch != stretch)
            continue;
        while (f < n && families[f].quarters != quarters)
            f++;
        if (f == n) {
            families[n++] = {stretch, quarters,
                             (uint32_t *)calloc(plan->n_periods, sizeof(uint32_t))};
            if (families[f].base_of == NULL)
                code = PNR_ENOMEMORY;
        }
        out->n_rows = (uint32_t)first_row[h];
        if (code == PNR_OK)
            add_rows(plan, &hypothesis, &families[f], out);
    }
    own->n_bases = out->n_bases - own->first_base;
    for (size_t f = 0; f < n; f++)
        free(families[f].base_of);
    free(families);
    return code;
}

int pnr_map_plan_create(const pnr_plan *plan, bool is_direct, pnr_map_plan *out, pnr_error *error)
{
    const size_t n_rows = pnr_plan_rows(plan);
    size_t *first_row = (size_t *)calloc(plan->n_hypotheses, sizeof *first_row);
    int code = PNR_OK;

    memset(out, 0, sizeof *out);
    out->rows = (pnr_map_row *)calloc(n_rows, sizeof *out->rows);
    out->quarters = (int32_t *)calloc(n_rows, sizeof *out->quarters);
    out->bins = (uint32_t *)calloc(n_rows, sizeof *out->bins);
    out->stretches = (pnr_map_stretch *)calloc(plan->n_hypotheses, sizeof *out->stretches);
    if (first_row == NULL || out->rows == NULL || out->quarters == NULL || out->bins == NULL ||
        out->stretches == NULL)
        code = PNR_ENOMEMORY;
    for (size_t h = 1; code == PNR_OK && h < plan->n_hypotheses; h++)
        first_row[h] = first_row[h - 1] + pnr_plan_hypothesis(plan, h - 1).n_rows;
    for (size_t h = 0; code == PNR_OK && h < plan->n_hypotheses; h++) {
        const double stretch = pnr_plan_hypothesis(plan, h).stretch;
        size_t s = 0;

        while (s < out->n_stretches && out->stretches[s].stretch != stretch)
            s++;
        if (s == out->n_stretches)
            code = add_stretch(plan, is_direct, stretch, out, first_row);
    }
    out->n_rows = (uint32_t)n_rows;
    free(first_row);
    if (code != PNR_OK) {
        pnr_map_plan_free(out);
        pnr_error_set(error, code, "engine cuda: no memory for %zu rows", n_rows);
    }
    return code;
}

void pnr_map_plan_free(pnr_map_plan *plan)
{
    free(plan->rows);
    free(plan->quarters);
    free(plan->bins);
    free(plan->stretches);
    memset(plan, 0, sizeof *plan);
}

/* --- sizes --- */

int pnr_map_suits(const pnr_plan *plan, const pnr_cuda_shape *shape, pnr_error *error)
{
    const bool is_plain = pnr_plan_is_plain(plan);
    const struct {
        double value, most;
        const char *text;
    } limits[] = {
        {(double)pnr_plan_cells(plan), 0x1p32 - 1, "cells of a map"},
        {(double)shape->n_transform, 0x1p28, "points of a transform"},
        {(double)plan->batch * (double)pnr_plan_windows(plan) * (double)plan->n_samples, 0x1p40,
         "samples of a submit"},
        {(double)pnr_plan_rows(plan), 0x1p19 - 8, "Doppler rows"},
        {(double)shape->dwell_lines, 0x1p31 - 1, "lines of a dwell"},
        {is_plain ? 0 : (double)plan->n_periods, 65535, "periods of a look"},
        {is_plain ? 0 : (double)plan->batch * (double)plan->n_looks, 65535, "looks of a submit"},
        {(double)(shape->n_windows + shape->n_tail_windows) * (double)shape->n_segments, 0x1p31 - 1,
         "segments of a submit's windows"},
    };

    for (const auto &limit : limits)
        if (!(limit.value <= limit.most))
            return pnr_error_set(error, PNR_EUNSUPPORTED, "engine cuda: %.0f %s; %.0f are possible",
                                 limit.value, limit.text, limit.most);
    return PNR_OK;
}

pnr_map pnr_map_of(const pnr_plan *plan, const pnr_cuda_shape *shape, const pnr_map_plan *tables,
                   uint32_t tile)
{
    pnr_map m = {};

    m.n_samples = (uint32_t)plan->n_samples;
    m.n_window = (uint32_t)pnr_plan_window_samples(plan);
    m.n_lags = (uint32_t)plan->n_lags;
    m.oversample = (uint32_t)plan->oversample;
    m.n_cells = m.n_lags * m.oversample;
    m.n_periods = (uint32_t)plan->n_periods;
    m.n_looks = (uint32_t)plan->n_looks;
    m.n_codes = (uint32_t)plan->n_codes;
    m.n_rows = tables->n_rows;
    m.n_bases = tables->n_bases;
    m.n_transform = (uint32_t)shape->n_transform;
    m.row_stride = (uint32_t)shape->row_stride;
    m.is_linear = plan->linear;
    m.is_filtered = plan->filter != NULL;
    m.has_mean = plan->remove_mean;
    m.margin = (uint32_t)pnr_stretch_margin(plan);
    m.band[0] = plan->band[0];
    m.band[1] = plan->band[1];
    if (m.margin > 0)
        m.n_doubling = (uint32_t)pnr_transform_fast_length((plan->n_periods - 1) * plan->n_samples +
                                                           m.n_window + 2 * (size_t)m.margin);
    m.gate_first = (uint32_t)plan->gate_first;
    m.gate_count = (uint32_t)plan->gate_count;
    m.exclusion_cells =
        (uint32_t)(plan->exclusion_cells < m.n_cells ? plan->exclusion_cells : m.n_cells);
    m.exclusion_rows =
        (uint32_t)(plan->exclusion_rows < m.n_rows ? plan->exclusion_rows : m.n_rows);
    m.max_candidates = (uint32_t)plan->max_candidates;
    m.has_outside = plan->has_outside;
    m.cfar_kind = plan->cfar.kind;
    m.cfar_axis = plan->cfar.axis;
    m.guard = (uint32_t)plan->cfar.guard;
    m.training = (uint32_t)plan->cfar.training;
    m.stride = (uint32_t)plan->cfar.stride;
    m.tile = tile < m.n_cells ? tile : m.n_cells;
    m.row_tiles = (m.n_cells + m.tile - 1) / m.tile;
    m.code_energy = pnr_plan_code_energy(plan);
    return m;
}

/* --- tables --- */

static size_t factors_of(const pnr_map *m)
{
    return m->cfar_kind != PNR_CFAR_OFF ? (size_t)m->n_looks * (m->training + 1) * (m->training + 1)
                                        : 0;
}

size_t pnr_map_list(pnr_map *m, pnr_cuda_buffer *list)
{
    const size_t taps = (PNR_STRETCH_STEPS + 1) * PNR_STRETCH_TAPS;
    size_t n = 0;

    list[n++] = {(void **)&m->rows, m->n_rows * sizeof *m->rows, false};
    list[n++] = {(void **)&m->turns, m->n_bases * sizeof *m->turns, false};
    list[n++] = {(void **)&m->weights, (size_t)m->n_bases * m->n_periods * sizeof *m->weights,
                 false};
    list[n++] = {(void **)&m->taper_energy, m->n_periods * sizeof *m->taper_energy, false};
    list[n++] = {(void **)&m->threshold, (size_t)m->n_looks * m->n_periods * sizeof *m->threshold,
                 false};
    list[n++] = {(void **)&m->factor, factors_of(m) * sizeof *m->factor, false};
    list[n++] = {(void **)&m->interpolation, taps * sizeof *m->interpolation, false};
    return n;
}

/* Sets out[p] = w_p exp(-2 pi i F p), F = f + s/K. The phase is an exact multiple of 1 / (4 K)
 * turn. */
static void fill_weights(const pnr_plan *plan, int32_t quarters, uint32_t bin, float2 *out)
{
    const size_t k = plan->n_periods;

    for (size_t p = 0; p < k; p++) {
        const double w = plan->taper != NULL ? plan->taper[p] : 1;
        /* the phase in units of 1 / (4 K) turn */
        const uint64_t part = ((uint64_t)wrap(quarters, 4) * k + 4 * (uint64_t)bin) % (4 * k) * p;
        double root[2];

        pnr_transform_root(part % (4 * k), 4 * k, root);
        out[p] = make_float2((float)(w * root[0]), (float)(-w * root[1]));
    }
}

static int upload_bases(const pnr_plan *plan, const pnr_map_plan *tables, const pnr_map *m,
                        pnr_error *error)
{
    uint64_t *turns = (uint64_t *)calloc(m->n_bases, sizeof *turns);
    float2 *weights = (float2 *)calloc((size_t)m->n_bases * m->n_periods, sizeof *weights);
    int code = PNR_ENOMEMORY;

    if (turns == NULL || weights == NULL) {
        pnr_error_set(error, code, "engine cuda: no memory for %u rows", m->n_bases);
    } else {
        for (uint32_t b = 0; b < m->n_bases; b++) {
            const pnr_rational f = {tables->quarters[b], 4 * (int64_t)plan->n_samples};

            turns[b] = tables->quarters[b] != 0 ? pnr_rational_phase(f, 1) : 0;
            fill_weights(plan, tables->quarters[b], tables->bins[b],
                         weights + (size_t)b * m->n_periods);
        }
        code = pnr_cuda_upload(m->turns, turns, m->n_bases * sizeof *turns, error);
        if (code == PNR_OK)
            code = pnr_cuda_upload(m->weights, weights,
                                   (size_t)m->n_bases * m->n_periods * sizeof *weights, error);
    }
    free(turns);
    free(weights);
    return code;
}

static int upload_taper(const pnr_plan *plan, const pnr_map *m, pnr_error *error)
{
    double *energy = (double *)calloc(m->n_periods, sizeof *energy);
    int code;

    if (energy == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    for (size_t p = 0; p < m->n_periods; p++)
        energy[p] = plan->taper != NULL ? plan->taper[p] * plan->taper[p] : 1;
    code = pnr_cuda_upload(m->taper_energy, energy, m->n_periods * sizeof *energy, error);
    free(energy);
    return code;
}

static int upload_interpolation(const pnr_map *m, pnr_error *error)
{
    float(*table)[PNR_STRETCH_TAPS] =
        (float(*)[PNR_STRETCH_TAPS])calloc(PNR_STRETCH_STEPS + 1, sizeof *table);
    int code;

    if (table == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "engine cuda: out of memory");
    pnr_stretch_table(table);
    code = pnr_cuda_upload(m->interpolation, table, (PNR_STRETCH_STEPS + 1) * sizeof *table, error);
    free(table);
    return code;
}

int pnr_map_upload(const pnr_plan *plan, const pnr_map_plan *tables, const pnr_map *m,
                   pnr_error *error)
{
    int code;

    if ((code = pnr_cuda_upload(m->rows, tables->rows, m->n_rows * sizeof *m->rows, error)) !=
            PNR_OK ||
        (code = upload_bases(plan, tables, m, error)) != PNR_OK ||
        (code = upload_taper(plan, m, error)) != PNR_OK ||
        (code = pnr_cuda_upload(m->threshold, plan->threshold,
                                pnr_plan_windows(plan) * sizeof *m->threshold, error)) != PNR_OK ||
        (code = pnr_cuda_upload(m->factor, plan->cfar.factor, factors_of(m) * sizeof *m->factor,
                                error)) != PNR_OK)
        return code;
    return upload_interpolation(m, error);
}
