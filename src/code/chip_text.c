/* SPDX-License-Identifier: MIT */
/* Reads chips from text. Reads the file value by value, so a line may have any length. */
#include "code/chip_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_LEN = 96, SHOWN = 60 };

/* The form of all lines. The first line with values decides it. */
typedef enum { FORM_UNKNOWN, FORM_CHIP, FORM_PAIR, FORM_LIST } form;

typedef struct text {
    const pnr_chip_file *file;
    pnr_chips *out;
    pnr_error *error;
    size_t line;           /* number of the line, from 1 */
    char shown[SHOWN + 1]; /* the first characters of the line */
    size_t n_shown;
    char value[VALUE_LEN]; /* characters of the present value */
    size_t n_value;
    size_t n_in_line; /* values in the line so far */
    double first[2];  /* first numbers in the line, at most two */
    bool has_ended;   /* all characters of the line have been read */
    form form;
} text;

/* Refuses the present line. The message shows at most SHOWN characters of the line. */
static int refuse_line(text *t, const char *why)
{
    int c;

    while (!t->has_ended && t->n_shown < SHOWN && (c = getc(t->file->stream)) != EOF && c != '\n' &&
           c != '\r')
        t->shown[t->n_shown++] = (char)c;
    t->shown[t->n_shown] = '\0';
    for (size_t i = 0; i < t->n_shown; i++)
        if ((unsigned char)t->shown[i] < ' ' || t->shown[i] == 0x7f)
            t->shown[i] = '?';
    return pnr_error_set(t->error, PNR_EDATA, "%s %s:%zu: \"%s\": %s", t->file->key, t->file->path,
                         t->line, t->shown, why);
}

/* Reads one decimal number, with its sign. False: there is no number. */
static bool read_part(const char **at, double *out)
{
    const size_t length = strspn(*at, "+-.0123456789eE");
    char *end;

    *out = strtod(*at, &end);
    if (end == *at || end > *at + length || !isfinite(*out)) /* refuses nan, inf and 0x10 too */
        return false;
    *at = end;
    return true;
}

/* Reads a value: a real number, or a complex number such as (1+2j), 1-2i, 2j. */
static bool read_value(const char *value, double out[2], bool *is_complex)
{
    const bool is_open = *value == '(';
    const char *at = value + is_open;

    out[1] = 0;
    *is_complex = false;
    if (!read_part(&at, &out[0]))
        return false;
    if (*at == '+' || *at == '-') {
        if (!read_part(&at, &out[1]) || (*at != 'j' && *at != 'i'))
            return false;
    } else if (*at == 'j' || *at == 'i') {
        out[1] = out[0];
        out[0] = 0;
    }
    if (*at == 'j' || *at == 'i') {
        *is_complex = true;
        at++;
    }
    if (is_open && *at++ != ')')
        return false;
    return *at == '\0';
}

static int add_chip(text *t, double i, double q)
{
    return pnr_chips_add(t->out, (const double[2]){i, q}, t->file, t->error);
}

/* Begins a list. The first chips of the list are the earlier values of the line. */
static int begin_list(text *t)
{
    int code = PNR_OK;

    t->form = FORM_LIST;
    for (size_t i = 0; i < t->n_in_line && code == PNR_OK; i++)
        code = add_chip(t, t->first[i], 0);
    return code;
}

/* Converts and stores the value whose characters have been read. Does nothing if there are none. */
static int take_value(text *t)
{
    double value[2];
    bool is_complex;
    int code = PNR_OK;

    if (t->n_value == 0)
        return PNR_OK;
    t->value[t->n_value] = '\0';
    t->n_value = 0;
    if (!read_value(t->value, value, &is_complex))
        return refuse_line(t, "want a number, or a complex one as 1+2j");
    if (t->form == FORM_UNKNOWN && (is_complex || t->n_in_line == 2))
        code = begin_list(t);
    if (code == PNR_OK && t->form == FORM_LIST)
        code = add_chip(t, value[0], value[1]);
    else if (is_complex)
        return refuse_line(t, "a complex value, but the lines before have numbers");
    else if (t->n_in_line < 2)
        t->first[t->n_in_line] = value[0];
    t->n_in_line++;
    return code;
}

/* At the end of a line, adds its chip. In a list, each value of the line is a chip already. */
static int take_line(text *t)
{
    int code = take_value(t);

    if (code != PNR_OK || t->n_in_line == 0)
        return code;
    if (t->form == FORM_UNKNOWN)
        t->form = t->n_in_line == 1 ? FORM_CHIP : FORM_PAIR;
    if (t->form == FORM_CHIP && t->n_in_line != 1)
        return refuse_line(t, "more than one number, but the lines before have one chip each");
    if (t->form == FORM_PAIR && t->n_in_line != 2)
        return refuse_line(t, "not two numbers, but the lines before have I and Q of a chip");
    if (t->form != FORM_LIST)
        code = add_chip(t, t->first[0], t->form == FORM_PAIR ? t->first[1] : 0);
    return code;
}

/* Ends the present line and begins the next one. */
static int begin_line(text *t)
{
    int code;

    t->has_ended = true;
    code = take_line(t);
    t->has_ended = false;
    t->line++;
    t->n_in_line = t->n_shown = 0;
    return code;
}

/* Skips a comment. Returns the line break or EOF at the end of the comment. */
static int skip_comment(FILE *stream)
{
    int c;

    do
        c = getc(stream);
    while (c != '\n' && c != EOF);
    return c;
}

static int take_character(text *t, int c)
{
    if (strchr(", ;\t\r", c) != NULL && c != '\0')
        return take_value(t);
    if (t->n_value == VALUE_LEN - 1 || c == '\0')
        return refuse_line(t, "want a number, or a complex one as 1+2j");
    t->value[t->n_value++] = (char)c;
    return PNR_OK;
}

/* Skips the byte order mark of UTF-8. */
static void skip_mark(FILE *stream)
{
    unsigned char mark[3];

    if (fread(mark, 1, 3, stream) != 3 || memcmp(mark, "\xef\xbb\xbf", 3) != 0)
        rewind(stream);
}

int pnr_chip_read_text(const pnr_chip_file *file, pnr_chips *out, pnr_error *error)
{
    text t = {.file = file, .out = out, .error = error, .line = 1};
    int c, code = PNR_OK;

    skip_mark(file->stream);
    while (code == PNR_OK && (c = getc(file->stream)) != EOF) {
        if (c == '#')
            c = skip_comment(file->stream);
        if (c == EOF)
            break;
        if (c != '\n' && t.n_shown < SHOWN)
            t.shown[t.n_shown++] = (char)c;
        code = c == '\n' ? begin_line(&t) : take_character(&t, c);
    }
    if (code == PNR_OK && ferror(file->stream))
        code = pnr_error_set(error, PNR_EIO, "%s %s: cannot be read", file->key, file->path);
    if (code == PNR_OK)
        code = take_line(&t);
    if (code == PNR_OK && t.form == FORM_PAIR && out->n == 1)
        code = pnr_error_set(error, PNR_EDATA,
                             "%s %s: two chips, or I and Q of one? write one chip a line",
                             file->key, file->path);
    return code;
}
