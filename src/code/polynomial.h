/* SPDX-License-Identifier: MIT */
/* Feedback polynomials of shift registers: a table of primitive ones, the test, and the sequence */
#ifndef PNR_CODE_POLYNOMIAL_H
#define PNR_CODE_POLYNOMIAL_H

#include "base/error.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_DEGREE_MIN = 2, PNR_DEGREE_MAX = 24, PNR_TAPS_LEN = 80 };

/* The recurrence bit[i + degree] = xor over taps t of bit[i + degree - t]: 1 + sum x^t in delays,
 * x^degree + sum x^(degree - t) as characteristic polynomial. */
typedef struct pnr_polynomial {
    unsigned degree;
    unsigned long taps; /* bit t-1 set for tap t; the largest is the degree */
} pnr_polynomial;

/* From code.degree and code.taps (empty: the table's). PNR_OK; PNR_ECONFIG with what is wrong, for
 * taps that are not primitive with the period that their sequence has. */
int pnr_polynomial_choose(const pnr_config *config, pnr_polynomial *out, pnr_error *error);

/* The order of x modulo the characteristic polynomial is 2^degree - 1, through the prime factors of
 * that number. */
bool pnr_polynomial_is_primitive(pnr_polynomial polynomial);

/* The first n_bits of the sequence that starts with `degree` ones; n_bits >= degree. */
void pnr_polynomial_run(pnr_polynomial polynomial, uint8_t *bits, size_t n_bits);

/* "13,4,3,1"; returns out. */
char *pnr_polynomial_format(pnr_polynomial polynomial, char out[PNR_TAPS_LEN]);

#endif
