/* SPDX-License-Identifier: MIT */
/* Computes the position of a datagram in the stream of samples. Uses the count in the datagram, or
 * the packet count and the time stamps of VITA-49. */
#ifndef PNR_SEQUENCE_H
#define PNR_SEQUENCE_H

#include "base/error.h"
#include "config/config.h"
#include "source/vrt.h"

enum { PNR_SEQUENCE_MAX_HEADER = PNR_VRT_MAX_HEADER };

typedef struct pnr_datagram {
    uint64_t first; /* number of the first sample; a stream may begin at any number */
    size_t n_samples;
    size_t n_header;  /* bytes before the samples */
    size_t n_payload; /* bytes of the samples */
    bool has_time;
    int64_t utc_ns;   /* UTC of the first sample */
    unsigned count;   /* of VITA-49: packet count, modulo 16 */
    pnr_vrt_time vrt; /* of VITA-49: time of the first sample */
} pnr_datagram;

typedef struct pnr_sequence {
    bool is_vrt;         /* false: plain counted datagrams */
    bool counts_packets; /* plain: datagrams are counted; false: samples are counted */
    bool uses_time;      /* VITA-49: the time stamps give the position; false: the packet count */
    bool has_stream;     /* VITA-49: only packets of `stream` are accepted */
    uint32_t stream;
    bool is_filter; /* the configuration gives `stream` */
    double centre_hz;
    pnr_rational rate_hz;
    pnr_format format;
    size_t n_channels, sample_bytes;
    bool has_begun, is_uneven; /* is_uneven: the datagrams differ in length */
    pnr_datagram latest;       /* the datagram with the highest sample numbers so far */
} pnr_sequence;

/* Prepares *out. source.rate_hz must be set. PNR_OK, or PNR_ECONFIG: source.vrt_stream is no
 * number. */
int pnr_sequence_init(const pnr_config *config, bool is_vrt, pnr_format format, pnr_sequence *out,
                      pnr_error *error);

/* Returns the length of a datagram's header, in bytes, from its first 8 bytes. 0: the datagram is a
 * VITA-49 context, and pnr_sequence_place needs all its bytes. */
size_t pnr_sequence_header_bytes(const pnr_sequence *sequence, const unsigned char *bytes);

/* Reads a datagram that may be invalid, and sets out->first, its position. The datagram has n_total
 * bytes. `bytes` has the first n_bytes of them: the header, or all. PNR_OK; PNR_EAGAIN: a context
 * that agrees with the configuration, or a packet of another stream; PNR_EDATA: refused, with the
 * reason; PNR_ECONFIG: a context states another rate, frequency or format. */
int pnr_sequence_place(pnr_sequence *sequence, const unsigned char *bytes, size_t n_bytes,
                       size_t n_total, pnr_datagram *out, pnr_error *error);
/* Accepts this datagram. Later VITA-49 packets are placed relative to the accepted packet with the
 * highest sample numbers. */
void pnr_sequence_follow(pnr_sequence *sequence, const pnr_datagram *datagram);

#endif
