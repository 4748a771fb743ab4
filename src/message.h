/* SPDX-License-Identifier: MIT */
/* The wire: range, status and end messages as JSON (and packed records), written without allocation, read with care. */
#ifndef PNR_MESSAGE_H
#define PNR_MESSAGE_H

#include "account.h"
#include "block.h"
#include "config.h"
#include "detector.h"
#include "error.h"
#include "radar.h"
#include "stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flags of a dwell, as words on the wire. */
#define PNR_FLAGS(X) X(LOST, "lost") X(NONFINITE, "non-finite") X(CLIPPED, "clipped") X(PARTIAL, "partial") X(MORE_ECHOES, "more-echoes")
enum {
#define PNR_FLAG_BIT(name, word) PNR_FLAG_BIT_##name,
    PNR_FLAGS(PNR_FLAG_BIT)
#undef PNR_FLAG_BIT
#define PNR_FLAG_VALUE(name, word) PNR_FLAG_##name = 1 << PNR_FLAG_BIT_##name,
    PNR_FLAGS(PNR_FLAG_VALUE)
#undef PNR_FLAG_VALUE
};

/* One dwell as published: the range message. PARTIAL: fewer periods than configured were used. */
typedef struct pnr_report {
    char run[17];                /* 16 hex digits */
    char stream[PNR_TEXT_LEN];
    char engine[48];             /* "cuda/library" */
    uint64_t seq;                /* counts per topic */
    uint64_t sample;             /* first sample of the dwell */
    bool has_time;
    int64_t time_ns;             /* UTC of that sample */
    pnr_time_source time_source; /* "none", "file", "host" */
    uint32_t periods;            /* windows used */
    uint64_t lost, lost_before;
    unsigned flags;
    double latency_us; /* last sample in the ring -> message handed over */
    double pfa_cell;
    uint32_t cells_above; /* cells above the threshold, before max_echoes */
    pnr_detection detection;
} pnr_report;

enum { PNR_MESSAGE_MAX = 65536 }; /* bytes of the longest JSON text: max_echoes echoes */

/* All writers: JSON text without NUL-termination problems, no NaN ever (null instead), 64-bit integers as strings, "C" locale
 * numbers with 12 significant digits. Return the length, or 0 when capacity is too small. Never allocate. */
size_t pnr_message_write_range(const pnr_report *report, char *text, size_t capacity);

/* packed results: header JSON (dtype, count, first seq, run, stream, ...) and an array of these records, one per echo slot. */
typedef struct pnr_record {
    uint64_t seq, sample;
    int64_t time_ns;    /* INT64_MIN: unknown */
    uint32_t lost, lost_before;
    uint16_t flags, periods;
    uint16_t n_echoes;  /* of the dwell; records of one dwell follow each other; 0: one record, NaN values */
    uint16_t echo;      /* 0 .. n_echoes-1 */
    uint32_t cells_above;
    uint16_t code, channel;
    double delay_s, delay_sigma_s;
    float snr_db, amplitude, phase_rad, noise_db, latency_us, pfa_cell;
} pnr_record;
/* The numpy dtype of pnr_record as JSON: [["seq","<u8"],...]: made from one list with the struct. */
extern const char pnr_record_dtype[];
void pnr_message_fill_record(const pnr_report *report, size_t echo, pnr_record *out);
size_t pnr_message_write_pack(const pnr_report *first, size_t n_results, size_t n_records,
                              char *text, size_t capacity);

typedef struct pnr_status {
    char run[17];
    char stream[PNR_TEXT_LEN];
    char engine[48];
    uint64_t seq;
    double elapsed_s;
    pnr_account account;
    double latency_p50_us, latency_p99_us, latency_p999_us, latency_max_us;
    size_t subscribers;
    const char *reason; /* end: "end of input", "stopped by signal", an error's text; NULL in status */
    int exit_status;    /* end only */
    const pnr_radar *radar;
    const pnr_config *config; /* the radar's configuration */
} pnr_status;
size_t pnr_message_write_status(const pnr_status *status, char *text, size_t capacity);

/* --- the reader (listener, tests): strict, never trusts --- */
typedef struct pnr_end_summary {
    char run[17];
    char reason[160];
    pnr_account account;
    int exit_status;
} pnr_end_summary;
/* PNR_OK, or PNR_EDATA with what is wrong. Allocates inside. detection.n_echoes <= PNR_MAX_CANDIDATES. */
int pnr_message_read_range(const char *text, size_t length, pnr_report *out, pnr_error *error);
int pnr_message_read_end(const char *text, size_t length, pnr_end_summary *out, pnr_error *error);
/* n_results dwells come out one by one: *offset (bytes) starts at 0 and advances; PNR_EEND after the last. */
int pnr_message_read_pack(const char *header, size_t length, const void *records, size_t bytes,
                          size_t *offset, pnr_report *out, pnr_error *error);

#endif
