/* SPDX-License-Identifier: MIT */
/* pnradar-echo: writes the synthetic echoes of a configured scene, and a file with their true
 * values (--truth). */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli.h"
#include "scene/scene.h"
#include "scene/sink.h"
#include "transmit/wave.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 8192 };                         /* default length of a chunk in samples */
static const double send_every_s = 0.01;       /* longest chunk with source.pace = real-time */
static const uint64_t progress_ns = 500000000; /* time between two progress lines */

/* The first line of the truth file. The program replaces an existing file only if the file is empty
 * or begins with this line. */
static const char truth_header[] =
    "period,sample,target,delay_samples,delay_s,range_m,velocity_mps,snr_db";
static const char truth_what[] = "cannot write --truth"; /* first words of messages about the truth
                                                          * file */

typedef struct work {
    const pnr_config *config;
    const char *truth_path, *output; /* paths of the command line; truth_path NULL: no --truth */
    bool transmit;
    pnr_scene *scene; /* NULL with --transmit */
    pnr_wave *wave;   /* NULL without --transmit */
    pnr_sink *sink;
    FILE *truth;             /* NULL: the truth is not written */
    pnr_new_file truth_file; /* the truth file; not used if `truth` is NULL or stdout */
    size_t n_channels;
    size_t chunk;         /* length of a chunk in samples */
    double gain;          /* gain of the transmit waveform; 1 for echoes */
    double (*channel)[2]; /* [chunk] samples of one channel */
    double (*samples)[2]; /* [chunk][n_channels] */
    uint64_t end;         /* sample index after the last sample; UINT64_MAX: the stream has no
                           * end */
    uint64_t position;    /* sample index of the next sample: number of samples written or lost so
                           * far */
    uint64_t n_lost;
    uint64_t n_truths; /* number of periods whose true values are written */
    uint64_t start_ns; /* time of sample 0 by CLOCK_MONOTONIC */
    uint64_t progress_ns;
    bool shows_progress;
} work;

/* --- set-up --- */

/* Sets w->end. A stream of echoes begins with the part of a period before the first window. Then it
 * has echo.periods whole periods. */
static int plan_length(work *w, pnr_error *error)
{
    const pnr_radar *radar = w->transmit ? pnr_wave_radar(w->wave) : pnr_scene_radar(w->scene);
    uint64_t periods = w->config->echo.periods, before = w->transmit ? 0 : radar->first_window;

    w->end = UINT64_MAX;
    if (periods == 0)
        return PNR_OK;
    if (periods > (INT64_MAX - before) / radar->n_samples)
        return pnr_error_set(error, PNR_ECONFIG,
                             "echo.periods = %" PRIu64 ": more samples than a stream has", periods);
    w->end = before + periods * radar->n_samples;
    return PNR_OK;
}

/* Returns the gain, at most 1, that prevents clipping of the transmit waveform. The greatest
 * value of an integer format is less than 1. A sample with the least or the greatest value of
 * the format counts as clipped. So the gain limits the peak to 1 minus two steps of the format,
 * and to 0.999. */
static double transmit_gain(const work *w, pnr_format format)
{
    const pnr_format_info *info = pnr_format_get(format);
    double peak = pnr_wave_peak(w->wave), step = info->scale, gain;

    if (w->config->echo.bits > 1)
        step = fmax(step, ldexp(1, 1 - (int)w->config->echo.bits));
    if (info->is_float && w->config->echo.bits == 0)
        return 1;
    gain = fmin(1, fmin(0.999, 1 - 2 * step) / peak);
    if (gain < 1)
        pnr_log(PNR_LOG_INFO, "the waveform is scaled by %.6f (%.3f dB) to fit %s", gain,
                20 * log10(gain), info->name);
    return gain;
}

static int open_truth(work *w, pnr_error *error)
{
    int rc, fd;

    if (!w->truth_path)
        return PNR_OK;
    if (strcmp(w->truth_path, "-") == 0) {
        w->truth = stdout;
    } else {
        if ((rc = pnr_new_file_create(truth_what, w->truth_path, truth_header, &w->truth_file,
                                      error)) != PNR_OK)
            return rc;
        fd = fcntl(w->truth_file.fd, F_DUPFD_CLOEXEC, 0);
        w->truth = fd >= 0 ? fdopen(fd, "w") : NULL;
    }
    if (!w->truth)
        return pnr_error_file(error, PNR_EIO, truth_what, w->truth_path, errno);
    fprintf(w->truth, "%s\n", truth_header);
    return PNR_OK;
}

/* Chooses the length of a chunk, and allocates memory for one chunk. In real time a chunk lasts at
 * most send_every_s, because its first sample is sent only when its last sample is due. */
static int allocate_chunk(work *w, pnr_error *error)
{
    const pnr_config *config = w->config;
    const double most = config->source.pace == PNR_PACE_REAL_TIME
                            ? fmax(1, pnr_rational_double(config->source.rate_hz) * send_every_s)
                            : INFINITY;

    w->chunk = config->source.chunk ? config->source.chunk : CHUNK;
    if ((double)w->chunk > most)
        w->chunk = (size_t)most;
    w->channel = malloc(w->chunk * sizeof *w->channel);
    w->samples = malloc(w->chunk * w->n_channels * sizeof *w->samples);
    return w->channel && w->samples
               ? PNR_OK
               : pnr_error_set(error, PNR_ENOMEMORY, "no memory for chunks of %zu samples",
                               w->chunk);
}

static bool is_real(pnr_format format)
{
    return format != PNR_FORMAT_NONE && !pnr_format_get(format)->is_complex;
}

static int prepare(work *w, pnr_error *error)
{
    const pnr_config *config = w->config;
    const pnr_sink_info *info;
    int rc;

    if (w->truth_path && w->transmit)
        return pnr_error_set(error, PNR_EUSAGE, "--transmit has no targets, so it has no --truth");
    if (w->truth_path && pnr_file_is_same(w->truth_path, w->output))
        return pnr_error_set(error, PNR_EUSAGE, "--truth and OUTPUT are both '%s'", w->truth_path);
    rc = w->transmit ? pnr_wave_create(config, is_real(config->source.format), &w->wave, error)
                     : pnr_scene_create(config, &w->scene, error);
    if (rc != PNR_OK || (rc = plan_length(w, error)) != PNR_OK ||
        (rc = pnr_sink_open(config, w->output, w->end == UINT64_MAX ? 0 : w->end, &pnr_stop,
                            &w->sink, error)) != PNR_OK ||
        (rc = open_truth(w, error)) != PNR_OK)
        return rc;
    info = pnr_sink_get_info(w->sink);
    w->n_channels = info->n_channels;
    w->gain = w->transmit ? transmit_gain(w, info->format) : 1;
    w->shows_progress = isatty(STDERR_FILENO);
    pnr_log(PNR_LOG_DEBUG, "writing %s", info->text);
    return allocate_chunk(w, error);
}

/* --- the stream --- */

/* Sets *count to the number of samples to write next, and returns 0. If the next samples are lost,
 * sets *count to 0 and returns the number of lost samples. */
static uint64_t next_run(const work *w, size_t *count)
{
    uint64_t left = w->end - w->position;

    *count = left < w->chunk ? (size_t)left : w->chunk;
    for (size_t i = 0; i < w->config->source.n_lost; i++) {
        const pnr_run *lost = &w->config->source.lost[i];

        if (w->position >= lost->first && w->position - lost->first < lost->count) {
            uint64_t gap = lost->count - (w->position - lost->first);
            *count = 0;
            return gap < left ? gap : left;
        }
        if (lost->count > 0 && lost->first > w->position &&
            lost->first - w->position < (uint64_t)*count)
            *count = (size_t)(lost->first - w->position);
    }
    return 0;
}

/* Computes the samples of a channel. With --transmit, only source.channel has the waveform. */
static void generate_channel(work *w, size_t channel, size_t count)
{
    if (!w->transmit)
        pnr_scene_generate(w->scene, channel, w->position, count, w->channel);
    else if (channel == w->config->source.channel)
        pnr_wave_generate(w->wave, w->position, count, w->channel);
    else
        memset(w->channel, 0, count * sizeof *w->channel);
}

static int send_chunk(work *w, size_t count, pnr_error *error)
{
    for (size_t c = 0; c < w->n_channels; c++) {
        generate_channel(w, c, count);
        for (size_t i = 0; i < count; i++) {
            w->samples[i * w->n_channels + c][0] = w->gain * w->channel[i][0];
            w->samples[i * w->n_channels + c][1] = w->gain * w->channel[i][1];
        }
    }
    if (w->config->source.pace == PNR_PACE_REAL_TIME) {
        /* Waits until a receiver would have received the last sample of the chunk. */
        uint64_t due =
            (uint64_t)pnr_rational_time_ns(w->config->source.rate_hz, w->position + count);
        if (!pnr_clock_sleep_until(w->start_ns + due, &pnr_stop))
            return PNR_EEND;
    }
    return pnr_sink_write(w->sink, (const double(*)[2])w->samples, count, error);
}

static void print_truth(const work *w, uint64_t period, uint64_t sample, size_t target)
{
    pnr_truth t;

    pnr_scene_truth(w->scene, target, period, &t);
    fprintf(w->truth, "%" PRIu64 ",%" PRIu64 ",%zu,%.9f,%.15g,%.9g,%.9g,", period, sample,
            target + 1, t.delay_samples, t.delay_s, t.range_m, t.velocity_mps);
    if (isfinite(t.snr_db))
        fprintf(w->truth, "%.6f", t.snr_db);
    fputc('\n', w->truth);
}

/* Writes the true values of each period after its last sample is written. */
static int tell_truth(work *w, pnr_error *error)
{
    const pnr_radar *radar = pnr_scene_radar(w->scene);

    for (;; w->n_truths++) {
        uint64_t sample = radar->first_window + w->n_truths * radar->n_samples;

        if (w->position < sample + radar->n_samples)
            break;
        for (size_t i = 0; i < w->config->n_targets; i++)
            print_truth(w, w->n_truths, sample, i);
    }
    if (ferror(w->truth))
        return pnr_error_set(error, PNR_EIO, "cannot write '%s'", w->truth_path);
    return PNR_OK;
}

static void show_progress(work *w, bool last)
{
    uint64_t now = pnr_clock_ns();

    if (!w->shows_progress || (!last && now - w->progress_ns < progress_ns) ||
        (last && w->progress_ns == w->start_ns))
        return;
    w->progress_ns = now;
    double seconds = (double)(now - w->start_ns) * 1e-9;
    fprintf(stderr, "\r%" PRIu64 " samples", w->position);
    if (w->end != UINT64_MAX)
        fprintf(stderr, ", %.0f %%", 100.0 * (double)w->position / (double)w->end);
    fprintf(stderr, ", %.1f Msample/s   %s", (double)w->position / seconds * 1e-6,
            last ? "\n" : "");
}

/* Writes all samples. PNR_OK; PNR_EEND: a signal stopped the program, or the reader has closed the
 * pipe. */
static int stream(work *w, pnr_error *error)
{
    int rc = PNR_OK;

    w->start_ns = w->progress_ns = pnr_clock_ns();
    while (rc == PNR_OK && w->position < w->end && !pnr_stop) {
        size_t count;
        uint64_t gap = next_run(w, &count);

        if (count > 0)
            rc = send_chunk(w, count, error);
        if (rc == PNR_OK) {
            w->position += count + gap;
            w->n_lost += gap;
            if (w->truth)
                rc = tell_truth(w, error);
        }
        show_progress(w, false);
    }
    show_progress(w, true);
    return pnr_stop && rc == PNR_OK && w->position < w->end ? PNR_EEND : rc;
}

/* --- after the last sample --- */

/* True if the stream ended without an error. A stop by a signal is no error. A stop by the reader
 * is no error if the stream has no end. */
static bool ends_well(const work *w, int rc)
{
    return rc == PNR_OK || (rc == PNR_EEND && (pnr_stop || w->end == UINT64_MAX));
}

/* Closes the truth file. If `keep` is true, the file gets its final name; else it is deleted. */
static int close_truth(work *w, bool keep, pnr_error *error)
{
    const bool is_file = w->truth && w->truth != stdout;

    if (is_file)
        fclose(w->truth);
    if (is_file && keep)
        return pnr_new_file_finish(&w->truth_file, true, error);
    pnr_new_file_discard(&w->truth_file);
    return PNR_OK;
}

/* Closes the files. rc: PNR_OK, PNR_EEND, or the error of an earlier step. Returns PNR_OK or an
 * error. */
static int finish(work *w, int rc, pnr_error *error)
{
    const pnr_sink_info info = w->sink ? *pnr_sink_get_info(w->sink) : (pnr_sink_info){0};
    bool keep = ends_well(w, rc);
    int closed;

    if (w->truth && fflush(w->truth) != 0 && keep) {
        rc = pnr_error_file(error, PNR_EIO, truth_what, w->truth_path, errno);
        keep = false;
    }
    closed = pnr_sink_close(w->sink, keep, keep ? error : NULL);
    if (keep && closed != PNR_OK) {
        rc = closed;
        keep = false;
    }
    closed = close_truth(w, keep, error);
    if (closed != PNR_OK) {
        rc = closed;
        keep = false;
    }
    if (keep) {
        if (rc == PNR_EEND && w->end != UINT64_MAX)
            pnr_log(PNR_LOG_WARN, "stopped at sample %" PRIu64 " of %" PRIu64, w->position, w->end);
        pnr_log(PNR_LOG_INFO, "%" PRIu64 " samples written, %" PRIu64 " clipped, %" PRIu64 " lost",
                info.n_written, info.n_clipped, w->n_lost);
        rc = PNR_OK;
    } else if (rc == PNR_EEND) {
        /* the reader closed the pipe before it received all samples */
        error->code = rc = PNR_EIO;
    }
    pnr_scene_destroy(w->scene);
    pnr_wave_destroy(w->wave);
    free(w->channel);
    free(w->samples);
    return rc;
}

int main(int argc, char **argv)
{
    pnr_config config;
    work w = {.config = &config, .output = "-", .truth_file = PNR_NEW_FILE_NONE};
    const pnr_cli_option own[] = {
        {"truth", "FILE", "write the true delay of every target in every period, as CSV",
         .value = &w.truth_path},
        {"transmit", NULL,
         "write the transmit waveform alone: no targets, no noise; amplitude 1, or what fits",
         .flag = &w.transmit},
        {0}};
    pnr_cli cli = {
        .program = "pnradar-echo",
        .usage = "[OPTION]... [OUTPUT]",
        .summary = "Writes echo.periods periods of the synthetic scene that the configuration "
                   "describes to OUTPUT: a raw or sound file by its extension, a FIFO, or standard "
                   "output ('-' or nothing). With source.pace = real-time it sends as a receiver "
                   "would.",
        .examples = "pnradar-echo -c config/demo.conf --truth truth.csv echo.sc16\n"
                    "pnradar-echo -c config/demo.conf -s echo.periods=0 | pnradar -c "
                    "config/demo.conf -\n"
                    "pnradar-echo -c config/sonar.conf --transmit ping.wav",
        .options = own,
        .max_operands = 1,
    };
    pnr_error error = {0};

    int rc = pnr_cli_parse(&cli, argc, argv, &config, &error);
    if (rc == PNR_OK) {
        if (cli.n_operands == 1)
            w.output = cli.operands[0];
        pnr_cli_catch_signals();
        rc = pnr_config_check(&config, &error);
        if (rc == PNR_OK)
            rc = prepare(&w, &error);
        if (rc == PNR_OK)
            rc = stream(&w, &error);
        rc = finish(&w, rc, &error);
    }
    pnr_config_clear(&config);
    if (rc != PNR_OK)
        return pnr_cli_fail(&error);
    return cli.strict && w.n_lost > 0 ? PNR_EXIT_LOST : 0;
}
