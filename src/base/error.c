/* SPDX-License-Identifier: MIT */
/* Errors with an explanation, and the table of error codes, their names, texts and exit statuses.
 * The list in error.h defines the table. */
#include "base/error.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct entry {
    int code;
    int status;
    const char *name;
    const char *text;
} entry;

static const entry table[] = {
#define ENTRY(name, value, status, text) {value, status, #name, text},
    PNR_ERRORS(ENTRY)
#undef ENTRY
};

static const entry *find_code(int code)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == code)
            return &table[i];
    return NULL;
}

int pnr_error_set(pnr_error *error, int code, const char *format, ...)
{
    /* The text is written to this copy first, because the arguments may point into error->text: an
     * error often quotes its own cause. */
    char text[sizeof((pnr_error *)0)->text];
    int saved_errno = errno;
    va_list arguments;

    if (!error)
        return code;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        snprintf(text, sizeof text, "%s", pnr_error_text(code));
    va_end(arguments);

    /* Replaces control characters, because a file name in the text may contain line breaks and
     * control sequences of the terminal. */
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    pnr_text_hide_controls(text);

    error->code = code;
    memcpy(error->text, text, length + 1);
    errno = saved_errno;
    return code;
}

/* Writes advice for a failed call on a file, or "" if there is no advice for this errno. */
static void advise(const char *path, int number, char *out, size_t size)
{
    static const struct {
        int number;
        const char *text;
    } advice[] = {{EACCES, "; ls -l shows who may use it"},
                  {EISDIR, "; name a file in it"},
                  {ENOSPC, "; free some space or take another disk"},
                  {EROFS, "; take another folder"}};
    const char *slash = strrchr(path, '/');
    char folder[256] = "";

    *out = '\0';
    for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++)
        if (advice[i].number == number)
            snprintf(out, size, "%s", advice[i].text);
    if (number != ENOENT)
        return;
    if (slash != NULL)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (*folder != '\0' && access(folder, F_OK) != 0)
        snprintf(out, size, "; there is no folder %s", folder);
    else if (path[0] != '/' && getcwd(folder, sizeof folder) != NULL)
        snprintf(out, size, "; looked for in %s", folder);
}

int pnr_error_file(pnr_error *error, int code, const char *what, const char *path, int number)
{
    char advice[288];

    advise(path, number, advice, sizeof advice);
    return pnr_error_set(error, code, "%s %.200s: %s%s", what, path, strerror(number), advice);
}

const char *pnr_error_name(int code)
{
    const entry *found = find_code(code);

    return found ? found->name : "EUNKNOWN";
}

const char *pnr_error_text(int code)
{
    const entry *found = find_code(code);

    return found ? found->text : "unknown error";
}

int pnr_error_exit(int code)
{
    const entry *found = find_code(code);

    return found ? found->status : pnr_error_exit(PNR_EINTERNAL);
}
