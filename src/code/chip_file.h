/* SPDX-License-Identifier: MIT */
/* An open file of chips, and the readers of text and of numpy arrays. */
#ifndef PNR_CODE_CHIP_FILE_H
#define PNR_CODE_CHIP_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pnr_chip_file {
    FILE *stream;
    const char *path, *key; /* key: the configuration key, for messages */
    uint64_t n_bytes;
} pnr_chip_file;

/* The chips read so far. The caller frees `chips`, also after an error. */
typedef struct pnr_chips {
    double (*chips)[2]; /* [n], I and Q of each chip */
    size_t n, capacity;
} pnr_chips;

/* Adds a chip. PNR_OK; PNR_EDATA: there are PNR_CODE_MAX_CHIPS already; PNR_ENOMEMORY. */
int pnr_chips_add(pnr_chips *chips, const double chip[2], const pnr_chip_file *file,
                  pnr_error *error);

/* Reads the rest of the file. All chips are finite. The memory grows with the chips that are read.
 * PNR_OK; PNR_EDATA: the message quotes the error and its place; PNR_EIO; PNR_ENOMEMORY. */
typedef int pnr_chip_reader(const pnr_chip_file *file, pnr_chips *out, pnr_error *error);

/*
 * Text (.txt, .csv). Values are separated by commas, semicolons or space. A value is a number, or a
 * complex one as 1+2j; numpy's brackets are allowed. Empty lines are skipped, and so is a line from
 * '#' to its end. The first line decides: one number is a chip for each line; two numbers are I and
 * Q of a chip for each line; a complex value, or more than two numbers, begin a list of chips on
 * any number of lines.
 */
pnr_chip_reader pnr_chip_read_text;
/* A numpy array of one dimension (.npy): little-endian int8 to int64, float32, float64, complex64,
 * complex128. The header, and the elements that it states, must fill the file exactly. */
pnr_chip_reader pnr_chip_read_npy;

#endif
