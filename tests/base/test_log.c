/* SPDX-License-Identifier: MIT */
/* Tests of log.c. A socket that keeps writes separate replaces stderr. */
#include "base/log.h"
#include "tests/fixture/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct capture {
    int saved, reader;
} capture;

static capture begin(void)
{
    int pair[2];
    capture c;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    c.saved = dup(STDERR_FILENO);
    c.reader = pair[0];
    dup2(pair[1], STDERR_FILENO);
    close(pair[1]);
    return c;
}

/* Reads one write, or "" if there was no write. */
static const char *next(const capture *c, char *out, size_t size)
{
    ssize_t n = recv(c->reader, out, size - 1, MSG_DONTWAIT);

    out[n > 0 ? n : 0] = '\0';
    return out;
}

static void end(capture *c)
{
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    close(c->reader);
}

TEST(each_level_has_its_word_and_one_write)
{
    static const char *const expected[] = {"radar: error: 1 of 2\n", "radar: warning: 1 of 2\n",
                                           "radar: 1 of 2\n", "radar: 1 of 2\n"};
    char got[4][128], rest[128];

    setenv("PNR_LOG", "debug", 1);
    program_invocation_short_name = (char *)(uintptr_t) "radar";
    capture c = begin();
    for (int level = PNR_LOG_ERROR; level <= PNR_LOG_DEBUG; level++)
        pnr_log((pnr_log_level)level, "%d of %d", 1, 2);
    for (int i = 0; i < 4; i++)
        next(&c, got[i], sizeof got[i]);
    next(&c, rest, sizeof rest);
    end(&c);
    for (int i = 0; i < 4; i++)
        assert_string_equal(got[i], expected[i]);
    assert_string_equal(rest, "");
}

static unsigned levels_printed(const char *setting)
{
    char line[128];
    unsigned printed = 0;

    if (setting)
        setenv("PNR_LOG", setting, 1);
    else
        unsetenv("PNR_LOG");
    capture c = begin();
    for (int level = PNR_LOG_ERROR; level <= PNR_LOG_DEBUG; level++) {
        pnr_log((pnr_log_level)level, "x");
        if (next(&c, line, sizeof line)[0])
            printed |= 1u << level;
    }
    end(&c);
    return printed;
}

TEST(the_environment_chooses)
{
    const unsigned error = 1u << PNR_LOG_ERROR, warn = 1u << PNR_LOG_WARN,
                   info = 1u << PNR_LOG_INFO, debug = 1u << PNR_LOG_DEBUG;

    assert_int_equal(levels_printed(NULL), error | warn | info);
    assert_int_equal(levels_printed("info"), error | warn | info);
    assert_int_equal(levels_printed(""), error | warn | info);
    assert_int_equal(levels_printed("something else"), error | warn | info);
    assert_int_equal(levels_printed("quiet"), error);
    assert_int_equal(levels_printed("debug"), error | warn | info | debug);
}

TEST(an_unknown_word_is_refused)
{
    static const char *const known[] = {"", "quiet", "info", "debug"};
    pnr_error error = {0};

    for (size_t i = 0; i < COUNT(known); i++) {
        setenv("PNR_LOG", known[i], 1);
        assert_int_equal(pnr_log_check(&error), PNR_OK);
    }
    setenv("PNR_LOG", "error", 1);
    assert_int_equal(pnr_log_check(&error), PNR_EUSAGE);
    assert_non_null(strstr(error.text, "PNR_LOG=error"));
    assert_non_null(strstr(error.text, "want quiet, info or debug"));
    unsetenv("PNR_LOG");
    assert_int_equal(pnr_log_check(&error), PNR_OK);
}

TEST(an_event_is_one_line)
{
    char line[128];

    setenv("PNR_LOG", "info", 1);
    program_invocation_short_name = (char *)(uintptr_t) "p";
    capture c = begin();
    pnr_log(PNR_LOG_INFO, "a\nb\rc\n\n");
    next(&c, line, sizeof line);
    end(&c);
    assert_string_equal(line, "p: a b c\n");
}

TEST(an_event_gives_the_terminal_no_orders)
{
    char line[128];

    capture c = begin();
    pnr_log(PNR_LOG_INFO, "%s: no such file", "\x1b]0;x\x07\xc2\x9b\x9b\x7f.ci16");
    next(&c, line, sizeof line);
    end(&c);
    assert_string_equal(line, "p: ?]0;x?????.ci16: no such file\n");
}

TEST(a_long_event_is_cut_and_still_ends_its_line)
{
    static char text[10000], line[20000];

    memset(text, 'y', sizeof text - 1);
    capture c = begin();
    pnr_log(PNR_LOG_ERROR, "%s", text);
    next(&c, line, sizeof line);
    end(&c);
    size_t length = strlen(line);
    assert_in_range(length, 1024, 4096);
    assert_int_equal(line[length - 1], '\n');
    assert_ptr_equal(strchr(line, '\n'), line + length - 1);
}

TEST(a_long_program_name_leaves_the_line_whole)
{
    static char name[5000], line[20000];

    memset(name, 'n', sizeof name - 1);
    program_invocation_short_name = name;
    capture c = begin();
    pnr_log(PNR_LOG_ERROR, "%s", "text");
    next(&c, line, sizeof line);
    end(&c);
    program_invocation_short_name = (char *)(uintptr_t) "p";
    assert_in_range(strlen(line), 1024, 4096);
    assert_int_equal(line[strlen(line) - 1], '\n');
}

TEST(errno_survives)
{
    char line[128];

    capture c = begin();
    errno = ERANGE;
    pnr_log(PNR_LOG_ERROR, "%m");
    int after = errno;
    next(&c, line, sizeof line);
    end(&c);
    assert_int_equal(after, ERANGE);
    assert_non_null(strstr(line, strerror(ERANGE)));
}

TEST(a_closed_stderr_does_no_harm)
{
    int saved = dup(STDERR_FILENO);
    close(STDERR_FILENO);
    errno = 0;
    pnr_log(PNR_LOG_ERROR, "nobody reads this");
    int after = errno;
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_int_equal(after, 0);
}
