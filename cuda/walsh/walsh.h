/* SPDX-License-Identifier: MIT */
/* Method walsh: m-sequences at one sample a chip through one fast Walsh-Hadamard transform. */
#ifndef PNR_CUDA_WALSH_H
#define PNR_CUDA_WALSH_H

#include "cuda/base/shape.h"
#include "cuda/base/state.h"

#include <cuda_runtime.h>

enum {
    PNR_WALSH_MIN_DEGREE = 5,
    PNR_WALSH_SHORT_DEGREE = 13, /* at most: one kernel */
    PNR_WALSH_MAX_DEGREE = 22,
    PNR_WALSH_EACH = 32, /* values a thread holds */

    /* Above degree 13. */
    PNR_WALSH_TILE_BITS = 13,
    PNR_WALSH_TILE = 1 << PNR_WALSH_TILE_BITS, /* values of a block: a row, or some columns */
    PNR_WALSH_CHUNK_BITS = 14,
    PNR_WALSH_CHUNK = 1 << PNR_WALSH_CHUNK_BITS, /* samples that are sorted together */
    PNR_WALSH_QUAD = 4,                          /* samples that are written at one time */
    PNR_WALSH_CHUNK_QUADS =
        4608,                  /* at most: CHUNK + 1 samples, up to 3 more for each of 512 rows */
    PNR_WALSH_ROW_QUADS = 2304 /* at most: TILE + 1 samples, up to 3 more for each of 256 chunks */
};

/*
 * N = 2^n - 1 samples of one period; the code is a[i] = 1 - 2 b[i], b an m-sequence. Its register's
 * states s_i = sum_j b[i + j] 2^j, i < N, j < n, are all numbers but 0. With x_i put at X[s_i],
 * X[0] = 0, and W[u] = sum_m (-1)^(bits common to u and m, added) X[m], the Walsh-Hadamard
 * transform of X, c[k] = W[u_k] with u_k = sum_j b[t_j - k] 2^j, t_j the index of state 2^j: the
 * bits of s_i that u_k picks add up to b[i - k]. W[0] is the sum of x, not a lag.
 */
typedef struct pnr_cuda_walsh {
    /* Of the submit, [its windows][N], one channel; the memory may be read to the next multiple of
     * 16 bytes. All else below begins with dwell first_dwell. */
    const void *raw;
    const pnr_cuda_job *job;        /* how many there really are in the submit */
    const pnr_cuda_window *windows; /* [n_dwells][n_periods] */
    /* Tables of 2^n entries each. place: of state m where its sample is, in the order of the
     * threads (pnr_cuda_walsh_place), uint16_t: the index i, above degree 13 its place in the row.
     * lag_of: k of u_k; [0] is of no matter; cell_of: u_k of k; uint16_t, above degree 13 uint32_t.
     */
    const uint16_t *place;
    const void *lag_of, *cell_of;
    pnr_dwell *dwells;         /* [n_dwells] */
    pnr_candidate *candidates; /* [n_dwells][max_candidates] */
    uint32_t *nonfinite;       /* [n_dwells][n_periods] */
    float *power;              /* [n_dwells][N], or NULL */
    float2 *profile;           /* [n_dwells][N], or NULL */
    const double *thresholds;  /* [n_periods]: times floor */
    float scale;               /* full scale = raw * scale, a power of two */
    float conjugate;           /* -1 when x is conjugated, else 1 */
    uint32_t first_dwell;      /* of the submit's */
    uint32_t n_dwells;         /* at most */
    uint32_t n_periods;        /* windows a dwell; 1 above degree 13, and called windows there */
    uint32_t degree;
    uint32_t max_candidates;
    uint32_t gate_first, gate_count;

    /* Above degree 13, see walsh_rows.cu. Tables: */
    const uint16_t *source;     /* [chunks][PNR_WALSH_CHUNK_QUADS][PNR_WALSH_QUAD] */
    const uint32_t *target;     /* [chunks][PNR_WALSH_CHUNK_QUADS] */
    const uint32_t *first_quad; /* [rows + 1]: of the row's samples; of the end */
    uint32_t n_quads;           /* of a window: the last of first_quad */
    /* Scratch of a group of windows: */
    void *sorted;           /* [n_dwells][n_quads] quads: the samples, row by row */
    pnr_cuda_energy *parts; /* [n_dwells][chunks] */
    pnr_cuda_energy *sums;  /* [n_dwells] */
    float *limit;           /* [n_dwells]: the first threshold */
    float2 *rows;           /* [n_dwells][2^n]: transformed along each row */
    double *noise;          /* [n_dwells][tiles] */
    float *top;             /* [n_dwells][tiles]: the greatest power */
    float *above;           /* [n_dwells][2^n]: power of lags above, else 0 */
    uint32_t *n_listed;     /* [n_dwells]; 0 before and after */
    uint32_t *listed;       /* [n_dwells][2^n]: those lags */
    uint64_t *keys;         /* [n_dwells][2^n / 2]: local maxima */
    float2 *cells;          /* [n_dwells][2^n]: W, when a profile is wanted, else NULL */
} pnr_cuda_walsh;

typedef void (*pnr_cuda_walsh_kernel)(pnr_cuda_walsh);

typedef struct pnr_cuda_walsh_short {
    pnr_format format;
    uint32_t degree;
    pnr_cuda_walsh_kernel kernel;
    uint32_t n_threads;
    uint32_t n_dwells; /* that a block works on at one time */
    size_t shared_bytes;
} pnr_cuda_walsh_short;

/* For dwells of one window, and for others: a block's windows are then of one dwell. NULL: none. */
const pnr_cuda_walsh_short *pnr_cuda_walsh_find(pnr_format format, uint32_t degree);
const pnr_cuda_walsh_short *pnr_cuda_walsh_find_dwell(bool is_incoherent, pnr_format format,
                                                      uint32_t degree);

/* The place in its table of what belongs to state m: 32 states a thread, in pieces of 16 bytes. */
size_t pnr_cuda_walsh_place(uint32_t degree, uint32_t m);

/* Above degree 13: rows of 2^13 states;
 * tiles of as many values, a few whole columns each; chunks. */
static inline uint32_t pnr_cuda_walsh_rows(uint32_t degree)
{
    return 1u << (degree - PNR_WALSH_TILE_BITS);
}
static inline uint32_t pnr_cuda_walsh_chunks(uint32_t degree)
{
    return 1u << (degree - PNR_WALSH_CHUNK_BITS);
}

/* Quads of a window's sorted samples, at most: up to 3 padding samples for each chunk of each row,
 * and one for state 0. */
static inline size_t pnr_cuda_walsh_max_quads(uint32_t degree)
{
    return (((size_t)1 << degree) +
            3 * (size_t)pnr_cuda_walsh_rows(degree) * pnr_cuda_walsh_chunks(degree)) /
               PNR_WALSH_QUAD +
           1;
}

/* On the device. */
typedef struct pnr_cuda_walsh_tables {
    uint16_t *place;
    void *lag_of, *cell_of;
    uint16_t *source; /* from here on NULL up to degree 13 */
    uint32_t *target;
    uint32_t *first_quad;
    uint32_t n_quads;
} pnr_cuda_walsh_tables;

/* tables: zeroed; on failure call close too. PNR_ENOMEMORY, or as pnr_cuda_check. */
int pnr_cuda_walsh_tables_open(const pnr_plan *plan, pnr_cuda_walsh_tables *tables,
                               pnr_error *error);
void pnr_cuda_walsh_tables_close(pnr_cuda_walsh_tables *tables);
uint64_t pnr_cuda_walsh_tables_bytes(uint32_t degree); /* at most */

/* Prepares the long kernels for this device. */
int pnr_cuda_walsh_rows_open(pnr_format format, pnr_error *error);
int pnr_cuda_walsh_columns_open(uint32_t degree, pnr_error *error);
/* Shared memory of their blocks. */
size_t pnr_cuda_walsh_long_bytes(pnr_format format);

/* A group of windows: its samples sorted by rows and the rows transformed; then the columns, the
 * search, and the profiles. */
int pnr_cuda_walsh_launch_rows(const pnr_cuda_walsh *walsh, pnr_format format, cudaStream_t stream,
                               pnr_error *error);
int pnr_cuda_walsh_launch_columns(const pnr_cuda_walsh *walsh, cudaStream_t stream,
                                  pnr_error *error);

#endif
