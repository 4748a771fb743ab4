/* SPDX-License-Identifier: MIT */
/* The memory of a slot for maps, and the arguments of the shared steps. */
#include "cuda/map/memory.h"

size_t pnr_map_memory_list(const pnr_cuda_shape *s, const pnr_map *m, const pnr_map_extent *extent,
                           pnr_map_memory *w, pnr_cuda_buffer *list)
{
    const size_t d = extent->n_maps, lines = (size_t)m->n_codes * m->n_rows;
    const size_t tiles = lines * m->row_tiles, looks = s->batch * m->n_looks;
    const size_t stream = extent->has_stream ? s->n_windows * s->n_samples + s->n_tail : 0;
    size_t n = 0;

    list[n++] = {(void **)&w->stream, stream * sizeof *w->stream, false};
    list[n++] = {(void **)&w->parts, s->n_windows * s->n_segments * sizeof *w->parts, false};
    list[n++] = {(void **)&w->windows, s->n_windows * sizeof *w->windows, false};
    list[n++] = {(void **)&w->n_used, looks * sizeof *w->n_used, false};
    list[n++] = {(void **)&w->mean, m->has_mean ? looks * m->n_window * sizeof *w->mean : 0, false};
    list[n++] = {(void **)&w->dwells, s->batch * sizeof *w->dwells, false};
    list[n++] = {(void **)&w->stretching.stretched,
                 m->margin > 0 ? (size_t)m->n_periods * m->n_window * sizeof(float2) : 0, false};
    list[n++] = {(void **)&w->stretching.samples, m->n_doubling * sizeof(float2), false};
    list[n++] = {(void **)&w->stretching.halves, m->n_doubling * sizeof(float2), false};
    list[n++] = {(void **)&w->bases, extent->n_bases * m->row_stride * sizeof *w->bases, false};
    list[n++] = {(void **)&w->values,
                 extent->is_in_bases ? 0 : d * m->n_looks * lines * m->n_cells * sizeof *w->values,
                 false};
    list[n++] = {(void **)&w->power, d * lines * m->n_cells * sizeof *w->power, false};
    list[n++] = {(void **)&w->noise, d * tiles * sizeof *w->noise, false};
    list[n++] = {(void **)&w->greatest, d * tiles * sizeof *w->greatest, false};
    list[n++] = {(void **)&w->keys, d * tiles * pnr_map_tile_keys(m) * sizeof *w->keys, false};
    list[n++] = {(void **)&w->hot, d * tiles * sizeof *w->hot, false};
    list[n++] = {(void **)&w->taken, d * m->max_candidates * PNR_MAP_PARTS * sizeof *w->taken,
                 false};
    list[n++] = {(void **)&w->n_taken, d * m->max_candidates * sizeof *w->n_taken, false};
    return n;
}

int pnr_map_memory_create(const pnr_map *m, pnr_map_memory *w, cudaStream_t stream,
                          pnr_error *error)
{
    return m->margin > 0 ? pnr_cuda_transforms_create(&w->stretching.transforms, m->n_doubling,
                                                      m->n_doubling, 1, 1, stream, error)
                         : PNR_OK;
}

void pnr_map_memory_destroy(pnr_map_memory *w)
{
    pnr_cuda_transforms_destroy(&w->stretching.transforms);
}

size_t pnr_map_memory_transforms(const pnr_map *m)
{
    return m->n_doubling * sizeof(float2);
}

pnr_map_samples pnr_map_samples_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                                   const pnr_map_memory *w)
{
    const pnr_cuda_shape *shape = &common->shape;
    pnr_map_samples s = {};

    s.raw = pnr_cuda_samples_of(common, slot);
    s.job = slot->job;
    s.headers = slot->windows;
    s.lost = slot->lost;
    s.step = common->tune_step;
    s.is_tuned = common->plan.tune.num != 0;
    s.is_conjugated = common->plan.conjugate;
    s.skips_lost = common->plan.remove_mean;
    s.n_segments = (uint32_t)shape->n_segments;
    s.n_tail = (uint32_t)shape->n_tail;
    s.stream = w->stream;
    s.parts = w->parts;
    s.windows = w->windows;
    s.n_used = w->n_used;
    s.mean = w->mean;
    s.dwells = w->dwells;
    s.nonfinite = slot->results.nonfinite;
    return s;
}

pnr_map_search pnr_map_search_of(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                                 const pnr_map *m, const pnr_map_memory *w, size_t first,
                                 size_t n_dwells)
{
    pnr_map_search s = {};

    s.job = slot->job;
    s.values = w->values;
    s.power = w->power;
    s.noise = w->noise;
    s.greatest = w->greatest;
    s.keys = w->keys;
    s.hot = w->hot;
    s.taken = w->taken;
    s.n_taken = w->n_taken;
    s.tile_keys = (uint32_t)pnr_map_tile_keys(m);
    s.dwells = w->dwells;
    s.results = slot->results;
    s.n_cells = m->n_codes * m->n_rows * m->n_cells;
    s.n_tiles = m->n_codes * m->n_rows * m->row_tiles;
    s.first_dwell = (uint32_t)first;
    s.n_dwells = (uint32_t)n_dwells;
    s.wants_power = common->plan.want_profile == PNR_WANT_POWER;
    return s;
}
