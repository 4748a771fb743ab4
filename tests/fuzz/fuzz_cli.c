/* SPDX-License-Identifier: MIT */
/* libFuzzer: any command line, its words separated by line feeds. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MOST = 24 };

/* Splits a copy of the bytes. Returns the number of words. */
static int split_words(char *text, char *words[MOST + 1])
{
    int n = 0;

    words[n++] = text;
    for (char *at = text; n < MOST && (at = strchr(at, '\n')) != NULL;) {
        *at++ = '\0';
        words[n++] = at;
    }
    words[n] = NULL;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    const char *value = NULL;
    bool flag = false;
    size_t count = 7;
    double number = 0.5, seconds = 0.5;
    const pnr_cli_option options[] = {
        {"print", "table|json|csv", "a value", .value = &value},
        {"quiet", NULL, "a flag", .flag = &flag, .letter = 'q'},
        {"count", "N", "a count", .count = &count, .min = 1, .max = 1e6, .letter = 'n'},
        {"pfa", "P", "a number", .number = &number, .min = 0, .max = 1},
        {"budget", "TIME", "a time", .seconds = &seconds, .min = 1e-9, .max = 1e3},
        {0},
    };
    pnr_cli cli = {.program = "pnradar",
                   .usage = "[OPTION]... [INPUT]",
                   .summary = "Fuzzing.",
                   .examples = "pnradar\n",
                   .options = options,
                   .max_operands = 2};
    char *words[MOST + 1], *text = malloc(n_bytes + 1);
    static FILE *nowhere;
    pnr_config config;
    pnr_error error = {0};

    if (nowhere == NULL && (nowhere = freopen("/dev/null", "w", stdout)) == NULL)
        abort();
    memcpy(text, data, n_bytes);
    text[n_bytes] = '\0';

    const int code = pnr_cli_parse(&cli, split_words(text, words), words, &config, &error);

    if (code != PNR_OK && code != PNR_EEND && (error.code != code || error.text[0] == '\0'))
        abort();
    if (strchr(error.text, '\n') != NULL)
        abort();
    if (code == PNR_OK && (cli.n_operands > 2 || count < 1 || count > 1000000 ||
                           !(number >= 0 && number <= 1) || !(seconds >= 1e-9 && seconds <= 1e3)))
        abort();
    pnr_config_clear(&config);
    free(text);
    return 0;
}
