/* SPDX-License-Identifier: MIT */
/* A short queue of packets, sorted by their first sample. Each entry has its own buffer. */
#include "source/reorder.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    pnr_reorder_packet packet;
    unsigned char *buffer;
} entry;

struct pnr_reorder {
    size_t n, n_entries;
    unsigned char *memory;
    entry entries[]; /* [n_entries]; the first n have packets */
};

pnr_reorder *pnr_reorder_create(size_t n_packets, size_t n_bytes)
{
    pnr_reorder *r = calloc(1, sizeof *r + n_packets * sizeof *r->entries);

    if (r == NULL || (r->memory = malloc(n_packets * n_bytes)) == NULL) {
        free(r);
        return NULL;
    }
    r->n_entries = n_packets;
    for (size_t i = 0; i < n_packets; i++)
        r->entries[i].buffer = r->memory + i * n_bytes;
    return r;
}

void pnr_reorder_destroy(pnr_reorder *r)
{
    if (r != NULL)
        free(r->memory);
    free(r);
}

int pnr_reorder_add(pnr_reorder *r, uint64_t first, size_t n_samples, const void *bytes,
                    size_t sample_bytes)
{
    const entry unused = r->entries[r->n];
    size_t at = r->n;

    while (at > 0 && r->entries[at - 1].packet.first > first)
        at--;
    if ((at < r->n && r->entries[at].packet.first - first < n_samples) ||
        (at > 0 && first - r->entries[at - 1].packet.first < r->entries[at - 1].packet.n_samples))
        return PNR_EDATA;
    memmove(&r->entries[at + 1], &r->entries[at], (r->n - at) * sizeof *r->entries);
    memcpy(unused.buffer, bytes, n_samples * sample_bytes);
    r->entries[at] = (entry){{first, n_samples, unused.buffer}, unused.buffer};
    r->n++;
    return PNR_OK;
}

size_t pnr_reorder_count(const pnr_reorder *r)
{
    return r->n;
}

pnr_reorder_packet *pnr_reorder_front(pnr_reorder *r)
{
    return r->n > 0 ? &r->entries[0].packet : NULL;
}

void pnr_reorder_drop(pnr_reorder *r)
{
    const entry first = r->entries[0];

    r->n--;
    memmove(r->entries, r->entries + 1, r->n * sizeof *r->entries);
    r->entries[r->n] = first;
}
