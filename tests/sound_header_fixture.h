/* SPDX-License-Identifier: MIT */
/* Sound files built byte by byte, one of each kind, and what to expect of them. */
#ifndef PNR_SOUND_HEADER_FIXTURE_H
#define PNR_SOUND_HEADER_FIXTURE_H

#include "sound_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_FILE = 512 };

/* A file under construction. */
typedef struct file {
    unsigned char bytes[MAX_FILE];
    size_t n;
} file;

static inline void put(file *f, const void *bytes, size_t n)
{
    assert_true(f->n + n <= MAX_FILE);
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static inline void set_le(file *f, size_t offset, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f->bytes[offset + i] = (unsigned char)(value >> 8 * i);
}

static inline void set_be(file *f, size_t offset, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f->bytes[offset + i] = (unsigned char)(value >> 8 * (n - 1 - i));
}

static inline void put_le(file *f, uint64_t value, size_t n)
{
    f->n += n;
    assert_true(f->n <= MAX_FILE);
    set_le(f, f->n - n, value, n);
}

static inline void put_be(file *f, uint64_t value, size_t n)
{
    f->n += n;
    assert_true(f->n <= MAX_FILE);
    set_be(f, f->n - n, value, n);
}

static inline void put_samples(file *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_le(f, 0x80 + i, 1);
}

static inline void put_format(file *f, unsigned tag, unsigned n_channels, unsigned bits)
{
    put_le(f, tag, 2);
    put_le(f, n_channels, 2);
    put_le(f, 96000, 4);
    put_le(f, 96000 * n_channels * bits / 8, 4);
    put_le(f, n_channels * bits / 8, 2);
    put_le(f, bits, 2);
}

/* Offsets inside the plain WAV file. */
enum { WAV_RIFF_SIZE = 4, WAV_FORMAT = 20, WAV_DATA = 36, WAV_DATA_SIZE = 40, WAV_SAMPLES = 44 };

static inline file wav(unsigned tag, unsigned n_channels, unsigned bits, size_t n_bytes)
{
    file f = {.n = 0};

    put(&f, "RIFF", 4);
    put_le(&f, 36 + n_bytes, 4);
    put(&f, "WAVEfmt ", 8);
    put_le(&f, 16, 4);
    put_format(&f, tag, n_channels, bits);
    put(&f, "data", 4);
    put_le(&f, n_bytes, 4);
    put_samples(&f, n_bytes);
    return f;
}

static inline file plain_wav(void)
{
    return wav(1, 2, 16, 120);
}

static inline file extensible_wav(void)
{
    static const unsigned char guid_tail[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                                0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    file f = {.n = 0};

    put(&f, "RIFF", 4);
    put_le(&f, 60 + 120, 4);
    put(&f, "WAVEfmt ", 8);
    put_le(&f, 40, 4);
    put_format(&f, 0xfffe, 2, 24);
    put_le(&f, 22, 2);
    put_le(&f, 24, 2);
    put_le(&f, 3, 4);
    put_le(&f, 1, 2);
    put(&f, guid_tail, sizeof guid_tail);
    put(&f, "data", 4);
    put_le(&f, 120, 4);
    put_samples(&f, 120);
    return f;
}

enum { RF64_RIFF = 20, RF64_DATA = 28, RF64_DATA_SIZE = 76, RF64_SAMPLES = 80 };

static inline file rf64(void)
{
    file f = {.n = 0};

    put(&f, "RF64", 4);
    put_le(&f, UINT32_MAX, 4);
    put(&f, "WAVEds64", 8);
    put_le(&f, 28, 4);
    put_le(&f, 72 + 120, 8);
    put_le(&f, 120, 8);
    put_le(&f, 30, 8);
    put_le(&f, 0, 4);
    put(&f, "fmt ", 4);
    put_le(&f, 16, 4);
    put_format(&f, 1, 2, 16);
    put(&f, "data", 4);
    put_le(&f, UINT32_MAX, 4);
    put_samples(&f, 120);
    return f;
}

static const unsigned char w64_riff[12] = {0x2e, 0x91, 0xcf, 0x11, 0xa5, 0xd6,
                                           0x28, 0xdb, 4,    0xc1, 0,    0};
static const unsigned char w64_tail[12] = {0xf3, 0xac, 0xd3, 0x11, 0x8c, 0xd1,
                                           0,    0xc0, 0x4f, 0x8e, 0xdb, 0x8a};

static inline void put_guid(file *f, const char *id)
{
    put(f, id, 4);
    put(f, w64_tail, sizeof w64_tail);
}

enum { W64_SIZE = 16, W64_DATA_SIZE = 96, W64_SAMPLES = 104 };

static inline file w64(void)
{
    file f = {.n = 0};

    put(&f, "riff", 4);
    put(&f, w64_riff, sizeof w64_riff);
    put_le(&f, 104 + 120, 8);
    put_guid(&f, "wave");
    put_guid(&f, "fmt ");
    put_le(&f, 24 + 16, 8);
    put_format(&f, 1, 2, 16);
    put_guid(&f, "data");
    put_le(&f, 24 + 120, 8);
    put_samples(&f, 120);
    return f;
}

enum { AU_OFFSET = 4, AU_SIZE = 8, AU_ENCODING = 12, AU_RATE = 16, AU_CHANNELS = 20 };

static inline file au(void)
{
    file f = {.n = 0};

    put(&f, ".snd", 4);
    put_be(&f, 28, 4);
    put_be(&f, 120, 4);
    put_be(&f, 3, 4);
    put_be(&f, 96000, 4);
    put_be(&f, 2, 4);
    put(&f, "note", 4);
    put_samples(&f, 120);
    return f;
}

static inline file little_au(void)
{
    file f = {.n = 0};

    put(&f, "dns.", 4);
    put_le(&f, 24, 4);
    put_le(&f, 120, 4);
    put_le(&f, 3, 4);
    put_le(&f, 96000, 4);
    put_le(&f, 2, 4);
    put_samples(&f, 120);
    return f;
}

enum { FLAC_BLOCK = 4, FLAC_PACKED = 18 };

static inline file flac(void)
{
    file f = {.n = 0};

    put(&f, "fLaC", 4);
    put_be(&f, 0x80000022, 4);
    put_be(&f, 4096, 2);
    put_be(&f, 4096, 2);
    put_be(&f, 0, 6);
    put_be(&f, UINT64_C(96000) << 44 | UINT64_C(1) << 41 | UINT64_C(15) << 36 | 30, 8);
    put_be(&f, 0, 8);
    put_be(&f, 0, 8);
    put_samples(&f, 20);
    return f;
}

/* Reads from memory of exactly this size, so that a sanitizer sees a byte too far. */
static inline int read_sized(const file *f, size_t n_bytes, uint64_t file_bytes,
                             pnr_sound_header *out, pnr_error *error)
{
    unsigned char *bytes = malloc(n_bytes > 0 ? n_bytes : 1);
    int rc;

    assert_non_null(bytes);
    memcpy(bytes, f->bytes, n_bytes);
    rc = pnr_sound_header_read(bytes, n_bytes, file_bytes, out, error);
    if (rc == PNR_OK && out->rest_bytes > 0 && out->rest_offset + out->rest_bytes <= n_bytes) {
        unsigned char *rest = malloc((size_t)out->rest_bytes);

        assert_non_null(rest);
        memcpy(rest, bytes + out->rest_offset, (size_t)out->rest_bytes);
        rc = pnr_sound_header_check_rest(out, rest, error);
        free(rest);
    }
    free(bytes);
    return rc;
}

static inline pnr_sound_header expect_ok(const file *f)
{
    pnr_sound_header header;
    pnr_error error = {0};
    int rc = read_sized(f, f->n, f->n, &header, &error);

    if (rc != PNR_OK)
        fail_msg("refused: %s", error.text);
    return header;
}

/* Refused as PNR_EDATA, and the text holds each of the words given, up to NULL. */
static inline void expect_refused(const file *f, uint64_t file_bytes, ...)
{
    pnr_sound_header header;
    pnr_error error = {0};
    const char *word;
    va_list words;

    assert_int_equal(read_sized(f, f->n, file_bytes, &header, &error), PNR_EDATA);
    assert_int_equal(error.code, PNR_EDATA);
    va_start(words, file_bytes);
    while ((word = va_arg(words, const char *)))
        if (!strstr(error.text, word))
            fail_msg("\"%s\" is not in \"%s\"", word, error.text);
    va_end(words);
}

#endif
