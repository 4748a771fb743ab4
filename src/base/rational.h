/* SPDX-License-Identifier: MIT */
/* Exact rates p/q with 64-bit integers p and q. Phase and time therefore do not drift with the
 * sample index. */
#ifndef PNR_RATIONAL_H
#define PNR_RATIONAL_H

#include <stdint.h>

/* A fraction in lowest terms, den >= 1. The value {0, 0} means "not given". */
typedef struct pnr_rational {
    int64_t num;
    int64_t den;
} pnr_rational;

/* Reads "1.023e6", "-1680", "40000000/3" or "0.5" exactly. Refuses spaces, hex, inf and nan.
 * Returns PNR_OK, or PNR_ECONFIG: the text is no such number, divides by zero, or does not fit 64
 * bits. */
int pnr_rational_parse(const char *text, pnr_rational *out);
/* Converts a double to the shortest decimal number that strtod reads as this double. If the double
 * was read from a text of at most 15 digits, *out is exactly the number in the text. Returns
 * PNR_OK, or an error of pnr_rational_parse. */
int pnr_rational_from_double(double value, pnr_rational *out);
double pnr_rational_double(pnr_rational r); /* returns 0 for {0, 0} */

/* Compute the exact product a * b and the exact quotient a / b. Return PNR_OK, or PNR_EDATA: the
 * result does not exist or does not fit 64 bits. After an error *out is unchanged. */
int pnr_rational_mul(pnr_rational a, pnr_rational b, pnr_rational *out);
int pnr_rational_div(pnr_rational a, pnr_rational b, pnr_rational *out);

/* Returns the phase of a rotation of r cycles per sample, at the absolute sample index n: frac(r n)
 * in units of 2^-64 turns. The result is exact for every n, except for one rounding to nearest. */
uint64_t pnr_rational_phase(pnr_rational r, uint64_t n);

/* Returns the time of sample n at `rate` samples a second: floor(n / rate * 1e9) ns, exact. Returns
 * INT64_MAX if the time is above INT64_MAX. Returns 0 if the rate is not above 0. */
int64_t pnr_rational_time_ns(pnr_rational rate, uint64_t n);

/* Writes "p" or "p/q" to out, which has at least 48 bytes. Returns out. */
char *pnr_rational_format(pnr_rational r, char *out);

#endif
