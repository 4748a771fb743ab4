/* SPDX-License-Identifier: MIT */
/* Finds slips: fits a straight line with one step to the delays of each echo. */
#include "detector/slip.h"

#include "base/event.h"

#include <inttypes.h>
#include <math.h>

enum {
    BEFORE = 4, /* dwells before the slip; the next dwell may contain the slip */
    AFTER = PNR_SLIP_DWELLS - BEFORE - 1,
    POINTS = BEFORE + AFTER
};

static const double sigmas = 5;
static const double least_sigma = 0.02; /* samples: least value of sigma, because motion and the
                                         * clock add errors */
static const double most_drift = 4;     /* samples per dwell: a faster echo is not steady */
/* Limits of chi^2, the sum of (residual / sigma)^2 of a fit, for the BEFORE - 2 degrees of freedom
 * of a line and the POINTS - 3 of a line with a step. Noise exceeds the first in one of 100,000
 * cases, the second in one of 5,000. A greater second limit would accept bodies that turn. */
static const double most_chi2 = 23, most_step_chi2 = 22;
static const double quiet = 0.25; /* samples: a slip moves an echo by more than this */

/* One echo in the dwells before and after a slip. */
typedef struct path {
    const pnr_slip_echo *at[PNR_SLIP_DWELLS]; /* oldest first; at[BEFORE] is not used */
    double drift, step;                       /* drift: samples per dwell; step: samples */
    double variance;                          /* variance of the step, samples^2 */
    double chi2;
    bool is_steady; /* the points before the slip lie on a line */
} path;

void pnr_slip_begin(pnr_slip_tracker *slip, const pnr_radar *radar)
{
    *slip = (pnr_slip_tracker){.rate_hz = pnr_rational_double(radar->rate_hz),
                               .period = (uint32_t)radar->n_samples};
}

/* Returns dwell i of the stored dwells; 0 is the oldest. */
static const pnr_slip_dwell *dwell_at(const pnr_slip_tracker *slip, size_t i)
{
    return &slip->dwells[(slip->next + i) % PNR_SLIP_DWELLS];
}

/* Returns the cyclic distance from lag b to lag a. For near lags this is their difference, and the
 * function avoids the slow remainder(). */
static double apart(const pnr_slip_tracker *slip, double a, double b)
{
    const double distance = a - b;

    return fabs(distance) < slip->period / 2.0 ? distance : remainder(distance, slip->period);
}

/* Returns the echo nearest to a lag, within `reach`, that has the code and channel of `like`; NULL:
 * no such echo. */
static const pnr_slip_echo *find_near(const pnr_slip_tracker *slip, size_t dwell,
                                      const pnr_slip_echo *like, double lag, double reach)
{
    const pnr_slip_dwell *d = dwell_at(slip, dwell);
    const pnr_slip_echo *best = NULL;

    for (const pnr_slip_echo *e = d->echoes; e < d->echoes + d->n; e++) {
        const double distance = fabs(apart(slip, e->lag, lag));

        if (e->code == like->code && e->channel == like->channel && distance <= reach) {
            best = e;
            reach = distance;
        }
    }
    return best;
}

/* Follows an echo of dwell `last` back to dwell `first`. drift: the drift of the echo; NAN:
 * unknown. Returns false if a dwell has no such echo. */
static bool follow_back(const pnr_slip_tracker *slip, size_t first, size_t last, double drift,
                        path *p)
{
    for (size_t i = last; i-- > first;) {
        const pnr_slip_echo *from = p->at[i + 1];
        const double reach = isnan(drift) ? most_drift : 1 + 3 * sigmas * from->sigma;

        p->at[i] = find_near(slip, i, from, from->lag - (isnan(drift) ? 0 : drift),
                             fmin(reach, most_drift));
        if (p->at[i] == NULL)
            return false;
        drift = isnan(drift) ? apart(slip, from->lag, p->at[i]->lag) : drift;
    }
    return true;
}

/* Fits the lags x = a + drift t, plus `step` if t > BEFORE, to the dwells t = 0 .. `end` - 1 of a
 * path, by least squares. The dwells before and after BEFORE have separate means and a common
 * drift. */
static void fit_step(const pnr_slip_tracker *slip, size_t end, path *p)
{
    double weight[2] = {0}, time[2] = {0}, place[2] = {0}, square = 0, product = 0, all = 0;

    for (size_t i = 0; i < end; i++) {
        const size_t group = i > BEFORE, origin = group ? end - 1 : 0;

        if (i == BEFORE)
            continue;

        const double w = 1 / (p->at[i]->sigma * p->at[i]->sigma);
        const double x = apart(slip, p->at[i]->lag, p->at[origin]->lag), t = (double)i;

        weight[group] += w;
        time[group] += w * t;
        place[group] += w * x;
        square += w * t * t;
        product += w * t * x;
        all += w * x * x;
    }
    for (size_t group = 0; group < 2 && weight[group] > 0; group++) {
        square -= time[group] * time[group] / weight[group];
        product -= time[group] * place[group] / weight[group];
        all -= place[group] * place[group] / weight[group];
        time[group] /= weight[group];
        place[group] /= weight[group];
    }
    p->drift = product / square;
    p->chi2 = all - product * product / square;
    if (end <= BEFORE)
        return;

    const double later = time[1] - time[0];

    p->step = apart(
        slip, p->at[end - 1]->lag - p->at[0]->lag + place[1] - place[0] - p->drift * later, 0);
    p->variance = 1 / weight[0] + 1 / weight[1] + later * later / square;
}

/* Fits a straight line to the lags of an echo in the dwells before the slip. echo: this echo in the
 * last of these dwells. Returns false if the echo was not there, or is too fast. */
static bool find_line(const pnr_slip_tracker *slip, const pnr_slip_echo *echo, path *p)
{
    p->at[BEFORE - 1] = echo;
    if (!follow_back(slip, 0, BEFORE - 1, NAN, p))
        return false;
    fit_step(slip, BEFORE, p);
    p->is_steady = p->chi2 < most_chi2;
    return fabs(p->drift) <= most_drift;
}

/* Returns the lag of a line in a dwell. */
static double lag_on(const path *p, size_t dwell)
{
    return p->at[BEFORE - 1]->lag + p->drift * ((double)dwell - (BEFORE - 1));
}

/* True if, in any dwell after the slip, an echo is found where the line continues without a
 * step. */
static bool goes_on(const pnr_slip_tracker *slip, const path *line, double step)
{
    /* At the last dwell the line has an error of 2.5 sigmas, and the echo has an error of one
     * sigma. The limit of 15 sigmas is above five times the error of their difference. It is also
     * at most half of the distance to the new lag. If this half is below three times the error, the
     * echo is too uncertain to tell the two lags apart. */
    const double error = 2.7 * line->at[BEFORE - 1]->sigma;
    const double reach = fmin(3 * sigmas * line->at[BEFORE - 1]->sigma, fabs(step) / 2);

    if (fabs(step) / 2 < 3 * error)
        return false;
    for (size_t i = BEFORE + 1; i < PNR_SLIP_DWELLS; i++)
        if (find_near(slip, i, line->at[0], lag_on(line, i), reach) != NULL)
            return true;
    return false;
}

/* True if an echo was at the new lag before the slip. */
static bool was_there(const pnr_slip_tracker *slip, const path *p)
{
    const double reach = fmin(1, fabs(p->step) / 2); /* excludes the echo itself */

    for (size_t i = 0; i < BEFORE; i++)
        if (find_near(slip, i, p->at[0], lag_on(p, i) + p->step, reach) != NULL)
            return true;
    return false;
}

/* Continues a line with an echo of the newest dwell. Returns false if the result is no line with a
 * step of whole samples. */
static bool join(const pnr_slip_tracker *slip, const path *line, const pnr_slip_echo *echo, path *p)
{
    enum { LAST = PNR_SLIP_DWELLS - 1 };

    *p = *line;
    p->at[LAST] = echo;
    if (echo->code != line->at[0]->code || echo->channel != line->at[0]->channel ||
        !follow_back(slip, BEFORE + 1, LAST, line->drift, p))
        return false;
    fit_step(slip, PNR_SLIP_DWELLS, p);

    const double sigma = sqrt(p->variance), whole = round(p->step);

    return p->chi2 < most_step_chi2 && fabs(p->step) > sigmas * sigma &&
           fabs(p->step - whole) <= sigmas * sigma && whole != 0;
}

/* True if the amplitudes before and after the slip differ by at most 20 % plus five sigmas. */
static bool keeps_amplitude(const path *p)
{
    const pnr_slip_echo *a = p->at[BEFORE - 1], *b = p->at[PNR_SLIP_DWELLS - 1];

    return fabs(a->amplitude - b->amplitude) <=
           0.2 * fmax(a->amplitude, b->amplitude) +
               sigmas * hypot(a->amplitude_sigma, b->amplitude_sigma);
}

/* True if another steady line has the same step. lines: the lines after the strongest steady
 * line. */
static bool has_company(const pnr_slip_tracker *slip, const path *lines, size_t n, const path *p)
{
    const pnr_slip_dwell *newest = dwell_at(slip, PNR_SLIP_DWELLS - 1);
    path other;

    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; lines[i].is_steady && e < newest->n; e++)
            if (join(slip, &lines[i], &newest->echoes[e], &other) &&
                fabs(apart(slip, other.step, p->step)) <=
                    sigmas * sqrt(other.variance + p->variance))
                return true;
    return false;
}

/* True if the path, which continues lines[first], shows a slip. A line that is not steady can only
 * contradict. */
static bool is_slip(const pnr_slip_tracker *slip, const path *lines, size_t n, size_t first,
                    const path *p)
{
    for (size_t i = 0; i < n; i++)
        if (goes_on(slip, &lines[i], p->step))
            return false;
    return !was_there(slip, p) &&
           (keeps_amplitude(p) || has_company(slip, lines + first + 1, n - first - 1, p));
}

/* Returns the step of the echoes that a slip has caused, in whole samples; 0: no slip is found. */
static double find_step(const pnr_slip_tracker *slip)
{
    const pnr_slip_dwell *newest = dwell_at(slip, PNR_SLIP_DWELLS - 1);
    const pnr_slip_dwell *before = dwell_at(slip, BEFORE - 1);
    path lines[PNR_SLIP_ECHOES], p;
    size_t n = 0, first = 0; /* first: index of the strongest steady line */

    for (size_t e = 0; e < before->n; e++)
        n += find_line(slip, &before->echoes[e], &lines[n]);
    while (first < n && !lines[first].is_steady)
        first++;
    for (size_t e = 0; first < n && e < newest->n; e++)
        if (join(slip, &lines[first], &newest->echoes[e], &p) && is_slip(slip, lines, n, first, &p))
            return round(p.step);
    return 0;
}

/* Stores the strongest echoes of a dwell. */
static void keep_dwell(pnr_slip_tracker *slip, uint64_t sample, const pnr_detection *d)
{
    const pnr_slip_dwell *last = dwell_at(slip, PNR_SLIP_DWELLS - 1);
    pnr_slip_dwell *to = &slip->dwells[slip->next];
    bool is_quiet = slip->n_kept > 0 && last->n > 0 && d->n_echoes > 0;

    is_quiet = is_quiet && last->echoes[0].code == d->echoes[0].code &&
               fabs(apart(slip, d->echoes[0].lag, last->echoes[0].lag)) < quiet;
    slip->n_quiet = is_quiet ? slip->n_quiet + 1 : 0;
    to->sample = sample;
    to->n = d->n_echoes < PNR_SLIP_ECHOES ? d->n_echoes : PNR_SLIP_ECHOES;
    for (size_t e = 0; e < to->n; e++) {
        const pnr_echo *from = &d->echoes[e];

        to->echoes[e] = (pnr_slip_echo){
            .code = from->code,
            .channel = from->channel,
            .lag = from->lag,
            .sigma = fmax(from->delay_sigma_s * slip->rate_hz, least_sigma),
            .amplitude = from->amplitude,
            .amplitude_sigma = from->amplitude_sigma,
        };
    }
    slip->next = (slip->next + 1) % PNR_SLIP_DWELLS;
    slip->n_kept++;
}

uint32_t pnr_slip_track(pnr_slip_tracker *slip, uint64_t sample, bool has_loss,
                        const pnr_detection *detection)
{
    double step;

    if (has_loss)
        slip->n_kept = slip->n_quiet = 0;
    keep_dwell(slip, sample, detection);
    if (slip->n_kept < PNR_SLIP_DWELLS || slip->n_quiet >= PNR_SLIP_DWELLS - 1 ||
        (step = find_step(slip)) == 0)
        return 0;
    slip->at_sample = dwell_at(slip, BEFORE)->sample;
    slip->vanished = (uint32_t)(step < 0 ? -step : slip->period - step);
    slip->n_slips++;
    slip->n_kept = slip->n_quiet = 0;
    pnr_event_post(slip->events, PNR_EVENT_SLIP, slip->at_sample, slip->vanished, slip->period,
                   "slip: %" PRIu32 " samples, or whole periods of %" PRIu32
                   " more, vanished uncounted near sample %" PRIu64
                   ": all delays have jumped (%" PRIu64 " slips so far)",
                   slip->vanished, slip->period, slip->at_sample, slip->n_slips);
    return slip->vanished;
}
