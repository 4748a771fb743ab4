/* SPDX-License-Identifier: MIT */
/* Binary codes from one shift register: m-sequences, Gold codes, the small set of Kasami codes. */
#include "code/family.h"
#include "code/polynomial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(pnr_error *error, size_t n_chips)
{
    return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu chips", n_chips);
}

int pnr_code_build_m_sequence(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    char taps[PNR_TAPS_LEN];
    pnr_polynomial polynomial;
    uint8_t *bits = NULL;
    size_t n_chips;
    int rc = pnr_polynomial_choose(config, &polynomial, error);

    if (rc != PNR_OK)
        return rc;
    n_chips = ((size_t)1 << polynomial.degree) - 1;
    bits = malloc(n_chips);
    if (!bits)
        return no_memory(error, n_chips);
    pnr_polynomial_run(polynomial, bits, n_chips);
    rc = pnr_code_set_bits(code, bits, n_chips, error);
    free(bits);

    code->is_m_sequence = 1;
    code->degree = polynomial.degree;
    code->taps = polynomial.taps;
    snprintf(code->name, sizeof code->name, "m-sequence n=%u taps=%s", polynomial.degree,
             pnr_polynomial_format(polynomial, taps));
    return rc;
}

/*
 * The preferred pair (R. Gold, 1967): u and its decimation v[i] = u[q i mod N], q = 2^k + 1, have
 * the three cross-correlations -1, -1 +- 2^((n+e)/2) where e = gcd(n, k) and n / e is odd. k = 1
 * for odd n and k = 2 for n = 2 mod 4 give the fewest; there is no such pair for n = 0 mod 4.
 */
static size_t preferred_decimation(unsigned degree)
{
    return degree % 2 == 1 ? 3 : 5;
}

int pnr_code_build_gold(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t index = config->code.index;
    char taps[PNR_TAPS_LEN];
    pnr_polynomial polynomial;
    uint8_t *u = NULL;
    uint8_t *bits = NULL;
    size_t n_chips, q;
    int rc = pnr_polynomial_choose(config, &polynomial, error);

    if (rc != PNR_OK)
        return rc;
    if (polynomial.degree < 3 || polynomial.degree % 4 == 0)
        return pnr_error_set(error, PNR_ECONFIG,
                             "code.degree %u: a preferred pair for gold needs a degree of 3 to 23 "
                             "that is no multiple of 4",
                             polynomial.degree);
    n_chips = ((size_t)1 << polynomial.degree) - 1;
    if (index > n_chips + 1)
        return pnr_error_set(error, PNR_ECONFIG, "code.index %zu: must be 0 to %zu for degree %u",
                             index, n_chips + 1, polynomial.degree);

    q = preferred_decimation(polynomial.degree);
    u = malloc(n_chips);
    bits = malloc(n_chips);
    if (!u || !bits) {
        rc = no_memory(error, n_chips);
        goto done;
    }
    pnr_polynomial_run(polynomial, u, n_chips);
    for (size_t i = 0; i < n_chips; i++) {
        if (index == 0)
            bits[i] = u[i];
        else if (index == 1)
            bits[i] = u[q * i % n_chips];
        else
            bits[i] = u[i] ^ u[q * (i + index - 2) % n_chips];
    }
    rc = pnr_code_set_bits(code, bits, n_chips, error);
    snprintf(code->name, sizeof code->name, "gold n=%u index=%zu taps=%s", polynomial.degree, index,
             pnr_polynomial_format(polynomial, taps));
done:
    free(u);
    free(bits);
    return rc;
}

/* The small set (T. Kasami, 1966): u and u[i] xor w[i + s], w[i] = u[(2^(n/2) + 1) i] of period
 * 2^(n/2) - 1; correlations -1 and -1 +- 2^(n/2). w[0] = u[0] = 1, so w is not the decimation that
 * is all zero. */
int pnr_code_build_kasami(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t index = config->code.index;
    char taps[PNR_TAPS_LEN];
    pnr_polynomial polynomial;
    uint8_t *u = NULL;
    uint8_t *bits = NULL;
    size_t n_chips, short_period, decimation;
    int rc = pnr_polynomial_choose(config, &polynomial, error);

    if (rc != PNR_OK)
        return rc;
    if (polynomial.degree < 4 || polynomial.degree % 2 != 0)
        return pnr_error_set(error, PNR_ECONFIG,
                             "code.degree %u: kasami needs an even degree of 4 to 24",
                             polynomial.degree);
    n_chips = ((size_t)1 << polynomial.degree) - 1;
    short_period = ((size_t)1 << polynomial.degree / 2) - 1;
    decimation = short_period + 2;
    if (index > short_period)
        return pnr_error_set(error, PNR_ECONFIG, "code.index %zu: must be 0 to %zu for degree %u",
                             index, short_period, polynomial.degree);

    u = malloc(n_chips);
    bits = malloc(n_chips);
    if (!u || !bits) {
        rc = no_memory(error, n_chips);
        goto done;
    }
    pnr_polynomial_run(polynomial, u, n_chips);
    for (size_t i = 0; i < n_chips; i++)
        bits[i] = index == 0 ? u[i] : u[i] ^ u[decimation * ((i + index - 1) % short_period)];
    rc = pnr_code_set_bits(code, bits, n_chips, error);
    snprintf(code->name, sizeof code->name, "kasami n=%u index=%zu taps=%s", polynomial.degree,
             index, pnr_polynomial_format(polynomial, taps));
done:
    free(u);
    free(bits);
    return rc;
}
