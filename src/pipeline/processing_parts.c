/* SPDX-License-Identifier: MIT */
/* Opens and closes the parts of the processing thread. All its slow work and all its allocation is
 * here. */
#include "pipeline/processing.h"

#include "base/available.h"
#include "base/log.h"
#include "base/parallel.h"
#include "detector/sign.h"
#include "engine/plan.h"
#include "pipeline/publishing.h"

/* MAX_DETECTION_THREADS: greatest number of detection threads if detector.threads is 0.
 * OTHER_THREADS: number of the threads of acquisition, publishing and ZeroMQ. */
enum { MAX_DETECTION_THREADS = 16, OTHER_THREADS = 3 };

/* Returns the plan for the first device, with the batch for which the ring has space. */
static pnr_plan engine_plan(const pnr_processing *p)
{
    pnr_plan plan = p->setup->plan;

    plan.batch = p->max_dwells;
    plan.device = p->devices.index[0];
    return plan;
}

int pnr_processing_check_memory(const pnr_processing *p, size_t n_samples, bool has_ring,
                                pnr_error *error)
{
    const pnr_plan *plan = &p->setup->plan;
    const double there = pnr_memory_available();
    const double ring = (double)n_samples * (double)pnr_plan_sample_bytes(plan);
    const double queue = (double)pnr_publishing_bytes(p->setup, p->is_live);
    const double engine = (double)(p->devices.n * p->choice.host_bytes);

    if ((has_ring ? 0 : ring + queue) + engine <= there)
        return PNR_OK;
    return pnr_error_set(error, PNR_ENOMEMORY,
                         "a ring of %zu samples takes %.4g GiB and the engine %.4g GiB, and %.4g "
                         "GiB are available: fewer periods or looks (a result has %zu "
                         "samples), a smaller engine.batch or ring",
                         n_samples, ring / 0x1p30, engine / 0x1p30, there / 0x1p30,
                         pnr_plan_dwell_samples(plan));
}

/* Returns the least number of samples in one upload of a part of a dwell, because the upload of
 * fewer samples saves no time. 0: only complete dwells are uploaded. */
static size_t ahead_samples(const pnr_processing *p)
{
    enum { WORTH_BYTES = 1 << 16, PARTS = 16 };
    const pnr_plan *plan = &p->setup->plan;
    const size_t dwell = pnr_plan_dwell_samples(plan);
    const size_t least = WORTH_BYTES / pnr_plan_sample_bytes(plan);
    const size_t ahead = dwell / PARTS > least ? dwell / PARTS : least;

    return p->is_live && p->ops->upload_ahead != NULL && ahead < dwell ? ahead : 0;
}

/* Returns the number of threads that detect. In a search of one row, results are so frequent that
 * the threads of acquisition, publishing and ZeroMQ are busy, too. Each of them then needs a core
 * of its own. */
static size_t detection_threads(const pnr_processing *p)
{
    const size_t wanted = p->config->detector.threads, cores = pnr_parallel_processors();
    const bool leaves = pnr_plan_rows(&p->setup->plan) == 1 && cores > 2 * OTHER_THREADS;
    const size_t n = leaves ? cores - OTHER_THREADS : cores;

    return wanted > 0 ? wanted : n < MAX_DETECTION_THREADS ? n : MAX_DETECTION_THREADS;
}

static int open_detector(pnr_processing *p, pnr_error *error)
{
    const size_t n = detection_threads(p);
    int code = pnr_detector_create(p->config, p->setup, &p->detector, error);

    if (code != PNR_OK)
        return code;

    const double dwell_s = (double)pnr_plan_dwell_samples(&p->setup->plan) /
                           pnr_rational_double(p->setup->radar.rate_hz);

    code =
        pnr_team_create(p->detector, p->setup->max_echoes, n, (uint64_t)(dwell_s * 1e9), &p->team);
    if (code == PNR_OK && n > 1 && p->config->detector.subtract == 0 &&
        p->setup->plan.want_profile == PNR_WANT_NONE)
        code = pnr_pending_create(&p->setup->plan, p->max_dwells, &p->pending);
    return code == PNR_OK ? PNR_OK
                          : pnr_error_set(error, code, "no memory for %zu detection threads", n);
}

static void *open_detector_thread(void *argument)
{
    pnr_processing *p = argument;

    p->detector_code = open_detector(p, &p->detector_error);
    return NULL;
}

/* Waits until the detector is open. */
static int join_detector(pnr_processing *p, pnr_error *error)
{
    if (p->is_opening)
        pthread_join(p->opening, NULL);
    p->is_opening = false;
    if (p->detector_code != PNR_OK && error != NULL)
        *error = p->detector_error;
    return p->detector_code;
}

int pnr_processing_choose(pnr_processing *p, const char *engine, pnr_error *error)
{
    int code = PNR_OK;

    p->is_opening = pthread_create(&p->opening, NULL, open_detector_thread, p) == 0;
    if (!p->is_opening)
        open_detector_thread(p);
    if (p->devices.n > 1)
        code = pnr_engine_list_devices(engine, &p->devices, p->may_lack ? &p->lost : NULL, error);
    if (code != PNR_OK)
        return code;

    const pnr_plan plan = engine_plan(p);

    return pnr_engine_choose(engine, &plan, &p->ops, &p->choice, error);
}

static int open_clean(pnr_processing *p, pnr_error *error)
{
    if (p->config->detector.subtract == 0)
        return PNR_OK;
    if (p->ops->search_without == NULL)
        return pnr_error_set(error, PNR_EUNSUPPORTED,
                             "detector.subtract = %zu: the engine %s cannot search again",
                             p->config->detector.subtract, p->ops->name);
    return pnr_clean_create(p->config, p->setup, p->detector, &p->clean, error);
}

/* Warns once if data bits may change the sign of a code within a look, and the detector does not
 * correct these changes. */
static void log_signs(const pnr_processing *p)
{
    const pnr_setup *setup = p->setup;

    for (size_t c = 0; c < setup->n_codes && setup->plan.n_periods > 1; c++)
        if (setup->codes[c].code->bits > 0 && !pnr_sign_is_corrected(p->detector, c)) {
            pnr_log(PNR_LOG_WARN,
                    "the sign of %s may change every %zu periods (code.bits), and looks of %zu "
                    "periods are not corrected here: an echo loses power or splits in two",
                    setup->codes[c].code->name, setup->codes[c].code->bits, setup->plan.n_periods);
            return;
        }
}

int pnr_processing_open(pnr_processing *p, pnr_error *error)
{
    const pnr_plan plan = engine_plan(p);
    int code;

    if ((code = pnr_correlator_create(p->ops, &plan, &p->choice, &p->devices,
                                      p->may_lack ? &p->lost : NULL, &p->correlator, error)) !=
            PNR_OK ||
        (code = join_detector(p, error)) != PNR_OK || (code = open_clean(p, error)) != PNR_OK)
        return code;
    p->ahead = ahead_samples(p);
    log_signs(p);
    return PNR_OK;
}

void pnr_processing_close(pnr_processing *p)
{
    (void)join_detector(p, NULL);
    pnr_clean_destroy(p->clean);
    pnr_team_destroy(p->team);
    pnr_pending_destroy(p->pending);
    pnr_detector_destroy(p->detector);
    pnr_correlator_destroy(p->correlator);
}
