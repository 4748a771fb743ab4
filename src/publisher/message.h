/* SPDX-License-Identifier: MIT */
/* The wire format: messages as JSON, and packed records. The writers allocate nothing. The readers
 * check every value. */
#ifndef PNR_MESSAGE_H
#define PNR_MESSAGE_H

#include "base/account.h"
#include "base/error.h"
#include "base/event.h"
#include "base/stats.h"
#include "config/config.h"
#include "detector/detector.h"
#include "detector/zero.h"
#include "engine/block.h"
#include "engine/devices.h"
#include "setup/radar.h"
#include "source/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flags of a dwell, as words on the wire. PARTIAL: fewer periods than configured were used. LATE:
 * latency_us is beyond the deadline. ZERO_ALARM: the direct path has moved by more than
 * radar.zero_alarm_m. COLOURED: the noise of the cells differs by 0.5 dB or more from the noise
 * that the energy of the samples predicts. UNRESOLVED: the residual of an echo's fit is above the
 * noise, and the sigmas of the echo are increased. SLIP: samples are missing and no loss was
 * reported (slip.h). SIGN_CHANGE: the data of the transmitter change the sign of an echo within the
 * look. HUGE_SAMPLES: the samples are larger than those of any receiver and hide all echoes.
 * COARSE: the time limit of a live stream ended the search before it found weaker echoes.
 * RESTARTED: the first result of a new worker. */
#define PNR_FLAGS(X)                                                                               \
    X(LOST, "lost")                                                                                \
    X(NONFINITE, "non-finite")                                                                     \
    X(CLIPPED, "clipped")                                                                          \
    X(PARTIAL, "partial")                                                                          \
    X(MORE_ECHOES, "more-echoes")                                                                  \
    X(LATE, "late")                                                                                \
    X(ZERO_ALARM, "zero-alarm")                                                                    \
    X(COLOURED, "coloured-noise")                                                                  \
    X(UNRESOLVED, "unresolved")                                                                    \
    X(SLIP, "slip")                                                                                \
    X(SIGN_CHANGE, "sign-change")                                                                  \
    X(HUGE_SAMPLES, "huge-samples") X(COARSE, "coarse") X(RESTARTED, "restarted")
enum {
#define PNR_FLAG_BIT(name, word) PNR_FLAG_BIT_##name,
    PNR_FLAGS(PNR_FLAG_BIT)
#undef PNR_FLAG_BIT
        PNR_N_FLAGS,
#define PNR_FLAG_VALUE(name, word) PNR_FLAG_##name = 1 << PNR_FLAG_BIT_##name,
    PNR_FLAGS(PNR_FLAG_VALUE)
#undef PNR_FLAG_VALUE
};

extern const char *const pnr_flag_words[PNR_N_FLAGS]; /* indexed by flag bit */

/* The origin of a time, as words on the wire. */
#define PNR_TIME_SOURCES(X) X(NONE, "none") X(FILE, "file") X(HOST, "host") X(SOURCE, "source")
enum { PNR_N_TIME_SOURCES = 4 };
extern const char *const pnr_time_source_words[PNR_N_TIME_SOURCES]; /* indexed by pnr_time_source */

/* One dwell as it is published: the range message. */
typedef struct pnr_report {
    char run[17]; /* identity of the run, 16 hex digits */
    char stream[PNR_TEXT_LEN];
    char engine[48]; /* such as "cuda/library" */
    uint64_t seq;    /* number of the message in its topic */
    uint64_t sample; /* first sample of the dwell */
    bool has_time;
    int64_t time_ns; /* UTC of the first sample */
    pnr_time_source time_source;
    uint32_t periods; /* number of windows used */
    uint64_t lost, lost_before;
    uint32_t slip; /* number of missing samples if this dwell shows a slip (slip.h), else 0 */
    unsigned flags;
    double rate_hz;    /* samples a second */
    double latency_us; /* time from ready_ns to the message */
    double pfa_cell;
    uint32_t cells_above; /* cells above the threshold, before the limit max_echoes applies */
    pnr_zero zero;        /* sent only if the zero delay is tracked */
    /* Times of CLOCK_MONOTONIC, not on the wire. ready_ns: the ring had the last sample.
     * submitted_ns: the engine received the dwell. collected_ns: the engine finished the dwell. */
    uint64_t ready_ns, submitted_ns, collected_ns;
    bool is_live; /* true: the samples arrive in real time; not on the wire */
    pnr_detection detection;
} pnr_report;

enum { PNR_MESSAGE_MAX = 65536 }; /* bytes of the longest JSON text */
enum { PNR_CELLS_MAX = 1 << 28 }; /* bytes of the largest map that pnradar-listen receives */
/* Bytes of the largest pack: publisher.pack = 4096 results with PNR_MAX_CANDIDATES echoes each. */
enum { PNR_PACK_MAX = 1 << 26 };

/* All writers write NUL-terminated JSON. NaN and infinities are null. Numbers have 12 significant
 * digits, in any locale. The counts of the account and the sample index are strings. The writers
 * return the length, or 0 if `capacity` is too small. They never allocate. */
size_t pnr_message_write_range(const pnr_report *report, char *text, size_t capacity);

/* The cells of a profile. Cell g, at lag g / oversample, is a little-endian float32 power, or two
 * such floats for I and Q. The gate is n_gate cells from first_cell on, modulo n_cells. */
typedef struct pnr_profile_info {
    bool is_complex;
    size_t n_cells, oversample;
    size_t first_cell, n_gate;
    double delay_s;           /* delay of first_cell */
    double step_s;            /* delay from one cell to the next */
    double metres_per_second; /* range for a delay of 1 s */
    uint64_t dwell_samples;   /* samples from the beginning of a dwell to the next one */
    char code[96];            /* name of the code; "": several codes, or not known */
    double floor, threshold;  /* floor: mean power of the noise; threshold: smallest power of an
                               * echo; NAN: not known */
} pnr_profile_info;

/* Consecutive rows of a map at equal steps of Doppler. */
typedef struct pnr_doppler_run {
    double first_hz, step_hz; /* step_hz: above 0 if there is more than one row */
    size_t n_rows;
} pnr_doppler_run;

enum { PNR_MAX_DOPPLER_RUNS = 512 };

/* The cells of a map, [n_codes][n_rows][row.n_cells]. Each row is a profile; Doppler rises from row
 * to row. All rows have the same floor and threshold. */
typedef struct pnr_map_info {
    pnr_profile_info row;
    size_t n_codes, n_rows;
    const char *const *code_names;              /* [n_codes]; NULL: not known */
    double mps_per_hz;                          /* m/s at a Doppler of 1 Hz; NAN: no carrier */
    size_t n_runs;                              /* 1 .. PNR_MAX_DOPPLER_RUNS */
    pnr_doppler_run runs[PNR_MAX_DOPPLER_RUNS]; /* [n_runs]: all rows, in rising order of Doppler */
} pnr_map_info;

size_t pnr_map_bytes(const pnr_map_info *info); /* size of all cells */
/* Returns the Doppler of a row in Hz; row < n_rows. */
double pnr_map_doppler_hz(const pnr_map_info *info, size_t row);
/* True if the map has one row of one code. Such a map is sent as a profile, without runs and
 * mps_per_hz. */
bool pnr_map_is_profile(const pnr_map_info *info);
/* Writes the header of a profile or map. The cells are the next part of the message. seq: the
 * number of the message in its topic. */
size_t pnr_message_write_cells(const pnr_report *report, uint64_t seq, const pnr_map_info *info,
                               char *text, size_t capacity);

/*
 * Packed results: a JSON header (dtype, counts, first seq, run, stream, ...) and an array of
 * records, one for each echo. A field is X(C type, numpy type, name). The widest fields come first,
 * so that the struct has no padding. FIRST replaces X for the first field.
 *   time_ns   INT64_MIN: unknown
 *   flags     PNR_FLAG_... bits
 *   code      number of the code, from 1; 0: no echo
 *   zero_...  as in pnr_zero; zero_delay_s is NaN if the zero delay is not tracked
 *   n_echoes  number of echoes in the dwell. Their records are consecutive. A dwell without an echo
 *             has one record, with NaN for the values of an echo
 *   echo      0 .. n_echoes - 1
 */
#define PNR_RECORD_FIELDS(FIRST, X)                                                                \
    FIRST(uint64_t, "<u8", seq)                                                                    \
    X(uint64_t, "<u8", sample)                                                                     \
    X(int64_t, "<i8", time_ns)                                                                     \
    X(uint64_t, "<u8", lost)                                                                       \
    X(uint64_t, "<u8", lost_before)                                                                \
    PNR_ECHO_FIELDS(PNR_NO_MEMBER, PNR_NO_MEMBER, PNR_WIDE_MEMBER, PNR_NO_MEMBER, X)               \
    PNR_ZERO_FIELDS(PNR_WIDE_ZERO, PNR_NO_MEMBER, PNR_NO_MEMBER, X)                                \
    PNR_ECHO_FIELDS(PNR_NO_MEMBER, PNR_NO_MEMBER, PNR_NO_MEMBER, PNR_NARROW_MEMBER, X)             \
    PNR_ZERO_FIELDS(PNR_NO_MEMBER, PNR_NARROW_ZERO, PNR_NO_MEMBER, X)                              \
    X(float, "<f4", noise_db)                                                                      \
    X(float, "<f4", latency_us)                                                                    \
    X(uint32_t, "<u4", periods)                                                                    \
    X(uint32_t, "<u4", cells_above)                                                                \
    X(uint32_t, "<u4", flags)                                                                      \
    X(uint32_t, "<u4", slip)                                                                       \
    PNR_ECHO_FIELDS(PNR_COUNT_MEMBER, PNR_COUNT_MEMBER, PNR_NO_MEMBER, PNR_NO_MEMBER, X)           \
    X(uint32_t, "<u4", n_echoes)                                                                   \
    X(uint32_t, "<u4", echo)                                                                       \
    X(pnr_code_label, "|S16", code_name)
#define PNR_COUNT_MEMBER(X, name) X(uint32_t, "<u4", name)
#define PNR_WIDE_MEMBER(X, name) X(double, "<f8", name)
#define PNR_NARROW_MEMBER(X, name) X(float, "<f4", name)
#define PNR_WIDE_ZERO(X, name) X(double, "<f8", zero_##name)
#define PNR_NARROW_ZERO(X, name) X(float, "<f4", zero_##name)
#define PNR_NO_MEMBER(X, name)
typedef struct pnr_record {
#define PNR_RECORD_MEMBER(type, numpy, name) type name;
    PNR_RECORD_FIELDS(PNR_RECORD_MEMBER, PNR_RECORD_MEMBER)
#undef PNR_RECORD_MEMBER
} pnr_record;
_Static_assert(4096 * PNR_MAX_CANDIDATES * sizeof(pnr_record) <= PNR_PACK_MAX, "a pack fits");
/* The numpy dtype of pnr_record as JSON, [["seq","<u8"],...], made from PNR_RECORD_FIELDS. */
extern const char pnr_record_dtype[];
void pnr_message_fill_record(const pnr_report *report, size_t echo, pnr_record *out);
size_t pnr_message_write_pack(const pnr_report *first, size_t n_results, size_t n_records,
                              char *text, size_t capacity);

/* The outcome of each key of [realtime]. If the configuration asks for nothing: "no", "any" or
 * "none". If the system grants the request: "yes" or the number. If the system refuses the request:
 * "refused: " and the reason. */
enum { PNR_REALTIME_LEN = 160 };
typedef struct pnr_realtime_outcome {
    char lock_memory[PNR_REALTIME_LEN];
    char acquisition_cpu[PNR_REALTIME_LEN];
    char processing_cpu[PNR_REALTIME_LEN];
    char priority[PNR_REALTIME_LEN];
} pnr_realtime_outcome;

typedef struct pnr_status {
    char run[17];
    char stream[PNR_TEXT_LEN];
    char engine[48];
    uint64_t seq;
    double elapsed_s;
    pnr_account account;
    double latency_p50_us, latency_p99_us, latency_p999_us, latency_max_us;
    double deadline_s; /* 0: no deadline */
    double ring_fill;  /* largest filled fraction of the ring since the last status, 0 .. 1 */
    size_t subscribers;
    const char *access; /* the peers that may subscribe: "nobody", "local", "keys" or "everyone" */
    const char *reason; /* end: "end of input", "stopped" or the text of an error; status: NULL */
    int exit_status;    /* valid in an end message only */
    const pnr_radar *radar;
    const pnr_config *config;
    const pnr_realtime_outcome *realtime;
    const pnr_source_info *source; /* NULL: the caller of libpnradar pushes the samples */
    uint64_t source_refused;       /* messages that the source has refused so far */
    uint64_t source_dropped;       /* datagrams that the kernel has dropped so far */
    const pnr_zero_tracker *zero;  /* NULL: the zero delay is not tracked */
    uint64_t slips;                /* slips so far (slip.h) */
    const pnr_events *events;      /* source of the counts of events; NULL: all 0 */
    pnr_device_state devices;      /* devices in use and lost devices */
    bool has_worker;               /* the engine runs in a worker; else the next two members are
                                    * unused */
    uint64_t worker_deaths;        /* deaths of workers so far */
    bool is_degraded;              /* the engine cpu replaces the wanted engine */
} pnr_status;
size_t pnr_message_write_status(const pnr_status *status, char *text, size_t capacity);
/* seq: the number of the message in its topic. */
size_t pnr_message_write_event(const char *run, const char *stream, uint64_t seq,
                               const pnr_event *event, char *text, size_t capacity);

/* --- the reader (listener, tests) --- */

/* The reader ignores keys that this version does not know. It refuses a known key that is missing,
 * has the wrong type or is out of range. It also refuses a text longer than PNR_MESSAGE_MAX. The
 * functions allocate memory. They return PNR_OK, or PNR_EDATA and the reason. */
typedef struct pnr_radar_summary {
    char code_type[32]; /* "": the message has no radar */
    uint64_t n_chips;
    double period_s;
} pnr_radar_summary;
typedef struct pnr_end_summary {
    char run[17];
    char stream[PNR_TEXT_LEN];
    char reason[160]; /* "" in a status; a longer reason is cut */
    pnr_account account;
    double deadline_s; /* NAN: no deadline */
    double ring_fill;  /* 0 .. 1 */
    pnr_radar_summary radar;
    int exit_status; /* 0 in a status */
} pnr_end_summary;
/* An event that was received. Its kind can be unknown to this version. */
typedef struct pnr_event_summary {
    char run[17];
    char stream[PNR_TEXT_LEN];
    uint64_t seq;
    char kind[32];
    int64_t utc_ns;
    uint64_t sample; /* PNR_EVENT_NO_SAMPLE: none */
    uint64_t count;
    char text[3 * PNR_EVENT_TEXT_LEN]; /* a byte that is not UTF-8 is sent as three bytes */
} pnr_event_summary;
/* Each function reads one kind of message and at most PNR_MAX_CANDIDATES echoes. The wire has no
 * lag and no snr of an echo: the functions set them to NAN. A pack also has no zero.moved_s. */
int pnr_message_read_range(const char *text, size_t length, pnr_report *out, pnr_error *error);
int pnr_message_read_status(const char *text, size_t length, pnr_end_summary *out,
                            pnr_error *error);
int pnr_message_read_end(const char *text, size_t length, pnr_end_summary *out, pnr_error *error);
int pnr_message_read_event(const char *text, size_t length, pnr_event_summary *out,
                           pnr_error *error);
/* Reads the header of a profile or a map. bytes: the size of the cells in the message. Sets run,
 * stream, seq, sample, time, rate_hz and engine of the report, and all other members to 0. */
int pnr_message_read_profile(const char *text, size_t length, size_t bytes, pnr_report *report,
                             pnr_profile_info *info, pnr_error *error);
int pnr_message_read_map(const char *text, size_t length, size_t bytes, pnr_report *report,
                         pnr_map_info *info, pnr_error *error);
/* The state of the reader of a pack. Its members are private. */
typedef struct pnr_pack {
    pnr_report head;     /* the values that all dwells share */
    const void *records; /* borrowed */
    size_t n_records, at;
} pnr_pack;
/* Reads the header and checks all records. bytes: the size of all records. */
int pnr_message_open_pack(const char *header, size_t length, const void *records, size_t bytes,
                          pnr_pack *out, pnr_error *error);
/* Reads the next dwell. False: all dwells have been read. Allocates nothing. */
bool pnr_message_next_dwell(pnr_pack *pack, pnr_report *out);

#endif
