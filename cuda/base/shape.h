/* SPDX-License-Identifier: MIT */
/* Sizes that follow from a plan: transform length, rows of a cuFFT call, dwells of a round. Host
 * only. */
#ifndef PNR_CUDA_SHAPE_H
#define PNR_CUDA_SHAPE_H

#include "cuda/base/pnr.h"

enum {
    PNR_CUDA_THREADS = 256,          /* threads of a block, unless a kernel says otherwise */
    PNR_CUDA_BLOCK_SAMPLES = 8192,   /* greatest number of samples that one block measures */
    PNR_CUDA_GROUP_POINTS = 1 << 22, /* greatest number of values in a cuFFT call, unless one row
                                      * has more */
    PNR_CUDA_MAX_GROUP = 4096
};

/*
 * L (n_transform) is N if lags are circular and N has no prime factor above 7. If lags are circular
 * and N has such a factor, L is pnr_transform_fast_length(2N - 1), and the window is extended
 * periodically. For linear lags L is pnr_transform_fast_length(N + n_tail). L is at least 2.
 *
 * G (group) is the greatest number of rows of a cuFFT call. It is 2^22 / L, limited to 1 .. 4096.
 * (Groups of 2^20 and 2^21 values were slower: launches cost more than the L2 cache saved.) The
 * number of rows of each call depends only on L and the sizes of a dwell, never on the batch or the
 * number of dwells in a submit. So cuFFT always chooses the same kernels, and the bits of the
 * results stay the same.
 *
 * The dwells of a submit are processed in rounds. A round has as many whole dwells as fit into one
 * group, but at least one dwell. A long submit needs several rounds.
 */
typedef struct pnr_cuda_shape {
    size_t n_samples;      /* N, samples of a window */
    size_t n_transform;    /* L, points of a transform */
    size_t row_stride;     /* L rounded up to a multiple of 32 values: cuFFT is faster on aligned
                            * rows */
    size_t oversample;     /* cells for each lag: 1, or 2 with half lags */
    size_t n_periods;      /* windows of a dwell, in all its looks */
    size_t batch;          /* greatest number of dwells in a submit */
    size_t n_looks;        /* looks of a dwell */
    size_t dwell_lines;    /* inverse transforms of a dwell: looks * codes * rows * oversample */
    size_t group;          /* G, greatest number of rows of a cuFFT call */
    size_t n_rounds;       /* inverse cuFFT calls of a full submit: one for each round, more if
                            * dwell_lines > G */
    size_t n_windows;      /* windows of a full submit */
    size_t n_tail;         /* samples read after the end of a window; 0 unless lags are linear */
    size_t n_tail_windows; /* headers of windows that cover the tail */
    size_t n_cells;        /* cells of a dwell: codes * rows * lags * oversample */
    size_t n_segments;     /* segments of PNR_CUDA_BLOCK_SAMPLES samples in a window */
    size_t sample_bytes;   /* bytes of one sample of all channels */
    size_t raw_bytes;      /* bytes of a full submit, rounded up to a multiple of 16 */
    size_t profile_values; /* floats in the profile of a dwell; 0 unless plan.want_profile */
    size_t patch_values;   /* floats in the patch of a candidate; 0 if the plan has one row */
    size_t lost_words;     /* 32-bit words that mark lost samples; 0 unless the mean is removed */
} pnr_cuda_shape;

/* The plan must have passed pnr_plan_check. */
pnr_cuda_shape pnr_cuda_shape_of(const pnr_plan *plan);

#endif
