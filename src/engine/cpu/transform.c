/* SPDX-License-Identifier: MIT */
/* The transforms of the cpu engine. FFTW computes a whole transform; split.h computes a transform
 * in three passes. */
#include "engine/cpu/transform.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/cpu/ops.h"
#include "engine/cpu/stopwatch.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

typedef pnr_cpu_value value;

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

void pnr_cpu_transform_shape(size_t length, bool is_split, pnr_cpu_transform *t)
{
    *t = (pnr_cpu_transform){
        .length = length,
        .is_split = is_split,
        .spectrum_pitch = pnr_cpu_pitch(length),
    };
    t->in_values = t->out_values = t->spectrum_pitch;
    if (!t->is_split)
        return;
    pnr_cpu_split_shape(length, &t->split);
    t->spectrum_pitch = greater(t->spectrum_pitch, pnr_cpu_split_spectrum_values(&t->split));
    t->in_values = t->spectrum_pitch;
    t->out_values = greater(t->spectrum_pitch, pnr_cpu_split_profile_values(&t->split));
    t->tile_values = pnr_cpu_split_tile_values(&t->split);
}

size_t pnr_cpu_transform_table_bytes(const pnr_cpu_transform *t)
{
    return t->is_split ? pnr_cpu_split_table_bytes(&t->split) : 0;
}

/* FFTW_ESTIMATE gives the same plans in every process, so the results have the same bits. */
int pnr_cpu_transform_create(pnr_cpu_transform *t)
{
    value *in, *out;

    if (t->is_split)
        return pnr_cpu_split_create(&t->split);
    in = pnr_memory_zeroed(t->in_values * sizeof *in);
    out = pnr_memory_zeroed(t->out_values * sizeof *out);
    if (in != NULL && out != NULL) {
        t->forward = fftwf_plan_dft_1d((int)t->length, in, out, FFTW_FORWARD,
                                       FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
        t->inverse = fftwf_plan_dft_1d((int)t->length, in, out, FFTW_BACKWARD,
                                       FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    }
    free(in);
    free(out);
    return t->forward != NULL && t->inverse != NULL ? PNR_OK : PNR_ENOMEMORY;
}

void pnr_cpu_transform_destroy(pnr_cpu_transform *t)
{
    if (t->forward != NULL)
        fftwf_destroy_plan(t->forward);
    if (t->inverse != NULL)
        fftwf_destroy_plan(t->inverse);
    pnr_cpu_split_destroy(&t->split);
}

void pnr_cpu_transform_order(const pnr_cpu_transform *t, const double (*natural)[2],
                             value *spectrum)
{
    if (t->is_split)
        pnr_cpu_split_order(&t->split, natural, spectrum);
    for (size_t i = 0; !t->is_split && i < t->length; i++) {
        spectrum[i][0] = (float)natural[i][0];
        spectrum[i][1] = (float)natural[i][1];
    }
}

void pnr_cpu_transform_forward(const pnr_cpu_transform *t, const pnr_cpu_transform_scratch *scratch,
                               value *spectrum)
{
    if (!t->is_split) {
        fftwf_execute_dft(t->forward, scratch->in, spectrum);
        return;
    }
    for (size_t b = 0; b < t->split.n_blocks; b++)
        pnr_cpu_split_forward(&t->split, b, (const value *)scratch->in, t->length, t->length,
                              scratch->out, scratch->tile);
    pnr_cpu_split_spectrum(&t->split, scratch->out, spectrum);
}

void pnr_cpu_transform_correlate(const pnr_cpu_transform *t,
                                 const pnr_cpu_transform_scratch *scratch, const value *x,
                                 size_t shift, const value *a, size_t n_lags, float *power,
                                 bool add, uint64_t *stage_ns)
{
    const size_t wrap = t->length - shift;
    uint64_t since = pnr_cpu_start(stage_ns);

    if (t->is_split) {
        pnr_cpu_split_product(&t->split, x, shift, a, scratch->tile, scratch->in);
        pnr_cpu_lap(stage_ns, PNR_STAGE_PRODUCT, &since);
        for (size_t b = 0; b < t->split.n_blocks; b++)
            pnr_cpu_split_inverse(&t->split, b, (const value *)scratch->in, scratch->out,
                                  power != NULL ? n_lags : 0, add, power, scratch->tile, stage_ns);
        return;
    }
    pnr_cpu_product(wrap, x + shift, a, scratch->in);
    pnr_cpu_product(shift, x, a + wrap, scratch->in + wrap);
    pnr_cpu_lap(stage_ns, PNR_STAGE_PRODUCT, &since);
    fftwf_execute_dft(t->inverse, scratch->in, scratch->out);
    pnr_cpu_lap(stage_ns, PNR_STAGE_INVERSE, &since);
    if (power != NULL)
        pnr_cpu_power(n_lags, (const value *)scratch->out, add, power);
    pnr_cpu_lap(stage_ns, PNR_STAGE_PEAK, &since);
}

value *pnr_cpu_transform_lags(const pnr_cpu_transform *t, const pnr_cpu_transform_scratch *scratch)
{
    if (!t->is_split)
        return scratch->out;
    pnr_cpu_split_lags(&t->split, (const value *)scratch->out, scratch->in);
    return scratch->in;
}
