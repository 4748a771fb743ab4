/* SPDX-License-Identifier: MIT */
/* Sample formats: one table of names, the aliases that other programs use, sizes and scales. */
#ifndef PNR_FORMAT_H
#define PNR_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The formats of samples, all little endian. A ci16 sample is I and then Q, each of type int16.
 * A ci4 sample is one byte, I in its high four bits and Q in its low ones, in two's complement.
 * Real formats have I only. */
typedef enum {
    PNR_FORMAT_NONE,
    PNR_FORMAT_CI4,
    PNR_FORMAT_CI8,
    PNR_FORMAT_CU8,
    PNR_FORMAT_CI16,
    PNR_FORMAT_CF32,
    PNR_FORMAT_CF64,
    PNR_FORMAT_I8,
    PNR_FORMAT_U8,
    PNR_FORMAT_I16,
    PNR_FORMAT_F32,
    PNR_FORMAT_F64,
    PNR_FORMAT_COUNT
} pnr_format;

typedef struct pnr_format_info {
    const char *name;    /* such as "ci16" */
    const char *aliases; /* space-separated, e.g. "cs16 sc16 ci16_le"; file extensions are
                            these names and aliases with a dot */
    unsigned bytes;      /* bytes of one sample (I and Q together if complex) */
    bool is_complex;
    bool is_float;
    double scale;  /* value = (raw + offset) * scale; the value of full scale is 1 */
    double offset; /* -127.5 for cu8 and u8, else 0 */
} pnr_format_info;

/* Returns the entry of a format in the table, never NULL. The entry of PNR_FORMAT_NONE has the name
 * "none" and 0 bytes. */
const pnr_format_info *pnr_format_get(pnr_format format);
/* Finds a format by its name or alias, in upper or lower case. PNR_FORMAT_NONE: unknown. */
pnr_format pnr_format_find(const char *name);
/* Finds a format by the extension of a path (".sc16"). PNR_FORMAT_NONE: the path has no extension,
 * or an unknown one. */
pnr_format pnr_format_of_path(const char *path);
/* Returns the format that samples of `format` have in memory. Sources unpack ci4 to ci8: the
 * integers are 16 times as large, and the values are the same. All other formats stay as they
 * are. */
pnr_format pnr_format_in_memory(pnr_format format);
/* Returns the names of all formats, separated by spaces, for messages. */
const char *pnr_format_names(void);

/* Converts one sample at `raw`, which needs no alignment, to I, Q with full scale = 1. Returns
 * flags. Every engine's conversion is tested against this function. A non-finite I or Q gives 0, 0
 * and PNR_SAMPLE_NONFINITE. An integer I or Q at either end of its range (cu8/u8: 0, 255) sets
 * PNR_SAMPLE_CLIPPED; floats never clip. */
enum { PNR_SAMPLE_CLIPPED = 1, PNR_SAMPLE_NONFINITE = 2 };
unsigned pnr_format_read(pnr_format format, const void *raw, double iq[2]);

/* The inverse of pnr_format_read, for generators. Rounds integers half away from zero and limits I
 * and Q to the range of the format. Returns PNR_SAMPLE_CLIPPED if it limited I or Q, or if an
 * integer format cannot store a NaN. Real formats store I. */
unsigned pnr_format_write(pnr_format format, const double iq[2], void *raw);

#endif
