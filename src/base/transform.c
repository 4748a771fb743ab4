/* SPDX-License-Identifier: MIT */
/* The discrete Fourier transform of any length, in double precision. Splits a transform into short
 * ones. Each thread computes LANES short transforms at a time. Long transforms run on all
 * processors. */
#include "base/transform.h"

#include "base/complex.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/multiversion.h"
#include "base/parallel.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* MAX_RADIX is the greatest radix of a step. A length with a greater prime factor needs Bluestein's
 * algorithm. */
enum {
    MAX_RADIX = 13,
    SMALL = 64,     /* up to this length a transform is not split */
    LONG = 1 << 15, /* transforms of this length and longer run on all processors */
    LANES = 8,      /* short transforms that a thread computes at a time */
    FINE = 64       /* greatest size of the table `fine` in twiddle */
};

/* One value of each of LANES transforms. All steps compute the forward transform. For the inverse
 * transform, the real and imaginary parts of the values are exchanged before and after it. */
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef struct wide {
    lanes re, im;
} wide;

/* The tables of a short transform. */
typedef struct plan {
    size_t n;
    size_t m;               /* length of the transform that the steps compute: n, or the length of
                             * Bluestein's convolution */
    double complex *roots;  /* exp(-2 pi i p / m) for p <= m / 4, or p <= m / 3 if 3 divides m */
    double complex *chirp;  /* [n]; NULL: n has no prime factor above MAX_RADIX */
    double complex *filter; /* [m] transform of the conjugate chirp, divided by m */
} plan;

void pnr_transform_root(size_t j, size_t n, double value[2])
{
    /* The angle is reduced to one octant in integers, so the argument of sin and cos is at most
     * pi/4. */
    size_t eighths = 8 * j / n;
    size_t quarter = (eighths + 1) / 2 % 4;
    double rest = ((double)(int64_t)(4 * j - (eighths + 1) / 2 * n)) / (double)n;
    double c = cos(M_PI_2 * rest);
    double s = sin(M_PI_2 * rest);

    assert(j < n);
    value[0] = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
    value[1] = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
}

static double complex *allocate_values(size_t n)
{
    return n > SIZE_MAX / sizeof(double complex) ? NULL
                                                 : pnr_memory_large(n * sizeof(double complex));
}

static wide *allocate_wide(size_t n)
{
    return n > SIZE_MAX / sizeof(wide) ? NULL : pnr_memory_large(n * sizeof(wide));
}

/* Returns the radix of the first step for length n: 4 if it divides n, else the least odd prime
 * factor of n, else 2 if n is 2. Returns 0 if that odd factor is above MAX_RADIX. */
static size_t next_radix(size_t n)
{
    if (n % 4 == 0)
        return 4;
    for (size_t r = 3; r <= MAX_RADIX; r += 2)
        if (n % r == 0)
            return r;
    return n == 2 ? 2 : 0;
}

static bool is_smooth(size_t n)
{
    while (n > 1 && next_radix(n) > 0)
        n /= next_radix(n);
    return n == 1;
}

/* Computes the roots for a transform of length m. A step of radix r reads roots below m / r. The
 * step of radix 2 is the last one and reads no roots. */
static int fill_roots(size_t m, double complex **roots)
{
    const size_t n_roots = m / (m % 3 == 0 ? 3 : 4) + 1;

    if ((*roots = allocate_values(n_roots)) == NULL)
        return PNR_ENOMEMORY;
    for (size_t p = 0; p < n_roots; p++)
        (*roots)[p] = conj(pnr_root((int64_t)p, m));
    return PNR_OK;
}

/* *y = (re + i im) w */
static inline __attribute__((always_inline)) void put_product(wide *y, const lanes *re,
                                                              const lanes *im, double complex w)
{
    y->re = *re * creal(w) - *im * cimag(w);
    y->im = *re * cimag(w) + *im * creal(w);
}

/*
 * One step of radix 4, self-sorting (T. G. Stockham, 1966). The step works on s interleaved
 * transforms of length n. For each transform, with w = exp(-2 pi i / n), p < n/4 and k < 4:
 *     y[4p + k] = w^(k p) sum_j x[p + j n/4] exp(-2 pi i j k / 4)
 */
static inline __attribute__((always_inline)) void step_radix4(const wide *restrict x,
                                                              wide *restrict y, size_t n, size_t s,
                                                              const double complex *roots)
{
    const size_t quarter = n / 4;

    for (size_t p = 0; p < quarter; p++) {
        const double complex w1 = roots[p * s], w2 = w1 * w1, w3 = w1 * w2;
        const wide *x0 = x + s * p, *x1 = x0 + s * quarter, *x2 = x1 + s * quarter,
                   *x3 = x2 + s * quarter;
        wide *to = y + 4 * s * p;

        for (size_t q = 0; q < s; q++) {
            const wide a = {x0[q].re + x2[q].re, x0[q].im + x2[q].im};
            const wide b = {x0[q].re - x2[q].re, x0[q].im - x2[q].im};
            const wide c = {x1[q].re + x3[q].re, x1[q].im + x3[q].im};
            const wide d = {x1[q].re - x3[q].re, x1[q].im - x3[q].im};
            const wide even = {a.re - c.re, a.im - c.im};
            const wide plus = {b.re + d.im, b.im - d.re}; /* b - i d */
            const wide minus = {b.re - d.im, b.im + d.re};

            to[q] = (wide){a.re + c.re, a.im + c.im};
            put_product(&to[s + q], &plus.re, &plus.im, w1);
            put_product(&to[2 * s + q], &even.re, &even.im, w2);
            put_product(&to[3 * s + q], &minus.re, &minus.im, w3);
        }
    }
}

static void step_radix2(const wide *restrict x, wide *restrict y, size_t s)
{
    for (size_t q = 0; q < s; q++) {
        y[q] = (wide){x[q].re + x[s + q].re, x[q].im + x[s + q].im};
        y[s + q] = (wide){x[q].re - x[s + q].re, x[q].im - x[s + q].im};
    }
}

/* A step of an odd radix r. With w = exp(-2 pi i / n), p < n/r and k < r:
 *     y[r p + k] = w^(k p) sum_j x[p + j n/r] exp(-2 pi i j k / r)
 * The terms j and r - j have the same cosine, and opposite sines. The function is inlined, so that
 * the compiler unrolls the sums of a constant r. */
static inline __attribute__((always_inline)) void step_odd(const wide *restrict x, wide *restrict y,
                                                           size_t n, size_t s, size_t r,
                                                           const double complex *roots)
{
    const size_t half = r / 2, apart = s * (n / r);
    double complex of_r[MAX_RADIX] = {0};
    wide sum[MAX_RADIX / 2], difference[MAX_RADIX / 2];

    for (size_t j = 0; j < r; j++)
        of_r[j] = pnr_root((int64_t)j, r);
    for (size_t i = 0; i < apart; i++) {
        const size_t p = i / s, q = i % s;
        const double complex w1 = roots[p * s];
        const wide *from = x + i;
        wide *to = y + r * s * p + q, mean = *from;
        double complex w = 1;

        for (size_t j = 1; j <= half; j++) {
            const wide *a = from + j * apart, *b = from + (r - j) * apart;

            sum[j - 1] = (wide){a->re + b->re, a->im + b->im};
            difference[j - 1] = (wide){a->re - b->re, a->im - b->im};
            mean.re += sum[j - 1].re;
            mean.im += sum[j - 1].im;
        }
        *to = mean;
        for (size_t k = 1; k < r; k++) {
            const size_t pair = k <= half ? k : r - k;
            wide c = *from, d = {{0}, {0}};

            for (size_t j = 1; j <= half; j++) {
                const double complex root = of_r[j * pair % r];
                const double sine = k <= half ? cimag(root) : -cimag(root);

                c.re += sum[j - 1].re * creal(root);
                c.im += sum[j - 1].im * creal(root);
                d.re += difference[j - 1].re * sine;
                d.im += difference[j - 1].im * sine;
            }
            c.re += d.im; /* c - i d */
            c.im -= d.re;
            w *= w1;
            put_product(&to[k * s], &c.re, &c.im, w);
        }
    }
}

/* Transforms data, [n_all]. scratch: [n_all]. */
PNR_MULTIVERSION static void run_steps(const double complex *roots, size_t n_all, wide *data,
                                       wide *scratch)
{
    wide *from = data, *to = scratch;
    size_t s = 1;

    for (size_t n = n_all, r; n > 1; n /= r, s *= r) {
        wide *swap = from;

        switch (r = next_radix(n)) {
        case 4:
            step_radix4(from, to, n, s, roots);
            break;
        case 2:
            step_radix2(from, to, s);
            break;
        case 3:
            step_odd(from, to, n, s, 3, roots);
            break;
        case 5:
            step_odd(from, to, n, s, 5, roots);
            break;
        default:
            step_odd(from, to, n, s, r, roots);
        }
        from = to;
        to = swap;
    }
    if (from != data)
        memcpy(data, from, n_all * sizeof *data);
}

/* Computes exp(-pi i k^2 / n) for k < n. Computes k^2 mod 2n in integers: (k+1)^2 = k^2 + 2k +
 * 1. */
static void fill_chirp(double complex *chirp, size_t n)
{
    size_t square = 0;

    for (size_t k = 0; k < n; k++) {
        chirp[k] = conj(pnr_root((int64_t)square, 2 * n));
        square += 2 * k + 1;
        square -= square >= 2 * n ? 2 * n : 0;
    }
}

/* Returns the length of Bluestein's convolution: 2^a, 3 2^a or 5 2^a, at least 2 n - 1. */
static size_t convolution_length(size_t n)
{
    size_t best = 0;

    for (size_t odd = 1; odd <= 5; odd += 2) {
        size_t m = odd;

        while (m < 2 * n - 1)
            m *= 2;
        best = best == 0 || m < best ? m : best;
    }
    return best;
}

/* --- short transforms --- */

static void plan_close(plan *p)
{
    free(p->roots);
    free(p->chirp);
    free(p->filter);
}

/* Computes the filter, [m]: the transform of h, divided by m. h[k] = h[m - k] = conj(chirp[k]) for
 * k < n, else 0. work: [2 m] */
static void fill_filter(plan *p, wide *work)
{
    memset(work, 0, p->m * sizeof *work);
    for (size_t k = 0; k < p->n; k++) {
        const size_t opposite = (p->m - k) % p->m;

        work[k].re[0] = work[opposite].re[0] = creal(p->chirp[k]) / (double)p->m;
        work[k].im[0] = work[opposite].im[0] = -cimag(p->chirp[k]) / (double)p->m;
    }
    run_steps(p->roots, p->m, work, work + p->m);
    for (size_t k = 0; k < p->m; k++)
        p->filter[k] = CMPLX(work[k].re[0], work[k].im[0]);
}

/* Creates the tables for length n. The caller closes *p, also after an error. */
static int plan_open(plan *p, size_t n)
{
    const bool is_direct = is_smooth(n);
    wide *work = NULL;
    int rc;

    *p = (plan){.n = n, .m = is_direct ? n : convolution_length(n)};
    if ((rc = fill_roots(p->m, &p->roots)) != PNR_OK || is_direct)
        return rc;
    p->chirp = allocate_values(n);
    p->filter = allocate_values(p->m);
    work = allocate_wide(2 * p->m);
    if (p->chirp && p->filter && work) {
        fill_chirp(p->chirp, n);
        fill_filter(p, work);
    } else {
        rc = PNR_ENOMEMORY;
    }
    free(work);
    return rc;
}

/* Transforms data, [n]. work: [2 m]. Bluestein's algorithm: with
 * 2jk = j^2 + k^2 - (j-k)^2 and w = exp(-pi i / n):
 * X[j] = w^(j^2) sum_k (x[k] w^(k^2)) conj(w^((j-k)^2)), a convolution. */
PNR_MULTIVERSION static void plan_run(const plan *p, wide *data, wide *work)
{
    wide *a = work, *scratch = work + p->m;

    if (p->chirp == NULL) {
        run_steps(p->roots, p->n, data, scratch);
        return;
    }
    for (size_t k = 0; k < p->n; k++)
        put_product(&a[k], &data[k].re, &data[k].im, p->chirp[k]);
    memset(a + p->n, 0, (p->m - p->n) * sizeof *a);
    run_steps(p->roots, p->m, a, scratch);
    for (size_t k = 0; k < p->m; k++) {
        const wide x = a[k];
        wide y;

        put_product(&y, &x.re, &x.im, p->filter[k]);
        a[k] = (wide){y.im, y.re}; /* real and imaginary part exchanged for the inverse transform */
    }
    run_steps(p->roots, p->m, a, scratch);
    for (size_t k = 0; k < p->n; k++)
        put_product(&data[k], &a[k].im, &a[k].re, p->chirp[k]);
}

/* --- split transforms --- */

/*
 * A transform of n = a b values in four steps (D. H. Bailey, 1990). data is a matrix of a rows and
 * b columns, w = exp(-2 pi i / n):
 *     X[k + a l] = sum_j w^(j k) exp(-2 pi i j l / b) sum_r x[r b + j] exp(-2 pi i r k / a)
 */
typedef struct split {
    size_t a, b;
    bool is_inverse;
    plan of_column, of_row;
    double complex *data, *between; /* [a b] */
    wide *work;                     /* [threads][n_work] */
    size_t n_work;
} split;

/* Copies from[i step + q lane_step] to lane q of to[i], for q < n_lanes. Sets the other lanes to 0.
 * is_exchanged: exchanges the real and imaginary parts. */
PNR_MULTIVERSION static void gather(wide *to, size_t n, const double complex *from, size_t step,
                                    size_t lane_step, size_t n_lanes, bool is_exchanged)
{
    for (size_t i = 0; i < n; i++, from += step) {
        wide x = {{0}, {0}};

        for (size_t q = 0; q < n_lanes; q++) {
            x.re[q] = creal(from[q * lane_step]);
            x.im[q] = cimag(from[q * lane_step]);
        }
        to[i] = is_exchanged ? (wide){x.im, x.re} : x;
    }
}

/* Copies lane q of from[i] to to[i step + q], for q < n_lanes. is_exchanged: exchanges the real and
 * imaginary parts. */
PNR_MULTIVERSION static void scatter(const wide *from, size_t n, double complex *to, size_t step,
                                     size_t n_lanes, bool is_exchanged)
{
    for (size_t i = 0; i < n; i++, to += step) {
        const wide x = is_exchanged ? (wide){from[i].im, from[i].re} : from[i];

        for (size_t q = 0; q < n_lanes; q++)
            to[q] = CMPLX(x.re[q], x.im[q]);
    }
}

/* Sets lane q of *w to exp(-2 pi i (j + q) k / n). */
static void fill_turn(wide *w, size_t j, size_t k, size_t n)
{
    for (size_t q = 0; q < LANES; q++) {
        const double complex root = conj(pnr_root((int64_t)((j + q) * k), n));

        w->re[q] = creal(root);
        w->im[q] = cimag(root);
    }
}

/* Multiplies lane q of x[k], k < a, by exp(-2 pi i (j + q) k / n). */
PNR_MULTIVERSION static void twiddle(wide *x, size_t a, size_t j, size_t n)
{
    wide fine[FINE], coarse;
    size_t n_fine = 1;

    while (n_fine < FINE && n_fine * n_fine < a)
        n_fine *= 2;
    for (size_t k = 0; k < n_fine; k++)
        fill_turn(&fine[k], j, k, n);
    for (size_t first = 0; first < a; first += n_fine) {
        fill_turn(&coarse, j, first, n);
        for (size_t k = 0; k < n_fine && first + k < a; k++) {
            const wide w = {coarse.re * fine[k].re - coarse.im * fine[k].im,
                            coarse.re * fine[k].im + coarse.im * fine[k].re};
            const wide y = x[first + k];

            x[first + k] = (wide){y.re * w.re - y.im * w.im, y.re * w.im + y.im * w.re};
        }
    }
}

static void transform_columns(void *context, size_t task, size_t thread)
{
    const split *s = context;
    const size_t first = task * LANES, left = s->b - first, n = left < LANES ? left : LANES;
    wide *column = s->work + thread * s->n_work, *work = column + s->a;

    gather(column, s->a, s->data + first, s->b, 1, n, s->is_inverse);
    plan_run(&s->of_column, column, work);
    twiddle(column, s->a, first, s->a * s->b);
    scatter(column, s->a, s->between + first, s->b, n, false);
}

static void transform_rows(void *context, size_t task, size_t thread)
{
    const split *s = context;
    const size_t first = task * LANES, left = s->a - first, n = left < LANES ? left : LANES;
    wide *row = s->work + thread * s->n_work, *work = row + s->b;

    gather(row, s->b, s->between + first * s->b, 1, s->b, n, false);
    plan_run(&s->of_row, row, work);
    scatter(row, s->b, s->data + first, s->a, n, s->is_inverse);
}

/* Returns the greatest factor of n up to its square root. */
static size_t factor_of(size_t n)
{
    size_t a = 1;

    while ((a + 1) * (a + 1) <= n)
        a++;
    while (n % a != 0)
        a--;
    return a;
}

static int transform_split(double complex *data, size_t a, size_t b, bool is_inverse)
{
    const size_t n_tasks = (b + LANES - 1) / LANES;
    const size_t n_threads = a * b < LONG ? 1 : pnr_parallel_threads(n_tasks);
    split s = {.a = a, .b = b, .is_inverse = is_inverse, .data = data};
    int rc = PNR_ENOMEMORY;

    if (plan_open(&s.of_column, a) == PNR_OK && plan_open(&s.of_row, b) == PNR_OK) {
        s.n_work = b + 2 * (s.of_column.m > s.of_row.m ? s.of_column.m : s.of_row.m);
        s.work = allocate_wide(n_threads * s.n_work);
        s.between = allocate_values(a * b);
    }
    if (s.work != NULL && s.between != NULL) {
        pnr_parallel_run(n_tasks, n_threads, transform_columns, &s);
        pnr_parallel_run((a + LANES - 1) / LANES, n_threads, transform_rows, &s);
        rc = pnr_parallel_is_stopped() ? PNR_EEND : PNR_OK;
    }
    plan_close(&s.of_column);
    plan_close(&s.of_row);
    free(s.work);
    free(s.between);
    return rc;
}

/* --- transforms of any length --- */

static int transform_any(double complex *data, size_t n, bool is_inverse);

static double complex exchange(double complex x, bool is_exchanged)
{
    return is_exchanged ? CMPLX(cimag(x), creal(x)) : x;
}

/* Transforms values of a length for which rows_of() returns 0. Uses Bluestein's algorithm, as
 * plan_run does. */
static int transform_long(double complex *data, size_t n, bool is_inverse)
{
    const size_t m = convolution_length(n);
    double complex *chirp = allocate_values(n), *a = allocate_values(m), *b = allocate_values(m);
    int rc = PNR_ENOMEMORY;

    if (!chirp || !a || !b)
        goto done;
    fill_chirp(chirp, n);
    memset(b, 0, m * sizeof *b);
    for (size_t k = 0; k < n; k++)
        b[k] = b[(m - k) % m] = conj(chirp[k]) / (double)m;
    memset(a, 0, m * sizeof *a);
    for (size_t k = 0; k < n; k++)
        a[k] = exchange(data[k], is_inverse) * chirp[k];
    if ((rc = transform_any(a, m, false)) != PNR_OK || (rc = transform_any(b, m, false)) != PNR_OK)
        goto done;
    for (size_t k = 0; k < m; k++)
        a[k] *= b[k];
    if ((rc = transform_any(a, m, true)) != PNR_OK)
        goto done;
    for (size_t k = 0; k < n; k++)
        data[k] = exchange(a[k] * chirp[k], is_inverse);
done:
    free(chirp);
    free(a);
    free(b);
    return rc;
}

/* Returns a, a factor of n: transform_split divides n into a rows of n / a columns. Returns 1 if n
 * is at most SMALL. Returns 0 if n has no factor a with LANES <= a <= sqrt(n), or if n / a >= LONG
 * and n has a prime factor above MAX_RADIX. transform_long then uses a convolution, whose length
 * can be split. */
static size_t rows_of(size_t n)
{
    const size_t a = n <= SMALL ? 1 : factor_of(n);

    return n <= SMALL || (a >= LANES && (n / a < LONG || is_smooth(n))) ? a : 0;
}

static int transform_any(double complex *data, size_t n, bool is_inverse)
{
    size_t a;

    assert(n >= 1);
    if (n > SIZE_MAX / 256)
        return PNR_ENOMEMORY;
    a = rows_of(n);
    return a > 0 ? transform_split(data, a, n / a, is_inverse)
                 : transform_long(data, n, is_inverse);
}

double pnr_transform_bytes(size_t n)
{
    /* A convolution also needs the arrays a, b and between. */
    const double values = (double)n + (rows_of(n) > 0 ? 0 : 3 * (double)convolution_length(n));

    return values * sizeof(double complex);
}

int pnr_transform_forward(double (*data)[2], size_t n)
{
    return transform_any((double complex *)data, n, false);
}

int pnr_transform_inverse(double (*data)[2], size_t n)
{
    return transform_any((double complex *)data, n, true);
}

size_t pnr_transform_fast_length(size_t n)
{
    size_t best = 0;

    /* Tries all products 3^b 5^c 7^d. Doubles each product until it reaches n. */
    for (size_t seven = 1;; seven *= 7) {
        for (size_t five = seven;; five *= 5) {
            for (size_t three = five;; three *= 3) {
                size_t length = three;

                while (length < n && length <= SIZE_MAX / 2)
                    length *= 2;
                if (length >= n && (best == 0 || length < best))
                    best = length;
                if (three >= n || three > SIZE_MAX / 3)
                    break;
            }
            if (five >= n || five > SIZE_MAX / 5)
                break;
        }
        if (seven >= n || seven > SIZE_MAX / 7)
            break;
    }
    return best;
}
