/* SPDX-License-Identifier: MIT */
/* Detects a wrong source.format from histograms of the bytes of the first values. */
#include "source/plausible.h"

#include <math.h>
#include <string.h>

enum { BINS = 32 }; /* bins of the test for an even distribution */

static const double giant = 1e9; /* full scale is 1; unscaled 24-bit integers reach 1e7 */

void pnr_plausible_begin(pnr_plausible *p, pnr_format format)
{
    const pnr_format_info *info = pnr_format_get(format);

    *p = (pnr_plausible){.bytes = info->is_complex ? info->bytes / 2 : info->bytes,
                         .flip = info->offset != 0 ? 0x80 : 0,
                         .is_float = info->is_float};
}

/* --- counting --- */

static void count_float(pnr_plausible *p, const unsigned char *raw)
{
    double value;
    float single;

    if (p->bytes == sizeof single) {
        memcpy(&single, raw, sizeof single);
        value = (double)single;
    } else {
        memcpy(&value, raw, sizeof value);
    }
    p->n_giants += !(fabs(value) <= giant);
}

static void count_integer(pnr_plausible *p, const unsigned char *raw)
{
    const unsigned lane = p->n & 1;
    const unsigned high = raw[p->bytes - 1] ^ p->flip;

    p->high[lane][high ^ 0x80]++;
    if (p->bytes > 1)
        p->low[lane][raw[0] ^ 0x80]++;
    if (lane == 0)
        p->was_negative = high >= 0x80;
    else
        p->n_signs += high == (p->was_negative ? 0xff : 0);
}

/* --- judging --- */

static double share(const uint32_t histogram[256], unsigned first, unsigned end)
{
    double all = 0, within = 0;

    for (unsigned i = 0; i < 256; i++) {
        all += histogram[i];
        within += i >= first && i < end ? histogram[i] : 0;
    }
    return within / all;
}

static unsigned distinct(const uint32_t histogram[256])
{
    unsigned n = 0;

    for (unsigned i = 0; i < 256; i++)
        n += histogram[i] > 0;
    return n;
}

/* True if the distribution is even: it is enough to move less than 8 % of the values to make all
 * bins equal. For PNR_PLAUSIBLE_VALUES / 2 uniform random values this share is 3.5 %. For Gaussian
 * values without clipping it is 29 % or more, and for a sine at full scale 20 %. */
static bool is_even(const uint32_t histogram[256])
{
    double distance = 0;

    for (unsigned b = 0; b < BINS; b++)
        distance += fabs(share(histogram, b * 256 / BINS, (b + 1) * 256 / BINS) - 1.0 / BINS);
    return distance / 2 < 0.08;
}

/* True if nearly all values are near the two ends of the range. False if there are at most 8
 * different values, as in the samples of a code. */
static bool is_wrapped(const uint32_t histogram[256])
{
    return share(histogram, 64, 192) < 0.1 && share(histogram, 0, 64) > 0.2 &&
           share(histogram, 192, 256) > 0.2 && distinct(histogram) > 8;
}

/* True if the low byte is unevenly distributed, although there are many different high bytes. With
 * an ADC of fewer bits, the low byte has few values or an even distribution. */
static bool is_pair_of_bytes(const uint32_t high[256], const uint32_t low[256])
{
    const double inner = share(low, 64, 192);

    return distinct(high) > 8 && distinct(low) > 8 && (inner > 0.75 || inner < 0.25);
}

static const char *judge_integers(const pnr_plausible *p)
{
    const double negative = share(p->high[0], 0, 128);

    if (p->bytes == 1 && 2 * p->n_signs > p->n * 9 / 10 && negative > 0.2 && negative < 0.8)
        return "every second value is only the sign of the one before, as in 16-bit samples";
    for (unsigned lane = 0; lane < 2; lane++) {
        if (is_even(p->high[lane]))
            return "values fill the whole range evenly, as the low bytes of a wider format or of "
                   "another byte order do";
        if (is_wrapped(p->high[lane]))
            return "values lie at both ends of the range, as signed samples read as unsigned ones "
                   "or the reverse do";
        if (p->bytes == 2 && is_pair_of_bytes(p->high[lane], p->low[lane]))
            return "the two bytes of a value are two values, as of 8-bit samples";
    }
    return NULL;
}

const char *pnr_plausible_add(pnr_plausible *p, const void *values, size_t n)
{
    const unsigned char *raw = values;

    if (p->n >= PNR_PLAUSIBLE_VALUES)
        return NULL;
    for (size_t i = 0; i < n && p->n < PNR_PLAUSIBLE_VALUES; i++, p->n++, raw += p->bytes)
        p->is_float ? count_float(p, raw) : count_integer(p, raw);
    if (p->n < PNR_PLAUSIBLE_VALUES)
        return NULL;
    if (!p->is_float)
        return judge_integers(p);
    return p->n_giants > p->n / 100 ? "more than 1 % of the values are above 1e9, NaN or Inf"
                                    : NULL;
}
