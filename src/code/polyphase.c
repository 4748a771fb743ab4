/* SPDX-License-Identifier: MIT */
/* Polyphase codes with perfect periodic autocorrelation: Zadoff-Chu, Frank, P4. */
#include "base/transform.h"
#include "code/family.h"

#include <math.h>
#include <stdio.h>

static size_t common_divisor(size_t a, size_t b)
{
    while (b != 0) {
        size_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Chip k is exp(-i pi root k (k + 1) / N) for odd N, exp(-i pi root k^2 / N) for even N (D. C. Chu,
 * 1972). N is the length. */
int pnr_code_build_zadoff_chu(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t length = config->code.length;
    const size_t root = config->code.root;

    if (root < 1 || (root >= length && length > 1) || common_divisor(root, length) != 1)
        return pnr_refuse(error,
                          "code.root %zu: must be 1 to %zu without a factor of code.length %zu "
                          "(greatest common divisor is %zu)",
                          root, length - 1, length, common_divisor(root, length));
    for (size_t k = 0; k < length; k++) {
        size_t square = k * (k + length % 2) % (2 * length);

        pnr_transform_root(root * square % (2 * length), 2 * length, code->chips[k]);
        code->chips[k][1] = -code->chips[k][1];
    }
    snprintf(code->name, sizeof code->name, "zadoff-chu length=%zu root=%zu", length, root);
    return PNR_OK;
}

/* Chip r M + j is exp(2 pi i r j / M), with r, j < M and length M^2 (R. L. Frank, 1963). */
int pnr_code_build_frank(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t length = config->code.length;
    const size_t side = (size_t)(sqrt((double)length) + 0.5);

    if (side * side != length)
        return pnr_refuse(error, "code.length %zu: must be a square for frank, %zu would be right",
                          length, side * side);
    for (size_t k = 0; k < length; k++)
        pnr_transform_root(k / side * (k % side) % side, side, code->chips[k]);
    snprintf(code->name, sizeof code->name, "frank length=%zu", length);
    return PNR_OK;
}

/* Chip k is exp(i pi (k^2 / N - k)) with the length N (F. F. Kretschmer and B. L. Lewis, 1983). */
int pnr_code_build_p4(const pnr_config *config, pnr_code *code, pnr_error *error)
{
    const size_t length = config->code.length;

    (void)error;
    for (size_t k = 0; k < length; k++)
        pnr_transform_root((k * k + k * length) % (2 * length), 2 * length, code->chips[k]);
    snprintf(code->name, sizeof code->name, "p4 length=%zu", length);
    return PNR_OK;
}
