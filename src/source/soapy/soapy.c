/* SPDX-License-Identifier: MIT */
/* Reads samples of any receiver that has a driver for SoapySDR. */
#include "source/kind.h"

#include "base/clock.h"
#include "base/event.h"
#include "base/log.h"

#include <SoapySDR/Device.h>
#include <SoapySDR/Formats.h>
#include <SoapySDR/Logger.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE_US = 50000,
    FIRST_PATIENCE_S = 5,   /* longest wait for the first samples */
    SILENCE_S = 5,          /* time without samples after which a warning is logged */
    READ_SAMPLES = 1 << 16, /* limit of the number of samples of one read */
    MAX_ERRORS = 16,        /* after this number of consecutive errors the source returns an
                             * error */
    MAX_GAP_S = 24 * 3600,  /* a longer gap means a wrong time */
    STATUS_MS = 100         /* time between two reads of the stream's status */
};

static const struct {
    pnr_format format;
    const char *name;
} formats[] = {
    {PNR_FORMAT_CI16, SOAPY_SDR_CS16}, {PNR_FORMAT_CF32, SOAPY_SDR_CF32},
    {PNR_FORMAT_CI8, SOAPY_SDR_CS8},   {PNR_FORMAT_CU8, SOAPY_SDR_CU8},
    {PNR_FORMAT_CF64, SOAPY_SDR_CF64},
};

typedef struct receiver {
    pnr_source_input *input;
    const pnr_config *config;
    pnr_source_info *info;
    SoapySDRDevice *device;
    SoapySDRStream *stream;
    const char *format;
    size_t sample_bytes, channel;
    double rate_hz;
    bool is_active, has_time, has_status;

    bool has_clock;      /* the time of the next sample is known: base_ns + next_ns */
    double next_ns;      /* time from base_ns to the next sample */
    int64_t base_ns;     /* latest time stamp */
    unsigned char *held; /* [READ_SAMPLES] samples after a gap, for the next reads */
    size_t n_held;       /* number of samples in `held` */
    int64_t held_ns;     /* time of the first sample in `held` */
    uint64_t position;   /* position of the next sample in the stream */
    unsigned n_errors;   /* number of consecutive errors */
    uint64_t sampled_ns; /* CLOCK_MONOTONIC of the latest samples */
    uint64_t status_ns;  /* CLOCK_MONOTONIC of the latest read of the status */
} receiver;

/* --- set up --- */

static int fail_with(const receiver *r, int code, const char *what, pnr_error *error)
{
    return pnr_error_set(error, code, "%.150s: %s: %.200s", r->input->name, what,
                         SoapySDRDevice_lastError());
}

static void log_driver(const SoapySDRLogLevel level, const char *message)
{
    pnr_log(level <= SOAPY_SDR_WARNING ? PNR_LOG_WARN : PNR_LOG_DEBUG, "source: the driver: %s",
            message);
}

/* Sets each gain of a list, for example "LNA=20,VGA=10". */
static int set_gains(receiver *r, const char *gains, pnr_error *error)
{
    SoapySDRKwargs values = SoapySDRKwargs_fromString(gains);
    int code = PNR_OK;

    for (size_t i = 0; code == PNR_OK && i < values.size; i++) {
        char *end;
        const double db = strtod(values.vals[i], &end);

        if (end == values.vals[i] || *end != '\0' || !isfinite(db))
            code = pnr_refuse(error, "source.gains: %.40s = \"%.40s\" is no number of dB",
                              values.keys[i], values.vals[i]);
        else if (SoapySDRDevice_setGainElement(r->device, SOAPY_SDR_RX, r->channel, values.keys[i],
                                               db) != 0)
            code = fail_with(r, PNR_ECONFIG, "source.gains", error);
    }
    if (code == PNR_OK && values.size == 0)
        code = pnr_refuse(error, "source.gains = %.100s: want gains as LNA=20,VGA=10", gains);
    SoapySDRKwargs_clear(&values);
    return code;
}

static int choose_gain(receiver *r, pnr_error *error)
{
    const bool is_automatic = !r->config->source.has_gain_db && r->config->source.gains[0] == '\0';

    if (SoapySDRDevice_hasGainMode(r->device, SOAPY_SDR_RX, r->channel))
        SoapySDRDevice_setGainMode(r->device, SOAPY_SDR_RX, r->channel, is_automatic);
    if (r->config->source.has_gain_db &&
        SoapySDRDevice_setGain(r->device, SOAPY_SDR_RX, r->channel, r->config->source.gain_db) != 0)
        return fail_with(r, PNR_ECONFIG, "source.gain_db", error);
    return r->config->source.gains[0] != '\0' ? set_gains(r, r->config->source.gains, error)
                                              : PNR_OK;
}

/* Sets the rate, and checks the actual rate of the receiver, because all ranges and times depend on
 * it. */
static int choose_rate(receiver *r, pnr_error *error)
{
    if (SoapySDRDevice_setSampleRate(r->device, SOAPY_SDR_RX, r->channel, r->rate_hz) != 0)
        return fail_with(r, PNR_ECONFIG, "source.rate_hz", error);

    const double made_hz = SoapySDRDevice_getSampleRate(r->device, SOAPY_SDR_RX, r->channel);

    if (fabs(made_hz / r->rate_hz - 1) > 1e-6)
        return pnr_refuse(error, "source.rate_hz is %.12g Hz, the receiver makes %.12g Hz of it",
                          r->rate_hz, made_hz);
    return PNR_OK;
}

/* Applies the settings of the configuration. All other settings keep the defaults of the driver. */
static int set_up_device(receiver *r, pnr_error *error)
{
    const pnr_config *config = r->config;
    SoapySDRDevice *device = r->device;
    const size_t n_channels = SoapySDRDevice_getNumChannels(device, SOAPY_SDR_RX);
    int code;

    if (r->channel >= n_channels)
        return pnr_refuse(error, "source.device_channel is %zu: this receiver has %zu, from 0",
                          r->channel, n_channels);
    if (config->source.clock_source[0] != '\0' &&
        SoapySDRDevice_setClockSource(device, config->source.clock_source) != 0)
        return fail_with(r, PNR_ECONFIG, "source.clock_source", error);
    if (config->source.time_source[0] != '\0' &&
        SoapySDRDevice_setTimeSource(device, config->source.time_source) != 0)
        return fail_with(r, PNR_ECONFIG, "source.time_source", error);
    if (config->source.antenna[0] != '\0' &&
        SoapySDRDevice_setAntenna(device, SOAPY_SDR_RX, r->channel, config->source.antenna) != 0)
        return fail_with(r, PNR_ECONFIG, "source.antenna", error);
    if ((code = choose_rate(r, error)) != PNR_OK)
        return code;
    if (config->source.bandwidth_hz > 0 &&
        SoapySDRDevice_setBandwidth(device, SOAPY_SDR_RX, r->channel,
                                    config->source.bandwidth_hz) != 0)
        return fail_with(r, PNR_ECONFIG, "source.bandwidth_hz", error);
    if (SoapySDRDevice_setFrequency(device, SOAPY_SDR_RX, r->channel, config->source.centre_hz,
                                    NULL) != 0)
        return fail_with(r, PNR_ECONFIG, "source.centre_hz", error);
    return choose_gain(r, error);
}

/* Lists the receivers of this machine for an error message. */
static void list_devices(char *text, size_t room)
{
    size_t n = 0;
    SoapySDRKwargs *found = SoapySDRDevice_enumerateStrArgs("", &n);

    snprintf(text, room, "%s", n == 0 ? "no receiver is there" : "there are: ");
    for (size_t i = 0; i < n; i++) {
        char *words = SoapySDRKwargs_toString(&found[i]);
        const size_t length = strlen(text);

        snprintf(text + length, room - length, "%s%.80s", i > 0 ? "; " : "", words);
        SoapySDR_free(words);
    }
    SoapySDRKwargsList_clear(found, n);
}

/* Sets up the stream in the format of the configuration, if the driver offers it. */
static int set_up_stream(receiver *r, pnr_error *error)
{
    size_t n = 0;
    char **offered = SoapySDRDevice_getStreamFormats(r->device, SOAPY_SDR_RX, r->channel, &n);
    char names[120] = "";
    bool is_offered = n == 0; /* if the driver lists no formats, the format is not refused here */

    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(names);

        is_offered |= strcmp(offered[i], r->format) == 0;
        snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "", offered[i]);
    }
    SoapySDRStrings_clear(&offered, n);
    if (!is_offered)
        return pnr_refuse(error, "%.150s does not give %s: set source.format to one of its own: %s",
                          r->input->name, r->format, names);
    r->stream =
        SoapySDRDevice_setupStream(r->device, SOAPY_SDR_RX, r->format, &r->channel, 1, NULL);
    if (r->stream == NULL)
        return fail_with(r, PNR_EUNAVAILABLE, "the stream", error);
    if (SoapySDRDevice_activateStream(r->device, r->stream, 0, 0, 0) != 0)
        return fail_with(r, PNR_EUNAVAILABLE, "the start of the stream", error);
    r->is_active = true;
    return PNR_OK;
}

/* Drops the first samples, which may be older than the settings. Finds out if the samples have time
 * stamps. */
static int try_stream(receiver *r, pnr_error *error)
{
    const uint64_t until = pnr_clock_ns() + FIRST_PATIENCE_S * (uint64_t)PNR_NS_PER_S;
    void *buffers[] = {r->held};
    int n = SOAPY_SDR_TIMEOUT;
    int flags = 0;
    long long time_ns = 0;

    while (n <= 0 && pnr_clock_ns() < until) {
        flags = 0;
        n = SoapySDRDevice_readStream(r->device, r->stream, buffers, READ_SAMPLES, &flags, &time_ns,
                                      PATIENCE_US);
    }
    if (n <= 0)
        return pnr_error_set(error, PNR_EIO, "%.150s: no samples within %d s: %s", r->input->name,
                             FIRST_PATIENCE_S, SoapySDR_errToStr(n));
    r->has_time =
        (flags & SOAPY_SDR_HAS_TIME) != 0 && SoapySDRDevice_hasHardwareTime(r->device, "");
    r->info->loss_visibility = r->has_time ? PNR_LOSS_EXACT : PNR_LOSS_FLAG;
    return PNR_OK;
}

static int receiver_open(void *state, pnr_error *error)
{
    receiver *r = state;
    int code;

    SoapySDR_registerLogHandler(log_driver);
    r->device = SoapySDRDevice_makeStrArgs(strchr(r->input->name, ':') + 1);
    if (r->device == NULL) {
        char reason[200], found[250];

        snprintf(reason, sizeof reason, "%s", SoapySDRDevice_lastError());
        list_devices(found, sizeof found);
        return pnr_error_set(error, PNR_ENOINPUT, "%.120s: %.120s; %s", r->input->name, reason,
                             found);
    }
    if ((code = set_up_device(r, error)) != PNR_OK)
        return code;
    /* If source.time_source is not set, sets the time of the receiver to the time of this
     * machine. */
    if (r->config->source.time_source[0] == '\0' && SoapySDRDevice_hasHardwareTime(r->device, ""))
        (void)SoapySDRDevice_setHardwareTime(r->device, pnr_clock_utc_ns(), "");
    if ((code = set_up_stream(r, error)) != PNR_OK || (code = try_stream(r, error)) != PNR_OK)
        return code;
    r->sampled_ns = pnr_clock_ns();
    return PNR_OK;
}

static int receiver_describe(pnr_source_input *input, const pnr_config *config,
                             pnr_source_info *info, void **state, pnr_error *error)
{
    const pnr_format wanted =
        config->source.format != PNR_FORMAT_NONE ? config->source.format : PNR_FORMAT_CI16;
    receiver *r = calloc(1, sizeof *r);

    if (r == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a SoapySDR source");
    *state = r;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].format == wanted)
            r->format = formats[i].name;
    if (r->format == NULL)
        return pnr_refuse(error,
                          "source.format = %s: SoapySDR has complex samples, as ci16 or cf32",
                          pnr_format_get(wanted)->name);
    if (config->source.rate_hz.den == 0)
        return pnr_refuse(error, "source.rate_hz is not given: the rate to receive at");
    if (!(config->source.centre_hz > 0))
        return pnr_refuse(error, "source.centre_hz is not given: the frequency to receive");
    r->input = input;
    r->config = config;
    r->info = info;
    r->channel = config->source.device_channel;
    r->rate_hz = pnr_rational_double(config->source.rate_hz);
    r->sample_bytes = pnr_format_get(wanted)->bytes;
    r->has_status = true;
    if ((r->held = malloc(READ_SAMPLES * r->sample_bytes)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for a SoapySDR source");
    info->format = wanted;
    info->n_channels = 1;
    info->n_samples = UINT64_MAX;
    info->is_live = true;
    snprintf(info->text, sizeof info->text, "SoapySDR %s, %.10g Hz at %.10g Hz, channel %zu",
             r->format, r->rate_hz, config->source.centre_hz, r->channel);
    return PNR_OK;
}

/* --- the stream --- */

/* Reports an error of the receiver that is not a loss. */
static void note_error(const receiver *r, const char *what)
{
    pnr_event_post(r->input->events, PNR_EVENT_SOURCE_ERROR, r->position, 0, 0, "source: %s", what);
}

static void note_overflow(const receiver *r)
{
    pnr_event_post(r->input->events, PNR_EVENT_OVERRUN, r->position, 0, 0,
                   "source: the receiver lost samples after sample %" PRIu64 "%s", r->position,
                   r->has_time ? "; its time says how many" : ", and does not say how many");
}

/* Reads the events that some drivers report separately from the samples. */
static void look_at_status(receiver *r)
{
    const uint64_t now = pnr_clock_ns();
    size_t channels = 0;
    int flags = 0;
    long long time_ns = 0;

    if (!r->has_status || now - r->status_ns < STATUS_MS * UINT64_C(1000000))
        return;
    r->status_ns = now;

    const int code =
        SoapySDRDevice_readStreamStatus(r->device, r->stream, &channels, &flags, &time_ns, 0);

    r->has_status = code != SOAPY_SDR_NOT_SUPPORTED;
    if (code == SOAPY_SDR_OVERFLOW)
        note_overflow(r);
}

/* Handles the status of a read that returned no samples. */
static int handle_code(receiver *r, int code, pnr_error *error)
{
    if (code == 0 || code == SOAPY_SDR_TIMEOUT) {
        if (pnr_clock_ns() - r->sampled_ns > SILENCE_S * (uint64_t)PNR_NS_PER_S) {
            r->sampled_ns = pnr_clock_ns();
            note_error(r, "the receiver gives no samples for 5 s: is it still connected?");
        }
        return PNR_EAGAIN;
    }
    if (code == SOAPY_SDR_OVERFLOW) {
        note_overflow(r);
        return PNR_EAGAIN;
    }
    if (++r->n_errors >= MAX_ERRORS ||
        (code != SOAPY_SDR_STREAM_ERROR && code != SOAPY_SDR_CORRUPTION &&
         code != SOAPY_SDR_TIME_ERROR))
        return pnr_error_set(error, PNR_EIO, "%.150s: the receiver fails: %s", r->input->name,
                             SoapySDR_errToStr(code));
    note_error(r, code == SOAPY_SDR_CORRUPTION   ? "the receiver reports corrupt samples"
                  : code == SOAPY_SDR_TIME_ERROR ? "the receiver reports a wrong time"
                                                 : "the receiver reports an error of the stream");
    return PNR_EAGAIN;
}

/* Compares the time stamp of n new samples with the time that is expected after the earlier
 * samples. Returns the number of samples that are lost before the new samples. Returns 0 if the
 * time steps back, or is more than MAX_GAP_S ahead. */
static uint64_t follow_time(receiver *r, int64_t time_ns, size_t n)
{
    const double late_ns = r->has_clock ? (double)(time_ns - r->base_ns) - r->next_ns : 0;
    const double late = round(late_ns * 1e-9 * r->rate_hz);

    r->has_clock = true;
    r->base_ns = time_ns;
    r->next_ns = (double)n / r->rate_hz * 1e9;
    if (late < 0 || late > MAX_GAP_S * r->rate_hz) {
        note_error(
            r, late < 0 ? "the receiver's time steps back; its samples are taken as they come"
                        : "the receiver's time is a day ahead; its samples are taken as they come");
        return 0;
    }
    return (uint64_t)late;
}

/* Sets the time of the block if the time of the receiver is within a day of UTC. */
static void state_time(const receiver *r, int64_t utc_ns, pnr_source_block *block)
{
    block->has_time = r->has_clock && llabs(utc_ns - pnr_clock_utc_ns()) < MAX_GAP_S * PNR_NS_PER_S;
    block->utc_ns = utc_ns;
}

static size_t take_held(receiver *r, void *data, size_t max_samples, pnr_source_block *block)
{
    const size_t n = r->n_held < max_samples ? r->n_held : max_samples;

    memcpy(data, r->held, n * r->sample_bytes);
    memmove(r->held, r->held + n * r->sample_bytes, (r->n_held - n) * r->sample_bytes);
    r->n_held -= n;
    state_time(r, r->held_ns, block);
    r->held_ns += (int64_t)((double)n / r->rate_hz * 1e9);
    return n;
}

static int read_stream(receiver *r, void *data, size_t max_samples, pnr_source_block *block,
                       pnr_error *error)
{
    void *buffers[] = {data};
    long long time_ns = 0;
    int flags = 0;

    if (r->n_held > 0) {
        block->n_samples = take_held(r, data, max_samples, block);
        return PNR_OK;
    }

    const int n = SoapySDRDevice_readStream(r->device, r->stream, buffers,
                                            max_samples < READ_SAMPLES ? max_samples : READ_SAMPLES,
                                            &flags, &time_ns, PATIENCE_US);

    look_at_status(r);
    if (n <= 0)
        return handle_code(r, n, error);
    r->n_errors = 0;
    r->sampled_ns = pnr_clock_ns();
    if (!r->has_time || (flags & SOAPY_SDR_HAS_TIME) == 0) {
        r->next_ns += (double)n / r->rate_hz * 1e9;
        block->n_samples = (size_t)n;
        return PNR_OK;
    }

    const int64_t expected_ns = r->base_ns + (int64_t)r->next_ns;

    block->gap = follow_time(r, time_ns, (size_t)n);
    if (block->gap == 0) {
        state_time(r, time_ns, block);
        block->n_samples = (size_t)n;
        return PNR_OK;
    }
    memcpy(r->held, data, (size_t)n * r->sample_bytes);
    r->n_held = (size_t)n;
    r->held_ns = time_ns;
    state_time(r, expected_ns, block);
    return PNR_OK;
}

static int receiver_read(void *state, void *data, size_t max_samples, pnr_source_block *block,
                         pnr_error *error)
{
    receiver *r = state;
    const int code = read_stream(r, data, max_samples, block, error);

    r->position += block->n_samples + block->gap;
    return code;
}

static void receiver_close(void *state)
{
    receiver *r = state;

    if (r->is_active)
        SoapySDRDevice_deactivateStream(r->device, r->stream, 0, 0);
    if (r->stream != NULL)
        SoapySDRDevice_closeStream(r->device, r->stream);
    if (r->device != NULL)
        SoapySDRDevice_unmake(r->device);
    free(r->held);
    free(r);
}

static const pnr_source_kind soapy = {.title = "a receiver of SoapySDR",
                                      .describe = receiver_describe,
                                      .open = receiver_open,
                                      .read = receiver_read,
                                      .close = receiver_close};
PNR_SOURCE_MODULE(soapy);
