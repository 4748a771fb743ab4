/* SPDX-License-Identifier: MIT */
/* The copying file source of bench stream: the same samples as a file, through the whole
 * pipeline. */
#include "tools/bench/stream.h"

#include "base/clock.h"
#include "cli.h"
#include "engine/plan.h"
#include "pipeline/pipeline.h"
#include "tools/common/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MIN_BATCHES = 8 };
static const double space_share = 0.5; /* of the free bytes */

/* Time and position of the first and the last result: the first waits for the engine. */
typedef struct progress {
    uint64_t first_ns, last_ns;
    uint64_t first_sample, last_sample;
    uint64_t n;
} progress;

static void note_progress(void *context, const pnr_report *report)
{
    progress *p = context;

    p->last_ns = pnr_clock_ns();
    p->last_sample = report->sample;
    if (p->n++ == 0) {
        p->first_ns = p->last_ns;
        p->first_sample = p->last_sample;
    }
}

static const char *folder(void)
{
    const char *chosen = getenv("TMPDIR");

    if (chosen != NULL && *chosen != '\0')
        return chosen;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* Bytes that may be written to the folder. */
static double free_bytes(const char *path)
{
    struct statvfs fs;

    return statvfs(path, &fs) == 0 ? space_share * (double)fs.f_bavail * (double)fs.f_frsize : 0;
}

/* Writes one block of samples again and again. Returns 0 or errno. */
static int write_file(FILE *to, const pnr_setup *setup, size_t block_samples, uint64_t n_blocks)
{
    const size_t bytes = block_samples * pnr_plan_sample_bytes(&setup->plan);
    char *block = malloc(bytes);
    bool is_good = block != NULL;

    errno = block != NULL ? 0 : ENOMEM;
    if (block != NULL)
        pnr_measure_fill(setup, block, block_samples);
    for (uint64_t i = 0; i < n_blocks && is_good && !pnr_stop; i++)
        is_good = fwrite(block, 1, bytes, to) == bytes;
    free(block);
    return is_good ? 0 : errno;
}

static int run_file(const pnr_config *config, const char *path, double *samples_per_s,
                    pnr_error *error)
{
    pnr_config file = *config;
    progress p = {0};
    const pnr_pipeline_options options = {
        .stop = &pnr_stop, .tap = note_progress, .tap_context = &p};
    pnr_account account = {0};
    int rc;

    snprintf(file.source.input, sizeof file.source.input, "%s", path);
    file.source.pace = PNR_PACE_FAST;
    file.source.lost = NULL;
    file.source.n_lost = 0;
    file.publisher.wait_s = 0;
    rc = pnr_pipeline_run(&file, &options, &account, error);
    if (rc != PNR_OK)
        return rc;
    if (!pnr_account_closes(&account) || (!pnr_stop && !pnr_account_lossless(&account))) {
        char text[512];

        return pnr_error_set(error, PNR_EINTERNAL, "stream: the file source lost samples: %s",
                             pnr_account_format(&account, text, sizeof text));
    }
    if (p.last_ns > p.first_ns)
        *samples_per_s =
            (double)(p.last_sample - p.first_sample) * 1e9 / (double)(p.last_ns - p.first_ns);
    return PNR_OK;
}

int stream_file_rate(const stream_subject *s, uint64_t n_samples, double *samples_per_s,
                     pnr_error *error)
{
    const pnr_plan *plan = &s->engine.setup->plan;
    const size_t block = plan->batch * pnr_plan_dwell_samples(plan);
    const double block_bytes = (double)(block * pnr_plan_sample_bytes(plan));
    const double room = free_bytes(folder()) / block_bytes;
    uint64_t n_blocks = n_samples / block > MIN_BATCHES ? n_samples / block : MIN_BATCHES;
    char path[PNR_PATH_LEN];
    FILE *to = NULL;
    int fd, code, rc;

    if (room < MIN_BATCHES)
        return pnr_error_set(error, PNR_EIO, "stream: %s has no room for a file of %.0f bytes",
                             folder(), MIN_BATCHES * block_bytes);
    if ((double)n_blocks > room)
        n_blocks = (uint64_t)room;
    snprintf(path, sizeof path, "%s/pnradar-bench-XXXXXX", folder());
    fd = mkstemp(path);
    if (fd < 0 || (to = fdopen(fd, "wb")) == NULL)
        return pnr_error_set(error, PNR_EIO, "stream: %s: %s", path, strerror(errno));
    code = write_file(to, s->engine.setup, block, n_blocks);
    if (fclose(to) != 0 && code == 0)
        code = errno;
    if (code != 0)
        rc = pnr_error_set(error, PNR_EIO, "stream: %s: %s", path, strerror(code));
    else
        rc = run_file(&s->config, path, samples_per_s, error);
    unlink(path);
    return rc;
}
