/* SPDX-License-Identifier: MIT */
/* Detects a wrong source.format from the statistics of the first samples. */
#ifndef PNR_PLAUSIBLE_H
#define PNR_PLAUSIBLE_H

#include "base/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_PLAUSIBLE_VALUES = 8192 }; /* number of values (of I and Q) that are judged */

/* Statistics of the values. Lane 0 has the values of I, or every other real value. Lane 1 has the
 * values of Q, or the others. */
typedef struct pnr_plausible {
    unsigned bytes; /* bytes of one value */
    unsigned flip;  /* 0x80 for unsigned integers, else 0 */
    bool is_float;
    size_t n;              /* number of values so far */
    uint32_t high[2][256]; /* [lane][b + 128] number of integers whose most significant byte, after
                            * `flip`, is b = -128 .. 127 */
    uint32_t low[2][256];  /* [lane][b + 128] number of 16-bit integers whose least significant byte
                            * is b = -128 .. 127 */
    size_t n_signs;        /* pairs of values in which lane 1 only repeats the sign of lane 0: lane
                            * 1 is -1 if lane 0 is negative, else 0 */
    bool was_negative;     /* the latest value of lane 0 is negative */
    size_t n_giants;       /* floats above 1e9 in magnitude, NaN and Inf */
} pnr_plausible;

void pnr_plausible_begin(pnr_plausible *p, pnr_format format);
/* Counts n values, in the order of memory. The call that completes PNR_PLAUSIBLE_VALUES values
 * returns the reason why the values probably have another format, as a part of a sentence; NULL:
 * there is no such reason. All other calls return NULL. Possible reasons are a wider format or
 * another byte order (integers that fill their range evenly), signed values read as unsigned ones,
 * unsigned values read as signed ones, 8-bit values read as 16 bits, small 16-bit values read as 8
 * bits, and other formats read as floats. Allocates nothing. */
const char *pnr_plausible_add(pnr_plausible *p, const void *values, size_t n);

#endif
