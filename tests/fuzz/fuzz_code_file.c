/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a file of chips. The first byte chooses the kind of the file. */
#include "code/family.h"
#include "memory_file.h"
#include "require.h"

#include <math.h>
#include <stdbool.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const char *const extensions[] = {".npy", ".txt", ".csv", ".ci16", ".cf32", ".u8"};
    enum { N = sizeof extensions / sizeof *extensions };
    static char paths[N][64];
    static int fd = -1;
    double(*chips)[2];
    size_t n;
    double power = 0;
    pnr_error error = {0};

    if (n_bytes == 0)
        return 0;
    if (fd < 0) {
        fd = memory_file_create();
        for (size_t i = 0; i < N; i++)
            memory_file_name(fd, extensions[i], paths[i], sizeof paths[i]);
    }
    memory_file_fill(fd, data + 1, n_bytes - 1);

    const int code = pnr_code_read_samples(paths[data[0] % N], "code.path", &chips, &n, &error);

    if (code != PNR_OK) {
        require(chips == NULL && error.code == code && error.text[0] != '\0');
        return 0;
    }
    require(n >= 1 && n <= 8 * n_bytes);
    for (size_t k = 0; k < n; k++) {
        require(isfinite(chips[k][0]) && isfinite(chips[k][1]));
        power += chips[k][0] * chips[k][0] + chips[k][1] * chips[k][1];
    }
    require(fabs(power / (double)n - 1) < 1e-6);
    free(chips);
    return 0;
}
