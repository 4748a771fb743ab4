/* SPDX-License-Identifier: MIT */
/* Sinks quantise samples as an ADC does, encode them, and write raw bytes or sound files. */
#include "scene/sink.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK = 4096,      /* samples encoded at a time */
    PIPE_BYTES = 4096, /* bytes that a writable pipe accepts without blocking */
    PATIENCE_MS = 50   /* longest time between two checks of the stop flag */
};

/* libsndfile expects integers in host order, and pnr_format_write writes little endian. On a
 * little-endian host both orders are the same. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sound files need a little-endian host");

/* A kind of sound file, by extension. eight: the 8-bit subtype of libsndfile; wide: the file can
 * contain floats; short_size: the sizes in its header have 32 bits. */
typedef struct container {
    const char *extension;
    int type;
    int eight;
    bool wide;
    bool short_size;
} container;

static const container containers[] = {
    {".wav", SF_FORMAT_WAV, SF_FORMAT_PCM_U8, true, true},
    {".rf64", SF_FORMAT_RF64, SF_FORMAT_PCM_U8, true, false},
    {".w64", SF_FORMAT_W64, SF_FORMAT_PCM_U8, true, false},
    {".au", SF_FORMAT_AU, SF_FORMAT_PCM_S8, true, true},
    {".flac", SF_FORMAT_FLAC, SF_FORMAT_PCM_S8, false, false},
};

/* The encoding in a sound file for a real and a complex source.format. read_real and read_complex:
 * the formats that a source has when it reads such a file. */
typedef struct sound_format {
    pnr_format real, complex;
    int subtype; /* 0: the 8-bit subtype of the container */
    pnr_format read_real, read_complex;
} sound_format;

static const sound_format sound_formats[] = {
    {PNR_FORMAT_I16, PNR_FORMAT_CI16, SF_FORMAT_PCM_16, PNR_FORMAT_I16, PNR_FORMAT_CI16},
    {PNR_FORMAT_I8, PNR_FORMAT_CI8, 0, PNR_FORMAT_I16, PNR_FORMAT_CI16},
    {PNR_FORMAT_F32, PNR_FORMAT_CF32, SF_FORMAT_FLOAT, PNR_FORMAT_F32, PNR_FORMAT_CF32},
    {PNR_FORMAT_F64, PNR_FORMAT_CF64, SF_FORMAT_DOUBLE, PNR_FORMAT_F32, PNR_FORMAT_CF32},
};

struct pnr_sink {
    pnr_sink_info info;
    char path[PNR_PATH_LEN];
    const volatile int *stop;
    int fd;            /* -1: not open */
    pnr_new_file file; /* new file of a regular output; its descriptor is also in fd */
    bool is_stdout;
    bool is_pipe;
    SNDFILE *sound;    /* NULL: the output is raw */
    pnr_error failure; /* error of the first write of libsndfile that failed */
    pnr_format format; /* format of the encoded samples */
    size_t bits;
    unsigned char *bytes; /* [CHUNK][n_channels] encoded samples */
    short *shorts;        /* [CHUNK][n_channels][2] 8-bit values for libsndfile */
};

static bool is_stopped(const pnr_sink *sink)
{
    return sink->stop && *sink->stop;
}

/* --- opening --- */

static const container *find_container(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

    for (size_t i = 0; dot && i < sizeof containers / sizeof *containers; i++)
        if (strcasecmp(dot, containers[i].extension) == 0)
            return &containers[i];
    return NULL;
}

static int explain_open(const char *path, pnr_error *error)
{
    int code = errno == EACCES || errno == EPERM || errno == EROFS ? PNR_EPERMISSION : PNR_EIO;

    return pnr_error_file(error, code, "cannot write", path, errno);
}

/* Opens a FIFO. Without a reader, open fails with ENXIO, and the function tries again. The
 * descriptor stays non-blocking, see write_bytes. */
static int open_fifo(pnr_sink *sink, pnr_error *error)
{
    for (;;) {
        sink->fd = open(sink->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (sink->fd >= 0)
            return PNR_OK;
        if (errno != ENXIO && errno != EINTR)
            return explain_open(sink->path, error);
        if (is_stopped(sink))
            return pnr_error_set(error, PNR_EEND, "stopped before '%s' had a reader", sink->path);
        poll(NULL, 0, PATIENCE_MS);
    }
}

/* Makes all checks that are possible before a file is created or truncated, and before any wait. */
static int check_output(pnr_sink *sink, bool is_sound, bool is_endless, pnr_error *error)
{
    struct stat st;
    int rc = sink->is_stdout ? fstat(STDOUT_FILENO, &st) : stat(sink->path, &st);

    sink->is_pipe = rc == 0 && S_ISFIFO(st.st_mode);
    sink->info.is_regular = rc != 0 || S_ISREG(st.st_mode);
    if (sink->is_stdout && isatty(STDOUT_FILENO))
        return pnr_error_set(error, PNR_EUSAGE,
                             "samples are not for a terminal: name an OUTPUT or use a pipe");
    if (sink->info.is_regular && is_endless)
        return pnr_error_set(error, PNR_EUSAGE,
                             "an endless stream cannot go into a file ('%.200s')", sink->path);
    if (!sink->info.is_regular && is_sound)
        return pnr_refuse(error, "'%.200s' is no regular file: a sound file cannot go there",
                          sink->path);
    return PNR_OK;
}

/* Refuses an output that is an input file of the scene. */
static int check_inputs(const pnr_sink *sink, const pnr_config *config, pnr_error *error)
{
    const char *const inputs[] = {config->code.path, config->code.pulse_path};
    bool is_input = false;

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        is_input |= inputs[i][0] != '\0' && pnr_file_is_same(sink->path, inputs[i]);
    for (size_t i = 0; i < config->n_codes; i++)
        is_input |=
            config->codes[i].path[0] != '\0' && pnr_file_is_same(sink->path, config->codes[i].path);
    return is_input
               ? pnr_error_set(error, PNR_EUSAGE,
                               "'%.200s' is not replaced: it is an input of this scene", sink->path)
               : PNR_OK;
}

static int open_descriptor(pnr_sink *sink, const pnr_config *config, pnr_error *error)
{
    int rc;

    if (sink->is_stdout) {
        sink->fd = STDOUT_FILENO;
    } else if (sink->is_pipe) {
        return open_fifo(sink, error);
    } else if (sink->info.is_regular) {
        if ((rc = check_inputs(sink, config, error)) != PNR_OK)
            return rc;
        rc = pnr_new_file_create("cannot write", sink->path, PNR_FILE_SAMPLES, &sink->file, error);
        sink->fd = sink->file.fd;
        return rc;
    } else {
        sink->fd = open(sink->path, O_RDWR | O_CLOEXEC | O_NOCTTY);
        if (sink->fd < 0 && errno == EACCES) /* some devices can only be written */
            sink->fd = open(sink->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    }
    return sink->fd >= 0 ? PNR_OK : explain_open(sink->path, error);
}

static int choose_raw(pnr_sink *sink, const pnr_config *config, pnr_error *error)
{
    sink->format = config->source.format;
    if (sink->format == PNR_FORMAT_NONE && !sink->is_stdout)
        sink->format = pnr_format_of_path(sink->path);
    if (sink->format == PNR_FORMAT_NONE)
        return pnr_refuse(error,
                          "no sample format known for '%.200s': set source.format, one of %s",
                          sink->path, pnr_format_names());
    sink->info.format = sink->format;
    sink->info.n_channels = config->source.channels;
    return PNR_OK;
}

/* Returns the encoding for source.format in a sound file. The default is 16-bit integers. */
static const sound_format *find_sound_format(pnr_format wanted)
{
    for (size_t i = 0; i < sizeof sound_formats / sizeof *sound_formats; i++)
        if (sound_formats[i].real == wanted || sound_formats[i].complex == wanted)
            return &sound_formats[i];
    return &sound_formats[wanted == PNR_FORMAT_U8 || wanted == PNR_FORMAT_CU8];
}

/* Refuses a layout, format or rate that this kind of sound file cannot have. */
static int check_sound(const pnr_config *config, const container *box, const sound_format *f,
                       pnr_error *error)
{
    const pnr_rational rate = config->source.rate_hz;
    const pnr_format_info *wanted = pnr_format_get(config->source.format);
    const bool is_real = config->source.format != PNR_FORMAT_NONE && !wanted->is_complex;

    if (config->source.layout == PNR_LAYOUT_IQ && is_real && config->source.channels > 1)
        return pnr_refuse(error, "%zu real channels in a sound file need source.layout = channels",
                          config->source.channels);
    if (pnr_format_get(f->real)->is_float && !box->wide)
        return pnr_refuse(error, "a %s file holds integers, not source.format = %s: take ci16",
                          box->extension + 1, wanted->name);
    if (rate.den != 1 || rate.num < 1 || rate.num > INT32_MAX)
        return pnr_refuse(error,
                          "a sound file's rate is a whole number of Hz: source.rate_hz = "
                          "%" PRId64 "/%" PRId64 " goes into a raw file only",
                          rate.num, rate.den);
    return PNR_OK;
}

static int choose_sound(pnr_sink *sink, const pnr_config *config, const container *box,
                        uint64_t n_samples, SF_INFO *sf, pnr_error *error)
{
    const pnr_format wanted = config->source.format;
    const sound_format *f = find_sound_format(wanted);
    const bool is_complex = config->source.layout == PNR_LAYOUT_IQ &&
                            (wanted == PNR_FORMAT_NONE || pnr_format_get(wanted)->is_complex);
    const int rc = check_sound(config, box, f, error);

    if (rc != PNR_OK)
        return rc;
    sink->format = is_complex ? f->complex : f->real;
    sink->info.format = is_complex ? f->read_complex : f->read_real;
    sink->info.n_channels = config->source.channels;
    *sf = (SF_INFO){.samplerate = (int)config->source.rate_hz.num,
                    .channels = (int)config->source.channels * (is_complex ? 2 : 1),
                    .format = box->type | (f->subtype ? f->subtype : box->eight)};
    if (!sf_format_check(sf))
        return pnr_refuse(error, "a %s file cannot hold %d channels of %s at %d Hz",
                          box->extension + 1, sf->channels, pnr_format_get(f->real)->name,
                          sf->samplerate);
    double bytes =
        (double)n_samples * (double)sink->info.n_channels * pnr_format_get(sink->format)->bytes;
    if (box->short_size && bytes > (double)(UINT32_MAX - 65536))
        return pnr_refuse(error, "%.0f bytes are too many for a %s file: write .rf64 or .w64",
                          bytes, box->extension + 1);
    return PNR_OK;
}

/* --- file operations for libsndfile --- */

static sf_count_t sound_length(void *context)
{
    struct stat status;

    return fstat(((pnr_sink *)context)->fd, &status) == 0 ? status.st_size : -1;
}

static sf_count_t sound_seek(sf_count_t offset, int whence, void *context)
{
    return lseek(((pnr_sink *)context)->fd, offset, whence);
}

static sf_count_t sound_tell(void *context)
{
    return sound_seek(0, SEEK_CUR, context);
}

static sf_count_t sound_read(void *to, sf_count_t n, void *context)
{
    return read(((pnr_sink *)context)->fd, to, (size_t)n);
}

static sf_count_t sound_write(const void *from, sf_count_t n, void *context)
{
    pnr_sink *sink = context;

    return sink->failure.code == PNR_OK &&
                   pnr_new_file_write(&sink->file, from, (size_t)n, &sink->failure) == PNR_OK
               ? n
               : 0;
}

/* Returns the error of the first write of libsndfile that failed, or PNR_OK. sf_close does not
 * always report this error. */
static int check_writes(const pnr_sink *sink, pnr_error *error)
{
    return sink->failure.code == PNR_OK
               ? PNR_OK
               : pnr_error_set(error, sink->failure.code, "%s", sink->failure.text);
}

static int open_sound(pnr_sink *sink, SF_INFO *sf, pnr_error *error)
{
    SF_VIRTUAL_IO io = {sound_length, sound_seek, sound_read, sound_write, sound_tell};

    sink->sound = sf_open_virtual(&io, SFM_WRITE, sf, sink);
    if (!sink->sound && sink->failure.code != PNR_OK)
        return check_writes(sink, error);
    if (!sink->sound)
        return pnr_error_set(
            error, PNR_EIO, "libsndfile cannot write '%.200s': %s Take another format: .wav, .rf64",
            sink->path, sf_strerror(NULL));
    /* The PEAK chunk contains the time of day. With this chunk, two equal runs would write
     * different files. */
    sf_command(sink->sound, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE);
    return PNR_OK;
}

static int allocate_chunk(pnr_sink *sink, pnr_error *error)
{
    const size_t n = CHUNK * sink->info.n_channels;

    sink->bytes = malloc(n * pnr_format_get(sink->format)->bytes);
    sink->shorts = malloc(n * 2 * sizeof *sink->shorts);
    if (sink->bytes && sink->shorts)
        return PNR_OK;
    return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu channels", sink->info.n_channels);
}

int pnr_sink_open(const pnr_config *config, const char *path, uint64_t n_samples,
                  const volatile int *stop, pnr_sink **out, pnr_error *error)
{
    const container *box = find_container(path);
    SF_INFO sf;
    int rc = PNR_ENOMEMORY;

    *out = NULL;
    pnr_sink *sink = calloc(1, sizeof *sink);
    if (!sink)
        return pnr_error_set(error, rc, "no memory for the output");
    sink->fd = -1;
    sink->file = (pnr_new_file)PNR_NEW_FILE_NONE;
    sink->stop = stop;
    sink->bits = config->echo.bits;
    sink->is_stdout = strcmp(path, "-") == 0;
    if (strlen(path) >= sizeof sink->path) {
        rc = pnr_error_set(error, PNR_EUSAGE, "the output's name is longer than %zu bytes",
                           sizeof sink->path - 1);
        goto fail;
    }
    strcpy(sink->path, path);
    rc = box ? choose_sound(sink, config, box, n_samples, &sf, error)
             : choose_raw(sink, config, error);
    if (rc != PNR_OK || (rc = allocate_chunk(sink, error)) != PNR_OK ||
        (rc = check_output(sink, box != NULL, n_samples == 0, error)) != PNR_OK ||
        (rc = open_descriptor(sink, config, error)) != PNR_OK ||
        (box && (rc = open_sound(sink, &sf, error)) != PNR_OK))
        goto fail;
    snprintf(sink->info.text, sizeof sink->info.text, "%s %s, %zu channel%s: %s",
             box ? box->extension + 1 : "raw", pnr_format_get(sink->format)->name,
             sink->info.n_channels, sink->info.n_channels == 1 ? "" : "s",
             sink->is_stdout ? "standard output" : sink->path);
    *out = sink;
    return PNR_OK;

fail:
    pnr_sink_close(sink, false, NULL);
    return rc;
}

const pnr_sink_info *pnr_sink_get_info(const pnr_sink *sink)
{
    return &sink->info;
}

/* --- writing --- */

/* Quantises I or Q like an ADC of `bits` bits. Returns true if the value was limited. */
static bool quantise_part(double *value, size_t bits)
{
    if (bits == 1) {
        *value = *value < 0 ? -0.5 : 0.5;
        return false;
    }
    double levels = ldexp(1, (int)bits - 1), code = round(*value * levels);
    double limited = fmin(fmax(code, -levels), levels - 1);

    *value = limited / levels;
    return limited != code;
}

static void encode_chunk(pnr_sink *sink, const double (*samples)[2], size_t count)
{
    const pnr_format_info *format = pnr_format_get(sink->format);
    unsigned char *to = sink->bytes;

    for (size_t i = 0; i < count; i++, to += format->bytes) {
        double value[2] = {samples[i][0], samples[i][1]};
        bool clipped = false;

        if (sink->bits) {
            clipped = quantise_part(&value[0], sink->bits);
            if (format->is_complex)
                clipped |= quantise_part(&value[1], sink->bits);
        }
        clipped |= (pnr_format_write(sink->format, value, to) & PNR_SAMPLE_CLIPPED) != 0;
        sink->info.n_clipped += clipped;
    }
}

/* Writes the encoded samples. Writes to a pipe only as many bytes as it accepts without blocking,
 * so that the stop flag is checked often. */
static int write_bytes(pnr_sink *sink, size_t n_bytes, pnr_error *error)
{
    const unsigned char *from = sink->bytes;

    while (n_bytes > 0) {
        size_t n = sink->is_pipe && n_bytes > PIPE_BYTES ? PIPE_BYTES : n_bytes;

        if (sink->is_pipe) {
            struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
            if (is_stopped(sink))
                return pnr_error_set(error, PNR_EEND, "stopped");
            if (poll(&ready, 1, PATIENCE_MS) <= 0)
                continue;
        }
        ssize_t done = write(sink->fd, from, n);
        if (done < 0 && (errno == EINTR || errno == EAGAIN)) {
            if (is_stopped(sink))
                return pnr_error_set(error, PNR_EEND, "stopped");
            continue;
        }
        if (done < 0)
            return pnr_error_file(error, errno == EPIPE ? PNR_EEND : PNR_EIO, "cannot write",
                                  sink->path, errno);
        from += done;
        n_bytes -= (size_t)done;
    }
    return PNR_OK;
}

/* Writes 8-bit values. libsndfile expects them in the upper bytes of shorts. */
static sf_count_t write_eight(pnr_sink *sink, sf_count_t n_items)
{
    for (sf_count_t i = 0; i < n_items; i++)
        sink->shorts[i] = (short)((signed char)sink->bytes[i] * 256);
    return sf_write_short(sink->sound, sink->shorts, n_items);
}

static int write_sound(pnr_sink *sink, size_t count, pnr_error *error)
{
    const pnr_format_info *format = pnr_format_get(sink->format);
    sf_count_t n = (sf_count_t)count * (format->is_complex ? 2 : 1), done;

    switch (format->bytes / (format->is_complex ? 2 : 1)) {
    case 1:
        done = write_eight(sink, n);
        break;
    case 2:
        done = sf_write_short(sink->sound, (const short *)(const void *)sink->bytes, n);
        break;
    case 4:
        done = sf_write_float(sink->sound, (const float *)(const void *)sink->bytes, n);
        break;
    default:
        done = sf_write_double(sink->sound, (const double *)(const void *)sink->bytes, n);
    }
    if (done != n)
        return sink->failure.code != PNR_OK
                   ? check_writes(sink, error)
                   : pnr_error_set(error, PNR_EIO, "cannot write '%.200s': %s", sink->path,
                                   sf_strerror(sink->sound));
    return PNR_OK;
}

int pnr_sink_write(pnr_sink *sink, const double (*samples)[2], size_t n_samples, pnr_error *error)
{
    const size_t bytes = pnr_format_get(sink->format)->bytes;

    while (n_samples > 0) {
        size_t n = n_samples < CHUNK ? n_samples : CHUNK, count = n * sink->info.n_channels;

        encode_chunk(sink, samples, count);
        int rc =
            sink->sound ? write_sound(sink, count, error) : write_bytes(sink, count * bytes, error);
        if (rc != PNR_OK)
            return rc;
        sink->info.n_written += n;
        samples += count;
        n_samples -= n;
    }
    return PNR_OK;
}

int pnr_sink_close(pnr_sink *sink, bool keep, pnr_error *error)
{
    int rc = PNR_OK;

    if (!sink)
        return PNR_OK;
    const bool is_new = sink->file.fd >= 0;
    if (sink->sound && sf_close(sink->sound) != 0)
        rc = pnr_error_set(error, PNR_EIO, "cannot complete '%.200s'", sink->path);
    if (rc == PNR_OK && keep)
        rc = check_writes(sink, error);
    if (is_new && keep && rc == PNR_OK)
        rc = pnr_new_file_finish(&sink->file, true, error);
    else
        pnr_new_file_discard(&sink->file);
    if (!is_new && sink->fd >= 0 && !sink->is_stdout && close(sink->fd) != 0 && rc == PNR_OK)
        rc = pnr_error_file(error, PNR_EIO, "cannot complete", sink->path, errno);
    free(sink->bytes);
    free(sink->shorts);
    free(sink);
    return rc;
}
