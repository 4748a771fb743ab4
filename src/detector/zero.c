/* SPDX-License-Identifier: MIT */
/* The zero range: a Kalman filter for the delay and drift of the direct path. */
#include "detector/zero.h"

#include "detector/gate.h"

#include "base/event.h"

#include <inttypes.h>
#include <math.h>

enum {
    MOST_ASTRAY = 15 /* greatest number of consecutive dwells rejected as outliers */
};

static const double wander = 1e-16;     /* q, 1/s: see zero.h */
static const double first_drift = 1e-4; /* initial sigma of the drift, for a cheap crystal */
static const double astray_sigmas = 5;
static const double least_astray = 0.1; /* samples; only a greater deviation is an outlier */
static const double alarm_ends = 0.9;   /* share of the limit at which an alarm ends: hysteresis
                                         * against noise */

/* Starts the filter with an unknown delay: it is uniform in the search interval. */
static void begin_anywhere(pnr_zero_tracker *z)
{
    z->x = z->config->radar.zero_delay_s;
    z->xx = z->radar->zero_search_s * z->radar->zero_search_s / 3;
    z->v = z->xv = 0;
    z->vv = first_drift * first_drift;
}

void pnr_zero_begin(pnr_zero_tracker *z, const pnr_config *config, const pnr_radar *radar,
                    const pnr_zero_memory *last)
{
    const double rate_hz = pnr_rational_double(radar->rate_hz);

    *z = (pnr_zero_tracker){.config = config, .radar = radar, .rate_hz = rate_hz};
    if (config->radar.zero != PNR_ZERO_DIRECT_PATH)
        return;
    begin_anywhere(z);
    if (last != NULL) { /* sampling may have restarted at any fraction of a sample */
        z->x = last->delay_s;
        z->xx = last->sigma_s * last->sigma_s + 1 / (rate_hz * rate_hz);
        z->v = last->drift;
        z->vv = last->drift_sigma * last->drift_sigma;
        z->is_remembered = z->has_first = true;
        z->first = last->first_s;
    }
}

double pnr_zero_wrap(const pnr_radar *radar, double delay_s)
{
    return radar->is_linear ? delay_s : remainder(delay_s, radar->period_s);
}

/* Predicts delay and drift. They do not change until the direct path is seen in this run. */
static void predict_delay(pnr_zero_tracker *z, uint64_t sample)
{
    const double dt = z->has_begun && z->is_seen ? (double)(sample - z->sample) / z->rate_hz : 0;

    z->x += z->v * dt;
    z->xx += dt * (2 * z->xv + dt * (z->vv + wander * dt / 3));
    z->xv += dt * (z->vv + wander * dt / 2);
    z->vv += wander * dt;
    z->sample = sample;
    z->has_begun = true;
}

static void update_state(pnr_zero_tracker *z, double innovation, double variance)
{
    const double all = z->xx + variance;
    const double gain_x = z->xx / all, gain_v = z->xv / all;

    z->x += gain_x * innovation;
    z->v += gain_v * innovation;
    z->vv -= gain_v * z->xv;
    z->xv *= variance / all;
    z->xx *= variance / all;
}

/* Returns the index of the strongest echo of the first code within radar.zero_search_m of the delay
 * `around_s`; n_echoes if there is no such echo. *innovation: the delay of that echo minus
 * `around_s`. */
static size_t find_direct_path(const pnr_zero_tracker *z, const pnr_detection *d, double around_s,
                               double *innovation)
{
    size_t i;

    for (i = 0; i < d->n_echoes; i++) {
        *innovation = pnr_zero_wrap(z->radar, d->echoes[i].delay_s + z->config->radar.zero_delay_s -
                                                  around_s);
        if (d->echoes[i].code == 0 && fabs(*innovation) <= z->radar->zero_search_s)
            break;
    }
    return i;
}

/* Drops the delay of an earlier run when 16 consecutive dwells have the direct path near the
 * configured delay, but not near the delay of that run. Returns true when the delay was dropped. */
static bool doubt_memory(pnr_zero_tracker *z, const pnr_detection *d)
{
    const double configured_s = z->config->radar.zero_delay_s;
    double distance;

    if (!z->is_remembered || z->is_seen)
        return false;
    if (find_direct_path(z, d, configured_s, &distance) == d->n_echoes) {
        z->n_astray = 0;
        return false;
    }
    if (z->n_astray++ < MOST_ASTRAY)
        return false;
    begin_anywhere(z);
    z->is_remembered = z->has_first = false;
    z->n_astray = 0;
    return true;
}

/* Updates the state with a measurement. Returns false when the measurement is an outlier. */
static bool take_measurement(pnr_zero_tracker *z, double innovation, double sigma_s)
{
    const double variance = sigma_s * sigma_s;
    const double limit = fmax(astray_sigmas * sqrt(z->xx + variance), least_astray / z->rate_hz);

    if (z->is_seen && fabs(innovation) <= limit) {
        update_state(z, innovation, variance);
    } else if (z->is_seen && z->n_astray < MOST_ASTRAY) {
        z->n_astray++;
        return false;
    } else { /* the first measurement of a run, or the first after the zero delay has jumped */
        z->x += innovation;
        z->xx = variance;
        z->xv = 0;
        if (z->is_seen)
            z->vv = first_drift * first_drift;
    }
    z->n_astray = 0;
    z->is_seen = true;
    z->seen_sample = z->sample;
    if (!z->has_first)
        z->first = z->x;
    z->has_first = true;
    return true;
}

/* Computes the delay of an echo relative to the tracked delay x instead of radar.zero_delay_s.
 * Returns false if the corrected delay is outside the wanted ranges. */
static bool correct_delay(const pnr_zero_tracker *z, pnr_echo *echo)
{
    const pnr_radar *radar = z->radar;
    double delay_s = echo->delay_s + z->config->radar.zero_delay_s - z->x;

    delay_s = pnr_gate_wrap(radar, delay_s);
    if (!pnr_gate_holds(radar, delay_s, hypot(echo->delay_sigma_s, sqrt(z->xx))))
        return false;
    echo->delay_s = delay_s;
    echo->delay_samples = delay_s * z->rate_hz;
    echo->delay_sigma_s = hypot(echo->delay_sigma_s, sqrt(z->xx));
    echo->range_m = pnr_radar_range_m(radar, delay_s);
    echo->range_sigma_m = radar->metres_per_second * echo->delay_sigma_s;
    return true;
}

static void correct_all(const pnr_zero_tracker *z, pnr_detection *d, size_t direct)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n_echoes; i++) {
        d->echoes[n] = d->echoes[i];
        n += i != direct && correct_delay(z, &d->echoes[n]);
    }
    d->is_more |= n > z->config->detector.max_echoes;
    d->n_echoes = n < z->config->detector.max_echoes ? n : z->config->detector.max_echoes;
}

/* Reports when the direct path moves beyond radar.zero_alarm_m, and when it returns within nine
 * tenths of that limit. */
static void watch_limit(pnr_zero_tracker *z, uint64_t sample)
{
    const double metres = z->radar->metres_per_second;
    const double limit_m = z->config->radar.zero_alarm_m;
    const double moved_m = z->last.moved_s * metres;
    const bool is_alarm = limit_m > 0 && fabs(moved_m) > (z->is_alarm ? alarm_ends : 1) * limit_m;

    if (is_alarm == z->is_alarm)
        return;
    z->is_alarm = is_alarm;
    if (is_alarm)
        pnr_event_post(z->events, PNR_EVENT_ZERO_ALARM, sample, moved_m, limit_m,
                       "direct path: moved by %.6g m, beyond radar.zero_alarm_m = %.6g (alarm "
                       "%" PRIu64 ")",
                       moved_m, limit_m, ++z->n_alarms);
    else
        pnr_event_post(z->events, PNR_EVENT_ZERO_ALARM_ENDS, sample, moved_m, limit_m,
                       "direct path: within radar.zero_alarm_m = %.6g again, moved by %.6g m "
                       "(after alarm %" PRIu64 ")",
                       limit_m, moved_m, z->n_alarms);
}

void pnr_zero_track(pnr_zero_tracker *z, uint64_t sample, pnr_detection *d)
{
    double innovation = 0;
    bool is_here, is_dropped;
    size_t direct;

    if (z->config->radar.zero != PNR_ZERO_DIRECT_PATH)
        return;
    predict_delay(z, sample);
    direct = find_direct_path(z, d, z->x, &innovation);
    is_dropped = direct == d->n_echoes && doubt_memory(z, d);
    if (is_dropped)
        direct = find_direct_path(z, d, z->x, &innovation);
    is_here =
        direct < d->n_echoes && take_measurement(z, innovation, d->echoes[direct].delay_sigma_s);
    z->last = (pnr_zero){
        .is_tracked = true,
        .delay_s = z->x,
        .sigma_s = sqrt(z->xx),
        .snr_db = is_here ? d->echoes[direct].snr_db : NAN,
        .drift_ppm = z->v * 1e6,
        .held_s = z->is_seen ? (double)(sample - z->seen_sample) / z->rate_hz : NAN,
        .moved_s = z->has_first ? pnr_zero_wrap(z->radar, z->x - z->first) : NAN,
    };
    correct_all(z, d, direct);
    if (is_dropped)
        pnr_event_post(z->events, PNR_EVENT_ZERO_STATE_DROPPED, sample, z->x, 0,
                       "direct path: seen at %.6g us, not where radar.zero_state_path has it: that "
                       "delay is dropped",
                       z->x * 1e6);
    watch_limit(z, sample);
}

void pnr_zero_slip(pnr_zero_tracker *z, uint32_t vanished)
{
    if (z->is_seen)
        z->x = pnr_zero_wrap(z->radar, z->x - vanished / z->rate_hz);
}

bool pnr_zero_remember(const pnr_zero_tracker *z, pnr_zero_memory *out)
{
    *out = (pnr_zero_memory){z->x, sqrt(z->xx), z->v, sqrt(z->vv), z->first};
    return z->is_seen;
}
