/* SPDX-License-Identifier: MIT */
/* The command line that all programs share: options, help, settings, signals. */
#include "cli.h"

#include "base/log.h"
#include "config/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXT_WIDTH = 88,
    LABEL_LEN = 128,
    MAX_OPERANDS = sizeof((pnr_cli *)0)->operands / sizeof(char *)
};

volatile int pnr_stop, pnr_trigger_signal, pnr_reload_signal;

/* --- options --- */

enum { N_COMMON = 6 };

/* The state of the parser of the command line. */
typedef struct reading {
    pnr_cli *cli;
    int argc;
    char **argv;
    int next;
    const char **files;    /* [n_files] arguments of -c, in order */
    const char **settings; /* [n_settings] arguments of -s, in order */
    int n_files, n_settings;
    bool prints, helps, tells_version;
    pnr_cli_option common[N_COMMON]; /* the first two store their arguments in files and settings */
    pnr_error *error;
} reading;

/* Returns option i. The common options follow the options of the program. NULL: there is no option
 * i. */
static const pnr_cli_option *get_option(const reading *r, int i)
{
    for (const pnr_cli_option *o = r->cli->options; o && o->name; o++)
        if (i-- == 0)
            return o;
    return i < N_COMMON ? &r->common[i] : NULL;
}

static int refuse_unknown(reading *r, const char *argument)
{
    const char *name = argument + strspn(argument, "-"), *best = NULL;
    size_t least = SIZE_MAX;
    char wrong[64];
    const pnr_cli_option *o;

    snprintf(wrong, sizeof wrong, "%.*s", (int)strcspn(name, "="), name);
    for (int i = 0; (o = get_option(r, i)) != NULL; i++) {
        const size_t distance = pnr_name_distance(o->name, wrong);

        if (distance < least) {
            best = o->name;
            least = distance;
        }
    }
    if (best == NULL || !pnr_name_is_near(wrong, best))
        return pnr_error_set(r->error, PNR_EUSAGE, "unknown option '%s'", argument);
    return pnr_error_set(r->error, PNR_EUSAGE, "unknown option '%s': the nearest is '--%s'",
                         argument, best);
}

/* --- numbers --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t read_digits(const char *text, const char **end)
{
    char *after = (char *)(uintptr_t)text;
    const size_t value = is_digit(*text) ? strtoull(text, &after, 10) : 0;

    *end = after;
    return value;
}

size_t pnr_cli_read_count(const char *text, const char **end)
{
    size_t value = read_digits(text, end), more;
    const char *at = *end;

    if (value != 2 || *at != '^' || !is_digit(at[1]))
        return value;
    more = read_digits(at + 1, end);
    if (more >= 64)
        return 0;
    value = (size_t)1 << more;
    at = *end;
    if ((*at == '-' || *at == '+') && is_digit(at[1])) {
        more = read_digits(at + 1, end);
        value = *at == '-' ? value - more : value + more;
    }
    return value;
}

/* Returns the length of a unit of time in seconds, such as 1e-3 for "ms". NAN: the unit is
 * unknown. */
static double seconds_of(const char *unit)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"ns", 1e-9},        {"us", 1e-6}, {"\xc2\xb5s", 1e-6},
                 {"\xce\xbcs", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0)
            return units[i].seconds;
    return NAN;
}

/* Returns the factor of a number whose unit is `unit`, with the text after the number: 1 for
 * nothing and for the unit itself, 1e-3 for "ms" if the unit is s. NAN: another text. */
static double factor_of(const char *unit, const char *text)
{
    if (*text == '\0')
        return 1;
    if (unit == NULL)
        return NAN;
    return strcmp(unit, "s") == 0 ? seconds_of(text) : strcmp(unit, text) == 0 ? 1 : NAN;
}

/* Reads and stores the number that is the argument of an option. Returns it. NAN: the text is not
 * such a number. */
static double read_number(const pnr_cli_option *o, const char *text)
{
    const size_t length = strspn(text, "0123456789.");
    const char *end;
    char *after;
    double value;

    if (o->count) {
        *o->count = pnr_cli_read_count(text, &end);
        return end > text && *end == '\0' ? (double)*o->count : NAN;
    }
    value = strtod(text, &after);
    if (length == 0 || after != text + length)
        return NAN;
    after += strspn(after, " ");
    if (o->seconds)
        return *o->seconds = value * seconds_of(after);
    return *o->number = value * factor_of(o->unit, after);
}

static int take_number(const pnr_cli_option *o, const char *text, pnr_error *error)
{
    const double value = read_number(o, text);
    const char *what = o->count     ? "a whole number"
                       : o->seconds ? "a time"
                       : o->unit    ? "a number"
                                    : "a number without a unit";
    const int digits = o->count ? 16 : 10; /* those of 2^53 */

    if (value >= o->min && value <= o->max)
        return PNR_OK;
    return pnr_error_set(error, PNR_EUSAGE, "--%s %s: want %s, %.*g to %.*g%s%s", o->name, text,
                         what, digits, o->min, digits, o->max,
                         o->seconds ? " s, with its unit: 100us, 62ms, 1s"
                         : o->unit  ? ", alone or in "
                                    : "",
                         o->unit ? o->unit : "");
}

/* --- words --- */

/* Stores an option. attached: the text after '=' or after the letter. If `attached` is NULL, the
 * argument of the option is the next word. */
static int take_option(reading *r, const pnr_cli_option *o, const char *attached)
{
    const char *argument = attached;

    if (!o->argument && attached)
        return pnr_error_set(r->error, PNR_EUSAGE, "option '--%s' takes no argument, got '%s'",
                             o->name, attached);
    if (o->argument && !attached) {
        if (r->next >= r->argc)
            return pnr_error_set(r->error, PNR_EUSAGE, "option '--%s' needs an argument: %s",
                                 o->name, o->argument);
        argument = r->argv[r->next++];
    }
    if (o->value)
        *o->value = argument;
    else if (o->flag)
        *o->flag = true;
    else if (o == &r->common[0])
        r->files[r->n_files++] = argument;
    else if (o == &r->common[1])
        r->settings[r->n_settings++] = argument;
    else
        return take_number(o, argument, r->error);
    return PNR_OK;
}

/* Reads an option: "--name", "--name=ARGUMENT", "-h", "-c FILE" or "-cFILE". One-letter options
 * cannot be joined: "-hV" is an error. */
static int read_option(reading *r, const char *word)
{
    const bool is_long = word[1] == '-';
    const size_t length = strcspn(word, "=");
    const char *attached = is_long ? word + length + 1 : word + 2;
    const pnr_cli_option *o;

    if (is_long ? word[length] == '\0' : word[2] == '\0')
        attached = NULL;
    for (int i = 0; (o = get_option(r, i)) != NULL; i++) {
        const bool is_named =
            strlen(o->name) == length - 2 && memcmp(word + 2, o->name, length - 2) == 0;

        if (is_long ? is_named : o->letter == word[1])
            return take_option(r, o, attached);
    }
    return refuse_unknown(r, word);
}

static int take_operand(reading *r, const char *word)
{
    pnr_cli *cli = r->cli;
    int most = cli->max_operands < MAX_OPERANDS ? cli->max_operands : MAX_OPERANDS;

    if (cli->n_operands >= most)
        return pnr_error_set(r->error, PNR_EUSAGE,
                             most == 0 ? "unexpected operand '%s'" : "one operand too many: '%s'",
                             word);
    cli->operands[cli->n_operands++] = word;
    return PNR_OK;
}

static int read_words(reading *r)
{
    bool options_ended = false;
    int code = PNR_OK;

    while (code == PNR_OK && r->next < r->argc) {
        const char *word = r->argv[r->next++];

        if (options_ended || word[0] != '-' || word[1] == '\0')
            code = take_operand(r, word);
        else if (strcmp(word, "--") == 0)
            options_ended = true;
        else
            code = read_option(r, word);
    }
    return code;
}

/* --- help --- */

/* Prints the words of a text from column `at` on. Lines have at most TEXT_WIDTH characters, and
 * begin at column `indent`. A word longer than a line is not broken. Returns the column after the
 * last word. */
static size_t print_words(const char *text, size_t at, size_t indent)
{
    for (;;) {
        text += strspn(text, " \n");
        size_t word = strcspn(text, " \n");
        if (word == 0)
            return at;
        if (at > indent && at + 1 + word > TEXT_WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text);
        at += word;
        text += word;
    }
}

/* Prints a text. All its lines begin at this column. */
static void print_text(const char *text, size_t column)
{
    print_words(text, column, column);
    putchar('\n');
}

/* Writes the label of an option, such as "  -c, --config FILE". */
static void option_label(const pnr_cli_option *o, char out[LABEL_LEN])
{
    const char c = o->letter;
    const char start[] = {' ', ' ', c ? '-' : ' ', c ? c : ' ', c ? ',' : ' ', '\0'};

    snprintf(out, LABEL_LEN, "%s --%s%s%s", start, o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
}

static void print_options(const reading *r)
{
    size_t column = 0;
    char label[LABEL_LEN];
    const pnr_cli_option *o;

    for (int i = 0; (o = get_option(r, i)) != NULL; i++) {
        option_label(o, label);
        column = strlen(label) > column ? strlen(label) : column;
    }
    for (int i = 0; (o = get_option(r, i)) != NULL; i++) {
        if (i == 0 && o != r->common)
            printf("\nOptions:\n");
        if (o == r->common)
            printf("\nCommon options:\n");
        option_label(o, label);
        printf("%-*s  ", (int)column, label);
        print_text(o->help, column + 2);
    }
}

/* Prints a section: its name and its sentence in a line such as " [dwell] The combination of
 * periods into one result.", then its keys. */
static void print_section(const pnr_section *section)
{
    const size_t column = 14;
    size_t at = column;
    char label[64];

    snprintf(label, sizeof label, "  [%s]", section->name);
    printf("%-*s", (int)column, label);
    print_text(section->help, column);
    printf("%*s", (int)column, "");
    for (const pnr_key *key = NULL; (key = pnr_key_next(section->name, key)) != NULL;)
        at = print_words(key->name, at, column);
    putchar('\n');
}

static void print_help(const reading *r)
{
    const pnr_cli *cli = r->cli;

    printf("Usage: %s %s\n", cli->program, cli->usage ? cli->usage : "");
    if (cli->summary) {
        putchar('\n');
        print_text(cli->summary, 0);
    }
    print_options(r);
    printf("\nConfiguration, every key explained in pnradar.conf(5):\n");
    for (const pnr_section *s = pnr_config_sections; s->name; s++)
        print_section(s);
    if (!cli->examples)
        return;
    printf("\nExamples:\n");
    for (const char *line = cli->examples; *line;) {
        size_t length = strcspn(line, "\n");

        printf("  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

/* --- parse --- */

/* Returns PNR_EEND, or PNR_EIO if the output could not be written, as on a full disk. */
static int finish_printing(pnr_error *error)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return pnr_error_set(error, PNR_EIO, "standard output: %m");
    return pnr_error_set(error, PNR_EEND, "nothing more to do");
}

static int apply_options(reading *r, pnr_config *config)
{
    int code = PNR_OK;

    if (r->helps || (r->cli->helps_alone && r->argc <= 1)) {
        print_help(r);
        return finish_printing(r->error);
    }
    if (r->tells_version) {
        printf("%s %s\n", r->cli->program, PNR_VERSION);
        return finish_printing(r->error);
    }
    code = pnr_log_check(r->error);
    for (int i = 0; code == PNR_OK && i < r->n_files; i++)
        code = pnr_config_read(config, r->files[i], r->error);
    for (int i = 0; code == PNR_OK && i < r->n_settings; i++)
        code = pnr_config_set(config, r->settings[i], r->error);
    if (code == PNR_OK && r->prints) {
        pnr_config_print(config, stdout);
        code = finish_printing(r->error);
    }
    return code;
}

int pnr_cli_parse(pnr_cli *cli, int argc, char **argv, pnr_config *config, pnr_error *error)
{
    size_t n = argc > 0 ? (size_t)argc : 1;
    reading r = {
        .cli = cli,
        .argc = argc,
        .argv = argv,
        .next = 1,
        .common = {{"config", "FILE", "Read this configuration; may be repeated.", .letter = 'c'},
                   {"set", "SECTION.KEY=VALUE", "Set one key, after all files; may be repeated.",
                    .letter = 's'},
                   {"print-config", NULL, "Print the whole configuration and exit.",
                    .flag = &r.prints},
                   {"strict", NULL, "Exit with status 3 when anything was lost.",
                    .flag = &cli->strict},
                   {"help", NULL, "Print this help and exit.", .flag = &r.helps, .letter = 'h'},
                   {"version", NULL, "Print the version and exit.", .flag = &r.tells_version,
                    .letter = 'V'}},
        .error = error};
    int code;

    pnr_config_init(config);
    memset(cli->operands, 0, sizeof cli->operands);
    cli->n_operands = 0;
    cli->strict = false;

    const char **words = calloc(2 * n, sizeof *words);
    if (!words)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu arguments", n);
    r.files = words;
    r.settings = words + n;
    code = read_words(&r);
    if (code == PNR_OK)
        code = apply_options(&r, config);
    free(words);
    return code;
}

int pnr_cli_fail(const pnr_error *error)
{
    if (error->code != PNR_OK && error->code != PNR_EEND)
        pnr_log(PNR_LOG_ERROR, "%s%s", error->text[0] ? error->text : pnr_error_text(error->code),
                error->code == PNR_EUSAGE ? " (try --help)" : "");
    return pnr_error_exit(error->code);
}

static void note_signal(int number)
{
    if (__atomic_exchange_n(&pnr_stop, 1, __ATOMIC_SEQ_CST) != 0)
        _exit(128 + number);
}

void pnr_cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal}, before;

    /* Without SA_RESTART a signal ends a blocking read. The caller of this read then checks
     * pnr_stop. */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* SIGHUP means that the terminal is closed. nohup sets SIG_IGN, so that the program
     * continues. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

static void note_trigger(int number)
{
    (void)number;
    __atomic_store_n(&pnr_trigger_signal, 1, __ATOMIC_RELAXED);
}

void pnr_cli_catch_trigger(void)
{
    struct sigaction action = {.sa_handler = note_trigger, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

/* True if this process has a terminal. A terminal sends SIGHUP when it is closed. */
static bool has_terminal(void)
{
    const int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool had_terminal; /* set before the handler is installed */

static void note_reload(int number)
{
    const int reason = errno;

    if (had_terminal && !has_terminal())
        note_signal(number);
    else
        __atomic_store_n(&pnr_reload_signal, 1, __ATOMIC_RELAXED);
    errno = reason;
}

void pnr_cli_catch_reload(void)
{
    struct sigaction action = {.sa_handler = note_reload, .sa_flags = SA_RESTART}, before;

    had_terminal = has_terminal();
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}
