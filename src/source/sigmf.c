/* SPDX-License-Identifier: MIT */
/* Reads SigMF recordings: metadata and data in two files, or both in a tar archive. */
#include "source/file_hash.h"
#include "source/kind.h"
#include "source/reader.h"
#include "source/sigmf_meta.h"
#include "source/tar.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const meta_end = ".sigmf-meta", *const data_end = ".sigmf-data",
                         *const archive_end = ".sigmf", *const collection_end = ".sigmf-collection";

static const uint64_t patience_ns = 50 * 1000 * 1000, tell_after_ns = PNR_NS_PER_S;

/* A part of an open file. */
typedef struct part {
    int fd; /* -1: not open */
    uint64_t first_byte, n_bytes;
} part;

typedef struct sigmf {
    const char *name; /* path of the input, or of the metadata of a recording in a collection */
    char *named;      /* memory of `name` if the input is a collection; else NULL */
    part meta_part, data;
    bool is_archive; /* both parts use the file descriptor of the input */
    pnr_sigmf_meta meta;
    char meta_hash[PNR_SIGMF_HASH_LEN]; /* hash of the metadata, as the collection states it; "":
                                         * none */
    pnr_file_hash *hash;                /* hash of the data; NULL: the data are not hashed */
    uint64_t waited_ns;  /* time when the wait for the hash began; 0: it has not begun */
    bool is_told;        /* the log has the message about this wait */
    size_t sample_bytes; /* bytes of a sample of all channels */
    uint64_t n_samples;  /* number of samples in the data file */
    uint64_t at;         /* index of the next sample in the data file */
    uint64_t at_byte;    /* offset of the next sample in the open file */
    size_t next;         /* index of the next capture */
    pnr_reader *reader;
    uint64_t gap; /* number of lost samples that the next read reports as a gap */
} sigmf;

static bool has_end(const char *path, const char *end)
{
    const size_t length = strlen(path), n = strlen(end);

    return length > n && strcasecmp(path + length - n, end) == 0;
}

static bool is_sigmf(const pnr_source_input *input, const pnr_config *config)
{
    (void)config;
    return input->is_regular && !input->is_stdin &&
           (has_end(input->name, meta_end) || has_end(input->name, data_end) ||
            has_end(input->name, archive_end) || has_end(input->name, collection_end));
}

static int open_part(const char *path, const char *what, part *out, pnr_error *error)
{
    struct stat status;

    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (out->fd < 0)
        return pnr_error_set(error, errno == EACCES ? PNR_EPERMISSION : PNR_ENOINPUT,
                             "%.200s: the %s of the SigMF recording: %s", path, what,
                             strerror(errno));
    if (fstat(out->fd, &status) != 0 || !S_ISREG(status.st_mode))
        return pnr_error_set(error, PNR_ENOINPUT,
                             "%.200s: the %s of the SigMF recording is no file", path, what);
    out->n_bytes = (uint64_t)status.st_size;
    return PNR_OK;
}

/* Reads the text of a part. The caller frees *text, also after an error. */
static int read_text(const sigmf *s, const part *from, char **text, pnr_error *error)
{
    *text = NULL;
    if (from->n_bytes > PNR_SIGMF_META_BYTES)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: the metadata have %" PRIu64 " bytes, at most %d are read",
                             s->name, from->n_bytes, PNR_SIGMF_META_BYTES);
    *text = malloc((size_t)from->n_bytes + 1);
    if (*text == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for the metadata of %.200s", s->name);

    const ssize_t got = pread(from->fd, *text, (size_t)from->n_bytes, (off_t)from->first_byte);

    if (got < 0 || (uint64_t)got != from->n_bytes)
        return pnr_error_set(error, PNR_EIO, "%.200s: the metadata: %s", s->name,
                             got < 0 ? strerror(errno) : "cut short while they were read");
    return PNR_OK;
}

static int check_meta_hash(const sigmf *s, const char *text, size_t n_bytes, pnr_error *error)
{
    char found[PNR_HASH_LEN];

    if (s->meta_hash[0] == '\0' ||
        strcasecmp(s->meta_hash, pnr_hash_bytes(text, n_bytes, found)) == 0)
        return PNR_OK;
    return pnr_error_set(error, PNR_EDATA,
                         "%.200s: its hash is %.16s..., and the collection states %.16s...: it was "
                         "changed since; name the recording itself, or set source.sha512 = ignore",
                         s->name, found, s->meta_hash);
}

static int read_meta(sigmf *s, pnr_error *error)
{
    const part *from = &s->meta_part;
    pnr_error inner = {0};
    char *text;
    int code = read_text(s, from, &text, error);

    if (code == PNR_OK)
        code = check_meta_hash(s, text, (size_t)from->n_bytes, error);
    if (code == PNR_OK &&
        (code = pnr_sigmf_meta_read(text, (size_t)from->n_bytes, &s->meta, &inner)) != PNR_OK)
        pnr_error_set(error, code, "%.200s: %s", s->name, inner.text);
    free(text);
    return code;
}

/* Replaces the name of a collection by the path of the metadata of one of its recordings. */
static int find_in_collection(sigmf *s, const pnr_source_input *input, const pnr_config *config,
                              pnr_error *error)
{
    const part whole = {input->fd, 0, input->n_bytes};
    const char *slash = strrchr(s->name, '/');
    char name[PNR_SIGMF_NAME_LEN];
    pnr_error inner = {0};
    char *text;
    int code = read_text(s, &whole, &text, error);

    if (code == PNR_OK &&
        (code = pnr_sigmf_collection_find(text, (size_t)whole.n_bytes, config->source.recording,
                                          name, s->meta_hash, &inner)) != PNR_OK)
        pnr_error_set(error, code, "%.150s: %s", s->name, inner.text);
    free(text);
    if (code != PNR_OK)
        return code;

    const int folder_length = slash != NULL ? (int)(slash + 1 - s->name) : 0;

    if (asprintf(&s->named, "%.*s%s%s", folder_length, s->name, name, meta_end) < 0) {
        s->named = NULL;
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a SigMF source");
    }
    s->name = s->named;
    if (config->source.sha512 == PNR_SHA512_IGNORE)
        s->meta_hash[0] = '\0';
    return PNR_OK;
}

/* Opens and reads the metadata, then opens the data file. If the input is a data file, this file is
 * opened. Else core:dataset names the file. Without core:dataset, the file has the name of the
 * metadata with the extension .sigmf-data. */
static int open_files(sigmf *s, pnr_error *error)
{
    const size_t base = strlen(s->name) - strlen(meta_end); /* both extensions have the same
                                                             * length */
    const bool is_data = has_end(s->name, data_end);
    const char *slash = strrchr(s->name, '/');
    char *path = malloc(strlen(s->name) + PNR_SIGMF_NAME_LEN);
    int code;

    if (path == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a SigMF source");
    sprintf(path, "%.*s%s", (int)base, s->name, is_data ? meta_end : s->name + base);
    if ((code = open_part(path, "metadata", &s->meta_part, error)) == PNR_OK &&
        (code = read_meta(s, error)) == PNR_OK) {
        if (is_data || s->meta.dataset[0] == '\0')
            sprintf(path, "%.*s%s", (int)base, s->name, is_data ? s->name + base : data_end);
        else
            sprintf(path, "%.*s%s", slash != NULL ? (int)(slash + 1 - s->name) : 0, s->name,
                    s->meta.dataset);
        code = open_part(path, "data file", &s->data, error);
    }
    free(path);
    return code;
}

/* Finds the only recording of an archive, and reads its metadata. */
static int open_archive(sigmf *s, const pnr_source_input *input, pnr_error *error)
{
    pnr_tar_member member = {0};
    size_t n_meta = 0, n_data = 0;
    int code;

    s->is_archive = true;
    while ((code = pnr_tar_next(input->fd, input->n_bytes, &member, error)) == PNR_OK) {
        const part found = {input->fd, member.first_byte, member.n_bytes};

        if (has_end(member.name, meta_end) && n_meta++ == 0)
            s->meta_part = found;
        if (has_end(member.name, data_end) && n_data++ == 0)
            s->data = found;
    }
    if (code != PNR_EEND)
        return code;
    if (n_meta != 1 || n_data != 1)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: the archive has %zu files .sigmf-meta and %zu .sigmf-data: "
                             "one of each is read, extract the others",
                             s->name, n_meta, n_data);
    return read_meta(s, error);
}

/* Returns the number of samples that are lost immediately before capture i. */
static uint64_t gap_before(const pnr_sigmf_meta *meta, size_t i)
{
    const pnr_sigmf_capture *c = &meta->captures[i];

    if (i == 0 || !c->has_global_index || !c[-1].has_global_index)
        return 0;
    return c->global_index - c[-1].global_index - (c->first - c[-1].first);
}

static pnr_loss_visibility visibility_of(const pnr_sigmf_meta *meta)
{
    size_t n_counted = 0;

    for (size_t i = 0; i < meta->n_captures; i++)
        n_counted += meta->captures[i].has_global_index;
    if (n_counted == meta->n_captures && n_counted > 0)
        return PNR_LOSS_EXACT;
    return meta->n_captures > 1 ? PNR_LOSS_FLAG : PNR_LOSS_NONE;
}

/* Compares the metadata with the size of the data file. Sets s->n_samples. */
static int check_size(sigmf *s, pnr_source_info *info, pnr_error *error)
{
    const pnr_sigmf_meta *meta = &s->meta;
    uint64_t other_bytes = meta->trailing_bytes, left = 0;

    for (size_t i = 0; i < meta->n_captures && other_bytes <= s->data.n_bytes; i++)
        other_bytes += meta->captures[i].header_bytes;
    if (other_bytes <= s->data.n_bytes)
        left = s->data.n_bytes - other_bytes;
    s->n_samples = left / s->sample_bytes;
    info->n_trailing_bytes = left % s->sample_bytes;
    if (s->n_samples == 0)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: no samples: the data have %" PRIu64 " bytes, %" PRIu64
                             " of them headers, one %s sample of all channels has %zu",
                             s->name, s->data.n_bytes, other_bytes, meta->datatype,
                             s->sample_bytes);
    /* A recorder that was killed can leave a last capture without samples. So the last capture is
     * allowed to begin at the end of the data. */
    if (meta->n_captures > 0 && meta->captures[meta->n_captures - 1].first > s->n_samples)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: captures[%zu] begins at sample %" PRIu64
                             " of the data file, which has %" PRIu64,
                             s->name, meta->n_captures - 1,
                             meta->captures[meta->n_captures - 1].first, s->n_samples);
    return PNR_OK;
}

/* Computes the time of sample 0 of the stream from the first capture that has a time. */
static void fill_start(const sigmf *s, const pnr_config *config, pnr_source_info *info)
{
    const pnr_sigmf_meta *meta = &s->meta;
    const pnr_rational rate_hz = meta->rate_hz.den != 0 ? meta->rate_hz : config->source.rate_hz;
    uint64_t lost = 0;

    for (size_t i = 0; i < meta->n_captures; i++) {
        const pnr_sigmf_capture *c = &meta->captures[i];

        lost += gap_before(meta, i);
        if (!c->has_time)
            continue;
        info->start_utc_ns = c->utc_ns - pnr_rational_time_ns(rate_hz, c->first + lost);
        info->has_start = info->start_utc_ns >= 0 && (rate_hz.den != 0 || c->first + lost == 0);
        return;
    }
}

static int fill_info(sigmf *s, const pnr_config *config, pnr_source_info *info, pnr_error *error)
{
    const pnr_sigmf_meta *meta = &s->meta;
    char rate[48];
    int code;

    s->sample_bytes = pnr_format_get(meta->format)->bytes * meta->n_channels;
    info->format = meta->format;
    info->n_channels = meta->n_channels;
    info->rate_hz = meta->rate_hz;
    info->loss_visibility = visibility_of(meta);
    if ((code = check_size(s, info, error)) != PNR_OK)
        return code;
    for (size_t i = 0; i < meta->n_captures; i++)
        info->n_lost += gap_before(meta, i);
    info->n_samples = s->n_samples + info->n_lost;
    fill_start(s, config, info);
    snprintf(info->text, sizeof info->text, "SigMF %s as %s, %zu %s, %zu %s%s%s", meta->datatype,
             pnr_format_get(meta->format)->name, meta->n_channels,
             meta->n_channels == 1 ? "channel" : "channels", meta->n_captures,
             meta->n_captures == 1 ? "capture" : "captures", meta->rate_hz.den != 0 ? ", " : "",
             meta->rate_hz.den != 0 ? strcat(pnr_rational_format(meta->rate_hz, rate), " Hz") : "");
    if (meta->n_clipped > 0)
        snprintf(info->text + strlen(info->text), sizeof info->text - strlen(info->text),
                 ", %" PRIu64 " samples annotated as clipped", meta->n_clipped);
    if (info->loss_visibility == PNR_LOSS_FLAG)
        pnr_log(PNR_LOG_WARN,
                "source: %.200s has %zu captures, and not each states core:global_index: what lies "
                "between two of them is not known, and counts as nothing",
                s->name, meta->n_captures);
    return PNR_OK;
}

static int sigmf_describe(pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                          void **state, pnr_error *error)
{
    sigmf *s = calloc(1, sizeof *s);
    int code;

    if (s == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a SigMF source");
    *state = s;
    s->name = input->name;
    s->meta_part.fd = s->data.fd = -1;
    if (has_end(s->name, collection_end) &&
        (code = find_in_collection(s, input, config, error)) != PNR_OK)
        return code;
    code = has_end(s->name, archive_end) ? open_archive(s, input, error) : open_files(s, error);
    if (code != PNR_OK || (code = fill_info(s, config, info, error)) != PNR_OK)
        return code;
    if (config->source.sha512 == PNR_SHA512_IGNORE)
        s->meta.sha512[0] = '\0';
    if (s->meta.sha512[0] != '\0' && !pnr_hash_is(s->meta.sha512))
        return pnr_error_set(
            error, PNR_EDATA,
            "%.200s: core:sha512 is %.40s, not 128 hexadecimal digits: mend it, or "
            "set source.sha512 = ignore",
            s->name, s->meta.sha512);
    if (pnr_reader_create(0, &s->reader) != PNR_OK)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a SigMF source");
    info->read_bytes = pnr_reader_best_bytes(s->reader);
    s->at_byte = s->data.first_byte;
    return PNR_OK;
}

/* Begins to hash the data, long before the last sample is read. */
static int sigmf_open(void *state, pnr_error *error)
{
    sigmf *s = state;

    if (s->meta.sha512[0] == '\0' ||
        pnr_file_hash_create(s->data.fd, s->data.first_byte, s->data.n_bytes, &s->hash) == PNR_OK)
        return PNR_OK;
    return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a SigMF source");
}

static void stop_hash(sigmf *s)
{
    pnr_file_hash_destroy(s->hash);
    s->hash = NULL;
}

/* Logs once that the hash is not ready, if the wait after the last sample is longer than
 * tell_after_ns. */
static void tell_wait(sigmf *s)
{
    const uint64_t now = pnr_clock_ns();

    if (s->waited_ns == 0)
        s->waited_ns = now;
    if (s->is_told || now - s->waited_ns < tell_after_ns || !pnr_log_is_ready())
        return;
    s->is_told = true;
    pnr_log(PNR_LOG_INFO,
            "source: all samples are read; core:sha512 is compared with %.1f of %.1f GB; "
            "source.sha512 = ignore leaves that out",
            (double)pnr_file_hash_done(s->hash) * 1e-9, (double)s->data.n_bytes * 1e-9);
}

/* Compares the data with their hash after the last sample. PNR_EAGAIN: the hash is not ready;
 * PNR_EEND: the data match, or are not compared; PNR_EDATA, PNR_EIO. */
static int compare_hash(sigmf *s, pnr_error *error)
{
    char found[PNR_HASH_LEN];
    const int code = s->hash != NULL ? pnr_file_hash_wait(s->hash, patience_ns, found) : PNR_EEND;

    if (code == PNR_EEND)
        return PNR_EEND;
    if (code == PNR_EAGAIN) {
        tell_wait(s);
        return PNR_EAGAIN;
    }
    stop_hash(s);
    if (code != PNR_OK)
        return pnr_error_set(error, code,
                             "%.200s: the data could not be read again for core:sha512", s->name);
    if (strcasecmp(found, s->meta.sha512) != 0)
        return pnr_error_set(
            error, PNR_EDATA,
            "%.200s: the data were changed or damaged: their hash is %.16s..., and "
            "core:sha512 is %.16s...",
            s->name, found, s->meta.sha512);
    if (pnr_log_is_ready())
        pnr_log(PNR_LOG_INFO, "source: the data match core:sha512");
    return PNR_EEND;
}

/* Skips the headers of the captures that begin at the next sample. Returns the number of samples
 * that are lost before them. */
static uint64_t enter_captures(sigmf *s)
{
    uint64_t gap = 0;

    for (; s->next < s->meta.n_captures && s->meta.captures[s->next].first == s->at; s->next++) {
        s->at_byte += s->meta.captures[s->next].header_bytes;
        gap += gap_before(&s->meta, s->next);
    }
    return gap;
}

static void convert_numbers(const void *context, void *data, size_t n_bytes)
{
    const pnr_number *number = context;

    pnr_number_convert(number, data, n_bytes / number->bytes);
}

/* Returns the index, in the data file, of the first sample after the present capture. */
static uint64_t end_of_capture(const sigmf *s)
{
    return s->next < s->meta.n_captures ? s->meta.captures[s->next].first : s->n_samples;
}

static int sigmf_seek(void *state, uint64_t position, pnr_error *error)
{
    sigmf *s = state;

    (void)error;
    stop_hash(s); /* the hash is for the whole data file */
    while (position > 0) {
        const uint64_t gap = enter_captures(s);

        if (gap > position) {
            s->gap = gap - position;
            break;
        }
        position -= gap;

        const uint64_t left = end_of_capture(s) - s->at;
        const uint64_t n = position < left ? position : left;

        s->at += n;
        s->at_byte += n * s->sample_bytes;
        position -= n;
    }
    return PNR_OK;
}

static int sigmf_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                      pnr_error *error)
{
    sigmf *s = state;

    if ((block->gap = s->gap + enter_captures(s)) > 0) {
        s->gap = 0;
        return PNR_OK;
    }
    if (s->at == s->n_samples)
        return compare_hash(s, error);

    const uint64_t end = end_of_capture(s);
    const uint64_t n = end - s->at < max_samples ? end - s->at : max_samples;
    const pnr_reader_part wanted = {.fd = s->data.fd,
                                    .first_byte = s->at_byte,
                                    .n_bytes = (size_t)n * s->sample_bytes,
                                    .growth = 1,
                                    .data = data,
                                    .convert = convert_numbers,
                                    .context = &s->meta.number};
    const ssize_t got = pnr_reader_read(s->reader, &wanted);

    if (got < (ssize_t)s->sample_bytes) {
        const uint64_t left = s->n_samples - s->at;
        const uint64_t n_read = s->at;

        s->at = s->n_samples;
        stop_hash(s);
        return got < 0 ? pnr_error_set(error, PNR_EIO, "%s: after %" PRIu64 " samples: %s", s->name,
                                       n_read, strerror((int)-got))
                       : pnr_error_set(error, PNR_EDATA,
                                       "%s: cut short while it was read: %" PRIu64
                                       " samples came, %" PRIu64 " more were there at the start",
                                       s->name, n_read, left);
    }
    block->n_samples = (size_t)got / s->sample_bytes;
    s->at += block->n_samples;
    s->at_byte += block->n_samples * s->sample_bytes;
    return PNR_OK;
}

static void sigmf_close(void *state)
{
    sigmf *s = state;

    if (s->hash != NULL && s->at > 0)
        pnr_log(PNR_LOG_INFO, "source: the recording was not read to its end: core:sha512 is not "
                              "compared");
    stop_hash(s);
    if (!s->is_archive && s->meta_part.fd >= 0)
        close(s->meta_part.fd);
    if (!s->is_archive && s->data.fd >= 0)
        close(s->data.fd);
    pnr_reader_destroy(s->reader);
    pnr_sigmf_meta_clear(&s->meta);
    free(s->named);
    free(s);
}

const pnr_source_kind pnr_source_sigmf = {.title = "a SigMF recording",
                                          .is_for = is_sigmf,
                                          .describe = sigmf_describe,
                                          .open = sigmf_open,
                                          .seek = sigmf_seek,
                                          .read = sigmf_read,
                                          .close = sigmf_close};
