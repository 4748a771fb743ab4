/* SPDX-License-Identifier: MIT */
/* Sound files made by libsndfile's own writer: their samples come back, broken ones are refused. */
#include "tests/fixture/source_fixture.h"

#include <sndfile.h>

/* Counts every allocation of the process, libsndfile's too; a sanitizer has its own allocator. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define COUNTS_ALLOCATIONS 1
#else
#define COUNTS_ALLOCATIONS 0
#endif

#if COUNTS_ALLOCATIONS
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t n);

static unsigned long n_allocations;

void *malloc(size_t n)
{
    n_allocations++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    n_allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
    n_allocations++;
    return __libc_realloc(old, n);
}
#endif

static const struct kind {
    const char *name; /* of the file */
    int format;
    const char *says; /* in the text for the log */
} kinds[] = {
    {"x.wav", SF_FORMAT_WAV, "WAV"},    {"x.wave", SF_FORMAT_WAVEX, "WAV"},
    {"x.rf64", SF_FORMAT_RF64, "RF64"}, {"x.w64", SF_FORMAT_W64, "W64"},
    {"x.au", SF_FORMAT_AU, "AU"},       {"x.snd", SF_FORMAT_AU | SF_ENDIAN_LITTLE, "AU"},
    {"x.aiff", SF_FORMAT_AIFF, "AIFF"}, {"x.flac", SF_FORMAT_FLAC, "FLAC"},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0], FLAC_KIND = N_KINDS - 1 };

static const struct encoding {
    int format;
    unsigned bits;
    bool is_integer; /* read as int16 */
    bool in_flac;
    bool in_au; /* AU and AIFF have no unsigned bytes, WAV no signed ones */
    bool in_wav;
} encodings[] = {
    {SF_FORMAT_PCM_U8, 8, true, false, false, true},
    {SF_FORMAT_PCM_S8, 8, true, true, true, false},
    {SF_FORMAT_PCM_16, 16, true, true, true, true},
    {SF_FORMAT_PCM_24, 24, false, true, true, true},
    {SF_FORMAT_PCM_32, 32, false, false, true, true},
    {SF_FORMAT_FLOAT, 32, false, false, true, true},
    {SF_FORMAT_DOUBLE, 64, false, false, true, true},
};
enum { N_ENCODINGS = sizeof encodings / sizeof encodings[0] };

static bool can_hold(const struct kind *kind, const struct encoding *encoding)
{
    if (kind->format == SF_FORMAT_FLAC)
        return encoding->in_flac;
    if (strcmp(kind->says, "AU") == 0 || strcmp(kind->says, "AIFF") == 0)
        return encoding->in_au;
    return encoding->in_wav;
}

/* The sample of channel `channel` in frame `frame`, as int16: changes fast, so that a swap shows */
static int16_t value(size_t frame, size_t channel)
{
    return (int16_t)((frame * 7919 + channel * 12345) % 65536 - 32768);
}

static void write_sound(const char *name, int format, int channels, size_t n_frames)
{
    pnr_config config = source_config(name);
    SF_INFO info = {.samplerate = 96000, .channels = channels, .format = format};
    SNDFILE *file = sf_open(config.source.input, SFM_WRITE, &info);

    if (!file)
        fail_msg("%s", sf_strerror(NULL));
    int encoding = format & SF_FORMAT_SUBMASK;
    bool is_float = encoding == SF_FORMAT_FLOAT || encoding == SF_FORMAT_DOUBLE;
    for (size_t i = 0; i < n_frames; i++) {
        int whole[8];
        float fraction[8];

        for (size_t k = 0; k < (size_t)channels; k++) {
            whole[k] = value(i, k) * 65536;
            fraction[k] = (float)value(i, k) / 32768.0f;
        }
        assert_int_equal(
            is_float ? sf_writef_float(file, fraction, 1) : sf_writef_int(file, whole, 1), 1);
    }
    assert_int_equal(sf_close(file), 0);
}

/* The samples that the source must give for the file of write_sound. Returns the bytes. */
static size_t expected_samples(const struct encoding *encoding, size_t channels, size_t n_frames,
                               unsigned char *out)
{
    size_t at = 0;

    for (size_t i = 0; i < n_frames; i++)
        for (size_t k = 0; k < channels; k++) {
            int16_t whole = value(i, k);
            float fraction = (float)whole / 32768.0f;

            if (encoding->bits == 8)
                whole = (int16_t)(whole & ~0xff);
            size_t n = encoding->is_integer ? sizeof whole : sizeof fraction;
            memcpy(out + at, encoding->is_integer ? (void *)&whole : (void *)&fraction, n);
            at += n;
        }
    return at;
}

TEST(test_every_kind_and_encoding)
{
    static unsigned char bytes[ROOM];
    static const struct {
        int layout;
        int channels;
        bool is_complex;
        size_t n_channels;
    } layouts[] = {{PNR_LAYOUT_IQ, 1, false, 1},       {PNR_LAYOUT_IQ, 2, true, 1},
                   {PNR_LAYOUT_IQ, 6, true, 3},        {PNR_LAYOUT_CHANNELS, 1, false, 1},
                   {PNR_LAYOUT_CHANNELS, 2, false, 2}, {PNR_LAYOUT_CHANNELS, 5, false, 5}};
    size_t n_files = 0;

    for (size_t i = 0; i < N_KINDS; i++)
        for (size_t e = 0; e < N_ENCODINGS; e++)
            for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++) {
                const struct encoding *encoding = &encodings[e];
                bool is_complex = layouts[l].is_complex;
                /* libsndfile counts the pad byte of an AIFF file of odd size as samples */
                const size_t n_frames = kinds[i].format == SF_FORMAT_AIFF ? 500 : 501;
                pnr_format format = is_complex ? PNR_FORMAT_CF32 : PNR_FORMAT_F32;

                if (!can_hold(&kinds[i], encoding))
                    continue;
                if (encoding->is_integer)
                    format = is_complex ? PNR_FORMAT_CI16 : PNR_FORMAT_I16;
                write_sound(kinds[i].name, kinds[i].format | encoding->format, layouts[l].channels,
                            n_frames);
                size_t n = expected_samples(encoding, (size_t)layouts[l].channels, n_frames, bytes);
                pnr_config config = source_config(kinds[i].name);
                config.source.layout = layouts[l].layout;
                config.source.channel = layouts[l].n_channels - 1;
                config.source.rate_hz = (pnr_rational){96000, 1};
                pnr_source_info info = expect_stream(&config, bytes, n);
                assert_int_equal(info.format, format);
                assert_int_equal(info.n_channels, layouts[l].n_channels);
                assert_int_equal(info.n_samples, n_frames);
                assert_int_equal(info.n_trailing_bytes, 0);
                assert_true(info.rate_hz.num == 96000 && info.rate_hz.den == 1);
                assert_int_equal(strncmp(info.text, kinds[i].says, strlen(kinds[i].says)), 0);
                remove_file(kinds[i].name);
                n_files++;
            }
    assert_int_equal(n_files, 6 * (4 * 6 + 2 * 6 + 6 + 3)); /* kinds that hold each encoding */
}

TEST(test_name_does_not_matter)
{
    unsigned char bytes[200];
    size_t n = expected_samples(&encodings[2], 2, 50, bytes);

    for (size_t i = 0; i < N_KINDS; i++) {
        write_sound("recording", kinds[i].format | SF_FORMAT_PCM_16, 2, 50);
        pnr_config config = source_config("recording");
        expect_stream(&config, bytes, n);
        config.source.format = PNR_FORMAT_CI16; /* says the same */
        expect_stream(&config, bytes, n);
        config.source.format = PNR_FORMAT_CF32;
        expect_source_refused(&config, PNR_ECONFIG, "ci16", "cf32", "source.format", NULL);
        remove_file("recording");
    }
    write_sound("x.sc16", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 2, 50);
    pnr_config config = source_config("x.sc16"); /* a WAV under a raw name */
    expect_source_refused(&config, PNR_ECONFIG, "WAV", "ci16", NULL);
    remove_file("x.sc16");
    write_file("x.wav", bytes, sizeof bytes); /* raw samples under a WAV's name */
    config = source_config("x.wav");
    expect_source_refused(&config, PNR_EDATA, "does not begin like WAV", NULL);
    config.source.format = PNR_FORMAT_I8; /* by explicit word */
    expect_stream(&config, bytes, sizeof bytes);
    remove_file("x.wav");
}

TEST(test_rates)
{
    pnr_config config = source_config("x.wav");

    write_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2, 50);
    config.source.rate_hz = (pnr_rational){192000, 2};
    pnr_source_close(open_source(&config));
    config.source.rate_hz = (pnr_rational){96001, 1};
    expect_source_refused(&config, PNR_ECONFIG, "96000 Hz", "96001 Hz", NULL);
    config.source.rate_hz = (pnr_rational){288001, 3};
    expect_source_refused(&config, PNR_ECONFIG, "96000 Hz", "288001/3 Hz", NULL);
    remove_file("x.wav");
}

TEST(test_channel_counts)
{
    static const char hint[] = ": two channels of the file are taken as I and Q; for two real "
                               "signals, set source.layout = channels";
    pnr_config config = source_config("x.wav");

    write_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2, 50);
    config.source.channel = 1;
    expect_source_refused(&config, PNR_ECONFIG, "source.channel = 1 ", "is 1 in", hint, NULL);
    config.source.channels = 2;
    expect_source_refused(&config, PNR_ECONFIG, "source.channels is 2", "with 1", hint, NULL);
    config.source.layout = PNR_LAYOUT_CHANNELS;
    pnr_source_close(open_source(&config));
    config = source_config("x.wav");
    write_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 3, 50);
    expect_source_refused(&config, PNR_ECONFIG, "3 channels", "layout = channels", NULL);
    config.source.layout = PNR_LAYOUT_CHANNELS;
    config.source.channel = 2;
    pnr_source_close(open_source(&config));
    config.source.channel = 3;
    expect_source_refused(&config, PNR_ECONFIG, "source.channel = 3 ", "source.channels is 3 in",
                          NULL);
    config.source.channel = 0;
    config.source.channels = 3;
    pnr_source_close(open_source(&config));
    config.source.channels = 4;
    expect_source_refused(&config, PNR_ECONFIG, "source.channels is 4", "with 3", NULL);
    remove_file("x.wav");
}

TEST(test_cut_at_every_byte)
{
    static unsigned char bytes[4096];

    for (size_t i = 0; i < N_KINDS; i++) {
        pnr_config config = source_config(kinds[i].name);

        write_sound(kinds[i].name, kinds[i].format | SF_FORMAT_PCM_16, 2, 20);
        size_t n = read_file(kinds[i].name, bytes, sizeof bytes);
        assert_true(n > 80 && n < sizeof bytes);
        for (size_t cut = 0; cut < n; cut++) {
            write_file(kinds[i].name, bytes, cut);
            expect_source_refused(&config, PNR_EDATA, NULL);
        }
        remove_file(kinds[i].name);
    }
}

TEST(test_longer_than_the_header_says)
{
    static unsigned char bytes[4096];

    for (size_t i = 0; i < FLAC_KIND; i++) {
        pnr_config config = source_config(kinds[i].name);

        write_sound(kinds[i].name, kinds[i].format | SF_FORMAT_PCM_16, 2, 20);
        size_t n = read_file(kinds[i].name, bytes, sizeof bytes);
        memset(bytes + n, 0, 8);
        write_file(kinds[i].name, bytes, n + 8);
        expect_source_refused(&config, PNR_EDATA, kinds[i].name, "the header says", NULL);
        remove_file(kinds[i].name);
    }
}

/* Tags after the samples are no samples; samples that the header forgot are no tags. */
TEST(test_rest_of_the_file)
{
    static unsigned char bytes[4096];
    static unsigned char wanted[4096];
    pnr_config config = source_config("x.wav");

    write_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2, 20);
    size_t n = read_file("x.wav", bytes, sizeof bytes);
    assert_int_equal(n, 44 + 80);
    memcpy(bytes + n, "LIST\x04\0\0\0INFO", 12);
    bytes[4] = (unsigned char)(n + 12 - 8);
    write_file("x.wav", bytes, n + 12);
    expect_stream(&config, wanted, expected_samples(&encodings[2], 2, 20, wanted));

    bytes[40] = 60; /* of 80 bytes of samples */
    write_file("x.wav", bytes, n + 12);
    expect_source_refused(&config, PNR_EDATA, "end at byte 104", "32 bytes follow", NULL);
    remove_file("x.wav");
}

TEST(test_large_rest_is_refused)
{
    enum { REST = (1 << 20) + 8 };
    unsigned char *bytes = calloc(1, 44 + 4 + 8 + REST);
    pnr_config config = source_config("x.wav");

    assert_non_null(bytes);
    write_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2, 1);
    assert_int_equal(read_file("x.wav", bytes, 48), 48);
    for (size_t i = 0; i < 2; i++) { /* a chunk of exactly the limit is read, a longer one not */
        uint32_t n = (1 << 20) - 8 + (uint32_t)i * 2;
        uint32_t riff = 40 + 8 + n;

        memcpy(bytes + 48, "LIST", 4);
        memcpy(bytes + 52, &n, 4);
        memcpy(bytes + 4, &riff, 4);
        write_file("x.wav", bytes, riff + 8);
        if (i == 0)
            pnr_source_close(open_source(&config));
        else
            expect_source_refused(&config, PNR_EDATA, "end at byte 48", "1048578 bytes follow",
                                  NULL);
    }
    remove_file("x.wav");
    free(bytes);
}

/* A FLAC file of several frames with a hole: it ends with an error, not with fewer samples. */
TEST(test_flac_with_a_hole)
{
    enum { N_FRAMES = 30000 };
    static unsigned char bytes[ROOM];
    static taken got;
    pnr_config config = source_config("x.flac");

    write_sound("x.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 2, N_FRAMES);
    size_t n = read_file("x.flac", bytes, sizeof bytes);
    assert_true(n > 20000 && n < sizeof bytes);
    for (size_t cut = n - n / 8; cut < n; cut += n / 64) {
        write_file("x.flac", bytes, cut);
        expect_source_refused(&config, PNR_EDATA, "30000 frames", NULL);
    }
    memset(bytes + n / 2, 0, 3000);
    write_file("x.flac", bytes, n);
    pnr_source *source = open_source(&config);
    take_all(source, 1000, &got);
    assert_int_equal(got.end, PNR_EDATA);
    assert_non_null(strstr(got.error.text, "30000"));
    assert_null(strstr(got.error.text, "No Error")); /* the decoder's reason is kept */
    assert_true(got.position > 0 && got.position < N_FRAMES);
    pnr_source_block block;
    assert_int_equal(pnr_source_read(source, bytes, 1, &block, NULL), PNR_EEND);
    pnr_source_close(source);
    remove_file("x.flac");
}

TEST(test_lost_runs)
{
    static unsigned char bytes[4096];
    static taken got;
    pnr_run lost[] = {{0, 3}, {50, 7}, {110, 2}, {113, 1}};
    pnr_config config = source_config("x.wav");
    size_t n = expected_samples(&encodings[2], 2, 100, bytes);

    write_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2, 100);
    config.source.lost = lost;
    config.source.n_lost = 4;
    for (size_t chunk = 1; chunk < 200; chunk *= 3) {
        pnr_source *source = open_source(&config);

        assert_int_equal(pnr_source_get_info(source)->n_samples, 112);
        take_all(source, chunk, &got);
        expect_bytes(&got, bytes, n);
        assert_int_equal(got.n_gaps, 3);
        assert_int_equal(got.position, 112);
        pnr_source_close(source);
    }
    remove_file("x.wav");
}

TEST(test_parts)
{
    static const int formats[] = {SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_W64 | SF_FORMAT_FLOAT,
                                  SF_FORMAT_FLAC | SF_FORMAT_PCM_24};
    static const char *const names[] = {"x.wav", "x.w64", "x.flac"};
    pnr_run lost[] = {{100, 50}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pnr_config config = source_config(names[i]);

        write_sound(names[i], formats[i], 2, 9000);
        config.source.lost = lost;
        config.source.n_lost = 1;
        expect_parts(&config);
        remove_file(names[i]);
    }
}

TEST(test_reading_never_allocates)
{
#if COUNTS_ALLOCATIONS
    static const char *const names[] = {"x.wav", "x.w64", "x.au", "x.sc16"};
    static taken got;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        static const int formats[] = {SF_FORMAT_WAV | SF_FORMAT_PCM_16,
                                      SF_FORMAT_W64 | SF_FORMAT_FLOAT,
                                      SF_FORMAT_AU | SF_FORMAT_PCM_24};
        pnr_config config = source_config(names[i]);

        if (i < 3)
            write_sound(names[i], formats[i], 2, 5000);
        else
            write_file(names[i], got.bytes, sizeof got.bytes / 2);
        unsigned long at_first = n_allocations;
        pnr_source *source = open_source(&config);
        unsigned long after_open = n_allocations;
        take_all(source, 100, &got);
        unsigned long after_read = n_allocations;
        assert_true(after_open > at_first); /* the count works */
        assert_int_equal(after_read, after_open);
        pnr_source_close(source);
        remove_file(names[i]);
    }
#else
    skip();
#endif
}

TESTS_BETWEEN(make_folder, remove_folder)
