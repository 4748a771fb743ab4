/* SPDX-License-Identifier: MIT */
/* Calls libjansson to read JSON texts. */
#include "base/json.h"

#include "base/error.h"
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *allocate_or_exit(size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL) {
        pnr_log(PNR_LOG_ERROR, "out of memory: %zu bytes for a JSON text", size);
        (void)fflush(stdout);
        _exit(pnr_error_exit(PNR_ENOMEMORY));
    }
    return memory;
}

static void set_allocator(void)
{
    json_set_alloc_funcs(allocate_or_exit, free);
}

json_t *pnr_json_read(const char *text, size_t length, json_error_t *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, set_allocator);
    return json_loadb(text, length, JSON_REJECT_DUPLICATES, error);
}
