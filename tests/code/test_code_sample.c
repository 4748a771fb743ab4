/* SPDX-License-Identifier: MIT */
/* Tests the samples of codes: held chips, pulses, code files, and recordings of others, whose
 * correlation must have its peak. */
#include "base/format.h"
#include "tests/fixture/code_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#define DATA "../shared/data/"

enum { PATH_LEN = 256 };

/* Writes a file of n samples to `folder`. The extension of the name gives the format. */
static void write_file(char path[PATH_LEN], const char *folder, const char *name,
                       const sample *samples, size_t n)
{
    FILE *file;

    snprintf(path, PATH_LEN, "%s/%s", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t k = 0; k < n; k++) {
        const pnr_format format = pnr_format_of_path(name);
        unsigned char raw[16];

        pnr_format_write(format, samples[k], raw);
        assert_int_equal(fwrite(raw, pnr_format_get(format)->bytes, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
    char *folder = strdup("/tmp/pnr-test-code-XXXXXX");

    *state = folder && mkdtemp(folder) ? folder : NULL;
    return *state ? 0 : -1;
}

static int remove_folder(void **state)
{
    int rc = rmdir(*state);

    free(*state);
    return rc;
}

static double mean_power(const sample *x, size_t n)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += x[k][0] * x[k][0] + x[k][1] * x[k][1];
    return sum / (double)n;
}

static sample *sampled(const pnr_code *code, pnr_config *config, size_t n)
{
    sample *out = malloc(n * sizeof *out);
    pnr_error error = {0};

    assert_non_null(out);
    if (pnr_code_sample(code, config, n, out, &error) != PNR_OK)
        fail_msg("%s", error.text);
    return out;
}

TEST(a_sample_carries_chip_floor_n_l_over_n)
{
    static const size_t n_samples[] = {1023, 1024, 1500, 2046, 4000, 4092, 100003};
    pnr_code *code = new_code((keys){.type = PNR_CODE_GPS_L1CA, .prn = 5});
    pnr_config *config = new_config((keys){0});

    for (size_t i = 0; i < sizeof n_samples / sizeof n_samples[0]; i++) {
        sample *out = sampled(code, config, n_samples[i]);

        for (size_t n = 0; n < n_samples[i]; n++)
            assert_memory_equal(out[n], code->chips[n * 1023 / n_samples[i]], sizeof *out);
        free(out);
    }
    free(config);
    pnr_code_destroy(code);
}

/* Root-raised cosines that are a chip apart are orthogonal. So the autocorrelation of the samples
 * equals that of the chips at lags of whole chips. */
TEST(a_root_raised_cosine_has_no_intersymbol_interference)
{
    enum { L = 31, Q = 3, N = L * Q };
    pnr_code *code = new_code((keys){.type = PNR_CODE_M_SEQUENCE, .degree = 5});
    pnr_config *config = new_config((keys){0});

    config->code.pulse = PNR_PULSE_RRC;
    for (config->code.rolloff = 0; config->code.rolloff <= 1; config->code.rolloff += 0.25) {
        sample *out = sampled(code, config, N);

        for (int lag = 0; lag < L; lag++) {
            double sum = 0;

            for (int n = 0; n < N; n++)
                sum += out[n][0] * out[(n + lag * Q) % N][0] / N;
            assert_true(fabs(sum - (lag == 0 ? 1 : -1.0 / L)) < 1e-12);
        }
        free(out);
    }
    free(config);
    pnr_code_destroy(code);
}

TEST(a_low_pass_that_passes_only_the_mean_is_refused)
{
    pnr_code *code = new_code((keys){.type = PNR_CODE_M_SEQUENCE, .degree = 5});
    pnr_config *config = new_config((keys){0});
    sample out[31];
    pnr_error error = {0};

    config->source.rate_hz = (pnr_rational){31000, 1};
    config->code.pulse = PNR_PULSE_FILTERED;
    config->code.cutoff_hz = 1000;
    assert_int_equal(pnr_code_sample(code, config, 31, out, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "code.cutoff_hz = 1000"));
    config->code.cutoff_hz = 1001;
    assert_int_equal(pnr_code_sample(code, config, 31, out, &error), PNR_OK);
    free(config);
    pnr_code_destroy(code);
}

TEST(fewer_samples_than_chips_are_refused)
{
    pnr_code *code = new_code((keys){.type = PNR_CODE_BARKER, .length = 13});
    pnr_config *config = new_config((keys){0});
    sample out[13];
    pnr_error error = {0};

    assert_int_equal(pnr_code_sample(code, config, 12, out, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "12 samples a period for 13 chips"));
    assert_int_equal(pnr_code_sample(code, config, 0, out, &error), PNR_ECONFIG);
    free(config);
    pnr_code_destroy(code);
}

TEST(a_code_file_of_any_format_has_mean_power_one)
{
    static const sample chips[] = {{0.5, 0.25}, {-0.5, 0.25}, {0.125, -0.75}, {0, 0}, {0.25, 0.5}};
    static const char *const names[] = {"a.ci8", "a.sc16", "a.cfile", "a.cf64"};
    static const char *const real[] = {"a.i8", "a.i16", "a.f32", "a.f64"};
    char path[PATH_LEN];

    for (int i = 0; i < 8; i++) {
        const char *name = i < 4 ? names[i] : real[i - 4];
        pnr_code *code;
        double scale = 0;

        write_file(path, *group_state, name, chips, 5);
        code = new_code((keys){.type = PNR_CODE_FILE, .text = path});
        unlink(path);
        assert_int_equal(code->n_chips, 5);
        assert_true(fabs(mean_power((const sample *)code->chips, 5) - 1) < 1e-14);
        scale = code->chips[0][0] / chips[0][0];
        for (int k = 0; k < 5; k++) {
            assert_true(fabs(code->chips[k][0] - scale * chips[k][0]) < 1e-14);
            assert_true(fabs(code->chips[k][1] - (i < 4 ? scale * chips[k][1] : 0)) < 1e-14);
        }
        assert_non_null(strstr(code->name, name));
        assert_null(strchr(code->name, '/'));
        pnr_code_destroy(code);
    }
}

TEST(values_beyond_any_square_are_scaled)
{
    static const sample huge[] = {{1e300, 0}, {0, -1e300}}, tiny[] = {{1e-310, 0}, {0, 1e-310}};
    char path[PATH_LEN];

    for (int i = 0; i < 2; i++) {
        pnr_code *code;

        write_file(path, *group_state, "x.cf64", i ? tiny : huge, 2);
        code = new_code((keys){.type = PNR_CODE_FILE, .text = path});
        unlink(path);
        assert_true(fabs(code->chips[0][0] - 1) < 1e-9 && code->chips[0][1] == 0);
        assert_true(fabs(fabs(code->chips[1][1]) - 1) < 1e-9);
        pnr_code_destroy(code);
    }
}

TEST(bad_code_files_are_refused_with_the_reason)
{
    static const sample zeros[3] = {{0}}, good[3] = {{1, 0}, {0, 1}, {1, 1}};
    const float nan_at_one[] = {1, 0, 0, NAN, 1, 0};
    const char *folder = *group_state;
    char path[PATH_LEN];
    FILE *file;

    expect_code_refused((keys){.type = PNR_CODE_FILE}, PNR_ECONFIG, "code.path: not given");
    write_file(path, folder, "a.cf32", zeros, 3);
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = path}, PNR_EDATA,
                        "all 3 samples are zero");
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(nan_at_one, sizeof nan_at_one, 1, file), 1);
    fclose(file);
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = path}, PNR_EDATA,
                        "sample 1 is not finite");
    assert_int_equal(truncate(path, 23), 0);
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = path}, PNR_EDATA, "23 bytes");
    assert_int_equal(truncate(path, 0), 0);
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = path}, PNR_EDATA, "0 bytes");
    unlink(path);
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = path}, PNR_ENOINPUT, "No such file");
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = folder}, PNR_ECONFIG,
                        "names no sample format");
    snprintf(path, sizeof path, "%s/d.cf32", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_code_refused((keys){.type = PNR_CODE_FILE, .text = path}, PNR_ENOINPUT,
                        "not a regular file");
    assert_int_equal(rmdir(path), 0);
    write_file(path, *group_state, "a.cf32", good, 3);
    pnr_code_destroy(new_code((keys){.type = PNR_CODE_FILE, .text = path}));
    unlink(path);
}

/* With r whole samples a chip, s[n] = sum_i chip[i] pulse[n - i r], and the sum is cyclic. */
TEST(a_pulse_at_whole_samples_is_a_cyclic_sum)
{
    enum { L = 15, R = 4, N = L * R, PULSE = 70 }; /* the pulse is longer than the period */
    static sample pulse[PULSE], expected[N];
    pnr_code *code = new_code((keys){.type = PNR_CODE_ZADOFF_CHU, .length = L, .root = 4});
    pnr_config *config = new_config((keys){0});
    sample *out;
    double scale;

    for (int k = 0; k < PULSE; k++) {
        pulse[k][0] = exp(-0.05 * k) * cos(0.2 * k);
        pulse[k][1] = 0.3 * exp(-0.1 * k) * sin(0.7 * k);
    }
    write_file(config->code.pulse_path, *group_state, "pulse.cf64", (const sample *)pulse, PULSE);
    config->code.pulse = PNR_PULSE_FILE;
    out = sampled(code, config, N);
    unlink(config->code.pulse_path);
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < L; i++) {
        for (int k = 0; k < PULSE; k++) {
            double *e = expected[(i * R + k) % N];

            e[0] += code->chips[i][0] * pulse[k][0] - code->chips[i][1] * pulse[k][1];
            e[1] += code->chips[i][0] * pulse[k][1] + code->chips[i][1] * pulse[k][0];
        }
    }
    scale = 1 / sqrt(mean_power((const sample *)expected, N));
    for (int n = 0; n < N; n++) {
        assert_true(fabs(out[n][0] - scale * expected[n][0]) < 1e-12);
        assert_true(fabs(out[n][1] - scale * expected[n][1]) < 1e-12);
    }
    assert_true(fabs(mean_power((const sample *)out, N) - 1) < 1e-13);
    free(out);
    free(config);
    pnr_code_destroy(code);
}

/* Chip i begins at the fractional sample i N / L. The expected samples are direct sums over the
 * harmonics of the pulse. */
TEST(a_pulse_between_samples_is_band_limited)
{
    static const size_t lengths[] = {37, 40};
    enum { L = 13, PULSE = 5, MOST = 40 };
    static const sample pulse[PULSE] = {{0.2, 0}, {0.7, 0.1}, {1, -0.3}, {0.6, 0.2}, {0.1, 0}};
    pnr_code *code = new_code((keys){.type = PNR_CODE_ZADOFF_CHU, .length = L, .root = 5});
    pnr_config *config = new_config((keys){0});

    write_file(config->code.pulse_path, *group_state, "pulse.cf64", pulse, PULSE);
    config->code.pulse = PNR_PULSE_FILE;
    for (int which = 0; which < 2; which++) {
        const size_t n_samples = lengths[which];
        const int n = (int)n_samples;
        sample *out = sampled(code, config, n_samples);
        sample expected[MOST] = {{0}};
        double scale;

        for (int t = 0; t < n; t++) {
            for (int i = 0; i < L; i++) {
                for (int k = 0; k < PULSE; k++) {
                    /* the periodic sinc of N samples, whose Nyquist harmonic is a cosine */
                    double x = t - (double)i * n / L - k, sinc = 1;

                    for (int m = 1; 2 * m < n; m++)
                        sinc += 2 * cos(2 * M_PI * m * x / n);
                    sinc = (sinc + (n % 2 == 0 ? cos(M_PI * x) : 0)) / n;
                    expected[t][0] +=
                        sinc * (code->chips[i][0] * pulse[k][0] - code->chips[i][1] * pulse[k][1]);
                    expected[t][1] +=
                        sinc * (code->chips[i][0] * pulse[k][1] + code->chips[i][1] * pulse[k][0]);
                }
            }
        }
        scale = 1 / sqrt(mean_power((const sample *)expected, n_samples));
        for (int t = 0; t < n; t++) {
            assert_true(fabs(out[t][0] - scale * expected[t][0]) < 1e-12);
            assert_true(fabs(out[t][1] - scale * expected[t][1]) < 1e-12);
        }
        free(out);
    }
    unlink(config->code.pulse_path);
    free(config);
    pnr_code_destroy(code);
}

TEST(a_pulse_that_passes_nothing_is_refused)
{
    /* The code repeats twice in the period, so it has no harmonic 1, and the pulse has only
     * harmonic 1. */
    sample tone[16], chips[4] = {{1, 0}, {-1, 0}, {1, 0}, {-1, 0}}, out[16];
    char path[PATH_LEN];
    pnr_config *config;
    pnr_code *code;
    pnr_error error = {0};

    for (int k = 0; k < 16; k++) {
        tone[k][0] = cos(2 * M_PI * k / 16);
        tone[k][1] = sin(2 * M_PI * k / 16);
    }
    write_file(path, *group_state, "chips.f64", (const sample *)chips, 4);
    code = new_code((keys){.type = PNR_CODE_FILE, .text = path});
    unlink(path);
    config = new_config((keys){0});
    config->code.pulse = PNR_PULSE_FILE;
    write_file(config->code.pulse_path, *group_state, "tone.cf64", (const sample *)tone, 16);
    assert_int_equal(pnr_code_sample(code, config, 16, out, &error), PNR_EDATA);
    assert_non_null(strstr(error.text, "passes nothing"));
    unlink(config->code.pulse_path);
    assert_int_equal(pnr_code_sample(code, config, 16, out, &error), PNR_ENOINPUT);
    assert_non_null(strstr(error.text, "code.pulse_path"));
    free(config);
    pnr_code_destroy(code);
}

static size_t read_recording(const char *path, sample *out, size_t most)
{
    FILE *file = fopen(path, "rb");
    unsigned char raw[8];
    size_t n = 0;

    if (!file)
        skip(); /* the recordings are not distributed with the sources */
    while (n < most && fread(raw, sizeof raw, 1, file) == 1)
        pnr_format_read(PNR_FORMAT_CF32, raw, out[n++]);
    fclose(file);
    return n;
}

TEST(the_zadoff_chu_record_peaks_at_lag_252)
{
    enum { N = 255 };
    static sample record[3 * N], chips[N];
    char path[PATH_LEN];
    pnr_code *code;

    assert_int_equal(read_recording(DATA "zadoff_chu_255_q7.cf32", record, 3 * N), 3 * N);
    for (int m = 1; m <= N; m++) {
        double phase = M_PI * 7 * (m * m / (double)N + m);

        chips[m - 1][0] = cos(phase);
        chips[m - 1][1] = sin(phase);
    }
    write_file(path, *group_state, "zc.cf64", (const sample *)chips, N);
    code = new_code((keys){.type = PNR_CODE_FILE, .text = path});
    unlink(path);
    for (int period = 0; period < 3; period++) {
        sample *c =
            correlate_periods((const sample *)record + period * N, (const sample *)code->chips, N);

        assert_int_equal(strongest_lag((const sample *)c, N), 252);
        free(c);
    }
    pnr_code_destroy(code);
}

/* Returns the lag of the peak in the first period of a GPS recording at 4 Msample/s, after its
 * Doppler is removed. */
static size_t gps_delay(const char *path, size_t prn, double doppler_hz)
{
    enum { N = 4000 };
    static sample record[N];
    pnr_code *code = new_code((keys){.type = PNR_CODE_GPS_L1CA, .prn = prn});
    pnr_config *config = new_config((keys){0});
    sample *reference = sampled(code, config, N);
    sample *c;
    size_t delay;

    free(config);
    pnr_code_destroy(code);
    assert_int_equal(read_recording(path, record, N), N);
    for (int n = 0; n < N; n++) {
        double phase = -2 * M_PI * doppler_hz * n / 4e6;
        double re = record[n][0] * cos(phase) - record[n][1] * sin(phase);
        double im = record[n][0] * sin(phase) + record[n][1] * cos(phase);

        record[n][0] = re;
        record[n][1] = im;
    }
    c = correlate_periods((const sample *)record, (const sample *)reference, N);
    delay = strongest_lag((const sample *)c, N);
    free(c);
    free(reference);
    return delay;
}

TEST(gps_prn_1_peaks_at_523_or_524)
{
    size_t delay;

    if (access(DATA "gps_l1_ca_prn1_4Msps.cf32", R_OK) != 0)
        skip();
    delay = gps_delay(DATA "gps_l1_ca_prn1_4Msps.cf32", 1, 1680);
    assert_true(delay == 523 || delay == 524);
}

TEST(gps_prn_29_of_the_capture_peaks_at_3705)
{
    size_t delay;

    if (access(DATA "gps_l1_ca_cttc_4Msps.cf32", R_OK) != 0)
        skip();
    delay = gps_delay(DATA "gps_l1_ca_cttc_4Msps.cf32", 29, 9750);
    assert_true(delay >= 3704 && delay <= 3706);
}

TESTS_BETWEEN(make_folder, remove_folder)

TEST(tuned_samples_turn_by_whole_cycles)
{
    pnr_config *config = new_config((keys){.type = PNR_CODE_GLONASS});
    const double turn = 2 * M_PI * -3937 / 8176;
    sample plain[8176], tuned[8176];
    pnr_error error;
    pnr_code *code;

    config->source.rate_hz = (pnr_rational){8176000, 1};
    assert_int_equal(pnr_code_create(config, &code, &error), PNR_OK);
    assert_int_equal(pnr_code_sample(code, config, 8176, plain, &error), PNR_OK);
    pnr_code_destroy(code);
    config->code.tune_hz = (pnr_rational){-3937000, 1};
    assert_int_equal(pnr_code_create(config, &code, &error), PNR_OK);
    assert_string_equal(code->name, "glonass tune_hz=-3937000");
    assert_int_equal(code->is_m_sequence, 0);
    assert_int_equal(pnr_code_sample(code, config, 8176, tuned, &error), PNR_OK);
    for (int n = 0; n < 8176; n++) {
        assert_true(fabs(tuned[n][0] - plain[n][0] * cos(turn * n)) < 1e-8);
        assert_true(fabs(tuned[n][1] - plain[n][0] * sin(turn * n)) < 1e-8);
    }
    config->code.tune_hz = (pnr_rational){-3937500, 1};
    assert_int_equal(pnr_code_sample(code, config, 8176, tuned, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "must be a multiple of the repetition rate"));
    config->code.tune_hz = (pnr_rational){562400, 1};
    assert_int_equal(pnr_code_sample(code, config, 8176, tuned, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "with 562000, Doppler shifts are higher by 400 Hz"));
    config->code.tune_hz = (pnr_rational){4089000, 1};
    assert_int_equal(pnr_code_sample(code, config, 8176, tuned, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "beyond half"));
    pnr_code_destroy(code);
    free(config);
}
