/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as text that is shown on a terminal, written as JSON, and drawn by gnuplot;
 * and as a number. */
#include "base/text.h"
#include "picture/gnuplot.h"
#include "require.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { MOST = 4096 };

static void check_terminal(const char *text)
{
    char shown[MOST + 1];

    strcpy(shown, text);
    pnr_text_hide_controls(shown);
    require(strlen(shown) <= strlen(text));
    require(pnr_text_find_control(shown, strlen(shown)) == NULL);
}

/* Jansson reads the string; it is the same if the bytes are UTF-8. */
static void check_json(const char *text)
{
    static char memory[6 * MOST + 3];
    bool is_utf8 = true;
    pnr_text out;
    json_t *read;
    size_t length;

    pnr_text_begin(&out, memory, sizeof memory);
    pnr_text_string(&out, text);
    length = pnr_text_end(&out);
    require(length >= 2);
    require(memchr(memory, '\n', length) == NULL && memchr(memory, '\x1b', length) == NULL);
    read = json_loadb(memory, length, JSON_DECODE_ANY, NULL);
    require(json_is_string(read));
    for (const char *at = text; *at != '\0' && is_utf8; at += pnr_text_character(at))
        is_utf8 = pnr_text_character(at) > 0;
    require(!is_utf8 || strcmp(json_string_value(read), text) == 0);
    json_decref(read);
}

/* The literal ends where it should: all quotes within it are pairs. */
static void check_gnuplot(const char *text)
{
    static char memory[3 * MOST];
    FILE *to = fmemopen(memory, sizeof memory, "w");
    size_t n;

    require(to != NULL);
    pnr_gnuplot_quote(to, text);
    n = (size_t)ftell(to);
    fclose(to);
    require(n >= 2 && memory[0] == '\'' && memory[n - 1] == '\'');
    require(pnr_text_find_control(memory, n) == NULL);
    for (size_t i = 1; i + 1 < n; i++)
        require(memory[i] != '\'' || memory[++i] == '\'');
}

static void check_number(double value)
{
    char memory[PNR_NUMBER_LEN];
    pnr_text out;
    char *end;

    pnr_text_begin(&out, memory, sizeof memory);
    pnr_text_double(&out, value, "nan");
    require(pnr_text_end(&out) > 0);

    const double read = strtod(memory, &end);

    require(*end == '\0');
    require(isfinite(value) ? fabs(read - value) <= fabs(value) * 1e-11 + 1e-320 : isnan(read));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static char text[MOST + 1];
    double value = 0;

    n_bytes = n_bytes < MOST ? n_bytes : MOST;
    memcpy(text, data, n_bytes);
    text[n_bytes] = '\0';
    check_terminal(text);
    check_json(text);
    check_gnuplot(text);
    memcpy(&value, data, n_bytes < sizeof value ? n_bytes : sizeof value);
    check_number(value);
    return 0;
}
