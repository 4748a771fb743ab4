/* SPDX-License-Identifier: MIT */
/* The discrete Fourier transform of any length, in double precision. Long transforms are split into
 * short ones. Each short transform fits in a cache, and all processors share them. */
#include "base/transform.h"

#include "base/complex.h"
#include "base/error.h"
#include "base/multiversion.h"
#include "base/parallel.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum { FORWARD = -1, INVERSE = 1 } direction;

/* The greatest radix of a step. A length with a greater prime factor needs Bluestein's
 * algorithm. */
enum {
    MAX_RADIX = 13,
    LONG = 1 << 15, /* transforms of this length and longer are split */
    BLOCK = 16,     /* columns or rows that a thread transforms at a time; 16 values fill four cache
                     * lines */
    /* unused values after each column or row, so that columns or rows lie in different sets of the
     * cache */
    PAD = 4,
    FINE = 64 /* exact twiddle factors in a table; a factor is the product of two exact factors */
};

/* The tables of a short transform. */
typedef struct plan {
    size_t n;
    direction way;
    size_t m;               /* length of the steps: n, or that of Bluestein's convolution */
    double complex *roots;  /* exp(2 pi i p / m), p up to m / 4, or m / 3 if 3 divides m */
    double complex *chirp;  /* [n]; NULL: n has no prime factor above MAX_RADIX */
    double complex *filter; /* [m] transform of the conjugate chirp, divided by m */
} plan;

void pnr_transform_root(size_t j, size_t n, double value[2])
{
    /* The angle is reduced to one octant in integers, so that sin and cos get at most pi/4. */
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
    return n > SIZE_MAX / sizeof(double complex) ? NULL : malloc(n * sizeof(double complex));
}

/* Returns the radix of the first step of length n: 4 if it divides n, else the least odd prime
 * factor of n. Returns 2 if n is 2, and 0 if n has no such factor up to MAX_RADIX. */
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

/* Fills the roots that the steps of length m need. A step of radix r reads roots below m / r. Radix
 * 2 comes last and reads root 0. */
static int fill_roots(size_t m, double complex **roots)
{
    const size_t n_roots = m / (m % 3 == 0 ? 3 : 4) + 1;

    if ((*roots = allocate_values(n_roots)) == NULL)
        return PNR_ENOMEMORY;
    for (size_t p = 0; p < n_roots; p++)
        (*roots)[p] = pnr_root((int64_t)p, m);
    return PNR_OK;
}

/*
 * One step of radix 4, self-sorting (T. G. Stockham, 1966): n is the length of the transforms that
 * remain, and s of them are interleaved. For each transform, with sign = `way`, w =
 * exp(sign 2 pi i / n), p < n/4 and k < 4:
 *     y[4p + k] = w^(k p) sum_j x[p + j n/4] exp(sign 2 pi i j k / 4)
 */
static inline __attribute__((always_inline)) void step_radix4(const double complex *restrict x,
                                                              double complex *restrict y, size_t n,
                                                              size_t s, const double complex *roots,
                                                              direction way)
{
    const size_t quarter = n / 4;

    for (size_t p = 0; p < quarter; p++) {
        const double complex w1 = way == FORWARD ? conj(roots[p * s]) : roots[p * s];
        const double complex w2 = w1 * w1, w3 = w1 * w2;
        const double complex *from = x + s * p;
        double complex *to = y + 4 * s * p;

        for (size_t q = 0; q < s; q++) {
            const double complex x0 = from[q], x1 = from[s * quarter + q];
            const double complex x2 = from[2 * s * quarter + q], x3 = from[3 * s * quarter + q];
            const double complex a = x0 + x2, b = x0 - x2, c = x1 + x3, d = x1 - x3;
            const double complex turned = /* exp(sign pi i / 2) d */
                way == FORWARD ? CMPLX(cimag(d), -creal(d)) : CMPLX(-cimag(d), creal(d));

            to[q] = a + c;
            to[s + q] = w1 * (b + turned);
            to[2 * s + q] = w2 * (a - c);
            to[3 * s + q] = w3 * (b - turned);
        }
    }
}

/* A step of any radix r:
 * y[r p + k] = w^(k p) sum_j x[p + j n/r] exp(sign 2 pi i j k / r).
 * The function is inlined, so that the compiler unrolls the sums of a constant r. */
static inline __attribute__((always_inline)) void
step_radix(const double complex *restrict x, double complex *restrict y, size_t n, size_t s,
           size_t r, const double complex *roots, direction way)
{
    double complex of_r[MAX_RADIX], turn[MAX_RADIX];

    for (size_t j = 0; j < r; j++)
        of_r[j] = way == FORWARD ? conj(pnr_root((int64_t)j, r)) : pnr_root((int64_t)j, r);
    for (size_t p = 0; p < n / r; p++) {
        const double complex w1 = way == FORWARD ? conj(roots[p * s]) : roots[p * s];

        turn[0] = 1;
        for (size_t k = 1; k < r; k++)
            turn[k] = turn[k - 1] * w1;
        for (size_t q = 0; q < s; q++) {
            const double complex *from = x + s * p + q;
            double complex *to = y + r * s * p + q;

            for (size_t k = 0; k < r; k++) {
                double complex sum = from[0];

                for (size_t j = 1; j < r; j++)
                    sum += of_r[j * k % r] * from[j * s * (n / r)];
                to[k * s] = turn[k] * sum;
            }
        }
    }
}

/* Transforms data, [n]. scratch: [n]. */
PNR_MULTIVERSION static void run_steps(const double complex *roots, size_t n_all,
                                       double complex *data, double complex *scratch, direction way)
{
    double complex *from = data, *to = scratch;
    size_t n = n_all;
    size_t s = 1;

    while (n > 1) {
        const size_t r = next_radix(n);
        double complex *swap = from;

        switch (r) {
        case 4:
            step_radix4(from, to, n, s, roots, way);
            break;
        case 3:
            step_radix(from, to, n, s, 3, roots, way);
            break;
        case 5:
            step_radix(from, to, n, s, 5, roots, way);
            break;
        default:
            step_radix(from, to, n, s, r, roots, way);
        }
        from = to;
        to = swap;
        s *= r;
        n /= r;
    }
    if (from != data)
        memcpy(data, from, n_all * sizeof *data);
}

/* exp(sign pi i k^2 / n) for k < n; k^2 mod 2n is stepped in integers: (k+1)^2 = k^2 + 2k + 1. */
static void fill_chirp(double complex *chirp, size_t n, direction way)
{
    size_t square = 0;

    for (size_t k = 0; k < n; k++) {
        const double complex root = pnr_root((int64_t)square, 2 * n);

        chirp[k] = way == FORWARD ? conj(root) : root;
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

/* Fills b, [m], with the conjugate chirp at k and at -k, divided by m. */
static void fill_filter(const double complex *chirp, size_t n, size_t m, double complex *b)
{
    memset(b, 0, m * sizeof *b);
    for (size_t k = 0; k < n; k++)
        b[k] = b[(m - k) % m] = conj(chirp[k]) / (double)m;
}

/* --- a short transform --- */

static void plan_close(plan *p)
{
    free(p->roots);
    free(p->chirp);
    free(p->filter);
}

/* The caller closes *p, also after an error. */
static int plan_open(plan *p, size_t n, direction way)
{
    const bool is_direct = is_smooth(n);
    double complex *scratch = NULL;
    int rc;

    *p = (plan){.n = n, .way = way, .m = is_direct ? n : convolution_length(n)};
    if ((rc = fill_roots(p->m, &p->roots)) != PNR_OK || is_direct)
        return rc;
    p->chirp = allocate_values(n);
    p->filter = allocate_values(p->m);
    scratch = allocate_values(p->m);
    if (p->chirp && p->filter && scratch) {
        fill_chirp(p->chirp, n, way);
        fill_filter(p->chirp, n, p->m, p->filter);
        run_steps(p->roots, p->m, p->filter, scratch, FORWARD);
    } else {
        rc = PNR_ENOMEMORY;
    }
    free(scratch);
    return rc;
}

/* Transforms data, [n]. work: [2 m].
 * With 2jk = j^2 + k^2 - (j-k)^2 and w = exp(sign pi i / n):
 * X[j] = w^(j^2) sum_k (x[k] w^(k^2)) conj(w^((j-k)^2)), a convolution. */
static void plan_run(const plan *p, double complex *data, double complex *work)
{
    double complex *a = work, *scratch = work + p->m;

    if (p->chirp == NULL) {
        run_steps(p->roots, p->n, data, scratch, p->way);
        return;
    }
    for (size_t k = 0; k < p->n; k++)
        a[k] = data[k] * p->chirp[k];
    memset(a + p->n, 0, (p->m - p->n) * sizeof *a);
    run_steps(p->roots, p->m, a, scratch, FORWARD);
    for (size_t k = 0; k < p->m; k++)
        a[k] *= p->filter[k];
    run_steps(p->roots, p->m, a, scratch, INVERSE);
    for (size_t k = 0; k < p->n; k++)
        data[k] = a[k] * p->chirp[k];
}

static int transform_short(double complex *data, size_t n, direction way)
{
    double complex *work = NULL;
    plan p;
    int rc = plan_open(&p, n, way);

    if (rc == PNR_OK && (work = allocate_values(2 * p.m)) == NULL)
        rc = PNR_ENOMEMORY;
    if (rc == PNR_OK)
        plan_run(&p, data, work);
    plan_close(&p);
    free(work);
    return rc;
}

/* --- a long transform --- */

/*
 * A transform of n = a b values in four steps (D. H. Bailey, 1990). data is a matrix of a rows and
 * b columns, w = exp(sign 2 pi i / n):
 *     X[k + a l] = sum_j w^(j k) exp(sign 2 pi i j l / b) sum_r x[r b + j] exp(sign 2 pi i r k / a)
 */
typedef struct split {
    size_t a, b;
    direction way;
    plan of_column, of_row;
    double complex *data, *between; /* [a b] */
    double complex *work;           /* [threads][n_work] */
    size_t n_work;
} split;

/* x[k] *= w^(j k) */
static void twiddle(const split *s, size_t j, double complex *x)
{
    const size_t n = s->a * s->b;
    double complex fine[FINE];

    for (size_t k = 0; k < FINE && k < s->a; k++)
        fine[k] = pnr_root((int64_t)(j * k), n);
    for (size_t first = 0; first < s->a; first += FINE) {
        const double complex coarse = pnr_root((int64_t)(j * first), n);

        for (size_t k = 0; k < FINE && first + k < s->a; k++) {
            const double complex w = coarse * fine[k];

            x[first + k] *= s->way == FORWARD ? conj(w) : w;
        }
    }
}

static void transform_columns(void *context, size_t task, size_t thread)
{
    const split *s = context;
    const size_t first = task * BLOCK, left = s->b - first, n = left < BLOCK ? left : BLOCK;
    const size_t pitch = s->a + PAD;
    double complex *block = s->work + thread * s->n_work, *work = block + BLOCK * pitch;

    for (size_t i = 0; i < s->a; i++)
        for (size_t q = 0; q < n; q++)
            block[q * pitch + i] = s->data[i * s->b + first + q];
    for (size_t q = 0; q < n; q++) {
        plan_run(&s->of_column, block + q * pitch, work);
        twiddle(s, first + q, block + q * pitch);
    }
    for (size_t k = 0; k < s->a; k++)
        for (size_t q = 0; q < n; q++)
            s->between[k * s->b + first + q] = block[q * pitch + k];
}

static void transform_rows(void *context, size_t task, size_t thread)
{
    const split *s = context;
    const size_t first = task * BLOCK, left = s->a - first, n = left < BLOCK ? left : BLOCK;
    const size_t pitch = s->b + PAD;
    double complex *block = s->work + thread * s->n_work, *work = block + BLOCK * pitch;

    for (size_t q = 0; q < n; q++) {
        memcpy(block + q * pitch, s->between + (first + q) * s->b, s->b * sizeof *block);
        plan_run(&s->of_row, block + q * pitch, work);
    }
    for (size_t l = 0; l < s->b; l++)
        for (size_t q = 0; q < n; q++)
            s->data[first + q + s->a * l] = block[q * pitch + l];
}

/* Returns the greatest factor of n up to its square root, if the other factor is short; else 0. */
static size_t factor_of(size_t n)
{
    size_t a = 1;

    while ((a + 1) * (a + 1) <= n)
        a++;
    while (n % a != 0)
        a--;
    return n / a < LONG ? a : 0;
}

static int transform_split(double complex *data, size_t a, size_t b, direction way)
{
    const size_t n_tasks = (b + BLOCK - 1) / BLOCK, n_threads = pnr_parallel_threads(n_tasks);
    split s = {.a = a, .b = b, .way = way, .data = data};
    int rc = PNR_ENOMEMORY;

    if (plan_open(&s.of_column, a, way) == PNR_OK && plan_open(&s.of_row, b, way) == PNR_OK) {
        const size_t m = s.of_column.m > s.of_row.m ? s.of_column.m : s.of_row.m;

        s.n_work = BLOCK * (b + PAD) + 2 * m;
        s.work = allocate_values(n_threads * s.n_work);
        s.between = allocate_values(a * b);
    }
    if (s.work != NULL && s.between != NULL) {
        pnr_parallel_run(n_tasks, n_threads, transform_columns, &s);
        pnr_parallel_run((a + BLOCK - 1) / BLOCK, n_threads, transform_rows, &s);
        rc = PNR_OK;
    }
    plan_close(&s.of_column);
    plan_close(&s.of_row);
    free(s.work);
    free(s.between);
    return rc;
}

static int transform_any(double complex *data, size_t n, direction way);

/* Transforms a length that has no two short factors, by Bluestein's algorithm as in plan_run. */
static int transform_long(double complex *data, size_t n, direction way)
{
    const size_t m = convolution_length(n);
    double complex *chirp = allocate_values(n), *a = allocate_values(m), *b = allocate_values(m);
    int rc = PNR_ENOMEMORY;

    if (!chirp || !a || !b)
        goto done;
    fill_chirp(chirp, n, way);
    fill_filter(chirp, n, m, b);
    memset(a, 0, m * sizeof *a);
    for (size_t k = 0; k < n; k++)
        a[k] = data[k] * chirp[k];
    if ((rc = transform_any(a, m, FORWARD)) != PNR_OK ||
        (rc = transform_any(b, m, FORWARD)) != PNR_OK)
        goto done;
    for (size_t k = 0; k < m; k++)
        a[k] *= b[k];
    if ((rc = transform_any(a, m, INVERSE)) != PNR_OK)
        goto done;
    for (size_t k = 0; k < n; k++)
        data[k] = a[k] * chirp[k];
done:
    free(chirp);
    free(a);
    free(b);
    return rc;
}

static int transform_any(double complex *data, size_t n, direction way)
{
    const size_t a = n < LONG || n > SIZE_MAX / 256 ? 0 : factor_of(n);

    assert(n >= 1);
    if (n > SIZE_MAX / 256)
        return PNR_ENOMEMORY;
    if (a > 0)
        return transform_split(data, a, n / a, way);
    return n < LONG || is_smooth(n) ? transform_short(data, n, way) : transform_long(data, n, way);
}

int pnr_transform_forward(double (*data)[2], size_t n)
{
    return transform_any((double complex *)data, n, FORWARD);
}

int pnr_transform_inverse(double (*data)[2], size_t n)
{
    return transform_any((double complex *)data, n, INVERSE);
}

size_t pnr_transform_fast_length(size_t n)
{
    size_t best = 0;

    /* Tries all 3^b 5^c 7^d. Doubles each of them until it reaches n. */
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
