/* SPDX-License-Identifier: MIT */
/* Opens and closes the parts of the pipeline. All slow work and all allocation is here. */
#include "pipeline/state.h"

#include "base/available.h"
#include "base/log.h"
#include "base/parallel.h"
#include "engine/plan.h"
#include "pipeline/engine_start.h"
#include "pipeline/start_guard.h"
#include "pipeline/worker_process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the run to which the parts belong. */
static pnr_pipeline *run_of(pnr_pipeline *p)
{
    return p->before != NULL ? p->before : p;
}

/* True if the run may have a worker. */
static bool may_isolate(const pnr_pipeline *p)
{
    return pnr_isolation_is_wanted(p->config, p->is_live) &&
           (p->options->can_isolate || p->config->engine.isolate == PNR_ISOLATE_YES);
}

/* Returns the length in samples of a ring that stores a live stream while a lost worker is
 * replaced. */
static size_t bridging_samples(const pnr_pipeline *p)
{
    enum { SECONDS = 2, MOST_BYTES = 1 << 30 };
    const double samples = SECONDS * pnr_rational_double(p->setup->radar.rate_hz);
    const size_t most = MOST_BYTES / pnr_plan_sample_bytes(&p->setup->plan);

    return samples < (double)most ? (size_t)samples : most;
}

/* Limits the ring and the dwells of a submit if the length of the recording is known. The ring
 * needs space for at most all samples, two more dwells, and the samples that a linear window needs
 * after a dwell. */
static void fit_to_recording(pnr_pipeline *p, size_t dwell, size_t behind)
{
    const uint64_t n_samples = p->info.n_samples;

    if (p->options->feed != NULL || n_samples >= p->capacity ||
        p->capacity - n_samples <= 2 * dwell + behind)
        return;
    p->capacity = (size_t)n_samples + 2 * dwell + behind;
    if (p->max_dwells > n_samples / dwell)
        p->max_dwells = n_samples >= dwell ? (size_t)(n_samples / dwell) : 1;
}

/* Returns the greatest length of the ring of a recording in bytes. Programs that share out the
 * processors of a machine, such as those of pnradar-archive, also share the last-level cache. So
 * their rings take at most TOGETHER bytes together, as long as each has LEAST bytes. */
static size_t cached_bytes(void)
{
    enum { LEAST = 32 << 20, MOST = 64 << 20, TOGETHER = 128 << 20 };
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const double share = (double)pnr_parallel_processors() / fmax((double)processors, 1);

    return (size_t)fmin(fmax(share * TOGETHER, LEAST), MOST);
}

/* Reduces the ring, and the submits with it, if the source waits for the engine. Then the samples
 * stay in the processor's cache from the read to the upload. */
static void fit_to_cache(pnr_pipeline *p, size_t dwell, size_t behind)
{
    const size_t views = pnr_setup_in_flight(p->setup) + 1;
    const size_t cached = cached_bytes() / pnr_plan_sample_bytes(&p->setup->plan);
    const size_t least = views * dwell + behind, most = cached > least ? cached : least;

    if (p->options->feed != NULL || p->is_live || p->config->engine.batch > 0 ||
        p->capacity <= most)
        return;
    p->capacity = most;
    if (p->max_dwells > (most - behind) / dwell / views)
        p->max_dwells = (most - behind) / dwell / views;
}

/* Lowers max_dwells, if necessary, so that the ring has space for all submits in flight and for the
 * next submit. max_dwells stays at least 1. Refuses a ring that has space for fewer than two
 * dwells. */
static int fit_to_ring(pnr_pipeline *p, pnr_error *error)
{
    const pnr_plan *plan = &p->setup->plan;
    const size_t sample_bytes = pnr_plan_sample_bytes(plan);
    const size_t dwell = pnr_plan_dwell_samples(plan);
    const size_t behind = pnr_plan_view_samples(plan, 0);
    const size_t views = pnr_setup_in_flight(p->setup) + 1;
    const size_t whole = p->capacity > behind ? (p->capacity - behind) / dwell : 0;

    if (whole < 2)
        return pnr_refuse(error,
                          "ring of %zu samples (%zu bytes): a dwell has %zu samples, so at least "
                          "ring.bytes = %zu is needed",
                          p->capacity, p->capacity * sample_bytes, dwell,
                          (2 * dwell + behind) * sample_bytes);
    if (p->max_dwells > whole / views)
        p->max_dwells = whole >= views ? whole / views : 1;
    return PNR_OK;
}

/* Sets the number of samples in the ring, and the greatest number of dwells of a submit. */
static int shape_ring(pnr_pipeline *p, pnr_error *error)
{
    const pnr_config *config = p->config;
    const pnr_plan *plan = &p->setup->plan;
    const size_t dwell = pnr_plan_dwell_samples(plan), behind = pnr_plan_view_samples(plan, 0);

    p->max_dwells = plan->batch;
    p->capacity = pnr_setup_ring_samples(p->setup, config);
    if (config->ring.bytes > 0 || config->ring.seconds > 0)
        return fit_to_ring(p, error);
    fit_to_cache(p, dwell, behind);
    if (may_isolate(p))
        p->capacity += pnr_isolation_more_samples(p->setup);
    if (p->is_live && may_isolate(p) && p->capacity < bridging_samples(p))
        p->capacity = bridging_samples(p);
    fit_to_recording(p, dwell, behind);
    return PNR_OK;
}

/* Lists the devices of engine.device. The size of the ring depends on their number. */
static int open_devices(pnr_pipeline *p, pnr_error *error)
{
    const char *engine = p->config->engine.name;
    pnr_devices *devices = &p->setup->devices;
    int code = PNR_OK;

    if (may_isolate(p) && p->options->can_isolate)
        code = devices->n > 0 ? PNR_OK
                              : pnr_worker_list_devices(engine, p->options->stop, devices, error);
    else if (devices->n != 1)
        code = pnr_engine_list_devices(engine, devices, NULL, error);
    p->processing.devices = *devices;
    return code;
}

/* Opens the engine in this process, and allocates its memory for the samples. */
static int open_here(pnr_pipeline *p, pnr_error *error)
{
    pnr_processing *processing = &p->processing;
    const size_t bytes = p->capacity * pnr_plan_sample_bytes(&p->setup->plan);
    int code = pnr_processing_choose(processing, p->config->engine.name, error);

    if (code != PNR_OK || (code = pnr_processing_check_memory(processing, p->capacity,
                                                              p->before != NULL, error)) != PNR_OK)
        return code;
    if (p->before != NULL && processing->ops != p->before->processing.ops)
        return pnr_refuse(error,
                          "engine.name = %.40s takes %s instead of %s, which has the memory of the "
                          "samples: this needs a new start, or engine.isolate = yes",
                          p->config->engine.name, processing->ops->name,
                          p->before->processing.ops->name);
    if (p->memory == NULL && (p->memory = processing->ops->alloc(bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a ring of %zu bytes", bytes);
    return pnr_processing_open(processing, error);
}

/* Calls open_here at the start of a run. A stop may end the program during this call. */
static int start_here(pnr_pipeline *p, pnr_error *error)
{
    pnr_start_guard guard;
    int code;

    pnr_start_guard_begin(&guard, p->options->can_exit ? p->options->stop : NULL);
    code = open_here(p, error);
    pnr_start_guard_end(&guard);
    return code;
}

/* Starts a worker, which opens the engine. */
static int open_worker(pnr_pipeline *p, pnr_error *error)
{
    const pnr_isolation_parts parts = {.config = p->config,
                                       .setup = p->setup,
                                       .info = &run_of(p)->info,
                                       .stop = p->options->stop,
                                       .events = &run_of(p)->events,
                                       .is_live = p->is_live,
                                       .capacity = p->capacity,
                                       .max_dwells = p->max_dwells,
                                       .before = p->before != NULL ? p->before->isolation : NULL};
    int code;

    if (!p->options->can_isolate)
        return pnr_refuse(error, "engine.isolate = yes: this program cannot start a worker");
    if ((code = pnr_processing_check_memory(&p->processing, p->capacity, p->before != NULL,
                                            error)) == PNR_OK &&
        (code = pnr_isolation_create(&parts, &p->isolation, error)) == PNR_OK)
        p->memory = pnr_isolation_memory(p->isolation);
    return code;
}

/* Ends a worker whose engine need not be isolated. */
static void close_worker(pnr_pipeline *p)
{
    pnr_isolation_destroy(p->isolation);
    p->isolation = NULL;
    p->memory = NULL;
}

static int open_engine(pnr_pipeline *p, pnr_error *error)
{
    const bool must = p->config->engine.isolate == PNR_ISOLATE_YES;
    int code;

    p->processing.config = p->config;
    p->processing.setup = p->setup;
    p->processing.is_live = p->is_live;
    p->processing.max_dwells = p->max_dwells;
    if (p->before != NULL)
        return p->before->isolation != NULL ? open_worker(p, error) : open_here(p, error);
    if (!may_isolate(p))
        return start_here(p, error);
    if ((code = open_worker(p, error)) != PNR_OK || must ||
        strncmp(pnr_isolation_engine(p->isolation), "cuda/", 5) == 0)
        return code;
    close_worker(p); /* engine.name = auto has not chosen cuda */
    return start_here(p, error);
}

const char *pnr_pipeline_engine(const pnr_pipeline *p)
{
    return p->isolation != NULL ? pnr_isolation_engine(p->isolation)
                                : pnr_correlator_name(p->processing.correlator);
}

/* Returns the sample where the first window of the run starts. */
static uint64_t first_window_of(const pnr_pipeline *p)
{
    const uint64_t first = p->setup->radar.first_window;

    return p->part.first > first ? p->part.first : first;
}

static pnr_ring_shape ring_shape(pnr_pipeline *p)
{
    const pnr_plan *plan = &p->setup->plan;
    const size_t sample_bytes = pnr_plan_sample_bytes(plan);

    return (pnr_ring_shape){
        .capacity = p->capacity,
        .sample_bytes = sample_bytes,
        .n_samples = plan->n_samples,
        .n_behind = pnr_plan_view_samples(plan, 0),
        .n_periods = pnr_plan_windows(plan),
        .max_dwells = p->max_dwells,
        .first_sample = p->part.first,
        .first_window = first_window_of(p),
        .end = p->part.end,
        .zero_byte = plan->format == PNR_FORMAT_CU8 || plan->format == PNR_FORMAT_U8 ? 0x80 : 0,
        .depth =
            p->isolation != NULL ? pnr_isolation_views(p->setup) : pnr_setup_in_flight(p->setup),
        .reader = p->isolation != NULL ? &pnr_isolation_bells(p->isolation)->samples : NULL,
        .events = &p->events,
        .memory = p->memory,
    };
}

static int open_ring(pnr_pipeline *p, pnr_error *error)
{
    const pnr_ring_shape shape = ring_shape(p);

    return pnr_ring_create(&shape, &p->ring, error);
}

/* Returns the greatest length of a live read in samples: an eighth of a dwell, or more if the dwell
 * is short. Earlier reads are uploaded ahead, so only the last read remains to be uploaded when the
 * dwell is complete. */
static size_t live_chunk(size_t dwell)
{
    enum { CHUNK_SAMPLES = 4096, PARTS = 8 };
    const size_t part = (dwell + PARTS - 1) / PARTS;
    const size_t chunk = part > CHUNK_SAMPLES ? part : CHUNK_SAMPLES;

    return chunk < dwell ? chunk : dwell;
}

/* Returns the length of a read of a recording in samples: at most a quarter of the ring, but at
 * least LEAST_BYTES. So the engine works while the source reads. */
static size_t recording_chunk(const pnr_pipeline *p)
{
    enum { LEAST_BYTES = 1 << 20, PARTS = 4 };
    const size_t sample_bytes = pnr_plan_sample_bytes(&p->setup->plan);
    const size_t least = LEAST_BYTES / sample_bytes, best = p->info.read_bytes / sample_bytes;
    const size_t part = p->capacity / PARTS, chunk = best < part ? best : part;

    return chunk > least ? chunk : least;
}

static int open_acquisition(pnr_pipeline *p, pnr_error *error)
{
    pnr_acquisition *a = &p->acquisition;
    const pnr_config *config = p->config;
    const pnr_plan *plan = &p->setup->plan;
    const size_t sample_bytes = pnr_plan_sample_bytes(plan);
    const size_t dwell = pnr_plan_dwell_samples(plan);
    size_t chunk = recording_chunk(p);

    a->ring = p->ring;
    a->first_sample = p->part.first;
    a->first_window = p->setup->radar.first_window + pnr_plan_view_samples(plan, 0);
    a->dwell = dwell;
    a->rate_hz = p->setup->radar.rate_hz;
    a->has_start = p->setup->radar.has_start;
    a->stated_start_utc_ns = p->setup->radar.start_utc_ns;
    a->is_clocked = p->info.n_samples == UINT64_MAX;
    a->events = &p->events;
    a->is_loss_event = config->recorder.trigger_loss;
    a->stop = p->options->stop;
    a->is_paced = config->source.pace == PNR_PACE_REAL_TIME && !p->info.is_live;
    a->is_live = p->is_live;
    if (a->is_live)
        chunk = live_chunk(dwell);
    if (config->source.chunk > 0)
        chunk = config->source.chunk;
    a->chunk = chunk < 1 ? 1 : chunk > p->capacity ? p->capacity : chunk;
    if ((a->spare = malloc(a->chunk * sample_bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a chunk of %zu samples",
                             a->chunk);
    return PNR_OK;
}

/* Opens the recorder of samples. A live stream never waits for a disk; a recording does. */
static int open_recorder(pnr_pipeline *p, pnr_error *error)
{
    if (p->config->recorder.samples[0] == '\0')
        return PNR_OK;
    if (p->options->feed != NULL)
        return pnr_refuse(error, "recorder.samples: samples that a program pushes are recorded by "
                                 "that program");
    return pnr_sample_recorder_create(p->config, p->setup, p->info.format, p->info.n_channels,
                                      !p->is_live, &p->events, &p->acquisition.recorder, error);
}

static int open_publishing(pnr_pipeline *p, pnr_error *error)
{
    pnr_pipeline *run = run_of(p); /* the threads of the run use the parts */
    const pnr_publishing_parts parts = {.config = p->config,
                                        .options = run->options,
                                        .setup = p->setup,
                                        .info = &run->info,
                                        .acquisition = &run->acquisition,
                                        .turns = &run->turns,
                                        .realtime = &run->realtime,
                                        .events = &run->events,
                                        .engine = pnr_pipeline_engine(p),
                                        .isolation = p->isolation,
                                        .reload = run->reload,
                                        .is_live = p->is_live};

    return p->before != NULL ? pnr_publishing_prepare(&parts, &p->publishing, error)
                             : pnr_publishing_create(&parts, &p->publishing, error);
}

static int open_source(pnr_pipeline *p, pnr_error *error)
{
    const pnr_config *config = p->config;

    p->info = (pnr_source_info){
        .format = config->source.format, .n_channels = config->source.channels, .n_samples = 0};
    if (p->options->feed == NULL) {
        const int code = pnr_source_open(config, &p->acquisition.source, error);

        if (code != PNR_OK)
            return code;
        pnr_source_report_to(p->acquisition.source, &p->events);
        p->info = *pnr_source_get_info(p->acquisition.source);
        pnr_log(PNR_LOG_INFO, "source: %s; loss_visibility: %s", p->info.text,
                pnr_loss_visibility_word(p->info.loss_visibility));
        pnr_publishing_log_trailing(p->info.n_trailing_bytes);
    }
    p->is_live = config->source.pace == PNR_PACE_REAL_TIME || p->info.is_live;
    return PNR_OK;
}

/* Returns the first sample of the first dwell at or after this sample. Returns 0 for sample 0. The
 * result is at most the length of the recording. */
static uint64_t first_dwell_from(const pnr_pipeline *p, uint64_t sample)
{
    const uint64_t first = p->setup->radar.first_window;
    const size_t dwell = pnr_plan_dwell_samples(&p->setup->plan);
    uint64_t begin = sample;

    if (sample > first)
        begin = first + (sample - first + dwell - 1) / dwell * dwell;
    else if (sample > 0)
        begin = first;
    return begin < p->info.n_samples ? begin : p->info.n_samples;
}

/* Limits the source to the dwells that begin in the configured part. Two adjacent parts have no
 * dwell in common and omit no dwell. */
static int open_part(pnr_pipeline *p, pnr_error *error)
{
    const uint64_t first = p->config->source.first_sample, n = p->config->source.n_samples;
    const uint64_t n_all = p->info.n_samples, behind = pnr_plan_view_samples(&p->setup->plan, 0);
    const uint64_t dwell = pnr_plan_dwell_samples(&p->setup->plan);

    if (first == 0 && n == 0)
        return PNR_OK;
    if (p->options->feed != NULL)
        return pnr_refuse(error, "source.first_sample and source.n_samples are a part of a "
                                 "recording, and these samples are pushed");
    if (first < n_all) {
        p->part.first = first_dwell_from(p, first);
        p->part.end = n == 0 || n >= n_all - first ? n_all : first_dwell_from(p, first + n);
    }

    const uint64_t end = n_all - p->part.end > behind ? p->part.end + behind : n_all;

    if (first >= n_all || first_window_of(p) + dwell + behind > end)
        return pnr_error_set(error, PNR_EDATA,
                             "%.200s: no whole dwell begins in the part from source.first_sample = "
                             "%zu on, source.n_samples = %zu: the recording has %llu samples, a "
                             "dwell %zu, and one begins at sample %zu",
                             p->config->source.input, (size_t)first, (size_t)n,
                             (unsigned long long)n_all, (size_t)dwell,
                             p->setup->radar.first_window);
    p->info.n_samples = p->part.end - p->part.first;
    return pnr_source_limit(p->acquisition.source, p->part.first, end, error);
}

/* Refuses a recording of known length that ends before the first dwell is complete. Exception:
 * if the dwell is one period and at least half of it is recorded, the missing samples count as
 * lost. */
static int check_length(pnr_pipeline *p, pnr_error *error)
{
    const pnr_plan *plan = &p->setup->plan;
    const pnr_radar *radar = &p->setup->radar;
    const size_t needed = radar->first_window + pnr_plan_view_samples(plan, 1);
    const size_t refused = plan->n_samples / 2; /* a window with more losses has no result */
    const double rate_hz = pnr_rational_double(radar->rate_hz);

    if (p->options->feed != NULL || p->part.end > 0 || p->info.n_samples >= needed)
        return PNR_OK;
    if (pnr_plan_windows(plan) == 1 && p->info.n_samples + refused >= needed) {
        pnr_log(PNR_LOG_WARN,
                "source: %llu samples are less than a period: the other %llu of %zu count as lost",
                (unsigned long long)p->info.n_samples,
                (unsigned long long)(needed - p->info.n_samples), needed);
        pnr_source_pad(p->acquisition.source, needed);
        p->info = *pnr_source_get_info(p->acquisition.source);
        return PNR_OK;
    }
    return pnr_error_set(error, PNR_EDATA,
                         "%.200s: %llu samples (%.4g ms) are shorter than one dwell: the first "
                         "result takes %zu samples (%.4g ms), %zu periods of %zu",
                         p->config->source.input, (unsigned long long)p->info.n_samples,
                         (double)p->info.n_samples / rate_hz * 1e3, needed,
                         (double)needed / rate_hz * 1e3, pnr_plan_windows(&p->setup->plan),
                         p->setup->plan.n_samples);
}

/* Warns once about a code around 0 Hz in real samples. A code or pulse from a file causes no
 * warning, because it may have a carrier of its own. */
static void log_baseband(const pnr_pipeline *p)
{
    const pnr_config *config = p->config;

    if (pnr_format_get(p->setup->plan.format)->is_complex || config->source.tune_hz.num != 0)
        return;
    for (size_t c = 0; c < p->setup->n_codes; c++) {
        pnr_config one;

        pnr_config_code(config, c, &one);
        if (one.code.tune_hz.num == 0 && one.code.type != PNR_CODE_FILE &&
            one.code.pulse != PNR_PULSE_FILE) {
            pnr_log(PNR_LOG_WARN,
                    "source.tune_hz = 0 and real samples: %s lies around 0 Hz, so an echo fades "
                    "with its phase: set source.tune_hz to the carrier in the recording, as "
                    "12000, or record I and Q",
                    p->setup->codes[c].code->name);
            return;
        }
    }
}

static void log_setup(const pnr_pipeline *p)
{
    const pnr_setup *setup = p->setup;
    const pnr_least_squares *filter = setup->least_squares;
    const pnr_radar *radar = &setup->radar;
    double removed = 0;

    pnr_log(PNR_LOG_INFO, "code %s: N = %zu samples a period, %.6g ms; ring of %zu samples",
            setup->codes[0].code->name, setup->plan.n_samples, setup->radar.period_s * 1e3,
            p->capacity);
    if (!radar->is_linear &&
        (radar->min_delay_s < 0 || radar->max_delay_s > radar->period_s * (1 + 1e-9)))
        pnr_log(PNR_LOG_WARN,
                "radar: the gate from %.10g m to %.10g m wraps: ranges repeat after %.10g m",
                pnr_radar_range_m(radar, radar->min_delay_s),
                pnr_radar_range_m(radar, radar->max_delay_s), radar->unambiguous_m);
    log_baseband(p);
    for (size_t c = 0; c < setup->n_codes; c++)
        removed = fmax(removed, setup->codes[c].removed);
    if (removed > 0)
        pnr_log(PNR_LOG_INFO, "window.dc and window.notch remove %.4g %% of the energy of %s",
                100 * removed, setup->n_codes > 1 ? "a code, at most" : "the code");
    if (filter != NULL)
        pnr_log(PNR_LOG_INFO,
                "least squares over %zu gates: SNR loss %.2f dB, at worst %.2f; condition %.3g",
                filter->n_gates, filter->mean_loss_db, filter->worst_loss_db, filter->condition);
}

/* Returns PNR_EEND if the program was stopped. Long codes take seconds to open, so a stop during
 * this time is likely. */
static int check_stop(const pnr_pipeline *p)
{
    const volatile int *stop = p->options->stop;

    return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0 ? PNR_EEND : PNR_OK;
}

static int make_setup(pnr_pipeline *p, pnr_error *error)
{
    int code;

    pnr_parallel_stop_at(p->options->stop);
    code = pnr_setup_create(p->config, p->info.format, p->info.n_channels, &p->setup, error);
    pnr_parallel_stop_at(NULL);
    if (check_stop(p) != PNR_OK)
        return PNR_EEND; /* a set-up that was stopped may return any error */
    if (code != PNR_OK)
        return code;
    if (p->options->tap_cells != NULL && p->setup->plan.want_profile == PNR_WANT_NONE)
        pnr_setup_want_power(p->setup, p->config);
    return PNR_OK;
}

/* Starts the thread that reads the configuration again. */
static int open_reload(pnr_pipeline *p, pnr_error *error)
{
    return p->options->reload != NULL ? pnr_reload_create(p, &p->reload, error) : PNR_OK;
}

/* Makes all that needs no engine. Meanwhile an engine of this process starts. */
static int open_before_engine(pnr_pipeline *p, pnr_error *error)
{
    pnr_engine_start start = {0};
    int code;

    if (!may_isolate(p))
        pnr_engine_start_begin(&start, p->config);
    if ((code = make_setup(p, error)) == PNR_OK && (code = open_part(p, error)) == PNR_OK)
        code = check_length(p, error);
    pnr_engine_start_end(&start, p->options->can_exit ? p->options->stop : NULL);
    return code;
}

int pnr_pipeline_open(pnr_pipeline *p, pnr_error *error)
{
    int code;

    pnr_events_begin(&p->events);
    if ((code = open_source(p, error)) != PNR_OK || (code = check_stop(p)) != PNR_OK ||
        (code = open_before_engine(p, error)) != PNR_OK ||
        (code = open_devices(p, error)) != PNR_OK || (code = shape_ring(p, error)) != PNR_OK ||
        (code = open_engine(p, error)) != PNR_OK || (code = check_stop(p)) != PNR_OK ||
        (code = open_ring(p, error)) != PNR_OK || (code = open_acquisition(p, error)) != PNR_OK ||
        (code = open_recorder(p, error)) != PNR_OK || (code = open_reload(p, error)) != PNR_OK ||
        (code = open_publishing(p, error)) != PNR_OK)
        return code;
    log_setup(p);
    return PNR_OK;
}

/* Refuses a new configuration if the run processes a part of a recording, or if the size of the
 * cells of a result changes. */
static int check_next(const pnr_pipeline *p, pnr_error *error)
{
    const size_t bytes = pnr_plan_profile_bytes(&p->setup->plan);
    const size_t was = pnr_plan_profile_bytes(&p->before->setup->plan);

    if (p->part.end > 0)
        return pnr_refuse(error, "source.first_sample and source.n_samples: the configuration of a "
                                 "part of a recording needs a new start");
    if (bytes == was)
        return PNR_OK;
    return pnr_refuse(error,
                      "publisher.profile, --profile or --plot: a result has %zu bytes of cells, "
                      "and it had %zu: another number of cells needs a new start",
                      bytes, was);
}

int pnr_pipeline_open_next(pnr_pipeline *p, pnr_error *error)
{
    const pnr_pipeline *run = p->before;
    pnr_ring_shape shape;
    int code;

    p->options = run->options;
    p->info = run->info;
    p->part.first = run->part.first;
    p->part.end = run->part.end;
    p->is_live = run->is_live;
    p->memory = run->memory;
    p->capacity = run->capacity;
    if ((code = make_setup(p, error)) != PNR_OK || (code = check_next(p, error)) != PNR_OK)
        return code;
    p->max_dwells = p->setup->plan.batch;
    if ((code = open_devices(p, error)) != PNR_OK || (code = fit_to_ring(p, error)) != PNR_OK ||
        (code = open_engine(p, error)) != PNR_OK || (code = open_publishing(p, error)) != PNR_OK)
        return code;
    shape = ring_shape(p);
    shape.first_window = p->setup->radar.first_window;
    if ((code = pnr_ring_prepare(run->ring, &shape, &p->division, error)) != PNR_OK)
        return code;
    log_setup(p);
    return check_stop(p);
}

void pnr_pipeline_close(pnr_pipeline *p)
{
    pnr_reload_finish(p->reload);
    pnr_publishing_destroy(p->publishing);
    pnr_isolation_destroy(p->isolation); /* before the reload thread ends, because the worker may be
                                          * a child of that thread */
    pnr_reload_destroy(p->reload);
    pnr_processing_close(&p->processing);
    pnr_ring_destroy(p->ring);
    pnr_ring_division_destroy(p->division);
    if (p->before == NULL && p->processing.ops != NULL && p->memory != NULL)
        p->processing.ops->free(p->memory);
    pnr_setup_destroy(p->setup);
    pnr_sample_recorder_destroy(p->acquisition.recorder);
    pnr_source_close(p->acquisition.source);
    free(p->acquisition.spare);
    if (p->own_config != NULL)
        pnr_config_clear(p->own_config);
    free(p->own_config);
    free(p);
}
