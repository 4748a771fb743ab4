/* SPDX-License-Identifier: MIT */
/* The configuration as text: its present values, the reference file,
 * and the list of the man page. */
#include "base/clock.h"
#include "config/keys.h"

#include <inttypes.h>
#include <string.h>

/* --- one writer for each type --- */

/* Quoted only where it must be, so that most lines look as people write them. */
static void print_text(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    const char *text = field;

    (void)key, (void)base;
    if (!strpbrk(text, " \t\"#;")) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

static void print_size(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    (void)key, (void)base;
    fprintf(stream, "%zu", *(const size_t *)field);
}

static void print_int(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    (void)key, (void)base;
    fprintf(stream, "%d", *(const int *)field);
}

static void print_uint64(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    (void)key, (void)base;
    fprintf(stream, "%" PRIu64, *(const uint64_t *)field);
}

static void print_bytes(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    size_t value = *(const size_t *)field;

    (void)key, (void)base;
    for (const pnr_suffix *suffix = pnr_suffixes; suffix->letter; suffix++)
        if (value > 0 && value % ((size_t)1 << suffix->shift) == 0) {
            fprintf(stream, "%zu%c", value >> suffix->shift, suffix->letter);
            return;
        }
    fprintf(stream, "%zu", value);
}

static void print_double(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    char text[PNR_DOUBLE_LEN];

    (void)key, (void)base;
    fputs(pnr_value_double(*(const double *)field, text), stream);
}

static void print_optional(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    if (*(const bool *)(base + key->also))
        print_double(key, field, base, stream);
}

static void print_rational(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    const pnr_rational *value = field;
    char text[48];

    (void)key, (void)base;
    if (value->den != 0)
        fputs(pnr_rational_format(*value, text), stream);
}

static void print_choice(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    (void)base;
    fputs(key->choices[*(const int *)field], stream);
}

static void print_yes_no(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    (void)key, (void)base;
    fputs(*(const bool *)field ? "yes" : "no", stream);
}

static void print_format(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    pnr_format format = *(const pnr_format *)field;

    (void)key, (void)base;
    fputs(format == PNR_FORMAT_NONE ? "auto" : pnr_format_get(format)->name, stream);
}

static void print_epoch(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    const pnr_epoch *epoch = field;
    char text[PNR_TIME_LEN];

    (void)key, (void)base;
    if (epoch->is_utc)
        fputs(pnr_time_format(epoch->utc_ns, text), stream);
    else
        fprintf(stream, "%" PRId64, epoch->sample);
}

/* Without spaces: never longer than what was read, so it fits a line again. */
static void print_runs(const pnr_key *key, const void *field, const char *base, FILE *stream)
{
    const pnr_run *runs = *(pnr_run *const *)field;
    size_t n = *(const size_t *)(base + key->also);

    for (size_t i = 0; i < n; i++)
        fprintf(stream, "%s%" PRIu64 "+%" PRIu64, i ? "," : "", runs[i].first, runs[i].count);
}

typedef void print_fn(const pnr_key *key, const void *field, const char *base, FILE *stream);

static print_fn *const printers[] = {
    [PNR_KEY_TEXT] = print_text,         [PNR_KEY_PATH] = print_text,
    [PNR_KEY_TIME] = print_text,         [PNR_KEY_SIZE] = print_size,
    [PNR_KEY_INT] = print_int,           [PNR_KEY_UINT64] = print_uint64,
    [PNR_KEY_BYTES] = print_bytes,       [PNR_KEY_DOUBLE] = print_double,
    [PNR_KEY_OPTIONAL] = print_optional, [PNR_KEY_RATIONAL] = print_rational,
    [PNR_KEY_CHOICE] = print_choice,     [PNR_KEY_YES_NO] = print_yes_no,
    [PNR_KEY_FORMAT] = print_format,     [PNR_KEY_EPOCH] = print_epoch,
    [PNR_KEY_RUNS] = print_runs,
};

void pnr_value_print(const pnr_key *key, const void *base, FILE *stream)
{
    printers[key->type](key, (const char *)base + key->offset, base, stream);
}

/* --- whole files --- */

static bool is_of(const pnr_key *key, const char *section)
{
    return strcmp(key->section, section) == 0;
}

/* The types that can hold nothing. */
static bool is_empty(const pnr_key *key, const void *base)
{
    const void *field = (const char *)base + key->offset;
    const void *also = (const char *)base + key->also;

    if (key->given != 0 && !*(const bool *)((const char *)base + key->given))
        return true;
    switch (key->type) {
    case PNR_KEY_TEXT:
    case PNR_KEY_PATH:
    case PNR_KEY_TIME:
        return *(const char *)field == '\0';
    case PNR_KEY_OPTIONAL:
        return !*(const bool *)also;
    case PNR_KEY_RATIONAL:
        return ((const pnr_rational *)field)->den == 0;
    case PNR_KEY_RUNS:
        return *(const size_t *)also == 0;
    default:
        return false;
    }
}

static void print_section(const char *section, const void *base, FILE *stream)
{
    for (size_t i = 0; i < pnr_config_n_keys; i++) {
        const pnr_key *key = &pnr_config_keys[i];

        if (!is_of(key, section))
            continue;
        fprintf(stream, "%s =", key->name);
        if (!is_empty(key, base)) {
            fputc(' ', stream);
            pnr_value_print(key, base, stream);
        }
        fputc('\n', stream);
    }
}

void pnr_config_print(const pnr_config *config, FILE *stream)
{
    char title[PNR_SECTION_LEN];

    for (const pnr_section *s = pnr_config_sections; s->name; s++) {
        const size_t n_items =
            s->item_bytes > 0 ? *(const size_t *)((const char *)config + s->n_items) : 0;

        if (s->item_bytes == 0) {
            fprintf(stream, "%s[%s]\n", s == pnr_config_sections ? "" : "\n", s->name);
            print_section(s->name, config, stream);
        }
        for (size_t i = 0; i < n_items; i++) {
            const char *item = pnr_section_item(s, config, i);

            fprintf(stream, "\n[%s]\n",
                    pnr_section_title(s, *(const size_t *)(item + s->number), title));
            print_section(s->name, item, stream);
        }
    }
}

/* "Hz, more than 0"; "" when there is nothing to say. */
static const char *describe(const pnr_key *key, char out[PNR_WHY_LEN])
{
    char range[PNR_WHY_LEN];

    pnr_value_range(key, range);
    snprintf(out, PNR_WHY_LEN, "%s%s%.200s", key->unit ? key->unit : "",
             key->unit && range[0] ? ", " : "", range);
    return out;
}

void pnr_config_print_reference(FILE *stream)
{
    char note[PNR_WHY_LEN], title[PNR_SECTION_LEN];

    fputs(
        "# Every key of pnradar with its default, unit, range and one sentence.\n"
        "# Printed from the table of keys that the programs use themselves; see pnradar.conf(5).\n"
        "# Comments begin with # or ;, at the start of a line or behind a space.\n"
        "# A value may be quoted: \"two words\".\n",
        stream);
    for (const pnr_section *s = pnr_config_sections; s->name; s++) {
        /* A target is nothing without an amplitude, and codes are as many as there are sections:
         * what is numbered stays a comment. */
        const char *mark = s->item_bytes > 0 ? "; " : "";

        fprintf(stream, "\n# --- %s ---\n%s[%s]\n", s->help, mark, pnr_section_title(s, 1, title));
        for (size_t i = 0; i < pnr_config_n_keys; i++) {
            const pnr_key *key = &pnr_config_keys[i];

            if (!is_of(key, s->name))
                continue;
            fprintf(stream, "\n# %s\n", key->help);
            if (describe(key, note)[0])
                fprintf(stream, "# %s\n", note);
            fprintf(stream, "%s%s =%s%s\n", mark, key->name, key->initial[0] ? " " : "",
                    key->initial);
        }
    }
}

/* Literal text for mdoc: no macro, no escape, no typographic hyphen. */
static void print_escaped(const char *text, FILE *stream)
{
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stream);
        else if (*text == '-')
            fputs("\\-", stream);
        else
            fputc(*text, stream);
    }
}

void pnr_config_print_mdoc(FILE *stream)
{
    char note[PNR_WHY_LEN];

    for (const pnr_section *s = pnr_config_sections; s->name; s++) {
        fprintf(stream, ".Ss %s\n%s\n.Bl -tag -width Ds\n", s->name, s->help);
        for (size_t i = 0; i < pnr_config_n_keys; i++) {
            const pnr_key *key = &pnr_config_keys[i];

            if (!is_of(key, s->name))
                continue;
            fprintf(stream, ".It Cm %s", key->name);
            if (key->initial[0]) {
                fputs(" = Ar ", stream);
                print_escaped(key->initial, stream);
            }
            fprintf(stream, "\n%s\n", key->help);
            if (describe(key, note)[0]) {
                fputs(".br\n", stream);
                print_escaped(note, stream);
                fputc('\n', stream);
            }
        }
        fputs(".El\n", stream);
    }
}
