/* SPDX-License-Identifier: MIT */
/* The command line that all five programs share: options, help, settings, signals. */
#include "cli.h"

#include "base/log.h"
#include "config/keys.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_WIDTH = 88, MAX_OPERANDS = sizeof((pnr_cli *)0)->operands / sizeof(char *) };

volatile int pnr_stop;

/* --- options --- */

typedef enum {
    COMMON_CONFIG,
    COMMON_SET,
    COMMON_PRINT,
    COMMON_STRICT,
    COMMON_HELP,
    COMMON_VERSION,
    COMMON_COUNT
} common_id;

typedef struct common_option {
    char letter; /* '\0': none */
    const char *name;
    const char *argument;
    const char *help;
} common_option;

static const common_option common[COMMON_COUNT] = {
    [COMMON_CONFIG] = {'c', "config", "FILE", "Read this configuration; may be repeated."},
    [COMMON_SET] = {'s', "set", "SECTION.KEY=VALUE",
                    "Set one key, after all files; may be repeated."},
    [COMMON_PRINT] = {'\0', "print-config", NULL, "Print the whole configuration and exit."},
    [COMMON_STRICT] = {'\0', "strict", NULL, "Exit with status 3 when anything was lost."},
    [COMMON_HELP] = {'\0', "help", NULL, "Print this help and exit."},
    [COMMON_VERSION] = {'\0', "version", NULL, "Print the version and exit."},
};

/* Where the reading of the command line stands. */
typedef struct reading {
    pnr_cli *cli;
    int argc;
    char **argv;
    int next;
    const char **files;    /* [n_files], in order */
    const char **settings; /* [n_settings] */
    int n_files, n_settings;
    bool is_set[COMMON_COUNT];
    pnr_error *error;
} reading;

static bool is_named(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && strncmp(name, text, length) == 0;
}

static void consider(const char *name, const char *wrong, const char **best, size_t *distance)
{
    size_t d = pnr_name_distance(name, wrong);

    if (d < *distance) {
        *best = name;
        *distance = d;
    }
}

static int refuse_unknown(reading *r, const char *argument)
{
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    char wrong[64];
    const char *name = argument + strspn(argument, "-");

    snprintf(wrong, sizeof wrong, "%.*s", (int)strcspn(name, "="), name);
    for (const pnr_cli_option *o = r->cli->options; o && o->name; o++)
        consider(o->name, wrong, &best, &distance);
    for (int i = 0; i < COMMON_COUNT; i++)
        consider(common[i].name, wrong, &best, &distance);
    return pnr_error_set(r->error, PNR_EUSAGE, "unknown option '%s': the nearest is '--%s'",
                         argument, best);
}

/* The argument of an option: behind '=' (or the letter), else the next word. NULL: there is none */
static const char *take_argument(reading *r, const char *attached)
{
    if (attached)
        return attached;
    return r->next < r->argc ? r->argv[r->next++] : NULL;
}

static int take_common(reading *r, common_id id, const char *attached)
{
    const char *argument = NULL;

    if (common[id].argument && !(argument = take_argument(r, attached)))
        return pnr_error_set(r->error, PNR_EUSAGE, "option '--%s' needs an argument: %s",
                             common[id].name, common[id].argument);
    if (!common[id].argument && attached)
        return pnr_error_set(r->error, PNR_EUSAGE, "option '--%s' takes no argument, got '%s'",
                             common[id].name, attached);
    r->is_set[id] = true;
    if (id == COMMON_CONFIG)
        r->files[r->n_files++] = argument;
    if (id == COMMON_SET)
        r->settings[r->n_settings++] = argument;
    return PNR_OK;
}

static int take_own(reading *r, const pnr_cli_option *option, const char *attached)
{
    const char *argument = option->name;

    if (option->argument && !(argument = take_argument(r, attached)))
        return pnr_error_set(r->error, PNR_EUSAGE, "option '--%s' needs an argument: %s",
                             option->name, option->argument);
    if (!option->argument && attached)
        return pnr_error_set(r->error, PNR_EUSAGE, "option '--%s' takes no argument, got '%s'",
                             option->name, attached);
    *option->value = argument;
    return PNR_OK;
}

static int take_long(reading *r, const char *word)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const char *attached = equals ? equals + 1 : NULL;

    for (const pnr_cli_option *o = r->cli->options; o && o->name; o++)
        if (is_named(o->name, name, length))
            return take_own(r, o, attached);
    for (int i = 0; i < COMMON_COUNT; i++)
        if (is_named(common[i].name, name, length))
            return take_common(r, (common_id)i, attached);
    return refuse_unknown(r, word);
}

/* "-c FILE" and "-cFILE": every letter of ours takes an argument, so letters are never joined. */
static int take_short(reading *r, const char *word)
{
    for (int i = 0; i < COMMON_COUNT; i++)
        if (common[i].letter && common[i].letter == word[1])
            return take_common(r, (common_id)i, word[2] ? word + 2 : NULL);
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
        else if (word[1] == '-')
            code = take_long(r, word);
        else
            code = take_short(r, word);
    }
    return code;
}

/* --- help --- */

/* Prints text in lines of at most TEXT_WIDTH, from column `at` on, the next lines indented. A
 * single word that is longer stays whole. */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
    bool is_first = true;

    for (;;) {
        text += strspn(text, " \n");
        size_t word = strcspn(text, " \n");
        if (word == 0)
            break;
        if (!is_first && at + 1 + word > TEXT_WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (!is_first) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text);
        at += word;
        text += word;
        is_first = false;
    }
    putchar('\n');
}

/* "  -c, --config FILE" */
static void option_label(char letter, const char *name, const char *argument, char *out,
                         size_t size)
{
    char start[] = {' ', ' ', letter ? '-' : ' ', letter ? letter : ' ', letter ? ',' : ' ', '\0'};

    snprintf(out, size, "%s --%s%s%s", start, name, argument ? " " : "", argument ? argument : "");
}

static void print_option(char letter, const char *name, const char *argument, const char *help,
                         size_t column)
{
    char label[128];

    option_label(letter, name, argument, label, sizeof label);
    printf("%-*s  ", (int)column, label);
    print_wrapped(help, column + 2, column + 2);
}

static size_t widest_label(const pnr_cli *cli)
{
    char label[128];
    size_t widest = 0;

    for (const pnr_cli_option *o = cli->options; o && o->name; o++) {
        option_label('\0', o->name, o->argument, label, sizeof label);
        widest = strlen(label) > widest ? strlen(label) : widest;
    }
    for (int i = 0; i < COMMON_COUNT; i++) {
        option_label(common[i].letter, common[i].name, common[i].argument, label, sizeof label);
        widest = strlen(label) > widest ? strlen(label) : widest;
    }
    return widest;
}

/* "  [dwell]     How many periods make one result." and its keys below. */
static void print_section(const pnr_section *section)
{
    const size_t column = 14;
    char label[64], *keys;
    size_t length;
    FILE *list = open_memstream(&keys, &length);

    snprintf(label, sizeof label, "  [%s]", section->name);
    printf("%-*s", (int)column, label);
    print_wrapped(section->help, column, column);
    if (!list)
        return;
    for (size_t i = 0; i < pnr_config_n_keys; i++)
        if (strcmp(pnr_config_keys[i].section, section->name) == 0)
            fprintf(list, " %s", pnr_config_keys[i].name);
    if (fclose(list) == 0) {
        printf("%*s", (int)column, "");
        print_wrapped(keys, column, column);
    }
    free(keys);
}

static void print_help(const pnr_cli *cli)
{
    size_t column = widest_label(cli);

    printf("Usage: %s %s\n", cli->program, cli->usage ? cli->usage : "");
    if (cli->summary) {
        putchar('\n');
        print_wrapped(cli->summary, 0, 0);
    }
    if (cli->options && cli->options->name)
        printf("\nOptions:\n");
    for (const pnr_cli_option *o = cli->options; o && o->name; o++)
        print_option('\0', o->name, o->argument, o->help, column);
    printf("\nCommon options:\n");
    for (int i = 0; i < COMMON_COUNT; i++)
        print_option(common[i].letter, common[i].name, common[i].argument, common[i].help, column);

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

/* --- the whole --- */

/* What was asked for is on stdout, or the disk is full and somebody should know. */
static int finish_printing(pnr_error *error)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return pnr_error_set(error, PNR_EIO, "standard output: %m");
    return pnr_error_set(error, PNR_EEND, "nothing more to do");
}

static int apply(reading *r, pnr_config *config)
{
    int code = PNR_OK;

    if (r->is_set[COMMON_HELP]) {
        print_help(r->cli);
        return finish_printing(r->error);
    }
    if (r->is_set[COMMON_VERSION]) {
        printf("%s %s\n", r->cli->program, PNR_VERSION);
        return finish_printing(r->error);
    }
    for (int i = 0; code == PNR_OK && i < r->n_files; i++)
        code = pnr_config_read(config, r->files[i], r->error);
    for (int i = 0; code == PNR_OK && i < r->n_settings; i++)
        code = pnr_config_set(config, r->settings[i], r->error);
    if (code == PNR_OK && r->is_set[COMMON_PRINT]) {
        pnr_config_print(config, stdout);
        code = finish_printing(r->error);
    }
    r->cli->strict = r->is_set[COMMON_STRICT];
    return code;
}

int pnr_cli_parse(pnr_cli *cli, int argc, char **argv, pnr_config *config, pnr_error *error)
{
    size_t n = argc > 0 ? (size_t)argc : 1;
    reading r = {.cli = cli, .argc = argc, .argv = argv, .next = 1, .error = error};
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
        code = apply(&r, config);
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
    struct sigaction action = {.sa_handler = note_signal};

    /* Without SA_RESTART: a read that waits comes back and sees the flag. */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}
