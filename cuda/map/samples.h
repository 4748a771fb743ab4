/* SPDX-License-Identifier: MIT */
/* The first steps of a map: convert and measure samples, compute means, compute bases from
 * windows. */
#ifndef PNR_CUDA_MAP_SAMPLES_H
#define PNR_CUDA_MAP_SAMPLES_H

#include "cuda/base/resources.h"
#include "cuda/base/sample.h"
#include "cuda/map/map.h"

/* The sums of one window. */
typedef struct pnr_map_window {
    double energy; /* sum |x|^2 of N samples; if a mean of U windows is removed, multiplied by
                    * U/(U-1) */
    uint32_t n_clipped, n_nonfinite;
    uint32_t is_used;
    uint32_t reserved;
} pnr_map_window;

/* The sums of one dwell, and the state of its search. */
typedef struct pnr_map_dwell {
    pnr_dwell sums;
    double rounding;  /* rounding error of a cell's power; the floor is never set below this
                       * value */
    float threshold;  /* only cells with a greater power are searched */
    uint32_t is_done; /* 1: no further search follows */
    uint32_t n_looks; /* number of looks that are used */
    uint32_t last_look;
    uint64_t outside; /* with has_outside: the greatest key of a maximum outside of the gate that
                       * the present search has found; 0: none */
    uint32_t n_above, n_maxima; /* of the present search: cells above the threshold, local maxima */
    uint32_t n_keys;            /* keys in the list */
    uint32_t n_hot;             /* tiles to be searched */
    uint32_t n_kept;
    uint32_t n_blocks; /* finished blocks of a kernel; 0 before and after the kernel */
} pnr_map_dwell;

/* The samples of a slot, in device memory. */
typedef struct pnr_map_samples {
    pnr_cuda_samples raw;
    const pnr_cuda_job *job;
    const pnr_cuda_window *headers; /* [n_windows + n_tail_windows] */
    const uint32_t *lost;           /* one bit per sample, set if the sample is lost */
    uint64_t step;                  /* phase step of the oscillator of plan.tune, in 2^-64 turns per
                                     * sample */
    uint32_t is_tuned, is_conjugated;
    uint32_t skips_lost; /* 1: lost samples are replaced by 0; 0: their values in memory are used */
    uint32_t n_segments; /* segments of a window */
    uint32_t n_tail;     /* samples after the last window */

    /* Converted samples of a submit, [n_windows * N + n_tail]. A lost or non-finite sample is
     * stored as a NaN and counts as 0. NULL: samples are only measured. */
    float2 *stream;
    pnr_cuda_energy *parts;  /* [n_windows][n_segments] */
    pnr_map_window *windows; /* [n_windows] */
    uint32_t *n_used;        /* [batch * n_looks]: number of used windows */
    float2 *mean;            /* [batch * n_looks][n_window], if has_mean */
    pnr_map_dwell *dwells;   /* [batch] */
    uint32_t *nonfinite;     /* [n_windows], a result of the submit */
} pnr_map_samples;

/* Converts and measures the samples of n_dwells dwells, computes the means over the windows of each
 * look if the plan removes them, and sets the first state of each dwell. */
int pnr_map_measure(const pnr_map *map, const pnr_map_samples *samples, size_t n_dwells,
                    cudaStream_t stream, pnr_error *error);

/* Returns true if a look is one window from which no mean is removed, and no row has a stretch. */
bool pnr_map_is_single(const pnr_plan *plan, const pnr_map_plan *tables);
/* Returns true if the raw samples are used directly: ci16, one channel, no frequency shift, no
 * conjugation and no removed mean. */
bool pnr_map_is_raw(const pnr_plan *plan);

/* Memory for a look that is read at other time scales. */
typedef struct pnr_map_stretching {
    float2 *samples; /* [n_doubling] the samples of a look with its margins: d[2 n] of stretch.h */
    float2 *halves;  /* [n_doubling] the samples of the look at n + 1/2 */
    float2 *stretched;              /* [n_periods][n_window] the samples at another time scale */
    pnr_cuda_transforms transforms; /* one row of n_doubling points */
} pnr_map_stretching;

/*
 * Computes the bases of n_looks looks, at all time scales of the tables. A base is a window that is
 * extended to map->n_transform samples, periodically or by zeros. first_look: number of the first
 * look, counted through all dwells. with: scratch memory, used if the map has a stretch. bases:
 * [n_looks][n_bases][row_stride].
 */
int pnr_map_fold(const pnr_map *map, const pnr_map_samples *samples, size_t first_look,
                 size_t n_looks, const pnr_map_plan *tables, const pnr_map_stretching *with,
                 float2 *bases, cudaStream_t stream, pnr_error *error);

#ifdef __CUDACC__
/* Returns raw sample i of window p of a look, see pnr_map_is_raw. */
static __device__ __forceinline__ float2 pnr_map_raw(const pnr_map &m, const pnr_map_samples &s,
                                                     size_t look, uint32_t p, uint32_t i)
{
    const short2 x = ((const short2 *)s.raw.raw)[(look * m.n_periods + p) * m.n_samples + i];

    return make_float2((float)x.x * s.raw.scale, (float)x.y * s.raw.scale);
}

/* Returns sample i of a look of one window without a removed mean. If the sample is lost or not
 * finite, returns 0. */
static __device__ __forceinline__ float2 pnr_map_there(const pnr_map &m, const pnr_map_samples &s,
                                                       size_t look, uint32_t i)
{
    const float2 x = s.stream[look * m.n_samples + i];

    return isnan(x.x) ? make_float2(0, 0) : x;
}

/* Returns sample i of window p of a look minus the mean. If the sample is lost or not finite,
 * returns 0. */
static __device__ __forceinline__ float2 pnr_map_clean(const pnr_map &m, const pnr_map_samples &s,
                                                       size_t look, uint32_t p, uint32_t i)
{
    const float2 x = s.stream[(look * m.n_periods + p) * m.n_samples + i];
    const float2 mean = m.has_mean ? s.mean[look * m.n_window + i] : make_float2(0, 0);

    return isnan(x.x) ? make_float2(0, 0) : make_float2(x.x - mean.x, x.y - mean.y);
}

/* Returns the weight of a base in a look of one window; 0 if the window is not used. */
static __device__ __forceinline__ float2 pnr_map_weight(const pnr_map &m, const pnr_map_samples &s,
                                                        size_t look, uint32_t base)
{
    const float2 w = m.weights[base]; /* loaded without waiting for is_used */

    return s.windows[look].is_used ? w : make_float2(0, 0);
}
/* Returns w x, where x is a sample of the window and w is the weight. The caller rotates the
 * product. */
static __device__ __forceinline__ float2 pnr_map_weighted(float2 w, float2 x)
{
    return make_float2(fmaf(w.x, x.x, -w.y * x.y), fmaf(w.x, x.y, w.y * x.x));
}
#endif

#endif
