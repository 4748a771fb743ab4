/* SPDX-License-Identifier: MIT */
/* The table of configuration keys, their sections, and functions for values of each type. */
#ifndef PNR_CONFIG_KEYS_H
#define PNR_CONFIG_KEYS_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum {
    PNR_KEY_TEXT,     /* char[size] */
    PNR_KEY_TIME,     /* char[size]: UTC, or empty */
    PNR_KEY_SIZE,     /* size_t */
    PNR_KEY_INT,      /* int, may be negative */
    PNR_KEY_BYTES,    /* size_t; the text may end in K, M or G */
    PNR_KEY_DOUBLE,   /* double */
    PNR_KEY_RATIONAL, /* pnr_rational; {0, 0}: empty text, allowed if the default is empty */
    PNR_KEY_CHOICE,   /* int: index into choices */
    PNR_KEY_YES_NO,   /* bool */
    PNR_KEY_FORMAT,   /* pnr_format; "auto" is PNR_FORMAT_NONE */
    PNR_KEY_EPOCH,    /* pnr_epoch */
    PNR_KEY_DEVICES,  /* pnr_devices */
    PNR_KEY_RUNS,     /* pnr_run *; the number of runs is a size_t at the offset `also` */
    PNR_KEY_NOTCHES   /* pnr_notches */
} pnr_key_type;

/* The ends that a range excludes. */
enum { PNR_OPEN_MIN = 1, PNR_OPEN_MAX = 2 };

typedef struct pnr_key {
    const char *section; /* a name in pnr_config_sections */
    const char *name;
    pnr_key_type type;
    size_t offset;              /* offset in pnr_config, or in an item of a numbered section */
    size_t size;                /* bytes of the member */
    size_t also;                /* offset of the second member that the type needs */
    size_t given;               /* offset of a bool, true if the value is set; 0: no such bool */
    const char *unit;           /* NULL: no unit */
    const char *initial;        /* the default as text */
    double min, max;            /* both 0: any value; max INFINITY: no upper end */
    unsigned open;              /* PNR_OPEN_... flags */
    const char *const *choices; /* words, NULL-terminated, in the order of the enum */
    const char *help;           /* one sentence */
} pnr_key;

extern const pnr_key pnr_config_keys[];
extern const size_t pnr_config_n_keys;
/* Returns the key `name` of a section, or of any section if `section` is NULL. Returns NULL if
 * there is no such key. */
const pnr_key *pnr_key_find(const char *section, const char *name);
/* Returns the key that follows `key` in its section, or the first key of the section if `key` is
 * NULL. Returns NULL after the last key. */
const pnr_key *pnr_key_next(const char *section, const pnr_key *key);
/* Returns the word for the present value of a key of type PNR_KEY_CHOICE. The section must not be
 * numbered. */
const char *pnr_config_word(const pnr_config *config, const char *section, const char *name);

/* The sections, in the order of the table. The last one has a NULL name. The numbered section
 * "target.n" stands for [target.1], [target.2] and so on. */
typedef struct pnr_section {
    const char *name;
    const char *help;      /* one sentence */
    size_t item_bytes;     /* bytes of an array item; 0: the section is not numbered */
    size_t items, n_items; /* offsets in pnr_config: of the array of items, and of its length */
    size_t number;         /* offset of n in an item; the array is sorted by n */
} pnr_section;
extern const pnr_section pnr_config_sections[];

enum { PNR_SECTION_LEN = 32 };
/* Writes the title of a section: "stream", "target.3", or "target.n" for number 0. Returns out. */
char *pnr_section_title(const pnr_section *section, size_t number, char out[PNR_SECTION_LEN]);
const pnr_section *pnr_section_of(const pnr_key *key);
/* Finds the section with the title `name`, as "target.3". *number: n of a numbered section, else 0.
 * Returns NULL if there is no such section. */
const pnr_section *pnr_section_find(const char *name, size_t *number);
/* Returns item `number` of a numbered section. Adds the item with the defaults if the section does
 * not have it. NULL: no memory. */
void *pnr_section_add(const pnr_section *section, pnr_config *config, size_t number);
/* Sets the defaults. If `numbered` is a section, `base` is an item of that section. If
 * `numbered` is NULL, `base` is a pnr_config, and only the sections that are not numbered get
 * their defaults. */
void pnr_section_reset(const pnr_section *numbered, void *base);
/* Returns item i of the array of a numbered section. */
const void *pnr_section_item(const pnr_section *section, const pnr_config *config, size_t i);

enum {
    PNR_VALUE_MAX = 4000, /* greatest number of bytes of a value; every value fits in a line of a
                           * file */
    PNR_WHY_LEN = 320
};

/* Reads the value of a key from text and stores it in *base, a pnr_config or an item of a numbered
 * section. Returns PNR_OK, PNR_ECONFIG or PNR_ENOMEMORY. After an error `why` has the reason, and
 * *base is unchanged. */
int pnr_value_parse(const pnr_key *key, const char *text, void *base, char why[PNR_WHY_LEN]);
/* Writes the value as in an INI file, with quotes if necessary; "" if the key has no value. Returns
 * out. */
char *pnr_value_format(const pnr_key *key, const void *base, char out[PNR_VALUE_MAX + 1]);
/* Writes the values that a key allows, as "1 to 64", "more than 0", "iq | channels" or "yes | no".
 * Writes "" if all values are allowed. Returns out. */
char *pnr_value_range(const pnr_key *key, char out[PNR_WHY_LEN]);

/* Returns the optimal string alignment distance of two names: insertions, deletions, replacements
 * and swaps of neighbouring letters. Ignores the case. Only the first 63 bytes of a name count. */
size_t pnr_name_distance(const char *a, const char *b);
/* Returns true if `wrong` may be `name` with typing errors: a name that differs in more than a
 * third of its characters is none. */
bool pnr_name_is_near(const char *wrong, const char *name);
/* Returns the name in pnradar for a word of other programs or of textbooks: "m-sequence" for the
 * value "mls" of code.type, "rate_hz" for the key "fs" of [source], "source" for the section
 * "input". key: NULL if the word is a key; section: "" if it is a section.
 * Ignores the case of the word. NULL: the word is not known. */
const char *pnr_name_synonym(const char *section, const char *key, const char *word);

#endif
