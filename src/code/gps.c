/* SPDX-License-Identifier: MIT */
/* The coarse/acquisition codes of GPS L1: Gold codes chosen by two taps of the second register. */
#include "code/family.h"
#include "code/polynomial.h"

#include <stdio.h>

enum { N_CHIPS = 1023, N_PRN = 37, DEGREE = 10 };

/* The two stages of G2 that are added for each PRN (IS-GPS-200, table 3-Ia). PRN 34 equals 37. */
static const unsigned char g2_stages[N_PRN + 1][2] = {
    {0, 0}, {2, 6}, {3, 7}, {4, 8},  {5, 9},  {1, 9}, {2, 10}, {1, 8},  {2, 9},  {3, 10},
    {2, 3}, {3, 4}, {5, 6}, {6, 7},  {7, 8},  {8, 9}, {9, 10}, {1, 4},  {2, 5},  {3, 6},
    {4, 7}, {5, 8}, {6, 9}, {1, 3},  {4, 6},  {5, 7}, {6, 8},  {7, 9},  {8, 10}, {1, 6},
    {2, 7}, {3, 8}, {4, 9}, {5, 10}, {4, 10}, {1, 7}, {2, 8},  {4, 10},
};

int pnr_code_build_gps_l1ca(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    /* Stage k of a register holds the bit that reaches the output 10 - k steps later: when stage 10
     * outputs bit i, stage k holds bit i + 10 - k. */
    const pnr_polynomial g1 = {DEGREE, 1UL << 9 | 1UL << 2};
    const pnr_polynomial g2 = {DEGREE,
                               1UL << 9 | 1UL << 8 | 1UL << 7 | 1UL << 5 | 1UL << 2 | 1UL << 1};
    const size_t prn = config->code.prn;
    uint8_t g1_bits[N_CHIPS];
    uint8_t g2_bits[N_CHIPS + DEGREE];
    uint8_t bits[N_CHIPS];

    if (prn < 1 || prn > N_PRN)
        return pnr_refuse(error, "code.prn %zu: must be 1 to %d", prn, N_PRN);
    pnr_polynomial_run(g1, g1_bits, N_CHIPS);
    pnr_polynomial_run(g2, g2_bits, N_CHIPS + DEGREE);
    for (size_t i = 0; i < N_CHIPS; i++)
        bits[i] = g1_bits[i] ^ g2_bits[i + DEGREE - g2_stages[prn][0]] ^
                  g2_bits[i + DEGREE - g2_stages[prn][1]];
    snprintf(code->name, sizeof code->name, "gps-l1ca prn=%zu", prn);
    return pnr_code_set_bits(code, bits, N_CHIPS, error);
}
