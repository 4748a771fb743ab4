/* SPDX-License-Identifier: MIT */
/* What the tests of the sources share: a folder, its files, and a reader of whole streams. */
#ifndef PNR_SOURCE_FIXTURE_H
#define PNR_SOURCE_FIXTURE_H

#include "source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOM = 1 << 18, MAX_GAPS = 16 };

/* What a stream gave: the samples without the gaps, and the gaps. */
typedef struct taken {
    unsigned char bytes[ROOM];
    size_t n_bytes;
    uint64_t position;
    pnr_run gaps[MAX_GAPS];
    size_t n_gaps;
    int end; /* the code that ended it */
    pnr_error error;
} taken;

static char folder[] = "/tmp/pnradar-test-source-XXXXXX";

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* every test removes its files */
}

/* A configuration with this file of the folder as its input ("-": stdin). */
static inline pnr_config configure(const char *name)
{
    pnr_config config = {.source.channels = 1};

    if (strcmp(name, "-") == 0 || name[0] == '/')
        snprintf(config.source.input, sizeof config.source.input, "%s", name);
    else
        snprintf(config.source.input, sizeof config.source.input, "%s/%s", folder, name);
    return config;
}

static inline void write_file(const char *name, const void *bytes, size_t n)
{
    pnr_config config = configure(name);
    FILE *stream = fopen(config.source.input, "wb");

    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, n, stream), n);
    assert_int_equal(fclose(stream), 0);
}

static inline size_t read_file(const char *name, unsigned char *bytes, size_t room)
{
    pnr_config config = configure(name);
    FILE *stream = fopen(config.source.input, "rb");
    size_t n;

    assert_non_null(stream);
    n = fread(bytes, 1, room, stream);
    assert_int_equal(fclose(stream), 0);
    return n;
}

static inline void remove_file(const char *name)
{
    pnr_config config = configure(name);

    assert_int_equal(unlink(config.source.input), 0);
}

static inline void fill(unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
}

static inline pnr_source *open_source(const pnr_config *config)
{
    pnr_source *source = NULL;
    pnr_error error = {0};

    if (pnr_source_open(config, &source, &error) != PNR_OK)
        fail_msg("%s", error.text);
    return source;
}

/* Refused with this code, and these words (up to NULL) in the text. */
static inline void expect_refused(const pnr_config *config, int code, ...)
{
    va_list words;
    pnr_source *source = (void *)&words; /* must become NULL */
    pnr_error error = {0};
    const char *word;
    int rc = pnr_source_open(config, &source, &error);

    if (rc != code)
        fail_msg("%s, not %s: %s", pnr_error_name(rc), pnr_error_name(code), error.text);
    assert_int_equal(error.code, code);
    assert_null(source);
    va_start(words, code);
    while ((word = va_arg(words, const char *)))
        if (!strstr(error.text, word))
            fail_msg("\"%s\" is not in \"%s\"", word, error.text);
    va_end(words);
}

/* Reads to the end, at most `chunk` samples a call,
 * each call into memory that held something else. */
static inline void take_all(pnr_source *source, size_t chunk, taken *out)
{
    const pnr_source_info *info = pnr_source_get_info(source);
    size_t sample_bytes = pnr_format_get(info->format)->bytes * info->n_channels;
    static unsigned char landing[ROOM];
    int patience = 20000; /* a part of a sample is an EAGAIN too, without any wait */
    int rc;

    *out = (taken){.n_bytes = 0};
    do {
        size_t n = SIZE_MAX;
        uint64_t gap = UINT64_MAX;
        size_t room = (ROOM - out->n_bytes) / sample_bytes;

        size_t wanted = chunk < room ? chunk : room;

        memset(landing, 0xa5, wanted * sample_bytes);
        rc = pnr_source_read(source, landing, wanted, &n, &gap, &out->error);
        if (rc == PNR_OK) {
            assert_true((n > 0) != (gap > 0));
            assert_true(n <= wanted);
        } else {
            assert_true(n == 0 && gap == 0);
        }
        if (gap > 0) {
            assert_true(out->n_gaps < MAX_GAPS);
            out->gaps[out->n_gaps++] = (pnr_run){out->position, gap};
        }
        out->position += n + gap;
        memcpy(out->bytes + out->n_bytes, landing, n * sample_bytes);
        out->n_bytes += n * sample_bytes;
        assert_true(rc != PNR_EAGAIN || patience-- > 0);
    } while (rc == PNR_OK || rc == PNR_EAGAIN);
    out->end = rc;
}

static inline void expect_bytes(const taken *got, const void *bytes, size_t n)
{
    assert_int_equal(got->n_bytes, n);
    assert_memory_equal(got->bytes, bytes, n);
}

/* Opens, reads all with chunks of every size, compares with these bytes; returns the open info. */
static inline pnr_source_info expect_stream(const pnr_config *config, const void *bytes, size_t n)
{
    static const size_t chunks[] = {1, 2, 3, 7, 64, 1000, SIZE_MAX};
    static taken got;
    pnr_source_info info = {0};

    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        pnr_source *source = open_source(config);

        info = *pnr_source_get_info(source);
        take_all(source, chunks[i], &got);
        assert_int_equal(got.end, PNR_EEND);
        expect_bytes(&got, bytes, n);
        assert_true(got.position == info.n_samples);
        pnr_source_close(source);
    }
    return info;
}

#endif
