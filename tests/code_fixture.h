/* SPDX-License-Identifier: MIT */
/* What the tests of codes share: a code from a few keys, and periodic correlation. */
#ifndef TEST_CODE_FIXTURE_H
#define TEST_CODE_FIXTURE_H

#include "code.h"
#include "transform.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef double sample[2];

/* Only the keys of a code; text is its taps or its path. */
typedef struct keys {
    int type;
    size_t degree, length, root, prn, index, seed;
    const char *text;
} keys;

static inline pnr_config *new_config(keys k)
{
    pnr_config *config = calloc(1, sizeof *config);

    assert_non_null(config);
    config->code.type = k.type;
    config->code.degree = k.degree;
    config->code.length = k.length;
    config->code.root = k.root;
    config->code.prn = k.prn;
    config->code.index = k.index;
    config->code.seed = k.seed;
    snprintf(config->code.taps, sizeof config->code.taps, "%.100s", k.text ? k.text : "");
    snprintf(config->code.path, sizeof config->code.path, "%.1000s", k.text ? k.text : "");
    return config;
}

static inline pnr_code *new_code(keys k)
{
    pnr_config *config = new_config(k);
    pnr_error error = {0};
    pnr_code *code = NULL;

    if (pnr_code_create(config, &code, &error) != PNR_OK)
        fail_msg("%s", error.text);
    free(config);
    assert_non_null(code);
    return code;
}

static inline void refused(keys k, int expected, const char *reason)
{
    pnr_config *config = new_config(k);
    pnr_error error = {0};
    pnr_code *code = (pnr_code *)config; /* anything but NULL */

    assert_int_equal(pnr_code_create(config, &code, &error), expected);
    assert_int_equal(error.code, expected);
    assert_null(code);
    if (!strstr(error.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", error.text, reason);
    free(config);
}

static inline sample *spectrum_of(const sample *x, size_t n)
{
    sample *out = malloc(n * sizeof *out);

    assert_non_null(out);
    memcpy(out, x, n * sizeof *out);
    assert_int_equal(pnr_transform_forward(out, n), PNR_OK);
    return out;
}

/* c[k] = sum_i x[i+k] conj(a[i]), from both spectra; out: [n]. */
static inline void correlate_spectra(const sample *x, const sample *a, size_t n, sample *out)
{
    for (size_t m = 0; m < n; m++) {
        out[m][0] = (x[m][0] * a[m][0] + x[m][1] * a[m][1]) / (double)n;
        out[m][1] = (x[m][1] * a[m][0] - x[m][0] * a[m][1]) / (double)n;
    }
    assert_int_equal(pnr_transform_inverse(out, n), PNR_OK);
}

static inline sample *correlate(const sample *x, const sample *a, size_t n)
{
    sample *xs = spectrum_of(x, n), *as = spectrum_of(a, n);
    sample *out = malloc(n * sizeof *out);

    assert_non_null(out);
    correlate_spectra((const sample *)xs, (const sample *)as, n, out);
    free(xs);
    free(as);
    return out;
}

static inline size_t strongest(const sample *c, size_t n)
{
    size_t best = 0;

    for (size_t k = 1; k < n; k++) {
        if (hypot(c[k][0], c[k][1]) > hypot(c[best][0], c[best][1]))
            best = k;
    }
    return best;
}

/* Real, and one of the values. */
static inline int is_one_of(const double c[2], const double *values, size_t n_values)
{
    for (size_t i = 0; i < n_values; i++) {
        if (fabs(c[0] - values[i]) < 1e-5 && fabs(c[1]) < 1e-5)
            return 1;
    }
    return 0;
}

#endif
