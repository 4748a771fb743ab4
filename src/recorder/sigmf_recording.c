/* SPDX-License-Identifier: MIT */
/* Writes SigMF 1.2, a data file and its metadata. The samples are written to the data file without
 * conversion. The metadata are small: at each new capture, a rename replaces the whole file of
 * metadata. A killed program therefore leaves a valid recording. */
#include "recorder/recording.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rational.h"
#include "base/text.h"
#include "source/sigmf_meta.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sodium/crypto_hash_sha512.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CAPTURE_BYTES = 200, /* bytes of the longest capture in the metadata */
    HEAD_BYTES = 1 << 14,
    CODE_BYTES = 1200, /* bytes of the longest name of a code as a JSON string */
    FLUSH_BYTES = 8 << 20
};

typedef struct recording {
    size_t sample_bytes; /* bytes of one sample of all channels */
    pnr_rational rate_hz;
    double centre_hz; /* 0: not known */

    char path[PATH_MAX]; /* path of the recording, without extension; valid while it is open */
    int fd;              /* descriptor of the data file; -1: no recording is open */
    uint64_t n_samples;  /* samples in the data file */
    uint64_t next;       /* position after the last sample */
    uint64_t flushed;    /* bytes for which a write to the disk has started */
    size_t n_captures;
    char *meta; /* metadata: the members before the captures, and the captures */
    size_t before_captures, meta_bytes, meta_room;
    bool is_hashed; /* all samples so far are in `hash` */
    crypto_hash_sha512_state hash;
} recording;

static const char key[] = "recorder.samples";
static const char mark[] = "{\n  \"global\": {"; /* every file of metadata begins with this text */
static const char end_of_meta[] = "\n  ]\n}\n";
static const char *const ends[] = {".sigmf-meta", ".partial.sigmf-meta", ".sigmf-data",
                                   ".partial.sigmf-data"};
enum { META, PARTIAL_META, DATA, PARTIAL_DATA, N_ENDS };

static char *path_of(const char *path, int end, char out[PATH_MAX])
{
    strcpy(stpcpy(out, path), ends[end]); /* check_free has refused longer paths */
    return out;
}

static int explain(const char *path, pnr_error *error)
{
    const bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;

    if (errno == EEXIST)
        return pnr_refuse(error,
                          "%s %.300s: it exists and is not replaced: remove it, or choose "
                          "another name",
                          key, path);
    return pnr_error_file(error, is_denied ? PNR_EPERMISSION : PNR_EIO, key, path, errno);
}

/* --- metadata --- */

static void add_member(pnr_text *t, const char *name)
{
    pnr_text_add(t, ",\n    \"");
    pnr_text_add(t, name);
    pnr_text_add(t, "\": ");
}

static void add_rate(pnr_text *t, pnr_rational rate_hz)
{
    char exact[48];

    add_member(t, "core:sample_rate");
    if (rate_hz.den == 1) {
        pnr_text_i64(t, rate_hz.num);
        return;
    }
    pnr_text_double(t, pnr_rational_double(rate_hz), "null");
    add_member(t, "pnradar:sample_rate");
    pnr_text_string(t, pnr_rational_format(rate_hz, exact));
}

/* Writes the members that all recordings of a run share. */
static void write_global(recording *r, const pnr_config *config, const pnr_setup *setup,
                         pnr_format format, size_t n_channels)
{
    char datatype[16];
    pnr_text t;

    pnr_text_begin(&t, r->meta, r->meta_room);
    pnr_text_add(&t, mark);
    pnr_text_add(&t, "\n    \"core:datatype\": ");
    pnr_text_string(&t, pnr_sigmf_datatype(format, datatype));
    add_member(&t, "core:version");
    pnr_text_add(&t, "\"1.2.0\"");
    add_rate(&t, setup->radar.rate_hz);
    add_member(&t, "core:num_channels");
    pnr_text_u64(&t, n_channels);
    add_member(&t, "core:recorder");
    pnr_text_string(&t, "pnradar " PNR_VERSION);
    add_member(&t, "core:extensions");
    pnr_text_add(&t, "[{\"name\": \"pnradar\", \"version\": \"1.0.0\", \"optional\": true}]");
    add_member(&t, "pnradar:stream");
    pnr_text_string(&t, config->stream.name);
    add_member(&t, "pnradar:tune_hz");
    pnr_text_double(&t, pnr_rational_double(config->source.tune_hz), "0");
    add_member(&t, "pnradar:chip_rate_hz");
    pnr_text_double(&t, pnr_rational_double(setup->radar.chip_rate_hz), "null");
    add_member(&t, "pnradar:codes");
    for (size_t c = 0; c < setup->n_codes; c++) {
        pnr_text_add(&t, c == 0 ? "[" : ", ");
        pnr_text_string(&t, setup->codes[c].code->name);
    }
    pnr_text_add(&t, "]");
    r->before_captures = pnr_text_end(&t);
}

/* Appends a capture to the metadata in memory. */
static void add_capture(recording *r, uint64_t position, int64_t start_utc_ns)
{
    char time[PNR_TIME_LEN];
    pnr_text t;

    pnr_text_begin(&t, r->meta + r->meta_bytes, r->meta_room - r->meta_bytes);
    pnr_text_add(&t, r->n_captures == 0 ? "\n  },\n  \"annotations\": [],\n  \"captures\": [\n"
                                        : ",\n");
    pnr_text_add(&t, "    {\"core:sample_start\": ");
    pnr_text_u64(&t, r->n_samples);
    pnr_text_add(&t, ", \"core:global_index\": ");
    pnr_text_u64(&t, position);
    if (r->centre_hz != 0) {
        pnr_text_add(&t, ", \"core:frequency\": ");
        pnr_text_double(&t, r->centre_hz, "0");
    }
    if (start_utc_ns != PNR_RECORDING_NO_TIME) {
        pnr_text_add(&t, ", \"core:datetime\": \"");
        pnr_text_add(
            &t, pnr_time_format(start_utc_ns + pnr_rational_time_ns(r->rate_hz, position), time));
        pnr_text_add(&t, "\"");
    }
    pnr_text_add(&t, "}");
    r->meta_bytes += pnr_text_end(&t);
    r->n_captures++;
}

/* Replaces the file of metadata by the metadata in memory. hash: a member to insert, or "".
 * lasting: waits until the file is on the disk. */
static int write_meta(const recording *r, const char *hash, bool lasting, pnr_error *error)
{
    const size_t before = r->before_captures;
    char path[PATH_MAX];
    pnr_new_file file;
    int code = pnr_new_file_create(key, path_of(r->path, PARTIAL_META, path), mark, &file, error);

    if (code != PNR_OK)
        return code;
    if ((code = pnr_new_file_write(&file, r->meta, before, error)) == PNR_OK &&
        (code = pnr_new_file_write(&file, hash, strlen(hash), error)) == PNR_OK &&
        (code = pnr_new_file_write(&file, r->meta + before, r->meta_bytes - before, error)) ==
            PNR_OK &&
        (code = pnr_new_file_write(&file, end_of_meta, strlen(end_of_meta), error)) == PNR_OK)
        return pnr_new_file_finish(&file, lasting, error);
    pnr_new_file_discard(&file);
    return code;
}

/* Begins a capture: in memory, then in the file of metadata. The samples of the capture are written
 * after that. */
static int begin_capture(recording *r, uint64_t position, int64_t start_utc_ns, pnr_error *error)
{
    const size_t meta_bytes = r->meta_bytes;
    int code;

    if (r->n_captures == PNR_RECORDING_CAPTURES)
        return pnr_error_set(error, PNR_EDATA, "%s %.300s: it has %d captures, the most", key,
                             r->path, PNR_RECORDING_CAPTURES);
    add_capture(r, position, start_utc_ns);
    if ((code = write_meta(r, "", false, error)) == PNR_OK)
        return PNR_OK;
    r->meta_bytes = meta_bytes;
    r->n_captures--;
    return code;
}

static void sigmf_label(void *state, const char *event, uint64_t position)
{
    recording *r = state;
    pnr_text t;

    pnr_text_begin(&t, r->meta + r->meta_bytes, r->meta_room - r->meta_bytes);
    add_member(&t, "pnradar:event");
    pnr_text_string(&t, event);
    add_member(&t, "pnradar:event_index");
    pnr_text_u64(&t, position);
    r->meta_bytes += pnr_text_end(&t);
}

/* --- the data file --- */

static int sigmf_create(const pnr_config *config, const pnr_setup *setup, pnr_format format,
                        size_t n_channels, void **state, pnr_error *error)
{
    recording *r = calloc(1, sizeof *r);

    *state = r;
    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    r->sample_bytes = pnr_format_get(format)->bytes * n_channels;
    r->rate_hz = setup->radar.rate_hz;
    r->centre_hz = config->source.centre_hz;
    r->fd = -1;
    r->meta_room =
        HEAD_BYTES + setup->n_codes * CODE_BYTES + (size_t)PNR_RECORDING_CAPTURES * CAPTURE_BYTES;
    if ((r->meta = malloc(r->meta_room)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "recorder: out of memory");
    write_global(r, config, setup, format, n_channels);
    return PNR_OK;
}

static void sigmf_destroy(void *state)
{
    recording *r = state;

    if (r == NULL)
        return;
    if (r->fd >= 0)
        close(r->fd);
    free(r->meta);
    free(r);
}

/* Refuses the path of a recording if any of its files exists. */
static int check_free(const char *path, pnr_error *error)
{
    struct stat status;
    char name[PATH_MAX];

    if (strlen(path) + strlen(ends[PARTIAL_DATA]) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return explain(path, error);
    }
    for (int end = 0; end < N_ENDS; end++)
        if (lstat(path_of(path, end, name), &status) == 0) {
            errno = EEXIST;
            return explain(name, error);
        }
    return PNR_OK;
}

static int sigmf_open(void *state, const char *path, pnr_error *error)
{
    recording *r = state;
    const int code = check_free(path, error);
    char name[PATH_MAX];

    if (code != PNR_OK)
        return code;
    r->fd = open(path_of(path, PARTIAL_DATA, name),
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (r->fd < 0)
        return explain(name, error);
    snprintf(r->path, sizeof r->path, "%s", path);
    r->next = 0;
    r->n_samples = r->flushed = 0;
    r->n_captures = 0;
    r->meta_bytes = r->before_captures;
    r->is_hashed = true;
    crypto_hash_sha512_init(&r->hash);
    return PNR_OK;
}

/* Starts to write the data to the disk in small parts, so that the end of the recording does not
 * wait for many bytes. */
static void flush_data(recording *r)
{
    const uint64_t n_bytes = r->n_samples * r->sample_bytes;

    if (n_bytes < r->flushed + FLUSH_BYTES)
        return;
    (void)sync_file_range(r->fd, (off_t)r->flushed, (off_t)(n_bytes - r->flushed),
                          SYNC_FILE_RANGE_WRITE);
    r->flushed = n_bytes;
}

/* Appends whole samples to the data file. Returns the number of samples written. */
static size_t write_samples(recording *r, const char *samples, size_t n_samples)
{
    const size_t n_bytes = n_samples * r->sample_bytes;
    const off_t at = (off_t)(r->n_samples * r->sample_bytes);
    size_t done = 0;

    while (done < n_bytes) {
        const ssize_t n = pwrite(r->fd, samples + done, n_bytes - done, at + (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (done % r->sample_bytes != 0) { /* removes the incomplete last sample */
        const int number = errno;

        if (ftruncate(r->fd, at + (off_t)(done / r->sample_bytes * r->sample_bytes)) != 0)
            r->is_hashed = false;
        errno = number;
    }
    return done / r->sample_bytes;
}

static int sigmf_append(void *state, uint64_t position, int64_t start_utc_ns, const void *samples,
                        size_t n_samples, size_t *n_written, pnr_error *error)
{
    recording *r = state;
    const bool begins = position != r->next || r->n_captures == 0;
    const size_t meta_bytes = r->meta_bytes;
    char name[PATH_MAX];
    int code;

    *n_written = 0;
    if (begins && (code = begin_capture(r, position, start_utc_ns, error)) != PNR_OK)
        return code;
    *n_written = write_samples(r, samples, n_samples);
    if (r->is_hashed)
        crypto_hash_sha512_update(&r->hash, samples, *n_written * r->sample_bytes);
    if (*n_written > 0) {
        r->n_samples += *n_written;
        r->next = position + *n_written;
    } else if (begins) { /* removes the capture, which has no samples */
        r->meta_bytes = meta_bytes;
        r->n_captures--;
    }
    if (*n_written < n_samples)
        return explain(path_of(r->path, PARTIAL_DATA, name), error);
    flush_data(r);
    return PNR_OK;
}

/* Renames both files to their final names. First links the data file to its final name in addition
 * to its temporary name. The metadata therefore have a data file of their name at every moment. If
 * the file system has no links, renames the data file first. */
static int rename_files(const recording *r, pnr_error *error)
{
    char partial[PATH_MAX], final[PATH_MAX];

    path_of(r->path, PARTIAL_DATA, partial);
    path_of(r->path, DATA, final);

    const bool is_linked = link(partial, final) == 0;

    if (!is_linked && (errno == EEXIST || rename(partial, final) != 0))
        return explain(final, error);

    char meta[PATH_MAX], final_meta[PATH_MAX];

    path_of(r->path, META, final_meta);
    if (!pnr_file_rename(path_of(r->path, PARTIAL_META, meta), final_meta))
        return explain(final_meta, error);
    return is_linked && unlink(partial) != 0 ? explain(partial, error) : PNR_OK;
}

static void sigmf_skip_hash(void *state)
{
    recording *r = state;

    r->is_hashed = false;
}

/* Writes the metadata with the hash of the data. If this fails, for example on a full disk, the
 * previous metadata remain valid. */
static void write_last_meta(recording *r)
{
    unsigned char digest[crypto_hash_sha512_BYTES];
    char digits[2 * sizeof digest + 1], member[sizeof digits + 32];
    pnr_text t;

    pnr_text_begin(&t, member, sizeof member);
    if (r->is_hashed) {
        crypto_hash_sha512_final(&r->hash, digest);
        add_member(&t, "core:sha512");
        pnr_text_string(&t, sodium_bin2hex(digits, sizeof digits, digest, sizeof digest));
    }
    member[pnr_text_end(&t)] = '\0';
    (void)write_meta(r, member, true, NULL);
}

static int sigmf_finish(void *state, pnr_error *error)
{
    recording *r = state;
    char name[PATH_MAX];
    int code = PNR_OK;

    if (r->fd < 0)
        return PNR_OK;
    if (r->n_samples == 0) {
        (void)unlink(path_of(r->path, PARTIAL_DATA, name));
        (void)unlink(path_of(r->path, PARTIAL_META, name));
    } else if (fdatasync(r->fd) != 0) {
        code = explain(path_of(r->path, PARTIAL_DATA, name), error);
    } else {
        write_last_meta(r);
        code = rename_files(r, error);
    }
    if (close(r->fd) != 0 && code == PNR_OK)
        code = explain(r->path, error);
    r->fd = -1;
    return code;
}

/* Creates an empty recording and removes it. */
static int sigmf_check(void *state, const char *path, pnr_error *error)
{
    const int code = sigmf_open(state, path, error);

    if (code == PNR_OK)
        (void)sigmf_finish(state, NULL);
    return code;
}

const pnr_recording_kind pnr_recording_sigmf = {.abi = PNR_RECORDING_ABI,
                                                .create = sigmf_create,
                                                .destroy = sigmf_destroy,
                                                .check = sigmf_check,
                                                .open = sigmf_open,
                                                .label = sigmf_label,
                                                .append = sigmf_append,
                                                .skip_hash = sigmf_skip_hash,
                                                .finish = sigmf_finish};
