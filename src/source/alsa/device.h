/* SPDX-License-Identifier: MIT */
/* One direction of a sound card. */
#ifndef PNR_ALSA_DEVICE_H
#define PNR_ALSA_DEVICE_H

#include "base/error.h"
#include "source/alsa/values.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pnr_alsa_device {
    const char *key;     /* the configuration key for messages: "source.input" */
    const char *address; /* value of the key, "alsa:hw:0" */
    const char *name;    /* name for ALSA, "hw:0" */
    snd_pcm_t *pcm;      /* NULL: the device is not open */
    const pnr_alsa_values *values;
    size_t n_channels;
    size_t frame_bytes;               /* bytes of a frame, which is one value of each channel */
    snd_pcm_uframes_t period, buffer; /* ALSA's period and buffer length, in frames */
} pnr_alsa_device;

/* Opens device->name. The caller has set name, key and address. stream: the direction. Sets the
 * rate to exactly rate_hz, without resampling in ALSA. only: the wanted format; NULL: the best
 * format of the device. A capture gets exactly n_channels. A playback gets the least number of
 * channels >= n_channels that the device offers. The device waits for snd_pcm_start, and stops at
 * an overrun or underrun. Its time stamps are of CLOCK_MONOTONIC. PNR_ENOINPUT: there is no such
 * device, or it is busy; PNR_EPERMISSION; PNR_ECONFIG: the device has no such rate, channels or
 * format, and the message lists those that it has; PNR_EIO. The caller closes the device, also
 * after an error. */
int pnr_alsa_device_open(pnr_alsa_device *device, snd_pcm_stream_t stream, unsigned rate_hz,
                         size_t n_channels, const pnr_alsa_values *only, pnr_error *error);
void pnr_alsa_device_close(pnr_alsa_device *device);

/* Sets *error to PNR_EIO, with the text of ALSA's error `number`. Returns PNR_EIO. */
int pnr_alsa_device_failed(const pnr_alsa_device *device, const char *what, int number,
                           pnr_error *error);

#endif
