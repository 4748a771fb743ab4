/* SPDX-License-Identifier: MIT */
/* What the tests of the configuration share: a configuration from text, and its print as text. */
#ifndef PNR_CONFIG_FIXTURE_H
#define PNR_CONFIG_FIXTURE_H

#include "config.h"
#include "config_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Reads text over config; the error is the caller's. */
static inline int parse(pnr_config *config, const char *text, pnr_error *error)
{
    return pnr_config_parse(config, text, strlen(text), "test.conf", error);
}

/* A configuration from text that must be accepted. */
static inline void accept_text(pnr_config *config, const char *text)
{
    pnr_error error = {0};

    pnr_config_init(config);
    if (parse(config, text, &error) != PNR_OK)
        fail_msg("%s", error.text);
}

static inline void accept_set(pnr_config *config, const char *assignment)
{
    pnr_error error = {0};

    if (pnr_config_set(config, assignment, &error) != PNR_OK)
        fail_msg("%s: %s", assignment, error.text);
}

/* Refused with PNR_ECONFIG and all of these words (NULL-terminated) in one line. */
static inline void expect_words(int code, const pnr_error *error, const char *const *words)
{
    assert_int_equal(code, PNR_ECONFIG);
    assert_int_equal(error->code, PNR_ECONFIG);
    assert_null(strchr(error->text, '\n'));
    for (; *words; words++)
        if (!strstr(error->text, *words))
            fail_msg("no \"%s\" in: %s", *words, error->text);
}

/* What a print wrote, NUL-terminated; the caller frees it. */
static inline char *printed(const pnr_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    pnr_config_print(config, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

/* The bytes of a file, NUL-terminated; the caller frees them. */
static inline char *file_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0, n;
    char bytes[4096];
    FILE *memory = open_memstream(&text, &size);

    if (!file)
        fail_msg("%s: cannot be opened (tests run from the repository's top)", path);
    assert_non_null(memory);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        fwrite(bytes, 1, n, memory);
    fclose(file);
    assert_int_equal(fclose(memory), 0);
    return text;
}

static inline const pnr_key *key_of(const char *section, const char *name)
{
    for (size_t i = 0; i < pnr_config_n_keys; i++)
        if (strcmp(pnr_config_keys[i].section, section) == 0 &&
            strcmp(pnr_config_keys[i].name, name) == 0)
            return &pnr_config_keys[i];
    fail_msg("no key %s.%s", section, name);
    return NULL;
}

/* The section of a key, and its title for -s: "target.1" where it is numbered. */
static inline const pnr_section *section_of(const pnr_key *key, char title[PNR_SECTION_LEN])
{
    const pnr_section *s = pnr_section_of(key);

    pnr_section_title(s, 1, title);
    return s;
}

#endif
