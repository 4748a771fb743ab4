/* SPDX-License-Identifier: MIT */
/* Tests of file.c: a new file appears whole or not at all, and never replaces a file of another
 * program. */
#include "base/file.h"
#include "tests/fixture/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/pnradar-file-XXXXXX", path[64];
static const char mark[] = "{\"mark\"";

static int begin(void **state)
{
    (void)state;
    strcpy(strrchr(folder, '-'), "-XXXXXX");
    snprintf(path, sizeof path, "%s/target", mkdtemp(folder));
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder); /* fails if a test has left a new file there */
}

static void put(const char *text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *get(void)
{
    static char text[64];
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return "none";
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int replace(const char *kind, const char *text, pnr_error *error)
{
    pnr_new_file file;
    int code = pnr_new_file_create("--key", path, kind, &file, error);

    if (code != PNR_OK)
        return code;
    assert_int_equal(pnr_new_file_write(&file, text, strlen(text), error), PNR_OK);
    return pnr_new_file_finish(&file, true, error);
}

TEST_BETWEEN(appears_whole, begin, end)
{
    pnr_new_file file;
    pnr_error error;

    assert_int_equal(pnr_new_file_create("--key", path, mark, &file, &error), PNR_OK);
    assert_int_equal(pnr_new_file_write(&file, "{\"mark\"1", 9, &error), PNR_OK);
    assert_string_equal(get(), "none");
    assert_int_equal(pnr_new_file_finish(&file, false, &error), PNR_OK);
    assert_string_equal(get(), "{\"mark\"1");

    assert_int_equal(pnr_new_file_create("--key", path, mark, &file, &error), PNR_OK);
    assert_int_equal(pnr_new_file_write(&file, "half", 4, &error), PNR_OK);
    pnr_new_file_discard(&file);
    pnr_new_file_discard(&file); /* has nothing to remove */
    assert_string_equal(get(), "{\"mark\"1");
    assert_int_equal(replace(mark, "{\"mark\"2", &error), PNR_OK);
    assert_string_equal(get(), "{\"mark\"2");
}

TEST_BETWEEN(replaces_what_is_ours, begin, end)
{
    static const struct {
        const char *mark, *there;
        bool is_replaced;
    } cases[] = {
        {mark, "", true},
        {mark, "{\"mark\", 3}", true},
        {mark, "{\"mar", false},
        {mark, "x{\"mark\"", false},
        {mark, "\x01\x02", false},
        {PNR_FILE_SAMPLES, "", true},
        {PNR_FILE_SAMPLES, "a\x01\x02", true},
        {PNR_FILE_SAMPLES, "[code]\ndegree = 7\t; \xc2\xb5s\r\n", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        pnr_error error;
        int code;

        put(cases[i].there);
        code = replace(cases[i].mark, "{\"mark\"new", &error);
        assert_int_equal(code, cases[i].is_replaced ? PNR_OK : PNR_ECONFIG);
        assert_string_equal(get(), cases[i].is_replaced ? "{\"mark\"new" : cases[i].there);
        if (!cases[i].is_replaced)
            assert_non_null(strstr(error.text, path));
    }
}

TEST_BETWEEN(keeps_permissions, begin, end)
{
    struct stat status;
    pnr_error error;

    put("{\"mark\"");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(replace(mark, "{\"mark\"2", &error), PNR_OK);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    if (geteuid() == 0)
        return; /* root may write the file in spite of its mode */
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(replace(mark, "{\"mark\"3", &error), PNR_EPERMISSION);
    assert_string_equal(get(), "{\"mark\"2");
}

/* Links, FIFOs, devices and folders are refused at once. */
TEST_BETWEEN(refuses_what_is_no_file, begin, end)
{
    pnr_error error;
    char other[80];

    snprintf(other, sizeof other, "%s-other", path);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(replace(mark, "x", &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "symbolic link"));
    assert_int_equal(access(other, F_OK), -1);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(replace(PNR_FILE_SAMPLES, "x", &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "FIFO"));
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(replace(mark, "x", &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "folder"));
    rmdir(path);
    strcpy(other, path);
    strcpy(path, "/dev/null");
    assert_int_equal(replace(mark, "x", &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "device"));
    strcpy(path, "/nowhere/at/all");
    assert_int_equal(replace(mark, "x", &error), PNR_EIO);
    strcpy(path, other);
    strcat(path, "/");
    assert_int_equal(replace(mark, "x", &error), PNR_EIO);
    strcpy(path, other);
}

/* A file that another program creates in the meantime is kept, and the new file is removed. */
TEST_BETWEEN(checks_again_at_the_end, begin, end)
{
    pnr_new_file file;
    pnr_error error;

    assert_int_equal(pnr_new_file_create("--key", path, mark, &file, &error), PNR_OK);
    put("of another");
    assert_int_equal(pnr_new_file_finish(&file, true, &error), PNR_ECONFIG);
    assert_string_equal(get(), "of another");
}

TEST_BETWEEN(opens_files_alone, begin, end)
{
    pnr_error error;
    int fd;

    assert_int_equal(pnr_file_open("--key", path, &fd, &error), PNR_ENOINPUT);
    put("x");
    assert_int_equal(pnr_file_open("--key", path, &fd, &error), PNR_OK);
    close(fd);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pnr_file_open("--key", path, &fd, &error), PNR_ENOINPUT);
    assert_non_null(strstr(error.text, "FIFO"));
    assert_int_equal(fd, -1);
}

TEST_BETWEEN(knows_one_file_by_two_names, begin, end)
{
    char dotted[80];

    snprintf(dotted, sizeof dotted, "%s/./target", folder);
    assert_false(pnr_file_is_same(path, dotted)); /* neither file exists */
    assert_true(pnr_file_is_same(path, path));
    put("x");
    assert_true(pnr_file_is_same(path, dotted));
    assert_false(pnr_file_is_same(path, folder));
}
