/* SPDX-License-Identifier: MIT */
/* The work after the engine: passes each dwell of a result to the account, the detector and the
 * publisher. */
#include "pipeline/state.h"

#include "base/clock.h"
#include "engine/plan.h"

#include <math.h>

static const double huge_power = 1e20; /* full scale is 1; unscaled 32-bit integers reach 4.6e18 */

enum { CACHE_LINE = 64, DWELLS_AHEAD = 4 };

static void fill_time(const pnr_pipeline *p, pnr_report *report)
{
    const pnr_radar *radar = &p->setup->radar;
    int64_t start = radar->start_utc_ns;

    report->time_source = PNR_TIME_NONE;
    if (radar->has_start)
        report->time_source = PNR_TIME_FILE;
    else if ((start = atomic_load(&p->acquisition.source_start_utc_ns)) != 0)
        report->time_source = PNR_TIME_SOURCE;
    else if (p->info.n_samples == UINT64_MAX &&
             (start = atomic_load(&p->acquisition.start_utc_ns)) != 0)
        report->time_source = PNR_TIME_HOST;
    report->has_time = report->time_source != PNR_TIME_NONE;
    report->time_ns =
        report->has_time ? start + pnr_rational_time_ns(radar->rate_hz, report->sample) : 0;
}

/* Accounts for all windows of a result, before the ring takes them back. */
static void account_for_result(pnr_pipeline *p, const pnr_windows *windows,
                               const pnr_result *result)
{
    const size_t n = p->setup->plan.n_samples;
    pnr_account *account = &p->account;

    for (size_t w = 0; w < result->n_dwells * windows->n_periods; w++) {
        const uint64_t lost = windows->lost[w], nonfinite = result->nonfinite[w];
        const bool is_refused = lost + nonfinite > n / 2;

        account->positions += n;
        account->windows++;
        account->lost_source += nonfinite;
        account->n_nonfinite += nonfinite;
        *(is_refused ? &account->skipped_refused : &account->used) += n - lost - nonfinite;
        *(is_refused ? &account->refused_too_much_lost : &account->processed) += 1;
    }
    for (size_t d = 0; d < result->n_dwells; d++)
        account->n_clipped += result->dwells[d].n_clipped;
}

/* Returns the number of samples of dwell d that are lost or not finite. */
static uint64_t lost_in_dwell(const pnr_pending_result *of, size_t d)
{
    const size_t n_periods = of->windows.n_periods;
    uint64_t sum = 0;

    for (size_t w = d * n_periods; w < (d + 1) * n_periods; w++)
        sum += of->windows.lost[w] + of->result.nonfinite[w];
    return sum;
}

/* True when samples are larger than any receiver gives: their mean power is too large, or the power
 * of the correlation is beyond single precision. */
static bool has_huge_samples(const pnr_dwell *dwell)
{
    const double mean = dwell->energy / (double)dwell->n_valid;

    return dwell->n_valid > 0 && !(mean < huge_power && isfinite(dwell->noise_sum));
}

static unsigned flags_of(const pnr_pipeline *p, const pnr_dwell *dwell, uint64_t lost)
{
    return (lost > dwell->n_nonfinite ? PNR_FLAG_LOST : 0) |
           (dwell->n_nonfinite > 0 ? PNR_FLAG_NONFINITE : 0) |
           (dwell->n_clipped > 0 ? PNR_FLAG_CLIPPED : 0) |
           (has_huge_samples(dwell) ? PNR_FLAG_HUGE_SAMPLES : 0) |
           (dwell->n_periods < pnr_plan_windows(&p->setup->plan) ? PNR_FLAG_PARTIAL : 0);
}

/* Adds the flags of the detection and of the trackers. */
static void flag_detection(const pnr_pipeline *p, pnr_report *report)
{
    report->flags |= (report->detection.is_coloured ? PNR_FLAG_COLOURED : 0) |
                     (report->detection.is_unresolved ? PNR_FLAG_UNRESOLVED : 0) |
                     (report->detection.is_sign_changed ? PNR_FLAG_SIGN_CHANGE : 0) |
                     (report->detection.is_more ? PNR_FLAG_MORE_ECHOES : 0) |
                     (report->detection.is_coarse ? PNR_FLAG_COARSE : 0) |
                     (report->slip > 0 ? PNR_FLAG_SLIP : 0) |
                     (p->zero.is_alarm ? PNR_FLAG_ZERO_ALARM : 0);
}

/* Fills floor and threshold of the cells. If a dwell has several looks, complex values are those of
 * the last look. These values have the noise of one look, and no threshold. */
static void fill_levels(const pnr_pipeline *p, const pnr_dwell *dwell, pnr_profile_info *info)
{
    const pnr_plan *plan = &p->setup->plan;
    const size_t n_looks = (dwell->n_periods + plan->n_periods - 1) / plan->n_periods;

    info->floor = dwell->floor;
    info->threshold = plan->threshold[dwell->n_periods - 1] * dwell->floor;
    if (plan->cfar.kind != PNR_CFAR_OFF)
        info->threshold = NAN; /* CFAR has a threshold for each cell */
    if (info->is_complex && n_looks > 1) {
        info->floor /= (double)n_looks;
        info->threshold = NAN;
    }
}

/* Moves the gate together with the direct path by whole cells, at most by zero_search_s. */
static void place_gate(const pnr_pipeline *p, pnr_profile_info *info)
{
    const double moved_s = p->zero.last.delay_s - p->config->radar.zero_delay_s;
    const double most = floor(p->setup->radar.zero_search_s / info->step_s);
    double cells;

    if (!p->zero.last.is_tracked)
        return;
    cells = round(moved_s / info->step_s);
    if (info->n_gate < info->n_cells) /* a gate of all lags may move freely */
        cells = fmin(fmax(cells, -most), most);
    info->first_cell = (size_t)fmod(
        fmod((double)p->gate_first_cell + cells, (double)info->n_cells) + (double)info->n_cells,
        (double)info->n_cells);
    info->delay_s = p->gate_delay_s + cells * info->step_s - moved_s;
}

static void give_cells(pnr_pipeline *p, const pnr_result *result, size_t d)
{
    pnr_map_info *map = &p->map;
    const size_t each = map->row.is_complex ? 2 : 1;
    const float *cells = result->profile + d * map->n_codes * map->n_rows * map->row.n_cells * each;

    fill_levels(p, &result->dwells[d], &map->row);
    place_gate(p, &map->row);
    /* A profile or map only accompanies the result: if the publisher refuses it, no result is
     * lost. */
    if (p->config->publisher.profile != PNR_PROFILE_OFF)
        (void)pnr_publisher_send_cells(p->publisher, &p->report, map, cells);
    if (p->options->tap_cells != NULL)
        p->options->tap_cells(p->options->tap_context, &p->report, map, cells);
}

static void publish_dwell(pnr_pipeline *p, const pnr_result *result, size_t d)
{
    p->account.results++;
    if (pnr_publisher_send_range(p->publisher, &p->report) == PNR_OK)
        p->account.sent++;
    else
        p->account.unsent_publish_refused++;
    if (p->setup->plan.want_profile != PNR_WANT_NONE)
        give_cells(p, result, d);
}

static void view_dwell(const void *context, size_t d, pnr_observed *out)
{
    const pnr_pending_result *of = context;
    const pnr_plan *plan = of->plan;
    const pnr_windows *windows = &of->windows;
    const pnr_result *result = &of->result;
    const size_t candidates = d * plan->max_candidates;

    *out = (pnr_observed){
        .dwell = &result->dwells[d],
        .candidates = result->candidates + candidates,
        .patches = result->patches != NULL
                       ? result->patches + candidates * 2 * PNR_NEIGHBOURS * PNR_NEIGHBOURS
                       : NULL,
        .lost = windows->lost + d * windows->n_periods,
        .nonfinite = result->nonfinite + d * windows->n_periods,
    };
}

static void name_codes(const pnr_pipeline *p, pnr_detection *detection)
{
    for (size_t i = 0; i < detection->n_echoes; i++) {
        pnr_echo *echo = &detection->echoes[i];

        echo->code_name = p->setup->codes[echo->code].label;
    }
}

/* Reports the first dwell of those in a row that have clipped samples. */
static void tell_clipping(pnr_pipeline *p, const pnr_dwell *dwell)
{
    const bool is_clipping = dwell->n_clipped > 0;
    const double share =
        dwell->n_valid > 0 ? (double)dwell->n_clipped / (double)dwell->n_valid : (double)NAN;

    if (is_clipping && !p->is_clipping)
        pnr_event_post(&p->events, PNR_EVENT_CLIPPING, p->report.sample, (double)dwell->n_clipped,
                       share,
                       "clipping begins in the dwell at sample %llu: %llu samples, %.3g %%, at the "
                       "limits of the format",
                       (unsigned long long)p->report.sample, (unsigned long long)dwell->n_clipped,
                       100 * share);
    p->is_clipping = is_clipping;
}

static void report_dwell(pnr_pipeline *p, const pnr_pending_result *of, size_t d)
{
    const pnr_windows *windows = &of->windows;
    const pnr_result *result = &of->result;
    const size_t n_dwell = pnr_plan_dwell_samples(of->plan);
    const pnr_dwell *dwell = &result->dwells[d];
    pnr_report *report = &p->report;
    const uint64_t lost = lost_in_dwell(of, d);

    pnr_team_take(p->team, &report->detection);
    if (d == 0)
        p->unreported += windows->lost_before;
    if (dwell->n_periods == 0) { /* every window has too many lost or non-finite samples */
        p->unreported += n_dwell;
        return;
    }
    report->sample = windows->first_sample + d * n_dwell;
    fill_time(p, report);
    report->periods = dwell->n_periods;
    report->lost = lost;
    report->lost_before = p->unreported;
    p->unreported = 0;
    report->flags = flags_of(p, dwell, lost);
    tell_clipping(p, dwell);
    report->cells_above = dwell->n_above;

    if (p->clean != NULL) {
        pnr_observed observed;

        view_dwell(of, d, &observed);
        /* If the engine is lost here, collecting the next result fails too. */
        (void)pnr_clean_run(p->clean, p->correlator, windows, d, &observed, &report->detection);
    }
    name_codes(p, &report->detection);
    report->slip = pnr_slip_track(&p->slip, report->sample,
                                  report->lost > 0 || report->lost_before > 0, &report->detection);
    pnr_zero_slip(&p->zero, report->slip);
    pnr_zero_track(&p->zero, report->sample, &report->detection);
    report->zero = p->zero.last;
    flag_detection(p, report);

    report->ready_ns = windows->ready_ns[d];
    report->submitted_ns = windows->submitted_ns;
    report->collected_ns = windows->collected_ns;

    const uint64_t latency_ns = pnr_clock_ns() - windows->ready_ns[d];

    report->latency_us = (double)latency_ns * 1e-3;
    if (pnr_deadline_is_missed(&p->deadline, latency_ns)) {
        report->flags |= PNR_FLAG_LATE;
        p->account.deadline_missed++;
    }
    pnr_histogram_add(&p->latency_ns, latency_ns);
    publish_dwell(p, result, d);
    p->n_echoes += report->detection.n_echoes;
    if (p->options->tap != NULL)
        p->options->tap(p->options->tap_context, report);
}

/* Prefetches the first candidate of dwell d. A device wrote it, so no cache has it. */
static void prefetch_dwell(const pnr_plan *plan, const pnr_result *result, size_t d)
{
    if (d < result->n_dwells) {
        const char *candidate = (const char *)(result->candidates + d * plan->max_candidates);

        for (size_t at = 0; at < sizeof(pnr_candidate); at += CACHE_LINE)
            __builtin_prefetch(candidate + at);
        __builtin_prefetch(candidate + sizeof(pnr_candidate) - 1);
        __builtin_prefetch(&result->dwells[d]);
    }
}

static void add_result(pnr_pipeline *p, const pnr_pending_result *of)
{
    size_t n_candidates = 0;

    for (size_t d = 0; d < of->result.n_dwells; d++)
        n_candidates += of->result.dwells[d].n_candidates;
    pnr_team_add(p->team, view_dwell, of, of->result.n_dwells, n_candidates);
}

bool pnr_pipeline_report_pending(pnr_pipeline *p, bool wait)
{
    if (p->pending == NULL || pnr_pending_is_empty(p->pending) ||
        (!wait && !pnr_team_is_ready(p->team)))
        return false;

    const pnr_pending_result *front = pnr_pending_front(p->pending);

    report_dwell(p, front, p->pending_dwell);
    if (++p->pending_dwell == front->result.n_dwells) {
        p->pending_dwell = 0;
        pnr_pending_pop(p->pending);
    }
    return true;
}

void pnr_pipeline_report(pnr_pipeline *p, const pnr_windows *windows, const pnr_result *result)
{
    const pnr_pending_result now = {&p->setup->plan, *windows, *result};

    account_for_result(p, windows, result);
    pnr_team_hurry(p->team, p->is_live && pnr_ring_is_half_full(p->ring));
    if (p->pending != NULL) {
        while (pnr_pending_is_full(p->pending))
            (void)pnr_pipeline_report_pending(p, true);
        add_result(p, pnr_pending_push(p->pending, windows, result));
        return;
    }
    add_result(p, &now);
    for (size_t d = 0; d < result->n_dwells; d++) {
        prefetch_dwell(&p->setup->plan, result, d + DWELLS_AHEAD);
        report_dwell(p, &now, d);
    }
}

void pnr_pipeline_drop(pnr_pipeline *p, const pnr_windows *windows, uint64_t *reason)
{
    const size_t n = p->setup->plan.n_samples;

    while (pnr_pipeline_report_pending(p, true))
        ; /* results of earlier samples first */
    for (size_t w = 0; w < windows->n_dwells * windows->n_periods; w++) {
        p->account.positions += n;
        p->account.windows++;
        p->account.used += n - windows->lost[w];
        *reason += 1;
    }
    p->unreported += windows->lost_before + windows->n_dwells * windows->n_periods * n;
}
