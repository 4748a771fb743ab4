/* SPDX-License-Identifier: MIT */
/* Keeps the zero delay from run to run. Checks the file when it is read. */
#include "detector/zero_state.h"

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const char mark[] = "{\"pnradar\":\"zero\"";

/* --- write --- */

static void number(pnr_text *t, const char *name, double value)
{
    pnr_text_add(t, ",\"");
    pnr_text_add(t, name);
    pnr_text_add(t, "\":");
    pnr_text_double(t, value, "null");
}

static void string(pnr_text *t, const char *name, const char *value)
{
    pnr_text_add(t, ",\"");
    pnr_text_add(t, name);
    pnr_text_add(t, "\":");
    pnr_text_string(t, value);
}

static size_t compose(const pnr_config *config, pnr_format format, const pnr_zero_memory *memory,
                      char *out)
{
    char rate[48];
    pnr_text t;

    pnr_text_begin(&t, out, PNR_ZERO_STATE_LEN);
    pnr_text_add(&t, mark);
    pnr_text_add(&t, ",\"v\":1");
    string(&t, "source", config->source.input);
    string(&t, "format", pnr_format_get(format)->name);
    string(&t, "rate_hz", pnr_rational_format(config->source.rate_hz, rate));
    number(&t, "channel", (double)config->source.channel);
    number(&t, "zero_delay_s", memory->delay_s);
    number(&t, "sigma_s", memory->sigma_s);
    number(&t, "drift", memory->drift);
    number(&t, "drift_sigma", memory->drift_sigma);
    number(&t, "first_s", memory->first_s);
    pnr_text_add(&t, "}\n");
    return pnr_text_end(&t);
}

/* Refuses the text of the helper with the name of the key in front of it. */
static int refuse(int code, pnr_error *error)
{
    return code == PNR_OK ? code
                          : pnr_error_set(error, code, "radar.zero_state_path: %s",
                                          error != NULL ? error->text : "");
}

int pnr_zero_state_check(const pnr_config *config, pnr_error *error)
{
    pnr_new_file file;
    const int code = pnr_new_file_create(config->radar.zero_state_path, mark, &file, error);

    if (code == PNR_OK)
        pnr_new_file_discard(&file);
    return refuse(code, error);
}

int pnr_zero_state_write(const pnr_config *config, pnr_format format, const pnr_zero_memory *memory,
                         bool lasting, pnr_error *error)
{
    char text[PNR_ZERO_STATE_LEN];
    const size_t length = compose(config, format, memory, text);
    pnr_new_file file;
    int code = pnr_new_file_create(config->radar.zero_state_path, mark, &file, error);

    if (code != PNR_OK)
        return refuse(code, error);
    if ((code = pnr_new_file_write(&file, text, length, error)) == PNR_OK)
        code = pnr_new_file_finish(&file, lasting, error);
    else
        pnr_new_file_discard(&file);
    return refuse(code, error);
}

/* --- read --- */

/* Returns the bytes read, at most the capacity; a PNR_E... on failure. */
static ssize_t read_all(const char *path, char *out, size_t capacity, pnr_error *error)
{
    ssize_t n = 0, all = 0;
    int file;
    const int code = pnr_file_open(path, &file, error);

    if (code != PNR_OK)
        return code;
    while ((size_t)all < capacity && (n = read(file, out + all, capacity - (size_t)all)) > 0)
        all += n;
    close(file);
    return n < 0 ? pnr_error_set(error, PNR_EIO, "%s", strerror(errno)) : all;
}

static bool is_text(const json_t *root, const char *name, const char *wanted)
{
    const char *is = json_string_value(json_object_get(root, name));

    return is != NULL && strcmp(is, wanted) == 0;
}

static bool get(const json_t *root, const char *name, double *out)
{
    const json_t *value = json_object_get(root, name);

    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out);
}

static const char *take(const pnr_config *config, pnr_format format, const json_t *root,
                        pnr_zero_memory *out)
{
    char rate[48];

    if (!json_is_object(root) || json_integer_value(json_object_get(root, "v")) != 1)
        return "it is no state of this version";
    if (!is_text(root, "source", config->source.input))
        return "it is of another source";
    if (!is_text(root, "format", pnr_format_get(format)->name))
        return "it is of another sample format";
    if (!is_text(root, "rate_hz", pnr_rational_format(config->source.rate_hz, rate)))
        return "it is of another sampling rate";
    if (json_number_value(json_object_get(root, "channel")) != (double)config->source.channel)
        return "it is of another channel";
    if (!get(root, "zero_delay_s", &out->delay_s) || !get(root, "sigma_s", &out->sigma_s) ||
        !get(root, "drift", &out->drift) || !get(root, "drift_sigma", &out->drift_sigma) ||
        !get(root, "first_s", &out->first_s) || out->sigma_s < 0 || out->drift_sigma < 0)
        return "a number is missing, or is none";
    return NULL;
}

bool pnr_zero_state_read(const pnr_config *config, pnr_format format, pnr_zero_memory *out)
{
    const char *path = config->radar.zero_state_path, *why;
    char text[PNR_ZERO_STATE_LEN];
    json_error_t error;
    pnr_error unread;
    const ssize_t length = read_all(path, text, sizeof text, &unread);
    json_t *root = NULL;

    *out = (pnr_zero_memory){0};
    if (length == PNR_ENOINPUT)
        return false;
    if (length < 0)
        why = unread.text;
    else if ((root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error)) == NULL)
        why = error.text;
    else
        why = take(config, format, root, out);
    if (why != NULL)
        pnr_log(PNR_LOG_WARN, "radar.zero_state_path %s is not used: %s", path, why);
    json_decref(root);
    return why == NULL;
}
