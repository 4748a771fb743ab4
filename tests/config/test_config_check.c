/* SPDX-License-Identifier: MIT */
/* The rules between keys: each refuses a violation with a reason, and accepts the limit. */
#include "tests/fixture/config_fixture.h"

/* Assignments on top of a sound configuration, NULL-terminated. */
typedef const char *const *assignments;

static int check_with(assignments sets, pnr_error *error)
{
    pnr_config c;

    accept_text(&c, "[source]\nrate_hz = 1e6\n");
    for (; *sets; sets++)
        accept_set(&c, *sets);
    int code = pnr_config_check(&c, error);
    assert_int_equal(pnr_config_check(&c, NULL), code);
    pnr_config_clear(&c);
    return code;
}

TEST(rules_refuse_what_breaks_them)
{
    static const struct {
        const char *sets[6];
        const char *words[5];
    } cases[] = {
        {{"source.rate_hz="}, {"source.rate_hz", "needed"}},
        {{"publisher.gnuradio=tcp://127.0.0.1:6000"}, {"publisher.gnuradio", "publisher.profile"}},
        {{"stream.name="}, {"stream.name", "empty"}},
        {{"stream.name=a b"}, {"stream.name = \"a b\"", "spaces"}},
        {{"stream.name=a/b"}, {"stream.name = \"a/b\"", "/"}},
        {{"stream.name=a\tb"}, {"stream.name"}},
        {{"stream.name=\xc3\xa4"}, {"stream.name", "ASCII"}},
        {{"engine.name=../evil"}, {"engine.name = \"../evil\""}},
        {{"engine.name=gpu"}, {"engine.name = \"gpu\"", "did you mean cuda?"}},
        {{"engine.name=CUDA"}, {"engine.name = \"CUDA\"", "did you mean cuda?"}},
        {{"engine.name=Reference"}, {"did you mean reference?"}},
        {{"source.rate_hz=1 mHz"}, {"source.rate_hz = 1/1000", "MHz is 1000000 Hz"}},
        {{"engine.name="}, {"engine.name", "auto"}},
        {{"engine.method=a b"}, {"engine.method = \"a b\""}},
        {{"engine.method="}, {"engine.method"}},
        {{"source.tune_hz=500001"}, {"source.tune_hz = 500001", "1000000"}},
        {{"source.tune_hz=-500001"}, {"source.tune_hz = -500001", "half"}},
        {{"source.tune_hz=1000001/2"}, {"source.tune_hz = 1000001/2"}},
        {{"source.channel=1"}, {"source.channel = 1", "source.channels is 1"}},
        {{"source.channels=4", "source.channel=4"}, {"source.channel = 4"}},
        {{"source.layout=channels", "source.format=ci16"}, {"source.layout", "ci16"}},
        {{"code.type=file"}, {"code.type = file", "code.path"}},
        {{"code.type=file", "code.1.prn=1"}, {"code.1.type = file", "code.1.path"}},
        {{"code.2.prn=1"}, {"[code.1] is missing", "[code.2]"}},
        {{"target.1.amplitude=1", "target.1.code=2"}, {"target.1.code = 2", "is only 1"}},
        {{"target.1.amplitude=1", "target.1.code=3", "code.1.prn=1", "code.2.prn=2"},
         {"target.1.code = 3", "are 2"}},
        {{"window.dc=remove", "doppler.max_hz=100"}, {"window.dc", "doppler.step = whole"}},
        {{"code.pulse=file"}, {"code.pulse = file", "code.pulse_path"}},
        {{"code.pulse=filtered"}, {"code.pulse = filtered", "code.cutoff_hz"}},
        {{"code.chip_rate_hz=1000001"}, {"code.chip_rate_hz = 1000001", "1000000"}},
        {{"code.chip_rate_hz=3000001/3"}, {"code.chip_rate_hz = 3000001/3"}},
        {{"code.epoch=2026-11-21T00:00:00Z"}, {"code.epoch", "source.start_time"}},
        {{"radar.max_range_m=5", "radar.min_range_m=5"}, {"radar.max_range_m = 5", "min_range"}},
        {{"radar.max_range_m=-1"}, {"radar.max_range_m = -1"}},
        {{"radar.zero=direct-path", "dwell.clutter=remove"}, {"direct-path", "dwell.clutter"}},
        {{"dwell.periods=2"}, {"dwell.periods = 2", "dwell.combine"}},
        {{"doppler.min_hz=10", "doppler.max_hz=5"}, {"doppler.min_hz = 10", "max_hz = 5"}},
        {{"doppler.max_hz=500001"}, {"doppler.max_hz = 500001", "500000"}},
        {{"doppler.min_hz=-500001"}, {"doppler.min_hz = -500001", "half"}},
        {{"dwell.periods=4", "dwell.combine=coherent", "doppler.max_hz=9"},
         {"doppler.max_hz = 9", "dwell.combine = doppler"}},
        {{"dwell.combine=doppler"}, {"dwell.combine = doppler", "dwell.periods"}},
        {{"dwell.taper=hann"}, {"dwell.taper", "dwell.combine = doppler"}},
        {{"dwell.taper=hann", "dwell.periods=4", "dwell.combine=coherent"}, {"dwell.taper"}},
        {{"dwell.clutter=remove"}, {"dwell.clutter = remove", "dwell.combine = doppler"}},
        {{"dwell.clutter=remove", "dwell.periods=4", "dwell.combine=coherent"},
         {"dwell.clutter = remove", "coherent sum"}},
        {{"detector.exclusion_rows=2"}, {"detector.exclusion_rows = 2", "doppler"}},
        {{"detector.cfar=ca", "detector.cfar_axis=doppler"}, {"detector.cfar_axis", "one row"}},
        {{"dwell.looks=3"}, {"dwell.looks = 3", "incoherent", "dwell.periods = 3"}},
        {{"detector.subtract=1", "dwell.periods=2", "dwell.combine=incoherent"},
         {"detector.subtract = 1", "incoherent"}},
        {{"detector.subtract=1", "dwell.periods=2", "dwell.combine=coherent", "dwell.looks=2"},
         {"detector.subtract = 1", "dwell.looks"}},
        {{"window.filter=least-squares", "detector.oversample=2", "radar.max_range_m=1e4"},
         {"window.filter = least-squares", "detector.oversample = 2"}},
        {{"ring.seconds=1", "ring.bytes=1M"}, {"ring.seconds = 1", "ring.bytes = 1048576"}},
        {{"source.format=ci8", "echo.bits=9"}, {"echo.bits = 9", "8 bits", "ci8"}},
        {{"source.format=u8", "echo.bits=16"}, {"echo.bits = 16", "u8"}},
        {{"echo.cw_amplitude=1", "echo.cw_hz=-500001"}, {"echo.cw_hz = -500001", "500000"}},
        {{"echo.noise_bandwidth_hz=1000001"}, {"echo.noise_bandwidth_hz = 1000001", "1000000"}},
        {{"target.1.range_m=5"}, {"target.1", "neither"}},
        {{"target.1.amplitude=0.5", "target.1.snr_db=0"}, {"target.1", "snr_db = 0", "one of"}},
        {{"target.1.snr_db=3", "echo.noise_rms=0"}, {"target.1.snr_db = 3", "echo.noise_rms"}},
        {{"target.1.amplitude=1", "target.1.velocity_mps=299792458"}, {"299792458", "speed_mps"}},
        {{"target.1.amplitude=1", "target.1.velocity_mps=-400", "radar.speed_mps=343"},
         {"target.1.velocity_mps = -400", "radar.speed_mps = 343"}},
        {{"engine.wait=spin", "realtime.acquisition_cpu=3", "realtime.processing_cpu=3"},
         {"engine.wait = spin", "processor 3", "realtime.acquisition_cpu = 3"}},
        {{"target.2.amplitude=1"}, {"[target.1] is missing", "[target.2]"}},
        {{"target.1.amplitude=1", "target.3.amplitude=1", "target.4.amplitude=1"},
         {"[target.2] is missing", "[target.3]"}},
        {{"target.2.range_m=1", "target.1.amplitude=1"}, {"target.2", "neither"}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_error error = {0};
        int code = check_with(cases[i].sets, &error);

        if (code == PNR_OK)
            fail_msg("passed: %s", cases[i].sets[0]);
        expect_words(code, &error, cases[i].words);
    }
}

TEST(rules_take_what_just_keeps_them)
{
    static const char *const cases[][6] = {
        {"stream.name=A-z_0.9~!"},
        {"engine.name=cuda", "engine.method=walsh"},
        {"source.tune_hz=500000"},
        {"source.tune_hz=-500000"},
        {"source.rate_hz=9223372036854775807", "source.tune_hz=-4611686018427387903"},
        {"source.rate_hz=9223372036854775807/2", "code.chip_rate_hz=9223372036854775807/2"},
        {"source.channels=4", "source.channel=3"},
        {"source.layout=channels", "source.format=i16"},
        {"source.layout=channels"},
        {"code.type=file", "code.path=x"},
        {"code.pulse=file", "code.pulse_path=x"},
        {"code.pulse=filtered", "code.cutoff_hz=1"},
        {"window.dc=remove", "doppler.max_hz=100", "doppler.step=whole"},
        {"window.dc=remove", "dwell.combine=doppler", "dwell.periods=8"},
        {"code.type=file", "code.2.path=b", "code.1.path=a"},
        {"code.type=file", "code.1.type=gps-l1ca"},
        {"target.1.amplitude=1", "target.1.code=2", "code.1.prn=1", "code.2.prn=2"},
        {"code.chip_rate_hz=1e6"},
        {"code.epoch=2026-11-21T00:00:00Z", "source.start_time=2026-11-21T00:00:00Z"},
        {"radar.max_range_m=6", "radar.min_range_m=5"},
        {"radar.min_range_m=5"},
        {"radar.min_range_m=-5", "radar.max_range_m=-1"},
        {"dwell.periods=2", "dwell.combine=coherent"},
        {"dwell.periods=2", "dwell.combine=incoherent"},
        {"dwell.combine=coherent"},
        {"doppler.min_hz=-500000", "doppler.max_hz=500000"},
        {"doppler.min_hz=5", "doppler.max_hz=5"},
        {"doppler.max_hz=9", "dwell.combine=coherent"},
        {"doppler.max_hz=9", "dwell.combine=incoherent", "dwell.periods=3", "dwell.looks=2"},
        {"doppler.max_hz=9", "detector.exclusion_rows=2", "detector.cfar=ca",
         "detector.cfar_axis=doppler"},
        {"dwell.combine=doppler", "dwell.periods=2", "dwell.taper=hann", "dwell.clutter=remove",
         "dwell.looks=2"},
        {"detector.cfar_axis=doppler"}, /* not asked for */
        {"detector.subtract=1", "dwell.combine=incoherent"},
        {"detector.subtract=1", "dwell.combine=doppler", "dwell.periods=2"},
        {"window.filter=least-squares"},
        {"ring.seconds=1"},
        {"engine.wait=spin"},
        {"engine.wait=spin", "realtime.acquisition_cpu=2", "realtime.processing_cpu=3"},
        {"engine.wait=sleep", "realtime.acquisition_cpu=3", "realtime.processing_cpu=3"},
        {"ring.bytes=1M"},
        {"source.format=ci8", "echo.bits=8"},
        {"source.format=cf32", "echo.bits=16"},
        {"echo.bits=16"},
        {"echo.cw_hz=500001"}, /* not there: no amplitude */
        {"echo.cw_amplitude=1", "echo.cw_hz=500000"},
        {"echo.noise_bandwidth_hz=1000000"},
        {"target.1.amplitude=0.5", "echo.noise_rms=0"},
        {"target.1.snr_db=0"},
        {"target.1.amplitude=0.5", "target.1.snr_db=0", "target.1.snr_db="},
        {"target.2.snr_db=0", "target.1.amplitude=1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_error error = {0};

        if (check_with(cases[i], &error) != PNR_OK)
            fail_msg("%s: %s", cases[i][0], error.text);
    }
}

/* Configurations that a program can run unchanged. */
TEST(ready_configurations_pass)
{
    static const struct {
        const char *path;
        int type;
        double rate_hz;
        size_t n_targets;
    } cases[] = {
        {"config/demo.conf", PNR_CODE_M_SEQUENCE, 1e6, 2},
        {"config/hf-sounder.conf", PNR_CODE_RANDOM, 1e5, 3},
        {"config/sonar.conf", PNR_CODE_M_SEQUENCE, 48e3, 2},
        {"config/gnss.conf", PNR_CODE_GPS_L1CA, 4e6, 2},
        {"config/doppler-radar.conf", PNR_CODE_M_SEQUENCE, 1.023e6, 3},
        {"config/memoir.conf", PNR_CODE_M_SEQUENCE, 262143 / 0.062, 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pnr_config c;
        pnr_error error = {0};

        pnr_config_init(&c);
        if (pnr_config_read(&c, cases[i].path, &error) != PNR_OK)
            fail_msg("%s", error.text);
        if (pnr_config_check(&c, &error) != PNR_OK)
            fail_msg("%s: %s", cases[i].path, error.text);
        assert_int_equal(c.code.type, cases[i].type);
        assert_float_equal(pnr_rational_double(c.source.rate_hz), cases[i].rate_hz, 1e-6);
        assert_int_equal(c.n_targets, cases[i].n_targets);
        assert_true(c.echo.periods > 0); /* pnradar-echo comes to an end */
        assert_true(c.source.input[0]);  /* and pnradar knows what to read */
        assert_int_not_equal(c.source.format, PNR_FORMAT_NONE);
        pnr_config_clear(&c);
    }
}

TEST(defaults_need_only_a_rate)
{
    pnr_config c;
    pnr_error error = {0};

    pnr_config_init(&c);
    int code = pnr_config_check(&c, &error);
    expect_words(code, &error, (const char *const[]){"source.rate_hz", NULL});
    accept_set(&c, "source.rate_hz=1");
    assert_int_equal(pnr_config_check(&c, &error), PNR_OK);
    pnr_config_clear(&c);
}
