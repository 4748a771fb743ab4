/* SPDX-License-Identifier: MIT */
/* Tests of cli.c: what each command line does, says and prints. */
#include "cli.h"

#include "config/keys.h"
#include "tests/fixture/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 16, MAX_OUTPUT = 65536 };

typedef struct session {
    pnr_cli cli;
    pnr_config config;
    pnr_error error;
    const char *truth;
    bool transmit;
    pnr_cli_option options[3];
    char output[MAX_OUTPUT]; /* what went to stdout */
    int code;
} session;

/* stdout or stderr into a file, while it lasts. */
static int divert(int fd, FILE **file)
{
    fflush(fd == STDOUT_FILENO ? stdout : stderr);
    int saved = dup(fd);
    *file = tmpfile();
    assert_non_null(*file);
    dup2(fileno(*file), fd);
    return saved;
}

static void restore(int fd, int saved, FILE *file, char *text, size_t size)
{
    fflush(fd == STDOUT_FILENO ? stdout : stderr);
    dup2(saved, fd);
    close(saved);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* Words after the program's name, up to a NULL. */
static void run(session *s, const char *const *words)
{
    const char *argv[MAX_WORDS + 2] = {"/usr/bin/pnradar-echo"};
    int argc = 1;
    FILE *file;

    for (; words[argc - 1] && argc <= MAX_WORDS; argc++)
        argv[argc] = words[argc - 1];
    memset(s, 0, sizeof *s);
    s->options[0] = (pnr_cli_option){"truth", "FILE", "Write the true delays.", .value = &s->truth};
    s->options[1] =
        (pnr_cli_option){"transmit", NULL, "Write the waveform alone.", .flag = &s->transmit};
    s->cli = (pnr_cli){
        .program = "pnradar-echo",
        .usage = "[OPTION]... [OUTPUT]",
        .summary = "Makes echoes.",
        .examples = "pnradar-echo one.sc16\npnradar-echo --transmit two.wav\n",
        .options = s->options,
        .max_operands = 2,
    };
    memset(&s->config, 0xa5, sizeof s->config); /* parse initialises it */
    int saved = divert(STDOUT_FILENO, &file);
    s->code = pnr_cli_parse(&s->cli, argc, (char **)(uintptr_t)argv, &s->config, &s->error);
    restore(STDOUT_FILENO, saved, file, s->output, sizeof s->output);
}

#define RUN(s, ...) run(s, (const char *const[]){__VA_ARGS__, NULL})

static session *begin(void)
{
    session *s = calloc(1, sizeof *s);

    assert_non_null(s);
    return s;
}

static void end(session *s)
{
    pnr_config_clear(&s->config);
    free(s);
}

/* One run of which nothing is kept. */
static void refused(int code, const char *word, const char *const *words)
{
    session *s = begin();

    run(s, words);
    assert_int_equal(s->code, code);
    assert_int_equal(s->error.code, code);
    if (!strstr(s->error.text, word))
        fail_msg("'%s' is not in '%s'", word, s->error.text);
    assert_string_equal(s->output, "");
    end(s);
}

#define REFUSED(code, word, ...) refused(code, word, (const char *const[]){__VA_ARGS__, NULL})

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

TEST(nothing_is_the_default)
{
    session *s = begin();
    pnr_config expected;

    run(s, (const char *const[]){NULL});
    pnr_config_init(&expected);
    assert_int_equal(s->code, PNR_OK);
    assert_int_equal(s->cli.n_operands, 0);
    assert_false(s->cli.strict);
    assert_null(s->truth);
    assert_false(s->transmit);
    assert_true(s->config.dwell.periods == expected.dwell.periods);
    assert_true(s->config.radar.speed_mps == expected.radar.speed_mps);
    assert_string_equal(s->output, "");
    pnr_config_clear(&expected);
    end(s);
}

TEST(own_options_and_operands)
{
    session *s = begin();

    RUN(s, "a.sc16", "--truth", "t.csv", "--strict", "-", "--transmit");
    assert_int_equal(s->code, PNR_OK);
    assert_int_equal(s->cli.n_operands, 2);
    assert_string_equal(s->cli.operands[0], "a.sc16");
    assert_string_equal(s->cli.operands[1], "-");
    assert_string_equal(s->truth, "t.csv");
    assert_true(s->transmit);
    assert_true(s->cli.strict);
    end(s);

    s = begin();
    RUN(s, "--truth=first", "--truth=a=b", "--", "--strict", "-s");
    assert_int_equal(s->code, PNR_OK);
    assert_string_equal(s->truth, "a=b");
    assert_false(s->cli.strict);
    assert_int_equal(s->cli.n_operands, 2);
    assert_string_equal(s->cli.operands[0], "--strict");
    assert_string_equal(s->cli.operands[1], "-s");
    end(s);

    /* The word after an option is its argument, even if it is empty or looks like an option. */
    s = begin();
    RUN(s, "--truth", "--strict", "--truth=");
    assert_int_equal(s->code, PNR_OK);
    assert_string_equal(s->truth, "");
    assert_false(s->cli.strict);
    end(s);
}

TEST(every_way_to_set_a_key)
{
    session *s = begin();

    RUN(s, "-s", "dwell.periods=3", "-sstream.name=sonar", "--set", "detector.pfa=0.25",
        "--set=source.rate_hz=40000000/3");
    assert_int_equal(s->code, PNR_OK);
    assert_int_equal(s->config.dwell.periods, 3);
    assert_string_equal(s->config.stream.name, "sonar");
    assert_true(s->config.detector.pfa == 0.25);
    assert_true(s->config.source.rate_hz.num == 40000000 && s->config.source.rate_hz.den == 3);
    end(s);

    s = begin();
    RUN(s, "-s", "dwell.periods=3", "-s", "dwell.periods=5");
    assert_int_equal(s->code, PNR_OK);
    assert_int_equal(s->config.dwell.periods, 5);
    end(s);
}

TEST(files_come_first_in_their_order)
{
    char one[] = P_tmpdir "/test_cli.XXXXXX", two[] = P_tmpdir "/test_cli.XXXXXX";
    session *s = begin();

    write_file(one, "[dwell]\nperiods = 7\n[stream]\nname = one\n[code]\nseed = 11\n");
    write_file(two, "[stream]\nname = two\n[code]\nseed = 22\n");
    RUN(s, "-s", "code.seed=33", "-c", one, "--config", two);
    assert_int_equal(s->code, PNR_OK);
    assert_int_equal(s->config.dwell.periods, 7);
    assert_string_equal(s->config.stream.name, "two");
    assert_int_equal(s->config.code.seed, 33);
    end(s);

    char joined[64], equals[64];
    snprintf(joined, sizeof joined, "-c%s", two);
    snprintf(equals, sizeof equals, "--config=%s", one);
    s = begin();
    RUN(s, joined, equals);
    assert_int_equal(s->code, PNR_OK);
    assert_string_equal(s->config.stream.name, "one");
    assert_int_equal(s->config.code.seed, 11);
    end(s);
    unlink(one);
    unlink(two);
}

TEST(wrong_words_are_named)
{
    REFUSED(PNR_EUSAGE, "'--trtuh': the nearest is '--truth'", "--trtuh", "x");
    REFUSED(PNR_EUSAGE, "'--confg=a': the nearest is '--config'", "--confg=a");
    REFUSED(PNR_EUSAGE, "'--strictly': the nearest is '--strict'", "--strictly");
    REFUSED(PNR_EUSAGE, "'--hlep': the nearest is '--help'", "--hlep");
    REFUSED(PNR_EUSAGE, "'-x'", "-x");
    REFUSED(PNR_EUSAGE, "'--stric'", "--stric");
    REFUSED(PNR_EUSAGE, "'---'", "---");
    REFUSED(PNR_EUSAGE, "'--truth' needs an argument: FILE", "--truth");
    REFUSED(PNR_EUSAGE, "'--config' needs an argument: FILE", "-c");
    REFUSED(PNR_EUSAGE, "'--set' needs an argument", "a", "--set");
    REFUSED(PNR_EUSAGE, "'--transmit' takes no argument, got 'yes'", "--transmit=yes");
    REFUSED(PNR_EUSAGE, "'--strict' takes no argument, got ''", "--strict=");
    REFUSED(PNR_EUSAGE, "one operand too many: 'c'", "a", "b", "c");
}

/* The code of `-n count --share number --every seconds`, and its values. */
static int read_numbers(const char *count, const char *number, const char *seconds, size_t *n,
                        double *share, double *every_s)
{
    const pnr_cli_option options[] = {
        {"number", "N", "", .count = n, .min = 1, .max = 0x1p40, .letter = 'n'},
        {"share", "X", "", .number = share, .min = 0.25, .max = 100},
        {"every", "TIME", "", .seconds = every_s, .min = 1e-9, .max = 3600},
        {0}};
    const char *argv[] = {"p", "-n", count, "--share", number, "--every", seconds};
    pnr_cli cli = {.program = "p", .options = options};
    pnr_config config;
    pnr_error error = {0};
    const int code = pnr_cli_parse(&cli, 7, (char **)(uintptr_t)argv, &config, &error);

    pnr_config_clear(&config);
    assert_true(code == PNR_OK || strstr(error.text, ": want a ") != NULL);
    return code;
}

TEST(numbers_of_options)
{
    static const char *const no_count[] = {"0",     "-1",    "5x",     "1e3",    "2^",
                                           "2^41",  "2^64",  "2^64+1", "2^64-1", "2^4-",
                                           "2^3-8", "2^3-9", ""};
    static const char *const no_number[] = {"0.2",   "101", "1e1", "-1", "inf",
                                            "1.2.3", ".",   "1s",  ""};
    static const char *const no_time[] = {"1",    "ms",     "1e3ms", "2  m", "2min",
                                          "infs", "0x10ms", "3601s", "0ns"};
    double share, every_s;
    size_t n;

    assert_int_equal(read_numbers("8192", "0.25", "62ms", &n, &share, &every_s), PNR_OK);
    assert_true(n == 8192 && share == 0.25 && every_s == 0.062);
    assert_int_equal(read_numbers("2^40", "100", ".5us", &n, &share, &every_s), PNR_OK);
    assert_true(n == (size_t)1 << 40 && share == 100 && every_s == 0.5e-6);
    assert_int_equal(read_numbers("2^20-1", "1", "3600s", &n, &share, &every_s), PNR_OK);
    assert_true(n == (1 << 20) - 1);
    assert_int_equal(read_numbers("2^0+1", "1", "1ns", &n, &share, &every_s), PNR_OK);
    assert_true(n == 2);
    assert_int_equal(read_numbers("1", "1", "2 ms", &n, &share, &every_s), PNR_OK);
    assert_true(every_s == 2e-3);
    for (size_t i = 0; i < sizeof no_count / sizeof no_count[0]; i++)
        assert_int_equal(read_numbers(no_count[i], "1", "1s", &n, &share, &every_s), PNR_EUSAGE);
    for (size_t i = 0; i < sizeof no_number / sizeof no_number[0]; i++)
        assert_int_equal(read_numbers("1", no_number[i], "1s", &n, &share, &every_s), PNR_EUSAGE);
    for (size_t i = 0; i < sizeof no_time / sizeof no_time[0]; i++)
        assert_int_equal(read_numbers("1", "1", no_time[i], &n, &share, &every_s), PNR_EUSAGE);
}

/* A number takes its unit, and a time its prefixes. */
TEST(numbers_with_units)
{
    static const struct {
        const char *option, *text;
        double value; /* 0: refused */
    } cases[] = {
        {"--timeout", "10", 10},
        {"--timeout", "1s", 1},
        {"--timeout", "1.5 s", 1.5},
        {"--timeout", "500ms", 0.5},
        {"--timeout", "1 \xce\xbcs", 1e-6},
        {"--timeout", "1 min", 0},
        {"--timeout", "1 dB", 0},
        {"--range-db", "40", 40},
        {"--range-db", "40dB", 40},
        {"--range-db", "40 dB", 40},
        {"--range-db", "40 s", 0},
        {"--range-db", "40 mdB", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double number = 0;
        const pnr_cli_option options[] = {
            {"timeout", "S", "", .number = &number, .unit = "s", .min = 1e-6, .max = 100},
            {"range-db", "DB", "", .number = &number, .unit = "dB", .min = 1, .max = 100},
            {0}};
        const char *argv[] = {"p", cases[i].option, cases[i].text};
        pnr_cli cli = {.program = "p", .options = options};
        pnr_config config;
        pnr_error error = {0};
        const int code = pnr_cli_parse(&cli, 3, (char **)(uintptr_t)argv, &config, &error);

        pnr_config_clear(&config);
        assert_int_equal(code, cases[i].value > 0 ? PNR_OK : PNR_EUSAGE);
        assert_true(code != PNR_OK || number == cases[i].value);
    }
}

TEST(a_wrong_word_wins_over_help)
{
    REFUSED(PNR_EUSAGE, "'--nothing'", "--help", "--nothing");
}

TEST(no_operands_where_none_are_taken)
{
    const char *argv[] = {"pnradar-plan", "x"};
    pnr_cli cli = {.program = "pnradar-plan"};
    pnr_config config;
    pnr_error error;

    assert_int_equal(pnr_cli_parse(&cli, 2, (char **)(uintptr_t)argv, &config, &error), PNR_EUSAGE);
    assert_string_equal(error.text, "unexpected operand 'x'");
    pnr_config_clear(&config);
    assert_int_equal(pnr_cli_parse(&cli, 2, (char **)(uintptr_t)argv, &config, NULL), PNR_EUSAGE);
    pnr_config_clear(&config);
    /* Not even its own name. */
    assert_int_equal(pnr_cli_parse(&cli, 0, (char **)(uintptr_t)(argv + 2), &config, &error),
                     PNR_OK);
    pnr_config_clear(&config);
}

TEST(never_more_operands_than_places)
{
    const char *argv[] = {"p", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    pnr_cli cli = {.program = "p", .max_operands = 100};
    pnr_config config;
    pnr_error error;

    assert_int_equal(pnr_cli_parse(&cli, 9, (char **)(uintptr_t)argv, &config, &error), PNR_OK);
    assert_int_equal(cli.n_operands, 8);
    assert_string_equal(cli.operands[7], "8");
    pnr_config_clear(&config);
    /* The second reading starts from nothing. */
    assert_int_equal(pnr_cli_parse(&cli, 10, (char **)(uintptr_t)argv, &config, &error),
                     PNR_EUSAGE);
    assert_string_equal(error.text, "one operand too many: '9'");
    pnr_config_clear(&config);
}

TEST(configurations_that_are_refused)
{
    char bad[] = P_tmpdir "/test_cli.XXXXXX";

    write_file(bad, "[dwell]\nperiodes = 7\n");
    REFUSED(PNR_ECONFIG, "periodes", "-c", bad);
    REFUSED(PNR_ECONFIG, "periodes", "-s", "dwell.periodes=3");
    REFUSED(PNR_ECONFIG, "dwell.periods", "-s", "dwell.periods");
    REFUSED(PNR_ECONFIG, "", "-s", "");
    unlink(bad);
    REFUSED(PNR_ENOINPUT, bad, "-c", bad);
    REFUSED(PNR_ECONFIG, "/", "-c", "/");
    /* Without a good configuration there is none to print. */
    REFUSED(PNR_ECONFIG, "periodes", "--print-config", "-s", "dwell.periodes=3");
}

TEST(help_says_everything)
{
    session *s = begin();

    /* Help is printed even if the configuration is bad. */
    RUN(s, "-c", "/does/not/exist", "-s", "no.such=key", "--help");
    assert_int_equal(s->code, PNR_EEND);
    assert_memory_equal(s->output, "Usage: pnradar-echo [OPTION]... [OUTPUT]\n", 41);
    assert_non_null(strstr(s->output, "\nMakes echoes.\n"));
    assert_non_null(strstr(s->output, "--truth FILE "));
    assert_non_null(strstr(s->output, "-c, --config FILE "));
    assert_non_null(strstr(s->output, "-s, --set SECTION.KEY=VALUE "));
    assert_non_null(strstr(s->output, "--print-config "));
    assert_non_null(strstr(s->output, "--version "));
    assert_non_null(strstr(s->output, "pnradar.conf(5)"));
    assert_non_null(strstr(s->output, "\nExamples:\n  pnradar-echo one.sc16\n"
                                      "  pnradar-echo --transmit two.wav\n"));
    for (const pnr_section *section = pnr_config_sections; section->name; section++) {
        char label[64];
        snprintf(label, sizeof label, "\n  [%s", section->name);
        if (!strstr(s->output, label))
            fail_msg("no section %s", section->name);
    }
    for (size_t i = 0; i < pnr_config_n_keys; i++)
        if (!strstr(s->output, pnr_config_keys[i].name))
            fail_msg("no key %s", pnr_config_keys[i].name);
    end(s);
}

TEST(help_is_aligned_and_narrow)
{
    session *s = begin();
    const char *column = NULL;
    long at = -1;

    RUN(s, "--help");
    static const char *const sentences[] = {"Write the true", "Write the waveform", "Read this",
                                            "Set one key", "Print this help"};
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        column = strstr(s->output, sentences[i]);
        assert_non_null(column);
        const char *line = column;
        while (line[-1] != '\n')
            line--;
        assert_true(at < 0 || column - line == at);
        at = column - line;
    }
    for (const char *line = s->output; *line;) {
        size_t length = strcspn(line, "\n");
        assert_in_range(length, 0, 88);
        assert_true(length == 0 || line[length - 1] != ' ');
        line += length + 1;
    }
    end(s);
}

TEST(letters_of_help_and_version)
{
    session *s = begin();

    RUN(s, "-h");
    assert_int_equal(s->code, PNR_EEND);
    assert_memory_equal(s->output, "Usage: pnradar-echo ", 20);
    assert_non_null(strstr(s->output, "\n  -h, --help "));
    end(s);
    s = begin();
    RUN(s, "-V");
    assert_int_equal(s->code, PNR_EEND);
    assert_string_equal(s->output, "pnradar-echo " PNR_VERSION "\n");
    end(s);
    REFUSED(PNR_EUSAGE, "'--help' takes no argument, got 'V'", "-hV");
}

TEST(version_and_configuration)
{
    session *s = begin();

    RUN(s, "--version", "-c", "/does/not/exist");
    assert_int_equal(s->code, PNR_EEND);
    assert_string_equal(s->output, "pnradar-echo " PNR_VERSION "\n");
    end(s);

    s = begin();
    RUN(s, "--print-config", "-s", "dwell.periods=9", "-s", "stream.name=again");
    assert_int_equal(s->code, PNR_EEND);
    pnr_config back;
    pnr_error error;
    pnr_config_init(&back);
    assert_int_equal(pnr_config_parse(&back, s->output, strlen(s->output), "printed", &error),
                     PNR_OK);
    assert_int_equal(back.dwell.periods, 9);
    assert_string_equal(back.stream.name, "again");
    pnr_config_clear(&back);
    end(s);
}

/* Runs in a child, whose stdout is a full disk. */
TEST(a_full_disk_is_an_error)
{
    int status;

    if (access("/dev/full", W_OK) != 0)
        skip();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const char *argv[] = {"p", "--help"};
        pnr_cli cli = {.program = "p"};
        pnr_config config;
        pnr_error error;
        if (!freopen("/dev/full", "w", stdout))
            _exit(1);
        int code = pnr_cli_parse(&cli, 2, (char **)(uintptr_t)argv, &config, &error);
        _exit(code == PNR_EIO && strstr(error.text, strerror(ENOSPC)) ? 42 : 2);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static int fail_with(int code, const char *text, char *printed, size_t size)
{
    pnr_error error = {.code = code};
    FILE *file;

    snprintf(error.text, sizeof error.text, "%s", text);
    int saved = divert(STDERR_FILENO, &file);
    int status = pnr_cli_fail(&error);
    restore(STDERR_FILENO, saved, file, printed, size);
    return status;
}

TEST(fail_prints_and_gives_the_status)
{
    char printed[1024];

    setenv("PNR_LOG", "quiet", 1);
    program_invocation_short_name = (char *)(uintptr_t) "pnradar";
    assert_int_equal(fail_with(PNR_ECONFIG, "a.conf:3: no", printed, sizeof printed), 78);
    assert_string_equal(printed, "pnradar: error: a.conf:3: no\n");
    assert_int_equal(fail_with(PNR_EUSAGE, "unknown option '-x'", printed, sizeof printed), 64);
    assert_string_equal(printed, "pnradar: error: unknown option '-x' (try --help)\n");
    assert_int_equal(fail_with(PNR_ENOINPUT, "100%s", printed, sizeof printed), 66);
    assert_string_equal(printed, "pnradar: error: 100%s\n");
    assert_int_equal(fail_with(PNR_ELOST, "", printed, sizeof printed), 75);
    assert_string_equal(printed, "pnradar: error: the GPU is lost: restart the program\n");
    assert_int_equal(fail_with(PNR_EEND, "nothing more to do", printed, sizeof printed), 0);
    assert_string_equal(printed, "");
    assert_int_equal(fail_with(PNR_OK, "", printed, sizeof printed), 0);
    assert_string_equal(printed, "");
}

/* The child raises `first` and `second`. Returns its exit status, or -1. */
static int status_after(int first, int second)
{
    int status;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pnr_cli_catch_signals();
        if (pnr_stop != 0)
            _exit(1);
        raise(first);
        if (pnr_stop != (first != SIGPIPE))
            _exit(2);
        if (second)
            raise(second);
        _exit(42);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

TEST(signals)
{
    assert_int_equal(status_after(SIGINT, 0), 42);
    assert_int_equal(status_after(SIGTERM, 0), 42);
    assert_int_equal(status_after(SIGPIPE, SIGPIPE), 42);
    assert_int_equal(status_after(SIGINT, SIGINT), 128 + SIGINT);
    assert_int_equal(status_after(SIGTERM, SIGINT), 128 + SIGINT);
    assert_int_equal(status_after(SIGINT, SIGTERM), 128 + SIGTERM);
    assert_int_equal(status_after(SIGPIPE, SIGINT), 42);
}

/* In a child process, so that the signals of the other tests do not change. */
TEST(a_signal_interrupts_a_read)
{
    int status;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct sigaction on_int, on_term;
        pnr_cli_catch_signals();
        sigaction(SIGINT, NULL, &on_int);
        sigaction(SIGTERM, NULL, &on_term);
        _exit(((on_int.sa_flags | on_term.sa_flags) & SA_RESTART) == 0 ? 42 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}
