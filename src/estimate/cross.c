/* SPDX-License-Identifier: MIT */
/* The correlations of all pairs of codes. The pairs (a, b) and (b, a) use the same table. */
#include "estimate/cross.h"

#include "base/complex.h"
#include "base/multiversion.h"
#include "engine/plan.h"

#include <stdlib.h>

enum { J = PNR_NEIGHBOURS, MEMORY = 44 << 20, BYTES_A_SAMPLE = 64 };

struct pnr_cross {
    size_t n_codes;
    const pnr_setup_code *codes;
    pnr_waveform **pairs;  /* [n_codes][n_codes]; C_ab is in row a, column b, for a < b */
    pnr_waveform *overlap; /* the autocorrelation of C_aa, divided by the energy of C_aa; NULL: no
                            * table */
};

int pnr_cross_create(const pnr_setup *setup, pnr_cross **out)
{
    const size_t n = setup->n_codes;
    const double bytes =
        (double)n * (double)(n - 1) / 2 * BYTES_A_SAMPLE * (double)setup->plan.n_samples;
    pnr_cross *cross = calloc(1, sizeof *cross);
    int code = PNR_OK;

    *out = NULL;
    if (cross == NULL)
        return PNR_ENOMEMORY;
    cross->n_codes = n;
    cross->codes = setup->codes;
    cross->pairs = calloc(n * n, sizeof(pnr_waveform *));
    if (cross->pairs == NULL)
        code = PNR_ENOMEMORY;
    for (size_t a = 0; a < n && bytes <= MEMORY && pnr_plan_rows(&setup->plan) == 1; a++)
        for (size_t b = a + 1; b < n && code == PNR_OK; b++)
            code = pnr_waveform_correlation(setup->codes[a].waveform, setup->codes[b].waveform,
                                            &cross->pairs[a * n + b]);
    if (code == PNR_OK && n == 1 && pnr_plan_rows(&setup->plan) == 1 &&
        BYTES_A_SAMPLE * (double)setup->plan.n_samples <= MEMORY)
        code = pnr_waveform_correlation(setup->codes[0].autocorrelation,
                                        setup->codes[0].autocorrelation, &cross->overlap);
    if (code == PNR_OK)
        *out = cross;
    else
        pnr_cross_destroy(cross);
    return code;
}

void pnr_cross_destroy(pnr_cross *cross)
{
    if (cross == NULL)
        return;
    for (size_t i = 0; cross->pairs != NULL && i < cross->n_codes * cross->n_codes; i++)
        pnr_waveform_destroy(cross->pairs[i]);
    free(cross->pairs);
    pnr_waveform_destroy(cross->overlap);
    free(cross);
}

/* Returns the table of the two codes in ascending order; NULL: no table. */
static const pnr_waveform *table_of(const pnr_cross *cross, size_t of, size_t in)
{
    if (of == in)
        return cross->codes[of].autocorrelation;
    return of < in ? cross->pairs[of * cross->n_codes + in]
                   : cross->pairs[in * cross->n_codes + of];
}

bool pnr_cross_is_known(const pnr_cross *cross, size_t of, size_t in)
{
    return table_of(cross, of, in) != NULL;
}

void pnr_cross_run(const pnr_cross *cross, size_t of, size_t in, double from,
                   double complex *values, double complex *slopes)
{
    const pnr_waveform *table = table_of(cross, of, in);
    double complex reversed[2][J];

    if (of <= in) {
        pnr_waveform_run(table, from, J, values, slopes);
        return;
    }
    pnr_waveform_run(table, -from - (J - 1), J, reversed[0], slopes != NULL ? reversed[1] : NULL);
    for (int i = 0; i < J; i++)
        values[i] = conj(reversed[0][J - 1 - i]);
    for (int i = 0; i < J && slopes != NULL; i++)
        slopes[i] = -conj(reversed[1][J - 1 - i]);
}

/* values += factor x */
PNR_MULTIVERSION static void add_vector(double complex factor, const double complex *restrict x,
                                        double complex *restrict values)
{
    for (int i = 0; i < J; i++)
        values[i] += factor * x[i];
}

void pnr_cross_add(const pnr_cross *cross, size_t of, size_t in, const pnr_waveform_point *point,
                   long lag, double complex factor, double complex *values)
{
    const pnr_waveform *table = table_of(cross, of, in);
    double complex response[J], reversed[J];
    pnr_waveform_point mirror;

    if (of <= in) {
        pnr_waveform_take(table, point, lag, J, response);
    } else {
        pnr_waveform_mirror(table, point, &mirror);
        pnr_waveform_take(table, &mirror, -lag - (J - 1), J, reversed);
        for (int i = 0; i < J; i++)
            response[i] = conj(reversed[J - 1 - i]);
    }
    add_vector(factor, response, values);
}

double complex pnr_cross_at(const pnr_cross *cross, size_t of, size_t in, double u)
{
    const pnr_waveform *table = table_of(cross, of, in);

    return of <= in ? pnr_waveform_at(table, u) : conj(pnr_waveform_at(table, -u));
}

double pnr_cross_most(const pnr_cross *cross, size_t of, size_t in, double distance)
{
    return pnr_waveform_most(table_of(cross, of, in), distance);
}

double pnr_cross_total(const pnr_cross *cross, size_t of, size_t in)
{
    const pnr_waveform *table = table_of(cross, of, in);

    return table != NULL ? pnr_waveform_energy(table) : 1;
}

bool pnr_cross_has_overlap(const pnr_cross *cross)
{
    return cross->overlap != NULL;
}

double pnr_cross_most_overlap(const pnr_cross *cross, double distance)
{
    return pnr_waveform_most(cross->overlap, distance) * pnr_cross_total(cross, 0, 0);
}

void pnr_cross_overlap(const pnr_cross *cross, double u, double complex *value,
                       double complex *overlap)
{
    pnr_waveform_point point;

    pnr_waveform_locate(cross->overlap, u, &point);
    pnr_waveform_take(cross->codes[0].autocorrelation, &point, 0, 1, value);
    pnr_waveform_take(cross->overlap, &point, 0, 1, overlap);
    *overlap *= pnr_cross_total(cross, 0, 0);
}
