/* SPDX-License-Identifier: MIT */
/* Parses the sizes on the command line, chooses the engine for a size, and prints the machine. */
#include "tools/bench/bench.h"

#include "cli.h"
#include "tools/bench/resident.h"
#include "tools/common/measure.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int bench_parse_sizes(const char *text, bench *b, pnr_error *error)
{
    const char *at = text, *end = text;

    for (b->n_sizes = 0; b->n_sizes < BENCH_MAX_SIZES; at = end + 1) {
        const size_t size = pnr_cli_read_count(at, &end);

        if (size < 1 || size > 1 << BENCH_MAX_LOG2_SIZE || (*end != ',' && *end != '\0'))
            break;
        b->sizes[b->n_sizes++] = size;
        if (*end == '\0')
            return PNR_OK;
    }
    return pnr_error_set(error, PNR_EUSAGE,
                         "-n %s: 1 to %d sizes 1 .. 2^24 are needed, as 8192,2^16,2^20-1", text,
                         BENCH_MAX_SIZES);
}

int bench_prepare(const pnr_config *config, size_t n_samples, size_t batch, bench_subject *out,
                  pnr_error *error)
{
    pnr_config sized;
    pnr_setup *setup = NULL;
    int rc;

    memset(out, 0, sizeof *out);
    if (n_samples > 0)
        pnr_measure_configure(config, n_samples, &sized);
    else
        sized = *config;
    if (batch > 0)
        sized.engine.batch = batch;
    rc = pnr_config_check(&sized, error);
    if (rc == PNR_OK)
        rc = pnr_setup_create(&sized, sized.source.format, 1, &setup, error);
    if (rc == PNR_OK)
        setup->plan.method = config->engine.method; /* `sized` does not outlive this call */
    if (rc == PNR_OK && setup->devices.n != 1) {
        rc = pnr_engine_list_devices(sized.engine.name, &setup->devices, NULL, error);
        setup->plan.device = setup->devices.index[0];
    }
    if (rc == PNR_OK)
        rc = pnr_engine_choose(sized.engine.name, &setup->plan, &out->ops, &out->choice, error);
    if (rc != PNR_OK) {
        pnr_setup_destroy(setup);
        return rc;
    }
    out->setup = setup;
    snprintf(out->engine, sizeof out->engine, "%s/%s", out->ops->name, out->choice.method);
    return PNR_OK;
}

void bench_set_endpoint(pnr_config *config)
{
    snprintf(config->publisher.endpoint, sizeof config->publisher.endpoint,
             "ipc://@pnradar-bench-%ld", (long)getpid());
}

void bench_print_machine(const bench *b)
{
    const char *comment = b->csv ? "# " : "";
    char text[256];

    printf("%spnradar %s\n", comment, PNR_VERSION);
    printf("%smachine: %s\n", comment, pnr_measure_machine(text, sizeof text));
    for (const char *const *name = pnr_engine_names(); *name != NULL; name++) {
        const size_t device = b->config->engine.device.index[0];
        const pnr_engine_ops *ops = NULL;
        const pnr_resident_ops *on_device;
        pnr_error reason = {0};
        int rc = pnr_engine_find(*name, device, &ops, &reason);

        if (rc == PNR_OK && (rc = ops->probe(device, text, sizeof text)) != PNR_OK)
            snprintf(reason.text, sizeof reason.text, "%s", text);
        printf("%sengine %s: %s%s\n", comment, *name,
               rc == PNR_OK ? "" : "no: ", rc == PNR_OK ? text : reason.text);
        if (rc == PNR_OK && (on_device = resident_device(ops)) != NULL &&
            on_device->describe(device, text, sizeof text) == PNR_OK)
            printf("%sengine %s: %s\n", comment, *name, text);
    }
    fflush(stdout);
}

void bench_print_memory(const bench *b)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0)
        printf("%smemory: %.1f MiB at most\n", b->csv ? "# " : "", (double)usage.ru_maxrss / 1024);
}
