/* SPDX-License-Identifier: MIT */
/* Packets of VITA-49.0 and 49.2 (VRT): signal data contain samples; contexts contain the rate, the
 * frequency and the format of the samples. */
#ifndef PNR_VRT_H
#define PNR_VRT_H

#include "base/error.h"
#include "base/rational.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_VRT_MAX_HEADER = 28 /* bytes of the longest header */ };

/* The kinds of seconds (TSI) and of fractions of a second (TSF) in a time stamp, with the numbers
 * of the standard. */
typedef enum { PNR_VRT_NO_SECONDS, PNR_VRT_UTC, PNR_VRT_GPS, PNR_VRT_OTHER } pnr_vrt_seconds;
typedef enum {
    PNR_VRT_NO_FRACTION,
    PNR_VRT_SAMPLES,     /* samples since the second began; without seconds: since an unknown
                          * time */
    PNR_VRT_PICOSECONDS, /* picoseconds since the second began */
    PNR_VRT_FREE_RUNNING /* samples since an unknown time */
} pnr_vrt_fraction;

/* The time of the first sample of a packet. */
typedef struct pnr_vrt_time {
    pnr_vrt_seconds seconds_kind;
    pnr_vrt_fraction fraction_kind;
    uint32_t seconds;
    uint64_t fraction;
} pnr_vrt_time;

/* The format of the samples, as a context states it. */
typedef struct pnr_vrt_format {
    bool is_complex, is_float, is_signed;
    unsigned bits; /* bits of a real value, of I, or of Q */
    size_t n_channels;
} pnr_vrt_format;

typedef struct pnr_vrt_packet {
    bool is_context; /* false: signal data */
    bool has_stream;
    uint32_t stream;
    unsigned count;   /* packet count, modulo 16 */
    size_t n_header;  /* bytes before the payload */
    size_t n_payload; /* bytes of samples, big endian */
    pnr_vrt_time time;
    /* The members below are only in a context. */
    double rate_hz;      /* 0: not stated */
    double frequency_hz; /* RF reference frequency; 0: not stated */
    bool has_format;
    pnr_vrt_format format;
} pnr_vrt_packet;

/* Returns the length, in bytes, of the header that begins with these 4 bytes: 4 ..
 * PNR_VRT_MAX_HEADER. */
size_t pnr_vrt_header_bytes(const unsigned char *bytes);
/* True if these 4 bytes begin a packet of signal data. */
bool pnr_vrt_is_data(const unsigned char *bytes);

/* Reads the header of a packet that may be invalid. The packet is a datagram of n_total bytes.
 * `bytes` has the first n_bytes of the datagram. For signal data this is at least the header; for a
 * context it is the whole packet. Allocates nothing. PNR_OK, or PNR_EDATA with the reason: the
 * packet is cut short, its length is not the length of the datagram, its type is neither signal
 * data nor context, it has spectra instead of samples, or its rate is not a number above 0. */
int pnr_vrt_read(const unsigned char *bytes, size_t n_bytes, size_t n_total, pnr_vrt_packet *out,
                 pnr_error *error);

/* True if time stamps with these kinds of seconds and fractions differ from sample to sample. */
bool pnr_vrt_time_is_exact(const pnr_vrt_time *time);
/* Returns the number of samples between two times with the same kinds of seconds and fractions. The
 * number is rounded to the nearest integer, and limited to +-2^62. */
int64_t pnr_vrt_elapsed(const pnr_vrt_time *from, const pnr_vrt_time *to, pnr_rational rate_hz);
/* Sets *utc_ns; GPS time is 18 s ahead of UTC. False: the seconds are neither UTC nor GPS, or the
 * fraction is missing, free-running, or more than a second. */
bool pnr_vrt_utc(const pnr_vrt_time *time, pnr_rational rate_hz, int64_t *utc_ns);

#endif
