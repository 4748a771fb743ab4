/* SPDX-License-Identifier: MIT */
/* Compares the results with the truth file of pnradar-echo: matches echoes and targets, and
 * computes errors and statistics of the targets. */
#include "tools/listen/truth.h"

#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TARGETS = 1024, LINE_LEN = 512, PLACE_LEN = 440 };
static const char header[] =
    "period,sample,target,delay_samples,delay_s,range_m,velocity_mps,snr_db";

/* The true range of a target in one period. */
typedef struct row {
    uint64_t sample; /* first sample of the period */
    double range_m;
    unsigned target;
} row;

/* The statistics of one target. */
typedef struct tally {
    uint64_t n_dwells, n_detected;
    double sum_m, sum_squares_m2; /* sums of the errors and of their squares */
} tally;

struct listen_truth {
    row *rows; /* [n_rows], sorted by sample */
    size_t n_rows, capacity;
    uint64_t period;      /* length of a period in samples; 0: the file has only one period */
    size_t n_periods;     /* number of periods in a dwell */
    double unambiguous_m; /* 0: not known */
    double gate_m;        /* greatest error of a detection; an echo with a greater error is a
                           * stray */
    uint64_t n_strays;
    unsigned n_targets; /* the highest target number */
    tally tallies[MAX_TARGETS + 1];
    /* For each target in the present dwell: the mean range, and the number of ranges in this
     * mean. */
    double mean_m[MAX_TARGETS + 1];
    unsigned n_mean[MAX_TARGETS + 1];
};

static int add_row(listen_truth *t, row r)
{
    if (t->n_rows == t->capacity) {
        const size_t capacity = t->capacity > 0 ? 2 * t->capacity : 1024;
        row *rows = realloc(t->rows, capacity * sizeof *rows);

        if (rows == NULL)
            return PNR_ENOMEMORY;
        t->rows = rows;
        t->capacity = capacity;
    }
    t->rows[t->n_rows++] = r;
    return PNR_OK;
}

static bool read_row(const char *line, row *out)
{
    char sample[21], target[5], after = ',';

    if (sscanf(line, "%*[0-9],%20[0-9],%4[0-9],%*f,%*f,%lf%c", sample, target, &out->range_m,
               &after) < 3)
        return false;
    out->sample = strtoull(sample, NULL, 10);
    out->target = (unsigned)strtoul(target, NULL, 10);
    return after == ',' && out->target >= 1 && out->target <= MAX_TARGETS && isfinite(out->range_m);
}

/* Parses a line after the header, and adds its row. place: "path:line", for messages. */
static int take_line(listen_truth *t, const char *line, bool is_whole, const char *place,
                     pnr_error *error)
{
    row r = {0};

    if (!is_whole || !read_row(line, &r))
        return pnr_error_set(error, PNR_EDATA, "%s: no row of the truth: %.80s", place, line);
    if (t->n_rows > 0 && r.sample < t->rows[t->n_rows - 1].sample)
        return pnr_error_set(error, PNR_EDATA, "%s: sample %" PRIu64 " after %" PRIu64, place,
                             r.sample, t->rows[t->n_rows - 1].sample);
    if (add_row(t, r) != PNR_OK)
        return pnr_error_set(error, PNR_ENOMEMORY, "%s: out of memory", place);
    if (t->period == 0)
        t->period = r.sample - t->rows[0].sample;
    t->n_targets = r.target > t->n_targets ? r.target : t->n_targets;
    return PNR_OK;
}

static int read_rows(listen_truth *t, FILE *file, const char *path, pnr_error *error)
{
    char line[LINE_LEN], place[PLACE_LEN];
    size_t n_lines = 0;
    int code = PNR_OK;

    while (code == PNR_OK && fgets(line, sizeof line, file) != NULL) {
        const bool is_whole = strchr(line, '\n') != NULL || feof(file);

        (void)snprintf(place, sizeof place, "%.400s:%zu", path, ++n_lines);
        line[strcspn(line, "\r\n")] = '\0';
        if (n_lines > 1)
            code = take_line(t, line, is_whole, place, error);
        else if (strcmp(line, header) != 0)
            code = pnr_error_set(error, PNR_EDATA, "%s: want the header %s", place, header);
    }
    if (code == PNR_OK && ferror(file))
        code = pnr_error_file(error, PNR_EIO, "--truth", path, errno);
    if (code == PNR_OK && n_lines == 0)
        code = pnr_error_set(error, PNR_EDATA, "%s: is empty", path);
    return code;
}

int listen_truth_read(const char *path, const pnr_config *config, listen_truth **out,
                      pnr_error *error)
{
    const double rate_hz = pnr_rational_double(config->source.rate_hz);
    const double chip_rate_hz = pnr_rational_double(config->code.chip_rate_hz);
    const double metres_per_second = config->radar.path == PNR_PATH_ONE_WAY
                                         ? config->radar.speed_mps
                                         : config->radar.speed_mps / 2;
    listen_truth *t = calloc(1, sizeof *t);
    FILE *file = NULL;
    int fd = -1, code;

    *out = NULL;
    if (t == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "%s: out of memory", path);
    if ((code = pnr_file_open("--truth", path, &fd, error)) == PNR_OK) {
        file = fdopen(fd, "r");
        code = file != NULL ? read_rows(t, file, path, error)
                            : pnr_error_file(error, PNR_EIO, "--truth", path, errno);
    }
    if (file != NULL)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    if (code != PNR_OK) {
        listen_truth_destroy(t);
        return code;
    }
    t->n_periods = config->dwell.looks * config->dwell.periods;
    t->gate_m = INFINITY;
    if (rate_hz > 0) {
        t->unambiguous_m = metres_per_second * (double)t->period / rate_hz;
        t->gate_m = 2 * metres_per_second / (chip_rate_hz > 0 ? chip_rate_hz : rate_hz);
    }
    *out = t;
    return PNR_OK;
}

void listen_truth_destroy(listen_truth *truth)
{
    if (truth == NULL)
        return;
    free(truth->rows);
    free(truth);
}

/* Returns the index of the first row at or after a sample. */
static size_t find_row(const listen_truth *t, uint64_t sample)
{
    size_t low = 0, high = t->n_rows;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (t->rows[middle].sample < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Computes the mean range of each target over the periods of the dwell that begins at `sample`.
 * Adds 1 to n_dwells of each of these targets. */
static void gather_targets(listen_truth *t, uint64_t sample)
{
    const uint64_t end = sample + (t->period > 0 ? t->period * t->n_periods : 1);
    unsigned k;
    size_t i;

    memset(t->mean_m, 0, sizeof t->mean_m);
    memset(t->n_mean, 0, sizeof t->n_mean);
    for (i = find_row(t, sample); i < t->n_rows && t->rows[i].sample < end; i++) {
        t->mean_m[t->rows[i].target] += t->rows[i].range_m;
        t->n_mean[t->rows[i].target]++;
    }
    for (k = 1; k <= t->n_targets; k++) {
        if (t->n_mean[k] > 0) {
            t->mean_m[k] /= t->n_mean[k];
            t->tallies[k].n_dwells++;
        }
    }
}

static double error_of(const listen_truth *t, const pnr_echo *echo, unsigned target)
{
    const double error_m = echo->range_m - t->mean_m[target];

    return t->unambiguous_m > 0 ? remainder(error_m, t->unambiguous_m) : error_m;
}

/* Returns the index of the echo nearest to a target. */
static size_t nearest_echo(const listen_truth *t, const pnr_detection *d, unsigned target)
{
    size_t best = 0, i;

    for (i = 1; i < d->n_echoes; i++)
        if (fabs(error_of(t, &d->echoes[i], target)) < fabs(error_of(t, &d->echoes[best], target)))
            best = i;
    return best;
}

void listen_truth_match(listen_truth *t, const pnr_report *report,
                        pnr_report_truth out[PNR_MAX_CANDIDATES])
{
    const pnr_detection *d = &report->detection;
    size_t i;
    unsigned k;

    gather_targets(t, report->sample);
    for (i = 0; i < d->n_echoes; i++) {
        pnr_report_truth *o = &out[i];
        tally *a;

        *o = (pnr_report_truth){.range_m = NAN, .error_m = NAN};
        for (k = 1; k <= t->n_targets; k++) {
            const double error_m = t->n_mean[k] > 0 ? error_of(t, &d->echoes[i], k) : (double)NAN;

            if (isfinite(error_m) && !(fabs(error_m) >= fabs(o->error_m)))
                *o = (pnr_report_truth){k, t->mean_m[k], error_m};
        }
        if (!isfinite(o->error_m) || fabs(o->error_m) > t->gate_m ||
            nearest_echo(t, d, o->target) != i) {
            t->n_strays++;
            continue;
        }
        a = &t->tallies[o->target];
        a->n_detected++;
        a->sum_m += o->error_m;
        a->sum_squares_m2 += o->error_m * o->error_m;
    }
}

void listen_truth_print(const listen_truth *t, FILE *stream)
{
    unsigned k;

    for (k = 1; k <= t->n_targets; k++) {
        const tally *a = &t->tallies[k];
        const double n = (double)a->n_detected;

        fprintf(stream, "target %u: detected in %" PRIu64 " of %" PRIu64 " dwells", k,
                a->n_detected, a->n_dwells);
        if (a->n_detected > 0)
            fprintf(stream, ", mean error %+.3f m, rms error %.3f m", a->sum_m / n,
                    sqrt(a->sum_squares_m2 / n));
        putc('\n', stream);
    }
    fprintf(stream, "echoes that are no target's: %" PRIu64 "\n", t->n_strays);
}
