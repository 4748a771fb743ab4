/* SPDX-License-Identifier: MIT */
/* Feedback polynomials of shift registers: their choice, a test for primitive polynomials, and
 * their sequences. */
#ifndef PNR_CODE_POLYNOMIAL_H
#define PNR_CODE_POLYNOMIAL_H

#include "base/error.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_DEGREE_MIN = 2, PNR_DEGREE_MAX = 24, PNR_TAPS_LEN = 80 };

/* The recurrence: bit[i + degree] is the xor of bit[i + degree - t] over the taps t. Its
 * characteristic polynomial is x^degree + sum x^(degree - t) over the taps t. */
typedef struct pnr_polynomial {
    unsigned degree;
    unsigned long taps; /* bit t - 1 is set for tap t; the largest tap is the degree */
} pnr_polynomial;

/* Computes the polynomial from code.degree and code.taps. If code.taps is empty, this is a
 * primitive polynomial with the fewest taps, 2 or 4. Of several such polynomials, it is the one
 * whose field `taps` is the smallest integer. Returns PNR_OK, or PNR_ECONFIG with the reason. If
 * the polynomial is not primitive, the reason contains the period of its sequence. */
int pnr_polynomial_choose(const pnr_config *config, pnr_polynomial *out, pnr_error *error);

/* True if the order of x modulo the characteristic polynomial is 2^degree - 1. x^(2^degree - 1)
 * must be 1. For each prime factor p of 2^degree - 1, x^((2^degree - 1) / p) must not be 1. */
bool pnr_polynomial_is_primitive(pnr_polynomial polynomial);

/* Continues a sequence to n_bits bits. The first `degree` bits are the input; n_bits >= degree. */
void pnr_polynomial_extend(pnr_polynomial polynomial, uint8_t *bits, size_t n_bits);

/* Writes the taps, as "13,4,3,1". Returns out. */
char *pnr_polynomial_format(pnr_polynomial polynomial, char out[PNR_TAPS_LEN]);

#endif
