/* SPDX-License-Identifier: MIT */
/* Reads N mutations of a configuration: mutations FILE N. Each is accepted, or refused with a
 * reason in one line. Prints how many were accepted, and fails when the memory has grown. */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MOST = 1 << 16, GROWTH_KIB = 16 << 10 };

static uint64_t state = 1;

static size_t draw(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

/* Replaces, inserts, removes or repeats a few bytes. Returns the new size. */
static size_t mutate(char *text, size_t size)
{
    static const char bytes[] = "=[]#;\"'\\\n\r\t .,+-/0123456789eEkMxyz_\0\x7f\xc3\xa9\xff";
    const size_t at = draw(size), n = 1 + draw(12);

    switch (draw(4)) {
    case 0:
        for (size_t i = 0; i < n && at + i < size; i++)
            text[at + i] = bytes[draw(sizeof bytes)];
        return size;
    case 1:
        if (size + n > MOST)
            return size;
        memmove(text + at + n, text + at, size - at);
        for (size_t i = 0; i < n; i++)
            text[at + i] = bytes[draw(sizeof bytes)];
        return size + n;
    case 2:
        if (at + n >= size)
            return size;
        memmove(text + at, text + at + n, size - at - n);
        return size - n;
    default:
        memmove(text + at, text + draw(size - (n < size ? n : 0)), n < size - at ? n : size - at);
        return size;
    }
}

static long peak_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Returns true if the text is accepted. Ends the program when a refusal has no reason. */
static bool read_config(const char *text, size_t size)
{
    pnr_error error = {0};
    pnr_config config;

    pnr_config_init(&config);

    int code = pnr_config_parse(&config, text, size, "mutation", &error);

    if (code == PNR_OK)
        code = pnr_config_check(&config, &error);
    pnr_config_clear(&config);
    if (code != PNR_OK && (code != error.code || code == PNR_EINTERNAL || error.text[0] == '\0' ||
                           strchr(error.text, '\n') != NULL)) {
        fprintf(stderr, "mutations: error: %s: %s\n%.*s\n", pnr_error_name(code), error.text,
                (int)size, text);
        exit(1);
    }
    return code == PNR_OK;
}

int main(int argc, char **argv)
{
    static char whole[MOST], text[MOST];
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    const size_t size = file != NULL ? fread(whole, 1, MOST / 2, file) : 0;
    const size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    size_t n_accepted = 0;
    long before_kib = 0;

    if (size == 0)
        return 2;
    fclose(file);
    for (size_t i = 0; i < n; i++) {
        size_t changed = size;

        memcpy(text, whole, size);
        for (size_t times = 1 + draw(4); times > 0; times--)
            changed = mutate(text, changed);
        n_accepted += read_config(text, changed);
        if (i == n / 10)
            before_kib = peak_kib();
    }
    printf("%zu mutations, %zu accepted\n", n, n_accepted);
    return n_accepted < n && peak_kib() - before_kib < GROWTH_KIB ? 0 : 1;
}
