/* SPDX-License-Identifier: MIT */
/* The discrete Fourier transform of any length, in double precision. */
#include "base/transform.h"

#include "base/complex.h"
#include "base/error.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum { FORWARD = -1, INVERSE = 1 } direction;

/* The greatest radix of a step. A length with a greater prime factor needs Bluestein's
 * algorithm. */
enum { MAX_RADIX = 13 };

/* The tables of one transform in steps; they are made and freed within one call. */
typedef struct steps {
    size_t n;
    double complex *roots;   /* exp(2 pi i p / n), p up to n / 4, or n / 3 if 3 divides n */
    double complex *scratch; /* [n] */
} steps;

void pnr_transform_root(size_t j, size_t n, double value[2])
{
    /* The angle is reduced to one octant in integers, so that sin and cos see at most pi/4. */
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

static void steps_close(steps *plan)
{
    free(plan->roots);
    free(plan->scratch);
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

static int steps_open(steps *plan, size_t n)
{
    /* A step of radix r reads roots below n / r. Radix 2 comes last and reads root 0. */
    const size_t n_roots = n / (n % 3 == 0 ? 3 : 4) + 1;

    plan->n = n;
    plan->roots = allocate_values(n_roots);
    plan->scratch = allocate_values(n);
    if (!plan->roots || !plan->scratch) {
        steps_close(plan);
        return PNR_ENOMEMORY;
    }
    for (size_t p = 0; p < n_roots; p++)
        plan->roots[p] = pnr_root((int64_t)p, n);
    return PNR_OK;
}

/*
 * One step of radix 4, self-sorting (T. G. Stockham, 1966): n is the length of the transforms that
 * remain, and s of them are interleaved. For each transform, with w = exp(sign 2 pi i / n),
 * p < n/4 and k < 4:
 *     y[4p + k] = w^(k p) sum_j x[p + j n/4] exp(sign 2 pi i j k / 4)
 */
static void step_radix4(const double complex *restrict x, double complex *restrict y, size_t n,
                        size_t s, const double complex *roots, direction way)
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
 * It is inlined, so that the compiler unrolls the sums of a constant r. */
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

static void steps_run(const steps *plan, double complex *data, direction way)
{
    double complex *from = data, *to = plan->scratch;
    size_t n = plan->n;
    size_t s = 1;

    while (n > 1) {
        const size_t r = next_radix(n);
        double complex *swap = from;

        switch (r) {
        case 4:
            step_radix4(from, to, n, s, plan->roots, way);
            break;
        case 3:
            step_radix(from, to, n, s, 3, plan->roots, way);
            break;
        case 5:
            step_radix(from, to, n, s, 5, plan->roots, way);
            break;
        default:
            step_radix(from, to, n, s, r, plan->roots, way);
        }
        from = to;
        to = swap;
        s *= r;
        n /= r;
    }
    if (from != data)
        memcpy(data, from, plan->n * sizeof *data);
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

/* With 2mk = m^2 + k^2 - (m-k)^2 and w = exp(sign pi i / n):
 * X[m] = w^(m^2) sum_k (x[k] w^(k^2)) conj(w^((m-k)^2)), a convolution. */
static int transform_bluestein(double complex *data, size_t n, direction way)
{
    steps plan = {0};
    double complex *chirp, *a, *b;
    size_t m = 1;
    int rc = PNR_ENOMEMORY;

    while (m < 2 * n - 1)
        m *= 2;
    chirp = allocate_values(n);
    a = allocate_values(m);
    b = allocate_values(m);
    if (!chirp || !a || !b || steps_open(&plan, m) != PNR_OK)
        goto done;

    fill_chirp(chirp, n, way);
    memset(a, 0, m * sizeof *a);
    memset(b, 0, m * sizeof *b);
    for (size_t k = 0; k < n; k++) {
        a[k] = data[k] * chirp[k];
        b[k] = b[(m - k) % m] = conj(chirp[k]);
    }
    steps_run(&plan, a, FORWARD);
    steps_run(&plan, b, FORWARD);
    for (size_t k = 0; k < m; k++)
        a[k] *= b[k];
    steps_run(&plan, a, INVERSE);
    for (size_t k = 0; k < n; k++)
        data[k] = a[k] * chirp[k] / (double)m;
    steps_close(&plan);
    rc = PNR_OK;
done:
    free(chirp);
    free(a);
    free(b);
    return rc;
}

static int transform_any(double complex *data, size_t n, direction way)
{
    steps plan;

    assert(n >= 1);
    if (n > SIZE_MAX / 256)
        return PNR_ENOMEMORY;
    if (!is_smooth(n))
        return transform_bluestein(data, n, way);
    if (steps_open(&plan, n) != PNR_OK)
        return PNR_ENOMEMORY;
    steps_run(&plan, data, way);
    steps_close(&plan);
    return PNR_OK;
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
