/* SPDX-License-Identifier: MIT */
#include "source/alsa/device.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* PERIOD_US: time between two interrupts of the card. BUFFER_US: length of its buffer; if the
 * thread stalls for a longer time, samples are lost. */
enum { PERIOD_US = 10000, BUFFER_US = 500000 };

enum { OFFER_LEN = 160 };

/* ALSA's own messages explain less than the errors of this file. This function logs ALSA's messages
 * only with PNR_LOG=debug. */
static void log_alsa(const char *file, int line, const char *function, int number,
                     const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pnr_log(PNR_LOG_DEBUG, "%s:%d: %s: %s%s%s", file, line, function, text, number != 0 ? ": " : "",
            number != 0 ? snd_strerror(number) : "");
}

int pnr_alsa_device_failed(const pnr_alsa_device *device, const char *what, int number,
                           pnr_error *error)
{
    return pnr_error_set(error, PNR_EIO, "%s = %.200s: %s: %s", device->key, device->address, what,
                         number == -ENODEV ? "the device went away" : snd_strerror(number));
}

static int open_pcm(pnr_alsa_device *device, snd_pcm_stream_t stream, pnr_error *error)
{
    const int code = snd_pcm_open(&device->pcm, device->name, stream, SND_PCM_NONBLOCK);
    const char *list = stream == SND_PCM_STREAM_CAPTURE ? "arecord" : "aplay";

    switch (code) {
    case 0:
        return PNR_OK;
    case -EBUSY:
        return pnr_error_set(error, PNR_ENOINPUT,
                             "%s = %.200s: the device is busy: `fuser -v /dev/snd/*` names the "
                             "program that has it; alsa:default shares it on most desktops",
                             device->key, device->address);
    case -EACCES:
    case -EPERM:
        return pnr_error_set(error, PNR_EPERMISSION,
                             "%s = %.200s: permission denied: is the user in the group audio?",
                             device->key, device->address);
    case -ENOENT:
    case -ENODEV:
    case -ENXIO:
        return pnr_error_set(error, PNR_ENOINPUT,
                             "%s = %.200s: there is no such device: `%s -L` lists them",
                             device->key, device->address, list);
    default:
        return pnr_alsa_device_failed(device, "it cannot be opened", code, error);
    }
}

/* --- what a device offers, for messages --- */

static const char *offered_formats(const pnr_alsa_device *device, snd_pcm_hw_params_t *params,
                                   char text[OFFER_LEN])
{
    size_t used = 0;

    strcpy(text, "none of pnradar's formats");
    for (int f = 0; f < SND_PCM_FORMAT_LAST && used + 24 < OFFER_LEN; f++)
        if (snd_pcm_hw_params_test_format(device->pcm, params, (snd_pcm_format_t)f) == 0)
            used += (size_t)snprintf(text + used, OFFER_LEN - used, "%s%s", used > 0 ? ", " : "",
                                     snd_pcm_format_name((snd_pcm_format_t)f));
    return text;
}

static const char *offered_rates(const pnr_alsa_device *device, snd_pcm_hw_params_t *params,
                                 char text[OFFER_LEN])
{
    static const unsigned rates[] = {8000,  11025, 16000, 22050,  32000,  44100,
                                     48000, 88200, 96000, 176400, 192000, 384000};
    unsigned least = 0, most = 0;
    size_t used = 0;

    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (snd_pcm_hw_params_test_rate(device->pcm, params, rates[i], 0) == 0)
            used += (size_t)snprintf(text + used, OFFER_LEN - used, "%s%u", used > 0 ? ", " : "",
                                     rates[i]);
    if (used == 0 && snd_pcm_hw_params_get_rate_min(params, &least, NULL) == 0 &&
        snd_pcm_hw_params_get_rate_max(params, &most, NULL) == 0)
        snprintf(text, OFFER_LEN, least == most ? "%u" : "%u to %u", least, most);
    return text;
}

/* --- parameters --- */

/* Sets the first of the formats in pnr_alsa_formats that the device supports. If `only` is given,
 * sets this format or fails. */
static int set_format(pnr_alsa_device *device, snd_pcm_hw_params_t *params,
                      const pnr_alsa_values *only, pnr_error *error)
{
    const pnr_alsa_values *first = only != NULL ? only : pnr_alsa_formats;
    const size_t n = only != NULL ? 1 : PNR_ALSA_FORMATS;
    char text[OFFER_LEN];

    for (size_t i = 0; i < n; i++)
        if (snd_pcm_hw_params_set_format(device->pcm, params, first[i].format) == 0) {
            device->values = &first[i];
            return PNR_OK;
        }
    return pnr_refuse(error, "%s = %.200s offers %s, but not %s%s", device->key, device->address,
                      offered_formats(device, params, text), first->name,
                      only != NULL ? ": leave source.format out" : " or another that is known");
}

static int set_channels(pnr_alsa_device *device, snd_pcm_hw_params_t *params,
                        snd_pcm_stream_t stream, size_t n_channels, pnr_error *error)
{
    unsigned least = (unsigned)n_channels, most = 0, n = least;
    char text[32];
    int code;

    if (stream == SND_PCM_STREAM_CAPTURE)
        code = snd_pcm_hw_params_set_channels(device->pcm, params, n);
    else if ((code = snd_pcm_hw_params_set_channels_min(device->pcm, params, &least)) == 0)
        code = snd_pcm_hw_params_set_channels_first(device->pcm, params, &n);
    device->n_channels = n;
    if (code == 0)
        return PNR_OK;
    (void)snd_pcm_hw_params_get_channels_min(params, &least);
    (void)snd_pcm_hw_params_get_channels_max(params, &most);
    snprintf(text, sizeof text, least < most ? "%u to %u" : "%u", least, most);
    return pnr_refuse(error,
                      "%s = %.200s offers %s channels, %zu are needed: see %s (a complex one is "
                      "two)",
                      device->key, device->address, text, n_channels,
                      stream == SND_PCM_STREAM_CAPTURE ? "source.channels" : "transmit.channel");
}

static int set_rate(pnr_alsa_device *device, snd_pcm_hw_params_t *params, unsigned rate_hz,
                    pnr_error *error)
{
    char text[OFFER_LEN];

    (void)snd_pcm_hw_params_set_rate_resample(device->pcm, params, 0);
    if (snd_pcm_hw_params_set_rate(device->pcm, params, rate_hz, 0) == 0)
        return PNR_OK;
    return pnr_refuse(error, "source.rate_hz = %u: %s offers %s Hz", rate_hz, device->address,
                      offered_rates(device, params, text));
}

static int set_hardware(pnr_alsa_device *device, snd_pcm_stream_t stream, unsigned rate_hz,
                        size_t n_channels, const pnr_alsa_values *only, pnr_error *error)
{
    snd_pcm_t *pcm = device->pcm;
    snd_pcm_hw_params_t *params;
    unsigned period_us = PERIOD_US, buffer_us = BUFFER_US;
    int code;

    snd_pcm_hw_params_alloca(&params);
    if ((code = snd_pcm_hw_params_any(pcm, params)) < 0 ||
        (code = snd_pcm_hw_params_set_access(pcm, params, SND_PCM_ACCESS_RW_INTERLEAVED)) < 0)
        return pnr_alsa_device_failed(device, "no interleaved samples", code, error);
    if ((code = set_rate(device, params, rate_hz, error)) != PNR_OK ||
        (code = set_channels(device, params, stream, n_channels, error)) != PNR_OK ||
        (code = set_format(device, params, only, error)) != PNR_OK)
        return code;
    if ((code = snd_pcm_hw_params_set_buffer_time_near(pcm, params, &buffer_us, NULL)) < 0 ||
        (code = snd_pcm_hw_params_set_period_time_near(pcm, params, &period_us, NULL)) < 0 ||
        (code = snd_pcm_hw_params(pcm, params)) < 0 ||
        (code = snd_pcm_hw_params_get_period_size(params, &device->period, NULL)) < 0 ||
        (code = snd_pcm_hw_params_get_buffer_size(params, &device->buffer)) < 0)
        return pnr_alsa_device_failed(device, "its buffer cannot be set", code, error);
    device->frame_bytes = device->n_channels * device->values->bytes;
    return PNR_OK;
}

/* The card starts only at snd_pcm_start. It wakes the thread at each interrupt. */
static int set_software(pnr_alsa_device *device, pnr_error *error)
{
    snd_pcm_t *pcm = device->pcm;
    snd_pcm_sw_params_t *params;
    snd_pcm_uframes_t never;
    int code;

    snd_pcm_sw_params_alloca(&params);
    if ((code = snd_pcm_sw_params_current(pcm, params)) < 0 ||
        (code = snd_pcm_sw_params_get_boundary(params, &never)) < 0 ||
        (code = snd_pcm_sw_params_set_start_threshold(pcm, params, never)) < 0 ||
        (code = snd_pcm_sw_params_set_avail_min(pcm, params, device->period)) < 0 ||
        (code = snd_pcm_sw_params_set_tstamp_mode(pcm, params, SND_PCM_TSTAMP_ENABLE)) < 0 ||
        (code = snd_pcm_sw_params_set_tstamp_type(pcm, params, SND_PCM_TSTAMP_TYPE_MONOTONIC)) <
            0 ||
        (code = snd_pcm_sw_params(pcm, params)) < 0)
        return pnr_alsa_device_failed(device, "its thresholds cannot be set", code, error);
    return PNR_OK;
}

int pnr_alsa_device_open(pnr_alsa_device *device, snd_pcm_stream_t stream, unsigned rate_hz,
                         size_t n_channels, const pnr_alsa_values *only, pnr_error *error)
{
    int code;

    (void)snd_lib_error_set_handler(log_alsa);
    if ((code = open_pcm(device, stream, error)) != PNR_OK ||
        (code = set_hardware(device, stream, rate_hz, n_channels, only, error)) != PNR_OK)
        return code;
    return set_software(device, error);
}

void pnr_alsa_device_close(pnr_alsa_device *device)
{
    if (device->pcm == NULL)
        return;
    (void)snd_pcm_drop(device->pcm);
    (void)snd_pcm_close(device->pcm);
    device->pcm = NULL;
}
