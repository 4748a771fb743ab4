/* SPDX-License-Identifier: MIT */
/* The transforms of the cpu engine. FFTW computes a whole transform; split.h computes a transform
 * in three passes. */
#ifndef PNR_ENGINE_CPU_TRANSFORM_H
#define PNR_ENGINE_CPU_TRANSFORM_H

#include "engine/cpu/split.h"

typedef struct pnr_cpu_transform {
    size_t length; /* L, the length of the transform */
    bool is_split;
    pnr_cpu_split split;
    fftwf_plan forward, inverse; /* plans of a whole transform */
    size_t spectrum_pitch;       /* values of a spectrum; at least L */
    size_t in_values, out_values, tile_values;
} pnr_cpu_transform;

/* The scratch memory of a thread. */
typedef struct pnr_cpu_transform_scratch {
    pnr_cpu_value *in;   /* [in_values] the input; later c in the order of lags */
    pnr_cpu_value *out;  /* [out_values] the output, c */
    pnr_cpu_value *tile; /* [tile_values]; NULL without three passes */
} pnr_cpu_transform_scratch;

/* Only sets the sizes. is_split: the transform has three passes. */
void pnr_cpu_transform_shape(size_t length, bool is_split, pnr_cpu_transform *transform);
size_t pnr_cpu_transform_table_bytes(const pnr_cpu_transform *transform);
/* Call after shape. PNR_OK, PNR_ENOMEMORY; call destroy in either case. */
int pnr_cpu_transform_create(pnr_cpu_transform *transform);
void pnr_cpu_transform_destroy(pnr_cpu_transform *transform);

/* natural[L]: the bins in ascending order. Rounds them and writes them to `spectrum` in the order
 * of the transform. */
void pnr_cpu_transform_order(const pnr_cpu_transform *transform, const double (*natural)[2],
                             pnr_cpu_value *spectrum);
/* One thread transforms scratch->in[L] to a spectrum. */
void pnr_cpu_transform_forward(const pnr_cpu_transform *transform,
                               const pnr_cpu_transform_scratch *scratch, pnr_cpu_value *spectrum);
/* One thread writes c[k] = sum_j x[(j + shift) mod L] a[j] exp(2 pi i j k / L) to scratch->out. For
 * k < n_lags it writes |c|^2 to power or adds it there. power NULL: |c|^2 is not computed. stage_ns
 * NULL: nothing is measured. */
void pnr_cpu_transform_correlate(const pnr_cpu_transform *transform,
                                 const pnr_cpu_transform_scratch *scratch, const pnr_cpu_value *x,
                                 size_t shift, const pnr_cpu_value *a, size_t n_lags, float *power,
                                 bool add, uint64_t *stage_ns);
/* Returns c of the previous correlation in the order of lags. The caller may overwrite c. */
pnr_cpu_value *pnr_cpu_transform_lags(const pnr_cpu_transform *transform,
                                      const pnr_cpu_transform_scratch *scratch);

#endif
