/* SPDX-License-Identifier: MIT */
/* Whole profiles in device memory: measured, searched, and returned. */
#include "cuda/steps/profiles.h"

#include <cassert>

int pnr_cuda_profiles_suit(const pnr_plan *plan, const pnr_cuda_shape *shape, pnr_error *error)
{
    if (shape->n_segments > (size_t)INT32_MAX / shape->n_windows)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "engine cuda: %zu dwells of %zu periods of %zu samples at once",
                             plan->batch, pnr_plan_windows(plan), plan->n_samples);
    return PNR_OK;
}

size_t pnr_cuda_profiles_list(const pnr_plan *plan, const pnr_cuda_shape *s, pnr_cuda_profiles *p,
                              pnr_cuda_block *list)
{
    const size_t row_bytes = s->n_rows * s->row_stride * sizeof(float2);
    const size_t n_tiles = s->round_dwells * s->n_tiles;
    const size_t n_cells = s->round_dwells * s->n_cells;
    const bool is_complex = plan->want_profile == PNR_WANT_COMPLEX;
    size_t n = 0;

    list[n++] = {(void **)&p->parts, s->n_windows * s->n_segments * sizeof *p->parts, false};
    list[n++] = {(void **)&p->sums, s->n_windows * sizeof *p->sums, false};
    list[n++] = {(void **)&p->dwells, s->batch * sizeof *p->dwells, false};
    list[n++] = {(void **)&p->rows[0], row_bytes, false};
    list[n++] = {(void **)&p->rows[1], s->oversample > 1 ? row_bytes : 0, false};
    list[n++] = {(void **)&p->power, n_cells * sizeof *p->power, false};
    list[n++] = {(void **)&p->noise_parts, n_tiles * sizeof *p->noise_parts, false};
    list[n++] = {(void **)&p->tiles, n_tiles * sizeof *p->tiles, false};
    list[n++] = {(void **)&p->keys, n_tiles * plan->max_candidates * sizeof *p->keys, false};
    list[n++] = {(void **)&p->packed, is_complex ? n_cells * sizeof *p->packed : 0, false};
    assert(n == PNR_CUDA_PROFILES_BLOCKS);
    return n;
}

int pnr_cuda_profiles_measure(const pnr_cuda_common *common, const pnr_cuda_shape *shape,
                              const pnr_cuda_slot *slot, const pnr_cuda_profiles *profiles,
                              size_t n_dwells, pnr_error *error)
{
    const pnr_cuda_samples samples = pnr_cuda_samples_of(common, slot);
    const pnr_cuda_measured measured = {
        slot->windows,           profiles->parts,   profiles->sums,     profiles->dwells,
        slot->results.nonfinite, common->threshold, common->code_energy};

    return pnr_cuda_measure(shape, &samples, &measured, n_dwells, slot->stream, error);
}

pnr_cuda_conversion pnr_cuda_profiles_conversion(const pnr_cuda_common *common,
                                                 const pnr_cuda_slot *slot,
                                                 const pnr_cuda_profiles *profiles)
{
    pnr_cuda_conversion conversion = {};

    conversion.samples = pnr_cuda_samples_of(common, slot);
    conversion.windows = slot->windows;
    conversion.sums = profiles->sums;
    conversion.step = common->tune_step;
    conversion.is_tuned = common->plan.tune.num != 0;
    conversion.is_conjugated = common->plan.conjugate;
    return conversion;
}

static pnr_cuda_peak peak_of(const pnr_cuda_common *common, const pnr_cuda_shape *s,
                             const pnr_cuda_slot *slot, const pnr_cuda_profiles *profiles)
{
    pnr_cuda_peak peak = {};

    peak.rows[0] = profiles->rows[0];
    peak.rows[1] = profiles->rows[1];
    peak.power = profiles->power;
    peak.noise_parts = profiles->noise_parts;
    peak.tiles = profiles->tiles;
    peak.keys = profiles->keys;
    peak.packed = profiles->packed;
    peak.dwells = profiles->dwells;
    peak.threshold = common->threshold;
    peak.out_dwells = slot->results.dwells;
    peak.out_candidates = slot->results.candidates;
    peak.n_samples = (uint32_t)s->n_samples;
    peak.row_stride = (uint32_t)s->row_stride;
    peak.oversample = (uint32_t)s->oversample;
    peak.n_cells = (uint32_t)s->n_cells;
    peak.n_tiles = (uint32_t)s->n_tiles;
    peak.dwell_rows = (uint32_t)s->dwell_rows;
    peak.is_incoherent = common->plan.n_looks > 1;
    peak.max_candidates = (uint32_t)common->plan.max_candidates;
    peak.gate_first = (uint32_t)common->plan.gate_first;
    peak.gate_count = (uint32_t)common->plan.gate_count;
    return peak;
}

int pnr_cuda_profiles_search(const pnr_cuda_common *common, const pnr_cuda_shape *shape,
                             pnr_cuda_slot *slot, const pnr_cuda_profiles *profiles, size_t first,
                             size_t n_dwells, pnr_error *error)
{
    const pnr_cuda_peak peak = peak_of(common, shape, slot, profiles);
    int code;

    if ((code = pnr_cuda_find_peaks(shape, &peak, first, n_dwells, slot->stream, error)) !=
            PNR_OK ||
        (code = pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error)) != PNR_OK ||
        shape->profile_values == 0)
        return code;
    if ((code = pnr_cuda_check(
             cudaMemcpyAsync(slot->results.profile + first * shape->profile_values,
                             profiles->packed != NULL ? (const void *)profiles->packed
                                                      : profiles->power,
                             n_dwells * shape->profile_values * sizeof *slot->results.profile,
                             cudaMemcpyDeviceToDevice, slot->stream),
             "copy of the profiles", error)) != PNR_OK)
        return code;
    return pnr_cuda_mark(common, slot, PNR_STAGE_PEAK, error);
}
