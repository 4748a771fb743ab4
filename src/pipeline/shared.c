/* SPDX-License-Identifier: MIT */
/* Records of views in the memory that a run and its worker share. */
#include "pipeline/shared.h"

#include "ring/ring.h"

#include <string.h>

size_t pnr_shared_view_bytes(size_t max_dwells, size_t n_periods)
{
    return sizeof(pnr_shared_view) + max_dwells * sizeof(uint64_t) +
           PNR_RING_VIEW_RUNS * sizeof(pnr_lost_run) + max_dwells * n_periods * sizeof(uint32_t);
}

size_t pnr_shared_bells_at(size_t sample_bytes, size_t *bytes)
{
    const size_t line = _Alignof(pnr_shared_bells);
    const size_t at = (sample_bytes + line - 1) / line * line;

    *bytes = at + sizeof(pnr_shared_bells);
    return at;
}

static char *append(char *at, const void *data, size_t n_bytes)
{
    if (n_bytes > 0)
        memcpy(at, data, n_bytes);
    return at + n_bytes;
}

size_t pnr_shared_write_view(pnr_shared_view *to, int kind, const pnr_windows *windows)
{
    const size_t n_dwells = kind == PNR_VIEW_END    ? 0
                            : windows->n_dwells > 0 ? windows->n_dwells
                                                    : 1; /* a part has one dwell */
    char *at = (char *)(to + 1);

    *to = (pnr_shared_view){
        .kind = kind,
        .first_sample = windows->first_sample,
        .lost_before = windows->lost_before,
        .n_samples = windows->spans[0].n_samples + windows->spans[1].n_samples,
        .n_dwells = windows->n_dwells,
        .n_periods = windows->n_periods,
        .n_ready = n_dwells,
        .n_runs = windows->n_lost_runs,
        .n_lost = n_dwells * windows->n_periods,
    };
    at = append(at, windows->ready_ns, to->n_ready * sizeof *windows->ready_ns);
    at = append(at, windows->lost_runs, to->n_runs * sizeof *windows->lost_runs);
    at = append(at, windows->lost, to->n_lost * sizeof *windows->lost);
    return (size_t)(at - (char *)to);
}

pnr_windows pnr_shared_read_view(const pnr_shared_view *from, const pnr_shared_order *order,
                                 const void *memory)
{
    const size_t first = (size_t)(from->first_sample % order->capacity);
    const size_t to_end = order->capacity - first;
    const size_t before_wrap = to_end < from->n_samples ? to_end : from->n_samples;
    const uint64_t *ready_ns = (const uint64_t *)(from + 1);
    const pnr_lost_run *runs = (const pnr_lost_run *)(ready_ns + from->n_ready);

    return (pnr_windows){
        .spans = {{(const char *)memory + first * order->sample_bytes, before_wrap},
                  {memory, from->n_samples - before_wrap}},
        .first_sample = from->first_sample,
        .n_dwells = from->n_dwells,
        .n_periods = from->n_periods,
        .lost = (const uint32_t *)(runs + from->n_runs),
        .lost_runs = runs,
        .n_lost_runs = from->n_runs,
        .lost_before = from->lost_before,
        .ready_ns = ready_ns,
    };
}
