/* SPDX-License-Identifier: MIT */
/* A queue of packets that arrived before packets with earlier samples. It is sorted by sample
 * numbers. */
#ifndef PNR_REORDER_H
#define PNR_REORDER_H

#include <stddef.h>
#include <stdint.h>

typedef struct pnr_reorder pnr_reorder;

/* The samples with the numbers first .. first + n_samples - 1. */
typedef struct pnr_reorder_packet {
    uint64_t first;
    size_t n_samples;
    unsigned char *bytes; /* [n_samples * sample_bytes] */
} pnr_reorder_packet;

/* Creates a queue for n_packets packets of at most n_bytes each. NULL: no memory. */
pnr_reorder *pnr_reorder_create(size_t n_packets, size_t n_bytes);
void pnr_reorder_destroy(pnr_reorder *reorder);
/* Copies a packet into the queue, which must have a free entry. sample_bytes: bytes of a sample.
 * PNR_OK, or PNR_EDATA: the queue already has some samples of the packet. */
int pnr_reorder_add(pnr_reorder *reorder, uint64_t first, size_t n_samples, const void *bytes,
                    size_t sample_bytes);
size_t pnr_reorder_count(const pnr_reorder *reorder);
/* Returns the packet with the earliest samples. NULL: the queue is empty. The caller may remove
 * samples from the front of the packet, or remove the packet with pnr_reorder_drop. */
pnr_reorder_packet *pnr_reorder_front(pnr_reorder *reorder);
void pnr_reorder_drop(pnr_reorder *reorder);

#endif
