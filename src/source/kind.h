/* SPDX-License-Identifier: MIT */
/* The table of operations of one kind of source. */
#ifndef PNR_SOURCE_KIND_H
#define PNR_SOURCE_KIND_H

#include "base/event.h"
#include "source/container.h"
#include "source/source.h"

#include <stdatomic.h>
#include <stdbool.h>

/* An input. source.c owns fd and name. Both exist until the state of the kind is closed. */
typedef struct pnr_source_input {
    const char *name; /* the path, "stdin", or an address with its prefix */
    int fd;           /* -1 for an address, until the kind opens a socket */
    bool is_address;
    bool is_stdin;
    bool is_regular;
    bool is_folder;      /* the input is a folder, and fd is open on it */
    uint64_t first_byte; /* of a regular file: the file offset at the time of opening */
    uint64_t n_bytes;    /* of a regular file: number of bytes from first_byte to the end */
    unsigned char head[PNR_CONTAINER_BYTES]; /* the first bytes of the input */
    size_t n_head;                           /* bytes in `head`; 0 for pipes */
    _Atomic uint64_t n_refused;              /* refused messages, see pnr_source_refuse */
    _Atomic uint64_t n_dropped;              /* datagrams that the kernel dropped */
    uint64_t refused_log_ns; /* CLOCK_MONOTONIC when a refused message was last logged; 0: never */
    pnr_events *events;      /* queue for the events of a kind; NULL: events are not wanted */
} pnr_source_input;

typedef struct pnr_source_kind {
    const char *title;  /* name of the kind for messages, for example "a sound file"; NULL: rate and
                         * format of the kind are not compared with the configuration */
    const char *prefix; /* prefix of an address, for example "rtl_tcp:"; NULL: the kind reads files
                         * and pipes */
    /* If the kind needs an optional library: the name of the module source-<name>.so that has the
     * operations below. NULL: the operations are in this table. */
    const char *module;
    const char *package; /* the Debian package that is needed to build the module */
    bool transmits;      /* the kind also transmits if the key transmit.output is set */
    /* True if this kind reads this file, folder or pipe. NULL: it reads all files and pipes. */
    bool (*is_for)(const pnr_source_input *input, const pnr_config *config);
    /* Creates *state. Fills these fields of *info: format, n_channels, n_samples and n_lost (of the
     * file, without source.lost), rate_hz, has_start and start_utc_ns, n_trailing_bytes,
     * loss_visibility, is_live, read_bytes, and `text` without the number of samples. Reads no
     * samples. *info keeps its address until close. `open` can still set loss_visibility, and
     * `read` can still set n_trailing_bytes. After an error *state is NULL, or a state that the
     * caller closes. */
    int (*describe)(pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                    void **state, pnr_error *error);
    /* Begins the stream of *state. NULL: there is nothing to do. */
    int (*open)(void *state, pnr_error *error);
    /* Moves to this position of a recording. The position is at most n_samples, and does not count
     * the samples of source.lost. Called after open and before the first read. NULL: the kind
     * begins at position 0 only. */
    int (*seek)(void *state, uint64_t position, pnr_error *error);
    /* Reads as pnr_source_read does, but without the gaps of source.lost. The caller has zeroed
     * *block. After the end it always returns PNR_EEND. */
    int (*read)(void *state, void *data, size_t max_samples, pnr_source_block *block,
                pnr_error *error);
    void (*close)(void *state);
} pnr_source_kind;

/* A module, source-<name>.so, exports a pnr_source_module with the name PNR_SOURCE_SYMBOL.
 * PNR_SOURCE_ABI is the version of this interface. It contains the size of pnr_config, because
 * `describe` reads the configuration. */
#define PNR_SOURCE_SYMBOL "pnr_source_of_module"
#define PNR_SOURCE_ABI (2 << 20 | (int)sizeof(pnr_config))
typedef struct pnr_source_module {
    int abi; /* interface number, PNR_SOURCE_ABI */
    const pnr_source_kind *kind;
} pnr_source_module;
/* Defines the exported struct of a module for this kind. */
#define PNR_SOURCE_EXPORT __attribute__((visibility("default")))
#define PNR_SOURCE_MODULE(kind_)                                                                   \
    PNR_SOURCE_EXPORT extern const pnr_source_module pnr_source_of_module;                         \
    const pnr_source_module pnr_source_of_module = {.abi = PNR_SOURCE_ABI, .kind = &(kind_)}

extern const pnr_source_kind pnr_source_raw;      /* reads any bytes; tried last */
extern const pnr_source_kind pnr_source_rtl_tcp;  /* rtl_tcp:HOST:PORT */
extern const pnr_source_kind pnr_source_zmq_sub;  /* zmq-sub:ENDPOINT: messages of GNU Radio */
extern const pnr_source_kind pnr_source_zmq_pull; /* zmq-pull:ENDPOINT: messages of GNU Radio */
extern const pnr_source_kind pnr_source_udp;      /* udp:HOST:PORT: datagrams with a count */
extern const pnr_source_kind pnr_source_vrt;      /* vrt:HOST:PORT: VITA-49 */
extern const pnr_source_kind pnr_source_sigmf;
extern const pnr_source_kind pnr_source_sound; /* regular files: WAV, RF64, W64, AIFF, AU, FLAC */

/* Describes raw samples of this format, and creates a state of pnr_source_raw that reads input->fd.
 * Errors: those of `describe`. */
int pnr_source_raw_begin(const pnr_source_input *input, pnr_format format, size_t n_channels,
                         pnr_source_info *info, void **state, pnr_error *error);

/* Counts a refused message. Logs the reason, at most once a second. */
void pnr_source_refuse(pnr_source_input *input, const char *reason);

/* Returns source.format if it is set, else the format of the extension; PNR_FORMAT_NONE if both are
 * unknown. */
pnr_format pnr_source_named_format(const pnr_source_input *input, const pnr_config *config);

enum { PNR_CHANNELS_LEN = 80 };
/* Writes in words how the n channels of a sound file or sound card are used. For n = 2: "2 channels
 * as I and Q" if is_complex, else "2 channels of real samples". Returns out. */
char *pnr_source_channels_text(size_t n, bool is_complex, char out[PNR_CHANNELS_LEN]);

#endif
