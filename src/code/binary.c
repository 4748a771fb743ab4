/* SPDX-License-Identifier: MIT */
/* Binary codes that need no register: Barker codes and Legendre sequences. */
#include "code/family.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const barker_signs[] = {"+-",      "++-",         "++-+",         "+++-+",
                                           "+++--+-", "+++---+--+-", "+++++--++-+-+"};

int pnr_code_build_barker(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t length = config->code.length;

    for (size_t i = 0; i < sizeof barker_signs / sizeof barker_signs[0]; i++) {
        const char *signs = barker_signs[i];
        uint8_t bits[16];

        if (strlen(signs) != length)
            continue;
        for (size_t k = 0; k < length; k++)
            bits[k] = signs[k] == '-';
        snprintf(code->name, sizeof code->name, "barker length=%zu", length);
        return pnr_code_set_bits(code, bits, length, error);
    }
    return pnr_refuse(error, "code.length %zu: a barker code has 2, 3, 4, 5, 7, 11 or 13 chips",
                      length);
}

static bool is_prime(size_t n)
{
    for (size_t d = 2; d * d <= n; d++) {
        if (n % d == 0)
            return false;
    }
    return n >= 2;
}

static size_t prime_near(size_t n)
{
    size_t below = n > 3 ? n : 3;
    size_t above = below;

    while (!is_prime(below))
        below--;
    while (!is_prime(above))
        above++;
    return n - below <= above - n || above > PNR_CODE_MAX_CHIPS ? below : above;
}

int pnr_code_build_legendre(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t length = config->code.length;
    uint8_t *bits;
    int rc;

    if (length > PNR_CODE_MAX_CHIPS)
        return pnr_refuse(error, "code.length %zu: must be a prime below %d", length,
                          PNR_CODE_MAX_CHIPS);
    if (length < 3 || !is_prime(length))
        return pnr_refuse(error,
                          "code.length %zu: must be an odd prime for legendre, %zu would be right",
                          length, prime_near(length));
    bits = malloc(length);
    if (!bits)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu chips", length);
    /* Chip k is +1 if k is 0 or a square modulo the length, else -1. */
    memset(bits, 1, length);
    bits[0] = 0;
    for (size_t k = 1; k <= length / 2; k++)
        bits[k * k % length] = 0;
    rc = pnr_code_set_bits(code, bits, length, error);
    free(bits);
    snprintf(code->name, sizeof code->name, "legendre length=%zu", length);
    return rc;
}
