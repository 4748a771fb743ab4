/* SPDX-License-Identifier: MIT */
/* The reader of one message: values by name, checked one by one. All readers of the wire use it. */
#ifndef PNR_MESSAGE_READER_H
#define PNR_MESSAGE_READER_H

#include "publisher/message.h"

#include <jansson.h>

/* The first error is kept; reads after it are harmless. Owner of root: this, from open to close. */
typedef struct pnr_reader {
    json_t *root;
    pnr_error *error;
    int code;
} pnr_reader;

/* Parses the text and reads the first members, which every message has. */
void pnr_reader_open(pnr_reader *r, const char *text, size_t length, char run[17],
                     char stream[PNR_TEXT_LEN], uint64_t *seq);
int pnr_reader_close(pnr_reader *r); /* returns code */
void pnr_reader_wrong(pnr_reader *r, const char *name, const char *what);

/* Returns a member of object by its name. A member that is missing or has another type is an
 * error. */
json_t *pnr_reader_get(pnr_reader *r, const json_t *object, const char *name);
uint64_t pnr_reader_u64(pnr_reader *r, const json_t *object, const char *name, uint64_t max);
/* A 64-bit integer as a string of digits. */
uint64_t pnr_reader_long(pnr_reader *r, const json_t *object, const char *name);
double pnr_reader_double(pnr_reader *r, const json_t *object, const char *name); /* NAN for null */
/* A string without control characters. */
void pnr_reader_string(pnr_reader *r, const json_t *object, const char *name, char *out,
                       size_t size);
/* Reads sample, time and time_source. */
void pnr_reader_moment(pnr_reader *r, pnr_report *out);

#endif
