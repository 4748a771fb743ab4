/* SPDX-License-Identifier: MIT */
/* Sections of the configuration: their names, and the arrays of numbered sections. */
#include "config/keys.h"

#include <stdlib.h>
#include <string.h>

char *pnr_section_title(const pnr_section *section, size_t number, char out[PNR_SECTION_LEN])
{
    if (section->item_bytes == 0 || number == 0)
        snprintf(out, PNR_SECTION_LEN, "%s", section->name);
    else
        snprintf(out, PNR_SECTION_LEN, "%.*s%zu", (int)strlen(section->name) - 1, section->name,
                 number);
    return out;
}

const void *pnr_section_item(const pnr_section *section, const pnr_config *config, size_t i)
{
    const char *items;

    memcpy(&items, (const char *)config + section->items, sizeof items);
    return items + i * section->item_bytes;
}

const pnr_section *pnr_section_of(const pnr_key *key)
{
    const pnr_section *s = pnr_config_sections;

    while (strcmp(s->name, key->section) != 0)
        s++;
    return s;
}

/* Returns the number in the name of a numbered section: 12 for "target.12" in the section
 * "target.n". Returns 0 for another name. */
static size_t number_of(const pnr_section *table, const char *name)
{
    const size_t prefix = strlen(table->name) - 1;
    size_t n;

    if (strncmp(name, table->name, prefix) != 0)
        return 0;
    name += prefix;
    n = strspn(name, "0123456789");
    return *name != '0' && n <= 9 && name[n] == '\0' ? strtoul(name, NULL, 10) : 0;
}

const pnr_section *pnr_section_find(const char *name, size_t *number)
{
    for (const pnr_section *s = pnr_config_sections; s->name; s++) {
        *number = s->item_bytes > 0 ? number_of(s, name) : 0;
        if (s->item_bytes > 0 ? *number > 0 : strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

void pnr_section_reset(const pnr_section *numbered, void *base)
{
    char why[PNR_WHY_LEN];

    /* Ignores the result: a test checks that every default is valid. */
    for (size_t i = 0; i < pnr_config_n_keys; i++) {
        const pnr_key *key = &pnr_config_keys[i];
        const pnr_section *of = pnr_section_of(key);

        if (numbered != NULL ? of == numbered : of->item_bytes == 0)
            pnr_value_parse(key, key->initial, base, why);
    }
}

void *pnr_section_add(const pnr_section *table, pnr_config *config, size_t number)
{
    char *items;
    size_t *n_items = (size_t *)((char *)config + table->n_items);
    size_t i = *n_items;

    memcpy(&items, (char *)config + table->items, sizeof items);
    /* Searches from the end, because most files have the sections in ascending order. */
    while (i > 0 && *(size_t *)(items + (i - 1) * table->item_bytes + table->number) >= number)
        i--;
    if (i == *n_items || *(size_t *)(items + i * table->item_bytes + table->number) != number) {
        char *more = realloc(items, (*n_items + 1) * table->item_bytes);

        if (!more)
            return NULL;
        items = more;
        memcpy((char *)config + table->items, &items, sizeof items);
        more += i * table->item_bytes;
        memmove(more + table->item_bytes, more, (*n_items - i) * table->item_bytes);
        memset(more, 0, table->item_bytes);
        pnr_section_reset(table, more);
        *(size_t *)(more + table->number) = number;
        (*n_items)++;
    }
    return items + i * table->item_bytes;
}

size_t pnr_config_codes(const pnr_config *config)
{
    return config->n_codes > 0 ? config->n_codes : 1;
}

void pnr_config_code(const pnr_config *config, size_t c, pnr_config *out)
{
    const char *from = config->n_codes > 0 ? (const char *)&config->codes[c] : NULL;

    *out = *config;
    out->codes = NULL;
    out->n_codes = 0;
    for (const pnr_key *key = NULL; from != NULL && (key = pnr_key_next("code.n", key)) != NULL;)
        if (*(const bool *)(from + key->given)) {
            const pnr_key *to = pnr_key_find("code", key->name);

            memcpy((char *)out + to->offset, from + key->offset, key->size);
            if (to->given != 0)
                *(bool *)((char *)out + to->given) = true;
        }
}

/* True if the text begins with "code." and the name of a key that the section `from` sets. */
static bool is_set_key(const pnr_code_section *from, const char *text)
{
    const size_t n =
        strncmp(text, "code.", 5) == 0 ? strspn(text + 5, "abcdefghijklmnopqrstuvwxyz_") : 0;

    for (const pnr_key *key = NULL; n > 0 && (key = pnr_key_next("code.n", key)) != NULL;)
        if (strlen(key->name) == n && strncmp(key->name, text + 5, n) == 0)
            return *(const bool *)((const char *)from + key->given);
    return false;
}

void pnr_config_rename_keys(const pnr_config *config, size_t c, pnr_error *error)
{
    pnr_error renamed;
    size_t n = 0;

    if (config->n_codes == 0 || error == NULL)
        return;
    for (const char *at = error->text; *at && n < sizeof renamed.text - 1;) {
        const bool is_word = at == error->text || at[-1] == ' ';

        if (is_word && is_set_key(&config->codes[c], at)) {
            n += (size_t)snprintf(renamed.text + n, sizeof renamed.text - n, "code.%zu",
                                  config->codes[c].number);
            at += strlen("code");
        } else {
            renamed.text[n++] = *at++;
        }
    }
    if (n > sizeof renamed.text - 1)
        n = sizeof renamed.text - 1;
    memcpy(error->text, renamed.text, n);
    error->text[n] = '\0';
}
