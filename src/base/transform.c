/* SPDX-License-Identifier: MIT */
/* The discrete Fourier transform in double precision, any length. */
#include "base/transform.h"

#include "base/error.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum { FORWARD = -1, INVERSE = 1 } direction;

/* The tables of one power-of-two transform; they are made and freed within one call. */
typedef struct steps {
    size_t n;
    double (*roots)[2];   /* [n / 4] exp(2 pi i p / n) */
    double (*scratch)[2]; /* [n] */
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

static void multiply_pair(const double a[2], const double b[2], double out[2])
{
    double re = a[0] * b[0] - a[1] * b[1];
    double im = a[0] * b[1] + a[1] * b[0];

    out[0] = re;
    out[1] = im;
}

static void *allocate_pairs(size_t n)
{
    return n > SIZE_MAX / sizeof(double[2]) ? NULL : malloc(n * sizeof(double[2]));
}

static void steps_close(steps *plan)
{
    free(plan->roots);
    free(plan->scratch);
}

static int steps_open(steps *plan, size_t n)
{
    plan->n = n;
    plan->roots = allocate_pairs(n / 4 + 1);
    plan->scratch = allocate_pairs(n);
    if (!plan->roots || !plan->scratch) {
        steps_close(plan);
        return PNR_ENOMEMORY;
    }
    for (size_t p = 0; p < n / 4; p++)
        pnr_transform_root(p, n, plan->roots[p]);
    return PNR_OK;
}

/*
 * One step of radix 4, self-sorting (T. G. Stockham, 1966): n is the length of the transforms still
 * to do, s of them lie interleaved. With w = exp(sign 2 pi i / n), over p < n/4 and k < 4:
 *     y[4p + k] = w^(k p) sum_j x[p + j n/4] exp(sign 2 pi i j k / 4)
 */
static void step_radix4(const double (*restrict x)[2], double (*restrict y)[2], size_t n, size_t s,
                        const double (*roots)[2], size_t stride, double sign)
{
    const size_t quarter = n / 4;

    for (size_t p = 0; p < quarter; p++) {
        const double w1[2] = {roots[p * stride][0], sign * roots[p * stride][1]};
        double w2[2], w3[2];
        const double(*x0)[2] = x + s * p;
        const double(*x1)[2] = x0 + s * quarter;
        const double(*x2)[2] = x1 + s * quarter;
        const double(*x3)[2] = x2 + s * quarter;
        double(*y0)[2] = y + 4 * s * p;
        double(*y1)[2] = y0 + s;
        double(*y2)[2] = y1 + s;
        double(*y3)[2] = y2 + s;

        multiply_pair(w1, w1, w2);
        multiply_pair(w1, w2, w3);
        for (size_t q = 0; q < s; q++) {
            double ar = x0[q][0] + x2[q][0], ai = x0[q][1] + x2[q][1];
            double br = x0[q][0] - x2[q][0], bi = x0[q][1] - x2[q][1];
            double cr = x1[q][0] + x3[q][0], ci = x1[q][1] + x3[q][1];
            double dr = sign * (x3[q][1] - x1[q][1]), di = sign * (x1[q][0] - x3[q][0]);
            double t1r = br + dr, t1i = bi + di;
            double t2r = ar - cr, t2i = ai - ci;
            double t3r = br - dr, t3i = bi - di;

            y0[q][0] = ar + cr;
            y0[q][1] = ai + ci;
            y1[q][0] = w1[0] * t1r - w1[1] * t1i;
            y1[q][1] = w1[0] * t1i + w1[1] * t1r;
            y2[q][0] = w2[0] * t2r - w2[1] * t2i;
            y2[q][1] = w2[0] * t2i + w2[1] * t2r;
            y3[q][0] = w3[0] * t3r - w3[1] * t3i;
            y3[q][1] = w3[0] * t3i + w3[1] * t3r;
        }
    }
}

static void step_radix2(const double (*restrict x)[2], double (*restrict y)[2], size_t s)
{
    for (size_t q = 0; q < s; q++) {
        y[q][0] = x[q][0] + x[q + s][0];
        y[q][1] = x[q][1] + x[q + s][1];
        y[q + s][0] = x[q][0] - x[q + s][0];
        y[q + s][1] = x[q][1] - x[q + s][1];
    }
}

static void steps_run(const steps *plan, double (*data)[2], direction way)
{
    double(*from)[2] = data;
    double(*to)[2] = plan->scratch;
    size_t n = plan->n;
    size_t s = 1;

    while (n > 1) {
        double(*swap)[2] = from;

        if (n == 2)
            step_radix2((const double(*)[2])from, to, s);
        else
            step_radix4((const double(*)[2])from, to, n, s, (const double(*)[2])plan->roots, s,
                        (double)way);
        from = to;
        to = swap;
        s *= n == 2 ? 2 : 4;
        n /= n == 2 ? 2 : 4;
    }
    if (from != data)
        memcpy(data, from, plan->n * sizeof *data);
}

/* exp(sign pi i k^2 / n) for k < n; k^2 mod 2n is stepped in integers: (k+1)^2 = k^2 + 2k + 1. */
static void fill_chirp(double (*chirp)[2], size_t n, direction way)
{
    size_t square = 0;

    for (size_t k = 0; k < n; k++) {
        pnr_transform_root(square, 2 * n, chirp[k]);
        chirp[k][1] *= (double)way;
        square += 2 * k + 1;
        square -= square >= 2 * n ? 2 * n : 0;
    }
}

/* With 2mk = m^2 + k^2 - (m-k)^2 and w = exp(sign pi i / n):
 * X[m] = w^(m^2) sum_k (x[k] w^(k^2)) conj(w^((m-k)^2)), a convolution. */
static int transform_bluestein(double (*data)[2], size_t n, direction way)
{
    steps plan = {0};
    double(*chirp)[2] = NULL;
    double(*a)[2] = NULL;
    double(*b)[2] = NULL;
    size_t m = 1;
    int rc = PNR_ENOMEMORY;

    if (n > SIZE_MAX / 256)
        return PNR_ENOMEMORY;
    while (m < 2 * n - 1)
        m *= 2;
    chirp = allocate_pairs(n);
    a = allocate_pairs(m);
    b = allocate_pairs(m);
    if (!chirp || !a || !b || steps_open(&plan, m) != PNR_OK)
        goto done;

    fill_chirp(chirp, n, way);
    memset(a, 0, m * sizeof *a);
    memset(b, 0, m * sizeof *b);
    for (size_t k = 0; k < n; k++) {
        multiply_pair(data[k], chirp[k], a[k]);
        b[k][0] = chirp[k][0];
        b[k][1] = -chirp[k][1];
        memcpy(b[(m - k) % m], b[k], sizeof *b);
    }
    steps_run(&plan, a, FORWARD);
    steps_run(&plan, b, FORWARD);
    for (size_t k = 0; k < m; k++)
        multiply_pair(a[k], b[k], a[k]);
    steps_run(&plan, a, INVERSE);
    for (size_t k = 0; k < n; k++) {
        multiply_pair(a[k], chirp[k], data[k]);
        data[k][0] /= (double)m;
        data[k][1] /= (double)m;
    }
    steps_close(&plan);
    rc = PNR_OK;
done:
    free(chirp);
    free(a);
    free(b);
    return rc;
}

static int transform_any(double (*data)[2], size_t n, direction way)
{
    steps plan;

    assert(n >= 1);
    if ((n & (n - 1)) != 0)
        return transform_bluestein(data, n, way);
    if (n > SIZE_MAX / 256 || steps_open(&plan, n) != PNR_OK)
        return PNR_ENOMEMORY;
    steps_run(&plan, data, way);
    steps_close(&plan);
    return PNR_OK;
}

int pnr_transform_forward(double (*data)[2], size_t n)
{
    return transform_any(data, n, FORWARD);
}

int pnr_transform_inverse(double (*data)[2], size_t n)
{
    return transform_any(data, n, INVERSE);
}

size_t pnr_transform_fast_length(size_t n)
{
    size_t best = 0;

    /* All 3^b 5^c 7^d, each doubled until it reaches n. */
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
