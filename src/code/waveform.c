/* SPDX-License-Identifier: MIT */
/* The continuous periodic waveform of a code: its spectrum, a table of its values, its moments. */
#include "code/waveform.h"

#include "base/complex.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "base/transform.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    OVERSAMPLE = 4,
    HALF = PNR_WAVEFORM_NODES / 2, /* Lagrange nodes on each side */
    GUARD_BELOW = HALF - 1,        /* guard entries before the first entry of the table */
    GUARD_ABOVE = HALF + 1 /* guard entries after the last entry, including the entry of t = N */
};

/* The table entries of one sample: re, im, re, im and so on. */
typedef double entries __attribute__((vector_size(2 * OVERSAMPLE * sizeof(double))));
typedef double half_entries __attribute__((vector_size(OVERSAMPLE * sizeof(double))));
typedef double entry __attribute__((vector_size(2 * sizeof(double))));
_Static_assert(2 * HALF % OVERSAMPLE == 0, "the nodes are whole vectors of entries");

struct pnr_waveform {
    size_t n;
    double complex *samples;  /* [n]; NULL: copy them from the table */
    double complex *spectrum; /* [n] */
    double complex *table;    /* [GUARD_BELOW + 4 n + GUARD_ABOVE] a(i / 4), i >= -GUARD_BELOW */
    bool is_hermitian;        /* a(-t) = conj(a(t)) */
    double energy;
    double bandwidth, kurtosis, nyquist;
};

/*
 * 20-point Lagrange interpolation of f at the distance x from node 9, 0 <= x <= 1. With u = x - 1/2
 * the nodes are +-h_k, h_k = k + 1/2, and the pair k has the weights
 *     +-(u +- h_k) prod_{j != k} (u^2 - h_j^2) / (2 h_k prod_{j != k} (h_k^2 - h_j^2)).
 * At w rad per node the relative error is below (2 sin(w/2))^20 prod_j h_j^2 / 20!: 1e-9 at pi/4.
 */
static const double pair_scale[HALF] = {
    /* 1 / (2 h_k prod_{j != k} (h_k^2 - h_j^2)) */
    -7.594058428126623e-13, 6.213320532103601e-13,  -4.1422136880690674e-13,
    2.230422755114113e-13,  -9.55895466477477e-14,  3.1863182215915904e-14,
    -7.965795553978976e-15, 1.4057286271727603e-15, -1.5619206968586225e-16,
    8.22063524662433e-18,
};

/* Computes the weights of f(x) = sum_j weight[j] f[j]. below[k]: the product of the pairs before
 * pair k; above[k]: the product of the pairs after it. */
PNR_MULTIVERSION static void lagrange_weights(double x, double weight[2 * HALF])
{
    const double u = x - 0.5;
    double pair[HALF], below[HALF], above[HALF], scale[HALF];

    for (int k = 0; k < HALF; k++)
        pair[k] = (u - (k + 0.5)) * (u + (k + 0.5));
    below[0] = above[HALF - 1] = 1;
    for (int k = 1; k < HALF; k++)
        below[k] = below[k - 1] * pair[k - 1];
    for (int k = HALF - 1; k > 0; k--)
        above[k - 1] = above[k] * pair[k];
    for (int k = 0; k < HALF; k++)
        scale[k] = pair_scale[k] * (below[k] * above[k]);
    for (int k = 0; k < HALF; k++)
        weight[HALF + k] = scale[k] * (u + (k + 0.5));
    for (int k = 0; k < HALF; k++)
        weight[HALF - 1 - k] = -scale[k] * (u - (k + 0.5));
}

static double complex sum_nodes(const double complex *f, double x)
{
    double weight[2 * HALF];
    double complex sum = 0;

    lagrange_weights(x, weight);
    for (int j = 0; j < 2 * HALF; j++)
        sum += weight[j] * f[j];
    return sum;
}

static double sum_powers(const double complex *values, size_t n)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += pnr_power(values[k]);
    return sum;
}

/* Computes bandwidth, kurtosis and nyquist from the spectrum. */
static void sum_moments(pnr_waveform *waveform)
{
    const size_t n = waveform->n;
    double total = 0, first = 0, second = 0, fourth = 0;

    for (size_t bin = 0; bin < n; bin++) {
        double power = pnr_power(waveform->spectrum[bin]);
        double harmonic = 2 * bin <= n ? (double)bin : -(double)(n - bin);
        double w = 2 * M_PI * harmonic / (double)n;

        total += power;
        second += w * w * power;
        first += 2 * bin == n ? 0 : w * power;
    }
    if (!(total > 0))
        return;
    waveform->bandwidth = second / total - (first / total) * (first / total);
    for (size_t bin = 0; bin < n; bin++) { /* the fourth central moment */
        double harmonic = 2 * bin <= n ? (double)bin : -(double)(n - bin);
        double w = 2 * M_PI * harmonic / (double)n - (2 * bin == n ? 0 : first / total);

        fourth += w * w * w * w * pnr_power(waveform->spectrum[bin]);
    }
    if (n % 2 == 0)
        waveform->nyquist = pnr_power(waveform->spectrum[n / 2]) / total;
    if (waveform->bandwidth > 0)
        waveform->kurtosis = fourth / total / (waveform->bandwidth * waveform->bandwidth);
}

static double complex *allocate_values(size_t n)
{
    return pnr_memory_large(n * sizeof(double complex));
}

/* Allocates a waveform, and memory for its spectrum. NULL: out of memory. */
static pnr_waveform *allocate_waveform(size_t n)
{
    pnr_waveform *waveform = n > SIZE_MAX / 256 ? NULL : calloc(1, sizeof *waveform);

    assert(n >= 1);
    if (!waveform)
        return NULL;
    waveform->n = n;
    if ((waveform->spectrum = allocate_values(n)) != NULL)
        return waveform;
    pnr_waveform_destroy(waveform);
    return NULL;
}

int pnr_waveform_create(const double complex *samples, size_t n_samples, pnr_waveform **out)
{
    pnr_waveform *waveform = allocate_waveform(n_samples);
    int rc = PNR_ENOMEMORY;

    *out = NULL;
    if (!waveform)
        return PNR_ENOMEMORY;
    memcpy(waveform->spectrum, samples, n_samples * sizeof *samples);
    if ((waveform->samples = allocate_values(n_samples)) != NULL)
        rc = pnr_transform_forward((double(*)[2])waveform->spectrum, n_samples);
    if (rc != PNR_OK) {
        pnr_waveform_destroy(waveform);
        return rc;
    }
    memcpy(waveform->samples, samples, n_samples * sizeof *samples);
    waveform->energy = sum_powers(samples, n_samples);
    sum_moments(waveform);
    *out = waveform;
    return PNR_OK;
}

void pnr_waveform_destroy(pnr_waveform *waveform)
{
    if (!waveform)
        return;
    free(waveform->samples);
    free(waveform->spectrum);
    free(waveform->table);
    free(waveform);
}

/* --- passes over all values; all processors share a long pass --- */

enum { PART = 1 << 14 };

typedef struct pass {
    const pnr_waveform *waveform, *other;
    double fraction;
    double complex *values; /* [n] */
    double complex *table;  /* [4 n + GUARD_ABOVE] a(i / 4) */
    size_t quarter;
} pass;

static void run_pass(pnr_parallel_work *work, size_t n, const pass *of)
{
    const size_t n_parts = (n + PART - 1) / PART;
    pass p = *of;

    pnr_parallel_run(n_parts, pnr_parallel_threads(n_parts), work, &p);
}

/* Returns the index after the last value of a part. All parts together have n values. */
static size_t end_of(size_t part, size_t n)
{
    return (part + 1) * PART < n ? (part + 1) * PART : n;
}

/* Rotates the harmonics of a part: harmonic m by -m fraction / N cycles. The rotation is a product
 * of two factors, the rotation of a block of harmonics and the rotation within the block, because
 * sin and cos take longer than a product. */
static void turn_harmonics(void *context, size_t part, size_t thread)
{
    enum { BLOCK = 64 };
    const pass *p = context;
    const double complex *spectrum = p->waveform->spectrum;
    const size_t n = p->waveform->n;
    const double step = -2 * M_PI * p->fraction / (double)n;
    double complex within[BLOCK], whole = 0;

    (void)thread;
    for (size_t i = 0; i < BLOCK; i++)
        within[i] = pnr_cis(step * (double)i);
    for (size_t m = part * PART; m < end_of(part, n / 2 + 1); m++) {
        if (m % BLOCK == 0)
            whole = pnr_cis(step * (double)m) / (double)n;

        const double complex turn = whole * within[m % BLOCK];

        if (2 * m == n) { /* the mean of the rotations of m and -m */
            p->values[m] = spectrum[m] * creal(turn);
            continue;
        }
        p->values[m] = spectrum[m] * turn;
        if (m > 0)
            p->values[n - m] = spectrum[n - m] * conj(turn);
    }
}

/* Computes out[k] = a(k - fraction), |fraction| <= 1/2. */
static int shift_fraction(const pnr_waveform *waveform, double fraction, double complex *out)
{
    const size_t n = waveform->n;
    const pass p = {.waveform = waveform, .fraction = fraction, .values = out};

    run_pass(turn_harmonics, n / 2 + 1, &p);
    return pnr_transform_inverse((double(*)[2])out, n);
}

/* Writes out[k] = a(k). The caller checks that the waveform has samples or a table. */
static void copy_samples(const pnr_waveform *waveform, double complex *out)
{
    const size_t n = waveform->n;

    if (waveform->samples != NULL)
        memcpy(out, waveform->samples, n * sizeof *out);
    else
        for (size_t k = 0; k < n; k++)
            out[k] = waveform->table[GUARD_BELOW + OVERSAMPLE * k];
}

/* Reverses data[first .. end - 1]. rotate_samples needs three reversals for out[k] = in[k -
 * steps]. */
static void reverse_samples(double complex *data, size_t first, size_t end)
{
    while (first + 1 < end) {
        const double complex keep = data[first];

        data[first++] = data[--end];
        data[end] = keep;
    }
}

static void rotate_samples(double complex *data, size_t n, size_t steps)
{
    reverse_samples(data, 0, n);
    reverse_samples(data, 0, steps);
    reverse_samples(data, steps, n);
}

int pnr_waveform_shift(const pnr_waveform *waveform, double shift, double complex *out)
{
    const size_t n = waveform->n;
    /* A shift by whole samples only reorders the samples. So the phase ramp shifts by the fraction
     * of a sample alone. Its phases are at most 1/4 cycle, and their rounding errors are small. */
    double wrapped = fmod(shift, (double)n);
    double whole = nearbyint(wrapped);
    double fraction = wrapped - whole;
    size_t steps = (size_t)(whole < 0 ? whole + (double)n : whole) % n;

    assert(isfinite(shift));
    if (fraction == 0 && (waveform->samples != NULL || waveform->table != NULL)) {
        copy_samples(waveform, out);
    } else {
        int rc = shift_fraction(waveform, fraction, out);

        if (rc != PNR_OK)
            return rc;
    }
    if (steps > 0)
        rotate_samples(out, n, steps);
    return PNR_OK;
}

/* Sets the table entry at t = k + quarter / 4 to values[k]. */
static void put_quarter(void *context, size_t part, size_t thread)
{
    const pass *p = context;
    const size_t n = p->waveform->n;

    (void)thread;
    for (size_t k = part * PART; k < end_of(part, n); k++)
        p->table[OVERSAMPLE * k + p->quarter] = p->values[k];
}

/* Calls put_quarter. Also sets the table entry at t = N - k - quarter / 4 to conj(values[k]),
 * because a(-t) = conj(a(t)). */
static void put_two_quarters(void *context, size_t part, size_t thread)
{
    const pass *p = context;
    const size_t n = p->waveform->n;

    put_quarter(context, part, thread);
    for (size_t k = part * PART; k < end_of(part, n); k++)
        p->table[OVERSAMPLE * (n - k) - p->quarter] = conj(p->values[k]);
}

/* Separates a(k) and a(k + 1/2) of a Hermitian waveform of odd length. values[k] is a(k) + i a(N/2
 * + k). Both a(k) and a(N/2 + k) are Hermitian in k. */
static void put_halves(void *context, size_t part, size_t thread)
{
    const pass *p = context;
    const size_t n = p->waveform->n;

    (void)thread;
    for (size_t k = part * PART; k < end_of(part, n); k++) {
        const double complex z = p->values[k], opposite = conj(p->values[k > 0 ? n - k : 0]);
        const size_t later = (k + n / 2) % n; /* N/2 + k = later + 1/2 */
        const double complex twice = z - opposite;

        p->table[OVERSAMPLE * k] = (z + opposite) / 2;
        p->table[OVERSAMPLE * later + OVERSAMPLE / 2] = CMPLX(cimag(twice) / 2, -creal(twice) / 2);
    }
}

/* Computes the spectrum of values[k] = a(k) + i a(N/2 + k) for odd N. Harmonic m of a(N/2 + k) is
 * (-1)^m times harmonic m of a(k). */
static void add_opposite(void *context, size_t part, size_t thread)
{
    const pass *p = context;
    const size_t n = p->waveform->n;

    (void)thread;
    for (size_t bin = part * PART; bin < end_of(part, n); bin++) {
        const bool is_odd = (2 * bin < n ? bin : n - bin) % 2 != 0;

        p->values[bin] = p->waveform->spectrum[bin] * CMPLX(1, is_odd ? -1 : 1) / (double)n;
    }
}

/* Computes the entries of whole and half samples of a Hermitian waveform of odd length with one
 * transform. */
static int fill_halves(const pass *p)
{
    const size_t n = p->waveform->n;
    int rc;

    run_pass(add_opposite, n, p);
    if ((rc = pnr_transform_inverse((double(*)[2])p->values, n)) == PNR_OK)
        run_pass(put_halves, n, p);
    return rc;
}

/* Computes the table entries at t = k + quarter / 4. */
static int fill_quarter(pass *p, size_t quarter, pnr_parallel_work *put)
{
    const int rc = pnr_waveform_shift(p->waveform, -(double)quarter / OVERSAMPLE, p->values);

    p->quarter = quarter;
    if (rc == PNR_OK)
        run_pass(put, p->waveform->n, p);
    return rc;
}

/* Computes all entries except the guard entries. A Hermitian waveform needs no transform for the
 * last quarter. If its length is odd, whole and half samples need only one transform. */
static int fill_table(pass *p)
{
    const bool is_hermitian = p->waveform->is_hermitian;
    int rc;

    if (is_hermitian && p->waveform->n % 2 != 0)
        rc = fill_halves(p);
    else if ((rc = fill_quarter(p, 0, put_quarter)) == PNR_OK)
        rc = fill_quarter(p, 2, put_quarter);
    if (rc == PNR_OK)
        rc = fill_quarter(p, 1, is_hermitian ? put_two_quarters : put_quarter);
    return rc == PNR_OK && !is_hermitian ? fill_quarter(p, 3, put_quarter) : rc;
}

int pnr_waveform_prepare(pnr_waveform *waveform)
{
    const size_t n_table = OVERSAMPLE * waveform->n;
    double complex *values = NULL, *table = NULL;
    int rc = PNR_ENOMEMORY;

    if (waveform->table)
        return PNR_OK;
    table = allocate_values(GUARD_BELOW + n_table + GUARD_ABOVE);
    values = allocate_values(waveform->n);
    if (table && values)
        rc = fill_table(
            &(pass){.waveform = waveform, .values = values, .table = table + GUARD_BELOW});
    free(values);
    if (rc == PNR_OK && pnr_parallel_is_stopped())
        rc = PNR_EEND;
    if (rc != PNR_OK) {
        free(table);
        return rc;
    }
    /* Copies the guard entries periodically; a guard may be longer than the period. */
    for (size_t i = 0; i < GUARD_ABOVE; i++)
        table[GUARD_BELOW + n_table + i] = table[GUARD_BELOW + i % n_table];
    for (size_t i = 1; i <= GUARD_BELOW; i++)
        table[GUARD_BELOW - i] = table[GUARD_BELOW + (16 * n_table - i) % n_table];
    waveform->table = table;
    free(waveform->samples);
    waveform->samples = NULL;
    return PNR_OK;
}

double complex pnr_waveform_at(const pnr_waveform *waveform, double t)
{
    const double n = (double)waveform->n;
    double position, below;

    assert(waveform->table);
    if (!(t >= 0 && t < n)) {
        t = fmod(t, n);
        t += t < 0 ? n : 0;
        if (isnan(t))
            return CMPLX(NAN, NAN);
    }
    position = OVERSAMPLE * t; /* exact; 4 N if t is rounded up to N, and the table has a guard
                                * entry for 4 N */
    below = floor(position);
    if (below == position)
        return waveform->table[GUARD_BELOW + (size_t)below];
    return sum_nodes(waveform->table + (size_t)below, position - below);
}

enum {
    VECTORS = 2 * HALF / OVERSAMPLE, /* vectors of entries of one output */
    TOGETHER = 2                     /* outputs of one pass */
};

/* Computes out[i] = sum_j weight[j] f[OVERSAMPLE i + j] for n <= TOGETHER outputs. These share all
 * nodes except OVERSAMPLE of them, so most nodes are read once for all outputs. */
static inline __attribute__((always_inline)) void
interpolate_some(const double complex *f, const entries weight[VECTORS], int n, double complex *out)
{
    entries sum[TOGETHER] = {{0}};

    for (int v = 0; v < VECTORS + n - 1; v++) {
        entries node;

        memcpy(&node, f + OVERSAMPLE * v, sizeof node);
        for (int i = 0; i < n; i++)
            if (v >= i && v - i < VECTORS)
                sum[i] += weight[v - i] * node;
    }
    for (int i = 0; i < n; i++) {
        half_entries half[2];
        entry quarter[2];

        memcpy(half, &sum[i], sizeof half);
        half[0] += half[1];
        memcpy(quarter, half, sizeof quarter);
        quarter[0] += quarter[1];
        memcpy(&out[i], quarter, sizeof out[i]);
    }
}

/* Does the same as interpolate_some for any number of outputs. */
PNR_MULTIVERSION static void interpolate_run(const double complex *f, const double weight[2 * HALF],
                                             size_t n_out, double complex *out)
{
    entries w[VECTORS];
    size_t i = 0;

    for (int v = 0; v < VECTORS; v++)
        for (int j = 0; j < 2 * OVERSAMPLE; j++)
            w[v][j] = weight[OVERSAMPLE * v + j / 2];
    for (; i + TOGETHER <= n_out; i += TOGETHER)
        interpolate_some(f + OVERSAMPLE * i, w, TOGETHER, out + i);
    for (; i < n_out; i++)
        interpolate_some(f + OVERSAMPLE * i, w, 1, out + i);
}

/* Does the same as interpolate_run, from table entry `first` on. Wraps from the end of the table to
 * its beginning. */
static void interpolate_all(const pnr_waveform *waveform, size_t first,
                            const double weight[2 * HALF], size_t n_out, double complex *out)
{
    const size_t n_table = OVERSAMPLE * waveform->n;

    while (n_out > 0) {
        const size_t to_end = (n_table - first + OVERSAMPLE - 1) / OVERSAMPLE;
        const size_t n = n_out < to_end ? n_out : to_end;

        interpolate_run(waveform->table + first, weight, n, out);
        first += OVERSAMPLE * n;
        first -= first >= n_table ? n_table : 0;
        out += n;
        n_out -= n;
    }
}

/* Finds the nodes around the time t. Returns the distance x of t from node 9, as in sum_nodes.
 * *first: the index of node 0 in the table. */
static double locate_nodes(const pnr_waveform *waveform, double t, size_t *first)
{
    const double n = (double)waveform->n, position = OVERSAMPLE * (t - n * floor(t / n));
    const size_t n_table = OVERSAMPLE * waveform->n, below = (size_t)position;

    assert(waveform->table);
    *first = below - (below >= n_table ? n_table : 0);
    return position - (double)below;
}

void pnr_waveform_locate(const pnr_waveform *waveform, double t, pnr_waveform_point *out)
{
    lagrange_weights(locate_nodes(waveform, t, &out->first), out->weight);
}

/* Node j of the point is node 19 - j of its mirror. */
void pnr_waveform_mirror(const pnr_waveform *waveform, const pnr_waveform_point *point,
                         pnr_waveform_point *out)
{
    out->first = OVERSAMPLE * waveform->n - 1 - point->first;
    for (int j = 0; j < 2 * HALF; j++)
        out->weight[j] = point->weight[2 * HALF - 1 - j];
}

void pnr_waveform_take(const pnr_waveform *waveform, const pnr_waveform_point *point, long shift,
                       size_t n_out, double complex *value)
{
    const long n = (long)waveform->n;
    const size_t n_table = OVERSAMPLE * waveform->n;
    size_t first = point->first;

    for (; shift < 0; shift += n) {
    }
    for (; shift >= n; shift -= n) {
    }
    first += OVERSAMPLE * (size_t)shift;
    first -= first >= n_table ? n_table : 0;
    interpolate_all(waveform, first, point->weight, n_out, value);
}

void pnr_waveform_delay(const pnr_waveform *waveform, double delay, double complex *value,
                        double complex *slope)
{
    pnr_waveform_run(waveform, -delay, waveform->n, value, slope);
}

void pnr_waveform_run(const pnr_waveform *waveform, double from, size_t n_out,
                      double complex *value, double complex *slope)
{
    const double h = 1e-4;
    double weight[2 * HALF], after[2 * HALF];
    size_t first;
    const double x = locate_nodes(waveform, from, &first);

    if (value != NULL) {
        lagrange_weights(x, weight);
        interpolate_all(waveform, first, weight, n_out, value);
    }
    if (slope == NULL)
        return;
    lagrange_weights(x - h, weight);
    lagrange_weights(x + h, after);
    for (int j = 0; j < 2 * HALF; j++)
        weight[j] = (after[j] - weight[j]) * (OVERSAMPLE / (2 * h));
    interpolate_all(waveform, first, weight, n_out, slope);
}

/* Computes the spectrum of the correlation. */
static void multiply_spectra(void *context, size_t part, size_t thread)
{
    const pass *p = context;
    const pnr_waveform *a = p->waveform, *b = p->other;

    (void)thread;
    for (size_t bin = part * PART; bin < end_of(part, a->n); bin++)
        p->values[bin] = a == b ? pnr_power(a->spectrum[bin]) / b->energy
                                : a->spectrum[bin] * conj(b->spectrum[bin]) / b->energy;
}

int pnr_waveform_correlation(const pnr_waveform *a, const pnr_waveform *b, pnr_waveform **out)
{
    const size_t n = a->n;
    pnr_waveform *lags = allocate_waveform(n);
    int rc;

    assert(b->n == n);
    *out = NULL;
    if (!lags)
        return PNR_ENOMEMORY;
    run_pass(multiply_spectra, n, &(pass){.waveform = a, .other = b, .values = lags->spectrum});
    lags->is_hermitian = a == b;
    lags->energy = sum_powers(lags->spectrum, n) / (double)n; /* Parseval's theorem */
    sum_moments(lags);
    if ((rc = pnr_waveform_prepare(lags)) == PNR_OK)
        *out = lags;
    else
        pnr_waveform_destroy(lags);
    return rc;
}

double pnr_waveform_energy(const pnr_waveform *waveform)
{
    return waveform->energy;
}

double pnr_waveform_bandwidth(const pnr_waveform *waveform)
{
    return waveform->bandwidth;
}

double pnr_waveform_kurtosis(const pnr_waveform *waveform)
{
    return waveform->kurtosis;
}

void pnr_waveform_bands(const pnr_waveform *waveform, size_t n_steps, double *share,
                        double *bandwidth)
{
    const double n = (double)waveform->n, turn = 2 * M_PI / n;
    double total = 0, mean = 0;

    memset(share, 0, (n_steps + 1) * sizeof *share);
    memset(bandwidth, 0, (n_steps + 1) * sizeof *bandwidth);
    for (size_t bin = 0; bin < waveform->n; bin++) {
        const double power = pnr_power(waveform->spectrum[bin]);

        total += power;
        mean += power * (2 * bin < waveform->n ? (double)bin : (double)bin - n);
    }
    mean /= total;
    for (size_t bin = 0; bin < waveform->n; bin++) {
        const double away = remainder((double)bin - mean, n);
        const size_t s = (size_t)fmin(ceil(2 * fabs(away) / n * (double)n_steps), (double)n_steps);
        const double part = pnr_power(waveform->spectrum[bin]) / total;

        share[s] += part;
        bandwidth[s] += part * away * away * turn * turn;
    }
    for (size_t s = 1; s <= n_steps; s++) {
        share[s] += share[s - 1];
        bandwidth[s] += bandwidth[s - 1];
    }
    for (size_t s = 0; s <= n_steps; s++)
        bandwidth[s] /= fmax(share[s], 1e-30);
}

double pnr_waveform_nyquist(const pnr_waveform *waveform)
{
    return waveform->nyquist;
}
