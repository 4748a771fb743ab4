/* SPDX-License-Identifier: MIT */
/* Checks the rules between keys. All keys have been read before. */
#include "base/clock.h"
#include "config/keys.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define refuse(error, ...) pnr_error_set(error, PNR_ECONFIG, __VA_ARGS__)

/* True for a name that may be part of a file name. */
static bool is_word(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    return *text && text[strspn(text, letters)] == '\0';
}

static int check_names(const pnr_config *config, pnr_error *error)
{
    const char *name = config->stream.name;
    const char *engine = pnr_name_synonym("engine", "name", config->engine.name);

    if (!*name)
        return refuse(error, "stream.name is empty: topics need a name");
    for (const char *at = name; *at; at++)
        if (*at <= ' ' || *at > '~' || *at == '/')
            return refuse(error, "stream.name = \"%s\": printable ASCII, without / or spaces",
                          name);
    /* The name of the engine is part of the name of its module file. */
    if (!is_word(config->engine.name))
        return refuse(error, "engine.name = \"%s\": letters, digits, - and _ only; or auto",
                      config->engine.name);
    if (engine && strcmp(engine, config->engine.name) != 0)
        return refuse(error, "engine.name = \"%s\": did you mean %s?", config->engine.name, engine);
    if (!is_word(config->engine.method))
        return refuse(error, "engine.method = \"%s\": letters, digits, - and _ only; or auto",
                      config->engine.method);
    return PNR_OK;
}

/* True if |a| * `times` > b, without rounding. `times` is 1 or 2; b is not negative. */
static bool exceeds(pnr_rational a, int times, pnr_rational b)
{
    __int128 left = (__int128)a.num * b.den, right = (__int128)b.num * a.den;

    if (left < 0)
        left = -left;
    return times == 2 ? left > right - left : left > right;
}

static int check_source(const pnr_config *config, pnr_error *error)
{
    const pnr_format_info *format = pnr_format_get(config->source.format);
    char tune[48], rate[48];

    if (config->source.rate_hz.den == 0)
        return refuse(error, "source.rate_hz is not given: the samples a second are needed, as "
                             "source.rate_hz = 2e6 (a sound file states its own, and a SigMF "
                             "recording may)");
    if (pnr_rational_double(config->source.rate_hz) < 1)
        return refuse(error,
                      "source.rate_hz = %s is less than one sample a second; mHz is 0.001 Hz, and "
                      "MHz is 1000000 Hz",
                      pnr_rational_format(config->source.rate_hz, rate));
    if (config->source.tune_hz.den != 0 &&
        exceeds(config->source.tune_hz, 2, config->source.rate_hz))
        return refuse(error, "source.tune_hz = %s is beyond half of source.rate_hz = %s",
                      pnr_rational_format(config->source.tune_hz, tune),
                      pnr_rational_format(config->source.rate_hz, rate));
    if (config->source.channel >= config->source.channels)
        return refuse(error,
                      "source.channel = %zu is not there: it counts from 0, and source.channels "
                      "is %zu",
                      config->source.channel, config->source.channels);
    if (config->source.layout == PNR_LAYOUT_CHANNELS && format->is_complex)
        return refuse(
            error,
            "source.layout = channels is for real signals, and source.format = %s is complex",
            format->name);
    return PNR_OK;
}

/* Checks each code, with the values of [code] for the keys that its section does not set. */
static int check_codes(const pnr_config *config, pnr_error *error)
{
    for (size_t c = 0; c < pnr_config_codes(config); c++) {
        pnr_config one;
        char name[32] = "code";

        if (config->n_codes > 0) {
            if (config->codes[c].number != c + 1)
                return refuse(error,
                              "[code.%zu] is missing and [code.%zu] is there: number them from 1 "
                              "without a gap",
                              c + 1, config->codes[c].number);
            snprintf(name, sizeof name, "code.%zu", c + 1);
        }
        pnr_config_code(config, c, &one);
        if (one.code.type == PNR_CODE_FILE && !*one.code.path)
            return refuse(error, "%s.type = file needs %s.path", name, name);
    }
    return PNR_OK;
}

static int check_code(const pnr_config *config, pnr_error *error)
{
    char chips[48], rate[48], time[PNR_TIME_LEN];

    if (config->code.pulse == PNR_PULSE_FILE && !*config->code.pulse_path)
        return refuse(error, "code.pulse = file needs code.pulse_path");
    if (config->code.pulse == PNR_PULSE_FILTERED && !(config->code.cutoff_hz > 0))
        return refuse(error, "code.pulse = filtered needs code.cutoff_hz above 0");
    if (config->code.chip_rate_hz.den != 0 &&
        exceeds(config->code.chip_rate_hz, 1, config->source.rate_hz))
        return refuse(error,
                      "code.chip_rate_hz = %s is more than source.rate_hz = %s: a chip needs at "
                      "least one sample",
                      pnr_rational_format(config->code.chip_rate_hz, chips),
                      pnr_rational_format(config->source.rate_hz, rate));
    if (config->code.epoch.is_utc && !*config->source.start_time)
        return refuse(error, "code.epoch = %s is a time, so source.start_time is needed",
                      pnr_time_format(config->code.epoch.utc_ns, time));
    return PNR_OK;
}

static int check_radar(const pnr_config *config, pnr_error *error)
{
    if (config->radar.max_range_m != 0 && config->radar.max_range_m <= config->radar.min_range_m)
        return refuse(error, "radar.max_range_m = %.10g is not beyond radar.min_range_m = %.10g",
                      config->radar.max_range_m, config->radar.min_range_m);
    if (config->radar.zero == PNR_ZERO_DIRECT_PATH && config->dwell.clutter == PNR_CLUTTER_REMOVE)
        return refuse(error, "radar.zero = direct-path needs the direct path, which stands still: "
                             "dwell.clutter = remove takes it out");
    return PNR_OK;
}

static int check_dwell(const pnr_config *config, pnr_error *error)
{
    if (config->dwell.periods > 1 && config->dwell.combine == PNR_COMBINE_NONE)
        return refuse(error,
                      "dwell.periods = %zu needs dwell.combine = coherent, incoherent or doppler",
                      config->dwell.periods);
    if (config->ring.seconds > 0 && config->ring.bytes > 0)
        return refuse(error, "ring.seconds = %.10g and ring.bytes = %zu: give one of them",
                      config->ring.seconds, config->ring.bytes);
    return PNR_OK;
}

static bool has_doppler_range(const pnr_config *config)
{
    return config->doppler.min_hz != 0 || config->doppler.max_hz != 0;
}

static int check_doppler(const pnr_config *config, pnr_error *error)
{
    const double min_hz = config->doppler.min_hz, max_hz = config->doppler.max_hz;
    const double half_hz = pnr_rational_double(config->source.rate_hz) / 2;
    const bool is_coherent = config->dwell.combine == PNR_COMBINE_COHERENT;

    if (min_hz > max_hz)
        return refuse(error, "doppler.min_hz = %.10g is above doppler.max_hz = %.10g", min_hz,
                      max_hz);
    if (fmax(-min_hz, max_hz) > half_hz)
        return refuse(error,
                      "doppler.min_hz = %.10g to doppler.max_hz = %.10g goes beyond half of "
                      "source.rate_hz, %.10g",
                      min_hz, max_hz, half_hz);
    if (is_coherent && config->dwell.periods > 1 && has_doppler_range(config))
        return refuse(error,
                      "doppler.min_hz = %.10g to doppler.max_hz = %.10g: a sum over dwell.periods "
                      "= %zu sees one Doppler shift in %zu between its rotations; dwell.combine = "
                      "doppler sees all of them",
                      min_hz, max_hz, config->dwell.periods, config->dwell.periods);
    return PNR_OK;
}

/* If dwell.combine = doppler, refuses a dwell of one period. Otherwise refuses the keys that need
 * dwell.combine = doppler, and window.dc = remove with a doppler.step that is not whole. */
static int check_slow_time(const pnr_config *config, pnr_error *error)
{
    if (config->dwell.combine == PNR_COMBINE_DOPPLER)
        return config->dwell.periods >= 2
                   ? PNR_OK
                   : refuse(error, "dwell.combine = doppler needs dwell.periods of 2 or more");
    if (config->dwell.taper != PNR_TAPER_RECTANGULAR)
        return refuse(error, "dwell.taper = %s weights the periods of dwell.combine = doppler only",
                      pnr_config_word(config, "dwell", "taper"));
    if (config->dwell.clutter == PNR_CLUTTER_REMOVE)
        return refuse(error,
                      "dwell.clutter = remove needs dwell.combine = doppler: without the mean of "
                      "its periods %s",
                      config->dwell.combine == PNR_COMBINE_COHERENT ? "a coherent sum is nothing"
                                                                    : "a period alone is nothing");
    if (config->window.dc == PNR_DC_REMOVE && has_doppler_range(config) &&
        config->doppler.step != PNR_STEP_WHOLE)
        return refuse(
            error, "window.dc = remove needs doppler.step = whole: other rotations of the samples "
                   "put DC between two harmonics of the code");
    return PNR_OK;
}

/* If there is only one Doppler row, refuses the keys that need several rows. */
static int check_rows(const pnr_config *config, pnr_error *error)
{
    if (config->dwell.combine == PNR_COMBINE_DOPPLER || has_doppler_range(config))
        return PNR_OK;
    if (config->detector.exclusion_rows > 1)
        return refuse(error,
                      "detector.exclusion_rows = %zu: there is one row; rows come with "
                      "dwell.combine = doppler or doppler.min_hz and max_hz",
                      config->detector.exclusion_rows);
    if (config->detector.cfar != PNR_CFAR_OFF && config->detector.cfar_axis == PNR_CFAR_ALONG_ROWS)
        return refuse(error, "detector.cfar_axis = doppler: there is one row; rows come with "
                             "dwell.combine = doppler or doppler.min_hz and max_hz");
    return PNR_OK;
}

static int check_looks(const pnr_config *config, pnr_error *error)
{
    const bool is_none = config->dwell.combine == PNR_COMBINE_NONE;
    const bool is_incoherent =
        config->dwell.combine == PNR_COMBINE_INCOHERENT && config->dwell.periods > 1;

    if (is_none && config->dwell.looks > 1)
        return refuse(error,
                      "dwell.looks = %zu are of dwells of several periods; the powers of single "
                      "ones are added by dwell.combine = incoherent with dwell.periods = %zu",
                      config->dwell.looks, config->dwell.looks);
    if (config->detector.subtract > 0 && (is_incoherent || config->dwell.looks > 1))
        return refuse(error,
                      "detector.subtract = %zu needs one coherent look: an echo's phase is another "
                      "in each of %s",
                      config->detector.subtract,
                      is_incoherent ? "dwell.combine = incoherent's periods"
                                    : "several dwell.looks");
    if (config->window.filter == PNR_FILTER_LEAST_SQUARES && config->detector.oversample > 1)
        return refuse(error,
                      "window.filter = least-squares solves for whole lags: detector.oversample = "
                      "%zu has no use",
                      config->detector.oversample);
    return PNR_OK;
}

/* Refuses a processing thread that spins on the same processor as the acquisition thread. The
 * acquisition thread would get no processor time. */
static int check_realtime(const pnr_config *config, pnr_error *error)
{
    const int cpu = config->realtime.processing_cpu;

    if (config->engine.wait == PNR_WAIT_SPIN && cpu >= 0 && config->realtime.acquisition_cpu == cpu)
        return refuse(error,
                      "engine.wait = spin takes all of processor %d: realtime.acquisition_cpu = %d "
                      "must be another",
                      cpu, cpu);
    return PNR_OK;
}

static int check_recorder(const pnr_config *config, pnr_error *error)
{
    const bool is_triggered = config->recorder.pre_trigger_s > 0;

    if (!*config->recorder.samples &&
        (is_triggered || config->recorder.rotate_s > 0 || config->recorder.rotate_bytes > 0))
        return refuse(error, "recorder.%s needs recorder.samples, a folder for the recordings",
                      is_triggered                    ? "pre_trigger_s"
                      : config->recorder.rotate_s > 0 ? "rotate_s"
                                                      : "rotate_bytes");
    if (config->recorder.format == PNR_RECORD_DIGITAL_RF && config->recorder.rotate_bytes > 0)
        return refuse(error, "recorder.rotate_bytes: the files of Digital RF have a fixed time, "
                             "which recorder.rotate_s sets");
    if (!is_triggered && (config->recorder.has_trigger_snr_db || config->recorder.trigger_loss))
        return refuse(error, "recorder.%s needs recorder.pre_trigger_s above 0",
                      config->recorder.trigger_loss ? "trigger_loss" : "trigger_snr_db");
    return PNR_OK;
}

static int check_echo(const pnr_config *config, pnr_error *error)
{
    const pnr_format_info *format = pnr_format_get(config->source.format);
    size_t bits = 8 * (size_t)format->bytes / (format->is_complex ? 2 : 1);
    double half = pnr_rational_double(config->source.rate_hz) / 2;

    if (bits > 0 && !format->is_float && config->echo.bits > bits)
        return refuse(error, "echo.bits = %zu is more than the %zu bits of source.format = %s",
                      config->echo.bits, bits, format->name);
    if (config->echo.cw_amplitude > 0 && fabs(config->echo.cw_hz) > half)
        return refuse(error, "echo.cw_hz = %.10g is beyond half of source.rate_hz, %.10g",
                      config->echo.cw_hz, half);
    if (config->echo.noise_bandwidth_hz > 2 * half)
        return refuse(error, "echo.noise_bandwidth_hz = %.10g is more than source.rate_hz, %.10g",
                      config->echo.noise_bandwidth_hz, 2 * half);
    return PNR_OK;
}

static int check_target(const pnr_config *config, const pnr_target *target, pnr_error *error)
{
    size_t n = target->number;

    if (target->code > pnr_config_codes(config))
        return refuse(error, "target.%zu.code = %zu: there %s %zu", n, target->code,
                      config->n_codes > 1 ? "are" : "is only", pnr_config_codes(config));
    if (target->amplitude != 0 && target->has_snr)
        return refuse(error,
                      "target.%zu has amplitude = %.10g and snr_db = %.10g: give one of them", n,
                      target->amplitude, target->snr_db);
    if (target->amplitude == 0 && !target->has_snr)
        return refuse(error, "target.%zu has neither amplitude nor snr_db: give one of them", n);
    if (target->has_snr && !(config->echo.noise_rms > 0))
        return refuse(error, "target.%zu.snr_db = %.10g needs echo.noise_rms above 0", n,
                      target->snr_db);
    if (!(fabs(target->velocity_mps) < config->radar.speed_mps))
        return refuse(error, "target.%zu.velocity_mps = %.10g is not below radar.speed_mps = %.10g",
                      n, target->velocity_mps, config->radar.speed_mps);
    return PNR_OK;
}

static int check_targets(const pnr_config *config, pnr_error *error)
{
    int rc = PNR_OK;

    for (size_t i = 0; i < config->n_targets && rc == PNR_OK; i++) {
        if (config->targets[i].number != i + 1)
            return refuse(error,
                          "[target.%zu] is missing and [target.%zu] is there: number them from 1 "
                          "without a gap",
                          i + 1, config->targets[i].number);
        rc = check_target(config, &config->targets[i], error);
    }
    return rc;
}

static int check_publisher(const pnr_config *config, pnr_error *error)
{
    if (config->publisher.gnuradio[0] != '\0' && config->publisher.profile == PNR_PROFILE_OFF)
        return refuse(error,
                      "publisher.gnuradio = %s has nothing to send: set publisher.profile = "
                      "power or complex",
                      config->publisher.gnuradio);
    return PNR_OK;
}

int pnr_config_check(const pnr_config *config, pnr_error *error)
{
    static int (*const checks[])(const pnr_config *config, pnr_error *error) = {
        check_names,    check_source,   check_codes,     check_code, check_radar,
        check_dwell,    check_doppler,  check_slow_time, check_rows, check_looks,
        check_realtime, check_recorder, check_publisher, check_echo, check_targets};

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        int rc = checks[i](config, error);

        if (rc != PNR_OK)
            return rc;
    }
    return PNR_OK;
}
