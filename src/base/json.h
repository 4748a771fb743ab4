/* SPDX-License-Identifier: MIT */
/* Reads JSON texts by libjansson. */
#ifndef PNR_BASE_JSON_H
#define PNR_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Reads one JSON value from `length` bytes. Refuses an object that has the same key twice. Owner:
 * the caller, by json_decref(). NULL: *error (may be NULL) says why. If an allocation fails, the
 * process ends with the exit status of PNR_ENOMEMORY, because libjansson 2.14 would then write past
 * the end of its buffers. */
json_t *pnr_json_read(const char *text, size_t length, json_error_t *error);

#endif
