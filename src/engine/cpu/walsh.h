/* SPDX-License-Identifier: MIT */
/* Method walsh of the cpu engine: the correlation with an m-sequence at its exact length, by
 * additions. */
#ifndef PNR_ENGINE_CPU_WALSH_H
#define PNR_ENGINE_CPU_WALSH_H

#include "engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The code is a[i] = 1 - 2 b[i] with the period N = 2^n - 1. Its states s_i = sum_j b[i + j] 2^j
 * are the numbers 1 .. N, each of them once. b[i - k] is linear in the bits of s_i. So with
 * X[s_i] = x[i] and X[0] = 0
 *     c[k] = sum_i x[i] (-1)^b[i - k] = W[u_k],   W[u] = sum_s X[s] (-1)^|s & u|,
 *     u_k = sum_j b[t_j - k] 2^j,   s_(t_j) = 2^j   (indices mod N).
 * |v| is the number of ones in v. W, the Walsh-Hadamard transform, needs n 2^n additions.
 * W[0] = sum x belongs to no lag.
 *
 * X lies in rows of 2^m values. A row is gathered and transformed over its m bits while it is in
 * the cache of one core; then the columns are transformed over the other n - m bits. Each row
 * starts 2^m values plus two cache lines after the row before it, so that a column spreads over all
 * sets of a cache.
 *
 * At q samples a chip, a[j] = chip[floor(j / q)] and N = q (2^n - 1). Part r of the samples is
 * x[q i + r]. c_r[k] is the correlation of part r with the chips, computed as above. Then
 *     c[q k + s] = sum_(r = s .. q-1) c_r[k] + sum_(r = 0 .. s-1) c_r[k + 1],
 * where c_r has the period 2^n - 1.
 */
typedef struct pnr_cpu_walsh {
    unsigned degree;       /* n: the period has 2^n - 1 chips */
    size_t n_parts;        /* q, samples of a chip */
    size_t rows, columns;  /* 2^(n - m), 2^m */
    size_t row;            /* pitch of the rows, in values */
    size_t n_column_tasks; /* number of tasks of pnr_cpu_walsh_columns */
    uint32_t *sample;      /* [2^n] the number i of the sample in X[s]; X[0] has none */
    uint32_t *place;       /* [2^n - 1]: the place of u_k in X and W */
    uint32_t *lag_at;      /* [rows * row]: the lag at each place */
} pnr_cpu_walsh;

/* plan: one code and one row. Returns NULL if this method suits the plan. Otherwise returns a
 * phrase with the reason. */
const char *pnr_cpu_walsh_refusal(const pnr_plan *plan);

/* Sets the sizes, which follow from m_degree and m_samples. */
void pnr_cpu_walsh_shape(const pnr_plan *plan, pnr_cpu_walsh *walsh);
size_t pnr_cpu_walsh_table_bytes(const pnr_cpu_walsh *walsh);
size_t pnr_cpu_walsh_values(const pnr_cpu_walsh *walsh); /* values in X of one part */

/* Call after shape and pnr_plan_check. PNR_OK, PNR_ENOMEMORY; call destroy in either case. */
int pnr_cpu_walsh_create(pnr_cpu_walsh *walsh, const pnr_plan *plan);
void pnr_cpu_walsh_destroy(pnr_cpu_walsh *walsh);

/* The samples of a window or of one part of it. */
typedef struct pnr_cpu_walsh_input {
    const void *data;  /* sample i begins at byte i * stride */
    size_t stride;     /* bytes from one sample to the next */
    pnr_format format; /* cf32 if the samples are converted already; else ci16 or ci8 */
    bool conjugate;    /* true: samples are I - jQ; unused for cf32 */
} pnr_cpu_walsh_input;

/* True if the samples of a window can be gathered from the ring. If plan->tune is set, if a look
 * has several periods, or if the format is neither ci16 nor ci8, the samples must be converted
 * first. */
bool pnr_cpu_walsh_reads(const pnr_plan *plan);
/* Gathers row `row` of X and transforms it over its m bits. The results are the same for converted
 * and unconverted input. */
void pnr_cpu_walsh_row(const pnr_cpu_walsh *walsh, size_t row, const pnr_cpu_walsh_input *input,
                       float (*X)[2]);
/* Runs after all rows. Transforms the columns of task `task`. Writes |W|^2 to `power` at the places
 * of X, or adds it there. Sets the power of W[0] to 0. X does not change. */
void pnr_cpu_walsh_columns(const pnr_cpu_walsh *walsh, size_t task, const float (*X)[2], bool add,
                           float *power);
/* Computes c[k] from the X that pnr_cpu_walsh_columns reads. |c[k]|^2 is the power at lag k. */
void pnr_cpu_walsh_value(const pnr_cpu_walsh *walsh, const float (*X)[2], size_t k, float c[2]);

/* --- several samples a chip --- */

/* Runs after all rows of a part. Replaces X by W in the columns of task `task`. */
void pnr_cpu_walsh_part(const pnr_cpu_walsh *walsh, size_t task, float (*X)[2]);
size_t pnr_cpu_walsh_n_sums(const pnr_cpu_walsh *walsh);
/* Runs after all columns. Computes c at the lags of task `task`, in the order of lags. Writes |c|^2
 * to `power`, or adds it there. W: [n_parts][pnr_cpu_walsh_values]. */
void pnr_cpu_walsh_sum(const pnr_cpu_walsh *walsh, size_t task, const float (*W)[2], bool add,
                       float (*c)[2], float *power);

#endif
