/* SPDX-License-Identifier: MIT */
/* The configuration as text: its present values, the reference file, and the list of the manual. */
#include "base/clock.h"
#include "config/keys.h"

#include <inttypes.h>
#include <string.h>

/* --- one value --- */

/* Quotes only a text that needs quotes, so that most lines look as people write them. */
static void print_text(const char *text, FILE *stream)
{
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

static void print_whole(pnr_key_type type, const void *field, FILE *stream)
{
    if (type == PNR_KEY_INT)
        fprintf(stream, "%d", *(const int *)field);
    else if (type == PNR_KEY_SIZE)
        fprintf(stream, "%zu", *(const size_t *)field);
    else
        fprintf(stream, "%" PRIu64, *(const uint64_t *)field);
}

static void print_bytes(size_t value, FILE *stream)
{
    const pnr_suffix *suffix = pnr_suffixes;

    while (suffix->letter && (value == 0 || value % ((size_t)1 << suffix->shift) != 0))
        suffix++;
    fprintf(stream, "%zu", value >> suffix->shift);
    if (suffix->letter)
        fputc(suffix->letter, stream);
}

static void print_epoch(const pnr_epoch *epoch, FILE *stream)
{
    char text[PNR_TIME_LEN];

    if (epoch->is_utc)
        fputs(pnr_time_format(epoch->utc_ns, text), stream);
    else
        fprintf(stream, "%" PRId64, epoch->sample);
}

/* Without spaces the printed text is never longer than the text that was read, so it fits in a
 * line. */
static void print_runs(const pnr_run *runs, size_t n, FILE *stream)
{
    for (size_t i = 0; i < n; i++)
        fprintf(stream, "%s%" PRIu64 "+%" PRIu64, i ? "," : "", runs[i].first, runs[i].count);
}

/* True when the key has no value. */
static bool is_empty(const pnr_key *key, const char *base)
{
    if (key->given != 0 && !*(const bool *)(base + key->given))
        return true;
    switch (key->type) {
    case PNR_KEY_TEXT:
    case PNR_KEY_PATH:
    case PNR_KEY_TIME:
        return base[key->offset] == '\0';
    case PNR_KEY_OPTIONAL:
        return !*(const bool *)(base + key->also);
    case PNR_KEY_RATIONAL:
        return ((const pnr_rational *)(const void *)(base + key->offset))->den == 0;
    case PNR_KEY_RUNS:
        return *(const size_t *)(const void *)(base + key->also) == 0;
    default:
        return false;
    }
}

void pnr_value_print(const pnr_key *key, const void *base, FILE *stream)
{
    const void *field = (const char *)base + key->offset;
    const void *also = (const char *)base + key->also;
    char text[48];

    if (is_empty(key, base))
        return;
    switch (key->type) {
    case PNR_KEY_TEXT:
    case PNR_KEY_PATH:
    case PNR_KEY_TIME:
        print_text(field, stream);
        break;
    case PNR_KEY_BYTES:
        print_bytes(*(const size_t *)field, stream);
        break;
    case PNR_KEY_DOUBLE:
    case PNR_KEY_OPTIONAL:
        fputs(pnr_value_double(*(const double *)field, text), stream);
        break;
    case PNR_KEY_RATIONAL:
        fputs(pnr_rational_format(*(const pnr_rational *)field, text), stream);
        break;
    case PNR_KEY_CHOICE:
    case PNR_KEY_FORMAT:
        fputs(pnr_value_word(key, (size_t)(*(const int *)field)), stream);
        break;
    case PNR_KEY_YES_NO:
        fputs(*(const bool *)field ? "yes" : "no", stream);
        break;
    case PNR_KEY_EPOCH:
        print_epoch(field, stream);
        break;
    case PNR_KEY_RUNS:
        print_runs(*(pnr_run *const *)field, *(const size_t *)also, stream);
        break;
    default:
        print_whole(key->type, field, stream);
    }
}

/* --- whole files --- */

static void print_section(const char *section, const void *base, FILE *stream)
{
    for (const pnr_key *key = NULL; (key = pnr_key_next(section, key)) != NULL;) {
        fprintf(stream, "%s =%s", key->name, is_empty(key, base) ? "" : " ");
        pnr_value_print(key, base, stream);
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
