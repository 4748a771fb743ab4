/* SPDX-License-Identifier: MIT */
/* What a target requires of its subject. */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static inline void fuzz_require(bool holds, int line, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "line %d: %s\n", line, what);
    abort(); /* libFuzzer prints the stack */
}
#define require(what) fuzz_require(what, __LINE__, #what)

/* Takes the next bytes of an input; 0 after its end. */
typedef struct fuzz_input {
    const uint8_t *at;
    size_t n;
} fuzz_input;

static inline unsigned take_byte(fuzz_input *input)
{
    if (input->n == 0)
        return 0;
    input->n--;
    return *input->at++;
}

/* Takes n bytes, or those that are left. Returns their number. */
static inline size_t take_bytes(fuzz_input *input, size_t n, const uint8_t **bytes)
{
    *bytes = input->at;
    n = n < input->n ? n : input->n;
    input->at += n;
    input->n -= n;
    return n;
}

#endif
