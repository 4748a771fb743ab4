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
    OVERSAMPLE = 2,
    HALF = PNR_WAVEFORM_NODES / 2, /* nodes on each side */
    VECTORS = 2 * HALF / OVERSAMPLE,
    TERMS = 5,              /* coefficients of one polynomial */
    GUARD_BELOW = HALF - 1, /* guard entries before the first entry of the table */
    GUARD_ABOVE = HALF + 1, /* guard entries after the last entry, including the entry of t = N */
    RINGS = 64 * 4          /* rings of distances from the beginning of a period */
};

/* The table entries of one sample: re, im, re, im. */
typedef double entries __attribute__((vector_size(2 * OVERSAMPLE * sizeof(double))));
typedef double entry __attribute__((vector_size(2 * sizeof(double))));
_Static_assert(2 * HALF % OVERSAMPLE == 0, "the nodes are whole vectors of entries");

struct pnr_waveform {
    size_t n;
    double complex *samples;  /* [n]; NULL: the waveform is a correlation */
    double complex *spectrum; /* [n] */
    double complex *table;    /* [GUARD_BELOW + 2 n + GUARD_ABOVE] c(i), i >= -GUARD_BELOW */
    bool is_hermitian;        /* a(-t) = conj(a(t)) */
    double energy;
    double bandwidth, kurtosis, nyquist;
    double most[RINGS]; /* upper bound of |a(t)| in this ring and beyond */
};

/*
 * The interpolation. a(i / 2 + x / 2) = sum_j c(i + j) K(x - j), 0 <= x <= 1, j = -4 .. 5. The
 * kernel K is (I0(b sqrt(1 - (x / 5)^2)) - 1) / (I0(b) - 1), b = 0.99 * 7.5 pi, the window of
 * Kaiser without its pedestal, so it is 0 from |x| = 5 on. The harmonics of the entries c are those
 * of a, divided by the spectrum of K at whole x. So the sum is exact at whole x; between them the
 * relative error is below 2e-9, and greatest for harmonic N/2. (With c = a, as in Lagrange's
 * interpolation, this takes 20 nodes and 4 entries a sample.) With u = x - 1/2 the nodes lie at
 * +-h_k, h_k = k + 1/2. Their weights K(h_k -+ u) are even(u^2) +- u odd(u^2), where the
 * polynomials pass through K at the Chebyshev points of -1/2 <= u <= 1/2; ends included, so K has
 * no steps.
 */
static const double even[TERMS][HALF] = {
    {0.89191553089255282, 0.34973465417651423, 0.047248036855998314, 0.0015073591886271057,
     2.9425078879078716e-06},
    {-0.3193103103581082, 0.17619826851074077, 0.13003281299196687, 0.012971164308474677,
     0.00010806275098546992},
    {0.053327608981631212, -0.064782171264648178, 0.0018160596202806791, 0.0092628137528263134,
     0.00037570747092786785},
    {-0.0054659250557409769, 0.0091350956230318407, -0.0039570111875349397, 3.5049486593578035e-05,
     0.00025315970184746429},
    {0.00036605657210833528, -0.00072106148821148377, 0.00049553969786926045,
     -0.00015787511665869293, 1.5728002327253366e-05},
};
static const double odd[TERMS][HALF] = {
    {0.40908770352518364, 0.50145047185626301, 0.12407126760343655, 0.0066827641781566976,
     2.6920081135565717e-05},
    {-0.16698365076412544, -0.079183704985392858, 0.060553585350240989, 0.014214885788926216,
     0.00025134998371576168},
    {0.032754920141494871, -0.0012932484679811724, -0.010907309290765178, 0.0031823350097106651,
     0.0003764979932856975},
    {-0.0041133099372396426, 0.0015620134765251179, 0.00033981674374058908, -0.00046106686967143409,
     0.00010561411762070278},
    {0.00035577268236885133, -0.00020964132639469788, 6.0237853763746765e-05,
     2.2713278830003369e-06, -6.3952376925681077e-06},
};

/* Computes the weights of the nodes around x. */
PNR_MULTIVERSION static void kernel_weights(double x, double weight[2 * HALF])
{
    const double u = x - 0.5, square = u * u;
    double e[HALF], o[HALF];

    for (int k = 0; k < HALF; k++) {
        e[k] = even[TERMS - 1][k];
        o[k] = odd[TERMS - 1][k];
    }
    for (int t = TERMS - 2; t >= 0; t--)
        for (int k = 0; k < HALF; k++) {
            e[k] = e[k] * square + even[t][k];
            o[k] = o[k] * square + odd[t][k];
        }
    for (int k = 0; k < HALF; k++)
        weight[HALF + k] = e[k] + u * o[k];
    for (int k = 0; k < HALF; k++)
        weight[HALF - 1 - k] = e[k] - u * o[k];
}

/* Returns the spectrum of K at whole x, at harmonic m of N. */
static double kernel_spectrum(const double weight[2 * HALF], size_t m, size_t n)
{
    const double twice = 2 * cos(2 * M_PI / OVERSAMPLE * (double)m / (double)n);
    double before = 1, at = twice / 2, sum = weight[HALF];

    for (int k = 1; k < HALF; k++) {
        const double next = twice * at - before;

        sum += 2 * at * weight[HALF + k];
        before = at;
        at = next;
    }
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
    const double *kernel;   /* [2 HALF] K at whole x, to divide by its spectrum; NULL: do not */
    double complex *values; /* [n] */
    double complex *table;  /* [2 n + GUARD_ABOVE] c(i) */
    size_t half;            /* 0: whole samples, 1: half samples */
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

/* Rotates the harmonics of a part: harmonic m by -m fraction / N cycles. With a kernel also divides
 * them by its spectrum. The rotation is a product
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

        const double gain = p->kernel != NULL ? 1 / kernel_spectrum(p->kernel, m, n) : 1;
        const double complex turn = gain * whole * within[m % BLOCK];

        if (2 * m == n) { /* the mean of the rotations of m and -m */
            p->values[m] = spectrum[m] * creal(turn);
            continue;
        }
        p->values[m] = spectrum[m] * turn;
        if (m > 0)
            p->values[n - m] = spectrum[n - m] * conj(turn);
    }
}

/* Computes p->values[k] = a(k - fraction), |fraction| <= 1/2; with a kernel the same of c. */
static int shift_fraction(const pass *p)
{
    const size_t n = p->waveform->n;

    run_pass(turn_harmonics, n / 2 + 1, p);
    return pnr_transform_inverse((double(*)[2])p->values, n);
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
    if (fraction == 0 && waveform->samples != NULL) {
        memcpy(out, waveform->samples, n * sizeof *out);
    } else {
        int rc = shift_fraction(&(pass){.waveform = waveform, .fraction = fraction, .values = out});

        if (rc != PNR_OK)
            return rc;
    }
    if (steps > 0)
        rotate_samples(out, n, steps);
    return PNR_OK;
}

/* Sets the table entry of t = k + half / 2 to values[k]. */
static void put_half(void *context, size_t part, size_t thread)
{
    const pass *p = context;
    const size_t n = p->waveform->n;

    (void)thread;
    for (size_t k = part * PART; k < end_of(part, n); k++)
        p->table[OVERSAMPLE * k + p->half] = p->values[k];
}

/* Separates c at whole and half samples, for a Hermitian waveform of odd length. values[k] is c(k)
 * + i c(N/2 + k), k in samples. Both parts are Hermitian in k. */
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
        p->table[OVERSAMPLE * later + 1] = CMPLX(cimag(twice) / 2, -creal(twice) / 2);
    }
}

/* Computes the spectrum of values[k] = c(k) + i c(N/2 + k) for odd N. Harmonic m of c(N/2 + k) is
 * (-1)^m times harmonic m of c(k). */
static void add_opposite(void *context, size_t part, size_t thread)
{
    const pass *p = context;
    const size_t n = p->waveform->n;

    (void)thread;
    for (size_t bin = part * PART; bin < end_of(part, n); bin++) {
        const size_t m = 2 * bin < n ? bin : n - bin;

        p->values[bin] = p->waveform->spectrum[bin] * CMPLX(1, m % 2 != 0 ? -1 : 1) /
                         ((double)n * kernel_spectrum(p->kernel, m, n));
    }
}

/* Computes all entries except the guard entries. A Hermitian waveform of odd length needs only one
 * transform. */
static int fill_table(pass *p)
{
    const size_t n = p->waveform->n;
    double kernel[2 * HALF];
    int rc = PNR_OK;

    kernel_weights(1, kernel);
    p->kernel = kernel;
    if (p->waveform->is_hermitian && n % 2 != 0) {
        run_pass(add_opposite, n, p);
        if ((rc = pnr_transform_inverse((double(*)[2])p->values, n)) == PNR_OK)
            run_pass(put_halves, n, p);
        return rc;
    }
    for (p->half = 0; p->half < OVERSAMPLE && rc == PNR_OK; p->half++) {
        p->fraction = -(double)p->half / OVERSAMPLE;
        if ((rc = shift_fraction(p)) == PNR_OK)
            run_pass(put_half, n, p);
    }
    return rc;
}

/* Returns the ring of a distance in samples. A ring has the distances of equal exponents and equal
 * first two bits of the mantissa: four rings from each power of two to the next. */
static size_t ring_of(double distance)
{
    const double one = 1;
    uint64_t bits, first;

    if (!(distance > 1))
        return 0;
    memcpy(&bits, &distance, sizeof bits);
    memcpy(&first, &one, sizeof first);
    return (size_t)((bits - first) >> 50);
}

/* The weights of the kernel are positive, and their sum is at most that at a whole x. So no value
 * exceeds the greatest of its entries times this sum. An entry has a weight at all times within
 * HALF / OVERSAMPLE samples. */
static void fill_most(pnr_waveform *waveform)
{
    const size_t n_table = OVERSAMPLE * waveform->n;
    double kernel[2 * HALF];

    kernel_weights(1, kernel);

    const double sum = kernel_spectrum(kernel, 0, 1);

    for (size_t i = 0; i < n_table; i++) {
        const size_t nearest = i < n_table - i ? i : n_table - i;
        double *most = &waveform->most[ring_of((double)(nearest + HALF) / OVERSAMPLE)];

        *most = fmax(*most, pnr_power(waveform->table[GUARD_BELOW + i]));
    }
    for (size_t ring = RINGS; ring-- > 0;) {
        const double beyond = ring + 1 < RINGS ? waveform->most[ring + 1] : 0;

        waveform->most[ring] = fmax(sum * sqrt(waveform->most[ring]), beyond);
    }
}

double pnr_waveform_most(const pnr_waveform *waveform, double distance)
{
    return waveform->most[ring_of(distance)];
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
    fill_most(waveform);
    return PNR_OK;
}

/* Computes out[i] = sum_j weight[j] f[OVERSAMPLE i + j], i = 0 .. n_out - 1. */
PNR_MULTIVERSION static void interpolate_run(const double complex *f, const double weight[2 * HALF],
                                             size_t n_out, double complex *out)
{
    entries w[VECTORS];

    for (int j = 0; j < 2 * HALF; j++)
        w[j / OVERSAMPLE][2 * (j % OVERSAMPLE)] = w[j / OVERSAMPLE][2 * (j % OVERSAMPLE) + 1] =
            weight[j];
    for (size_t i = 0; i < n_out; i++) {
        entries node, sum;
        entry half[2];

        memcpy(&node, f + OVERSAMPLE * i, sizeof node);
        sum = w[0] * node;
        for (int v = 1; v < VECTORS; v++) {
            memcpy(&node, f + OVERSAMPLE * (i + (size_t)v), sizeof node);
            sum += w[v] * node;
        }
        memcpy(half, &sum, sizeof half);
        half[0] += half[1];
        memcpy(&out[i], half, sizeof out[i]);
    }
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

/* Finds the nodes around the time t. Returns the distance x of t from node 4, as in kernel_weights.
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
    kernel_weights(locate_nodes(waveform, t, &out->first), out->weight);
}

/* Node j of the point is node 9 - j of its mirror. */
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
        kernel_weights(x, weight);
        interpolate_all(waveform, first, weight, n_out, value);
    }
    if (slope == NULL)
        return;
    kernel_weights(x - h, weight);
    kernel_weights(x + h, after);
    for (int j = 0; j < 2 * HALF; j++)
        weight[j] = (after[j] - weight[j]) * (OVERSAMPLE / (2 * h));
    interpolate_all(waveform, first, weight, n_out, slope);
}

double complex pnr_waveform_at(const pnr_waveform *waveform, double t)
{
    const double n = (double)waveform->n;
    double complex value = CMPLX(NAN, NAN);

    if (!(t >= 0 && t < n))
        t = fmod(t, n);
    if (!isnan(t))
        pnr_waveform_run(waveform, t, 1, &value, NULL);
    return value;
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
