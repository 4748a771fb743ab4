/* SPDX-License-Identifier: MIT */
/* Latency statistics: a log-linear histogram, and quantiles of a few values by nearest rank. */
#include "base/stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { LINEAR_BITS = 5, LINEAR = 1 << LINEAR_BITS };

/* Each value below 32 has its own bucket. From 32 on, each interval from 2^k to 2^(k + 1) - 1 has
 * 32 buckets. */
static size_t bucket_of(uint64_t value)
{
    if (value < LINEAR)
        return (size_t)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - LINEAR_BITS;
    return (size_t)(shift + 1) * LINEAR + (size_t)((value >> shift) & (LINEAR - 1));
}

static uint64_t middle_of(size_t bucket)
{
    if (bucket < LINEAR)
        return bucket;
    unsigned shift = (unsigned)(bucket / LINEAR) - 1;
    uint64_t first = (uint64_t)(LINEAR + bucket % LINEAR) << shift;
    return first + (UINT64_C(1) << shift) / 2;
}

/* Returns ceil(p n), limited to 1 .. n. If rounding makes the product slightly greater than an
 * integer, returns this integer. */
static uint64_t nearest_rank(double p, uint64_t n)
{
    double rank = ceil(p * (double)n * (1 - 4 * DBL_EPSILON));

    if (!(rank >= 1))
        return 1;
    return rank >= (double)n ? n : (uint64_t)rank;
}

void pnr_histogram_add(pnr_histogram *histogram, uint64_t value)
{
    histogram->n++;
    histogram->count[bucket_of(value)]++;
    if (value > histogram->max)
        histogram->max = value;
}

uint64_t pnr_histogram_quantile(const pnr_histogram *histogram, double p)
{
    if (histogram->n == 0)
        return 0;
    uint64_t rank = nearest_rank(p, histogram->n), below = 0;
    if (rank == histogram->n)
        return histogram->max;
    size_t bucket = 0;
    while (below + histogram->count[bucket] < rank)
        below += histogram->count[bucket++];
    uint64_t value = middle_of(bucket);
    return value < histogram->max ? value : histogram->max;
}

/* Compares two values for ascending order. NaN is greater than all numbers, so that the order is
 * total. */
static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    if (isnan(a) || isnan(b))
        return (isnan(a) != 0) - (isnan(b) != 0);
    return (a > b) - (a < b);
}

double pnr_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return values[(n - 1) / 2];
}

double pnr_quantile(double *values, size_t n, double p)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return values[nearest_rank(p, n) - 1];
}
