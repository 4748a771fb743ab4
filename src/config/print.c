/* SPDX-License-Identifier: MIT */
/* Prints the configuration: its present values, the reference file, or the list of keys for the
 * manual. */
#include "config/keys.h"

#include <string.h>

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

/* Writes the unit and the range of a key, as "Hz, more than 0", or "" if the key has neither. */
static const char *describe_key(const pnr_key *key, char out[PNR_WHY_LEN])
{
    char range[PNR_WHY_LEN];

    pnr_value_range(key, range);
    snprintf(out, PNR_WHY_LEN, "%s%s%.200s", key->unit ? key->unit : "",
             key->unit && range[0] ? ", " : "", range);
    return out;
}

/* Prints the text as a comment. If the text has more than 100 bytes, each line ends after a "|". */
static void print_comment(const char *text, FILE *stream)
{
    size_t n = 100;

    while (strlen(text) > n) {
        while (n > 0 && text[n - 1] != '|')
            n--;
        if (n == 0)
            break;
        fprintf(stream, "# %.*s\n", (int)n, text);
        text += n + 1;
        n = 100;
    }
    fprintf(stream, "# %s\n", text);
}

void pnr_config_print_reference(FILE *stream)
{
    char note[PNR_WHY_LEN], title[PNR_SECTION_LEN];

    fputs(
        "# Every key of pnradar with its default, unit, range and one sentence.\n"
        "# Printed from the table of keys that the programs use themselves; see pnradar.conf(5).\n"
        "# Comments begin with # or ;, at the start of a line or after a space.\n"
        "# A value may be quoted: \"two words\".\n"
        "# A number may have its unit, with a prefix: 2.4 Msps, 250 km, 10 ms.\n",
        stream);
    for (const pnr_section *s = pnr_config_sections; s->name; s++) {
        /* Prints numbered sections as comments, because a target with the default values is
         * refused. */
        const char *mark = s->item_bytes > 0 ? "; " : "";

        fprintf(stream, "\n# --- %s ---\n%s[%s]\n", s->help, mark, pnr_section_title(s, 1, title));
        for (const pnr_key *key = NULL; (key = pnr_key_next(s->name, key)) != NULL;) {
            fprintf(stream, "\n# %s\n", key->help);
            if (describe_key(key, note)[0])
                print_comment(note, stream);
            fprintf(stream, "%s%s =%s%s\n", mark, key->name, key->initial[0] ? " " : "",
                    key->initial);
        }
    }
}

/* Prints a text for mdoc. Escapes each backslash and hyphen, so that the manual shows the same
 * text. */
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
