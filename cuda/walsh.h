/* SPDX-License-Identifier: MIT */
/* Method walsh: m-sequences at one sample a chip through one fast Walsh-Hadamard transform. */
#ifndef PNR_CUDA_WALSH_H
#define PNR_CUDA_WALSH_H

#include "shape.h"
#include "state.h"

#include <cuda_runtime.h>

enum {
    PNR_WALSH_MIN_DEGREE = 5,
    PNR_WALSH_SHORT_DEGREE = 13, /* at most: one kernel */
    PNR_WALSH_MAX_DEGREE = 22,
    PNR_WALSH_TILE = 8192, /* values of the second kernel's block */
    PNR_WALSH_TILE_BITS = 13,
    PNR_WALSH_EACH = 32 /* values a thread holds */
};

/*
 * N = 2^n - 1 samples of one period; the code is a[i] = 1 - 2 b[i], b an m-sequence. Its register's
 * states s_i = sum_j b[i + j] 2^j, i < N, j < n, are all numbers but 0. With x_i put at X[s_i],
 * X[0] = 0, and W[u] = sum_m (-1)^(bits common to u and m, added) X[m], the Walsh-Hadamard
 * transform of X, c[k] = W[u_k] with u_k = sum_j b[t_j - k] 2^j, t_j the index of state 2^j: the
 * bits of s_i that u_k picks add up to b[i - k]. W[0] is the sum of x, not a lag.
 */
typedef struct pnr_cuda_walsh {
    const void *raw; /* [n_windows][N], one channel, readable to the next multiple of 16 bytes */
    const pnr_cuda_job *job;        /* how many there really are in the submit */
    const pnr_cuda_window *windows; /* [n_windows] */
    /* Tables of 2^n entries each, uint16_t up to degree 13, else uint32_t.
     * place: i of state m, in the order of the threads (pnr_cuda_walsh_place);
     * lag_of: k of u_k; [0] is of no matter. cell_of: u_k of k. */
    const void *place, *lag_of, *cell_of;
    pnr_dwell *dwells;         /* [n_windows] */
    pnr_candidate *candidates; /* [n_windows][max_candidates] */
    uint32_t *nonfinite;       /* [n_windows] */
    float *power;              /* [n_windows][N], or NULL */
    float2 *profile;           /* [n_windows][N], or NULL */
    double threshold;          /* times floor */
    float scale;               /* full scale = raw * scale, a power of two */
    float conjugate;           /* -1 when x is conjugated, else 1 */
    uint32_t first_window;     /* of the submit's */
    uint32_t n_windows;        /* at most */
    uint32_t degree;
    uint32_t max_candidates;
    uint32_t gate_first, gate_count;

    /* Two kernels and the search: row m >> row_bits, column the rest. */
    uint32_t row_bits;      /* of a row's length */
    float2 *rows;           /* [n_windows][2^n]: transformed along each row */
    pnr_cuda_energy *parts; /* [n_windows][rows] */
    double *noise;          /* [n_windows][tiles] */
    float *top;             /* [n_windows][tiles]: the greatest power */
    float *above;           /* [n_windows][2^n]: power of lags above, else 0 */
    uint32_t *listed;       /* [n_windows][2^n]: those lags */
    uint64_t *keys;         /* [n_windows][2^n / 2]: local maxima */
    float2 *cells;          /* [n_windows][2^n]: W, when a profile is wanted, else NULL */
} pnr_cuda_walsh;

typedef void (*pnr_cuda_walsh_kernel)(pnr_cuda_walsh);

typedef struct pnr_cuda_walsh_short {
    pnr_format format;
    uint32_t degree;
    pnr_cuda_walsh_kernel kernel;
    uint32_t n_threads;
    uint32_t n_windows; /* that a block works on at one time */
    size_t shared_bytes;
} pnr_cuda_walsh_short;

/* NULL: none. */
const pnr_cuda_walsh_short *pnr_cuda_walsh_find(pnr_format format, uint32_t degree);

/* The place in its table of the index of state m: 32 states a thread, in pieces of 16 bytes. */
size_t pnr_cuda_walsh_place(uint32_t degree, uint32_t row_bits, uint32_t m);
/* log2 of a row's length; the degree itself up to 13. */
uint32_t pnr_cuda_walsh_row_bits(uint32_t degree);
/* Tiles of the second kernel a window. */
uint32_t pnr_cuda_walsh_tiles(uint32_t degree);

/* Prepares the long kernels (degree 14 and more) for this device. */
int pnr_cuda_walsh_long_open(pnr_error *error);
/* Shared memory of their blocks. */
size_t pnr_cuda_walsh_long_bytes(void);

/* Two streams, so that the rows of one group of windows run beside the columns of another, and a
 * group's intermediate is read while it is still in the L2 cache. */
typedef struct pnr_cuda_walsh_streams {
    cudaStream_t main;
    cudaStream_t side; /* idle before and after, in main's order */
    cudaEvent_t fork, join;
} pnr_cuda_walsh_streams;

/* All windows. n_group: windows that the kernels take at one time. */
int pnr_cuda_walsh_long(const pnr_cuda_walsh *walsh, pnr_format format, uint32_t n_group,
                        const pnr_cuda_walsh_streams *streams, pnr_error *error);

#endif
