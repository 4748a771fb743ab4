/* SPDX-License-Identifier: MIT */
/* Recordings of samples: what was added is read back with its gaps and times, killed or not, in
 * parts, around events, and on a full disk; every sample is recorded or counted. */
#include "base/clock.h"
#include "recorder/recording.h"
#include "recorder/sample_recorder.h"
#include "source/sigmf_meta.h"
#include "tests/fixture/config_fixture.h"
#include "tests/fixture/random.h"
#include "tests/fixture/source_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

TESTS_BETWEEN(make_folder, remove_folder)

/* --- recordings --- */

static const int64_t start_utc_ns = 1795000000123456789;

typedef struct bench {
    pnr_config config;
    pnr_setup *setup;
    pnr_sample_recorder *recorder;
    pnr_error error;
} bench;

static void prepare(bench *b, const char *settings)
{
    char text[512];

    memset(b, 0, sizeof *b);
    snprintf(text, sizeof text,
             "[code]\ndegree = 5\nchip_rate_hz = 1000\n[source]\nrate_hz = 2000\n%s", settings);
    accept_text(&b->config, text);
    assert_int_equal(pnr_setup_create_codes(&b->config, PNR_BAND_RECEIVED, &b->setup, &b->error),
                     PNR_OK);
}

static void clear(bench *b)
{
    pnr_sample_recorder_destroy(b->recorder);
    pnr_setup_destroy(b->setup);
    pnr_config_clear(&b->config);
}

/* Starts a recorder of ci16 in the folder of the test; name: "" for the folder itself. */
static void begin(bench *b, const char *name, const char *settings)
{
    prepare(b, settings);
    snprintf(b->config.recorder.samples, sizeof b->config.recorder.samples, "%s/%s", folder, name);
    if (pnr_sample_recorder_create(&b->config, b->setup, PNR_FORMAT_CI16, 1, true, NULL,
                                   &b->recorder, &b->error) != PNR_OK)
        fail_msg("%s", b->error.text);
}

/* A sample tells its position. */
static void add(bench *b, uint64_t first, size_t n)
{
    uint32_t samples[1 << 12];

    while (n > 0) {
        const size_t part = n < COUNT(samples) ? n : COUNT(samples);

        for (size_t i = 0; i < part; i++)
            samples[i] = (uint32_t)(first + i);
        pnr_sample_recorder_add(b->recorder, first, start_utc_ns, samples, part);
        first += part;
        n -= part;
    }
}

/* Reads a recording: samples tell their positions, and gaps lie between them. Returns the end of
 * the positions; *n: samples. */
static uint64_t check_recording(const char *path, uint64_t first, uint64_t *n)
{
    pnr_config config;
    pnr_source *source;
    pnr_source_block block;
    pnr_error error;
    uint32_t samples[512];
    uint64_t position = first;
    int code;

    pnr_config_init(&config);
    snprintf(config.source.input, sizeof config.source.input, "%s", path);
    if (pnr_source_open(&config, &source, &error) != PNR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(pnr_source_get_info(source)->start_utc_ns,
                     start_utc_ns + pnr_rational_time_ns((pnr_rational){2000, 1}, first));
    assert_true(pnr_source_get_info(source)->loss_visibility == PNR_LOSS_EXACT);
    *n = 0;
    while ((code = pnr_source_read(source, samples, COUNT(samples), &block, &error)) == PNR_OK ||
           code == PNR_EAGAIN) { /* the hash of the data is not ready */
        for (size_t i = 0; i < block.n_samples; i++)
            assert_int_equal(samples[i], position + i);
        position += block.n_samples + block.gap;
        *n += block.n_samples;
    }
    assert_int_equal(code, PNR_EEND);
    pnr_source_close(source);
    pnr_config_clear(&config);
    return position;
}

/* A recording in the folder. */
typedef struct part {
    char path[512];
    uint64_t first, end, n;
    bool has_hash;
} part;

static int by_first(const void *a, const void *b)
{
    const uint64_t x = ((const part *)a)->first, y = ((const part *)b)->first;

    return x < y ? -1 : x > y;
}

/* Checks all recordings of the folder and removes them. Returns how many there were. */
static size_t take_parts(part *parts, size_t most)
{
    DIR *d = opendir(folder);
    size_t n = 0;

    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        part *p = &parts[n];
        pnr_sigmf_meta meta;
        pnr_error error;

        assert_null(strstr(entry->d_name, "partial"));
        if (strstr(entry->d_name, ".sigmf-meta") == NULL)
            continue;
        assert_true(n < most);
        snprintf(p->path, sizeof p->path, "%.100s/%.200s", folder, entry->d_name);

        char *text = file_text(p->path);

        assert_int_equal(pnr_sigmf_meta_read(text, strlen(text), &meta, &error), PNR_OK);
        free(text);
        p->first = meta.captures[0].global_index;
        p->has_hash = meta.sha512[0] != '\0';
        pnr_sigmf_meta_clear(&meta);
        p->end = check_recording(p->path, p->first, &p->n);
        n++;
    }
    closedir(d);
    qsort(parts, n, sizeof *parts, by_first);
    for (size_t i = 0; i < n; i++) {
        unlink(parts[i].path);
        memcpy(strstr(parts[i].path, ".sigmf-meta"), ".sigmf-data", strlen(".sigmf-data"));
        unlink(parts[i].path);
    }
    return n;
}

TEST(gaps_become_captures)
{
    bench b;
    part p[1];
    uint64_t position = 0, n = 0;

    begin(&b, "x", "");
    for (int i = 0; i < 60; i++) {
        const size_t run = 1 + below(9000);

        add(&b, position, run);
        n += run;
        position += run + (i < 59 ? below(3) * below(100000) : 0);
    }
    pnr_sample_recorder_finish(b.recorder);
    assert_int_equal(pnr_sample_recorder_lost(b.recorder), 0);
    clear(&b);
    assert_int_equal(take_parts(p, 1), 1);
    assert_int_equal(p->first, 0);
    assert_int_equal(p->end, position);
    assert_int_equal(p->n, n);
}

/* The judge is sha512sum. */
TEST(the_metadata_have_the_hash_of_the_data)
{
    char command[512], hash[129] = "";
    pnr_sigmf_meta meta;
    pnr_error error;
    part p[1];
    bench b;

    begin(&b, "x", "");
    add(&b, 0, 70000);
    add(&b, 80000, 1);
    pnr_sample_recorder_finish(b.recorder);
    clear(&b);
    snprintf(command, sizeof command, "sha512sum %.100s/x.sigmf-data", folder);

    FILE *pipe = popen(command, "r");

    assert_non_null(pipe);
    assert_int_equal(fread(hash, 1, 128, pipe), 128);
    pclose(pipe);
    snprintf(command, sizeof command, "%.100s/x.sigmf-meta", folder);

    char *text = file_text(command);

    assert_int_equal(pnr_sigmf_meta_read(text, strlen(text), &meta, &error), PNR_OK);
    assert_string_equal(meta.sha512, hash);
    pnr_sigmf_meta_clear(&meta);
    free(text);
    assert_int_equal(take_parts(p, 1), 1);
}

TEST(every_format_and_an_uneven_rate_come_back)
{
    static const pnr_format formats[] = {
        PNR_FORMAT_CI8, PNR_FORMAT_CU8, PNR_FORMAT_CI16, PNR_FORMAT_CF32, PNR_FORMAT_CF64,
        PNR_FORMAT_I8,  PNR_FORMAT_U8,  PNR_FORMAT_I16,  PNR_FORMAT_F32,  PNR_FORMAT_F64};

    for (size_t i = 0; i < COUNT(formats); i++) {
        void *recording;
        pnr_config config;
        pnr_source *source;
        pnr_error error;
        char samples[2 * 3 * 16] = {0};
        size_t n;
        bench b;

        prepare(&b, "[stream]\nname = a'b\n");
        accept_set(&b.config, "source.rate_hz=4000/7");
        accept_set(&b.config, "code.chip_rate_hz=2000/7");
        pnr_setup_destroy(b.setup);
        assert_int_equal(pnr_setup_create_codes(&b.config, PNR_BAND_RECEIVED, &b.setup, &b.error),
                         PNR_OK);
        assert_int_equal(
            pnr_recording_sigmf.create(&b.config, b.setup, formats[i], 3, &recording, &error),
            PNR_OK);
        snprintf(b.config.source.input, sizeof b.config.source.input, "%s/y", folder);
        assert_int_equal(pnr_recording_sigmf.open(recording, b.config.source.input, &error),
                         PNR_OK);
        assert_int_equal(
            pnr_recording_sigmf.append(recording, 5, PNR_RECORDING_NO_TIME, samples, 2, &n, &error),
            PNR_OK);
        assert_int_equal(n, 2);
        assert_int_equal(pnr_recording_sigmf.finish(recording, &error), PNR_OK);
        pnr_recording_sigmf.destroy(recording);
        clear(&b);

        config = source_config("y.sigmf-meta");
        source = open_source(&config);
        assert_int_equal(pnr_source_get_info(source)->format, formats[i]);
        assert_int_equal(pnr_source_get_info(source)->n_channels, 3);
        assert_int_equal(pnr_source_get_info(source)->n_samples, 2);
        assert_int_equal(pnr_source_get_info(source)->rate_hz.num, 4000);
        assert_int_equal(pnr_source_get_info(source)->rate_hz.den, 7);
        assert_false(pnr_source_get_info(source)->has_start);
        pnr_source_close(source);
        remove_file("y.sigmf-meta");
        remove_file("y.sigmf-data");
    }
}

/* The files of a killed program are those of this moment, since no buffer is in the process. */
TEST(a_killed_recording_is_valid_at_every_step)
{
    char path[128], meta[128];
    uint32_t samples[100];
    void *recording;
    pnr_error error;
    uint64_t n = 0, n_read;
    size_t written;
    bench b;

    prepare(&b, "");
    snprintf(path, sizeof path, "%.80s/k", folder);
    snprintf(meta, sizeof meta, "%.80s/k.partial.sigmf-meta", folder);
    assert_int_equal(
        pnr_recording_sigmf.create(&b.config, b.setup, PNR_FORMAT_CI16, 1, &recording, &error),
        PNR_OK);
    assert_int_equal(pnr_recording_sigmf.open(recording, path, &error), PNR_OK);
    for (uint32_t first = 0; first < 3000; first += first % 3 == 0 ? 100 : 250) {
        for (uint32_t i = 0; i < 100; i++)
            samples[i] = first + i;
        assert_int_equal(pnr_recording_sigmf.append(recording, first, start_utc_ns, samples, 100,
                                                    &written, &error),
                         PNR_OK);
        n += 100;
        assert_int_equal(check_recording(meta, 0, &n_read), first + 100);
        assert_int_equal(n_read, n);
    }

    /* A capture of which no sample was written, and one that ends within a sample. */
    signal(SIGXFSZ, SIG_IGN);
    limit_files(n * 4 > 4096 ? n * 4 : 4096);
    if (n * 4 >= 4096) {
        assert_int_equal(pnr_recording_sigmf.append(recording, 9000, start_utc_ns, samples, 100,
                                                    &written, &error),
                         PNR_EIO);
        assert_int_equal(written, 0);
        (void)check_recording(meta, 0, &n_read);
        assert_int_equal(n_read, n);
    }
    limit_files(n * 4 + 10);
    for (uint32_t i = 0; i < 100; i++)
        samples[i] = 9500 + i;
    assert_int_equal(
        pnr_recording_sigmf.append(recording, 9500, start_utc_ns, samples, 100, &written, &error),
        PNR_EIO);
    assert_int_equal(written, 2);
    limit_files(RLIM_INFINITY);
    assert_int_equal(check_recording(meta, 0, &n_read), 9502);
    assert_int_equal(n_read, n + 2);

    /* The same name is refused while these files are there. */
    assert_int_equal(pnr_recording_sigmf.check(recording, path, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "k.partial.sigmf-meta: it exists"));
    assert_int_equal(pnr_recording_sigmf.finish(recording, &error), PNR_OK);
    snprintf(meta, sizeof meta, "%.80s/k.sigmf-meta", folder);
    assert_int_equal(check_recording(meta, 0, &n_read), 9502);
    assert_int_equal(pnr_recording_sigmf.check(recording, path, &error), PNR_ECONFIG);
    remove_file("k.sigmf-meta");
    remove_file("k.sigmf-data");
    assert_int_equal(pnr_recording_sigmf.check(recording, path, &error), PNR_OK);
    pnr_recording_sigmf.destroy(recording);
    clear(&b);
}

TEST(rotation_loses_no_sample)
{
    static const char *const settings[] = {"[recorder]\nrotate_s = 3.5\n",
                                           "[recorder]\nrotate_bytes = 28000\n"};

    for (size_t i = 0; i < 2; i++) {
        part parts[40];
        uint64_t end = 0;
        bench b;

        begin(&b, "", settings[i]);
        add(&b, 0, 50001);
        add(&b, 60000, 50000);
        pnr_sample_recorder_finish(b.recorder);
        assert_int_equal(pnr_sample_recorder_lost(b.recorder), 0);
        clear(&b);

        const size_t n = take_parts(parts, COUNT(parts));

        assert_true(n >= 100001 / 7000 && n <= 2 * 100001 / 7000);
        for (size_t k = 0; k < n; k++) {
            assert_true(parts[k].first == end || (end == 50001 && parts[k].first == 60000));
            assert_true(parts[k].n > 0 && parts[k].n <= 7000);
            assert_true(parts[k].has_hash);
            end = parts[k].end;
        }
        assert_int_equal(end, 110000);
    }
}

TEST(events_keep_what_is_around_them)
{
    part parts[4];
    bench b;

    begin(&b, "", "[recorder]\npre_trigger_s = 2\npost_trigger_s = 1\nbuffer_s = 20\n");
    add(&b, 0, 6000);
    add(&b, 7000, 23000); /* 1 s lost at 6000 */
    pnr_sample_recorder_trigger(b.recorder, PNR_TRIGGER_ECHO, 24000);
    pnr_sample_recorder_trigger(b.recorder, PNR_TRIGGER_ECHO, 26500); /* within reach of it */
    add(&b, 30000, 70000);
    pnr_sample_recorder_trigger(b.recorder, PNR_TRIGGER_LOSS, 94000);
    add(&b, 100000, 10000);
    pnr_sample_recorder_trigger(b.recorder, PNR_TRIGGER_SIGNAL, 0);
    add(&b, 110000, 30000);
    pnr_sample_recorder_finish(b.recorder);
    assert_int_equal(pnr_sample_recorder_lost(b.recorder), 0);
    clear(&b);

    assert_int_equal(take_parts(parts, 4), 3);
    const uint64_t want[][2] = {{20000, 28500}, {90000, 96000}, {106000, 112000}};

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(parts[i].first, want[i][0]);
        assert_int_equal(parts[i].end, want[i][1]);
        assert_int_equal(parts[i].n, parts[i].end - parts[i].first);
    }
}

/* Bytes of all data files in the folder. */
static off_t data_bytes(void)
{
    DIR *d = opendir(folder);
    off_t n = 0;

    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat status;

        if (strstr(e->d_name, ".sigmf-data") != NULL &&
            fstatat(dirfd(d), e->d_name, &status, 0) == 0)
            n += status.st_size;
    }
    closedir(d);
    return n;
}

/* An engine that is slower than the recorder reports the second of two echoes late. */
TEST(a_late_event_extends_the_recording)
{
    part parts[2];
    bench b;

    begin(&b, "", "[recorder]\npre_trigger_s = 2\npost_trigger_s = 1\nbuffer_s = 20\n");
    add(&b, 0, 40000);
    pnr_sample_recorder_trigger(b.recorder, PNR_TRIGGER_ECHO, 24000);
    pnr_sample_recorder_search(b.recorder, 24000);
    while (data_bytes() < 6000 * 4) /* what lies around the first one is recorded */
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 1000 * 1000, NULL);
    (void)pnr_clock_sleep_until(pnr_clock_ns() + 50 * 1000 * 1000, NULL);
    pnr_sample_recorder_trigger(b.recorder, PNR_TRIGGER_ECHO, 26500);
    pnr_sample_recorder_search(b.recorder, 40000);
    pnr_sample_recorder_finish(b.recorder);
    clear(&b);
    assert_int_equal(take_parts(parts, 2), 1);
    assert_int_equal(parts[0].first, 20000);
    assert_int_equal(parts[0].end, 28500);
}

TEST(the_event_is_in_the_metadata)
{
    char path[256] = "", *text;
    part parts[1];
    bench b;

    begin(&b, "", "[recorder]\npre_trigger_s = 2\n");
    add(&b, 0, 6000);
    pnr_sample_recorder_trigger(b.recorder, PNR_TRIGGER_LOSS, 5000);
    pnr_sample_recorder_finish(b.recorder);
    clear(&b);

    DIR *d = opendir(folder);

    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".sigmf-meta") != NULL)
            snprintf(path, sizeof path, "%.100s/%.100s", folder, e->d_name);
    closedir(d);
    text = file_text(path);
    assert_non_null(
        strstr(text, "\"pnradar:event\": \"loss\",\n    \"pnradar:event_index\": 5000"));
    free(text);
    assert_int_equal(take_parts(parts, 1), 1);
}

TEST(no_event_leaves_no_file)
{
    part parts[1];
    bench b;

    begin(&b, "", "[recorder]\npre_trigger_s = 2\n");
    add(&b, 0, 60000);
    pnr_sample_recorder_finish(b.recorder);
    assert_int_equal(pnr_sample_recorder_lost(b.recorder), 0);
    clear(&b);
    assert_int_equal(take_parts(parts, 1), 0);
}

static void wait_for_loss(const bench *b, uint64_t n)
{
    while (pnr_sample_recorder_lost(b->recorder) < n)
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 1000 * 1000, NULL);
}

TEST(a_full_disk_is_counted_and_tried_again)
{
    static pnr_events events;
    part p[1];
    uint64_t position = 20000, n_lost;
    bench b;

    signal(SIGXFSZ, SIG_IGN);
    pnr_events_begin(&events);
    prepare(&b, "");
    snprintf(b.config.recorder.samples, sizeof b.config.recorder.samples, "%s/x", folder);
    assert_int_equal(pnr_sample_recorder_create(&b.config, b.setup, PNR_FORMAT_CI16, 1, true,
                                                &events, &b.recorder, &b.error),
                     PNR_OK);
    limit_files(40002); /* 10000 samples and a half */
    add(&b, 0, 20000);
    wait_for_loss(&b, 10000);
    assert_int_equal(pnr_sample_recorder_lost(b.recorder), 10000);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_RECORDING_STOPS), 1);
    limit_files(RLIM_INFINITY);
    while (pnr_event_count(&events, PNR_EVENT_RECORDING_RESUMES) == 0) {
        add(&b, position, 1000);
        position += 1000;
        (void)pnr_clock_sleep_until(pnr_clock_ns() + 20 * 1000 * 1000, NULL);
    }
    pnr_sample_recorder_finish(b.recorder);
    n_lost = pnr_sample_recorder_lost(b.recorder);
    clear(&b);
    assert_int_equal(take_parts(p, 1), 1);
    assert_true(p->has_hash);
    assert_int_equal(p->n + n_lost, position);
    assert_int_equal(p->end, position);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_RECORDING_STOPS), 1);
}

TEST(a_live_stream_does_not_wait_and_every_sample_is_counted)
{
    static uint32_t samples[12 << 20];
    const size_t n = sizeof samples / sizeof samples[0];
    part p[1];
    uint64_t position = 0;
    bench b;

    prepare(&b, "[recorder]\nbuffer_s = 0.01\n");
    snprintf(b.config.recorder.samples, sizeof b.config.recorder.samples, "%s/x", folder);
    assert_int_equal(pnr_sample_recorder_create(&b.config, b.setup, PNR_FORMAT_CI16, 1, false, NULL,
                                                &b.recorder, &b.error),
                     PNR_OK);
    /* Copying is faster than writing; on a busy machine the writer can still keep pace with one
     * burst. */
    for (int i = 0; i < 20 && pnr_sample_recorder_lost(b.recorder) == 0; i++) {
        for (size_t k = 0; k < n; k++)
            samples[k] = (uint32_t)(position + k);
        pnr_sample_recorder_add(b.recorder, position, start_utc_ns, samples, n);
        position += n;
    }
    pnr_sample_recorder_finish(b.recorder);

    const uint64_t n_lost = pnr_sample_recorder_lost(b.recorder);

    clear(&b);
    assert_int_equal(take_parts(p, 1), 1);
    assert_int_equal(p->n + n_lost, position);
    assert_true(n_lost > 0 && !p->has_hash); /* a thread that is late saves the time */
}

TEST(several_recordings_need_a_folder)
{
    static const char *const settings[] = {"[recorder]\nrotate_s = 3\n",
                                           "[recorder]\npre_trigger_s = 3\n"};

    for (size_t i = 0; i < 2; i++) {
        bench b;

        prepare(&b, settings[i]);
        snprintf(b.config.recorder.samples, sizeof b.config.recorder.samples, "%s/x", folder);
        assert_int_equal(pnr_sample_recorder_create(&b.config, b.setup, PNR_FORMAT_CI16, 1, true,
                                                    NULL, &b.recorder, &b.error),
                         PNR_ECONFIG);
        assert_non_null(strstr(b.error.text, "name a folder"));
        assert_null(b.recorder);
        clear(&b);
    }
}
