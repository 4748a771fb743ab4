/* SPDX-License-Identifier: MIT */
/* The tables of the cpu engine: spectra of the codes, rotations, weights, and the filter. */
#include "engine/cpu/cpu.h"

#include "base/complex.h"
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

typedef pnr_cpu_value value;

/* Fills the table of each rotation q with exp(-2 pi i q n / (4 N)), n = 0, 1, ... */
static void fill_rotations(const pnr_cpu *cpu)
{
    for (size_t r = 0; r < cpu->axes.n_rotations; r++)
        for (size_t i = 0; cpu->rotations[r] != NULL && i < cpu->window; i++)
            pnr_cpu_round(
                conj(pnr_root(cpu->axes.rotations[r] * (int64_t)i, 4 * cpu->plan->n_samples)),
                cpu->rotations[r][i]);
}

/* Fills the weights w_p exp(-2 pi i (r/4 + s/K) p) of axes.h, with s = 0 for a set that is
 * transformed. */
static void fill_weights(const pnr_cpu *cpu, size_t number)
{
    const pnr_cpu_set *set = &cpu->axes.sets[number];
    const size_t k = cpu->plan->n_periods, count = set->is_summed ? set->count : 1;
    value *weights = cpu->weights[number];

    for (size_t u = 0; weights != NULL && u < count; u++)
        for (size_t p = 0; p < k; p++) {
            const double taper = cpu->plan->taper != NULL ? cpu->plan->taper[p] : 1;
            const size_t bin = set->is_summed ? cpu->axes.spectra[set->first + u].bin : 0;
            const size_t quarters = (set->quarters * k + 4 * bin) % (4 * k);

            pnr_cpu_round(taper * conj(pnr_root((int64_t)(quarters * p), 4 * k)),
                          weights[set->is_summed ? (u / 4 * k + p) * 4 + u % 4 : p]);
        }
}

/* Computes conj(DFT of a[n] exp(2 pi i m n / N)) / length in double, where a[n] is 0 for n >= N.
 * Then rounds each value once. */
static int fill_code(const pnr_cpu *cpu, size_t code, double complex *spectrum)
{
    const size_t n = cpu->plan->n_samples, length = cpu->axes.n_transform;
    const double complex *a = (const double complex *)cpu->plan->references + code * n;

    for (size_t v = 0; v < cpu->axes.n_variants; v++) {
        value *out = cpu->codes + (code * cpu->axes.n_variants + v) * cpu->transform.spectrum_pitch;

        memset(spectrum, 0, length * sizeof *spectrum);
        for (size_t i = 0; i < n; i++)
            spectrum[i] = a[i] * pnr_root(cpu->axes.variants[v] * (int64_t)i, n);
        if (pnr_transform_forward((double(*)[2])spectrum, length) != PNR_OK)
            return PNR_ENOMEMORY;
        for (size_t i = 0; i < length; i++)
            spectrum[i] = conj(spectrum[i]) / (double)length;
        pnr_cpu_transform_order(&cpu->transform, (const double(*)[2])spectrum, out);
    }
    return PNR_OK;
}

/* Stores the columns of the filter as rows, because c'[k] = sum_j filter[k][j] c[j] is computed as
 * a weighted sum of these rows. */
static void fill_filter(const pnr_cpu *cpu)
{
    const size_t n = cpu->plan->gate_count;
    const double complex *filter = (const double complex *)cpu->plan->filter;

    for (size_t k = 0; cpu->filter != NULL && k < n; k++)
        for (size_t j = 0; j < n; j++)
            pnr_cpu_round(filter[k * n + j], cpu->filter[j * cpu->filter_pitch + k]);
}

static int fill_doubling(const pnr_cpu *cpu)
{
    const pnr_cpu_transform *transform = &cpu->doubling.transform;
    double(*half)[2] = calloc(transform->length, sizeof *half);

    if (half == NULL)
        return PNR_ENOMEMORY;
    for (size_t v = 0; v < transform->length; v++)
        pnr_stretch_half(cpu->plan->band, v, transform->length, half[v]);
    pnr_cpu_transform_order(transform, (const double(*)[2])half, cpu->doubling.half);
    for (size_t v = 0; v < transform->length; v++) {
        half[v][0] = pnr_stretch_keeps(cpu->plan->band, v, transform->length)
                         ? 1 / (double)transform->length
                         : 0;
        half[v][1] = 0;
    }
    if (cpu->doubling.whole != NULL)
        pnr_cpu_transform_order(transform, (const double(*)[2])half, cpu->doubling.whole);
    free(half);
    for (size_t i = 0; i < cpu->doubling.margin; i++)
        cpu->doubling.fade[i] = pnr_stretch_fade(i + 1, cpu->doubling.margin);
    pnr_stretch_table(cpu->kernel);
    return PNR_OK;
}

int pnr_cpu_fill_tables(pnr_cpu *cpu)
{
    const size_t n_codes = cpu->codes != NULL ? cpu->plan->n_codes * cpu->plan->oversample : 0;
    double complex *spectrum = calloc(cpu->axes.n_transform, sizeof *spectrum);
    int code = spectrum != NULL ? PNR_OK : PNR_ENOMEMORY;

    pnr_cpu_rotation_tables(&cpu->rotation);
    if (cpu->fused == NULL) {
        fill_rotations(cpu);
        fill_filter(cpu);
        for (size_t s = 0; s < cpu->axes.n_sets; s++)
            fill_weights(cpu, s);
    }
    if (code == PNR_OK && cpu->kernel != NULL)
        code = fill_doubling(cpu);
    for (size_t c = 0; code == PNR_OK && c < n_codes; c++)
        code = fill_code(cpu, c, spectrum);
    free(spectrum);
    return code;
}
