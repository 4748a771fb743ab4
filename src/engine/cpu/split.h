/* SPDX-License-Identifier: MIT */
/* Long transforms of the cpu engine in three passes over memory, with short FFTW plans. */
#ifndef PNR_ENGINE_CPU_SPLIT_H
#define PNR_ENGINE_CPU_SPLIT_H

#include "engine/cpu/columns.h"

#define FFTW_NO_Complex /* so that fftwf_complex is a pair of floats */
#include <fftw3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A circular correlation c of the samples x with one code. Its length is L = N1 N2, with
 * N1 <= N2 <= 8 N1. H is conj(spectrum of the code) / L. Let n = N2 n1 + n2 be the index of a
 * sample, k = k1 + N1 k2 the index of a bin, m = N2 m1 + m2 a lag, and W_Q = exp(-2 pi i / Q).
 * Then W_L^(nk) = W_N1^(n1 k1) W_L^(n2 k1) W_N2^(n2 k2), because W_L^(N1 N2) = 1. So
 *
 * pass A  Z[k1][n2] = sum_n1 W_N1^(n1 k1) x[N2 n1 + n2]                columns n2
 * pass B  X[k1][k2] = sum_n2 W_N2^(n2 k2) W_L^(n2 k1) Z[k1][n2]        rows k1: the spectrum at
 *                                                                      k1 + N1 k2
 *         Z[k1][m2] = W_L^(-m2 k1) sum_k2 W_N2^(-m2 k2) X[k1][k2] H[k1][k2]   rows k1, inverse
 * pass C  c[N2 m1 + m2] = sum_k1 W_N1^(-k1 m1) Z[k1][m2]               columns m2
 *
 * columns.h transforms columns of power-of-two length, COLUMNS at a time in vector lanes, and also
 * multiplies by the powers of W_L; c then has the shape of Z, [m1][m2]. FFTW transforms other
 * columns as contiguous rows of a tile, COLUMNS at a time; c is then [m2][m1]. H has the order of
 * X. pnr_cpu_split_place returns the index of a lag in c. FFTW_ESTIMATE plans are fast at the
 * lengths N1 and N2, and slow at L.
 */
enum { PNR_CPU_COLUMNS = PNR_CPU_LANES };

typedef float pnr_cpu_value[2]; /* re, im */

typedef struct pnr_cpu_split {
    size_t length, n1, n2; /* L, N1, N2 */
    size_t row1, row2;     /* pitch of rows: row1 in the tile, row2 in Z and H; in c row1, or row2
                            * if is_wide */
    size_t n_blocks;       /* number of blocks of columns; a block is a task of pass A or C */
    size_t n_row_blocks;   /* number of blocks of rows; a block is a task of pass B */
    size_t next1, next2;   /* distance in c of m1 and m1 + 1, and of m2 and m2 + 1, in values */
    bool is_wide;          /* N1 is a power of two, and columns are computed in lanes */
    /* Column j of block b needs W_L^((COLUMNS b + j) k1). This is the product of W_L^(COLUMNS b k1)
     * in `coarse` and W_L^(j k1) in `fine` or `lines` */
    pnr_cpu_value *coarse;        /* [N1][n_blocks]; is_wide: [n_blocks][N1] */
    pnr_cpu_value *fine;          /* [N1][COLUMNS]; is_wide: NULL */
    pnr_cpu_line *lines;          /* is_wide: [N1] the powers of W_L, in place of `fine` */
    pnr_cpu_columns columns;      /* transform of the columns; only if is_wide */
    fftwf_plan column[2], row[2]; /* forward, inverse; is_wide: `column` is unused */
} pnr_cpu_split;

/* Finds N1 and N2 for L. Returns false if L is too short, or has no factors with N2 <= 8 N1; then a
 * whole transform is faster. */
bool pnr_cpu_split_factors(size_t length, size_t *n1, size_t *n2);
/* True if three passes by one thread are faster than a whole transform. This is also true at some
 * L that pnr_cpu_split_factors refuses, if the columns are computed in lanes. */
bool pnr_cpu_split_pays(size_t length);
/* Sets the sizes that follow from L. */
void pnr_cpu_split_shape(size_t length, pnr_cpu_split *split);
/* Returns the bytes of the tables. */
size_t pnr_cpu_split_table_bytes(const pnr_cpu_split *split);
/* Returns the number of values of Z. H has the same number. */
size_t pnr_cpu_split_spectrum_values(const pnr_cpu_split *split);
/* Returns the number of values of c. */
size_t pnr_cpu_split_profile_values(const pnr_cpu_split *split);
/* Returns the number of values in the tile of a thread. */
size_t pnr_cpu_split_tile_values(const pnr_cpu_split *split);

/* Call after shape. PNR_OK, PNR_ENOMEMORY; call destroy in either case. */
int pnr_cpu_split_create(pnr_cpu_split *split);
void pnr_cpu_split_destroy(pnr_cpu_split *split);

/* Returns the distance in values from row to row for rows of n_values. It is an odd number of whole
 * cache lines, so that the values of one column spread over all sets of a cache. */
static inline size_t pnr_cpu_pitch(size_t n_values)
{
    return ((n_values + 7) / 8 | 1) * 8;
}

/* Returns the index of lag k in c. */
static inline size_t pnr_cpu_split_place(const pnr_cpu_split *split, size_t k)
{
    return k % split->n2 * split->next2 + k / split->n2 * split->next1;
}

/* Rounds natural[L] to single precision and writes it to h in the order of H. natural:
 * conj(spectrum of the code) / L. */
void pnr_cpu_split_order(const pnr_cpu_split *split, const double (*natural)[2], pnr_cpu_value *h);

/* Pass A of one block of columns. The input is x[n mod n_samples] for n < n_lit, then zeros. n_lit
 * is 2 n_samples - 1 if the period is extended, otherwise n_samples. */
void pnr_cpu_split_forward(const pnr_cpu_split *split, size_t block, const pnr_cpu_value *x,
                           size_t n_samples, size_t n_lit, pnr_cpu_value *z, pnr_cpu_value *tile);
/* Pass B of one block of rows. Transforms z[0], the result of pass A. For each of the n codes,
 * multiplies the spectrum by h[i], transforms the product back, and writes it to z[i].
 * stage_ns: [PNR_STAGE_COUNT]; NULL: nothing is measured. */
void pnr_cpu_split_rows(const pnr_cpu_split *split, size_t block, size_t n,
                        pnr_cpu_value *const z[2], pnr_cpu_value *const h[2], pnr_cpu_value *tile,
                        uint64_t *stage_ns);
/* Pass C of one block of columns. For lags k < n_samples, power[k] = |c[k]|^2; add: power[k] +=
 * |c[k]|^2. */
void pnr_cpu_split_inverse(const pnr_cpu_split *split, size_t block, const pnr_cpu_value *z,
                           pnr_cpu_value *c, size_t n_samples, bool add, float *power,
                           pnr_cpu_value *tile, uint64_t *stage_ns);

/* Pass B in two halves, for a spectrum that is kept. One thread computes all rows. The first half
 * transforms z to X and overwrites z. The second half reads X from bin `shift` on, multiplies it by
 * h, and transforms the product to z. */
void pnr_cpu_split_spectrum(const pnr_cpu_split *split, pnr_cpu_value *z, pnr_cpu_value *x);
void pnr_cpu_split_product(const pnr_cpu_split *split, const pnr_cpu_value *x, size_t shift,
                           const pnr_cpu_value *h, pnr_cpu_value *tile, pnr_cpu_value *z);
/* Copies c to natural[L], in the order of lags. */
void pnr_cpu_split_lags(const pnr_cpu_split *split, const pnr_cpu_value *c, pnr_cpu_value *natural);

#endif
