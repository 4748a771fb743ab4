/* SPDX-License-Identifier: MIT */
/* Reads the metadata of SigMF 1.2 with jansson. */
#include "source/sigmf_meta.h"

#include "base/clock.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int refuse_member(pnr_error *error, const char *name, const json_t *value, const char *want)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    pnr_error_set(error, PNR_EDATA, "%s is %.80s, not %s", name, text != NULL ? text : "missing",
                  want);
    free(text);
    return PNR_EDATA;
}

/* Reads an integer of 0 .. max. If the member is missing, *out keeps its value. Accepts 3.0 for 3,
 * because some programs write whole numbers as reals. */
static int read_count(const json_t *object, const char *name, uint64_t max, uint64_t *out,
                      pnr_error *error)
{
    const json_t *value = json_object_get(object, name);
    const double real = json_real_value(value);

    if (value == NULL)
        return PNR_OK;
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        (uint64_t)json_integer_value(value) <= max)
        *out = (uint64_t)json_integer_value(value);
    else if (json_is_real(value) && real >= 0 && real <= 0x1p53 && real == floor(real) &&
             (uint64_t)real <= max)
        *out = (uint64_t)real;
    else
        return refuse_member(error, name, value, "a count in its range");
    return PNR_OK;
}

static int read_datatype(const json_t *global, pnr_sigmf_meta *out, pnr_error *error)
{
    const json_t *value = json_object_get(global, "core:datatype");
    const char *name = json_string_value(value);

    if (name != NULL && (name[0] == 'c' || name[0] == 'r')) {
        const size_t length = strcspn(name + 1, "_");
        const pnr_number_form *form = pnr_number_form_find(name + 1, length);
        const char *order = name + 1 + length;

        if (form != NULL &&
            (*order == '\0' || strcmp(order, "_le") == 0 || strcmp(order, "_be") == 0)) {
            out->number = form->number;
            out->number.is_big_endian = strcmp(order, "_be") == 0;
            out->format = name[0] == 'c' ? form->complex_format : form->real_format;
            snprintf(out->datatype, sizeof out->datatype, "%s", name);
            return PNR_OK;
        }
    }
    return refuse_member(error, "core:datatype", value,
                         "a type of SigMF, as ci16_le, cf32_be or ru8");
}

char *pnr_sigmf_datatype(pnr_format format, char out[16])
{
    const pnr_number_form *form = pnr_number_form_of(format);

    snprintf(out, 16, "%c%s%s", form->complex_format == format ? 'c' : 'r', form->name,
             form->number.bytes > 1 ? "_le" : "");
    return out;
}

/* Reads the exact rate that pnradar itself writes: a quotient, because no decimal number is exact
 * for some rates. */
static bool read_quotient(const json_t *global, pnr_rational *out)
{
    const char *text = json_string_value(json_object_get(global, "pnradar:sample_rate"));

    return text != NULL && pnr_rational_parse(text, out) == PNR_OK && out->num > 0;
}

static int read_rate(const json_t *global, pnr_rational *out, pnr_error *error)
{
    const json_t *value = json_object_get(global, "core:sample_rate");
    int code = PNR_EDATA;

    if (value == NULL || read_quotient(global, out))
        return PNR_OK;
    if (json_is_integer(value)) {
        *out = (pnr_rational){json_integer_value(value), 1};
        code = PNR_OK;
    } else if (json_is_real(value)) {
        code = pnr_rational_from_double(json_real_value(value), out);
    }
    if (code != PNR_OK || out->num <= 0)
        return refuse_member(error, "core:sample_rate", value, "a rate above 0");
    return PNR_OK;
}

static int read_hash(const json_t *global, pnr_sigmf_meta *out, pnr_error *error)
{
    const json_t *value = json_object_get(global, "core:sha512");

    if (value == NULL || json_is_null(value))
        return PNR_OK;
    if (!json_is_string(value))
        return refuse_member(error, "core:sha512", value, "a hash");
    snprintf(out->sha512, sizeof out->sha512, "%s", json_string_value(value));
    return PNR_OK;
}

/* True if `name` is the name of a file without a path. */
static bool is_plain_name(const char *name)
{
    return name != NULL && name[0] != '\0' && strchr(name, '/') == NULL &&
           strcmp(name, "..") != 0 && strcmp(name, ".") != 0 && strlen(name) < PNR_SIGMF_NAME_LEN;
}

/* Refuses a core:dataset with a path, because the data file must be in the folder of the
 * metadata. */
static int read_dataset(const json_t *global, pnr_sigmf_meta *out, pnr_error *error)
{
    const json_t *value = json_object_get(global, "core:dataset");
    const char *name = json_string_value(value);

    if (json_is_true(json_object_get(global, "core:metadata_only")))
        return pnr_error_set(error, PNR_EDATA, "core:metadata_only is true: there are no samples");
    if (value == NULL)
        return PNR_OK;
    if (!is_plain_name(name))
        return refuse_member(error, "core:dataset", value, "the name of a file in the same folder");
    strcpy(out->dataset, name);
    return PNR_OK;
}

static int read_global(const json_t *global, pnr_sigmf_meta *out, uint64_t *offset,
                       pnr_error *error)
{
    uint64_t n_channels = 1;
    int code;

    if (!json_is_object(global))
        return pnr_error_set(error, PNR_EDATA, "no object \"global\": this is no SigMF metadata");
    if (!json_is_string(json_object_get(global, "core:version")))
        return refuse_member(error, "core:version", json_object_get(global, "core:version"),
                             "a version of SigMF");
    if ((code = read_datatype(global, out, error)) != PNR_OK ||
        (code = read_rate(global, &out->rate_hz, error)) != PNR_OK ||
        (code = read_dataset(global, out, error)) != PNR_OK ||
        (code = read_hash(global, out, error)) != PNR_OK ||
        (code = read_count(global, "core:num_channels", PNR_SIGMF_MAX_CHANNELS, &n_channels,
                           error)) != PNR_OK ||
        (code = read_count(global, "core:trailing_bytes", INT64_MAX, &out->trailing_bytes,
                           error)) != PNR_OK ||
        (code = read_count(global, "core:offset", INT64_MAX, offset, error)) != PNR_OK)
        return code;
    if (n_channels == 0)
        return pnr_error_set(error, PNR_EDATA, "core:num_channels is 0");
    out->n_channels = (size_t)n_channels;
    return PNR_OK;
}

/* Reads a UTC time of RFC 3339. Ignores digits below 1 ns. */
static int read_datetime(const json_t *value, int64_t *utc_ns, pnr_error *error)
{
    enum { NINE_DIGITS = 29 }; /* length of 2026-11-21T02:40:12.000041943 */
    const char *text = json_string_value(value);
    const size_t length = text != NULL ? strlen(text) : 0;
    char cut[NINE_DIGITS + 2];

    if (length > NINE_DIGITS + 1 &&
        strspn(text + NINE_DIGITS, "0123456789") == length - NINE_DIGITS - 1 &&
        text[length - 1] == 'Z') {
        snprintf(cut, sizeof cut, "%.*sZ", (int)NINE_DIGITS, text);
        text = cut;
    }
    if (text == NULL || pnr_time_parse(text, utc_ns) != PNR_OK)
        return refuse_member(error, "core:datetime", value, "UTC as 2026-11-21T02:40:12.5Z");
    return PNR_OK;
}

static int read_capture(const json_t *object, uint64_t offset, pnr_sigmf_capture *out,
                        pnr_error *error)
{
    const json_t *datetime = json_object_get(object, "core:datetime");
    uint64_t start = UINT64_MAX;
    int code;

    if ((code = read_count(object, "core:sample_start", INT64_MAX, &start, error)) != PNR_OK ||
        (code = read_count(object, "core:header_bytes", INT64_MAX, &out->header_bytes, error)) !=
            PNR_OK ||
        (code = read_count(object, "core:global_index", INT64_MAX, &out->global_index, error)) !=
            PNR_OK)
        return code;
    if (start == UINT64_MAX)
        return pnr_error_set(error, PNR_EDATA, "core:sample_start is missing");
    if (start < offset)
        return pnr_error_set(error, PNR_EDATA,
                             "core:sample_start is %" PRIu64 ", before core:offset, %" PRIu64,
                             start, offset);
    out->first = start - offset;
    out->has_global_index = json_object_get(object, "core:global_index") != NULL;
    out->has_time = datetime != NULL;
    return datetime != NULL ? read_datetime(datetime, &out->utc_ns, error) : PNR_OK;
}

/* Checks that a capture does not begin before the previous one ends. */
static int check_order(const pnr_sigmf_capture *last, const pnr_sigmf_capture *next,
                       pnr_error *error)
{
    const uint64_t samples = next->first - last->first;

    if (next->first < last->first)
        return pnr_error_set(error, PNR_EDATA,
                             "core:sample_start is less than that of the capture before");
    if (last->has_global_index && next->has_global_index &&
        (next->global_index < last->global_index ||
         next->global_index - last->global_index < samples))
        return pnr_error_set(error, PNR_EDATA,
                             "core:global_index goes from %" PRIu64 " to %" PRIu64 " over %" PRIu64
                             " samples: captures overlap",
                             last->global_index, next->global_index, samples);
    return PNR_OK;
}

static int read_captures(const json_t *captures, uint64_t offset, pnr_sigmf_meta *out,
                         pnr_error *error)
{
    const size_t n = json_array_size(captures);
    int code = PNR_OK;

    if (!json_is_array(captures))
        return pnr_error_set(error, PNR_EDATA, "no array \"captures\": this is no SigMF metadata");
    out->captures = calloc(n + 1, sizeof *out->captures);
    if (out->captures == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for %zu captures", n);
    for (size_t i = 0; code == PNR_OK && i < n; i++) {
        pnr_error inner = {0};

        code = read_capture(json_array_get(captures, i), offset, &out->captures[i], &inner);
        if (code == PNR_OK && i > 0)
            code = check_order(&out->captures[i - 1], &out->captures[i], &inner);
        if (code != PNR_OK)
            pnr_error_set(error, code, "captures[%zu]: %s", i, inner.text);
    }
    out->n_captures = n;
    return code;
}

/* Counts the samples of all annotations with the label "clipped". An annotation without a count has
 * one sample. */
static int read_annotations(const json_t *annotations, pnr_sigmf_meta *out, pnr_error *error)
{
    for (size_t i = 0; i < json_array_size(annotations); i++) {
        const json_t *annotation = json_array_get(annotations, i);
        const char *label = json_string_value(json_object_get(annotation, "core:label"));
        uint64_t count = 1;
        pnr_error inner = {0};

        if (label == NULL || strcasecmp(label, "clipped") != 0)
            continue;
        if (read_count(annotation, "core:sample_count", UINT32_MAX, &count, &inner) != PNR_OK)
            return pnr_error_set(error, PNR_EDATA, "annotations[%zu]: %s", i, inner.text);
        out->n_clipped += count;
    }
    return PNR_OK;
}

static json_t *parse_json(const char *text, size_t length, pnr_error *error)
{
    json_error_t reason;
    json_t *root = pnr_json_read(text, length, &reason);

    if (root == NULL)
        pnr_error_set(error, PNR_EDATA, "no JSON: line %d: %s", reason.line, reason.text);
    return root;
}

int pnr_sigmf_meta_read(const char *text, size_t length, pnr_sigmf_meta *out, pnr_error *error)
{
    uint64_t offset = 0;
    int code;

    *out = (pnr_sigmf_meta){.captures = NULL};

    json_t *root = parse_json(text, length, error);

    if (root == NULL)
        return PNR_EDATA;
    code = read_global(json_object_get(root, "global"), out, &offset, error);
    if (code == PNR_OK)
        code = read_captures(json_object_get(root, "captures"), offset, out, error);
    if (code == PNR_OK)
        code = read_annotations(json_object_get(root, "annotations"), out, error);
    if (code != PNR_OK)
        pnr_sigmf_meta_clear(out);
    json_decref(root);
    return code;
}

/* Returns the name or the hash of an entry of core:streams. The entry is an object, or a pair as in
 * SigMF 1.0. NULL: the entry has none. */
static const char *text_of_stream(const json_t *stream, const char *member, size_t place)
{
    return json_string_value(json_is_array(stream) ? json_array_get(stream, place)
                                                   : json_object_get(stream, member));
}

static int find_stream(const json_t *streams, const char *wanted, char name[PNR_SIGMF_NAME_LEN],
                       char hash[PNR_SIGMF_HASH_LEN], pnr_error *error)
{
    const size_t n = json_array_size(streams);
    char names[300] = "";

    if (n == 0)
        return pnr_error_set(error, PNR_EDATA,
                             "no array \"core:streams\" with a recording: this is no collection");
    for (size_t i = 0; i < n; i++) {
        const json_t *stream = json_array_get(streams, i);
        const char *found = text_of_stream(stream, "name", 0);
        const char *stated = text_of_stream(stream, "hash", 1);
        const size_t length = strlen(names);

        if (!is_plain_name(found))
            return pnr_error_set(error, PNR_EDATA,
                                 "core:streams[%zu] has no name of a recording in the same folder",
                                 i);
        if (strcmp(found, wanted) == 0 || (n == 1 && wanted[0] == '\0')) {
            strcpy(name, found);
            snprintf(hash, PNR_SIGMF_HASH_LEN, "%s", stated != NULL ? stated : "");
            return PNR_OK;
        }
        snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "", found);
    }
    return pnr_refuse(error, "source.recording = %.100s: want one of the collection: %s", wanted,
                      names);
}

int pnr_sigmf_collection_find(const char *text, size_t length, const char *wanted,
                              char name[PNR_SIGMF_NAME_LEN], char hash[PNR_SIGMF_HASH_LEN],
                              pnr_error *error)
{
    json_t *root = parse_json(text, length, error);
    int code;

    if (root == NULL)
        return PNR_EDATA;
    code = find_stream(json_object_get(json_object_get(root, "collection"), "core:streams"), wanted,
                       name, hash, error);
    json_decref(root);
    return code;
}

void pnr_sigmf_meta_clear(pnr_sigmf_meta *meta)
{
    free(meta->captures);
    meta->captures = NULL;
    meta->n_captures = 0;
}
