/* SPDX-License-Identifier: MIT */
/* One direction of a sound card, opened with exactly the wanted rate and channels, or refused with
 * the reason. */
#ifndef PNR_ALSA_DEVICE_H
#define PNR_ALSA_DEVICE_H

#include "base/error.h"
#include "source/alsa/values.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pnr_alsa_device {
    const char *key;     /* "source.input", for messages */
    const char *address; /* "alsa:hw:0", */
    const char *name;    /* "hw:0" */
    snd_pcm_t *pcm;      /* NULL: not open */
    const pnr_alsa_values *values;
    size_t n_channels;
    size_t frame_bytes;               /* a frame is one value of each channel */
    snd_pcm_uframes_t period, buffer; /* frames */
} pnr_alsa_device;

/* Opens device->name, key and address are set. stream: the direction. rate_hz is set exactly, and
 * ALSA does not resample. only: the format, or NULL for the best that the device has. Capture gets
 * exactly n_channels; playback may get more. The device waits for snd_pcm_start, and stops at an
 * overrun or underrun. Its time stamps are of CLOCK_MONOTONIC. PNR_ENOINPUT: no such device, or it
 * is busy; PNR_EPERMISSION; PNR_ECONFIG: the message has what the device offers; PNR_EIO. The
 * caller closes it, also after an error. */
int pnr_alsa_device_open(pnr_alsa_device *device, snd_pcm_stream_t stream, unsigned rate_hz,
                         size_t n_channels, const pnr_alsa_values *only, pnr_error *error);
void pnr_alsa_device_close(pnr_alsa_device *device);

/* Sets *error to PNR_EIO with the text of ALSA's error `number`. */
int pnr_alsa_device_failed(const pnr_alsa_device *device, const char *what, int number,
                           pnr_error *error);

#endif
