/* SPDX-License-Identifier: MIT */
/* Fourier transforms of power-of-two length down 16 columns at once,
 * a column in each vector lane. */
#ifndef PNR_ENGINE_CPU_COLUMNS_H
#define PNR_ENGINE_CPU_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decimation in frequency, in place, in two or three stages: N = R M, n = q M + j, k = p + R k',
 * W_N^(nk) = W_R^(qp) W_N^(jp) W_M^(jk'). A stage replaces the R lines q M + j by the R values p,
 * times W_N^(jp), at p M + j; the next one does the same within each M lines. So at the end place
 * p0 N / R0 + p1 N / (R0 R1) + p2 holds k = p0 + R0 p1 + R0 R1 p2: the last stage stores each line
 * where it belongs. The first reads lines of complex values, the last writes such; in between the
 * tile holds real and imaginary parts apart. The inverse is the forward one with these two in each
 * other's place, at both ends.
 */
enum { PNR_CPU_LANES = 16, PNR_CPU_COLUMN_STAGES = 3, PNR_CPU_COLUMN_MAX = 4096 };

/* A line of complex values, parts apart: [0] real, [1] imaginary. */
typedef float pnr_cpu_line[2][PNR_CPU_LANES];

typedef struct pnr_cpu_columns {
    size_t n; /* 0: no such transform */
    size_t n_stages;
    size_t radix[PNR_CPU_COLUMN_STAGES]; /* 8 or 16 */
    float (*roots)[2];                   /* of stage 0, then 1: [j][p] W^(jp) */
    uint16_t *order;                     /* [n / last radix] k of each of its p = 0 */
} pnr_cpu_columns;

/* What multiplies line k1 lane j: coarse[k1] fine[k1][j], or the conjugate on the way back. */
typedef struct pnr_cpu_column_twiddle {
    const float (*coarse)[2];
    const pnr_cpu_line *fine;
} pnr_cpu_column_twiddle;

/* Is there one of length n? */
bool pnr_cpu_columns_can(size_t n);
size_t pnr_cpu_columns_table_bytes(size_t n);
/* PNR_OK, PNR_ENOMEMORY; destroy in either case, or of zeros. */
int pnr_cpu_columns_create(pnr_cpu_columns *columns, size_t n);
void pnr_cpu_columns_destroy(pnr_cpu_columns *columns);

/* from[n]: 16 complex values each; line k, times the twiddle, to z + k row. tile[n]. */
void pnr_cpu_columns_forward(const pnr_cpu_columns *columns, const float (*const *from)[2],
                             const pnr_cpu_column_twiddle *twiddle, pnr_cpu_line *tile,
                             float (*z)[2], size_t row);
/* Line k of z, times the twiddle's conjugate; line m to c + m row, its |c|^2 to power + m power_row
 * where m < n_power, or added there. */
void pnr_cpu_columns_inverse(const pnr_cpu_columns *columns, const float (*z)[2], size_t row,
                             const pnr_cpu_column_twiddle *twiddle, pnr_cpu_line *tile,
                             float (*c)[2], float *power, size_t power_row, size_t n_power,
                             bool add);

#endif
