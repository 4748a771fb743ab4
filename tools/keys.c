/* SPDX-License-Identifier: MIT */
/* Prints all keys: as config/pnradar.conf, as a list for the manual (`make docs`), or as words for
 * shell completion. */
#include "config/keys.h"
#include "correlator/engines.h"

#include <stdio.h>
#include <string.h>

/* Prints the words that a key accepts, each after a space. */
static void print_words(const pnr_key *key, FILE *stream)
{
    char range[PNR_WHY_LEN];

    if (strcmp(key->section, "engine") == 0 && strcmp(key->name, "name") == 0) {
        fputs(" auto", stream);
        for (const char *const *name = pnr_engine_names(); *name != NULL; name++)
            fprintf(stream, " %s", *name);
    } else if (key->type == PNR_KEY_CHOICE || key->type == PNR_KEY_YES_NO ||
               key->type == PNR_KEY_FORMAT) {
        for (char *word = strtok(pnr_value_range(key, range), " |"); word != NULL;
             word = strtok(NULL, " |"))
            fprintf(stream, " %s", word);
    }
}

/* Prints a line for each key, as "engine.wait sleep spin". A numbered section is printed once, with
 * number 1. */
static void print_completion(FILE *stream)
{
    char title[PNR_SECTION_LEN];

    for (const pnr_section *s = pnr_config_sections; s->name; s++)
        for (const pnr_key *key = NULL; (key = pnr_key_next(s->name, key)) != NULL;) {
            fprintf(stream, "%s.%s", pnr_section_title(s, 1, title), key->name);
            print_words(key, stream);
            fputc('\n', stream);
        }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(FILE *stream);
    } texts[] = {{"reference", pnr_config_print_reference},
                 {"mdoc", pnr_config_print_mdoc},
                 {"words", print_completion}};

    for (size_t i = 0; argc == 2 && i < sizeof texts / sizeof *texts; i++)
        if (strcmp(argv[1], texts[i].name) == 0) {
            texts[i].print(stdout);
            return fflush(stdout) != 0;
        }
    fprintf(stderr, "usage: keys reference | mdoc | words\n");
    return 64;
}
