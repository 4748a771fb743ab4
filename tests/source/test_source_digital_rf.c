/* SPDX-License-Identifier: MIT */
/* Digital RF recordings that h5py and numpy wrote: every type and storage, gaps, refusals, a
 * recording that grows. */
#include "base/random.h"
#include "tests/fixture/source_fixture.h"

#include <dirent.h>

static char made[] = "/tmp/pnradar-test-digital-rf-XXXXXX";
static bool is_made;

/* Runs the writer with a python that has h5py. False: there is none, or the module is not built. */
static int make_recordings(void **state)
{
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    char command[256];
    pnr_config config = {.source.channels = 1};
    pnr_source *source = NULL;
    pnr_error error = {0};

    (void)state;
    if (mkdtemp(made) == NULL)
        return -1;
    for (size_t i = 0; !is_made && i < COUNT(pythons); i++) {
        snprintf(command, sizeof command,
                 "%s -c 'import h5py' 2>/dev/null && %s tests/source/digital_rf_numpy.py %s",
                 pythons[i], pythons[i], made);
        is_made = system(command) == 0;
    }
    snprintf(config.source.input, sizeof config.source.input, "%s/good-long", made);
    if (is_made && pnr_source_open(&config, &source, &error) == PNR_EUNAVAILABLE)
        is_made = false;
    pnr_source_close(source);
    return 0;
}

static int remove_recordings(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", made);
    return system(command);
}

static void need_recordings(void)
{
    if (!is_made) {
        print_message("skipped: no h5py, or source-digital-rf.so is not built\n");
        skip();
    }
}

static pnr_config config_of(const char *name)
{
    pnr_config config = {.source.channels = 1};

    snprintf(config.source.input, sizeof config.source.input, "%s/%s", made, name);
    return config;
}

static void read_text(const char *name, const char *end, char *text, size_t room)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s%s", made, name, end);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    text[fread(text, 1, room - 1, stream)] = '\0';
    fclose(stream);
}

/* Calls check for each folder whose name begins with `prefix`. Returns their number. */
static size_t for_each(const char *prefix, void (*check)(const char *name))
{
    DIR *all = opendir(made);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(all);
    while ((entry = readdir(all)) != NULL)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            strchr(entry->d_name, '.') == NULL) {
            check(entry->d_name);
            n++;
        }
    closedir(all);
    return n;
}

static void check_parts(const char *name)
{
    const pnr_config config = config_of(name);

    expect_parts(&config);
}

static void check_good(const char *name)
{
    static const size_t chunks[] = {7, 1000, ROOM};
    static unsigned char bytes[ROOM + 1];
    static taken got;
    char text[512], format[16], gaps[256] = "", seen[256];
    long long rate_num, rate_den, start_ns, n_positions;
    size_t n_channels, n_bytes;
    char path[512];
    const pnr_config config = config_of(name);

    read_text(name, ".text", text, sizeof text);
    assert_true(sscanf(text, "%lld %lld %lld %15s %zu %lld %255s", &rate_num, &rate_den, &start_ns,
                       format, &n_channels, &n_positions, gaps) >= 6);
    snprintf(path, sizeof path, "%s/%s.bytes", made, name);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    n_bytes = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    for (size_t i = 0; i < COUNT(chunks); i++) {
        pnr_source *source = open_source(&config);
        const pnr_source_info *info = pnr_source_get_info(source);
        size_t length = 0;

        if (info->rate_hz.num * rate_den != rate_num * info->rate_hz.den ||
            info->start_utc_ns != start_ns || !info->has_start ||
            strcmp(pnr_format_get(info->format)->name, format) != 0 ||
            info->n_channels != n_channels || info->n_samples != (uint64_t)n_positions ||
            info->loss_visibility != PNR_LOSS_EXACT)
            fail_msg("%s: want %s, got start %lld, %s", name, text, (long long)info->start_utc_ns,
                     info->text);
        take_all(source, chunks[i], &got);
        if (got.end != PNR_EEND || got.position != (uint64_t)n_positions)
            fail_msg("%s: %s", name, got.error.text);
        seen[0] = '\0';
        for (size_t g = 0; g < got.n_gaps; g++)
            length += (size_t)snprintf(seen + length, sizeof seen - length, "%s%llu+%llu",
                                       g > 0 ? "," : "", (unsigned long long)got.gaps[g].first,
                                       (unsigned long long)got.gaps[g].count);
        if (strcmp(seen, gaps) != 0)
            fail_msg("%s: gaps %s, not %s", name, seen, gaps);
        if (got.n_bytes != n_bytes || memcmp(got.bytes, bytes, n_bytes) != 0)
            fail_msg("%s: other samples", name);
        pnr_source_close(source);
    }
}

TEST(test_every_type_and_storage)
{
    need_recordings();
    assert_int_equal(for_each("good-", check_good), 11 * 2 * 2 * 2 + 6);
}

static void check_bad(const char *name)
{
    const pnr_config config = config_of(name);
    char words[256];

    read_text(name, ".text", words, sizeof words);
    expect_source_refused(&config, PNR_EDATA, name, words, NULL);
}

/* Parts that begin in a file, in a gap and in a file that is missing. */
TEST(parts)
{
    static const char *const names[] = {"good-ci2le1", "good-rf4be0", "good-long",
                                        "good-thirds", "good-edges",  "good-packed"};

    need_recordings();
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(for_each(names[i], check_parts), 1);
}

TEST(test_refusals_in_words)
{
    need_recordings();
    assert_true(for_each("bad-", check_bad) > 40);
}

/* HDF5 1.10.8 dies of one in fifty of these; the run must not. */
TEST(test_damaged_properties)
{
    enum { ROUNDS = 200, BYTES = 1 << 16 };
    static unsigned char whole[BYTES], damaged[BYTES];
    const pnr_config config = config_of("good-long");
    uint64_t seed = 30;
    size_t n_refused = 0;
    char path[512];

    need_recordings();
    snprintf(path, sizeof path, "%s/good-long/drf_properties.h5", made);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    const size_t n = fread(whole, 1, sizeof whole, stream);
    fclose(stream);
    assert_true(n > 0 && n < sizeof whole);
    for (int round = 0; round <= ROUNDS; round++) {
        pnr_source *source = NULL;
        pnr_error error = {0};

        memcpy(damaged, whole, n);
        for (int i = 0; i < 4 && round < ROUNDS; i++)
            damaged[pnr_random_next(&seed) % n] = (unsigned char)pnr_random_next(&seed);
        stream = fopen(path, "wb");
        assert_non_null(stream);
        assert_int_equal(fwrite(damaged, 1, n, stream), n);
        fclose(stream);
        if (pnr_source_open(&config, &source, &error) != PNR_OK) {
            assert_int_equal(error.code, PNR_EDATA);
            assert_non_null(strstr(error.text, "good-long"));
            n_refused++;
        }
        pnr_source_close(source);
    }
    assert_true(n_refused > ROUNDS / 10 && n_refused < ROUNDS);
}

/* --- files that go and come --- */

static void move_file(const char *name, const char *from, const char *to)
{
    char a[512], b[512];

    snprintf(a, sizeof a, "%s/%s/%s", made, name, from);
    snprintf(b, sizeof b, "%s/%s/%s", made, name, to);
    assert_int_equal(rename(a, b), 0);
}

/* A later file that cannot be read is a gap of its samples, and an event. */
TEST(test_a_broken_file_is_a_gap)
{
    static pnr_events events;
    static const char broken[] = "2026-11-21T02-40-12/rf@1795228813.500.h5"; /* 1500 to 1999 */
    static taken got;
    const pnr_config config = config_of("good-channels");
    char path[512];

    need_recordings();
    move_file("good-channels", broken, "kept");
    snprintf(path, sizeof path, "%s/good-channels/%s", made, broken);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    fputs("no HDF5", stream);
    fclose(stream);

    pnr_source *source = open_source(&config);
    pnr_events_begin(&events);
    pnr_source_report_to(source, &events);
    take_all(source, 1000, &got);
    assert_int_equal(got.end, PNR_EEND);
    assert_int_equal(pnr_event_count(&events, PNR_EVENT_SOURCE_ERROR), 1);
    assert_int_equal(got.position, 2500);
    assert_int_equal(got.n_gaps, 3);
    assert_true(got.gaps[1].first == 700 && got.gaps[1].count == 1300);
    pnr_source_close(source);
    move_file("good-channels", "kept", broken);
}

/* Reads until nothing more is there. Returns the positions that were read or lost. */
static uint64_t read_on(pnr_source *source)
{
    static unsigned char bytes[ROOM];
    uint64_t n = 0;
    pnr_source_block block;
    pnr_error error;
    int code;

    while ((code = pnr_source_read(source, bytes, 1000, &block, &error)) == PNR_OK)
        n += block.n_samples + block.gap;
    assert_int_equal(code, PNR_EAGAIN);
    return n;
}

/* The files of good-thirds have a second each, of 67, 67 and 66 samples, and 3 are in a folder. The
 * first one begins at its sample 40. */
TEST(test_a_recording_that_grows)
{
    static const char *const later[] = {"2026-11-21T02-40-12/rf@1795228813.000.h5",
                                        "2026-11-21T02-40-12/rf@1795228814.000.h5",
                                        "2026-11-21T02-40-15",
                                        "2026-11-21T02-40-18",
                                        "2026-11-21T02-40-21",
                                        "2026-11-21T02-40-24"};
    static const char *const hidden[COUNT(later)] = {"a", "b", "c", "d", "e", "f"};
    static const char unfinished[] = "2026-11-21T02-40-12/tmp.rf@1795228813.000.h5";
    pnr_config config = config_of("good-thirds");

    need_recordings();
    config.source.follow = true;
    for (size_t i = 0; i < COUNT(later); i++)
        move_file("good-thirds", later[i], hidden[i]);

    pnr_source *source = open_source(&config);
    assert_true(pnr_source_get_info(source)->n_samples == UINT64_MAX);
    assert_int_equal(read_on(source), 67 - 40);
    move_file("good-thirds", hidden[0], unfinished);
    assert_int_equal(read_on(source), 0);
    move_file("good-thirds", unfinished, later[0]);
    assert_int_equal(read_on(source), 67);
    move_file("good-thirds", hidden[2], later[2]); /* without the file before it */
    assert_int_equal(read_on(source), 66 + 200);
    for (size_t i = 3; i < COUNT(later); i++)
        move_file("good-thirds", hidden[i], later[i]);
    assert_int_equal(read_on(source), 900 - 27 - 67 - 266);
    pnr_source_close(source);
    move_file("good-thirds", hidden[1], later[1]);
}

TESTS_BETWEEN(make_recordings, remove_recordings)
