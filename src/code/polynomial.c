/* SPDX-License-Identifier: MIT */
/* Chooses feedback polynomials, tests whether they are primitive, and extends their sequences. */
#include "code/polynomial.h"

#include <stdio.h>
#include <string.h>

#define TAP(t) (1UL << ((t)-1))

/* Returns a * b modulo the characteristic polynomial, over GF(2). */
static unsigned long multiply_mod(unsigned long a, unsigned long b, unsigned long modulus,
                                  unsigned degree)
{
    unsigned long product = 0;

    for (; b != 0; b >>= 1) {
        if (b & 1)
            product ^= a;
        a <<= 1;
        if (a >> degree & 1)
            a ^= modulus;
    }
    return product;
}

static unsigned long power_of_x(unsigned long exponent, unsigned long modulus, unsigned degree)
{
    unsigned long result = 1;
    unsigned long square = 2; /* the polynomial x */

    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result = multiply_mod(result, square, modulus, degree);
        square = multiply_mod(square, square, modulus, degree);
    }
    return result;
}

bool pnr_polynomial_is_primitive(pnr_polynomial polynomial)
{
    const unsigned degree = polynomial.degree;
    const unsigned long period = (1UL << degree) - 1;
    unsigned long modulus = 1UL << degree;
    unsigned long left = period;

    for (unsigned t = 1; t <= degree; t++) {
        if (polynomial.taps & TAP(t))
            modulus |= 1UL << (degree - t);
    }
    /* x has an order of 2^n - 1 only modulo an irreducible polynomial of degree n, so no separate
     * test of irreducibility is needed. */
    if (power_of_x(period, modulus, degree) != 1)
        return false;
    for (unsigned long p = 2; left > 1; p++) {
        if (p * p > left)
            p = left;
        if (left % p != 0)
            continue;
        if (p < period && power_of_x(period / p, modulus, degree) == 1)
            return false;
        while (left % p == 0)
            left /= p;
    }
    return true;
}

/* Returns a primitive polynomial with the fewest taps, two or four. Of several such polynomials,
 * returns the one whose field `taps` is the smallest integer. */
static pnr_polynomial smallest_primitive(unsigned degree)
{
    pnr_polynomial polynomial = {.degree = degree};
    unsigned long others = 1; /* the taps below the degree */
    int n_others = 1;

    for (;; others = n_others == 1 ? others << 1 : others + 1) {
        if (n_others == 1 && others >= TAP(degree)) {
            n_others = 3;
            others = TAP(1) | TAP(2) | TAP(3);
        }
        polynomial.taps = TAP(degree) | others;
        if (__builtin_popcountl(others) == n_others && pnr_polynomial_is_primitive(polynomial))
            return polynomial;
    }
}

void pnr_polynomial_extend(pnr_polynomial polynomial, uint8_t *bits, size_t n_bits)
{
    unsigned delays[PNR_DEGREE_MAX];
    unsigned n_delays = 0;

    for (unsigned t = 1; t <= polynomial.degree; t++) {
        if (polynomial.taps & TAP(t))
            delays[n_delays++] = t;
    }
    for (size_t i = polynomial.degree; i < n_bits; i++) {
        uint8_t bit = 0;

        for (unsigned j = 0; j < n_delays; j++)
            bit ^= bits[i - delays[j]];
        bits[i] = bit;
    }
}

/* Returns the period of the sequence that starts with all ones. A step of the register is
 * invertible, so the sequence returns to its start after at most 2^degree - 1 steps. */
static unsigned long period_from_ones(pnr_polynomial polynomial)
{
    const unsigned long ones = (1UL << polynomial.degree) - 1;
    unsigned long state = ones; /* bit t - 1 is the output t steps ago */
    unsigned long period = 0;

    do {
        unsigned long next = (unsigned long)__builtin_parityl(state & polynomial.taps);

        state = (state << 1 | next) & ones;
        period++;
    } while (state != ones);
    return period;
}

/* Reads taps such as "10,3", in any order. */
static int parse_taps(const char *text, unsigned long *taps, unsigned *degree, pnr_error *error)
{
    const char *at = text;

    *taps = 0;
    *degree = 0;
    for (;;) {
        unsigned tap = 0;

        at += strspn(at, " ");
        if (*at < '0' || *at > '9')
            break;
        for (; *at >= '0' && *at <= '9' && tap <= PNR_DEGREE_MAX; at++)
            tap = 10 * tap + (unsigned)(*at - '0');
        if (tap < 1 || tap > PNR_DEGREE_MAX)
            return pnr_refuse(error, "code.taps \"%s\": a tap must be 1 to %d", text,
                              PNR_DEGREE_MAX);
        if (*taps & TAP(tap))
            return pnr_refuse(error, "code.taps \"%s\": tap %u is there twice", text, tap);
        *taps |= TAP(tap);
        *degree = tap > *degree ? tap : *degree;
        at += strspn(at, " ");
        if (*at == '\0')
            return PNR_OK;
        if (*at++ != ',')
            break;
    }
    return pnr_refuse(error, "code.taps \"%s\": not a list of numbers like \"10,3\"", text);
}

int pnr_polynomial_choose(const pnr_config *config, pnr_polynomial *out, pnr_error *error)
{
    const size_t degree = config->code.degree;
    const char *text = config->code.taps;
    pnr_polynomial polynomial = {0};
    int rc;

    if (degree < PNR_DEGREE_MIN || degree > PNR_DEGREE_MAX)
        return pnr_refuse(error, "code.degree %zu: must be %d to %d", degree, PNR_DEGREE_MIN,
                          PNR_DEGREE_MAX);
    if (text[0] == '\0') {
        *out = smallest_primitive((unsigned)degree);
        return PNR_OK;
    }
    rc = parse_taps(text, &polynomial.taps, &polynomial.degree, error);
    if (rc != PNR_OK)
        return rc;
    if (polynomial.degree != degree)
        return pnr_refuse(error, "code.taps \"%s\": the largest tap must be code.degree, %zu", text,
                          degree);
    if (!pnr_polynomial_is_primitive(polynomial))
        return pnr_refuse(
            error,
            "code.taps \"%s\": not primitive, the sequence repeats after %lu chips, not %lu (%s "
            "would be right)",
            text, period_from_ones(polynomial), (1UL << degree) - 1,
            pnr_polynomial_format(smallest_primitive((unsigned)degree), (char[PNR_TAPS_LEN]){""}));
    *out = polynomial;
    return PNR_OK;
}

char *pnr_polynomial_format(pnr_polynomial polynomial, char out[PNR_TAPS_LEN])
{
    size_t used = 0;

    out[0] = '\0';
    for (unsigned t = polynomial.degree; t >= 1; t--) {
        if (polynomial.taps & TAP(t))
            used += (size_t)snprintf(out + used, PNR_TAPS_LEN - used, "%s%u", used ? "," : "", t);
    }
    return out;
}
