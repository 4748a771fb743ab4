/* SPDX-License-Identifier: MIT */
/* The builders of the code families, and functions that they share. Only src/code includes this
 * file. */
#ifndef PNR_CODE_FAMILY_H
#define PNR_CODE_FAMILY_H

#include "code/code.h"

#include <stddef.h>
#include <stdint.h>

enum { PNR_CODE_MAX_CHIPS = 1 << 24 };

/* Computes the chips and the name of a code from config->code. The caller zeroes the code before
 * the call. For a family with has_length, code.length chips are already allocated. Any other family
 * allocates its chips. The caller owns the memory also after a failure (pnr_code_destroy). Returns
 * PNR_OK or an error of pnr_code_create. */
typedef int pnr_code_builder(const pnr_config *config, pnr_code *code, pnr_error *error);

pnr_code_builder pnr_code_build_sequence; /* m-sequence, gold and kasami */
pnr_code_builder pnr_code_build_gps_l1ca, pnr_code_build_gps_l2c, pnr_code_build_gps_l5;
pnr_code_builder pnr_code_build_glonass, pnr_code_build_bds_b1i, pnr_code_build_bds_b3i;
pnr_code_builder pnr_code_build_barker, pnr_code_build_legendre;
pnr_code_builder pnr_code_build_zadoff_chu, pnr_code_build_frank, pnr_code_build_p4;
pnr_code_builder pnr_code_build_random;
pnr_code_builder pnr_code_build_file;

/* Allocates the chips and sets chip i = 1 - 2 bits[i]. bits: [n_chips], each 0 or 1. Returns
 * PNR_OK; PNR_ECONFIG: n_chips is 0 or above PNR_CODE_MAX_CHIPS; PNR_ENOMEMORY. */
int pnr_code_set_bits(pnr_code *code, const uint8_t *bits, size_t n_chips, pnr_error *error);

/* Reads all samples of a file. The extension of its name gives the format: txt, csv, npy, or a
 * format of raw samples. *samples is [*n_samples][2], finite, not all zero, mean power 1; the
 * caller frees it. key: the configuration key, for error messages. Returns PNR_OK, PNR_ECONFIG
 * (unknown extension), PNR_ENOINPUT, PNR_EPERMISSION, PNR_EDATA, PNR_EIO or PNR_ENOMEMORY. */
int pnr_code_read_samples(const char *path, const char *key, double (**samples)[2],
                          size_t *n_samples, pnr_error *error);
/* Scales the samples to mean power 1. Returns PNR_OK, or PNR_EDATA: all samples are zero, or a
 * sample is not finite. */
int pnr_code_normalise(double (*samples)[2], size_t n_samples);

#endif
