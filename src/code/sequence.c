/* SPDX-License-Identifier: MIT */
/* Binary codes from one shift register: m-sequences, Gold codes, the small set of Kasami codes. */
#include "code/family.h"
#include "code/polynomial.h"

#include <stdio.h>
#include <stdlib.h>

/* The terms of u[i] xor u[decimation ((i + shift) mod period)], u from the register. */
typedef struct terms {
    bool has_first, has_second;
    size_t decimation, shift, period;
} terms;

/* Fills the chips, and the name: family, degree, the index if there is one, and the taps. */
static int build_sequence(pnr_code *code, pnr_polynomial polynomial, terms t, const char *family,
                          const size_t *index, pnr_error *error)
{
    const size_t n_chips = ((size_t)1 << polynomial.degree) - 1;
    uint8_t *u = malloc(n_chips), *bits = malloc(n_chips);
    char taps[PNR_TAPS_LEN], number[32] = "";
    int rc;

    if (u && bits) {
        pnr_polynomial_run(polynomial, u, n_chips);
        for (size_t i = 0; i < n_chips; i++)
            bits[i] = (t.has_first ? u[i] : 0) ^
                      (t.has_second ? u[t.decimation * ((i + t.shift) % t.period) % n_chips] : 0);
        rc = pnr_code_set_bits(code, bits, n_chips, error);
    } else {
        rc = pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu chips", n_chips);
    }
    free(u);
    free(bits);
    if (index)
        snprintf(number, sizeof number, " index=%zu", *index);
    snprintf(code->name, sizeof code->name, "%s n=%u%s taps=%s", family, polynomial.degree, number,
             pnr_polynomial_format(polynomial, taps));
    return rc;
}

int pnr_code_build_m_sequence(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    pnr_polynomial polynomial;
    int rc = pnr_polynomial_choose(config, &polynomial, error);

    if (rc != PNR_OK)
        return rc;
    code->is_m_sequence = 1;
    code->degree = polynomial.degree;
    code->taps = polynomial.taps;
    return build_sequence(code, polynomial, (terms){.has_first = true}, "m-sequence", NULL, error);
}

static int check_index(size_t index, size_t most, pnr_polynomial polynomial, pnr_error *error)
{
    if (index <= most)
        return PNR_OK;
    return pnr_error_set(error, PNR_ECONFIG, "code.index %zu: must be 0 to %zu for degree %u",
                         index, most, polynomial.degree);
}

/*
 * The preferred pair (R. Gold, 1967): u and its decimation v[i] = u[q i mod N], q = 2^k + 1, have
 * the three cross-correlations -1, -1 +- 2^((n+e)/2) where e = gcd(n, k) and n / e is odd. k = 1
 * for odd n and k = 2 for n = 2 mod 4 give the fewest; there is no such pair for n = 0 mod 4.
 */
int pnr_code_build_gold(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t index = config->code.index;
    pnr_polynomial polynomial;
    int rc = pnr_polynomial_choose(config, &polynomial, error);

    if (rc != PNR_OK)
        return rc;
    if (polynomial.degree < 3 || polynomial.degree % 4 == 0)
        return pnr_error_set(error, PNR_ECONFIG,
                             "code.degree %u: a preferred pair for gold needs a degree of 3 to 23 "
                             "that is no multiple of 4",
                             polynomial.degree);

    const size_t n_chips = ((size_t)1 << polynomial.degree) - 1;
    const terms t = {.has_first = index != 1,
                     .has_second = index != 0,
                     .decimation = polynomial.degree % 2 == 1 ? 3 : 5,
                     .shift = index > 1 ? index - 2 : 0,
                     .period = n_chips};

    rc = check_index(index, n_chips + 1, polynomial, error);
    return rc != PNR_OK ? rc : build_sequence(code, polynomial, t, "gold", &index, error);
}

/* The small set (T. Kasami, 1966): u and u[i] xor w[i + s], w[i] = u[(2^(n/2) + 1) i] of period
 * 2^(n/2) - 1; correlations -1 and -1 +- 2^(n/2). w[0] = u[0] = 1, so w is not the decimation that
 * is all zero. */
int pnr_code_build_kasami(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t index = config->code.index;
    pnr_polynomial polynomial;
    int rc = pnr_polynomial_choose(config, &polynomial, error);

    if (rc != PNR_OK)
        return rc;
    if (polynomial.degree < 4 || polynomial.degree % 2 != 0)
        return pnr_error_set(error, PNR_ECONFIG,
                             "code.degree %u: kasami needs an even degree of 4 to 24",
                             polynomial.degree);

    const size_t short_period = ((size_t)1 << polynomial.degree / 2) - 1;
    const terms t = {.has_first = true,
                     .has_second = index != 0,
                     .decimation = short_period + 2,
                     .shift = index - (index > 0),
                     .period = short_period};

    rc = check_index(index, short_period, polynomial, error);
    return rc != PNR_OK ? rc : build_sequence(code, polynomial, t, "kasami", &index, error);
}
