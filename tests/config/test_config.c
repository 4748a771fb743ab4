/* SPDX-License-Identifier: MIT */
/* The strict reader: which text it accepts, which it refuses and with which message; files and
 * assignments. */
#include "tests/fixture/config_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

TEST(defaults_are_the_documented_ones)
{
    pnr_config c;

    memset(&c, 0xa5, sizeof c); /* init must not depend on the old contents */
    pnr_config_init(&c);
    assert_string_equal(c.stream.name, "pnradar");
    assert_string_equal(c.source.input, "");
    assert_int_equal(c.source.format, PNR_FORMAT_NONE);
    assert_int_equal(c.source.rate_hz.den, 0);
    assert_int_equal(c.source.tune_hz.num, 0);
    assert_int_equal(c.source.tune_hz.den, 1);
    assert_int_equal(c.source.channels, 1);
    assert_null(c.source.lost);
    assert_int_equal(c.source.n_lost, 0);
    assert_int_equal(c.code.type, PNR_CODE_M_SEQUENCE);
    assert_int_equal(c.code.degree, 10);
    assert_int_equal(c.code.pulse, PNR_PULSE_BAND_LIMITED);
    assert_int_equal(c.code.chip_rate_hz.den, 0);
    assert_false(c.code.epoch.is_utc);
    assert_int_equal(c.code.epoch.sample, 0);
    assert_true(c.radar.speed_mps == 299792458.0);
    assert_int_equal(c.dwell.periods, 1);
    assert_int_equal(c.dwell.combine, PNR_COMBINE_NONE);
    assert_true(c.detector.pfa == 1e-4);
    assert_int_equal(c.detector.max_echoes, 8);
    assert_int_equal(c.detector.oversample, 1);
    assert_string_equal(c.engine.name, "auto");
    assert_string_equal(c.engine.method, "auto");
    assert_int_equal(c.engine.depth, 4);
    assert_int_equal(c.engine.batch, 0);
    assert_string_equal(c.publisher.endpoint, "tcp://127.0.0.1:5555");
    assert_false(c.publisher.expose);
    assert_int_equal(c.publisher.pack, 1);
    assert_int_equal(c.publisher.profile, PNR_PROFILE_OFF);
    assert_int_equal(c.publisher.high_water, 1000);
    assert_true(c.publisher.wait_s == 0);
    assert_true(c.publisher.linger_s == 1);
    assert_int_equal(c.echo.seed, 1);
    assert_int_equal(c.echo.periods, 0);
    assert_true(c.echo.noise_rms == 0.1);
    assert_int_equal(c.echo.bits, 0);
    assert_null(c.targets);
    assert_int_equal(c.n_targets, 0);
    pnr_config_clear(&c);
}

TEST(lines_are_read)
{
    pnr_config c;

    accept_text(&c, "; a comment\n"
                    "# another\n"
                    "\n"
                    "   \t\n"
                    "[stream] # behind a section\n"
                    "name = lab-2 ; behind a value\n"
                    "[source]\r\n"
                    "  input=a#b;c.ci16\r\n"
                    "\trate_hz\t=\t40e6/3\t# exact\n"
                    "[code]\n"
                    "path = \"two words # and ; marks \\\"x\\\" \\\\\" # behind quotes\n"
                    "taps = # nothing\n"
                    "[engine]\n"
                    "name=cpu"); /* no newline at the end */
    assert_string_equal(c.stream.name, "lab-2");
    assert_string_equal(c.source.input, "a#b;c.ci16");
    assert_int_equal(c.source.rate_hz.num, 40000000);
    assert_int_equal(c.source.rate_hz.den, 3);
    assert_string_equal(c.code.path, "two words # and ; marks \"x\" \\");
    assert_string_equal(c.code.taps, "");
    assert_string_equal(c.engine.name, "cpu");
    pnr_config_clear(&c);

    accept_text(&c, "\xef\xbb\xbf[stream]\r\nname = bom\r\n"); /* as Windows editors write */
    assert_string_equal(c.stream.name, "bom");
    pnr_config_clear(&c);
    accept_text(&c, "\xef\xbb\xbf");
    pnr_config_clear(&c);

    accept_text(&c, "");
    assert_string_equal(c.stream.name, "pnradar");
    pnr_config_clear(&c);
}

TEST(wrong_lines_are_refused_with_their_place)
{
    static const struct {
        const char *text;
        const char *words[5];
    } cases[] = {
        {"[stream]\nnam = x\n", {"test.conf:2:", "\"nam\"", "[stream]", "\"name\""}},
        {"[code]\ntpye = gold\n", {"test.conf:2:", "\"tpye\"", "nearest is \"type\""}},
        {"[source]\npfa = 1\n", {"test.conf:2:", "\"pfa\"", "belongs to [detector]"}},
        {"[source]\nrange_m = 1\n", {"\"range_m\"", "belongs to [target.1]"}},
        {"\n\n[sorce]\n", {"test.conf:3:", "[sorce]", "nearest is [source]"}},
        {"[Stream]\n", {"[Stream]", "nearest is [stream]"}},
        {"[target]\n", {"[target]", "nearest is [target.1]"}},
        {"[target.0]\n", {"[target.0]", "nearest"}},
        {"[code.0]\n", {"[code.0]", "nearest"}},
        {"[code.1]\nchip_rate_hz = 1\n", {"\"chip_rate_hz\" in [code.1]", "belongs to [code]"}},
        {"[code.2]\nprn = 211\n", {"code.2.prn = \"211\""}},
        {"[target.01]\n", {"[target.01]", "nearest"}},
        {"[target.1x]\n", {"[target.1x]", "nearest"}},
        {"[target.1234567890]\n", {"[target.1234567890]", "pnradar.conf(5)"}},
        {"[target.-1]\n", {"[target.-1]", "nearest"}},
        {"[]\n", {"test.conf:1:", "[]", "pnradar.conf(5)"}},
        {"name = x\n", {"test.conf:1:", "before any section", "[stream]"}},
        {"nonsense = x\n", {"test.conf:1:", "\"nonsense\"", "before any section"}},
        {"[stream\n", {"test.conf:1:", "no ]", "\"[stream\""}},
        {"[stream] name = x\n", {"trailing junk", "\"name = x\""}},
        {"[stream]\nname\n", {"test.conf:2:", "key = value", "\"name\""}},
        {"[stream]\n= x\n", {"test.conf:2:", "unknown key \"\""}},
        {"[stream]\nname = a\nname = b\n", {"test.conf:3:", "stream.name again", "line 2"}},
        {"[stream]\n[source]\n[stream]\n", {"test.conf:3:", "[stream] again", "line 1"}},
        {"[target.2]\n[target.1]\n[target.2]\n", {"test.conf:3:", "[target.2] again", "line 1"}},
        {"[stream]\nname = \"a\n", {"test.conf:2:", "not closed", "\"a"}},
        {"[stream]\nname = \"a\\\"\n", {"not closed"}},
        {"[stream]\nname = \"a\" b\n", {"trailing junk", "\"b\""}},
        {"[stream]\nname = \"a\"\"b\"\n", {"trailing junk"}},
        {"[stream]\nname = \"a\\n\"\n", {"backslash"}},
        {"[stream]\nname = a\"b\n", {"a quote inside", "a\"b"}},
        {"[stream]\nname = a\x07\n", {"test.conf:2:", "control byte 0x07"}},
        {"[stream]\nname = a\x7f\n", {"test.conf:2:", "control byte 0x7f"}},
        {"[stream]\nname = a\rb\n", {"test.conf:2:", "control byte 0x0d"}},
        {"[stream]\nname = a\x9b\n", {"test.conf:2:", "control byte 0x9b"}},
        {"[stream]\nname = a\xc2\x9b\n", {"test.conf:2:", "control character 0x9b"}},
        {"[detector]\npfa = 2 2\n", {"detector.pfa = \"2 2\"", "decimal"}},
        {"[detector]\nmax_echoes = 65\n",
         {"test.conf:2:", "detector.max_echoes = \"65\"", "1 to 64"}},
        {"[target.3]\nrange_m = far\n", {"test.conf:2:", "target.3.range_m = \"far\""}},
        {"[code]\ntype = zadof-chu\n",
         {"code.type = \"zadof-chu\"", "m-sequence | gold", "nearest is \"zadoff-chu\""}},
        {"[code]\ntype = mls\n", {"code.type = \"mls\"", "did you mean m-sequence?"}},
        {"[code.2]\ntype = PRN\n", {"code.2.type = \"PRN\"", "did you mean gps-l1ca?"}},
        {"[source]\nformat = int16\n", {"\"int16\"", "ci16 (I and Q) or i16 (real samples)"}},
        {"[source]\nrate = 2M\n", {"test.conf:2:", "\"rate\"", "did you mean source.rate_hz?"}},
        {"[source]\nfs = 2M\n", {"\"fs\" in [source]", "did you mean source.rate_hz?"}},
        {"[target.2]\nrange = 2\n", {"\"range\"", "did you mean target.2.range_m?"}},
        {"[target.2]\nspeed = 2\n", {"did you mean target.2.velocity_mps?"}},
        {"[code]\nn = 5\n", {"\"n\" in [code]: see its keys"}},
        {"[code]\nchips = 5\n", {"did you mean code.length?"}},
        {"[radar]\nrange_max = 5\n", {"did you mean radar.max_range_m?"}},
        {"[input]\n", {"unknown section [input]; did you mean [source]?"}},
        {"[output]\n", {"unknown section [output]; did you mean [publisher]?"}},
        {"[source]\npace = live\n", {"fast | real-time; did you mean real-time?"}},
        {"[source]\nformat = double\n", {"did you mean cf64 (I and Q) or f64 (real samples)?"}},
        {"[source]\nformat = complex\n", {"did you mean cf32 or ci16?"}},
        {"[source]\nformat = wav\n", {"did you mean auto?"}},
        {"[dwell]\ntaper = rect\n", {"did you mean rectangular?"}},
        {"[dwell]\ntaper = none\n", {"did you mean rectangular?"}},
        {"[dwell]\ncombine = power\n", {"did you mean incoherent?"}},
        {"[dwell]\ncombine = fft\n", {"did you mean doppler?"}},
        {"[code]\ntype = GOLD\n", {"the nearest is \"gold\""}},
        {"[code.1]\nrate = 2\n", {"\"rate\" in [code.1]", "keys in pnradar.conf(5)"}},
        {"rate = 2M\n", {"\"rate\" before any section", "rate_hz of [source]"}},
        {"[source]\nrate_hz = 10 ms\n",
         {"source.rate_hz = \"10 ms\"", "must be Hz", "5 kHz", "not \"ms\""}},
        {"[engine]\ndeadline = 10 m\n", {"engine.deadline = \"10 m\"", "must be s", "5 ms"}},
        {"[dwell]\nperiods = 2k\n", {"dwell.periods = \"2k\"", "must be periods or nothing"}},
        {"[source]\nrate_hz = 1e3 kHz\n", {"\"1e3 kHz\"", "give one of them"}},
        {"\xef\xbb\xbfname = x\n", {"test.conf:1:", "before any section", "[stream]"}},
        {"[stream]\n\xef\xbb\xbfname = x\n", {"test.conf:2:", "unknown key"}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_config c;
        pnr_error error = {0};

        pnr_config_init(&c);
        int code = parse(&c, cases[i].text, &error);
        if (code == PNR_OK)
            fail_msg("taken: %s", cases[i].text);
        expect_words(code, &error, cases[i].words);
        assert_int_equal(parse(&c, cases[i].text, NULL), code); /* nobody listens */
        pnr_config_clear(&c);
    }
}

TEST(nul_bytes_are_refused)
{
    static const char text[] = "[stream]\nname = a\0b\n";
    pnr_config c;
    pnr_error error = {0};

    pnr_config_init(&c);
    int code = pnr_config_parse(&c, text, sizeof text - 1, "test.conf", &error);
    expect_words(code, &error, (const char *const[]){"test.conf:2:", "NUL", NULL});
    /* Also in a comment, and as the very last byte. */
    assert_int_equal(pnr_config_parse(&c, "# \0\n", 4, "x", NULL), PNR_ECONFIG);
    assert_int_equal(pnr_config_parse(&c, "[stream]\0", 9, "x", NULL), PNR_ECONFIG);
    assert_string_equal(c.stream.name, "pnradar");
    pnr_config_clear(&c);
}

TEST(lines_end_at_4096_bytes)
{
    char line[4200];
    pnr_config c;
    pnr_error error = {0};

    memset(line, 'x', sizeof line);
    line[0] = '#';
    pnr_config_init(&c);
    assert_int_equal(pnr_config_parse(&c, line, 4096, "test.conf", &error), PNR_OK);
    line[4096] = '\r'; /* not a part of the line */
    line[4097] = '\n';
    assert_int_equal(pnr_config_parse(&c, line, 4098, "test.conf", &error), PNR_OK);
    line[4096] = 'x';
    int code = pnr_config_parse(&c, line, 4098, "test.conf", &error);
    expect_words(code, &error, (const char *const[]){"test.conf:1:", "4097 bytes", "4096", NULL});
    pnr_config_clear(&c);
}

TEST(later_texts_override_earlier_ones)
{
    pnr_config c;
    pnr_error error = {0};

    accept_text(&c,
                "[stream]\nname = a\n[source]\nrate_hz = 5\nlost = 1+2\n[target.1]\nrange_m = 7\n");
    assert_int_equal(parse(&c, "[source]\nrate_hz = 6\nlost = 3+4, 9+1\n", &error), PNR_OK);
    assert_int_equal(parse(&c, "[target.1]\nvelocity_mps = 8\n", &error), PNR_OK);
    assert_string_equal(c.stream.name, "a");
    assert_int_equal(c.source.rate_hz.num, 6);
    assert_int_equal(c.source.n_lost, 2);
    assert_int_equal(c.source.lost[0].first, 3);
    assert_int_equal(c.n_targets, 1);
    assert_true(c.targets[0].range_m == 7 && c.targets[0].velocity_mps == 8);
    pnr_config_clear(&c);
    pnr_config_clear(&c); /* twice is fine */
}

TEST(targets_may_come_in_any_order)
{
    enum { N = 300 };
    pnr_config c;

    pnr_config_init(&c);
    for (int i = 0; i < N; i++) {
        char text[64];
        int n = 1 + (i * 7) % N; /* every number once */

        snprintf(text, sizeof text, "target.%d.range_m=%d.5", n, n);
        accept_set(&c, text);
        snprintf(text, sizeof text, "target.%d.amplitude=0.5", n);
        accept_set(&c, text);
    }
    assert_int_equal(c.n_targets, N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(c.targets[i].number, i + 1);
        assert_true(c.targets[i].range_m == (double)i + 1.5);
        assert_true(c.targets[i].amplitude == 0.5);
        assert_false(c.targets[i].has_snr);
    }
    pnr_config_clear(&c);

    accept_text(&c, "[target.2]\n[target.1]\nsnr_db = -3\n"); /* an empty section counts too */
    assert_int_equal(c.n_targets, 2);
    assert_true(c.targets[0].has_snr && c.targets[0].snr_db == -3);
    assert_false(c.targets[1].has_snr);
    pnr_config_clear(&c);
}

TEST(assignments_are_read)
{
    pnr_config c;

    pnr_config_init(&c);
    accept_set(&c, "stream.name=x");
    accept_set(&c, "stream.name = y ");
    assert_string_equal(c.stream.name, "y");
    accept_set(&c, "source.input=a # b ; c"); /* a shell has removed its comments before */
    assert_string_equal(c.source.input, "a # b ; c");
    accept_set(&c, "source.input=\" a \"");
    assert_string_equal(c.source.input, " a ");
    accept_set(&c, "source.input=a=b");
    assert_string_equal(c.source.input, "a=b");
    accept_set(&c, "publisher.endpoint=");
    assert_string_equal(c.publisher.endpoint, "");
    accept_set(&c, "target.2.range_m=1500");
    assert_int_equal(c.n_targets, 1);
    assert_int_equal(c.targets[0].number, 2);
    assert_true(c.targets[0].range_m == 1500);
    pnr_config_clear(&c);
}

TEST(wrong_assignments_are_refused)
{
    static const struct {
        const char *text;
        const char *words[4];
    } cases[] = {
        {"foo", {"-s:", "\"foo\"", "section.key=value"}},
        {"rate_hz=1", {"-s:", "\"rate_hz=1\"", "source.rate_hz"}},
        {"", {"-s:", "section.key=value"}},
        {"=", {"-s:", "section.key=value"}},
        {"source.rate_hx=1", {"-s:", "\"rate_hx\"", "\"rate_hz\""}},
        {"sourc.rate_hz=1", {"-s:", "[sourc]", "[source]"}},
        {".rate_hz=1", {"-s:", "[]"}},
        {"source.=1", {"-s:", "\"\""}},
        {"target.range_m=1", {"-s:", "[target]", "[target.1]"}},
        {"target.0.range_m=1", {"-s:", "[target.0]"}},
        {"rate=2M", {"-s:", "section.key=value", "may mean source.rate_hz"}},
        {"source.rate=2M", {"-s:", "\"rate\"", "did you mean source.rate_hz?"}},
        {"source.rate_hz=fast", {"source.rate_hz = \"fast\"", "p/q"}},
        {"stream.name=a\nb", {"-s:", "control byte 0x0a"}},
        {"stream.name=\"a\" b", {"trailing junk"}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_config c;
        pnr_error error = {0};

        pnr_config_init(&c);
        int code = pnr_config_set(&c, cases[i].text, &error);
        if (code == PNR_OK)
            fail_msg("taken: %s", cases[i].text);
        expect_words(code, &error, cases[i].words);
        pnr_config_clear(&c);
    }
}

TEST(files_are_read)
{
    char path[] = "/tmp/pnr-test-config-XXXXXX", longer[256];
    pnr_config c;
    pnr_error error = {0};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    /* Longer than any buffer of the reader, with the key in the last bytes. */
    for (int i = 0; i < 2000; i++)
        fprintf(file, "# line %d of a long comment that says nothing\n", i);
    fputs("[code]\ndegree = 17\n", file);
    assert_int_equal(fclose(file), 0);

    pnr_config_init(&c);
    if (pnr_config_read(&c, path, &error) != PNR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(c.code.degree, 17);

    file = fopen(path, "a");
    assert_non_null(file);
    fputs("degree = 18\n", file);
    assert_int_equal(fclose(file), 0);
    int code = pnr_config_read(&c, path, &error);
    snprintf(longer, sizeof longer, "%s:2003:", path);
    expect_words(code, &error, (const char *const[]){longer, "again", "line 2002", NULL});
    unlink(path);

    assert_int_equal(pnr_config_read(&c, path, &error), PNR_ENOINPUT);
    assert_non_null(strstr(error.text, path));
    code = pnr_config_read(&c, "/tmp", &error);
    expect_words(code, &error, (const char *const[]){"/tmp", "directory", NULL});
    code = pnr_config_read(&c, "/dev/zero", &error);
    expect_words(code, &error, (const char *const[]){"/dev/zero", "16 MiB", NULL});
    code = pnr_config_read(&c, "/dev/null", &error);
    assert_int_equal(code, PNR_OK);
    pnr_config_clear(&c);
}

TEST(long_names_and_values_keep_the_reason)
{
    char text[3000], name[400];
    pnr_config c;
    pnr_error error = {0};

    memset(name, 'd', sizeof name);
    memcpy(name + sizeof name - 10, "/end.conf", 10);
    snprintf(text, sizeof text, "[detector]\npfa = %01500d\n", 7);
    pnr_config_init(&c);
    int code = pnr_config_parse(&c, text, strlen(text), name, &error);
    expect_words(code, &error,
                 (const char *const[]){"/end.conf:2:", "detector.pfa", "less than 1", NULL});
    snprintf(text, sizeof text, "[detector]\n%01500d = 1\n", 7);
    code = pnr_config_parse(&c, text, strlen(text), name, &error);
    expect_words(code, &error, (const char *const[]){"/end.conf:2:", "pnradar.conf(5)", NULL});
    pnr_config_clear(&c);
}

/* A wrong word that resembles none has no nearest word. */
TEST(a_far_word_is_no_typing_error)
{
    static const char *const settings[] = {"code.type=galileo",   "code.type=chirp",
                                           "source.format=int32", "source.format=raw",
                                           "dwell.taper=hamming", "radar.unit=m"};

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        pnr_config c;
        pnr_error error = {0};

        pnr_config_init(&c);
        assert_int_equal(pnr_config_set(&c, settings[i], &error), PNR_ECONFIG);
        if (strstr(error.text, "nearest") || strstr(error.text, "did you mean"))
            fail_msg("%s", error.text);
        pnr_config_clear(&c);
    }
}

TEST(distances_count_steps)
{
    static const struct {
        const char *a, *b;
        size_t steps;
    } cases[] = {
        {"", "", 0},         {"", "abc", 3},      {"abc", "", 3},           {"name", "name", 0},
        {"nam", "name", 1},  {"naem", "name", 1}, {"nbme", "name", 1},      {"xname", "name", 1},
        {"NmaE", "name", 1}, {"ca", "abc", 3},    {"kitten", "sitting", 3}, {"rate", "range_m", 4},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(pnr_name_distance(cases[i].a, cases[i].b), cases[i].steps);
        assert_int_equal(pnr_name_distance(cases[i].b, cases[i].a), cases[i].steps);
    }
    assert_true(pnr_name_is_near("pah", "path"));
    assert_false(pnr_name_is_near("ph", "path"));
    char a[200], b[200];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    a[199] = b[199] = '\0';
    assert_int_equal(pnr_name_distance(a, b), 63);
}

/* A [code.<n>] takes missing keys from [code], in either order of the sections. */
TEST(codes_take_the_rest_from_code)
{
    pnr_config c, one;

    accept_text(&c, "[code.2]\nprn = 5\n[code]\ntype = gps-l1ca\nprn = 7\nseed = 3\n[code.1]\n"
                    "[code.3]\ntype = random\nlength = 1023\nseed =\nbits = 6\npath = \"x y\"\n");
    assert_int_equal(pnr_config_codes(&c), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(c.codes[i].number, i + 1);
    pnr_config_code(&c, 0, &one);
    assert_int_equal(one.code.type, PNR_CODE_GPS_L1CA);
    assert_int_equal(one.code.prn, 7);
    assert_false(one.code.has_bits);
    assert_int_equal(one.n_codes, 0);
    pnr_config_code(&c, 1, &one);
    assert_int_equal(one.code.type, PNR_CODE_GPS_L1CA);
    assert_int_equal(one.code.prn, 5);
    pnr_config_code(&c, 2, &one);
    assert_int_equal(one.code.type, PNR_CODE_RANDOM);
    assert_int_equal(one.code.length, 1023);
    assert_true(one.code.has_bits && one.code.bits == 6);
    assert_int_equal(one.code.seed, 3);
    assert_string_equal(one.code.path, "x y");

    /* Printed and read again it is the same. */
    char *text = printed(&c), *again;
    pnr_config other;

    assert_non_null(strstr(text, "[code.2]\ntype =\n"));
    accept_text(&other, text);
    again = printed(&other);
    assert_string_equal(text, again);
    free(text);
    free(again);
    pnr_config_clear(&other);
    accept_set(&c, "code.2.prn=");
    pnr_config_code(&c, 1, &one);
    assert_int_equal(one.code.prn, 7);
    pnr_config_clear(&c);

    accept_text(&c, "[code]\nprn = 9\n");
    assert_int_equal(pnr_config_codes(&c), 1);
    pnr_config_code(&c, 0, &one);
    assert_int_equal(one.code.prn, 9);
    pnr_config_clear(&c);
}

/* A hash is of the values, not of their spelling, and of the chosen keys alone. */
TEST(test_hash)
{
    static const pnr_config_part parts[] = {
        {"code", NULL}, {"code.n", NULL}, {"source", "tune_hz"}};
    static const struct {
        const char *setting;
        bool is_same; /* as the hash before this setting */
    } steps[] = {
        {"code.degree=10", true},       {"code.degree=11", false},
        {"code.taps=", true},           {"source.tune_hz=0.0", true},
        {"source.tune_hz=5", false},    {"source.channel=1", true},
        {"code.1.type=barker", false},  {"code.1.length=13", false},
        {"code.2.type=barker", false},  {"code.2.length=13", false},
        {"radar.carrier_hz=1e6", true},
    };
    pnr_config config;
    pnr_error error;
    uint64_t before;

    pnr_config_init(&config);
    before = pnr_config_hash(&config, parts, COUNT(parts));
    for (size_t i = 0; i < COUNT(steps); i++) {
        uint64_t now;

        if (pnr_config_set(&config, steps[i].setting, &error) != PNR_OK)
            fail_msg("%s", error.text);
        now = pnr_config_hash(&config, parts, COUNT(parts));
        if ((now == before) != steps[i].is_same)
            fail_msg("%s", steps[i].setting);
        before = now;
    }
    pnr_config_clear(&config);
}
