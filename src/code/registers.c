/* SPDX-License-Identifier: MIT */
/* Codes that are sums of the outputs of shift registers. Runs each register and adds its output to
 * the bits of the code. */
#include "code/registers.h"

#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>

/* Adds the output of a register to `bits`, modulo 2. A bit in stage k reaches the last stage after
 * degree - k more steps. */
static int add_output(const pnr_register *r, uint8_t *bits, size_t n_chips)
{
    const unsigned degree = r->polynomial.degree;
    const size_t period = r->period > 0 ? r->period : n_chips;
    const size_t n = r->advance + period + degree;
    const unsigned long output = r->output ? r->output : PNR_STAGE(degree);
    uint8_t *sequence = malloc(n);

    if (!sequence)
        return PNR_ENOMEMORY;
    for (unsigned k = 1; k <= degree; k++)
        sequence[degree - k] = r->start == 0 || (r->start & PNR_STAGE(k)) != 0;
    pnr_polynomial_extend(r->polynomial, sequence, n);
    for (unsigned k = 1; k <= degree; k++) {
        for (size_t i = 0; (output & PNR_STAGE(k)) != 0 && i < n_chips; i++)
            bits[i] ^= sequence[r->advance + i % period + degree - k];
    }
    free(sequence);
    return PNR_OK;
}

int pnr_registers_build(const pnr_register *registers, size_t n_registers, size_t n_chips,
                        pnr_code *code, pnr_error *error)
{
    uint8_t *bits = calloc(n_chips, 1);
    int rc = bits ? PNR_OK : PNR_ENOMEMORY;

    for (size_t i = 0; rc == PNR_OK && i < n_registers; i++)
        rc = add_output(&registers[i], bits, n_chips);
    if (rc == PNR_OK)
        rc = pnr_code_set_bits(code, bits, n_chips, error);
    else
        pnr_error_set(error, rc, "no memory for a code of %zu chips", n_chips);
    free(bits);
    return rc;
}

int pnr_registers_choose_prn(const pnr_config *config, size_t most, pnr_code *code,
                             pnr_error *error)
{
    const char *type = pnr_config_word(config, "code", "type");
    const size_t prn = config->code.prn;

    if (prn < 1 || prn > most)
        return pnr_refuse(error, "code.prn %zu: must be 1 to %zu for %s", prn, most, type);
    snprintf(code->name, sizeof code->name, "%s prn=%zu", type, prn);
    return PNR_OK;
}
