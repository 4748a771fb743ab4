/* SPDX-License-Identifier: MIT */
/* CLEAN: searches the samples again without the echoes that were found. */
#include "pipeline/clean.h"

#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATCH = 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS }; /* number of floats in a patch */

/* A candidate within this distance of a subtracted echo is a remnant of this echo. */
static const double remnant_lags = 1.5, remnant_rows = 1.5;

struct pnr_clean {
    const pnr_detector *detector;
    const pnr_radar *radar;
    const pnr_plan *plan;
    size_t n_searches, n_copies, n_removable; /* n_removable: greatest number of echoes that are
                                               * subtracted */
    float (**copies)[2];   /* [n_copies][n_samples]: for each echo the delayed code, and then its
                            * derivative */
    double complex *work;  /* [2 n_samples] */
    pnr_removal *removals; /* [n_removable][PNR_MAX_REMOVALS] */
    size_t n_candidates;
    pnr_candidate *candidates; /* [PNR_MAX_CANDIDATES]: candidates that became echoes, then new
                                * candidates */
    uint8_t search[PNR_MAX_CANDIDATES]; /* number of the search that found each candidate, see
                                         * pnr_observed */
    float *patches; /* [PNR_MAX_CANDIDATES][17][17][2]; NULL: the map has one row */
};

int pnr_clean_create(const pnr_config *config, const pnr_setup *setup, const pnr_detector *detector,
                     pnr_clean **out, pnr_error *error)
{
    const size_t n = setup->plan.n_samples;
    pnr_clean *clean = calloc(1, sizeof *clean);
    bool is_good = clean != NULL;

    *out = NULL;
    for (size_t c = 0; c < setup->n_codes && is_good; c++)
        is_good = pnr_waveform_prepare(setup->codes[c].waveform) == PNR_OK;
    if (is_good) {
        clean->detector = detector;
        clean->radar = &setup->radar;
        clean->plan = &setup->plan;
        clean->n_searches = config->detector.subtract;
        clean->n_removable = setup->max_echoes + PNR_MAX_OUTSIDE;
        clean->n_copies = 2 * clean->n_removable;
        clean->copies = calloc(clean->n_copies, sizeof *clean->copies);
        clean->removals = calloc(clean->n_removable * PNR_MAX_REMOVALS, sizeof *clean->removals);
        clean->work = calloc(2 * n, sizeof *clean->work);
        clean->candidates = calloc(PNR_MAX_CANDIDATES, sizeof *clean->candidates);
        if (pnr_plan_rows(&setup->plan) > 1)
            clean->patches = calloc((size_t)PNR_MAX_CANDIDATES * PATCH, sizeof(float));
        is_good = clean->copies && clean->removals && clean->work && clean->candidates &&
                  (clean->patches != NULL || pnr_plan_rows(&setup->plan) == 1);
    }
    for (size_t i = 0; is_good && i < clean->n_copies; i++)
        is_good = (clean->copies[i] = calloc(n, sizeof *clean->copies[i])) != NULL;
    if (!is_good) {
        pnr_clean_destroy(clean);
        return pnr_error_set(error, PNR_ENOMEMORY,
                             "detector.subtract: no memory for %zu echoes of %zu samples",
                             setup->max_echoes, n);
    }
    *out = clean;
    return PNR_OK;
}

void pnr_clean_destroy(pnr_clean *clean)
{
    if (clean == NULL)
        return;
    for (size_t i = 0; clean->copies != NULL && i < clean->n_copies; i++)
        free(clean->copies[i]);
    free(clean->copies);
    free(clean->removals);
    free(clean->work);
    free(clean->candidates);
    free(clean->patches);
    free(clean);
}

static void keep_candidate(pnr_clean *clean, size_t at, const pnr_candidate *candidate,
                           const float *patch, size_t search)
{
    clean->candidates[at] = *candidate;
    clean->search[at] = (uint8_t)search;
    if (clean->patches != NULL)
        memmove(clean->patches + at * PATCH, patch, PATCH * sizeof(float));
}

/* Returns the number of echoes, including the echoes outside the gate. */
static size_t echoes_of(const pnr_detection *detection)
{
    return detection->n_echoes + detection->n_outside;
}

/* Copies the candidates that became echoes, in the same order. */
static void keep_echoes(pnr_clean *clean, const pnr_observed *observed,
                        const pnr_detection *detection)
{
    bool is_echo[PNR_MAX_CANDIDATES] = {false};

    for (size_t e = 0; e < echoes_of(detection); e++)
        is_echo[detection->echoes[e].candidate] = true;
    clean->n_candidates = 0;
    for (size_t i = 0; i < observed->dwell->n_candidates; i++)
        if (is_echo[i])
            keep_candidate(clean, clean->n_candidates++, &observed->candidates[i],
                           observed->patches != NULL ? observed->patches + i * PATCH : NULL,
                           observed->search != NULL ? observed->search[i] : 0);
}

static bool is_remnant(const pnr_clean *clean, const pnr_candidate *candidate,
                       const pnr_detection *detection)
{
    const double n = (double)clean->plan->n_samples;
    const double lag = (double)candidate->cell / (double)clean->plan->oversample;

    for (size_t e = 0; e < echoes_of(detection); e++) {
        const pnr_echo *echo = &detection->echoes[e];
        const double rows = fabs((double)candidate->row - (double)echo->row);

        if (echo->code == candidate->code && fabs(remainder(lag - echo->lag, n)) <= remnant_lags &&
            rows <= remnant_rows)
            return true;
    }
    return false;
}

/* Copies the new candidates of a search. Adds the subtracted echoes to the values of these
 * candidates again. Returns the number of new candidates. */
static size_t keep_new(pnr_clean *clean, const pnr_observed *observed, const pnr_result *found,
                       const pnr_detection *detection, size_t search)
{
    size_t n = 0;

    for (size_t i = 0; i < found->dwells[0].n_candidates; i++) {
        const size_t at = clean->n_candidates;
        float *patch = clean->patches != NULL ? clean->patches + at * PATCH : NULL;

        if (at == PNR_MAX_CANDIDATES)
            break;
        if (is_remnant(clean, &found->candidates[i], detection))
            continue;
        keep_candidate(clean, at, &found->candidates[i],
                       found->patches != NULL ? found->patches + i * PATCH : NULL, search);
        pnr_detector_restore(clean->detector, observed, detection, &clean->candidates[at], patch);
        clean->n_candidates++;
        n++;
    }
    return n;
}

int pnr_clean_run(pnr_clean *clean, pnr_correlator *correlator, const pnr_windows *windows,
                  size_t d, const pnr_observed *observed, pnr_detection *detection)
{
    pnr_dwell dwell = *observed->dwell;
    pnr_observed all = *observed;

    keep_echoes(clean, observed, detection);
    for (size_t search = 0; search < clean->n_searches && echoes_of(detection) > 0; search++) {
        const size_t n_before = echoes_of(detection);
        size_t n_removals = 0;
        pnr_result found;

        for (size_t e = 0; e < n_before; e++)
            n_removals += pnr_detector_removals(clean->detector, &detection->echoes[e],
                                                clean->copies[2 * e], clean->copies[2 * e + 1],
                                                clean->work, &clean->removals[n_removals]);

        if (n_removals == 0)
            break;

        const int code = pnr_correlator_search_without(correlator, windows, d, clean->removals,
                                                       n_removals, &found);

        if (code != PNR_OK)
            return code;

        const bool is_new = keep_new(clean, observed, &found, detection, search + 1) > 0;

        if (!is_new && !detection->is_more)
            break;
        dwell.floor = fmin(dwell.floor, found.dwells[0].floor);
        dwell.n_candidates = (uint32_t)clean->n_candidates;
        /* Counts the kept candidates in the gate, and the maxima of this search in the gate that
         * are not among its candidates. Maxima of earlier searches that are not candidates are not
         * counted: many are sidelobes of echoes that are now subtracted. */
        dwell.n_maxima = (uint32_t)(pnr_detector_inside(clean->detector, clean->candidates,
                                                        clean->n_candidates) +
                                    found.dwells[0].n_maxima -
                                    pnr_detector_inside(clean->detector, found.candidates,
                                                        found.dwells[0].n_candidates));
        all.dwell = &dwell;
        all.candidates = clean->candidates;
        all.patches = clean->patches;
        all.search = clean->search;
        pnr_detector_detect(clean->detector, &all, detection);
        keep_echoes(clean, &all, detection);
        if (!is_new || echoes_of(detection) == n_before)
            break;
    }
    return PNR_OK;
}
