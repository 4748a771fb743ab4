/* SPDX-License-Identifier: MIT */
/* Reports: makes a report of each dwell after the detection, updates the trackers, and counts and
 * publishes the report. */
#include "pipeline/publishing_state.h"

#include "base/clock.h"
#include "engine/plan.h"

#include <math.h>
#include <string.h>

static const double huge_power = 1e20; /* full scale is 1; unscaled 32-bit integers reach 4.6e18 */

static void fill_time(const pnr_publishing *p, pnr_report *report)
{
    int64_t start;

    report->time_source = pnr_acquisition_start(p->parts.acquisition, &start);
    report->has_time = report->time_source != PNR_TIME_NONE;
    report->time_ns = report->has_time ? start + pnr_rational_time_ns(p->parts.setup->radar.rate_hz,
                                                                      report->sample)
                                       : 0;
}

/* True when samples are larger than those of any receiver: their mean power is too large, or the
 * power of the correlation exceeds single precision. */
static bool has_huge_samples(const pnr_dwell *dwell)
{
    const double mean = dwell->energy / (double)dwell->n_valid;

    return dwell->n_valid > 0 && !(mean < huge_power && isfinite(dwell->noise_sum));
}

static unsigned flags_of(const pnr_publishing *p, const pnr_dwell *dwell, uint64_t lost)
{
    return (lost > dwell->n_nonfinite ? PNR_FLAG_LOST : 0) |
           (dwell->n_nonfinite > 0 ? PNR_FLAG_NONFINITE : 0) |
           (dwell->n_clipped > 0 ? PNR_FLAG_CLIPPED : 0) |
           (has_huge_samples(dwell) ? PNR_FLAG_HUGE_SAMPLES : 0) |
           (dwell->n_periods < pnr_plan_windows(&p->parts.setup->plan) ? PNR_FLAG_PARTIAL : 0);
}

/* Adds the flags of the detection and of the trackers. */
static void flag_detection(const pnr_publishing *p, pnr_report *report)
{
    report->flags |= (report->detection.is_coloured ? PNR_FLAG_COLOURED : 0) |
                     (report->detection.is_unresolved ? PNR_FLAG_UNRESOLVED : 0) |
                     (report->detection.is_sign_changed ? PNR_FLAG_SIGN_CHANGE : 0) |
                     (report->detection.is_more ? PNR_FLAG_MORE_ECHOES : 0) |
                     (report->detection.is_coarse ? PNR_FLAG_COARSE : 0) |
                     (report->slip > 0 ? PNR_FLAG_SLIP : 0) |
                     (p->zero.is_alarm ? PNR_FLAG_ZERO_ALARM : 0);
}

/* Copies the name faster than snprintf, which takes 50 ns. */
static void name_engine(const char *name, pnr_report *report)
{
    const size_t n = strnlen(name, sizeof report->engine - 1);

    memcpy(report->engine, name, n);
    report->engine[n] = '\0';
}

static void name_codes(const pnr_publishing *p, pnr_detection *detection)
{
    for (size_t i = 0; i < detection->n_echoes; i++) {
        pnr_echo *echo = &detection->echoes[i];

        echo->code_name = p->parts.setup->codes[echo->code].label;
    }
}

static void publish_report(pnr_publishing *p)
{
    p->account.results++;
    if (pnr_publisher_send_range(p->publisher, &p->report) == PNR_OK)
        p->account.sent++;
    else
        p->account.unsent_publish_refused++;
}

/* Passes the report to the recorder of results. A strong echo triggers the recorder of samples. The
 * recorder of samples also learns the position up to which all events are reported. */
static void record_report(const pnr_publishing *p)
{
    const pnr_report *report = &p->report;
    const pnr_config *config = p->parts.config;
    pnr_sample_recorder *samples = p->parts.acquisition->recorder;
    bool is_strong = false;

    if (p->recorder != NULL)
        pnr_result_recorder_add(p->recorder, report);
    if (samples == NULL)
        return;
    for (size_t i = 0; !is_strong && i < report->detection.n_echoes; i++)
        is_strong = config->recorder.has_trigger_snr_db &&
                    report->detection.echoes[i].snr_db >= config->recorder.trigger_snr_db;
    if (is_strong)
        pnr_sample_recorder_trigger(samples, PNR_TRIGGER_ECHO, report->sample);
    pnr_sample_recorder_search(samples, report->sample);
}

/* Reports the first of consecutive dwells that have clipped samples. */
static void tell_clipping(pnr_publishing *p, const pnr_dwell *dwell)
{
    const bool is_clipping = dwell->n_clipped > 0;
    const double share =
        dwell->n_valid > 0 ? (double)dwell->n_clipped / (double)dwell->n_valid : (double)NAN;

    if (is_clipping && !p->is_clipping)
        pnr_event_post(p->parts.events, PNR_EVENT_CLIPPING, p->report.sample,
                       (double)dwell->n_clipped, share,
                       "clipping begins in the dwell at sample %llu: %llu samples, %.3g %%, at the "
                       "limits of the format",
                       (unsigned long long)p->report.sample, (unsigned long long)dwell->n_clipped,
                       100 * share);
    p->is_clipping = is_clipping;
}

/* Sets the latency of the report just before its publication. Flags and counts a late report. */
static void time_report(pnr_publishing *p, pnr_report *report)
{
    p->now_ns = pnr_clock_ns();

    const uint64_t latency_ns = p->now_ns - report->ready_ns;

    report->latency_us = (double)latency_ns * 1e-3;
    if (pnr_deadline_is_missed(&p->deadline, latency_ns)) {
        report->flags |= PNR_FLAG_LATE;
        p->account.deadline_missed++;
    }
    pnr_histogram_add(&p->latency_ns, latency_ns);
}

void pnr_publishing_report(pnr_publishing *p, const pnr_made *made)
{
    pnr_report *report = &p->report;

    pnr_detection_copy(&report->detection, &made->detection);
    report->sample = made->sample;
    name_engine(made->engine != NULL ? made->engine : p->parts.engine, report);
    fill_time(p, report);
    report->periods = made->dwell.n_periods;
    report->lost = made->lost;
    report->lost_before = made->lost_before;
    report->flags =
        flags_of(p, &made->dwell, made->lost) | (made->is_restarted ? PNR_FLAG_RESTARTED : 0);
    tell_clipping(p, &made->dwell);
    report->cells_above = made->dwell.n_above;
    name_codes(p, &report->detection);
    report->slip = pnr_slip_track(
        &p->slip, report->sample,
        made->lost > 0 || made->lost_before > 0 || made->head.n_unsent > 0, &report->detection);
    pnr_zero_slip(&p->zero, report->slip);
    pnr_zero_track(&p->zero, report->sample, &report->detection);
    report->zero = p->zero.last;
    flag_detection(p, report);
    report->ready_ns = made->ready_ns;
    report->submitted_ns = made->submitted_ns;
    report->collected_ns = made->collected_ns;
    time_report(p, report);
    publish_report(p);
    if (made->cells_at > 0)
        pnr_publishing_give_cells(p, &made->dwell, pnr_made_cells(made));
    else if (p->parts.setup->plan.want_profile != PNR_WANT_NONE)
        p->account.unsent_maps++; /* the queue had space for the result only */
    p->n_echoes += report->detection.n_echoes;
    record_report(p);
    if (p->parts.options->tap != NULL)
        p->parts.options->tap(p->parts.options->tap_context, report);
}
