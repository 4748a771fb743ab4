/* SPDX-License-Identifier: MIT */
/* The codes of BeiDou B1I and B3I: sums of the outputs of two registers, G1 and G2. */
#include "code/registers.h"

enum { N_PRN = 63, B1I_CHIPS = 2046, B3I_CHIPS = 10230, B3I_G1_PERIOD = 8190 };

/* The stages of G2 whose sum is its output, by PRN; 0: no stage (BDS-SIS-ICD-B1I-3.0, table
 * 4-1). */
static const uint8_t b1i_stages[N_PRN][3] = {
    {1, 3},     {1, 4},     {1, 5},     {1, 6},     {1, 8},     {1, 9},     {1, 10},   {1, 11},
    {2, 7},     {3, 4},     {3, 5},     {3, 6},     {3, 8},     {3, 9},     {3, 10},   {3, 11},
    {4, 5},     {4, 6},     {4, 8},     {4, 9},     {4, 10},    {4, 11},    {5, 6},    {5, 8},
    {5, 9},     {5, 10},    {5, 11},    {6, 8},     {6, 9},     {6, 10},    {6, 11},   {8, 9},
    {8, 10},    {8, 11},    {9, 10},    {9, 11},    {10, 11},   {1, 2, 7},  {1, 3, 4}, {1, 3, 6},
    {1, 3, 8},  {1, 3, 10}, {1, 3, 11}, {1, 4, 5},  {1, 4, 9},  {1, 5, 6},  {1, 5, 8}, {1, 5, 10},
    {1, 5, 11}, {1, 6, 9},  {1, 8, 9},  {1, 9, 10}, {1, 9, 11}, {2, 3, 7},  {2, 5, 7}, {2, 7, 9},
    {3, 4, 5},  {3, 4, 9},  {3, 5, 6},  {3, 5, 8},  {3, 5, 10}, {3, 5, 11}, {3, 6, 9},
};

/* The number of steps of G2 from all ones to its state at chip 0, by PRN (BDS-SIS-ICD-B3I-1.0,
 * table 4-1). */
static const uint16_t b3i_shift[N_PRN] = {
    4,    11,   13,   22,   30,   36,   44,   48,   88,   104,  116,  129,  376,  418,  458,  682,
    696,  707,  1078, 2069, 2248, 2574, 2596, 2731, 4294, 4436, 4647, 4978, 4986, 1,    5209, 5539,
    6061, 6488, 7130, 7165, 7403, 5879, 1681, 5080, 5938, 3983, 6208, 7223, 2996, 1814, 6906, 6144,
    4713, 7406, 7264, 1766, 5347, 3515, 7951, 7054, 3884, 6067, 4230, 3803, 869,  3683, 1205,
};

int pnr_code_build_bds_b1i(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    /* The stages at chip 0 are 01010101010, from stage 1 to stage 11. */
    const unsigned long start =
        PNR_STAGE(2) | PNR_STAGE(4) | PNR_STAGE(6) | PNR_STAGE(8) | PNR_STAGE(10);
    pnr_register g[] = {
        {.polynomial = {11, PNR_STAGE(1) | PNR_STAGE(7) | PNR_STAGE(8) | PNR_STAGE(9) |
                                PNR_STAGE(10) | PNR_STAGE(11)},
         .start = start},
        {.polynomial = {11, PNR_STAGE(1) | PNR_STAGE(2) | PNR_STAGE(3) | PNR_STAGE(4) |
                                PNR_STAGE(5) | PNR_STAGE(8) | PNR_STAGE(9) | PNR_STAGE(11)},
         .start = start},
    };
    int rc = pnr_registers_choose_prn(config, N_PRN, code, error);

    if (rc != PNR_OK)
        return rc;
    for (int i = 0; i < 3; i++) {
        const unsigned stage = b1i_stages[config->code.prn - 1][i];

        g[1].output |= stage > 0 ? PNR_STAGE(stage) : 0;
    }
    return pnr_registers_build(g, 2, B1I_CHIPS, code, error);
}

int pnr_code_build_bds_b3i(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    pnr_register g[] = {
        {.polynomial = {13, PNR_STAGE(1) | PNR_STAGE(3) | PNR_STAGE(4) | PNR_STAGE(13)},
         .period = B3I_G1_PERIOD},
        {.polynomial = {13, PNR_STAGE(1) | PNR_STAGE(5) | PNR_STAGE(6) | PNR_STAGE(7) |
                                PNR_STAGE(9) | PNR_STAGE(10) | PNR_STAGE(12) | PNR_STAGE(13)}},
    };
    int rc = pnr_registers_choose_prn(config, N_PRN, code, error);

    if (rc != PNR_OK)
        return rc;
    g[1].advance = b3i_shift[config->code.prn - 1];
    return pnr_registers_build(g, 2, B3I_CHIPS, code, error);
}
