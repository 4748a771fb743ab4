/* SPDX-License-Identifier: MIT */
/* The reader of one message: values by name, checked one by one. */
#include "publisher/message_reader.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void pnr_reader_wrong(pnr_reader *r, const char *name, const char *what)
{
    if (r->code == PNR_OK)
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: \"%s\" %s", name, what);
}

json_t *pnr_reader_get(pnr_reader *r, const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    if (value == NULL)
        pnr_reader_wrong(r, name, "is missing");
    return value;
}

uint64_t pnr_reader_u64(pnr_reader *r, const json_t *object, const char *name, uint64_t max)
{
    const json_t *value = pnr_reader_get(r, object, name);

    if (value == NULL)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max) {
        pnr_reader_wrong(r, name, "is no integer in its range");
        return 0;
    }
    return (uint64_t)json_integer_value(value);
}

uint64_t pnr_reader_long(pnr_reader *r, const json_t *object, const char *name)
{
    const char *digits = json_string_value(pnr_reader_get(r, object, name));
    uint64_t value;

    if (digits == NULL || digits[0] == '\0' || (digits[0] == '0' && digits[1] != '\0')) {
        pnr_reader_wrong(r, name, "is no integer in a string");
        return 0;
    }
    errno = 0;
    value = strtoull(digits, NULL, 10);
    if (errno == 0 && digits[strspn(digits, "0123456789")] == '\0')
        return value;
    pnr_reader_wrong(r, name, "is no 64-bit integer");
    return 0;
}

double pnr_reader_double(pnr_reader *r, const json_t *object, const char *name)
{
    const json_t *value = pnr_reader_get(r, object, name);

    if (json_is_number(value))
        return json_number_value(value);
    if (!json_is_null(value))
        pnr_reader_wrong(r, name, "is neither a number nor null");
    return NAN;
}

void pnr_reader_string(pnr_reader *r, const json_t *object, const char *name, char *out,
                       size_t size)
{
    const char *text = json_string_value(pnr_reader_get(r, object, name));

    out[0] = '\0';
    if (text == NULL)
        pnr_reader_wrong(r, name, "is no string");
    else if (strlen(text) >= size)
        pnr_reader_wrong(r, name, "is too long");
    else
        memcpy(out, text, strlen(text) + 1);
    for (size_t i = 0; out[i] != '\0'; i++)
        if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
            pnr_reader_wrong(r, name, "has a control character");
}

void pnr_reader_open(pnr_reader *r, const char *text, size_t length, char run[17],
                     char stream[PNR_TEXT_LEN], uint64_t *seq)
{
    json_error_t json_error;

    r->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
    if (r->root == NULL) {
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: no JSON: %s (byte %d)",
                                json_error.text, json_error.position);
        return;
    }
    if (!json_is_object(r->root)) {
        r->code = pnr_error_set(r->error, PNR_EDATA, "message: no JSON object");
        return;
    }
    if (pnr_reader_u64(r, r->root, "v", INT64_MAX) != 1)
        pnr_reader_wrong(r, "v", "is not 1: made by another version");
    pnr_reader_string(r, r->root, "run", run, 17);
    if (r->code == PNR_OK && (strlen(run) != 16 || strspn(run, "0123456789abcdef") != 16))
        pnr_reader_wrong(r, "run", "is not 16 hex digits");
    pnr_reader_string(r, r->root, "stream", stream, PNR_TEXT_LEN);
    if (stream[0] == '\0')
        pnr_reader_wrong(r, "stream", "is empty");
    *seq = pnr_reader_u64(r, r->root, "seq", INT64_MAX);
}

int pnr_reader_close(pnr_reader *r)
{
    json_decref(r->root);
    return r->code;
}

void pnr_reader_moment(pnr_reader *r, pnr_report *out)
{
    const json_t *time = pnr_reader_get(r, r->root, "time");
    char source[8];

    out->sample = pnr_reader_long(r, r->root, "sample");
    out->has_time = !json_is_null(time);
    if (out->has_time &&
        (!json_is_string(time) || pnr_time_parse(json_string_value(time), &out->time_ns) != PNR_OK))
        pnr_reader_wrong(r, "time", "is no UTC time");
    pnr_reader_string(r, r->root, "time_source", source, sizeof source);
    for (size_t i = 0; i < PNR_N_TIME_SOURCES; i++) {
        if (strcmp(source, pnr_time_source_words[i]) == 0) {
            out->time_source = (pnr_time_source)i;
            return;
        }
    }
    pnr_reader_wrong(r, "time_source", "is none of none, file, host");
}
