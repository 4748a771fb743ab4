/* SPDX-License-Identifier: MIT */
/* The one table of configuration keys, and how a value of each type is read and written. */
#ifndef PNR_CONFIG_KEYS_H
#define PNR_CONFIG_KEYS_H

#include "config.h"

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
    const char *section; /* "target" stands for every [target.<n>] */
    const char *name;
    pnr_key_type type;
    size_t offset;              /* in pnr_config; of [target.<n>] in pnr_target */
    size_t also;                /* offset of the second member that the type needs */
    const char *unit;           /* NULL: none */
    const char *initial;        /* the default, as it would be written */
    double min, max;            /* both 0: any value; max INFINITY: no upper end */
    unsigned open;              /* PNR_OPEN_... */
    const char *const *choices; /* NULL-terminated, in the order of the enum */
    const char *help;           /* one sentence */
} pnr_key;

extern const pnr_key pnr_config_keys[];
extern const size_t pnr_config_n_keys;

/* The sections in the order of the table, each with one sentence; ends with a NULL name. */
typedef struct pnr_section {
    const char *name;
    const char *help;
} pnr_section;
extern const pnr_section pnr_config_sections[];

#define PNR_SECTION_TARGET "target"

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
/* What parse reads back to the same value. */
void pnr_value_print(const pnr_key *key, const void *base, FILE *stream);
/* "1 to 64", "more than 0", "iq | channels", "yes | no"; "" when any value will do. Returns out. */
char *pnr_value_range(const pnr_key *key, char out[PNR_WHY_LEN]);

/* Steps between two names: insertion, deletion, replacement, swap of neighbours (the optimal
 * string alignment distance). Names beyond 63 bytes are cut. */
size_t pnr_name_distance(const char *a, const char *b);

#endif
