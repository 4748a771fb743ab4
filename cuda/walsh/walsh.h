/* SPDX-License-Identifier: MIT */
/* Method walsh correlates m-sequences at one sample per chip by one fast Walsh-Hadamard
 * transform. */
#ifndef PNR_CUDA_WALSH_H
#define PNR_CUDA_WALSH_H

#include "cuda/base/memory.h"
#include "cuda/base/shape.h"
#include "cuda/base/state.h"

#include <cuda_runtime.h>

enum {
    PNR_WALSH_MIN_DEGREE = 5,
    PNR_WALSH_SHORT_DEGREE = 13, /* highest degree that one kernel transforms */
    PNR_WALSH_MAX_DEGREE = 22,
    PNR_WALSH_EACH = 32, /* values of a thread */

    /* Sizes above degree 13. */
    PNR_WALSH_TILE_BITS = 13,
    PNR_WALSH_TILE = 1 << PNR_WALSH_TILE_BITS, /* values of a block: one row, or some columns */
    PNR_WALSH_CHUNK_BITS = 14,
    PNR_WALSH_CHUNK = 1 << PNR_WALSH_CHUNK_BITS, /* samples that a block sorts */
    PNR_WALSH_QUAD = 4,                          /* samples that are written together */
    PNR_WALSH_CHUNK_QUADS = 4608, /* enough quads for CHUNK + 1 samples and up to 3 empty places in
                                   * each of 512 rows */
    PNR_WALSH_ROW_QUADS = 2304 /* enough quads for TILE + 1 samples and up to 3 empty places in each
                                * of 256 chunks */
};

/*
 * A period has N = 2^n - 1 samples. The code is a[i] = 1 - 2 b[i], b: an m-sequence. The states of
 * its register, s_i = sum_j b[i + j] 2^j, i < N, j < n, are all n-bit numbers except 0. Let X[s_i]
 * be sample x_i, X[0] = 0, and let W be the Walsh-Hadamard transform of X,
 *   W[u] = sum_m (-1)^(number of ones in the bits of u & m) X[m].
 * Then the correlation at lag k is W[u_k] with u_k = sum_j b[t_j - k] 2^j. t_j is the index of
 * state 2^j. The reason is that the bits of s_i that u_k selects have the sum b[i - k] modulo 2.
 * W[0] is the sum of x and belongs to no lag.
 */
typedef struct pnr_cuda_walsh {
    /* [windows of the submit][N], one channel. The memory extends to the next multiple of 16 bytes.
     * All other arrays of dwells begin with dwell first_dwell. */
    const void *raw;
    const pnr_cuda_job *job;        /* header of the submit, which has the number of its dwells */
    const pnr_cuda_window *windows; /* [n_dwells][n_periods] */
    /* Tables of 2^n entries each. `place` has an entry for each state m. Up to degree 13 the entry
     * is the index of the state's sample in the window. Above degree 13 it is the index of this
     * sample in its row of `sorted`. pnr_cuda_walsh_place returns the index of the entry.
     * lag_of[u_k] is k; lag_of[0] is not used. cell_of[k] is u_k. The entries of lag_of and cell_of
     * are uint16_t up to degree 13 and uint32_t above. */
    const uint16_t *place;
    const void *lag_of, *cell_of;
    pnr_dwell *dwells;         /* [n_dwells] */
    pnr_candidate *candidates; /* [n_dwells][max_candidates] */
    uint32_t *nonfinite;       /* [n_dwells][n_periods] */
    float *power;              /* [n_dwells][N], or NULL */
    float2 *profile;           /* [n_dwells][N], or NULL */
    const double *thresholds;  /* [n_periods]: in units of the floor */
    float scale;               /* x = scale * raw has full scale = 1; scale is a power of two */
    float conjugate;           /* -1 when x is conjugated, else 1 */
    uint32_t first_dwell;      /* index, in the submit, of the first dwell of this launch */
    uint32_t n_dwells;         /* greatest number of dwells; the job has the actual number */
    uint32_t n_periods;        /* windows of a dwell; 1 above degree 13 */
    uint32_t degree;
    uint32_t max_candidates;
    uint32_t has_outside; /* 1: one candidate may be outside of the gate, see plan.h */
    uint32_t gate_first, gate_count;

    /* Tables above degree 13, see rows.cu: */
    const uint16_t *source;     /* [chunks][PNR_WALSH_CHUNK_QUADS][PNR_WALSH_QUAD] */
    const uint32_t *target;     /* [chunks][PNR_WALSH_CHUNK_QUADS] */
    const uint32_t *first_quad; /* [rows + 1]: first quad of a row; the last entry is n_quads */
    uint32_t n_quads;           /* quads of a window: the last entry of first_quad */
    /* Scratch memory of a group of windows: */
    void *sorted;           /* [n_dwells][n_quads] quads: samples sorted by rows */
    pnr_cuda_energy *parts; /* [n_dwells][chunks] */
    pnr_cuda_energy *sums;  /* [n_dwells] */
    float *limit;           /* [n_dwells]: the first threshold */
    float2 *rows;           /* [n_dwells][2^n]: values after the row transforms */
    double *noise;          /* [n_dwells][tiles]: sum of the powers */
    float *top;             /* [n_dwells][tiles]: the greatest power */
    float *above;           /* [n_dwells][2^n]: powers of the listed lags, else 0 */
    uint32_t *n_listed;     /* [n_dwells]: number of listed lags; each search sets it back to 0 */
    uint32_t *listed;       /* [n_dwells][2^n]: lags above the threshold */
    uint64_t *keys;         /* [n_dwells][2^n / 2]: local maxima */
    float2 *cells;          /* [n_dwells][2^n]: W, if a profile is wanted, else NULL */
} pnr_cuda_walsh;

typedef void (*pnr_cuda_walsh_kernel)(pnr_cuda_walsh);

typedef struct pnr_cuda_walsh_short {
    pnr_format format;
    uint32_t degree;
    pnr_cuda_walsh_kernel kernel;
    uint32_t n_dwells; /* dwells that a block computes at one time */
    uint32_t n_threads;
    size_t shared_bytes;
} pnr_cuda_walsh_short;

/* pnr_cuda_walsh_find finds the kernel for dwells of one window. pnr_cuda_walsh_find_dwell finds
 * the kernel for dwells of several windows; there one block computes all windows of a dwell. NULL:
 * there is no such kernel. */
const pnr_cuda_walsh_short *pnr_cuda_walsh_find(pnr_format format, uint32_t degree);
const pnr_cuda_walsh_short *pnr_cuda_walsh_find_dwell(bool is_incoherent, pnr_format format,
                                                      uint32_t degree);

/* Returns the index of the entry of state m in `place`. A thread reads the entries of 32 states in
 * pieces of 16 bytes. */
size_t pnr_cuda_walsh_place(uint32_t degree, uint32_t m);

/* The numbers of rows (of 2^13 states each) and of chunks, for degrees above 13. There are as many
 * tiles as rows; a tile consists of whole columns. */
static inline uint32_t pnr_cuda_walsh_rows(uint32_t degree)
{
    return 1u << (degree - PNR_WALSH_TILE_BITS);
}
static inline uint32_t pnr_cuda_walsh_chunks(uint32_t degree)
{
    return 1u << (degree - PNR_WALSH_CHUNK_BITS);
}

/* Returns the greatest number of quads of a window. The quads contain the samples, up to 3 padding
 * samples for each chunk of each row, and a zero for state 0. */
static inline size_t pnr_cuda_walsh_max_quads(uint32_t degree)
{
    return (((size_t)1 << degree) +
            3 * (size_t)pnr_cuda_walsh_rows(degree) * pnr_cuda_walsh_chunks(degree)) /
               PNR_WALSH_QUAD +
           1;
}

enum { PNR_WALSH_TABLES = 6 };
/* Lists the memory of the tables. Returns the number of buffers, PNR_WALSH_TABLES. Up to degree 13
 * the buffers for the long kernels are empty. */
size_t pnr_cuda_walsh_tables_list(uint32_t degree, pnr_cuda_walsh *tables, pnr_cuda_buffer *list);
/* Fills n_quads and the tables, whose memory must be allocated. Returns PNR_OK, PNR_ENOMEMORY, or
 * the error of pnr_cuda_check. */
int pnr_cuda_walsh_tables_fill(const pnr_plan *plan, pnr_cuda_walsh *tables, pnr_error *error);

/* Prepare the long kernels for the device in use. */
int pnr_cuda_walsh_rows_open(pnr_format format, pnr_error *error);
int pnr_cuda_walsh_columns_open(uint32_t degree, pnr_error *error);
/* Returns the greatest shared memory that a block of the long kernels needs. */
size_t pnr_cuda_walsh_long_bytes(pnr_format format);

/* Enqueue the work on a group of windows. pnr_cuda_walsh_launch_rows sorts the samples and
 * transforms the rows. pnr_cuda_walsh_launch_columns transforms the columns, searches, and writes
 * the profiles. */
int pnr_cuda_walsh_launch_rows(const pnr_cuda_walsh *walsh, pnr_format format, cudaStream_t stream,
                               pnr_error *error);
int pnr_cuda_walsh_launch_columns(const pnr_cuda_walsh *walsh, cudaStream_t stream,
                                  pnr_error *error);

#endif
