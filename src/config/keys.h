/* SPDX-License-Identifier: MIT */
/* The one table of configuration keys, and how a value of each type is read and written. */
#ifndef PNR_CONFIG_KEYS_H
#define PNR_CONFIG_KEYS_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum {
    PNR_KEY_TEXT,     /* char[PNR_TEXT_LEN] */
    PNR_KEY_PATH,     /* char[PNR_PATH_LEN] */
    PNR_KEY_TIME,     /* char[PNR_TEXT_LEN]: UTC, or empty */
    PNR_KEY_SIZE,     /* size_t */
    PNR_KEY_INT,      /* int, may be negative */
    PNR_KEY_UINT64,   /* uint64_t */
    PNR_KEY_BYTES,    /* size_t, with K, M or G */
    PNR_KEY_DOUBLE,   /* double */
    PNR_KEY_OPTIONAL, /* double, and a bool at `also`: given */
    PNR_KEY_RATIONAL, /* pnr_rational; empty is {0, 0} where the default is empty */
    PNR_KEY_CHOICE,   /* int: index into choices */
    PNR_KEY_YES_NO,   /* bool */
    PNR_KEY_FORMAT,   /* pnr_format; "auto" is PNR_FORMAT_NONE */
    PNR_KEY_EPOCH,    /* pnr_epoch */
    PNR_KEY_RUNS      /* pnr_run *, and a size_t at `also`: how many */
} pnr_key_type;

/* Which ends of the range are not in it. */
enum { PNR_OPEN_MIN = 1, PNR_OPEN_MAX = 2 };

typedef struct pnr_key {
    const char *section; /* of pnr_config_sections */
    const char *name;
    pnr_key_type type;
    size_t offset;              /* in pnr_config; of a numbered section in its item */
    size_t also;                /* offset of the second member that the type needs */
    size_t given;               /* offset of a bool: given, and not empty; 0: always is */
    const char *unit;           /* NULL: none */
    const char *initial;        /* the default, as it would be written */
    double min, max;            /* both 0: any value; max INFINITY: no upper end */
    unsigned open;              /* PNR_OPEN_... */
    const char *const *choices; /* NULL-terminated, in the order of the enum */
    const char *help;           /* one sentence */
} pnr_key;

extern const pnr_key pnr_config_keys[];
extern const size_t pnr_config_n_keys;
/* The key of this section and name; section NULL: of any. NULL: there is none. */
const pnr_key *pnr_key_find(const char *section, const char *name);
/* The word of a PNR_KEY_CHOICE key of a section without numbers, as the configuration spells it. */
const char *pnr_config_word(const pnr_config *config, const char *section, const char *name);

/* The sections in the order of the table, each with one sentence; ends with a NULL name. A numbered
 * one, "target.n", stands for [target.1], [target.2] and so on. */
typedef struct pnr_section {
    const char *name;
    const char *help;
    size_t item_bytes;     /* of one of its items; 0: it is not numbered */
    size_t items, n_items; /* offsets in pnr_config: the array, sorted by n, and how many */
    size_t number;         /* offset in an item: its n */
} pnr_section;
extern const pnr_section pnr_config_sections[];

enum { PNR_SECTION_LEN = 32 };
/* "stream", "target.3"; of a numbered one with number 0 "target.n". Returns out. */
char *pnr_section_title(const pnr_section *section, size_t number, char out[PNR_SECTION_LEN]);
const pnr_section *pnr_section_of(const pnr_key *key);
/* The section that a file calls by this name, and which of a numbered one; NULL: there is none. */
const pnr_section *pnr_section_find(const char *name, size_t *number);
/* Item `number` of a numbered section, made with its defaults when it is new; NULL: no memory. */
void *pnr_section_add(const pnr_section *section, pnr_config *config, size_t number);
/* The defaults of a numbered section into one item; NULL: of all others into a pnr_config. */
void pnr_section_reset(const pnr_section *numbered, void *base);
/* Item i of a numbered section, from 0, as it is stored. */
const void *pnr_section_item(const pnr_section *section, const pnr_config *config, size_t i);

enum {
    PNR_VALUE_MAX = 4000, /* bytes of a value: printed again it still fits a line */
    PNR_WHY_LEN = 320
};

/* The ends of a PNR_KEY_BYTES value, largest first; ends with letter 0. */
typedef struct pnr_suffix {
    char letter;
    unsigned shift;
} pnr_suffix;
extern const pnr_suffix pnr_suffixes[];

/* text into the member(s) of base (pnr_config or pnr_target). PNR_OK; PNR_ECONFIG or PNR_ENOMEMORY
 * with the reason in why, and base as it was. */
int pnr_value_parse(const pnr_key *key, const char *text, void *base, char why[PNR_WHY_LEN]);
/* Prints text that parse reads back to the same value. */
void pnr_value_print(const pnr_key *key, const void *base, FILE *stream);
/* The shortest of 15 to 17 digits that reads back to the same value. Returns out. */
enum { PNR_DOUBLE_LEN = 40 };
char *pnr_value_double(double value, char out[PNR_DOUBLE_LEN]);
/* "1 to 64", "more than 0", "iq | channels", "yes | no"; "" when any value will do. Returns out. */
char *pnr_value_range(const pnr_key *key, char out[PNR_WHY_LEN]);

/* Steps between two names: insertion, deletion, replacement, swap of neighbours (the optimal
 * string alignment distance). Names beyond 63 bytes are cut. */
size_t pnr_name_distance(const char *a, const char *b);

#endif
