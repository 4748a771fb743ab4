/* SPDX-License-Identifier: MIT */
/* Builds the chips of one period from the configuration. Each family of codes has its own
 * builder. */
#include "code/code.h"

#include "code/family.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* has_length: code.length is the number of chips, and pnr_code_create allocates them. */
static const struct family {
    pnr_code_builder *build;
    bool has_length;
} families[] = {
    [PNR_CODE_M_SEQUENCE] = {pnr_code_build_sequence, false},
    [PNR_CODE_GOLD] = {pnr_code_build_sequence, false},
    [PNR_CODE_GPS_L1CA] = {pnr_code_build_gps_l1ca, false},
    [PNR_CODE_GPS_L2C] = {pnr_code_build_gps_l2c, false},
    [PNR_CODE_GPS_L5] = {pnr_code_build_gps_l5, false},
    [PNR_CODE_GLONASS] = {pnr_code_build_glonass, false},
    [PNR_CODE_BDS_B1I] = {pnr_code_build_bds_b1i, false},
    [PNR_CODE_BDS_B3I] = {pnr_code_build_bds_b3i, false},
    [PNR_CODE_KASAMI] = {pnr_code_build_sequence, false},
    [PNR_CODE_BARKER] = {pnr_code_build_barker, false},
    [PNR_CODE_LEGENDRE] = {pnr_code_build_legendre, false},
    [PNR_CODE_ZADOFF_CHU] = {pnr_code_build_zadoff_chu, true},
    [PNR_CODE_FRANK] = {pnr_code_build_frank, true},
    [PNR_CODE_P4] = {pnr_code_build_p4, true},
    [PNR_CODE_RANDOM] = {pnr_code_build_random, true},
    [PNR_CODE_FILE] = {pnr_code_build_file, false},
};

static int allocate_chips(pnr_code *code, size_t n_chips, pnr_error *error)
{
    if (n_chips < 1 || n_chips > PNR_CODE_MAX_CHIPS)
        return pnr_refuse(error, "code.length = %zu: must be 1 to %d chips", n_chips,
                          PNR_CODE_MAX_CHIPS);
    code->chips = calloc(n_chips, sizeof *code->chips);
    if (!code->chips)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu chips", n_chips);
    code->n_chips = n_chips;
    return PNR_OK;
}

/* Changes the sign of every chip. The inverted code is no m-sequence, because its bits do not
 * follow the recurrence. */
static void invert_chips(pnr_code *code)
{
    const size_t used = strlen(code->name);

    for (size_t i = 0; i < code->n_chips; i++) {
        code->chips[i][0] = -code->chips[i][0];
        code->chips[i][1] = -code->chips[i][1];
    }
    code->is_m_sequence = 0;
    snprintf(code->name + used, sizeof code->name - used, " inverted");
}

/* Adds tune_hz to the name. Clears is_m_sequence, because the tuned samples are complex, and the
 * Walsh method cannot use them. */
static void note_tune(pnr_rational tune_hz, pnr_code *code)
{
    const size_t used = strlen(code->name);
    char text[48];

    code->is_m_sequence = 0;
    snprintf(code->name + used, sizeof code->name - used, " tune_hz=%s",
             pnr_rational_format(tune_hz, text));
}

/* Returns the number of periods of the code in one bit of the signal, as the interface documents
 * define it. GPS L1 C/A sends 50 bits a second, SBAS 500 symbols, L2C CM 50 symbols, GLONASS 100
 * symbols (with meander), and BeiDou D2 500 bits. L5 and BeiDou D1 have a secondary code with one
 * chip in each period. */
static size_t bits_of(const pnr_config *config)
{
    const size_t prn = config->code.prn;

    if (config->code.has_bits)
        return config->code.bits;
    switch (config->code.type) {
    case PNR_CODE_GPS_L1CA:
        return prn >= 120 && prn <= 158 ? 2 : 20;
    case PNR_CODE_GPS_L2C:
        return config->code.component == PNR_COMPONENT_DATA ? 1 : 0;
    case PNR_CODE_GPS_L5:
        return 1;
    case PNR_CODE_GLONASS:
        return 10;
    case PNR_CODE_BDS_B1I:
    case PNR_CODE_BDS_B3I:
        return prn <= 5 || prn >= 59 ? 2 : 1;
    default:
        return 0;
    }
}

int pnr_code_create(const pnr_config *config, pnr_code **out, pnr_error *error)
{
    const int type = config->code.type;
    pnr_code *code;
    int rc;

    *out = NULL;
    if (type < 0 || (size_t)type >= sizeof families / sizeof families[0])
        return pnr_error_set(error, PNR_EINTERNAL, "code.type: no code has number %d", type);
    code = calloc(1, sizeof *code);
    if (!code)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code");
    rc = families[type].has_length ? allocate_chips(code, config->code.length, error) : PNR_OK;
    if (rc == PNR_OK)
        rc = families[type].build(config, code, error);
    if (rc == PNR_OK && config->code.invert)
        invert_chips(code);
    if (rc == PNR_OK && config->code.tune_hz.num != 0)
        note_tune(config->code.tune_hz, code);
    code->bits = bits_of(config);
    if (rc == PNR_OK)
        *out = code;
    else
        pnr_code_destroy(code);
    return rc;
}

void pnr_code_destroy(pnr_code *code)
{
    if (!code)
        return;
    free(code->chips);
    free(code);
}

int pnr_code_set_bits(pnr_code *code, const uint8_t *bits, size_t n_chips, pnr_error *error)
{
    int rc = allocate_chips(code, n_chips, error);

    if (rc != PNR_OK)
        return rc;
    for (size_t i = 0; i < n_chips; i++)
        code->chips[i][0] = 1 - 2 * (double)bits[i];
    return PNR_OK;
}
