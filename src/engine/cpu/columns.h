/* SPDX-License-Identifier: MIT */
/* Fourier transforms along 16 columns at once, one column in each vector lane. The lengths are
 * powers of two. */
#ifndef PNR_ENGINE_CPU_COLUMNS_H
#define PNR_ENGINE_CPU_COLUMNS_H

#include "base/complex.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decimation in frequency, in two or three stages. With W_N = exp(-2 pi i / N), N = R M,
 * n = q M + j and k = p + R k', W_N^(nk) = W_R^(qp) W_N^(jp) W_M^(jk'). A line has one value of
 * each of the 16 columns. For each j a stage transforms the R lines q M + j to R outputs p. It
 * stores output p, times W_N^(jp), in line p M + j. The next stage does the same within each block
 * of M lines. In place, output k = p0 + R0 p1 + R0 R1 p2 would end in line p0 N/R0 + p1 N/(R0 R1) +
 * p2; the last stage stores this output in line k. The first stage reads complex values and the
 * last stage writes complex values. Between these stages the tile holds real and imaginary parts
 * separately. The inverse transform exchanges real and imaginary parts in its input and in its
 * output.
 */
enum { PNR_CPU_LANES = 16, PNR_CPU_COLUMN_STAGES = 3, PNR_CPU_COLUMN_MAX = 4096 };

/* A line, one value of each of the 16 columns: [0] real parts, [1] imaginary parts. */
typedef float pnr_cpu_line[2][PNR_CPU_LANES];

typedef struct pnr_cpu_columns {
    size_t n; /* length; 0: the struct holds no transform */
    size_t n_stages;
    size_t radix[PNR_CPU_COLUMN_STAGES]; /* 8 or 16 */
    float (*roots)[2];                   /* roots of stage 0, then of stage 1: [j][p] W^(jp) */
    uint16_t *order; /* [n / last radix] k of output 0 of each butterfly in the last stage */
} pnr_cpu_columns;

/* Line k1, lane j has the factor coarse[k1] fine[k1][j]. The inverse uses its conjugate. */
typedef struct pnr_cpu_column_twiddle {
    const float (*coarse)[2];
    const pnr_cpu_line *fine;
} pnr_cpu_column_twiddle;

static inline void pnr_cpu_round(double complex a, float out[2])
{
    out[0] = (float)creal(a);
    out[1] = (float)cimag(a);
}

/* True if a transform of length n exists. */
bool pnr_cpu_columns_can(size_t n);
size_t pnr_cpu_columns_table_bytes(size_t n);
/* PNR_OK, PNR_ENOMEMORY; call destroy in either case. A zeroed struct may also be destroyed. */
int pnr_cpu_columns_create(pnr_cpu_columns *columns, size_t n);
void pnr_cpu_columns_destroy(pnr_cpu_columns *columns);

/* Transforms the n lines in `from`, each of 16 complex values. Writes line k, times the twiddle, to
 * z + k * row. tile: [n]. */
void pnr_cpu_columns_forward(const pnr_cpu_columns *columns, const float (*const *from)[2],
                             const pnr_cpu_column_twiddle *twiddle, pnr_cpu_line *tile,
                             float (*z)[2], size_t row);
/* Computes the inverse transform. First multiplies line k of z by the conjugate of the twiddle.
 * Writes line m to c + m * row. Also writes |c|^2 of the lines m < n_power to power + m *
 * power_row, or adds |c|^2 to the values there if `add` is true. */
void pnr_cpu_columns_inverse(const pnr_cpu_columns *columns, const float (*z)[2], size_t row,
                             const pnr_cpu_column_twiddle *twiddle, pnr_cpu_line *tile,
                             float (*c)[2], float *power, size_t power_row, size_t n_power,
                             bool add);

#endif
