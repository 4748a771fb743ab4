/* SPDX-License-Identifier: MIT */
/* Checks the headers of WAV, RF64, W64, AIFF, AU and FLAC byte by byte, because libsndfile reads a
 * file with a broken header as a short file and reports no error. */
#include "source/sound_header.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The first n_bytes bytes of a file that has file_bytes bytes. */
typedef struct view {
    const unsigned char *data;
    size_t n_bytes;
    uint64_t file_bytes;
    const char *name; /* name of the kind of file, for messages */
    pnr_error *error;
} view;

static int refuse_header(const view *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Refuses the header. The message begins with the name of the kind of file. */
static int refuse_header(const view *v, const char *format, ...)
{
    char text[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return pnr_error_set(v->error, PNR_EDATA, "%s: %s", v->name, text);
}

static uint64_t read_number(const unsigned char *p, size_t n, bool is_big_endian)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++)
        value = value << 8 | p[is_big_endian ? i : n - 1 - i];
    return value;
}

static uint64_t little_endian(const unsigned char *p, size_t n)
{
    return read_number(p, n, false);
}

static uint64_t big_endian(const unsigned char *p, size_t n)
{
    return read_number(p, n, true);
}

static bool is_in_view(const view *v, uint64_t offset, uint64_t n)
{
    return offset <= v->n_bytes && n <= v->n_bytes - offset;
}

/* Reports why bytes are outside the view: the file ends before them, or they are too far from the
 * start of the file. */
static int refuse_unseen(const view *v, uint64_t offset, uint64_t n)
{
    if (offset > v->file_bytes || n > v->file_bytes - offset)
        return pnr_error_set(v->error, PNR_EDATA,
                             "%s cut short: the header needs %" PRIu64 " bytes at byte %" PRIu64
                             ", the file has %" PRIu64 " bytes",
                             v->name, n, offset, v->file_bytes);
    return refuse_header(v, "the samples do not begin within the first %zu bytes", v->n_bytes);
}

static int check_rate_and_channels(const view *v, uint64_t rate_hz, uint64_t n_channels)
{
    if (rate_hz == 0)
        return refuse_header(v, "the header says 0 Hz");
    if (n_channels == 0 || n_channels > PNR_SOUND_MAX_CHANNELS)
        return refuse_header(v, "the header says %" PRIu64 " channels, 1..%d are read", n_channels,
                             PNR_SOUND_MAX_CHANNELS);
    return PNR_OK;
}

/* Counts the whole frames in n_bytes of samples. The caller has checked that all these bytes are in
 * the file. */
static int count_frames(const view *v, uint64_t n_bytes, uint64_t offset, pnr_sound_header *out)
{
    unsigned frame_bytes = out->n_channels * out->bits / 8;

    if (n_bytes < frame_bytes)
        return refuse_header(v,
                             "the header says %" PRIu64 " bytes of samples (one sample of all "
                             "channels has %u), the file has %" PRIu64 " bytes after byte %" PRIu64,
                             n_bytes, frame_bytes, v->file_bytes - offset, offset);
    out->n_frames = n_bytes / frame_bytes;
    out->n_trailing_bytes = (unsigned)(n_bytes % frame_bytes);
    return PNR_OK;
}

typedef struct chunk chunk;

/* The layout of the chunks of RIFF, RF64, W64 and AIFF. */
typedef struct layout {
    const unsigned char *tail; /* W64: a chunk name is four letters and these twelve bytes */
    size_t id_bytes;
    size_t size_bytes;
    bool size_has_header; /* the size in a chunk header includes the chunk header */
    bool is_big_endian;
    unsigned align; /* each chunk starts at a multiple of `align` bytes */
    const char *format_id, *data_id;
    unsigned data_skip; /* bytes between the start of the data chunk's content and the samples */
    int (*read_format)(const view *v, const chunk *c, pnr_sound_header *out);
} layout;

struct chunk {
    const unsigned char *id;
    uint64_t body;    /* offset of the content */
    uint64_t n_bytes; /* bytes of the content, as the chunk header states */
};

static size_t header_bytes(const layout *l)
{
    return l->id_bytes + l->size_bytes;
}

/* Reads the chunk header at `offset`. The caller has checked that `data` contains it. False: there
 * is no chunk header. */
static bool read_chunk(const layout *l, const unsigned char *data, uint64_t offset, chunk *out)
{
    const unsigned char *p = data + offset;
    uint64_t excess = l->size_has_header ? header_bytes(l) : 0;
    uint64_t size = read_number(p + l->id_bytes, l->size_bytes, l->is_big_endian);

    for (size_t i = 0; i < 4; i++)
        if (p[i] < ' ' || p[i] > '~')
            return false;
    if (size < excess)
        return false;
    *out = (chunk){.id = p, .body = offset + header_bytes(l), .n_bytes = size - excess};
    return true;
}

/* True if the chunk has this name. id: up to four letters. In the file, spaces fill a shorter name
 * to four letters. */
static bool has_id(const layout *l, const chunk *c, const char *id)
{
    char padded[5];

    snprintf(padded, sizeof padded, "%-4s", id);
    return memcmp(c->id, padded, 4) == 0 && (!l->tail || memcmp(c->id + 4, l->tail, 12) == 0);
}

/* Returns the offset of the chunk after c. UINT64_MAX: this offset does not fit in 64 bits. */
static uint64_t next_offset(const layout *l, const chunk *c)
{
    uint64_t padding = c->n_bytes % l->align ? l->align - c->n_bytes % l->align : 0;

    if (c->n_bytes > UINT64_MAX - padding - c->body)
        return UINT64_MAX;
    return c->body + c->n_bytes + padding;
}

enum { FORMAT_PCM = 1, FORMAT_FLOAT = 3, FORMAT_EXTENSIBLE = 0xfffe };

/* Checks that a chunk has the bytes that are needed. name: "fmt", "extensible fmt", "COMM". */
static int check_format_bytes(const view *v, const chunk *c, uint64_t needed, const char *name)
{
    if (c->n_bytes < needed)
        return refuse_header(v,
                             "the %s chunk says %" PRIu64 " bytes, at least %" PRIu64 " are needed",
                             name, c->n_bytes, needed);
    return is_in_view(v, c->body, needed) ? PNR_OK : refuse_unseen(v, c->body, needed);
}

static int read_format_chunk(const view *v, const chunk *c, pnr_sound_header *out)
{
    const unsigned char *p = v->data + c->body;
    int rc = check_format_bytes(v, c, 16, "fmt");

    if (rc != PNR_OK)
        return rc;

    unsigned tag = (unsigned)little_endian(p, 2);
    unsigned frame_bytes = (unsigned)little_endian(p + 12, 2);

    out->n_channels = (unsigned)little_endian(p + 2, 2);
    out->rate_hz = (uint32_t)little_endian(p + 4, 4);
    out->bits = (unsigned)little_endian(p + 14, 2);
    if (tag == FORMAT_EXTENSIBLE) {
        if ((rc = check_format_bytes(v, c, 40, "extensible fmt")) != PNR_OK)
            return rc;
        tag = (unsigned)little_endian(p + 24, 2); /* the first two bytes of the GUID */
    }

    const unsigned bits = out->bits, n = out->n_channels;
    const bool is_pcm = tag == FORMAT_PCM && bits % 8 == 0 && bits >= 8 && bits <= 32;

    out->is_float = tag == FORMAT_FLOAT && (bits == 32 || bits == 64);
    if (!is_pcm && !out->is_float)
        return refuse_header(v,
                             "encoding 0x%04x with %u bits; integers (0x0001) of 8, 16, 24, 32 "
                             "bits and floats (0x0003) of 32, 64 bits are read",
                             tag, bits);
    if ((rc = check_rate_and_channels(v, out->rate_hz, n)) != PNR_OK)
        return rc;
    if (frame_bytes != n * bits / 8)
        return refuse_header(v, "the header says %u bytes for %u channels of %u bits, not %u",
                             frame_bytes, n, bits, n * bits / 8);
    return PNR_OK;
}

/* Apple's names of linear encodings in AIFF-C. Plain AIFF has no such name, and always has the
 * first encoding. */
static const struct aiff_encoding {
    const char *name;
    bool is_float;
} aiff_encodings[] = {{"NONE", false}, {"twos", false}, {"sowt", false}, {"fl32", true},
                      {"FL32", true},  {"fl64", true},  {"FL64", true}};

/* Reads a rate as an 80-bit float: a sign, 15 bits of exponent, 64 bits of mantissa. Returns 0 if
 * the rate is not a whole number of Hz that fits in 32 bits. */
static uint32_t read_extended(const unsigned char p[10])
{
    enum { BIAS = 16383 };
    const unsigned exponent = (unsigned)big_endian(p, 2);
    const uint64_t mantissa = big_endian(p + 2, 8);

    if (exponent < BIAS || exponent > BIAS + 31)
        return 0;
    const unsigned shift = BIAS + 63 - exponent;
    return mantissa << (64 - shift) == 0 ? (uint32_t)(mantissa >> shift) : 0;
}

static int read_comm_chunk(const view *v, const chunk *c, pnr_sound_header *out)
{
    const bool is_c = memcmp(v->data + 8, "AIFC", 4) == 0;
    const unsigned char *p = v->data + c->body;
    const char *name = aiff_encodings[0].name;
    const struct aiff_encoding *encoding = NULL;
    int rc = check_format_bytes(v, c, is_c ? 22 : 18, "COMM");

    if (rc != PNR_OK)
        return rc;
    if (is_c)
        name = (const char *)p + 18;
    for (size_t i = 0; i < sizeof aiff_encodings / sizeof aiff_encodings[0]; i++)
        if (memcmp(aiff_encodings[i].name, name, 4) == 0)
            encoding = &aiff_encodings[i];
    out->n_channels = (unsigned)big_endian(p, 2);
    out->n_frames = big_endian(p + 2, 4);
    out->bits = (unsigned)big_endian(p + 6, 2);
    out->rate_hz = read_extended(p + 8);
    if (encoding == NULL || out->bits % 8 != 0 || out->bits < 8 ||
        (encoding->is_float ? out->bits < 32 || out->bits > 64 : out->bits > 32))
        return refuse_header(v,
                             "encoding \"%.4s\" with %u bits; integers of 8, 16, 24, 32 bits and "
                             "floats of 32, 64 bits are read",
                             name, out->bits);
    out->is_float = encoding->is_float;
    return check_rate_and_channels(v, out->rate_hz, out->n_channels);
}

static const unsigned char w64_riff_tail[12] = {0x2e, 0x91, 0xcf, 0x11, 0xa5, 0xd6,
                                                0x28, 0xdb, 0x04, 0xc1, 0x00, 0x00};
static const unsigned char w64_tail[12] = {0xf3, 0xac, 0xd3, 0x11, 0x8c, 0xd1,
                                           0x00, 0xc0, 0x4f, 0x8e, 0xdb, 0x8a};
static const layout riff_layout = {.id_bytes = 4,
                                   .size_bytes = 4,
                                   .align = 2,
                                   .format_id = "fmt",
                                   .data_id = "data",
                                   .read_format = read_format_chunk};
static const layout w64_layout = {.tail = w64_tail,
                                  .id_bytes = 16,
                                  .size_bytes = 8,
                                  .size_has_header = true,
                                  .align = 8,
                                  .format_id = "fmt",
                                  .data_id = "data",
                                  .read_format = read_format_chunk};
static const layout aiff_layout = {.id_bytes = 4,
                                   .size_bytes = 4,
                                   .is_big_endian = true,
                                   .align = 2,
                                   .format_id = "COMM",
                                   .data_id = "SSND",
                                   .data_skip = 8,
                                   .read_format = read_comm_chunk};

/* The chunks from `offset` to `end`, the end of the file as the header states it. */
typedef struct chunks {
    const layout *layout;
    uint64_t offset, end;
    uint64_t data_bytes; /* size of the data chunk as the ds64 chunk of RF64 states it; else 0 */
} chunks;

/* Reads the header of the chunk at all->offset. Refuses a chunk whose content ends after
 * all->end. */
static int read_next(const view *v, const chunks *all, chunk *c)
{
    const uint64_t offset = all->offset;

    if (!is_in_view(v, offset, header_bytes(all->layout)))
        return refuse_unseen(v, offset, header_bytes(all->layout));
    if (!read_chunk(all->layout, v->data, offset, c))
        return refuse_header(v, "no chunk at byte %" PRIu64, offset);
    if (all->data_bytes > 0 && has_id(all->layout, c, all->layout->data_id)) {
        if (c->n_bytes != UINT32_MAX && c->n_bytes != all->data_bytes)
            return refuse_header(
                v, "the ds64 chunk says %" PRIu64 " bytes of samples, the data chunk %" PRIu64,
                all->data_bytes, c->n_bytes);
        c->n_bytes = all->data_bytes;
    }
    if (c->body > all->end || c->n_bytes > all->end - c->body)
        return refuse_header(v,
                             "the header says %" PRIu64 " bytes in chunk \"%.4s\", the file "
                             "has %" PRIu64 " bytes after byte %" PRIu64,
                             c->n_bytes, (const char *)c->id,
                             v->file_bytes > c->body ? v->file_bytes - c->body : 0, c->body);
    return PNR_OK;
}

static int check_end(const view *v, const chunks *all)
{
    const uint64_t end = all->end, align = all->layout->align;
    const uint64_t padded =
        end % align && end < UINT64_MAX - align ? end - end % align + align : end;

    if (v->file_bytes == end || v->file_bytes == padded)
        return PNR_OK;
    return refuse_header(v,
                         "the header says %" PRIu64 " bytes, the file has %" PRIu64
                         " (cut short, not finished, or more than the header can say?): copy it "
                         "again",
                         end, v->file_bytes);
}

/* Counts the frames of the data chunk, the last chunk that is read. Refuses a header that states
 * another number of frames. */
static int read_data_chunk(const view *v, const chunks *all, const chunk *c, pnr_sound_header *out)
{
    const layout *l = all->layout;
    const uint64_t stated = out->n_frames, first = c->body + l->data_skip;
    int rc;

    if (out->bits == 0)
        return refuse_header(v, "the %s chunk comes before the %s chunk", l->data_id, l->format_id);
    if (c->n_bytes < l->data_skip)
        return refuse_header(v, "the %s chunk says %" PRIu64 " bytes", l->data_id, c->n_bytes);
    out->rest_offset = next_offset(l, c);
    out->rest_bytes = out->rest_offset < all->end ? all->end - out->rest_offset : 0;
    if (!l->is_big_endian && out->bits == (out->is_float ? 32 : 16))
        out->plain_offset = first;
    rc = count_frames(v, c->n_bytes - l->data_skip, first, out);
    if (rc == PNR_OK && stated > 0 && stated != out->n_frames)
        return refuse_header(v, "the header says %" PRIu64 " frames, the %s chunk holds %" PRIu64,
                             stated, l->data_id, out->n_frames);
    return rc;
}

/* Reads the chunks up to and including the data chunk. */
static int read_chunks(const view *v, chunks all, pnr_sound_header *out)
{
    const layout *l = all.layout;
    int rc = check_end(v, &all);
    chunk c = {0};

    for (; rc == PNR_OK; all.offset = next_offset(l, &c)) {
        if (all.offset >= all.end)
            return refuse_header(v, "no %s chunk in %" PRIu64 " bytes",
                                 out->bits ? l->data_id : l->format_id, v->file_bytes);
        if ((rc = read_next(v, &all, &c)) != PNR_OK)
            return rc;
        if (has_id(l, &c, l->data_id))
            return read_data_chunk(v, &all, &c, out);
        if (has_id(l, &c, l->format_id))
            rc = l->read_format(v, &c, out);
    }
    return rc;
}

static int read_aiff(const view *v, pnr_sound_header *out)
{
    if (memcmp(v->data + 8, "AIFF", 4) != 0 && memcmp(v->data + 8, "AIFC", 4) != 0)
        return pnr_error_set(v->error, PNR_EDATA, "an IFF file, but not of the type AIFF or AIFC");
    return read_chunks(v, (chunks){&aiff_layout, 12, big_endian(v->data + 4, 4) + 8, 0}, out);
}

static int read_wav(const view *v, pnr_sound_header *out)
{
    if (memcmp(v->data + 8, "WAVE", 4) != 0)
        return pnr_error_set(v->error, PNR_EDATA, "a RIFF file, but not of the type WAVE");
    return read_chunks(v, (chunks){&riff_layout, 12, little_endian(v->data + 4, 4) + 8, 0}, out);
}

/* EBU Tech 3306: the first chunk, ds64, has the sizes that do not fit in 32 bits. */
static int read_rf64(const view *v, pnr_sound_header *out)
{
    enum { DS64 = 12, DS64_BYTES = 28 };
    const unsigned char *body = v->data + DS64 + 8;
    chunk c;

    if (memcmp(v->data + 8, "WAVE", 4) != 0)
        return pnr_error_set(v->error, PNR_EDATA, "an RF64 file, but not of the type WAVE");
    if (!read_chunk(&riff_layout, v->data, DS64, &c) || !has_id(&riff_layout, &c, "ds64") ||
        c.n_bytes < DS64_BYTES)
        return refuse_header(v, "no ds64 chunk of %d bytes at byte %d", DS64_BYTES, DS64);

    uint64_t riff_bytes = little_endian(body, 8);
    uint64_t data_bytes = little_endian(body + 8, 8);
    uint64_t end = riff_bytes > UINT64_MAX - 8 ? UINT64_MAX : riff_bytes + 8;

    if (data_bytes == 0)
        return refuse_header(
            v, "the header says 0 bytes of samples, the file has %" PRIu64 " bytes", v->file_bytes);
    return read_chunks(v, (chunks){&riff_layout, next_offset(&riff_layout, &c), end, data_bytes},
                       out);
}

static int read_w64(const view *v, pnr_sound_header *out)
{
    if (memcmp(v->data + 4, w64_riff_tail, 12) != 0 || memcmp(v->data + 24, "wave", 4) != 0 ||
        memcmp(v->data + 28, w64_tail, 12) != 0)
        return pnr_error_set(v->error, PNR_EDATA, "begins like W64, but its names are not W64's");
    return read_chunks(v, (chunks){&w64_layout, 40, little_endian(v->data + 16, 8), 0}, out);
}

/* Linear encodings of the AU header. All others, for example A-law and mu-law, are refused. */
static const struct au_encoding {
    unsigned number;
    unsigned bits;
    bool is_float;
} au_encodings[] = {{2, 8, false},  {3, 16, false}, {4, 24, false},
                    {5, 32, false}, {6, 32, true},  {7, 64, true}};

static int read_au(const view *v, pnr_sound_header *out)
{
    const struct au_encoding *encoding = NULL;
    uint64_t word[6];

    for (size_t i = 0; i < 6; i++) /* ".snd": big endian; "dns.": little endian */
        word[i] = read_number(v->data + 4 * i, 4, v->data[0] == '.');

    uint64_t offset = word[1];
    uint64_t n_bytes = word[2];

    for (size_t i = 0; i < sizeof au_encodings / sizeof au_encodings[0]; i++)
        if (au_encodings[i].number == word[3])
            encoding = &au_encodings[i];
    if (!encoding)
        return refuse_header(v, "encoding %" PRIu64 "; integers (2..5) and floats (6, 7) are read",
                             word[3]);
    int rc = check_rate_and_channels(v, word[4], word[5]);
    if (rc != PNR_OK)
        return rc;
    if (offset < 24 || offset > v->file_bytes)
        return refuse_header(v,
                             "the header says that the samples begin at byte %" PRIu64
                             ", the file has %" PRIu64 " bytes",
                             offset, v->file_bytes);
    if (n_bytes == UINT32_MAX) /* size unknown: the samples reach to the end of the file */
        n_bytes = v->file_bytes - offset;
    if (n_bytes != v->file_bytes - offset)
        return refuse_header(v,
                             "the header says %" PRIu64 " bytes of samples, the file has %" PRIu64,
                             n_bytes, v->file_bytes - offset);
    out->rate_hz = (uint32_t)word[4];
    out->n_channels = (unsigned)word[5];
    out->bits = encoding->bits;
    out->is_float = encoding->is_float;
    return count_frames(v, n_bytes, offset, out);
}

/* RFC 9639, section 8.2: 8 bytes hold the rate (20 bits), channels - 1 (3 bits), bits - 1 (5 bits)
 * and the number of samples (36 bits). */
static int read_flac(const view *v, pnr_sound_header *out)
{
    enum { STREAMINFO_BYTES = 34, HEAD_BYTES = 8 + STREAMINFO_BYTES };
    const unsigned char *p = v->data + 4;

    if ((p[0] & 0x7f) != 0 || read_number(p + 1, 3, true) != STREAMINFO_BYTES)
        return refuse_header(v, "no STREAMINFO block at byte 4");

    uint64_t packed = read_number(p + 14, 8, true);

    out->rate_hz = (uint32_t)(packed >> 44);
    out->n_channels = (unsigned)(packed >> 41 & 7) + 1;
    out->bits = (unsigned)(packed >> 36 & 31) + 1;
    out->n_frames = packed & ((UINT64_C(1) << 36) - 1);
    int rc = check_rate_and_channels(v, out->rate_hz, out->n_channels);
    if (rc != PNR_OK)
        return rc;
    if (out->bits < 4)
        return refuse_header(v, "the header says %u bits, 4..32 are possible", out->bits);
    if (out->n_frames == 0 || v->file_bytes == HEAD_BYTES)
        return refuse_header(
            v, "the header says %" PRIu64 " samples, the file has %" PRIu64 " bytes after it",
            out->n_frames, v->file_bytes - HEAD_BYTES);
    return PNR_OK;
}

static const struct kind {
    const char *magic;
    const char *name;
    size_t n_bytes; /* bytes that `read` needs */
    int (*read)(const view *v, pnr_sound_header *out);
} kinds[] = {
    {"RIFF", "WAV", 12, read_wav},   {"RF64", "RF64", 48, read_rf64},
    {"riff", "W64", 40, read_w64},   {".snd", "AU", 24, read_au},
    {"dns.", "AU", 24, read_au},     {"fLaC", "FLAC", 42, read_flac},
    {"FORM", "AIFF", 12, read_aiff},
};

static const struct kind *find_kind(const unsigned char *bytes, size_t n_bytes)
{
    for (size_t i = 0; n_bytes >= 4 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (memcmp(bytes, kinds[i].magic, 4) == 0)
            return &kinds[i];
    return NULL;
}

const char *pnr_sound_header_kind(const void *bytes, size_t n_bytes)
{
    const struct kind *kind = find_kind(bytes, n_bytes);

    return kind ? kind->name : NULL;
}

int pnr_sound_header_read(const void *bytes, size_t n_bytes, uint64_t file_bytes,
                          pnr_sound_header *out, pnr_error *error)
{
    size_t n = n_bytes < file_bytes ? n_bytes : (size_t)file_bytes;
    const struct kind *kind = find_kind(bytes, n);

    *out = (pnr_sound_header){0};
    if (!kind)
        return pnr_error_set(error, PNR_EDATA,
                             "does not begin like WAV, RF64, W64, AIFF, AU or FLAC (%" PRIu64
                             " bytes): for raw samples set source.format",
                             file_bytes);
    view v = {bytes, n, file_bytes, kind->name, error};
    out->name = kind->name;
    return is_in_view(&v, 0, kind->n_bytes) ? kind->read(&v, out)
                                            : refuse_unseen(&v, 0, kind->n_bytes);
}

int pnr_sound_header_check_rest(const pnr_sound_header *header, const void *bytes, pnr_error *error)
{
    const layout *l = strcmp(header->name, "W64") == 0    ? &w64_layout
                      : strcmp(header->name, "AIFF") == 0 ? &aiff_layout
                                                          : &riff_layout;
    uint64_t offset = 0;
    chunk c;

    while (offset < header->rest_bytes) {
        bool is_chunk = header->rest_bytes - offset >= header_bytes(l) &&
                        read_chunk(l, bytes, offset, &c) && !has_id(l, &c, l->data_id) &&
                        c.n_bytes <= header->rest_bytes - c.body;

        if (!is_chunk)
            return pnr_error_set(error, PNR_EDATA,
                                 "%s: the header says that the samples end at byte %" PRIu64
                                 ", but %" PRIu64 " bytes follow that are no chunk",
                                 header->name, header->rest_offset, header->rest_bytes - offset);
        offset = next_offset(l, &c);
    }
    return PNR_OK;
}
