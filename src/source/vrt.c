/* SPDX-License-Identifier: MIT */
/* Reads packets of VITA-49: big-endian words of 32 bits. */
#include "source/vrt.h"

#include <endian.h>
#include <math.h>
#include <string.h>

enum { WORD = 4 };

/* Types of packets, in the highest four bits of the first word. */
enum { DATA = 0, DATA_OF_STREAM = 1, CONTEXT = 4 };

static const uint64_t ps_per_s = UINT64_C(1000000000000);

static uint32_t get_u32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static uint64_t get_u64(const unsigned char *at)
{
    return (uint64_t)get_u32(at) << 32 | get_u32(at + WORD);
}

static bool has_class(uint32_t first)
{
    return (first >> 27 & 1) != 0;
}

static bool has_stream(uint32_t first)
{
    return first >> 28 != DATA;
}

static size_t header_bytes(uint32_t first)
{
    const size_t n_words = 1 + (has_stream(first) ? 1u : 0u) + (has_class(first) ? 2u : 0u) +
                           ((first >> 22 & 3) != 0 ? 1u : 0u) + ((first >> 20 & 3) != 0 ? 2u : 0u);

    return n_words * WORD;
}

size_t pnr_vrt_header_bytes(const unsigned char *bytes)
{
    return header_bytes(get_u32(bytes));
}

bool pnr_vrt_is_data(const unsigned char *bytes)
{
    const uint32_t type = get_u32(bytes) >> 28;

    return type == DATA || type == DATA_OF_STREAM;
}

/* --- context --- */

static double get_hz(const unsigned char *at)
{
    return (double)(int64_t)get_u64(at) / (1 << 20); /* fixed point with 20 fractional bits */
}

/* Reads the field Signal Data Packet Payload Format. */
static void read_format(const unsigned char *at, pnr_vrt_packet *out)
{
    enum { FLOAT = 0x0e, DOUBLE = 0x0f, UNSIGNED = 0x10 };
    const uint32_t first = get_u32(at);
    const unsigned item = first >> 24 & 0x1f;

    out->has_format = true;
    out->format =
        (pnr_vrt_format){.is_complex = (first >> 29 & 3) == 1,
                         .is_float = item == FLOAT || item == DOUBLE,
                         .is_signed = item != UNSIGNED,
                         /* The size of an item in bits, if the item fills its field in the packet;
                          * else 0, which agrees with no format. */
                         .bits = (first & 0x3f) == (first >> 6 & 0x3f) ? (first & 0x3f) + 1 : 0,
                         .n_channels = (get_u32(at + WORD) & 0xffff) + 1};
}

/* Reads the fields of a context. Each bit of the first word says if a field is present. */
static int read_context(const unsigned char *at, size_t left, pnr_vrt_packet *out, pnr_error *error)
{
    enum { FREQUENCY = 27, RATE = 21, FORMAT = 15, LAST = 15, MORE_INDICATORS = 0x8e };
    /* Lengths, in words, of the fields of bits 31 (the change indicator) to 15. */
    static const unsigned char n_words[] = {0, 1, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 1, 1, 2, 1, 2};
    uint32_t indicators;

    if (left < WORD)
        return pnr_error_set(error, PNR_EDATA, "a context of VRT without its indicators");
    indicators = get_u32(at);
    /* More indicator words may follow. Their fields come after the fields that are read here. */
    const size_t skipped = WORD * (1 + (size_t)__builtin_popcount(indicators & MORE_INDICATORS));

    if (left < skipped)
        return pnr_error_set(error, PNR_EDATA, "a context of VRT that is cut short");
    at += skipped;
    left -= skipped;
    for (unsigned bit = 31; bit >= LAST; bit--) {
        const size_t n_bytes = n_words[31 - bit] * (size_t)WORD;

        if ((indicators >> bit & 1) == 0)
            continue;
        if (left < n_bytes)
            return pnr_error_set(error, PNR_EDATA, "a context of VRT that is cut short");
        if (bit == FREQUENCY)
            out->frequency_hz = get_hz(at);
        else if (bit == FORMAT)
            read_format(at, out);
        else if (bit == RATE && !((out->rate_hz = get_hz(at)) > 0))
            return pnr_error_set(error, PNR_EDATA, "a context of VRT with a rate of %.10g Hz",
                                 out->rate_hz);
        at += n_bytes;
        left -= n_bytes;
    }
    return PNR_OK;
}

/* --- packets --- */

/* Sets n_payload, the length of the datagram without header, trailer and padding. */
static int measure_payload(const unsigned char *bytes, size_t n_total, pnr_vrt_packet *out,
                           pnr_error *error)
{
    const uint32_t first = get_u32(bytes);
    const size_t n_trailer = (first >> 26 & 1) != 0 ? WORD : 0;
    const unsigned class_at = has_stream(first) ? 2 * WORD : WORD;
    const unsigned n_pad_bits = has_class(first) ? bytes[class_at] >> 3 : 0;

    if ((first >> 24 & 1) != 0)
        return pnr_error_set(error, PNR_EDATA, "a packet of VRT with a spectrum, no samples");
    if (n_pad_bits % 8 != 0 || n_total - out->n_header < n_trailer + n_pad_bits / 8)
        return pnr_error_set(error, PNR_EDATA,
                             "a packet of VRT with %zu bytes, %u bits of them padding",
                             n_total - out->n_header, n_pad_bits);
    out->n_payload = n_total - out->n_header - n_trailer - n_pad_bits / 8;
    return PNR_OK;
}

/* Reads the stream identifier, the packet count and the time. */
static int read_header(const unsigned char *bytes, pnr_vrt_packet *out, pnr_error *error)
{
    const uint32_t first = get_u32(bytes);
    const unsigned char *at = bytes + WORD;

    out->is_context = first >> 28 == CONTEXT;
    out->count = first >> 16 & 0xf;
    out->has_stream = has_stream(first);
    if (out->has_stream) {
        out->stream = get_u32(at);
        at += WORD;
    }
    at += has_class(first) ? 2 * WORD : 0;
    out->time.seconds_kind = (pnr_vrt_seconds)(first >> 22 & 3);
    if (out->time.seconds_kind != PNR_VRT_NO_SECONDS) {
        out->time.seconds = get_u32(at);
        at += WORD;
    }
    out->time.fraction_kind = (pnr_vrt_fraction)(first >> 20 & 3);
    if (out->time.fraction_kind != PNR_VRT_NO_FRACTION)
        out->time.fraction = get_u64(at);
    if (out->time.fraction_kind == PNR_VRT_PICOSECONDS && out->time.fraction >= ps_per_s)
        return pnr_error_set(error, PNR_EDATA, "a time stamp of VRT beyond its second");
    return PNR_OK;
}

int pnr_vrt_read(const unsigned char *bytes, size_t n_bytes, size_t n_total, pnr_vrt_packet *out,
                 pnr_error *error)
{
    uint32_t first;
    int code;

    *out = (pnr_vrt_packet){0};
    if (n_bytes < WORD)
        return pnr_error_set(error, PNR_EDATA, "%zu bytes are no packet of VRT", n_bytes);
    first = get_u32(bytes);
    out->n_header = header_bytes(first);
    if (!pnr_vrt_is_data(bytes) && first >> 28 != CONTEXT)
        return pnr_error_set(error, PNR_EDATA,
                             "type %u of VRT is neither signal data nor context%s", first >> 28,
                             memcmp(bytes, "VRLP", 4) == 0 ? ": it is a frame of VRL" : "");
    if ((size_t)(first & 0xffff) * WORD != n_total || n_bytes < out->n_header)
        return pnr_error_set(error, PNR_EDATA,
                             "a packet of VRT says %u words, and the datagram has %zu bytes",
                             first & 0xffff, n_total);
    if ((code = read_header(bytes, out, error)) != PNR_OK)
        return code;
    if (out->is_context)
        return read_context(bytes + out->n_header, n_bytes - out->n_header, out, error);
    return measure_payload(bytes, n_total, out, error);
}

/* --- times --- */

static bool counts_from_second(const pnr_vrt_time *time)
{
    return time->fraction_kind != PNR_VRT_FREE_RUNNING && time->seconds_kind != PNR_VRT_NO_SECONDS;
}

bool pnr_vrt_time_is_exact(const pnr_vrt_time *time)
{
    return time->fraction_kind != PNR_VRT_NO_FRACTION &&
           (time->fraction_kind != PNR_VRT_PICOSECONDS || counts_from_second(time));
}

static __int128 nearest_quotient(__int128 of, __int128 by)
{
    return (of >= 0 ? of * 2 + by : of * 2 - by) / (by * 2);
}

int64_t pnr_vrt_elapsed(const pnr_vrt_time *from, const pnr_vrt_time *to, pnr_rational rate_hz)
{
    const __int128 most = (__int128)1 << 62, num = rate_hz.num, den = rate_hz.den;
    const __int128 seconds = (__int128)to->seconds - from->seconds;
    __int128 n = (int64_t)(to->fraction - from->fraction); /* also correct if a sample count wraps
                                                            * to 0 */

    if (to->fraction_kind == PNR_VRT_PICOSECONDS)
        n = nearest_quotient((seconds * (__int128)ps_per_s + n) * num, den * (__int128)ps_per_s);
    else if (counts_from_second(to))
        n += nearest_quotient(seconds * num, den);
    return (int64_t)(n > most ? most : n < -most ? -most : n);
}

bool pnr_vrt_utc(const pnr_vrt_time *time, pnr_rational rate_hz, int64_t *utc_ns)
{
    static const int64_t gps_epoch_s = 315964800 - 18; /* UTC of the GPS epoch, minus the leap
                                                        * seconds since 1980 */
    const int64_t ns_per_s = 1000000000;
    int64_t seconds = time->seconds;

    if (!counts_from_second(time) || !pnr_vrt_time_is_exact(time) ||
        time->seconds_kind == PNR_VRT_OTHER)
        return false;
    if (time->seconds_kind == PNR_VRT_GPS)
        seconds += gps_epoch_s;
    *utc_ns = seconds * ns_per_s;
    if (time->fraction_kind == PNR_VRT_PICOSECONDS)
        *utc_ns += (int64_t)(time->fraction / 1000);
    else if ((double)time->fraction <= pnr_rational_double(rate_hz))
        *utc_ns += pnr_rational_time_ns(rate_hz, time->fraction);
    else
        return false;
    return true;
}
