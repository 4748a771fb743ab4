/* SPDX-License-Identifier: MIT */
/* The place of a datagram in the stream of samples: from its own count, or from the packet count
 * and the time stamps of VITA-49. */
#ifndef PNR_SEQUENCE_H
#define PNR_SEQUENCE_H

#include "base/error.h"
#include "config/config.h"
#include "source/vrt.h"

enum { PNR_SEQUENCE_MAX_HEADER = PNR_VRT_MAX_HEADER };

typedef struct pnr_datagram {
    uint64_t first; /* number of the first sample; begins anywhere */
    size_t n_samples;
    size_t n_header;  /* bytes before the samples */
    size_t n_payload; /* bytes of the samples */
    bool has_time;
    int64_t utc_ns;   /* of the first sample */
    unsigned count;   /* of VITA-49: of packets, modulo 16 */
    pnr_vrt_time vrt; /* of VITA-49: time of the first sample */
} pnr_datagram;

typedef struct pnr_sequence {
    bool is_vrt;         /* false: plain counted datagrams */
    bool counts_packets; /* plain: the count is that of datagrams, not of samples */
    bool uses_time;      /* VITA-49: the time stamps place a packet */
    bool has_stream;     /* VITA-49: packets of this stream alone: */
    uint32_t stream;
    bool is_filter; /* the configuration names the stream */
    double centre_hz;
    pnr_rational rate_hz;
    pnr_format format;
    size_t n_channels, sample_bytes;
    bool has_begun, is_uneven; /* is_uneven: datagrams differ in length */
    pnr_datagram latest;       /* the one with the highest samples so far */
} pnr_sequence;

/* rate_hz must be given. PNR_OK, or PNR_ECONFIG: source.vrt_stream is no number. */
int pnr_sequence_init(const pnr_config *config, bool is_vrt, pnr_format format, pnr_sequence *out,
                      pnr_error *error);

/* Returns the length of the header of a datagram from its first bytes, at least 8. 0: the datagram
 * is a context of VITA-49, and pnr_sequence_place needs all of its bytes. */
size_t pnr_sequence_header_bytes(const pnr_sequence *sequence, const unsigned char *bytes);

/* Reads a datagram of any origin and finds its place. `bytes` has the first n_bytes of its n_total
 * bytes: the header, or all. PNR_OK; PNR_EAGAIN: no samples (a context that agrees, or another
 * stream); PNR_EDATA: refused, with the reason; PNR_ECONFIG: a context states another rate,
 * frequency or format. */
int pnr_sequence_place(pnr_sequence *sequence, const unsigned char *bytes, size_t n_bytes,
                       size_t n_total, pnr_datagram *out, pnr_error *error);
/* Notes that the samples of this datagram are taken. Later datagrams are placed relative to it. */
void pnr_sequence_follow(pnr_sequence *sequence, const pnr_datagram *datagram);

#endif
