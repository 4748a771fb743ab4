/* SPDX-License-Identifier: MIT */
/* Errors with an explanation, and the table of codes, names, texts and exit statuses. The list in
 * error.h fills the table. */
#include "base/error.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    /* The arguments may point into error->text, because an error often quotes its own cause. */
    char text[sizeof((pnr_error *)0)->text];
    int saved_errno = errno;
    va_list arguments;

    if (!error)
        return code;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        snprintf(text, sizeof text, "%s", pnr_error_text(code));
    va_end(arguments);

    /* A file name may contain line breaks and commands to the terminal. */
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    pnr_text_hide_controls(text);

    error->code = code;
    memcpy(error->text, text, length + 1);
    errno = saved_errno;
    return code;
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
