/* SPDX-License-Identifier: MIT */
/* A hash of chosen values of the configuration. It shows whether a file was made with the same
 * values. */
#include "config/keys.h"

#include <string.h>

/* Adds a text to an FNV-1a hash. The final NUL is added too, so "ab", "c" and "a", "bc" differ. */
static uint64_t add_text(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++ != '\0');
    return hash;
}

static uint64_t add_values(uint64_t hash, const pnr_config_part *part, const void *base)
{
    char value[PNR_VALUE_MAX + 1];

    for (const pnr_key *key = NULL; (key = pnr_key_next(part->section, key)) != NULL;)
        if (part->key == NULL || strcmp(part->key, key->name) == 0)
            hash = add_text(add_text(hash, key->name), pnr_value_format(key, base, value));
    return hash;
}

/* Returns the section of this name. "code.n" is the name of the numbered sections. */
static const pnr_section *find_section(const char *name)
{
    const pnr_section *s = pnr_config_sections;

    while (strcmp(s->name, name) != 0)
        s++;
    return s;
}

uint64_t pnr_config_hash(const pnr_config *config, const pnr_config_part *parts, size_t n_parts)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char title[PNR_SECTION_LEN];

    for (size_t i = 0; i < n_parts; i++) {
        const pnr_section *s = find_section(parts[i].section);
        const size_t n_items =
            s->item_bytes > 0 ? *(const size_t *)((const char *)config + s->n_items) : 0;

        if (s->item_bytes == 0)
            hash = add_values(hash, &parts[i], config);
        for (size_t k = 0; k < n_items; k++) {
            const char *item = pnr_section_item(s, config, k);

            (void)pnr_section_title(s, *(const size_t *)(item + s->number), title);
            hash = add_values(add_text(hash, title), &parts[i], item);
        }
    }
    return hash;
}
