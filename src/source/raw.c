/* SPDX-License-Identifier: MIT */
/* Reads raw samples from files, stdin and FIFOs into the memory of the caller. Several threads read
 * a file. */
#include "source/kind.h"
#include "source/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 50, MAX_CHANNELS = 4096, MAX_READ_BYTES = 1 << 30 };

typedef struct raw {
    const pnr_source_input *input;
    pnr_source_info *info;
    size_t sample_bytes; /* bytes of one sample of all channels in the input */
    bool is_packed;      /* ci4: a byte of the input becomes two bytes in memory */
    uint64_t n_left;     /* samples not read yet; UINT64_MAX for a pipe */
    uint64_t n_read;     /* samples read so far */
    pnr_reader *reader;  /* NULL for a pipe */
    bool ended;
    unsigned char head[PNR_CONTAINER_BYTES]; /* the first bytes of a pipe */
    size_t n_head;
    size_t n_carry;        /* bytes in `carry` */
    unsigned char carry[]; /* [sample_bytes] an incomplete sample */
} raw;

/* Waits at most PATIENCE_MS. True if read() then returns at once: there are bytes, the pipe has
 * ended, or there is an error. */
static bool is_ready(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};

    return poll(&wanted, 1, PATIENCE_MS) > 0;
}

/* Reads the first bytes of a pipe, to find out whether the pipe carries a container. Called only if
 * source.format is not set, because no later read returns these bytes. */
static size_t read_head(const pnr_source_input *input, unsigned char *head, size_t n_bytes)
{
    size_t n = 0;

    while (n < n_bytes && is_ready(input->fd)) {
        ssize_t got = read(input->fd, head + n, n_bytes - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

/* Refuses an input that begins like a container, because the bytes of its header are no samples. */
static int refuse_container(const pnr_source_input *input, const void *head, size_t n_head,
                            pnr_error *error)
{
    pnr_container found;

    if (!pnr_container_find(head, n_head, &found))
        return PNR_OK;
    return pnr_refuse(error, "%.200s carries %s, not raw samples: %s", input->name, found.name,
                      found.way_out);
}

/* Adds bytes of a pipe to r->head, and refuses a container. */
static int check_head(raw *r, const unsigned char *bytes, size_t n, pnr_error *error)
{
    const size_t room = sizeof r->head - r->n_head;

    if (room == 0 || r->input->is_regular)
        return PNR_OK;
    if (n > room)
        n = room;
    memcpy(r->head + r->n_head, bytes, n);
    r->n_head += n;
    return refuse_container(r->input, r->head, r->n_head, error);
}

static int refuse_unknown_format(const pnr_source_input *input, pnr_error *error)
{
    const char *dot = strrchr(input->name, '.');
    const bool is_configuration = dot != NULL && strcmp(dot, ".conf") == 0;
    unsigned char head[PNR_CONTAINER_BYTES];

    if (input->is_stdin && !input->is_regular) {
        const int rc = refuse_container(input, head, read_head(input, head, sizeof head), error);

        if (rc != PNR_OK)
            return rc;
    }
    return pnr_refuse(
        error,
        "%.200s: the format of its samples is not known%s: set source.format to one of: %s%s",
        input->name, input->is_stdin ? "" : " from its extension", pnr_format_names(),
        is_configuration ? "; -c reads a configuration" : "");
}

int pnr_source_raw_begin(const pnr_source_input *input, pnr_format format, size_t n_channels,
                         pnr_source_info *info, void **state, pnr_error *error)
{
    const pnr_format_info *words = pnr_format_get(format);
    const size_t sample_bytes = words->bytes * n_channels;

    info->format = pnr_format_in_memory(format);
    info->n_channels = n_channels;
    info->n_samples = UINT64_MAX;
    if (input->is_regular) {
        info->n_samples = input->n_bytes / sample_bytes;
        info->n_trailing_bytes = input->n_bytes % sample_bytes;
        if (info->n_samples == 0)
            return pnr_error_set(error, PNR_EDATA,
                                 "%s: no samples: the file has %" PRIu64
                                 " bytes, one %s sample of %zu %s has %zu",
                                 input->name, input->n_bytes, words->name, n_channels,
                                 n_channels == 1 ? "channel" : "channels", sample_bytes);
    }
    snprintf(info->text, sizeof info->text, "raw %s, %zu %s", words->name, n_channels,
             n_channels == 1 ? "channel" : "channels");

    raw *r = calloc(1, sizeof *r + sample_bytes);
    if (!r)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a raw source");
    *r = (raw){.input = input,
               .info = info,
               .sample_bytes = sample_bytes,
               .is_packed = format == PNR_FORMAT_CI4,
               .n_left = info->n_samples};
    *state = r;
    if (!input->is_regular)
        return PNR_OK;
    if (pnr_reader_create(0, &r->reader) != PNR_OK)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a raw source");
    info->read_bytes = pnr_reader_best_bytes(r->reader);
    return PNR_OK;
}

/* Unpacks the first n bytes from ci4 to ci8 in place. This is the function `convert` of a
 * pnr_reader_part. The ci8 integers are 16 times the ci4 integers. Begins with the last byte, so
 * that no packed byte is overwritten. */
static void unpack_nibbles(const void *context, void *data, size_t n)
{
    unsigned char *bytes = data;

    (void)context;
    while (n-- > 0) {
        const unsigned char both = bytes[n];

        bytes[2 * n] = both & 0xf0;
        bytes[2 * n + 1] = (unsigned char)(both << 4);
    }
}

static int raw_describe(pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                        void **state, pnr_error *error)
{
    const size_t n_channels = config->source.channels > 0 ? config->source.channels : 1;
    const pnr_format format = pnr_source_named_format(input, config);
    const int rc = refuse_container(input, input->head, input->n_head, error);

    if (rc != PNR_OK)
        return rc;
    if (format == PNR_FORMAT_NONE)
        return refuse_unknown_format(input, error);
    if (n_channels > MAX_CHANNELS)
        return pnr_refuse(error, "source.channels is %zu, at most %d are read", n_channels,
                          MAX_CHANNELS);
    return pnr_source_raw_begin(input, format, n_channels, info, state, error);
}

/* Handles the end of the input. Returns an error if a file has become shorter since it was
 * opened. */
static int finish_input(raw *r, pnr_error *error)
{
    r->ended = true;
    if (r->input->is_regular && r->n_left > 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%s: cut short while it was read: %" PRIu64
                             " samples arrived, %" PRIu64 " more were there at the start",
                             r->input->name, r->n_read, r->n_left);
    if (!r->input->is_regular)
        r->info->n_trailing_bytes = r->n_carry;
    if (r->n_read == 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%s: no samples: %zu bytes arrived, one sample has %zu",
                             r->input->name, r->n_carry, r->sample_bytes);
    return PNR_EEND;
}

static void count_samples(raw *r, size_t n)
{
    r->n_read += n;
    if (r->n_left != UINT64_MAX)
        r->n_left -= n;
}

static int refuse_unread(const raw *r, int number, pnr_error *error)
{
    return pnr_error_set(error, PNR_EIO, "%s: after %" PRIu64 " samples: %s", r->input->name,
                         r->n_read, strerror(number));
}

/* Reads up to `limit` samples of a pipe or a socket. */
static int read_pipe(raw *r, unsigned char *bytes, size_t limit, pnr_source_block *block,
                     pnr_error *error)
{
    int rc;

    if (!is_ready(r->input->fd))
        return PNR_EAGAIN;

    ssize_t got = read(r->input->fd, bytes + r->n_carry, limit * r->sample_bytes - r->n_carry);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return PNR_EAGAIN;
    if (got < 0)
        return refuse_unread(r, errno, error);
    if (got == 0)
        return finish_input(r, error);
    if ((rc = check_head(r, bytes + r->n_carry, (size_t)got, error)) != PNR_OK)
        return rc;
    memcpy(bytes, r->carry, r->n_carry);

    const size_t n_bytes = r->n_carry + (size_t)got, n = n_bytes / r->sample_bytes;

    r->n_carry = n_bytes % r->sample_bytes;
    memcpy(r->carry, bytes + n * r->sample_bytes, r->n_carry);
    if (r->is_packed)
        unpack_nibbles(NULL, bytes, n * r->sample_bytes);
    count_samples(r, n);
    block->n_samples = n;
    return n > 0 ? PNR_OK : PNR_EAGAIN; /* PNR_EAGAIN: only a part of one sample */
}

static int read_file(raw *r, void *data, size_t limit, pnr_source_block *block, pnr_error *error)
{
    const pnr_reader_part part = {
        .fd = r->input->fd,
        .first_byte = r->input->first_byte + r->n_read * r->sample_bytes,
        .n_bytes = limit * r->sample_bytes,
        .growth = r->is_packed ? 2 : 1,
        .data = data,
        .convert = r->is_packed ? unpack_nibbles : NULL,
    };
    const ssize_t got = pnr_reader_read(r->reader, &part);

    if (got < 0)
        return refuse_unread(r, (int)-got, error);
    block->n_samples = (size_t)got / r->sample_bytes;
    if (block->n_samples == 0)
        return finish_input(r, error);
    count_samples(r, block->n_samples);
    return PNR_OK;
}

static int raw_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                    pnr_error *error)
{
    raw *r = state;
    size_t limit = MAX_READ_BYTES / r->sample_bytes;

    if (r->ended)
        return PNR_EEND;
    if (r->n_left == 0)
        return finish_input(r, error);
    if (max_samples < limit)
        limit = max_samples;
    if (r->n_left < limit)
        limit = (size_t)r->n_left;
    return r->reader != NULL ? read_file(r, data, limit, block, error)
                             : read_pipe(r, data, limit, block, error);
}

static int raw_seek(void *state, uint64_t position, pnr_error *error)
{
    raw *r = state;

    (void)error;
    r->n_read = position;
    r->n_left -= position;
    return PNR_OK;
}

static void raw_close(void *state)
{
    raw *r = state;

    pnr_reader_destroy(r->reader);
    free(r);
}

const pnr_source_kind pnr_source_raw = {
    .describe = raw_describe, .seek = raw_seek, .read = raw_read, .close = raw_close};
