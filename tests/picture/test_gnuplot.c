/* SPDX-License-Identifier: MIT */
/* Tests that text reaches gnuplot as one literal on one line, and that only a complete picture
 * replaces a file. */
#include "picture/gnuplot.h"
#include "tests/fixture/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- text --- */

static char *quoted(const char *text)
{
    char *out = NULL;
    size_t bytes;
    FILE *to = open_memstream(&out, &bytes);

    pnr_gnuplot_quote(to, text);
    fclose(to);
    return out;
}

TEST(test_quote)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "''"},
        {"it's \"`$(x)`\" @a {b} \\", "'it''s \"`$(x)`\" @a {b} \\'"},
        {"a\nsystem 'touch x'\n", "'a?system ''touch x''?'"},
        {"a\r\t\x1b[2J\x7f", "'a???[2J?'"},
        {"\xc2\x9b"
         "1m \xc2\xa0",
         "'?1m \xc2\xa0'"},
        {"gr\xc3\xbc\xc3\x9f \xe9\x9b\xb7 \xff\xc3", "'gr\xc3\xbc\xc3\x9f \xe9\x9b\xb7 ?"
                                                     "?'"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *out = quoted(cases[i].text);

        assert_string_equal(out, cases[i].want);
        free(out);
    }
}

TEST(test_size)
{
    static const char *const wrong[] = {"",         "1800",     "1800x",     "399x300",
                                        "400x299",  "10001x9",  "800x600x1", "800x10001",
                                        "-800x600", "800 x600", "8e2x600",   "800X600"};
    int width, height;
    pnr_error error;

    assert_int_equal(pnr_gnuplot_read_size("400x10000", &width, &height, &error), PNR_OK);
    assert_true(width == 400 && height == 10000);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(pnr_gnuplot_read_size(wrong[i], &width, &height, &error), PNR_EUSAGE);
        assert_non_null(strstr(error.text, "WIDTHxHEIGHT"));
    }
}

/* --- a script that takes the place of gnuplot --- */

static char folder[256], path[300];

/* Writes a script with these commands, which the PATH finds as gnuplot. */
static void put_gnuplot(const char *body)
{
    char name[300];
    FILE *script;

    snprintf(name, sizeof name, "%s/gnuplot", folder);
    script = fopen(name, "w");
    assert_non_null(script);
    fprintf(script, "#!/bin/sh\n%s\n", body);
    assert_int_equal(fclose(script), 0);
    assert_int_equal(chmod(name, 0755), 0);
}

static int begin(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char search[400];

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    snprintf(folder, sizeof folder, "%s/pnr.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/a.png", folder);
    snprintf(search, sizeof search, "%s:/usr/bin:/bin", folder);
    return setenv("PATH", search, 1);
}

static int end(void **state)
{
    char command[300];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* Draws one point. Returns the code of pnr_gnuplot_close. */
static int draw(pnr_error *error)
{
    const pnr_sheet sheet = {.path = path, .title = {"a\nb", "c"}, .width = 800, .height = 600};
    pnr_gnuplot g;

    assert_int_equal(pnr_gnuplot_open(&sheet, &g, error), PNR_OK);
    fputs("plot '-'\n1 1\ne\n", g.to);
    return pnr_gnuplot_close(&g, error);
}

static size_t read_path(char out[4096])
{
    FILE *from = fopen(path, "r");
    size_t n = 0;

    if (from != NULL) {
        n = fread(out, 1, 4095, from);
        fclose(from);
    }
    out[n] = '\0';
    return n;
}

/* Returns the number of files in the folder. */
static int count_files(void)
{
    char command[300], line[16] = "";
    FILE *from;

    snprintf(command, sizeof command, "find %s -mindepth 1 -printf x | wc -c", folder);
    from = popen(command, "r");
    assert_non_null(fgets(line, sizeof line, from));
    pclose(from);
    return atoi(line);
}

TEST_BETWEEN(test_no_command_has_a_name, begin, end)
{
    char text[4096];
    pnr_error error;

    put_gnuplot("cat");
    snprintf(path, sizeof path, "%s/|touch p\n'system \"touch q\"'.png", folder);
    assert_int_equal(draw(&error), PNR_OK);
    assert_true(read_path(text) > 0);
    assert_non_null(strstr(text, "set terminal pngcairo"));
    assert_non_null(strstr(text, "set title 'a?b'.\"\\n\".'c'"));
    assert_null(strstr(text, "touch"));
    assert_null(strstr(text, "output"));
    assert_int_equal(count_files(), 2);
}

TEST_BETWEEN(test_only_a_whole_picture_replaces, begin, end)
{
    static const struct {
        const char *gnuplot, *says;
    } bad[] = {
        {"cat >/dev/null; printf '\\211PNG half'; exit 1", "status 1"},
        {"cat >/dev/null; kill -9 $$", "status -1"},
        {"cat >/dev/null", "status 0"},
    };
    char text[4096];
    pnr_error error;

    put_gnuplot("cat >/dev/null; printf '\\211PNG whole'");
    assert_int_equal(draw(&error), PNR_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put_gnuplot(bad[i].gnuplot);
        assert_int_equal(draw(&error), PNR_EIO);
        assert_non_null(strstr(error.text, bad[i].says));
        assert_true(read_path(text) > 0);
        assert_string_equal(text, "\x89PNG whole");
        assert_int_equal(count_files(), 2);
    }
}

TEST_BETWEEN(test_what_is_no_picture_is_kept, begin, end)
{
    pnr_error error;
    FILE *file;

    put_gnuplot("cat");
    assert_int_equal(pnr_gnuplot_check(path, &error), PNR_OK);
    file = fopen(path, "w");
    fputs("RIFF", file);
    fclose(file);
    assert_int_equal(pnr_gnuplot_check(path, &error), PNR_ECONFIG);
    assert_non_null(strstr(error.text, "not replaced"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("elsewhere", path), 0);
    assert_int_equal(pnr_gnuplot_check(path, &error), PNR_ECONFIG);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    /* refuses the file without waiting */
    assert_int_equal(pnr_gnuplot_check(path, &error), PNR_ECONFIG);
    assert_int_equal(unlink(path), 0);
    file = fopen(path, "w");
    fputs("\x89PNG\r\n", file);
    fclose(file);
    assert_int_equal(pnr_gnuplot_check(path, &error), PNR_OK);
}

TEST_BETWEEN(test_what_is_missing_is_named, begin, end)
{
    pnr_error error;

    put_gnuplot("cat >/dev/null; exit 1");
    assert_int_equal(pnr_gnuplot_check(path, &error), PNR_EUNAVAILABLE);
    assert_non_null(strstr(error.text, "gnuplot-nox"));
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    assert_int_equal(pnr_gnuplot_check(path, &error), PNR_EUNAVAILABLE);
    assert_non_null(strstr(error.text, "gnuplot-nox"));
    assert_int_equal(pnr_gnuplot_check("a.gif", &error), PNR_EUSAGE);
    assert_non_null(strstr(error.text, ".png, .svg or .pdf"));
    assert_int_equal(pnr_gnuplot_check("/nowhere/a.svg", &error), PNR_EIO);
    assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0);
}
