/* SPDX-License-Identifier: MIT */
/* Codes that are sums of the outputs of shift registers. Navigation satellites transmit such
 * codes. */
#ifndef PNR_CODE_REGISTERS_H
#define PNR_CODE_REGISTERS_H

#include "code/family.h"
#include "code/polynomial.h"

#define PNR_STAGE(k) (1UL << ((k)-1))

/* A register as the interface documents describe it. Each step moves the bit of stage k to stage k
 * + 1, and the sum of the stages in polynomial.taps to stage 1. */
typedef struct pnr_register {
    pnr_polynomial polynomial;
    unsigned long start;  /* stages that are 1 before the first step; 0: all stages are 1 */
    unsigned long output; /* the output is the sum of these stages; 0: the last stage */
    size_t advance;       /* steps before chip 0 */
    size_t period;        /* chips until the state of chip 0 is restored; 0: never */
} pnr_register;

/* Sets chip i = 1 - 2 bit[i]. bit[i] is the sum, modulo 2, of the outputs of all registers at chip
 * i. Returns PNR_OK or PNR_ENOMEMORY. */
int pnr_registers_build(const pnr_register *registers, size_t n_registers, size_t n_chips,
                        pnr_code *code, pnr_error *error);

/* Checks code.prn, and writes the type and code.prn as the name of the code. Returns PNR_OK, or
 * PNR_ECONFIG: code.prn is not in 1 .. `most`. */
int pnr_registers_choose_prn(const pnr_config *config, size_t most, pnr_code *code,
                             pnr_error *error);

#endif
