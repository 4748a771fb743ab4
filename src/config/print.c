/* SPDX-License-Identifier: MIT */
/* The configuration as text: its present values, the reference file, and the list of the manual. */
#include "base/clock.h"
#include "config/keys.h"

#include <inttypes.h>
#include <string.h>

/* --- one value --- */

/* Quotes only a text that needs quotes, so that most lines look as people write them. */
static void format_text(const char *text, char *out)
{
    const bool is_quoted = strpbrk(text, " \t\"#;") != NULL;

    if (is_quoted)
        *out++ = '"';
    for (; *text; text++) {
        if (is_quoted && (*text == '"' || *text == '\\'))
            *out++ = '\\';
        *out++ = *text;
    }
    strcpy(out, is_quoted ? "\"" : "");
}

static void format_bytes(size_t value, char out[PNR_VALUE_MAX + 1])
{
    const pnr_suffix *suffix = pnr_suffixes;

    while (suffix->letter && (value == 0 || value % ((size_t)1 << suffix->shift) != 0))
        suffix++;
    snprintf(out, PNR_VALUE_MAX + 1, "%zu%.1s", value >> suffix->shift, &suffix->letter);
}

/* Without spaces the text is never longer than the text that was read, so it fits in a line. */
static void format_runs(const pnr_run *runs, size_t n, char out[PNR_VALUE_MAX + 1])
{
    size_t used = 0;

    for (size_t i = 0; i < n && used < PNR_VALUE_MAX; i++)
        used += (size_t)snprintf(out + used, PNR_VALUE_MAX + 1 - used, "%s%" PRIu64 "+%" PRIu64,
                                 i ? "," : "", runs[i].first, runs[i].count);
}

char *pnr_value_format(const pnr_key *key, const void *base, char out[PNR_VALUE_MAX + 1])
{
    const char *at = base;
    const void *field = at + key->offset, *also = at + key->also;

    out[0] = '\0';
    if (key->given != 0 && !*(const bool *)(at + key->given))
        return out;
    switch (key->type) {
    case PNR_KEY_TEXT:
    case PNR_KEY_TIME:
        format_text(field, out);
        break;
    case PNR_KEY_SIZE:
        snprintf(out, PNR_VALUE_MAX, "%zu", *(const size_t *)field);
        break;
    case PNR_KEY_INT:
        snprintf(out, PNR_VALUE_MAX, "%d", *(const int *)field);
        break;
    case PNR_KEY_BYTES:
        format_bytes(*(const size_t *)field, out);
        break;
    case PNR_KEY_DOUBLE:
        pnr_value_double(*(const double *)field, out);
        break;
    case PNR_KEY_RATIONAL:
        if (((const pnr_rational *)field)->den != 0)
            pnr_rational_format(*(const pnr_rational *)field, out);
        break;
    case PNR_KEY_CHOICE:
    case PNR_KEY_FORMAT:
        strcpy(out, pnr_value_word(key, (size_t)(*(const int *)field)));
        break;
    case PNR_KEY_YES_NO:
        strcpy(out, *(const bool *)field ? "yes" : "no");
        break;
    case PNR_KEY_EPOCH:
        if (((const pnr_epoch *)field)->is_utc)
            pnr_time_format(((const pnr_epoch *)field)->utc_ns, out);
        else
            snprintf(out, PNR_VALUE_MAX, "%" PRId64, ((const pnr_epoch *)field)->sample);
        break;
    case PNR_KEY_RUNS:
        format_runs(*(pnr_run *const *)field, *(const size_t *)also, out);
    }
    return out;
}

/* --- whole files --- */

static void print_section(const char *section, const void *base, FILE *stream)
{
    char value[PNR_VALUE_MAX + 1];

    for (const pnr_key *key = NULL; (key = pnr_key_next(section, key)) != NULL;) {
        pnr_value_format(key, base, value);
        fprintf(stream, "%s =%s%s\n", key->name, value[0] ? " " : "", value);
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
        /* Numbered sections are printed as comments: a target needs an amplitude, and each [code.n]
         * adds a code. */
        const char *mark = s->item_bytes > 0 ? "; " : "";

        fprintf(stream, "\n# --- %s ---\n%s[%s]\n", s->help, mark, pnr_section_title(s, 1, title));
        for (const pnr_key *key = NULL; (key = pnr_key_next(s->name, key)) != NULL;) {
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
        for (const pnr_key *key = NULL; (key = pnr_key_next(s->name, key)) != NULL;) {
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
