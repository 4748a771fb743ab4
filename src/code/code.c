/* SPDX-License-Identifier: MIT */
/* Codes: builds the chips of one period from the configuration, one builder for each family. */
#include "code/code.h"

#include "code/family.h"

#include <stdlib.h>

static pnr_code_builder *const builders[] = {
    [PNR_CODE_M_SEQUENCE] = pnr_code_build_m_sequence,
    [PNR_CODE_GOLD] = pnr_code_build_gold,
    [PNR_CODE_GPS_L1CA] = pnr_code_build_gps_l1ca,
    [PNR_CODE_KASAMI] = pnr_code_build_kasami,
    [PNR_CODE_BARKER] = pnr_code_build_barker,
    [PNR_CODE_LEGENDRE] = pnr_code_build_legendre,
    [PNR_CODE_ZADOFF_CHU] = pnr_code_build_zadoff_chu,
    [PNR_CODE_FRANK] = pnr_code_build_frank,
    [PNR_CODE_P4] = pnr_code_build_p4,
    [PNR_CODE_RANDOM] = pnr_code_build_random,
    [PNR_CODE_FILE] = pnr_code_build_file,
};

int pnr_code_create(const pnr_config *config, pnr_code **out, pnr_error *error)
{
    const int type = config->code.type;
    pnr_code *code;
    int rc;

    *out = NULL;
    if (type < 0 || (size_t)type >= sizeof builders / sizeof builders[0])
        return pnr_error_set(error, PNR_EINTERNAL, "code.type: no code has number %d", type);
    code = calloc(1, sizeof *code);
    if (!code)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code");
    rc = builders[type](config, code, error);
    if (rc != PNR_OK)
        goto fail;
    *out = code;
    return PNR_OK;

fail:
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

int pnr_code_allocate(pnr_code *code, size_t n_chips, pnr_error *error)
{
    if (n_chips < 1 || n_chips > PNR_CODE_MAX_CHIPS)
        return pnr_error_set(error, PNR_ECONFIG, "a code of %zu chips: must be 1 to %d", n_chips,
                             PNR_CODE_MAX_CHIPS);
    code->chips = calloc(n_chips, sizeof *code->chips);
    if (!code->chips)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a code of %zu chips", n_chips);
    code->n_chips = n_chips;
    return PNR_OK;
}

int pnr_code_set_bits(pnr_code *code, const uint8_t *bits, size_t n_chips, pnr_error *error)
{
    int rc = pnr_code_allocate(code, n_chips, error);

    if (rc != PNR_OK)
        return rc;
    for (size_t i = 0; i < n_chips; i++)
        code->chips[i][0] = 1 - 2 * (double)bits[i];
    return PNR_OK;
}
