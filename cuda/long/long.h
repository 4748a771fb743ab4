/* SPDX-License-Identifier: MIT */
/* Method fused above 16384 points: a transform of rows and columns, three kernels and a search. */
#ifndef PNR_CUDA_FUSED_LONG_H
#define PNR_CUDA_FUSED_LONG_H

#include "cuda/base/method.h"
#include "cuda/base/resources.h"

#include <cuda_runtime.h>

/*
 * The four-step transform of L = N1 N2 points. W_N is exp(-2 pi i / N). With n = n1 N2 + n2 and
 * k = k1 + N1 k2
 *   nk/L = n1 k1/N1 + n2 k1/L + n2 k2/N2   (mod 1)
 * samples:  S[k1][n2] = sum_n1 x[n1][n2] W_N1^(n1 k1)                    columns of N1
 * rows:     X[k1][k2] = sum_n2 S[k1][n2] (W_L^k1)^n2 W_N2^(n2 k2)        rows of N2
 *           Y = X conj(A), A: DFT of the code. In the inverse, with lag m = m1 + N2 m2,
 *           D[k1][m1] = sum_k2 Y[k1][k2] W_N2^(-k2 m1)                   the same row, in place
 * lags:     c[m1 + N2 m2] = sum_k1 D[k1][m1] (W_L^-m1)^k1 W_N1^(-k1 m2)  columns again
 * Row k1 of the spectrum is multiplied in the place where the forward pass writes it, so nothing is
 * transposed. The twiddles between rows and columns are powers of one number in each sum. A pass of
 * fused/transform.h takes that number as its base, so twiddles cost neither a pass nor a product.
 * A window shorter than L is extended: y[n] = x[n mod N], n < 2N - 1, then 0. Zeros follow the
 * code, and lags below N are exact.
 */

enum {
    PNR_FUSED_LONG_FIRST = 15, /* log2 of the least number of points */
    PNR_FUSED_LONG_LAST = 22,
    PNR_FUSED_LONG_TILE = 8192, /* points that a block of the column kernels transforms: all N1
                                 * points of some columns, 32 for each thread */
    PNR_FUSED_LONG_THREADS = PNR_FUSED_LONG_TILE / 32,
    PNR_FUSED_LONG_POWERS = 16, /* values W_L^(k1 2^i) stored for row k1; log2 N2 of them are
                                 * used */
    PNR_FUSED_LONG_SUMS = 65535 /* greatest number of transforms of a dwell */
};

/* Result of a tile of lags, for the search. */
typedef struct pnr_fused_long_tile {
    double noise;      /* sum of the powers */
    float top;         /* the greatest power */
    uint32_t n_listed; /* cells above the threshold */
    uint32_t n_above;  /* listed cells inside the gate */
    uint32_t reserved;
} pnr_fused_long_tile;

/* Argument of the kernels; its pointers point to device memory. A dwell is one transform, or n_sums
 * transforms whose powers are added. */
typedef struct pnr_fused_long {
    const void *raw;                /* [n_transforms][n_input], one channel */
    const pnr_cuda_window *windows; /* [n_dwells] */
    const pnr_cuda_job *job;        /* has the actual number of dwells; grids may be larger */
    const float4 *spectrum;         /* [L / 2], in the order of pnr_fused_long_place */
    const float2 *row_powers;       /* [N1][PNR_FUSED_LONG_POWERS]: W_L^(k1 2^i) */
    const float2 *thread_powers;    /* [2][5][N2/32], forward and inverse: W_N2^(t 2^i), t: see
                                     * pnr_fused_long_turn */
    const float2 *column_powers;    /* [log2 N1][N2]: W_L^(m1 2^i) */
    float2 *rows;                   /* [n_dwells][n_sums][N1][N2] */
    pnr_cuda_energy *parts;     /* [n_dwells][tiles], raw units; NULL: measured in another step */
    pnr_cuda_dwell *states;     /* [n_dwells] */
    pnr_fused_long_tile *tiles; /* [n_dwells][tiles] */
    uint64_t *listed;           /* [n_dwells][tiles][TILE]: keys of the cells above the threshold;
                                 * NULL: no cells are listed, and the dwells are not searched */
    float *above;               /* [n_dwells][N]: powers of the listed cells during a search of many
                                 * cells; all other values are 0 */
    uint64_t *keys;             /* [n_dwells][N / 2 + 1]: keys of local maxima, if many cells are
                                 * listed */
    pnr_dwell *dwells;          /* [n_dwells] */
    pnr_candidate *candidates;  /* [n_dwells][max_candidates] */
    uint32_t *nonfinite;        /* [n_dwells] */
    float *power;               /* [n_dwells][N], or NULL */
    float2 *profile;            /* [n_dwells][N], or NULL */
    double scale;               /* value = raw * scale; full scale is 1 */
    double code_energy;         /* sum |a|^2 of the code a */
    double floor_of_energy;     /* code_energy / N */
    const double *threshold;    /* [n_periods], in units of the floor */
    float conjugate;            /* -1 when x is conjugated, else 1 */
    float per_point;            /* 2 / L: half turns for one point */
    uint32_t n_samples;         /* N, samples of a window */
    uint32_t n_input;           /* N, or L where raw is already extended */
    uint32_t n_sums;            /* transforms of a dwell, at least 1; their powers are added */
    uint32_t n_points;          /* L, points of a transform */
    uint32_t row_bits;          /* log2 of N2 */
    uint32_t n_tiles;           /* tiles of each transform */
    uint32_t max_candidates;
    uint32_t has_outside; /* 1: one candidate may be outside of the gate, see plan.h */
    uint32_t gate_first, gate_count;
} pnr_fused_long;

/* A kernel processes `count` transforms of the submit, or `count` dwells, beginning with number
 * `first`. The search processes every second group of `count` dwells, beginning with dwell
 * `first`. */
typedef void (*pnr_fused_long_kernel)(pnr_fused_long p, uint32_t first, uint32_t count);

/* A kernel, and the size of its blocks. */
typedef struct pnr_fused_long_launch {
    pnr_fused_long_kernel kernel;
    uint32_t n_threads;
    size_t shared_bytes;
} pnr_fused_long_launch;

/* Return one kernel. column_bits: log2 of N1, 5..9. row_bits: log2 of N2, 10..13. is_sum: a dwell
 * has several transforms. */
pnr_fused_long_launch pnr_fused_long_samples(pnr_format format, uint32_t column_bits);
pnr_fused_long_launch pnr_fused_long_rows(uint32_t row_bits);
pnr_fused_long_launch pnr_fused_long_lags(uint32_t column_bits, bool is_sum);
pnr_fused_long_launch pnr_fused_long_search(uint32_t column_bits, bool is_sum);

/* Returns log2 of L for a period of N samples. L is N if that is a power of two, else the least
 * power of two that is not below 2N - 1. */
uint32_t pnr_fused_long_bits(size_t n_samples);
/* Returns log2 of N2 for L = 2^bits. */
uint32_t pnr_fused_long_row_bits(uint32_t bits);
/* Returns the index of bin k in the spectrum of float2 values. */
size_t pnr_fused_long_place(uint32_t bits, size_t k);
/* Returns the exponent t of thread_powers (W_N2^(t 2^i)) for thread u of a row, in the last pass of
 * the forward transform. The inverse transform uses t = u. */
uint32_t pnr_fused_long_turn(uint32_t row_bits, uint32_t u);
/* Returns the number of dwells of a group. */
uint32_t pnr_fused_long_group(uint32_t bits, size_t n_sums, size_t batch);

/* The kernels for one length and format on one device. */
typedef struct pnr_fused_long_set {
    pnr_fused_long_launch samples, rows, lags, search;
    uint32_t row_blocks; /* blocks of the rows kernel that the device runs at one time */
    uint32_t row_each;   /* rows that a block transforms at one time */
    bool is_chained;     /* the device chains kernels, see base/chain.h */
} pnr_fused_long_set;

/* Enqueues n_dwells dwells in groups of n_group. The groups alternate between two streams: the
 * device computes one group while it loads the data of the other group. */
int pnr_fused_long_enqueue(const pnr_fused_long *p, const pnr_fused_long_set *set, uint32_t n_group,
                           uint32_t n_dwells, cudaStream_t stream, const pnr_cuda_side *side,
                           pnr_error *error);
/* Returns how many bytes of shared memory a block needs: the maximum over all kernels. */
size_t pnr_fused_long_bytes(uint32_t bits, bool is_sum);
/* Prepares the kernels for the current device. */
int pnr_fused_long_open(uint32_t bits, pnr_format format, bool is_sum, pnr_fused_long_set *set,
                        pnr_error *error);

/* --- what the methods have in common --- */

/* Data that all slots share. */
typedef struct pnr_fused_long_shared {
    pnr_fused_long_set set;
    float2 *spectrum; /* [L], device */
    float2 *powers;   /* powers of twiddles for rows, threads and columns; device */
} pnr_fused_long_shared;

/* Returns true if the first kernel cannot read the samples of a plan. Then another step measures
 * and converts the samples, sums the periods and extends the sum, in one more pass over memory. */
bool pnr_fused_long_is_prepared(const pnr_plan *plan);
/* Returns PNR_OK, or PNR_EUNSUPPORTED with the reason. The caller has refused short periods, those
 * with pnr_fused_long_bits below PNR_FUSED_LONG_FIRST. */
int pnr_fused_long_suits(const pnr_plan *plan, pnr_error *error);
/* Lists the memory of the shared data; returns the number of buffers. */
size_t pnr_fused_long_list(const pnr_plan *plan, pnr_fused_long_shared *own, pnr_cuda_buffer *list);
/* Fills the shared data. Their memory must be allocated. */
int pnr_fused_long_upload(const pnr_plan *plan, pnr_fused_long_shared *own, pnr_error *error);
/* Returns the argument of the kernels for a slot. memory: has the pointers to the slot's memory. */
pnr_fused_long pnr_fused_long_argument(const pnr_cuda_common *common, const pnr_cuda_slot *slot,
                                       const pnr_fused_long_shared *own,
                                       const pnr_fused_long *memory);

#endif
