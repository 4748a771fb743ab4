/* SPDX-License-Identifier: MIT */
/* FIFOs and stdin: the samples are those of the file, for any size of the writes. */
#include "tests/fixture/source_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

/* Writes to a FIFO from another thread, `piece` bytes a write. */
typedef struct writer {
    pthread_t thread;
    const char *path;
    const unsigned char *bytes;
    size_t n;
    size_t piece;
    bool failed;
} writer;

static void *write_pieces(void *argument)
{
    writer *w = argument;
    int fd = open(w->path, O_WRONLY);

    for (size_t i = 0; fd >= 0 && i < w->n; i += w->piece) {
        size_t n = w->n - i < w->piece ? w->n - i : w->piece;

        if (write(fd, w->bytes + i, n) != (ssize_t)n)
            w->failed = true;
        if (i % 64 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (fd < 0 || close(fd) != 0)
        w->failed = true;
    return NULL;
}

static void start_writer(writer *w, const pnr_config *config, const void *bytes, size_t n,
                         size_t piece)
{
    *w = (writer){.path = config->source.input, .bytes = bytes, .n = n, .piece = piece};
    assert_int_equal(pthread_create(&w->thread, NULL, write_pieces, w), 0);
}

static void end_writer(writer *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    assert_false(w->failed);
}

TEST(test_fifo_dribble)
{
    static const size_t pieces[] = {1, 3, 5, 4096};
    static const pnr_format formats[] = {PNR_FORMAT_CF64, PNR_FORMAT_CI16, PNR_FORMAT_U8};
    static taken got;
    unsigned char bytes[1603];
    pnr_run lost[] = {{10, 4}};
    pnr_config config = source_config("x.fifo");

    fill_bytes(bytes, sizeof bytes);
    config.source.lost = lost;
    config.source.n_lost = 1;
    assert_int_equal(mkfifo(config.source.input, 0600), 0);
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++)
        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
            size_t sample_bytes = pnr_format_get(formats[f])->bytes;
            writer w;

            config.source.format = formats[f];
            pnr_source *source = open_source(&config);
            const pnr_source_info *info = pnr_source_get_info(source);
            assert_true(info->n_samples == UINT64_MAX);
            assert_int_equal(info->n_trailing_bytes, 0);
            start_writer(&w, &config, bytes, sizeof bytes, pieces[p]);
            take_all(source, 100, &got);
            end_writer(&w);
            assert_int_equal(got.end, PNR_EEND);
            expect_bytes(&got, bytes, sizeof bytes / sample_bytes * sample_bytes);
            assert_int_equal(info->n_trailing_bytes, sizeof bytes % sample_bytes);
            assert_int_equal(got.n_gaps, 1);
            assert_int_equal(got.gaps[0].first, 10);
            pnr_source_close(source);
        }
    remove_file("x.fifo");
}

/* Each byte of ci4 is I and Q of ci8, 16 times as great, however the bytes arrive. */
TEST(test_fifo_of_packed_samples)
{
    static const size_t pieces[] = {1, 3, 4096};
    static taken got;
    unsigned char bytes[1603], unpacked[2 * sizeof bytes];
    pnr_config config = source_config("x.fifo");

    fill_bytes(bytes, sizeof bytes);
    unpack_bytes(bytes, sizeof bytes, unpacked);
    config.source.format = PNR_FORMAT_CI4;
    config.source.channels = 2;
    assert_int_equal(mkfifo(config.source.input, 0600), 0);
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        writer w;
        pnr_source *source = open_source(&config);

        assert_int_equal(pnr_source_get_info(source)->format, PNR_FORMAT_CI8);
        start_writer(&w, &config, bytes, sizeof bytes, pieces[p]);
        take_all(source, 100, &got);
        end_writer(&w);
        assert_int_equal(got.end, PNR_EEND);
        expect_bytes(&got, unpacked, sizeof unpacked - 2);
        assert_int_equal(pnr_source_get_info(source)->n_trailing_bytes, 1);
        pnr_source_close(source);
    }
    remove_file("x.fifo");
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

TEST(test_fifo_without_a_writer)
{
    unsigned char bytes[64];
    unsigned char data[64];
    pnr_config config = source_config("x.fifo");
    pnr_error error = {0};
    writer w;
    pnr_source_block block;

    fill_bytes(bytes, sizeof bytes);
    config.source.format = PNR_FORMAT_CI16;
    assert_int_equal(mkfifo(config.source.input, 0600), 0);
    pnr_source *source = open_source(&config);
    double start = seconds();
    assert_int_equal(pnr_source_read(source, data, 16, &block, &error), PNR_EAGAIN);
    assert_true(seconds() - start > 0.040); /* it waited, and did not spin */
    assert_true(seconds() - start < 5);
    start_writer(&w, &config, bytes, sizeof bytes, sizeof bytes);
    static taken got;
    take_all(source, 16, &got);
    end_writer(&w);
    assert_int_equal(got.end, PNR_EEND);
    expect_bytes(&got, bytes, sizeof bytes);
    pnr_source_close(source);

    source = open_source(&config); /* a writer that comes and goes without a whole sample */
    start_writer(&w, &config, bytes, 3, 1);
    take_all(source, 16, &got);
    end_writer(&w);
    assert_int_equal(got.end, PNR_EDATA);
    assert_non_null(strstr(got.error.text, "3 bytes"));
    assert_int_equal(pnr_source_get_info(source)->n_trailing_bytes, 3);
    pnr_source_close(source);
    remove_file("x.fifo");
}

/* Puts a descriptor in the place of stdin; the old one comes back from restore. */
static int replace_stdin(int fd)
{
    int saved = dup(STDIN_FILENO);

    assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
    return saved;
}

static void restore_stdin(int saved)
{
    if (saved >= 0) {
        assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
        close(saved);
    } else {
        close(STDIN_FILENO);
    }
}

/* stdin becomes a pipe that holds these bytes and has no writer any more. */
static int pipe_to_stdin(const void *bytes, size_t n)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, n), (ssize_t)n);
    close(ends[1]);
    return replace_stdin(ends[0]);
}

TEST(test_stdin)
{
    static taken got;
    unsigned char bytes[402];
    pnr_config config = source_config("-");

    fill_bytes(bytes, sizeof bytes);
    config.source.format = PNR_FORMAT_CI16;
    int saved = pipe_to_stdin(bytes, sizeof bytes);
    pnr_source *source = open_source(&config);
    assert_non_null(strstr(pnr_source_get_info(source)->text, "length not known: stdin"));
    take_all(source, 64, &got);
    assert_int_equal(got.end, PNR_EEND);
    expect_bytes(&got, bytes, 400);
    assert_int_equal(pnr_source_get_info(source)->n_trailing_bytes, 2);
    pnr_source_close(source);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* stdin is not ours to close */
    restore_stdin(saved);

    write_file("x.bin", bytes, sizeof bytes); /* pnradar - < x.bin, after something read 2 bytes */
    pnr_config named = source_config("x.bin");
    saved = replace_stdin(open(named.source.input, O_RDONLY));
    assert_int_equal(lseek(STDIN_FILENO, 2, SEEK_SET), 2);
    source = open_source(&config);
    assert_int_equal(pnr_source_get_info(source)->n_samples, 100);
    take_all(source, 64, &got);
    expect_bytes(&got, bytes + 2, 400);
    pnr_source_close(source);
    restore_stdin(saved);
    remove_file("x.bin");
}

TEST(test_stdin_refused)
{
    static const char *const magics[] = {"RIFF", "RF64", "riff", ".snd", "fLaC"};
    unsigned char bytes[64] = {0};
    pnr_config config = source_config("-");
    int ends[2];
    int saved;

    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        memcpy(bytes, magics[i], 4);
        saved = pipe_to_stdin(bytes, sizeof bytes);
        expect_source_refused(&config, PNR_ECONFIG, "stdin", "name the file", "source.format",
                              NULL);
        restore_stdin(saved);
    }
    write_file("x.bin", bytes, sizeof bytes);
    pnr_config named = source_config("x.bin");
    saved = replace_stdin(open(named.source.input, O_RDONLY));
    expect_source_refused(&config, PNR_ECONFIG, "FLAC", "name the file", NULL);
    restore_stdin(saved);
    remove_file("x.bin");

    saved = pipe_to_stdin("abcdefgh", 8);
    expect_source_refused(&config, PNR_ECONFIG, "stdin", "source.format", pnr_format_names(), NULL);
    restore_stdin(saved);
    saved = pipe_to_stdin("RI", 2); /* ends before it says what it is */
    expect_source_refused(&config, PNR_ECONFIG, "stdin", "source.format", NULL);
    restore_stdin(saved);
    assert_int_equal(pipe(ends), 0); /* says nothing at all */
    saved = replace_stdin(ends[0]);
    expect_source_refused(&config, PNR_ECONFIG, "stdin", "source.format", NULL);
    restore_stdin(saved);
    close(ends[1]);
    saved = replace_stdin(open("/", O_RDONLY));
    expect_source_refused(&config, PNR_ENOINPUT, "directory", NULL);
    restore_stdin(saved);
    saved = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    expect_source_refused(&config, PNR_ENOINPUT, "stdin", NULL);
    if (saved >= 0)
        restore_stdin(saved);
}

/* With a format set, no header of a container is read as samples: from stdin, a FIFO or a file. */
TEST(test_containers)
{
    static const struct {
        const char *bytes;
        size_t n, at;
        const char *name, *way;
    } cases[] = {
        {"RIFF\0\0\0\0WAVE", 12, 0, "WAV", "name the file"},
        {"RF64\xff\xff\xff\xffWAVE", 12, 0, "RF64", "name the file"},
        {"fLaC", 4, 0, "FLAC", "name the file"},
        {"FORM\0\0\1\0AIFF", 12, 0, "AIFF", "name the file"},
        {"FORM\0\0\1\0AIFC", 12, 0, "AIFF", "name the file"},
        {"OggS", 4, 0, "OGG", "sox"},
        {"caff\0\1\0\0desc", 12, 0, "CAF", "sox"},
        {"ustar\00000", 8, 257, "SigMF", "sigmf-data"},
        {"\x89HDF\r\n\x1a\n", 8, 0, "HDF5", "h5dump"},
        {"\x93NUMPY\1", 7, 0, "NumPy", "tofile"},
        {"\x1f\x8b\x08\0", 4, 0, "gzip", "gzip -dc"},
        {"\x28\xb5\x2f\xfd", 4, 0, "zstd", "zstd -dc"},
        {"\xfd\x37zXZ\0", 6, 0, "xz", "xz -dc"},
        {"BZh91AY&SY", 10, 0, "bzip2", "bzip2 -dc"},
        {"PK\3\4", 4, 0, "zip", "unzip"},
        {"MATLAB 5.0 MAT-file", 19, 0, "MATLAB", "fwrite"},
    };
    static taken got;

    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned char bytes[600];
        pnr_config config = source_config("-"), named = source_config("x.ci16");
        pnr_source *source;
        int saved;

        fill_bytes(bytes, sizeof bytes);
        memcpy(bytes + cases[i].at, cases[i].bytes, cases[i].n);
        config.source.format = named.source.format = PNR_FORMAT_CI16;
        saved = pipe_to_stdin(bytes, sizeof bytes);
        source = open_source(&config);
        take_all(source, 1000, &got);
        pnr_source_close(source);
        restore_stdin(saved);
        assert_int_equal(got.end, PNR_ECONFIG);
        assert_int_equal(got.n_bytes, 0);
        if (strstr(got.error.text, cases[i].name) == NULL ||
            strstr(got.error.text, cases[i].way) == NULL)
            fail_msg("%s", got.error.text);

        saved = pipe_to_stdin(bytes, sizeof bytes); /* and without a format */
        config.source.format = PNR_FORMAT_NONE;
        expect_source_refused(&config, PNR_ECONFIG, "stdin", cases[i].name, NULL);
        restore_stdin(saved);

        write_file("x.ci16", bytes, sizeof bytes);
        saved = replace_stdin(open(named.source.input, O_RDONLY));
        config.source.format = PNR_FORMAT_CI16;
        expect_source_refused(&config, PNR_ECONFIG, "stdin", cases[i].name, cases[i].way, NULL);
        restore_stdin(saved);
        if (strcmp(cases[i].way, "name the file") != 0) /* those are read as what they are */
            expect_source_refused(&named, PNR_ECONFIG, "x.ci16", cases[i].name, cases[i].way, NULL);
        remove_file("x.ci16");
    }
}

/* A pipe that comes in single bytes is refused too, with at most the bytes of its mark read. */
TEST(test_container_dribble)
{
    static taken got;
    unsigned char bytes[600];
    pnr_config config = source_config("x.fifo");
    writer w;

    fill_bytes(bytes, sizeof bytes);
    memcpy(bytes + 257, "ustar", 5);
    config.source.format = PNR_FORMAT_CI8;
    assert_int_equal(mkfifo(config.source.input, 0600), 0);
    pnr_source *source = open_source(&config);
    start_writer(&w, &config, bytes, sizeof bytes, 1);
    take_all(source, 1000, &got);
    assert_int_equal(got.end, PNR_ECONFIG);
    assert_true(got.n_bytes <= 262);
    pthread_join(w.thread, NULL);
    pnr_source_close(source);
    remove_file("x.fifo");
}

TEST(test_stdin_without_samples)
{
    static taken got;
    pnr_config config = source_config("-");
    int saved = pipe_to_stdin("", 0);

    config.source.format = PNR_FORMAT_CI16;
    pnr_source *source = open_source(&config);
    take_all(source, 64, &got);
    assert_int_equal(got.end, PNR_EDATA);
    assert_non_null(strstr(got.error.text, "no samples"));
    pnr_source_close(source);
    restore_stdin(saved);

    saved = replace_stdin(open("/dev/null", O_WRONLY)); /* cannot be read at all */
    source = open_source(&config);
    take_all(source, 64, &got);
    assert_int_equal(got.end, PNR_EIO);
    assert_non_null(strstr(got.error.text, strerror(EBADF)));
    pnr_source_close(source);
    restore_stdin(saved);
}

TESTS_BETWEEN(make_folder, remove_folder)
