/* SPDX-License-Identifier: MIT */
/* Sample formats: a table of names, of aliases that other programs use, of sizes and of scales. */
#ifndef PNR_FORMAT_H
#define PNR_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The formats of samples, all little endian. A ci16 sample is I and then Q, each of type int16. A
 * ci4 sample is one byte: the high four bits are I and the low four bits are Q, in two's
 * complement. Real formats have I only. */
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
    const char *aliases; /* separated by spaces; names and aliases are also file extensions */
    unsigned bytes;      /* bytes of one sample, of I and Q together if complex */
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
 * or the extension is unknown. */
pnr_format pnr_format_of_path(const char *path);
/* Returns the format of the samples in memory. Sources unpack ci4 to ci8: the integers are 16 times
 * as large, and the values are the same. Other formats do not change. */
pnr_format pnr_format_in_memory(pnr_format format);
/* Returns the names of all formats, separated by spaces, for messages. */
const char *pnr_format_names(void);

/* Converts one sample at `raw` to I, Q with full scale = 1. `raw` needs no alignment. Returns
 * flags. The tests compare the conversion of every engine with this function. If I or Q is not
 * finite, the function stores 0, 0 and returns PNR_SAMPLE_NONFINITE. An integer I or Q at an end of
 * its range (cu8 and u8: 0, 255) sets PNR_SAMPLE_CLIPPED; floats never clip. */
enum { PNR_SAMPLE_CLIPPED = 1, PNR_SAMPLE_NONFINITE = 2 };
unsigned pnr_format_read(pnr_format format, const void *raw, double iq[2]);

/* The inverse of pnr_format_read, for generators. Rounds integers half away from zero, and limits I
 * and Q to the range of the format. An integer format stores a NaN as the value 0. Returns
 * PNR_SAMPLE_CLIPPED if it has limited I or Q, or has replaced a NaN. Real formats store I. */
unsigned pnr_format_write(pnr_format format, const double iq[2], void *raw);

#endif
