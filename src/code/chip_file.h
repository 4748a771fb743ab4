/* SPDX-License-Identifier: MIT */
/* An open file of chips, and functions that read chips from text and from numpy arrays. */
#ifndef PNR_CODE_CHIP_FILE_H
#define PNR_CODE_CHIP_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pnr_chip_file {
    FILE *stream;
    const char *path, *key; /* key: the configuration key, for error messages */
    uint64_t n_bytes;
} pnr_chip_file;

/* The chips that have been read. The caller frees `chips`, also after an error. */
typedef struct pnr_chips {
    double (*chips)[2]; /* [n], I and Q of each chip */
    size_t n, capacity;
} pnr_chips;

/* Adds a chip. Returns PNR_OK; PNR_EDATA: there are PNR_CODE_MAX_CHIPS already; PNR_ENOMEMORY. */
int pnr_chips_add(pnr_chips *chips, const double chip[2], const pnr_chip_file *file,
                  pnr_error *error);

/* Reads all chips of the file. Refuses chips that are not finite. The memory grows with the chips
 * that are read. Returns PNR_OK; PNR_EDATA: the message has the wrong value, and its line or index;
 * PNR_EIO; PNR_ENOMEMORY. */
typedef int pnr_chip_reader(const pnr_chip_file *file, pnr_chips *out, pnr_error *error);

/*
 * Reads text (.txt, .csv). Commas, semicolons or white space separate values. A value is a real
 * number or a complex number such as 1+2j or (1+2j), the form of numpy. Empty lines are skipped,
 * and so is the text from '#' to the end of a line. The first line with values decides the form of
 * the file. If it has one number, each line is one chip. If it has two numbers, each line is I and
 * Q of one chip. If it has a complex value or more than two numbers, each value of the file is one
 * chip.
 */
pnr_chip_reader pnr_chip_read_text;
/* Reads a numpy array of one dimension (.npy): little-endian int8 to int64, float32, float64,
 * complex64, complex128. The size of the file must be the size of the header plus the size of the
 * elements. */
pnr_chip_reader pnr_chip_read_npy;

#endif
