/* SPDX-License-Identifier: MIT */
/* Sizes that follow from a plan: transform length, rows of a cuFFT call, dwells of a round. Host
 * only. */
#include "cuda/base/shape.h"

static size_t divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static size_t clamp(size_t n, size_t low, size_t high)
{
    return n < low ? low : n > high ? high : n;
}

pnr_cuda_shape pnr_cuda_shape_of(const pnr_plan *plan)
{
    const size_t length = plan->linear ? pnr_transform_fast_length(pnr_plan_window_samples(plan))
                                       : pnr_plan_transform_length(plan->n_samples);
    pnr_cuda_shape s = {};

    s.n_samples = plan->n_samples;
    s.n_transform = clamp(length, 2, SIZE_MAX);
    s.row_stride = divide_up(s.n_transform, 32) * 32;
    s.oversample = plan->oversample;
    s.n_periods = pnr_plan_windows(plan);
    s.batch = plan->batch;
    s.n_looks = plan->n_looks;
    s.dwell_lines = plan->n_looks * plan->n_codes * pnr_plan_rows(plan) * plan->oversample;
    s.group = clamp(PNR_CUDA_GROUP_POINTS / s.n_transform, 1, PNR_CUDA_MAX_GROUP);
    s.n_rounds = divide_up(s.batch, clamp(s.group / s.dwell_lines, 1, s.batch)) *
                 divide_up(s.dwell_lines, s.group);
    s.n_windows = s.batch * s.n_periods;
    s.n_tail = pnr_plan_window_samples(plan) - s.n_samples;
    s.n_tail_windows = divide_up(s.n_tail, s.n_samples);
    s.n_cells = pnr_plan_cells(plan);
    s.n_segments = divide_up(s.n_samples, PNR_CUDA_BLOCK_SAMPLES);
    s.sample_bytes = pnr_plan_sample_bytes(plan);
    s.raw_bytes = divide_up((s.n_windows * s.n_samples + s.n_tail) * s.sample_bytes, 16) * 16;
    s.profile_values = plan->want_profile == PNR_WANT_NONE      ? 0
                       : plan->want_profile == PNR_WANT_COMPLEX ? 2 * s.n_cells
                                                                : s.n_cells;
    s.patch_values = pnr_plan_rows(plan) > 1 ? 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS : 0;
    s.lost_words = plan->remove_mean ? divide_up(s.n_windows * s.n_samples + s.n_tail, 32) : 0;
    return s;
}
