/* SPDX-License-Identifier: MIT */
/* Packets of VITA-49.0 and 49.2 (VRT): signal data with samples, and context with their rate. */
#ifndef PNR_VRT_H
#define PNR_VRT_H

#include "base/error.h"
#include "base/rational.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_VRT_MAX_HEADER = 28 /* bytes of the longest header */ };

/* The kinds of seconds (TSI) and of their fraction (TSF) in a time stamp, as numbered on the
 * wire. */
typedef enum { PNR_VRT_NO_SECONDS, PNR_VRT_UTC, PNR_VRT_GPS, PNR_VRT_OTHER } pnr_vrt_seconds;
typedef enum {
    PNR_VRT_NO_FRACTION,
    PNR_VRT_SAMPLES,     /* since the second began; without seconds: since any time */
    PNR_VRT_PICOSECONDS, /* since the second began */
    PNR_VRT_FREE_RUNNING /* samples since any time */
} pnr_vrt_fraction;

/* The time of the first sample of a packet. */
typedef struct pnr_vrt_time {
    pnr_vrt_seconds seconds_kind;
    pnr_vrt_fraction fraction_kind;
    uint32_t seconds;
    uint64_t fraction;
} pnr_vrt_time;

/* The samples as a context states them. */
typedef struct pnr_vrt_format {
    bool is_complex, is_float, is_signed;
    unsigned bits; /* of I, and of Q */
    size_t n_channels;
} pnr_vrt_format;

typedef struct pnr_vrt_packet {
    bool is_context; /* false: signal data */
    bool has_stream;
    uint32_t stream;
    unsigned count;   /* of packets, modulo 16 */
    size_t n_header;  /* bytes before the payload */
    size_t n_payload; /* bytes of samples, big endian */
    pnr_vrt_time time;
    /* of a context: */
    double rate_hz;      /* 0: not stated */
    double frequency_hz; /* RF reference frequency; 0: not stated */
    bool has_format;
    pnr_vrt_format format;
} pnr_vrt_packet;

/* Returns the length of the header that begins with these 4 bytes: 4 .. PNR_VRT_MAX_HEADER. */
size_t pnr_vrt_header_bytes(const unsigned char *bytes);
/* True if these 4 bytes begin a packet of signal data. */
bool pnr_vrt_is_data(const unsigned char *bytes);

/* Reads the header of a packet of any origin, which fills a datagram of n_total bytes. `bytes` has
 * the first n_bytes of them: at least the header, and all of a context. Allocates nothing. PNR_OK,
 * or PNR_EDATA with the reason: cut short, a length that is not that of the datagram, a type other
 * than signal data and context, spectra instead of samples, or a rate that is no number above 0. */
int pnr_vrt_read(const unsigned char *bytes, size_t n_bytes, size_t n_total, pnr_vrt_packet *out,
                 pnr_error *error);

/* True if times of this form tell samples apart. */
bool pnr_vrt_time_is_exact(const pnr_vrt_time *time);
/* Returns the number of samples from one time to another of the same form, exact and rounded to the
 * nearest; limited to +-2^62. */
int64_t pnr_vrt_elapsed(const pnr_vrt_time *from, const pnr_vrt_time *to, pnr_rational rate_hz);
/* Sets *utc_ns. False: the time has no seconds of UTC or GPS (less 18 leap seconds), or no fraction
 * of a second. */
bool pnr_vrt_utc(const pnr_vrt_time *time, pnr_rational rate_hz, int64_t *utc_ns);

#endif
