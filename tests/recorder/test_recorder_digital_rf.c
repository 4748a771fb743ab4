/* SPDX-License-Identifier: MIT */
/* Recordings in Digital RF: a script of h5py and numpy judges the layout, and our own source reads
 * the samples back with their gaps. */
#include "base/clock.h"
#include "recorder/recording.h"
#include "recorder/sample_recorder.h"
#include "tests/fixture/config_fixture.h"
#include "tests/fixture/random.h"
#include "tests/fixture/source_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static const int64_t start_utc_ns = 1795000000 * PNR_NS_PER_S;
static const char *python; /* NULL: none has h5py */
static bool has_module;

typedef struct bench {
    pnr_config config;
    pnr_setup *setup;
    pnr_sample_recorder *recorder;
    pnr_error error;
    pnr_format format;
    size_t n_channels;
    uint64_t n_added;
} bench;

static int prepare_all(void **state)
{
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    char command[128];

    for (size_t i = 0; python == NULL && i < COUNT(pythons); i++) {
        snprintf(command, sizeof command, "%s -c 'import h5py' 2>/dev/null", pythons[i]);
        python = system(command) == 0 ? pythons[i] : NULL;
    }
    setenv("TZ", "UTC", 1);
    signal(SIGXFSZ, SIG_IGN);
    return make_folder(state);
}

/* source.rate_hz and code.chip_rate_hz. */
typedef const char *const rates[2];
static rates slow = {"2000", "1000"}, sevenths = {"4000/7", "2000/7"}, wide = {"200e6", "100e6"};

/* Creates a recorder of a channel "c" in the folder of the test. Returns its code. */
static int create(bench *b, pnr_format format, size_t n_channels, rates of, const char *settings,
                  pnr_events *events)
{
    char text[512];
    int code;

    *b = (bench){.format = format, .n_channels = n_channels};
    snprintf(text, sizeof text,
             "[source]\nrate_hz = %s\n[code]\ndegree = 5\nchip_rate_hz = %s\n[recorder]\n"
             "format = digital-rf\nsamples = %s/c\n%s",
             of[0], of[1], folder, settings);
    accept_text(&b->config, text);
    assert_int_equal(pnr_setup_create_codes(&b->config, PNR_BAND_RECEIVED, &b->setup, &b->error),
                     PNR_OK);
    code = pnr_sample_recorder_create(&b->config, b->setup, format, n_channels, true, events,
                                      &b->recorder, &b->error);
    has_module = code != PNR_EUNAVAILABLE;
    return code;
}

static void clear(bench *b)
{
    pnr_sample_recorder_destroy(b->recorder);
    pnr_setup_destroy(b->setup);
    pnr_config_clear(&b->config);
}

static void begin(bench *b, pnr_format format, size_t n_channels, rates of, const char *settings)
{
    const int code = create(b, format, n_channels, of, settings, NULL);

    if (!has_module || python == NULL) {
        clear(b);
        print_message("skipped: no h5py, or recorder-digital-rf.so is not built\n");
        skip();
    }
    if (code != PNR_OK)
        fail_msg("%s", b->error.text);
}

/* Each number of a sample is its place in the stream, modulo 100. */
static void fill(const bench *b, uint64_t position, size_t n, unsigned char *out)
{
    const pnr_format_info *format = pnr_format_get(b->format);
    const size_t n_numbers = b->n_channels * (format->is_complex ? 2 : 1);
    const size_t bytes = format->bytes / (format->is_complex ? 2 : 1);

    for (size_t i = 0; i < n * n_numbers; i++) {
        const int value = (int)((position * n_numbers + i) % 100);
        const float f32 = (float)value;
        const double f64 = value;
        const int16_t i16 = (int16_t)value;
        const int8_t i8 = (int8_t)value;
        const void *const values[9] = {[1] = &i8, [2] = &i16, [4] = &f32, [8] = &f64};

        memcpy(out + i * bytes, values[bytes], bytes);
    }
}

static void add(bench *b, uint64_t position, size_t n)
{
    static unsigned char samples[1 << 16];
    const size_t most = sizeof samples / (pnr_format_get(b->format)->bytes * b->n_channels);

    b->n_added += n;
    while (n > 0) {
        const size_t part = n < most ? n : most;

        fill(b, position, part, samples);
        pnr_sample_recorder_add(b->recorder, position, start_utc_ns, samples, part);
        position += part;
        n -= part;
    }
}

/* Runs the judge. Returns its line. */
static char *judge(const char *arguments, char out[4096])
{
    char command[512];

    snprintf(command, sizeof command, "%s tests/recorder/digital_rf_judge.py %s", python,
             arguments);

    FILE *pipe = popen(command, "r");
    const size_t n = fread(out, 1, 4095, pipe);

    out[n] = '\0';
    if (pclose(pipe) != 0)
        fail_msg("the judge refuses: %s", command);
    out[strcspn(out, "\n")] = '\0';
    return out;
}

/* The judge's view of a channel at this rate. */
static char *judge_runs(const bench *b, const char *form, const char *rate, int file_ms,
                        uint64_t base, char out[4096])
{
    const bool is_complex = pnr_format_get(b->format)->is_complex;
    char arguments[256];

    snprintf(arguments, sizeof arguments, "%s/c '%s' %d %zu %s %d %llu", folder, form, is_complex,
             b->n_channels, rate, file_ms, (unsigned long long)base);
    return judge(arguments, out);
}

/* Reads the channel with our own source: position 0 is `first` of the recorder. Writes the runs as
 * the judge does. Returns the number of samples. */
static uint64_t read_back(const bench *b, uint64_t first, char out[4096])
{
    static unsigned char got[1 << 14], want[sizeof got];
    const size_t bytes = pnr_format_get(b->format)->bytes * b->n_channels;
    pnr_config config = source_config("c");
    pnr_source *source = open_source(&config);
    uint64_t position = first, begin = first, n = 0;
    size_t length = 0;
    pnr_source_block block;
    pnr_error error;
    int code;

    assert_int_equal(pnr_source_get_info(source)->format, b->format);
    assert_int_equal(pnr_source_get_info(source)->n_channels, b->n_channels);
    do {
        code = pnr_source_read(source, got, sizeof got / bytes, &block, &error);
        fill(b, position, block.n_samples, want);
        assert_memory_equal(got, want, block.n_samples * bytes);
        if (block.gap > 0 || (code == PNR_EEND && position > begin)) {
            length +=
                (size_t)snprintf(out + length, 4096 - length, "%s%llu+%llu", length > 0 ? "," : "",
                                 (unsigned long long)begin, (unsigned long long)(position - begin));
            begin = position + block.gap;
        }
        n += block.n_samples;
        position += block.n_samples + block.gap;
    } while (code == PNR_OK);
    assert_int_equal(code, PNR_EEND);
    pnr_source_close(source);
    return n;
}

static void remove_channel(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r %s/c", folder);
    assert_int_equal(system(command), 0);
}

TEST(every_format_comes_back)
{
    static const struct {
        pnr_format format;
        const char *numpy;
    } formats[] = {{PNR_FORMAT_CI8, "<i1"},  {PNR_FORMAT_CU8, "<u1"},  {PNR_FORMAT_CI16, "<i2"},
                   {PNR_FORMAT_CF32, "<f4"}, {PNR_FORMAT_CF64, "<f8"}, {PNR_FORMAT_I8, "<i1"},
                   {PNR_FORMAT_U8, "<u1"},   {PNR_FORMAT_I16, "<i2"},  {PNR_FORMAT_F32, "<f4"},
                   {PNR_FORMAT_F64, "<f8"}};
    char a[4096], b[4096];

    for (size_t i = 0; i < COUNT(formats); i++) {
        bench t;

        begin(&t, formats[i].format, 1 + i % 3, slow, "");
        add(&t, 0, 3000);
        add(&t, 3001, 1200);
        pnr_sample_recorder_finish(t.recorder);
        assert_int_equal(pnr_sample_recorder_lost(t.recorder), 0);
        assert_string_equal(
            judge_runs(&t, formats[i].numpy, "2000 1", 1000, UINT64_C(1795000000) * 2000, a),
            "0+3000,3001+1200");
        assert_int_equal(read_back(&t, 0, b), 4200);
        assert_string_equal(a, b);
        clear(&t);
        remove_channel();
    }
}

/* Gaps within a file, over files, over an hour; a rate at which files have unequal numbers. */
TEST(gaps_and_rational_rates)
{
    const uint64_t base = (UINT64_C(1795000000) * 4000 + 3) / 7; /* the nearest */
    char a[4096], b[4096], want[4096];
    uint64_t position = 5;
    size_t length = 0;
    bench t;

    begin(&t, PNR_FORMAT_CI16, 2, sevenths, "rotate_s = 0.5\n");
    for (int i = 0; i < 60; i++) {
        const size_t run = 1 + below(900);

        add(&t, position, run);
        length += (size_t)snprintf(want + length, sizeof want - length, "%s%llu+%zu",
                                   i > 0 ? "," : "", (unsigned long long)position, run);
        position += run + 1 + below(10) * below(10) * below(10) * below(3000);
    }
    pnr_sample_recorder_finish(t.recorder);
    assert_int_equal(pnr_sample_recorder_lost(t.recorder), 0);
    assert_string_equal(judge_runs(&t, "<i2", "4000 7", 500, base, a), want);
    assert_int_equal(read_back(&t, 5, b), t.n_added);
    assert_string_equal(b, want);
    clear(&t);
    remove_channel();
}

TEST(events_lie_in_one_channel)
{
    char a[4096];
    bench t;

    begin(&t, PNR_FORMAT_CI16, 1, slow,
          "pre_trigger_s = 0.1\npost_trigger_s = 0.1\nbuffer_s = 20\n");
    add(&t, 0, 30000);
    pnr_sample_recorder_trigger(t.recorder, PNR_TRIGGER_ECHO, 24000);
    pnr_sample_recorder_trigger(t.recorder, PNR_TRIGGER_ECHO, 25500); /* in the same file */
    add(&t, 30000, 70000);
    pnr_sample_recorder_finish(t.recorder);
    assert_string_equal(judge_runs(&t, "<i2", "2000 1", 1000, UINT64_C(1795000000) * 2000, a),
                        "23800+400,25300+400");
    clear(&t);
    remove_channel();
}

/* A later run goes on in the channel. What lies in the time of a file that is there is counted. */
TEST(a_later_run_goes_on)
{
    char a[4096];
    bench t;

    begin(&t, PNR_FORMAT_CI16, 1, slow, "");
    add(&t, 0, 5000);
    pnr_sample_recorder_finish(t.recorder);
    clear(&t);
    begin(&t, PNR_FORMAT_CI16, 1, slow, "");
    add(&t, 5000, 1000);
    add(&t, 7000, 2000);
    pnr_sample_recorder_finish(t.recorder);
    assert_int_equal(pnr_sample_recorder_lost(t.recorder), 1000);
    assert_int_equal(read_back(&t, 0, a), 5000 + 2000);
    assert_string_equal(a, "0+5000,7000+2000");
    clear(&t);
    remove_channel();
}

/* A file that is there is told at its first samples, which may be an hour before its last ones. */
TEST(a_file_that_is_there_is_told_at_once)
{
    static pnr_events events;
    char a[4096];
    bench t;

    pnr_events_begin(&events);
    begin(&t, PNR_FORMAT_CI16, 1, slow, "rotate_s = 3600\n");
    add(&t, 0, 1000);
    pnr_sample_recorder_finish(t.recorder);
    clear(&t);
    assert_int_equal(create(&t, PNR_FORMAT_CI16, 1, slow, "rotate_s = 3600\n", &events), PNR_OK);
    add(&t, 2000, 1000);
    while (pnr_event_count(&events, PNR_EVENT_RECORDING_STOPS) == 0)
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 1000 * 1000, NULL);
    add(&t, 3000, 8000000);
    pnr_sample_recorder_finish(t.recorder);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_RECORDING_RESUMES), 1);
    assert_int_equal(read_back(&t, 0, a) - 1000 + pnr_sample_recorder_lost(t.recorder), t.n_added);
    clear(&t);
    remove_channel();
}

TEST(what_cannot_be_a_channel_is_refused)
{
    static const struct {
        rates *of;
        const char *settings;
        pnr_format format;
        const char *words;
    } cases[] = {
        {&slow, "", PNR_FORMAT_CI8, "it is of other samples"},
        {&sevenths, "", PNR_FORMAT_CI16, "it is of other samples"},
        {&slow, "rotate_s = 0.7\n", PNR_FORMAT_CI16, "divides an hour"},
        {&wide, "rotate_s = 1\n", PNR_FORMAT_CI16, "would have 800 MB"},
    };
    bench t;

    begin(&t, PNR_FORMAT_CI16, 1, slow, "");
    add(&t, 0, 5000);
    pnr_sample_recorder_finish(t.recorder);
    clear(&t);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(create(&t, cases[i].format, 1, *cases[i].of, cases[i].settings, NULL),
                         PNR_ECONFIG);
        if (strstr(t.error.text, cases[i].words) == NULL)
            fail_msg("%s", t.error.text);
        assert_null(t.recorder);
        clear(&t);
    }
    remove_channel();
    write_file("c", "x", 1);
    assert_int_equal(create(&t, PNR_FORMAT_CI16, 1, slow, "", NULL), PNR_ECONFIG);
    assert_non_null(strstr(t.error.text, "it exists"));
    clear(&t);
    remove_file("c");
}

TEST(a_full_disk_is_counted_and_tried_again)
{
    static pnr_events events;
    uint64_t position = 0;
    char a[4096], counts[4096];
    bench t;

    pnr_events_begin(&events);
    begin(&t, PNR_FORMAT_CI16, 1, slow, "");
    clear(&t);
    assert_int_equal(create(&t, PNR_FORMAT_CI16, 1, slow, "", &events), PNR_OK);
    for (; position < 6000; position += 2000)
        add(&t, position, 2000); /* a file each; the last one is not complete */
    limit_files(1 << 12);        /* less than a file has */
    while (pnr_event_count(&events, PNR_EVENT_RECORDING_STOPS) == 0) {
        add(&t, position, 2000);
        position += 2000;
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 20 * 1000 * 1000, NULL);
    }
    limit_files(RLIM_INFINITY);
    while (pnr_event_count(&events, PNR_EVENT_RECORDING_RESUMES) == 0) {
        add(&t, position, 1000);
        position += 1000;
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 20 * 1000 * 1000, NULL);
    }
    pnr_sample_recorder_finish(t.recorder);

    const uint64_t n = read_back(&t, 0, a);

    assert_true(pnr_sample_recorder_lost(t.recorder) >= 2000);
    assert_int_equal(n + pnr_sample_recorder_lost(t.recorder), t.n_added);
    snprintf(a, sizeof a, "whole %s/c", folder);
    (void)judge(a, counts);
    assert_int_equal(strtoull(strchr(counts, ' '), NULL, 10), n);
    snprintf(a, sizeof a, "test -z \"$(find %s/c -name 'tmp*')\"", folder);
    assert_int_equal(system(a), 0);
    clear(&t);
    remove_channel();
}

/* SIGKILL: what was complete can be opened, and only the last file is missing. */
TEST(a_killed_run_leaves_whole_files)
{
    char arguments[256], out[4096];
    int ends[2], status;
    bench t;

    begin(&t, PNR_FORMAT_CI16, 1, slow, "");
    clear(&t);
    assert_int_equal(pipe(ends), 0);

    const pid_t child = fork();

    if (child == 0) {
        if (create(&t, PNR_FORMAT_CI16, 1, slow, "", NULL) != PNR_OK)
            _exit(1);
        for (uint64_t position = 0;; position += 500) {
            add(&t, position, 500);
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
        }
    }
    for (size_t n = 0; n < 80; n++) /* 20 files are added; the queue may hold some of them */
        assert_int_equal(read(ends[0], out, 1), 1);
    snprintf(arguments, sizeof arguments, "whole %s/c", folder);
    while (atoi(judge(arguments, out)) < 5) /* each call finds a channel of the present moment */
        (void)!read(ends[0], out, 4096);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);

    const int n_files = atoi(judge(arguments, out));

    assert_true(n_files >= 5);
    assert_int_equal(atoi(strchr(out, ' ')), n_files * 2000);
    t.format = PNR_FORMAT_CI16;
    assert_int_equal(read_back(&t, 0, out), (uint64_t)n_files * 2000);
    remove_channel();
}

TESTS_BETWEEN(prepare_all, remove_folder)
