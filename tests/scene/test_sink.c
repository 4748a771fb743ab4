/* SPDX-License-Identifier: MIT */
/* Tests of sinks: every format is written and read back; the ADC; pipes and FIFOs; outputs that
 * fail. */
#include "scene/sink.h"
#include "tests/fixture/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sndfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 5000 };

static char folder[] = "/tmp/pnr-sink-XXXXXX";

static char *path_of(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static void set_all(pnr_config *config, const char *const *settings)
{
    pnr_error error;

    pnr_config_init(config);
    for (; *settings; settings++)
        if (pnr_config_set(config, *settings, &error) != PNR_OK)
            fail_msg("%s", error.text);
}

/* Makes a spiral inside full scale, also for 4 bits. All samples are different. */
static void spiral(double (*x)[2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i][0] = 0.8 * (double)i / (double)n * cos(0.1 * (double)i);
        x[i][1] = 0.8 * (double)i / (double)n * sin(0.1 * (double)i);
    }
}

static size_t file_size(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (size_t)st.st_size : (size_t)-1;
}

/* Writes n samples in uneven parts. */
static void write_file(const pnr_config *config, const char *path, const double (*x)[2], size_t n,
                       pnr_sink_info *info)
{
    pnr_error error;
    pnr_sink *sink;

    if (pnr_sink_open(config, path, n, NULL, &sink, &error) != PNR_OK)
        fail_msg("%s", error.text);
    size_t channels = pnr_sink_get_info(sink)->n_channels;
    for (size_t i = 0, part = 1; i < n; i += part, part = part * 5 + 1) {
        part = part < n - i ? part : n - i;
        assert_int_equal(pnr_sink_write(sink, x + i * channels, part, &error), PNR_OK);
    }
    *info = *pnr_sink_get_info(sink);
    assert_int_equal(pnr_sink_close(sink, true, &error), PNR_OK);
    assert_int_equal(info->n_written, n);
}

TEST(writes_every_raw_format)
{
    static double x[N][2];

    spiral(x, N);
    for (int f = PNR_FORMAT_NONE + 1; f < PNR_FORMAT_COUNT; f++) {
        const pnr_format_info *format = pnr_format_get((pnr_format)f);
        const char *const by_name[] = {NULL};
        char path[256], name[64];
        pnr_config config;
        pnr_sink_info info;

        set_all(&config, by_name);
        snprintf(name, sizeof name, "echo.%s", format->name);
        write_file(&config, path_of(name, path), (const double(*)[2])x, N, &info);
        assert_int_equal(info.format, f);
        assert_int_equal(info.n_clipped, 0);
        assert_true(info.is_regular);
        assert_int_equal(file_size(path), N * format->bytes);

        unsigned char *raw = malloc(N * format->bytes);
        FILE *file = fopen(path, "rb");
        assert_int_equal(fread(raw, format->bytes, N, file), N);
        fclose(file);
        double most = format->is_float ? (f == PNR_FORMAT_CF32 || f == PNR_FORMAT_F32 ? 3e-8 : 0)
                                       : 0.500001 * format->scale;
        for (size_t i = 0; i < N; i++) {
            double back[2];

            assert_int_equal(pnr_format_read((pnr_format)f, raw + i * format->bytes, back), 0);
            assert_true(fabs(back[0] - x[i][0]) <= most);
            assert_true(format->is_complex ? fabs(back[1] - x[i][1]) <= most : back[1] == 0);
        }
        free(raw);
        unlink(path);
        pnr_config_clear(&config);
    }
}

TEST(prefers_the_format_that_is_set)
{
    static const double x[3][2] = {{0.5, -0.5}, {0, 0.25}, {-1, 0}};
    char path[256];
    pnr_config config;
    pnr_sink_info info;

    set_all(&config, (const char *const[]){"source.format=ci8", "source.channels=3",
                                           "source.layout=channels", NULL});
    write_file(&config, path_of("echo.cf32", path), x, 1, &info);
    assert_int_equal(info.format, PNR_FORMAT_CI8);
    assert_int_equal(info.n_channels, 3);
    assert_int_equal(file_size(path), 6);
    signed char raw[6];
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(raw, 1, 6, file), 6);
    fclose(file);
    static const signed char expected[6] = {64, -64, 0, 32, -128, 0};
    assert_memory_equal(raw, expected, 6);
    unlink(path);
    pnr_config_clear(&config);
}

TEST(writes_every_sound_file)
{
    static const char *const extensions[] = {"wav", "rf64", "w64", "au", "flac"};
    static const int types[] = {SF_FORMAT_WAV, SF_FORMAT_RF64, SF_FORMAT_W64, SF_FORMAT_AU,
                                SF_FORMAT_FLAC};
    static const struct {
        const char *format, *layout, *channels;
        int n_sound; /* channels of the sound file */
        pnr_format reads;
        double most;
    } cases[] = {
        {NULL, "source.layout=iq", "source.channels=1", 2, PNR_FORMAT_CI16, 1.0 / 65535},
        {"source.format=ci16", "source.layout=iq", "source.channels=1", 2, PNR_FORMAT_CI16,
         1.0 / 65535},
        {"source.format=ci16", "source.layout=iq", "source.channels=2", 4, PNR_FORMAT_CI16,
         1.0 / 65535},
        {"source.format=i16", "source.layout=channels", "source.channels=3", 3, PNR_FORMAT_I16,
         1.0 / 65535},
        {"source.format=i16", "source.layout=iq", "source.channels=1", 1, PNR_FORMAT_I16,
         1.0 / 65535},
        {"source.format=cu8", "source.layout=iq", "source.channels=1", 2, PNR_FORMAT_CI16,
         1.0 / 255},
        {"source.format=cf32", "source.layout=iq", "source.channels=1", 2, PNR_FORMAT_CF32, 3e-8},
        {"source.format=f64", "source.layout=channels", "source.channels=2", 2, PNR_FORMAT_F32, 0},
    };
    static double x[N * 3][2];

    spiral(x, N * 3);
    for (size_t e = 0; e < 5; e++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            const char *settings[] = {"source.rate_hz=48000", cases[k].layout, cases[k].channels,
                                      cases[k].format, NULL};
            char path[256], name[32];
            pnr_config config;
            pnr_sink_info info;
            SF_INFO sf = {0};

            if (types[e] == SF_FORMAT_FLAC && cases[k].most < 1e-6)
                continue;
            set_all(&config, settings);
            snprintf(name, sizeof name, "echo.%s", extensions[e]);
            write_file(&config, path_of(name, path), (const double(*)[2])x, N, &info);
            assert_int_equal(info.format, cases[k].reads);

            SNDFILE *sound = sf_open(path, SFM_READ, &sf);
            assert_non_null(sound);
            assert_int_equal(sf.format & SF_FORMAT_TYPEMASK, types[e]);
            assert_int_equal(sf.channels, cases[k].n_sound);
            assert_int_equal(sf.samplerate, 48000);
            assert_int_equal(sf.frames, N);
            size_t count = (size_t)N * (size_t)sf.channels;
            double *back = malloc(count * sizeof *back);
            assert_int_equal(sf_read_double(sound, back, (sf_count_t)count), (sf_count_t)count);
            bool is_complex = pnr_format_get(info.format)->is_complex;
            for (size_t i = 0; i < count; i++) {
                double wanted = is_complex ? x[i / 2][i % 2] : x[i][0];

                assert_true(fabs(back[i] - wanted) <= cases[k].most);
            }
            free(back);
            sf_close(sound);
            unlink(path);
            pnr_config_clear(&config);
        }
}

/* Two files of the same samples have the same bytes, because they contain no time of day. */
TEST(writes_the_same_file_twice)
{
    static double x[N][2];
    char path[2][256];
    unsigned char bytes[2][N * 9];
    size_t n[2];

    spiral(x, N);
    for (int k = 0; k < 2; k++) {
        pnr_config config;
        pnr_sink_info info;

        set_all(&config, (const char *const[]){"source.rate_hz=48000", "source.format=cf32", NULL});
        write_file(&config, path_of(k ? "b.wav" : "a.wav", path[k]), (const double(*)[2])x, N,
                   &info);
        FILE *file = fopen(path[k], "rb");
        n[k] = fread(bytes[k], 1, sizeof bytes[k], file);
        fclose(file);
        unlink(path[k]);
        pnr_config_clear(&config);
        if (k == 0)
            sleep(1);
    }
    assert_true(n[0] > N * 8 && n[0] < N * 9);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
}

TEST(converts_like_an_adc)
{
    static const struct {
        const char *bits;
        double in, out;
        bool clips;
    } cases[] = {
        {"echo.bits=0", 0.3, 0.3, false},           {"echo.bits=0", 1.7, 1.7, false},
        {"echo.bits=4", 0.3, 0.25, false},          {"echo.bits=4", 0.32, 0.375, false},
        {"echo.bits=4", -0.94, -1, false},          {"echo.bits=4", -1.06, -1, false},
        {"echo.bits=4", -1.07, -1, true},           {"echo.bits=4", 0.93, 0.875, false},
        {"echo.bits=4", 0.94, 0.875, true},         {"echo.bits=4", 9, 0.875, true},
        {"echo.bits=1", 0.01, 0.5, false},          {"echo.bits=1", -7, -0.5, false},
        {"echo.bits=2", 0.3, 0.5, false},           {"echo.bits=2", 0.8, 0.5, true},
        {"echo.bits=12", 0.1, 205 / 2048.0, false},
    };

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int part = 0; part < 2; part++) {
            const double x[1][2] = {{part ? 0.5 : cases[k].in, part ? cases[k].in : 0.5}};
            char path[256];
            double back[2];
            pnr_config config;
            pnr_sink_info info;

            set_all(&config, (const char *const[]){cases[k].bits, NULL});
            write_file(&config, path_of("adc.cf64", path), x, 1, &info);
            FILE *file = fopen(path, "rb");
            assert_int_equal(fread(back, sizeof back, 1, file), 1);
            fclose(file);
            assert_true(back[part] == cases[k].out);
            assert_true(back[1 - part] == 0.5);
            assert_int_equal(info.n_clipped, cases[k].clips);
            unlink(path);
            pnr_config_clear(&config);
        }
}

TEST(counts_what_the_format_clips)
{
    static const double x[4][2] = {{0, 1}, {-1, -1}, {2, -3}, {0.99, 0}};
    char path[256];
    pnr_config config;
    pnr_sink_info info;

    set_all(&config, (const char *const[]){NULL});
    write_file(&config, path_of("echo.sc16", path), x, 4, &info);
    assert_int_equal(info.n_clipped, 2);
    unlink(path);
    pnr_config_clear(&config);
}

static int refused(const char *const *settings, const char *path, uint64_t n, const char *says)
{
    pnr_config config;
    pnr_error error = {0};
    pnr_sink *sink = NULL;

    set_all(&config, settings);
    int rc = pnr_config_check(&config, &error);
    if (rc == PNR_OK)
        rc = pnr_sink_open(&config, path, n, NULL, &sink, &error);
    assert_null(sink);
    if (!strstr(error.text, says))
        fail_msg("'%s' does not say '%s'", error.text, says);
    pnr_config_clear(&config);
    return rc;
}

TEST(refuses_what_cannot_be)
{
    static const char *const plain[] = {"source.rate_hz=48000", NULL};
    static const char *const floats[] = {"source.rate_hz=48000", "source.format=cf32", NULL};
    static const char *const fraction[] = {"source.rate_hz=100000/3", NULL};
    static const char *const both[] = {"source.rate_hz=48000", "source.format=ci16",
                                       "source.layout=channels", NULL};
    static const char *const many[] = {"source.rate_hz=48000", "source.channels=2",
                                       "source.format=i16", NULL};
    char path[256];

    assert_int_equal(refused(plain, path_of("echo.iq", path), 1, "ci16"), PNR_ECONFIG);
    assert_int_equal(refused(plain, "-", 1, "source.format"), PNR_ECONFIG);
    assert_int_equal(refused(floats, path_of("echo.flac", path), 1, "flac"), PNR_ECONFIG);
    assert_int_equal(refused(fraction, path_of("echo.wav", path), 1, "100000/3"), PNR_ECONFIG);
    assert_int_equal(refused(both, path_of("echo.wav", path), 1, "ci16"), PNR_ECONFIG);
    assert_int_equal(refused(many, path_of("echo.wav", path), 1, "layout"), PNR_ECONFIG);
    assert_int_equal(refused(plain, path_of("echo.wav", path), UINT32_MAX / 4, ".rf64"),
                     PNR_ECONFIG);
    assert_int_equal(refused(plain, "/dev/null.d/echo.sc16", 1, "No such file"), PNR_EIO);
    assert_int_equal(refused(floats, folder, 1, "directory"), PNR_EIO);
    assert_int_equal(refused(floats, path_of("echo.sc16", path), 0, "endless"), PNR_EUSAGE);
    assert_true(file_size(path) == (size_t)-1);
}

/* A refused output leaves the file unchanged. Configurations, tables and code files are refused,
 * and so is a link. */
TEST(replaces_no_text_and_no_input)
{
    char path[256], link[256], setting[300];
    pnr_config config;
    pnr_error error;
    pnr_sink *sink;
    FILE *file = fopen(path_of("radar.conf", path), "wb");

    set_all(&config, (const char *const[]){"source.format=ci8", NULL});
    fputs("[source]\nrate_hz = 1000000\n", file);
    fclose(file);
    assert_int_equal(pnr_sink_open(&config, path, 1, NULL, &sink, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "text"));
    assert_int_equal(symlink(path, path_of("link.ci8", link)), 0);
    assert_int_equal(pnr_sink_open(&config, link, 1, NULL, &sink, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "symbolic link"));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(file_size(path), 27);
    assert_int_equal(unlink(path), 0);

    file = fopen(path_of("code.ci8", path), "wb");
    fwrite("\0\1\2\3", 1, 4, file);
    fclose(file);
    snprintf(setting, sizeof setting, "code.path=%s", path);
    set_all(&config, (const char *const[]){"source.format=ci8", setting, NULL});
    assert_int_equal(pnr_sink_open(&config, path, 1, NULL, &sink, &error), PNR_EUSAGE);
    assert_non_null(strstr(error.text, "input"));
    assert_int_equal(file_size(path), 4);
    assert_int_equal(unlink(path), 0);
    pnr_config_clear(&config);
}

TEST(leaves_no_half_files)
{
    static const double x[1][2] = {{0.5, 0.5}};
    char path[256];
    pnr_config config;
    pnr_error error;
    pnr_sink *sink;

    set_all(&config, (const char *const[]){"source.rate_hz=48000", NULL});
    FILE *file = fopen(path_of("old.wav", path), "wb");
    fwrite("\0\1\2", 1, 3, file);
    fclose(file);
    assert_int_equal(pnr_sink_open(&config, path, 0, NULL, &sink, &error), PNR_EUSAGE);
    assert_int_equal(file_size(path), 3);
    assert_int_equal(pnr_sink_open(&config, path, 1, NULL, &sink, &error), PNR_OK);
    assert_int_equal(pnr_sink_write(sink, x, 1, &error), PNR_OK);
    assert_int_equal(pnr_sink_close(sink, false, &error), PNR_OK);
    assert_int_equal(file_size(path), 3); /* the file is unchanged */
    assert_int_equal(pnr_sink_open(&config, path, 1, NULL, &sink, &error), PNR_OK);
    assert_int_equal(pnr_sink_write(sink, x, 1, &error), PNR_OK);
    assert_int_equal(file_size(path), 3);
    assert_int_equal(pnr_sink_close(sink, true, &error), PNR_OK);
    assert_true(file_size(path) > 40);
    assert_int_equal(unlink(path), 0);

    assert_int_equal(pnr_sink_open(&config, path_of("new.ci8", path), 1, NULL, &sink, &error),
                     PNR_OK);
    assert_true(file_size(path) == (size_t)-1); /* the new file has no name yet */
    assert_int_equal(pnr_sink_close(sink, false, &error), PNR_OK);
    assert_true(file_size(path) == (size_t)-1);
    assert_int_equal(pnr_sink_close(NULL, true, &error), PNR_OK);
    pnr_config_clear(&config);
}

TEST(reports_a_full_disk)
{
    static double x[N][2];
    pnr_config config;
    pnr_error error = {0};
    pnr_sink *sink;
    struct stat st;

    if (stat("/dev/full", &st) != 0)
        skip();
    set_all(&config, (const char *const[]){"source.format=ci16", NULL});
    assert_int_equal(pnr_sink_open(&config, "/dev/full", 0, NULL, &sink, &error), PNR_OK);
    assert_false(pnr_sink_get_info(sink)->is_regular);
    assert_int_equal(pnr_sink_write(sink, (const double(*)[2])x, N, &error), PNR_EIO);
    assert_non_null(strstr(error.text, "/dev/full"));
    pnr_sink_close(sink, false, NULL);
    assert_int_equal(stat("/dev/full", &st), 0);
    pnr_config_clear(&config);
}

typedef struct reader {
    char path[256];
    size_t wanted, got;
    double last[2];
} reader;

static void *read_fifo(void *argument)
{
    reader *r = argument;

    usleep(100000);
    FILE *file = fopen(r->path, "rb");
    while (file && r->got < r->wanted && fread(r->last, sizeof r->last, 1, file) == 1)
        r->got++;
    if (file)
        fclose(file);
    return NULL;
}

TEST(feeds_a_fifo)
{
    static double x[N][2];
    pnr_config config;
    pnr_error error = {0};
    pnr_sink *sink;

    spiral(x, N);
    set_all(&config, (const char *const[]){"source.format=cf64", NULL});
    for (int leaves = 0; leaves < 2; leaves++) {
        reader r = {.wanted = leaves ? 10 : SIZE_MAX};
        pthread_t thread;

        assert_int_equal(mkfifo(path_of("fifo", r.path), 0600), 0);
        assert_int_equal(pthread_create(&thread, NULL, read_fifo, &r), 0);
        assert_int_equal(pnr_sink_open(&config, r.path, 0, NULL, &sink, &error), PNR_OK);
        int rc = PNR_OK;
        for (int i = 0; i < 20 && rc == PNR_OK; i++)
            rc = pnr_sink_write(sink, (const double(*)[2])x, N, &error);
        assert_int_equal(rc, leaves ? PNR_EEND : PNR_OK);
        assert_int_equal(pnr_sink_close(sink, true, &error), PNR_OK);
        pthread_join(thread, NULL);
        assert_int_equal(r.got, leaves ? 10 : 20 * N);
        assert_true(r.last[0] == x[leaves ? 9 : N - 1][0] && r.last[1] == x[leaves ? 9 : N - 1][1]);
        assert_int_equal(unlink(r.path), 0); /* close must not remove the FIFO */
    }
    pnr_config_clear(&config);
}

static volatile int stop_now;

static void *stop_soon(void *argument)
{
    usleep(150000);
    stop_now = 1;
    return argument;
}

/* The program does not block on a FIFO that has no reader, or whose reader sleeps. */
TEST(stops_while_it_waits)
{
    static double x[N][2];
    char path[256];
    pthread_t thread;
    pnr_config config;
    pnr_error error;
    pnr_sink *sink;

    set_all(&config, (const char *const[]){"source.format=cf64", NULL});
    assert_int_equal(mkfifo(path_of("fifo", path), 0600), 0);
    stop_now = 0;
    pthread_create(&thread, NULL, stop_soon, NULL);
    assert_int_equal(pnr_sink_open(&config, path, 0, &stop_now, &sink, &error), PNR_EEND);
    assert_null(sink);
    pthread_join(thread, NULL);

    stop_now = 0;
    int sleeper = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(pnr_sink_open(&config, path, 0, &stop_now, &sink, &error), PNR_OK);
    pthread_create(&thread, NULL, stop_soon, NULL);
    int rc = PNR_OK;
    for (int i = 0; i < 1000 && rc == PNR_OK; i++)
        rc = pnr_sink_write(sink, (const double(*)[2])x, N, &error);
    assert_int_equal(rc, PNR_EEND);
    pthread_join(thread, NULL);
    pnr_sink_close(sink, true, NULL);
    close(sleeper);
    unlink(path);
    pnr_config_clear(&config);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if a test has left a file there */
}

TESTS_BETWEEN(set_up, tear_down)
