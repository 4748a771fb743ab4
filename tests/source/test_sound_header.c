/* SPDX-License-Identifier: MIT */
/* Sound headers built byte by byte: right ones are read, wrong ones refused with their numbers. */
#include "source/sound_header.h"

#include "tests/fixture/sound_header_fixture.h"

static const struct sample_file {
    const char *name;
    file (*make)(void);
    unsigned bits;
    uint64_t n_frames;
} sample_files[] = {
    {"WAV", plain_wav, 16, 30}, {"WAV", extensible_wav, 24, 20}, {"RF64", rf64, 16, 30},
    {"W64", w64, 16, 30},       {"AIFF", aiff, 16, 30},          {"AIFF", aifc, 24, 20},
    {"AU", au, 16, 30},         {"AU", little_au, 16, 30},       {"FLAC", flac, 16, 30},
};
enum { N_SAMPLE_FILES = sizeof sample_files / sizeof sample_files[0] };

TEST(test_every_kind)
{
    for (size_t i = 0; i < N_SAMPLE_FILES; i++) {
        file f = sample_files[i].make();
        pnr_sound_header header = expect_header(&f);

        assert_string_equal(header.name, sample_files[i].name);
        assert_string_equal(pnr_sound_header_kind(f.bytes, f.n), sample_files[i].name);
        assert_int_equal(header.n_frames, sample_files[i].n_frames);
        assert_int_equal(header.n_channels, 2);
        assert_int_equal(header.bits, sample_files[i].bits);
        assert_false(header.is_float);
        assert_int_equal(header.rate_hz, 96000);
        assert_int_equal(header.n_trailing_bytes, 0);
        assert_int_equal(header.rest_bytes, 0);
    }
}

TEST(test_cut_at_every_byte)
{
    for (size_t i = 0; i < N_SAMPLE_FILES; i++) {
        file f = sample_files[i].make();
        size_t first_good =
            sample_files[i].make == flac ? 43 : f.n; /* FLAC's frames have no size */

        for (size_t n = 0; n < f.n; n++) {
            pnr_sound_header header;
            int rc = read_sized(&f, n, n, &header, NULL);

            assert_int_equal(rc, n < first_good ? PNR_EDATA : PNR_OK);
        }
    }
}

TEST(test_longer_than_the_header_says)
{
    for (size_t i = 0; i < N_SAMPLE_FILES; i++) {
        file f = sample_files[i].make();

        if (sample_files[i].make == flac)
            continue;
        expect_header_refused(&f, f.n + 1, sample_files[i].name, NULL);
        expect_header_refused(&f, f.n + 4096, sample_files[i].name, NULL);
        expect_header_refused(&f, f.n + (UINT64_C(1) << 32), "4294967", NULL);
    }
}

TEST(test_numbers_in_the_text)
{
    file f = plain_wav();

    expect_header_refused(&f, 100, "164 bytes", "has 100", NULL);
    f = plain_wav();
    expect_header_refused(&f, UINT64_C(4294967460), "164 bytes", "4294967460", NULL);
    f = plain_wav();
    set_le(&f, WAV_DATA_SIZE, 0, 4);
    expect_header_refused(&f, f.n, "0 bytes of samples", "120 bytes", NULL);
    set_le(&f, WAV_DATA_SIZE, UINT32_MAX, 4);
    expect_header_refused(&f, f.n, "4294967295", "120 bytes", NULL);
    set_le(&f, WAV_DATA_SIZE, 121, 4);
    expect_header_refused(&f, f.n, "121", "120 bytes", NULL);
    f = plain_wav();
    set_le(&f, WAV_RIFF_SIZE, 0, 4);
    expect_header_refused(&f, f.n, "8 bytes", "164", NULL);
    set_le(&f, WAV_RIFF_SIZE, UINT32_MAX, 4);
    expect_header_refused(&f, f.n, "4294967303", "164", NULL);
    f = au();
    set_be(&f, AU_SIZE, 0, 4);
    expect_header_refused(&f, f.n, "0 bytes", "120", NULL);
    set_be(&f, AU_SIZE, 116, 4);
    expect_header_refused(&f, f.n, "116 bytes", "120", NULL);
    f = rf64();
    set_le(&f, RF64_DATA, 0, 8);
    expect_header_refused(&f, f.n, "0 bytes of samples", "200", NULL);
    f = w64();
    set_le(&f, W64_SIZE, 24, 8);
    expect_header_refused(&f, f.n, "24 bytes", "224", NULL);
    f = w64();
    set_le(&f, W64_DATA_SIZE, 24, 8);
    expect_header_refused(&f, f.n, "0 bytes of samples", "120", NULL);
}

/* A whole RIFF size over a data size that forgot samples: the rest is not chunks. */
TEST(test_data_size_too_small)
{
    file f = plain_wav();

    set_le(&f, WAV_DATA_SIZE, 60, 4);
    expect_header_refused(&f, f.n, "end at byte 104", "60 bytes follow", NULL);
    set_le(&f, WAV_DATA_SIZE, 116, 4);
    expect_header_refused(&f, f.n, "end at byte 160", "4 bytes follow", NULL);
    f = w64();
    set_le(&f, W64_DATA_SIZE, 24 + 64, 8);
    expect_header_refused(&f, f.n, "end at byte 168", "56 bytes follow", NULL);
}

TEST(test_encodings)
{
    static const struct {
        unsigned tag, bits;
        bool is_read, is_float;
    } cases[] = {{1, 8, true, false},   {1, 16, true, false},      {1, 24, true, false},
                 {1, 32, true, false},  {3, 32, true, true},       {3, 64, true, true},
                 {1, 12, false, false}, {1, 64, false, false},     {1, 0, false, false},
                 {3, 16, false, false}, {2, 4, false, false},      {6, 8, false, false},
                 {7, 8, false, false},  {0xfffe, 16, false, false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file f = wav(cases[i].tag, 2, cases[i].bits, 192);

        if (cases[i].is_read) {
            pnr_sound_header header = expect_header(&f);

            assert_int_equal(header.bits, cases[i].bits);
            assert_int_equal(header.is_float, cases[i].is_float);
            assert_int_equal(header.n_frames, 192 / (2 * cases[i].bits / 8));
        } else {
            expect_header_refused(&f, f.n, "WAV", NULL);
        }
    }
    for (unsigned number = 0; number < 30; number++) {
        file f = au();

        set_be(&f, AU_ENCODING, number, 4);
        if (number >= 2 && number <= 7) {
            static const unsigned bits[] = {8, 16, 24, 32, 32, 64};
            pnr_sound_header header = expect_header(&f);

            assert_int_equal(header.bits, bits[number - 2]);
            assert_int_equal(header.is_float, number >= 6);
        } else {
            expect_header_refused(&f, f.n, "encoding", NULL);
        }
    }
}

TEST(test_wrong_format_chunk)
{
    file f = plain_wav();

    set_le(&f, WAV_FORMAT + 12, 3, 2);
    expect_header_refused(&f, f.n, "3 bytes for 2 channels of 16 bits", "not 4", NULL);
    f = plain_wav();
    set_le(&f, WAV_FORMAT + 2, 0, 2);
    expect_header_refused(&f, f.n, "0 channels", NULL);
    set_le(&f, WAV_FORMAT + 2, 1025, 2);
    expect_header_refused(&f, f.n, "1025 channels", NULL);
    f = plain_wav();
    set_le(&f, WAV_FORMAT + 4, 0, 4);
    expect_header_refused(&f, f.n, "0 Hz", NULL);
    f = plain_wav();
    set_le(&f, WAV_FORMAT - 4, 14, 4);
    expect_header_refused(&f, f.n, "14 bytes", NULL);
    f = extensible_wav();
    set_le(&f, WAV_FORMAT - 4, 38, 4);
    expect_header_refused(&f, f.n, "38 bytes", NULL);
    f = extensible_wav();
    set_le(&f, WAV_FORMAT + 24, 2, 2);
    expect_header_refused(&f, f.n, "0x0002", NULL);
    f = au();
    set_be(&f, AU_CHANNELS, 0, 4);
    expect_header_refused(&f, f.n, "0 channels", NULL);
    f = au();
    set_be(&f, AU_RATE, 0, 4);
    expect_header_refused(&f, f.n, "0 Hz", NULL);
    f = au();
    set_be(&f, AU_OFFSET, 23, 4);
    expect_header_refused(&f, f.n, "byte 23", NULL);
    set_be(&f, AU_OFFSET, 1000000, 4);
    expect_header_refused(&f, f.n, "byte 1000000", "148 bytes", NULL);
}

TEST(test_missing_chunks)
{
    file f = plain_wav();

    memcpy(f.bytes + WAV_DATA, "LIST", 4);
    expect_header_refused(&f, f.n, "no data chunk", NULL);
    f = plain_wav();
    memcpy(f.bytes + 12, "junk", 4);
    expect_header_refused(&f, f.n, "before the fmt chunk", NULL);
    memcpy(f.bytes + WAV_DATA, "LIST", 4);
    expect_header_refused(&f, f.n, "no fmt chunk", NULL);
    f = plain_wav();
    f.bytes[WAV_DATA] = 0xff;
    expect_header_refused(&f, f.n, "no chunk at byte 36", NULL);
    f = rf64();
    memcpy(f.bytes + 12, "junk", 4);
    expect_header_refused(&f, f.n, "ds64", NULL);
    f = rf64();
    set_le(&f, RF64_DATA_SIZE, 100, 4);
    expect_header_refused(&f, f.n, "120", "100", NULL);
    f = w64();
    f.bytes[30] ^= 1;
    expect_header_refused(&f, f.n, "W64", NULL);
    f = w64();
    set_le(&f, W64_DATA_SIZE, 0, 8);
    expect_header_refused(&f, f.n, "no chunk at byte 80", NULL);
    f = flac();
    f.bytes[FLAC_BLOCK] = 0x84;
    expect_header_refused(&f, f.n, "STREAMINFO", NULL);
}

TEST(test_other_chunks)
{
    file plain = plain_wav();
    file f = {.n = 0};
    pnr_sound_header header;

    put_bytes(&f, plain.bytes, 12);
    put_bytes(&f, "bext", 4); /* an odd size, with its padding, before the samples */
    put_le(&f, 5, 4);
    put_bytes(&f, "notes", 6);
    put_bytes(&f, plain.bytes + 12, plain.n - 12);
    put_bytes(&f, "LIST", 4); /* and two chunks after them */
    put_le(&f, 3, 4);
    put_bytes(&f, "abc", 4);
    put_bytes(&f, "cue ", 4);
    put_le(&f, 0, 4);
    set_le(&f, WAV_RIFF_SIZE, f.n - 8, 4);
    header = expect_header(&f);
    assert_int_equal(header.n_frames, 30);
    assert_int_equal(header.rest_offset, plain.n + 14);
    assert_int_equal(header.rest_bytes, 20);

    memcpy(f.bytes + header.rest_offset, "data", 4); /* two data chunks: which one? */
    expect_header_refused(&f, f.n, "no chunk", NULL);
    memcpy(f.bytes + header.rest_offset, "LIST", 4);
    set_le(&f, header.rest_offset + 4, 100, 4);
    expect_header_refused(&f, f.n, "20 bytes follow", NULL);
}

TEST(test_samples_too_far)
{
    file f = plain_wav();
    pnr_sound_header header;
    pnr_error error = {0};

    assert_int_equal(read_sized(&f, WAV_SAMPLES, f.n, &header, NULL), PNR_OK);
    assert_int_equal(header.n_frames, 30);
    for (size_t n = 4; n < WAV_SAMPLES; n++) {
        assert_int_equal(read_sized(&f, n, f.n, &header, &error), PNR_EDATA);
        assert_non_null(strstr(error.text, "first"));
    }
}

TEST(test_odd_sizes)
{
    file f = wav(1, 1, 8, 31); /* no padding in the file, none counted */
    pnr_sound_header header = expect_header(&f);

    assert_int_equal(header.n_frames, 31);
    put_le(&f, 0, 1); /* padding in the file, not counted */
    assert_int_equal(expect_header(&f).n_frames, 31);
    set_le(&f, WAV_RIFF_SIZE, f.n - 8, 4); /* padding counted */
    assert_int_equal(expect_header(&f).n_frames, 31);
    f.n--; /* counted, but not there */
    expect_header_refused(&f, f.n, "76 bytes", "has 75", NULL);

    f = wav(1, 2, 16, 123); /* three bytes after the last frame */
    header = expect_header(&f);
    assert_int_equal(header.n_frames, 30);
    assert_int_equal(header.n_trailing_bytes, 3);
    f = wav(1, 2, 16, 3);
    expect_header_refused(&f, f.n, "3 bytes", NULL);

    f = w64(); /* W64 pads to eight */
    set_le(&f, W64_DATA_SIZE, 24 + 116, 8);
    set_le(&f, W64_SIZE, 104 + 116, 8);
    assert_int_equal(expect_header(&f).n_frames, 29);
    f.n -= 4;
    assert_int_equal(expect_header(&f).n_frames, 29);
    f.n++;
    expect_header_refused(&f, f.n, "220 bytes", "has 221", NULL);
}

TEST(test_beyond_four_gib)
{
    const uint64_t n_data = UINT64_C(6000000000);
    file f = rf64();
    pnr_sound_header header;

    set_le(&f, RF64_RIFF, 72 + n_data, 8);
    set_le(&f, RF64_DATA, n_data, 8);
    assert_int_equal(read_sized(&f, f.n, RF64_SAMPLES + n_data, &header, NULL), PNR_OK);
    assert_int_equal(header.n_frames, n_data / 4);
    expect_header_refused(&f, RF64_SAMPLES + n_data - 1, "6000000080", "6000000079", NULL);
    f = w64();
    set_le(&f, W64_SIZE, W64_SAMPLES + n_data, 8);
    set_le(&f, W64_DATA_SIZE, 24 + n_data, 8);
    assert_int_equal(read_sized(&f, f.n, W64_SAMPLES + n_data, &header, NULL), PNR_OK);
    assert_int_equal(header.n_frames, n_data / 4);
    expect_header_refused(&f, W64_SAMPLES + n_data - 1, "6000000104", "6000000103", NULL);
    f = plain_wav(); /* 6e9 mod 2^32 in both sizes */
    set_le(&f, WAV_RIFF_SIZE, 36 + n_data, 4);
    set_le(&f, WAV_DATA_SIZE, n_data, 4);
    expect_header_refused(&f, WAV_SAMPLES + n_data, "1705032748", "6000000044", NULL);
}

TEST(test_sizes_that_overflow)
{
    file f = w64();

    set_le(&f, W64_DATA_SIZE, UINT64_MAX, 8);
    expect_header_refused(&f, f.n, "120 bytes after", NULL);
    f = w64();
    set_le(&f, 56, UINT64_MAX, 8); /* the fmt chunk */
    expect_header_refused(&f, f.n, "18446744073709551591", NULL);
    f = w64();
    set_le(&f, W64_SIZE, UINT64_MAX, 8);
    expect_header_refused(&f, f.n, "18446744073709551615", NULL);
    f = rf64();
    set_le(&f, RF64_RIFF, UINT64_MAX, 8);
    expect_header_refused(&f, f.n, "200", NULL);
    f = rf64();
    set_le(&f, RF64_DATA, UINT64_MAX, 8);
    expect_header_refused(&f, f.n, "18446744073709551615", "120 bytes", NULL);
    f = rf64();
    set_le(&f, 16, UINT32_MAX, 4); /* the ds64 chunk itself */
    expect_header_refused(&f, f.n, NULL);
}

TEST(test_au_to_the_end)
{
    file f = au();

    set_be(&f, AU_SIZE, UINT32_MAX, 4);
    assert_int_equal(expect_header(&f).n_frames, 30);
    f.n -= 3;
    assert_int_equal(expect_header(&f).n_frames, 29);
    assert_int_equal(expect_header(&f).n_trailing_bytes, 1);
    f.n = 28;
    expect_header_refused(&f, f.n, "0 bytes of samples", NULL);
}

TEST(test_aiff_fields)
{
    file f = aiff();

    set_be(&f, AIFF_FRAMES, 29, 4);
    expect_header_refused(&f, f.n, "29 frames", "holds 30", NULL);
    f = aiff();
    set_be(&f, AIFF_RATE + 2, (UINT64_C(96000) << 47) + 1, 8); /* no whole number of Hz */
    expect_header_refused(&f, f.n, "0 Hz", NULL);
    f = aiff();
    set_be(&f, AIFF_RATE, 0x8000 | (16383 + 16), 2); /* negative */
    expect_header_refused(&f, f.n, "0 Hz", NULL);
    f = aiff();
    memcpy(f.bytes + 8, "8SVX", 4);
    expect_header_refused(&f, f.n, "AIFF", NULL);
    f = aifc();
    memcpy(f.bytes + 38, "ima4", 4);
    expect_header_refused(&f, f.n, "ima4", NULL);
    memcpy(f.bytes + 38, "fl32", 4); /* of 24 bits */
    expect_header_refused(&f, f.n, "fl32", "24 bits", NULL);
    f = aiff();
    set_be(&f, AIFF_DATA_SIZE, 7, 4); /* shorter than its own offset field */
    expect_header_refused(&f, f.n, "SSND", "7", NULL);
}

TEST(test_flac_fields)
{
    file f = flac();
    pnr_sound_header header;

    set_be(&f, FLAC_PACKED,
           UINT64_C(655350) << 44 | UINT64_C(7) << 41 | UINT64_C(23) << 36 | UINT64_C(0xfffffffff),
           8);
    header = expect_header(&f);
    assert_int_equal(header.rate_hz, 655350);
    assert_int_equal(header.n_channels, 8);
    assert_int_equal(header.bits, 24);
    assert_int_equal(header.n_frames, UINT64_C(0xfffffffff));
    set_be(&f, FLAC_PACKED, UINT64_C(48000) << 44 | UINT64_C(15) << 36, 8);
    expect_header_refused(&f, f.n, "0 samples", NULL);
    set_be(&f, FLAC_PACKED, UINT64_C(15) << 36 | 30, 8);
    expect_header_refused(&f, f.n, "0 Hz", NULL);
    set_be(&f, FLAC_PACKED, UINT64_C(48000) << 44 | UINT64_C(2) << 36 | 30, 8);
    expect_header_refused(&f, f.n, "3 bits", NULL);
}

TEST(test_other_files)
{
    static const char *const heads[] = {"RIFXxxxxWAVE", "FORxxxxxAIFF", "OggSxxxxxxxx",
                                        "ID3xfLaCxxxx", "caffxxxxxxxx", "BW64xxxxWAVE"};

    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        file f = plain_wav();

        memcpy(f.bytes, heads[i], 12);
        assert_null(pnr_sound_header_kind(f.bytes, f.n));
        expect_header_refused(&f, f.n, "does not begin like", "164 bytes", NULL);
    }
    file f = plain_wav();
    memcpy(f.bytes + 8, "AVI ", 4);
    expect_header_refused(&f, f.n, "not of the type WAVE", NULL);
    f = rf64();
    memcpy(f.bytes + 8, "AVI ", 4);
    expect_header_refused(&f, f.n, "not of the type WAVE", NULL);
    assert_null(pnr_sound_header_kind("RIF", 3));
    assert_null(pnr_sound_header_kind("", 0));
}

/* Any byte set to any of these values: an accepted header fits the file. */
TEST(test_every_byte_changed)
{
    static const unsigned char values[] = {0x00, 0x01, 0x20, 0x7f, 0x80, 0xfe, 0xff};
    size_t n_refused = 0;

    for (size_t i = 0; i < N_SAMPLE_FILES; i++)
        for (size_t at = 0; at < 110; at++)
            for (size_t k = 0; k < sizeof values; k++) {
                file f = sample_files[i].make();
                pnr_sound_header h;

                if (at >= f.n)
                    continue;
                f.bytes[at] = values[k];
                if (read_sized(&f, f.n, f.n, &h, NULL) != PNR_OK) {
                    n_refused++;
                    continue;
                }
                assert_true(h.n_frames >= 1 && h.n_channels >= 1 && h.rate_hz > 0);
                if (strcmp(h.name, "FLAC") != 0)
                    assert_true(h.n_frames * (h.n_channels * h.bits / 8) + h.n_trailing_bytes +
                                    h.rest_bytes <=
                                f.n - 24);
            }
    assert_true(n_refused > 1000);
}
