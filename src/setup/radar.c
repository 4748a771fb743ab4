/* SPDX-License-Identifier: MIT */
/* Computes lengths, times and ranges from the configuration, before the first sample. */
#include "setup/radar.h"

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 i128;

enum {
    MAX_SAMPLES = 1 << 24, /* samples of a period: engines refuse more */
    BESIDE = 8             /* lags added on each side of a linear gate */
};

/* A lag within this distance of a whole sample counts as that sample, so that rounding does not
 * move an edge by a sample. */
static const double edge_samples = 1e-6;
static const double direct_path_samples = 10; /* half width of the search if radar.zero_search_m is
                                               * 0 */

static int64_t floor_div(i128 a, i128 b, i128 *rest)
{
    i128 quotient = a / b;

    *rest = a % b;
    if (*rest < 0) {
        quotient--;
        *rest += b;
    }
    return (int64_t)quotient;
}

static size_t wrap_index(int64_t index, size_t n)
{
    int64_t rest = index % (int64_t)n;

    return (size_t)(rest < 0 ? rest + (int64_t)n : rest);
}

enum { RATES_LEN = 160 };

/* The search for a rate that gives a whole number of samples in a period. */
typedef struct rate_search {
    pnr_rational given; /* the rate that is not searched */
    size_t n_chips;
    bool is_chip_rate; /* true: the chip rate is searched; false: the source rate */
} rate_search;

/* Computes the rate at which a period has n samples. Returns false if n is out of range, or if the
 * rate does not fit 64 bits. */
static bool rate_of_length(const rate_search *s, int64_t n, pnr_rational *rate)
{
    const pnr_rational chips = {(int64_t)s->n_chips, 1}, samples = {n, 1};

    return n >= 1 && n <= MAX_SAMPLES &&
           pnr_rational_div(s->is_chip_rate ? chips : samples, s->is_chip_rate ? samples : chips,
                            rate) == PNR_OK &&
           pnr_rational_mul(*rate, s->given, rate) == PNR_OK;
}

/* True if a decimal number of 10 digits is exactly the rate. text: this number. */
static bool is_decimal(pnr_rational rate, char text[32])
{
    pnr_rational read;

    snprintf(text, 32, "%.10g", pnr_rational_double(rate));
    return pnr_rational_parse(text, &read) == PNR_OK && read.num == rate.num &&
           read.den == rate.den;
}

/* Adds a rate to the list. A fraction is followed by its decimal value. */
static void add_rate(pnr_rational rate, char out[RATES_LEN])
{
    const size_t used = strlen(out);
    const char *comma = used > 0 ? ", " : "";
    char decimal[32], text[48];

    if (is_decimal(rate, decimal))
        snprintf(out + used, RATES_LEN - used, "%s%s", comma, decimal);
    else
        snprintf(out + used, RATES_LEN - used, "%s%s (%s)", comma, pnr_rational_format(rate, text),
                 decimal);
}

/* Returns n without its factors 2 and 5. */
static int64_t without_tens(int64_t n)
{
    while (n % 2 == 0)
        n /= 2;
    while (n % 5 == 0)
        n /= 5;
    return n;
}

/* Returns the multiple of m nearest to k, at least m. */
static int64_t nearest_multiple(int64_t k, int64_t m)
{
    const int64_t below = k - k % m;

    return below > 0 && k - below < below + m - k ? below : below + m;
}

/* Returns a number n near k for which p / n is a decimal number; 0: there is none near k. */
static int64_t nearest_divisor(int64_t k, int64_t p)
{
    enum { MAX_STEPS = 1024 };

    for (int64_t step = 0; step < MAX_STEPS && step < k; step++) {
        if (p % without_tens(k - step) == 0)
            return k - step;
        if (p % without_tens(k + 1 + step) == 0)
            return k + 1 + step;
    }
    return 0;
}

/* Returns a number of samples in a period: the nearest one to k for which the rate is a decimal
 * number of 10 digits. 0: there is none, or it differs from k by more than half of k. */
static int64_t nearest_decimal(const rate_search *s, int64_t k)
{
    pnr_rational x; /* the rate for one sample in a period */
    char text[32];
    int64_t n;

    if (k < 1 || !rate_of_length(s, 1, &x))
        return 0;
    if (s->is_chip_rate)
        n = without_tens(x.den) == 1 ? nearest_divisor(k, x.num) : 0;
    else
        n = nearest_multiple(k, without_tens(x.den));
    return n > 0 && llabs(n - k) <= k / 2 + 1 && rate_of_length(s, n, &x) && is_decimal(x, text)
               ? n
               : 0;
}

/* Writes a list such as "2000000, 4298000000/2047 (2099658.036), 4299000000/2047 (2100146.556)":
 * the nearest decimal rate, and the rates at which a period has k and k + 1 samples. */
static void good_rates(const rate_search *s, int64_t k, char out[RATES_LEN])
{
    const int64_t first = nearest_decimal(s, k);
    const int64_t lengths[] = {first, k, k + 1};
    pnr_rational rate;
    char text[32];

    out[0] = '\0';
    for (int is_fraction = 0; is_fraction < 2; is_fraction++)
        for (size_t i = 0; i < 3; i++)
            if ((i == 0 || lengths[i] != first) && rate_of_length(s, lengths[i], &rate) &&
                is_decimal(rate, text) == !is_fraction)
                add_rate(rate, out);
}

/* Computes N = rate * L / chip rate exactly, or refuses the rates. */
static int derive_length(const pnr_config *config, size_t n_chips, pnr_radar *out, pnr_error *error)
{
    const pnr_rational rate = config->source.rate_hz;
    const pnr_rational chip_rate = config->code.chip_rate_hz.den ? config->code.chip_rate_hz : rate;
    const pnr_rational chips = {(int64_t)n_chips, 1};
    char rate_text[48], chip_rate_text[48];
    char good[RATES_LEN], good_chips[RATES_LEN];
    pnr_rational n;

    if (rate.num <= 0 || rate.den <= 0)
        return pnr_refuse(error, "source.rate_hz: %s; samples a second are needed",
                          rate.den == 0 ? "not given" : "not above 0");
    if (chip_rate.num <= 0)
        return pnr_refuse(error, "code.chip_rate_hz: %s is not above 0",
                          pnr_rational_format(chip_rate, chip_rate_text));
    if (n_chips < 1 || n_chips > MAX_SAMPLES)
        return pnr_refuse(error, "code: %zu chips; 1 to %d are possible", n_chips, MAX_SAMPLES);
    pnr_rational_format(rate, rate_text);
    pnr_rational_format(chip_rate, chip_rate_text);
    if (pnr_rational_div(rate, chip_rate, &n) != PNR_OK || pnr_rational_mul(n, chips, &n) != PNR_OK)
        return pnr_refuse(
            error, "source.rate_hz %s and code.chip_rate_hz %s: their ratio does not fit 64 bits",
            rate_text, chip_rate_text);
    if (n.num / n.den >= MAX_SAMPLES && !(n.num == MAX_SAMPLES && n.den == 1))
        return pnr_refuse(error,
                          "source.rate_hz %s gives %.10g samples a period of %zu chips at %s "
                          "chips/s; at most %d are possible",
                          rate_text, pnr_rational_double(n), n_chips, chip_rate_text, MAX_SAMPLES);
    if (n.den != 1) {
        good_rates(&(rate_search){chip_rate, n_chips, false}, n.num / n.den, good);
        good_rates(&(rate_search){rate, n_chips, true}, n.num / n.den, good_chips);
        return pnr_refuse(error,
                          "source.rate_hz %s gives %.10g samples a period of %zu chips at %s "
                          "chips/s, not a whole number; the nearest good rates: %s; or "
                          "code.chip_rate_hz %s",
                          rate_text, pnr_rational_double(n), n_chips, chip_rate_text, good,
                          good_chips);
    }
    out->n_chips = n_chips;
    out->n_samples = (size_t)n.num;
    out->rate_hz = rate;
    out->chip_rate_hz = chip_rate;
    out->period_s = (double)((long double)n.num * (long double)rate.den / (long double)rate.num);
    return PNR_OK;
}

/* Computes the start of the code: a sample, or a time between two samples. */
static int derive_epoch(const pnr_config *config, pnr_radar *out, pnr_error *error)
{
    const pnr_epoch *epoch = &config->code.epoch;
    const char *start = config->source.start_time;

    out->has_start = start[0] != '\0';
    if (out->has_start && pnr_time_parse(start, &out->start_utc_ns) != PNR_OK)
        return pnr_refuse(error, "source.start_time: '%s' is not UTC as 2026-11-21T02:40:12.5Z",
                          start);
    if (!epoch->is_utc) {
        out->epoch_sample = epoch->sample;
    } else {
        if (!out->has_start)
            return pnr_refuse(error, "code.epoch is in UTC: source.start_time is needed too");
        /* the numerator has 63 + 63 bits, the denominator 63 + 30 */
        i128 rest, den = (i128)out->rate_hz.den * PNR_NS_PER_S;
        i128 num = ((i128)epoch->utc_ns - out->start_utc_ns) * out->rate_hz.num;
        if (num / den >= INT64_MAX || num / den <= INT64_MIN)
            return pnr_refuse(
                error, "code.epoch: too far from source.start_time %s to count samples", start);
        out->epoch_sample = floor_div(num, den, &rest);
        out->epoch_fraction = (double)((long double)rest / (long double)den);
        if (out->epoch_fraction >= 1)
            out->epoch_fraction = nextafter(1, 0);
    }
    return PNR_OK;
}

static int derive_scales(const pnr_config *config, pnr_radar *out, pnr_error *error)
{
    const double speed = config->radar.speed_mps, carrier = config->radar.carrier_hz;
    const size_t periods = config->dwell.periods;

    if (!isfinite(speed) || speed <= 0)
        return pnr_refuse(error, "radar.speed_mps: %g is not above 0", speed);
    if (!isfinite(carrier) || carrier < 0)
        return pnr_refuse(error, "radar.carrier_hz: %g is below 0", carrier);
    if (periods < 1)
        return pnr_refuse(error, "dwell.periods: 0; at least 1 is needed");

    out->gain_db = 10 * log10((double)out->n_samples);
    if (config->dwell.combine == PNR_COMBINE_COHERENT ||
        config->dwell.combine == PNR_COMBINE_DOPPLER)
        out->gain_db += 10 * log10((double)periods);
    out->metres_per_second = config->radar.path == PNR_PATH_ONE_WAY ? speed : speed / 2;
    out->resolution_m = out->metres_per_second / pnr_rational_double(out->chip_rate_hz);
    out->unambiguous_m = out->metres_per_second * out->period_s;
    out->doppler_span_hz = 1 / (2 * out->period_s);
    out->doppler_step_hz = 1 / ((double)periods * out->period_s);
    out->wavelength_m = carrier > 0 ? speed / carrier : 0;
    return PNR_OK;
}

/* Rounds a lag to the nearest whole sample if they differ by less than edge_samples. */
static double snap_lag(double lag)
{
    double whole = round(lag);

    return fabs(lag - whole) < edge_samples ? whole : lag;
}

static double lag_of_delay(const pnr_radar *radar, const pnr_config *config, double delay_s)
{
    return (delay_s + config->radar.zero_delay_s) * pnr_rational_double(radar->rate_hz) +
           radar->epoch_fraction;
}

/* Computes the first window, and the gate in a window. low: the first lag of the gate, counted from
 * the start of the code. count: its number of lags. */
static void place_gate(pnr_radar *out, int64_t low, size_t count, bool is_whole)
{
    const size_t n = out->n_samples;

    out->gate_count = is_whole ? n : count;
    if (out->is_linear) {
        out->first_lag = low - BESIDE;
        out->gate_first = BESIDE;
        out->n_lags = count + 2 * (size_t)BESIDE;
    } else {
        out->gate_first = out->gate_count == n ? 0 : wrap_index(low, n);
        out->n_lags = n;
    }
    /* The code repeats. If it starts before sample 0, the first window begins a number of periods
     * later. */
    out->first_window = (wrap_index(out->epoch_sample, n) + wrap_index(out->first_lag, n)) % n;
}

/* With radar.zero = direct-path, extends the gate to the direct path, at delay 0. Then moves both
 * ends outwards by zero_search_s, because the delays of the direct path and of all echoes may drift
 * by this time. */
static void find_zero(const pnr_config *config, pnr_radar *out, double *first_s, double *last_s)
{
    const double rate_hz = pnr_rational_double(out->rate_hz), asked_m = config->radar.zero_search_m;

    *first_s = out->min_delay_s;
    *last_s = out->max_delay_s;
    if (config->radar.zero != PNR_ZERO_DIRECT_PATH)
        return;
    out->zero_search_s =
        asked_m > 0 ? asked_m / out->metres_per_second : direct_path_samples / rate_hz;
    *first_s = fmin(*first_s, 0) - out->zero_search_s;
    *last_s = fmax(*last_s, 0) + out->zero_search_s;
}

/* Computes the gate. It begins at the last whole lag at or below the lag of the least delay. It
 * ends at the first whole lag at or above the lag of the greatest delay. */
static int derive_gate(const pnr_config *config, pnr_radar *out, pnr_error *error)
{
    const double min_m = config->radar.min_range_m;
    const bool is_whole = config->radar.max_range_m == 0;
    const double max_m = is_whole ? min_m + out->unambiguous_m : config->radar.max_range_m;
    const double half_sample_m = out->metres_per_second / (2 * pnr_rational_double(out->rate_hz));

    if (!isfinite(min_m) || !isfinite(max_m) || !isfinite(config->radar.zero_delay_s))
        return pnr_refuse(
            error, "radar: min_range_m %g, max_range_m %g and zero_delay_s %g must be finite",
            min_m, max_m, config->radar.zero_delay_s);
    out->is_linear = config->window.correlation == PNR_CORRELATION_LINEAR;
    if (out->is_linear && is_whole)
        return pnr_refuse(error, "window.correlation = linear needs radar.max_range_m: the gates "
                                 "make the windows' length");
    if (max_m < min_m)
        return pnr_refuse(error, "radar.max_range_m %.10g is below radar.min_range_m %.10g", max_m,
                          min_m);
    if (max_m - min_m > out->unambiguous_m + half_sample_m)
        return pnr_refuse(error,
                          "radar.min_range_m %.10g to max_range_m %.10g is more than the "
                          "unambiguous range of %.10g m: a longer code has a longer one",
                          min_m, max_m, out->unambiguous_m);
    out->min_delay_s = min_m / out->metres_per_second;
    out->max_delay_s = fmin(max_m / out->metres_per_second, out->min_delay_s + out->period_s);

    double first_s, last_s;

    find_zero(config, out, &first_s, &last_s);

    double low = floor(snap_lag(lag_of_delay(out, config, first_s)));
    double high = ceil(snap_lag(lag_of_delay(out, config, last_s)));
    if (!(fabs(low) < 0x1p52 && fabs(high) < 0x1p52))
        return pnr_refuse(error,
                          "radar: zero_delay_s %g or min_range_m %g is too large to count samples",
                          config->radar.zero_delay_s, min_m);
    if (out->is_linear && out->zero_search_s > 0 && high - low > (double)out->n_samples)
        return pnr_refuse(error,
                          "radar.zero = direct-path: from it to radar.max_range_m %.10g is more "
                          "than the %zu lags of a linear correlation",
                          max_m, out->n_samples);
    place_gate(out, (int64_t)low,
               high - low + 1 < (double)out->n_samples ? (size_t)(high - low) + 1 : out->n_samples,
               is_whole);
    return PNR_OK;
}

int pnr_radar_derive(const pnr_config *config, size_t n_chips, pnr_radar *out, pnr_error *error)
{
    int code;

    *out = (pnr_radar){0};
    if ((code = derive_length(config, n_chips, out, error)) != PNR_OK ||
        (code = derive_epoch(config, out, error)) != PNR_OK ||
        (code = derive_scales(config, out, error)) != PNR_OK)
        return code;
    return derive_gate(config, out, error);
}

double pnr_radar_delay_s(const pnr_radar *radar, const pnr_config *config, double lag)
{
    const double rate_hz = pnr_rational_double(radar->rate_hz), n = (double)radar->n_samples;
    /* in samples, because their reduction modulo N is exact */
    const double low = radar->min_delay_s * rate_hz;
    double delay = lag + (double)radar->first_lag - radar->epoch_fraction -
                   config->radar.zero_delay_s * rate_hz;

    if (radar->is_linear)
        return delay / rate_hz;
    delay -= n * floor((delay - low) / n);
    /* Rounding must not move an echo from the least delay to the greatest one. */
    if (delay < low || delay > low + n - edge_samples)
        return radar->min_delay_s;
    return fmax(delay / rate_hz, radar->min_delay_s);
}

double pnr_radar_range_m(const pnr_radar *radar, double delay_s)
{
    return delay_s * radar->metres_per_second;
}

double pnr_radar_cells(const pnr_radar *radar, const pnr_config *config, size_t oversample,
                       size_t *first_cell, size_t *n_gate)
{
    const size_t n_cells = radar->n_lags * oversample;
    const double scale = (double)oversample, first_lag = (double)radar->first_lag;
    const double low = ceil(snap_lag(lag_of_delay(radar, config, radar->min_delay_s) * scale));
    const double high = floor(snap_lag(lag_of_delay(radar, config, radar->max_delay_s) * scale));
    const double n = fmax(high - low + 1, 1); /* a gate between two cells has one cell */

    *first_cell = wrap_index((int64_t)(low - first_lag * scale), n_cells);
    *n_gate = n < (double)n_cells ? (size_t)n : n_cells;
    return pnr_radar_delay_s(radar, config, low / scale - first_lag);
}
