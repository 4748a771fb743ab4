/* SPDX-License-Identifier: MIT */
/* Values: every type of key, to the edges of its range, from text and back, in any locale. */
#include "tests/fixture/config_fixture.h"

#include <locale.h>
#include <math.h>
#include <unistd.h>

/* Returns the print of a value after it was set from text; NULL when it was refused (the reason is
 * printed). */
static char *read_and_print(const char *section, const char *name, const char *text)
{
    const pnr_key *key = key_of(section, name);
    bool is_target = strcmp(section, "target.n") == 0;
    pnr_config c;
    char why[PNR_WHY_LEN], text_of[PNR_VALUE_MAX + 1], *out = NULL;

    pnr_config_init(&c);
    if (is_target)
        accept_set(&c, "target.1.phase_rad=0");
    void *base = is_target ? (void *)c.targets : (void *)&c;
    int code = pnr_value_parse(key, text, base, why);
    if (code == PNR_OK) {
        assert_string_equal(why, "");
        out = strdup(pnr_value_format(key, base, text_of));
    } else {
        assert_int_equal(code, PNR_ECONFIG);
        assert_true(strlen(why) > 10);
    }
    pnr_config_clear(&c);
    return out;
}

typedef struct value_case {
    const char *section, *name, *text;
    const char *print; /* NULL: refused */
} value_case;

static void check_cases(const value_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const value_case *v = &cases[i];
        char *print = read_and_print(v->section, v->name, v->text);

        if (!v->print && print)
            fail_msg("%s.%s took \"%s\" as %s", v->section, v->name, v->text, print);
        if (v->print && (!print || strcmp(print, v->print) != 0))
            fail_msg("%s.%s made %s of \"%s\"", v->section, v->name, print ? print : "(refused)",
                     v->text);
        if (print) { /* what is printed is read to the same print */
            char *again = read_and_print(v->section, v->name, print[0] == '"' ? v->text : print);
            assert_non_null(again);
            assert_string_equal(again, print);
            free(again);
        }
        free(print);
    }
}
#define CHECK(...)                                                                                 \
    do {                                                                                           \
        const value_case cases[] = {__VA_ARGS__};                                                  \
        check_cases(cases, sizeof cases / sizeof cases[0]);                                        \
    } while (0)

TEST(doubles)
{
#define V(text, print) {"radar", "zero_delay_s", text, print}
    CHECK(V("0", "0"), V("-0", "0"), V("1", "1"), V("+1.5", "1.5"), V("-2.50", "-2.5"),
          V("1e-6", "1e-06"), V("1E+3", "1000"), V(".5", "0.5"), V("5.", "5"), V("0.1", "0.1"),
          V("0.30000000000000004", "0.30000000000000004"), V("1e6", "1000000"),
          V("-1000000", "-1000000"), V("1000000.0000001", NULL), V("1e7", NULL), V("", NULL),
          V(".", NULL), V("e5", NULL), V("1e", NULL), V("1e+", NULL), V("1,5", NULL),
          V("1.5.", NULL), V("0x10", NULL), V("inf", NULL), V("-infinity", NULL), V("nan", NULL),
          V("1e400", NULL), V("1e-400", NULL), V("1 2", NULL), V(" 1", NULL), V("1 ", NULL),
          V("--1", NULL), V("1/2", NULL));
#undef V
#define V(text, print) {"detector", "pfa", text, print} /* both ends are out */
    CHECK(V("0", NULL), V("1", NULL), V("-0.1", NULL), V("1e-300", "1e-300"),
          V("0.999999", "0.999999"));
#undef V
#define V(text, print) {"radar", "speed_mps", text, print}
    CHECK(V("0", NULL), V("1e-9", "1e-09"), V("1e9", "1000000000"), V("1.1e9", NULL));
#undef V
#define V(text, print) {"radar", "carrier_hz", text, print} /* no upper end */
    CHECK(V("0", "0"), V("1e300", "1e+300"), V("-1", NULL));
#undef V
}

TEST(optional_doubles)
{
    pnr_config c;

#define V(text, print) {"target.n", "snr_db", text, print}
    CHECK(V("", ""), V("-12.5", "-12.5"), V("0", "0"), V("300", "300"), V("300.1", NULL),
          V("x", NULL));
#undef V
    pnr_config_init(&c);
    accept_set(&c, "target.1.snr_db=0");
    assert_true(c.targets[0].has_snr);
    accept_set(&c, "target.1.snr_db=");
    assert_false(c.targets[0].has_snr);
    pnr_config_clear(&c);
}

TEST(whole_numbers)
{
#define V(text, print) {"code", "degree", text, print}
    CHECK(V("2", "2"), V("24", "24"), V("007", "7"), V("1", NULL), V("25", NULL), V("-3", NULL),
          V("+3", NULL), V("3.0", NULL), V("3e0", NULL), V("0x3", NULL), V("", NULL),
          V("3 4", NULL), V("18446744073709551619", NULL)); /* 2^64 + 3 */
#undef V
#define V(text, print) {"echo", "seed", text, print}
    CHECK(V("0", "0"), V("18446744073709551615", "18446744073709551615"),
          V("18446744073709551616", NULL), V("99999999999999999999", NULL), V("-1", NULL));
#undef V
#define V(text, print) {"code", "seed", text, print}
    CHECK(V("4294967295", "4294967295"), V("4294967296", NULL));
#undef V
#define V(text, print) {"realtime", "processing_cpu", text, print}
    CHECK(V("-1", "-1"), V("-01", "-1"), V("0", "0"), V("-0", "0"), V("1023", "1023"),
          V("1024", NULL), V("-2", NULL), V("--1", NULL), V("- 1", NULL), V("+1", NULL),
          V("-", NULL), V("", NULL), V("1.0", NULL), V("4294967295", NULL), V("4294967296", NULL),
          V("18446744073709551615", NULL), V("99999999999999999999", NULL));
#undef V
}

TEST(bytes)
{
    pnr_config c;

#define V(text, print) {"ring", "bytes", text, print}
    CHECK(V("0", "0"), V("1", "1"), V("1023", "1023"), V("1024", "1K"), V("4K", "4K"),
          V("1024K", "1M"), V("1536M", "1536M"), V("2G", "2G"), V("1024G", "1024G"),
          V("1025G", NULL), V("4k", NULL), V("4KB", NULL), V("4 K", NULL), V("K", NULL),
          V("1.5G", NULL), V("-1", NULL), V("4T", NULL), V("", NULL),
          V("17179869184G", NULL)); /* 2^64 bytes */
#undef V
    pnr_config_init(&c);
    accept_set(&c, "ring.bytes=3M");
    assert_int_equal(c.ring.bytes, 3 << 20);
    pnr_config_clear(&c);
}

TEST(rates)
{
#define V(text, print) {"source", "rate_hz", text, print}
    CHECK(V("", ""), V("1e6", "1000000"), V("1.023e6", "1023000"), V("40000000/3", "40000000/3"),
          V("262143000/62", "131071500/31"), V("0.5", "1/2"), V("0", NULL), V("-1", NULL),
          V("1/0", NULL), V("x", NULL), V("1e30", NULL), V("nan", NULL));
#undef V
#define V(text, print) {"source", "tune_hz", text, print} /* always a number */
    CHECK(V("0", "0"), V("-1680", "-1680"), V("", NULL));
#undef V
}

TEST(units_and_prefixes)
{
    char text[PNR_VALUE_MAX + 1];
    pnr_config c;

#define V(text, print) {"source", "rate_hz", text, print}
    CHECK(V("2M", "2000000"), V("2.4M", "2400000"), V("2.4 Msps", "2400000"), V("48ksps", "48000"),
          V("48000 sps", "48000"), V("1.023 MHz", "1023000"), V("1.023MHz", "1023000"),
          V("5 Hz", "5"), V("1e6 Hz", "1000000"), V("1\tGHz", "1000000000"),
          V("40/3 M", "40000000/3"), V("1023000/1", "1023000"), V("1023000/1 Hz", "1023000"),
          V("0.1 nHz", "1/10000000000"), V("250 mHz", "1/4"), V("3 uHz", "3/1000000"),
          V("3 \xc2\xb5Hz", "3/1000000"), V("3 \xce\xbcHz", "3/1000000"), V("2.4 MSPS", "2400000"),
          V("2.4 MS/s", "2400000"), V("2.4 MSa/s", "2400000"), V("1.023 Mchip/s", "1023000"),
          V("1.023 Mchips/s", "1023000"), V("5 chip/s", "5"), V("2 Mcps", NULL), V("2 Sps", NULL),
          V("48K", NULL), V("9e18 Hz", "9000000000000000000"), V("10 ms", NULL), V("2m", NULL),
          V("2 u", NULL), V("2K", NULL), V("2 mhz", NULL), V("2 M Hz", NULL), V("2 MHz x", NULL),
          V("2 kM", NULL), V("M", NULL), V("MHz", NULL), V("1e3 kHz", NULL), V("1e kHz", NULL),
          V("2,4 MHz", NULL), V("1.2.3M", NULL), V("-1 MHz", NULL), V("10000000000 GHz", NULL),
          V("2 MHz ", NULL), V("1/0 M", NULL));
#undef V
#define V(text, print) {"source", "tune_hz", text, print}
    CHECK(V("-1.68 kHz", "-1680"), V("+2k", "2000"));
#undef V
#define V(text, print) {"radar", "max_range_m", text, print}
    CHECK(V("250 km", "250000"), V("250k", "250000"), V("0.3km", "300"), V("250 m", "250"),
          V("5 mm", "0.005"), V("1.5 Mm", "1500000"), V("250 ms", NULL), V("250 km/s", NULL));
#undef V
#define V(text, print) {"radar", "speed_mps", text, print}
    CHECK(V("343 m/s", "343"), V("1.5 km/s", "1500"), V("0.3 Mm/s", "300000"), V("343 m", NULL));
#undef V
#define V(text, print) {"engine", "deadline", text, print}
    CHECK(V("10 ms", "0.01"), V("0.3ms", "0.0003"), V("62 us", "6.2e-05"),
          V("10 \xce\xbcs", "1e-05"), V("10 S/s", NULL), V("5 ns", "5e-09"), V("2 s", "2"),
          V("10 m", NULL), V("10 min", NULL), V("10 Hz", NULL), V("2 ks", "2000"));
#undef V
    /* Units without prefixes. */
    CHECK({"dwell", "taper_sidelobe_db", "60 dB", "60"},
          {"dwell", "taper_sidelobe_db", "60k", NULL}, {"dwell", "periods", "16 periods", "16"},
          {"dwell", "periods", "16k", NULL}, {"dwell", "periods", "1.5 periods", NULL},
          {"echo", "clock_ppm", "-2 ppm", "-2"}, {"target.n", "snr_db", "-12.5 dB", "-12.5"},
          {"target.n", "phase_rad", "250 mrad", "0.25"}, {"ring", "bytes", "4 bytes", NULL},
          {"detector", "pfa", "1k", NULL});

    accept_text(&c,
                "[source]\nrate_hz = 2.4 Msps # a comment\n[radar]\nmax_range_m = \"250 km\"\n");
    assert_int_equal(c.source.rate_hz.num, 2400000);
    assert_true(c.radar.max_range_m == 250e3);
    pnr_config_clear(&c);

    /* The longest value with a prefix. */
    memset(text, '0', sizeof text);
    strcpy(text + PNR_VALUE_MAX - 5, "1 nHz");
    free(read_and_print("source", "tune_hz", text));
    strcpy(text + PNR_VALUE_MAX - 3, "1ms");
    free(read_and_print("engine", "deadline", text));
}

TEST(choices_and_words)
{
    CHECK({"code", "type", "gps-l1ca", "gps-l1ca"}, {"code", "type", "p4", "p4"},
          {"code", "type", "P4", NULL}, {"code", "type", "", NULL}, {"code", "type", "0", NULL},
          {"dwell", "combine", "incoherent", "incoherent"}, {"dwell", "combine", "inco", NULL},
          {"publisher", "expose", "yes", "yes"}, {"publisher", "expose", "no", "no"},
          {"publisher", "expose", "true", NULL}, {"publisher", "expose", "1", NULL},
          {"source", "format", "auto", "auto"}, {"source", "format", "", "auto"},
          {"source", "format", "sc16", "ci16"}, {"source", "format", "f64", "f64"},
          {"source", "format", "int16", NULL}, {"source", "format", "uint8", NULL},
          {"source", "format", "none", NULL}, {"source", "format", "ci15", NULL});

    /* Every choice of every key has its own number, in order. */
    for (size_t i = 0; i < pnr_config_n_keys; i++) {
        const pnr_key *key = &pnr_config_keys[i];

        for (size_t j = 0; key->type == PNR_KEY_CHOICE && key->choices[j]; j++) {
            pnr_config c;
            char why[PNR_WHY_LEN];

            pnr_config_init(&c);
            const pnr_section *of = pnr_section_of(key);
            char *base = of->item_bytes > 0 ? pnr_section_add(of, &c, 1) : (char *)&c;
            assert_int_equal(pnr_value_parse(key, key->choices[j], base, why), PNR_OK);
            assert_int_equal(*(const int *)(const void *)(base + key->offset), j);
            pnr_config_clear(&c);
        }
    }
}

TEST(names_stand_for_the_enums)
{
    pnr_config c;

    accept_text(&c, "[source]\nspectrum = inverted\nlayout = channels\npace = real-time\n"
                    "[code]\ntype = file\npulse = rectangular\n[radar]\npath = one-way\n"
                    "[dwell]\ncombine = coherent\n[publisher]\nprofile = complex\n");
    assert_int_equal(c.source.spectrum, PNR_SPECTRUM_INVERTED);
    assert_int_equal(c.source.layout, PNR_LAYOUT_CHANNELS);
    assert_int_equal(c.source.pace, PNR_PACE_REAL_TIME);
    assert_int_equal(c.code.type, PNR_CODE_FILE);
    assert_int_equal(c.code.pulse, PNR_PULSE_RECTANGULAR);
    assert_int_equal(c.radar.path, PNR_PATH_ONE_WAY);
    assert_int_equal(c.dwell.combine, PNR_COMBINE_COHERENT);
    assert_int_equal(c.publisher.profile, PNR_PROFILE_COMPLEX);
    accept_set(&c, "code.type=zadoff-chu");
    accept_set(&c, "dwell.combine=incoherent");
    accept_set(&c, "publisher.profile=power");
    assert_int_equal(c.code.type, PNR_CODE_ZADOFF_CHU);
    assert_int_equal(c.dwell.combine, PNR_COMBINE_INCOHERENT);
    assert_int_equal(c.publisher.profile, PNR_PROFILE_POWER);
    pnr_config_clear(&c);
}

TEST(texts)
{
    char text[PNR_VALUE_MAX + 2], why[PNR_WHY_LEN];
    pnr_config c;

    CHECK({"stream", "name", "", ""}, {"stream", "name", "x\\y", "x\\y"},
          {"source", "input", "a b", "\"a b\""}, {"source", "input", "#", "\"#\""},
          {"source", "input", "a\"b\\", "\"a\\\"b\\\\\""},
          {"source", "input", "\xc3\xa4.ci16", "\xc3\xa4.ci16"});

    memset(text, 'x', sizeof text);
    text[PNR_TEXT_LEN] = '\0';
    pnr_config_init(&c);
    assert_int_equal(pnr_value_parse(key_of("stream", "name"), text, &c, why), PNR_ECONFIG);
    assert_non_null(strstr(why, "127"));
    assert_string_equal(c.stream.name, "pnradar");
    text[PNR_TEXT_LEN - 1] = '\0';
    assert_int_equal(pnr_value_parse(key_of("stream", "name"), text, &c, why), PNR_OK);
    assert_int_equal(strlen(c.stream.name), PNR_TEXT_LEN - 1);
    memset(text, 'x', sizeof text);
    text[PNR_PATH_LEN] = '\0';
    assert_int_equal(pnr_value_parse(key_of("source", "input"), text, &c, why), PNR_ECONFIG);
    text[PNR_PATH_LEN - 1] = '\0';
    assert_int_equal(pnr_value_parse(key_of("source", "input"), text, &c, why), PNR_OK);
    memset(text, '0', sizeof text);
    text[PNR_VALUE_MAX + 1] = '\0';
    assert_int_equal(pnr_value_parse(key_of("echo", "seed"), text, &c, why), PNR_ECONFIG);
    assert_non_null(strstr(why, "4000"));
    text[PNR_VALUE_MAX] = '\0';
    assert_int_equal(pnr_value_parse(key_of("echo", "seed"), text, &c, why), PNR_OK);
    assert_int_equal(c.echo.seed, 0);
    pnr_config_clear(&c);
}

TEST(notches)
{
#define V(text, print) {"window", "notch", text, print}
    CHECK(V("", ""), V("50e3+-200", "50000+-200"), V("50 kHz+-200 Hz", "50000+-200"),
          V("50k+-200", "50000+-200"),
          V(" 50kHz +- 1.5 kHz , -125e3+-1e3", "50000+-1500,-125000+-1000"),
          V("1e-3+-0", "0.001+-0"), V("12", NULL), V("50 km+-200", NULL), V("50+-200 s", NULL),
          V("5e3+-1,", NULL), V("5e3,1+-1", NULL), V(",1+-1", NULL), V("1+-", NULL), V("+-1", NULL),
          V("5e3+--1", NULL), V("1+-1e999", NULL), V("1e3 k+-1", NULL), V("1+-1+-1", NULL),
          V("nan+-1", NULL), V("1;2+-1", NULL),
          V("0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,"
            "0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0,0+-0",
            NULL));
#undef V
}

TEST(times_and_epochs)
{
    pnr_config c;

#define V(text, print) {"source", "start_time", text, print}
    CHECK(V("", ""), V("2026-11-21T02:40:12Z", "2026-11-21T02:40:12Z"),
          V("2026-11-21T02:40:12.5Z", "2026-11-21T02:40:12.5Z"), V("2026-11-21", NULL),
          V("2026-13-21T02:40:12Z", NULL), V("now", NULL));
#undef V
#define V(text, print) {"code", "epoch", text, print}
    CHECK(V("0", "0"), V("-1023", "-1023"), V("+5", "5"),
          V("9223372036854775807", "9223372036854775807"),
          V("-9223372036854775807", "-9223372036854775807"), V("9223372036854775808", NULL),
          V("1.5", NULL), V("", NULL), V("-", NULL), V("1e3", NULL), V("10 samples", "10"),
          V("-10samples", "-10"), V("10 s", NULL), V("10 k", NULL),
          V("1970-01-01T00:00:01.25Z", "1970-01-01T00:00:01.250000000Z"),
          V("2026-11-21T02:40:12", NULL));
#undef V
    pnr_config_init(&c);
    accept_set(&c, "code.epoch=1970-01-01T00:00:01.25Z");
    assert_true(c.code.epoch.is_utc);
    assert_int_equal(c.code.epoch.utc_ns, 1250000000);
    accept_set(&c, "code.epoch=-7");
    assert_false(c.code.epoch.is_utc);
    assert_int_equal(c.code.epoch.sample, -7);
    assert_int_equal(c.code.epoch.utc_ns, 0);
    pnr_config_clear(&c);
}

TEST(runs)
{
    pnr_config c;
    pnr_error error = {0};

#define V(text, print) {"source", "lost", text, print}
    CHECK(V("", ""), V("10000+500, 34000+2000", "10000+500,34000+2000"), V("0+1", "0+1"),
          V(" 1 + 2 ,\t5+1 ", "1+2,5+1"), V("1+2,3+4", "1+6"), V("1+2,3+4,7+1,9+1", "1+7,9+1"),
          V("18446744073709551614+1", "18446744073709551614+1"), V("18446744073709551615+1", NULL),
          V("1+18446744073709551615", NULL), V("5+1,3+1", NULL), V("1+3,3+1", NULL),
          V("1+3,1+3", NULL), V("1+0", NULL), V("1", NULL), V("1+", NULL), V("+1", NULL),
          V("1+2,", NULL), V(",1+2", NULL), V("1+2;3+4", NULL), V("1+2 3+4", NULL), V("-1+2", NULL),
          V("a+b", NULL), V(",", NULL));
#undef V
    accept_text(&c, "[source]\nlost = 10000+500, 34000+2000\n");
    assert_int_equal(c.source.n_lost, 2);
    assert_int_equal(c.source.lost[0].first, 10000);
    assert_int_equal(c.source.lost[0].count, 500);
    assert_int_equal(c.source.lost[1].first, 34000);
    assert_int_equal(c.source.lost[1].count, 2000);
    assert_int_equal(pnr_config_set(&c, "source.lost=7+1,2+1", &error), PNR_ECONFIG);
    assert_int_equal(c.source.n_lost, 2); /* a refused list does not change the old one */
    accept_set(&c, "source.lost=");
    assert_int_equal(c.source.n_lost, 0);
    pnr_config_clear(&c);
}

/* Makes a locale with a decimal comma, since a plain machine has none. False: no localedef. */
static bool enter_comma_locale(char folder[])
{
    static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
                                 "grouping -1\nEND LC_NUMERIC\n";
    char text[512];

    if (!mkdtemp(folder))
        return false;
    snprintf(text, sizeof text, "%s/source", folder);
    FILE *file = fopen(text, "w");
    if (!file)
        return false;
    fputs(source, file);
    fclose(file);
    /* Its warnings, and its exit status, are about categories that are not needed. */
    snprintf(text, sizeof text,
             "cd %s && localedef -c --no-archive -i source ./comma >log 2>&1 || test -d comma",
             folder);
    if (system(text) != 0)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "comma") || setlocale(LC_NUMERIC, "comma");
}

TEST(numbers_do_not_know_the_locale)
{
    char folder[] = "/tmp/pnr-test-locale-XXXXXX", text[128];
    pnr_config c;
    bool entered = enter_comma_locale(folder);
    char *print = NULL;

    if (entered) {
        snprintf(text, sizeof text, "%.1f", 0.5);
        assert_string_equal(text, "0,5"); /* the locale does what it should */
        pnr_config_init(&c);
        assert_true(c.detector.pfa == 1e-4 && c.echo.noise_rms == 0.1);
        accept_set(&c, "radar.zero_delay_s=1.25");
        accept_set(&c, "source.rate_hz=1.5e3");
        assert_true(c.radar.zero_delay_s == 1.25);
        assert_int_equal(c.source.rate_hz.num, 1500);
        assert_int_equal(pnr_config_set(&c, "radar.zero_delay_s=1,25", NULL), PNR_ECONFIG);
        print = printed(&c);
        assert_non_null(strstr(print, "zero_delay_s = 1.25\n"));
        assert_non_null(strstr(print, "noise_rms = 0.1\n"));
        free(print);
        pnr_config_clear(&c);
        setlocale(LC_ALL, "C");
    }
    snprintf(text, sizeof text, "rm -rf %s", folder);
    assert_int_equal(system(text), 0);
    if (!entered)
        skip();
}

TEST(ranges_are_said_in_words)
{
    static const struct {
        const char *section, *name, *words;
    } cases[] = {
        {"code", "degree", "2 to 24"},
        {"detector", "pfa", "more than 0, less than 1"},
        {"radar", "speed_mps", "more than 0, at most 1000000000"},
        {"source", "rate_hz", "more than 0"},
        {"radar", "carrier_hz", "0 or more"},
        {"source", "tune_hz", ""},
        {"stream", "name", ""},
        {"source", "layout", "iq | channels"},
        {"publisher", "expose", "yes | no"},
        {"source", "format",
         "auto | ci4 | ci8 | cu8 | ci16 | cf32 | cf64 | i8 | u8 | i16 | f32 | f64"},
    };
    char words[PNR_WHY_LEN];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(pnr_value_range(key_of(cases[i].section, cases[i].name), words),
                            cases[i].words);
}
