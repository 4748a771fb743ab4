/* SPDX-License-Identifier: MIT */
/* Latency statistics in fixed memory: a log-linear histogram, and medians of a few values. */
#ifndef PNR_STATS_H
#define PNR_STATS_H

#include <stddef.h>
#include <stdint.h>

enum { PNR_HISTOGRAM_BUCKETS = 64 * 32 };

/* A histogram of whole numbers. Each value below 32 has its own bucket. From 32 on, each interval
 * from 2^k to 2^(k + 1) - 1 has 32 buckets of equal width, so the relative error of a quantile is
 * at most 1/64. A zeroed histogram is empty. */
typedef struct pnr_histogram {
    uint64_t n;
    uint64_t max;
    uint64_t count[PNR_HISTOGRAM_BUCKETS];
} pnr_histogram;

void pnr_histogram_add(pnr_histogram *histogram, uint64_t value);
/* Returns the quantile p, 0 <= p <= 1: a fraction p of all values is less than or equal to it.
 * Returns 0 if there are no values. */
uint64_t pnr_histogram_quantile(const pnr_histogram *histogram, double p);

/* pnr_median returns the lower median of n values. pnr_quantile returns the quantile p of n values
 * by nearest rank. n >= 1. Both functions sort the values in place. */
double pnr_median(double *values, size_t n);
double pnr_quantile(double *values, size_t n, double p);

#endif
