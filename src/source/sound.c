/* SPDX-License-Identifier: MIT */
/* Compares the header of a sound file with the size of the file. Reads the samples with libsndfile.
 * If their format in the file is their format in memory, several threads read them without
 * libsndfile. */
#include "source/kind.h"
#include "source/reader.h"
#include "source/sound_header.h"

#include <errno.h>
#include <inttypes.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct sound {
    const pnr_source_input *input;
    pnr_sound_header header;
    SNDFILE *file;
    pnr_reader *reader; /* NULL: libsndfile reads the samples */
    uint64_t n_read;
    bool ended;
} sound;

/* Extensions of sound files. If source.format is not set, a file with such an extension is refused
 * if it does not begin like a sound file. */
static const char *const extensions[] = {"wav", "wave", "rf64", "w64", "aiff",
                                         "aif", "aifc", "au",   "snd", "flac"};

static bool has_sound_extension(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < sizeof extensions / sizeof extensions[0]; i++)
        if (strcasecmp(dot + 1, extensions[i]) == 0)
            return true;
    return false;
}

static bool is_sound(const pnr_source_input *input, const pnr_config *config)
{
    if (!input->is_regular || input->is_stdin)
        return false;
    if (pnr_sound_header_kind(input->head, input->n_head))
        return true;
    return pnr_source_named_format(input, config) == PNR_FORMAT_NONE &&
           has_sound_extension(input->name);
}

/* Reads n_bytes of the file, from `offset` on, into new memory. The caller owns *out, also after an
 * error. */
static int read_part(const pnr_source_input *input, uint64_t offset, size_t n_bytes,
                     unsigned char **out, pnr_error *error)
{
    unsigned char *bytes = malloc(n_bytes + 1);
    size_t n = 0;

    *out = bytes;
    if (!bytes)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu bytes of %s", n_bytes,
                             input->name);
    while (n < n_bytes) {
        ssize_t got = pread(input->fd, bytes + n, n_bytes - n, (off_t)(offset + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return pnr_error_set(error, PNR_EIO, "%s: %s", input->name,
                                 got < 0 ? strerror(errno) : "cut short while it was read");
        n += (size_t)got;
    }
    return PNR_OK;
}

static int check_header(const pnr_source_input *input, pnr_sound_header *header, pnr_error *error)
{
    size_t n_head =
        input->n_bytes < PNR_SOUND_HEAD_BYTES ? (size_t)input->n_bytes : PNR_SOUND_HEAD_BYTES;
    unsigned char *bytes = NULL;
    pnr_error inner = {0};
    int rc = read_part(input, 0, n_head, &bytes, error);

    if (rc == PNR_OK &&
        (rc = pnr_sound_header_read(bytes, n_head, input->n_bytes, header, &inner)) != PNR_OK)
        pnr_error_set(error, rc, "%.200s: %s", input->name, inner.text);
    free(bytes);
    if (rc != PNR_OK || header->rest_bytes == 0)
        return rc;
    if (header->rest_bytes > PNR_SOUND_HEAD_BYTES)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: the header says that the samples end at byte %" PRIu64
                             ", but %" PRIu64 " bytes follow",
                             input->name, header->rest_offset, header->rest_bytes);
    rc = read_part(input, header->rest_offset, (size_t)header->rest_bytes, &bytes, error);
    if (rc == PNR_OK && (rc = pnr_sound_header_check_rest(header, bytes, &inner)) != PNR_OK)
        pnr_error_set(error, rc, "%.200s: %s", input->name, inner.text);
    free(bytes);
    return rc;
}

static bool is_integer(const pnr_sound_header *header)
{
    return header->bits <= 16 && !header->is_float;
}

/* Fills *info. With source.layout = iq, a pair of channels is one complex channel. With
 * source.layout = channels, all channels are real. */
static int fill_info(const pnr_source_input *input, const pnr_config *config,
                     const pnr_sound_header *header, pnr_source_info *info, pnr_error *error)
{
    unsigned n = header->n_channels;
    bool is_complex = config->source.layout == PNR_LAYOUT_IQ && n > 1;
    char channels[PNR_CHANNELS_LEN];

    if (is_complex && n % 2 != 0)
        return pnr_refuse(
            error,
            "%s has %u channels, and layout iq needs pairs (or one): set source.layout = channels",
            input->name, n);
    if (is_integer(header))
        info->format = is_complex ? PNR_FORMAT_CI16 : PNR_FORMAT_I16;
    else
        info->format = is_complex ? PNR_FORMAT_CF32 : PNR_FORMAT_F32;
    info->n_channels = is_complex ? n / 2 : n;
    info->n_samples = header->n_frames;
    info->n_trailing_bytes = header->n_trailing_bytes;
    info->rate_hz = (pnr_rational){header->rate_hz, 1};
    snprintf(info->text, sizeof info->text, "%s %u bits%s as %s, %s, %u Hz", header->name,
             header->bits, header->is_float ? " float" : "", pnr_format_get(info->format)->name,
             pnr_source_channels_text(n, is_complex, channels), (unsigned)header->rate_hz);
    return PNR_OK;
}

static sf_count_t read_frames(const sound *s, void *data, sf_count_t n_frames)
{
    return is_integer(&s->header) ? sf_readf_short(s->file, data, n_frames)
                                  : sf_readf_float(s->file, data, n_frames);
}

/* Checks that libsndfile finds the number of frames that the header states, and that it can read
 * the last frame. A FLAC file that is cut short fails this check. The read also makes the decoder
 * allocate its memory before the stream begins. */
static int check_frames(sound *s, const SF_INFO *found, pnr_error *error)
{
    const pnr_sound_header *header = &s->header;
    sf_count_t last = (sf_count_t)(header->n_frames - 1);
    float *frame;
    bool is_whole;

    if (found->frames != last + 1 || found->channels != (int)header->n_channels)
        return pnr_error_set(error, PNR_EDATA,
                             "%s: the header says %" PRIu64 " frames of %u channels, libsndfile "
                             "reads %" PRId64 " of %d",
                             s->input->name, header->n_frames, header->n_channels,
                             (int64_t)found->frames, found->channels);
    frame = malloc(header->n_channels * sizeof *frame);
    if (!frame)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a frame of %u channels",
                             header->n_channels);
    is_whole = sf_seek(s->file, last, SEEK_SET) == last && read_frames(s, frame, 1) == 1 &&
               sf_seek(s->file, 0, SEEK_SET) == 0 && read_frames(s, frame, 1) == 1 &&
               sf_seek(s->file, 0, SEEK_SET) == 0 && sf_error(s->file) == SF_ERR_NO_ERROR;
    free(frame);
    if (!is_whole)
        return pnr_error_set(error, PNR_EDATA,
                             "%s: the header says %" PRIu64 " frames, but the file of %" PRIu64
                             " bytes does not hold the last one",
                             s->input->name, header->n_frames, s->input->n_bytes);
    return PNR_OK;
}

static void sound_close(void *state)
{
    sound *s = state;

    if (s->file)
        sf_close(s->file);
    pnr_reader_destroy(s->reader);
    free(s);
}

static int sound_describe(pnr_source_input *input, const pnr_config *config, pnr_source_info *info,
                          void **state, pnr_error *error)
{
    sound *s = calloc(1, sizeof *s);
    int code;

    if (!s)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a sound source");
    *state = s;
    s->input = input;
    if ((code = check_header(input, &s->header, error)) != PNR_OK)
        return code;
    if (s->header.plain_offset > 0) {
        if (pnr_reader_create(0, &s->reader) != PNR_OK)
            return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a sound source");
        info->read_bytes = pnr_reader_best_bytes(s->reader);
    }
    return fill_info(input, config, &s->header, info, error);
}

static int sound_open(void *state, pnr_error *error)
{
    sound *s = state;
    SF_INFO found = {0};

    s->file = sf_open_fd(s->input->fd, SFM_READ, &found, SF_FALSE);
    if (!s->file)
        return pnr_error_set(error, PNR_EDATA, "%s: %s: %s", s->input->name, s->header.name,
                             sf_strerror(NULL));
    return check_frames(s, &found, error);
}

/* Reads up to n_frames frames without libsndfile. Returns their number, or a negative errno. */
static sf_count_t read_plain(const sound *s, void *data, size_t n_frames)
{
    const size_t frame_bytes = s->header.n_channels * s->header.bits / 8;
    const pnr_reader_part part = {.fd = s->input->fd,
                                  .first_byte = s->header.plain_offset + s->n_read * frame_bytes,
                                  .n_bytes = n_frames * frame_bytes,
                                  .growth = 1,
                                  .data = data};
    const ssize_t got = pnr_reader_read(s->reader, &part);

    return got < 0 ? got : got / (ssize_t)frame_bytes;
}

static int sound_seek(void *state, uint64_t position, pnr_error *error)
{
    sound *s = state;

    if (sf_seek(s->file, (sf_count_t)position, SEEK_SET) != (sf_count_t)position)
        return pnr_error_set(error, PNR_EDATA, "%s: to frame %" PRIu64 ": %s", s->input->name,
                             position, sf_strerror(s->file));
    s->n_read = position;
    return PNR_OK;
}

static int sound_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                      pnr_error *error)
{
    sound *s = state;
    uint64_t left = s->header.n_frames - s->n_read;
    sf_count_t wanted = (sf_count_t)(left < max_samples ? left : max_samples);

    if (s->ended || left == 0)
        return PNR_EEND;
    sf_count_t got =
        s->reader != NULL ? read_plain(s, data, (size_t)wanted) : read_frames(s, data, wanted);
    if (got <= 0 || sf_error(s->file) != SF_ERR_NO_ERROR) {
        s->ended = true;
        if (s->reader != NULL)
            return pnr_error_set(error, got < 0 ? PNR_EIO : PNR_EDATA,
                                 "%s: after %" PRIu64 " of %" PRIu64 " frames: %s", s->input->name,
                                 s->n_read, s->header.n_frames,
                                 got < 0 ? strerror((int)-got) : "cut short while it was read");
        return pnr_error_set(error, PNR_EDATA,
                             "%s: the header says %" PRIu64 " frames, %" PRIu64
                             " could be read (%s)",
                             s->input->name, s->header.n_frames, s->n_read, sf_strerror(s->file));
    }
    s->n_read += (uint64_t)got;
    block->n_samples = (size_t)got;
    return PNR_OK;
}

const pnr_source_kind pnr_source_sound = {.title = "a sound file",
                                          .is_for = is_sound,
                                          .describe = sound_describe,
                                          .open = sound_open,
                                          .seek = sound_seek,
                                          .read = sound_read,
                                          .close = sound_close};
