/* SPDX-License-Identifier: MIT */
/* The header with stream tags that GNU Radio's ZeroMQ sinks put before the items of a message. */
#ifndef PNR_GR_TAGS_H
#define PNR_GR_TAGS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PNR_GR_MAX_TIMES = 16 };

/* A tag rx_time: the time of one item. */
typedef struct pnr_gr_time {
    uint64_t offset; /* absolute index of the item */
    int64_t utc_ns;
} pnr_gr_time;

typedef struct pnr_gr_header {
    size_t n_bytes;  /* bytes of the header; the items follow */
    uint64_t offset; /* absolute index of the first item */
    size_t n_times;
    pnr_gr_time times[PNR_GR_MAX_TIMES]; /* [n_times] in ascending order of offset; none is before
                                          * `offset` of the header */
    double rate_hz;                      /* value of the tag rx_rate; 0: there is no such tag */
} pnr_gr_header;

/* True if the bytes begin like such a header. */
bool pnr_gr_is_header(const void *bytes, size_t n_bytes);

/* Reads the header of a message that may be invalid, without recursion or allocation. Skips tags
 * other than rx_time and rx_rate. PNR_OK, or PNR_EDATA with the reason: there is no header, it is
 * cut short, a PMT (a serialized value of GNU Radio) has an unknown type, there are more than
 * PNR_GR_MAX_TIMES times, an rx_time is invalid or out of order, or an rx_rate is not a number
 * above 0. */
int pnr_gr_header_read(const void *bytes, size_t n_bytes, pnr_gr_header *out, pnr_error *error);

/* A header that is being written. Owner of the bytes: the caller. */
typedef struct pnr_gr_writer {
    unsigned char *bytes;
    size_t n, capacity;
    uint64_t n_tags;
} pnr_gr_writer;

enum { PNR_GR_MAX_KEY = 16, PNR_GR_LEAST_BYTES = 19, PNR_GR_TAG_BYTES = 64 };

/* Begins a header in `bytes`. offset: absolute index of the first item. The capacity must be at
 * least PNR_GR_LEAST_BYTES + PNR_GR_TAG_BYTES * (number of tags). */
void pnr_gr_write_begin(pnr_gr_writer *writer, void *bytes, size_t capacity, uint64_t offset);
/* Each function adds a tag at the item with index `offset`. A key has at most PNR_GR_MAX_KEY
 * letters. pnr_gr_write_time adds the tag rx_time. */
void pnr_gr_write_u64(pnr_gr_writer *writer, uint64_t offset, const char *key, uint64_t value);
void pnr_gr_write_double(pnr_gr_writer *writer, uint64_t offset, const char *key, double value);
void pnr_gr_write_time(pnr_gr_writer *writer, uint64_t offset, int64_t utc_ns);

#endif
