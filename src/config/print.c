/* SPDX-License-Identifier: MIT */
/* The configuration as text: its present values, the reference file, and the list of the manual. */
#include "base/clock.h"
#include "config/keys.h"

#include <inttypes.h>
#include <string.h>

/* --- one writer for each type of key --- */

/* One key of one configuration. */
typedef struct member {
    const pnr_key *key;
    const void *field, *also; /* at key->offset and key->also */
} member;

/* Quotes only a text that needs it, so that most lines look as people write them. */
static void print_text(const member *of, FILE *stream)
{
    const char *text = of->field;

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

static void print_whole(const member *of, FILE *stream)
{
    if (of->key->type == PNR_KEY_INT)
        fprintf(stream, "%d", *(const int *)of->field);
    else if (of->key->type == PNR_KEY_SIZE)
        fprintf(stream, "%zu", *(const size_t *)of->field);
    else
        fprintf(stream, "%" PRIu64, *(const uint64_t *)of->field);
}

static void print_bytes(const member *of, FILE *stream)
{
    size_t value = *(const size_t *)of->field;

    for (const pnr_suffix *suffix = pnr_suffixes; suffix->letter; suffix++)
        if (value > 0 && value % ((size_t)1 << suffix->shift) == 0) {
            fprintf(stream, "%zu%c", value >> suffix->shift, suffix->letter);
            return;
        }
    fprintf(stream, "%zu", value);
}

static void print_double(const member *of, FILE *stream)
{
    char text[PNR_DOUBLE_LEN];

    fputs(pnr_value_double(*(const double *)of->field, text), stream);
}

static void print_optional(const member *of, FILE *stream)
{
    if (*(const bool *)of->also)
        print_double(of, stream);
}

static void print_rational(const member *of, FILE *stream)
{
    const pnr_rational *value = of->field;
    char text[48];

    if (value->den != 0)
        fputs(pnr_rational_format(*value, text), stream);
}

static void print_choice(const member *of, FILE *stream)
{
    fputs(of->key->choices[*(const int *)of->field], stream);
}

static void print_yes_no(const member *of, FILE *stream)
{
    fputs(*(const bool *)of->field ? "yes" : "no", stream);
}

static void print_format(const member *of, FILE *stream)
{
    pnr_format format = *(const pnr_format *)of->field;

    fputs(format == PNR_FORMAT_NONE ? "auto" : pnr_format_get(format)->name, stream);
}

static void print_epoch(const member *of, FILE *stream)
{
    const pnr_epoch *epoch = of->field;
    char text[PNR_TIME_LEN];

    if (epoch->is_utc)
        fputs(pnr_time_format(epoch->utc_ns, text), stream);
    else
        fprintf(stream, "%" PRId64, epoch->sample);
}

/* Without spaces it is never longer than the text that was read, so it fits a line. */
static void print_runs(const member *of, FILE *stream)
{
    const pnr_run *runs = *(pnr_run *const *)of->field;
    size_t n = *(const size_t *)of->also;

    for (size_t i = 0; i < n; i++)
        fprintf(stream, "%s%" PRIu64 "+%" PRIu64, i ? "," : "", runs[i].first, runs[i].count);
}

typedef void print_fn(const member *of, FILE *stream);

static print_fn *const printers[] = {
    [PNR_KEY_TEXT] = print_text,         [PNR_KEY_PATH] = print_text,
    [PNR_KEY_TIME] = print_text,         [PNR_KEY_SIZE] = print_whole,
    [PNR_KEY_INT] = print_whole,         [PNR_KEY_UINT64] = print_whole,
    [PNR_KEY_BYTES] = print_bytes,       [PNR_KEY_DOUBLE] = print_double,
    [PNR_KEY_OPTIONAL] = print_optional, [PNR_KEY_RATIONAL] = print_rational,
    [PNR_KEY_CHOICE] = print_choice,     [PNR_KEY_YES_NO] = print_yes_no,
    [PNR_KEY_FORMAT] = print_format,     [PNR_KEY_EPOCH] = print_epoch,
    [PNR_KEY_RUNS] = print_runs,
};

static member member_of(const pnr_key *key, const char *base)
{
    return (member){.key = key, .field = base + key->offset, .also = base + key->also};
}

void pnr_value_print(const pnr_key *key, const void *base, FILE *stream)
{
    const member of = member_of(key, base);

    printers[key->type](&of, stream);
}

/* --- whole files --- */

static bool is_of(const pnr_key *key, const char *section)
{
    return strcmp(key->section, section) == 0;
}

/* True when the key has no value. */
static bool is_empty(const pnr_key *key, const void *base)
{
    const member of = member_of(key, base);

    if (key->given != 0 && !*(const bool *)((const char *)base + key->given))
        return true;
    switch (key->type) {
    case PNR_KEY_TEXT:
    case PNR_KEY_PATH:
    case PNR_KEY_TIME:
        return *(const char *)of.field == '\0';
    case PNR_KEY_OPTIONAL:
        return !*(const bool *)of.also;
    case PNR_KEY_RATIONAL:
        return ((const pnr_rational *)of.field)->den == 0;
    case PNR_KEY_RUNS:
        return *(const size_t *)of.also == 0;
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

/* "Hz, more than 0"; "" without a unit and a range. */
static const char *describe_key(const pnr_key *key, char out[PNR_WHY_LEN])
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
        "# Comments begin with # or ;, at the start of a line or after a space.\n"
        "# A value may be quoted: \"two words\".\n",
        stream);
    for (const pnr_section *s = pnr_config_sections; s->name; s++) {
        /* Numbered sections stay comments: a target needs an amplitude, and each [code.n] adds a
         * code. */
        const char *mark = s->item_bytes > 0 ? "; " : "";

        fprintf(stream, "\n# --- %s ---\n%s[%s]\n", s->help, mark, pnr_section_title(s, 1, title));
        for (size_t i = 0; i < pnr_config_n_keys; i++) {
            const pnr_key *key = &pnr_config_keys[i];

            if (!is_of(key, s->name))
                continue;
            fprintf(stream, "\n# %s\n", key->help);
            if (describe_key(key, note)[0])
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
            if (describe_key(key, note)[0]) {
                fputs(".br\n", stream);
                print_escaped(note, stream);
                fputc('\n', stream);
            }
        }
        fputs(".El\n", stream);
    }
}
