/* SPDX-License-Identifier: MIT */
/* The sizes of the work: transform length, rows a transform call, dwells a round,
 * tiles. Host only. */
#ifndef PNR_CUDA_SHAPE_H
#define PNR_CUDA_SHAPE_H

#include "cuda/base/pnr.h"

enum {
    PNR_CUDA_THREADS = 256,          /* a block, in every kernel of the engine */
    PNR_CUDA_SEGMENT = 8192,         /* samples of a window that one block measures */
    PNR_CUDA_TILE = 2048,            /* cells of the search grid that one block scans */
    PNR_CUDA_GROUP_POINTS = 1 << 22, /* values that one cuFFT call transforms, at most */
    PNR_CUDA_MAX_GROUP = 4096
};

/*
 * n_transform L: N when it is 7-smooth (circular), else pnr_transform_fast_length(2N - 1) with the
 * window extended periodically; linear: the fast length that holds a window and what it reads
 * behind its end; at least 2.
 * group G: rows that one cuFFT call transforms, always all of them: 2^22 / L, at least 1, at most
 * 4096 (2^20 and 2^21 were slower: launches cost more than the L2 cache saved). It depends on L
 * alone, never on batch, periods or the dwells in a submit, and so do the kernels that cuFFT
 * chooses, and the bits of the results. A round is what is on the device at one time: as many whole
 * dwells as fit one group, at least one; a long submit takes several rounds.
 */
typedef struct pnr_cuda_shape {
    size_t n_samples;      /* N */
    size_t n_transform;    /* L */
    size_t row_stride;     /* L rounded up to 256 bytes: every row is aligned as cuFFT likes it */
    size_t oversample;     /* transforms back per row */
    size_t n_periods;      /* windows a dwell, of all its looks */
    size_t batch;          /* dwells a submit, at most */
    size_t dwell_rows;     /* transforms forward a dwell: n_periods when incoherent, else 1 */
    size_t group;          /* G */
    size_t round_dwells;   /* dwells a round */
    size_t n_rows;         /* rows in memory: a multiple of G */
    size_t n_rounds;       /* of a full submit */
    size_t n_windows;      /* of a full submit */
    size_t n_tail;         /* samples behind the last window's own that it reads: linear */
    size_t n_tail_windows; /* windows' headers that they have */
    size_t n_cells;        /* of a dwell: N * oversample, or of its whole map */
    size_t n_tiles;        /* of a dwell's grid */
    size_t n_segments;     /* of a window */
    size_t sample_bytes;   /* of one sample of all channels */
    size_t raw_bytes;      /* of a full submit, rounded up to 16: some kernels copy 16 at a time */
    size_t profile_values; /* floats a dwell returns: 0 unless plan.want_profile */
    size_t patch_values;   /* floats a candidate returns beside itself: with several rows */
    size_t lost_words;     /* of marks of a submit's lost samples: 0 unless somebody asks */
} pnr_cuda_shape;

/* The plan must have passed pnr_plan_check. */
pnr_cuda_shape pnr_cuda_shape_of(const pnr_plan *plan);
/* The same with rows of n_transform values, at least N. */
pnr_cuda_shape pnr_cuda_shape_for(const pnr_plan *plan, size_t n_transform);

#endif
