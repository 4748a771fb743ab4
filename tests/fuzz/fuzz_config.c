/* SPDX-License-Identifier: MIT */
/* Fuzzing of the configuration: every accepted text prints, and the print reads back to the
 * same. */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print_of(const pnr_config *config)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        abort();
    pnr_config_print(config, stream);
    fclose(stream);
    return text;
}

/* Returns the defaults. To set them takes longer than to read most inputs. */
static const pnr_config *initial(void)
{
    static pnr_config config;

    if (config.stream.name[0] == '\0')
        pnr_config_init(&config);
    return &config;
}

/* A refusal says why, in one line. */
static void expect_reason(int code, const pnr_error *error)
{
    if (code != error->code || code == PNR_EINTERNAL || !error->text[0] ||
        strchr(error->text, '\n'))
        abort();
}

/* Does not print a configuration without a change: the print takes nine tenths of the time. */
static void expect_round_trip(const pnr_config *config)
{
    pnr_error error = {0};
    pnr_config again;

    if (memcmp(config, initial(), sizeof *config) == 0)
        return;

    char *first = print_of(config), *second;

    again = *initial();
    if (pnr_config_parse(&again, first, strlen(first), "print", &error) != PNR_OK)
        abort();
    second = print_of(&again);
    if (strcmp(first, second) != 0)
        abort();
    pnr_config_clear(&again);
    free(first);
    free(second);
}

/* All bytes as a file; and as one assignment, if they are one line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pnr_error error = {0};
    pnr_config config;
    int code;

    config = *initial();
    code = pnr_config_parse(&config, (const char *)data, size, "fuzz", &error);
    if (code != PNR_OK)
        expect_reason(code, &error);
    expect_round_trip(&config); /* also what was read before a refusal is sound */
    code = pnr_config_check(&config, &error);
    if (code != PNR_OK)
        expect_reason(code, &error);
    pnr_config_clear(&config);
    if (memchr(data, '\n', size) != NULL)
        return 0;

    char *assignment = malloc(size + 1);
    if (!assignment)
        return 0;
    memcpy(assignment, data, size);
    assignment[size] = '\0';
    config = *initial();
    code = pnr_config_set(&config, assignment, &error);
    if (code != PNR_OK)
        expect_reason(code, &error);
    expect_round_trip(&config);
    pnr_config_clear(&config);
    free(assignment);
    return 0;
}
