/* SPDX-License-Identifier: MIT */
/* bench serve: measures the time of one submit for each line on stdin, so that a script can run
 * this program and another one in turns. */
#include "tools/bench/bench.h"

#include "tools/common/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the code as float64 [N][2], then the samples in the format of the plan. */
static int dump_samples(const char *path, const pnr_setup *setup, const pnr_measure *measure,
                        pnr_error *error)
{
    size_t bytes;
    const void *samples = pnr_measure_samples(measure, &bytes);
    const size_t n = setup->plan.n_samples;
    FILE *file = fopen(path, "wbe");
    bool good;

    if (file == NULL)
        return pnr_error_file(error, PNR_EIO, "--dump", path, errno);
    good = fwrite(setup->plan.references, sizeof setup->plan.references[0], n, file) == n &&
           fwrite(samples, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !good)
        return pnr_error_set(error, PNR_EIO, "--dump %s: cannot write %zu bytes", path,
                             bytes + n * sizeof setup->plan.references[0]);
    return PNR_OK;
}

/* Runs one submit for each line of the input. Prints "<ns> <lag of dwell 0> <lag of dwell 1> ..."
 * for each submit. */
static int serve_lines(pnr_measure *measure, size_t batch, pnr_error *error)
{
    size_t *lags = calloc(batch, sizeof *lags);
    char line[64];
    int rc = lags != NULL ? PNR_OK : pnr_error_set(error, PNR_ENOMEMORY, "no memory for lags");

    while (rc == PNR_OK && fgets(line, sizeof line, stdin) != NULL) {
        pnr_measurement run;

        rc = pnr_measure_run(measure, &run, lags, error);
        if (rc != PNR_OK)
            break;
        printf("%llu", (unsigned long long)run.total_ns);
        for (size_t d = 0; d < batch; d++)
            printf(" %zu", lags[d]);
        putchar('\n');
        if (fflush(stdout) != 0)
            rc = pnr_error_set(error, PNR_EIO, "cannot write to stdout");
    }
    free(lags);
    return rc;
}

int bench_serve(const bench *b, pnr_error *error)
{
    bench_subject s;
    pnr_measure *measure = NULL;
    int rc;

    if (b->n_sizes != 1)
        return pnr_error_set(error, PNR_EUSAGE, "serve: one size is needed, as -n 2^13");
    rc = bench_prepare(b->config, b->sizes[0], 0, &s, error);
    if (rc == PNR_OK)
        rc = pnr_measure_create(s.ops, s.setup, PNR_MEASURE_PINNED, &measure, error);
    if (rc == PNR_OK && b->dump != NULL)
        rc = dump_samples(b->dump, s.setup, measure, error);
    if (rc == PNR_OK) {
        printf("ready %s N %zu batch %zu\n", s.engine, s.setup->plan.n_samples,
               s.setup->plan.batch);
        fflush(stdout);
        rc = serve_lines(measure, s.setup->plan.batch, error);
    }
    pnr_measure_destroy(measure);
    pnr_setup_destroy(s.setup);
    return rc;
}
