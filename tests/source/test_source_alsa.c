/* SPDX-License-Identifier: MIT */
/* The source of sound cards, through ALSA's file device: samples to the bit in all formats, the
 * gaps of a card that stops, and the words for what a card does not offer. */
#include "tests/fixture/source_fixture.h"

#include <limits.h>

enum { FRAMES = 3000, MAX_CHANNELS = 5 };

static unsigned char pattern[FRAMES * MAX_CHANNELS * 4];

/* Makes the devices of the test. The module of tests/alsa has the card that ALSA_FAULT stops. */
static int make_devices(void **state)
{
    static const char devices[] =
        "pcm.null { type null }\n"
        "pcm.mic { type file slave.pcm null file /dev/null "
        "infile \"%s/pattern\" format raw }\n"
        "pcm.slow { type plug slave { pcm mic rate 44100 } }\n"
        "pcm.two { type multi slaves.a { pcm mic channels 2 } "
        "bindings.0 { slave a channel 0 } bindings.1 { slave a channel 1 } }\n";
    char text[1024], path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 8);

    if (make_folder(state) != 0 || length <= 0)
        return -1;
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/alsa");
    setenv("PNR_MODULE_PATH", path, 1);
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)(i * 7 + i / 251);
    write_file("pattern", pattern, sizeof pattern);
    snprintf(text, sizeof text, devices, folder);
    write_file("devices", text, strlen(text));
    snprintf(path, sizeof path, "%s/devices", folder);
    return setenv("ALSA_CONFIG_PATH", path, 1);
}

static int remove_devices(void **state)
{
    remove_file("pattern");
    remove_file("devices");
    return remove_folder(state);
}

TESTS_BETWEEN(make_devices, remove_devices)

/* A build without ALSA has no module. */
static void need_module(void)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/source-alsa.so", getenv("PNR_MODULE_PATH"));
    if (access(path, R_OK) != 0)
        skip();
}

static pnr_config card_config(const char *address)
{
    pnr_config config = {.source.channels = 1, .source.rate_hz = {48000, 1}};

    snprintf(config.source.input, sizeof config.source.input, "%s", address);
    return config;
}

/* Reads frames to the end, or so many of them, and notes the gaps. */
static void take_frames(const pnr_config *config, size_t n_frames, taken *out)
{
    pnr_source *source = open_source(config);
    const pnr_source_info *info = pnr_source_get_info(source);
    const size_t bytes = pnr_format_get(info->format)->bytes * info->n_channels;

    assert_true(info->is_live && info->n_samples == UINT64_MAX);
    assert_int_equal(info->loss_visibility, PNR_LOSS_EXACT);
    *out = (taken){.end = PNR_OK};
    while (out->n_bytes < n_frames * bytes) {
        pnr_source_block block;
        const size_t wanted = n_frames - out->n_bytes / bytes;

        assert_true(out->n_bytes + (wanted < 700 ? wanted : 700) * bytes <= sizeof out->bytes);
        out->end = pnr_source_read(source, out->bytes + out->n_bytes, wanted < 700 ? wanted : 700,
                                   &block, &out->error);
        if (out->end == PNR_EAGAIN)
            continue;
        if (out->end != PNR_OK)
            break;
        if (block.gap > 0) {
            assert_true(block.n_samples == 0 && out->n_gaps < MAX_GAPS);
            out->gaps[out->n_gaps++] = (pnr_run){out->position, block.gap};
        }
        out->position += block.n_samples + block.gap;
        out->n_bytes += block.n_samples * bytes;
    }
    pnr_source_close(source);
}

/* --- formats --- */

/* The value of a sample as ALSA's documentation has it. */
static double value_of(const char *format, const unsigned char *at)
{
    const size_t bytes = strcmp(format, "S24_LE") == 0 || strcmp(format, "S24_3LE") == 0 ? 3
                         : strcmp(format, "S16_LE") == 0                                 ? 2
                                                                                         : 4;
    double value = 0;

    for (size_t b = 0; b < bytes; b++)
        value += ldexp(at[b], 8 * (int)b);
    if (at[bytes - 1] >= 128)
        value -= ldexp(1, 8 * (int)bytes);
    return ldexp(value, 1 - 8 * (int)bytes);
}

TEST(reads_every_format_to_the_bit)
{
    static const struct {
        const char *format;
        size_t bytes;
    } cases[] = {{"FLOAT_LE", 4}, {"S32_LE", 4}, {"S24_LE", 4}, {"S24_3LE", 3}, {"S16_LE", 2}};
    static const size_t channels[] = {1, 2, MAX_CHANNELS};
    static taken got;

    need_module();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t c = 0; c < COUNT(channels); c++) {
            pnr_config config = card_config("alsa:mic");
            const size_t n = FRAMES * channels[c];
            float found;

            setenv("ALSA_FORMAT", cases[i].format, 1);
            config.source.channels = channels[c];
            take_frames(&config, FRAMES, &got);
            assert_int_equal(got.n_bytes, n * sizeof found);
            assert_int_equal(got.n_gaps, 0);
            if (i == 0)
                assert_memory_equal(got.bytes, pattern, n * sizeof found);
            for (size_t v = 0; i > 0 && v < n; v++) {
                memcpy(&found, got.bytes + v * sizeof found, sizeof found);
                if (found != (float)value_of(cases[i].format, pattern + v * cases[i].bytes))
                    fail_msg("%s, %zu channels, value %zu: %.9g", cases[i].format, channels[c], v,
                             (double)found);
            }
        }
    unsetenv("ALSA_FORMAT");
}

/* Memory of 16 bits, real and complex, has the card's own bytes. The module is the installed
 * one. */
TEST(reads_integers_as_they_are)
{
    static const pnr_format formats[] = {PNR_FORMAT_I16, PNR_FORMAT_CI16};
    static taken got;
    char *modules = strdup(getenv("PNR_MODULE_PATH"));

    need_module();
    unsetenv("PNR_MODULE_PATH");
    for (size_t i = 0; i < 2; i++) {
        pnr_config config = card_config("alsa:mic");

        config.source.format = formats[i];
        config.source.channels = 2;
        take_frames(&config, FRAMES, &got);
        expect_bytes(&got, pattern, FRAMES * 4 * (i + 1));
    }
    setenv("PNR_MODULE_PATH", modules, 1);
    free(modules);
}

/* --- losses --- */

/* The card loses 481, 300 and 1 frames. The samples before and after a gap are those of their
 * positions. */
TEST(makes_stops_into_gaps)
{
    static const pnr_run gaps[] = {{500, 481}, {1281, 300}, {2000, 1}};
    static taken got;
    pnr_config config = card_config("alsa:mic");
    size_t at = 0;

    need_module();
    setenv("ALSA_FAULT", "500 xrun 481, 1281 suspend 300, 2000 xrun 1, 2999 gone 0", 1);
    config.source.format = PNR_FORMAT_I16;
    take_frames(&config, FRAMES, &got);
    unsetenv("ALSA_FAULT");
    assert_int_equal(got.end, PNR_EIO);
    assert_non_null(strstr(got.error.text, "went away"));
    assert_int_equal(got.position, 2999);
    assert_int_equal(got.n_gaps, 3);
    assert_memory_equal(got.gaps, gaps, sizeof gaps);
    for (size_t g = 0, from = 0; g <= 3; g++) {
        const size_t to = g < 3 ? gaps[g].first : 2999;

        assert_memory_equal(got.bytes + at, pattern + 2 * from, 2 * (to - from));
        at += 2 * (to - from);
        from = g < 3 ? gaps[g].first + gaps[g].count : 0;
    }
    assert_int_equal(got.n_bytes, at);
}

/* A card that only stops is given up. */
TEST(gives_up_a_card_that_only_stops)
{
    static taken got;
    char faults[1024] = "";
    pnr_config config = card_config("alsa:mic");

    need_module();
    for (int i = 0; i < 20; i++)
        strcat(faults, "100 xrun 0, ");
    setenv("ALSA_FAULT", faults, 1);
    take_frames(&config, FRAMES, &got);
    unsetenv("ALSA_FAULT");
    assert_int_equal(got.end, PNR_EIO);
    assert_non_null(strstr(got.error.text, "stopped 16 times"));
    assert_int_equal(got.position, 100);
}

/* --- refusals --- */

TEST(refuses_in_words)
{
    pnr_config config = card_config("alsa:nosuch");

    need_module();
    expect_source_refused(&config, PNR_ENOINPUT, "alsa:nosuch", "arecord -L", NULL);
    config = card_config("alsa:busy");
    expect_source_refused(&config, PNR_ENOINPUT, "alsa:busy", "busy", "fuser", NULL);
    config = card_config("alsa:");
    expect_source_refused(&config, PNR_ECONFIG, "alsa:DEVICE", NULL);
    config = card_config("alsa:slow");
    expect_source_refused(&config, PNR_ECONFIG, "source.rate_hz = 48000", "offers 44100 Hz", NULL);
    config = card_config("alsa:two");
    config.source.channels = 3;
    expect_source_refused(&config, PNR_ECONFIG, "offers 2 channels, 3 are needed",
                          "source.channels", NULL);
    config = card_config("alsa:mic");
    config.source.format = PNR_FORMAT_U8;
    expect_source_refused(&config, PNR_ECONFIG, "source.format = u8", "i16", "f32", NULL);
    config.source.format = PNR_FORMAT_I16;
    setenv("ALSA_FORMAT", "S24_3LE", 1);
    expect_source_refused(&config, PNR_ECONFIG, "not S16_LE", "leave source.format out", NULL);
    unsetenv("ALSA_FORMAT");
    config.source.rate_hz = (pnr_rational){0, 0};
    expect_source_refused(&config, PNR_ECONFIG, "not given", "48000", NULL);
    config.source.rate_hz = (pnr_rational){96001, 2};
    expect_source_refused(&config, PNR_ECONFIG, "96001/2", "whole", NULL);
}

TEST(refuses_a_transmitter_in_words)
{
    static const char *const cases[][3] = {
        {"transmit.output=hw:0", "alsa:DEVICE", "pnradar-echo --transmit"},
        {"transmit.output=alsa:", "alsa:DEVICE", "aplay -L"},
        {"transmit.output=alsa:nosuch", "alsa:nosuch", "aplay -L"},
        {"transmit.output=alsa:busy", "alsa:busy", "busy"},
    };
    pnr_config config;
    pnr_error error;

    need_module();
    pnr_config_init(&config);
    assert_int_equal(pnr_config_set(&config, "source.input=alsa:mic", &error), PNR_OK);
    assert_int_equal(pnr_config_set(&config, "source.rate_hz=48000", &error), PNR_OK);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(pnr_config_set(&config, cases[i][0], &error), PNR_OK);
        expect_source_refused(&config, i < 2 ? PNR_ECONFIG : PNR_ENOINPUT, cases[i][1], cases[i][2],
                              NULL);
    }
    assert_int_equal(pnr_config_set(&config, "transmit.output=alsa:null", &error), PNR_OK);
    assert_int_equal(pnr_config_set(&config, "code.epoch=5", &error), PNR_OK);
    expect_source_refused(&config, PNR_ECONFIG, "code.epoch", "sample 0", NULL);
    pnr_config_clear(&config);
}
