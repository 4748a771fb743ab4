/* SPDX-License-Identifier: MIT */
#include "source/alsa/player.h"

#include "transmit/wave.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1024 }; /* limit of the number of frames that are computed at a time */

struct pnr_alsa_player {
    pnr_alsa_device device;
    pnr_wave *wave;
    double gain;
    bool is_complex;
    int channel;          /* channel that transmits; -1: all channels */
    double (*iq)[2];      /* [CHUNK] */
    double *frames;       /* [CHUNK][n_channels] */
    unsigned char *bytes; /* [CHUNK][n_channels] values in the format of the device */
    uint64_t origin;      /* sample index of frame 0 */
    uint64_t n_silent;    /* number of silent frames at the start */
    uint64_t n_written;   /* number of frames written so far */
};

static int allocate(pnr_alsa_player *p, pnr_error *error)
{
    p->iq = calloc(CHUNK, sizeof *p->iq);
    p->frames = calloc(CHUNK * p->device.n_channels, sizeof *p->frames);
    p->bytes = calloc(CHUNK, p->device.frame_bytes);
    if (p->iq == NULL || p->frames == NULL || p->bytes == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for the transmitter");
    return PNR_OK;
}

int pnr_alsa_player_create(const pnr_config *config, bool is_complex, pnr_alsa_player **out,
                           pnr_error *error)
{
    static const char prefix[] = "alsa:";
    const char *output = config->transmit.output;
    const size_t n_values = is_complex ? 2 : 1;
    const size_t channel = config->transmit.channel < 0 ? 0 : (size_t)config->transmit.channel;
    pnr_alsa_player *p;
    int code;

    *out = NULL;
    if (strncmp(output, prefix, strlen(prefix)) != 0 || output[strlen(prefix)] == '\0')
        return pnr_refuse(error,
                          "transmit.output = %.200s: want alsa:DEVICE (`aplay -L` lists them); "
                          "pnradar-echo --transmit writes a file",
                          output);
    if (config->code.epoch.is_utc || config->code.epoch.sample != 0)
        return pnr_refuse(error, "code.epoch with transmit.output: the transmitter starts the "
                                 "code at sample 0: leave code.epoch out");
    if ((p = calloc(1, sizeof *p)) == NULL)
        return pnr_error_set(error, PNR_ENOMEMORY, "no memory for the transmitter");
    p->device = (pnr_alsa_device){
        .key = "transmit.output", .address = output, .name = output + strlen(prefix)};
    p->is_complex = is_complex;
    p->channel = config->transmit.channel;
    if ((code = pnr_wave_create(config, !is_complex, &p->wave, error)) != PNR_OK ||
        (code = pnr_alsa_device_open(&p->device, SND_PCM_STREAM_PLAYBACK,
                                     (unsigned)config->source.rate_hz.num, n_values * (channel + 1),
                                     NULL, error)) != PNR_OK ||
        (code = allocate(p, error)) != PNR_OK) {
        pnr_alsa_player_destroy(p);
        return code;
    }
    p->gain = config->transmit.amplitude / pnr_wave_peak(p->wave);
    *out = p;
    return PNR_OK;
}

void pnr_alsa_player_destroy(pnr_alsa_player *p)
{
    if (p == NULL)
        return;
    pnr_alsa_device_close(&p->device);
    pnr_wave_destroy(p->wave);
    free(p->iq);
    free(p->frames);
    free(p->bytes);
    free(p);
}

const pnr_alsa_device *pnr_alsa_player_device(const pnr_alsa_player *p)
{
    return &p->device;
}

/* Fills a frame: the transmitting channel has a value, or a pair of values if the waveform is
 * complex; all other channels are 0. */
static void put_frame(const pnr_alsa_player *p, const double iq[2], double *frame)
{
    const size_t n_values = p->is_complex ? 2 : 1;

    for (size_t v = 0; v < p->device.n_channels; v++)
        frame[v] =
            p->channel < 0 || v / n_values == (size_t)p->channel ? p->gain * iq[v % n_values] : 0;
}

/* Computes frames n_written .. n_written + n - 1, where n is at most CHUNK. */
static void make_frames(pnr_alsa_player *p, size_t n)
{
    const uint64_t silent = p->n_silent > p->n_written ? p->n_silent - p->n_written : 0;
    const size_t n_silent = silent < n ? (size_t)silent : n;

    memset(p->iq, 0, n_silent * sizeof *p->iq);
    pnr_wave_generate(p->wave, p->origin + p->n_written + n_silent, n - n_silent, p->iq + n_silent);
    for (size_t i = 0; i < n; i++)
        put_frame(p, p->iq[i], p->frames + i * p->device.n_channels);
    p->device.values->write(p->frames, n * p->device.n_channels, p->bytes);
}

int pnr_alsa_player_write(pnr_alsa_player *p, uint64_t n_frames)
{
    while (n_frames > 0) {
        const size_t n = n_frames < CHUNK ? (size_t)n_frames : CHUNK;

        make_frames(p, n);

        const snd_pcm_sframes_t taken = snd_pcm_writei(p->device.pcm, p->bytes, n);

        if (taken < 0 && taken != -EAGAIN)
            return (int)taken;
        if (taken <= 0)
            return 0;
        p->n_written += (uint64_t)taken;
        n_frames -= (uint64_t)taken;
    }
    return 0;
}

int pnr_alsa_player_fill(pnr_alsa_player *p, uint64_t origin, uint64_t n_silent)
{
    const int code = snd_pcm_prepare(p->device.pcm);

    p->origin = origin;
    p->n_silent = n_silent;
    p->n_written = 0;
    return code < 0 ? code : pnr_alsa_player_write(p, n_silent > 0 ? n_silent : p->device.buffer);
}

int pnr_alsa_player_resume(pnr_alsa_player *p, uint64_t origin)
{
    p->origin = origin;
    return pnr_alsa_player_write(p, p->device.buffer - p->n_silent);
}
