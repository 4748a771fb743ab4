/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a file of the truth; what is accepted is matched with a result. */
#include "memory_file.h"
#include "tools/listen/truth.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static pnr_config config;
    static pnr_report report;
    static pnr_report_truth found[PNR_MAX_CANDIDATES];
    static char path[64];
    static FILE *nowhere;
    static int fd = -1;
    listen_truth *truth;
    pnr_error error = {0};

    if (fd < 0) {
        fd = memory_file_create();
        nowhere = fopen("/dev/null", "w");
        memory_file_name(fd, ".csv", path, sizeof path);
        pnr_config_init(&config);
        config.source.rate_hz = (pnr_rational){1000000, 1};
        report.detection.n_echoes = 3;
        for (size_t i = 0; i < 3; i++)
            report.detection.echoes[i].range_m = 10000.0 * (double)i;
    }
    memory_file_fill(fd, data, n_bytes);
    if (listen_truth_read(path, &config, &truth, &error) != PNR_OK) {
        if (error.text[0] == '\0' || truth != NULL)
            abort();
        return 0;
    }
    for (report.sample = 0; report.sample < 8 * 1023; report.sample += 1023)
        listen_truth_match(truth, &report, found);
    listen_truth_print(truth, nowhere);
    listen_truth_destroy(truth);
    return 0;
}
