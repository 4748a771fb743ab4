/* SPDX-License-Identifier: MIT */
/* Calls libjansson to read JSON texts. */
#ifndef PNR_BASE_JSON_H
#define PNR_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Reads one JSON value from `length` bytes. Refuses an object with two equal keys. The caller frees
 * the value with json_decref(). Returns NULL after an error; *error (may be NULL) has the reason.
 * If an allocation fails, the process exits with the status of PNR_ENOMEMORY, because libjansson
 * 2.14 would then write beyond the end of its buffers. */
json_t *pnr_json_read(const char *text, size_t length, json_error_t *error);

#endif
