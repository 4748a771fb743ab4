/* SPDX-License-Identifier: MIT */
/* Binary codes from one shift register: m-sequences, Gold codes, and the small set of Kasami
 * codes. */
#include "code/family.h"
#include "code/polynomial.h"
#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The terms of u[i] xor u[decimation ((i + shift) mod period)]. The register generates u.
 * has_first, has_second: whether the code contains the first and the second term. */
typedef struct terms {
    bool has_first, has_second;
    size_t decimation, shift, period;
} terms;

/*
 * u is the m-sequence of degree n and period N = 2^n - 1. The preferred pair (R. Gold, 1967) is u
 * and its decimation v[i] = u[q i mod N], q = 2^k + 1. With e = gcd(n, k) and odd n / e, their
 * cross-correlation has the three values -1 and -1 +- 2^((n+e)/2). The least e is reached by k = 1
 * for odd n, and by k = 2 for n = 2 mod 4. There is no such pair for n = 0 mod 4.
 */
static int choose_gold(unsigned degree, size_t index, terms *t, size_t *most, pnr_error *error)
{
    if (degree < 3 || degree % 4 == 0)
        return pnr_refuse(error,
                          "code.degree %u: a preferred pair for gold needs a degree of 3 to 23 "
                          "that is no multiple of 4",
                          degree);
    t->period = ((size_t)1 << degree) - 1;
    t->has_first = index != 1;
    t->decimation = degree % 2 == 1 ? 3 : 5;
    t->shift = index > 1 ? index - 2 : 0;
    *most = t->period + 1;
    return PNR_OK;
}

/* The small set of degree n (T. Kasami, 1966) is u and all u[i] xor w[i + s]. w[i] = u[(2^(n/2) +
 * 1) i] has the period 2^(n/2) - 1. The correlations are -1 and -1 +- 2^(n/2). w is not all zero,
 * because w[0] = u[0] = 1. */
static int choose_kasami(unsigned degree, size_t index, terms *t, size_t *most, pnr_error *error)
{
    if (degree < 4 || degree % 2 != 0)
        return pnr_refuse(error, "code.degree %u: kasami needs an even degree of 4 to 24", degree);
    t->period = ((size_t)1 << degree / 2) - 1;
    t->decimation = t->period + 2;
    t->shift = index - (index > 0);
    *most = t->period;
    return PNR_OK;
}

/* Sets the first `degree` bits. An m-sequence begins with code.state if this key is set. Otherwise
 * these bits are 1. */
static int set_start(const pnr_config *config, unsigned degree, uint8_t *bits, pnr_error *error)
{
    const char *state = config->code.type == PNR_CODE_M_SEQUENCE ? config->code.state : "";

    memset(bits, 1, degree);
    if (state[0] == '\0')
        return PNR_OK;
    if (strlen(state) != degree || strspn(state, "01") != degree || !strchr(state, '1'))
        return pnr_refuse(error, "code.state \"%s\": must be %u digits 0 or 1 with at least one 1",
                          state, degree);
    for (unsigned i = 0; i < degree; i++)
        bits[i] = state[i] == '1';
    return PNR_OK;
}

/* Builds the code. Its name has the family, the degree, the index or the state (if any), and the
 * taps. */
int pnr_code_build_sequence(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const int type = config->code.type;
    const bool has_index = type != PNR_CODE_M_SEQUENCE;
    const size_t index = has_index ? config->code.index : 0;
    terms t = {.has_first = true, .has_second = index != 0};
    char taps[PNR_TAPS_LEN], number[32] = "";
    pnr_polynomial polynomial;
    size_t most = 0;
    int rc = pnr_polynomial_choose(config, &polynomial, error);

    if (rc == PNR_OK && has_index)
        rc = (type == PNR_CODE_GOLD ? choose_gold : choose_kasami)(polynomial.degree, index, &t,
                                                                   &most, error);
    if (rc != PNR_OK)
        return rc;
    if (index > most)
        return pnr_refuse(error, "code.index %zu: must be 0 to %zu for degree %u", index, most,
                          polynomial.degree);

    const size_t n_chips = ((size_t)1 << polynomial.degree) - 1;
    uint8_t *u = malloc(n_chips), *bits = malloc(n_chips);

    if (u && bits)
        rc = set_start(config, polynomial.degree, u, error);
    else
        rc = pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu chips", n_chips);
    if (rc == PNR_OK) {
        pnr_polynomial_extend(polynomial, u, n_chips);
        for (size_t i = 0; i < n_chips; i++)
            bits[i] = (t.has_first ? u[i] : 0) ^
                      (t.has_second ? u[t.decimation * ((i + t.shift) % t.period) % n_chips] : 0);
        rc = pnr_code_set_bits(code, bits, n_chips, error);
    }
    free(u);
    free(bits);
    code->is_m_sequence = !has_index;
    code->degree = polynomial.degree;
    code->taps = polynomial.taps;
    if (has_index)
        snprintf(number, sizeof number, " index=%zu", index);
    else if (config->code.state[0] != '\0')
        snprintf(number, sizeof number, " state=%.24s", config->code.state);
    snprintf(code->name, sizeof code->name, "%s n=%u%s taps=%s",
             pnr_config_word(config, "code", "type"), polynomial.degree, number,
             pnr_polynomial_format(polynomial, taps));
    return rc;
}
