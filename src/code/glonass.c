/* SPDX-License-Identifier: MIT */
/* The code of GLONASS L1OF and L2OF, the same for all satellites: an m-sequence (GLONASS ICD 5.1,
 * section 3.3.2). */
#include "code/registers.h"

#include <stdio.h>

int pnr_code_build_glonass(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const pnr_register one = {.polynomial = {9, PNR_STAGE(5) | PNR_STAGE(9)},
                              .output = PNR_STAGE(7)};

    (void)config;
    snprintf(code->name, sizeof code->name, "glonass");
    code->is_m_sequence = 1;
    code->degree = one.polynomial.degree;
    code->taps = one.polynomial.taps;
    return pnr_registers_build(&one, 1, 511, code, error);
}
