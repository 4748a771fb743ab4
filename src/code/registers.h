/* SPDX-License-Identifier: MIT */
/* Sums of shift registers, as satellites make their codes. */
#ifndef PNR_CODE_REGISTERS_H
#define PNR_CODE_REGISTERS_H

#include "code/family.h"
#include "code/polynomial.h"

#define PNR_STAGE(k) (1UL << ((k)-1))

/* A register as the interface documents draw it: each step moves stage k to stage k + 1 and feeds
 * the sum of the stages in polynomial.taps to stage 1. */
typedef struct pnr_register {
    pnr_polynomial polynomial;
    unsigned long start;  /* the stages before the first step, PNR_STAGE(k) set for a one; 0: all
                           * ones */
    unsigned long output; /* the stages whose sum is the output; 0: the last stage */
    size_t advance;       /* steps before chip 0 */
    size_t period;        /* chips after which the state of chip 0 is restored; 0: never */
} pnr_register;

/* Sets chip i = 1 - 2 bit[i]. bit[i] is the sum, modulo 2, of the outputs of all registers at chip
 * i. PNR_OK, PNR_ENOMEMORY. */
int pnr_registers_build(const pnr_register *registers, size_t n_registers, size_t n_chips,
                        pnr_code *code, pnr_error *error);

/* Checks code.prn and names the code by its type and code.prn. PNR_OK; PNR_ECONFIG: code.prn is not
 * in 1 .. most. */
int pnr_registers_choose_prn(const pnr_config *config, size_t most, pnr_code *code,
                             pnr_error *error);

#endif
